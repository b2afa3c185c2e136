use std::io;
use std::path::Path;
use std::sync::Arc;

use taskpawl_engine::{Engine, RunError, RunOptions, RunSummary};
use taskpawl_manager::Manager;
use taskpawl_model::task::ActorKind;
use taskpawl_store::{Location, PlanSocket};
use taskpawl_tools::{CallContext, ToolSpec, inherited};

use crate::blocking::Blocking;
use crate::builder::Builder;
use crate::error::OpenError;
use crate::run::RunBuilder;
use crate::temporary_directory::TemporaryDirectory;

/// A plan store with the engine that runs it.
///
/// Cheap to clone. Tasks are named by their id or a unique prefix of it. Every change is durable when its method returns. A
/// change that the rules forbid is refused with a hint. Several processes may use one store at once.
///
/// The async methods run on the blocking threads of tokio, so that they never block the runtime. If their future is dropped, the command
/// may still be carried out. [`blocking`](Self::blocking) has the same commands for programs without a runtime.
#[derive(Debug, Clone)]
pub struct Taskpawl {
    blocking: Blocking,
}

impl Taskpawl {
    pub(crate) fn new(
        engine: Engine,
        location: Location,
        temporary: Option<Arc<TemporaryDirectory>>,
    ) -> Self {
        Self { blocking: Blocking { engine, location, _temporary: temporary } }
    }

    /// Opens a store: the path of a database file, `json:PATH`, or `:memory:`. Tools work inside the current directory.
    ///
    /// # Errors
    /// The current directory cannot be found.
    pub fn open(store: &str) -> Result<Self, OpenError> {
        Self::builder(store).open()
    }

    /// Returns a builder for a store, named as in [`open`](Self::open).
    pub fn builder(store: &str) -> Builder {
        Self::builder_at(Location::parse(store, Path::new("")))
    }

    /// Returns a builder for the store at `location`.
    pub fn builder_at(location: Location) -> Builder {
        Builder::new(location)
    }

    /// Returns a builder for the plan of a call that declares `planAccess`, for a tool within this process; `None` for other calls.
    ///
    /// The handle can read the plan and, with `planAccess: add`, add tasks in the name of the call until the call ends. Everything
    /// else is refused. The run that answers may be on the same thread, so that blocking methods would wait for ever: use the async ones.
    pub fn builder_of(call: &CallContext) -> Option<Builder> {
        let socket = PlanSocket::from(Arc::clone(call.plan.as_ref()?));
        Some(Self::builder_at(Location::Call(socket)))
    }

    /// Returns a builder for the plan of the call that started this program, like [`builder_of`](Self::builder_of). `descriptor` is
    /// the number in the variable `TASKPAWL_FD`.
    ///
    /// # Errors
    /// No descriptor with this number is open: an intermediate program has not passed it on.
    pub fn builder_within(descriptor: i32) -> io::Result<Builder> {
        Ok(Self::builder_at(Location::Call(PlanSocket::from(inherited(descriptor)?))))
    }

    /// Returns the commands and reads that block the calling thread.
    pub fn blocking(&self) -> &Blocking {
        &self.blocking
    }

    /// Returns the manager, which has all commands and reads. Its methods block the thread; [`manage`](Self::manage) does not.
    pub fn manager(&self) -> &Manager {
        self.engine().manager()
    }

    /// Returns a handle on the same store with another actor name.
    #[must_use]
    pub fn acting_as(&self, actor: impl Into<String>) -> Self {
        self.with_engine(self.engine().clone().with_actor(actor))
    }

    /// Returns a handle on the same store with another actor kind.
    #[must_use]
    pub fn acting_as_kind(&self, kind: ActorKind) -> Self {
        self.with_engine(self.engine().clone().with_kind(kind))
    }

    /// Returns the descriptions of the tools, for a model that proposes plans.
    pub fn tool_specs(&self) -> Vec<ToolSpec> {
        let tools = self.engine().tools();
        tools.names().filter_map(|name| Some(tools.get(name)?.spec().clone())).collect()
    }

    /// Returns the engine, which runs the tasks of this store.
    pub fn engine(&self) -> &Engine {
        &self.blocking.engine
    }

    fn with_engine(&self, engine: Engine) -> Self {
        Self { blocking: Blocking { engine, ..self.blocking.clone() } }
    }

    /// Starts to describe a run of everything that is ready. [`RunBuilder::start`] returns its handle; awaiting the builder runs it to
    /// its end.
    pub fn run(&self) -> RunBuilder {
        RunBuilder::new(self.blocking.clone())
    }

    /// Runs one task with its subtasks. If its dependencies are unfinished, the task becomes blocked, and is unblocked when they end.
    pub async fn execute_task(&self, id: &str, options: RunOptions) -> Result<RunSummary, RunError> {
        self.engine().execute_task(id, options).await
    }

    /// Runs all ready tasks, and tasks that become ready, until nothing more can start.
    ///
    /// # Cancel safety
    /// Like [`Engine::run_all_ready`]: dropping the future kills running calls; the next run recovers their tasks.
    pub async fn run_all_ready(&self, options: RunOptions) -> Result<RunSummary, RunError> {
        self.engine().run_all_ready(options).await
    }
}
