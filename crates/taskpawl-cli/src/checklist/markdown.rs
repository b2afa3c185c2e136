//! Titles are written by people and models, with Markdown in them: on one line its marks only disturb.

/// Returns a line without the marks of inline Markdown: emphasis, code, strike-through and the targets of links.
pub(super) fn plain(line: &str) -> String {
    let mut text = unlinked(line);
    for mark in ["**", "__", "~~", "`"] {
        text = unpaired(&text, mark, |_, _| true);
    }
    // Single ones mean something else inside words: `snake_case`, `2*3*4`.
    for mark in ["*", "_"] {
        text = unpaired(&text, mark, |before, after| {
            !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
        });
    }
    text
}

/// Takes pairs of `mark` away that stand right around text, where `is_around` says that the characters outside of the pair allow it.
fn unpaired(text: &str, mark: &str, is_around: impl Fn(Option<char>, Option<char>) -> bool) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some(start) = rest.find(mark) {
        let (before, opened) = (&rest[..start], &rest[start + mark.len()..]);
        let end = opened.find(mark).filter(|end| is_tight(&opened[..*end]));
        let Some(end) = end else { break };
        let after = &opened[end + mark.len()..];
        let outside = before.chars().next_back().or_else(|| kept.chars().next_back());
        kept.push_str(before);
        if is_around(outside, after.chars().next()) {
            kept.push_str(&opened[..end]);
            rest = after;
        } else {
            kept.push_str(mark);
            rest = opened;
        }
    }
    kept + rest
}

fn is_tight(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(' ') && !text.ends_with(' ')
}

/// Leaves of `[text](target)` the text.
fn unlinked(line: &str) -> String {
    let (mut kept, mut rest) = (String::new(), line);
    while let Some(middle) = rest.find("](") {
        let start = rest[..middle].rfind('[');
        let end = rest[middle..].find(')').map(|end| middle + end);
        let (Some(start), Some(end)) = (start, end) else { break };
        kept.push_str(rest[..start].trim_end_matches('!'));
        kept.push_str(&rest[start + 1..middle]);
        rest = &rest[end + 1..];
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_go_and_words_stay() {
        for (line, plain_line) in [
            ("Fix **the** `main()` of *this*", "Fix the main() of this"),
            ("read_file and write_file stay", "read_file and write_file stay"),
            ("2*3*4 = 24, a * b * c", "2*3*4 = 24, a * b * c"),
            ("see [the page](https://example.org/a_b) ~~now~~", "see the page now"),
            ("_all_ of it, __all__", "all of it, all"),
            ("![a picture](p.png) and [no link]", "a picture and [no link]"),
            ("an open ` and an open **", "an open ` and an open **"),
            ("", ""),
            ("**", "**"),
            ("***漢字***", "漢字"),
        ] {
            assert_eq!(plain(line), plain_line, "{line}");
        }
    }
}
