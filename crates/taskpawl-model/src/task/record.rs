//! Records of tasks, calls and runs as a store keeps them.
//!
//! Data lives in the variant it belongs to. Edges and counts are stored separately.

use crate::task::actor::ActorKind;
use crate::task::asked::{Artifact, Asked, Rework, ToolQuestion};
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::task::gate::{Entry, Gate, GateState, Outcome};
use crate::task::limits::needs_opening;
use crate::task::policy_hook::{PolicyDecision, PolicyHook, ProposedCall};
use crate::task::spec::{CallPart, CallSpec, Origin, Priority, TaskSpec, Trigger, word_enum};
use crate::task::status::{BlockedReason, CallStatus, Status, TaskStatus};
use crate::task::trust::{Origins, UntrustedValue, ValueOrigins};
use crate::task::wait::WaitingFor;
use crate::value::{CallId, Key, Period, RunId, Shared, SharedText, TaskId};
use crate::value::{Map, Timestamp};

/// Error text of an interrupted call about which nothing else is known.
pub(crate) const UNKNOWN_END: &str = "it was stopped while it ran, and nobody knows how far it came";

/// A task without its edges and calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRecord {
    /// The id that people and agents use.
    pub id: TaskId,
    /// The fields that the author wrote.
    pub spec: Shared<TaskSpec>,
    /// The fields that change while it runs.
    pub body: Shared<TaskBody>,
    /// The name of the plan that created it.
    pub plan: Option<SharedText>,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
    /// The number of changes.
    pub version: u64,
}

/// The part of a task that changes as it runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskBody {
    /// The status with its data, such as the claim.
    pub state: TaskStatus,
    /// Values for expressions; results of calls are not repeated here.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub context: Map,
    /// The result of a manual task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Notes, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// The number of claims; never reset.
    pub attempt: u32,
    /// The number of times that `reopen` cleared it.
    #[serde(skip_serializing_if = "crate::task::spec::is_default")]
    pub generation: u32,
    /// The first claim since the task was last cleared.
    #[serde(serialize_with = "crate::value::time_text::serialize", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The end of the task.
    #[serde(serialize_with = "crate::value::time_text::serialize", skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Names by which its expressions refer to other tasks, if they differ from the ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, TaskId>,
    /// Data collected since the task was opened.
    #[serde(skip_serializing_if = "crate::task::spec::is_default")]
    pub progress: Progress,
    /// The origins of values that models wrote into it by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origins: Option<Box<ValueOrigins>>,
}

/// Data collected since a task was opened: decisions about it, and results of its rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// Its condition holds and its list is known: no decision is left before it starts.
    #[serde(skip_serializing_if = "crate::task::spec::is_default")]
    pub opened: bool,
    /// Its subtasks are items of a `forEach` that it no longer has. They are no part of its work.
    #[serde(skip_serializing_if = "crate::task::spec::is_default")]
    pub former_items: bool,
    /// The list element, if this task is an item of a `forEach`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<Box<Item>>,
    /// The number of finished rounds of `repeat`.
    #[serde(skip_serializing_if = "crate::task::spec::is_default")]
    pub round: u32,
    /// The end of the time limit of this attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The duration of its last success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<Period>,
    /// The approval that lets it start.
    #[serde(rename = "granted", skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Granted>>,
    /// The recorded result of its last success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<Box<Cached>>,
    /// The fingerprint of this attempt, if its success is to be recorded: a SHA-256 in hexadecimal over all its inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Box<str>>,
    /// The paths that this attempt writes, if symbolic links lead elsewhere than the declared paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_writes: Option<Box<Vec<String>>>,
    /// The time at which the cached result was recorded that replaced a run of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_from: Option<Timestamp>,
    /// Files that changed while it ran although it does not declare that it writes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_beyond: Vec<String>,
    /// The durable wait of this task, while no run holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<Box<WaitingFor>>,
    /// The reason why `changed_beyond` is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes_unknown: Option<Box<str>>,
}

/// One element of the list of a `forEach`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Its index in the list, from 0.
    pub index: u64,
    /// The element.
    pub value: Value,
    /// Values from models that went into the list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untrusted: Vec<UntrustedValue>,
}

impl Item {
    /// Returns whether both are the same element at the same index. The authors of the value are not compared.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.index == other.index && self.value == other.value
    }
}

