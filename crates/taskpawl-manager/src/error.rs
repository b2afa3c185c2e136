use taskpawl_model::{DecideError, Hint, PlanErrors, Refusal};
use taskpawl_store::StoreError;

/// Why a command came to nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The rules refuse it; nothing was changed, and the caller may mend it.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// A plan, task or call is not of the form that it has to be.
    #[error(transparent)]
    Invalid(#[from] PlanErrors),
    /// The store is broken or out of reach.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The rules could not be asked.
    #[error("failed to decide the command")]
    Decide(#[source] DecideError),
}

impl From<Box<Refusal>> for Error {
    fn from(refusal: Box<Refusal>) -> Self {
        // A fault of a plan is the same error, whether the parser or the rules find it.
        let refusal = *refusal;
        if let Refusal::Invalid { errors } = refusal {
            Self::Invalid(errors)
        } else {
            Self::Refused(Box::new(refusal))
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Box::new(refusal).into()
    }
}

impl From<DecideError> for Error {
    fn from(error: DecideError) -> Self {
        if let DecideError::Refused(refusal) = error { refusal.into() } else { Self::Decide(error) }
    }
}

impl Error {
    /// Returns what to do instead, where there is something to say.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::Refused(refusal) => refusal.hint(),
            Self::Store(error) => Some(error.hint()),
            Self::Invalid(_) | Self::Decide(_) => None,
        }
    }
}
