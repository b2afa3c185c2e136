//! What reads a store that people edit, for programs that throw hostile input at it.

/// Reads a file with a store. Returns whether it can be read.
pub fn file(text: &str) -> bool {
    crate::json::fuzz::file(text)
}
