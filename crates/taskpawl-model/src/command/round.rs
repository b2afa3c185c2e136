//! Commands of runs: the start of a run, its rounds, and the ends of calls.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::task::asked::{Artifact, ToolQuestion};
use crate::task::key_space::KeyRequest;
use crate::task::record::{CallError, CallRecord, RunRecord};
use crate::task::spec::{Retry, SandboxRequest, TaskSpec};
use crate::value::{CallId, Key, KeyMap, Period, Shared, SharedText, TaskId, paths};
use crate::value::{Map, Timestamp};

/// The start of a run.
#[derive(Debug, Clone)]
pub struct RunStart {
    /// Record of the run.
    pub run: RunRecord,
    /// Prefix of the idempotency keys of its calls; `None` keeps the recorded one.
    pub keys: Option<KeyRequest>,
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
    /// Digests of the environment variables of the run, by name. They are made with a key of the store, so that they do
    /// not reveal values that can be guessed.
    pub variables: Arc<BTreeMap<String, String>>,
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
    /// The tool asks a person, and starts over with the answer.
    Asks(Box<ToolQuestion>),
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
    /// The worker that ran it; `None` for the machine of the store.
    pub worker: Option<String>,
    /// Files that the call left for its readers.
    pub artifacts: Vec<Artifact>,
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
            worker: None,
            artifacts: Vec::new(),
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
