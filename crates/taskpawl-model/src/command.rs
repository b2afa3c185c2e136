//! Commands that can be given to a plan, and their answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::checklist::ChecklistItem;
use crate::import::{Import, ImportReport};
use crate::key_space::KeyRequest;
use crate::policy_hook::PolicyHook;
use crate::record::{CallError, CallRecord, Node, RunRecord};
use crate::refusal::Refusal;
use crate::spec::{Map, NewCall, Origin, Retry, SandboxRequest, TaskSpec, Timestamp};
use crate::status::Status;
use crate::view::{Changes, ViewError};
use crate::{Actor, ActorKind, CallId, Key, KeyMap, Period, Plan, RunId, Shared, SharedText, TaskId, paths};

/// Task reference as the caller writes it: an id or a unique prefix of one. An exact id always wins.
pub type TaskRef = String;

/// Actor, time and authority of a command. The rules read no clock, so the time comes from here.
#[derive(Debug, Clone)]
pub struct Context {
    /// Time of the command.
    pub now: Timestamp,
    /// Name of the actor.
    pub actor: SharedText,
    /// Kind of the actor. Names are unique only within a kind.
    pub kind: ActorKind,
    /// The run that gives the command, if any.
    pub run: Option<RunId>,
    /// Origin recorded on the calls that the command adds.
    pub origin: Origin,
    /// Policy hook that authorizes calls before they start. Without one, only the authors of calls require approvals.
    pub policy_hook: Option<Arc<dyn PolicyHook>>,
}

impl Context {
    /// Returns the actor in the form that claims and events are compared with.
    pub fn as_actor(&self) -> Actor<'_> {
        Actor { kind: self.kind, name: &self.actor }
    }

    /// Returns the kind to record. A recorded run already identifies its actor, so the kind is left unknown then.
    pub(crate) fn recorded_kind(&self) -> ActorKind {
        if self.run.is_some() && self.kind == ActorKind::Run { ActorKind::Unknown } else { self.kind }
    }
}

/// A command together with its context.
#[derive(Debug, Clone)]
pub struct Request {
    /// The command.
    pub command: Command,
    /// Actor and time.
    pub context: Context,
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
        /// New values by their JSON names; `null` removes the field. `metadata` and `context` are merged.
        fields: Map,
        /// Version that the task must have; the command is refused otherwise.
        if_version: Option<u64>,
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
    /// Rejects and cancels tasks that wait for a decision.
    Reject {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// The reason.
        reason: Option<String>,
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
            | Self::RunOne { id, .. } => vec![id],
            Self::Move { id, parent } => parent.iter().chain([id]).map(String::as_str).collect(),
            Self::Create(task) => task.parent.iter().map(String::as_str).collect(),
            Self::Delete { ids }
            | Self::Release { ids }
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
            | Self::Prune(_)
            | Self::StartRun(_)
            | Self::SettleKeys(_)
            | Self::FinishRun { .. }
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

    /// Returns whether an agent or a person gives this command. The others come from runs or from recovery.
    pub(crate) fn is_by_actor(&self) -> bool {
        !self.names().is_empty()
            || matches!(
                self,
                Self::Create(_) | Self::Claim { .. } | Self::Apply(_) | Self::Undo { .. } | Self::Import(_)
            )
    }
}

/// A command with a request name, so that a caller that lost the reply can retry it safely.
#[derive(Debug, Clone)]
pub struct IdempotentRequest {
    /// Request name, chosen by the actor.
    pub request: String,
    /// Digest of the arguments; tells apart two requests with the same name.
    pub digest: String,
    /// The command to give.
    pub command: Command,
}

/// Record of a completed request, which answers a repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRecord {
    /// Name of the actor.
    pub actor: String,
    /// Kind of the actor; unknown for requests recorded by versions before 0.2.
    #[serde(default, skip_serializing_if = "ActorKind::is_unknown")]
    pub kind: ActorKind,
    /// Request name.
    pub request: String,
    /// Digest of the arguments of the request.
    pub digest: String,
    /// Time of the command.
    pub at: Timestamp,
    /// Tasks in the answer.
    pub tasks: Vec<TaskId>,
    /// Report of an apply, if the command was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<ApplyReport>,
}

