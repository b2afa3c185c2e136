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
            Some((before, after)) => Ok(format!("{before}{}{after}", self.lines(self.end_of_lines(file)))),
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
        let end = self.end_of_lines(file);
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

    /// Returns what ends the lines of the block that is in the file.
    fn end_of_lines(&self, file: &str) -> &'static str {
        let is_long = file.split_once(self.begin).is_some_and(|(_, rest)| rest.starts_with("\r\n"));
        if is_long { "\r\n" } else { "\n" }
    }

    /// Returns what stands before the block and behind it.
    fn around<'f>(&self, file: &'f str) -> Result<Option<(&'f str, &'f str)>, Trouble> {
        let begins = file.matches(self.begin).count();
        let ends = file.matches(self.end).count();
        if (begins, ends) == (0, 0) {
            return Ok(None);
        }
        let start = file.find(self.begin);
        let end = file.find(self.end).map(|end| end + self.end.len());
        match (start, end) {
            (Some(start), Some(end)) if (begins, ends) == (1, 1) && start < end => {
                Ok(Some((&file[..start], &file[end..])))
            }
            _ => Err(Trouble::Marks { begin: self.begin, end: self.end }),
        }
    }
}
