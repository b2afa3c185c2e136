use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use taskpawl_manager::Manager;
use taskpawl_model::command::{Command, RunRules};
use taskpawl_model::plan::Budget;
use taskpawl_model::rules::resolve;
use taskpawl_model::rules::{DecideError, resolve_among};
use taskpawl_model::run::recovery::questions_of_policy;
use taskpawl_model::task::{ActorKind, Retry, RunRecord, Task};
use taskpawl_model::value::Map;
use taskpawl_model::value::Selector;
use taskpawl_model::value::{Period, RunId};
use taskpawl_model::view::{Query, View};
use taskpawl_tools::{
    Confinement, Enforcement, NoSecrets, Programs, Registry, Sandbox, SandboxMode, SandboxPlaces,
    SandboxSettings, SecretSource, SpawnError, Supervision, ToolFinder, bubblewrap, probe,
};
use tokio::sync::watch;

use crate::approver::Approver;
use crate::dispatcher::Dispatcher;
use crate::error::RunError;
use crate::executor::RunResources;
use crate::faults::{self, Fault};
use crate::keys::KeySource;
use crate::liveness::LiveRun;
use crate::notify::{Notifier, NotifyContext};
use crate::observer::{GuardedObserver, Observer, RunEvent};
use crate::output::Output;
use crate::recovery;
use crate::secrets::Reported;
use crate::summary::RunSummary;
use crate::written::ProjectPaths;

/// Runs plans: starts everything that is ready, in parallel, until nothing more can be done.
///
/// Cheap to clone. Installs no signal handler and keeps no global state. Several engines work side by side, on one
/// store or on many, and on a current-thread runtime as well.
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

/// Directories and identity of the project that an engine works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Source of the prefix of idempotency keys.
    pub keys: KeySource,
    /// Root directory of the project; tools work below it.
    pub root: PathBuf,
    /// Directory for run locks and output files. Has to be outside of everything that tools may write.
    pub files: PathBuf,
    /// Name of the machine, stored in run records.
    pub host: String,
}

/// Options of a run.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the options are independent switches")]
pub struct RunOptions {
    /// Restricts the run to these tasks; empty means everything.
    pub only: Vec<Selector>,
    /// Number of calls that run at the same time; `None` means the number of cores plus two.
    pub jobs: Option<usize>,
    /// Wait for tasks that agents and people hold, too.
    pub wait: bool,
    /// Id of the run, which must be unique; `None` means a new random id.
    pub id: Option<RunId>,
    /// Value that the host program attaches to the calls. `None` takes it over from the surrounding scope: see
    /// [`in_scope`](taskpawl_tools::in_scope).
    pub scope: Option<String>,
    /// Receives the events of the run.
    pub observer: Option<Arc<dyn Observer>>,
    /// Decides about tasks that wait for an approval. Without one they wait for `approve` or `reject`.
    pub approver: Option<Arc<dyn Approver>>,
    /// Program with arguments that runs when a task waits for an approval, when tasks have failed and when the run is
    /// over.
    ///
    /// It reads the details as JSON from standard input, and the kind of event from `TASKPAWL_EVENT`. It has 30
    /// seconds, and its result does not affect the run. Plans may name further programs for their own tasks.
    pub notify: Vec<String>,
    /// Run `notify` inside the sandbox of the calls, because it was not chosen by the user. Programs that plans name
    /// always run inside.
    pub notify_in_sandbox: bool,
    /// Time limit of the run. Then nothing more starts, and running calls fail with the class `timeout`. `None` leaves
    /// the limit to each plan, for its own tasks. The same holds for `max_failures` and `budget`.
    pub timeout: Option<Period>,
    /// Number of failed tasks after which nothing more starts.
    pub max_failures: Option<u64>,
    /// Consumption after which nothing more starts.
    pub budget: Option<Budget>,
    /// Retries for calls if neither they nor their tasks specify any.
    pub retry: Option<Retry>,
    /// Time limit for each attempt of a task that has none of its own. `None` leaves the default of ten minutes per
    /// call.
    pub task_timeout: Option<Period>,
    /// Capacities of resources. They override those of plans.
    pub resources: BTreeMap<String, u32>,
    /// Number of calls that run at the same time, by tool.
    pub tool_limits: BTreeMap<String, usize>,
    /// The thread that drives the run does nothing else. The commit of a single task is then written on that thread if
    /// nothing else runs, which is cheaper than handing it to another thread. Other futures of the thread are blocked
    /// meanwhile.
    pub owns_thread: bool,
    /// Run tasks with `cache` even if their inputs have not changed.
    pub no_cache: bool,
    /// Stops the run on request.
    pub control: RunControl,
    /// Parameters, stored in the run record.
    pub params: Map,
}

