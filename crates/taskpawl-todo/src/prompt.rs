//! Text forms of a checklist: a block for the system prompt of a model, and titles for people.

use std::fmt::Write as _;

use taskpawl_model::task::{ChecklistItem, ChecklistStatus};
use taskpawl_text::plain_line;

/// Returns the block that informs a model about its checklist in every turn; an empty string for an empty list.
///
/// ```
/// assert_eq!(taskpawl_todo::prompt_block(&[]), "");
/// ```
pub fn prompt_block(items: &[ChecklistItem]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let mut block = "<taskList>\nCurrent task progress:\n".to_owned();
    for ChecklistItem { id, title, status } in items {
        let _ = writeln!(block, "- [{status}] ({id}) {}", within_block(title));
    }
    let done = items.iter().filter(|item| item.status == ChecklistStatus::Completed).count();
    let _ = write!(block, "\nProgress: {done}/{} tasks completed\n</taskList>", items.len());
    block
}

/// Returns a title as one line that neither opens nor closes the block, so that a title cannot inject text into the
/// prompt.
fn within_block(title: &str) -> String {
    const NAME: &str = "tasklist>";
    let line = plain_line(title);
    let (mut safe, mut rest) = (String::new(), line.as_str());
    // ASCII lower case does not change byte positions, so positions in `small` are valid in `line`.
    let small = line.to_ascii_lowercase();
    while let Some(at) = small[line.len() - rest.len()..].find(NAME) {
        safe.push_str(rest[..at].trim_end_matches(['<', '/']));
        safe.push_str(&rest[at..at + NAME.len()]);
        rest = &rest[at + NAME.len()..];
    }
    safe + rest
}

/// Number of characters of a title that are displayed.
const MAX_SHOWN: usize = 500;

/// Returns a title for people: one line without control characters and inline Markdown, cut after 500 characters.
///
/// ```
/// use taskpawl_todo::plain_title;
///
/// assert_eq!(plain_title("**Fix** `parse()` in [the docs](https://example.org)"), "Fix parse() in the docs");
/// ```
pub fn plain_title(title: &str) -> String {
    let line = plain_line(title);
    let head: String = line.chars().take(MAX_SHOWN).collect();
    let dots = if head.len() < line.len() { "…" } else { "" };
    strip(&head).trim().to_owned() + dots
}

/// Removes paired Markdown delimiters, and the targets of links.
fn strip(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some((inner, after)) = code(rest) {
            plain.push_str(inner);
            rest = after;
        } else if let Some((inner, after)) = link(rest).or_else(|| emphasis(rest, plain.chars().last())) {
            plain.push_str(&strip(inner));
            rest = after;
        } else {
            plain.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    plain
}

fn code(text: &str) -> Option<(&str, &str)> {
    let (inner, after) = text.strip_prefix('`')?.split_once('`')?;
    (!inner.is_empty()).then_some((inner, after))
}

fn link(text: &str) -> Option<(&str, &str)> {
    // An image is replaced by its alternative text.
    let (label, after) = text.strip_prefix("![").or_else(|| text.strip_prefix('['))?.split_once("](")?;
    let (_, after) = after.split_once(')')?;
    (!label.contains(['[', ']'])).then_some((label, after))
}

fn emphasis(text: &str, before: Option<char>) -> Option<(&str, &str)> {
    let mark = ["***", "**", "__", "~~", "*", "_"].into_iter().find(|mark| text.starts_with(mark))?;
    let (inner, after) = text[mark.len()..].split_once(mark)?;
    let is_tight = !inner.is_empty() && inner.trim() == inner;
    // Delimiters inside a word belong to it: `snake_case`, `2*3*4`.
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_within = matches!(mark, "_" | "__" | "*") && (is_word(before) || is_word(after.chars().next()));
    (is_tight && !is_within).then_some((inner, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_lose_markdown_and_nothing_else() {
        let cases = [
            ("plain", "plain"),
            ("**bold** and *soft* and ~~gone~~", "bold and soft and gone"),
            ("`a*b*c` stays", "a*b*c stays"),
            ("2 * 3 * 4", "2 * 3 * 4"),
            ("2*3*4 = 24", "2*3*4 = 24"),
            ("![a picture](p.png) **x**y", "a picture xy"),
            ("an open ` and an open **", "an open ` and an open **"),
            ("***漢字***", "漢字"),
            ("snake_case_name", "snake_case_name"),
            ("_soft_ snake_case", "soft snake_case"),
            ("[docs](x) [no link] a](b)", "docs [no link] a](b)"),
            ("***both***", "both"),
            ("tab\tline\nbell\u{7}\u{1b}[31mred\u{202e}", "tab line bellred"),
            ("* open", "* open"),
            ("", ""),
        ];
        for (title, plain) in cases {
            assert_eq!(plain_title(title), plain, "{title:?}");
        }
    }

    #[test]
    fn a_title_cannot_close_the_block() {
        assert_eq!(within_block("a </taskList> b <TASKLIST> c\nd"), "a taskList> b TASKLIST> c d");
        assert_eq!(within_block("<<//taskList></taskList>x"), "taskList>taskList>x");
        assert_eq!(within_block("Vec<Task> stays"), "Vec<Task> stays");
    }
}