/// An approval that lets a task or a call start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Granted {
    /// The SHA-256, in hexadecimal, of the approved work.
    pub hash: String,
    /// The actor that approved.
    pub by: String,
    /// The time of the approval.
    pub at: Timestamp,
    /// The answer to the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// Arguments that replace the requested ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map>,
    /// The version of the policy that caused the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// A recorded result for the cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cached {
    /// The SHA-256, in hexadecimal, of everything that the result depends on.
    pub fingerprint: String,
    /// The time of recording.
    pub at: Timestamp,
    /// The results of the calls.
    pub results: BTreeMap<CallId, Value>,
    /// JSON Pointers to truncated parts of the results, by call, as in [`CallBody::cut`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cut: BTreeMap<CallId, Vec<String>>,
    /// Less trusted values that went into the results, by call, as in [`CallBody::inserted`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inserted: BTreeMap<CallId, Vec<UntrustedValue>>,
}

/// A note on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The time of writing.
    pub at: Timestamp,
    /// The actor that wrote it.
    pub actor: String,
    /// The text.
    pub text: String,
}

/// A tool call of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Its id, unique within the task.
    pub id: CallId,
    /// The fields that the author wrote.
    pub spec: Shared<CallSpec>,
    /// The kind of author that added it.
    pub origin: Origin,
    /// The fields that change while it runs.
    pub body: Shared<CallBody>,
}

/// The part of a call that changes as it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallBody {
    /// The status.
    pub status: CallStatus,
    /// The result of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// JSON Pointers to the truncated parts of the result; `""` stands for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Box<Vec<String>>>,
    /// Usage as reported by the tool, such as tokens and costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Value>>,
    /// The reason for its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<CallError>>,
    /// The number of starts.
    pub attempts: u32,
    /// The arguments of the last start, if they differ from those in `spec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map>,
    /// The less trusted values that its condition and its arguments read at the last start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inserted: Option<Box<Vec<UntrustedValue>>>,
    /// The number of failures since the call last began from the beginning.
    #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
    pub failures: u32,
    /// The time of the next start, while it waits for a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// The approval that lets it start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Granted>>,
    /// The tasks that it returned since it last began from the beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emitted: Vec<TaskId>,
    /// The questions of its tool, with their answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<Asked>>,
    /// The worker that ran its last start; `None` for the machine of the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<Box<String>>,
    /// The files that its last start left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Box<Vec<Artifact>>>,
    /// The time of the last start.
    #[serde(
        default,
        serialize_with = "crate::value::time_text::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub started_at: Option<Timestamp>,
    /// The time of its end.
    #[serde(
        default,
        serialize_with = "crate::value::time_text::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub finished_at: Option<Timestamp>,
}

impl CallBody {
    /// Returns the question of the tool that waits for an answer.
    pub fn question(&self) -> Option<&ToolQuestion> {
        self.asked.as_ref()?.question.as_ref()
    }

    /// Returns the rework that made it start again.
    pub fn rework(&self) -> Option<&Rework> {
        self.asked.as_ref()?.rework.as_ref()
    }

    /// Returns the round of rework in which it began from the beginning; 0 before any.
    pub fn rework_round(&self) -> u32 {
        self.rework().filter(|rework| rework.found.is_none()).map_or(0, |rework| rework.round)
    }
}

impl CallRecord {
    /// Returns the last call that does the work of its task: its result is that of the task.
    pub(crate) fn last_of_work(calls: &[Self]) -> Option<&Self> {
        calls.iter().rev().find(|call| call.spec.part() == CallPart::Work)
    }
}

impl Default for CallBody {
    fn default() -> Self {
        Self {
            status: CallStatus::Pending,
            result: None,
            cut: None,
            usage: None,
            error: None,
            attempts: 0,
            args: None,
            inserted: None,
            failures: 0,
            due: None,
            approval: None,
            emitted: Vec::new(),
            asked: None,
            worker: None,
            artifacts: None,
            started_at: None,
            finished_at: None,
        }
    }
}

/// The reason for the failure of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallError {
    /// The error class, by which failures are grouped, such as `exit_code` or `timeout`.
    pub class: String,
    /// The text for people.
    pub message: String,
    /// The grant of a person that would let the call succeed, if the sandbox probably stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
    /// The opinion of the tool whether a retry makes sense. Without one the class decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_retried: Option<bool>,
    /// The shortest pause before a retry, as the tool asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Period>,
}

impl CallError {
    /// Makes an error that no grant would prevent.
    pub fn new(class: impl Into<String>, message: impl Into<String>) -> Self {
        let (class, message) = (class.into(), message.into());
        Self { class, message, grant: None, is_retried: None, retry_after: None }
    }
}

