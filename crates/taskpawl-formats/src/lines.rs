//! Lines of a text, each with its line ending.

/// A line to write. An existing line keeps its ending; a new one (`None`) gets the usual ending of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line<'t> {
    pub(crate) text: String,
    pub(crate) end: Option<&'t str>,
}

impl<'t> Line<'t> {
    pub(crate) fn document(text: impl Into<String>, end: &'t str) -> Self {
        Self { text: text.into(), end: Some(end) }
    }

    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), end: None }
    }
}

/// Returns the lines of a text like [`str::lines`], each with its ending. Only the last ending may be empty.
pub(crate) fn parts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split_inclusive('\n').map(|line| {
        let bare = line.strip_suffix('\n').map_or(line, |bare| bare.strip_suffix('\r').unwrap_or(bare));
        line.split_at(bare.len())
    })
}

/// Joins lines into a text. If the last line of `before` had no line ending, the last line of the result has none either.
pub(crate) fn joined(lines: &[Line<'_>], before: &str) -> String {
    let usual = parts(before).map(|(_, end)| end).find(|end| !end.is_empty()).unwrap_or("\n");
    let is_open = !before.is_empty() && !before.ends_with('\n');
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate() {
        out.push_str(&line.text);
        if number + 1 < lines.len() || !is_open {
            // The former last line may have no ending, and is not the last any more: it needs one now.
            out.push_str(line.end.filter(|end| !end.is_empty()).unwrap_or(usual));
        }
    }
    out
}

/// Returns a text as one line with single spaces. All other characters stay, because the line is read back as data.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Line, joined, parts};

    #[test]
    fn lines_keep_their_ends() {
        for text in ["", "\n", "a", "a\r", "a\r\nb\n\nc", "\r\r\n", "a\nb\r\n"] {
            assert!(parts(text).map(|(line, _)| line).eq(text.lines()), "{text:?}");
            let lines: Vec<Line<'_>> = parts(text).map(|(line, end)| Line::document(line, end)).collect();
            assert_eq!(joined(&lines, text), text);
        }
        let with_new = |text| {
            let lines = parts(text).map(|(line, end)| Line::document(line, end)).chain([Line::new("z")]);
            joined(&lines.collect::<Vec<_>>(), text)
        };
        assert_eq!(["", "a\r\n", "a\r\nb"].map(with_new), ["z\n", "a\r\nz\r\n", "a\r\nb\r\nz"]);
    }
}
