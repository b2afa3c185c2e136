//! Files of the project for the page: read by the tool `read_file`, with its rules about hidden files and with secrets removed.

use std::path::{Component, Path};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use taskpawl::model::command::NewTask;
use taskpawl::model::task::{CallSpec, NewCall, TaskSpec, ToolCall};
use taskpawl::store::Location;
use taskpawl::{RunOptions, Taskpawl};
use taskpawl_web::ReadFile;

use crate::app::App;
use crate::commands::sandbox::SandboxArgs;
use crate::error::CliError;

/// Returns the function that reads files for the page.
pub(super) fn reader(app: &App, sandbox: &SandboxArgs) -> Result<ReadFile, CliError> {
    let plans = app.held(app.builder_at(Location::Memory, app.root())?, sandbox)?.open()?;
    // One at a time: each reading is a run of the same store in memory.
    let (plans, root) = (Mutex::new(plans), app.root().to_owned());
    let read = move |path: &str| {
        if is_absent(&root, path) {
            return Ok(None);
        }
        read(&plans.lock().unwrap_or_else(PoisonError::into_inner), path).map(Some)
    };
    Ok(ReadFile(Arc::new(read)))
}

/// Returns whether there is no file at a path below the project.
fn is_absent(root: &Path, path: &str) -> bool {
    let is_below =
        Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    is_below && matches!(root.join(path).try_exists(), Ok(false))
}

fn read(plans: &Taskpawl, path: &str) -> Result<String, String> {
    let failed = |error: taskpawl::Error| taskpawl_text::error_chain(&error);
    let args = json!({"path": path}).as_object().cloned().unwrap_or_default();
    let spec = CallSpec { tool_name: "read_file".to_owned(), args, ..CallSpec::default() };
    let calls = vec![NewCall { id: None, spec: spec.into() }];
    let spec = TaskSpec { name: "read".to_owned(), ..TaskSpec::default() };
    let blocking = plans.blocking();
    let task = blocking.create_task(NewTask { spec, calls, ..NewTask::default() }).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let ended = runtime.block_on(plans.execute_task(task.id.as_str(), RunOptions::default()));
    ended.map_err(|error| taskpawl_text::error_chain(&error))?;
    let ended = blocking.get_task(task.id.as_str()).map_err(failed)?;
    // A failed task would be a part of the next run.
    let _ = plans.manager().delete(&[task.id.to_string()]);
    content(ended.metadata.tool_calls.first())
}

fn content(call: Option<&ToolCall>) -> Result<String, String> {
    let call = call.ok_or("the file was not read")?;
    if let Some(error) = &call.error {
        return Err(error.clone());
    }
    let result = call.result.as_ref().ok_or("it waits for a decision of the policy")?;
    if result["truncated"] == true || !call.cut.is_empty() {
        return Err("it is too long to be compared here".to_owned());
    }
    result["content"].as_str().map(str::to_owned).ok_or_else(|| "the file was not read".to_owned())
}
