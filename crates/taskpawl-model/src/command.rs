//! Commands: what may be asked of a plan, and what is answered.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::checklist::ChecklistItem;
use crate::gatekeeper::Gatekeeper;
use crate::import::{Import, ImportReport};
use crate::key_space::KeyRequest;
use crate::record::{CallError, CallRecord, Node, RunRecord};
use crate::refusal::Refusal;
use crate::spec::{Map, NewCall, Origin, Retry, SandboxRequest, TaskSpec, Timestamp};
use crate::status::Status;
use crate::view::{Changes, ViewError};
use crate::{Actor, ActorKind, CallId, Key, KeyMap, Period, Plan, RunId, Shared, SharedText, TaskId, paths};

/// A task as somebody names it: an id or a prefix of one. An exact id always wins.
pub type TaskRef = String;

/// Who asks, and when. Rules read no clock.
#[derive(Debug, Clone)]
pub struct Context {
    /// The time of the command.
    pub now: Timestamp,
    /// Who asks.
    pub actor: SharedText,
    /// What kind of actor asks: names are unique within a kind alone.
    pub kind: ActorKind,
    /// The run that asks, if one does.
    pub run: Option<RunId>,
    /// What calls that it adds are marked with.
    pub origin: Origin,
    /// Who judges calls that are about to start; without one only their authors say what asks.
    pub gatekeeper: Option<Arc<dyn Gatekeeper>>,
}

impl Context {
    /// Returns the actor as claims and events are compared with it.
    pub fn as_actor(&self) -> Actor<'_> {
        Actor { kind: self.kind, name: &self.actor }
    }

    /// Returns the kind as it is recorded: beside a run the run says it.
    pub(crate) fn recorded_kind(&self) -> ActorKind {
        if self.run.is_some() && self.kind == ActorKind::Run { ActorKind::Unknown } else { self.kind }
    }
}

/// A command with who asks for it.
#[derive(Debug, Clone)]
pub struct Request {
    /// What.
    pub command: Command,
    /// Who and when.
    pub context: Context,
}

