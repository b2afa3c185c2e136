//! Texts of protocol errors.

use rmcp::model::ErrorData;
use taskpawl_text::error_chain;

use super::brief::{LISTED_CHARS, cut};

/// Maximum length of an error message, in characters.
const MAX_CHARS: usize = 1_000;

/// Returns the protocol error for a failed command.
pub(super) fn internal(error: &taskpawl::Error) -> ErrorData {
    ErrorData::internal_error(short(&error_chain(error)), None)
}

/// Returns a name from outside, cut to a length for error messages.
pub(super) fn named(name: &str) -> String {
    cut(name, LISTED_CHARS)
}

/// Returns an error message, cut at the maximum length.
pub(super) fn short(message: &str) -> String {
    cut(message, MAX_CHARS)
}
