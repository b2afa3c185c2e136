//! Specifications: the fields of tasks and tool calls that authors write, without any status.

use std::collections::BTreeSet;

use crate::value::secret::{secret_names, used_variables};
use crate::value::{Map, Timestamp};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::value::{ByteSize, CallId, Period, Shared, TaskId};

macro_rules! word_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the word used in JSON, plans and output.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Parses such a word.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
pub(crate) use word_enum;

word_enum! {
    /// The priority of a task. Ready tasks are taken in the order of the variants.
    #[derive(Default)]
    Priority {
        /// Before everything else.
        Critical = "critical",
        /// Before normal tasks.
        High = "high",
        /// Normal: the default.
        #[default]
        Medium = "medium",
        /// After everything else.
        Low = "low",
    }
}

word_enum! {
    /// The condition on the dependencies of a task under which it starts.
    #[derive(Default)]
    Trigger {
        /// Every dependency is done or skipped: the default.
        #[default]
        AllDone = "all_done",
        /// The first dependency is done.
        AnyDone = "any_done",
        /// Every dependency is finished, with any status (clean-up).
        AllFinished = "all_finished",
        /// The first dependency has failed (compensation).
        AnyFailed = "any_failed",
    }
}

word_enum! {
    /// The order in which the calls of a task run.
    #[derive(Default)]
    Mode {
        /// One after the other: the default.
        #[default]
        Sequential = "sequential",
        /// All at once.
        Parallel = "parallel",
    }
}

word_enum! {
    /// The kind of author that added a tool call. The policy uses it.
    Origin {
        /// A person, on the command line.
        Cli = "cli",
        /// A program that embeds the library.
        Library = "library",
        /// A plan file that a person applied.
        Plan = "plan",
        /// A client of the MCP server.
        Mcp = "mcp",
        /// An agent, through a tool call.
        Agent = "agent",
    }
}

/// The JSON names of the fields of a task's specification.
pub(crate) const TASK_FIELDS: &[&str] = &[
    "name",
    "description",
    "priority",
    "dueDate",
    "notBefore",
    "assignee",
    "labels",
    "links",
    "trigger",
    "when",
    "forEach",
    "repeat",
    "rework",
    "mode",
    "retry",
    "timeout",
    "resources",
    "writes",
    "worktree",
    "runsOn",
    "sends",
    "sandbox",
    "trustInputs",
    "approval",
    "cache",
    "estimate",
    "milestone",
];

/// The JSON names of the fields of a call's specification.
pub(crate) const CALL_FIELDS: &[&str] = &[
    "toolName",
    "args",
    "when",
    "saveAs",
    "keep",
    "retry",
    "timeout",
    "sandbox",
    "trustInputs",
    "approval",
    "emit",
    "verify",
    "setup",
    "planAccess",
    "idempotent",
];

/// The label of the machine of the store in `runsOn`: the task does not leave it.
pub const LOCAL_LABEL: &str = "local";

/// Begins the name of the resource that stands for the slots of workers with a label.
pub const WORKER_RESOURCE: &str = "worker:";

/// The tool that ends the work in a worktree with a commit.
pub const WORKTREE_TOOL: &str = "worktree_commit";

/// The id of its call, by which expressions read the commit.
pub const WORKTREE_CALL: &str = "worktree";

/// The tool that merges the work of tasks with worktrees.
pub const MERGE_TOOL: &str = "merge";

/// The tool that records the files that a task has to leave.
pub const ARTIFACTS_TOOL: &str = "artifacts";

/// The id of its call.
pub const ARTIFACTS_CALL: &str = "artifacts";

/// The tool that returns its argument: the result of a task that includes a plan.
pub const RETURN_TOOL: &str = "return";

/// The id of its call.
pub const RETURN_CALL: &str = "returns";

/// The tool whose calls take part in a rework.
pub const AGENT_TOOL: &str = "agent";

/// The resource that tasks of a plan hold while their agents work in the conversation that they share.
pub const SESSION_RESOURCE: &str = "agent-session";

/// The assignee that stands for any person.
pub(crate) const PERSON: &str = "person";

