//! Bounds on the lines of a text.

use std::borrow::Cow;

use taskpawl::model::value::bounded;

/// The longest line of a text, in bytes. A longer one hides everything around it; `--json` prints all of it.
const MAX_LINE: usize = 4_000;

/// Returns a line, shortened to [`MAX_LINE`] with a note of its full length.
pub(crate) fn short_line(line: &str) -> Cow<'_, str> {
    if line.len() <= MAX_LINE {
        return Cow::Borrowed(line);
    }
    Cow::Owned(format!("{} ({} bytes, all of them with --json)", bounded::cut_to(line, MAX_LINE), line.len()))
}

#[cfg(test)]
mod tests {
    use super::short_line;

    #[test]
    fn a_long_line_names_its_length() {
        assert_eq!(short_line("short"), "short");
        let line = short_line(&"é".repeat(50_000)).into_owned();
        assert!(line.len() < 4_100 && line.ends_with("é… (100000 bytes, all of them with --json)"), "{line}");
    }
}
