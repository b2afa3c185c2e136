//! Texts of all tools: names, parameters, answers and rules. The descriptions, schemas, help, guides and the table in
//! the README are generated from them.

use serde_json::{Map, Value, json};
use taskpawl_tools::{Hints, ToolSpec};

use crate::dialect::Dialect;
use crate::{conversation, queue, session};

/// Operation of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    ListTasks,
    AddTask,
    CompleteTask,
    UncompleteTask,
    DeleteTask,
    Manage,
    Write,
    Read,
    Queue,
    Promote,
}

/// A parameter of a tool, or a field of a list item.
#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    pub(crate) text: &'static str,
}

/// Type of a parameter.
#[derive(Debug)]
pub(crate) enum Kind {
    Text,
    Number,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A boolean.
    Flag,
    /// A list of ids or names.
    Names,
    /// A list of objects with these fields.
    List(&'static [Param]),
}

/// Documentation of a tool.
#[derive(Debug)]
pub(crate) struct ToolText {
    pub(crate) verb: Verb,
    pub(crate) name: &'static str,
    /// The dialect of the tool; `None` if it works with all of them.
    pub(crate) dialect: Option<Dialect>,
    pub(crate) summary: &'static str,
    /// Rules that models should know before they call it.
    pub(crate) rules: &'static [&'static str],
    pub(crate) params: &'static [Param],
    pub(crate) answers: &'static [&'static str],
    pub(crate) hints: Hints,
}

const fn text(name: &'static str, text: &'static str) -> Param {
    Param { name, kind: Kind::Text, required: true, text }
}

const fn optional(param: Param) -> Param {
    Param { required: false, ..param }
}

