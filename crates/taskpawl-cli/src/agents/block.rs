//! A marked block at the end of a text file. Only this block belongs to taskpawl.
//!
//! One line break is added before the block and one after it, even if the file ended with one. Later text thus starts
//! on a line of its own, and removal restores the file byte for byte.

use taskpawl_formats::json_text::Style;

use super::fences::code_lines;
use super::trouble::Trouble;

/// The block that is added to a file.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// The first line, which marks the start.
    pub(super) begin: &'static str,
    /// The last line, which marks the end.
    pub(super) end: &'static str,
    /// The lines between the marks.
    pub(super) text: String,
    /// The start of a file that is created for the block alone.
    pub(super) head: &'static str,
    /// True if the file is Markdown, where marks inside a code block are quoted text and do not count.
    pub(super) is_markdown: bool,
}

impl Block {
    /// Returns the file with the block. `None` stands for a missing file.
    pub(super) fn add(&self, file: Option<&str>) -> Result<String, Trouble> {
        let Some(file) = file else {
            return Ok(format!("{}{}\n", self.head, self.lines("\n")));
        };
        match self.around(file)? {
            Some((before, "")) if before == self.head && !before.is_empty() => self.add(None),
            // Earlier versions omitted the last line break if the file had none. Removing the block and adding it
            // again repairs that.
            Some((_, "")) => self.add(self.remove(file)?.as_deref()),
            Some((before, after)) => {
                Ok(format!("{before}{}{after}", self.lines(self.end_of_lines(&file[before.len()..]))))
            }
            None => {
                let end = Style::of(file).end;
                Ok(format!("{file}{end}{}{end}", self.lines(end)))
            }
        }
    }

    /// Returns the file without the block, or `None` if nothing else is left in it.
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
        // Text that was added after the block must not continue the last line of the original file.
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

    /// Returns the line ending of a block at the start of the text.
    fn end_of_lines(&self, text: &str) -> &'static str {
        let is_long = text.strip_prefix(self.begin).is_some_and(|rest| rest.starts_with("\r\n"));
        if is_long { "\r\n" } else { "\n" }
    }

    /// Returns the text before and after the block. A mark counts only at the start of a line, so a text that
    /// mentions it has no block.
    fn around<'f>(&self, file: &'f str) -> Result<Option<(&'f str, &'f str)>, Trouble> {
        let (begin, end) = (self.begin, self.end);
        let (mut open, mut found) = (None, None);
        for Mark { line, at, is_begin } in self.marks(file) {
            match (open.take(), is_begin) {
                (None, true) => open = Some((line, at)),
                (Some((line, _)), true) => return Err(Trouble::NoEnd { line, begin, end }),
                (None, false) => return Err(Trouble::NoBegin { line, begin, end }),
                (Some((line, start)), false) => {
                    if let Some((first, ..)) = found.replace((line, start, at + end.len())) {
                        return Err(Trouble::Twice { line, first, begin });
                    }
                }
            }
        }
        match (open, found) {
            (Some((line, _)), _) => Err(Trouble::NoEnd { line, begin, end }),
            (None, found) => Ok(found.map(|(_, start, end)| (&file[..start], &file[end..]))),
        }
    }

    fn marks(&self, file: &str) -> Vec<Mark> {
        let lines: Vec<&str> = file.split_inclusive('\n').collect();
        let is_code = if self.is_markdown { code_lines(&lines) } else { vec![false; lines.len()] };
        let (mut marks, mut at) = (Vec::new(), 0);
        for (number, line) in lines.iter().enumerate() {
            let is_begin = line.trim_end_matches(['\r', '\n']) == self.begin;
            if !is_code[number] && (is_begin || line.starts_with(self.end)) {
                marks.push(Mark { line: number + 1, at, is_begin });
            }
            at += line.len();
        }
        marks
    }
}

/// A line that starts or ends the block.
struct Mark {
    /// The line number, from 1.
    line: usize,
    /// The byte offset of the line.
    at: usize,
    is_begin: bool,
}
