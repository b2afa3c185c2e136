//! Tasks above others: their state follows from these here, and is a word of its own in other programs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use taskpawl_model::{Status, Task, TaskId};

use crate::format::Reading;
use crate::states::own;
use crate::unsupported::is_empty;

/// Fields that are taken from a file together, and the times.
const OF_THE_STATE: &[&str] =
    &["status", "blockedReason", "error", "claim", "createdAt", "updatedAt", "startedAt", "finishedAt"];

/// Gives tasks whose state only follows from what is below them the state that a file says, as long as nothing below them is other
/// than there: nobody changed them.
///
/// Returns those that are written in another way than the file says, though what the file says did not follow from what is below
/// there either.
pub fn keep_states(tasks: &mut [Task], document: &Reading) -> Vec<TaskId> {
    let changed = changed_below(tasks, &document.tasks);
    let by_id: BTreeMap<&TaskId, &Task> = document.tasks.iter().map(|task| (&task.id, task)).collect();
    let mut overwritten = Vec::new();
    for task in tasks.iter_mut().filter(|task| is_derived(task)) {
        let Some(file) = by_id.get(&task.id).filter(|file| is_word_of_progress(file.status)) else {
            continue;
        };
        if own(task) == file.status {
            if !changed.contains(&task.id) {
                (task.started_at, task.finished_at) = (file.started_at, file.finished_at);
            }
            continue;
        }
        if !changed.contains(&task.id) {
            take_state(task, file, &document.fields);
        } else if is_over(own(task)) != is_over(file.status) && !follows(file, &document.tasks) {
            overwritten.push(task.id.clone());
        }
    }
    overwritten
}

/// Returns whether the state of a task is nothing but that of what is below it.
fn is_derived(task: &Task) -> bool {
    let is_word_of_all = matches!(own(task), Status::Todo | Status::Done);
    is_word_of_all && !task.subtasks.is_empty() && task.metadata.tool_calls.is_empty()
}

/// What is put aside or given up is said of the task itself, here as there.
fn is_word_of_progress(status: Status) -> bool {
    matches!(status, Status::Todo | Status::InProgress | Status::Done)
}

fn is_over(status: Status) -> bool {
    matches!(status, Status::Done | Status::Cancelled | Status::Skipped)
}

/// Returns whether the state that a file says of a task is that of what is below it there.
fn follows(file: &Task, document: &[Task]) -> bool {
    let mut below = document.iter().filter(|task| task.parent.as_ref() == Some(&file.id)).peekable();
    below.peek().is_none() || below.all(|task| is_over(task.status)) == is_over(file.status)
}

/// Returns the tasks with something below them that is not as in a file: another state, or in another place.
fn changed_below(tasks: &[Task], document: &[Task]) -> BTreeSet<TaskId> {
    let here_by_id: BTreeMap<&TaskId, &Task> = tasks.iter().map(|task| (&task.id, task)).collect();
    let there_by_id: BTreeMap<&TaskId, &Task> = document.iter().map(|task| (&task.id, task)).collect();
    let mut changed = BTreeSet::new();
    let mut mark = |parent: &Option<TaskId>| {
        let mut above = parent.as_ref();
        while let Some(id) = above.filter(|id| changed.insert((*id).clone())) {
            above = here_by_id.get(id).and_then(|task| task.parent.as_ref());
        }
    };
    for task in tasks {
        let file = there_by_id.get(&task.id);
        if file.is_none_or(|file| !is_derived(task) && own(task) != own(file)) {
            mark(&task.parent);
        }
        if let Some(file) = file.filter(|file| file.parent != task.parent) {
            mark(&task.parent);
            mark(&file.parent);
        }
    }
    document.iter().filter(|file| !here_by_id.contains_key(&file.id)).for_each(|file| mark(&file.parent));
    changed
}

fn take_state(task: &mut Task, file: &Task, fields: &[String]) {
    if says_the_same(task, file, fields) {
        task.updated_at = file.updated_at;
    }
    task.status = file.status;
    task.blocked_reason.clone_from(&file.blocked_reason);
    task.claim.clone_from(&file.claim);
    task.error.clone_from(&file.error);
    task.started_at = file.started_at;
    task.finished_at = file.finished_at;
}

/// Returns whether a task is as in a file but for its state and its times.
fn says_the_same(task: &Task, file: &Task, fields: &[String]) -> bool {
    let (Value::Object(task), Value::Object(file)) = (json!(task), json!(file)) else { return false };
    let value = |map: &Map<String, Value>, field: &str| {
        let value = match field.strip_prefix("metadata.") {
            Some(member) => map.get("metadata").and_then(|metadata| metadata.get(member)),
            None => map.get(field),
        };
        value.filter(|value| !is_empty(value)).cloned()
    };
    let mut compared = fields.iter().filter(|field| !OF_THE_STATE.contains(&field.as_str()));
    compared.all(|field| value(&task, field) == value(&file, field))
}
