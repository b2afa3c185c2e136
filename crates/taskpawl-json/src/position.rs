//! Positions in a text, for messages.

use std::fmt;

/// A position in a text; lines and columns start at 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line number.
    pub line: u32,
    /// Column, counted in characters.
    pub column: u32,
}

impl Position {
    /// Returns the position of the byte at `offset`.
    pub(crate) fn of(text: &[u8], offset: usize) -> Self {
        let before = &text[..offset];
        let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines = before.split(|byte| *byte == b'\n').count() - 1;
        let column = String::from_utf8_lossy(&before[begin..]).chars().count();
        let from_one = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1);
        Self { line: from_one(lines), column: from_one(column) }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}
