//! The engine: the manager, the tools, the project and the sandbox of runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use taskpawl_manager::{Error, Manager};
use taskpawl_model::task::{ActorKind, SandboxRequest};
use taskpawl_tools::{
    ArtifactDirs, CallLayer, Confinement, Data, Enforcement, NoSecrets, Registry, Sandbox, SandboxError,
    SandboxMode, SandboxPlaces, SandboxSettings, SecretSource, SpawnError, Supervision, ToolFinder, Vault,
    bubblewrap, probe,
};

use crate::artifacts::ArtifactStore;
use crate::call_places::CallPlaces;
use crate::error::RunError;

use crate::keys::KeySource;
use crate::observer::{Observer, RunEvent};
use crate::output::Output;
use crate::placements;
use crate::private_tmp::{self, PrivateTmp};
use crate::recovery;
use crate::remembered::{RememberedGrants, widening};
use crate::secrets::Reported;
use crate::variable_key::VariableKey;
use crate::worktrees::{KeptWorktree, WorktreeDiff, Worktrees};
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
    pub(crate) supervision: Supervision,
    pub(crate) sandbox: Arc<(SandboxSettings, SandboxPlaces)>,
    pub(crate) data: Data,
    pub(crate) layers: Arc<[Arc<dyn CallLayer>]>,
    pub(crate) worktrees: Worktrees,
    /// The directories of runs for artifacts; `None` if the host keeps none.
    pub(crate) artifacts: Option<ArtifactStore>,
    /// The key for digests of variables; `None` if it is in a file, for all processes that use the store.
    pub(crate) variable_key: Option<VariableKey>,
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
        let worktrees = Worktrees::new(&project.root, None);
        let paths = Arc::new(ProjectPaths::new(&project.root));
        let manager = manager.with_redaction(Reported::by(&secrets)).with_paths(paths);
        Self {
            manager,
            tools,
            project,
            secrets,
            finder: None,
            supervision: Supervision::default(),
            sandbox,
            data: Data::default(),
            layers: Arc::default(),
            worktrees,
            artifacts: None,
            variable_key: None,
        }
    }

    /// Keeps the key for digests of variables in memory, like a store that no other process reads.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn with_key_in_memory(mut self) -> io::Result<Self> {
        self.variable_key = Some(VariableKey::random()?);
        Ok(self)
    }

    /// Sets the source of the secrets that arguments name as `${secret:NAME}`. Without it there are none.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Arc<dyn SecretSource>) -> Self {
        let manager = recovery::watchful(self.manager, &self.tools, &self.project.files, &secrets);
        self.manager = manager.with_redaction(Reported::by(&secrets));
        self.secrets = secrets;
        self
    }

    /// Returns the source of the secrets.
    pub fn secrets(&self) -> &Arc<dyn SecretSource> {
        &self.secrets
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

    /// Returns whether a run may find a tool that the registry does not have.
    pub fn may_find(&self, tool: &str) -> bool {
        self.finder.as_ref().is_some_and(|finder| finder.may_find(tool))
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

    /// Sets the directory for the worktrees of tasks, which projects share. Without it tasks with `worktree` fail. It must not be hidden
    /// from programs.
    #[must_use]
    pub fn with_worktrees(mut self, directory: &Path) -> Self {
        self.worktrees = Worktrees::new(&self.project.root, Some(directory));
        self
    }

    /// Sets the directory for the artifacts of runs, which stores share. Without it programs have no `TASKPAWL_ARTIFACTS`, and tasks with
    /// `artifacts` fail. It must not be hidden from programs.
    #[must_use]
    pub fn with_artifacts(mut self, directory: &Path) -> Self {
        self.artifacts = ArtifactStore::new(directory, &self.project);
        self
    }

    /// Refuses tasks with `worktree` if the project cannot have worktrees. Blocks.
    ///
    /// # Errors
    /// The reason, as a lower-case fragment.
    pub fn check_worktrees(&self) -> Result<(), String> {
        self.worktrees.check()
    }

    /// Returns what a task has changed in its worktree. Blocks.
    ///
    /// # Errors
    /// The task is unknown or has no worktree, or git refuses, as a lower-case fragment.
    pub fn worktree_diff(&self, task: &str) -> Result<WorktreeDiff, String> {
        self.worktrees.diff(&self.manager, task)
    }

    /// Returns the worktrees of the project that are there. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn kept_worktrees(&self) -> Result<Vec<KeptWorktree>, Error> {
        self.worktrees.kept(&self.manager)
    }

    /// Removes a worktree. Its branch stays. Blocks.
    ///
    /// # Errors
    /// Git refuses, as a lower-case fragment.
    pub fn remove_worktree(&self, worktree: &KeptWorktree) -> Result<(), String> {
        self.worktrees.remove(worktree)
    }

    /// Sets the values that calls give to the tools of the host.
    #[must_use]
    pub fn with_data(mut self, data: Data) -> Self {
        self.data = data;
        self
    }

    /// Returns the values that calls give to the tools of the host.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Sets the layers around the calls of runs, the outermost first.
    #[must_use]
    pub fn with_layers(mut self, layers: Vec<Arc<dyn CallLayer>>) -> Self {
        self.layers = layers.into();
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

    /// Returns the places of the calls that are with workers, for a backup of the store.
    pub fn exported_places(&self) -> Map<String, Value> {
        placements::export(&self.project.files)
    }

    /// Writes the places of a backup that is restored, so that the next run joins those calls.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn import_places(&self, places: &Map<String, Value>) -> io::Result<()> {
        placements::import(&self.project.files, places)
    }

    /// Returns the workers of the calls that run now.
    pub fn call_places(&self) -> CallPlaces {
        CallPlaces::of(self.project.files.clone())
    }

    /// Returns why calls with a request would be refused if they started now, even after an approval.
    pub fn refusals(&self, request: &SandboxRequest) -> Vec<SandboxError> {
        self.confinement(None, None, None, None).refusals(&widening(Some(request.clone())))
    }

    /// Returns the grants that runs have without a flag.
    pub fn remembered_grants(&self) -> RememberedGrants {
        RememberedGrants::new(self.sandbox.0.remembered.clone())
    }

    /// Starts and ends a process in the sandbox, and returns the parts of it that can be enforced here; `None` if the
    /// sandbox is off. Blocks meanwhile.
    ///
    /// # Errors
    /// The sandbox cannot be enforced, so that no program would be started. The error says which part is missing and
    /// how to proceed.
    pub fn probe_sandbox(&self) -> Result<Option<Enforcement>, SpawnError> {
        match self.confinement(None, None, None, None).plain().sandbox {
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

    /// Returns whether programs of runs are in a sandbox. A build without programs needs none.
    fn has_sandbox(&self) -> bool {
        cfg!(feature = "programs") && self.sandbox.0.mode != SandboxMode::Off
    }

    /// Returns the directory in which runs create their temporary directories. `None` without a sandbox, because
    /// programs then use the temporary directory of the user.
    pub(crate) fn temporary_base(&self) -> Option<PathBuf> {
        let places = &self.sandbox.1;
        let named = places.variables.get(std::ffi::OsStr::new("TMPDIR")).map(PathBuf::from);
        let named = named.filter(|path| path.is_absolute() && path.is_dir());
        self.has_sandbox().then(|| named.unwrap_or_else(|| PathBuf::from("/tmp")))
    }

    /// Returns the sandbox of a run with a directory for temporary files and a record of the files that other programs obey.
    pub(crate) fn confinement(
        &self,
        temporary: Option<&Path>,
        private: Option<&Path>,
        baseline: Option<PathBuf>,
        artifacts: Option<&ArtifactDirs>,
    ) -> Confinement {
        let (settings, places) = &*self.sandbox;
        let [temporary, private] = [temporary, private].map(|path| path.map(Path::to_owned));
        let (of_run, all) = artifacts.map(|dirs| (dirs.of_run.clone(), dirs.all.clone())).unzip();
        let places = SandboxPlaces {
            temporary,
            private,
            baseline,
            artifacts: all,
            artifacts_of_run: of_run,
            ..places.clone()
        };
        Confinement::new(settings.clone(), places)
    }

    /// Returns the `/tmp` of the programs of a run. `None` without a sandbox.
    pub(crate) async fn private_tmp(
        &self,
        observer: Option<&Arc<dyn Observer>>,
    ) -> Result<Option<PrivateTmp>, RunError> {
        if !self.has_sandbox() {
            return Ok(None);
        }
        let (files, now) = (self.project.files.clone(), self.manager.source().now());
        let path = files.join(private_tmp::DIRECTORY);
        let failed = |source| RunError::Files { action: "create", path, source };
        // Programs may have left millions of files to count or to remove.
        let opened = tokio::task::spawn_blocking(move || PrivateTmp::open(&files, now)).await;
        let (private, emptied) = opened.map_err(io::Error::other).flatten().map_err(failed)?;
        let large = [
            (
                emptied.temporary,
                "the programs of earlier runs left more than 2 GiB in their /tmp, which was emptied",
            ),
            (emptied.caches, "the changes of programs to caches took more than 8 GiB, and were removed"),
        ];
        for (_, message) in large.into_iter().filter(|(is_emptied, _)| *is_emptied) {
            if let Some(observer) = observer {
                observer.event(&RunEvent::Warning { message: message.to_owned() });
            }
        }
        Ok(Some(private))
    }

    /// Returns a vault of the available secrets, preloaded with those that need no command.
    pub fn vault(&self) -> Vault {
        Vault::open(Arc::clone(&self.secrets))
    }
}
