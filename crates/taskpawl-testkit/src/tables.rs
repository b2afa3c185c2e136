//! The table of states, written from its description and not from the code.

use taskpawl_model::Status;

/// Returns whether a task may go from one state to another at all.
pub(crate) fn may_follow(from: Status, to: Status) -> bool {
    use Status as S;
    match from {
        S::Todo => to != S::Todo,
        S::InProgress => matches!(to, S::Done | S::Failed | S::Todo | S::Blocked | S::Cancelled),
        // From one reason to another: what it waited for failed, or a second call was interrupted, too.
        S::Blocked => to != S::InProgress,
        S::Failed => matches!(to, S::Skipped | S::Cancelled | S::Todo),
        S::Cancelled | S::Skipped | S::Done => to == S::Todo,
    }
}
