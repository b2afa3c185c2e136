//! Starts one call: everything that a tool sees, and how its end is written down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskpawl_model::{CallEnd, CallError, CallId, Key, StartedCall, is_too_deep};
use taskpawl_tools::{
    CallContext, Programs, Progress, ProgressSink, RegisteredTool, ToolError, call_guarded,
};
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::faults::{self, Fault};
use crate::observer::{Observer, RunEvent};
use crate::output::{KEPT_BYTES, Output};

/// How long a call may take where neither it nor its task says so.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);

/// How a call ended, with what the dispatcher needs to report it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) key: Key,
    pub(crate) attempt: u32,
    pub(crate) call: CallId,
    pub(crate) end: CallEnd,
    pub(crate) took: Duration,
}

/// Makes calls out of what the store recorded as started.
#[derive(Debug)]
pub(crate) struct Executor {
    engine: Engine,
    output: Output,
    actor: String,
    scope: Option<String>,
    observer: Option<Arc<dyn Observer>>,
    cancel: CancellationToken,
    by_task: BTreeMap<Key, CancellationToken>,
    programs: Programs,
}

impl Executor {
    /// Returns an executor whose calls start their programs by `programs`.
    pub(crate) fn new(
        engine: &Engine,
        programs: Programs,
        scope: Option<String>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        Self {
            output: engine.output(),
            actor: engine.manager.actor().to_owned(),
            engine: engine.clone(),
            scope,
            observer,
            cancel: CancellationToken::new(),
            by_task: BTreeMap::new(),
            programs,
        }
    }

    /// Returns the future of the call; nothing happens before it is polled.
    pub(crate) fn call(&mut self, started: StartedCall) -> impl Future<Output = Ended> + Send + 'static {
        let tool = self.engine.tools.get(&started.call.spec.tool_name).cloned();
        let context = self.context(&started);
        let output = self.output.clone();
        async move {
            let begin = Instant::now();
            let args = Value::Object(started.args);
            let end = match tool {
                Some(tool) => run(tool, context, args, started.call.spec.idempotent, &output).await,
                None => unknown_tool(&started.call.spec.tool_name),
            };
            let StartedCall { key, attempt, call, .. } = started;
            Ended { key, attempt, call: call.id, end, took: begin.elapsed() }
        }
    }

    fn context(&mut self, started: &StartedCall) -> CallContext {
        let call = &started.call;
        let project = &self.engine.project;
        let output = self.output.stem(&started.task, &call.id, call.body.attempts);
        let timeout = self.time_left(started);
        let mut context = CallContext::new(&project.root, output);
        context.task = started.task.to_string();
        context.call = call.id.to_string();
        context.actor.clone_from(&self.actor);
        context.scope.clone_from(&self.scope);
        context.attempt = started.attempt;
        context.idempotency_key = self.idempotency_key(started);
        context.cancel = self.by_task.entry(started.key).or_insert_with(|| self.cancel.child_token()).clone();
        context.deadline = tokio::time::Instant::now().checked_add(timeout);
        // What a tool has cut to fit is not cut again: there is room for the other fields beside it.
        context.limits.keep_bytes = KEPT_BYTES / 8 * 7;
        context.progress = self.progress(started);
        context.programs = self.programs.clone();
        context
    }

    /// Returns how long a call may take: its own time, and no longer than what is left of its task's.
    fn time_left(&self, started: &StartedCall) -> Duration {
        let own = started.call.spec.timeout.map(|period| period.0);
        let now = self.engine.manager.source().now();
        let left = started.deadline.map(|deadline| (deadline - now).to_std().unwrap_or_default());
        match (own, left) {
            (Some(own), Some(left)) => own.min(left),
            (Some(time), None) | (None, Some(time)) => time,
            (None, None) => DEFAULT_TIMEOUT,
        }
    }

    /// The same for every start of a call, until its task is reopened.
    fn idempotency_key(&self, started: &StartedCall) -> String {
        let StartedCall { task, call, generation, .. } = started;
        let key = format!("{}/{task}/{}/{generation}", self.engine.project.id, call.id);
        if faults::is_on(Fault::FreshKeys) { format!("{key}/{}", call.body.attempts) } else { key }
    }

    fn progress(&self, started: &StartedCall) -> Option<ProgressSink> {
        let observer = Arc::clone(self.observer.as_ref()?);
        let (task, call) = (started.task.clone(), started.call.id.clone());
        Some(Arc::new(move |progress| {
            if let Progress::Message(message) = progress {
                observer.event(&RunEvent::Progress { task: task.clone(), call: call.clone(), message });
            }
        }))
    }

    pub(crate) fn kill(&mut self, key: Key) {
        if let Some(token) = self.by_task.get(&key) {
            token.cancel();
        }
    }

    pub(crate) fn kill_all(&self) {
        self.cancel.cancel();
    }

    pub(crate) fn forget(&mut self, key: Key) {
        self.by_task.remove(&key);
    }
}

async fn run(
    tool: RegisteredTool,
    context: CallContext,
    args: Value,
    idempotent: Option<bool>,
    output: &Output,
) -> CallEnd {
    let repeatable = idempotent.unwrap_or_else(|| tool.tool().is_repeatable(&args));
    let cancel = context.cancel.clone();
    match call_guarded(tool, context, args).await {
        Ok(result) => match output.bounded(flat_enough(result)) {
            Ok(result) => CallEnd::Succeeded(result),
            Err(error) => failed("io", format!("the result could not be kept: {error}"), None),
        },
        // A tool that says so without having been asked has failed: started again, it would say so again.
        Err(ToolError::Cancelled { .. }) if cancel.is_cancelled() => CallEnd::Interrupted { repeatable },
        Err(ToolError::Lost { .. }) => CallEnd::Interrupted { repeatable },
        Err(error) => {
            let result = error.result().cloned().and_then(|result| output.bounded(flat_enough(result)).ok());
            failed(error.class(), chain(&error), result)
        }
    }
}

/// A value that is nested too deep to be read again is kept as its text.
fn flat_enough(result: Value) -> Value {
    if is_too_deep(&result) { json!({"tooDeep": true, "text": result.to_string()}) } else { result }
}

fn unknown_tool(name: &str) -> CallEnd {
    failed("missing_tool", format!("no tool `{name}`"), None)
}

fn failed(class: &str, message: String, result: Option<Value>) -> CallEnd {
    CallEnd::Failed { error: CallError { class: class.to_owned(), message }, result }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
