//! A process that uses the library, as the harness sees it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::home::Home;

/// What a worker said about a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) step: usize,
    /// `ok`, `refused` or `failed`.
    pub(crate) outcome: String,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn is_ok(&self) -> bool {
        self.outcome == "ok"
    }
}

/// A worker that runs.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Worker {
    /// Returns the command of a worker that takes its steps from its input.
    pub(crate) fn command(home: &Home, actor: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taskpawl-worker"));
        command.args([home.store(), actor]);
        home.prepare(&mut command);
        command
    }

    /// Returns the command of a worker that takes its steps from a file, beginning with `step`.
    pub(crate) fn with_script(home: &Home, actor: &str, script: &Path, step: usize) -> Command {
        let mut command = Self::command(home, actor);
        command.arg(script).arg(step.to_string());
        command
    }

    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { stdin: child.stdin.take(), stdout, child }
    }

    /// Returns what it can be killed by, also while somebody reads its answers. It is not waited for before that has ended.
    pub(crate) fn pid(&self) -> Pid {
        Pid(rustix::process::Pid::from_child(&self.child))
    }

    /// Gives it a step to do.
    pub(crate) fn tell(&mut self, step: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{step}").unwrap();
    }

    /// Returns its next answer; `None` when it has ended. What a kill cut off is no answer.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        parse(&line)
    }

    /// Lets it end, and returns what it still says.
    pub(crate) fn finish(mut self) -> Vec<Answer> {
        drop(self.stdin.take());
        let answers = std::iter::from_fn(|| self.answer()).collect();
        self.child.wait().unwrap();
        answers
    }
}

/// A process that was started here and not yet waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pid(rustix::process::Pid);

impl Pid {
    /// Ends it as nothing can be caught.
    pub(crate) fn kill(self) {
        rustix::process::kill_process(self.0, rustix::process::Signal::KILL).unwrap();
    }
}

/// Returns all whole answers in a text.
pub(crate) fn answers(text: &str) -> Vec<Answer> {
    text.split_inclusive('\n').filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Answer> {
    let mut words = line.strip_suffix('\n')?.splitn(3, ' ');
    let step = words.next()?.parse().ok()?;
    let outcome = words.next()?.to_owned();
    Some(Answer { step, outcome, text: words.next().unwrap_or_default().to_owned() })
}
