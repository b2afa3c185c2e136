//! Runs the program as a process, with an empty environment, a fixed clock and counted ids.

use std::cell::Cell;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::terminal::terminal;

/// A home directory with a working directory and a store.
#[derive(Debug)]
pub(crate) struct Cli {
    home: TempDir,
    runs: Cell<u64>,
    variables: Vec<(String, String)>,
    has_clock: bool,
    /// True if programs get a controlling terminal of their own. They never inherit the terminal of the tests,
    /// because the caller is derived from it.
    has_terminal: Cell<bool>,
}

/// Returns whether a person could decide from here. Programs of a run cannot, and these tests may be run by one.
#[expect(clippy::print_stderr, reason = "what is skipped is said loudly")]
pub(crate) fn may_decide() -> bool {
    let may = !taskpawl::is_below_supervisor();
    if !may {
        eprintln!("SKIPPED: what people decide: these tests are a program of a run, which decides nothing");
    }
    may
}

impl Cli {
    /// Creates a home with a store, which `TASKPAWL_STORE` names.
    pub(crate) fn new() -> Self {
        let cli = Self::without_store();
        let store = cli.path("tasks.db");
        cli.with("TASKPAWL_STORE", store.to_str().unwrap())
    }

    /// Creates a home without a configured store.
    pub(crate) fn without_store() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("work")).unwrap();
        Self {
            home,
            runs: Cell::new(0),
            variables: Vec::new(),
            has_clock: false,
            has_terminal: Cell::new(false),
        }
    }

    /// Sets a variable for all commands.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Uses the real clock, which pauses need.
    pub(crate) fn with_clock(mut self) -> Self {
        self.has_clock = true;
        self
    }

    /// Starts commands as a person does: with a controlling terminal, which is also their standard input.
    pub(crate) fn at_a_terminal(self) -> Self {
        self.has_terminal.set(true);
        self
    }

    /// Runs the program to its end as [`at_a_terminal`](Self::at_a_terminal).
    pub(crate) fn by_person(&self, args: &[&str]) -> Run {
        let before = self.has_terminal.replace(true);
        let run = self.run(args);
        self.has_terminal.set(before);
        run
    }

    /// Like [`by_person`](Self::by_person), with typed lines.
    pub(crate) fn by_person_with(&self, args: &[&str], input: &str) -> Run {
        let before = self.has_terminal.replace(true);
        let run = self.run_with(args, input);
        self.has_terminal.set(before);
        run
    }

    /// Writes the user's policy.
    pub(crate) fn policy(&self, text: &str) {
        let path = self.path(".config/taskpawl/policy.toml");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Passes `PATH` on, so that tools find programs.
    pub(crate) fn with_programs(self) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        self.with("PATH", path.to_str().unwrap())
    }

    /// Returns a path in the home directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.home.path()).unwrap().join(name)
    }

    /// Writes a file into the working directory.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path("work").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Returns a command that is prepared to run in `directory`.
    pub(crate) fn command(&self, directory: &Path, args: &[&str]) -> Command {
        self.process(directory, env!("CARGO_BIN_EXE_taskpawl"), args)
    }

    fn process(&self, directory: &Path, program: &str, args: &[&str]) -> Command {
        // Each command starts a session of its own. With `--ctty` its standard input becomes the controlling
        // terminal.
        let mut command = Command::new("/usr/bin/setsid");
        command.args(self.has_terminal.get().then_some("--ctty")).arg(program);
        // Counted ids start from the seed, so each process needs a seed of its own.
        self.runs.set(self.runs.get() + 1);
        command
            .args(args)
            .current_dir(directory)
            .env_clear()
            // The machine may have no other directory for temporary files.
            .envs(std::env::var_os("TMPDIR").map(|directory| ("TMPDIR", directory)))
            .env("HOME", self.path(""))
            .env("USER", "user")
            .env("TASKPAWL_TEST_HOST", "host")
            .env("TASKPAWL_TEST_NOW", "2026-01-02T03:04:05Z")
            .env("TASKPAWL_TEST_SEED", self.runs.get().to_string())
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        if self.has_clock {
            command.env_remove("TASKPAWL_TEST_NOW");
        }
        command
    }

    /// Resets the seed, so that later ids do not depend on the number of earlier processes.
    pub(crate) fn number_anew(&self) {
        self.runs.set(1000);
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.run_in(&self.path("work"), args, "")
    }

    /// Runs the program to its end, with `input` on its standard input.
    pub(crate) fn run_with(&self, args: &[&str], input: &str) -> Run {
        self.run_in(&self.path("work"), args, input)
    }

    /// Runs the program to its end in another directory.
    pub(crate) fn run_in(&self, directory: &Path, args: &[&str], input: &str) -> Run {
        let command = self.command(directory, args);
        self.to_its_end(command, args, input)
    }

    /// Runs a command line of a shell that finds `taskpawl`; returns what a terminal would show.
    pub(crate) fn shell(&self, line: &str) -> String {
        let programs = Path::new(env!("CARGO_BIN_EXE_taskpawl")).parent().unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path =
            std::env::join_paths([programs.to_path_buf()].into_iter().chain(std::env::split_paths(&path)));
        let args = ["-c", &format!("exec 2>&1; {line}")];
        let mut command = self.process(&self.path("work"), "/bin/sh", &args);
        command.env("PATH", path.unwrap());
        self.to_its_end(command, &args, "").stdout
    }

    fn to_its_end(&self, mut command: Command, args: &[&str], input: &str) -> Run {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The terminal's other end stays open until the program has ended. Closing it earlier would send a hang-up
        // signal.
        let person = self.has_terminal.get().then(|| {
            let (mut person, program) = terminal();
            person.write_all(input.as_bytes()).unwrap();
            command.stdin(program);
            person
        });
        let mut child = command.spawn().unwrap();
        // A program that does not read its input may end before the write, which then fails.
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().unwrap();
        drop((command, person));
        let text = |bytes: Vec<u8>| {
            let home = self.path("");
            let home = home.to_str().unwrap().trim_end_matches('/');
            String::from_utf8(bytes).unwrap().replace(home, "[HOME]")
        };
        Run {
            line: args.iter().map(|arg| quoted(arg)).collect::<Vec<_>>().join(" "),
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Runs several commands and returns their snapshots in order.
    pub(crate) fn session(&self, lines: &[&[&str]]) -> String {
        lines.iter().map(|args| self.run(args).to_string()).collect::<Vec<_>>().join("\n")
    }
}

/// The result of a process.
#[derive(Debug)]
pub(crate) struct Run {
    line: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Returns the result of a process that was started elsewhere.
    pub(crate) fn of(line: &str, output: std::process::Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        Self { line: line.to_owned(), code: output.status.code(), stdout, stderr }
    }

    /// Returns the parsed output of `--json`.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Asserts success.
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self}");
        self
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ taskpawl {}", self.line)?;
        match serde_json::from_str::<Value>(&self.stdout) {
            Ok(value @ Value::Object(_)) => writeln!(f, "{value:#}")?,
            _ => f.write_str(&without_sandbox(&self.stdout))?,
        }
        for line in self.stderr.lines() {
            writeln!(f, "! {line}")?;
        }
        match self.code {
            Some(0) => Ok(()),
            Some(code) => writeln!(f, "[exit {code}]"),
            None => writeln!(f, "[killed]"),
        }
    }
}

/// Removes the recorded sandbox, which differs between machines.
fn without_sandbox(text: &str) -> String {
    const FIELD: &str = "\"sandbox\":{";
    let mut parts = text.split(FIELD);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + FIELD + "…" + part.find('}').map_or("", |end| &part[end..]))
}

/// Replaces hashes, which depend on the temporary directory of the test.
pub(crate) fn unhashed(text: &str) -> String {
    let mut shown = String::new();
    for piece in text.split_inclusive(|char: char| !char.is_ascii_hexdigit()) {
        let digits = piece.trim_end_matches(|char: char| !char.is_ascii_hexdigit());
        let is_hash = matches!(digits.len(), 12 | 64);
        shown.push_str(if is_hash { "[HASH]" } else { digits });
        shown.push_str(&piece[digits.len()..]);
    }
    shown
}

fn quoted(arg: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-,:@/=".contains(c);
    if !arg.is_empty() && arg.chars().all(is_plain) { arg.to_owned() } else { format!("{arg:?}") }
}
