//! Every command, and the records that some of them carry.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{IdempotentRequest, Report, ResolvedWrites, Round, RunStart};
use crate::command::import::Import;
use crate::plan::Plan;
use crate::task::checklist::ChecklistItem;
use crate::task::key_space::KeyRequest;
use crate::task::record::RunRecord;
use crate::task::spec::{NewCall, TaskSpec};
use crate::value::{CallId, Key, RunId, TaskId};
use crate::value::{Map, Timestamp};

/// Task reference as the caller writes it: an id or a unique prefix of one. An exact id always wins.
pub type TaskRef = String;

/// How an update starts its task over. A task that has not started yet simply takes the new fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// It continues at the first call that changed or did not succeed.
    Retry {
        /// Also restart the dependents that already ran.
        cascade: bool,
    },
    /// All its calls run again.
    Reopen {
        /// Also restart the dependents that already ran.
        cascade: bool,
    },
}

/// Everything that can be asked of a plan. A command over several tasks applies to all of them or to none.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Command {
    /// Creates a task.
    Create(Box<NewTask>),
    /// Changes fields of a task.
    Update {
        /// Reference to the task.
        id: TaskRef,
        /// New values by their names in plan files, including the work (`run`, `call`, `calls`); `null` removes the
        /// field. `metadata` and `context` are merged.
        fields: Map,
        /// Version that the task must have; the command is refused otherwise.
        if_version: Option<u64>,
        /// Starts the task over with its new fields, in the same transaction.
        restart: Option<Restart>,
    },
    /// Deletes tasks. Refused if other tasks depend on them or are below them.
    Delete {
        /// The tasks; they may depend on each other.
        ids: Vec<TaskRef>,
    },
    /// Claims a ready manual task, or renews the lease if the caller already holds it.
    Claim {
        /// The task; `None` for the first ready one.
        id: Option<TaskRef>,
        /// Length of the lease.
        lease: Duration,
        /// Capacities of resources. They override those declared by plans.
        capacities: BTreeMap<String, u32>,
        /// Paths that ready tasks write, with symbolic links resolved.
        writes: BTreeMap<Key, ResolvedWrites>,
    },
    /// Renews the lease of a claimed task.
    Renew {
        /// Reference to the task.
        id: TaskRef,
        /// Length of the lease from now.
        lease: Duration,
    },
    /// Releases claimed tasks.
    Release {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// Note to add. An agent needs one to release the claim of a silent holder.
        note: Option<String>,
    },
    /// Marks manual tasks as done, or interrupted calls as succeeded.
    Done {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// Result to record.
        result: Option<Value>,
        /// Note to add.
        note: Option<String>,
        /// Attempt that the report belongs to; refused if the task has a newer one.
        attempt: Option<u32>,
    },
    /// Marks manual tasks or interrupted calls as failed.
    Fail {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// Result to record.
        result: Option<Value>,
        /// Reason of the failure.
        note: Option<String>,
        /// Attempt that the report belongs to; refused if the task has a newer one.
        attempt: Option<u32>,
    },
    /// Skips tasks and their subtasks; dependents may start.
    Skip {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// The reason.
        reason: Option<String>,
    },
    /// Blocks tasks, so that they do not start.
    Block {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// The reason.
        reason: String,
    },
    /// Unblocks tasks that a command or an interrupted call blocked.
    Unblock {
        /// The tasks.
        ids: Vec<TaskRef>,
    },
    /// Puts finished tasks back to `todo`; successful calls keep their results.
    Retry {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// Also restart the dependents that already ran.
        cascade: bool,
    },
    /// Puts finished tasks back to `todo` and clears all their results.
    Reopen {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// Also restart the dependents that already ran.
        cascade: bool,
    },
    /// Cancels tasks and their subtasks; dependents are blocked.
    Cancel {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// The reason.
        reason: Option<String>,
    },
    /// Adds a tool call to a task.
    AddCall {
        /// Reference to the task.
        id: TaskRef,
        /// The call.
        call: Box<NewCall>,
    },
    /// Adds a dependency.
    AddDependency {
        /// Reference to the dependent task.
        id: TaskRef,
        /// Reference to the dependency.
        on: TaskRef,
    },
    /// Removes a dependency.
    RemoveDependency {
        /// Reference to the dependent task.
        id: TaskRef,
        /// Reference to the dependency.
        on: TaskRef,
    },
    /// Moves a task under a parent, or to the top level.
    Move {
        /// Reference to the task.
        id: TaskRef,
        /// The new parent; `None` for the top level.
        parent: Option<TaskRef>,
    },
    /// Adds a note to a task.
    Note {
        /// Reference to the task.
        id: TaskRef,
        /// The text.
        text: String,
    },
    /// Applies a plan to the store.
    Apply(Arc<Apply>),
    /// Renames a plan; its tasks keep their ids.
    RenamePlan {
        /// The current name.
        from: String,
        /// The new name.
        to: String,
    },
    /// Reverts a command of a person or an agent by a new event. Refused if a conflicting change touched its tasks
    /// later.
    Undo {
        /// Revision of one of the command's events; `None` for this actor's last command that is not undone.
        revision: Option<u64>,
    },
    /// Sends a signal. The first task that waits for it takes it in the same commit; without one it is kept.
    Signal(Box<NewSignal>),
    /// Drops the signals of a name that no task has taken.
    DropSignals {
        /// The name.
        name: String,
    },
    /// Ends durable waits whose time has come.
    Wake {
        /// Candidates; the command checks each time itself.
        tasks: Vec<Key>,
    },
    /// Records the start of a run.
    StartRun(Box<RunStart>),
    /// Records the prefix of idempotency keys without starting a run.
    SettleKeys(Box<KeyRequest>),
    /// Records the end of a run.
    FinishRun {
        /// Id of the run.
        id: RunId,
        /// Exit code of the run.
        exit: u8,
        /// Number of tasks that the run ended, by status.
        counts: std::collections::BTreeMap<String, u64>,
    },
    /// Asks a run to stop. The run reads the request from its record while it goes on.
    StopRun {
        /// Id of the run.
        id: RunId,
        /// True if its running calls are ended, too.
        now: bool,
    },
    /// Deletes the records of finished runs and old undo snapshots. Events stay; files are the caller's responsibility.
    Prune(Box<Prune>),
    /// Everything that a run writes in one commit: results of calls, tasks that become ready, and the next claims.
    Round(Box<Round>),
    /// Records the end of one call of a run, and starts the next call of the task.
    Report(Box<Report>),
    /// Prepares one task to run alone; blocks it if its dependencies are unfinished.
    RunOne {
        /// Reference to the task.
        id: TaskRef,
        /// First tool of its calls that this process does not have.
        missing_tool: Option<String>,
    },
    /// Applies every gate again. Used after another program edited the file of a store.
    Settle,
    /// Closes a run that was killed or whose machine stopped. Does nothing if the run is already closed.
    CloseRun {
        /// Id of the run.
        id: RunId,
    },
    /// Releases those of the tasks whose leases have expired.
    ReturnExpired {
        /// Candidates; the command checks each lease itself.
        tasks: Vec<Key>,
    },
    /// Approves tasks or calls that wait for a decision.
    Approve {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// Answer to the question.
        answer: Option<Value>,
        /// Arguments to run with instead of the proposed ones.
        args: Option<Map>,
        /// Hash of the proposal that the approver saw. Refused if the proposal changed since.
        hash: Option<String>,
    },
    /// Approves a question of the policy before its task waits for it.
    ApproveAhead {
        /// The task.
        task: TaskRef,
        /// The call; absent if the question is for the whole task.
        call: Option<CallId>,
        /// Hash of the proposal that the approver saw. Refused if the proposal changed since.
        hash: String,
    },
    /// Rejects tasks that wait for a decision: cancels them, fails those whose result is rejected, or sends their results back.
    Reject {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// The reason.
        reason: Option<String>,
        /// The text that goes back to the agents of the tasks, which correct their work.
        rework: Option<String>,
    },
    /// Applies the plan's default to those of the tasks whose time to decide has ended.
    ExpireApprovals {
        /// Candidates; the command checks each time itself.
        tasks: Vec<Key>,
    },
    /// Unblocks tasks that wait for a tool which this process has.
    ToolsKnown {
        /// The tasks.
        tasks: Vec<Key>,
    },
    /// Applies the current policy to tasks that wait for a decision: asks again, or withdraws the question.
    PolicyKnown {
        /// The tasks.
        tasks: Vec<Key>,
    },
    /// Lets a running call add to its plan, within its plan access.
    Mutate(Box<CallMutation>),
    /// Publishes the checklist that a model keeps beside its work.
    Checklist {
        /// Owner of the checklist.
        scope: String,
        /// All items; they replace the previous ones.
        items: Vec<ChecklistItem>,
        /// True if another process asks the owner to empty the list, which it does before its next answer.
        cleared: bool,
        /// Liveness lock that the owner's process holds while it is alive; `None` if it has none.
        liveness_lock: Option<String>,
        /// True if the list stays visible for review after its process ends.
        kept: bool,
    },
    /// Imports tasks from another program, with their statuses.
    Import(Box<Import>),
    /// Gives a command at most once per request name of an actor.
    ///
    /// A repeated request changes nothing and returns the earlier answer.
    Idempotent(Box<IdempotentRequest>),
}

