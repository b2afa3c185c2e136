use taskpawl_model::advice::Hint;
use taskpawl_model::command::Refusal;
use taskpawl_model::plan::PlanErrors;
use taskpawl_model::rules::DecideError;
use taskpawl_store::StoreError;

/// The failure of a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The rules refuse the command. Nothing was changed, and the caller may correct the command and repeat
    /// it.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// A plan, task or call has an invalid form.
    #[error(transparent)]
    Invalid(#[from] PlanErrors),
    /// The store is damaged or cannot be reached.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The rules could not be evaluated, because the store could not be read.
    #[error("failed to decide the command")]
    Decide(#[source] DecideError),
}

impl From<Box<Refusal>> for Error {
    fn from(refusal: Box<Refusal>) -> Self {
        // Faults of a plan have one error type, whether the parser or the rules find them.
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
    /// Returns advice for the caller, if there is any.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::Refused(refusal) => refusal.hint(),
            Self::Store(error) => Some(error.hint()),
            Self::Invalid(_) | Self::Decide(_) => None,
        }
    }
}