const fn word(name: &'static str, words: &'static [&'static str], text: &'static str) -> Param {
    Param { name, kind: Kind::Word(words), required: true, text }
}

const NOTHING: Hints = Hints { read_only: false, idempotent: false, destructive: false, open_world: false };
const READS: Hints = Hints { read_only: true, idempotent: true, ..NOTHING };
const REPEATABLE: Hints = Hints { idempotent: true, ..NOTHING };

const NOT_FOUND: &str = r#"{"ok":false,"error":"Task not found"}"#;
const NO_TASK_ID: &str = r#"{"ok":false,"error":"taskId is required"}"#;
const MARKED: &str = r#"{"ok":true,"task":{"id","title","description","done"}}"#;
const TASK_ID: &[Param] = &[text("taskId", "The id of the task, as returned by ListTasks.")];

/// The parameter for the conversation, if calls may name it.
const CONVERSATION: Param =
    optional(text(conversation::ARGUMENT, "The id of the conversation that owns the list: a UUID."));

/// The parameter for the session, if calls may name it.
const SESSION: Param =
    optional(text(session::ARGUMENT, "The session that owns the list; the same in every call of a session."));

const CHECKLIST_ITEM: &[Param] = &[
    Param {
        name: "id",
        kind: Kind::Number,
        required: true,
        text: "The number of the item; by convention consecutive from 1.",
    },
    text("title", "The work to do, in 3-7 words by convention."),
    word("status", &["not-started", "in-progress", "completed"], "The progress of the item."),
];

const CHECKLIST_RULES: &[&str] = &[
    "Use it for complex multi-step work only, and skip it for simple tasks.",
    "Send the complete array each time: missing items are dropped.",
    "At most one item is in-progress at a time.",
    "Mark an item completed at once when it is done, not several together.",
    "Ids are consecutive from 1, and titles have 3-7 words.",
];

const CHECKLIST_ANSWERS: &[&str] = &[
    r#"{"success":true,"message":"Task list updated: 2/5 completed"}, with "dropped":[{"id","title"}] if unfinished items were dropped"#,
    r#"{"success":true,"taskList":[…]} for read"#,
    r#"{"success":false,"error":"…"}"#,
];

const OPERATION: Param = optional(word(
    "operation",
    &["write", "read"],
    "The default is write if a list is given, otherwise read.",
));

const LIST: &str = "The COMPLETE list with every item, including unchanged ones.";

const SESSION_ITEM: &[Param] = &[
    optional(text("id", "The id of the item; generated if missing or empty.")),
    text("content", "The work to do."),
    word("status", &["pending", "in_progress", "completed", "cancelled"], "The progress of the item."),
    word("priority", &["high", "medium", "low"], "The priority of the item."),
];

const SESSION_ANSWER: &str =
    r#"{"title":"2 todos","output":"[{\"id\",\"content\",\"status\",\"priority\"}, …]"}"#;

/// Every tool, by dialect.
pub(crate) const TOOLS: &[ToolText] = &[
    ToolText {
        verb: Verb::ListTasks,
        name: "ListTasks",
        dialect: Some(Dialect::Conversation),
        summary: "Lists the tasks of this conversation with their ids.",
        rules: &["A task is done or not; its id is never reused, even after it was deleted."],
        params: &[],
        answers: &[r#"{"tasks":[{"id","title","description","done"}, …]}"#],
        hints: READS,
    },
    ToolText {
        verb: Verb::AddTask,
        name: "AddTask",
        dialect: Some(Dialect::Conversation),
        summary: "Adds a task to the list of this conversation.",
        rules: &["Add one task for each piece of work before you start."],
        params: &[
            text("title", "The work to do, in a few words."),
            optional(text("description", "Details; empty by default.")),
        ],
        answers: &[
            r#"{"id","title","description","done":false}"#,
            r#"{"ok":false,"error":"title is required"}"#,
        ],
        hints: NOTHING,
    },
    ToolText {
        verb: Verb::CompleteTask,
        name: "CompleteTask",
        dialect: Some(Dialect::Conversation),
        summary: "Marks a task of this conversation as done.",
        rules: &["Mark a task only when it is done."],
        params: TASK_ID,
        answers: &[MARKED, NOT_FOUND, NO_TASK_ID],
        hints: REPEATABLE,
    },
    ToolText {
        verb: Verb::UncompleteTask,
        name: "UncompleteTask",
        dialect: Some(Dialect::Conversation),
        summary: "Marks a task of this conversation as not done.",
        rules: &["Use it when a task marked as done turns out to be unfinished."],
        params: TASK_ID,
        answers: &[MARKED, NOT_FOUND, NO_TASK_ID],
        hints: REPEATABLE,
    },
    ToolText {
        verb: Verb::DeleteTask,
        name: "DeleteTask",
        dialect: Some(Dialect::Conversation),
        summary: "Deletes a task of this conversation.",
        rules: &["Delete tasks that are no longer needed; keep finished tasks, marked as done."],
        params: TASK_ID,
        answers: &[r#"{"ok":true}"#, NOT_FOUND, NO_TASK_ID],
        hints: Hints { destructive: true, ..REPEATABLE },
    },
    ToolText {
        verb: Verb::Manage,
        name: "manage_tasks",
        dialect: Some(Dialect::Checklist),
        summary: "Keeps the checklist of this session, which people watch.",
        rules: CHECKLIST_RULES,
        params: &[
            Param { name: "taskList", kind: Kind::List(CHECKLIST_ITEM), required: false, text: LIST },
            OPERATION,
        ],
        answers: CHECKLIST_ANSWERS,
        hints: REPEATABLE,
    },
    ToolText {
        verb: Verb::Manage,
        name: "manage_todo_list",
        dialect: Some(Dialect::TodoList),
        summary: "Keeps the checklist of this session, which people watch.",
        rules: CHECKLIST_RULES,
        params: &[
            Param { name: "todoList", kind: Kind::List(CHECKLIST_ITEM), required: false, text: LIST },
            OPERATION,
        ],
        answers: CHECKLIST_ANSWERS,
        hints: REPEATABLE,
    },
    ToolText {
        verb: Verb::Write,
        name: "todowrite",
        dialect: Some(Dialect::Session),
        summary: "Replaces the to-do list of this session.",
        rules: &[
            "Send the complete list each time: missing items are dropped.",
            "At most one item is in_progress at a time.",
            "Mark an item completed at once when it is done, and cancelled when it becomes irrelevant.",
            "Use it for work of three or more steps, and skip it for a single simple step.",
        ],
        params: &[Param {
            name: "todos",
            kind: Kind::List(SESSION_ITEM),
            required: true,
            text: "The complete list.",
        }],
        answers: &[
            SESSION_ANSWER,
            r#"the same with "dropped":[{"id","content"}] if unfinished items were dropped"#,
            r#"{"error":"…"}, with item and field"#,
        ],
        hints: REPEATABLE,
    },
    ToolText {
        verb: Verb::Read,
        name: "todoread",
        dialect: Some(Dialect::Session),
        summary: "Reads the to-do list of this session.",
        rules: &["The number in the title counts the items that are not completed."],
        params: &[],
        answers: &[SESSION_ANSWER, r#"{"title":"0 todos","output":"[]"} for an empty list"#],
        hints: READS,
    },
    ToolText {
        verb: Verb::Queue,
        name: "task",
        dialect: Some(Dialect::Queue),
        summary: "Works on the queue of an agent: a list with two ends, as in Redis.",
        rules: &[
            "Push new work with rpush and pop the next item with lpop; lpush adds an item at the front.",
            "lpeek and rpeek read an item without removing it; list returns all items, count their number.",
            "Pass the id of another agent to give it work or to read its remaining items.",
            "With a lease, a popped item returns to the queue unless ack is called with its receipt before the lease ends.",
        ],
        params: &[
            text("agent_id", "The agent that owns the queue."),
            word("operation", &queue::OPERATIONS, "The operation to perform."),
            optional(text("item", "The item to push; required for lpush and rpush.")),
            optional(text(
                "lease",
                "For lpop and rpop: the duration of a lease, such as 5m; without it the item is removed permanently.",
            )),
            optional(text("receipt", "For ack: the receipt returned by the pop.")),
        ],
        answers: &[
            r#"{"count":3} for lpush, rpush, count"#,
            r#"{"item":"…"} or {"item":null} for lpop, rpop, lpeek, rpeek, with "receipt" under a lease"#,
            r#"{"items":["…", …]} for list"#,
            r#"{"ok":true} for ack"#,
            r#"{"error":"agent_id is required"}, {"error":"item is required"}, {"error":"unknown operation `x`"}"#,
        ],
        hints: NOTHING,
    },
];

/// The tool that works with all dialects, for hosts that also offer a plan.
pub(crate) const PROMOTE: ToolText = ToolText {
    verb: Verb::Promote,
    name: "todo_promote",
    dialect: None,
    summary: "Creates manual tasks of the plan from items of a to-do list.",
    rules: &[
        "Use it for work that outlives this session or is for others; ask your user first.",
        "The list is unchanged, and promoting an item again, even with another number, creates no second task.",
        "The tasks have the label todo.",
    ],
    params: &[
        optional(Param {
            name: "items",
            kind: Kind::Names,
            required: false,
            text: "The items, by id or title; a title selects all items with it. Default: all unfinished items.",
        }),
        optional(text("dialect", "The kind of list, such as session; required if several are available.")),
        optional(text("agent_id", "For a queue: the agent that owns it.")),
        optional(text("plan", "The plan for the tasks.")),
        optional(Param {
            name: "dry_run",
            kind: Kind::Flag,
            required: false,
            text: "Only returns the items that would become tasks, and the refusals.",
        }),
        optional(text("agent", "The actor that creates the tasks.")),
        optional(text("request_id", "Not needed: repeating the call creates no duplicates.")),
    ],
    answers: &[
        r#"{"tasks":[{"item","name","task","isNew"}, …],"made":2,"before":1}, with "leftOut" for more than 10"#,
        r#"{"tasks":[{"item","name"}, …],"dryRun":true}, with "task" and "isNew":false for items that already have a task; a refusal is an error"#,
        r#"{"tasks":[],"made":0,"before":0,"message":"no item is unfinished"}"#,
        r#"{"error":"…"}"#,
    ],
    hints: REPEATABLE,
};

/// The scope parameters of a tool that works with all dialects.
const SCOPES: &[Param] = &[CONVERSATION, SESSION];

/// Returns the tools of a dialect.
pub(crate) fn of_dialect(dialect: Dialect) -> impl Iterator<Item = &'static ToolText> {
    TOOLS.iter().filter(move |tool| tool.dialect == Some(dialect))
}

/// Returns the scope parameter of a dialect, for rules that allow it.
fn scope_param(dialect: Dialect) -> Option<&'static Param> {
    match dialect {
        Dialect::Conversation => Some(&CONVERSATION),
        Dialect::Checklist | Dialect::TodoList | Dialect::Session => Some(&SESSION),
        Dialect::Queue => None,
    }
}

impl ToolText {
    /// Returns the description by which models choose a tool.
    pub(crate) fn description(&self) -> String {
        std::iter::once(&self.summary).chain(self.rules).copied().collect::<Vec<_>>().join(" ")
    }

    /// Returns the parameters. With `with_scope`, includes the one for the scope.
    pub(crate) fn all_params(&self, with_scope: bool) -> impl Iterator<Item = &'static Param> {
        let scope = match self.dialect {
            Some(dialect) => scope_param(dialect).map_or(&[][..], std::slice::from_ref),
            None => SCOPES,
        };
        self.params.iter().chain(scope.iter().filter(move |_| with_scope))
    }

    /// Returns the specification for tool hosts.
    pub(crate) fn spec(&self, with_scope: bool) -> ToolSpec {
        let schema = object(self.all_params(with_scope));
        ToolSpec::new(self.name, self.description(), schema).with_hints(self.hints)
    }
}

fn object(params: impl Iterator<Item = &'static Param>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for param in params {
        properties.insert(param.name.to_owned(), param.schema());
        required.extend(param.required.then_some(param.name));
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

impl Param {
    fn schema(&self) -> Value {
        let text = self.text;
        match self.kind {
            Kind::Text => json!({"type": "string", "description": text}),
            Kind::Number => json!({"type": "number", "description": text}),
            Kind::Flag => json!({"type": "boolean", "description": text}),
            Kind::Names => {
                json!({"type": "array", "items": {"type": ["string", "number"]}, "description": text})
            }
            Kind::Word(words) => json!({"type": "string", "enum": words, "description": text}),
            Kind::List(fields) => {
                json!({"type": "array", "items": object(fields.iter()), "description": text})
            }
        }
    }
}
