//! A type for text that is safe to show. Everything that is written to a terminal has this type, and converting a
//! plain string to it escapes the string.

use std::fmt;

use clap::builder::styling::Style;
use taskpawl::model::value::{escaped, is_deceptive};

use crate::faults::{self, Fault};
use crate::text::{MIN_WRAPPED, columns, wrap_after};

/// Text for a terminal. Only styles and [`Control`]s can act on the terminal. In all other text, control characters,
/// direction marks and invisible characters are escaped as `\u{…}`; line breaks and tabs stay.
///
/// The type has no `Display`, so that styled text does not become a plain string by accident. [`shown!`] and
/// [`push`](Self::push) join texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shown(String);

/// Control sequences that the program itself sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// Starts a synchronized update: the terminal holds the output back, if it can.
    BeginFrame,
    /// Ends a synchronized update and shows the output.
    EndFrame,
    /// Moves the cursor to the upper left corner.
    Home,
    /// Moves the cursor to the start of its line.
    Return,
    /// Moves the cursor up. Must not be 0, which terminals read as 1.
    Up(usize),
    /// Erases the rest of the line.
    EraseLine,
    /// Erases everything after the cursor.
    EraseBelow,
    /// Switches to the alternate screen and hides the cursor.
    EnterScreen,
    /// Shows the cursor and switches back to the normal screen.
    LeaveScreen,
}

impl Shown {
    /// Returns an empty text.
    pub(crate) const fn new() -> Self {
        Self(String::new())
    }

    /// Returns `text` in a style.
    pub(crate) fn styled(style: Style, text: &str) -> Self {
        Self(format!("{}{}{}", style.render(), safe(text), style.render_reset()))
    }

    /// Returns clap's help with its styles. Everything but the styles is escaped: the help contains the name by which
    /// the program was started, which can be any text.
    pub(crate) fn of_help(ansi: &str) -> Self {
        let mut text = Self::new();
        for (at, part) in ansi.split("\u{1b}[").enumerate() {
            let style = part
                .find(|c: char| !c.is_ascii_digit() && c != ';')
                .filter(|end| part[*end..].starts_with('m'));
            match style.filter(|_| at > 0) {
                Some(end) => {
                    text.0.push_str("\u{1b}[");
                    text.0.push_str(&part[..=end]);
                    text.push(&part[end + 1..]);
                }
                None => text.push(part),
            }
        }
        text
    }

    /// Appends text.
    pub(crate) fn push(&mut self, text: impl Into<Self>) {
        if self.0.is_empty() {
            *self = text.into();
        } else {
            self.0.push_str(&text.into().0);
        }
    }

    /// Returns the texts in order, with `separator` between them.
    pub(crate) fn joined(texts: impl IntoIterator<Item = Self>, separator: &str) -> Self {
        let mut all = Self::new();
        for (at, text) in texts.into_iter().enumerate() {
            all.push(if at == 0 { "" } else { separator });
            all.push(text);
        }
        all
    }

    /// Returns the lines without their line breaks.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Self> {
        self.0.lines().map(|line| Self(line.to_owned()))
    }

    /// Returns the text with lines of at most `width` columns, wrapped at words. The rest of a line is indented by two
    /// more than its beginning.
    pub(crate) fn wrapped(&self, width: Option<usize>) -> Self {
        self.wrapped_with(width, |begin| begin + 2)
    }

    /// Returns the text with lines of at most `width` columns, wrapped at words. The rest of a line begins in column
    /// `indent`.
    pub(crate) fn hung(&self, width: Option<usize>, indent: usize) -> Self {
        self.wrapped_with(width, |_| indent)
    }

    fn wrapped_with(&self, width: Option<usize>, indent: impl Fn(usize) -> usize) -> Self {
        let Some(width) = width else { return self.clone() };
        let mut all = String::with_capacity(self.0.len());
        for line in self.0.split_inclusive('\n') {
            let text = line.trim_end_matches('\n');
            all.push_str(&wrapped_line(text, width, &indent));
            all.push_str(&line[text.len()..]);
        }
        Self(all)
    }

    /// Returns whether the text is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the length in bytes, including styles.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the text with its control sequences, for the functions that write it.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