impl Command {
    /// Returns the command that records the start of a run and leaves idempotency keys unchanged.
    pub fn start_run(run: RunRecord) -> Self {
        Self::StartRun(Box::new(RunStart { run, keys: None }))
    }

    /// Returns the task references in the command, as the caller wrote them.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Update { id, .. }
            | Self::Claim { id: Some(id), .. }
            | Self::Renew { id, .. }
            | Self::AddCall { id, .. }
            | Self::AddDependency { id, .. }
            | Self::RemoveDependency { id, .. }
            | Self::Note { id, .. }
            | Self::ApproveAhead { task: id, .. }
            | Self::RunOne { id, .. } => vec![id],
            Self::Move { id, parent } => parent.iter().chain([id]).map(String::as_str).collect(),
            Self::Signal(signal) => signal.to.iter().map(String::as_str).collect(),
            Self::Create(task) => task.parent.iter().map(String::as_str).collect(),
            Self::Delete { ids }
            | Self::Release { ids, .. }
            | Self::Done { ids, .. }
            | Self::Fail { ids, .. }
            | Self::Skip { ids, .. }
            | Self::Block { ids, .. }
            | Self::Unblock { ids }
            | Self::Retry { ids, .. }
            | Self::Reopen { ids, .. }
            | Self::Cancel { ids, .. }
            | Self::Approve { ids, .. }
            | Self::Reject { ids, .. } => ids.iter().map(String::as_str).collect(),
            Self::Claim { id: None, .. }
            | Self::Apply(_)
            | Self::RenamePlan { .. }
            | Self::Undo { .. }
            | Self::DropSignals { .. }
            | Self::Wake { .. }
            | Self::Prune(_)
            | Self::StartRun(_)
            | Self::SettleKeys(_)
            | Self::FinishRun { .. }
            | Self::StopRun { .. }
            | Self::CloseRun { .. }
            | Self::Round(_)
            | Self::Report(_)
            | Self::Settle
            | Self::ReturnExpired { .. }
            | Self::ExpireApprovals { .. }
            | Self::ToolsKnown { .. }
            | Self::PolicyKnown { .. }
            | Self::Checklist { .. }
            | Self::Mutate(_)
            | Self::Import(_) => Vec::new(),
            Self::Idempotent(once) => once.command.names(),
        }
    }
}