/// What may be asked of a plan. Commands over several tasks are done for all of them or for none.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Command {
    /// Makes a task.
    Create(Box<NewTask>),
    /// Changes fields of a task.
    Update {
        /// The task.
        id: TaskRef,
        /// New values by their names on the outside; `null` takes the field away. `metadata` and `context` merge.
        fields: Map,
        /// The version that the task must have.
        if_version: Option<u64>,
    },
    /// Deletes tasks that nothing else depends on.
    Delete {
        /// The tasks.
        ids: Vec<TaskRef>,
    },
    /// Takes a ready manual task, or renews the claim of its holder.
    Claim {
        /// The task; `None` for the first ready one.
        id: Option<TaskRef>,
        /// How long the lease lasts.
        lease: Duration,
        /// How much there is of resources, where that is known from elsewhere than plans.
        capacities: BTreeMap<String, u32>,
        /// The paths that ready tasks write, where links lead elsewhere.
        writes: BTreeMap<Key, ResolvedWrites>,
    },
    /// Prolongs a claim.
    Renew {
        /// The task.
        id: TaskRef,
        /// How long the lease lasts from now.
        lease: Duration,
    },
    /// Gives a claimed task back.
    Release {
        /// The tasks.
        ids: Vec<TaskRef>,
    },
    /// Ends a manual task well, or says that an interrupted call ended well.
    Done {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// What came out of it.
        result: Option<Value>,
        /// A remark.
        note: Option<String>,
        /// The attempt that the report belongs to.
        attempt: Option<u32>,
    },
    /// Ends a manual task badly, or says that an interrupted call ended badly.
    Fail {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// What came out of it.
        result: Option<Value>,
        /// Why.
        note: Option<String>,
        /// The attempt that the report belongs to.
        attempt: Option<u32>,
    },
    /// Says that tasks, with all below, are not needed.
    Skip {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// Why.
        reason: Option<String>,
    },
    /// Stops a task from starting.
    Block {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// Why.
        reason: String,
    },
    /// Takes a block away.
    Unblock {
        /// The tasks.
        ids: Vec<TaskRef>,
    },
    /// Starts finished tasks again where they stopped.
    Retry {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// Also start again what depends on them and ran.
        cascade: bool,
    },
    /// Starts finished tasks again from the beginning.
    Reopen {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// Also start again what depends on them and ran.
        cascade: bool,
    },
    /// Gives tasks, with all below, up.
    Cancel {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// Why.
        reason: Option<String>,
    },
    /// Adds a tool call to a task.
    AddCall {
        /// The task.
        id: TaskRef,
        /// The call.
        call: Box<NewCall>,
    },
    /// Makes a task depend on another.
    AddDependency {
        /// The task.
        id: TaskRef,
        /// What it is to depend on.
        on: TaskRef,
    },
    /// Makes a task not depend on another any more.
    RemoveDependency {
        /// The task.
        id: TaskRef,
        /// What it depends on.
        on: TaskRef,
    },
    /// Puts an existing task below another, or at the top.
    Move {
        /// The task.
        id: TaskRef,
        /// The task above; `None` for the top.
        parent: Option<TaskRef>,
    },
    /// Adds a remark.
    Note {
        /// The task.
        id: TaskRef,
        /// The text.
        text: String,
    },
    /// Brings a plan into the store.
    Apply(Arc<Apply>),
    /// Gives a plan another name; its tasks keep their ids.
    RenamePlan {
        /// The name.
        from: String,
        /// The new name.
        to: String,
    },
    /// Takes back what a command of people or agents did, by a new event; refused where something later touched its tasks.
    Undo {
        /// The command, by the revision of one of its events; `None` for the last one of this actor that is not undone.
        revision: Option<u64>,
    },
    /// Records that a run starts.
    StartRun(Box<RunStart>),
    /// Records the first part of idempotency keys without a run.
    SettleKeys(Box<KeyRequest>),
    /// Says that a run ended.
    FinishRun {
        /// The run.
        id: RunId,
        /// The exit code.
        exit: u8,
        /// What became of the tasks that it ended.
        counts: std::collections::BTreeMap<String, u64>,
    },
    /// Forgets runs that are over, and what it takes to undo old commands; events stay. Files are none of its business.
    Prune(Box<Prune>),
    /// Everything that a run writes at once: how calls ended, what that makes ready, and what is claimed next.
    Round(Box<Round>),
    /// Says how a call of a run ended, and starts what comes next in the task.
    Report(Box<Report>),
    /// Asks for one task to run: blocks it where its dependencies are unfinished.
    RunOne {
        /// The task.
        id: TaskRef,
        /// The first tool of its calls that this process does not know.
        missing_tool: Option<String>,
    },
    /// Lets every gate take effect: after the file of a store was edited by something else.
    Settle,
    /// Says that a run has ended without finishing: it was killed, or its machine was. Says nothing about a run that is closed.
    CloseRun {
        /// The run.
        id: RunId,
    },
    /// Gives back those of the tasks whose leases have ended.
    ReturnExpired {
        /// The tasks.
        tasks: Vec<Key>,
    },
    /// Lets tasks or calls start that wait for a decision.
    Approve {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// The answer to the question.
        answer: Option<Value>,
        /// The arguments to run with instead.
        args: Option<Map>,
        /// The hash of what was looked at; what is asked for meanwhile must be the same.
        hash: Option<String>,
    },
    /// Cancels tasks that wait for a decision.
    Reject {
        /// The tasks.
        ids: Vec<TaskRef>,
        /// Why.
        reason: Option<String>,
    },
    /// Lets those of the tasks go the way that their plan says which nobody has decided about in time.
    ExpireApprovals {
        /// The tasks.
        tasks: Vec<Key>,
    },
    /// Frees tasks that wait for a tool that this process knows.
    ToolsKnown {
        /// The tasks.
        tasks: Vec<Key>,
    },
    /// Asks about tasks that wait for a decision by the policy of now: anew, or not any more.
    PolicyKnown {
        /// The tasks.
        tasks: Vec<Key>,
    },
    /// Lets a call that runs add to its plan, as far as its plan access goes.
    Grow(Box<Grow>),
    /// Tells everybody of the checklist that a model keeps beside its work.
    Checklist {
        /// Whose it is.
        scope: String,
        /// All of it.
        items: Vec<ChecklistItem>,
        /// Whether who keeps it has yet to empty it.
        cleared: bool,
        /// The lock that is held for as long as its process is there.
        keeper: Option<String>,
        /// Whether the list stays for review when its process ends.
        kept: bool,
    },
    /// Brings tasks of another program into the store, with their states.
    Import(Box<Import>),
    /// Does what it holds, unless the same actor has had it done by this request before: then nothing is done, and the answer is that
    /// of then.
    Once(Box<Once>),
}

