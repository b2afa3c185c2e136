//! Errors whose tool decides about their class and about retries.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::error::ToolError;

/// The opinion of a tool whether a failed call should start again. The retry policy of the plan limits the number of starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryAdvice {
    /// True if a retry makes sense; `None` leaves it to the class of the error.
    pub is_retried: Option<bool>,
    /// The shortest pause before the next start.
    pub after: Option<Duration>,
}

/// An error with a class of its own, or with advice about retries.
#[derive(Debug)]
pub struct AdjustedError {
    pub(crate) error: ToolError,
    pub(crate) class: Option<String>,
    pub(crate) retry: RetryAdvice,
}

impl fmt::Display for AdjustedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for AdjustedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

impl ToolError {
    /// Sets the class of the failure: a stable word, by which failures are grouped, and which `retryOn` of a plan may name.
    #[must_use]
    pub fn with_class(self, class: impl Into<String>) -> Self {
        self.adjusted(|adjusted| adjusted.class = Some(class.into()))
    }

    /// States that a retry may succeed, whatever the class of the error is.
    #[must_use]
    pub fn retryable(self) -> Self {
        self.adjusted(|adjusted| adjusted.retry.is_retried = Some(true))
    }

    /// States that a retry may succeed after a pause: that of a `Retry-After` header, for example.
    #[must_use]
    pub fn retry_after(self, pause: Duration) -> Self {
        self.adjusted(|adjusted| adjusted.retry = RetryAdvice { is_retried: Some(true), after: Some(pause) })
    }

    /// States that no retry can succeed: the call fails at once.
    #[must_use]
    pub fn terminal(self) -> Self {
        self.adjusted(|adjusted| adjusted.retry.is_retried = Some(false))
    }

    /// Returns the advice of the tool about retries.
    pub fn retry_advice(&self) -> RetryAdvice {
        if let Self::Adjusted(adjusted) = self { adjusted.retry } else { RetryAdvice::default() }
    }

    fn adjusted(self, change: impl FnOnce(&mut AdjustedError)) -> Self {
        let mut adjusted = if let Self::Adjusted(adjusted) = self {
            adjusted
        } else {
            Box::new(AdjustedError { error: self, class: None, retry: RetryAdvice::default() })
        };
        change(&mut adjusted);
        Self::Adjusted(adjusted)
    }
}

impl From<std::io::Error> for ToolError {
    fn from(error: std::io::Error) -> Self {
        Self::other(error)
    }
}

impl From<serde_json::Error> for ToolError {
    fn from(error: serde_json::Error) -> Self {
        Self::other(error)
    }
}

impl From<Box<dyn Error + Send + Sync>> for ToolError {
    fn from(error: Box<dyn Error + Send + Sync>) -> Self {
        Self::other(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adjusted_error_keeps_its_text_and_source() {
        let error = ToolError::from(std::io::Error::other("offline")).retry_after(Duration::from_secs(2));
        assert_eq!((error.to_string().as_str(), error.class()), ("offline", "failed"));
        assert_eq!(error.retry_advice().after, Some(Duration::from_secs(2)));
        let error = error.with_class("quota").terminal();
        assert_eq!((error.class(), error.retry_advice().is_retried), ("quota", Some(false)));
        assert_eq!(ToolError::other(error).class(), "quota");
    }
}
