//! Tasks, calls and runs as a store keeps them: data lives in the variant it belongs to, edges and counts stand apart.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::gate::{Entry, Gate, GateState, Outcome};
use crate::gatekeeper::{Gatekeeper, Judgement, Proposed};
use crate::limits::needs_opening;
use crate::spec::{CallSpec, Map, Origin, Priority, TaskSpec, Timestamp, Trigger, word_enum};
use crate::status::{BlockedReason, CallStatus, Status, TaskState};
use crate::trust::{Origins, UntrustedValue, ValueOrigins};
use crate::{CallId, Key, Period, RunId, Shared, SharedText, TaskId};

/// A task without its edges and calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRecord {
    /// What people and agents call it.
    pub id: TaskId,
    /// What its author wrote.
    pub spec: Shared<TaskSpec>,
    /// What happens to it as it runs.
    pub body: Shared<TaskBody>,
    /// The plan that it came with.
    pub plan: Option<SharedText>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// How often it changed.
    pub version: u64,
}

/// The part of a task that changes as it runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskBody {
    /// Its state.
    pub state: TaskState,
    /// Values for expressions; results of calls are not repeated here.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub context: Map,
    /// The result of a manual task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Remarks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// How often it was claimed; never reset.
    pub attempt: u32,
    /// How often it was cleared by `reopen`.
    #[serde(skip_serializing_if = "crate::spec::is_default")]
    pub generation: u32,
    /// When it was first claimed since it was last cleared.
    #[serde(serialize_with = "crate::time_text::serialize", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(serialize_with = "crate::time_text::serialize", skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// What its expressions call other tasks, where that is not their id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, TaskId>,
    /// What is known of it since it was opened.
    #[serde(skip_serializing_if = "crate::spec::is_default")]
    pub progress: Progress,
    /// The origins of what models wrote by hand into it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origins: Option<Box<ValueOrigins>>,
}

/// What a task has come to since it was opened: what was decided about it, and what its rounds left.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// Its condition holds and its list is known: nothing has to be decided any more before it starts.
    #[serde(skip_serializing_if = "crate::spec::is_default")]
    pub opened: bool,
    /// The items below it are those of a `forEach` that it no longer has: they are no part of its work.
    #[serde(skip_serializing_if = "crate::spec::is_default")]
    pub former_items: bool,
    /// Of an item of a `forEach`: which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<Box<Item>>,
    /// How many rounds of `repeat` are over.
    #[serde(skip_serializing_if = "crate::spec::is_default")]
    pub round: u32,
    /// When the time of this attempt is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// How long it ran when it last ended well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<Period>,
    /// The decision that lets it start.
    #[serde(rename = "granted", skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Granted>>,
    /// What its last success may stand for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<Box<Cached>>,
    /// What a success of this attempt will depend on, where it is to be recorded: a SHA-256 in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The paths that this attempt writes, where links lead elsewhere than its author wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_writes: Option<Box<Vec<String>>>,
    /// When the success was recorded that stood for running it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_from: Option<Timestamp>,
    /// Files that changed while it ran although it does not say that it writes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_beyond: Vec<String>,
    /// Why it is not known which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes_unknown: Option<Box<str>>,
}

/// One element of the list of a `forEach`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Its place in the list, from 0.
    pub index: u64,
    /// The element.
    pub value: Value,
    /// The values of models that the list was made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untrusted: Vec<UntrustedValue>,
}

impl Item {
    /// Returns whether both are the same element at the same place, whoever wrote it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.index == other.index && self.value == other.value
    }
}

/// A decision that lets a task or a call start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Granted {
    /// The SHA-256, in hexadecimal, of what was decided about.
    pub hash: String,
    /// Who decided.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// The answer to the question that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// The arguments to run with instead of those that were asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map>,
    /// The version of the policy under which it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// A recorded success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cached {
    /// The SHA-256, in hexadecimal, of everything that it depends on.
    pub fingerprint: String,
    /// When it was recorded.
    pub at: Timestamp,
    /// The results of the calls.
    pub results: BTreeMap<CallId, Value>,
    /// The parts of them that were cut, where some were, as those of a call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cut: BTreeMap<CallId, Vec<String>>,
    /// The less trusted values that they were made of, as those of a call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inserted: BTreeMap<CallId, Vec<UntrustedValue>>,
}