impl Command {
    /// Returns the command that records the start of a run and leaves idempotency keys as they are.
    pub fn start_run(run: RunRecord) -> Self {
        Self::StartRun(Box::new(RunStart { run, keys: None }))
    }

    /// Returns the tasks that it is about, as it names them.
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
            | Self::Grow(_)
            | Self::Import(_) => Vec::new(),
            Self::Once(once) => once.command.names(),
        }
    }

    /// Returns whether an agent or a person gives it; the others are given by runs, or follow from what was found.
    pub(crate) fn is_by_actor(&self) -> bool {
        !self.names().is_empty()
            || matches!(
                self,
                Self::Create(_) | Self::Claim { .. } | Self::Apply(_) | Self::Undo { .. } | Self::Import(_)
            )
    }
}

/// A command that is done once, however often somebody asks who has not heard the answer.
#[derive(Debug, Clone)]
pub struct Once {
    /// How its actor calls the request.
    pub request: String,
    /// What tells it from another request that was given the same name.
    pub digest: String,
    /// The command.
    pub command: Command,
}

/// What was done by a request, and what was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRecord {
    /// The name of the actor.
    pub actor: String,
    /// Its kind; not known of requests that versions before 0.2 recorded.
    #[serde(default, skip_serializing_if = "ActorKind::is_unknown")]
    pub kind: ActorKind,
    /// The name that the actor gave it.
    pub request: String,
    /// What tells it from another request of the same name.
    pub digest: String,
    /// When it was done.
    pub at: Timestamp,
    /// The tasks that the answer named.
    pub tasks: Vec<TaskId>,
    /// What an apply did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<ApplyReport>,
}

impl RequestRecord {
    /// Returns the text that a store keeps the actor under.
    pub fn actor_key(&self) -> String {
        Actor { kind: self.kind, name: &self.actor }.key()
    }

    /// Returns whether `actor` made the request. One that is recorded without a kind is told by its name.
    pub fn is_of(&self, actor: Actor<'_>) -> bool {
        actor.is(self.kind, &self.actor)
    }
}

/// A run that starts.
#[derive(Debug, Clone)]
pub struct RunStart {
    /// Its record.
    pub run: RunRecord,
    /// The first part of the keys of its calls; `None` leaves what is recorded.
    pub keys: Option<KeyRequest>,
}

/// What to forget. Runs that are not over any more, or not there, are left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prune {
    /// Runs whose records go.
    pub runs: Vec<RunId>,
    /// Runs of which only the output is gone.
    pub outputs: Vec<RunId>,
    /// Forget what it takes to undo commands up to this revision.
    pub commands: Option<u64>,
    /// When these were given at the latest, for the record; requests that were done before are forgotten.
    pub before: Option<Timestamp>,
    /// How many files go with it, for the record.
    pub files: u64,
    /// How many bytes these have.
    pub bytes: u64,
}

/// A task to make.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NewTask {
    /// The id.
    pub id: TaskId,
    /// What its author writes.
    pub spec: TaskSpec,
    /// The first context.
    pub context: Map,
    /// Its calls.
    pub calls: Vec<NewCall>,
    /// What it depends on.
    pub dependencies: Vec<TaskRef>,
    /// The task above.
    pub parent: Option<TaskRef>,
    /// The plan that it joins; without one that of the task above, if there is one.
    pub plan: Option<String>,
}

/// What a call that runs adds to the plan of its task.
#[derive(Debug, Clone)]
pub struct Grow {
    /// The task of the call.
    pub task: Key,
    /// The attempt of the task.
    pub attempt: u32,
    /// The call.
    pub call: CallId,
    /// Which start of the call this is: an earlier one has lost its access.
    pub start: u32,
    /// What it adds.
    pub growth: Growth,
}

