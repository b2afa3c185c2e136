use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use taskpawl_manager::Manager;
use taskpawl_model::recovery::questions_of_policy;
use taskpawl_model::{
    ActorKind, Budget, Command, DecideError, Map, Period, Query, Retry, RunId, RunRecord, RunRules, Selector,
    Task, View, resolve, resolve_among,
};
use taskpawl_tools::{
    Confinement, Enforcement, NoSecrets, Programs, Registry, Sandbox, SandboxMode, SandboxPlaces,
    SandboxSettings, SecretSource, SpawnError, Supervision, ToolFinder, bubblewrap, probe,
};
use tokio::sync::watch;

use crate::approver::Approver;
use crate::dispatcher::Dispatcher;
use crate::error::RunError;
use crate::executor::Held;
use crate::faults::{self, Fault};
use crate::keys::KeySource;
use crate::liveness::LiveRun;
use crate::notify::{Notifier, Place};
use crate::observer::{GuardedObserver, Observer, RunEvent};
use crate::output::Output;
use crate::recovery;
use crate::secrets::Reported;
use crate::summary::RunSummary;
use crate::written::ProjectPaths;

/// Runs plans: what is ready, in parallel, until nothing more can be done.
///
/// Cheap to clone. It installs no signal handler and keeps no global state; several engines work side by side, on one store or
/// on many, on a current-thread runtime too.
#[derive(Debug, Clone)]
pub struct Engine {
    pub(crate) manager: Manager,
    pub(crate) tools: Arc<Registry>,
    pub(crate) project: Project,
    pub(crate) secrets: Arc<dyn SecretSource>,
    pub(crate) finder: Option<Arc<dyn ToolFinder>>,
    supervision: Supervision,
    sandbox: Arc<(SandboxSettings, SandboxPlaces)>,
}

/// Where the calls of an engine run, and where their output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Where the first part of idempotency keys comes from.
    pub keys: KeySource,
    /// The root, beneath which tools work.
    pub root: PathBuf,
    /// The directory for run locks and output files, outside everything that tools may write.
    pub files: PathBuf,
    /// The machine's name, for the record.
    pub host: String,
}

/// How a run goes.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct RunOptions {
    /// What it is restricted to; nothing stands for everything.
    pub only: Vec<Selector>,
    /// How many calls run at once; `None` stands for the number of cores plus two.
    pub jobs: Option<usize>,
    /// Whether it also waits for agents and people.
    pub wait: bool,
    /// Its id, which no other run has or had; without one it gets a new random one.
    pub id: Option<RunId>,
    /// What the host program attaches to the calls. Without it the scope in which the run starts: see
    /// [`in_scope`](taskpawl_tools::in_scope).
    pub scope: Option<String>,
    /// Who is told what happens.
    pub observer: Option<Arc<dyn Observer>>,
    /// Who is asked about tasks that wait for a decision. Without one they wait for somebody who gives `approve` or `reject`.
    pub approver: Option<Arc<dyn Approver>>,
    /// A program with its arguments that is run when tasks wait for a decision, when tasks have failed and when the run is over.
    /// It finds what happened as JSON on its standard input, and the kind of it in `TASKPAWL_EVENT`; it may take 30 seconds, and
    /// what becomes of it does not change what becomes of the run. Plans may name others for their own tasks.
    pub notify: Vec<String>,
    /// Whether that program is held to the sandbox of the calls, because somebody else named it than the user. Those that plans name
    /// always are.
    pub notify_in_sandbox: bool,
    /// How long it may take. Then nothing more starts, and what runs fails with the class `timeout`. Without it plans say so for
    /// their own tasks; likewise the next two.
    pub timeout: Option<Period>,
    /// How many tasks may fail before nothing more starts.
    pub max_failures: Option<u64>,
    /// What it may use up before nothing more starts.
    pub budget: Option<Budget>,
    /// The retries of calls where neither they nor their tasks say anything.
    pub retry: Option<Retry>,
    /// The longest that each attempt of a task may take that says nothing; without it each of its calls may take ten minutes.
    pub task_timeout: Option<Period>,
    /// How much there is of resources; it comes before what plans say.
    pub resources: BTreeMap<String, u32>,
    /// How many calls of a tool run at once.
    pub tool_limits: BTreeMap<String, usize>,
    /// Whether nothing else is done by the thread that drives the run. Then the commit of a single task, beside which nothing happens, is made there,
    /// which is cheaper than to hand it to another thread and wait for it; tasks of other kinds would stand still meanwhile.
    pub owns_thread: bool,
    /// Whether tasks with `cache` run although nothing that they depend on has changed.
    pub no_cache: bool,
    /// How it is asked to stop.
    pub control: RunControl,
    /// The parameters, for the record.
    pub params: Map,
}