/// A way to widen the sandbox of a run, which only a person may take.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Grant {
    /// Programs may use the network.
    Network,
    /// Programs may reach a host, as `registry.example.org` or with a port.
    Host(String),
    /// Programs may connect to a port of this machine.
    Port(u16),
    /// Programs may read what lies at or below an absolute path.
    Read(String),
    /// Programs may read and write what lies at or below an absolute path.
    Write(String),
}

word_enum! {
    /// The status of a task, with the reasons for being blocked that matter to gates.
    StatusKind {
        /// Not started.
        Todo = "todo",
        /// Claimed.
        InProgress = "in_progress",
        /// Blocked because its gate can no longer open.
        BlockedDependency = "blocked_dependency",
        /// Blocked until its dependencies are finished.
        BlockedWaiting = "blocked_waiting",
        /// Blocked for another reason.
        BlockedOther = "blocked_other",
        /// Succeeded.
        Done = "done",
        /// Failed.
        Failed = "failed",
        /// Cancelled.
        Cancelled = "cancelled",
        /// Skipped.
        Skipped = "skipped",
    }
}

impl StatusKind {
    /// Returns the kind of a status.
    pub fn of(state: &TaskStatus) -> Self {
        match state {
            TaskStatus::Todo => Self::Todo,
            TaskStatus::InProgress { .. } => Self::InProgress,
            TaskStatus::Blocked { reason } => match **reason {
                BlockedReason::Dependency { .. } => Self::BlockedDependency,
                BlockedReason::Waiting { .. } => Self::BlockedWaiting,
                BlockedReason::Approval { .. }
                | BlockedReason::MissingTool { .. }
                | BlockedReason::Interrupted { .. }
                | BlockedReason::Manual { .. } => Self::BlockedOther,
            },
            TaskStatus::Done => Self::Done,
            TaskStatus::Failed { .. } => Self::Failed,
            TaskStatus::Cancelled { .. } => Self::Cancelled,
            TaskStatus::Skipped { .. } => Self::Skipped,
        }
    }

    /// Returns the status that users see.
    pub fn status(self) -> Status {
        match self {
            Self::Todo => Status::Todo,
            Self::InProgress => Status::InProgress,
            Self::BlockedDependency | Self::BlockedWaiting | Self::BlockedOther => Status::Blocked,
            Self::Done => Status::Done,
            Self::Failed => Status::Failed,
            Self::Cancelled => Status::Cancelled,
            Self::Skipped => Status::Skipped,
        }
    }

    /// Returns the outcome for the dependents of the task.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Todo | Self::InProgress | Self::BlockedWaiting | Self::BlockedOther => Outcome::Open,
            Self::Done => Outcome::Done,
            Self::Skipped => Outcome::Skipped,
            Self::Failed | Self::Cancelled | Self::BlockedDependency => Outcome::Failed,
        }
    }

    /// Returns the outcome for the parent of the task. A cancelled subtask counts as finished there.
    pub fn outcome_above(self) -> Outcome {
        match self {
            Self::Cancelled => Outcome::Done,
            Self::Todo
            | Self::InProgress
            | Self::BlockedDependency
            | Self::BlockedWaiting
            | Self::BlockedOther
            | Self::Done
            | Self::Failed
            | Self::Skipped => self.outcome(),
        }
    }
}

word_enum! {
    /// The actor that ends a task.
    Work {
        /// A run, by its tool calls.
        Calls = "calls",
        /// An agent or a person.
        Manual = "manual",
        /// The store: a milestone, or a parent without calls of its own, ends with its dependencies and subtasks.
        Automatic = "automatic",
    }
}

/// The part of a task that gates and the order of ready tasks need: small, and readable without the texts of the task.
///
/// Only the committer writes it, in the commit that changes the facts it is derived from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The task.
    pub key: Key,
    /// The parent.
    pub parent: Option<Key>,
    /// The status, as gates see it.
    pub status_kind: StatusKind,
    /// The actor that ends it.
    pub work: Work,
    /// The counts of dependencies and subtasks.
    pub gate: Gate,
    /// The state of the gate, derived from `gate`.
    pub gate_state: GateState,
    /// The entry that its subtasks see, which lets them start or not. Derived from `gate` and `status_kind`.
    pub opens: Entry,
    /// The priority.
    pub priority: Priority,
    /// The due date in milliseconds since 1970; `i64::MAX` without a date, so that undated tasks sort last.
    pub due: i64,
}

/// Milliseconds in a day.
const DAY: i64 = 86_400_000;