/// What can be added to a plan from inside a call: new tasks, and what concerns these alone.
#[derive(Debug, Clone)]
pub enum Growth {
    /// A task, at the top or below one that the same task has added.
    Create(Box<NewTask>),
    /// Tasks in the form of a plan. Those that the same task has added before follow, unless they were started.
    Join(Box<Plan>),
    /// A tool call of a task that was added so.
    AddCall {
        /// The task.
        id: TaskRef,
        /// The call.
        call: Box<NewCall>,
    },
    /// A dependency of a task that was added so; or one on it, of a task of the plan that was not started.
    AddDependency {
        /// The task.
        id: TaskRef,
        /// What it is to depend on.
        on: TaskRef,
    },
    /// A remark on a task of the plan.
    Note {
        /// The task.
        id: TaskRef,
        /// The text.
        text: String,
    },
}

/// A plan to bring into the store.
#[derive(Debug, Clone, Default)]
pub struct Apply {
    /// The plan.
    pub plan: Plan,
    /// Its name.
    pub name: String,
    /// An id for each task of the plan that may need a new one, by position.
    pub fresh_ids: Vec<TaskId>,
    /// Cancel tasks that are gone from the file and were not started.
    pub prune: bool,
    /// Reopen every task of the plan.
    pub fresh: bool,
    /// Refuse it where it would take an approval away from a task or a call, or change it: for programs of a run.
    pub keeps_approvals: bool,
}

/// One round of a run. What is of no account any more (a claim of a task that is no longer ready) is left out; the rest is done.
/// Of a report about a task that was cancelled counts that the call has ended. By default there is no bound on places, and nothing is
/// claimed that only becomes ready.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// How calls ended.
    pub reports: Vec<Report>,
    /// Tasks given back before their calls started, with the attempt.
    pub releases: Vec<(Key, u32)>,
    /// Tasks to claim.
    pub claims: Vec<Key>,
    /// Tasks that this run holds and that go on, with the attempt: their pause is over, or there is a place again.
    pub resumes: Vec<(Key, u32)>,
    /// What claims with limits were given.
    pub grants: BTreeMap<Key, Grant>,
    /// How many calls may start with this: of tasks that go on, of claims, then of what becomes ready by it. A claim for which
    /// no place is left is not made: the answer has it among its `needs`, where it needs nothing else.
    pub places: usize,
    /// Whether tasks that become ready by this may be claimed, too.
    pub takes_new: bool,
    /// How many more calls of a tool may start; tools that are not named have no limit.
    pub tool_places: BTreeMap<String, usize>,
    /// What holds for all tasks of the run.
    pub rules: Arc<RunRules>,
    /// Plans of whose tasks nothing more starts in this run: their time or their budget is used up.
    pub ended_plans: Arc<BTreeSet<String>>,
    /// The tools that the run knows: tasks whose next calls need another stay as they are.
    pub tools: Arc<BTreeSet<String>>,
    /// What the run is restricted to.
    pub scope: Option<Arc<BTreeSet<Key>>>,
    /// How far it is from each task to the end: of those that are claimed and those that become ready by this, what is furthest
    /// goes first.
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

/// What holds for all tasks of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunRules {
    /// How much there is of each resource; 1 of what is not named.
    pub capacities: BTreeMap<String, u32>,
    /// The retries of calls where neither they nor their tasks say anything.
    pub retry: Option<Retry>,
    /// The longest that each attempt of a task may take where it says nothing.
    pub timeout: Option<Period>,
    /// Recorded results do not stand for running a task.
    pub no_cache: bool,
}

/// What a task needs before it starts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Needs {
    /// Units of resources.
    pub resources: BTreeMap<String, Amount>,
    /// Paths that it writes, as its author wrote them.
    pub writes: Vec<String>,
    /// The same without links, where that was found out.
    pub resolved: Option<Vec<String>>,
    /// The task whose items it is one of, and how many of these run at once.
    pub items: Option<(Key, u32)>,
    /// The tool of its first call, of whose places none is left.
    pub tool: Option<String>,
    /// What decides whether its last success can stand for it.
    pub cache: Option<CacheInputs>,
    /// Whether another run, or somebody, holds what it needs: then the store has to change first.
    pub is_held_elsewhere: bool,
}

