//! Facts derived on reading: the tasks that a task waits for, and those that block it.

use std::collections::BTreeMap;

use crate::task::UNKNOWN_END;
use crate::task::gate::{Entry, Gate, GateState, Outcome};
use crate::task::record::Node;
use crate::task::spec::Trigger;
use crate::task::status::BlockedReason;
use crate::task::wire::{Task, TaskParts};
use crate::value::{CallId, Key, RunId, TaskId};
use crate::view::{ReadGraph, ReadTasks, View, ViewError, ViewResult};

pub(crate) fn missing(key: Key) -> ViewError {
    ViewError(format!("the store has no task {key}, but a record refers to it").into())
}

pub(crate) fn known_node(view: &(impl ReadGraph + ?Sized), key: Key) -> ViewResult<Node> {
    view.node(key)?.ok_or_else(|| missing(key))
}

fn known_id(view: &(impl ReadTasks + ?Sized), key: Key) -> ViewResult<TaskId> {
    view.id(key)?.ok_or_else(|| missing(key))
}

/// Returns the reason for being blocked, completed with the ids that the store does not keep: those of `dependency` and
/// `waiting`.
///
/// # Errors
/// The view cannot be read.
pub fn blocked_reason(view: &dyn View, key: Key, kept: &BlockedReason) -> Result<BlockedReason, ViewError> {
    full_reason(view, key, kept)
}

/// Returns the details of an interruption of a call, if any are known.
///
/// # Errors
/// The view cannot be read.
pub fn why_interrupted(view: &dyn View, key: Key, call: &CallId) -> Result<Option<String>, ViewError> {
    let calls = view.calls(key)?;
    let error = calls.iter().find(|other| other.id == *call).and_then(|call| call.body.error.as_ref());
    Ok(error.filter(|error| error.message != UNKNOWN_END).map(|error| error.message.clone()))
}

pub(crate) fn full_reason(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    key: Key,
    kept: &BlockedReason,
) -> ViewResult<BlockedReason> {
    Ok(match kept {
        BlockedReason::Dependency { .. } => BlockedReason::Dependency { ids: failed_before(view, key)? },
        BlockedReason::Waiting { .. } => BlockedReason::Waiting { ids: waiting_for(view, key)? },
        BlockedReason::Approval { .. }
        | BlockedReason::MissingTool { .. }
        | BlockedReason::Interrupted { .. }
        | BlockedReason::Manual { .. } => kept.clone(),
    })
}

/// Returns the direct dependencies, the subtasks and the parent that keep the gate from ever opening.
pub(crate) fn failed_before(
    view: &(impl ReadTasks + ReadGraph + ?Sized),
    key: Key,
) -> ViewResult<Vec<TaskId>> {
    let node = known_node(view, key)?;
    let above = node.parent.filter(|_| node.gate.entry == Entry::Shut);
    let mut ids = Vec::new();
    let own = Gate { entry: Entry::Open, undecided: false, ..node.gate };
    let is_shut = own.before_subtasks() == GateState::Block;
    // If one dependency has to be done, skipped ones are in the way as well.
    let is_in_the_way = |outcome| match outcome {
        Outcome::Failed => is_shut,
        Outcome::Skipped => is_shut && own.trigger == Trigger::AnyDone,
        Outcome::Open | Outcome::Done => false,
    };
    for other in above.into_iter().chain(view.dependencies(key)?) {
        if Some(other) == above || is_in_the_way(known_node(view, other)?.status_kind.outcome()) {
            ids.push(known_id(view, other)?);
        }
    }
    for subtask in view.subtasks(key)? {
        if known_node(view, subtask)?.status_kind.outcome_above() == Outcome::Failed {
            ids.push(known_id(view, subtask)?);
        }
    }
    Ok(ids)
}

/// Returns the direct dependencies, the subtasks and the parent that are not finished.
pub(crate) fn waiting_for(view: &(impl ReadTasks + ReadGraph + ?Sized), key: Key) -> ViewResult<Vec<TaskId>> {
    let node = known_node(view, key)?;
    let above = node.parent.filter(|_| node.gate.entry == Entry::Waiting);
    let mut ids = Vec::new();
    for other in above.into_iter().chain(view.dependencies(key)?).chain(view.subtasks(key)?) {
        if known_node(view, other)?.status_kind.outcome_above() == Outcome::Open {
            ids.push(known_id(view, other)?);
        }
    }
    Ok(ids)
}

/// Returns the cancelled tasks with calls that have not ended, and the runs that end them.
///
/// # Errors
/// The view cannot be read.
pub fn ending(view: &dyn View) -> ViewResult<BTreeMap<TaskId, RunId>> {
    let runs = view.open_runs()?.into_iter();
    Ok(runs.flat_map(|run| run.ending.into_keys().map(move |task| (task, run.id.clone()))).collect())
}

/// Reads a task in flat form; `None` if the view has no task with this key.
///
/// # Errors
/// The view cannot be read.
pub fn read_task(view: &dyn View, key: Key) -> Result<Option<Task>, ViewError> {
    let (Some(record), Some(node)) = (view.task(key)?, view.node(key)?) else { return Ok(None) };
    let reason = record.body.state.blocked_reason();
    let reason = reason.map(|reason| crate::view::read::blocked_reason(view, key, reason)).transpose()?;
    let parts = TaskParts {
        calls: view.calls(key)?,
        dependencies: ids(view, &view.dependencies(key)?)?,
        subtasks: ids(view, &view.subtasks(key)?)?,
        parent: parent_id(view, &node)?,
        record,
    };
    Ok(Some(Task::from_parts(parts, reason)))
}

fn ids(view: &dyn View, keys: &[Key]) -> Result<Vec<TaskId>, ViewError> {
    let ids = keys.iter().map(|key| view.id(*key)).collect::<Result<Vec<_>, _>>()?;
    Ok(ids.into_iter().flatten().collect())
}

fn parent_id(view: &dyn View, node: &Node) -> Result<Option<TaskId>, ViewError> {
    Ok(node.parent.map(|parent| view.id(parent)).transpose()?.flatten())
}
