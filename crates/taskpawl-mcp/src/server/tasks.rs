//! The tasks extension. A run is a task of the protocol, under the id of the run, so that it can be found after the
//! server was killed.

use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, ErrorData, GetTaskResult, InputResponses, JsonObject,
    Task, TaskPayload, TaskStatus,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::json;
use taskpawl::model::task::RunRecord;
use taskpawl::model::value::RunId;
use taskpawl::model::value::format_time;
use taskpawl::{Manager, RunState};
use taskpawl_text::error_chain;

use super::elicit;
use super::error_text::short;
use super::mcp_server::{McpServer, blocking};
use super::tools::run_ready;

/// Recommended interval between polls by the client, in milliseconds.
const POLL_MILLIS: u64 = 1_000;

/// Lowest exit code of a run that was stopped.
const STOPPED: u8 = 128;

/// Error code for a run that was killed, from the range that JSON-RPC leaves to servers.
const KILLED: i32 = -32_000;

/// Returns whether a client supports tasks.
pub(super) fn is_known(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

/// Returns the answer to a call that started a run, in place of its result. Blocks.
pub(super) fn created(manager: &Manager, id: &RunId) -> Result<CreateTaskResult, taskpawl::Error> {
    Ok(CreateTaskResult::new(task(manager, &manager.run(id)?)))
}

fn task(manager: &Manager, run: &RunRecord) -> Task {
    let updated = run.finished_at.unwrap_or_else(|| manager.source().now());
    Task::new(run.id.to_string(), TaskStatus::Working, format_time(run.started_at), format_time(updated))
        .with_poll_interval_ms(POLL_MILLIS)
}

/// Returns the state of a run as a task. Blocks.
fn look(server: &McpServer, manager: &Manager, id: &RunId) -> Result<GetTaskResult, taskpawl::Error> {
    let run = manager.run(id)?;
    let payload = match manager.run_state(&run) {
        RunState::Running => {
            let input_requests = elicit::requests(server, id);
            if input_requests.is_empty() {
                TaskPayload::Working
            } else {
                TaskPayload::InputRequired { input_requests }
            }
        }
        RunState::Killed => TaskPayload::Failed {
            error: object(
                &json!({"code": KILLED, "message": "the run was killed; run_ready takes back what it held and goes on"}),
            ),
        },
        RunState::Finished if run.exit.is_some_and(|exit| exit >= STOPPED) => TaskPayload::Cancelled,
        RunState::Finished => {
            let answer = run_ready::describe(server, manager, id)?.only_here(server.options());
            let result: CallToolResult = answer.into_result();
            TaskPayload::Completed { result: object(&json!(result)) }
        }
    };
    Ok(GetTaskResult::new(DetailedTask::new(task(manager, &run), payload)))
}

fn object(value: &serde_json::Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

/// Answers `tasks/get`.
pub(super) async fn get(server: &McpServer, id: String) -> Result<GetTaskResult, ErrorData> {
    let server = server.clone();
    blocking(move || {
        let manager = server.plans().manager();
        look(&server, manager, &RunId::from(id))
            .map_err(|error| ErrorData::invalid_params(short(&error_chain(&error)), None))
    })
    .await
}

/// Answers `tasks/update`: accepts the person's answers to questions of a run.
pub(super) async fn update(
    server: &McpServer,
    id: String,
    responses: InputResponses,
) -> Result<(), ErrorData> {
    // Fails for an unknown run.
    get(server, id.clone()).await?;
    elicit::take(server, &RunId::from(id), responses);
    Ok(())
}

/// Answers `tasks/cancel`: nothing more starts, and running calls may end. A run of another process continues, as
/// `tasks/get` shows.
pub(super) async fn cancel(server: &McpServer, id: String) -> Result<(), ErrorData> {
    get(server, id.clone()).await?;
    server.runs().stop(&RunId::from(id));
    Ok(())
}
