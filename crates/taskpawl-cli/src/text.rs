//! Text for people: escaped, coloured on demand, and laid out in tables.

mod flow;
mod long_line;
mod table;

use clap::builder::styling::AnsiColor;
pub(crate) use clap::builder::styling::Style;
use taskpawl::model::task::{Priority, Status};
use taskpawl::model::value::{Timestamp, format_time};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(crate) use flow::flow;
pub(crate) use long_line::short_line;
pub(crate) use table::{Cell, Table};

use crate::shown::{Shown, safe};

/// Returns `text` on one line, with every character escaped that acts on a terminal or is invisible.
pub(crate) fn clean(text: &str) -> String {
    clean_block(text).replace(['\n', '\t'], " ")
}

/// Returns `text` escaped as by [`clean`], but keeps its line breaks and tabs.
pub(crate) fn clean_block(text: &str) -> String {
    safe(&text.replace("\r\n", "\n"))
}

/// Adds colours to text, if they are on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Paint {
    /// True if colours are on.
    pub(crate) is_on: bool,
}

impl Paint {
    /// Returns `text` in `style`.
    pub(crate) fn style(self, style: Style, text: &str) -> Shown {
        if self.is_on && !text.is_empty() { Shown::styled(style, text) } else { text.into() }
    }
}

/// The styles of the output.
pub(crate) mod style {
    use super::{AnsiColor, Priority, Status, Style};

    pub(crate) const PLAIN: Style = Style::new();
    pub(crate) const BOLD: Style = Style::new().bold();
    pub(crate) const DIM: Style = Style::new().dimmed();
    pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
    pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
    pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();

    /// Returns the style of a status.
    pub(crate) fn of_status(status: Status) -> Style {
        match status {
            Status::Todo => PLAIN,
            Status::InProgress => AnsiColor::Cyan.on_default(),
            Status::Blocked => AnsiColor::Yellow.on_default(),
            Status::Done => AnsiColor::Green.on_default(),
            Status::Failed => AnsiColor::Red.on_default(),
            Status::Cancelled | Status::Skipped => DIM,
        }
    }

    /// Returns the style of a priority.
    pub(crate) fn of_priority(priority: Priority) -> Style {
        match priority {
            Priority::Critical => AnsiColor::Red.on_default(),
            Priority::High => AnsiColor::Yellow.on_default(),
            Priority::Medium => PLAIN,
            Priority::Low => DIM,
        }
    }
}

/// Returns `text` cut to `width` columns; `…` marks a cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |c: &char| {
        let needed = c.width().unwrap_or_default();
        let fits = needed <= left;
        left = left.saturating_sub(needed);
        fits
    };
    let mut short: String = text.chars().take_while(fits).collect();
    short.push('…');
    short
}

/// Returns a time as people say it, such as `3 min ago`.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = (now - at).num_seconds();
    match seconds {
        ..1 => "now".to_owned(),
        1..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} ago", count((seconds / 86_400).unsigned_abs(), "day")),
    }
}

/// Returns a time as people say it: relative to `now`, or in full without it.
pub(crate) fn time(at: Timestamp, now: Option<Timestamp>) -> String {
    match now {
        None => format_time(at),
        Some(now) if at > now => format!("in {}", ago(now, at).trim_end_matches(" ago")),
        Some(now) => ago(at, now),
    }
}

/// Returns the end of a lease: relative to `now`, or in full without it.
pub(crate) fn lease_end(at: Timestamp, now: Option<Timestamp>) -> String {
    let word = match now {
        None => "until",
        Some(now) if at > now => "lease ends",
        Some(_) => "lease ended",
    };
    format!("{word} {}", time(at, now))
}

/// The fewest columns to which text is wrapped: with fewer, nearly each word would be a line.
pub(crate) const MIN_WRAPPED: usize = 24;

/// Returns the lines of a text that is wrapped at words. No line is wider than `width`, unless a word is. Commands in
/// backticks stay on one line if they fit, so that they can be copied.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    wrap_after(text, width, width)
}

/// Does the same as [`wrap`] with a first line of another width.
pub(crate) fn wrap_after(text: &str, first: usize, others: usize) -> Vec<String> {
    let mut width = first;
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in words(text, first.min(others)) {
        let last = lines.last_mut().expect("BUG: there is always a line");
        let needed = columns(&word);
        if last.is_empty() {
            last.push_str(&word);
            used = needed;
        } else if used + 1 + needed <= width {
            last.push(' ');
            last.push_str(&word);
            used += 1 + needed;
        } else {
            last.truncate(last.trim_end().len());
            width = others;
            lines.push(word);
            used = needed;
        }
    }
    lines
}

/// Returns the words of a text. Words between backticks are one word, unless that is wider than `width`.
fn words(text: &str, width: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.split(' ');
    while let Some(word) = rest.next() {
        let is_open = |word: &str| word.matches('`').count() % 2 == 1;
        let mut whole = word.to_owned();
        let mut ahead = rest.clone();
        while is_open(&whole)
            && let Some(next) = ahead.next()
        {
            whole.push(' ');
            whole.push_str(next);
        }
        if whole.len() > word.len() && !is_open(&whole) && columns(&whole) <= width {
            words.push(whole);
            rest = ahead;
        } else {
            words.push(word.to_owned());
        }
    }
    words
}

/// Returns the columns of a text, in which styles take none.
pub(crate) fn columns(text: &str) -> usize {
    if text.contains('\u{1b}') { without_sequences(text).width() } else { text.width() }
}

/// Returns a number with its noun, in the singular or plural.
pub(crate) fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

pub(crate) use taskpawl::model::value::shell::{path_word, quoted};

pub(crate) use taskpawl_text::{nearest, without_sequences};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        let hostile = "a\u{1b}[2Jb\u{9b}c\u{202e}d\re\nf\u{7f}";
        assert_eq!(clean(hostile), "a\\u{1b}[2Jb\\u{9b}c\\u{202e}d\\u{d}e f\\u{7f}");
        assert_eq!(clean_block("x\ty\r\nz\u{8}!"), "x\ty\nz\\u{8}!");
        assert_eq!(clean("plain ü 漢 👍"), "plain ü 漢 👍");
    }

    #[test]
    fn times_are_told_from_now() {
        let at = |seconds: i64| {
            ago(Timestamp::default() - chrono::TimeDelta::seconds(seconds), Timestamp::default())
        };
        let said = [-5, 0, 59, 60, 3_599, 7_200, 86_400, 1_000_000].map(at);
        assert_eq!(
            said,
            ["now", "now", "59 s ago", "1 min ago", "59 min ago", "2 h ago", "1 day ago", "11 days ago"]
        );
        let later = Timestamp::default() + chrono::TimeDelta::minutes(28);
        assert_eq!(time(later, Some(Timestamp::default())), "in 28 min");
        assert_eq!(time(later, None), "1970-01-01T00:28:00Z");
    }

    #[test]
    fn lines_are_wrapped_at_words() {
        assert_eq!(wrap("one two  three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrap("a-very-long-word x", 5), ["a-very-long-word", "x"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("\u{1b}[1mone\u{1b}[0m two three", 7), ["\u{1b}[1mone\u{1b}[0m two", "three"]);
    }

    #[test]
    fn a_command_is_not_wrapped_if_it_fits() {
        assert_eq!(wrap("see `logs --run 3f2a` now", 18), ["see", "`logs --run 3f2a`", "now"]);
        assert_eq!(wrap("see `logs --run 3f2a` now", 12), ["see `logs", "--run 3f2a`", "now"]);
        assert_eq!(wrap("a ` b c", 5), ["a ` b", "c"]);
    }
}