/// Returns the sort key of a due date, in milliseconds since 1970.
///
/// A date without a time is stored as the first moment of its day in UTC and means the last one. It sorts after all
/// times of that day.
fn place_of_due(due: Timestamp) -> i64 {
    let millis = due.timestamp_millis();
    if millis.rem_euclid(DAY) == 0 { millis + DAY - 1 } else { millis }
}

impl Node {
    /// Returns whether `kept` equals this node, or did before dates without a time moved to the end of their day.
    /// Stores keep such old sort keys until the task changes.
    pub fn is_as_kept(&self, kept: &Self) -> bool {
        let was_first = kept.due.rem_euclid(DAY) == 0 && kept.due.checked_add(DAY - 1) == Some(self.due);
        self == kept || was_first && *self == Self { due: self.due, ..*kept }
    }

    /// Returns the node of a new task without parent and dependencies.
    pub fn new(key: Key, trigger: Trigger, work: Work) -> Self {
        let gate = Gate::new(trigger);
        Self {
            key,
            parent: None,
            status_kind: StatusKind::Todo,
            work,
            gate,
            gate_state: gate.state(),
            opens: Entry::Open,
            priority: Priority::Medium,
            due: i64::MAX,
        }
    }

    /// Updates the fields that follow from the specification, the decisions, the calls and the presence of subtasks.
    /// Gates are derived elsewhere.
    pub fn describe(
        &mut self,
        spec: &TaskSpec,
        progress: &Progress,
        calls: &[CallRecord],
        has_subtasks: bool,
    ) {
        let has_subtasks = has_subtasks && !progress.former_items;
        self.work = match (calls.is_empty(), spec.milestone || has_subtasks) {
            // The calls of a `forEach` task run in its items.
            _ if spec.for_each.is_some() => Work::Automatic,
            (false, _) => Work::Calls,
            (true, true) => Work::Automatic,
            (true, false) => Work::Manual,
        };
        self.gate.trigger = spec.trigger();
        self.gate.undecided = needs_opening(spec, progress) && !progress.opened;
        self.priority = spec.priority;
        self.due = spec.due_date.map_or(i64::MAX, place_of_due);
    }

    /// Returns whether the task may be claimed now. This is derived and never set.
    pub fn is_ready(&self) -> bool {
        self.status_kind == StatusKind::Todo && self.gate_state == GateState::Ready
    }

    /// Returns whether the subtasks may start, from the gate and the status of the task.
    pub fn derive_opens(&self) -> Entry {
        match self.status_kind {
            StatusKind::BlockedOther | StatusKind::Cancelled | StatusKind::Skipped => Entry::Waiting,
            StatusKind::Todo
            | StatusKind::InProgress
            | StatusKind::BlockedDependency
            | StatusKind::BlockedWaiting
            | StatusKind::Done
            | StatusKind::Failed => match self.gate.before_subtasks() {
                GateState::Ready => Entry::Open,
                GateState::Block => Entry::Shut,
                GateState::Wait | GateState::Skip => Entry::Waiting,
            },
        }
    }
}

/// A run: one `run-all-ready` or `run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// The id.
    pub id: RunId,
    /// The restriction to certain tasks, in the words of `--only`; empty for all tasks.
    pub scope: Vec<String>,
    /// The parameters given at its start.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map,
    /// The actor that started it.
    pub actor: String,
    /// The kind of that actor; unknown for runs of version 0.1.
    #[serde(default, skip_serializing_if = "ActorKind::is_unknown")]
    pub actor_kind: ActorKind,
    /// The request to stop, if there is one. The run reads it while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopRequest>,
    /// The machine on which it runs.
    pub host: String,
    /// The time of its start.
    pub started_at: Timestamp,
    /// The time of its end; absent while it runs and after it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The exit code; absent while it runs and after it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
    /// The time at which the run was found dead and its tasks were released. The time of its death is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_at: Option<Timestamp>,
    /// The time at which its output files were deleted to free disk space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_pruned_at: Option<Timestamp>,
    /// The number of tasks of the scope that it ended, by their status.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// Tasks that were cancelled while its calls ran. No new attempt of them starts before these calls have ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ending: BTreeMap<TaskId, RevokedAttempt>,
}

/// An attempt that a run lost while calls of it were running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedAttempt {
    /// The attempt.
    pub attempt: u32,
    /// Its calls that the run has not reported yet.
    pub calls: BTreeSet<CallId>,
}

/// A request to stop a run, made by another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopRequest {
    /// Nothing more starts; running calls may finish.
    Soft,
    /// Running calls are ended as well.
    Now,
}

