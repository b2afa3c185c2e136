//! Runs the notification programs of a run.
//!
//! While a program runs, further events are collected, so that a thousand failures do not start a thousand programs.
//! The results of the programs never affect the run.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use taskpawl_manager::Manager;
use taskpawl_model::task::PolicyDecision;
use taskpawl_model::task::{ApprovalRequest, Origin, PlanNotify, PlanRecord};
use taskpawl_model::value::RunId;
use taskpawl_model::value::format_time;
use taskpawl_tools::{
    BeforeCall, CallContext, ClosedPlaces, Confinement, End, Environment, Limits, Outcome, OutputFiles,
    Program, Programs, Progress, Sandbox, ScanBounds, SearchPath, Widening,
};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::options::RunOptions;
use crate::quiet_plans::QuietPlans;
use crate::scans::sandbox_of;
use crate::summary::RunSummary;

/// Time limit for a notification program, and for the run to wait for the last of them.
const PATIENCE: Duration = Duration::from_secs(30);

/// Number of tasks that one message lists; its count includes all.
const MAX_LISTED: usize = 50;

/// Kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Waiting,
    Failed,
    Finished,
    /// An event of the host program, with its word.
    Host(&'static str),
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::Finished => "finished",
            Self::Host(word) => word,
        }
    }
}

/// One message for one program.
#[derive(Debug)]
struct Message {
    argv: Vec<String>,
    kind: Kind,
    tasks: Vec<Value>,
    more: Map<String, Value>,
}

/// Environment of the notification programs.
#[derive(Debug)]
pub(crate) struct NotifyContext {
    pub(crate) run: RunId,
    pub(crate) manager: Manager,
    pub(crate) programs: Programs,
    /// Sandbox for programs that were not chosen by the user.
    pub(crate) confinement: Arc<Confinement>,
    pub(crate) root: PathBuf,
    /// Directory for the output of the programs; removed when each program ends.
    pub(crate) files: PathBuf,
}

/// Runs notification programs, one at a time.
#[derive(Debug)]
pub(crate) struct Notifier {
    place: NotifyContext,
    /// Program of the run, which receives all events; empty for none.
    argv: Vec<String>,
    /// True if that program runs in the sandbox, as the programs of plans always do.
    is_held: bool,
    /// Plans whose events the program of the run does not receive.
    quiet: QuietPlans,
    /// True if a call of a quiet plan has started, and if one of another task has.
    started: (bool, bool),
    /// Programs of plans, which receive the events of their own tasks; empty for none. Filled when a plan is first
    /// encountered.
    plans: BTreeMap<String, Vec<String>>,
    queue: VecDeque<Message>,
    /// Pending warnings about programs of plans that must not run.
    refused: VecDeque<String>,
    count: u64,
    /// At most one program. Its result is a warning if something failed.
    running: JoinSet<Option<String>>,
}

impl Notifier {
    pub(crate) fn new(place: NotifyContext, options: &RunOptions) -> Self {
        Self {
            place,
            argv: options.notify.clone(),
            is_held: options.notify_in_sandbox,
            quiet: options.quiet_plans.clone(),
            started: (false, false),
            plans: BTreeMap::new(),
            queue: VecDeque::new(),
            refused: VecDeque::new(),
            count: 0,
            running: JoinSet::new(),
        }
    }

    /// Sends one message of the host program to the program of the run, and waits up to 30 seconds for it. Returns the
    /// warnings.
    pub(crate) async fn send(mut self, event: &'static str, details: Map<String, Value>) -> Vec<String> {
        let (argv, kind) = (self.argv.clone(), Kind::Host(event));
        self.queue.push_back(Message { argv, kind, tasks: Vec::new(), more: details });
        self.drain().await
    }

    /// Queues a message about a task that waits for an approval.
    pub(crate) fn waiting(&mut self, request: &ApprovalRequest) {
        for argv in self.targets(request.plan.as_deref()) {
            self.add(argv, Kind::Waiting, json!(request));
        }
    }

    /// Queues a message about a failed task.
    pub(crate) fn failed(&mut self, task: &str, name: &str, plan: Option<&str>, error: Option<&str>) {
        for argv in self.targets(plan) {
            self.add(argv, Kind::Failed, json!({"task": task, "name": name, "plan": plan, "error": error}));
        }
    }

    /// Queues the messages about the end of the run, and waits up to 30 seconds for all programs. Returns the warnings.
    pub(crate) async fn finish(mut self, summary: &RunSummary) -> Vec<String> {
        let mut targets: Vec<Vec<String>> = self.plans.values().cloned().collect();
        // A run that started calls of quiet plans alone is over for the host, which reports it.
        if self.started != (true, false) {
            targets.push(self.argv.clone());
        }
        targets.retain(|argv| !argv.is_empty());
        // A program that several plans name is run once.
        targets.sort();
        targets.dedup();
        for argv in targets {
            let more = json!({"exit": summary.exit, "summary": summary});
            let more = more.as_object().cloned().unwrap_or_default();
            self.queue.push_back(Message { argv, kind: Kind::Finished, tasks: Vec::new(), more });
        }
        self.drain().await
    }

