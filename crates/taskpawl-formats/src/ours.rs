//! What only taskpawl knows of a task, in one short text where a format has room for foreign ones: so that its own id comes back, and
//! a state or a priority for which the format has no word.

use taskpawl_model::{Priority, Status, Task};

/// The name under which it stands.
pub(crate) const NAME: &str = "taskpawl";

/// What a record said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ours {
    pub(crate) id: Option<String>,
    pub(crate) status: Option<Status>,
    pub(crate) priority: Option<Priority>,
}

impl Ours {
    /// Reads `id=… status=… priority=…`; what is not understood is nothing.
    pub(crate) fn parse(text: &str) -> Self {
        let mut ours = Self::default();
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some(("id", id)) => ours.id = Some(id.to_owned()),
                Some(("status", word)) => ours.status = Status::from_word(word),
                Some(("priority", word)) => ours.priority = Priority::from_word(word),
                _ => {}
            }
        }
        ours
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
