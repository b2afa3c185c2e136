//! Entry points for fuzzing the configuration.

/// Reads a configuration file. Returns whether it is valid.
pub fn config(text: &str) -> bool {
    crate::config::fuzz::file(text)
}