    async fn drain(&mut self) -> Vec<String> {
        let mut warnings = Vec::new();
        let all = async {
            while self.is_busy() {
                warnings.push(self.next().await);
            }
        };
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            warnings.push("some notifications were not sent in time".to_owned());
        }
        warnings.retain(|warning| !warning.is_empty());
        warnings
    }

    /// Registers a plan, whose program then receives the end of the run.
    pub(crate) fn note_plan(&mut self, plan: &str) {
        if !self.plans.contains_key(plan) {
            let argv = self.argv_of(plan);
            self.plans.insert(plan.to_owned(), argv);
        }
    }

    /// Registers the plan of a call that starts.
    pub(crate) fn note_call(&mut self, plan: Option<&str>) {
        if plan.is_some_and(|plan| self.quiet.contains(plan)) {
            self.started.0 = true;
        } else {
            self.started.1 = true;
        }
        if let Some(plan) = plan {
            self.note_plan(plan);
        }
    }

    fn is_busy(&self) -> bool {
        !self.queue.is_empty() || !self.running.is_empty() || !self.refused.is_empty()
    }

    /// Returns the programs that receive events about a task of this plan.
    fn targets(&mut self, plan: Option<&str>) -> Vec<Vec<String>> {
        let mut targets = vec![self.argv.clone()];
        if plan.is_some_and(|plan| self.quiet.contains(plan)) {
            targets.clear();
        }
        if let Some(plan) = plan {
            self.note_plan(plan);
            targets.extend(self.plans.get(plan).filter(|argv| **argv != self.argv).cloned());
        }
        targets.retain(|argv| !argv.is_empty());
        targets
    }

    /// Returns the program of a plan if it may run. A plan that cannot be read is ignored here; the run reports that
    /// error itself.
    fn argv_of(&mut self, plan: &str) -> Vec<String> {
        let record = self.place.manager.store().view(|view| view.plan(plan)).ok().flatten();
        let Some(notify) = record.as_ref().and_then(PlanRecord::notify) else { return Vec::new() };
        // A plan that names the program of the run needs no decision: that program receives the event anyway.
        if notify.argv != self.argv
            && let Some(why) = self.against(&notify)
        {
            let program = notify.argv.join(" ");
            let way = if is_by_model(&notify) {
                "it runs only if a person applies the plan with it, or sets it"
            } else {
                "remove it from the plan, or set it"
            };
            self.refused.push_back(format!(
                "`notify` of plan `{plan}` is not run (`{program}`, written by `{}`): {why}; {way} as `run.notify` in \
                 {} own configuration",
                notify.origin.as_str(),
                if is_by_model(&notify) { "their" } else { "your" },
            ));
            return Vec::new();
        }
        notify.argv
    }

    /// Returns the reason why the program of a plan must not run. A decision "ask" counts as no, because nobody can be
    /// asked here.
    fn against(&self, notify: &PlanNotify) -> Option<String> {
        if is_by_model(notify) && self.place.confinement.is_off() {
            return Some("a model wrote it, and the sandbox is off".to_owned());
        }
        match notify.authorize(self.place.manager.policy_hook().map(|policy_hook| &**policy_hook)) {
            PolicyDecision::Allow => None,
            PolicyDecision::Ask { why } | PolicyDecision::Deny { why } => Some(why),
        }
    }

    /// Adds a task to the queued message of the same kind and program, or queues a new message.
    fn add(&mut self, argv: Vec<String>, kind: Kind, task: Value) {
        match self.queue.iter_mut().find(|message| message.kind == kind && message.argv == argv) {
            Some(message) => message.tasks.push(task),
            None => self.queue.push_back(Message { argv, kind, tasks: vec![task], more: Map::new() }),
        }
    }

    /// Starts the next program if none runs, waits for its end, and returns a warning or an empty string. Never returns
    /// while there is nothing to do.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped: the program is kept in a set.
    pub(crate) async fn next(&mut self) -> String {
        if let Some(refused) = self.refused.pop_front() {
            return refused;
        }
        if self.running.is_empty() {
            match self.queue.pop_front() {
                Some(message) => self.start(message),
                None => std::future::pending().await,
            }
        }
        match self.running.join_next().await {
            Some(Ok(warning)) => warning.unwrap_or_default(),
            Some(Err(error)) => error.to_string(),
            None => String::new(),
        }
    }

    fn start(&mut self, message: Message) {
        self.count += 1;
        let stem = self.place.files.join(format!("{}@{}", self.place.run, self.count));
        let output =
            OutputFiles { stdout: stem.with_extension("stdout"), stderr: stem.with_extension("stderr") };
        let text = self.text(&message);
        let variables =
            [("TASKPAWL_EVENT", message.kind.as_str()), ("TASKPAWL_RUN", self.place.run.as_str())];
        let variables = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        // A plan that names the program of the run gets no more rights by that: it is started once, as the program of
        // the run.
        let is_free = message.argv == self.argv && !self.is_held;
        let mut program = Program {
            argv: message.argv,
            cwd: self.place.root.clone(),
            environment: Environment::default().with(variables.clone()),
            stdin: Some(text.into_bytes()),
            output,
            sandbox: Sandbox::Off,
            handover: None,
        };
        let programs = self.place.programs.clone();
        if is_free {
            // A program outside of the sandbox must not be found in a directory that sandboxed calls can write to.
            let search = SearchPath::outside(&self.place.confinement.writable());
            let path = [(OsString::from("PATH"), search.as_os_str().to_owned())];
            program.environment = program.environment.with(path);
            self.running.spawn(async move { tell(&programs, &program).await });
            return;
        }
        let confinement = Arc::clone(&self.place.confinement);
        self.running.spawn(async move { tell_held(&confinement, &programs, program, variables).await });
    }

    fn text(&self, message: &Message) -> String {
        let mut event = message.more.clone();
        event.insert("event".to_owned(), json!(message.kind.as_str()));
        if !matches!(message.kind, Kind::Host(_)) {
            event.insert("run".to_owned(), json!(self.place.run));
        }
        event.insert("at".to_owned(), json!(format_time(self.place.manager.source().now())));
        if matches!(message.kind, Kind::Waiting | Kind::Failed) {
            let tasks = &message.tasks;
            event.insert("count".to_owned(), json!(tasks.len()));
            event.insert("tasks".to_owned(), json!(tasks[..tasks.len().min(MAX_LISTED)]));
        }
        format!("{}\n", Value::Object(event))
    }
}

