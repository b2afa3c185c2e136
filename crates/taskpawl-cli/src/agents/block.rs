//! A marked block at the end of a text file, which is all of the file that is ours.
//!
//! One line break is put before the block and one behind it, however the file ended: so what is added later stands on a line of its
//! own, and taking the block away gives the file as it was before.

use super::Trouble;
use super::lines::Lines;

/// What is put into a file.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// The first line.
    pub(super) begin: &'static str,
    /// The last line.
    pub(super) end: &'static str,
    /// The lines between.
    pub(super) text: String,
    /// What a file that has nothing but the block begins with.
    pub(super) head: &'static str,
}

impl Block {
    /// Returns the file with the block; `None` stands for no file.
    pub(super) fn add(&self, file: Option<&str>) -> Result<String, Trouble> {
        let Some(file) = file else {
            return Ok(format!("{}{}\n", self.head, self.lines("\n")));
        };
        match self.around(file)? {
            Some((before, "")) if before == self.head && !before.is_empty() => self.add(None),
            // So earlier versions wrote it where the file had no line break at its end.
            Some((_, "")) => self.add(self.remove(file)?.as_deref()),
            Some((before, after)) => {
                Ok(format!("{before}{}{after}", self.lines(self.end_of_lines(&file[before.len()..]))))
            }
            None => {
                let end = Lines::of(file).end;
                Ok(format!("{file}{end}{}{end}", self.lines(end)))
            }
        }
    }

    /// Returns the file without the block, or `None` where nothing is left of it.
    pub(super) fn remove(&self, file: &str) -> Result<Option<String>, Trouble> {
        let Some((before, after)) = self.around(file)? else { return Ok(Some(file.to_owned())) };
        if before == self.head && after == "\n" {
            return Ok(None);
        }
        let end = self.end_of_lines(&file[before.len()..]);
        let strip = |text: &str, times: usize| {
            (0..times).fold(text.to_owned(), |text, _| text.strip_suffix(end).unwrap_or(&text).to_owned())
        };
        let Some(after) = after.strip_prefix(end) else { return Ok(Some(strip(before, 2) + after)) };
        let before_it = strip(before, 1);
        // What was written behind the block since then does not go on where the file ended.
        let ends_a_line = before_it.is_empty() || before_it.ends_with('\n');
        Ok(Some(if ends_a_line || after.is_empty() { before_it + after } else { format!("{before}{after}") }))
    }

    /// Returns whether the file has the block.
    pub(super) fn is_in(&self, file: &str) -> bool {
        self.around(file).is_ok_and(|around| around.is_some())
    }

    fn lines(&self, end: &str) -> String {
        let text = format!("{}\n{}\n{}", self.begin, self.text.trim_end(), self.end);
        if end == "\n" { text } else { text.replace('\n', end) }
    }

    /// Returns what ends the lines of the block that a text begins with.
    fn end_of_lines(&self, text: &str) -> &'static str {
        let is_long = text.strip_prefix(self.begin).is_some_and(|rest| rest.starts_with("\r\n"));
        if is_long { "\r\n" } else { "\n" }
    }

    /// Returns what stands before the block and behind it. A text that speaks of its marks within a line has no block.
    fn around<'f>(&self, file: &'f str) -> Result<Option<(&'f str, &'f str)>, Trouble> {
        let (mut begins, mut ends, mut at) = (Vec::new(), Vec::new(), 0);
        for line in file.split_inclusive('\n') {
            if line.trim_end_matches(['\r', '\n']) == self.begin {
                begins.push(at);
            } else if line.starts_with(self.end) {
                ends.push(at + self.end.len());
            }
            at += line.len();
        }
        match (begins.as_slice(), ends.as_slice()) {
            ([], []) => Ok(None),
            ([start], [end]) if start < end => Ok(Some((&file[..*start], &file[*end..]))),
            _ => Err(Trouble::Marks { begin: self.begin, end: self.end }),
        }
    }
}
