//! Executes a single call: prepares the context that its tool sees, and records the result.

mod directories;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskpawl_manager::{Manager, Source};
use taskpawl_model::command::{CallEnd, StartedCall};
use taskpawl_model::run::run_loop::Deadline;
use taskpawl_model::task::is_too_deep;
use taskpawl_model::task::{
    ActorKind, Artifact, CallError, CallIdentity, CallRecord, CallSpec, Grant, KeySpace, Origin, StartInRun,
};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{ByteSize, CallId, Key, Period, RunId, SharedText, add_usage, cost};
use taskpawl_text::error_chain;
use taskpawl_tools::{
    ArtifactDirs, CallContext, CallLayer, CallLimits, CallSandbox, Confinement, CutSink, GrantedCall,
    Programs, Progress, ProgressSink, Redactor, RegisteredTool, Registry, RetryAdvice, SandboxError,
    ScanBounds, ScanStopped, SentBack, SharedQuestions, ToolError, UsageSink, Vault, Widening, call_layered,
    head_of_text,
};
use tokio_util::sync::CancellationToken;

use crate::asking::{Artifacts, StartQuestions};
use crate::broker::Broker;
use crate::call_executor::SentCall;
use crate::changes::{Changed, Writers};
use crate::conversion;
use crate::engine::Engine;
use crate::faults::{self, Fault};
use crate::files_by_git::{ReturnedFiles, WorkerTrees};
use crate::journal::FileJournal;
use crate::observer::{Observer, RunEvent};
use crate::output::{KEPT_BYTES, Output, StoredResult};
use crate::remembered::{is_model, widening};
use crate::scans::{CallScans, sandbox_of};
use crate::secrets::{self, ShellNames, redactor};
use crate::shared_sessions;
use crate::spans::{RunSpan, TaskSpans};
use crate::unpassed;
use crate::variables::{RunVariables, VariableValues};
use crate::worktrees::RunWorktrees;

/// Time limit of a call if neither the call, its task nor its tool has one.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Largest error message that is stored, in bytes.
const MAX_ERROR_BYTES: usize = 16 << 10;

/// Longest path of a grant that is stored, in bytes.
const MAX_GRANT_BYTES: usize = 4096;

/// Largest number of result parts that are recorded as cut.
const MAX_CUT_PARTS: usize = 32;

/// Longest JSON Pointer of such a part, in bytes.
const MAX_POINTER_BYTES: usize = 256;

/// Largest usage record that is stored, in bytes.
const MAX_USAGE_BYTES: usize = 4096;

/// Result of a call, with everything that the dispatcher needs to report it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) key: Key,
    pub(crate) attempt: u32,
    pub(crate) call: CallId,
    pub(crate) end: CallEnd,
    pub(crate) took: Duration,
    /// Duration by the clock of the records. Tests control that clock; `took` is always real time.
    pub(crate) spent: Duration,
    pub(crate) plan: Option<SharedText>,
    pub(crate) usage: Option<Value>,
    /// Parts of the result that were cut, as JSON Pointers.
    pub(crate) cut: Vec<String>,
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) changed: Changed,
    /// What would probably let a failed call succeed.
    pub(crate) hint: Option<String>,
    /// Set if the files that the cache of the task covers have changed since the claim. The success is then not cached.
    pub(crate) inputs_changed: bool,
    /// Files that a call with a work tree of its own changed.
    pub(crate) files: Option<ReturnedFiles>,
    /// The worker that ran the call; `None` for this process.
    pub(crate) worker: Option<String>,
    /// True if the call never left, because the engine was silent.
    pub(crate) is_unsent: bool,
}

/// Resources that a run holds for its calls.
#[derive(Debug)]
pub(crate) struct RunResources {
    pub(crate) programs: Programs,
    pub(crate) confinement: Arc<Confinement>,
    pub(crate) vault: Vault,
    /// Prefix of the idempotency keys of the calls.
    pub(crate) keys: KeySpace,
    /// Environment variables for the programs of the calls.
    pub(crate) variables: RunVariables,
    /// Values of the variables that arguments name.
    pub(crate) values: VariableValues,
    /// Digests of these values, for approvals and cached results.
    pub(crate) digests: Arc<BTreeMap<String, String>>,
    pub(crate) span: RunSpan,
    /// Directories for artifacts; `None` if the host keeps none.
    pub(crate) artifacts: Option<Arc<ArtifactDirs>>,
    /// The work trees of calls of other processes that bring their files.
    pub(crate) trees: Option<Arc<WorkerTrees>>,
}

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

