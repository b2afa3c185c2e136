//! What is wrong with a plan, and where.

use std::fmt;

use taskpawl_json::JsonProblem;

use super::Position;
use crate::bounded::{self, Group};
use crate::expr::ExprFault;
use crate::hint::Hint;
use crate::{ByteSizeError, IdError, PeriodError, ValueFault};

/// Everything that is wrong with a plan, in the order of the text.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanErrors(Vec<PlanError>);

impl PlanErrors {
    /// Sorts the errors by where they stand. There is at least one.
    pub(crate) fn new(mut errors: Vec<PlanError>) -> Self {
        errors.sort_by_key(|error| error.at);
        Self(errors)
    }

    /// Returns the errors, the first in the text first; there is at least one.
    pub fn errors(&self) -> &[PlanError] {
        &self.0
    }
}

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |group: &Group<&PlanError>| group.first.counted(group.count);
        f.write_str(&bounded::kinds(&self.0, |error| error.kind(), text, "\n"))
    }
}

impl std::error::Error for PlanErrors {}

/// One thing that is wrong with a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanError {
    /// Where it stands; the default when the input is no text but a JSON value.
    pub at: Position,
    /// The field, such as `tasks[3].retry.attempts`; empty for the whole input.
    pub path: String,
    /// What is wrong.
    pub problem: PlanProblem,
    /// What to do next.
    pub hint: Option<Hint>,
}

impl PlanError {
    /// Returns a text that equal errors at other places have, too.
    pub fn kind(&self) -> (String, Option<String>) {
        (self.problem.to_string(), self.hint.as_ref().map(ToString::to_string))
    }

    /// Returns the text of `count` equal errors, of which this is the first.
    fn counted(&self, count: usize) -> String {
        let times = if count == 1 { String::new() } else { format!(", {count} times") };
        let hint = self.hint.as_ref().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
        format!("{}{}{times}{hint}", self.place(), self.problem)
    }

    fn place(&self) -> String {
        let at = if self.at == Position::default() { String::new() } else { format!("{}: ", self.at) };
        let path = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        at + &path
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.counted(1))
    }
}

impl std::error::Error for PlanError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.problem)
    }
}

