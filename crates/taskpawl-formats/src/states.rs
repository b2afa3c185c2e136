//! States as other programs see them.

use taskpawl_model::{ActorKind, BlockedReason, Claim, Status, Task, Timestamp, format_time};

/// Why a task is blocked of which its file does not say it.
pub(crate) const IMPORTED: &str = "imported";

/// Returns the state of a task as a matter of its own: what follows from others, or from what is asked here, is `todo` elsewhere.
pub(crate) fn own(task: &Task) -> Status {
    match (&task.status, &task.blocked_reason) {
        (Status::Blocked, Some(BlockedReason::Manual { .. } | BlockedReason::Interrupted { .. }) | None) => {
            Status::Blocked
        }
        (Status::Blocked, _) => Status::Todo,
        (status, _) => *status,
    }
}

/// Gives a task its state, with what belongs to it. The holder of a task in progress is whom it is assigned to, if anybody.
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

/// Says why a task is blocked that its program shows only from a time on.
pub(crate) fn put_off(until: Timestamp, program: &str) -> String {
    format!("put off until {} in {program}", format_time(until))
}

/// Returns whether a task is blocked for that alone.
pub(crate) fn is_put_off(task: &Task, until: Option<Timestamp>, program: &str) -> bool {
    let Some(BlockedReason::Manual { text }) = &task.blocked_reason else { return false };
    until.is_some_and(|until| *text == put_off(until, program))
}

/// Returns whether a state that a word stands for is still that of a task. What is above others is in progress elsewhere while it
/// is only waiting for them here.
pub(crate) fn fits(task: &Task, status: Status) -> bool {
    let own = own(task);
    status == own || (status == Status::InProgress && own == Status::Todo && !task.subtasks.is_empty())
}
