//! Errors in plans, with their positions in the text.

use std::fmt;

use taskpawl_json::JsonProblem;

use super::{IncludeError, IncludedPlace};
use crate::advice::hint::Hint;
use crate::expr::ExprFault;
use crate::task::ValueFault;
use crate::value::bounded::{self, Group};
use crate::value::{ByteSizeError, IdError, PeriodError};
use taskpawl_json::Position;

/// All errors of a plan, in the order of the text.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanErrors(Vec<PlanError>);

impl PlanErrors {
    /// Sorts the errors by position. The list must not be empty.
    pub(crate) fn new(mut errors: Vec<PlanError>) -> Self {
        errors.sort_by_key(|error| error.at);
        Self(errors)
    }

    /// Returns the errors in the order of the text; never empty.
    pub fn errors(&self) -> &[PlanError] {
        &self.0
    }
}

impl From<PlanError> for PlanErrors {
    fn from(error: PlanError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |group: &Group<&PlanError>| group.first.counted(group.count);
        f.write_str(&bounded::kinds(&self.0, |error| error.kind(), text, "\n"))
    }
}

impl std::error::Error for PlanErrors {}

/// An error in a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanError {
    /// The position in the text; the default if the input was a JSON value.
    pub at: Position,
    /// The field, such as `tasks[3].retry.attempts`; empty for the whole input.
    pub path: String,
    /// The problem.
    pub problem: PlanProblem,
    /// The hint.
    pub hint: Option<Hint>,
}

impl PlanError {
    /// Returns a key that is equal for equal errors at different positions.
    pub fn kind(&self) -> (String, Option<String>) {
        (self.problem.to_string(), self.hint.as_ref().map(ToString::to_string))
    }

    /// Returns the text for `count` equal errors, of which this is the first.
    fn counted(&self, count: usize) -> String {
        let times = if count == 1 { String::new() } else { format!(", {count} times") };
        let hint = self.hint.as_ref().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
        format!("{}{}{times}{hint}", self.location(), self.problem)
    }

