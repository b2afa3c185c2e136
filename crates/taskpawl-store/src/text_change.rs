//! Changes of texts, as the backends carry them out.

use std::io;
use std::path::Path;

use taskpawl_model::view::View;

use crate::StoreError;

/// Returns the new form of a text; `None` to keep it.
pub type TextChange<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Refuses a rewrite, under the lock of the store.
pub type Check<'a> = &'a dyn Fn(&dyn View) -> Result<(), StoreError>;

/// Returns the error of a rewrite that would damage the store.
pub(crate) fn spoilt(path: &Path, detail: &str) -> StoreError {
    let problem = format!("the store could not be read afterwards, so nothing was changed: {detail}");
    StoreError::io("rewrite", path, io::Error::new(io::ErrorKind::InvalidInput, problem))
}
