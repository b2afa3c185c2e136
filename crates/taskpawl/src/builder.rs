use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taskpawl_engine::{Engine, KeySource, Project, RunSource};
use taskpawl_manager::{Manager, Source};
use taskpawl_model::task::{ActorKind, Origin};
use taskpawl_store::{Location, open};
#[cfg(feature = "http")]
use taskpawl_tools::HttpAccess;
use taskpawl_tools::{
    CEILING, CallLayer, Data, IntoTool, NoSecrets, Policy, PolicyFiles, Registry, SandboxPlaces,
    SandboxSettings, SecretSource, Supervision, Tool, ToolFinder,
};

use crate::error::OpenError;
use crate::facade::Taskpawl;
use crate::policy_adapter::PolicyAdapter;
use crate::temporary_directory::TemporaryDirectory;

/// Options for opening a [`Taskpawl`]. Every option except the store has a default.
#[derive(Debug)]
pub struct Builder {
    location: Location,
    root: Option<PathBuf>,
    files: Option<PathBuf>,
    project_id: Option<String>,
    actor: String,
    kind: ActorKind,
    host: String,
    origin: Origin,
    source: Arc<dyn Source>,
    supervision: Supervision,
    sandbox: SandboxSettings,
    hidden: Vec<PathBuf>,
    kept: Vec<PathBuf>,
    directories: Vec<PathBuf>,
    granted: Vec<PathBuf>,
    policy: Option<Policy>,
    secrets: Arc<dyn SecretSource>,
    builtin: bool,
    #[cfg(feature = "http")]
    http: HttpAccess,
    tools: Vec<Arc<dyn Tool>>,
    data: Data,
    layers: Vec<Arc<dyn CallLayer>>,
    finder: Option<Arc<dyn ToolFinder>>,
    worktrees: Option<PathBuf>,
    artifacts: Option<PathBuf>,
}

impl Builder {
    pub(crate) fn new(location: Location) -> Self {
        Self {
            location,
            root: None,
            files: None,
            project_id: None,
            actor: "library".to_owned(),
            kind: ActorKind::Program,
            host: "localhost".to_owned(),
            origin: Origin::Library,
            source: Arc::new(RunSource),
            supervision: Supervision::default(),
            sandbox: SandboxSettings::default(),
            hidden: Vec::new(),
            kept: Vec::new(),
            directories: Vec::new(),
            granted: Vec::new(),
            policy: None,
            secrets: Arc::new(NoSecrets),
            builtin: true,
            #[cfg(feature = "http")]
            http: HttpAccess::public(),
            tools: Vec::new(),
            data: Data::default(),
            layers: Vec::new(),
            finder: None,
            worktrees: None,
            artifacts: None,
        }
    }

    /// Sets the project root. Tools work inside it. Default: the current directory.
    #[must_use]
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Sets the directory for run locks and output files. It should be outside of the places that tools may write.
    ///
    /// Every process that uses the store has to name the same directory, because its locks tell live runs from dead ones.
    /// Default: the name of the store with `.files` appended; for a store in memory a temporary directory.
    #[must_use]
    pub fn files(mut self, files: impl Into<PathBuf>) -> Self {
        self.files = Some(files.into());
        self
    }

    /// Sets the first part of every idempotency key. Default: a random id that the store records in
    /// its first run.
    #[must_use]
    pub fn project_id(mut self, id: impl Into<String>) -> Self {
        self.project_id = Some(id.into());
        self
    }

    /// Sets the name of the actor of all commands. Default: `library`.
    #[must_use]
    pub fn actor(mut self, actor: impl Into<String>) -> Self {
        self.actor = actor.into();
        self
    }

    /// Sets the kind of the actor of all commands. Default: `program`.
    ///
    /// A host sets `person` only if a person gives each command: a person may report on and cancel the tasks of any holder.
    #[must_use]
    pub fn actor_kind(mut self, kind: ActorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the machine's name in the record of runs. Default: `localhost`.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.host = host.into();
        self
    }

    /// Sets the origin of tool calls that are added through this handle. Default: `library`.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Sets the source of time and ids. Default: [`RunSource`], the clock and random ids.
    #[must_use]
    pub fn source(mut self, source: Arc<dyn Source>) -> Self {
        self.source = source;
        self
    }

    /// Sets the supervisor, which starts and owns the programs of a run. Default: this program, executed a second time. For
    /// that, `main` has to begin with [`child_entry`](crate::child_entry).
    #[must_use]
    pub fn supervision(mut self, supervision: Supervision) -> Self {
        self.supervision = supervision;
        self
    }

