//! What an import asks for, and what it answers.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::{Task, TaskId};

/// Tasks that another program keeps, to be brought into the store with their states.
///
/// Of tasks that came from the same source before, only what changed there is taken over; what was changed here meanwhile stays.
/// Nothing of it counts as work that ran: states are recorded as imported, calls are those of an agent, approvals are not taken.
#[derive(Debug, Clone, Default)]
pub struct Import {
    /// Where they come from: the same text means the same place.
    pub source: String,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// What the source can say of a task, by the names of fields on the outside; `metadata.NAME` stands for one member. The rest of
    /// a task is left alone.
    pub fields: Vec<String>,
    /// What is done.
    pub mode: ImportMode,
}

/// What an import does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ImportMode {
    /// Makes tasks, and changes those that came from the same source.
    #[default]
    Merge,
    /// Also changes tasks of the same ids that did not come from there: where they differ, the source counts.
    Adopt,
    /// Changes no task: notes that the source says this of tasks that are here, because it was just written from them.
    Record,
}

/// What an import did or would do.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    /// Where the tasks come from.
    pub source: String,
    /// Tasks that are new.
    pub created: Vec<TaskId>,
    /// Tasks that changed.
    pub changed: Vec<TaskId>,
    /// How many stayed as they were.
    pub unchanged: u64,
    /// What the source says and was not taken over.
    pub kept: Vec<Kept>,
    /// What is said in one way here and in another there, since it was not taken over, now or before.
    pub apart: Vec<Apart>,
    /// Tasks that came from there before and are gone from it; they stay.
    pub gone: Vec<TaskId>,
    /// Those of them that are here in another way than they were there last.
    pub gone_changed: Vec<TaskId>,
}

/// Something that an import left as it is here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// The task.
    pub task: TaskId,
    /// The field.
    pub field: String,
    /// Why.
    pub why: String,
}

/// A field in which a source was not followed: an export of the same tasks takes the place of what it says.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Apart {
    /// The task.
    pub task: TaskId,
    /// The field.
    pub field: String,
    /// What it says here; `null` for nothing.
    pub here: Value,
    /// What it says there.
    pub there: Value,
}

/// What sources said last of a task, by source and field: kept beside what its plan applied.
pub(crate) type Said = BTreeMap<String, BTreeMap<String, Value>>;