fn wrapped_line(line: &str, width: usize, indent: impl Fn(usize) -> usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let text = line.trim_start_matches(' ');
    let begin = line.len() - text.len();
    let indent = indent(begin);
    let room = |taken: usize| width.saturating_sub(taken).max(MIN_WRAPPED);
    let lines = wrap_after(text, room(begin), room(indent));
    format!("{}{}", &line[..begin], lines.join(&format!("\n{}", " ".repeat(indent))))
}

/// Returns the text with every character escaped that acts on a terminal.
pub(crate) fn safe(text: &str) -> String {
    let is_safe = !text.contains(|c: char| is_deceptive(c) && !matches!(c, '\n' | '\t'));
    if is_safe || faults::is_on(Fault::RawTerminal) { text.to_owned() } else { escaped(text) }
}

impl From<&str> for Shown {
    fn from(text: &str) -> Self {
        Self(safe(text))
    }
}

impl From<String> for Shown {
    fn from(text: String) -> Self {
        Self(safe(&text))
    }
}

impl From<&String> for Shown {
    fn from(text: &String) -> Self {
        Self(safe(text))
    }
}

impl From<&Self> for Shown {
    fn from(text: &Self) -> Self {
        text.clone()
    }
}

impl From<Control> for Shown {
    fn from(control: Control) -> Self {
        Self(match control {
            // Mode 2026 is the synchronized update. Terminals that do not know it ignore it.
            Control::BeginFrame => "\u{1b}[?2026h".to_owned(),
            Control::EndFrame => "\u{1b}[?2026l".to_owned(),
            Control::Home => "\u{1b}[H".to_owned(),
            Control::Return => "\r".to_owned(),
            Control::Up(lines) => format!("\u{1b}[{lines}A"),
            Control::EraseLine => "\u{1b}[K".to_owned(),
            Control::EraseBelow => "\u{1b}[J".to_owned(),
            Control::EnterScreen => "\u{1b}[?1049h\u{1b}[?25l".to_owned(),
            Control::LeaveScreen => "\u{1b}[?25h\u{1b}[?1049l".to_owned(),
        })
    }
}

impl FromIterator<Self> for Shown {
    fn from_iter<T: IntoIterator<Item = Self>>(texts: T) -> Self {
        Self::joined(texts, "")
    }
}

/// Text from `write!` counts as plain text and is escaped.
impl fmt::Write for Shown {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(&safe(text));
        Ok(())
    }
}

/// A part of a text. Styled text is kept; everything else is escaped.
pub(crate) trait Piece {
    /// Appends this part to `text`.
    fn add_to(&self, text: &mut Shown);
}

impl Piece for Shown {
    fn add_to(&self, text: &mut Shown) {
        text.0.push_str(&self.0);
    }
}

impl Piece for &Shown {
    fn add_to(&self, text: &mut Shown) {
        text.0.push_str(&self.0);
    }
}

impl Piece for Control {
    fn add_to(&self, text: &mut Shown) {
        text.push(*self);
    }
}

impl<T: fmt::Display + ?Sized> Piece for T {
    fn add_to(&self, text: &mut Shown) {
        use fmt::Write as _;
        write!(text, "{self}").expect("BUG: a string takes all text");
    }
}

/// Joins parts to a [`Shown`]: `shown!["  ", id, "  ", name, "\n"]`.
macro_rules! shown {
    ($($piece:expr),* $(,)?) => {{
        let mut text = $crate::shown::Shown::new();
        $($crate::shown::Piece::add_to(&$piece, &mut text);)*
        text
    }};
}
pub(crate) use shown;

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use clap::builder::styling::AnsiColor;

    use super::*;

    #[test]
    fn only_styles_and_controls_reach_a_terminal() {
        let hostile = "a\u{1b}[2Jb\u{9b}c\u{202e}d\u{200b}e\rf\u{e0041}";
        let plain = "a\\u{1b}[2Jb\\u{9b}c\\u{202e}d\\u{200b}e\\u{d}f\\u{e0041}";
        assert_eq!(Shown::from(hostile).as_str(), plain);
        let mut written = Shown::new();
        write!(written, "{hostile}").unwrap();
        assert_eq!(written.as_str(), plain);
        let red = Shown::styled(AnsiColor::Red.on_default(), hostile);
        assert_eq!(red.as_str(), format!("\u{1b}[31m{plain}\u{1b}[0m"));
        let joined = shown![hostile, red, Control::EraseLine, 7, "\n\tx"];
        assert_eq!(joined.as_str(), format!("{plain}\u{1b}[31m{plain}\u{1b}[0m\u{1b}[K7\n\tx"));
    }
}
