//! Answers and decisions.

use serde::{Deserialize, Serialize};

use super::{Needs, Paused, StartedCall};
use crate::advice::Advice;
use crate::command::import::ImportReport;
use crate::task::record::Node;
use crate::task::status::{BlockedReason, Status};
use crate::value::{Key, TaskId, Timestamp};

/// Answer to a command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Tasks that the command named, in the same order.
    pub tasks: Vec<TaskId>,
    /// Calls that the caller must start now.
    pub started: Vec<StartedCall>,
    /// Tasks that ended by this command, with their status: those it named, their parents and dependents.
    pub ended: Vec<(Key, Status)>,
    /// Tasks that became ready.
    pub ready: Vec<Node>,
    /// Tasks that were not claimed because this process does not have a tool that they need.
    pub missing_tools: Vec<(Key, String)>,
    /// Tasks that started to wait for a decision.
    pub asked: Vec<Key>,
    /// Tasks that were not claimed, with their unmet requirements.
    pub needs: Vec<(Key, Needs)>,
    /// Tasks of this run that pause.
    pub paused: Vec<Paused>,
    /// Number of signals that the command dropped.
    pub dropped_signals: u64,
    /// First end of the durable waits that began with the command.
    pub next_wake: Option<Timestamp>,
    /// Report of an apply.
    pub applied: Option<ApplyReport>,
    /// Report of an import.
    pub imported: Option<ImportReport>,
    /// Report of an undo.
    pub undone: Option<Undone>,
    /// True if this repeats an earlier request, so that nothing was changed.
    pub repeated: bool,
    /// Number of events that the command wrote. Together with `revision` this reveals writes of other processes in
    /// between.
    pub events: u64,
    /// Revision after the command; set by the store.
    pub revision: u64,
}

/// Report of an undo, or of a dry run of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Undone {
    /// Revision of the first event of the undone command.
    pub first: u64,
    /// Revision of its last event.
    pub last: u64,
    /// Name of the actor that gave the command.
    pub actor: String,
    /// Tasks restored to their earlier state, including deleted ones that exist again.
    pub restored: Vec<TaskId>,
    /// Tasks removed because the command had created them.
    pub removed: Vec<TaskId>,
}

/// Report of an apply, or of a dry run of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplyReport {
    /// Name of the plan.
    pub plan: String,
    /// Created tasks.
    pub created: Vec<TaskId>,
    /// Changed tasks.
    pub changed: Vec<TaskId>,
    /// Number of unchanged tasks.
    pub unchanged: u64,
    /// Tasks of the plan that are gone from the file but stay in the store.
    pub gone: Vec<TaskId>,
    /// Tasks cancelled because they are gone from the file.
    pub pruned: Vec<TaskId>,
    /// Number of reopened tasks.
    pub reopened: u64,
    /// Failed tasks that start again although their definition did not change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retried: Vec<TaskId>,
    /// Finished tasks whose work changed, and that keep the results of the work that ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<TaskId>,
    /// Changed tasks that do not continue by themselves: cancelled, blocked by hand or interrupted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<KeptStatus>,
    /// Changed fields of the plan itself. For a new plan only `notify` is listed, because it names a program to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub header: Vec<String>,
    /// Prefix of all task ids, before a dot. Set if the ids of the file were taken when the plan was first applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Ids of the file that were taken. Each of these tasks got the plan's name and a dot in front of its id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixed: Vec<TaskId>,
}

/// A task that took a changed definition and kept the status that a command or an interruption gave it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptStatus {
    /// Id of the task.
    pub id: TaskId,
    /// Its status.
    pub status: Status,
    /// Reason, if it is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<BlockedReason>,
}

impl KeptStatus {
    /// Returns the action that lets the task go on.
    pub fn advice(&self) -> Advice {
        match self.reason {
            Some(BlockedReason::Interrupted { .. }) => Advice::explain(&self.id),
            Some(_) => Advice::unblock(&self.id),
            None => Advice::reopen(&self.id),
        }
    }
}
