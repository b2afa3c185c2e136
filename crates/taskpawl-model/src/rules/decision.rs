//! The decision on a command.

use crate::command::Answer;
use crate::command::refusal::Refusal;
use crate::view::{Changes, ViewError};

/// Result of deciding a command: the changes to write, and the answer to give once they are durable.
#[derive(Debug, Default)]
pub struct Decision {
    /// Changes to write.
    pub changes: Changes,
    /// Answer to give after the write.
    pub answer: Answer,
}

/// The command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// The rules refuse the command: the caller may fix it and retry.
    #[error(transparent)]
    Refused(#[from] Box<Refusal>),
    /// The store could not be read.
    #[error("failed to read the store")]
    View(#[from] ViewError),
}

impl From<Refusal> for DecideError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

/// Returns the refusal in an error. A part of a command may be refused without failing the whole; a read error may not.
pub(crate) fn refused(error: DecideError) -> Result<Box<Refusal>, DecideError> {
    match error {
        DecideError::Refused(refusal) => Ok(refusal),
        error @ DecideError::View(_) => Err(error),
    }
}
