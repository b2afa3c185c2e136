use std::io;
use std::path::PathBuf;

use taskpawl_manager::Error;
use taskpawl_store::StoreError;

/// The run could not start or continue. Everything that it had started is ended; the next run continues from the
/// recorded status.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A command of the run was refused, or the store failed.
    #[error(transparent)]
    Command(#[from] Error),
    /// The directory for locks and output files is unusable.
    #[error("failed to {action} `{}`", .path.display())]
    Files {
        /// Verb for the message, such as `create`.
        action: &'static str,
        /// Affected file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The files of the project cannot reach workers.
    #[error("failed to prepare the files of the project: {why}")]
    ProjectFiles {
        /// The reason.
        why: String,
    },
    /// Calls of a run that was killed run on workers, and this run has no engine to join them.
    #[error("calls of a run that was killed still run on workers: {}", list(.tasks))]
    RunsElsewhere {
        /// Tasks of the calls.
        tasks: Vec<String>,
    },
    /// The engine that carries calls did not answer for too long. The calls that it may run stay claimed.
    #[error("the engine did not answer, and {calls} calls may still run on workers: {why}")]
    EngineSilent {
        /// Number of the calls.
        calls: usize,
        /// The last error.
        why: String,
    },
    /// The programs of the run would lack environment variables that a plan requires.
    #[error("plan `{plan}` requires {}, which its programs do not have", list(.names))]
    MissingVariables {
        /// Name of the plan.
        plan: String,
        /// Names of the missing variables.
        names: Vec<String>,
    },
}

/// Longest list of names in a message.
const MAX_NAMES: usize = 5;

fn list(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Command(Error::from(error))
    }
}
