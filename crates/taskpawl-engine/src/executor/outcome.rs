//! The outcome of a call: its result or its error, as they are stored.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl_model::command::CallEnd;
use taskpawl_model::task::{CallError, CallSpec, Grant, is_too_deep};
use taskpawl_model::value::{ByteSize, Period};
use taskpawl_text::error_chain;
use taskpawl_tools::{
    CallContext, CallLayer, Redactor, RegisteredTool, RetryAdvice, SandboxError, ScanStopped, ToolError,
    Vault, call_layered, head_of_text,
};

use super::limit::Limit;
use crate::conversion;
use crate::output::{Output, StoredResult};
use crate::secrets::{self, ShellNames, redactor};
use crate::variables::VariableValues;

/// Largest error message that is stored, in bytes.
const MAX_ERROR_BYTES: usize = 16 << 10;

/// Longest path of a grant that is stored, in bytes.
const MAX_GRANT_BYTES: usize = 4096;

/// The end of a call, with further facts for its record.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) end: CallEnd,
    /// Parts of the result that were cut, because the whole result is in a file.
    pub(super) stand_in: Vec<String>,
    /// A change that would probably let the call succeed.
    pub(super) hint: Option<String>,
}

impl From<CallEnd> for Outcome {
    fn from(end: CallEnd) -> Self {
        Self { end, stand_in: Vec::new(), hint: None }
    }
}

/// Runs a tool with its arguments, and returns the outcome for the records.
pub(super) async fn run(
    (tool, layers): (RegisteredTool, &[Arc<dyn CallLayer>]),
    context: CallContext,
    args: Value,
    spec: &CallSpec,
    output: &Output,
    (vault, values): (&Vault, &VariableValues),
    limit: &Limit,
) -> Outcome {
    let repeatable = is_repeatable(&tool, spec, &args);
    let (cancel, files) = (context.cancel.clone(), context.output.clone());
    let names = ShellNames::of(&tool, &args);
    let is_reachable = spec.plan_access.map_or(Ok(()), |_| tool.check_plan_access());
    // Checked first: a call that is refused resolves no secrets.
    let filled = match is_reachable {
        Ok(()) => secrets::fill((vault, values), &tool, &spec.args, args).await,
        Err(error) => Err(error),
    };
    let ended = match filled {
        Ok(args) => call_layered(tool, layers, context, args).await,
        Err(error) => Err(error),
    };
    if let Err(error) = &ended {
        clean_left_output(error, files, vault).await;
    }
    let stored = Storing { spec, output, names, redactor: redactor(vault), limit };
    match ended {
        Ok(result) => stored.result(result),
        // A tool that reports a cancellation without being cancelled counts as failed. As an interrupted call it would
        // be started again, and report the same again.
        Err(ToolError::Cancelled { .. }) if cancel.is_cancelled() => CallEnd::interrupted(repeatable).into(),
        Err(ToolError::Lost { message }) => {
            let message = stored.redactor.text(&message).into_owned();
            CallEnd::Interrupted { repeatable, why: Some(head_of_text(message, MAX_ERROR_BYTES)) }.into()
        }
        Err(error) => stored.error(&error),
    }
}

/// Returns whether a call may start again although nothing tells how far it came.
pub(crate) fn is_repeatable(tool: &RegisteredTool, spec: &CallSpec, args: &Value) -> bool {
    spec.idempotent.unwrap_or_else(|| tool.tool().is_repeatable(args))
}

/// Writes results and errors of a call in the form in which they are stored.
struct Storing<'a> {
    spec: &'a CallSpec,
    output: &'a Output,
    names: ShellNames,
    redactor: Redactor,
    limit: &'a Limit,
}

