//! Events: stored facts about changes, in one global order.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checklist::ChecklistItem;
use crate::spec::{Map, Timestamp};
use crate::status::{BlockedReason, CallStatus, Cause, Status};
use crate::{ActorKind, CallId, Key, RunId, SharedText, TaskId};

/// A change, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The position in the store: counted from 1, without gaps.
    pub revision: u64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: SharedText,
    /// The kind of the actor; `unknown` for what a run did itself, and where the name alone was recorded.
    #[serde(default, skip_serializing_if = "crate::spec::is_default")]
    pub actor_kind: ActorKind,
    /// In which run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// To which task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
    /// Tasks that became ready with it: for dispatchers of other processes.
    #[serde(default, skip_serializing_if = "<[Key]>::is_empty")]
    pub ready: Box<[Key]>,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum EventKind {
    /// A task was made.
    Created(Box<TaskCreated>),
    /// Fields of a task changed.
    Updated {
        /// Before and after, by field; `null` where it was or is absent.
        fields: std::collections::BTreeMap<String, Change>,
    },
    /// A task was deleted.
    Deleted {
        /// The task as it was, in the form of `show --json`. The event itself has a `task`, and stands in one object with this.
        #[serde(rename = "was", alias = "task")]
        task: Value,
    },
    /// The state of a task changed.
    Status {
        /// Before.
        from: Status,
        /// After.
        to: Status,
        /// What asked for it.
        cause: Cause,
        /// Why it is blocked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Box<BlockedReason>>,
        /// What was said about it: an error, a reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The attempt that it belongs to.
        attempt: u32,
        /// When the lease of an agent's claim ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease_until: Option<Timestamp>,
    },
    /// The holder of a claim renewed its lease.
    Renewed {
        /// When it ends now.
        lease_until: Timestamp,
    },
    /// A tool call starts; this is durable before the tool is started.
    CallStarted {
        /// The call.
        call: CallId,
        /// The attempt of the task.
        attempt: u32,
        /// Which start of the call this is.
        start: u32,
    },
    /// A tool call ended.
    CallEnded {
        /// The call.
        call: CallId,
        /// The attempt of the task.
        attempt: u32,
        /// How.
        status: CallStatus,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Box<str>>,
        /// When it is started again, if it failed and is tried again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again_at: Option<Timestamp>,
    },
    /// The last call has ended that ran on when its task was cancelled: what the task held is free.
    Stopped {
        /// The attempt of the task.
        attempt: u32,
    },
    /// A round of `repeat` is over, and another one follows.
    RoundEnded {
        /// Which.
        round: u32,
        /// How many there may be.
        of: u32,
        /// When the next one begins; at once without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again_at: Option<Timestamp>,
    },
    /// A tool call was added.
    CallAdded {
        /// The call.
        call: CallId,
        /// Its tool.
        tool: String,
    },
    /// A dependency was added.
    DependencyAdded {
        /// What the task depends on now.
        on: TaskId,
    },
    /// A dependency was removed.
    DependencyRemoved {
        /// What the task no longer depends on.
        on: TaskId,
    },
    /// The task was put below another one, or at the top.
    Moved {
        /// The task above before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<TaskId>,
        /// The task above now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<TaskId>,
    },
    /// Somebody remarked something.
    Noted {
        /// The text.
        text: String,
    },
    /// A plan was applied.
    Applied(Box<PlanApplied>),
    /// A command was undone; what came back by that follows as events of the tasks.
    Undone {
        /// The revision of its first event.
        first: u64,
        /// The revision of its last event.
        last: u64,
    },
    /// A run started.
    RunStarted {
        /// What it is restricted to.
        scope: Vec<String>,
    },
    /// A run ended.
    RunFinished {
        /// With which exit code.
        exit: u8,
        /// What became of the tasks that it ended.
        counts: std::collections::BTreeMap<String, u64>,
    },
    /// A run was found to have ended without finishing.
    RunKilled {},
    /// Runs were forgotten, or their output was removed; files that a crash leaves behind are removed by the next prune.
    Pruned {
        /// How many runs were forgotten.
        runs: u64,
        /// Of how many others the output was removed.
        outputs: u64,
        /// How many files are removed.
        files: u64,
        /// How many bytes these have.
        bytes: u64,
        /// Commands that were given before cannot be undone any more, and requests are not remembered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Timestamp>,
    },
    /// The file of a JSON store was edited by something else.
    ExternalEdit {
        /// The tasks that differ.
        tasks: Vec<TaskId>,
    },
    /// The checklist that a model keeps beside its work has changed; no task is concerned.
    Checklist(Box<ChecklistChanged>),
    /// A kind that this version does not know.
    #[serde(untagged)]
    Unknown(Map),
}

