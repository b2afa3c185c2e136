//! Table of allowed status changes, written from its description and not from the code.

use taskpawl_model::task::{Cause, Status};

/// Returns whether a task may change from one status to another.
pub(crate) fn may_follow(from: Status, to: Status, cause: Cause) -> bool {
    use Status as S;
    match from {
        // A task with an attempt behind it starts over.
        S::Todo => to != S::Todo || matches!(cause, Cause::Retry | Cause::Reopen),
        // A durable wait takes the task from its run.
        S::InProgress if to == S::InProgress => cause == Cause::Wait,
        S::InProgress => matches!(to, S::Done | S::Failed | S::Todo | S::Blocked | S::Cancelled),
        // The reason may change: a dependency that it waited for failed, or a second call was interrupted.
        S::Blocked => to != S::InProgress,
        S::Failed => matches!(to, S::Skipped | S::Cancelled | S::Todo),
        S::Cancelled | S::Skipped | S::Done => to == S::Todo,
    }
}
