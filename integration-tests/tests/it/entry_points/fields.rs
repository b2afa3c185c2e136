//! Validation of fields at every entry point: each field has the same verdict in a plan file, on the command line, over MCP, from
//! the library, and in the tasks that a call returns.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use taskpawl::model::command::NewTask;
use taskpawl::model::task::{CallSpec, NewCall, TaskSpec};
use taskpawl::tools::{CallContext, Tool, ToolError, ToolSpec};
use taskpawl::{RunOptions, SandboxSettings, Supervision, Taskpawl, async_trait};

use super::tables::{Row, of_calls, of_tasks};
use crate::support::{Figures, Home, McpClient};

/// An entry point for tasks and calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    PlanFile,
    Create,
    Change,
    McpPlan,
    McpAdd,
    McpUpdate,
    LibraryText,
    LibraryCreate,
    LibraryChange,
    /// The tasks that a call returns.
    Emit,
    /// The control: accepts every field unchecked.
    Careless,
}

const TASK_WAYS: [Way; 10] = [
    Way::PlanFile,
    Way::Create,
    Way::Change,
    Way::McpPlan,
    Way::McpAdd,
    Way::McpUpdate,
    Way::LibraryText,
    Way::LibraryCreate,
    Way::LibraryChange,
    Way::Emit,
];

/// Over MCP, calls are added only together with their task.
const CALL_WAYS: [Way; 8] = [
    Way::PlanFile,
    Way::Change,
    Way::McpPlan,
    Way::McpAdd,
    Way::LibraryText,
    Way::LibraryCreate,
    Way::LibraryChange,
    Way::Emit,
];

/// A store and all its entry points.
struct World {
    home: Home,
    mcp: McpClient,
    library: Taskpawl,
    tasks: usize,
}

impl World {
    fn new() -> Self {
        let home = Home::new();
        home.create("other");
        let mcp = McpClient::start(home.program(&["mcp"]));
        let library = Taskpawl::open(home.store()).unwrap();
        Self { home, mcp, library, tasks: 0 }
    }

    /// Returns an unused id.
    fn fresh(&mut self) -> String {
        self.tasks += 1;
        format!("t{}", self.tasks)
    }

    /// Tries to create a task, or to update an existing one, with the field; returns the reason of a refusal.
    fn try_task(&mut self, way: Way, row: &Row) -> Result<(), String> {
        let id = self.fresh();
        let task = with(&json!({"id": id, "name": id, "call": call()}), row);
        match way {
            Way::PlanFile => self.apply(&id, &task),
            Way::Create => self.create(&id, row),
            Way::McpPlan => self.over_mcp("plan_write", &json!({"plan": {"name": id, "tasks": [task]}})),
            Way::McpAdd => self.over_mcp("task_add", &task),
            Way::LibraryText => self.apply_text(&id, &task),
            Way::LibraryCreate => {
                let call = typed_call(&call()).expect("the call is one");
                let task = typed_task(&id, row, vec![call])?;
                self.library.blocking().create_task(task).map(drop).map_err(|error| error.to_string())
            }
            Way::Emit => emit(&task),
            Way::Change => {
                self.apply_text(&id, &json!({"id": id, "call": call()})).unwrap();
                self.cli(&["update", &id, "--set", &set(row)])
            }
            Way::McpUpdate => {
                self.apply_text(&id, &json!({"id": id, "call": call()})).unwrap();
                let fields = with(&json!({}), row);
                self.over_mcp("task_update", &json!({"id": id, "fields": fields}))
            }
            Way::LibraryChange => {
                self.apply_text(&id, &json!({"id": id, "call": call()})).unwrap();
                let fields = Map::from_iter([(row.field.to_owned(), row.value.clone())]);
                self.library.blocking().update_task(&id, fields).map(drop).map_err(|error| error.to_string())
            }
            Way::Careless => self.apply_text(&id, &json!({"id": id, "metadata": {"field": row.field}})),
        }
    }