    /// Sets the sandbox of the programs that calls start.
    ///
    /// Default: no network, writing only to [`root`](Self::root) and a temporary directory of the run, no access to the user's
    /// secrets, and only harmless variables of this process. If that cannot be enforced, no program is started.
    /// [`SandboxSettings::off`] gives programs all rights of this process.
    #[must_use]
    pub fn sandbox(mut self, settings: SandboxSettings) -> Self {
        self.sandbox = settings;
        self
    }

    /// Hides a path of the host from programs and file tools, like the store. No sandbox setting makes it readable or writable.
    #[must_use]
    pub fn hidden_place(mut self, path: impl Into<PathBuf>) -> Self {
        self.hidden.push(path.into());
        self
    }

    /// Protects a path of the host from programs and file tools. No sandbox setting makes it writable.
    #[must_use]
    pub fn protected_place(mut self, path: impl Into<PathBuf>) -> Self {
        self.kept.push(path.into());
        self
    }

    /// Names a directory of the host, inside a hidden or protected path. It is created before programs start if one of them could
    /// create it instead.
    #[must_use]
    pub fn own_directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directories.push(path.into());
        self
    }

    /// Sets the directory for the artifacts of runs, which stores share: their programs find their own part of it as
    /// `TASKPAWL_ARTIFACTS`. Without it there is none, and tasks with `artifacts` fail.
    #[must_use]
    pub fn artifacts(mut self, directory: impl Into<PathBuf>) -> Self {
        self.artifacts = Some(directory.into());
        self
    }

    /// Sets the directory for the git worktrees of tasks, which projects share. Without it tasks with `worktree` fail.
    #[must_use]
    pub fn worktrees(mut self, directory: impl Into<PathBuf>) -> Self {
        self.worktrees = Some(directory.into());
        self
    }

    /// Names a path that some calls may write without a question, in addition to the paths that the sandbox opens to all calls.
    ///
    /// Programs that run outside of the sandbox are not looked up there, because a call could have replaced them.
    #[must_use]
    pub fn granted_place(mut self, path: impl Into<PathBuf>) -> Self {
        self.granted.push(path.into());
        self
    }

    /// Sets the policy, which decides whether a call runs, asks first or never runs.
    ///
    /// Default: the ceiling of the machine if there is one, else the rules without any file: calls of this program and its plans
    /// run, calls of agents ask. Every process that writes to the store should have the same policy.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Sets the source of secret values, which arguments name as `${secret:NAME}`. Default: there are no secrets.
    ///
    /// A value is inserted into the arguments of a call when it starts. It is redacted from the store, output files, events and
    /// notices.
    #[must_use]
    pub fn secrets(mut self, secrets: Arc<dyn SecretSource>) -> Self {
        self.secrets = secrets;
        self
    }

    /// Excludes the built-in tools.
    #[must_use]
    pub fn without_builtin_tools(mut self) -> Self {
        self.builtin = false;
        self
    }

    /// Sets the hosts that the tool `http_request` may reach. Default: every public host, nothing on this machine or in private
    /// networks.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn http_access(mut self, access: HttpAccess) -> Self {
        self.http = access;
        self
    }

    /// Adds a tool. Its name must be unique, also among the built-in tools.
    #[must_use]
    pub fn tool(mut self, tool: impl IntoTool) -> Self {
        self.tools.push(tool.into_tool());
        self
    }

    /// Gives a value to the tools, which get it by its type with [`CallContext::get`](crate::tools::CallContext::get): a client, a pool
    /// of connections, settings. A second value of one type replaces the first.
    #[must_use]
    pub fn data<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.data = self.data.with(value);
        self
    }

    /// Adds a layer around every call of this handle's runs, also those of built-in tools. The first one is the outermost.
    #[must_use]
    pub fn layer(mut self, layer: impl CallLayer + 'static) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }

    /// Sets the tool lookup: finds tools during a run that a call names and that were not added here. Default: such tools are
    /// missing.
    #[must_use]
    pub fn tool_finder(mut self, finder: Arc<dyn ToolFinder>) -> Self {
        self.finder = Some(finder);
        self
    }

    /// Opens the store and the engine. The first command, not this function, reads or creates the store file.
    ///
    /// # Errors
    /// Two tools have the same name, a schema of a tool is invalid, the policy of the machine is invalid, or a
    /// directory cannot be found or created.
    pub fn open(mut self) -> Result<Taskpawl, OpenError> {
        // Taken before the path is resolved: keys of stores without a recorded id begin with the name that the caller gave.
        let name = self.location.to_string();
        self.location = self.location.resolved();
        #[cfg(feature = "http")]
        let builtin = || Registry::builtin_reaching(self.http);
        #[cfg(not(feature = "http"))]
        let builtin = Registry::builtin;
        let mut registry = if self.builtin { builtin() } else { Registry::new() };
        for tool in self.tools {
            registry.register(tool)?;
        }
        let root = match self.root {
            Some(root) => std::path::absolute(root),
            None => std::env::current_dir(),
        };
        let (files, temporary) =
            if let Some(files) = self.files.or_else(|| self.location.path().map(files_beside)) {
                (files, None)
            } else {
                let made = TemporaryDirectory::make();
                let directory = made.map_err(OpenError::Files)?;
                (directory.path().to_owned(), Some(Arc::new(directory)))
            };
        let root = root.map_err(OpenError::Root)?;
        let own = SandboxPlaces {
            own: self.hidden,
            kept: self.kept,
            directories: self.directories,
            granted: self.granted,
            ..SandboxPlaces::default()
        };
        let places = places(own, &root, &self.location, &files);
        let keys = KeySource { project: self.project_id, location: self.location.clone(), name };
        let project = Project { keys, root, files, host: self.host };
        let policy = match self.policy {
            Some(policy) => policy,
            None => Policy::load(&PolicyFiles { ceiling: Some(CEILING.into()), ..PolicyFiles::default() })?,
        };
        let policy = policy.or_confined_by(&self.sandbox).in_directory(&project.root);
        let policy = policy.with_tools(registry.clone());
        let manager = Manager::new(open(&self.location), self.actor)
            .with_source(self.source)
            .with_kind(self.kind)
            .with_origin(self.origin)
            .with_policy_hook(Arc::new(PolicyAdapter(policy)));
        let tools = Arc::new(registry);
        let engine = if let Location::Call(_) = &self.location {
            Engine::of_another(manager, tools, project)
        } else {
            Engine::new(manager, tools, project).with_secrets(self.secrets)
        };
        let engine = if let Location::Memory = &self.location {
            engine.with_key_in_memory().map_err(OpenError::Files)?
        } else {
            engine
        };
        let engine = engine.with_supervision(self.supervision).with_sandbox(self.sandbox, places);
        let engine = engine.with_data(self.data.clone()).with_layers(self.layers);
        let engine = match &self.worktrees {
            Some(directory) => engine.with_worktrees(directory),
            None => engine,
        };
        let engine = match &self.artifacts {
            Some(directory) => engine.with_artifacts(directory),
            None => engine,
        };
        let engine = match self.finder {
            Some(finder) => engine.with_finder(finder),
            None => engine,
        };
        // The handle of the tools is not among their own values: a cycle of references would never be freed.
        let of_tools = Taskpawl::new(engine.clone(), self.location.clone(), temporary.clone());
        Ok(Taskpawl::new(engine.with_data(self.data.with(of_tools)), self.location, temporary))
    }
}

