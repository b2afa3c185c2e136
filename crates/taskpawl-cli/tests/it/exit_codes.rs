//! Exit codes report the result of a command, even if its output cannot be written.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, pipe};
use std::process::{Command, Stdio};

use taskpawl_fuzz::is_due;

use crate::harness::Cli;

/// A plan for each way in which a run can end.
const PLANS: [(&str, &str); 5] = [
    ("done.yaml", "{name: done, tasks: [{id: d, run: echo a}]}"),
    ("failed.yaml", "{name: failed, tasks: [{id: f, run: exit 1}, {id: g, needs: f, run: 'true'}]}"),
    ("waits.yaml", "{name: waits, tasks: [{id: w, approval: {ask: Now?}, run: 'true'}]}"),
    ("manual.yaml", "{name: manual, tasks: [{id: m}]}"),
    ("blocked.yaml", "{name: blocked, tools: [no_such_tool], tasks: [{id: b, call: {no_such_tool: {}}}]}"),
];

/// Commands that end in the same way however often they run.
const COMMANDS: [&[&str]; 44] = [
    &["run-all-ready", "--plan", "done.yaml", "--fresh"],
    &["run-all-ready", "--plan", "failed.yaml", "--fresh"],
    &["run-all-ready", "--plan", "waits.yaml", "--fresh"],
    &["run-all-ready", "--plan", "done.yaml", "--fresh", "--format", "ndjson"],
    &["run-all-ready", "--plan", "failed.yaml", "--fresh", "--format", "ndjson"],
    &["run-all-ready", "--plan", "waits.yaml", "--fresh", "--format", "ndjson"],
    &["run-all-ready", "--plan", "failed.yaml", "--fresh", "--format", "plain", "--quiet"],
    &["run-all-ready", "--only", "plan:blocked"],
    &["run-all-ready", "--only", "plan:failed", "--dry-run"],
    &["run-all-ready", "--only", "nowhere"],
    &["run", "f"],
    &["plan", "check", "done.yaml"],
    &["plan", "check", "circle.yaml"],
    &["plan", "check", "unknown.yaml"],
    &["apply", "done.yaml", "--expand"],
    &["apply", "nowhere.yaml"],
    &["list"],
    &["list", "--limit", "0"],
    &["list", "--offset", "1", "--fields", "id"],
    &["show", "f"],
    &["show", "nowhere"],
    &["done", "f"],
    &["explain", "g"],
    &["explain", "--ready"],
    &["ready"],
    &["runs"],
    &["logs", "d"],
    &["graph"],
    &["graph", "--format", "dot"],
    &["critical-path"],
    &["history", "--limit", "0"],
    &["history", "--limit", "0", "--format", "ndjson"],
    &["watch", "--once"],
    &["prime"],
    &["tools", "list"],
    &["tools", "call", "fail", "--args", r#"{"message": "no"}"#],
    &["policy", "check", "--", "echo", "a"],
    &["policy", "list"],
    &["config", "list"],
    &["where"],
    &["doctor"],
    &["schema", "plan"],
    &["completions", "bash"],
    &["list", "--no-such-flag"],
];

/// Commands without JSON output, or with another meaning under `--json`.
const PLAIN: [&[&str]; 4] = [&["--help"], &["--version"], &["run", "--help"], &["man"]];

/// The fate of standard output or standard error.
#[derive(Debug, Clone, Copy)]
enum Sink {
    /// It is read to its end.
    Read,
    /// Its reader is closed before the command starts.
    Closed,
    /// The disk behind it is full.
    Full,
}

impl Sink {
    fn stdio(self) -> Stdio {
        match self {
            Self::Read => Stdio::null(),
            Self::Closed => {
                let (reader, writer) = pipe().unwrap();
                drop(reader);
                writer.into()
            }
            // Every write to `/dev/full` fails with `ENOSPC`.
            Self::Full => OpenOptions::new().write(true).open("/dev/full").unwrap().into(),
        }
    }
}

fn code(cli: &Cli, args: &[&str], stdout: Sink, stderr: Sink) -> i32 {
    let mut command = cli.command(&cli.path("work"), args);
    command.stdin(Stdio::null()).stdout(stdout.stdio()).stderr(stderr.stdio());
    command.status().unwrap().code().unwrap_or_else(|| panic!("a signal ended {args:?}"))
}

fn prepared() -> Cli {
    let cli = Cli::new().with_programs();
    for (file, plan) in PLANS {
        cli.file(file, plan);
        cli.run(&["apply", file]).ok();
    }
    cli.run(&["run", "d"]).ok();
    cli.file("circle.yaml", "tasks: [{id: x, needs: y}, {id: y, needs: x}]");
    cli.file("unknown.yaml", "tasks: [{id: x, needs: nowhere}]");
    cli
}

#[test]
fn what_becomes_of_standard_output_changes_no_code_but_that_of_success() {
    let cli = prepared();
    let with_json = |args: &&[&'static str]| {
        let is_stream = args.contains(&"ndjson");
        (!is_stream).then(|| args.iter().copied().chain(["--json"]).collect::<Vec<_>>())
    };
    let mut all: Vec<Vec<&str>> = COMMANDS.iter().chain(&PLAIN).map(|args| args.to_vec()).collect();
    all.extend(COMMANDS.iter().filter_map(with_json));
    let mut codes = BTreeSet::new();
    let mut wrong = Vec::new();
    for (position, args) in (0..).zip(&all) {
        let own = code(&cli, args, Sink::Read, Sink::Read);
        codes.insert(own);
        let unwritten = if own == 0 { 8 } else { own };
        // Two of them for each command, and the next ones tomorrow.
        for (case, (stdout, stderr, right)) in (position..).zip([
            (Sink::Closed, Sink::Read, own),
            (Sink::Closed, Sink::Closed, own),
            (Sink::Read, Sink::Closed, own),
            (Sink::Read, Sink::Full, own),
            (Sink::Full, Sink::Read, unwritten),
            (Sink::Full, Sink::Closed, unwritten),
        ]) {
            if !is_due(case, 3) {
                continue;
            }
            let found = code(&cli, args, stdout, stderr);
            if found != right {
                wrong.push(format!("{args:?} ends with {found}, not {right}: {stdout:?}, {stderr:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(
        codes.into_iter().collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 6, 7],
        "every kind of end is among them"
    );
}

#[test]
fn nothing_is_printed_where_nothing_is_to_be_printed() {
    let cli = prepared();
    // The failure shows only on a write, and this command writes nothing.
    assert_eq!(code(&cli, &["todo", "prompt"], Sink::Full, Sink::Read), 0);
}

#[test]
fn a_run_goes_on_to_its_end_when_its_reader_is_gone() {
    for format in [&["--format", "ndjson"][..], &["--json"], &[]] {
        let cli = Cli::new().with_programs();
        let tasks: Vec<String> =
            (0..20).map(|number| format!("{{id: t{number}, run: 'echo x > out{number}'}}")).collect();
        cli.file("plan.yaml", &format!("tasks: [{}, {{id: last, run: exit 1}}]", tasks.join(", ")));
        let args: Vec<&str> =
            ["run-all-ready", "--plan", "plan.yaml"].iter().chain(format).copied().collect();
        let (mut reader, writer) = pipe().unwrap();
        let mut command = cli.command(&cli.path("work"), &args);
        let mut run = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::null()).spawn().unwrap();
        drop(command);
        // Waits for the first byte: a stream sends it early, a document at the end of the run.
        let _ = reader.read(&mut [0]);
        drop(reader);
        assert_eq!(run.wait().unwrap().code(), Some(1), "{args:?}");
        let done = (0..20).filter(|number| cli.path("work").join(format!("out{number}")).exists()).count();
        assert_eq!(done, 20, "{args:?}");
    }
}

#[test]
fn what_could_not_be_written_is_said_once() {
    let cli = prepared();
    for args in [&["list"][..], &["list", "--json"], &["list", "--limit", "0", "--json"]] {
        let mut command = cli.command(&cli.path("work"), args);
        command.stdin(Stdio::null()).stdout(Sink::Full.stdio()).stderr(Stdio::piped());
        let text = String::from_utf8(command.output().unwrap().stderr).unwrap();
        assert_eq!(
            text,
            "error: failed to write to standard output: No space left on device (os error 28)\n"
        );
    }
}

/// Another process that shares the pipe may have set `O_NONBLOCK`.
#[test]
fn a_pipe_that_does_not_wait_gets_everything() {
    let cli = Cli::new();
    let tasks: Vec<String> =
        (0..3000).map(|number| format!("{{id: task-{number}, name: to fill the pipe}}")).collect();
    cli.file("many.yaml", &format!("tasks: [{}]", tasks.join(", ")));
    cli.run(&["apply", "many.yaml"]).ok();
    let (reader, writer) = pipe().unwrap();
    let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
    rustix::fs::fcntl_setfl(&writer, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    let mut command: Command = cli.command(&cli.path("work"), &["list", "--limit", "0", "--json"]);
    let mut list = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    drop(command);
    let mut text = String::new();
    File::from(std::os::fd::OwnedFd::from(reader)).read_to_string(&mut text).unwrap();
    assert_eq!(list.wait().unwrap().code(), Some(0));
    let list: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(list["data"].as_array().unwrap().len(), 3000);
}
