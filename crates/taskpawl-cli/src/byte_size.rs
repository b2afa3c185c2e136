//! Sizes in bytes, as values of flags and of the configuration.

use taskpawl_text::byte_size;

/// Parses a size in bytes, with an optional decimal or binary unit.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    byte_size(text)
        .ok_or_else(|| format!("`{text}` is not a valid size, expected for example `500MB` or `2GiB`"))
}