/// How a task was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskCreated {
    /// Its name.
    pub name: String,
    /// The task above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// What it depends on, as far as the list is short; the edges have the whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<TaskId>,
    /// The plan that it came with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<SharedText>,
}

/// What applying a plan came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanApplied {
    /// Its name.
    pub plan: String,
    /// Tasks made.
    pub created: u64,
    /// Tasks changed.
    pub changed: u64,
    /// Tasks cancelled because they are gone from the file.
    pub pruned: u64,
    /// The program that it tells about its tasks, where that was not so before; empty where it tells none any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Vec<String>>,
}

/// A checklist as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChecklistChanged {
    /// Whose it is: a conversation or a session.
    pub scope: String,
    /// All of it, in order; nothing for a list that is over.
    pub items: Vec<ChecklistItem>,
    /// Whether somebody else asks for it to be emptied: who keeps the list does so before the next answer.
    #[serde(default, skip_serializing_if = "crate::spec::is_default")]
    pub cleared: bool,
    /// The lock that is held for as long as its process is there; none where that cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper: Option<String>,
    /// Whether the list stays for review when its process ends.
    #[serde(default, skip_serializing_if = "crate::spec::is_default")]
    pub kept: bool,
}

impl EventKind {
    /// Returns the word of the event's `type`.
    pub fn name(&self) -> &str {
        match self {
            Self::Created(_) => "created",
            Self::Updated { .. } => "updated",
            Self::Deleted { .. } => "deleted",
            Self::Status { .. } => "status",
            Self::Renewed { .. } => "renewed",
            Self::CallStarted { .. } => "call_started",
            Self::CallEnded { .. } => "call_ended",
            Self::Stopped { .. } => "stopped",
            Self::RoundEnded { .. } => "round_ended",
            Self::CallAdded { .. } => "call_added",
            Self::DependencyAdded { .. } => "dependency_added",
            Self::DependencyRemoved { .. } => "dependency_removed",
            Self::Moved { .. } => "moved",
            Self::Noted { .. } => "noted",
            Self::Applied(_) => "applied",
            Self::Undone { .. } => "undone",
            Self::RunStarted { .. } => "run_started",
            Self::RunFinished { .. } => "run_finished",
            Self::RunKilled {} => "run_killed",
            Self::Pruned { .. } => "pruned",
            Self::ExternalEdit { .. } => "external_edit",
            Self::Checklist(_) => "checklist",
            Self::Unknown(map) => map.get("type").and_then(Value::as_str).unwrap_or("unknown"),
        }
    }
}

/// A field before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Before.
    pub from: Value,
    /// After.
    pub to: Value,
}

#[cfg(test)]
mod tests {
    use super::{Event, EventKind};

    /// A run in memory keeps four of them for each task: what other kinds have stands behind a pointer.
    #[test]
    fn an_event_is_small() {
        let sizes = (size_of::<EventKind>(), size_of::<Event>());
        assert!(sizes.0 <= 56 && sizes.1 <= 144, "{sizes:?} bytes");
    }
}
