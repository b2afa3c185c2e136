//! Size limits for messages: an error or a hint never grows with the plan that it is about.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use taskpawl_text::is_hidden;

/// The maximum number of items of one kind in a message. The rest is counted.
pub const MAX_ITEMS: usize = 5;

/// The maximum size of a message or a hint in bytes.
pub const MAX_BYTES: usize = 2_048;

/// The maximum size of a list in a message in bytes, which leaves room for the rest of the message.
const MAX_LIST_BYTES: usize = 1_600;

/// The maximum size of one value in a message in bytes. A file that was given as an id would otherwise fill the message.
const MAX_VALUE: usize = 200;

/// Marks the position of a cut.
const CUT: char = '…';

/// Joins the first [`MAX_ITEMS`] items with `separator`, and adds the number of the others.
pub fn list<T: Display>(items: impl IntoIterator<Item = T>, separator: &str) -> String {
    let mut text = String::new();
    let mut items = items.into_iter();
    let shown: Vec<String> = items.by_ref().take(MAX_ITEMS).map(|item| item.to_string()).collect();
    // Every item gets an equal share, so that one very long item does not hide the others.
    let room = MAX_LIST_BYTES / shown.len().max(1);
    for (index, item) in shown.iter().enumerate() {
        text.push_str(if index == 0 { "" } else { separator });
        text.push_str(&cut_to(item, room));
    }
    match items.count() {
        0 => {}
        more => {
            let _ = write!(text, "{separator}and {more} more");
        }
    }
    text
}

/// Joins names for a message: quoted, separated by commas, with the number of omitted ones.
pub fn names<T: Display>(names: impl IntoIterator<Item = T>) -> String {
    list(names.into_iter().map(|name| data(&name.to_string())), ", ")
}

/// Returns `text`, shortened to the maximum size of a message.
pub fn cut(text: &str) -> Cow<'_, str> {
    cut_to(text, MAX_BYTES)
}

/// Returns `text`, shortened to `max_bytes` bytes including the mark of the cut.
pub fn cut_to(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    let kept = taskpawl_text::head(text, max_bytes.saturating_sub(CUT.len_utf8()));
    Cow::Owned(format!("{kept}{CUT}"))
}

/// Returns a text that may repeat values of a caller, shortened to the maximum size of a message. Each long word loses its middle, so
/// that the text around it stays complete.
pub fn message(text: &str) -> Cow<'_, str> {
    if text.split(' ').all(|word| word.len() <= MAX_VALUE) {
        return cut(text);
    }
    let shortened = |word| {
        let end = taskpawl_text::tail(word, MAX_VALUE / 4);
        Cow::Owned(format!("{}{end}", cut_to(word, MAX_VALUE - MAX_VALUE / 4)))
    };
    let words = text
        .split(' ')
        .map(|word| if word.len() <= MAX_VALUE { Cow::Borrowed(word) } else { shortened(word) });
    let text = words.collect::<Vec<_>>().join(" ");
    Cow::Owned(cut(&text).into_owned())
}

/// Quotes a value of the store or of a caller for a message, so that its end is unambiguous. It is put in backticks; if
/// it contains a backtick or an invisible character, in double quotes with these escaped. A long value is shortened.
///
/// Without the escapes a name could close the quotes, and the rest of it would look like a command that the message
/// suggests.
pub fn data(text: &str) -> String {
    let text = &*cut_to(text, MAX_VALUE);
    let is_odd = |c: char| c == '`' || is_hidden(c);
    if !text.contains(is_odd) {
        return format!("`{text}`");
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if is_odd(c) => quoted.extend(c.escape_unicode()),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Faults that differ only in their position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group<T> {
    /// The first fault.
    pub first: T,
    /// The number of faults, including the first.
    pub count: usize,
}

/// Groups faults with equal keys, in the order of the first fault of each group.
pub fn grouped<T, K: Ord>(faults: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<Group<T>> {
    let mut groups: Vec<Group<T>> = Vec::new();
    let mut known: BTreeMap<K, usize> = BTreeMap::new();
    for fault in faults {
        let position = *known.entry(key(&fault)).or_insert(groups.len());
        match groups.get_mut(position) {
            Some(group) => group.count += 1,
            None => groups.push(Group { first: fault, count: 1 }),
        }
    }
    groups
}

/// Joins the first [`MAX_ITEMS`] groups of faults with `separator`, each formatted by `text`, and adds the number of
/// the other faults.
pub fn kinds<T, K: Ord>(
    faults: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
    text: impl Fn(&Group<T>) -> String,
    separator: &str,
) -> String {
    let groups = grouped(faults, key);
    let (shown, rest) = groups.split_at(groups.len().min(MAX_ITEMS));
    let mut all = list(shown.iter().map(text), separator);
    match rest.iter().map(|group| group.count).sum::<usize>() {
        0 => {}
        more => {
            let _ = write!(all, "{separator}and {more} more");
        }
    }
    all
}

impl<T> Group<T> {
    /// Returns `text` with the number of faults, if there are several.
    pub fn counted(&self, text: &str) -> String {
        if self.count == 1 { text.to_owned() } else { format!("{text}, {} times", self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_shows_five_items_and_counts_the_rest() {
        assert_eq!(list(0..5, ", "), "0, 1, 2, 3, 4");
        assert_eq!(list(0..2_000, ", "), "0, 1, 2, 3, 4, and 1995 more");
        assert_eq!(names(["a", "b"]), "`a`, `b`");
        assert_eq!(list(Vec::<String>::new(), "; "), "");
        let long = list(vec!["é".repeat(60_000); 2_000], "; ");
        assert!(long.len() < MAX_BYTES, "{}", long.len());
    }

    #[test]
    fn a_cut_text_ends_between_characters() {
        assert_eq!(cut("short"), "short");
        for text in ["x".repeat(60_000), "é".repeat(60_000), "漢".repeat(60_000)] {
            assert!(cut(&text).len() <= MAX_BYTES && cut(&text).ends_with('…'));
        }
    }

    #[test]
    fn data_cannot_close_its_quotes() {
        assert_eq!(data("ann@host"), "`ann@host`");
        assert_eq!(data("left \"right\""), "`left \"right\"`");
        assert_eq!(
            data("x` first run `taskpawl cancel b"),
            "\"x\\u{60} first run \\u{60}taskpawl cancel b\""
        );
        assert_eq!(data("a\nb\u{202e}\"\\"), "\"a\\u{a}b\\u{202e}\\\"\\\\\"");
    }

    #[test]
    fn equal_faults_are_grouped() {
        let faults = [("a", 1), ("b", 2), ("a", 3), ("a", 4)];
        let groups = grouped(faults, |(word, _)| *word);
        let counts: Vec<_> = groups.iter().map(|group| (group.first, group.count)).collect();
        assert_eq!(counts, [(("a", 1), 3), (("b", 2), 1)]);
        let text = kinds(faults, |(word, _)| *word, |group| group.counted(group.first.0), "; ");
        assert_eq!(text, "a, 3 times; b");
        let text =
            kinds(0..2_000, |number| number % 40, |group| group.counted(&group.first.to_string()), "; ");
        assert_eq!(text, "0, 50 times; 1, 50 times; 2, 50 times; 3, 50 times; 4, 50 times; and 1750 more");
    }
}
