//! Names of Task Master: its fields, words and tags, and the numbers of its tasks.

use serde_json::Value;
use taskpawl_model::task::{Status, Task};

use crate::preserved::kept;

pub(super) const FORMAT: &str = "taskmaster";

/// The tag of tasks without a tag.
pub(crate) const MASTER: &str = "master";

pub(super) const FIELDS: &[&str] = &[
    "name",
    "description",
    "status",
    "priority",
    "assignee",
    "dependencies",
    "parent",
    "updatedAt",
    "metadata.taskmaster",
];

/// Status words of Task Master. Exports write the first word of a status.
pub(super) const WORDS: &[(&str, Status)] = &[
    ("pending", Status::Todo),
    ("in-progress", Status::InProgress),
    ("review", Status::InProgress),
    ("done", Status::Done),
    ("completed", Status::Done),
    ("cancelled", Status::Cancelled),
    ("blocked", Status::Blocked),
    ("deferred", Status::Blocked),
];

/// The preserved member with the fields of the tag.
pub(super) const OF_TAG: &str = "ofTag";

/// Returns the text under which links lead to a record. Numbers repeat in other tags.
pub(super) fn key(tag: &str, number: &str) -> String {
    if tag == MASTER { number.to_owned() } else { in_tag(tag, number) }
}

/// Returns the full number of a subtask, such as `3.1`: some files have that, some only its last part.
pub(super) fn whole_below(above: &str, number: &str) -> String {
    let last = number.strip_prefix(above).and_then(|rest| rest.strip_prefix('.')).unwrap_or(number);
    format!("{above}.{last}")
}

/// Returns the number of a task with its tag, as ids here begin.
pub(super) fn qualified(tag: &str, number: &str) -> String {
    if tag == MASTER { number.to_owned() } else { format!("{tag}.{number}") }
}

pub(super) fn word_of(status: Status) -> &'static str {
    match status {
        // Task Master has no word for these two. Failed work is still to be done; skipped work is not.
        Status::Failed => "blocked",
        Status::Skipped => "cancelled",
        Status::Todo | Status::InProgress | Status::Blocked | Status::Done | Status::Cancelled => {
            WORDS.iter().find(|(_, theirs)| *theirs == status).map_or("pending", |(word, _)| word)
        }
    }
}

pub(super) fn tag_of(task: &Task) -> String {
    kept(task, FORMAT).get("tag").and_then(Value::as_str).unwrap_or(MASTER).to_owned()
}

/// Returns the id of a record of Task Master: numbers repeat in other tags.
pub(crate) fn in_tag(tag: &str, number: &str) -> String {
    format!("{tag}: {number}")
}
