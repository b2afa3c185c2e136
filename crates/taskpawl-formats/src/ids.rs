//! Converts ids of other programs to task ids.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl_model::value::{MAX_ID_BYTES, TaskId, check_id};

/// The maximum length of an id that is made from a text, without the number that tells equal ones apart.
const NAME_CHARS: usize = 48;

/// The ids of one import: task ids by the ids of the other program. Both are unique.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    prefix: Option<String>,
    own_fields: BTreeMap<String, TaskId>,
    taken: BTreeSet<TaskId>,
}

impl Ids {
    pub(crate) fn new(prefix: Option<&String>) -> Self {
        Self { prefix: prefix.cloned(), ..Self::default() }
    }

    /// Assigns a task id to a record. `known` is the id that an export wrote into the record and is preferred if it is valid and free.
    /// Returns `None` if the record's own id occurs twice.
    pub(crate) fn add(&mut self, theirs: &str, known: Option<&str>) -> Option<TaskId> {
        if self.own_fields.contains_key(theirs) {
            return None;
        }
        let wanted = known.filter(|known| check_id(known).is_ok()).map(TaskId::from);
        let id = match wanted.filter(|id| !self.taken.contains(id)) {
            Some(id) => id,
            None => self.fitting(theirs),
        };
        self.taken.insert(id.clone());
        self.own_fields.insert(theirs.to_owned(), id.clone());
        Some(id)
    }

    /// Returns true if the id is valid and not yet assigned.
    pub(crate) fn is_free(&self, id: &str) -> bool {
        check_id(id).is_ok() && !self.taken.contains(id)
    }

    /// Returns the task id of a record that was added.
    pub(crate) fn get(&self, theirs: &str) -> Option<&TaskId> {
        self.own_fields.get(theirs)
    }

    fn fitting(&self, theirs: &str) -> TaskId {
        let prefix = self.prefix.as_ref().map(|prefix| format!("{prefix}.")).unwrap_or_default();
        let id = TaskId::from(fitting(&format!("{prefix}{theirs}")));
        if !self.taken.contains(&id) {
            return id;
        }
        // Another record has this id already. NUL is invalid in an id, so that `fitting`
        // appends a hash, which the number changes.
        let marked = |number: u32| TaskId::from(fitting(&format!("{prefix}{theirs}\u{0}{number}")));
        (1..=u32::MAX).map(marked).find(|id| !self.taken.contains(id)).expect("BUG: numbers do not end")
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

/// Returns an id for an item that has no id in its file: a slug of its text, numbered if the same slug occurred before.
pub(crate) fn name_of(text: &str, names: &mut BTreeSet<String>) -> String {
    let slug = slug(text, NAME_CHARS);
    let slug = if slug.is_empty() { "item".to_owned() } else { slug };
    let mut name = slug.clone();
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{slug}-{number}");
        number += 1;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::Ids;

    #[test]
    fn ids_stay_as_they_are_where_they_can_and_are_never_shared() {
        let mut ids = Ids::new(None);
        assert_eq!(ids.add("bd-a1.2", None).unwrap().as_str(), "bd-a1.2");
        let (one, other) = (ids.add("a/b", None).unwrap(), ids.add("a:b", None).unwrap());
        assert_ne!(one, other);
        assert!(one.as_str().starts_with("a-b-"), "{one}");
        assert_eq!(ids.add("a/b", None), None);
        assert_eq!(ids.add("x", Some("bd-a1.2")).unwrap().as_str(), "x");
        let long = "é".repeat(500);
        assert!(ids.add(&long, None).unwrap().as_str().len() <= 64);
        assert!(!ids.add("", None).unwrap().as_str().is_empty());
        let prefixed = Ids::new(Some(&"p".to_owned())).add("1", None).unwrap();
        assert_eq!(prefixed.as_str(), "p.1");
    }
}
