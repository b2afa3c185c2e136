//! The step that a failed task needs: other work, and another start with it.

use serde_json::{Value, json};
use taskpawl::model::task::{Status, Task};

use super::actions::Action;

/// Maximum length of the work that a step repeats, as JSON in bytes. Longer work is left to the caller, who wrote it.
const MAX_WORK: usize = 400;

/// Returns the call that gives a failed task other work and starts it over. It has the present work, to be changed: as it
/// stands it only tries again.
pub(super) fn repair(task: &Task) -> Option<Action> {
    if task.status != Status::Failed {
        return None;
    }
    let mut arguments = json!({"id": task.id, "action": "retry"});
    if let Some(fields) = work(task).filter(|fields| fields.to_string().len() <= MAX_WORK) {
        arguments["fields"] = fields;
    }
    Some(Action::call("task_update", arguments))
}

/// Returns the only call of a task as one would write it; `None` for several calls, or one with options of its own.
fn work(task: &Task) -> Option<Value> {
    let [call] = &task.metadata.tool_calls[..] else { return None };
    if !call.options.is_empty() || call.id.as_str() != "c1" {
        return None;
    }
    let is_plain = |name: &String| ["command", "shell"].contains(&name.as_str());
    let is_default = call.args.get("shell").is_none_or(|shell| shell == "sh");
    if call.tool_name == "shell" && is_default && call.args.keys().all(is_plain) {
        return Some(json!({"run": call.args.get("command")?}));
    }
    Some(json!({"call": {call.tool_name.as_str(): call.args}}))
}
