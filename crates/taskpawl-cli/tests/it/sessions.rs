//! Recorded sessions, each with its cost: the commands, and the bytes that an agent writes and reads.
//!
//! The figures are those of a script that knows what to do next, not of a model.

mod over_mcp;

use std::process::Stdio;

use crate::harness::{Cli, Run};

/// Bytes of a token, on average.
const BYTES_PER_TOKEN: usize = 4;

/// The cost of a session so far.
#[derive(Debug, Default)]
struct Cost {
    commands: usize,
    bytes_in: usize,
    bytes_out: usize,
    refusals: usize,
}

/// The upper bounds of a session: what was measured, and a few per cent for durations and names of runs.
struct Bounds {
    commands: usize,
    bytes_in: usize,
    bytes_out: usize,
}

impl Cost {
    /// Prints the cost, and compares it with the bounds.
    #[expect(clippy::print_stderr, reason = "the figures are for people who read the output of the tests")]
    fn ends_within(&self, name: &str, bounds: &Bounds) {
        let tokens = (self.bytes_in + self.bytes_out) / BYTES_PER_TOKEN;
        eprintln!(
            "scripted session `{name}`: {} commands and edits, {} bytes in, {} bytes out (about {tokens} tokens), {} \
             refusals",
            self.commands, self.bytes_in, self.bytes_out, self.refusals
        );
        assert!(self.commands <= bounds.commands, "{} commands", self.commands);
        assert!(self.bytes_in <= bounds.bytes_in, "{} bytes in", self.bytes_in);
        assert!(self.bytes_out <= bounds.bytes_out, "{} bytes out", self.bytes_out);
        assert_eq!(self.refusals, 0);
    }
}

/// A session on the command line.
struct Session {
    cli: Cli,
    cost: Cost,
}

impl Session {
    fn new() -> Self {
        let cli = Cli::without_store().with_programs().with_clock().with("TASKPAWL_ACTOR", "coder");
        Self { cli, cost: Cost::default() }
    }

    /// Writes a file, which counts as a command with the name and the content.
    fn write(&mut self, name: &str, content: &str) {
        self.cli.file(name, content);
        self.cost.commands += 1;
        self.cost.bytes_in += name.len() + content.len();
    }

    /// Runs a command, which ends with `exit`.
    fn run(&mut self, line: &str, exit: i32) -> Run {
        let args: Vec<&str> = line.split(' ').collect();
        let run = self.cli.run(&args);
        assert_eq!(run.code, Some(exit), "{run}");
        self.cost.commands += 1;
        self.cost.bytes_in += "taskpawl ".len() + line.len();
        self.cost.bytes_out += run.stdout.len() + run.stderr.len();
        self.cost.refusals += usize::from(run.code == Some(7));
        run
    }

    fn ends_within(&self, name: &str, bounds: &Bounds) {
        self.cost.ends_within(name, bounds);
    }
}

const PACKAGE: &str = "\
name: greeter
tasks:
  - {id: lint, run: sh -n src/greet.sh}
  - id: test
    needs: lint
    run: |
      echo testing
      sh -e tests.sh
      echo tested
  - {id: package, needs: test, run: mkdir -p dist && cp src/greet.sh dist}
";
const TESTS: &str = "\
. ./src/greet.sh
answer=$(greet Ada)
echo \"greet Ada: $answer\"
test \"$answer\" = \"Hello, Ada\"
";

#[test]
fn a_package_with_a_failing_test_is_repaired() {
    let mut session = Session::new();
    session.write("src/greet.sh", "greet() { echo \"hello, $1\"; }\n");
    session.write("tests.sh", TESTS);
    session.write("plan.yaml", PACKAGE);
    session.run("plan check plan.yaml", 0);
    let failed = session.run("run-all-ready plan.yaml", 1);
    assert!(failed.stderr.contains("greet Ada: hello, Ada"), "the failure shows its cause: {failed}");
    session.write("src/greet.sh", "greet() { echo \"Hello, $1\"; }\n");
    session.run("run-all-ready plan.yaml --retry-failed", 0);
    session.write("plan.yaml", &PACKAGE.replace("cp src/greet.sh dist", "cp src/greet.sh tests.sh dist"));
    session.run("run-all-ready plan.yaml --redo-changed", 0);
    session.run("status", 0);
    session.ends_within("edit-run", &Bounds { commands: 10, bytes_in: 880, bytes_out: 870 });
}

const RELEASE: &str = "\
name: release
tasks:
  - {id: build, run: mkdir -p dist && echo 1.4.0 > dist/version}
  - {id: test, needs: build, run: grep -q '^1' dist/version}
  - {id: tag, needs: test, run: echo v1.4.0 > tag}
  - id: publish
    needs: tag
    run: |
      echo uploading $(cat tag)
      test -e registry-is-up
      echo published
  - {id: announce-delay, needs: publish, trigger: any_failed, run: echo delayed >> announced}
  - {id: unlock, needs: publish, trigger: all_finished, run: echo unlocked >> unlocked}
";

#[test]
fn a_release_that_fails_is_compensated_and_repeated() {
    let mut session = Session::new();
    session.write("plan.yaml", RELEASE);
    session.run("plan check plan.yaml", 0);
    let failed = session.run("run-all-ready plan.yaml", 1);
    assert!(failed.stderr.contains("uploading v1.4.0"), "{failed}");
    assert!(session.cli.path("work/announced").exists());
    session.cli.file("registry-is-up", "");
    session.run("run-all-ready plan.yaml --retry-failed", 0);
    let list = session.run("list", 0).stdout;
    let ends: Vec<String> =
        list.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(&ends[3..], ["publish done", "announce-delay skipped", "unlock done"], "{list}");
    let history = session.run("history announce-delay", 0).stdout;
    assert!(
        history.contains("call c1 succeeded"),
        "the earlier compensation stays in the history: {history}"
    );
    session.ends_within("release", &Bounds { commands: 6, bytes_in: 690, bytes_out: 1600 });
}

const SOAK: &str = "\
name: soak
tasks:
  - {id: prepare, run: echo ready}
  - id: soak
    needs: prepare
    idempotent: true
    run: echo started >> soak.log; test $(wc -l < soak.log) -gt 1 || sleep 600
  - id: upload
    needs: prepare
    run: echo started >> upload.log; test $(wc -l < upload.log) -gt 1 || sleep 600
";

#[test]
fn a_run_that_is_killed_is_resumed() {
    let mut session = Session::new();
    let directory = session.cli.path("work");
    session.cli.file("plan.yaml", SOAK);
    let mut command = session.cli.command(&directory, &["run-all-ready", "plan.yaml", "--jobs", "2"]);
    let mut run = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !directory.join("soak.log").exists() || !directory.join("upload.log").exists() {
        std::thread::yield_now();
    }
    run.kill().unwrap();
    run.wait().unwrap();
    // The session begins after the kill.
    session.run("status", 0);
    let waits = session.run("run-all-ready plan.yaml", 3);
    assert!(waits.stdout.contains("taskpawl unblock upload"), "the way on is offered: {waits}");
    session.run("unblock upload", 0);
    let ended = session.run("run-all-ready plan.yaml", 0);
    assert!(ended.stdout.contains("2 were done before"), "{ended}");
    session.ends_within("resume", &Bounds { commands: 4, bytes_in: 106, bytes_out: 870 });
}