/// Handle that asks a run to stop. One request lets running calls finish; a second one ends them.
#[derive(Debug, Clone)]
pub struct RunControl {
    requests: Arc<watch::Sender<u32>>,
    /// Exit code of a stopped run.
    exit: Arc<AtomicU8>,
}

impl RunOptions {
    /// Returns the rules that apply to all tasks of the run.
    pub(crate) fn rules(&self) -> RunRules {
        RunRules {
            capacities: self.resources.clone(),
            retry: self.retry.clone(),
            timeout: self.task_timeout,
            no_cache: self.no_cache,
        }
    }

    /// Returns the number of calls that run at the same time, at least 1.
    pub fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.jobs.unwrap_or_else(|| cores() + 2).max(1)
    }
}

/// Default exit code of a stopped run: 128 plus the number of SIGINT.
const STOPPED: u8 = 130;

impl Default for RunControl {
    fn default() -> Self {
        let exit = Arc::new(AtomicU8::new(STOPPED));
        Self { requests: Arc::new(watch::Sender::new(0)), exit }
    }
}

impl RunControl {
    /// Asks the run to stop. After the first request nothing more starts and running calls may finish; the second one
    /// ends them.
    pub fn stop(&self) {
        self.requests.send_modify(|count| *count += 1);
    }

    /// Asks the run to stop like [`stop`](Self::stop), with the exit code that belongs to the received signal.
    pub fn stop_with(&self, exit: u8) {
        self.exit.store(exit, Ordering::Relaxed);
        self.stop();
    }

    /// Returns the exit code that the run has if it was asked to stop.
    pub(crate) fn exit(&self) -> u8 {
        self.exit.load(Ordering::Relaxed)
    }

    /// Returns the number of stop requests so far.
    pub fn requests(&self) -> u32 {
        *self.requests.borrow()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u32> {
        self.requests.subscribe()
    }
}

impl Engine {
    /// Returns an engine that runs the plan behind `manager` with `tools`. The manager of the engine can detect dead
    /// runs.
    pub fn new(manager: Manager, tools: Arc<Registry>, project: Project) -> Self {
        let secrets: Arc<dyn SecretSource> = Arc::new(NoSecrets);
        let manager = recovery::watchful(manager, &tools, &project.files, &secrets);
        Self::of_another(manager, tools, project)
    }

    /// Returns an engine for a plan whose runs belong to a process that cannot be inspected from here. All of its runs
    /// count as alive.
    pub fn of_another(manager: Manager, tools: Arc<Registry>, project: Project) -> Self {
        let secrets: Arc<dyn SecretSource> = Arc::new(NoSecrets);
        let sandbox = Arc::new((SandboxSettings::off(), SandboxPlaces::default()));
        let paths = Arc::new(ProjectPaths::new(&project.root));
        let manager = manager.with_redaction(Reported::by(&secrets)).with_paths(paths);
        Self { manager, tools, project, secrets, finder: None, supervision: Supervision::default(), sandbox }
    }

    /// Sets the source of the secrets that arguments name as `${secret:NAME}`. Without it there are none.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Arc<dyn SecretSource>) -> Self {
        let manager = recovery::watchful(self.manager, &self.tools, &self.project.files, &secrets);
        self.manager = manager.with_redaction(Reported::by(&secrets));
        self.secrets = secrets;
        self
    }

    /// Sets the finder of tools that a run needs and the registry does not have. Without it such tools are missing.
    #[must_use]
    pub fn with_finder(mut self, finder: Arc<dyn ToolFinder>) -> Self {
        self.finder = Some(finder);
        self
    }

    /// Returns whether runs search for tools that the registry does not have.
    pub fn finds_tools(&self) -> bool {
        self.finder.is_some()
    }

    /// Sets the way in which the programs of a run are started and owned.
    #[must_use]
    pub fn with_supervision(mut self, supervision: Supervision) -> Self {
        self.supervision = supervision;
        self
    }

    /// Sets the sandbox of the programs of calls. Without it they have all rights of the user. The temporary directory
    /// in `places` is ignored: each run has its own.
    #[must_use]
    pub fn with_sandbox(mut self, settings: SandboxSettings, places: SandboxPlaces) -> Self {
        self.sandbox = Arc::new((settings, places));
        self
    }

    /// Acts as another actor.
    #[must_use]
    pub fn with_actor(mut self, actor: impl Into<String>) -> Self {
        self.manager = self.manager.with_actor(actor);
        self
    }

    /// Acts as an actor of this kind. Runs still act as runs.
    #[must_use]
    pub fn with_kind(mut self, kind: ActorKind) -> Self {
        self.manager = self.manager.with_kind(kind);
        self
    }

    /// Returns the manager, which offers every command on the plan.
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Returns the registered tools.
    pub fn tools(&self) -> &Arc<Registry> {
        &self.tools
    }