    fn location(&self) -> String {
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

/// The kinds of problems in a plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanProblem {
    /// The text is neither JSON nor YAML.
    #[error("{message}")]
    Syntax {
        /// The message of the parser.
        message: String,
    },
    /// The text is empty.
    #[error("the text is empty")]
    Empty,
    /// Lists and objects are nested too deeply.
    #[error("lists and objects are nested more than {limit} deep")]
    TooDeep {
        /// The maximum number of levels.
        limit: usize,
    },
    /// An anchor or an alias.
    #[error("anchors and aliases are not supported")]
    Alias,
    /// A tag that is not supported.
    #[error("tag `{tag}` is not supported")]
    Tag {
        /// The tag.
        tag: String,
    },
    /// A second YAML document.
    #[error("a second document begins here, only one is allowed")]
    SecondDocument,
    /// A key of an object that is no text, or empty.
    #[error("a key must be text that is not empty")]
    Key,
    /// A duplicate key in an object, or a number that cannot be stored exactly.
    #[error(transparent)]
    Json(#[from] JsonProblem),
    /// A parameter with two values.
    #[error("parameter `{name}` is given twice")]
    RepeatedParam {
        /// The parameter.
        name: String,
    },
    /// A value of a wrong type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// The expected type.
        expected: &'static str,
        /// The actual value, in words.
        found: String,
    },
    /// A text or a list that must not be empty.
    #[error("must not be empty")]
    Blank,
    /// The first element of a list in `run`, which is a whole command line.
    #[error("must be the name of a program alone, without spaces")]
    CommandAsProgram,
    /// A number or a duration outside its range.
    #[error("must be {rule}, is `{found}`")]
    Range {
        /// The range in words.
        rule: &'static str,
        /// The value.
        found: String,
    },
    /// A word outside the allowed set.
    #[error("unknown {what} `{word}`")]
    UnknownWord {
        /// The kind of word.
        what: &'static str,
        /// The word.
        word: String,
    },
    /// A text that is no identifier.
    #[error(
        "`{text}` is not a valid identifier, allowed are letters, digits and `_`, not beginning with a digit"
    )]
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
    #[error("`{text}` is not a valid date, expected for example `2026-05-31` or `2026-05-31T12:00:00Z`")]
    Date {
        /// The text.
        text: String,
    },
    /// A value that is well-formed but invalid.
    #[error(transparent)]
    Value(#[from] ValueFault),
    /// An unknown version of the format.
    #[error("format version {found} is not supported, this program reads version {known}")]
    Version {
        /// The given version.
        found: String,
        /// The supported version.
        known: u32,
    },
    /// An unknown field of an object.
    #[error("unknown field `{field}` in {of}")]
    UnknownField {
        /// The field.
        field: String,
        /// The object.
        of: &'static str,
    },
    /// A field that only execution sets.
    #[error("a plan cannot set `{field}`: it is set by execution")]
    StateField {
        /// The field.
        field: String,
    },
    /// A known field that is not allowed here.
    #[error("`{field}` is not allowed in {of}")]
    NotHere {
        /// The field.
        field: String,
        /// The object.
        of: &'static str,
    },
    /// A field is missing.
    #[error("{of} needs {field}")]
    Missing {
        /// The field, with its backticks.
        field: &'static str,
        /// The object.
        of: &'static str,
    },
    /// Two fields with the same meaning.
    #[error("`{first}` and `{second}` are both given")]
    Both {
        /// The first of the fields.
        first: String,
        /// The other field.
        second: String,
    },
    /// A short form of a call that names no tool, or more than one.
    #[error("a tool call must name one tool, this one names {}", several(.tools))]
    Tools {
        /// The fields that could be the tool.
        tools: Vec<String>,
    },
    /// A duplicate id.
    #[error("id `{id}` is already taken at {first}")]
    DuplicateId {
        /// The id.
        id: String,
        /// The position of the first use.
        first: Position,
    },
    /// A task without an id, with a name that also refers to another task.
    #[error(
        "a task without an id is identified by its name, and `{name}` also refers to the task at {other}"
    )]
    DuplicateName {
        /// The name.
        name: String,
        /// The position of the other task.
        other: Position,
    },
    /// A reference by a name that several tasks have.
    #[error("the tasks at {first} and {second} are both named `{name}`")]
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
    /// A task that is its own dependency or subtask.
    #[error("`{task}` cannot be {relation} of itself")]
    Itself {
        /// The task.
        task: String,
        /// `a dependency` or `a subtask`.
        relation: &'static str,
    },
    /// A task that depends on its parent or a task further up.
    #[error("`{task}` depends on `{ancestor}`, which ends only after its subtasks")]
    OnAncestor {
        /// The task.
        task: String,
        /// The parent or a task further up.
        ancestor: String,
    },
    /// A task that depends on one of its own subtasks, direct or not.
    #[error("`{task}` depends on `{descendant}`, its subtask, which starts only after it")]
    OnDescendant {
        /// The task.
        task: String,
        /// The subtask, direct or not.
        descendant: String,
    },
    /// A task that is listed as a subtask of two tasks.
    #[error("`{task}` is already a subtask at {first}")]
    TwoParents {
        /// The task.
        task: String,
        /// The position of the first list.
        first: Position,
    },
    /// Tasks wait for each other.
    #[error("tasks wait for each other: {}", arrows(.cycle))]
    Cycle {
        /// The tasks, each waiting for the next, the last the same as the first.
        cycle: Vec<String>,
    },
    /// Task objects are nested too deeply.
    #[error("subtasks are nested more than {limit} deep")]
    Nested {
        /// The maximum number of levels.
        limit: usize,
    },
    /// More tasks than one request may write.
    #[error("more than {limit} tasks are written at once")]
    TooManyTasks {
        /// The maximum number of tasks.
        limit: usize,
    },
    /// A milestone with tool calls.
    #[error("a milestone has no tool calls")]
    MilestoneWithCalls,
    /// A trigger that needs dependencies, on a task without any.
    #[error("trigger `{trigger}` needs dependencies")]
    TriggerAlone {
        /// The trigger.
        trigger: String,
    },
    /// A syntax error in an expression.
    #[error(transparent)]
    Expression(#[from] ExprFault),
    /// An expression with an undeclared parameter.
    #[error("the plan has no parameter `{name}`")]
    UnknownParam {
        /// The parameter.
        name: String,
    },
    /// A value for a parameter that an included plan does not have.
    #[error("`{file}` has no parameter `{name}`")]
    UnknownParamOf {
        /// The parameter.
        name: String,
        /// The file of the included plan.
        file: String,
    },
    /// An expression with a context value that does not exist at that point.
    #[error("`context` has no `{name}` here")]
    UnknownContext {
        /// The name.
        name: String,
    },
    /// An expression with `item` or `index` outside a `forEach`.
    #[error("there is no `{name}` here")]
    NoItem {
        /// `item` or `index`.
        name: &'static str,
    },
    /// An expression with the result of its own task.
    #[error("`{task}` uses its own result")]
    OwnResult {
        /// The task.
        task: String,
    },
    /// An expression with the result of a task that may not have ended.
    #[error("`{task}` uses `{other}`, which is not one of its dependencies")]
    NoDependency {
        /// The task.
        task: String,
        /// The other task.
        other: String,
    },
    /// A task whose session another one cannot go on with.
    #[error("`{task}` has no session to go on with: {why}")]
    NoSession {
        /// The task.
        task: String,
        /// The reason.
        why: &'static str,
    },
    /// Two fields that cannot be combined.
    #[error("`{field}` cannot be combined with `{with}`")]
    NotWith {
        /// The field.
        field: &'static str,
        /// The other field.
        with: &'static str,
    },
    /// A parameter value of a wrong type.
    #[error("parameter `{name}` must be {expected}, not {found}")]
    ParamType {
        /// The parameter.
        name: String,
        /// The declared type.
        expected: &'static str,
        /// The given value.
        found: String,
    },
    /// A problem in a plan that is included.
    #[error("{}", in_included(.place, .path, .problem))]
    Included {
        /// The place in it.
        place: Box<IncludedPlace>,
        /// The field in it.
        path: String,
        /// The problem.
        problem: Box<Self>,
    },
    /// A plan that is not included.
    #[error(transparent)]
    Include(#[from] IncludeError),
    /// Plans that include one another in a circle.
    #[error("plans include each other: `{}`", .circle.join(" → "))]
    IncludeCircle {
        /// The files, each including the next, the last the same as the first.
        circle: Vec<String>,
    },
    /// Too many plans include one another.
    #[error("plans include each other more than {limit} deep")]
    IncludeDepth {
        /// The maximum number of levels.
        limit: usize,
    },
    /// A plan with too many included tasks.
    #[error("with the included tasks the plan has more than {limit}")]
    IncludedTasks {
        /// The maximum number of tasks.
        limit: usize,
    },
    /// An included plan with a capacity that the plan does not declare.
    #[error("`{file}` has a capacity of resource `{resource}`, and this plan has none")]
    IncludedCapacity {
        /// The resource.
        resource: String,
        /// The file of the included plan.
        file: String,
    },
    /// A parameter of an included plan without a value.
    #[error("parameter `{name}` of `{file}` is not given")]
    ParamNotGiven {
        /// The parameter.
        name: String,
        /// The file of the included plan.
        file: String,
    },
    /// A task that needs more of a resource than the plan declares.
    #[error("requests {wanted} of resource `{resource}`, which has {capacity}")]
    Capacity {
        /// The resource.
        resource: String,
        /// The amount that the task needs.
        wanted: u32,
        /// The amount that the plan declares.
        capacity: u32,
    },
}

impl PlanProblem {
    /// Returns the name of the kind of problem, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "syntax",
            Self::Empty => "empty",
            Self::TooDeep { .. } => "too_deep",
            Self::Alias => "alias",
            Self::Tag { .. } => "tag",
            Self::SecondDocument => "second_document",
            Self::Key => "key",
            Self::Json(_) => "json",
            Self::RepeatedParam { .. } => "repeated_param",
            Self::WrongType { .. } => "wrong_type",
            Self::Blank => "blank",
            Self::CommandAsProgram => "command_as_program",
            Self::Range { .. } => "range",
            Self::UnknownWord { .. } => "unknown_word",
            Self::Identifier { .. } => "identifier",
            Self::Id(_) => "id",
            Self::Period(_) => "period",
            Self::Size(_) => "size",
            Self::Date { .. } => "date",
            Self::Value(_) => "value",
            Self::Version { .. } => "version",
            Self::UnknownField { .. } => "unknown_field",
            Self::StateField { .. } => "state_field",
            Self::NotHere { .. } => "not_here",
            Self::Missing { .. } => "missing",
            Self::Both { .. } => "both",
            Self::Tools { .. } => "tools",
            Self::DuplicateId { .. } => "duplicate_id",
            Self::DuplicateName { .. } => "duplicate_name",
            Self::Ambiguous { .. } => "ambiguous",
            Self::UnknownTask { .. } => "unknown_task",
            Self::Itself { .. } => "itself",
            Self::OnAncestor { .. } => "on_ancestor",
            Self::OnDescendant { .. } => "on_descendant",
            Self::TwoParents { .. } => "two_parents",
            Self::Cycle { .. } => "cycle",
            Self::Nested { .. } => "nested",
            Self::TooManyTasks { .. } => "too_many_tasks",
            Self::MilestoneWithCalls => "milestone_with_calls",
            Self::TriggerAlone { .. } => "trigger_alone",
            Self::Expression(_) => "expression",
            Self::UnknownParam { .. } | Self::UnknownParamOf { .. } => "unknown_param",
            Self::UnknownContext { .. } => "unknown_context",
            Self::NoItem { .. } => "no_item",
            Self::OwnResult { .. } => "own_result",
            Self::NoDependency { .. } => "no_dependency",
            Self::NoSession { .. } => "no_session",
            Self::NotWith { .. } => "not_with",
            Self::ParamType { .. } => "param_type",
            Self::Included { problem, .. } => problem.code(),
            Self::Include(_) => "include",
            Self::IncludeCircle { .. } => "include_circle",
            Self::IncludeDepth { .. } => "include_depth",
            Self::IncludedTasks { .. } => "included_tasks",
            Self::IncludedCapacity { .. } => "included_capacity",
            Self::ParamNotGiven { .. } => "param_not_given",
            Self::Capacity { .. } => "capacity",
        }
    }
}

fn in_included(place: &IncludedPlace, path: &str, problem: &PlanProblem) -> String {
    let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
    format!("{place}: {path}{problem}")
}

fn several(tools: &[String]) -> String {
    match tools {
        [] => "none".to_owned(),
        tools => tools.iter().map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(" and "),
    }
}

/// The maximum number of names of a cycle in a message. The rest is counted.
const MAX_SHOWN: usize = crate::value::bounded::MAX_ITEMS;

fn arrows(cycle: &[String]) -> String {
    let Some((last, names)) = cycle.split_last().filter(|_| cycle.len() > MAX_SHOWN) else {
        return format!("`{}`", cycle.join(" → "));
    };
    let hidden = names.len() - (MAX_SHOWN - 1);
    format!("`{} → … {hidden} more … → {last}`", names[..MAX_SHOWN - 1].join(" → "))
}