/// Records to delete. Runs that are active or unknown are ignored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prune {
    /// Runs whose records are deleted.
    pub runs: Vec<RunId>,
    /// Runs whose output files alone were deleted.
    pub outputs: Vec<RunId>,
    /// Delete undo snapshots of commands up to this revision.
    pub commands: Option<u64>,
    /// Latest time of those commands, for the event. Completed requests from before it are deleted, too.
    pub before: Option<Timestamp>,
    /// Number of files that the caller deletes, for the event.
    pub files: u64,
    /// Their total size in bytes, for the event.
    pub bytes: u64,
}

/// A signal to send.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewSignal {
    /// Unique id.
    pub id: String,
    /// Name, for which tasks wait.
    pub name: String,
    /// Data, which becomes the result of the call that takes it.
    pub data: Value,
    /// The only task that may take it; `None` for any.
    pub to: Option<TaskRef>,
}

/// A task to create.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NewTask {
    /// The id. An empty one is made from the name.
    pub id: TaskId,
    /// Specification as the author wrote it.
    pub spec: TaskSpec,
    /// Initial context values.
    pub context: Map,
    /// Its calls.
    pub calls: Vec<NewCall>,
    /// Its dependencies.
    pub dependencies: Vec<TaskRef>,
    /// Its parent.
    pub parent: Option<TaskRef>,
    /// The plan to join; without one, the plan of the parent.
    pub plan: Option<String>,
}