    /// Tries to add a tool call with the field; returns the reason of a refusal.
    fn try_call(&mut self, way: Way, row: &Row) -> Result<(), String> {
        let id = self.fresh();
        let call = with(&call(), row);
        let task = json!({"id": id, "name": id, "toolCalls": [call]});
        match way {
            Way::PlanFile => self.apply(&id, &task),
            Way::McpPlan => self.over_mcp("plan_write", &json!({"plan": {"name": id, "tasks": [task]}})),
            Way::McpAdd => self.over_mcp("task_add", &task),
            Way::LibraryText => self.apply_text(&id, &task),
            Way::Emit => emit(&task),
            Way::LibraryCreate => {
                let call = typed_call(&call)?;
                let spec = TaskSpec { name: id.clone(), ..TaskSpec::default() };
                let task = NewTask { id: id.into(), spec, calls: vec![call], ..NewTask::default() };
                self.library.blocking().create_task(task).map(drop).map_err(|error| error.to_string())
            }
            Way::Change => {
                self.apply_text(&id, &json!({"id": id})).unwrap();
                let tool = call["toolName"].as_str().unwrap();
                let args = call["args"].to_string();
                let mut words = vec!["add-tool-call", &id, "--tool", tool, "--args", &args];
                let set = set(row);
                words.extend(["--set", &set].into_iter().filter(|_| row.field != "toolName"));
                self.cli(&words)
            }
            Way::LibraryChange => {
                self.apply_text(&id, &json!({"id": id})).unwrap();
                let call = typed_call(&call)?;
                self.library.manager().add_tool_call(&id, call).map(drop).map_err(|error| error.to_string())
            }
            Way::Create | Way::McpUpdate | Way::Careless => unreachable!("{way:?} takes no call alone"),
        }
    }

    fn cli(&self, words: &[&str]) -> Result<(), String> {
        let run = self.home.run(words);
        match run.code {
            Some(0) => Ok(()),
            Some(2 | 7) => Err(run.stderr),
            _ => panic!("{words:?}: {run:?}"),
        }
    }

    fn apply(&self, name: &str, task: &Value) -> Result<(), String> {
        let file = format!("{name}.json");
        self.home.file(&file, &json!({"name": name, "tasks": [task]}).to_string());
        self.cli(&["apply", &file])
    }

    fn apply_text(&self, name: &str, task: &Value) -> Result<(), String> {
        let text = json!({"name": name, "tasks": [task]}).to_string();
        self.library.blocking().apply_text(&text, name).map(drop).map_err(|error| error.to_string())
    }

    fn create(&self, id: &str, row: &Row) -> Result<(), String> {
        let name = if row.field == "name" { row.value.as_str().unwrap() } else { id };
        let set = set(row);
        let call = call();
        let args = call["args"].to_string();
        let mut words = vec!["create", name, "--id", id, "--tool", "log", "--args", &args];
        words.extend(["--set", &set].into_iter().filter(|_| row.field != "name"));
        self.cli(&words)
    }

    fn over_mcp(&mut self, tool: &str, arguments: &Value) -> Result<(), String> {
        let answer = self.mcp.call(tool, arguments);
        if answer["isError"] == true { Err(answer["structuredContent"]["error"].to_string()) } else { Ok(()) }
    }
}

fn call() -> Value {
    json!({"toolName": "log", "args": {"message": "x"}})
}

fn with(object: &Value, row: &Row) -> Value {
    let mut object = object.clone();
    object[row.field] = row.value.clone();
    object
}

fn set(row: &Row) -> String {
    format!("{}={}", row.field, row.value)
}

/// Removes and returns the fields that the type does not have.
fn unknown_of(object: &mut Map<String, Value>, known: &[&str]) -> Map<String, Value> {
    let names: Vec<String> = object.keys().filter(|name| !known.contains(&name.as_str())).cloned().collect();
    names.into_iter().map(|name| (name.clone(), object.remove(&name).unwrap_or_default())).collect()
}

fn typed_task(id: &str, row: &Row, calls: Vec<NewCall>) -> Result<NewTask, String> {
    let mut fields = with(&json!({"name": id}), row).as_object().unwrap().clone();
    if let Some(Value::String(date)) = fields.get_mut("dueDate") {
        // The type has only dates with a time.
        date.push_str(if date.len() == "2026-05-31".len() { "T00:00:00Z" } else { "" });
    }
    let extra = unknown_of(&mut fields, taskpawl::model::plan::plan_fields().task);
    let spec: TaskSpec = serde_json::from_value(fields.into()).map_err(|error| error.to_string())?;
    Ok(NewTask { id: id.into(), spec: TaskSpec { extra, ..spec }, calls, ..NewTask::default() })
}

