//! What reads the configuration, for programs that throw hostile input at it.

/// Reads a file of the configuration. Returns whether it can be read.
pub fn config(text: &str) -> bool {
    crate::config::fuzz::file(text)
}
