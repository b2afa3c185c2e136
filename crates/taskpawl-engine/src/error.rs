use std::io;
use std::path::PathBuf;

use taskpawl_manager::Error;
use taskpawl_store::StoreError;

/// A run could not start or go on. What it had started is ended; the next run goes on from what was recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A command of the run was refused, or the store failed.
    #[error(transparent)]
    Command(#[from] Error),
    /// The directory for locks and output files cannot be used.
    #[error("failed to {action} `{}`", .path.display())]
    Files {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Command(Error::from(error))
    }
}