impl Needs {
    /// Returns whether it needs something that others may hold.
    pub fn has_limits(&self) -> bool {
        !self.resources.is_empty() || !self.writes.is_empty() || self.items.is_some()
    }

    /// Returns the paths that it writes, as they are compared.
    pub fn paths(&self) -> Vec<String> {
        paths::written(self.resolved.as_ref().unwrap_or(&self.writes))
    }

    /// Returns the first resource of which it needs more than there is.
    pub fn too_much(&self) -> Option<(&str, Amount)> {
        let mut resources = self.resources.iter().map(|(name, amount)| (name.as_str(), *amount));
        resources.find(|(_, amount)| amount.units > amount.of)
    }
}

/// Units of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// How many are needed.
    pub units: u32,
    /// How many there are.
    pub of: u32,
}

/// What the success of a task with `cache` depends on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CacheInputs {
    /// The SHA-256, in hexadecimal, of its calls, their arguments and its key.
    pub work: String,
    /// The files whose contents count, as globs.
    pub files: Vec<String>,
    /// The fingerprint of the last success that may be taken.
    pub recorded: Option<String>,
}

/// What has to be found out for a task before it is claimed: the rules read no files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inquiry {
    /// What the success of the task depends on.
    pub cache: Option<CacheInputs>,
    /// Paths that it writes, in which links are to be followed.
    pub writes: Vec<String>,
}

/// Paths that a task writes, with links followed as far as they exist.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResolvedWrites {
    /// As the author of the task wrote them.
    pub asked: Vec<String>,
    /// From the directory of the project, or made by [`paths::outside`].
    pub paths: Vec<String>,
}

/// What a claim was given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grant {
    /// Of a task with `cache`: what its success depends on, as it was asked for.
    pub work: Option<String>,
    /// The SHA-256, in hexadecimal, of that and of the contents of its files; none where a file changed while it was read.
    pub fingerprint: Option<String>,
    /// The paths that it writes, where it writes any.
    pub writes: Option<ResolvedWrites>,
}

impl Grant {
    /// Returns whether it was given for these paths: a definition may have changed since.
    pub(crate) fn is_for(&self, writes: &[String]) -> bool {
        self.writes.as_ref().is_none_or(|resolved| resolved.asked == writes)
    }
}

/// A task that the run holds and of which nothing more runs for now.
#[derive(Debug, Clone, PartialEq)]
pub struct Paused {
    /// The task.
    pub key: Key,
    /// The attempt.
    pub attempt: u32,
    /// The plan of the task.
    pub plan: Option<SharedText>,
    /// When it goes on; `None` where it waits for a place alone.
    pub until: Option<Timestamp>,
    /// The tools of whose places none was left: one of any of them lets it go on, too.
    pub tools: BTreeSet<String>,
}

/// What is kept of an interrupted call of which nothing else is known.
pub(crate) const UNKNOWN_END: &str = "it was stopped while it ran, and nobody knows how far it came";

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEnd {
    /// Well.
    Succeeded(Value),
    /// Badly.
    Failed {
        /// Why.
        error: CallError,
        /// What the tool answered all the same.
        result: Option<Value>,
    },
    /// It was stopped, and nobody knows how far it came.
    Interrupted {
        /// Whether it may be started again all the same.
        repeatable: bool,
        /// What is known of how that came, such as the last words of who did the work.
        why: Option<String>,
    },
}

impl CallEnd {
    /// Returns the end of a call of which nothing is known but that it was stopped.
    pub fn interrupted(repeatable: bool) -> Self {
        Self::Interrupted { repeatable, why: None }
    }
}

/// The report of a run about a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The task.
    pub task: Key,
    /// The attempt that the call belongs to.
    pub attempt: u32,
    /// The call.
    pub call: CallId,
    /// How it ended.
    pub end: CallEnd,
    /// The parts of its result that were cut, as JSON Pointers; `""` is the whole.
    pub cut: Vec<String>,
    /// What it used up.
    pub usage: Option<Value>,
    /// Files that changed while it ran although its task does not say that it writes them.
    pub changed_beyond: Vec<String>,
    /// Why these are not known.
    pub changes_unknown: Option<String>,
    /// Whether the files that the success of its task depends on are not those that they were when it was claimed.
    pub inputs_changed: bool,
    /// Whether the next call of the task starts; else the task is given back.
    pub go_on: bool,
}