fn typed_call(call: &Value) -> Result<NewCall, String> {
    let mut fields = call.as_object().unwrap().clone();
    let id = fields.remove("id").map(|id| id.as_str().unwrap().into());
    let extra = unknown_of(&mut fields, taskpawl::model::plan::plan_fields().call);
    let spec: CallSpec = serde_json::from_value(fields.into()).map_err(|error| error.to_string())?;
    Ok(NewCall { id, spec: CallSpec { extra, ..spec }.into() })
}

/// Tool that returns the tasks of its file.
#[derive(Debug)]
struct Give(ToolSpec);

#[async_trait]
impl Tool for Give {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _cx: CallContext, _args: Value) -> Result<Value, ToolError> {
        Ok(serde_json::from_str(&std::fs::read_to_string(self.0.description.as_str()).unwrap()).unwrap())
    }
}

/// Lets a call return a task, in its own store.
fn emit(task: &Value) -> Result<(), String> {
    // The tool reads them from a file, because expressions in its arguments would be evaluated.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), json!({"tasks": [task]}).to_string()).unwrap();
    let spec = ToolSpec::new("give", file.path().to_str().unwrap(), json!({"type": "object"}));
    let builder = Taskpawl::builder(":memory:").supervision(Supervision::Off).sandbox(SandboxSettings::off());
    let plans = builder.tool(Arc::new(Give(spec))).open().unwrap();
    plans
        .blocking()
        .apply_text("tasks: [{id: other}, {id: by, call: {toolName: give, emit: true}}]", "p")
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let options = RunOptions { only: vec!["by".parse().unwrap()], ..RunOptions::default() };
    runtime.block_on(plans.run_all_ready(options)).unwrap();
    let by = plans.blocking().get_task("by").unwrap();
    match by.metadata.tool_calls[0].error.clone() {
        None => Ok(()),
        Some(error) => Err(error),
    }
}

/// Returns whether a server reads what plans refuse: what models write in other words or types.
fn is_read_liberally(way: Way, row: &Row) -> bool {
    let is_tool = matches!(way, Way::McpPlan | Way::McpAdd | Way::McpUpdate);
    let is_other_word =
        [("timeout", json!(5)), ("dependsOn", json!(["other"])), ("priority", json!("urgent"))]
            .iter()
            .any(|(field, value)| row.field == *field && row.value == *value);
    // A new task has a `run` already, and a command of another name is refused beside it.
    is_tool && (is_other_word || way == Way::McpUpdate && row.field == "cmd")
}

/// Tries all rows at the given entry points, and returns those with a different verdict.
fn unlike(
    table: &[Row],
    ways: &[Way],
    mut try_row: impl FnMut(Way, &Row) -> Result<(), String>,
) -> (usize, Vec<String>) {
    let (mut verdicts, mut unlike) = (0, Vec::new());
    for row in table {
        for way in ways {
            verdicts += 1;
            let verdict = try_row(*way, row);
            let is_accepted = row.is_accepted || is_read_liberally(*way, row);
            if verdict.is_ok() != is_accepted {
                unlike.push(format!("{way:?}: {}: {}: {verdict:?}", row.field, row.value));
            }
        }
    }
    (verdicts, unlike)
}

#[test]
fn entry_points_give_one_verdict_on_each_field() {
    let mut figures = Figures::of("entry_points_give_one_verdict_on_each_field", 0);
    let mut world = World::new();
    let (tasks, calls) = (of_tasks(), of_calls());
    let (of_tasks, mut found) = unlike(&tasks, &TASK_WAYS, |way, row| world.try_task(way, row));
    let (of_calls, more) = unlike(&calls, &CALL_WAYS, |way, row| world.try_call(way, row));
    found.extend(more);
    eprintln!("{} verdicts are other ones:\n{}", found.len(), found.join("\n"));
    figures.add(format!("{of_tasks} verdicts on {} fields of tasks", tasks.len()));
    figures.add(format!("{of_calls} verdicts on {} fields of calls", calls.len()));
    let (_, control) = unlike(&tasks, &[Way::Careless], |way, row| world.try_task(way, row));
    figures.add(format!("control: {} found where nothing is checked", control.len()));
    let refused = tasks.iter().filter(|row| !row.is_accepted).count();
    assert_eq!(control.len(), refused, "the control");
    assert_eq!(found, Vec::<String>::new());
    world.home.assert_sound();
}
