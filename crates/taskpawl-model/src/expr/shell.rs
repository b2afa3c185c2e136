//! Values in shell commands.
//!
//! A value becomes one word in single quotes, which is only correct where a word may stand. Inside quotes these quotes
//! would be text. In some locations a shell gives single quotes no special meaning and executes their content. There a
//! value is refused.

use super::error::{ExprFault, Fault};

/// Quotes a text as one word of a shell command. It is always quoted, so that it is neither a keyword nor an
/// assignment.
pub(super) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// An open construct at the current position of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    Single,
    Double,
    Backticks,
    /// `$(`, with the number of open parentheses inside.
    Command(usize),
    /// `${`.
    Parameter,
    /// `$((`.
    Arithmetic(usize),
    Comment,
}

/// Reads a command piece by piece and tracks whether a word can be inserted between two of them.
#[derive(Debug, Default)]
pub(super) struct Command {
    frames: Vec<Frame>,
    /// The state of a `<<` that was read.
    heredoc: Option<Heredoc>,
    /// True if the last piece ends with a backslash that is not escaped itself.
    escaping: bool,
    /// True if the last piece ends in the middle of a word.
    in_word: bool,
    /// The construct after which the state is unknown. From there on all values are refused.
    lost: Option<&'static str>,
    /// The current word, as far as it is plain.
    word: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heredoc {
    /// The line with `<<` has not ended.
    Announced,
    /// The line with `<<` has ended, so the document itself may have begun.
    Begun,
}

/// The quotes around the current position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    None,
    Single,
    Double,
}

impl Quotes {
    /// Returns an expansion of a variable for this position, protected from word splitting and globbing.
    pub(super) fn expansion(self, variable: &str) -> String {
        match self {
            Self::None => format!("\"${{{variable}}}\""),
            Self::Single => format!("'\"${{{variable}}}\"'"),
            Self::Double => format!("${{{variable}}}"),
        }
    }
}

/// A nesting that no real command reaches.
const MAX_FRAMES: usize = 64;

impl Command {
    /// Reads text of the author.
    pub(super) fn text(&mut self, text: &str) {
        let characters: Vec<char> = text.chars().collect();
        let mut at = 0;
        while at < characters.len() {
            at += self.step(&characters[at..]);
            if self.frames.len() > MAX_FRAMES {
                // The rest of the text is still read, so that every later value gets this error.
                self.lost = Some("at this nesting depth");
                self.frames.truncate(1);
            }
        }
    }

    /// Records that a value is inserted.
    pub(super) fn value(&mut self) {
        self.in_word = true;
        self.word.clear();
        self.escaping = false;
    }

    /// Records that a variable is expanded here, as a word or a part of one. Returns the quotes around it.
    pub(super) fn variable(&mut self, at: usize) -> Result<Quotes, Fault> {
        let quotes = match self.refused_location() {
            None => Quotes::None,
            Some(IN_SINGLE) => Quotes::Single,
            Some(IN_DOUBLE) => Quotes::Double,
            Some(place) => {
                let hint = "put it into `env` of the call and write `\"$NAME\"`";
                return Err(Fault::new(at, ExprFault::Quoting { place }).hint(hint));
            }
        };
        self.value();
        Ok(quotes)
    }

    /// Checks that a quoted word may be inserted here.
    pub(super) fn check(&self, at: usize) -> Result<(), Fault> {
        let Some(place) = self.refused_location() else { return Ok(()) };
        Err(Fault::new(at, ExprFault::Quoting { place }).hint(hint(place)))
    }