    /// Returns the project.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Returns access to the output files of calls.
    pub fn output(&self) -> Output {
        Output::new(&self.project.files)
    }

    /// Runs everything that is ready, and everything that becomes ready by it, until nothing more can be done.
    ///
    /// # Errors
    /// The store failed, or a selector matches nothing. Failed tasks are no error: they are in the summary.
    ///
    /// # Cancel safety
    /// Dropping the future ends running calls, like a second [`RunControl::stop`], but leaves the run record open. The
    /// next run recovers it.
    pub async fn run_all_ready(&self, mut options: RunOptions) -> Result<RunSummary, RunError> {
        let guarded = options.observer.take().map(|observer| Arc::new(GuardedObserver::new(observer)));
        options.observer = guarded.clone().map(|observer| observer as Arc<dyn Observer>);
        let id = options.id.clone().unwrap_or_else(|| RunId::from(self.manager.source().new_id()));
        let manager = self.manager.clone().with_run(id.clone());
        manager.read(|view| refuse_empty(view, &options.only))?;
        let temporary = self.temporary_base();
        // The lock is taken before the record is written. In the other order, another process could see the record
        // without a lock and recover the run as dead.
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
        let held = RunResources { programs, confinement, vault, keys };
        // Boxed to keep the future of `run_all_ready` small for its callers.
        let run =
            Box::pin(Dispatcher::new(self, held, manager.clone(), id.clone(), &options, notifier).run());
        let (mut summary, notifier) = run.await?;
        let warnings = notifier.finish(&summary).await;
        if let Some(observer) = &options.observer {
            for message in warnings {
                observer.event(&RunEvent::Warning { message });
            }
        }
        // All programs have to be gone before the record says that the run is finished, and the lock is released last.
        live.programs().close().await;
        manager.command(Command::FinishRun { id, exit: summary.exit, counts: summary.ended.clone() })?;
        live.end().await;
        let observer_error = || guarded.as_ref().and_then(|observer| observer.error());
        summary.observer_error = observer_error();
        if let Some(observer) = &options.observer {
            observer.event(&RunEvent::Summary(Box::new(summary.clone())));
        }
        // Read again, because the observer may have failed on the summary event itself.
        summary.observer_error = observer_error();
        Ok(summary)
    }

    /// Runs one task with its subtasks if its dependencies are finished; otherwise blocks it with the reason.
    ///
    /// # Errors
    /// Those of [`run_all_ready`](Self::run_all_ready), and a refusal if the status of the task does not allow it.
    pub async fn execute_task(&self, id: &str, mut options: RunOptions) -> Result<RunSummary, RunError> {
        // Releases the task if a dead run still holds it.
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

    /// Starts and ends a process in the sandbox, and returns the parts of it that can be enforced here; `None` if the
    /// sandbox is off. Blocks meanwhile.
    ///
    /// # Errors
    /// The sandbox cannot be enforced, so that no program would be started. The error says which part is missing and
    /// how to proceed.
    pub fn probe_sandbox(&self) -> Result<Option<Enforcement>, SpawnError> {
        match self.confinement(None).plain().sandbox {
            Sandbox::On(profile) => probe(&self.supervision, &profile).map(Some),
            Sandbox::Off => Ok(None),
        }
    }

    /// Tests the strict sandbox, even if it is not configured, in the way of [`probe_sandbox`](Self::probe_sandbox).
    /// Returns the program that implements it, with its version, and the parts that are enforced.
    ///
    /// # Errors
    /// The strict sandbox is not possible here. The error says which part is missing and how to proceed.
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

    /// Returns the directory in which runs create their temporary directories. `None` if the sandbox is off, because
    /// programs then use the temporary directory of the user.
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

    /// Lets the current policy decide again about tasks that wait because of another version of it.
    pub(crate) fn ask_by_policy(&self) -> Result<(), RunError> {
        let Some(policy_hook) = self.manager.policy_hook() else { return Ok(()) };
        let tasks = self.manager.read(|view| Ok(questions_of_policy(view, policy_hook.version())?))?;
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
        let place = NotifyContext {
            run: run.clone(),
            manager: self.manager.clone(),
            programs: programs.clone(),
            confinement: Arc::clone(confinement),
            root: self.project.root.clone(),
            files: self.project.files.join("notify"),
        };
        Notifier::new(place, options.notify.clone(), options.notify_in_sandbox)
    }

    /// Returns a tool that a task needs and that no run of this process can have. Tools that a search may find do not
    /// count: the run searches for them.
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

/// Refuses selectors that match nothing, before the run is recorded. The run itself resolves the selectors again.
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
    // Resolving a selector reads all of its tasks, so it is only done here, to tell a misspelled name from a plan
    // without tasks.
    if is_empty { selector.keys(view).map(drop) } else { Ok(()) }
}
