//! What only taskpawl knows of a task, in one short text where a format has room for foreign ones: so that its own id comes back, and
//! a state or a priority for which the format has no word.

use serde_json::{Value, json};
use taskpawl_model::{Map, Priority, Status, Task, TaskId};

/// The name under which it stands.
pub(crate) const NAME: &str = "taskpawl";

/// What a comment of Markdown begins with that has our text.
pub(crate) const COMMENT: &str = "<!-- taskpawl ";

/// Returns our text as a comment of Markdown.
pub(crate) fn comment(text: &str) -> String {
    format!("{COMMENT}{text} -->")
}

/// What a record said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OwnFields {
    pub(crate) id: Option<String>,
    pub(crate) status: Option<Status>,
    pub(crate) priority: Option<Priority>,
}

impl OwnFields {
    /// Reads `id=… status=… priority=…`; what is not understood is nothing.
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

    /// Forgets an id that the task could not get: it is none, or another record has it.
    pub(crate) fn settle(mut self, id: &TaskId) -> Self {
        self.id = self.id.filter(|own| own == id.as_str());
        self
    }

    /// Returns what has to be said of a task: its id unless the format has it, and what the words of the format do not say.
    pub(crate) fn of(task: &Task, has_id: bool, status: Status, priority: Priority) -> Self {
        let own = crate::states::own(task);
        Self {
            id: (!has_id).then(|| task.id.to_string()),
            status: (status != own).then_some(own),
            priority: (priority != task.priority).then_some(task.priority),
        }
    }

    /// Returns the text; `None` where there is nothing to say.
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

/// Takes our text out of the metadata of a record, or out of the record itself where its metadata has no room for it.
pub(crate) fn take_text(record: &mut Map) -> Option<String> {
    let text = match record.get_mut("metadata") {
        Some(Value::Object(metadata)) => metadata.remove(NAME),
        Some(_) => record.remove(NAME),
        None => None,
    };
    if record.get("metadata").and_then(Value::as_object).is_some_and(Map::is_empty) {
        record.remove("metadata");
    }
    text.as_ref().and_then(Value::as_str).map(str::to_owned)
}

/// Puts our text where [`take_text`] finds it.
pub(crate) fn put_text(record: &mut Map, text: String) {
    let text = Value::String(text);
    if let Value::Object(metadata) = record.entry("metadata").or_insert_with(|| json!({})) {
        metadata.insert(NAME.to_owned(), text);
    } else {
        record.insert(NAME.to_owned(), text);
    }
}
