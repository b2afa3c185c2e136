//! Readers of what comes from elsewhere, for programs that throw hostile input at them. Each function returns whether something was
//! read.

use crate::builtin;

/// Reads a URL, a host, and where a redirect leads.
#[cfg(feature = "http")]
pub fn url(text: &str) -> bool {
    builtin::http::fuzz::url(text)
}

/// Splits a command of a shell.
pub fn command(text: &str) -> bool {
    builtin::words::command(text)
}