impl RunRecord {
    /// Returns whether the run has no recorded end: it is running, or it was killed and not recovered yet.
    pub fn is_open(&self) -> bool {
        self.finished_at.is_none() && self.recovered_at.is_none()
    }

    /// Returns the time of its end, or of its recovery.
    pub fn ended_at(&self) -> Option<Timestamp> {
        self.finished_at.or(self.recovered_at)
    }
}

/// A plan as last applied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanRecord {
    /// The name.
    pub name: String,
    /// Everything in the file except the tasks, in the long form.
    pub header: Map,
    /// The values of the parameters.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub params: Map,
    /// The origins of parameter values that models gave.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub param_origins: Origins,
    /// The time of the last `apply`.
    pub applied_at: Option<Timestamp>,
    /// The file of the last `apply`, relative to the project. It keeps two files with the same plan name apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The prefix of its task ids, before a dot. It is set if ids were taken when the plan was first applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Stored ids by file ids, for later tasks whose ids were taken.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prefixed: BTreeMap<TaskId, TaskId>,
}

impl PlanRecord {
    /// Returns the stored id of a task by its id in the file. An id that already begins with the prefix is returned as
    /// it is.
    pub fn stored_id(&self, id: &TaskId) -> TaskId {
        let is_stored =
            |prefix: &str| id.as_str().strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'));
        match &self.prefix {
            Some(prefix) if is_stored(prefix) => id.clone(),
            Some(prefix) => TaskId::from(format!("{prefix}.{id}")),
            None => self.prefixed.get(id).unwrap_or(id).clone(),
        }
    }

    /// Returns the id in the plan file of a task by its stored id.
    pub fn file_id(&self, id: &TaskId) -> TaskId {
        if let Some(prefix) = &self.prefix {
            let short = id.as_str().strip_prefix(prefix.as_str()).and_then(|rest| rest.strip_prefix('.'));
            return short.map_or_else(|| id.clone(), TaskId::from);
        }
        let entry = self.prefixed.iter().find(|(_, stored)| *stored == id);
        entry.map_or_else(|| id.clone(), |(short, _)| short.clone())
    }

    /// Returns the names of the environment variables that its programs need.
    pub fn required_env(&self) -> impl Iterator<Item = &str> {
        let names = self.header.get("requires").and_then(|requires| requires.get("env"));
        names.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// Returns the names of the tools that another program brings.
    pub fn brought_tools(&self) -> impl Iterator<Item = &str> {
        self.header.get("tools").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// The header field with the origin of `notify`. Plans cannot set it: it is written when the plan is applied.
    pub const NOTIFY_ORIGIN: &'static str = "notifyOrigin";

    /// Returns the program that is notified about tasks of the plan, if the plan names one.
    pub fn notify(&self) -> Option<PlanNotify> {
        let argv = self.header.get("notify").and_then(Value::as_array)?;
        let argv: Vec<String> = argv.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let origin = self.header.get(Self::NOTIFY_ORIGIN).cloned();
        // Without a recorded origin the least trusted author is assumed.
        let origin = origin.and_then(|origin| serde_json::from_value(origin).ok()).unwrap_or(Origin::Agent);
        (!argv.is_empty()).then_some(PlanNotify { argv, origin })
    }
}

/// A program, named by a plan, that is notified about tasks of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanNotify {
    /// The program with its arguments.
    pub argv: Vec<String>,
    /// The origin of the program.
    pub origin: Origin,
}

impl PlanNotify {
    /// Authorizes it like a call of `exec`. There is no approval for it, so a program that is not allowed does not run.
    pub fn authorize(&self, policy_hook: Option<&dyn PolicyHook>) -> PolicyDecision {
        let args = Map::from_iter([("argv".to_owned(), Value::from(self.argv.clone()))]);
        let call = ProposedCall { tool: "exec", args: &args, origin: self.origin, sandbox: None, plan: None };
        policy_hook.map_or(PolicyDecision::Allow, |policy_hook| policy_hook.authorize(&call))
    }
}

#[cfg(test)]
mod tests {
    use super::{CallBody, TaskBody};

    /// A run in memory keeps one of each for every finished task, so rarely used fields are boxed.
    #[test]
    fn task_and_call_bodies_are_small() {
        let sizes = (size_of::<TaskBody>(), size_of::<CallBody>());
        assert!(sizes.0 <= 352 && sizes.1 <= 200, "{sizes:?} bytes");
    }
}
