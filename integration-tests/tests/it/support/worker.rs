//! A worker process, from the side of the harness.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::home::Home;

/// The answer of a worker to a step.
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

/// A running worker.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Worker {
    /// Returns the command of a worker that reads its steps from standard input.
    pub(crate) fn command(home: &Home, actor: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_library-worker"));
        command.args([home.store(), actor]);
        home.prepare(&mut command);
        command
    }

    /// Returns the command of a worker that reads its steps from a file, from `step` on.
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

    /// Returns a handle to kill the worker, also while another thread reads its answers. The process is reaped only after that
    /// thread has ended.
    pub(crate) fn pid(&self) -> Pid {
        Pid(rustix::process::Pid::from_child(&self.child))
    }

    /// Sends a step.
    pub(crate) fn tell(&mut self, step: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{step}").unwrap();
    }

    /// Returns the next answer; `None` at the end. A line cut off by a kill is not an answer.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        parse(&line)
    }

    /// Closes its input, and returns the remaining answers.
    pub(crate) fn finish(mut self) -> Vec<Answer> {
        drop(self.stdin.take());
        let answers = std::iter::from_fn(|| self.answer()).collect();
        self.child.wait().unwrap();
        answers
    }
}

/// A child process that was not reaped yet, so its id cannot belong to another process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pid(rustix::process::Pid);

impl Pid {
    /// Kills it with SIGKILL.
    pub(crate) fn kill(self) {
        rustix::process::kill_process(self.0, rustix::process::Signal::KILL).unwrap();
    }
}

/// Returns all complete answers in a text.
pub(crate) fn answers(text: &str) -> Vec<Answer> {
    text.split_inclusive('\n').filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Answer> {
    let mut words = line.strip_suffix('\n')?.splitn(3, ' ');
    let step = words.next()?.parse().ok()?;
    let outcome = words.next()?.to_owned();
    Some(Answer { step, outcome, text: words.next().unwrap_or_default().to_owned() })
}