impl Storing<'_> {
    fn result(&self, result: Value) -> Outcome {
        match self.bounded(result) {
            Ok(StoredResult { value, cut }) => {
                let end = if self.spec.emit && !cut.is_empty() {
                    let most = self.spec.keep.unwrap_or(ByteSize::DEFAULT_KEEP).max(ByteSize::DEFAULT_KEEP);
                    let message = format!("its tasks are lost: a result of more than {most} is truncated");
                    failed("emit", message, Some(value))
                } else {
                    CallEnd::Succeeded(value)
                };
                Outcome { stand_in: cut, ..end.into() }
            }
            Err(error) => failed("io", format!("failed to store the result: {error}"), None).into(),
        }
    }

    fn error(&self, error: &ToolError) -> Outcome {
        let result = error.result().cloned().and_then(|result| self.bounded(result).ok());
        let (result, stand_in) =
            result.map_or_else(Default::default, |StoredResult { value, cut }| (Some(value), cut));
        let remedy = conversion::remedy(error, &self.spec.args);
        let more = match (error, &remedy) {
            (ToolError::Timeout { .. }, _) => format!(": {}", self.limit),
            (_, Some(remedy)) => format!("; {remedy}"),
            (_, None) => String::new(),
        };
        let hint = remedy.or_else(|| error.hint().map(str::to_owned));
        let hint = hint.map(|hint| self.redactor.text(&hint).into_owned());
        let message = self.names.as_written(error_chain(error) + &more);
        let mut end = failed(error.class(), self.redactor.text(&message).into_owned(), result);
        if let CallEnd::Failed { error: stored, .. } = &mut end {
            let RetryAdvice { is_retried, after } = error.retry_advice();
            stored.is_retried = is_retried;
            stored.retry_after = after.map(Period);
            stored.grant = error.grant().and_then(|grant| grant_of(&grant, &self.redactor));
        }
        Outcome { end, stand_in, hint }
    }

    fn bounded(&self, result: Value) -> io::Result<StoredResult> {
        let mut result = flat_enough(result);
        self.redactor.value(&mut result);
        self.output.bounded(result, self.spec.keep)
    }
}

/// Removes secrets from the output files of a call whose program may not have been waited for. After the excluded
/// errors the program has ended, and its output was filtered.
async fn clean_left_output(error: &ToolError, files: PathBuf, vault: &Vault) {
    let is_over = matches!(
        error,
        ToolError::Exit { .. } | ToolError::InvalidJson { .. } | ToolError::InvalidArgs { .. }
    );
    if !is_over {
        let vault = vault.clone();
        // The error is ignored: the call has failed anyway, and no reader of its error could do anything about the
        // output file.
        let _ = tokio::task::spawn_blocking(move || secrets::clean_output(&files, &vault)).await;
    }
}

/// Returns the result, or its text if it is nested too deep to be parsed again by the store.
fn flat_enough(result: Value) -> Value {
    if is_too_deep(&result) { json!({"tooDeep": true, "text": result.to_string()}) } else { result }
}

/// Returns the result of a call that was not started because its sandbox could not be set up.
pub(super) fn not_started(error: &SandboxError, limit: &Limit) -> CallEnd {
    let SandboxError::Stopped(stopped) = *error else { return failed("sandbox", error.to_string(), None) };
    if stopped == ScanStopped::Cancelled {
        return CallEnd::interrupted(true);
    }
    let error = ToolError::from(stopped);
    failed(error.class(), format!("{error}: {limit}"), None)
}

pub(super) fn unknown_tool(name: &str) -> CallEnd {
    failed("missing_tool", format!("no tool `{name}`"), None)
}

pub(super) fn failed(class: &str, message: String, result: Option<Value>) -> CallEnd {
    let message = head_of_text(message, MAX_ERROR_BYTES);
    CallEnd::Failed { error: CallError::new(class, message), result }
}

/// Returns a grant for the store; `None` if its path or host is no text, too long, or contains a secret.
fn grant_of(grant: &taskpawl_tools::Grant, redactor: &Redactor) -> Option<Grant> {
    let path = |path: &Path| {
        let path = path.to_str().filter(|path| path.len() <= MAX_GRANT_BYTES)?;
        (redactor.text(path) == path).then(|| path.to_owned())
    };
    match grant {
        taskpawl_tools::Grant::Network => Some(Grant::Network),
        taskpawl_tools::Grant::Host(host) => path(Path::new(host)).map(Grant::Host),
        taskpawl_tools::Grant::Port(port) => Some(Grant::Port(*port)),
        taskpawl_tools::Grant::Read(place) => path(place).map(Grant::Read),
        taskpawl_tools::Grant::Write(place) => path(place).map(Grant::Write),
        _ => None,
    }
}