/// A remark on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// What.
    pub text: String,
}

/// A tool call of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Its id, unique within the task.
    pub id: CallId,
    /// What its author wrote.
    pub spec: Shared<CallSpec>,
    /// Who added it.
    pub origin: Origin,
    /// What happens to it as it runs.
    pub body: Shared<CallBody>,
}

/// The part of a call that changes as it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallBody {
    /// Its state.
    pub status: CallStatus,
    /// What the tool answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The parts of the result that were cut, as JSON Pointers; `""` is the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Box<Vec<String>>>,
    /// What it used up, as the tool reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Value>>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<CallError>>,
    /// How often it was started.
    pub attempts: u32,
    /// The arguments that it was last started with, where they are not those that its author wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map>,
    /// The less trusted values that its condition and its arguments read when it was last started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inserted: Option<Box<Vec<UntrustedValue>>>,
    /// How often it failed since it last began from the start.
    #[serde(default, skip_serializing_if = "crate::spec::is_default")]
    pub failures: u32,
    /// When it is due, while it waits to be started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// The decision that lets it start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Granted>>,
    /// The tasks that it returned since it last began from the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emitted: Vec<TaskId>,
    /// When it was last started.
    #[serde(
        default,
        serialize_with = "crate::time_text::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(
        default,
        serialize_with = "crate::time_text::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub finished_at: Option<Timestamp>,
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
            started_at: None,
            finished_at: None,
        }
    }
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallError {
    /// The class, by which failures are grouped: `exit_code`, `timeout`, …
    pub class: String,
    /// The text for people.
    pub message: String,
}

word_enum! {
    /// The state of a task as far as gates care.
    Phase {
        /// Not started.
        Todo = "todo",
        /// Claimed.
        InProgress = "in_progress",
        /// Blocked because its gate can no longer open.
        BlockedDependency = "blocked_dependency",
        /// Blocked until what it depends on is finished.
        BlockedWaiting = "blocked_waiting",
        /// Blocked for another reason.
        BlockedOther = "blocked_other",
        /// Ended well.
        Done = "done",
        /// Ended badly.
        Failed = "failed",
        /// Given up.
        Cancelled = "cancelled",
        /// Not needed.
        Skipped = "skipped",
    }
}

impl Phase {
    /// Returns the phase of `state`.
    pub fn of(state: &TaskState) -> Self {
        match state {
            TaskState::Todo => Self::Todo,
            TaskState::InProgress { .. } => Self::InProgress,
            TaskState::Blocked { reason } => match **reason {
                BlockedReason::Dependency { .. } => Self::BlockedDependency,
                BlockedReason::Waiting { .. } => Self::BlockedWaiting,
                BlockedReason::Approval { .. }
                | BlockedReason::MissingTool { .. }
                | BlockedReason::Interrupted { .. }
                | BlockedReason::Manual { .. } => Self::BlockedOther,
            },
            TaskState::Done => Self::Done,
            TaskState::Failed { .. } => Self::Failed,
            TaskState::Cancelled { .. } => Self::Cancelled,
            TaskState::Skipped { .. } => Self::Skipped,
        }
    }

    /// Returns the state that is seen from outside in this phase.
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

    /// Returns how the task counts for those that depend on it.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Todo | Self::InProgress | Self::BlockedWaiting | Self::BlockedOther => Outcome::Open,
            Self::Done => Outcome::Done,
            Self::Skipped => Outcome::Skipped,
            Self::Failed | Self::Cancelled | Self::BlockedDependency => Outcome::Failed,
        }
    }

    /// Returns how the task counts for the task above: a cancelled subtask is finished there.
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
    /// Who ends a task.
    Work {
        /// A run, by its tool calls.
        Calls = "calls",
        /// An agent or a person.
        Manual = "manual",
        /// Nobody: a milestone, or a parent without calls of its own.
        Automatic = "automatic",
    }
}

