//! Converts ids of other programs to task ids.

use std::collections::{BTreeMap, BTreeSet};

use any_ascii::any_ascii;
use taskpawl_model::command::SourceRecord;
use taskpawl_model::value::{MAX_ID_BYTES, TaskId, check_id};

use crate::known::{Ambiguous, Known};
use crate::reading::Options;

/// The maximum length of an id that is made from a text, without the number that tells equal ones apart.
const NAME_CHARS: usize = 48;

/// The ids of one import: task ids by the ids of the other program. Both are unique.
#[derive(Debug)]
pub(crate) struct Ids<'k> {
    prefix: Option<String>,
    known: &'k Known,
    by_key: BTreeMap<String, TaskId>,
    taken: BTreeSet<TaskId>,
    /// The last number of each slug and of each id that repeats, so that thousands of equal ones stay linear.
    next: BTreeMap<String, u64>,
    /// Records that more than one task remembers.
    pub(crate) ambiguous: Vec<Ambiguous>,
}

impl<'k> Ids<'k> {
    pub(crate) fn new(options: &'k Options) -> Self {
        let prefix = options.prefix.as_ref().or(options.known.prefix()).cloned();
        Self {
            prefix,
            known: &options.known,
            by_key: BTreeMap::new(),
            taken: BTreeSet::new(),
            next: BTreeMap::new(),
            ambiguous: Vec::new(),
        }
    }

    pub(crate) fn known(&self) -> &'k Known {
        self.known
    }

    pub(crate) fn prefix(&self) -> Option<&String> {
        self.prefix.as_ref()
    }

    /// Assigns a task id to the record with this key. A new id is made from the text `base`; `known` is the id that an export wrote into the
    /// record and is preferred if it is valid and free. Returns `None` if the key occurs twice.
    pub(crate) fn add(&mut self, key: &str, base: &str, known: Option<&str>) -> Option<TaskId> {
        if self.by_key.contains_key(key) {
            return None;
        }
        let remembered = self.remembered(key).or_else(|| self.remembered_by_task(base));
        let id = remembered.unwrap_or_else(|| self.new_id(base, known));
        self.taken.insert(id.clone());
        self.by_key.insert(key.to_owned(), id.clone());
        Some(id)
    }

    /// Returns the task that remembers the record.
    fn remembered(&mut self, key: &str) -> Option<TaskId> {
        let mut found = self.known.with_id(key).filter(|known| !self.taken.contains(&known.task));
        let first = found.next()?.task.clone();
        // A task that came from two files has two records once one of them is moved to the path of the other.
        let others = found.map(|known| known.task.clone()).filter(|other| *other != first);
        let others: Vec<TaskId> = others.collect();
        if !others.is_empty() {
            let tasks = std::iter::once(first.clone()).chain(others).collect();
            self.ambiguous.push(Ambiguous { record: key.to_owned(), tasks });
        }
        Some(first)
    }

    /// Returns the task that version 0.1 made from a record of `tasks.json`. It did not store the ids of such records, so its task ids
    /// are computed again.
    fn remembered_by_task(&self, base: &str) -> Option<TaskId> {
        let id = TaskId::from(fitting(&self.prefixed(base)));
        let known = self.known.of_task(&id).filter(|known| known.is_legacy && known.record.id == id.as_str());
        known.map(|_| id).filter(|id| !self.taken.contains(id))
    }

    fn new_id(&mut self, base: &str, known: Option<&str>) -> TaskId {
        let wanted = known.filter(|known| check_id(known).is_ok()).map(TaskId::from);
        match wanted.filter(|id| !self.taken.contains(id)) {
            Some(id) => id,
            None => self.fitting(base),
        }
    }

    /// Assigns the task id that an export wrote into an item, if it is valid and free.
    pub(crate) fn add_written(&mut self, written: &str) -> Option<TaskId> {
        let id = self.is_free(written).then(|| TaskId::from(written))?;
        self.taken.insert(id.clone());
        Some(id)
    }

    /// Assigns a task id to an item that no task remembers.
    pub(crate) fn add_item(&mut self, theirs: Option<&str>, text: &str) -> TaskId {
        let id = match theirs {
            Some(theirs) => self.fitting(theirs),
            None => self.fitting_text(text),
        };
        self.taken.insert(id.clone());
        id
    }

    /// Marks an id as taken.
    pub(crate) fn take(&mut self, id: TaskId) {
        self.taken.insert(id);
    }

    /// Returns the record with this id, to be remembered with its task.
    pub(crate) fn record(&self, key: &str) -> SourceRecord {
        SourceRecord { id: key.to_owned(), prefix: self.prefix.clone(), ..SourceRecord::default() }
    }

    /// Forgets a record that cannot be read, so that no link leads to it.
    pub(crate) fn forget(&mut self, key: &str) {
        self.by_key.remove(key);
    }

    /// Returns true if the id is valid and not yet assigned.
    pub(crate) fn is_free(&self, id: &str) -> bool {
        check_id(id).is_ok() && !self.is_taken(&TaskId::from(id))
    }

    fn is_taken(&self, id: &TaskId) -> bool {
        self.taken.contains(id) || self.known.has_task(id)
    }

    /// Returns the task id of a record that was added.
    pub(crate) fn get(&self, key: &str) -> Option<&TaskId> {
        self.by_key.get(key)
    }

    /// Returns an id made from a text: numbered if the same slug occurred before.
    fn fitting_text(&mut self, text: &str) -> TaskId {
        let slug = slug_of(text);
        loop {
            let number = self.next.entry(slug.clone()).or_insert(0);
            *number += 1;
            let name = if *number == 1 { slug.clone() } else { format!("{slug}-{number}") };
            let id = TaskId::from(fitting(&self.prefixed(&name)));
            if !self.is_taken(&id) {
                return id;
            }
        }
    }

    /// Returns an id with the prefix of new tasks.
    pub(crate) fn prefixed(&self, id: &str) -> String {
        self.prefix.as_ref().map_or_else(|| id.to_owned(), |prefix| format!("{prefix}.{id}"))
    }

    fn fitting(&mut self, theirs: &str) -> TaskId {
        let mut id = TaskId::from(fitting(&self.prefixed(theirs)));
        while self.is_taken(&id) {
            // Another record has this id already. NUL is invalid in an id, so that `fitting` appends a hash, which the
            // number changes. No slug has NUL, so both kinds of numbers may share the map.
            let number = self.next.entry(format!("{theirs}\u{0}")).or_insert(0);
            *number += 1;
            let marked = format!("{theirs}\u{0}{number}");
            id = TaskId::from(fitting(&self.prefixed(&marked)));
        }
        id
    }
}

