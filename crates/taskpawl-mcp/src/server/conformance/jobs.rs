//! Tools that take a while. They run as tasks of the plan by `run_ready`, so that their state is read from the store.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ServerHandler as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ErrorData, GetTaskResult, TaskPayload,
};
use serde_json::{Value, json};
use taskpawl::model::value::RunId;
use taskpawl::{Observer, RunEvent, RunOptions};
use taskpawl_text::error_chain;
use tokio::sync::oneshot;

use super::fixture::{Context, text_of, typed};
use super::rounds::{asks, is_said};
use crate::server::mcp_server::{McpServer, blocking};
use crate::server::tasks;

type Answer = Result<CallToolResponse, ErrorData>;

/// Answers a call of one of these tools.
pub(super) async fn call(
    server: &McpServer,
    request: &CallToolRequestParams,
    context: &Context,
) -> Option<Answer> {
    let said =
        |name: &str| request.arguments.as_ref().and_then(|all| all.get(name)).cloned().unwrap_or_default();
    let name = &*request.name;
    if matches!(name, "failing_job" | "test_tool_with_task" | "confirm_delete" | "multi_input")
        && !tasks::is_known(context)
    {
        let needed = ClientCapabilities::builder().enable_tasks().build();
        return Some(Err(ErrorData::missing_required_client_capability(needed)));
    }
    let id = id();
    let answer = match name {
        "greet" => Ok(text_of(format!("Hello, {}!", said("name").as_str().unwrap_or("you")))),
        "slow_compute" => {
            let duration = format!("{}s", said("seconds"));
            let task = json!({"id": id, "name": "slow", "call": {"sleep": {"duration": duration}}});
            run(server, context, vec![task]).await
        }
        "failing_job" => {
            let task = json!({"id": id, "name": "failing", "call": {"fail": {"message": "as it should"}}});
            run(server, context, vec![task]).await
        }
        "protocol_error_job" => {
            killed(
                server,
                json!({"id": id, "name": "killed", "call": {"sleep": {"duration": "1m"}}}),
                context,
            )
            .await
        }
        "confirm_delete" => run(server, context, vec![asked(&id, "Delete it?")]).await,
        "multi_input" => {
            let tasks =
                vec![asked(&format!("{id}-a"), "The first?"), asked(&format!("{id}-b"), "The second?")];
            run(server, context, tasks).await
        }
        "test_tool_with_task" => {
            let responses = request.input_responses.as_ref();
            if !is_said(responses, "user_name") {
                return Some(Ok(asks(&["user_name"], None).into()));
            }
            let name = responses.map(|all| all["user_name"]["content"]["name"].clone()).unwrap_or_default();
            let id = format!("for-{}-{id}", name.as_str().unwrap_or("you"));
            run(
                server,
                context,
                vec![json!({"id": id, "name": "greeting", "call": {"log": {"message": "hello"}}})],
            )
            .await
        }
        _ => return None,
    };
    Some(answer)
}

fn id() -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    id.chars().take(12).collect()
}

/// Returns a task that a person has to approve.
fn asked(id: &str, question: &str) -> Value {
    json!({"id": id, "name": "asks", "approval": {"ask": question}, "call": {"log": {"message": "approved"}}})
}

/// Adds tasks and runs them, with the server's own tools.
async fn run(server: &McpServer, context: &Context, tasks: Vec<Value>) -> Answer {
    let ids: Vec<Value> = tasks.iter().map(|task| task["id"].clone()).collect();
    for task in tasks {
        own_tool(server, context, "task_add", task).await?;
    }
    // Without the tasks extension the call waits for the end of the run.
    own_tool(server, context, "run_ready", json!({"only": ids, "wait_s": 45})).await
}

async fn own_tool(server: &McpServer, context: &Context, name: &'static str, arguments: Value) -> Answer {
    let request = CallToolRequestParams::new(name).with_arguments(typed(arguments));
    let answer = server.call_tool(request, context.clone()).await?;
    if let CallToolResponse::Complete(result) = &answer
        && result.is_error == Some(true)
    {
        return Err(ErrorData::internal_error(json!(result.content).to_string(), None));
    }
    Ok(answer)
}

/// Starts a run and drops it, as if its process had been killed.
async fn killed(server: &McpServer, task: Value, context: &Context) -> Answer {
    let id = RunId::from(uuid::Uuid::new_v4().to_string());
    let only = vec![task["id"].as_str().unwrap_or_default().parse().unwrap_or_else(|never| match never {})];
    own_tool(server, context, "task_add", task).await?;
    let (began, has_begun) = oneshot::channel();
    let observer: Arc<dyn Observer> = Arc::new(Began(Mutex::new(Some(began))));
    let options =
        RunOptions { id: Some(id.clone()), only, observer: Some(observer), ..RunOptions::default() };
    tokio::select! {
        _ = server.plans().run_all_ready(options) => {}
        _ = has_begun => {}
    }
    let manager = server.plans().manager().clone();
    let created = blocking(move || tasks::created(&manager, &id)).await;
    created.map(Into::into).map_err(|error| ErrorData::internal_error(error_chain(&error), None))
}

/// Reports that a call of a run has started.
#[derive(Debug)]
struct Began(Mutex<Option<oneshot::Sender<()>>>);

impl Observer for Began {
    fn event(&self, event: &RunEvent) {
        if matches!(event, RunEvent::CallStarted { .. })
            && let Some(began) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            let _ = began.send(());
        }
    }
}

/// Marks the result as an error if the run failed: for the suite the tool is the same as its run.
pub(super) fn as_tool(mut seen: GetTaskResult) -> GetTaskResult {
    if let TaskPayload::Completed { result } = &mut seen.task.payload
        && result.get("structuredContent").is_some_and(|run| run["exit"] == 1)
    {
        result.insert("isError".to_owned(), json!(true));
    }
    seen
}

/// Translates the suite's answer, which is the same for every form, to the fields of this server's forms.
pub(super) fn as_approval(response: &mut Value) {
    if response["content"]["confirm"] == true {
        response["content"] = json!({"approve": true});
    }
}