/// What gates and the order of ready tasks need to know of a task: small, and read without its texts.
///
/// Only the committer writes it, in the commit that changes what it is derived from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The task.
    pub key: Key,
    /// The task above.
    pub parent: Option<Key>,
    /// Its state.
    pub phase: Phase,
    /// Who ends it.
    pub work: Work,
    /// Its counts.
    pub gate: Gate,
    /// What the gate says: derived from `gate`.
    pub gate_state: GateState,
    /// What it lets its subtasks do: derived from `gate` and `phase`.
    pub opens: Entry,
    /// How urgent it is.
    pub priority: Priority,
    /// When it is due, in milliseconds since 1970; `i64::MAX` without a date, so that none sorts last.
    pub due: i64,
}

/// The milliseconds of a day.
const DAY: i64 = 86_400_000;

/// Returns the place of a due date in the order, in milliseconds since 1970. A date without a time is stored as the first moment of its
/// day in UTC, and means the last one: what is due at some time of that day comes before it.
fn place_of_due(due: Timestamp) -> i64 {
    let millis = due.timestamp_millis();
    if millis.rem_euclid(DAY) == 0 { millis + DAY - 1 } else { millis }
}

impl Node {
    /// Returns whether `kept` is this node, or was it before dates without a time came last in their day: stores keep such places until
    /// the task changes.
    pub fn is_as_kept(&self, kept: &Self) -> bool {
        let was_first = kept.due.rem_euclid(DAY) == 0 && kept.due.checked_add(DAY - 1) == Some(self.due);
        self == kept || was_first && *self == Self { due: self.due, ..*kept }
    }

    /// Returns the node of a new task.
    pub fn new(key: Key, trigger: Trigger, work: Work) -> Self {
        let gate = Gate::new(trigger);
        Self {
            key,
            parent: None,
            phase: Phase::Todo,
            work,
            gate,
            gate_state: gate.state(),
            opens: Entry::Open,
            priority: Priority::Medium,
            due: i64::MAX,
        }
    }

    /// Takes what follows from the specification, what was decided, the calls and whether there are subtasks; gates are derived
    /// elsewhere.
    pub fn describe(
        &mut self,
        spec: &TaskSpec,
        progress: &Progress,
        calls: &[CallRecord],
        has_subtasks: bool,
    ) {
        let has_subtasks = has_subtasks && !progress.former_items;
        self.work = match (calls.is_empty(), spec.milestone || has_subtasks) {
            // Its calls run in its items.
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

    /// Returns whether somebody may take the task now: derived, never set.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Todo && self.gate_state == GateState::Ready
    }

    /// Returns what the task lets its subtasks do, from its gate and its state.
    pub fn derive_opens(&self) -> Entry {
        match self.phase {
            Phase::BlockedOther | Phase::Cancelled | Phase::Skipped => Entry::Waiting,
            Phase::Todo
            | Phase::InProgress
            | Phase::BlockedDependency
            | Phase::BlockedWaiting
            | Phase::Done
            | Phase::Failed => match self.gate.before_subtasks() {
                GateState::Ready => Entry::Open,
                GateState::Block => Entry::Shut,
                GateState::Wait | GateState::Skip => Entry::Waiting,
            },
        }
    }
}

/// One `run-all-ready` or `run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// The id.
    pub id: RunId,
    /// What it was restricted to, as words of `--only`; empty for everything.
    pub scope: Vec<String>,
    /// The parameters it was started with.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map,
    /// Who started it.
    pub actor: String,
    /// On which machine.
    pub host: String,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended; absent while it goes on or when it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
    /// When it was found to have ended without finishing, and its tasks were taken back. When it ended is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_at: Option<Timestamp>,
    /// When its output files were removed to make room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_pruned_at: Option<Timestamp>,
    /// How many tasks of the scope it ended, by what they became.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// Tasks that were cancelled while its calls ran: as long as these have not ended, no new attempt starts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ending: BTreeMap<TaskId, TakenAway>,
}

/// An attempt that was taken away from a run, and what of it has not ended yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenAway {
    /// The attempt.
    pub attempt: u32,
    /// Its calls that the run has not reported yet.
    pub calls: BTreeSet<CallId>,
}

