//! Text for people: escaped, coloured on demand, and laid out in tables.

use clap::builder::styling::AnsiColor;
pub(crate) use clap::builder::styling::Style;
use taskpawl::model::task::{Priority, Status};
use taskpawl::model::value::Timestamp;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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

/// A cell of a table: one line of escaped text.
#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Returns a cell with this text.
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self::styled(text, style::PLAIN)
    }

    /// Returns a cell with this text in a style.
    pub(crate) fn styled(text: impl AsRef<str>, style: Style) -> Self {
        Self { text: clean(text.as_ref()), style }
    }
}

/// A table with aligned columns. Text is cut only if the terminal is too narrow.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
    /// The index of the column that is cut when a line is too long.
    flexible: usize,
}

/// The minimum width that a column is cut to.
const MIN: usize = 12;

impl Table {
    /// Returns a table that cuts the column `flexible` when a line is too long for the terminal.
    pub(crate) fn new(flexible: usize) -> Self {
        Self { rows: Vec::new(), flexible }
    }

    /// Adds a line. All lines must have the same number of cells.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Returns the columns that the table needs.
    pub(crate) fn width(&self) -> usize {
        let widths = self.widths();
        widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum::<usize>().saturating_sub(2)
    }

    /// Returns the lines, each with its line break. Columns that are empty in every line are left out.
    pub(crate) fn render(mut self, paint: Paint, width: Option<usize>) -> Shown {
        let mut widths = self.widths();
        if let (Some(width), Some(flexible)) = (width, widths.get(self.flexible).copied()) {
            let total = widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum::<usize>();
            // Each column is followed by a gap of two, except for the last one.
            let too_much = total.saturating_sub(2).saturating_sub(width);
            widths[self.flexible] = flexible.min(flexible.saturating_sub(too_much).max(MIN));
            for row in &mut self.rows {
                row[self.flexible].text = cut(&row[self.flexible].text, widths[self.flexible]);
            }
        }
        self.rows.iter().map(|row| line_of(row, &widths, paint)).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.first().map_or(0, Vec::len);
        let widest = |column: usize| self.rows.iter().map(|row| row[column].text.width()).max();
        (0..columns).map(|column| widest(column).unwrap_or_default()).collect()
    }
}

fn line_of(row: &[Cell], widths: &[usize], paint: Paint) -> Shown {
    let mut line = Shown::new();
    let mut gap = 0;
    for (cell, width) in row.iter().zip(widths).filter(|(_, width)| **width > 0) {
        if !cell.text.is_empty() {
            line.push(" ".repeat(gap));
            line.push(paint.style(cell.style, &cell.text));
            gap = 0;
        }
        gap += width.saturating_sub(cell.text.width()) + 2;
    }
    line.push("\n");
    line
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

/// The fewest columns to which text is wrapped: with fewer, nearly each word would be a line.
pub(crate) const MIN_WRAPPED: usize = 24;

/// Returns the lines of a text that is wrapped at words. No line is wider than `width`, unless a word is.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("BUG: there is always a line");
        if last.is_empty() {
            last.push_str(word);
        } else if last.width() + 1 + word.width() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Returns a number with its noun, in the singular or plural.
pub(crate) fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

pub(crate) use taskpawl::model::value::shell::quoted;

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
    }

    #[test]
    fn lines_are_wrapped_at_words() {
        assert_eq!(wrap("one two  three four", 9), ["one two ", "three", "four"]);
        assert_eq!(wrap("a-very-long-word x", 5), ["a-very-long-word", "x"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn a_table_is_cut_only_where_a_terminal_is_too_narrow() {
        let table = || {
            let mut table = Table::new(1);
            table.row(vec![Cell::new("a"), Cell::new("a rather long name of a task"), Cell::new("x")]);
            table.row(vec![Cell::new("bbbb"), Cell::new("short"), Cell::new("")]);
            table
        };
        let plain = Paint { is_on: false };
        insta::assert_snapshot!(table().render(plain, None).as_str(), @r"
        a     a rather long name of a task  x
        bbbb  short
        ");
        insta::assert_snapshot!(table().render(plain, Some(24)).as_str(), @r"
        a     a rather long …  x
        bbbb  short
        ");
    }
}