/// Returns the text if it is a valid id. Otherwise replaces invalid characters and appends a hash, so that it stays distinct.
fn fitting(text: &str) -> String {
    if check_id(text).is_ok() {
        return text.to_owned();
    }
    let is_kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    // Nine bytes are left for `-` and the hash of eight hexadecimal digits.
    let room = MAX_ID_BYTES - 9;
    let kept: String = text.chars().map(|c| if is_kept(c) { c } else { '-' }).take(room).collect();
    let mark = hash(text) & 0xffff_ffff;
    if kept.is_empty() { format!("{mark:08x}") } else { format!("{kept}-{mark:08x}") }
}

/// Computes FNV-1a. Unlike `DefaultHasher` it is the same on every machine and in every version, so that ids are stable.
pub(crate) fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Returns the text in lower case, with `-` for each sequence of other characters than ASCII letters and digits; at most `most` bytes long.
pub(crate) fn slug(text: &str, most: usize) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() >= most {
            break;
        }
    }
    slug.trim_matches('-').to_owned()
}

/// Returns the slug of a text in any script; a short hash of it if no letter has a Latin counterpart.
pub(crate) fn slug_of(text: &str) -> String {
    let slug = if text.is_ascii() { slug(text, NAME_CHARS) } else { slug(&any_ascii(text), NAME_CHARS) };
    if slug.is_empty() { format!("item-{:08x}", hash(text) & 0xffff_ffff) } else { slug }
}

/// The ids that items without ids get when their file is read in another store: slugs of their texts, numbered where they repeat. An
/// item with another id must say it.
#[derive(Debug, Default)]
pub(crate) struct Names {
    given: BTreeSet<String>,
    next: BTreeMap<String, u64>,
}

impl Names {
    /// Counts an item that does not say its id.
    pub(crate) fn unmarked(&mut self, text: &str) {
        let name = self.following(text);
        self.given.insert(name);
    }

    /// Counts an item that says its id.
    pub(crate) fn marked(&mut self, id: &TaskId) {
        self.given.insert(id.to_string());
    }

    /// Counts a new item. Returns true if it gets this id, and need not say it.
    pub(crate) fn is_next(&mut self, text: &str, id: &TaskId) -> bool {
        let is_next = self.following(text) == id.as_str();
        self.marked(id);
        is_next
    }

    fn following(&mut self, text: &str) -> String {
        let slug = slug_of(text);
        let number = self.next.entry(slug.clone()).or_insert(1);
        loop {
            let name = if *number == 1 { slug.clone() } else { format!("{slug}-{number}") };
            if !self.given.contains(&name) {
                return name;
            }
            *number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ids, Options};

    #[test]
    fn valid_ids_are_kept_and_never_shared() {
        let options = Options::at(taskpawl_model::value::Timestamp::default());
        let mut ids = Ids::new(&options);
        assert_eq!(ids.add("bd-a1.2", "bd-a1.2", None).unwrap().as_str(), "bd-a1.2");
        let (one, other) = (ids.add("a/b", "a/b", None).unwrap(), ids.add("a:b", "a:b", None).unwrap());
        assert_ne!(one, other);
        assert!(one.as_str().starts_with("a-b-"), "{one}");
        assert_eq!(ids.add("a/b", "a/b", None), None);
        assert_eq!(ids.add("x", "x", Some("bd-a1.2")).unwrap().as_str(), "x");
        let long = "é".repeat(500);
        assert!(ids.add(&long, &long, None).unwrap().as_str().len() <= 64);
        assert!(!ids.add("", "", None).unwrap().as_str().is_empty());
        let options = Options { prefix: Some("p".to_owned()), ..options };
        let prefixed = Ids::new(&options).add("1", "1", None).unwrap();
        assert_eq!(prefixed.as_str(), "p.1");
    }
}