impl RunRecord {
    /// Returns whether nobody has written that it ended: it goes on, or it was killed and not recovered yet.
    pub fn is_open(&self) -> bool {
        self.finished_at.is_none() && self.recovered_at.is_none()
    }

    /// Returns when it ended, or was found to have ended.
    pub fn ended_at(&self) -> Option<Timestamp> {
        self.finished_at.or(self.recovered_at)
    }
}

/// A plan as it was applied last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanRecord {
    /// The name.
    pub name: String,
    /// Everything of the file but its tasks, in the long form.
    pub header: Map,
    /// The values of its parameters.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub params: Map,
    /// The origins of values of parameters that models gave.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub param_origins: Origins,
    /// When it was applied last.
    pub applied_at: Option<Timestamp>,
    /// The file that it was applied from last, by its path below the project. Two files are not one plan by accident.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What the ids of its tasks begin with, before a dot, because they were taken when it was applied first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The ids of tasks that came later and were taken, by what the file calls them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prefixed: BTreeMap<TaskId, TaskId>,
}

impl PlanRecord {
    /// Returns what the store calls a task of the plan that its file calls `id`. What begins with the prefix is such an id already.
    pub fn stored_id(&self, id: &TaskId) -> TaskId {
        let is_stored =
            |prefix: &str| id.as_str().strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'));
        match &self.prefix {
            Some(prefix) if is_stored(prefix) => id.clone(),
            Some(prefix) => TaskId::from(format!("{prefix}.{id}")),
            None => self.prefixed.get(id).unwrap_or(id).clone(),
        }
    }

    /// Returns what the file of the plan calls a task that the store calls `id`.
    pub fn file_id(&self, id: &TaskId) -> TaskId {
        if let Some(prefix) = &self.prefix {
            let short = id.as_str().strip_prefix(prefix.as_str()).and_then(|rest| rest.strip_prefix('.'));
            return short.map_or_else(|| id.clone(), TaskId::from);
        }
        let found = self.prefixed.iter().find(|(_, stored)| *stored == id);
        found.map_or_else(|| id.clone(), |(short, _)| short.clone())
    }

    /// The field of the header that says who wrote `notify`. No plan sets it: it is written where the plan is applied.
    pub const NOTIFY_ORIGIN: &'static str = "notifyOrigin";

    /// Returns the program that is told about tasks of the plan, if it names one.
    pub fn notify(&self) -> Option<PlanNotify> {
        let argv = self.header.get("notify").and_then(Value::as_array)?;
        let argv: Vec<String> = argv.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let origin = self.header.get(Self::NOTIFY_ORIGIN).cloned();
        // Where nobody says who wrote it, it may have been anybody.
        let origin = origin.and_then(|origin| serde_json::from_value(origin).ok()).unwrap_or(Origin::Agent);
        (!argv.is_empty()).then_some(PlanNotify { argv, origin })
    }
}

/// A program that a plan names, to be told about its tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanNotify {
    /// The program with its arguments.
    pub argv: Vec<String>,
    /// Who wrote it into the plan.
    pub origin: Origin,
}

impl PlanNotify {
    /// Judges it as the call of `exec` that it would be. Nobody approves it: what is not allowed is not run.
    pub fn judge(&self, gatekeeper: Option<&dyn Gatekeeper>) -> Judgement {
        let args = Map::from_iter([("argv".to_owned(), Value::from(self.argv.clone()))]);
        let call = Proposed { tool: "exec", args: &args, origin: self.origin, sandbox: None };
        gatekeeper.map_or(Judgement::Allow, |gatekeeper| gatekeeper.judge(&call))
    }
}

#[cfg(test)]
mod tests {
    use super::{CallBody, TaskBody};

    /// Each task that a run in memory has ended keeps one of each: what few tasks have stands behind a pointer.
    #[test]
    fn what_every_task_of_a_run_keeps_is_small() {
        let sizes = (size_of::<TaskBody>(), size_of::<CallBody>());
        assert!(sizes.0 <= 352 && sizes.1 <= 184, "{sizes:?} bytes");
    }
}
