//! The checklist that a model keeps beside its work, as the events of a store tell of it.

use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::spec::word_enum;

word_enum! {
    /// How far an item of a checklist is.
    ChecklistStatus {
        /// Nobody has begun it.
        NotStarted = "not-started",
        /// It is being worked on.
        InProgress = "in-progress",
        /// It is done, as the model says.
        Completed = "completed",
    }
}

/// An item of a checklist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChecklistItem {
    /// What the model calls it; by convention counted from 1.
    pub id: Number,
    /// What is to be done, as the model wrote it: it may hold inline Markdown and any character.
    pub title: String,
    /// How far it is.
    pub status: ChecklistStatus,
}
