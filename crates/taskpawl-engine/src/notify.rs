//! Telling somebody outside what happens in a run: a program is run for it.
//!
//! While one of these programs runs, what happens is gathered, so that a thousand failures are not a thousand programs. What
//! becomes of them never changes what becomes of the run.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use taskpawl_manager::Manager;
use taskpawl_model::{ApprovalRequest, Judgement, Origin, PlanNotify, PlanRecord, RunId, format_time};
use taskpawl_tools::{
    BeforeCall, CallContext, ClosedPlaces, Confinement, End, Environment, Limits, Outcome, OutputFiles,
    Program, Programs, Progress, Sandbox, ScanBounds, SearchPath, Widening,
};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::scans::sandbox_of;
use crate::summary::RunSummary;

/// How long such a program may take, and how long a run waits for the last of them.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many tasks one of them is told by name.
const LISTED: usize = 50;

/// What somebody is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Waiting,
    Failed,
    Finished,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::Finished => "finished",
        }
    }
}

/// What one program is to be told.
#[derive(Debug)]
struct Message {
    argv: Vec<String>,
    kind: Kind,
    tasks: Vec<Value>,
    more: Map<String, Value>,
}

/// Where such programs run.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) run: RunId,
    pub(crate) manager: Manager,
    pub(crate) programs: Programs,
    /// What holds the programs that others named than the user.
    pub(crate) confinement: Arc<Confinement>,
    pub(crate) root: PathBuf,
    /// The directory for what they print, as long as they run.
    pub(crate) files: PathBuf,
}

/// Runs programs that tell somebody what happens, one at a time.
#[derive(Debug)]
pub(crate) struct Notifier {
    place: Place,
    /// The program of the run, which is told everything; empty for none.
    argv: Vec<String>,
    /// Whether it is held to the sandbox, as those of plans are.
    is_held: bool,
    /// The programs of plans, which are told about their tasks, as far as these were met; empty for none.
    plans: BTreeMap<String, Vec<String>>,
    queue: VecDeque<Message>,
    /// What is still to be said about programs of plans that are not run.
    refused: VecDeque<String>,
    count: u64,
    /// At most one; it ends with what went wrong.
    running: JoinSet<Option<String>>,
}

impl Notifier {
    pub(crate) fn new(place: Place, argv: Vec<String>, is_held: bool) -> Self {
        let (plans, queue, running) = (BTreeMap::new(), VecDeque::new(), JoinSet::new());
        Self { place, argv, is_held, plans, queue, refused: VecDeque::new(), count: 0, running }
    }

    /// Tells that a task waits for a decision.
    pub(crate) fn waiting(&mut self, request: &ApprovalRequest) {
        for argv in self.targets(request.plan.as_deref()) {
            self.add(argv, Kind::Waiting, json!(request));
        }
    }

    /// Tells that a task has failed.
    pub(crate) fn failed(&mut self, task: &str, name: &str, plan: Option<&str>, error: Option<&str>) {
        for argv in self.targets(plan) {
            self.add(argv, Kind::Failed, json!({"task": task, "name": name, "plan": plan, "error": error}));
        }
    }

