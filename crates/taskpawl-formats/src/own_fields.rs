//! Fields of a task that only taskpawl has, stored as one short text in the files of other formats. They restore the task's id, and a
//! status or priority that the format cannot express.

use serde_json::{Value, json};
use taskpawl_model::task::{Priority, Status, Task};
use taskpawl_model::value::Map;
use taskpawl_model::value::TaskId;

/// The name of the member with this text.
pub(crate) const NAME: &str = "taskpawl";

/// The start of a Markdown comment with this text.
pub(crate) const COMMENT: &str = "<!-- taskpawl ";

/// Returns the text as a Markdown comment.
pub(crate) fn comment(text: &str) -> String {
    format!("{COMMENT}{text} -->")
}

/// The fields that a record contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OwnFields {
    pub(crate) id: Option<String>,
    pub(crate) status: Option<Status>,
    pub(crate) priority: Option<Priority>,
}

impl OwnFields {
    /// Parses `id=… status=… priority=…`. Unknown words and values are ignored.
    pub(crate) fn parse(text: &str) -> Self {
        let mut own_fields = Self::default();
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some(("id", id)) => own_fields.id = Some(id.to_owned()),
                Some(("status", word)) => own_fields.status = Status::from_word(word),
                Some(("priority", word)) => own_fields.priority = Priority::from_word(word),
                _ => {}
            }
        }
        own_fields
    }

    /// Takes the fields out of the metadata of a record, or out of the record itself if its `metadata` is not an object.
    pub(crate) fn take(record: &mut Map) -> Self {
        let text = match record.get_mut("metadata") {
            Some(Value::Object(metadata)) => metadata.remove(NAME),
            Some(_) => record.remove(NAME),
            None => None,
        };
        if record.get("metadata").and_then(Value::as_object).is_some_and(Map::is_empty) {
            record.remove("metadata");
        }
        text.as_ref().and_then(Value::as_str).map(Self::parse).unwrap_or_default()
    }

    /// Drops the id if the task did not get it, because it is invalid or taken by another record.
    pub(crate) fn settle(mut self, id: &TaskId) -> Self {
        self.id = self.id.filter(|own| own == id.as_str());
        self
    }

    /// Returns the fields that the format does not express. `has_id` tells whether the record has the task's id; `status` and `priority` are
    /// the values that an import of the record would read.
    pub(crate) fn of(task: &Task, has_id: bool, status: Status, priority: Priority) -> Self {
        let own = crate::states::own(task);
        Self {
            id: (!has_id).then(|| task.id.to_string()),
            status: (status != own).then_some(own),
            priority: (priority != task.priority).then_some(task.priority),
        }
    }

    /// Returns the text; `None` if there are no fields.
    pub(crate) fn text(&self) -> Option<String> {
        let words = [
            self.id.as_ref().map(|id| format!("id={id}")),
            self.status.map(|status| format!("status={status}")),
            self.priority.map(|priority| format!("priority={priority}")),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

/// Puts the text where [`OwnFields::take`] reads it.
pub(crate) fn put_text(record: &mut Map, text: String) {
    let text = Value::String(text);
    if let Value::Object(metadata) = record.entry("metadata").or_insert_with(|| json!({})) {
        metadata.insert(NAME.to_owned(), text);
    } else {
        record.insert(NAME.to_owned(), text);
    }
}
