//! Tables with aligned columns.

use unicode_width::UnicodeWidthStr;

use super::{MIN_WRAPPED, Paint, Style, clean, cut, style, wrap};
use crate::shown::{Shown, shown};

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

#[cfg(test)]
mod tests {
    use super::*;

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
