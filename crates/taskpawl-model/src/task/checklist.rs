//! The checklist that a model keeps beside its work, as stored in events.

use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::task::spec::word_enum;

word_enum! {
    /// The status of a checklist item.
    ChecklistStatus {
        /// Not started.
        NotStarted = "not-started",
        /// In progress.
        InProgress = "in-progress",
        /// Completed, according to the model. Nothing verifies it.
        Completed = "completed",
    }
}

/// An item of a checklist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChecklistItem {
    /// The id chosen by the model; by convention a number from 1.
    pub id: Number,
    /// The work to do, in the words of the model. It may contain inline Markdown and any character.
    pub title: String,
    /// The status.
    pub status: ChecklistStatus,
}