/// State that all calls of a run share.
#[derive(Debug)]
struct RunContext {
    /// Acts as the run with the kind "agent", for everything that calls add to their plans.
    call_manager: Manager,
    source: Arc<dyn Source>,
    /// The engine at the start of the run, without tools that are found later.
    engine: Engine,
    output: Output,
    root: PathBuf,
    resources: RunResources,
    writers: Writers,
    worktrees: Arc<RunWorktrees>,
}

/// The limit that determines the deadline of a call. Used to explain a timeout.
#[derive(Debug)]
enum Limit {
    Own(Period),
    /// No limit is configured anywhere.
    Default,
    OfTool(Period),
    OfServer(String, Period),
    OfTask,
    OfRun(String),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(time) => write!(f, "its `timeout` is {time}"),
            Self::Default => write!(f, "the default `timeout` is {}", Period(DEFAULT_TIMEOUT)),
            Self::OfTool(time) => write!(f, "the `timeout` of the tool is {time}"),
            Self::OfServer(server, time) => write!(f, "the `timeout` of MCP server `{server}` is {time}"),
            Self::OfTask => f.write_str("its task exceeded its `timeout`"),
            Self::OfRun(limit) => f.write_str(limit),
        }
    }
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
        let worktrees = RunWorktrees::new(
            engine.worktrees.clone(),
            Arc::clone(&resources.confinement),
            engine.manager.clone(),
            &engine.tools,
        );
        let run_context = RunContext {
            worktrees: Arc::new(worktrees),
            call_manager: manager.clone().with_origin(Origin::Agent).with_kind(ActorKind::Agent),
            source: Arc::clone(engine.manager.source()),
            engine: engine.clone(),
            output: engine.output(),
            root: engine.project.root.clone(),
            resources,
            writers: Writers::default(),
        };
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
    #[expect(clippy::too_many_lines, reason = "one call from its start to its end, in order")]
    pub(crate) fn call_of(
        &mut self,
        started: StartedCall,
        deadline: Option<Deadline>,
        sent: Option<&SentCall>,
    ) -> impl Future<Output = Ended> + Send + 'static {
        let tool = self.engine.tools.get(&started.call.spec.tool_name).cloned();
        let usage = Arc::new(Mutex::new(None));
        let (time, limit) = self.time_left(&started, deadline);
        let mut context = self.context(&started, time, &usage);
        if let Some(sent) = sent {
            sent.ticket.key.clone_into(&mut context.idempotency_key);
            context.traceparent = sent.traceparent();
        }
        let cut = Arc::new(Mutex::new(Vec::new()));
        context.cut = Some(cut_sink(&cut));
        let run_context = Arc::clone(&self.run_context);
        let artifacts = Artifacts::default();
        context.artifacts = Some(artifacts.sink(&run_context.resources.vault));
        let files = sent.and_then(|sent| Some((sent.files.clone()?, sent.ticket.clone())));
        // Git tells the changes of a work tree of its own.
        let scans = CallScans::of(&started, &context, &run_context.writers).filter(|_| files.is_none());
        let StartedCall { task, generation, round, .. } = &started;
        let task_id = task.clone();
        let rework = started.call.body.rework_round();
        let rounds = (*generation, *round, rework);
        let steps = run_context.output.stem_of_steps(task, &started.call.id, rounds);
        let in_span = self.spans.call(&started);
        in_span(async move {
            let RunContext {
                call_manager,
                source,
                output,
                resources: RunResources { confinement, vault, variables, values, .. },
                ..
            } = &*run_context;
            // The clock starts after the snapshot of the files, so that the scan does not count as run time of the
            // call.
            let before = match &scans {
                Some(scans) => scans.before(&started.spec.writes).await,
                None => None,
            };
            let (begin, begin_at) = (Instant::now(), source.now());
            let (entered, tree) = run_context.enter(&started, files, &mut context).await;
            context.artifact_dirs = run_context.artifact_dirs(&started).await;
            let of_artifacts = run_context.widening_for_artifacts(context.artifact_dirs.as_deref());
            match shared_sessions::of_call(call_manager, &started).await {
                Ok(sessions) => context.shared_sessions = sessions,
                Err(error) => context.warn(format!("the shared conversation is unknown: {error}")),
            }
            let broker = Broker::open(call_manager, vault, &started);
            context.plan = broker.as_ref().ok().and_then(|broker| Some(broker.as_ref()?.descriptor()));
            let StartedCall { key, attempt, call, args, plan, cache, sandbox, .. } = started;
            let is_model = is_model(&call);
            let args = Value::Object(args);
            let kit = tool.as_ref().and_then(|tool| tool.tool().kit(&args));
            let remembered = confinement.remembered(GrantedCall {
                plan: plan.as_deref().unwrap_or_default(),
                task: task_id.as_str(),
                definition: &|| call.spec.definition_hash(),
                kit: kit.as_deref(),
                is_model,
            });
            let questions = remember(&mut context, steps, &call, &args, tool.as_ref(), vault);
            let (confinement, misplaced) = match entered {
                Ok(of_worktree) => (of_worktree.unwrap_or_else(|| Arc::clone(confinement)), None),
                Err(error) => (Arc::clone(confinement), Some(error)),
            };
            let (end, LeftBy { stand_in, hint }) = match (misplaced, tool, &broker) {
                (Some(error), ..) => (failed(error.class, error.message, None), LeftBy::default()),
                (None, _, Err(error)) => (
                    failed("io", format!("failed to give the call access to the plan: {error}"), None),
                    LeftBy::default(),
                ),
                (None, Some(tool), Ok(_)) => {
                    match confined(context, &confinement, widening(sandbox).and(remembered).and(of_artifacts))
                        .await
                    {
                        Ok(mut context) => {
                            variables.fill(&call.spec.tool_name, &mut context);
                            let is_outer = |name: &str| run_context.engine.has_outer_variable(name);
                            let unpassed =
                                unpassed::warning(&call.spec.tool_name, &args, &context, &is_outer);
                            let report = context.progress.clone();
                            let ending = run(
                                (tool, &run_context.engine.layers),
                                context,
                                args,
                                &call.spec,
                                output,
                                (vault, values),
                                &limit,
                            );
                            let ended = tokio::select! {
                                // A tool that ended by itself has not waited for the answer.
                                biased;
                                ended = ending => ended,
                                question = questions.asked() => (CallEnd::Asks(question), LeftBy::default()),
                            };
                            if let (Some(message), Some(report)) = (unpassed, report) {
                                report(Progress::Warning(message));
                            }
                            ended
                        }
                        Err(error) => (not_started(&error, &limit), LeftBy::default()),
                    }
                }
                (None, None, Ok(_)) => (unknown_tool(&call.spec.tool_name), LeftBy::default()),
            };
            let cut = cut_parts(&cut, &call.spec, stand_in);
            // The plan access ends before the call is reported, so that nothing can be added in the name of a finished
            // call.
            if let Ok(Some(broker)) = broker {
                broker.close().await;
            }
            let (lasted, time_spent) =
                (begin.elapsed(), (source.now() - begin_at).to_std().unwrap_or_default());
            let (mut changed, inputs_changed) = match &scans {
                Some(scans) => scans.after(before, cache, &end).await,
                None => Default::default(),
            };
            let (end, files) = run_context.leave(tree, end, &mut changed).await;
            // Usage comes from the tool and may contain a secret, like a result.
            let mut usage = usage.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(usage) = &mut usage {
                redactor(vault).value(usage);
            }
            let call = call.id;
            Ended {
                key,
                attempt,
                call,
                end,
                took: lasted,
                spent: time_spent,
                plan,
                usage,
                cut,
                artifacts: artifacts.take(),
                changed,
                hint,
                inputs_changed,
                worker: None,
                is_unsent: false,
                files,
            }
        })
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

    fn context(
        &mut self,
        started: &StartedCall,
        time: Duration,
        usage: &Arc<Mutex<Option<Value>>>,
    ) -> CallContext {
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
        context.usage = Some(usage_sink(usage));
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
        let of_tool = of_tool.map(|time| (time, of_tool_limit(name, Period(time))));
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

impl RunContext {
    /// Returns the template for the contexts of calls.
    fn context(&self, actor: &str, scope: Option<String>, cancel: &CancellationToken) -> CallContext {
        let mut context = CallContext::new(&self.root, PathBuf::new());
        actor.clone_into(&mut context.actor);
        context.scope = scope;
        context.cancel = cancel.clone();
        // The limit is a bit below that of a result: a tool that cuts its output to this size has room for the other
        // fields, and the result is not cut a second time.
        context.limits.keep_bytes = KEPT_BYTES / 8 * 7;
        context.programs = self.resources.programs.clone();
        context.secrets = Some(self.resources.vault.clone());
        context.data = self.engine.data.clone();
        context
    }
}

/// Returns the limit for a tool. The timeout of an MCP tool, whose name is `server/tool`, comes from the configuration
/// of the server.
fn of_tool_limit(name: &str, time: Period) -> Limit {
    match name.split_once('/') {
        Some((server, _)) => Limit::OfServer(server.to_owned(), time),
        None => Limit::OfTool(time),
    }
}

/// Adds the sandbox to a context. `widening` extends the rules that apply to every call.
async fn confined(
    mut context: CallContext,
    confinement: &Arc<Confinement>,
    widening: Widening,
) -> Result<CallContext, SandboxError> {
    let bounds = ScanBounds::of_call(&context);
    CallSandbox { sandbox: context.sandbox, environment: context.environment, closed: context.closed } =
        sandbox_of(confinement, widening, bounds).await?;
    Ok(context)
}

/// Collects the usage reports of a call as a sum. Of a report that is too large to store only the cost is kept.
fn usage_sink(usage: &Arc<Mutex<Option<Value>>>) -> UsageSink {
    let usage = Arc::clone(usage);
    Arc::new(move |more| {
        let is_small = more.is_object() && !is_too_deep(&more) && more.to_string().len() <= MAX_USAGE_BYTES;
        let more = if is_small { more } else { json!({"cost": cost(&more)}) };
        let mut usage = usage.lock().unwrap_or_else(PoisonError::into_inner);
        add_usage(&mut usage, more);
        // The sum may become too large although each report is small, because every report may add new names.
        if let Some(total) = usage.as_mut().filter(|total| total.to_string().len() > MAX_USAGE_BYTES) {
            *total = json!({"cost": cost(total)});
        }
    })
}

/// Collects the parts of a result that its tool has cut.
fn cut_sink(cut: &Arc<Mutex<Vec<String>>>) -> CutSink {
    let cut = Arc::clone(cut);
    Arc::new(move |pointer| {
        let mut cut = cut.lock().unwrap_or_else(PoisonError::into_inner);
        // Beyond these limits the whole result, which is the empty pointer, is marked as cut.
        if cut.len() >= MAX_CUT_PARTS || pointer.len() > MAX_POINTER_BYTES {
            *cut = vec![String::new()];
        } else if !cut.contains(&pointer) {
            cut.push(pointer);
        }
    })
}

/// Returns the parts of a result that are incomplete. Parts that are shorter because the author asked for less with
/// `keep` do not count.
fn cut_parts(by_tool: &Mutex<Vec<String>>, spec: &CallSpec, stand_in: Vec<String>) -> Vec<String> {
    if !stand_in.is_empty() {
        return stand_in;
    }
    let is_asked_for = spec.keep.is_some_and(|keep| keep < ByteSize::DEFAULT_KEEP);
    let cut = std::mem::take(&mut *by_tool.lock().unwrap_or_else(PoisonError::into_inner));
    if is_asked_for { Vec::new() } else { cut }
}

/// Runs a call. Returns how it ended, and the parts of its result that are cut because the whole result is in a file.
async fn run(
    (tool, layers): (RegisteredTool, &[Arc<dyn CallLayer>]),
    context: CallContext,
    args: Value,
    spec: &CallSpec,
    output: &Output,
    (vault, values): (&Vault, &VariableValues),
    limit: &Limit,
) -> (CallEnd, LeftBy) {
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
    let redactor = redactor(vault);
    let bounded = |mut result: Value| {
        redactor.value(&mut result);
        output.bounded(result, spec.keep)
    };
    let (mut stand_in, mut hint) = (Vec::new(), None);
    let end = match ended {
        Ok(result) => match bounded(flat_enough(result)) {
            Ok(StoredResult { value, cut }) if spec.emit && !cut.is_empty() => {
                let most = spec.keep.unwrap_or(ByteSize::DEFAULT_KEEP).max(ByteSize::DEFAULT_KEEP);
                let message = format!("its tasks are lost: a result of more than {most} is truncated");
                stand_in = cut;
                failed("emit", message, Some(value))
            }
            Ok(StoredResult { value, cut }) => {
                stand_in = cut;
                CallEnd::Succeeded(value)
            }
            Err(error) => failed("io", format!("failed to store the result: {error}"), None),
        },
        // A tool that reports a cancellation without being cancelled counts as failed. As an interrupted call it would
        // be started again, and report the same again.
        Err(ToolError::Cancelled { .. }) if cancel.is_cancelled() => CallEnd::interrupted(repeatable),
        Err(ToolError::Lost { message }) => {
            let message = redactor.text(&message).into_owned();
            CallEnd::Interrupted { repeatable, why: Some(head_of_text(message, MAX_ERROR_BYTES)) }
        }
        Err(error) => {
            let result = error.result().cloned().and_then(|result| bounded(flat_enough(result)).ok());
            let result = result.map(|StoredResult { value, cut }| {
                stand_in = cut;
                value
            });
            let remedy = conversion::remedy(&error, &spec.args);
            let more = match (&error, &remedy) {
                (ToolError::Timeout { .. }, _) => format!(": {limit}"),
                (_, Some(remedy)) => format!("; {remedy}"),
                (_, None) => String::new(),
            };
            hint = remedy.or_else(|| error.hint().map(str::to_owned));
            hint = hint.map(|hint| redactor.text(&hint).into_owned());
            let message = names.as_written(error_chain(&error) + &more);
            let mut end = failed(error.class(), redactor.text(&message).into_owned(), result);
            if let CallEnd::Failed { error: stored, .. } = &mut end {
                let RetryAdvice { is_retried, after } = error.retry_advice();
                stored.is_retried = is_retried;
                stored.retry_after = after.map(Period);
                stored.grant = error.grant().and_then(|grant| grant_of(&grant, &redactor));
            }
            end
        }
    };
    (end, LeftBy { stand_in, hint })
}

/// Gives a call its journal, and the questions that earlier attempts asked.
fn remember(
    context: &mut CallContext,
    steps: PathBuf,
    call: &CallRecord,
    args: &Value,
    tool: Option<&RegisteredTool>,
    vault: &Vault,
) -> Arc<StartQuestions> {
    let journal = FileJournal::new(steps, &call.spec.tool_name, args, vault.clone());
    let repeatable = tool.is_some_and(|tool| is_repeatable(tool, &call.spec, args));
    let work = journal.work().to_owned();
    let questions = StartQuestions::new(call.body.asked.as_deref(), work, repeatable, vault.clone());
    let questions = Arc::new(questions);
    context.journal = Some(Arc::new(journal));
    context.questions = Some(Arc::clone(&questions) as SharedQuestions);
    questions
}

/// Returns whether a call may start again although nothing tells how far it came.
pub(crate) fn is_repeatable(tool: &RegisteredTool, spec: &CallSpec, args: &Value) -> bool {
    spec.idempotent.unwrap_or_else(|| tool.tool().is_repeatable(args))
}

/// What a call leaves beside its end.
#[derive(Debug, Default)]
struct LeftBy {
    /// Parts of its result that were cut.
    stand_in: Vec<String>,
    /// What would probably let it succeed.
    hint: Option<String>,
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
fn not_started(error: &SandboxError, limit: &Limit) -> CallEnd {
    let SandboxError::Stopped(stopped) = *error else { return failed("sandbox", error.to_string(), None) };
    if stopped == ScanStopped::Cancelled {
        return CallEnd::interrupted(true);
    }
    let error = ToolError::from(stopped);
    failed(error.class(), format!("{error}: {limit}"), None)
}

fn unknown_tool(name: &str) -> CallEnd {
    failed("missing_tool", format!("no tool `{name}`"), None)
}

fn failed(class: &str, message: String, result: Option<Value>) -> CallEnd {
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
