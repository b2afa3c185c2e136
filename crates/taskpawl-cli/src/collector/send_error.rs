//! The error of sending spans.

/// The reason why spans were not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The collector did not answer, or refused them.
    #[error(transparent)]
    Http(#[from] Box<ureq::Error>),
    /// The collector takes spans more slowly than the run made them.
    #[error("it is too slow")]
    TooSlow,
}

impl SendError {
    /// Returns whether the collector was silent.
    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Self::Http(error) if matches!(**error, ureq::Error::Timeout(_)))
    }
}
