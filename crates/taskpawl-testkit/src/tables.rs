//! Table of allowed status changes, written from its description and not from the code.

use taskpawl_model::task::Status;

/// Returns whether a task may change from one status to another.
pub(crate) fn may_follow(from: Status, to: Status) -> bool {
    use Status as S;
    match from {
        S::Todo => to != S::Todo,
        S::InProgress => matches!(to, S::Done | S::Failed | S::Todo | S::Blocked | S::Cancelled),
        // The reason may change: a dependency that it waited for failed, or a second call was interrupted.
        S::Blocked => to != S::InProgress,
        S::Failed => matches!(to, S::Skipped | S::Cancelled | S::Todo),
        S::Cancelled | S::Skipped | S::Done => to == S::Todo,
    }
}
