//! The content of the file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use taskpawl_model::{
    Event, Key, KeySpace, PlanRecord, RequestRecord, RunId, RunRecord, Task, TaskId, Timestamp, ViewResult,
    read_task,
};

use crate::memory::{Kept, State};

/// The file: what people read comes first, what only the store needs comes last.
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
    /// Runs that are forgotten, and when.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) pruned_runs: BTreeMap<RunId, Timestamp>,
    #[serde(default)]
    pub(super) events: Vec<Event>,
    /// With the plans that they belonged to.
    #[serde(default)]
    pub(super) deleted_ids: BTreeMap<TaskId, Option<String>>,
    /// What plans applied last, as JSON text, by task.
    #[serde(default)]
    pub(super) applied: BTreeMap<TaskId, String>,
    /// What it takes to undo commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) undo: Vec<Kept>,
    /// What was done by requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) requests: Vec<RequestRecord>,
    /// The first part of idempotency keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key_space: Option<KeySpace>,
    #[serde(default)]
    pub(super) index: Index,
    /// What this version does not know.
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

/// What the store needs to know again.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Index {
    pub(super) next_key: u32,
    pub(super) tasks: BTreeMap<TaskId, Mark>,
}

/// What the store knows of a task that it wrote.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Mark {
    /// Other processes know the task by it: it stays.
    pub(super) key: Key,
    /// Tells whether the task was edited from outside.
    pub(super) seal: String,
}

impl Document {
    pub(super) fn new(state: &State, version: i64, extra: Map<String, Value>) -> ViewResult<Self> {
        let mut tasks = Vec::with_capacity(state.entries.len());
        let mut marks = BTreeMap::new();
        let mut applied = BTreeMap::new();
        for (key, entry) in state.entries.iter() {
            let task = read_task(state, key)?.expect("BUG: every entry is a task");
            marks.insert(task.id.clone(), Mark { key, seal: seal(&task) });
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
            key_space: state.key_space.clone(),
            index: Index { next_key: state.next_key, tasks: marks },
            extra,
        })
    }

    pub(super) fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("BUG: what was read as JSON is written again") + "\n"
    }
}

/// Returns a number that changes with the content of a task (FNV-1a). It is no protection: whoever edits the file may.
pub(super) fn seal(task: &Task) -> String {
    let text = serde_json::to_vec(task).expect("BUG: what was read as JSON is written again");
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", text.iter().fold(0xcbf2_9ce4_8422_2325, step))
}