/// Asks a run to stop: once to let what runs end, twice to end it.
#[derive(Debug, Clone)]
pub struct RunControl {
    requests: Arc<watch::Sender<u32>>,
    /// The exit code of a run that is stopped.
    exit: Arc<AtomicU8>,
}

impl RunOptions {
    /// Returns what holds for all tasks of the run.
    pub(crate) fn rules(&self) -> RunRules {
        RunRules {
            capacities: self.resources.clone(),
            retry: self.retry.clone(),
            timeout: self.task_timeout,
            no_cache: self.no_cache,
        }
    }

    /// Returns how many calls run at once.
    pub fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.jobs.unwrap_or_else(|| cores() + 2).max(1)
    }
}

/// The exit code of a run that was asked to stop, unless it is said which.
const STOPPED: u8 = 130;

impl Default for RunControl {
    fn default() -> Self {
        let exit = Arc::new(AtomicU8::new(STOPPED));
        Self { requests: Arc::new(watch::Sender::new(0)), exit }
    }
}

impl RunControl {
    /// Asks the run to stop. The first time nothing more starts and what runs may end; the second time what runs is ended.
    pub fn stop(&self) {
        self.requests.send_modify(|count| *count += 1);
    }

    /// Asks the run to stop, as [`stop`](Self::stop) does, for a reason that has an exit code of its own: that of a signal.
    pub fn stop_with(&self, exit: u8) {
        self.exit.store(exit, Ordering::Relaxed);
        self.stop();
    }

    /// Returns the exit code of the run if it was asked to stop.
    pub(crate) fn exit(&self) -> u8 {
        self.exit.load(Ordering::Relaxed)
    }

    /// Returns how often the run was asked to stop.
    pub fn requests(&self) -> u32 {
        *self.requests.borrow()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u32> {
        self.requests.subscribe()
    }
}

impl Engine {
    /// Returns an engine that runs the plan behind `manager` with `tools`. The manager that it offers knows which runs live.
    pub fn new(manager: Manager, tools: Arc<Registry>, project: Project) -> Self {
        let secrets: Arc<dyn SecretSource> = Arc::new(NoSecrets);
        let manager = recovery::watchful(manager, &tools, &project.files, &secrets);
        Self::of_another(manager, tools, project)
    }

    /// Returns an engine for a plan whose runs are somebody else's, out of reach of this process: each counts as alive.
    pub fn of_another(manager: Manager, tools: Arc<Registry>, project: Project) -> Self {
        let secrets: Arc<dyn SecretSource> = Arc::new(NoSecrets);
        let sandbox = Arc::new((SandboxSettings::off(), SandboxPlaces::default()));
        let paths = Arc::new(ProjectPaths::new(&project.root));
        let manager = manager.with_redaction(Reported::by(&secrets)).with_paths(paths);
        Self { manager, tools, project, secrets, finder: None, supervision: Supervision::default(), sandbox }
    }

    /// Sets where the values of secrets come from that arguments name as `${secret:NAME}`. Without it there are none.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Arc<dyn SecretSource>) -> Self {
        let manager = recovery::watchful(self.manager, &self.tools, &self.project.files, &secrets);
        self.manager = manager.with_redaction(Reported::by(&secrets));
        self.secrets = secrets;
        self
    }

    /// Sets who finds tools that a run needs and the registry does not have. Without it they are missing.
    #[must_use]
    pub fn with_finder(mut self, finder: Arc<dyn ToolFinder>) -> Self {
        self.finder = Some(finder);
        self
    }

    /// Returns whether runs find tools that the registry does not have.
    pub fn finds_tools(&self) -> bool {
        self.finder.is_some()
    }

    /// Sets who starts and owns the programs of a run.
    #[must_use]
    pub fn with_supervision(mut self, supervision: Supervision) -> Self {
        self.supervision = supervision;
        self
    }

    /// Sets what the programs of calls may do. Without it they may do whatever the user may. Of `places` the temporary directory is
    /// the engine's business: each run has its own.
    #[must_use]
    pub fn with_sandbox(mut self, settings: SandboxSettings, places: SandboxPlaces) -> Self {
        self.sandbox = Arc::new((settings, places));
        self
    }

    /// Acts in the name of another actor.
    #[must_use]
    pub fn with_actor(mut self, actor: impl Into<String>) -> Self {
        self.manager = self.manager.with_actor(actor);
        self
    }

