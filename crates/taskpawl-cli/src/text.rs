//! Text for people: escaped, coloured on demand, and laid out in tables.

use clap::builder::styling::AnsiColor;
pub(crate) use clap::builder::styling::Style;
use taskpawl::model::task::{Priority, Status};
use taskpawl::model::value::{Timestamp, format_time};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::shown::{Shown, safe, shown};

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
    /// The index of the column that is shortened when a line is too long.
    flexible: usize,
    /// True if that column, the last one, is wrapped instead of cut.
    wraps: bool,
}

/// The minimum width that a column is cut to.
const MIN: usize = 12;

impl Table {
    /// Returns a table that cuts the column `flexible` when a line is too long for the terminal.
    pub(crate) fn new(flexible: usize) -> Self {
        Self { rows: Vec::new(), flexible, wraps: false }
    }

    /// Returns a table that wraps its last column, `flexible`, when a line is too long for the terminal.
    pub(crate) fn wrapping(flexible: usize) -> Self {
        Self { wraps: true, ..Self::new(flexible) }
    }

    /// Adds a line. All lines must have the same number of cells.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Returns the columns that the table needs.
    pub(crate) fn width(&self) -> usize {
        sum(&self.widths())
    }

    /// Returns the lines, each with its line break. Columns that are empty in every line are left out. What does not
    /// fit in the last column stands below its line.
    pub(crate) fn render(mut self, paint: Paint, width: Option<usize>) -> Shown {
        let mut widths = self.widths();
        let Some(width) = width.filter(|width| sum(&widths) > *width) else {
            return self.rows.iter().map(|row| line_of(row, &widths, paint)).collect();
        };
        if !self.wraps {
            self.cut(&mut widths, width);
        }
        self.rows.iter().map(|row| wrapped_line(row, &widths, paint, width)).collect()
    }

    /// Cuts the flexible column as far as it takes for the others to fit, or for all but the last one.
    fn cut(&mut self, widths: &mut [usize], width: usize) {
        let Some(flexible) = widths.get(self.flexible).copied() else { return };
        let without = |widths: &[usize]| sum(widths).saturating_sub(flexible);
        let all = width.saturating_sub(without(widths));
        let room = if all >= MIN.min(flexible) || self.flexible + 1 == widths.len() {
            all
        } else {
            width.saturating_sub(without(&widths[..widths.len() - 1]))
        };
        widths[self.flexible] = flexible.min(room.max(MIN));
        for row in &mut self.rows {
            row[self.flexible].text = cut(&row[self.flexible].text, widths[self.flexible]);
        }
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.first().map_or(0, Vec::len);
        let widest = |column: usize| self.rows.iter().map(|row| row[column].text.width()).max();
        (0..columns).map(|column| widest(column).unwrap_or_default()).collect()
    }
}

/// Returns the columns of a line. Each column is followed by a gap of two, except for the last one.
fn sum(widths: &[usize]) -> usize {
    widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum::<usize>().saturating_sub(2)
}

/// Returns a line whose last cell is wrapped if it does not fit: in its column if that has half of the line, otherwise
/// below it.
fn wrapped_line(row: &[Cell], widths: &[usize], paint: Paint, width: usize) -> Shown {
    const BELOW: usize = 4;
    let Some((last, before)) = row.split_last() else { return Shown::new() };
    let used = sum(&widths[..before.len()]) + 2;
    if last.text.is_empty() || last.text.width() + used <= width {
        return line_of(row, widths, paint);
    }
    let is_beside = width.saturating_sub(used) >= (width / 2).max(MIN_WRAPPED);
    let indent = if is_beside { used } else { BELOW };
    let mut lines = wrap(&last.text, width.saturating_sub(indent).max(MIN_WRAPPED)).into_iter();
    let mut text = line_of(before, widths, paint);
    if is_beside {
        let first = Cell { text: lines.next().unwrap_or_default(), style: last.style };
        text = line_of_all(before.iter().chain([&first]), widths, paint);
    }
    for line in lines {
        text.push(shown![" ".repeat(indent), paint.style(last.style, &line), "\n"]);
    }
    text
}

fn line_of(row: &[Cell], widths: &[usize], paint: Paint) -> Shown {
    line_of_all(row.iter(), widths, paint)
}

fn line_of_all<'a>(row: impl Iterator<Item = &'a Cell>, widths: &[usize], paint: Paint) -> Shown {
    let mut line = Shown::new();
    let mut gap = 0;
    for (cell, width) in row.zip(widths).filter(|(_, width)| **width > 0) {
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

    #[test]
    fn the_last_column_of_a_table_wraps() {
        let table = || {
            let mut table = Table::wrapping(2);
            table.row(vec![
                Cell::new("a"),
                Cell::new("failed"),
                Cell::new("it has a rather long reason to fail"),
            ]);
            table.row(vec![Cell::new("bbbb"), Cell::new("done"), Cell::new("")]);
            table
        };
        let plain = Paint { is_on: false };
        insta::assert_snapshot!(table().render(plain, Some(42)).as_str(), @r"
        a     failed  it has a rather long reason
                      to fail
        bbbb  done
        ");
        insta::assert_snapshot!(table().render(plain, Some(30)).as_str(), @r"
        a     failed
            it has a rather long
            reason to fail
        bbbb  done
        ");
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
