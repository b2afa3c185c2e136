//! Servers that a run first hears of while it goes on.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};
use taskpawl::model::command::NewTask;
use taskpawl::model::task::{CallSpec, NewCall, TaskSpec};
use taskpawl::model::value::TaskId;
use taskpawl::tools::{CallContext, SandboxSettings, Tool, ToolError, ToolSpec};
use taskpawl::{RunOptions, Taskpawl, async_trait};

use crate::support::{servers, supervision, test_server};

/// Adds tasks to the plan that is run.
#[derive(Debug)]
struct Adder {
    spec: ToolSpec,
    plans: Arc<OnceLock<Taskpawl>>,
}

#[async_trait]
impl Tool for Adder {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: CallContext, args: Value) -> Result<Value, ToolError> {
        let plans = self.plans.get().unwrap().clone();
        let add = move || {
            for tool in args["tools"].as_array().unwrap() {
                plans.blocking().create_task(calling(tool.as_str().unwrap())).unwrap();
            }
        };
        tokio::task::spawn_blocking(add).await.unwrap();
        Ok(Value::Null)
    }
}

fn calling(tool: &str) -> NewTask {
    let args = Map::from_iter([("text".to_owned(), "a".into())]);
    let spec = CallSpec { tool_name: tool.to_owned(), args, ..CallSpec::default() };
    let id = TaskId::from(tool.replace('/', "-"));
    let spec_of_task = TaskSpec { name: tool.to_owned(), ..TaskSpec::default() };
    NewTask {
        id,
        spec: spec_of_task,
        calls: vec![NewCall { id: None, spec: spec.into() }],
        ..NewTask::default()
    }
}

pub(crate) fn plans(dir: &Path, server: &Value) -> Taskpawl {
    std::fs::create_dir_all(dir.join("project")).unwrap();
    let plans = Arc::<OnceLock<Taskpawl>>::default();
    let schema = json!({"type": "object", "properties": {"tools": {"type": "array"}}});
    let adder = Adder { spec: ToolSpec::new("add", "Adds tasks.", schema), plans: Arc::clone(&plans) };
    let opened = Taskpawl::builder(dir.join("plans.db").to_str().unwrap())
        .root(dir.join("project"))
        .sandbox(SandboxSettings::off())
        .supervision(supervision())
        .tool(Arc::new(adder))
        .tool_finder(Arc::new(servers(server, dir)))
        .open()
        .unwrap();
    plans.set(opened.clone()).unwrap();
    opened
}

fn starts(dir: &Path) -> usize {
    std::fs::read_to_string(dir.join("project/starts")).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn a_server_is_started_for_calls_that_are_added_while_the_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let plans = plans(dir.path(), &test_server("both"));
    let plan =
        json!({"tasks": [{"id": "grow", "call": {"add": {"tools": ["s/echo", "s/nothing", "x/echo"]}}}]});
    plans.blocking().apply_text(&plan.to_string(), "plan").unwrap();
    let summary = plans.run_all_ready(RunOptions::default()).await.unwrap();
    assert_eq!(plans.blocking().get_task("s-echo").unwrap().result.unwrap()["text"], "a");
    let left: Vec<String> =
        summary.not_run.iter().map(|left| format!("{}: {}", left.task, left.reason)).collect();
    assert_eq!(left, ["s-nothing: no tool `s/nothing` here", "x-echo: no tool `x/echo` here"]);
    assert_eq!(starts(dir.path()), 1);
}

#[tokio::test]
async fn tasks_of_a_server_that_does_not_start_are_left_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let plans = plans(dir.path(), &test_server("refuse"));
    plans.blocking().create_task(calling("s/echo")).unwrap();
    let summary = plans.run_all_ready(RunOptions::default()).await.unwrap();
    assert_eq!(summary.not_run.len(), 1, "{summary:?}");
    assert_eq!(plans.blocking().get_task("s-echo").unwrap().status.as_str(), "todo");
    let states = servers(&test_server("refuse"), dir.path());
    let problem = states.states()[0].problem.clone().unwrap();
    assert!(problem.contains("cannot read the database"), "{problem}");
}

#[tokio::test]
async fn a_tool_that_a_server_gets_while_the_run_goes_on_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let plans = plans(dir.path(), &test_server("both"));
    let plan = json!({"tasks": [
        {"id": "first", "call": {"s/change": {}}},
        {"id": "second", "call": {"s/later": {}}, "needs": "first"},
    ]});
    plans.blocking().apply_text(&plan.to_string(), "plan").unwrap();
    plans.run_all_ready(RunOptions::default()).await.unwrap();
    assert_eq!(plans.blocking().get_task("second").unwrap().result.unwrap(), "later");
    assert_eq!(starts(dir.path()), 1);
}
