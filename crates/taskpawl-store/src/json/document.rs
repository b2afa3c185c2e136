//! The content of a `json:` store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use taskpawl_model::command::RequestRecord;
use taskpawl_model::task::Event;
use taskpawl_model::task::{KeySpace, PlanRecord, RunRecord, SignalRecord, Task};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{Key, RunId, TaskId};
use taskpawl_model::view::ViewResult;
use taskpawl_model::view::read_task;

use crate::memory::{State, UndoEntry};

/// The file, in an order for people: tasks and plans first, internal bookkeeping last.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document {
    pub(super) schema_version: i64,
    pub(super) revision: u64,
    pub(super) tasks: Vec<Task>,
    #[serde(default)]
    pub(super) plans: Vec<PlanRecord>,
    #[serde(default)]
    pub(super) runs: Vec<RunRecord>,
    /// Ids of pruned runs, with the time of the pruning.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) pruned_runs: BTreeMap<RunId, Timestamp>,
    #[serde(default)]
    pub(super) events: Vec<Event>,
    /// Ids of deleted tasks, with the plan of each.
    #[serde(default)]
    pub(super) deleted_ids: BTreeMap<TaskId, Option<String>>,
    /// The last applied definition of each task of a plan, as JSON text. `apply` compares a new plan with it.
    #[serde(default)]
    pub(super) applied: BTreeMap<TaskId, String>,
    /// The undo snapshots of commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) undo: Vec<UndoEntry>,
    /// The results of idempotent requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) requests: Vec<RequestRecord>,
    /// The signals that no task has taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) signals: Vec<SignalRecord>,
    /// The random prefix of idempotency keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key_space: Option<KeySpace>,
    #[serde(default)]
    pub(super) index: Index,
    /// Unknown fields, which survive a rewrite.
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

/// Bookkeeping that cannot be derived from the tasks.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Index {
    pub(super) next_key: u32,
    pub(super) tasks: BTreeMap<TaskId, TaskSeal>,
}

/// Bookkeeping for one task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TaskSeal {
    /// The numeric key. It never changes, because other processes may refer to the task by it.
    pub(super) key: Key,
    /// Hash of the task as the store wrote it; a different hash means that the task was edited from outside.
    pub(super) seal: String,
}

impl Document {
    pub(super) fn new(state: &State, version: i64, extra: Map<String, Value>) -> ViewResult<Self> {
        let mut tasks = Vec::with_capacity(state.entries.len());
        let mut marks = BTreeMap::new();
        let mut applied = BTreeMap::new();
        for (key, entry) in state.entries.iter() {
            let task = read_task(state, key)?.expect("BUG: every entry is a task");
            marks.insert(task.id.clone(), TaskSeal { key, seal: seal(&task) });
            applied.extend(entry.applied.clone().map(|spec| (task.id.clone(), spec)));
            tasks.push(task);
        }
        Ok(Self {
            schema_version: version,
            revision: state.revision,
            tasks,
            plans: state.plans.values().cloned().collect(),
            runs: state.runs.clone(),
            pruned_runs: state.pruned_runs.clone(),
            events: state.events.clone(),
            deleted_ids: state.deleted.clone(),
            applied,
            undo: state.undo.values().cloned().collect(),
            requests: state.requests.values().cloned().collect(),
            signals: state.signals.clone(),
            key_space: state.key_space.clone(),
            index: Index { next_key: state.next_key, tasks: marks },
            extra,
        })
    }

    pub(super) fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("BUG: what was read as JSON is written again") + "\n"
    }
}

/// Returns a hash (FNV-1a) of the content of a task. It only detects edits and is no protection: users may
/// edit the file.
pub(super) fn seal(task: &Task) -> String {
    let text = serde_json::to_vec(task).expect("BUG: what was read as JSON is written again");
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", text.iter().fold(0xcbf2_9ce4_8422_2325, step))
}
