use std::io;

use taskpawl_tools::{PolicyError, RegistryError};

/// A store or an engine could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The project root cannot be found.
    #[error("failed to find the project root")]
    Root(#[source] io::Error),
    /// No directory for locks and output files could be made.
    #[error("failed to make a directory for output files")]
    Files(#[source] io::Error),
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A tool cannot be registered.
    #[error(transparent)]
    Tool(#[from] RegistryError),
}