impl Report {
    /// Returns the report about a call that ended and used up nothing; its task does not go on.
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

/// A call that the store has recorded as started: now it may be started.
#[derive(Debug, Clone, PartialEq)]
pub struct StartedCall {
    /// The task.
    pub key: Key,
    /// Its id.
    pub task: TaskId,
    /// The attempt of the task.
    pub attempt: u32,
    /// How often the task was cleared.
    pub generation: u32,
    /// How many rounds of `repeat` are over.
    pub round: u32,
    /// The call.
    pub call: CallRecord,
    /// Its arguments, evaluated.
    pub args: Map,
    /// When the time of the task is over.
    pub deadline: Option<Timestamp>,
    /// The plan of the task.
    pub plan: Option<SharedText>,
    /// What the author of the task wrote.
    pub spec: Shared<TaskSpec>,
    /// What it asks of the sandbox and has been allowed; `None` where nobody judges calls.
    pub sandbox: Option<SandboxRequest>,
    /// What the success of its task depends on, with the fingerprint that it was claimed with.
    pub cache: Option<CacheInputs>,
}

/// What a command answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The tasks that the command was about, in its order.
    pub tasks: Vec<TaskId>,
    /// Calls that are to be started now.
    pub started: Vec<StartedCall>,
    /// Tasks of the command, or above or behind them, that ended, and how.
    pub ended: Vec<(Key, Status)>,
    /// Tasks that became ready.
    pub ready: Vec<Node>,
    /// Tasks that were not claimed because nobody here knows a tool that they need.
    pub missing_tools: Vec<(Key, String)>,
    /// Tasks that wait for a decision since this.
    pub asked: Vec<Key>,
    /// Tasks that were not claimed because they need something first.
    pub needs: Vec<(Key, Needs)>,
    /// Tasks of this run that pause.
    pub paused: Vec<Paused>,
    /// What an apply did.
    pub applied: Option<ApplyReport>,
    /// What an import did.
    pub imported: Option<ImportReport>,
    /// What an undo undid.
    pub undone: Option<Undone>,
    /// Whether the same request was done before, and nothing now.
    pub repeated: bool,
    /// How many events the command wrote: with `revision` this tells whether others wrote in between.
    pub events: u64,
    /// The revision after the command; set by the store.
    pub revision: u64,
}

/// What an undo undid or would undo.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Undone {
    /// The revision of the first event of the command.
    pub first: u64,
    /// The revision of its last event.
    pub last: u64,
    /// Who gave it.
    pub actor: String,
    /// Tasks that are there and as they were before; some were deleted and are back.
    pub restored: Vec<TaskId>,
    /// Tasks that are gone again because the command had made them.
    pub removed: Vec<TaskId>,
}

/// What an apply did or would do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplyReport {
    /// The plan.
    pub plan: String,
    /// Tasks that are new.
    pub created: Vec<TaskId>,
    /// Tasks that changed.
    pub changed: Vec<TaskId>,
    /// How many stayed as they were.
    pub unchanged: u64,
    /// Tasks of the plan that are gone from the file and stay.
    pub gone: Vec<TaskId>,
    /// Tasks that were cancelled because they are gone from the file.
    pub pruned: Vec<TaskId>,
    /// Tasks that were reopened.
    pub reopened: u64,
    /// Fields beside the tasks that changed; of a new plan `notify` alone, which names a program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub header: Vec<String>,
    /// What the ids of all its tasks begin with, before a dot: they were taken when it was applied first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Ids of the file that were taken: each of these tasks got the name of the plan and a dot before its id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixed: Vec<TaskId>,
}

/// What a command comes to: what to write, and what to answer once it is written.
#[derive(Debug, Default)]
pub struct Decision {
    /// What to write.
    pub changes: Changes,
    /// What to answer.
    pub answer: Answer,
}

/// A command came to nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// The rules refuse it: the caller may mend it.
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
