//! Instances of scheduled plans in the store.

use taskpawl::model::task::{BlockedReason, Node, Origin, Status, TaskRecord, TaskStatus, Work};
use taskpawl::model::value::Selector;
use taskpawl::model::view::Query;
use taskpawl::{ApplyOptions, Error, Manager};
use taskpawl_schedule::{Activity, InstanceState};

use super::Schedule;
use crate::error::CliError;

/// Statuses of tasks that are not finished.
const OPEN: [Status; 3] = [Status::Todo, Status::InProgress, Status::Blocked];

/// Adds an instance to the store. An instance that is there already stays as it is, so that a server may repeat it after a
/// crash.
pub(crate) fn start(manager: &Manager, schedule: &Schedule, name: &str) -> Result<(), CliError> {
    let plan = schedule.plan()?.into_instance(name);
    let manager = manager.clone().with_origin(Origin::Plan);
    manager.apply(plan, name, ApplyOptions::default())?;
    Ok(())
}

/// Cancels what is left of an instance.
pub(crate) fn end(manager: &Manager, name: &str, reason: &str) -> Result<(), Error> {
    let open = manager.select(&[Selector::Plan(name.to_owned())], &OPEN)?;
    if !open.is_empty() {
        manager.cancel(&open, Some(reason.to_owned()))?;
    }
    Ok(())
}

/// Reads the state of an instance. Without tasks, which may have been deleted, it is done.
pub(crate) fn state(manager: &Manager, name: &str) -> Result<InstanceState, Error> {
    let activity = manager.read(|view| {
        let status = OPEN.into_iter().chain([Status::Failed]).collect();
        let keys = view.find(&Query { plan: Some(name.to_owned()), status, ..Query::default() })?;
        let mut activity = Activity::default();
        for key in keys {
            if let (Some(node), Some(task)) = (view.node(key)?, view.task(key)?) {
                *place_in(&mut activity, &node, &task) += 1;
            }
        }
        Ok(activity)
    })?;
    Ok(InstanceState::of(activity))
}

/// Returns the count that a task belongs to.
fn place_in<'a>(activity: &'a mut Activity, node: &Node, task: &TaskRecord) -> &'a mut u64 {
    let sleeps = task.body.progress.waiting_for.is_some();
    match &task.body.state {
        TaskStatus::Failed { .. } => &mut activity.failed,
        TaskStatus::Todo | TaskStatus::InProgress { .. } if sleeps => &mut activity.active,
        TaskStatus::Todo if node.is_ready() && node.work == Work::Manual => &mut activity.held,
        TaskStatus::Todo if node.is_ready() => &mut activity.active,
        TaskStatus::InProgress { claim } if claim.run.is_some() => &mut activity.active,
        // A parent goes on with its subtasks, which are counted themselves.
        TaskStatus::InProgress { .. } if node.work != Work::Automatic => &mut activity.held,
        TaskStatus::Blocked { reason } if waits_for_people(reason) => &mut activity.held,
        TaskStatus::Todo
        | TaskStatus::InProgress { .. }
        | TaskStatus::Blocked { .. }
        | TaskStatus::Done
        | TaskStatus::Cancelled { .. }
        | TaskStatus::Skipped { .. } => &mut activity.stuck,
    }
}

fn waits_for_people(reason: &BlockedReason) -> bool {
    match reason {
        BlockedReason::Approval { .. }
        | BlockedReason::MissingTool { .. }
        | BlockedReason::Interrupted { .. }
        | BlockedReason::Manual { .. } => true,
        BlockedReason::Dependency { .. } | BlockedReason::Waiting { .. } => false,
    }
}
