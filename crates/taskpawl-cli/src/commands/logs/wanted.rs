//! The tasks and starts whose output is wanted.

use std::collections::BTreeSet;

use taskpawl::model::task::{EventKind, Status, Task};
use taskpawl::model::value::{CallId, TaskId};
use taskpawl::{HistoryEntry, HistoryFilter, Manager, Taskpawl};

use super::args::Args;
use crate::error::CliError;

/// Starts of calls: task, call and number of the start.
pub(super) type Starts = BTreeSet<(TaskId, CallId, u32)>;

/// The tasks whose output is wanted.
pub(super) struct Wanted {
    /// The task that the user named.
    pub(super) task: Option<Task>,
    /// The tasks that hold the calls.
    pub(super) tasks: Vec<Task>,
    /// The starts of calls in the wanted run.
    pub(super) starts: Option<Starts>,
}

impl Wanted {
    pub(super) fn of(plans: &Taskpawl, args: &Args) -> Result<Self, CliError> {
        let manager = plans.manager();
        let get = |id: &TaskId| manager.get(id.as_str());
        let starts = args.run.as_deref().map(|run| starts_in(manager, run)).transpose()?;
        if let Some(id) = &args.id {
            let task = manager.get(id)?;
            check(args, &task)?;
            let tasks = running_tasks(plans, &task)?;
            return Ok(Self { task: Some(task), tasks, starts });
        }
        let Some(started) = &starts else {
            let failed = manager.select(&[], &[Status::Failed])?;
            let tasks = failed.iter().map(|id| manager.get(id)).collect::<Result<_, _>>()?;
            return Ok(Self { task: None, tasks, starts });
        };
        let tasks: BTreeSet<&TaskId> = started.iter().map(|(task, ..)| task).collect();
        // A task that was deleted since then has no output any more.
        let tasks = tasks.into_iter().filter_map(|id| get(id).ok()).collect();
        Ok(Self { task: None, tasks, starts })
    }
}

/// Returns the starts of calls in a run.
fn starts_in(manager: &Manager, run: &str) -> Result<Starts, CliError> {
    let filter = HistoryFilter { run: Some(manager.find_run(run)?.to_string()), ..HistoryFilter::default() };
    let started = |entry: HistoryEntry| {
        if let EventKind::CallStarted { call, start, .. } = entry.event.kind {
            return Some((entry.event.task?, call, start));
        }
        None
    };
    Ok(manager.find_history(&filter)?.into_iter().filter_map(started).collect())
}

/// Returns the tasks that hold the calls: the items of a `forEach`, otherwise the task itself.
pub(super) fn running_tasks(plans: &Taskpawl, task: &Task) -> Result<Vec<Task>, CliError> {
    if !task.options.contains_key("forEach") {
        return Ok(vec![task.clone()]);
    }
    // A `forEach` is no caller itself: each item is a subtask with a copy of the calls.
    let subtasks = task.subtasks.iter().map(|id| plans.manager().get(id.as_str()));
    let mut items = subtasks.collect::<Result<Vec<_>, _>>()?;
    items.retain(|item| item.progress.item.is_some());
    items.sort_by_key(place_of_item);
    Ok(items)
}

/// Returns the index of an item in its `forEach`.
pub(super) fn place_of_item(task: &Task) -> usize {
    task.progress.item.as_ref().map_or(0, |item| usize::try_from(item.index).unwrap_or(usize::MAX))
}

/// Refuses a call that the task does not have.
fn check(args: &Args, task: &Task) -> Result<(), CliError> {
    let Some(call) = &args.call else { return Ok(()) };
    let calls: Vec<&str> = task.metadata.tool_calls.iter().map(|call| call.id.as_str()).collect();
    if calls.contains(&call.as_str()) {
        return Ok(());
    }
    let hint = match calls.as_slice() {
        [] => "it has none".to_owned(),
        calls => format!("it has {}", calls.join(", ")),
    };
    Err(CliError::usage_with(format!("task `{}` has no call `{call}`", task.id), hint))
}