/// Runs a program in the sandbox. Returns a warning about failures, and about files that it created and that other
/// programs execute or read automatically.
async fn tell_held(
    confinement: &Arc<Confinement>,
    programs: &Programs,
    mut program: Program,
    variables: [(OsString, OsString); 2],
) -> Option<String> {
    let bounds = ScanBounds::default().at_most(PATIENCE);
    let held = match sandbox_of(confinement, Widening::default(), bounds).await {
        Ok(held) => held,
        Err(error) => return Some(untold(&program, &error.to_string())),
    };
    program.environment = Arc::unwrap_or_clone(held.environment).with(variables);
    program.sandbox = held.sandbox;
    let look = ObeyedFilesCheck::before(&program.cwd, held.closed).await?;
    let problem = tell(programs, &program).await;
    let made = look.after(&program).await;
    let warnings: Vec<String> = problem.into_iter().chain(made).collect();
    (!warnings.is_empty()).then(|| warnings.join("; "))
}

/// Comparison of such files before and after a program.
struct ObeyedFilesCheck {
    cx: CallContext,
    before: BeforeCall,
    said: Arc<Mutex<Vec<String>>>,
}

impl ObeyedFilesCheck {
    /// Returns `None` while the runtime shuts down.
    async fn before(root: &Path, closed: ClosedPlaces) -> Option<Self> {
        let said = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&said);
        let mut cx = CallContext::new(root, PathBuf::new());
        cx.closed = closed;
        cx.progress = Some(Arc::new(move |progress| {
            if let Progress::Warning(text) = progress {
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(text);
            }
        }));
        Some(Self { before: BeforeCall::of(&cx).await.ok()?, cx, said })
    }

    /// Returns a warning about the files that the program created, if any.
    async fn after(self, program: &Program) -> Option<String> {
        self.before.created(&self.cx, Vec::new()).await.tell(&self.cx, &mut Map::new());
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).join("; ");
        let name = program.argv.first().map(String::as_str).unwrap_or_default();
        (!said.is_empty()).then(|| format!("`{name}`, which was told what happens: {said}"))
    }
}

fn is_by_model(notify: &PlanNotify) -> bool {
    matches!(notify.origin, Origin::Mcp | Origin::Agent)
}

/// Runs a program and returns a warning if it failed.
async fn tell(programs: &Programs, program: &Program) -> Option<String> {
    let limits =
        Limits { deadline: Some(Instant::now() + PATIENCE), output_bytes: 1 << 20, ..Limits::default() };
    let outcome = programs.run(program, &limits, &CancellationToken::new()).await;
    for path in [&program.output.stdout, &program.output.stderr] {
        // The file does not exist if the program printed nothing.
        let _ = std::fs::remove_file(path);
    }
    let problem = match outcome {
        Ok(outcome) => problem(&outcome)?,
        Err(error) => error.to_string(),
    };
    Some(untold(program, &problem))
}

fn untold(program: &Program, problem: &str) -> String {
    let name = program.argv.first().map(String::as_str).unwrap_or_default();
    format!("`notify` could not tell what happened: {name}: {problem}")
}

fn problem(outcome: &Outcome) -> Option<String> {
    let problem = match outcome.end {
        End::Exited if outcome.code == 0 => return None,
        End::Exited => format!("exit code {}", outcome.code),
        End::TimedOut => format!("not over after {} seconds", PATIENCE.as_secs()),
        End::Cancelled => "stopped".to_owned(),
        End::OutputLimit => "it printed more than 1 MiB".to_owned(),
    };
    let last_line = outcome.stderr.text.lines().rev().find(|line| !line.trim().is_empty());
    Some(last_line.map_or(problem.clone(), |last_line| format!("{problem}: {}", last_line.trim())))
}
