use std::path::{Path, PathBuf};
use std::sync::Arc;

use taskpawl_engine::{Engine, Project};
use taskpawl_manager::{Manager, Source, SystemSource};
use taskpawl_model::Origin;
use taskpawl_store::{Location, open};
#[cfg(feature = "http")]
use taskpawl_tools::HttpAccess;
use taskpawl_tools::{Registry, Supervision, Tool};

use crate::error::OpenError;
use crate::facade::Taskpawl;

/// Says how a [`Taskpawl`] is opened. Everything but the store has a default.
#[derive(Debug)]
pub struct Builder {
    location: Location,
    root: Option<PathBuf>,
    files: Option<PathBuf>,
    project_id: Option<String>,
    actor: String,
    host: String,
    origin: Origin,
    source: Arc<dyn Source>,
    supervision: Supervision,
    builtin: bool,
    #[cfg(feature = "http")]
    http: HttpAccess,
    tools: Vec<Arc<dyn Tool>>,
}

impl Builder {
    pub(crate) fn new(location: Location) -> Self {
        Self {
            location,
            root: None,
            files: None,
            project_id: None,
            actor: "library".to_owned(),
            host: "localhost".to_owned(),
            origin: Origin::Library,
            source: Arc::new(SystemSource),
            supervision: Supervision::default(),
            builtin: true,
            #[cfg(feature = "http")]
            http: HttpAccess::public(),
            tools: Vec::new(),
        }
    }

    /// Sets the directory beneath which tools work. Default: the current directory.
    #[must_use]
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Sets the directory for run locks and output files; it should lie outside of what tools may write. Every
    /// process that uses the store has to name the same one: its locks tell which runs live. Default: beside the
    /// store, with `.files` behind its name; for a store in memory a temporary directory.
    #[must_use]
    pub fn files(mut self, files: impl Into<PathBuf>) -> Self {
        self.files = Some(files.into());
        self
    }

    /// Sets the first part of every idempotency key. Default: the name of the store.
    #[must_use]
    pub fn project_id(mut self, id: impl Into<String>) -> Self {
        self.project_id = Some(id.into());
        self
    }

    /// Sets in whose name commands are given. Default: `library`.
    #[must_use]
    pub fn actor(mut self, actor: impl Into<String>) -> Self {
        self.actor = actor.into();
        self
    }

    /// Sets the machine's name in the record of runs. Default: `localhost`.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.host = host.into();
        self
    }

    /// Sets what tool calls are marked with that are added through this handle. Default: `library`.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Takes time and ids from `source`. Default: the clock, and random ids.
    #[must_use]
    pub fn source(mut self, source: Arc<dyn Source>) -> Self {
        self.source = source;
        self
    }

    /// Sets who starts and owns the programs of a run. Default: this program, executed a second time, for which `main` has to
    /// begin with [`child_entry`](crate::child_entry).
    #[must_use]
    pub fn supervision(mut self, supervision: Supervision) -> Self {
        self.supervision = supervision;
        self
    }

    /// Leaves the built-in tools out.
    #[must_use]
    pub fn without_builtin_tools(mut self) -> Self {
        self.builtin = false;
        self
    }

    /// Sets what the tool `http_request` may reach. Default: every public host, and nothing on this machine or in private networks.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn http_access(mut self, access: HttpAccess) -> Self {
        self.http = access;
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Opens it. The store itself is touched by the first command.
    ///
    /// # Errors
    /// Two tools have the same name, a schema of a tool is invalid, or a directory cannot be found or made.
    pub fn open(mut self) -> Result<Taskpawl, OpenError> {
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
                let directory =
                    tempfile::Builder::new().prefix("taskpawl-").tempdir().map_err(OpenError::Files)?;
                (directory.path().to_owned(), Some(Arc::new(directory)))
            };
        let project = Project {
            id: self.project_id.unwrap_or(name),
            root: root.map_err(OpenError::Root)?,
            files,
            host: self.host,
        };
        let manager =
            Manager::new(open(&self.location), self.actor).with_source(self.source).with_origin(self.origin);
        let engine = Engine::new(manager, Arc::new(registry), project).with_supervision(self.supervision);
        Ok(Taskpawl::new(engine, self.location, temporary))
    }
}

fn files_beside(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(".files");
    PathBuf::from(path)
}