impl RequestRecord {
    /// Returns the key under which a store indexes the actor.
    pub fn actor_key(&self) -> String {
        Actor { kind: self.kind, name: &self.actor }.key()
    }

    /// Returns whether `actor` made the request. A record without a kind is matched by name alone.
    pub fn is_of(&self, actor: Actor<'_>) -> bool {
        actor.is(self.kind, &self.actor)
    }
}

/// The start of a run.
#[derive(Debug, Clone)]
pub struct RunStart {
    /// Record of the run.
    pub run: RunRecord,
    /// Prefix of the idempotency keys of its calls; `None` keeps the recorded one.
    pub keys: Option<KeyRequest>,
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

/// A task to create.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NewTask {
    /// The id.
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
pub struct Apply {
    /// The parsed plan.
    pub plan: Plan,
    /// Name of the plan.
    pub name: String,
    /// One id for each task of the plan, by position, used if the task needs a new one. The rules draw no random ids.
    pub fresh_ids: Vec<TaskId>,
    /// Cancel unstarted tasks that are gone from the file.
    pub prune: bool,
    /// Reopen every task of the plan.
    pub fresh: bool,
    /// Refuse to remove or change an approval. Set for programs started by a run, which must not remove their own
    /// checks.
    pub keeps_approvals: bool,
}

/// One round of a run, written in one commit.
///
/// Outdated parts are ignored, such as the claim of a task that is no longer ready. A report on a cancelled task only
/// records that the call ended. By default capacity is unlimited, and tasks that become ready are not claimed.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Results of calls.
    pub reports: Vec<Report>,
    /// Tasks to release before their calls started, with the attempt.
    pub releases: Vec<(Key, u32)>,
    /// Tasks to claim.
    pub claims: Vec<Key>,
    /// Tasks held by this run that continue, with the attempt: their pause is over, or capacity is free again.
    pub resumes: Vec<(Key, u32)>,
    /// Resources and paths granted to claims that have limits.
    pub grants: BTreeMap<Key, Grant>,
    /// Number of calls that may start. Resumed tasks come first, then claims, then tasks that become ready.
    ///
    /// A claim without capacity left is not made. It appears in the `needs` of the answer only if it needs nothing
    /// else.
    pub places: usize,
    /// True if tasks that become ready in this round may be claimed, too.
    pub takes_new: bool,
    /// Number of calls of each tool that may still start; other tools are unlimited.
    pub tool_places: BTreeMap<String, usize>,
    /// Settings for all tasks of the run.
    pub rules: Arc<RunRules>,
    /// Plans whose time or budget is used up: none of their tasks start in this run.
    pub ended_plans: Arc<BTreeSet<String>>,
    /// Tools that the run has. Tasks whose next call needs another tool are left unchanged.
    pub tools: Arc<BTreeSet<String>>,
    /// Tasks that the run is restricted to.
    pub scope: Option<Arc<BTreeSet<Key>>>,
    /// Length of the longest path from each task to the end. Claimed and newly ready tasks start in descending order.
    pub ranks: Arc<KeyMap<u64>>,
}

impl Default for Round {
    fn default() -> Self {
        Self {
            reports: Vec::new(),
            releases: Vec::new(),
            claims: Vec::new(),
            resumes: Vec::new(),
            grants: BTreeMap::new(),
            places: usize::MAX,
            takes_new: false,
            tool_places: BTreeMap::new(),
            rules: Arc::default(),
            ended_plans: Arc::default(),
            tools: Arc::default(),
            scope: None,
            ranks: Arc::default(),
        }
    }
}

