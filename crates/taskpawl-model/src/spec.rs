//! What an author writes about a task and its tool calls: everything but the state.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ByteSize, CallId, Period, Shared, TaskId};

/// A point in time, in UTC.
pub type Timestamp = chrono::DateTime<chrono::Utc>;

/// Returns a time in the form of RFC 3339, in UTC, with milliseconds where there are any.
pub fn format_time(time: Timestamp) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
}

/// A JSON object.
pub type Map = serde_json::Map<String, Value>;

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

            /// Returns the word that stands for this value on the outside.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Returns the value of this word.
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
    /// How urgent a task is. The order is that in which ready tasks are taken.
    #[derive(Default)]
    Priority {
        /// Before everything else.
        Critical = "critical",
        /// Before what is usual.
        High = "high",
        /// What is usual: the default.
        #[default]
        Medium = "medium",
        /// After everything else.
        Low = "low",
    }
}

word_enum! {
    /// When the dependencies of a task let it start.
    #[derive(Default)]
    Trigger {
        /// Every dependency is done or skipped: the default.
        #[default]
        AllDone = "all_done",
        /// The first dependency is done.
        AnyDone = "any_done",
        /// Every dependency is finished, however (clean-up).
        AllFinished = "all_finished",
        /// The first dependency has failed (compensation).
        AnyFailed = "any_failed",
    }
}

word_enum! {
    /// Whether the calls of a task run one after the other or at once.
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
    /// Who added a tool call; the policy decides by it.
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

/// The fields of a task's specification by their names on the outside.
pub(crate) const TASK_FIELDS: &[&str] = &[
    "name",
    "description",
    "priority",
    "dueDate",
    "assignee",
    "labels",
    "links",
    "trigger",
    "when",
    "forEach",
    "repeat",
    "mode",
    "retry",
    "timeout",
    "resources",
    "writes",
    "sandbox",
    "trustInputs",
    "approval",
    "cache",
    "estimate",
    "milestone",
];

/// The fields of a call's specification by their names on the outside.
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
    "planAccess",
    "idempotent",
];

/// The assignee that stands for any person.
pub(crate) const PERSON: &str = "person";

/// What an author writes about a task, without its id, its dependencies, its subtasks and its calls.
///
/// This is also the form in which stores keep it: fields that nobody knows stand in [`extra`](Self::extra) and survive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskSpec {
    /// A short title for people.
    pub name: String,
    /// What is to be done, in any length.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How urgent it is.
    #[serde(skip_serializing_if = "is_default")]
    pub priority: Priority,
    /// When it is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_date: Option<Timestamp>,
    /// Who is to do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// Free words to select by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Links that order nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
    /// When the dependencies let it start.
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
    /// Whether the calls run one after the other or at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Retries of its calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// The longest that each attempt of the task may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Period>,
    /// Units of named resources that it holds while it runs.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub resources: IndexMap<String, u32>,
    /// Paths that it writes: tasks that write the same take turns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// What it asks of the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxRequest>,
    /// Tasks and values of the context that its calls ask to trust whoever wrote them: a person confirms that once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trust_inputs: Vec<String>,
    /// A decision that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// When a recorded result may stand for running it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// How long it is expected to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Period>,
    /// A join that ends by itself.
    #[serde(skip_serializing_if = "is_default")]
    pub milestone: bool,
    /// Fields of `metadata` other than `toolCalls` and `context`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map,
    /// Fields of the task that this version does not know.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map,
}

impl TaskSpec {
    /// Returns when the dependencies let the task start.
    pub fn trigger(&self) -> Trigger {
        self.trigger.unwrap_or_default()
    }

    /// Returns whether only a person may end the task, where it is ended by hand.
    pub fn is_for_person(&self) -> bool {
        self.assignee.as_deref() == Some(PERSON)
    }

    /// Returns whether the calls run one after the other or at once.
    pub fn mode(&self) -> Mode {
        self.mode.unwrap_or_default()
    }
}

/// What an author writes about a tool call.
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
    /// The name in the task's context that takes the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save_as: Option<String>,
    /// The most bytes of its result that are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<ByteSize>,
    /// Retries of this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// The longest that it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Period>,
    /// What it asks of the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxRequest>,
    /// Tasks and values of the context that it asks to trust whoever wrote them: a person confirms that once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trust_inputs: Vec<String>,
    /// A decision that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Whether tasks in its result join the plan.
    #[serde(skip_serializing_if = "is_default")]
    pub emit: bool,
    /// What it may do with the plan from inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_access: Option<PlanAccess>,
    /// Whether it may be started again when nobody knows how it ended; without this the tool says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Fields that this version does not know.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map,
}

/// A tool call with its id, as an author gives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewCall {
    /// The id; without one the store numbers the call: `c1`, `c2`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<CallId>,
    /// The call.
    pub spec: Shared<CallSpec>,
}

word_enum! {
    /// What a call may do with the plan from inside.
    PlanAccess {
        /// See it.
        Read = "read",
        /// See it and add tasks.
        Add = "add",
    }
}

/// Links that order nothing.
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

/// One item task for each element of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForEach {
    /// An expression that gives the list, or the list.
    #[serde(rename = "in")]
    pub list: Value,
    /// How many items run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
}

/// Repetition until a condition holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Repeat {
    /// The expression that ends it.
    pub until: String,
    /// The most rounds.
    pub max: u32,
    /// The pause between two rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Period>,
}

/// How often and when a failed call is started again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Retry {
    /// All starts, the first included.
    pub attempts: u32,
    /// The first pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Period>,
    /// By what each pause is longer than the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// The longest pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delay: Option<Period>,
    /// Whether pauses vary at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<bool>,
    /// Which failures are tried again: `timeout`, an exit code, an error class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_on: Vec<Value>,
}

/// What a task or call asks of the sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SandboxRequest {
    /// Network access.
    #[serde(skip_serializing_if = "is_default")]
    pub net: bool,
    /// More paths to read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// More paths to write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
}

/// A decision that a task or call waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Approval {
    /// `required`: a plain yes or no.
    Word(ApprovalWord),
    /// A question.
    Question(Question),
}

word_enum! {
    /// The short form of an approval.
    ApprovalWord {
        /// A plain yes or no.
        Required = "required",
    }
}

/// The question of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Question {
    /// The question.
    pub ask: String,
    /// The answers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// How long the question stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Period>,
    /// What counts when nobody has answered by then: `reject`, which is the default, `approve`, or one of the options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<String>,
}

impl Approval {
    /// Returns the question, where there is more to it than yes or no.
    pub fn question(&self) -> Option<&Question> {
        match self {
            Self::Word(ApprovalWord::Required) => None,
            Self::Question(question) => Some(question),
        }
    }
}

/// When a recorded result may stand for running a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Cache {
    /// Files whose content counts, as globs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// An expression whose value counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Returns a specification as the object that it is in JSON.
pub(crate) fn to_map<T: Serialize>(spec: &T) -> Map {
    let value = serde_json::to_value(spec).expect("BUG: a specification is always valid JSON");
    if let Value::Object(map) = value { map } else { Map::new() }
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
