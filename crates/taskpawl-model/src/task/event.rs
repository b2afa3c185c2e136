//! Events: stored facts about changes, in one global order.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::task::ActorKind;
use crate::task::checklist::ChecklistItem;
use crate::task::spec::word_enum;
use crate::task::status::{BlockedReason, CallStatus, Cause, Status};
use crate::task::work_hash::ShortHash;
use crate::value::{CallId, Key, RunId, SharedText, TaskId};
use crate::value::{Map, Timestamp};

/// A change, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its position in the store, counted from 1 without gaps.
    pub revision: u64,
    /// The time of the commit.
    pub at: Timestamp,
    /// The actor that caused it.
    pub actor: SharedText,
    /// The kind of the actor. It is `unknown` for actions of a run itself, and for events that recorded only a name.
    #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
    pub actor_kind: ActorKind,
    /// The run, if a run caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The task, if it concerns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The change.
    #[serde(flatten)]
    pub kind: EventKind,
    /// Tasks that became ready because of it, for dispatchers of other processes.
    #[serde(default, skip_serializing_if = "<[Key]>::is_empty")]
    pub ready: Box<[Key]>,
}

/// The kinds of changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum EventKind {
    /// A task was created.
    Created(Box<TaskCreated>),
    /// Fields of a task changed.
    Updated {
        /// Old and new values by field; `null` for an absent value.
        fields: std::collections::BTreeMap<String, Change>,
    },
    /// A task was deleted.
    Deleted {
        /// The deleted task, in the form of `show --json`. Its JSON name is `was`, because the event already has a
        /// `task`.
        #[serde(rename = "was", alias = "task")]
        task: Value,
    },
    /// The status of a task changed.
    Status {
        /// The old status.
        from: Status,
        /// The new status.
        to: Status,
        /// The cause of the change.
        cause: Cause,
        /// The reason, if it is blocked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Box<BlockedReason>>,
        /// A text about the change, such as an error or a reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The attempt.
        attempt: u32,
        /// The end of the lease, for the claim of an agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease_until: Option<Timestamp>,
    },
    /// The holder of a claim renewed its lease.
    Renewed {
        /// The new end of the lease.
        lease_until: Timestamp,
    },
    /// A tool call starts; this is durable before the tool is started.
    CallStarted {
        /// The call.
        call: CallId,
        /// The attempt of the task.
        attempt: u32,
        /// The number of this start of the call, from 1.
        start: u32,
        /// The hash of the evaluated arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args_hash: Option<ShortHash>,
    },
    /// A tool call ended.
    CallEnded {
        /// The call.
        call: CallId,
        /// The attempt of the task.
        attempt: u32,
        /// The status it ended with.
        status: CallStatus,
        /// The reason, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Box<String>>,
        /// The time of its next start, if it failed and is retried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again_at: Option<Box<Timestamp>>,
        /// The hash of its result, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result_hash: Option<ShortHash>,
        /// The worker that ran it; absent for the machine of the store.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<Box<String>>,
    },
    /// The last running call of a cancelled task has ended: the resources of the task are free.
    Stopped {
        /// The attempt of the task.
        attempt: u32,
    },
    /// A round of `repeat` is over, and another one follows.
    RoundEnded {
        /// The number of the ended round.
        round: u32,
        /// The maximum number of rounds.
        of: u32,
        /// The start of the next round; absent if it starts at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again_at: Option<Timestamp>,
    },
    /// A verification failed, or a person sent the result back, and the agent of the task corrects its work.
    SentBack {
        /// The call of the agent.
        call: CallId,
        /// The number of the round that begins.
        round: u32,
        /// The last round.
        of: u32,
    },
    /// A question was answered with yes before it was asked.
    ApprovedAhead {
        /// The call; absent if the question is for the whole task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
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
        /// The new dependency.
        on: TaskId,
    },
    /// A dependency was removed.
    DependencyRemoved {
        /// The former dependency.
        on: TaskId,
    },
    /// The task was moved under a parent, or to the top level.
    Moved {
        /// The old parent; absent for the top level.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<TaskId>,
        /// The new parent; absent for the top level.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<TaskId>,
    },
    /// A note was added.
    Noted {
        /// The text.
        text: String,
    },
    /// A plan was applied.
    Applied(Box<PlanApplied>),
    /// A command was undone. The restored changes follow as events of the tasks.
    Undone {
        /// The revision of its first event.
        first: u64,
        /// The revision of its last event.
        last: u64,
    },
    /// A run started.
    RunStarted {
        /// The restriction to certain tasks; empty for all tasks.
        scope: Vec<String>,
    },
    /// A run ended.
    RunFinished {
        /// The exit code.
        exit: u8,
        /// The number of tasks that it ended, by status.
        counts: std::collections::BTreeMap<String, u64>,
    },
    /// A run was asked to stop.
    RunStopRequested {
        /// The run.
        id: RunId,
        /// True if its running calls are ended, too.
        now: bool,
    },
    /// A run was found dead.
    RunKilled {},
    /// Runs were pruned, or their output was. Files that a crash leaves behind are deleted by the next prune.
    Pruned {
        /// The number of pruned runs.
        runs: u64,
        /// The number of other runs whose output was deleted.
        outputs: u64,
        /// The number of deleted files.
        files: u64,
        /// The size of the deleted files in bytes.
        bytes: u64,
        /// Commands before this time can no longer be undone, and requests before it are forgotten.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Timestamp>,
    },
    /// The file of a JSON store was edited by another program.
    ExternalEdit {
        /// The tasks that differ.
        tasks: Vec<TaskId>,
    },
    /// A signal was sent, taken by a task, or dropped.
    Signal(Box<SignalEvent>),
    /// The checklist that a model keeps beside its work changed. The event concerns no task.
    Checklist(Box<ChecklistChanged>),
    /// A kind unknown to this version.
    #[serde(untagged)]
    Unknown(Map),
}

