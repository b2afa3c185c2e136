//! Here-documents.

use super::reader::Rest;

/// Here-document of a line.
#[derive(Debug)]
pub(super) struct Document {
    /// Line that ends it.
    delimiter: String,
    /// Set if a part of the delimiter was quoted, so that the shell expands nothing.
    pub(super) is_literal: bool,
    /// Set for `<<-`: leading tabs of each line are ignored.
    is_indented: bool,
}

impl Document {
    /// Reads the delimiter after `<<`.
    pub(super) fn named(chars: &mut Rest<'_>) -> Self {
        let is_indented = chars.next_if_eq(&'-').is_some();
        while chars.next_if(|char| matches!(char, ' ' | '\t')).is_some() {}
        let mut document = Self { delimiter: String::new(), is_literal: false, is_indented };
        let mut quote = None;
        while let Some(char) = chars.next_if(|char| {
            quote.is_some()
                || !(char.is_whitespace() || matches!(char, ';' | '&' | '|' | '<' | '>' | '(' | ')'))
        }) {
            match char {
                '\'' | '"' if quote.is_none() => quote = Some(char),
                _ if quote == Some(char) => quote = None,
                '\\' if quote.is_none() => document.delimiter.extend(chars.next()),
                _ => document.delimiter.push(char),
            }
            document.is_literal |= matches!(char, '\'' | '"' | '\\');
        }
        document
    }

    fn is_ended_by(&self, line: &str) -> bool {
        let line = if self.is_indented { line.trim_start_matches('\t') } else { line };
        line == self.delimiter
    }
}

/// Reads the text of a document. The flag is `true` if the shell certainly ends it there, too.
pub(super) fn body(chars: &mut Rest<'_>, document: &Document) -> (String, bool) {
    let mut text = String::new();
    let mut is_continued = false;
    while chars.peek().is_some() {
        let line: String = chars.by_ref().take_while(|char| *char != '\n').collect();
        if document.is_ended_by(&line) {
            return (text, !is_continued);
        }
        // In an expanded document `\` joins a line with the next one, so that a delimiter there may not end it.
        let slashes = line.len() - line.trim_end_matches('\\').len();
        is_continued = !document.is_literal && slashes % 2 == 1;
        text.push_str(&line);
        text.push('\n');
    }
    (text, false)
}
