//! The parser of `json:` stores, for fuzzing.

/// Parses a `json:` store. Returns whether it is valid.
pub fn file(text: &str) -> bool {
    crate::json::fuzz::file(text)
}
