//! Parsers of untrusted input, exposed for fuzzing. Each function returns whether the input was valid.

use crate::builtin;

/// Parses a URL, a host, and the target of a redirect.
#[cfg(feature = "http")]
pub fn url(text: &str) -> bool {
    builtin::http::fuzz::url(text)
}

/// Splits a shell command into words.
pub fn command(text: &str) -> bool {
    builtin::words::command(text)
}
