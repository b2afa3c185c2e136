use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::environment::Environment;
use crate::handover::Handover;
use crate::network::RefusedAccess;
use crate::output::{Captured, OutputFiles};
use crate::profile::{Enforcement, Sandbox};

/// A program to run, with its environment.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments. A name without a slash is looked up in the `PATH` of `environment`.
    pub argv: Vec<String>,
    /// The working directory. A relative path of the program is resolved against it.
    pub cwd: PathBuf,
    /// The environment variables.
    pub environment: Environment,
    /// The content of standard input, which is a file and not a pipe; without it `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// The output files. Missing directories are created, and the files are readable only by their owner.
    pub output: OutputFiles,
    /// The sandbox.
    pub sandbox: Sandbox,
    /// A descriptor to pass in addition to the standard streams.
    pub handover: Option<Handover>,
}

/// Limits of time and output, and the grace period at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The deadline; `None` for none.
    pub deadline: Option<Instant>,
    /// Bytes that both output files may have together before the program is killed.
    pub output_bytes: u64,
    /// Bytes of both outputs together that are read back. Of longer output, head and tail are read.
    pub keep_bytes: usize,
    /// Time between `TERM` and `KILL` after the deadline or a cancellation.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { deadline: None, output_bytes: 64 << 20, keep_bytes: 256 << 10, grace: Duration::from_secs(5) }
    }
}

/// The end of a program with its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The cause of the end.
    pub end: End,
    /// The exit code, or 128 plus the number of the signal that ended it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The captured standard output.
    pub stdout: Captured,
    /// The captured standard error.
    pub stderr: Captured,
    /// The restrictions of its sandbox; `None` without a sandbox.
    pub enforcement: Option<Arc<Enforcement>>,
    /// The network access that the program and its descendants were refused.
    pub refused: Vec<RefusedAccess>,
}

/// The cause of the end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The program exited, or another process killed it.
    Exited,
    /// The deadline passed.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
    /// The program exceeded its output limit. The files are truncated to the limit.
    OutputLimit,
}