/// The fields of a task that an author writes, without its id, dependencies, subtasks and calls.
///
/// Stores keep this form. Fields unknown to this version are preserved in [`extra`](Self::extra).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskSpec {
    /// A short title for people.
    pub name: String,
    /// The work to do, in any length.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The priority.
    #[serde(skip_serializing_if = "is_default")]
    pub priority: Priority,
    /// The due date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_date: Option<Timestamp>,
    /// The time before which it may not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// The assigned agent or person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// Free labels for selection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Links to other tasks, without effect on the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
    /// The condition on the dependencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// Condition: an expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// One item task for each element of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_each: Option<ForEach>,
    /// Repetition until a condition holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
    /// Rounds in which its agent corrects work that fails its verification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rework: Option<u32>,
    /// The order of its calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The retry policy of its calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// The time limit of each attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Period>,
    /// Units of named resources that it holds while it runs.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub resources: IndexMap<String, u32>,
    /// Paths that it writes. Tasks that write the same paths take turns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// The git worktree in which its calls run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Box<Worktree>>,
    /// Labels of the workers that may run its calls; `local` for the machine of the store.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs_on: Vec<String>,
    /// Globs of files that reach a worker although git does not track them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sends: Vec<String>,
    /// Permissions that it requests from the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxRequest>,
    /// Tasks and context values that its calls request to trust, regardless of their authors. A person confirms the
    /// request once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trust_inputs: Vec<String>,
    /// The approval that it waits for: before it starts, or about its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// The conditions under which a cached result replaces a run of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// The expected duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Period>,
    /// True if it is a milestone, which ends by itself.
    #[serde(skip_serializing_if = "is_default")]
    pub milestone: bool,
    /// Fields of `metadata` other than `toolCalls` and `context`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map,
    /// Fields unknown to this version.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map,
}

impl TaskSpec {
    /// Returns the units that it needs of each resource, as a task of `plan`. The slots of workers with a label of `runsOn` are a
    /// resource, too. Each plan has a shared conversation of its own.
    pub fn wanted_resources(&self, plan: Option<&str>) -> impl Iterator<Item = (String, u32)> {
        let resources = self.resources.iter().map(move |(name, units)| match plan {
            Some(plan) if name == SESSION_RESOURCE => (format!("{name}:{plan}"), *units),
            _ => (name.clone(), *units),
        });
        let labels = self.runs_on.iter().filter(|label| *label != LOCAL_LABEL);
        resources.chain(labels.map(|label| (format!("{WORKER_RESOURCE}{label}"), 1)))
    }

    /// Returns the condition on the dependencies.
    pub fn trigger(&self) -> Trigger {
        self.trigger.unwrap_or_default()
    }

    /// Returns whether only a person may end the task by hand.
    pub fn is_for_person(&self) -> bool {
        self.assignee.as_deref() == Some(PERSON)
    }

    /// Returns the approval that it waits for before it starts.
    pub fn approval_before(&self) -> Option<&Approval> {
        self.approval.as_ref().filter(|approval| !approval.is_after())
    }

    /// Returns the question about its result.
    pub fn approval_after(&self) -> Option<&Question> {
        self.approval.as_ref().filter(|approval| approval.is_after())?.question()
    }

    /// Returns the order of its calls.
    pub fn mode(&self) -> Mode {
        self.mode.unwrap_or_default()
    }
}

/// The fields of a tool call that an author writes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CallSpec {
    /// The name of the tool.
    pub tool_name: String,
    /// Its arguments.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub args: Map,
    /// Condition: an expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The name in the task's context under which the result is saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save_as: Option<String>,
    /// The maximum size of the stored result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<ByteSize>,
    /// The retry policy of this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// The time limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Period>,
    /// Permissions that it requests from the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxRequest>,
    /// Tasks and context values that it requests to trust, regardless of their authors. A person confirms the request
    /// once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trust_inputs: Vec<String>,
    /// The approval that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// True if its result may add tasks to the plan.
    #[serde(skip_serializing_if = "is_default")]
    pub emit: bool,
    /// True if it verifies the work of the task. It runs after all other calls, and the task fails with it.
    #[serde(skip_serializing_if = "is_default")]
    pub verify: bool,
    /// True if it prepares the worktree of the task. It runs before all other calls.
    #[serde(skip_serializing_if = "is_default")]
    pub setup: bool,
    /// Access to the plan while the call runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_access: Option<PlanAccess>,
    /// Permission to run again when its outcome is unknown. Without a value the tool decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Fields unknown to this version.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map,
}

impl CallSpec {
    /// Returns the names of the environment variables of the run that the arguments use.
    pub fn variables(&self) -> BTreeSet<String> {
        used_variables(&self.args)
    }

    /// Returns whether the arguments refer to secrets, or to environment variables, which may be secret.
    pub(crate) fn refers_to_secrets(&self) -> bool {
        !secret_names(&self.args).is_empty() || !self.variables().is_empty()
    }
}

/// The part of a task to which a call belongs. The parts follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallPart {
    /// The preparation of a worktree.
    Setup,
    /// The work itself.
    Work,
    /// Verifications of it.
    Verify,
    /// The files that it has to leave.
    Artifacts,
    /// The commit of a worktree.
    Commit,
}

impl CallSpec {
    /// Returns the part of the task to which the call belongs.
    pub fn part(&self) -> CallPart {
        match (self.tool_name.as_str(), self.verify) {
            (WORKTREE_TOOL, _) => CallPart::Commit,
            (ARTIFACTS_TOOL, true) => CallPart::Artifacts,
            _ if self.setup => CallPart::Setup,
            (_, true) => CallPart::Verify,
            (_, false) => CallPart::Work,
        }
    }
}

