//! Checklists in the form in which stores and hosts see them.

use taskpawl_model::task::{ChecklistItem, ChecklistStatus};

use crate::list::{Item, ItemId, State};

pub(crate) fn state(status: ChecklistStatus) -> State {
    match status {
        ChecklistStatus::NotStarted => State::Open,
        ChecklistStatus::InProgress => State::Active,
        ChecklistStatus::Completed => State::Done,
    }
}

pub(crate) fn status(state: State) -> ChecklistStatus {
    match state {
        State::Open => ChecklistStatus::NotStarted,
        State::Active => ChecklistStatus::InProgress,
        State::Done | State::Cancelled => ChecklistStatus::Completed,
    }
}

/// Returns an item in the form that is published.
pub(crate) fn shown(item: &Item) -> ChecklistItem {
    let id = match &item.id {
        ItemId::Number(number) => number.clone(),
        // Unreachable for lists of this dialect, whose ids are always numbers.
        ItemId::Text(_) => 0.into(),
    };
    ChecklistItem { id, title: item.title.clone(), status: status(item.state) }
}

/// Converts a published item back to a list item.
pub(crate) fn kept(item: &ChecklistItem) -> Item {
    Item { state: state(item.status), ..Item::new(ItemId::Number(item.id.clone()), item.title.clone()) }
}