/// What is wrong at one place of a plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanProblem {
    /// The text is neither JSON nor YAML.
    #[error("{message}")]
    Syntax {
        /// What the parser says.
        message: String,
    },
    /// The text holds nothing.
    #[error("the text is empty")]
    Empty,
    /// Lists and objects lie in each other too deep.
    #[error("lists and objects are nested more than {limit} deep")]
    TooDeep {
        /// The most levels.
        limit: usize,
    },
    /// An anchor or an alias.
    #[error("anchors and aliases are not supported")]
    Alias,
    /// A tag that is not known.
    #[error("tag `{tag}` is not supported")]
    Tag {
        /// The tag.
        tag: String,
    },
    /// A second YAML document.
    #[error("a second document begins here, only one is read")]
    SecondDocument,
    /// A key of an object that is no text.
    #[error("a key must be text that is not empty")]
    Key,
    /// A key stands twice in an object, or a number cannot be kept.
    #[error(transparent)]
    Json(#[from] JsonProblem),
    /// A parameter that is given a value twice.
    #[error("parameter `{name}` is given twice")]
    RepeatedParam {
        /// The parameter.
        name: String,
    },
    /// A value has another type than it should.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// What would be right.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A text or a list is empty that must not be.
    #[error("must not be empty")]
    Blank,
    /// A number or a duration is outside its range.
    #[error("must be {rule}, is `{found}`")]
    Range {
        /// The range in words.
        rule: &'static str,
        /// The value.
        found: String,
    },
    /// A word that is none of those that are allowed.
    #[error("unknown {what} `{word}`")]
    UnknownWord {
        /// What the word stands for.
        what: &'static str,
        /// The word.
        word: String,
    },
    /// A text that is no identifier.
    #[error("`{text}` is no identifier, allowed are letters, digits and `_`, the first no digit")]
    Identifier {
        /// The text.
        text: String,
    },
    /// A text that is no id.
    #[error(transparent)]
    Id(#[from] IdError),
    /// A text that is no duration.
    #[error(transparent)]
    Period(#[from] PeriodError),
    /// A text that is no size.
    #[error(transparent)]
    Size(#[from] ByteSizeError),
    /// A text that is no date.
    #[error("`{text}` is no date, expected for example `2026-05-31` or `2026-05-31T12:00:00Z`")]
    Date {
        /// The text.
        text: String,
    },
    /// A value that can be read and stands for nothing.
    #[error(transparent)]
    Value(#[from] ValueFault),
    /// A version of the format that is not known.
    #[error("version {found} of the format is not known, this program reads version {known}")]
    Version {
        /// The version that is given.
        found: String,
        /// The version that is read.
        known: u32,
    },
    /// A field that nobody knows and that would be lost, or that looks like another.
    #[error("unknown field `{field}` in {of}")]
    UnknownField {
        /// The field.
        field: String,
        /// What it stands in.
        of: &'static str,
    },
    /// A field that tells what has happened.
    #[error("`{field}` is state, which a plan cannot set")]
    StateField {
        /// The field.
        field: String,
    },
    /// A field that is known but has no place here.
    #[error("`{field}` has no place in {of}")]
    NotHere {
        /// The field.
        field: String,
        /// What it stands in.
        of: &'static str,
    },
    /// A field is missing.
    #[error("{of} needs {field}")]
    Missing {
        /// The field, with its backticks.
        field: &'static str,
        /// What it is missing in.
        of: &'static str,
    },
    /// Two fields say the same thing.
    #[error("`{first}` and `{second}` are both given")]
    Both {
        /// The field that is read first.
        first: String,
        /// The other.
        second: String,
    },
    /// A short form of a call that names no tool, or more than one.
    #[error("a tool call names one tool, this names {}", several(.tools))]
    Tools {
        /// What could be the tool.
        tools: Vec<String>,
    },
    /// An id is given twice.
    #[error("id `{id}` is already taken at {first}")]
    DuplicateId {
        /// The id.
        id: String,
        /// Where it is given first.
        first: Position,
    },
    /// A task without id has a name that another task answers to.
    #[error("a task without id is known by its name, and `{name}` is also the task at {other}")]
    DuplicateName {
        /// The name.
        name: String,
        /// Where the other task stands.
        other: Position,
    },
    /// A name that several tasks have.
    #[error("`{name}` is the name of the task at {first} and of that at {second}")]
    Ambiguous {
        /// The name.
        name: String,
        /// One of the tasks.
        first: Position,
        /// Another.
        second: Position,
    },
    /// A reference to a task that is not in the plan.
    #[error("no task of this plan has the id or name `{reference}`")]
    UnknownTask {
        /// The reference.
        reference: String,
    },
    /// A task is its own dependency or subtask.
    #[error("`{task}` cannot be {relation} of itself")]
    Itself {
        /// The task.
        task: String,
        /// `a dependency` or `a subtask`.
        relation: &'static str,
    },
    /// A task depends on a task that it is beneath.
    #[error("`{task}` depends on `{ancestor}`, which ends only after its subtasks")]
    OnAncestor {
        /// The task.
        task: String,
        /// What it is a subtask of, directly or not.
        ancestor: String,
    },
    /// A task depends on one of its subtasks.
    #[error("`{task}` depends on `{descendant}`, which is beneath it and starts only after it")]
    OnDescendant {
        /// The task.
        task: String,
        /// The subtask, direct or not.
        descendant: String,
    },
    /// A task is a subtask of two tasks.
    #[error("`{task}` is already a subtask at {first}")]
    TwoParents {
        /// The task.
        task: String,
        /// Where it is given first.
        first: Position,
    },
    /// Tasks wait for each other.
    #[error("tasks wait for each other: {}", arrows(.cycle))]
    Cycle {
        /// The tasks, each waiting for the next, the last the same as the first.
        cycle: Vec<String>,
    },
    /// Subtasks lie in each other too deep.
    #[error("subtasks are nested more than {limit} deep")]
    Nested {
        /// The most levels.
        limit: usize,
    },
    /// There are more tasks than may be written at once.
    #[error("more than {limit} tasks are written at once")]
    TooManyTasks {
        /// The most tasks.
        limit: usize,
    },
    /// A milestone has tool calls.
    #[error("a milestone has no tool calls")]
    MilestoneWithCalls,
    /// A trigger that can never come.
    #[error("trigger `{trigger}` needs dependencies")]
    TriggerAlone {
        /// The trigger.
        trigger: String,
    },
    /// An expression that cannot be read.
    #[error(transparent)]
    Expression(#[from] ExprFault),
    /// An expression uses a parameter that nobody declares.
    #[error("the plan has no parameter `{name}`")]
    UnknownParam {
        /// The parameter.
        name: String,
    },
    /// An expression uses a value of the context that is not there.
    #[error("`context` has no `{name}` here")]
    UnknownContext {
        /// The name.
        name: String,
    },
    /// An expression uses the item of a list where there is none.
    #[error("there is no `{name}` here")]
    NoItem {
        /// `item` or `index`.
        name: &'static str,
    },
    /// An expression asks a task for its own result.
    #[error("`{task}` asks for its own result")]
    OwnResult {
        /// The task.
        task: String,
    },
    /// An expression asks for the result of a task that need not have ended.
    #[error("`{task}` uses `{other}`, which is no dependency of it")]
    NoDependency {
        /// The task.
        task: String,
        /// The other one.
        other: String,
    },
    /// Fields that do not go together.
    #[error("`{field}` cannot be combined with `{with}`")]
    NotWith {
        /// The field.
        field: &'static str,
        /// The other one.
        with: &'static str,
    },
    /// A value was given for a parameter that it does not fit.
    #[error("parameter `{name}` is {expected}, not {found}")]
    ParamType {
        /// The parameter.
        name: String,
        /// What its type wants.
        expected: &'static str,
        /// What was given.
        found: String,
    },
    /// A task asks for more of a resource than there is.
    #[error("asks for {wanted} of resource `{resource}`, which has {capacity}")]
    Capacity {
        /// The resource.
        resource: String,
        /// What the task asks for.
        wanted: u32,
        /// What the plan declares.
        capacity: u32,
    },
}

fn several(tools: &[String]) -> String {
    match tools {
        [] => "none".to_owned(),
        tools => tools.iter().map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(" and "),
    }
}

/// The most names of a cycle that a message shows before it says how many it leaves out.
const SHOWN: usize = 12;

fn arrows(cycle: &[String]) -> String {
    let Some((last, names)) = cycle.split_last().filter(|_| cycle.len() > SHOWN) else {
        return format!("`{}`", cycle.join(" → "));
    };
    let hidden = names.len() - (SHOWN - 1);
    format!("`{} → … {hidden} more … → {last}`", names[..SHOWN - 1].join(" → "))
}