    fn refused_location(&self) -> Option<&'static str> {
        if self.lost.is_some() {
            return self.lost;
        }
        if self.heredoc == Some(Heredoc::Begun) {
            return Some(AFTER_HEREDOC);
        }
        if self.escaping {
            return Some(AFTER_BACKSLASH);
        }
        // Backticks are checked before the innermost construct: a shell removes some backslashes in them before it
        // parses the inner command.
        if self.frames.contains(&Frame::Backticks) {
            return Some(IN_BACKTICKS);
        }
        match self.frames.last()? {
            Frame::Single => Some(IN_SINGLE),
            Frame::Double => Some(IN_DOUBLE),
            Frame::Parameter => Some("inside `${…}`"),
            Frame::Arithmetic(_) => Some(IN_ARITHMETIC),
            Frame::Comment => Some("in a comment"),
            // A command inside `$(…)` is parsed afresh, whatever quotes surround it.
            Frame::Command(_) | Frame::Backticks => None,
        }
    }

    /// Reads one or more characters and returns their number.
    fn step(&mut self, rest: &[char]) -> usize {
        if std::mem::take(&mut self.escaping) {
            if rest[0] == '\n' {
                // A backslash and a line break vanish: the text on both sides is joined.
                return 1;
            }
            self.in_word = true;
            self.word.push('\\');
            return 1;
        }
        match self.frames.last().copied() {
            Some(Frame::Single) => self.single(rest[0]),
            Some(Frame::Double) => self.double(rest),
            Some(Frame::Comment) => self.comment(rest[0]),
            Some(Frame::Arithmetic(open)) => self.arithmetic(rest, open),
            Some(Frame::Parameter) => self.parameter(rest),
            Some(Frame::Backticks | Frame::Command(_)) | None => self.plain(rest),
        }
    }

    fn single(&mut self, character: char) -> usize {
        if character == '\'' {
            self.frames.pop();
        }
        1
    }

    fn comment(&mut self, character: char) -> usize {
        if character == '\n' {
            self.frames.pop();
            return self.plain(&['\n']);
        }
        1
    }

    fn double(&mut self, rest: &[char]) -> usize {
        match rest[0] {
            '"' => _ = self.frames.pop(),
            '\\' => self.escaping = true,
            '`' => self.backtick(),
            '$' => return self.dollar(rest),
            _ => {}
        }
        1
    }

    fn parameter(&mut self, rest: &[char]) -> usize {
        match rest[0] {
            '}' => self.close(),
            '\\' => self.escaping = true,
            // Inside double quotes a single quote is text here, otherwise it opens a quote. No value is accepted here
            // in either case.
            '\'' if !self.frames.contains(&Frame::Double) => self.frames.push(Frame::Single),
            '"' => self.frames.push(Frame::Double),
            '`' => self.backtick(),
            '$' => return self.dollar(rest),
            _ => {}
        }
        1
    }

    fn arithmetic(&mut self, rest: &[char], open: usize) -> usize {
        let last = self.frames.len() - 1;
        match rest {
            ['(', ..] => self.frames[last] = Frame::Arithmetic(open + 1),
            [')', ')', ..] if open == 0 => {
                self.close();
                return 2;
            }
            // This may be two subshells instead of arithmetic, in which quotes have another meaning.
            ['\'' | '"', ..] => self.lost = Some(IN_ARITHMETIC),
            [')', ..] => self.frames[last] = Frame::Arithmetic(open.saturating_sub(1)),
            ['\\', ..] => self.escaping = true,
            ['`', ..] => self.backtick(),
            ['$', ..] => return self.dollar(rest),
            _ => {}
        }
        1
    }

    /// Handles a backtick. It ends the substitution that the previous one opened, and with it everything opened inside.
    fn backtick(&mut self) {
        let begun = self.frames.iter().rposition(|frame| *frame == Frame::Backticks);
        if let Some(begun) = begun {
            self.frames.truncate(begun);
            self.in_word = true;
        } else {
            self.frames.push(Frame::Backticks);
            self.end_word();
        }
    }

    /// Ends a construct inside a word; the word continues.
    fn close(&mut self) {
        self.frames.pop();
        self.in_word = true;
    }

    fn dollar(&mut self, rest: &[char]) -> usize {
        self.in_word = true;
        let (frame, length) = match rest {
            ['$', '(', '(', ..] => (Frame::Arithmetic(0), 3),
            ['$', '(', ..] => (Frame::Command(0), 2),
            ['$', '{', ..] => (Frame::Parameter, 2),
            ['$', '\'', ..] if self.frames.last() != Some(&Frame::Double) => {
                // Some shells support escapes in `$'…'`, others do not.
                self.lost = Some("after `$'`");
                return 1;
            }
            _ => return 1,
        };
        self.frames.push(frame);
        self.end_word();
        length
    }

    fn plain(&mut self, rest: &[char]) -> usize {
        match rest {
            ['\'', ..] => self.open(Frame::Single),
            ['"', ..] => self.open(Frame::Double),
            ['\\', ..] => self.escaping = true,
            ['`', ..] => self.backtick(),
            ['$', ..] => return self.dollar(rest),
            ['#', ..] if !self.in_word => self.frames.push(Frame::Comment),
            ['(', '(', ..] => {
                self.frames.push(Frame::Arithmetic(0));
                return 2;
            }
            // `<<<` is a here-string: its word is on the same line, and no document follows.
            ['<', '<', '<', ..] => return 3,
            ['<', '<', ..] => {
                self.heredoc = self.heredoc.or(Some(Heredoc::Announced));
                self.end_word();
                return 2;
            }
            [character, ..] => self.character(*character),
            [] => {}
        }
        1
    }

    fn open(&mut self, frame: Frame) {
        self.in_word = true;
        self.word.push('\'');
        self.frames.push(frame);
    }

    fn character(&mut self, character: char) {
        match character {
            '(' => self.parentheses(1),
            ')' => self.parentheses(-1),
            '\n' => {
                self.heredoc = self.heredoc.map(|_| Heredoc::Begun);
                self.end_word();
            }
            ' ' | '\t' | ';' | '&' | '|' | '<' | '>' => self.end_word(),
            character => {
                self.in_word = true;
                self.word.push(character);
                // The patterns of `case` have closing parentheses without opening ones, so the end of `$(…)` is
                // unknown.
                if self.word == "case" && self.frames.iter().any(|frame| matches!(frame, Frame::Command(_))) {
                    self.lost = Some("after a `case` inside `$(…)`");
                }
            }
        }
    }

    fn end_word(&mut self) {
        self.in_word = false;
        self.word.clear();
    }

    fn parentheses(&mut self, by: isize) {
        self.end_word();
        let Some(Frame::Command(open)) = self.frames.last_mut() else { return };
        match open.checked_add_signed(by) {
            Some(now) => *open = now,
            None => self.close(),
        }
    }
}

const IN_SINGLE: &str = "inside single quotes";
const IN_DOUBLE: &str = "inside double quotes";
const IN_ARITHMETIC: &str = "inside `((…))`";
const IN_BACKTICKS: &str = "inside backticks";
const AFTER_BACKSLASH: &str = "after a backslash";
const AFTER_HEREDOC: &str = "after a line with `<<`";

fn hint(place: &str) -> &'static str {
    match place {
        IN_SINGLE | IN_DOUBLE => {
            "end the quotes before it: the value is quoted automatically, and `'a '${{ … }}' b'` is still one word"
        }
        IN_BACKTICKS => "write `$(…)` instead of backticks",
        AFTER_BACKSLASH => "remove the backslash: the value is quoted automatically",
        _ => {
            "put it into `env` of the call and write `\"$NAME\"`; `| raw` inserts it unquoted and needs an approval"
        }
    }
}
