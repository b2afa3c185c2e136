//! Plans as data: read from text or JSON, or built in Rust.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::{Value, json};
use taskpawl_model::plan::{PlanError, PlanErrors, PlanProblem, Position, plan_value};
use taskpawl_model::task::NewCall;
use taskpawl_model::value::Map;

/// A plan as an author writes it: a text in JSON or YAML, data, or built task by task.
///
/// Nothing is checked before [`Taskpawl::check`](crate::Taskpawl::check) or [`Taskpawl::apply`](crate::Taskpawl::apply). Its tasks have the
/// fields of plan files. With serde it is an object.
///
/// ```
/// use taskpawl::prelude::*;
///
/// /// Counts the words of a text.
/// #[tool(read_only)]
/// async fn count_words(text: String) -> std::io::Result<usize> {
///     Ok(text.split_whitespace().count())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let plan = Plan::new("example")
///     .task("words", |t| t.call(count_words::with("a b c")).retry(3).label("nlp"))
///     .task("look", |t| t.needs("words").manual("Is the number right?"));
/// let plans = Taskpawl::builder(":memory:").tool(count_words).open()?;
/// plans.apply(plan).await?;
/// plans.run().await?;
/// assert_eq!(plans.get_task("words").await?.result_as::<usize>()?, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// The text that was given; empty for a plan that is only built.
    text: String,
    /// Fields that were set since.
    fields: Map,
    /// Tasks that were added since.
    tasks: Vec<TaskBuilder>,
    /// The file of the text, which may include others.
    file: Option<PathBuf>,
}

/// Builds a task of a [`Plan`].
#[derive(Debug, Clone, PartialEq, Default)]
#[must_use = "the closure returns the task"]
pub struct TaskBuilder {
    fields: Map,
    calls: Vec<Value>,
    subtasks: Vec<Self>,
    /// The first error of a call whose arguments are not JSON.
    fault: Option<String>,
}

/// A call for a task: a [`NewCall`], or the result of the function `with` of a tool. An error of it is reported when the plan is checked.
pub trait IntoCall {
    /// Returns the call.
    fn into_call(self) -> Result<NewCall, serde_json::Error>;
}

impl IntoCall for NewCall {
    fn into_call(self) -> Result<NewCall, serde_json::Error> {
        Ok(self)
    }
}

impl IntoCall for Result<NewCall, serde_json::Error> {
    fn into_call(self) -> Result<NewCall, serde_json::Error> {
        self
    }
}

impl Plan {
    /// Makes an empty plan with a name, by which the store knows it.
    pub fn new(name: impl Into<String>) -> Self {
        Self::default().named(name)
    }

    /// Reads a plan file. Its tasks may `include` other plan files of the project, or below its own directory; a plan from
    /// elsewhere includes none.
    ///
    /// # Errors
    /// The file cannot be read, or is not UTF-8.
    pub fn from_file(path: impl AsRef<Path>) -> io::Result<Self> {
        let text = fs::read_to_string(&path)?;
        Ok(Self { text, file: Some(path.as_ref().to_owned()), ..Self::default() })
    }

    /// Returns the file that it was read from.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Sets the name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        self.field("name", name.into())
    }

    /// Adds a task.
    #[must_use]
    pub fn task(mut self, id: impl Into<String>, build: impl FnOnce(TaskBuilder) -> TaskBuilder) -> Self {
        self.tasks.push(TaskBuilder::build(id, build));
        self
    }

    /// Sets a field of the plan, as in a plan file: `params`, `resources`, `budget`, …
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the plan as the text of a plan file.
    ///
    /// # Errors
    /// Tasks were added to a text that cannot be read, or an argument of a call cannot be written as JSON.
    pub fn to_text(&self) -> Result<String, PlanErrors> {
        if self.fields.is_empty() && self.tasks.is_empty() {
            return Ok(self.text.clone());
        }
        Ok(Value::Object(self.to_fields()?).to_string())
    }

    fn to_fields(&self) -> Result<Map, PlanErrors> {
        let mut plan = if self.text.is_empty() { Map::new() } else { object(plan_value(&self.text)?)? };
        plan.extend(self.fields.clone());
        if self.tasks.is_empty() {
            return Ok(plan);
        }
        let list = plan.entry("tasks").or_insert_with(|| json!([]));
        let Value::Array(list) = list else { return Err(fault("tasks", "a list", list)) };
        for task in &self.tasks {
            list.push(task.to_value(&format!("tasks[{}]", list.len()))?);
        }
        Ok(plan)
    }
}

