//! Plans of the Agent Client Protocol: the list of entries that an editor shows for its agent.

use serde_json::{Value, json};
use taskpawl_model::task::{Priority, Status, Task};

use crate::states;

/// Returns the entries of a `plan` update, in the order of the tasks. The protocol has three statuses and three priorities. Cancelled and
/// skipped tasks have no entry, as they left the plan; failed and blocked ones are `pending`.
pub fn entries(tasks: &[Task]) -> Vec<Value> {
    let shown = tasks.iter().filter_map(|task| Some((task, word_of(states::own(task))?)));
    shown
        .map(|(task, status)| {
            json!({ "content": task.name, "priority": priority_of(task.priority), "status": status })
        })
        .collect()
}

/// Returns the update with these entries: the `update` member of a `session/update` notification.
pub fn plan(tasks: &[Task]) -> Value {
    json!({ "sessionUpdate": "plan", "entries": entries(tasks) })
}

fn word_of(status: Status) -> Option<&'static str> {
    match status {
        Status::Todo | Status::Blocked | Status::Failed => Some("pending"),
        Status::InProgress => Some("in_progress"),
        Status::Done => Some("completed"),
        Status::Cancelled | Status::Skipped => None,
    }
}

fn priority_of(priority: Priority) -> &'static str {
    match priority {
        Priority::Critical | Priority::High => "high",
        Priority::Medium => "medium",
        Priority::Low => "low",
    }
}