/// Settings for all tasks of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunRules {
    /// Capacity of each resource; resources without an entry have capacity 1.
    pub capacities: BTreeMap<String, u32>,
    /// Retries of calls for which neither the call nor the task says anything.
    pub retry: Option<Retry>,
    /// Time limit of each attempt of tasks without one of their own.
    pub timeout: Option<Period>,
    /// True if cached results are ignored.
    pub no_cache: bool,
}

/// Requirements of a task before it starts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Needs {
    /// Units of each resource.
    pub resources: BTreeMap<String, Amount>,
    /// Paths that the task writes, as the author wrote them.
    pub writes: Vec<String>,
    /// The same paths with symbolic links resolved, if that is known.
    pub resolved: Option<Vec<String>>,
    /// The `forEach` task that this task is an item of, and the number of items that may run at once.
    pub items: Option<(Key, u32)>,
    /// Tool of its first call, if no capacity for that tool is left.
    pub tool: Option<String>,
    /// Inputs that decide if a cached result can be used.
    pub cache: Option<CacheInputs>,
    /// True if another run, an agent or a person holds a requirement. Only a change in the store can free it then.
    pub is_held_elsewhere: bool,
}

impl Needs {
    /// Returns whether the task needs something that other tasks may hold.
    pub fn has_limits(&self) -> bool {
        !self.resources.is_empty() || !self.writes.is_empty() || self.items.is_some()
    }

    /// Returns the paths that the task writes, in the form used for comparison.
    pub fn paths(&self) -> Vec<String> {
        paths::written(self.resolved.as_ref().unwrap_or(&self.writes))
    }

    /// Returns the first resource of which the task needs more than its capacity.
    pub fn too_much(&self) -> Option<(&str, Amount)> {
        let mut resources = self.resources.iter().map(|(name, amount)| (name.as_str(), *amount));
        resources.find(|(_, amount)| amount.units > amount.of)
    }
}

/// Units of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// Units needed.
    pub units: u32,
    /// Capacity.
    pub of: u32,
}

/// Inputs of a task with `cache`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CacheInputs {
    /// SHA-256, in hexadecimal, of its calls, their arguments and its cache key.
    pub work: String,
    /// Globs of the files whose contents count.
    pub files: Vec<String>,
    /// Fingerprint of the last success that may be reused.
    pub recorded: Option<String>,
}

/// Facts to gather about a task before it is claimed. The rules read no files, so the caller does it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inquiry {
    /// Cache inputs to fingerprint.
    pub cache: Option<CacheInputs>,
    /// Paths in which symbolic links must be resolved.
    pub writes: Vec<String>,
}

/// Paths that a task writes, with symbolic links resolved as far as the paths exist.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResolvedWrites {
    /// Paths as the author wrote them.
    pub asked: Vec<String>,
    /// Resolved paths, relative to the project directory or made by [`paths::outside`].
    pub paths: Vec<String>,
}

/// Facts and resources granted to a claim.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grant {
    /// Digest of the task's work at the time the fingerprint was computed, for a task with `cache`.
    pub work: Option<String>,
    /// SHA-256, in hexadecimal, of that digest and the file contents; `None` if a file changed while it was read.
    pub fingerprint: Option<String>,
    /// Resolved paths that the task writes, if it writes any.
    pub writes: Option<ResolvedWrites>,
}

impl Grant {
    /// Returns whether the grant covers these paths. The task's definition may have changed after the grant.
    pub(crate) fn is_for(&self, writes: &[String]) -> bool {
        self.writes.as_ref().is_none_or(|resolved| resolved.asked == writes)
    }
}

/// A task held by the run of which nothing runs for now.
#[derive(Debug, Clone, PartialEq)]
pub struct Paused {
    /// Key of the task.
    pub key: Key,
    /// Its attempt.
    pub attempt: u32,
    /// Its plan.
    pub plan: Option<SharedText>,
    /// Time at which it continues; `None` if it only waits for capacity.
    pub until: Option<Timestamp>,
    /// Tools without free capacity. Capacity for any one of them also lets the task continue.
    pub tools: BTreeSet<String>,
}

