//! Positions of parts of a scalar in the file, through quotes, escapes and indentation.

use taskpawl_json::Position;

/// The number of characters between two marks in a line. A plan in JSON may be one line of megabytes.
const STEP: u32 = 256;

/// A file with marks, from which other places are counted.
pub(super) struct Places<'n> {
    source: &'n str,
    /// The start of each line, and every [`STEP`]th character of a line.
    marks: Vec<Mark>,
}

#[derive(Clone, Copy)]
struct Mark {
    byte: usize,
    position: Position,
}

impl<'n> Places<'n> {
    pub(super) fn new(source: &'n str) -> Self {
        let mut position = Position { line: 1, column: 1 };
        let mut marks = Vec::new();
        let mut is_mark = true;
        for (byte, character) in source.char_indices() {
            if is_mark {
                marks.push(Mark { byte, position });
            }
            if character == '\n' {
                position = Position { line: position.line.saturating_add(1), column: 1 };
            } else {
                position.column = position.column.saturating_add(1);
            }
            is_mark = position.column % STEP == 1;
        }
        Self { source, marks }
    }

    /// Returns the position of byte `offset` of a scalar's text; the scalar starts at `at`. If the file does not match
    /// the text, it returns `at`.
    pub(super) fn within(&self, at: Position, text: &str, offset: usize) -> Position {
        self.follow(at, text, offset).unwrap_or(at)
    }

    fn follow(&self, at: Position, text: &str, offset: usize) -> Option<Position> {
        // The parser only gives the start of a scalar. The file is compared with the parsed text, one character at a
        // time.
        let begin = self.byte(at)?;
        let mut scalar = Scalar::new(&self.source[begin..]);
        let mut current = scalar.at;
        for character in
            text.char_indices().take_while(|(at, _)| *at <= offset).map(|(_, character)| character)
        {
            current = scalar.find(character)?;
        }
        self.position(begin + current)
    }

    fn byte(&self, at: Position) -> Option<usize> {
        let mark = self.mark(|mark| mark.position <= at).filter(|mark| mark.position.line == at.line)?;
        let after = usize::try_from(at.column - mark.position.column).ok()?;
        self.source[mark.byte..].char_indices().nth(after).map(|(offset, _)| mark.byte + offset)
    }

    fn position(&self, byte: usize) -> Option<Position> {
        let mark = self.mark(|mark| mark.byte <= byte)?;
        let after = u32::try_from(self.source[mark.byte..byte].chars().count()).ok()?;
        Some(Position { column: mark.position.column.saturating_add(after), ..mark.position })
    }

    /// Returns the last mark for which the condition holds.
    fn mark(&self, is_before: impl Fn(&Mark) -> bool) -> Option<Mark> {
        self.marks.partition_point(is_before).checked_sub(1).map(|at| self.marks[at])
    }
}

/// A scalar as written in the file.
struct Scalar<'s> {
    raw: &'s str,
    at: usize,
    /// The quote around it, if it is quoted.
    quote: Option<char>,
}

impl<'s> Scalar<'s> {
    fn new(raw: &'s str) -> Self {
        let quote = raw.chars().next().filter(|first| matches!(first, '\'' | '"'));
        let is_block = raw.starts_with(['|', '>']);
        let at = if is_block {
            raw.find('\n').map_or(raw.len(), |end| end + 1)
        } else {
            quote.map_or(0, char::len_utf8)
        };
        Self { raw, at, quote }
    }

    /// Returns the offset of the next character of the text, and moves behind it.
    fn find(&mut self, wanted: char) -> Option<usize> {
        loop {
            let at = self.at;
            let character = self.raw[at..].chars().next()?;
            if character == '\\' && self.quote == Some('"') {
                self.at += escape_length(&self.raw[at..])?;
                // An escaped line break continues the line and stands for no character.
                if !self.raw[at + 1..].starts_with(['\n', '\r']) {
                    return Some(at);
                }
                continue;
            }
            self.at += character.len_utf8();
            // YAML folds a line break into a space.
            if character == wanted || (character == '\n' && wanted == ' ') {
                let doubled = character == '\'' && self.quote == Some('\'');
                self.at += usize::from(doubled);
                return Some(at);
            }
            // Only white space may differ: indentation and folded lines. Any other difference means that the position
            // is unknown.
            if !character.is_whitespace() {
                return None;
            }
        }
    }
}

fn escape_length(raw: &str) -> Option<usize> {
    Some(match raw.as_bytes().get(1)? {
        b'x' => 4,
        b'u' => 6,
        b'U' => 10,
        _ => 1 + raw[1..].chars().next()?.len_utf8(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Places, STEP};
    use taskpawl_json::Position;

    fn position_in(source: &str, at: (u32, u32), text: &str, wanted: &str) -> (u32, u32) {
        let at = Position { line: at.0, column: at.1 };
        let offset = text.find(wanted).unwrap();
        let Position { line, column } = Places::new(source).within(at, text, offset);
        (line, column)
    }

    #[test]
    fn parts_of_scalars_are_located_in_the_file() {
        assert_eq!(position_in("a: xäy z", (1, 4), "xäy z", "z"), (1, 8));
        assert_eq!(position_in("a: 'it''s z'", (1, 4), "it's z", "z"), (1, 11));
        assert_eq!(position_in(r#"a: "\u0041\"\n z""#, (1, 4), "A\"\n z", "z"), (1, 16));
        assert_eq!(position_in("a: |\n  one\n    two z\n", (1, 4), "one\n  two z\n", "z"), (3, 9));
        assert_eq!(position_in("a: >-\n  one\n  two z\n", (1, 4), "one two z", "z"), (3, 7));
        assert_eq!(position_in("a: one\n  two z\n", (1, 4), "one two z", "z"), (2, 7));
        assert_eq!(position_in("a: \"one \\\n  z\"\n", (1, 4), "one z", "z"), (2, 3));
        assert_eq!(position_in("a: other", (1, 4), "text", "x"), (1, 4));
    }

    #[test]
    fn places_far_into_a_line_are_counted_from_a_mark() {
        let before = "ä".repeat(3 * STEP as usize);
        for (start, line) in [("", 1), ("first\n", 2)] {
            for length in [STEP - 1, STEP, STEP + 1, 3 * STEP] {
                let source = format!("{start}{}\"one z\"", &before[..2 * length as usize]);
                assert_eq!(position_in(&source, (line, length + 1), "one z", "z"), (line, length + 6));
            }
        }
    }
}
