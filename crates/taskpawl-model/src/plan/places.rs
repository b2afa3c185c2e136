//! Positions of parts of a scalar in the file, through quotes, escapes and indentation.

use taskpawl_json::Position;

/// A file with the offsets of its lines.
pub(super) struct Places<'n> {
    source: &'n str,
    lines: Vec<usize>,
}

impl<'n> Places<'n> {
    pub(super) fn new(source: &'n str) -> Self {
        let lines = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { source, lines }
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
        Some(self.position(begin + current))
    }

    fn byte(&self, at: Position) -> Option<usize> {
        let line = usize::try_from(at.line).ok()?.checked_sub(1)?;
        let begin = *self.lines.get(line)?;
        let before = usize::try_from(at.column).ok()?.checked_sub(1)?;
        self.source[begin..].char_indices().nth(before).map(|(offset, _)| begin + offset)
    }

    fn position(&self, byte: usize) -> Position {
        let line = self.lines.partition_point(|begin| *begin <= byte);
        let column = self.source[self.lines[line - 1]..byte].chars().count() + 1;
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Position { line: count(line), column: count(column) }
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
    use super::Places;
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
}
