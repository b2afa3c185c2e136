//! States of parent tasks. Here a parent's state follows from its subtasks; other programs store a state of its own for it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use taskpawl_model::task::{Status, Task};
use taskpawl_model::value::TaskId;

use crate::reading::Reading;
use crate::states::own;
use crate::unsupported::is_empty;

/// Fields that [`take_state`] copies as a unit, and so leaves out of its comparison. Times are among them.
const OF_THE_STATE: &[&str] =
    &["status", "blockedReason", "error", "claim", "createdAt", "updatedAt", "startedAt", "finishedAt"];

/// Restores the file's state of tasks whose state an import adapted and that did not change since, and of parent tasks, as long as no
/// subtask changed since the file was read. Parents that have a state of their own keep it.
///
/// Returns the parents that lose the state in the file: a subtask changed, and that state did not follow from the subtasks in the
/// file either. The caller can report them.
pub fn keep_states(tasks: &mut [Task], document: &Reading) -> Vec<TaskId> {
    let by_id: BTreeMap<&TaskId, &Task> = document.tasks.iter().map(|task| (&task.id, task)).collect();
    for task in tasks.iter_mut() {
        let is_adapted = document.adapted.get(&task.id).is_some_and(|adapted| *adapted == task.status);
        if let Some(file) = by_id.get(&task.id).filter(|_| is_adapted) {
            take_state(task, file, &document.fields);
        }
    }
    let changed = changed_below(tasks, &document.tasks);
    let over_below = over_below(&document.tasks);
    let mut overwritten = Vec::new();
    for task in tasks.iter_mut().filter(|task| is_derived(task)) {
        let Some(file) = by_id.get(&task.id).filter(|file| is_word_of_progress(file.status)) else {
            continue;
        };
        if own(task) == file.status {
            // The statuses are equal: only the times can still differ.
            if !changed.contains(&task.id) {
                (task.started_at, task.finished_at) = (file.started_at, file.finished_at);
            }
            continue;
        }
        if !changed.contains(&task.id) {
            take_state(task, file, &document.fields);
        } else if is_over(own(task)) != is_over(file.status) && !follows(file, &over_below) {
            overwritten.push(task.id.clone());
        }
    }
    overwritten
}

/// Returns true if the task's state follows from its subtasks alone. A task with calls of its own has its own progress.
fn is_derived(task: &Task) -> bool {
    let is_word_of_all = matches!(own(task), Status::Todo | Status::Done);
    is_word_of_all && !task.subtasks.is_empty() && task.metadata.tool_calls.is_empty()
}

/// Returns true for a status that is derived from subtasks. Blocked, failed, cancelled and skipped are set on the task itself.
fn is_word_of_progress(status: Status) -> bool {
    matches!(status, Status::Todo | Status::InProgress | Status::Done)
}

fn is_over(status: Status) -> bool {
    matches!(status, Status::Done | Status::Cancelled | Status::Skipped)
}

/// Returns whether all subtasks of each parent in the file are over.
fn over_below(document: &[Task]) -> BTreeMap<&TaskId, bool> {
    let mut over = BTreeMap::new();
    for task in document {
        if let Some(parent) = &task.parent {
            *over.entry(parent).or_insert(true) &= is_over(task.status);
        }
    }
    over
}

/// Returns true if the task's status in the file agrees with its subtasks in the file.
fn follows(file: &Task, over_below: &BTreeMap<&TaskId, bool>) -> bool {
    over_below.get(&file.id).is_none_or(|is_all_over| *is_all_over == is_over(file.status))
}

/// Returns the ancestors of every task that changed since the file was read: new or removed, moved, or with another status.
fn changed_below(tasks: &[Task], document: &[Task]) -> BTreeSet<TaskId> {
    let here_by_id: BTreeMap<&TaskId, &Task> = tasks.iter().map(|task| (&task.id, task)).collect();
    let there_by_id: BTreeMap<&TaskId, &Task> = document.iter().map(|task| (&task.id, task)).collect();
    let mut changed = BTreeSet::new();
    let mut mark = |parent: &Option<TaskId>| {
        let mut above = parent.as_ref();
        // Ancestors of a marked task are marked already: the walk stops there, and so ends for circular parents as well.
        while let Some(id) = above.filter(|id| changed.insert((*id).clone())) {
            above = here_by_id.get(id).and_then(|task| task.parent.as_ref());
        }
    };
    for task in tasks {
        let file = there_by_id.get(&task.id);
        // A derived status does not count as a change: comparing it would mark every parent above the one that is to be restored.
        if file.is_none_or(|file| !is_derived(task) && own(task) != own(file)) {
            mark(&task.parent);
        }
        if let Some(file) = file.filter(|file| file.parent != task.parent) {
            mark(&task.parent);
            mark(&file.parent);
        }
    }
    document.iter().filter(|file| !here_by_id.contains_key(&file.id)).for_each(|file| mark(&file.parent));
    // Removed tasks are visited here: the loop above only sees tasks that still exist.
    changed
}

fn take_state(task: &mut Task, file: &Task, fields: &[String]) {
    // `updatedAt` of the file still holds if nothing but the state differs: that difference is undone here.
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

/// Returns true if the task equals the one in the file, its state and times aside. Compares only fields that the format has.
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
