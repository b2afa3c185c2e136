//! Executes calls: prepares the context that the tool of a call sees, and returns the result for the records.

mod directories;
mod ended;
mod limit;
mod outcome;
mod reports;
mod run_context;
mod start;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use taskpawl_manager::Manager;
use taskpawl_model::command::StartedCall;
use taskpawl_model::run::run_loop::Deadline;
use taskpawl_model::task::{CallIdentity, KeySpace, StartInRun};
use taskpawl_model::value::{Key, Period, RunId, Timestamp};
use taskpawl_tools::{
    CallContext, CallLimits, Progress, ProgressSink, RegisteredTool, Registry, SandboxError, SentBack,
    Widening,
};
use tokio_util::sync::CancellationToken;

pub(crate) use self::ended::Ended;
use self::limit::{DEFAULT_TIMEOUT, Limit};
pub(crate) use self::outcome::is_repeatable;
use self::reports::CallReports;
use self::run_context::RunContext;
pub(crate) use self::run_context::RunResources;
use self::start::CallStart;
use crate::call_executor::SentCall;
use crate::engine::Engine;
use crate::faults::{self, Fault};
use crate::observer::{Observer, RunEvent};
use crate::scans::{CallScans, confined};
use crate::secrets::redactor;
use crate::spans::TaskSpans;

/// Turns calls that the store has recorded as started into futures.
#[derive(Debug)]
pub(crate) struct Executor {
    engine: Engine,
    run: RunId,
    /// Template for the context of a call; each call gets a copy with its own fields filled in.
    context: CallContext,
    observer: Option<Arc<dyn Observer>>,
    cancel: CancellationToken,
    by_task: BTreeMap<Key, CancellationToken>,
    spans: TaskSpans,
    run_context: Arc<RunContext>,
}

impl Executor {
    /// Returns an executor whose calls use the resources in `resources`.
    pub(crate) fn new(
        engine: &Engine,
        (run, manager): (RunId, &Manager),
        resources: RunResources,
        scope: Option<String>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        let run_context = RunContext::new(engine, manager, resources);
        let cancel = CancellationToken::new();
        Self {
            run,
            context: run_context.context(engine.manager.actor(), scope, &cancel),
            engine: engine.clone(),
            observer,
            cancel,
            by_task: BTreeMap::new(),
            spans: TaskSpans::new(&run_context.resources.span),
            run_context: Arc::new(run_context),
        }
    }