impl TaskBuilder {
    fn build(id: impl Into<String>, build: impl FnOnce(Self) -> Self) -> Self {
        build(Self::default().field("id", id.into()))
    }

    /// Adds a call, which starts when those before it have succeeded.
    pub fn call(mut self, call: impl IntoCall) -> Self {
        let call = call.into_call().and_then(|NewCall { id, spec }| {
            let mut call = serde_json::to_value(&spec)?;
            if let Some(id) = id {
                call["id"] = json!(id);
            }
            Ok(call)
        });
        match call {
            Ok(call) => self.calls.push(call),
            Err(error) => drop(self.fault.get_or_insert(error.to_string())),
        }
        self
    }

    /// Adds a call of `shell`, or of `exec` if it needs no shell.
    pub fn run(self, command: impl Into<String>) -> Self {
        self.field("run", command.into())
    }

    /// Makes the task wait for another one.
    pub fn needs(self, id: impl Into<String>) -> Self {
        self.push("needs", id.into())
    }

    /// Leaves the task to an agent or a person, who read the description. It ends when they report it.
    pub fn manual(self, description: impl Into<String>) -> Self {
        self.field("description", description.into())
    }

    /// Sets the title. Default: the id.
    pub fn name(self, name: impl Into<String>) -> Self {
        self.field("name", name.into())
    }

    /// Sets how often each call may start, the first start included.
    pub fn retry(self, attempts: u32) -> Self {
        self.field("retry", json!({"attempts": attempts}))
    }

    /// Limits the duration of each attempt.
    pub fn timeout(self, timeout: std::time::Duration) -> Self {
        self.field("timeout", json!(taskpawl_model::value::Period(timeout)))
    }

    /// Adds a label.
    pub fn label(self, label: impl Into<String>) -> Self {
        self.push("labels", label.into())
    }

    /// Sets the condition under which the task runs: an expression, without `${{ }}`. Otherwise it is skipped.
    pub fn when(self, expression: impl Into<String>) -> Self {
        self.field("when", expression.into())
    }

    /// Asks a person before the task starts.
    pub fn approval(self, question: impl Into<String>) -> Self {
        self.field("approval", json!({"ask": question.into()}))
    }

    /// Adds a subtask.
    pub fn subtask(mut self, id: impl Into<String>, build: impl FnOnce(Self) -> Self) -> Self {
        self.subtasks.push(Self::build(id, build));
        self
    }

    /// Sets a field of the task, as in a plan file: `forEach`, `trigger`, `writes`, …
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    fn push(mut self, name: &str, value: String) -> Self {
        // A value of another kind comes from `field`, and is the author's to correct.
        if let Value::Array(list) = self.fields.entry(name).or_insert_with(|| json!([])) {
            list.push(value.into());
        }
        self
    }

    fn to_value(&self, path: &str) -> Result<Value, PlanErrors> {
        if let Some(fault) = &self.fault {
            let message = format!("the arguments of a call cannot be written as JSON: {fault}");
            return Err(error(path, PlanProblem::Syntax { message }));
        }
        let mut fields = self.fields.clone();
        if !self.calls.is_empty() {
            fields.insert("calls".to_owned(), self.calls.clone().into());
        }
        if !self.subtasks.is_empty() {
            let subtasks = self.subtasks.iter().enumerate();
            let subtasks: Result<Vec<Value>, _> =
                subtasks.map(|(index, task)| task.to_value(&format!("{path}.subtasks[{index}]"))).collect();
            fields.insert("subtasks".to_owned(), subtasks?.into());
        }
        Ok(fields.into())
    }
}

fn object(value: Value) -> Result<Map, PlanErrors> {
    if let Value::Object(fields) = value { Ok(fields) } else { Err(fault("", "an object", &value)) }
}

fn fault(path: &str, expected: &'static str, found: &Value) -> PlanErrors {
    let found = match found {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    error(path, PlanProblem::WrongType { expected, found: found.to_owned() })
}

fn error(path: &str, problem: PlanProblem) -> PlanErrors {
    PlanErrors::from(PlanError { at: Position::default(), path: path.to_owned(), problem, hint: None })
}

impl From<&str> for Plan {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<&String> for Plan {
    fn from(text: &String) -> Self {
        Self::from(text.clone())
    }
}

impl From<String> for Plan {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<Value> for Plan {
    fn from(value: Value) -> Self {
        Self::from(value.to_string())
    }
}

impl From<&Value> for Plan {
    fn from(value: &Value) -> Self {
        Self::from(value.to_string())
    }
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_fields().map_err(ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { fields: Map::deserialize(deserializer)?, ..Self::default() })
    }
}
