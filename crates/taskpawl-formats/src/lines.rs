//! The lines of a text, each with what ends it.

/// A line that is written: one that was there keeps its end, and a new one gets the usual one.
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

/// Returns the lines of a text as [`str::lines`] does, each with its end: that of the last one may be empty.
pub(crate) fn parts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split_inclusive('\n').map(|line| {
        let bare = line.strip_suffix('\n').map_or(line, |bare| bare.strip_suffix('\r').unwrap_or(bare));
        line.split_at(bare.len())
    })
}

/// Returns lines as one text. A text whose last line had no end has none again.
pub(crate) fn joined(lines: &[Line<'_>], before: &str) -> String {
    let usual = parts(before).map(|(_, end)| end).find(|end| !end.is_empty()).unwrap_or("\n");
    let is_open = !before.is_empty() && !before.ends_with('\n');
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate() {
        out.push_str(&line.text);
        if number + 1 < lines.len() || !is_open {
            out.push_str(line.end.filter(|end| !end.is_empty()).unwrap_or(usual));
        }
    }
    out
}

/// Returns a text as one line, with single spaces. No other character is dropped: the line is read back as data.
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
