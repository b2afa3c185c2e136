//! Statuses as other programs see them.

use taskpawl_model::task::{ActorKind, BlockedReason, Claim, Status, Task};
use taskpawl_model::value::{Timestamp, format_time};

/// The reason of a blocked task whose file has no reason.
pub(crate) const IMPORTED: &str = "imported";

/// Returns the task's own status. A block counts only if it is manual, interrupted or without a reason. Any other block follows from
/// this plan, and is `todo` for other programs.
pub(crate) fn own(task: &Task) -> Status {
    match (&task.status, &task.blocked_reason) {
        (Status::Blocked, Some(BlockedReason::Manual { .. } | BlockedReason::Interrupted { .. }) | None) => {
            Status::Blocked
        }
        (Status::Blocked, _) => Status::Todo,
        (status, _) => *status,
    }
}

/// Sets a status with the fields that belong to it. The assignee becomes the holder of a task in progress.
pub(crate) fn set(task: &mut Task, status: Status, why: Option<&str>) {
    task.status = status;
    match status {
        Status::Blocked => {
            let text = why.unwrap_or(IMPORTED).to_owned();
            task.blocked_reason = Some(BlockedReason::Manual { text });
        }
        Status::InProgress => {
            let actor = task.options.get("assignee").and_then(serde_json::Value::as_str).unwrap_or_default();
            task.claim = Some(Claim {
                run: None,
                actor: actor.into(),
                kind: ActorKind::Unknown,
                lease_until: None,
                lease: None,
            });
        }
        Status::Failed | Status::Cancelled | Status::Skipped => task.error = why.map(str::to_owned),
        Status::Todo | Status::Done => {}
    }
}

/// Returns the reason of a task that another program defers until a time.
pub(crate) fn put_off(until: Timestamp, program: &str) -> String {
    format!("put off until {} in {program}", format_time(until))
}

/// Returns true if the task is blocked for that reason alone.
pub(crate) fn is_put_off(task: &Task, until: Option<Timestamp>, program: &str) -> bool {
    let Some(BlockedReason::Manual { text }) = &task.blocked_reason else { return false };
    until.is_some_and(|until| *text == put_off(until, program))
}

/// Returns true if a preserved status still fits the task. A parent task that other programs show as in progress is `todo` here while it
/// waits for its subtasks.
pub(crate) fn fits(task: &Task, status: Status) -> bool {
    let own = own(task);
    status == own || (status == Status::InProgress && own == Status::Todo && !task.subtasks.is_empty())
}