    /// Acts as an actor of this kind; runs act as runs all the same.
    #[must_use]
    pub fn with_kind(mut self, kind: ActorKind) -> Self {
        self.manager = self.manager.with_kind(kind);
        self
    }

    /// Returns every command on the plan.
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Returns the tools.
    pub fn tools(&self) -> &Arc<Registry> {
        &self.tools
    }

    /// Returns where the calls run.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Returns the output files of calls.
    pub fn output(&self) -> Output {
        Output::new(&self.project.files)
    }

    /// Runs everything that is ready, and what becomes ready by it, until nothing more can be done.
    ///
    /// # Errors
    /// The store failed, or a selector names nothing. Failed tasks are no error: the summary has them.
    ///
    /// # Cancel safety
    /// Dropping the future ends what runs, like a second [`RunControl::stop`], but leaves the record open: the next run
    /// recovers it.
    pub async fn run_all_ready(&self, mut options: RunOptions) -> Result<RunSummary, RunError> {
        let guarded = options.observer.take().map(|observer| Arc::new(GuardedObserver::new(observer)));
        options.observer = guarded.clone().map(|observer| observer as Arc<dyn Observer>);
        let id = options.id.clone().unwrap_or_else(|| RunId::from(self.manager.source().new_id()));
        let manager = self.manager.clone().with_run(id.clone());
        manager.read(|view| refuse_empty(view, &options.only))?;
        let temporary = self.temporary_base();
        let live = LiveRun::start(&self.project.files, &id, self.supervision.clone(), temporary.as_deref())?;
        let confinement = Arc::new(self.confinement(live.temporary()));
        let keys = self.start_run(&manager, self.record(&id, &manager, &options))?;
        if let Some(observer) = &options.observer {
            observer.event(&RunEvent::RunStarted { run: id.clone(), jobs: options.jobs() });
        }
        let programs = live.programs().clone();
        let vault = self.vault();
        if !faults::is_on(Fault::KeepSecrets) {
            programs.filter_output(Arc::new(vault.clone()));
        }
        let notifier = self.notifier(&id, &programs, &confinement, &options);
        let held = Held { programs, confinement, vault, keys };
        // Boxed, so that whoever holds the future of a run does not hold all of this.
        let run =
            Box::pin(Dispatcher::new(self, held, manager.clone(), id.clone(), &options, notifier).run());
        let (mut summary, notifier) = run.await?;
        let warnings = notifier.finish(&summary).await;
        if let Some(observer) = &options.observer {
            for message in warnings {
                observer.event(&RunEvent::Warning { message });
            }
        }
        live.programs().close().await;
        manager.command(Command::FinishRun { id, exit: summary.exit, counts: summary.ended.clone() })?;
        drop(live);
        let observer_error = || guarded.as_ref().and_then(|observer| observer.error());
        summary.observer_error = observer_error();
        if let Some(observer) = &options.observer {
            observer.event(&RunEvent::Summary(Box::new(summary.clone())));
        }
        summary.observer_error = observer_error();
        Ok(summary)
    }

    /// Runs one task with all below it, when its dependencies are finished; else it is blocked with the reason.
    ///
    /// # Errors
    /// As of [`run_all_ready`](Self::run_all_ready), and where the state of the task does not allow it.
    pub async fn execute_task(&self, id: &str, mut options: RunOptions) -> Result<RunSummary, RunError> {
        // A task that a dead run still holds is free again.
        self.recover()?;
        let task = self.manager.get(id)?;
        let missing_tool = self.missing_tool(&task);
        if missing_tool.is_none() {
            let tasks = vec![self.manager.read(|view| resolve(view, task.id.as_str()))?];
            self.manager.command(Command::ToolsKnown { tasks })?;
        }
        self.ask_by_policy()?;
        self.manager.command(Command::RunOne { id: task.id.to_string(), missing_tool })?;
        options.only = vec![Selector::Task(task.id.to_string())];
        self.run_all_ready(options).await
    }

    /// Tries the sandbox of programs for real, and returns what of it can be enforced here; `None` where there is to be none. Blocks
    /// for the time that it takes to start and end a process.
    ///
    /// # Errors
    /// It cannot be enforced, so no program would be started; the error says what is missing and how to go on.
    pub fn probe_sandbox(&self) -> Result<Option<Enforcement>, SpawnError> {
        match self.confinement(None).plain().sandbox {
            Sandbox::On(profile) => probe(&self.supervision, &profile).map(Some),
            Sandbox::Off => Ok(None),
        }
    }

