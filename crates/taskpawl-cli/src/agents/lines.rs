//! How the lines of a file look, so that new ones look the same.

/// The end and the indentation of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lines {
    /// What ends a line.
    pub(super) end: &'static str,
    /// What one level is further to the right.
    pub(super) indent: String,
}

impl Default for Lines {
    fn default() -> Self {
        Self { end: "\n", indent: "  ".to_owned() }
    }
}

impl Lines {
    /// Returns how the lines of a text look: the first that is indented tells how far.
    pub(super) fn of(text: &str) -> Self {
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let indents = text.lines().map(|line| &line[..line.len() - line.trim_start().len()]);
        let indent =
            indents.zip(text.lines()).find(|(indent, line)| !indent.is_empty() && line.len() > indent.len());
        let indent = indent.map_or_else(|| "  ".to_owned(), |(indent, _)| indent.to_owned());
        Self { end, indent }
    }
}