    /// Tells that the run is over, and waits for the programs that are still to tell something, for a while. Returns what went
    /// wrong.
    pub(crate) async fn finish(mut self, summary: &RunSummary) -> Vec<String> {
        let mut targets: Vec<Vec<String>> = self.plans.values().cloned().collect();
        targets.push(self.argv.clone());
        targets.retain(|argv| !argv.is_empty());
        targets.sort();
        targets.dedup();
        for argv in targets {
            let more = json!({"exit": summary.exit, "summary": summary});
            let more = more.as_object().cloned().unwrap_or_default();
            self.queue.push_back(Message { argv, kind: Kind::Finished, tasks: Vec::new(), more });
        }
        let mut warnings = Vec::new();
        let all = async {
            while self.is_busy() {
                warnings.push(self.next().await);
            }
        };
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            warnings.push("not everything could be told in time".to_owned());
        }
        warnings.retain(|warning| !warning.is_empty());
        warnings
    }

    /// Takes note that the run has to do with a plan: it is told of the end.
    pub(crate) fn note_plan(&mut self, plan: &str) {
        if !self.plans.contains_key(plan) {
            let argv = self.argv_of(plan);
            self.plans.insert(plan.to_owned(), argv);
        }
    }

    fn is_busy(&self) -> bool {
        !self.queue.is_empty() || !self.running.is_empty() || !self.refused.is_empty()
    }

    /// Returns the programs to tell about a task of this plan.
    fn targets(&mut self, plan: Option<&str>) -> Vec<Vec<String>> {
        let mut targets = vec![self.argv.clone()];
        if let Some(plan) = plan {
            self.note_plan(plan);
            targets.extend(self.plans.get(plan).filter(|argv| **argv != self.argv).cloned());
        }
        targets.retain(|argv| !argv.is_empty());
        targets
    }

    /// Returns the program of a plan, as far as it may run. A plan that cannot be read now is found out elsewhere.
    fn argv_of(&mut self, plan: &str) -> Vec<String> {
        let record = self.place.manager.store().view(|view| view.plan(plan)).ok().flatten();
        let Some(notify) = record.as_ref().and_then(PlanRecord::notify) else { return Vec::new() };
        // Who names the program of the run is told with it, and starts nothing by that.
        if notify.argv != self.argv
            && let Some(why) = self.against(&notify)
        {
            let program = notify.argv.join(" ");
            let way = if is_by_model(&notify) {
                "it runs when a person applies the plan with it, or names it"
            } else {
                "take it out of the plan, or name it"
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

    /// Says why the program of a plan may not run. Nobody is asked about it.
    fn against(&self, notify: &PlanNotify) -> Option<String> {
        if is_by_model(notify) && self.place.confinement.is_off() {
            return Some("a model wrote it, and the sandbox is off".to_owned());
        }
        match notify.judge(self.place.manager.gatekeeper().map(|gatekeeper| &**gatekeeper)) {
            Judgement::Allow => None,
            Judgement::Ask { why } | Judgement::Deny { why } => Some(why),
        }
    }

    /// Adds a task to what is to be told, and starts telling if nothing else is being told.
    fn add(&mut self, argv: Vec<String>, kind: Kind, task: Value) {
        match self.queue.iter_mut().find(|message| message.kind == kind && message.argv == argv) {
            Some(message) => message.tasks.push(task),
            None => self.queue.push_back(Message { argv, kind, tasks: vec![task], more: Map::new() }),
        }
    }

    /// Waits for the end of a program, and returns what went wrong with it, or nothing. Starts the next one. Never returns while
    /// there is nothing to tell.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
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
        // A plan that names the program of the run is told with it, and gets no more by that.
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
        event.insert("run".to_owned(), json!(self.place.run));
        event.insert("at".to_owned(), json!(format_time(self.place.manager.source().now())));
        if message.kind != Kind::Finished {
            let tasks = &message.tasks;
            event.insert("count".to_owned(), json!(tasks.len()));
            event.insert("tasks".to_owned(), json!(tasks[..tasks.len().min(LISTED)]));
        }
        format!("{}\n", Value::Object(event))
    }
}

/// Runs a program in the sandbox, and returns what went wrong and what it made that others obey.
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
    let look = Look::before(&program.cwd, held.closed).await?;
    let problem = tell(programs, &program).await;
    let made = look.after(&program).await;
    let said: Vec<String> = problem.into_iter().chain(made).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// A look at what others obey without being asked, before and after one of these programs.
struct Look {
    cx: CallContext,
    before: BeforeCall,
    said: Arc<Mutex<Vec<String>>>,
}

impl Look {
    /// Returns nothing where the runtime shuts down.
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

    /// Returns what the program has made, as far as somebody has to know it.
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

/// Runs a program and returns what went wrong.
async fn tell(programs: &Programs, program: &Program) -> Option<String> {
    let limits =
        Limits { deadline: Some(Instant::now() + PATIENCE), output_bytes: 1 << 20, ..Limits::default() };
    let outcome = programs.run(program, &limits, &CancellationToken::new()).await;
    for path in [&program.output.stdout, &program.output.stderr] {
        // There is none where nothing was printed.
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
    let said = outcome.stderr.text.lines().rev().find(|line| !line.trim().is_empty());
    Some(said.map_or(problem.clone(), |said| format!("{problem}: {}", said.trim())))
}