/// A tool call with an optional id, as an author writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewCall {
    /// The id; without one the store numbers the call: `c1`, `c2`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<CallId>,
    /// The call.
    pub spec: Shared<CallSpec>,
}

word_enum! {
    /// A call's access to the plan while it runs.
    PlanAccess {
        /// Reads it.
        Read = "read",
        /// Reads it and adds tasks.
        Add = "add",
    }
}

/// Links to other tasks, without effect on the order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Links {
    /// Tasks about the same thing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relates_to: Vec<TaskId>,
    /// Tasks during which this one was found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub discovered_from: Vec<TaskId>,
    /// Tasks that this one repeats.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub duplicates: Vec<TaskId>,
}

/// The `forEach` field: one item task for each element of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForEach {
    /// An expression that gives the list, or the list.
    #[serde(rename = "in")]
    pub list: Value,
    /// The maximum number of items that run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
}

/// The `repeat` field: rounds of a task until a condition holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Repeat {
    /// The expression that ends the repetition.
    pub until: String,
    /// The maximum number of rounds.
    pub max: u32,
    /// The pause between two rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Period>,
}

word_enum! {
    /// The hooks of the repository at the commit of a worktree.
    #[derive(Default)]
    Hooks {
        /// They run in the sandbox: the default.
        #[default]
        On = "on",
        /// They do not run.
        Off = "off",
    }
}

/// The `worktree` field: the git worktree of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Worktree {
    /// The branch; by default `taskpawl/PLAN/TASK`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit that it begins with; by default those of the tasks that it needs, or that of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// True if it stays after the task is merged.
    #[serde(skip_serializing_if = "is_default")]
    pub keep: bool,
    /// Directories of the project of which it gets a private copy, with blocks that both share where the file system can.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<String>,
    /// Globs of files of the project that git does not track, and that it gets a copy of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<String>,
    /// The number of ports of its own, which programs find as `TASKPAWL_PORT_0` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<u32>,
    /// `off` if its commit skips the hooks of the repository.
    #[serde(skip_serializing_if = "is_default")]
    pub hooks: Hooks,
    /// Calls that prepare it. A task has them among its calls; the defaults of a plan keep them here.
    #[serde(skip)]
    pub setup: Vec<NewCall>,
}

/// The retry policy of failed calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Retry {
    /// The maximum number of starts, including the first.
    pub attempts: u32,
    /// The pause before the first retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Period>,
    /// The factor between two pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// The maximum pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delay: Option<Period>,
    /// Random variation of the pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<bool>,
    /// Failures to retry: `timeout`, an exit code or an error class; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_on: Vec<Value>,
}

/// Permissions that a task or call requests from the sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SandboxRequest {
    /// Network access.
    #[serde(skip_serializing_if = "is_default")]
    pub net: bool,
    /// Additional readable paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Additional writable paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
}

impl SandboxRequest {
    /// Returns the exceptions from the sandbox in words, for a person who decides about them.
    pub fn described(&self) -> String {
        let net = self.net.then(|| "the network".to_owned());
        let paths = |verb: &str, paths: &[String]| {
            (!paths.is_empty()).then(|| format!("to {verb} {}", paths.join(", ")))
        };
        let all = [net, paths("read", &self.read), paths("write", &self.write)];
        all.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

/// An approval that a task or call waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Approval {
    /// `required`: yes or no.
    Word(ApprovalWord),
    /// A question.
    Question(Question),
}

word_enum! {
    /// The short form of an approval.
    ApprovalWord {
        /// Yes or no.
        Required = "required",
    }
}

/// The question of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Question {
    /// The question; empty for the usual one about a result.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ask: String,
    /// True if it is about the result of the task, once its calls have succeeded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub after: bool,
    /// The answers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The time within which it can be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Period>,
    /// The answer after that time: `reject` (the default), `approve`, or one of the options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<String>,
}

impl Question {
    /// Returns the question.
    pub fn text(&self) -> &str {
        if self.ask.is_empty() { "Is the result accepted?" } else { &self.ask }
    }
}

impl Approval {
    /// Returns whether it is about a result.
    pub fn is_after(&self) -> bool {
        self.question().is_some_and(|question| question.after)
    }

    /// Returns the question, if there is more to it than yes or no.
    pub fn question(&self) -> Option<&Question> {
        match self {
            Self::Word(ApprovalWord::Required) => None,
            Self::Question(question) => Some(question),
        }
    }
}

/// The `cache` field: conditions under which a recorded result replaces a run of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Cache {
    /// Globs of files whose content is part of the fingerprint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// An expression whose value is part of the fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Converts a specification to its JSON object.
pub(crate) fn to_map<T: Serialize>(spec: &T) -> Map {
    let value = serde_json::to_value(spec).expect("BUG: a specification is always valid JSON");
    if let Value::Object(map) = value { map } else { Map::new() }
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