impl NewTask {
    /// Makes a task without work. The store makes its id from the name.
    pub fn named(name: impl Into<String>) -> Self {
        let mut task = Self::default();
        task.spec.name = name.into();
        task
    }

    /// Sets the id.
    #[must_use]
    pub fn id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = TaskId::new(id);
        self
    }

    /// Adds a call, which starts when those before it have succeeded.
    #[must_use]
    pub fn call(mut self, call: NewCall) -> Self {
        self.calls.push(call);
        self
    }

    /// Adds a dependency on a task, by its id.
    #[must_use]
    pub fn needs(mut self, id: impl Into<TaskRef>) -> Self {
        self.dependencies.push(id.into());
        self
    }
}

/// A plan mutation: an addition by a running call to the plan of its own task.
#[derive(Debug, Clone)]
pub struct CallMutation {
    /// The task that owns the call.
    pub task: Key,
    /// Attempt of the task.
    pub attempt: u32,
    /// Id of the call.
    pub call: CallId,
    /// Number of the start of this call. An earlier start has lost its access.
    pub start: u32,
    /// The addition.
    pub mutation: PlanMutation,
}

/// Additions that a call may make to its plan: new tasks, and changes to these alone.
#[derive(Debug, Clone)]
pub enum PlanMutation {
    /// A task, at the top level or under one that the same task added.
    Create(Box<NewTask>),
    /// Tasks in plan form. Tasks that the same task added earlier are updated, unless they were started.
    Join(Box<Plan>),
    /// A tool call for a task added by the same task.
    AddCall {
        /// Reference to the task.
        id: TaskRef,
        /// The call.
        call: Box<NewCall>,
    },
    /// A dependency of a task added by the same task. A task of the plan that was not started may also depend on an
    /// added one.
    AddDependency {
        /// Reference to the dependent task.
        id: TaskRef,
        /// Reference to the dependency.
        on: TaskRef,
    },
    /// A note on a task of the plan.
    Note {
        /// Reference to the task.
        id: TaskRef,
        /// The text.
        text: String,
    },
}

/// A plan to apply to the store.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub struct Apply {
    /// The parsed plan.
    pub plan: Plan,
    /// Name of the plan.
    pub name: String,
    /// Cancel unstarted tasks that are gone from the file.
    pub prune: bool,
    /// Reopen every task of the plan.
    pub fresh: bool,
    /// What becomes of finished tasks whose work changed.
    pub on_changed: OnChanged,
    /// Retry the failed tasks of the plan whose definition did not change.
    pub retry_failed: bool,
    /// Refuse to remove or change an approval. Set for programs started by a run, which must not remove their own
    /// checks.
    pub keeps_approvals: bool,
}

/// What an apply does with changed work of a task that is `done` or `skipped`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnChanged {
    /// Refuse the whole plan.
    #[default]
    Refuse,
    /// Start these tasks over, and everything that ran after them. Calls that succeeded run again, idempotent or not.
    Redo,
    /// Take the definition and keep the results, which are those of the work that ran.
    Keep,
}
