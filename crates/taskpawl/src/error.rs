use std::io;

use taskpawl_tools::{PolicyError, RegistryError};

/// Errors of [`Builder::open`](crate::Builder::open).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The project root cannot be found.
    #[error("failed to find the project root")]
    Root(#[source] io::Error),
    /// The directory for locks and output files could not be created.
    #[error("failed to make a directory for output files")]
    Files(#[source] io::Error),
    /// The policy file of the machine is invalid or unreadable.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A tool has a duplicate name or an invalid schema.
    #[error(transparent)]
    Tool(#[from] RegistryError),
}
