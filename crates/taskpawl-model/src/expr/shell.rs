//! Values in shell commands. A value becomes one word in single quotes, which is only right where a word may stand:
//! within quotes the quotes would be text, and in some places a shell reads single quotes as nothing special and runs
//! what stands between them. There, a value is refused rather than inserted wrongly.

use super::error::{ExprFault, Fault};

/// Returns a text as one word of a shell command: always in quotes, so that it is neither a keyword nor an assignment.
pub(super) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What the text of a command up to some place is in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    Single,
    Double,
    Backticks,
    /// `$(`, with so many parentheses open in it.
    Command(usize),
    /// `${`.
    Parameter,
    /// `$((`.
    Arithmetic(usize),
    Comment,
}

/// Reads a command piece by piece, and knows whether a word can be inserted between two of them.
#[derive(Debug, Default)]
pub(super) struct Command {
    frames: Vec<Frame>,
    /// A `<<` was read, and since then…
    heredoc: Option<Heredoc>,
    /// The last piece ends with a backslash that is not escaped itself.
    escaping: bool,
    /// The last piece ends in the middle of a word.
    in_word: bool,
    /// Something makes it impossible to know what follows.
    lost: Option<&'static str>,
    /// The word that is being read, as far as it is plain.
    word: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heredoc {
    /// …no line has ended.
    Announced,
    /// …a line has ended.
    Begun,
}

/// The quotes around a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    None,
    Single,
    Double,
}

impl Quotes {
    /// Returns what a shell reads here as the value of a variable: neither split into words nor taken for a pattern.
    pub(super) fn expansion(self, variable: &str) -> String {
        match self {
            Self::None => format!("\"${{{variable}}}\""),
            Self::Single => format!("'\"${{{variable}}}\"'"),
            Self::Double => format!("${{{variable}}}"),
        }
    }
}

/// More levels than anybody writes.
const MAX_FRAMES: usize = 64;

impl Command {
    /// Reads text that the author wrote.
    pub(super) fn text(&mut self, text: &str) {
        let characters: Vec<char> = text.chars().collect();
        let mut at = 0;
        while at < characters.len() {
            at += self.step(&characters[at..]);
            if self.frames.len() > MAX_FRAMES {
                self.lost = Some("that deep in a nest");
                self.frames.truncate(1);
            }
        }
    }

    /// A value is inserted.
    pub(super) fn value(&mut self) {
        self.in_word = true;
        self.word.clear();
        self.escaping = false;
    }

    /// A variable is read here, as a word or as a part of one; returns in which quotes.
    pub(super) fn variable(&mut self, at: usize) -> Result<Quotes, Fault> {
        let quotes = match self.place() {
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

    /// Checks that a word may be inserted here.
    pub(super) fn check(&self, at: usize) -> Result<(), Fault> {
        let Some(place) = self.place() else { return Ok(()) };
        Err(Fault::new(at, ExprFault::Quoting { place }).hint(hint(place)))
    }

    fn place(&self) -> Option<&'static str> {
        if self.lost.is_some() {
            return self.lost;
        }
        if self.heredoc == Some(Heredoc::Begun) {
            return Some(AFTER_HEREDOC);
        }
        if self.escaping {
            return Some(AFTER_BACKSLASH);
        }
        if self.frames.contains(&Frame::Backticks) {
            return Some(IN_BACKTICKS);
        }
        match self.frames.last()? {
            Frame::Single => Some(IN_SINGLE),
            Frame::Double => Some(IN_DOUBLE),
            Frame::Parameter => Some("within `${…}`"),
            Frame::Arithmetic(_) => Some(IN_ARITHMETIC),
            Frame::Comment => Some("in a comment"),
            // Within `$(…)` a command begins anew, whatever is around it.
            Frame::Command(_) | Frame::Backticks => None,
        }
    }

    /// Reads one character or more; returns how many.
    fn step(&mut self, rest: &[char]) -> usize {
        if std::mem::take(&mut self.escaping) {
            if rest[0] == '\n' {
                // The two vanish: what is left and right of them stands side by side.
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
            // Within double quotes a single quote here is text, elsewhere it is not; no value comes in anyway.
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
            // It may be two subshells, in which quotes mean something else.
            ['\'' | '"', ..] => self.lost = Some(IN_ARITHMETIC),
            [')', ..] => self.frames[last] = Frame::Arithmetic(open.saturating_sub(1)),
            ['\\', ..] => self.escaping = true,
            ['`', ..] => self.backtick(),
            ['$', ..] => return self.dollar(rest),
            _ => {}
        }
        1
    }

    /// A backtick ends the substitution that it began, whatever was begun within.
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

    /// What was begun within a word ends; the word goes on.
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
                // Some shells know escapes in it, others do not.
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
                // The patterns of `case` have parentheses that nothing opens.
                if self.word == "case" && self.frames.iter().any(|frame| matches!(frame, Frame::Command(_))) {
                    self.lost = Some("after a `case` within `$(…)`");
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

const IN_SINGLE: &str = "within single quotes";
const IN_DOUBLE: &str = "within double quotes";
const IN_ARITHMETIC: &str = "within `((…))`";
const IN_BACKTICKS: &str = "within backticks";
const AFTER_BACKSLASH: &str = "after a backslash";
const AFTER_HEREDOC: &str = "after a line with `<<`";

fn hint(place: &str) -> &'static str {
    match place {
        IN_SINGLE | IN_DOUBLE => {
            "end the quotes before it: it becomes one quoted word by itself, and `'a '${{ … }}' b'` is one word too"
        }
        IN_BACKTICKS => "write `$(…)` instead of backticks",
        AFTER_BACKSLASH => "drop the backslash: the value is quoted by itself",
        _ => {
            "put it into `env` of the call and write `\"$NAME\"`; `| raw` inserts it as it is, and waits for an approval"
        }
    }
}