    /// Tries the strict sandbox for real, whether or not programs are to be in it, as [`probe_sandbox`](Self::probe_sandbox) does: returns
    /// what makes it, with its version, and what of it is in force.
    ///
    /// # Errors
    /// It is not possible here; the error says what is missing and how to go on.
    pub fn probe_strict(&self) -> Result<(String, Enforcement), SpawnError> {
        let (settings, places) = &*self.sandbox;
        let settings = SandboxSettings { mode: SandboxMode::Strict, ..settings.clone() };
        let confinement = Confinement::new(settings, places.clone());
        let version = bubblewrap(&confinement.writable())?;
        match confinement.plain().sandbox {
            Sandbox::On(profile) => Ok((version, probe(&self.supervision, &profile)?)),
            Sandbox::Off => Ok((version, Enforcement::default())),
        }
    }

    /// Returns where runs make their directories for temporary files; `None` is nowhere, because programs use those of the user.
    fn temporary_base(&self) -> Option<PathBuf> {
        let (settings, places) = &*self.sandbox;
        let named = places.variables.get(std::ffi::OsStr::new("TMPDIR")).map(PathBuf::from);
        let named = named.filter(|path| path.is_absolute() && path.is_dir());
        (settings.mode != SandboxMode::Off).then(|| named.unwrap_or_else(|| PathBuf::from("/tmp")))
    }

    fn confinement(&self, temporary: Option<&Path>) -> Confinement {
        let (settings, places) = &*self.sandbox;
        let temporary = temporary.map(Path::to_owned);
        Confinement::new(settings.clone(), SandboxPlaces { temporary, ..places.clone() })
    }

    /// Lets the policy of now decide what waits since it was another one.
    pub(crate) fn ask_by_policy(&self) -> Result<(), RunError> {
        let Some(gatekeeper) = self.manager.gatekeeper() else { return Ok(()) };
        let tasks = self.manager.read(|view| Ok(questions_of_policy(view, gatekeeper.version())?))?;
        if !tasks.is_empty() {
            self.manager.command(Command::PolicyKnown { tasks })?;
        }
        Ok(())
    }

    fn notifier(
        &self,
        run: &RunId,
        programs: &Programs,
        confinement: &Arc<Confinement>,
        options: &RunOptions,
    ) -> Notifier {
        let place = Place {
            run: run.clone(),
            manager: self.manager.clone(),
            programs: programs.clone(),
            confinement: Arc::clone(confinement),
            root: self.project.root.clone(),
            files: self.project.files.join("notify"),
        };
        Notifier::new(place, options.notify.clone(), options.notify_in_sandbox)
    }

    /// Returns a tool that a task needs and no run here can have; what may yet be found is looked for by the run.
    fn missing_tool(&self, task: &Task) -> Option<String> {
        let left = task.metadata.tool_calls.iter().filter(|call| !call.status.is_settled());
        let mut names = left.map(|call| call.tool_name.clone());
        let may_be_found = |name: &str| self.finder.as_ref().is_some_and(|finder| finder.may_find(name));
        names.find(|name| self.tools.get(name).is_none() && !may_be_found(name))
    }

    fn record(&self, id: &RunId, manager: &Manager, options: &RunOptions) -> RunRecord {
        RunRecord {
            id: id.clone(),
            scope: options.only.iter().map(ToString::to_string).collect(),
            params: options.params.clone(),
            actor: manager.actor().to_owned(),
            host: self.project.host.clone(),
            started_at: manager.source().now(),
            finished_at: None,
            exit: None,
            recovered_at: None,
            output_pruned_at: None,
            counts: std::collections::BTreeMap::new(),
            ending: std::collections::BTreeMap::new(),
        }
    }
}

/// Refuses selectors that select nothing, before there is a record of the run. The run itself finds what they select.
fn refuse_empty(view: &dyn View, selectors: &[Selector]) -> Result<(), DecideError> {
    selectors.iter().try_for_each(|selector| refuse_one_empty(view, selector, selectors))
}

fn refuse_one_empty(view: &dyn View, selector: &Selector, beside: &[Selector]) -> Result<(), DecideError> {
    let some = match selector {
        Selector::Plan(name) => Query { plan: Some(name.clone()), ..Query::default() },
        Selector::Label(name) => Query { labels: vec![name.clone()], ..Query::default() },
        Selector::Task(id) => return resolve_among(view, beside, id).map(drop),
    };
    let is_empty = view.find(&Query { limit: 1, ..some })?.is_empty();
    if is_empty { selector.keys(view).map(drop) } else { Ok(()) }
}
