/// Reading the store failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ViewError(#[from] pub Box<dyn std::error::Error + Send + Sync>);

/// The result of a read.
pub type ViewResult<T> = Result<T, ViewError>;