    /// Returns the future of a call. It ends at `deadline` at the latest; the text in `deadline` names the limit.
    /// Nothing happens before the first poll.
    pub(crate) fn call(
        &mut self,
        started: StartedCall,
        deadline: Option<Deadline>,
    ) -> impl Future<Output = Ended> + Send + 'static {
        self.call_of(started, deadline, None)
    }

    /// Does the same as [`call`](Self::call), under the identity of the call of another process if there is one.
    pub(crate) fn call_of(
        &mut self,
        started: StartedCall,
        deadline: Option<Deadline>,
        sent: Option<&SentCall>,
    ) -> impl Future<Output = Ended> + Send + 'static {
        let start = self.start(started, deadline, sent);
        let in_span = self.spans.call(&start.started);
        let run_context = Arc::clone(&self.run_context);
        in_span(async move { start.run(&run_context).await })
    }

    fn start(
        &mut self,
        started: StartedCall,
        deadline: Option<Deadline>,
        sent: Option<&SentCall>,
    ) -> CallStart {
        let tool = self.engine.tools.get(&started.call.spec.tool_name).cloned();
        let (time, limit) = self.time_left(&started, deadline);
        let mut context = self.context(&started, time);
        if let Some(sent) = sent {
            sent.ticket.key.clone_into(&mut context.idempotency_key);
            context.traceparent = sent.traceparent();
        }
        let run_context = &self.run_context;
        let reports = CallReports::of(&mut context, &run_context.resources.vault);
        let files = sent.and_then(|sent| Some((sent.files.clone()?, sent.ticket.clone())));
        // Git tells the changes of a work tree of its own.
        let scans = CallScans::of(&started, &context, &run_context.writers).filter(|_| files.is_none());
        let StartedCall { task, generation, round, call, .. } = &started;
        let rounds = (*generation, *round, call.body.rework_round());
        let steps = run_context.output.stem_of_steps(task, &call.id, rounds);
        CallStart { started, tool, context, limit, steps, reports, files, scans }
    }

    /// Returns the context for a search for tools. Its processes belong to the run, as those of calls do. `number`
    /// distinguishes searches.
    pub(crate) fn context_of_search(
        &self,
        number: usize,
    ) -> impl Future<Output = Result<CallContext, SandboxError>> + Send + 'static {
        let run_context = Arc::clone(&self.run_context);
        let mut context = self.context.clone();
        context.output = run_context.output.stem_of_search(&self.run, number);
        context.cancel = self.cancel.child_token();
        context.limits = CallLimits::default();
        async move { confined(context, &run_context.resources.confinement, Widening::default()).await }
    }

    /// Replaces the registry by one with tools that became known during the run.
    pub(crate) fn take_tools(&mut self, tools: Arc<Registry>) {
        self.engine.tools = tools;
    }

    fn context(&mut self, started: &StartedCall, time: Duration) -> CallContext {
        let call = &started.call;
        let mut context = self.context.clone();
        context.output = self.run_context.output.stem(&started.task, &call.id, call.body.attempts);
        started.task.as_str().clone_into(&mut context.task);
        call.id.as_str().clone_into(&mut context.call);
        context.attempt = call.body.attempts;
        context.claim = started.attempt;
        context.idempotency_key = self.idempotency_key(started);
        let (task, attempt, start) = (&started.task, started.attempt, call.body.attempts);
        context.traceparent =
            StartInRun { run: &self.run, task, attempt, call: &call.id, start }.traceparent();
        // All calls of a task share one token, so that a task can be ended without the rest of the run.
        context.cancel = self.token(started.key);
        context.deadline = tokio::time::Instant::now().checked_add(time);
        context.progress = self.progress(started);
        context.rework = call.body.rework().and_then(|rework| {
            let (text, is_of_person) = (rework.found.clone()?, rework.by.is_some());
            Some(SentBack { text, is_of_person })
        });
        if let Some(keep) = call.spec.keep {
            context.limits.keep_bytes = usize::try_from(keep.0).unwrap_or(usize::MAX);
            context.limits.is_keep_chosen = true;
        }
        context
    }

    /// Returns the time that a call has left, which is the minimum of its own, its tool's, its task's and the run's
    /// limit. The second value explains the limit if it is exceeded.
    fn time_left(&self, started: &StartedCall, deadline: Option<Deadline>) -> (Duration, Limit) {
        let now = self.engine.manager.source().now();
        let until = |end: Timestamp| (end - now).to_std().unwrap_or_default();
        let own = match started.call.spec.timeout {
            Some(time) => Some((time.0, Limit::Own(time))),
            None if started.deadline.is_some() => None,
            None => Some((DEFAULT_TIMEOUT, Limit::Default)),
        };
        let of_task = started.deadline.map(|end| (until(end), Limit::OfTask));
        let of_run = deadline.map(|deadline| (until(deadline.at), Limit::OfRun(deadline.message)));
        let name = &started.call.spec.tool_name;
        let of_tool = self.engine.tools.get(name).and_then(|tool| tool.spec().timeout);
        let of_tool = of_tool.map(|time| (time, Limit::of_tool(name, Period(time))));
        // The limit of the tool replaces the default, but not an explicit `timeout` of the call.
        let own = own.filter(|_| of_tool.is_none() || started.call.spec.timeout.is_some());
        let ends = [own, of_tool, of_task, of_run].into_iter().flatten();
        ends.min_by_key(|(time, _)| *time).unwrap_or((Duration::ZERO, Limit::Default))
    }

    pub(crate) fn keys(&self) -> &KeySpace {
        &self.run_context.resources.keys
    }

    pub(crate) fn idempotency_key(&self, started: &StartedCall) -> String {
        let StartedCall { task, call, generation, round, .. } = started;
        let identity = CallIdentity {
            task,
            call: &call.id,
            generation: *generation,
            round: *round,
            rework: call.body.rework_round(),
        };
        let key = self.run_context.resources.keys.key(&identity);
        if faults::is_on(Fault::FreshKeys) { format!("{key}/{}", call.body.attempts) } else { key }
    }

    fn progress(&self, started: &StartedCall) -> Option<ProgressSink> {
        let observer = Arc::clone(self.observer.as_ref()?);
        let (task, call) = (started.task.clone(), started.call.id.clone());
        let vault = self.run_context.resources.vault.clone();
        Some(Arc::new(move |progress| {
            let clean = |message: String| redactor(&vault).text(&message).into_owned();
            match progress {
                Progress::Message(message) => {
                    let (task, call, message) = (task.clone(), call.clone(), clean(message));
                    observer.event(&RunEvent::Progress { task, call, message, fraction: None });
                }
                Progress::Part { fraction, message } => {
                    let (task, call, message) = (task.clone(), call.clone(), clean(message));
                    observer.event(&RunEvent::Progress { task, call, message, fraction: Some(fraction) });
                }
                Progress::Warning(message) => {
                    let message = format!("{task}: {}", clean(message));
                    observer.event(&RunEvent::Warning { message });
                }
                _ => {}
            }
        }))
    }

    /// Returns the token that cancels the calls of a task.
    pub(crate) fn token(&mut self, key: Key) -> CancellationToken {
        self.by_task.entry(key).or_insert_with(|| self.cancel.child_token()).clone()
    }

    /// Returns a tool of the run.
    pub(crate) fn tool(&self, name: &str) -> Option<&RegisteredTool> {
        self.engine.tools.get(name)
    }

    /// Returns the token that cancels all calls of the run.
    pub(crate) fn cancellation(&self) -> CancellationToken {
        self.cancel.clone()
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
        self.spans.end(key);
    }
}
