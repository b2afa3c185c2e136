//! The input and the result of an import.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::task::{Status, Task};
use crate::value::{TaskId, Timestamp};

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
    /// The records of the tasks, in the same order. Empty if each task is the record of its own id in `source`.
    pub records: Vec<ImportedRecord>,
    /// Sources whose file has moved: their names before and now.
    pub moved: Vec<(String, String)>,
    /// The fields that the source supports, by their JSON names; `metadata.NAME` stands for one member. Other fields
    /// are not changed.
    pub fields: Vec<String>,
    /// The mode.
    pub mode: ImportMode,
    /// True if open subtasks of a task that is done in the source become `todo`, and not `skipped`.
    pub reopen: bool,
}

/// A record in its source, as the task remembers it. A later import finds the task by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceRecord {
    /// The id of the record, or its text where the format has no ids.
    pub id: String,
    /// The headings and items above the record, outermost first, where the format has no ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub under: Vec<String>,
    /// The number of the record in its source, where the format has no ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<u64>,
    /// True if an import did not find the record any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// The prefix of the task's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The status that stands here for another one in the source, because the import adapted it. An export leaves the
    /// source's word alone while the task has this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapted: Option<Status>,
}

/// The record of an imported task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportedRecord {
    /// The source of the record; the source of the import if empty.
    pub source: String,
    /// The record.
    pub record: SourceRecord,
    /// The time of the last change that the record states itself.
    pub changed_at: Option<Timestamp>,
    /// The plan that a new task belongs to.
    pub plan: Option<String>,
    /// The source under which version 0.1 stored the record, if its file has moved since.
    pub from: Option<String>,
}

/// A record that a task in the store remembers.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundRecord {
    /// The task.
    pub task: TaskId,
    /// The source.
    pub source: String,
    /// The record; `None` if version 0.1 stored it, which did not store records.
    pub record: Option<SourceRecord>,
    /// The last values of the source, by field.
    pub values: BTreeMap<String, Value>,
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// Tasks whose record is older than the last export or the last change here, and was ignored.
    pub older: Vec<OlderRecord>,
    /// Parents that are open in the source and done here, because everything below them is.
    pub differs: Vec<DivergingField>,
    /// Open tasks that were skipped, because a task above them is done in the source.
    pub skipped: Vec<PreservedField>,
}

/// A record that was ignored, because it is older than the state here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OlderRecord {
    /// The task.
    pub task: TaskId,
    /// The time of the last change that the record states.
    pub there: Timestamp,
    /// The time of the last export or change here.
    pub here: Timestamp,
}

/// A field that an import left unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreservedField {
    /// The task.
    pub task: TaskId,
    /// The field.
    pub field: String,
    /// The reason.
    pub why: String,
}

/// A field that differs from the source. Exporting the same tasks overwrites the value in the source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