/// Error text of an interrupted call about which nothing else is known.
pub(crate) const UNKNOWN_END: &str = "it was stopped while it ran, and nobody knows how far it came";

/// End of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEnd {
    /// The call succeeded with this result.
    Succeeded(Value),
    /// The call failed.
    Failed {
        /// The error.
        error: CallError,
        /// Result that the tool returned despite the error.
        result: Option<Value>,
    },
    /// The call was stopped and its outcome is unknown.
    Interrupted {
        /// True if the tool allows repeating the call anyway.
        repeatable: bool,
        /// Details, such as the last message of the worker.
        why: Option<String>,
    },
}

impl CallEnd {
    /// Returns an interrupted end without details.
    pub fn interrupted(repeatable: bool) -> Self {
        Self::Interrupted { repeatable, why: None }
    }
}

/// Report of a run about one of its calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Key of the task.
    pub task: Key,
    /// Attempt that the call belongs to.
    pub attempt: u32,
    /// Id of the call.
    pub call: CallId,
    /// The outcome.
    pub end: CallEnd,
    /// Truncated parts of its result, as JSON Pointers; `""` is the whole result.
    pub cut: Vec<String>,
    /// Usage that the tool reported, such as tokens.
    pub usage: Option<Value>,
    /// Files that changed during the call outside the paths that its task declares in `writes`.
    pub changed_beyond: Vec<String>,
    /// Reason why changed files could not be determined.
    pub changes_unknown: Option<String>,
    /// True if the cache inputs of the task changed after it was claimed.
    pub inputs_changed: bool,
    /// True if the next call of the task starts; otherwise the task is released.
    pub go_on: bool,
}

impl Report {
    /// Returns the report of a call without usage. It does not start the next call of the task.
    pub fn new(task: Key, attempt: u32, call: CallId, end: CallEnd) -> Self {
        Self {
            task,
            attempt,
            call,
            end,
            cut: Vec::new(),
            usage: None,
            changed_beyond: Vec::new(),
            changes_unknown: None,
            inputs_changed: false,
            go_on: false,
        }
    }
}

/// A call that the store has recorded as started, so that the caller may now start it.
#[derive(Debug, Clone, PartialEq)]
pub struct StartedCall {
    /// Key of the task.
    pub key: Key,
    /// Id of the task.
    pub task: TaskId,
    /// Attempt of the task.
    pub attempt: u32,
    /// Number of times that the task was cleared.
    pub generation: u32,
    /// Number of completed `repeat` rounds.
    pub round: u32,
    /// Record of the call.
    pub call: CallRecord,
    /// Evaluated arguments.
    pub args: Map,
    /// Time at which the task's own time limit ends.
    pub deadline: Option<Timestamp>,
    /// Plan of the task.
    pub plan: Option<SharedText>,
    /// Specification of the task.
    pub spec: Shared<TaskSpec>,
    /// Sandbox permissions that the call requests and was granted; `None` if no policy hook authorizes calls.
    pub sandbox: Option<SandboxRequest>,
    /// Cache inputs of the task, with the fingerprint at the time of the claim.
    pub cache: Option<CacheInputs>,
}

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
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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

/// Result of deciding a command: the changes to write, and the answer to give once they are durable.
#[derive(Debug, Default)]
pub struct Decision {
    /// Changes to write.
    pub changes: Changes,
    /// Answer to give after the write.
    pub answer: Answer,
}

/// The command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// The rules refuse the command: the caller may fix it and retry.
    #[error(transparent)]
    Refused(#[from] Box<Refusal>),
    /// The store could not be read.
    #[error("failed to read the store")]
    View(#[from] ViewError),
}

impl From<Refusal> for DecideError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}