/// The data of a created task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskCreated {
    /// Its name.
    pub name: String,
    /// The parent; absent for the top level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// The dependencies, if the list is short. The edges have the whole list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<TaskId>,
    /// The plan that created the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<SharedText>,
}

/// The result of applying a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanApplied {
    /// The name of the plan.
    pub plan: String,
    /// The number of created tasks.
    pub created: u64,
    /// The number of changed tasks.
    pub changed: u64,
    /// The number of tasks cancelled because the file no longer has them.
    pub pruned: u64,
    /// The program to notify, if it changed; empty if the plan no longer names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Vec<String>>,
}

word_enum! {
    /// A step in the life of a signal.
    SignalStep {
        /// It was sent, and is kept until a task takes it.
        Sent = "sent",
        /// The task of the event took it.
        Taken = "taken",
        /// It was dropped before a task took it.
        Dropped = "dropped",
    }
}

/// A signal that was sent, taken or dropped. Its data is in the result of the call that takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalEvent {
    /// The id of the signal.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The only task that may take it; absent if any may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<TaskId>,
    /// The step in its life.
    pub step: SignalStep,
}

/// The current content of a checklist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChecklistChanged {
    /// The owner of the list: a conversation or a session.
    pub scope: String,
    /// All items in order; empty for a list that has ended.
    pub items: Vec<ChecklistItem>,
    /// True if another process requests to empty it. The process that owns the list does so before its next answer.
    #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
    pub cleared: bool,
    /// The liveness lock that the owning process holds; absent where locks cannot be checked.
    #[serde(default, rename = "keeper", skip_serializing_if = "Option::is_none")]
    pub liveness_lock: Option<String>,
    /// True if the list is kept for review after its process ends.
    #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
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
            Self::SentBack { .. } => "sent_back",
            Self::ApprovedAhead { .. } => "approved_ahead",
            Self::CallAdded { .. } => "call_added",
            Self::DependencyAdded { .. } => "dependency_added",
            Self::DependencyRemoved { .. } => "dependency_removed",
            Self::Moved { .. } => "moved",
            Self::Noted { .. } => "noted",
            Self::Applied(_) => "applied",
            Self::Undone { .. } => "undone",
            Self::RunStarted { .. } => "run_started",
            Self::RunFinished { .. } => "run_finished",
            Self::RunStopRequested { .. } => "run_stop_requested",
            Self::RunKilled {} => "run_killed",
            Self::Pruned { .. } => "pruned",
            Self::ExternalEdit { .. } => "external_edit",
            Self::Signal(_) => "signal",
            Self::Checklist(_) => "checklist",
            Self::Unknown(map) => map.get("type").and_then(Value::as_str).unwrap_or("unknown"),
        }
    }
}

/// The old and the new value of a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The old value.
    pub from: Value,
    /// The new value.
    pub to: Value,
}

#[cfg(test)]
mod tests {
    use super::{Event, EventKind};

    /// A run in memory keeps four events for each task, so the data of rare kinds is boxed.
    #[test]
    fn events_are_small() {
        let sizes = (size_of::<EventKind>(), size_of::<Event>());
        assert!(sizes.0 <= 56 && sizes.1 <= 144, "{sizes:?} bytes");
    }
}
