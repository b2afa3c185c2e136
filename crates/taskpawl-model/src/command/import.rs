//! The input and the result of an import.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::task::Task;
use crate::value::TaskId;

/// Tasks of another program, to be imported with their statuses.
///
/// Of tasks that came from the same source before, only changes in the source are imported; local changes stay. Nothing
/// imported counts as executed work: statuses are recorded as imported, calls are those of an agent, and approvals are
/// ignored.
#[derive(Debug, Clone, Default)]
pub struct Import {
    /// The source, as a text. Equal texts mean the same source.
    pub source: String,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// The fields that the source supports, by their JSON names; `metadata.NAME` stands for one member. Other fields
    /// are not changed.
    pub fields: Vec<String>,
    /// The mode.
    pub mode: ImportMode,
}

/// The mode of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ImportMode {
    /// Creates tasks, and changes those that came from the same source.
    #[default]
    Merge,
    /// Also changes tasks with the same ids from elsewhere. If they differ, the source wins.
    Adopt,
    /// Changes no task. Only records that the source has this content, because it was just exported.
    Record,
}

/// The result of an import, or of a dry run of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    /// The source.
    pub source: String,
    /// Created tasks.
    pub created: Vec<TaskId>,
    /// Changed tasks.
    pub changed: Vec<TaskId>,
    /// The number of unchanged tasks.
    pub unchanged: u64,
    /// Fields of the source that were not imported.
    pub kept: Vec<PreservedField>,
    /// Fields that differ between the source and the store, because they were not imported now or earlier.
    pub apart: Vec<DivergingField>,
    /// Tasks that came from the source before and are no longer in it. They stay in the store.
    pub gone: Vec<TaskId>,
    /// Those of them that were changed locally since the last import.
    pub gone_changed: Vec<TaskId>,
}

/// A field that an import left unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PreservedField {
    /// The task.
    pub task: TaskId,
    /// The field.
    pub field: String,
    /// The reason.
    pub why: String,
}

/// A field that differs from the source. Exporting the same tasks overwrites the value in the source.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DivergingField {
    /// The task.
    pub task: TaskId,
    /// The field.
    pub field: String,
    /// The value in the store; `null` if absent.
    pub here: Value,
    /// The value in the source.
    pub there: Value,
}

/// The last values of the fields of a task in each source, by source and field. They are stored beside the
/// specification that its plan applied.
pub(crate) type SourceValues = BTreeMap<String, BTreeMap<String, Value>>;
