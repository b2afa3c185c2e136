use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::capture::{Captured, OutputFiles};
use crate::environment::Environment;
use crate::handover::Handover;
use crate::profile::{Enforcement, Sandbox};

/// What to run.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments. A program without slash is looked up in the `PATH` of `environment`.
    pub argv: Vec<String>,
    /// The directory in which it runs; a program with a relative path is found from here.
    pub cwd: PathBuf,
    /// The variables that it sees.
    pub environment: Environment,
    /// What it can read from its standard input, which is a file and no pipe; without it `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// Where its output goes. Directories that are missing are made; the files are readable only by their owner.
    pub output: OutputFiles,
    /// What it may do.
    pub sandbox: Sandbox,
    /// What it inherits beside its streams.
    pub handover: Option<Handover>,
}

/// How long a program may run, how much it may print and how gently it is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// When it has to be over; `None` is never.
    pub deadline: Option<Instant>,
    /// Bytes that it may write to both output files together before it is killed.
    pub output_bytes: u64,
    /// Bytes of both outputs together that are read back; of more, head and tail.
    pub keep_bytes: usize,
    /// Time between `TERM` and `KILL` after the deadline and a cancellation.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { deadline: None, output_bytes: 64 << 20, keep_bytes: 256 << 10, grace: Duration::from_secs(5) }
    }
}

/// How a program ended and what it has put out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What made it end.
    pub end: End,
    /// Its exit code; 128 plus the number of the signal where one ended it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it wrote to its standard output.
    pub stdout: Captured,
    /// What it wrote to its standard error.
    pub stderr: Captured,
    /// What its sandbox had in force; `None` without one.
    pub enforcement: Option<Arc<Enforcement>>,
}

/// What made a program end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Itself, or somebody outside.
    Exited,
    /// The deadline passed.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
    /// It put out more than it may. The files are cut to the limit.
    OutputLimit,
}
