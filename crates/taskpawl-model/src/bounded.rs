//! Bounds for what a person or a model reads: an error or a hint never grows with the plan that it is about.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use crate::visible::is_hidden;

/// The most items of one kind that a message names; the rest is counted.
pub const MAX_ITEMS: usize = 5;

/// The most bytes of a message or a hint.
pub const MAX_BYTES: usize = 2_048;

/// The most bytes of the items of a list, so that they leave room for the rest of the message.
const MAX_LIST_BYTES: usize = 1_600;

/// Stands where something was cut.
const CUT: char = '…';

/// Returns the first [`MAX_ITEMS`] items with `separator` between them, and how many more there are.
pub fn list<T: Display>(items: impl IntoIterator<Item = T>, separator: &str) -> String {
    let mut text = String::new();
    let mut items = items.into_iter();
    let shown: Vec<String> = items.by_ref().take(MAX_ITEMS).map(|item| item.to_string()).collect();
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

/// Returns names as a message shows them: quoted, with a comma between them, and how many more there are.
pub fn names<T: Display>(names: impl IntoIterator<Item = T>) -> String {
    list(names.into_iter().map(|name| data(&name.to_string())), ", ")
}

/// Returns `text` if it fits into a message, else its beginning.
pub fn cut(text: &str) -> Cow<'_, str> {
    cut_to(text, MAX_BYTES)
}

/// Returns a message that ends with `remedy`, which stays whole: where there is too much, `text` loses its end.
pub fn cut_before(text: &str, remedy: &str) -> String {
    let room = MAX_BYTES.saturating_sub(remedy.len());
    cut(&format!("{}{remedy}", cut_to(text, room))).into_owned()
}

/// Returns the beginning of `text` that has at most `max_bytes` bytes, its mark of a cut included.
pub fn cut_to(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(max_bytes.saturating_sub(CUT.len_utf8()));
    Cow::Owned(format!("{}{CUT}", &text[..end]))
}

/// Returns a value of the store or of a caller as a message shows it, so that it ends where it ends: between backticks, or, where it
/// has one itself or something that does not show, in double quotes with these escaped.
///
/// Without the escape a name could close the quotes and go on as a command of ours.
pub fn data(text: &str) -> String {
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

/// Faults that are equal but for where they stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group<T> {
    /// The first of them.
    pub first: T,
    /// How many there are, the first included.
    pub count: usize,
}

/// Groups faults whose keys are equal, in the order in which each kind is first met.
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

/// Returns the first [`MAX_ITEMS`] kinds of faults with `separator` between them, each as `text` words it, and the number of faults of
/// other kinds.
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
    /// Returns `text` with the number of faults, where there are several.
    pub fn counted(&self, text: &str) -> String {
        if self.count == 1 { text.to_owned() } else { format!("{text}, {} times", self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_five_and_counts_the_rest() {
        assert_eq!(list(0..5, ", "), "0, 1, 2, 3, 4");
        assert_eq!(list(0..2_000, ", "), "0, 1, 2, 3, 4, and 1995 more");
        assert_eq!(names(["a", "b"]), "`a`, `b`");
        assert_eq!(list(Vec::<String>::new(), "; "), "");
        let long = list(vec!["é".repeat(60_000); 2_000], "; ");
        assert!(long.len() < MAX_BYTES, "{}", long.len());
    }

    #[test]
    fn a_cut_text_ends_between_characters_and_keeps_its_remedy() {
        assert_eq!(cut("short"), "short");
        for text in ["x".repeat(60_000), "é".repeat(60_000), "漢".repeat(60_000)] {
            assert!(cut(&text).len() <= MAX_BYTES && cut(&text).ends_with('…'));
            let told = cut_before(&text, ": do that");
            assert!(told.len() <= MAX_BYTES && told.ends_with("…: do that"), "{}", told.len());
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
    fn equal_faults_are_one_group() {
        let faults = [("a", 1), ("b", 2), ("a", 3), ("a", 4)];
        let groups = grouped(faults, |(word, _)| *word);
        let told: Vec<_> = groups.iter().map(|group| (group.first, group.count)).collect();
        assert_eq!(told, [(("a", 1), 3), (("b", 2), 1)]);
        let text = kinds(faults, |(word, _)| *word, |group| group.counted(group.first.0), "; ");
        assert_eq!(text, "a, 3 times; b");
        let text =
            kinds(0..2_000, |number| number % 40, |group| group.counted(&group.first.to_string()), "; ");
        assert_eq!(text, "0, 50 times; 1, 50 times; 2, 50 times; 3, 50 times; 4, 50 times; and 1750 more");
    }
}