/// Adds the project root, the store and the run files to the host's own sandbox paths.
fn places(mut places: SandboxPlaces, root: &Path, store: &Location, files: &Path) -> SandboxPlaces {
    places.own.extend(store.path().into_iter().flat_map(store_files));
    places.own.push(files.to_owned());
    if let Location::Sqlite(path) = store {
        // SQLite rolls back a journal that it finds: a program that creates one could rewrite the store.
        places.files.push(with_ending(path, "-journal"));
    }
    SandboxPlaces { root: root.to_owned(), variables: std::env::vars_os().collect(), ..places }
}

/// Returns the files of a store, including those that SQLite may create later, and its backup copies in the same directory.
fn store_files(store: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        ["", "-wal", "-shm", "-journal", ".lock"].iter().map(|ending| with_ending(store, ending)).collect();
    let beside =
        store.parent().and_then(|parent| std::fs::read_dir(parent).ok()).into_iter().flatten().flatten();
    let name = store.file_name().unwrap_or_default().as_encoded_bytes();
    let is_copy = |path: &PathBuf| {
        let own = path.file_name().unwrap_or_default().as_encoded_bytes();
        own.starts_with(name) && own.ends_with(b".bak")
    };
    files.extend(beside.map(|entry| entry.path()).filter(is_copy));
    files
}

fn files_beside(store: &Path) -> PathBuf {
    with_ending(store, ".files")
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    PathBuf::from(path)
}
