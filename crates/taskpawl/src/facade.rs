use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use taskpawl_engine::{Engine, RunError, RunOptions, RunSummary};
use taskpawl_manager::{ApplyOptions, Digest, Ending, Error, Manager};
use taskpawl_model::command::{ApplyReport, Command, NewTask};
use taskpawl_model::plan::{Plan, expand_plan, parse_plan, read_plan};
use taskpawl_model::rules::Means;
use taskpawl_model::task::Event;
use taskpawl_model::task::{ActorKind, Status, Task};
use taskpawl_model::value::Map;
use taskpawl_model::value::TaskId;
use taskpawl_model::view::Query;
use taskpawl_store::{Diagnostic, Location, PlanSocket, Severity};
use taskpawl_tools::{CallContext, inherited};

use crate::builder::Builder;
use crate::error::OpenError;

/// Lease of a claim made by [`Taskpawl::update_task_status`], unless its holder renews it.
const LEASE: Duration = Duration::from_mins(30);

/// A plan store with the engine that runs it.
///
/// Cheap to clone. Tasks are named by their id or a unique prefix of it. Every change is durable when its method returns. A
/// change that the rules forbid is refused with a hint. Several processes may use one store at once.
#[derive(Debug, Clone)]
pub struct Taskpawl {
    engine: Engine,
    location: Location,
    /// Directory for the output files of a store in memory, deleted with the last handle.
    _temporary: Option<Arc<tempfile::TempDir>>,
}

/// Details of a status change.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatusChange {
    /// The reason, stored as a note or as the reason of a block.
    pub reason: Option<String>,
    /// The result of the task, for `done` and `failed`; ignored for other statuses.
    pub result: Option<Value>,
}

impl Taskpawl {
    pub(crate) fn new(engine: Engine, location: Location, temporary: Option<Arc<tempfile::TempDir>>) -> Self {
        Self { engine, location, _temporary: temporary }
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
    /// else is refused. Its methods block, and the run that answers may be on the same thread: call them in `spawn_blocking`.
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

    /// Returns the manager, which has all commands and reads.
    pub fn manager(&self) -> &Manager {
        self.engine.manager()
    }

    /// Returns a handle on the same store with another actor name.
    #[must_use]
    pub fn acting_as(&self, actor: impl Into<String>) -> Self {
        Self { engine: self.engine.clone().with_actor(actor), ..self.clone() }
    }

    /// Returns a handle on the same store with another actor kind.
    #[must_use]
    pub fn acting_as_kind(&self, kind: ActorKind) -> Self {
        Self { engine: self.engine.clone().with_kind(kind), ..self.clone() }
    }

    /// Returns the engine, which runs the tasks of this store.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Checks the store, and files and locks that runs and calls left behind. With `repair`, repairs everything that can be repaired
    /// without loss.
    ///
    /// # Errors
    /// The store cannot be opened for a reason other than damage, or a repair failed. Damage is a diagnostic, not an error.
    pub fn examine(&self, repair: bool) -> Result<Vec<Diagnostic>, Error> {
        let context = self.manager().request(Command::Settle).context;
        let mut found = taskpawl_store::examine(&self.location, repair.then_some(&context))?;
        // The engine's checks read runs and leases from the store, which a damaged store cannot answer.
        if found.iter().any(|finding| finding.severity == Severity::Damage) {
            let message = "leases, runs and output were not looked at";
            let remedy = "look again when the damage is gone";
            found.push(Diagnostic::new("skipped", Severity::Note, &self.location, message, remedy));
            return Ok(found);
        }
        found.extend(self.engine.examine(repair)?);
        Ok(found)
    }

    /// Returns the status of the plan for the actor of this handle, with at most `most` entries in each list.
    ///
    /// Ready tasks with an unregistered tool are listed apart from the work for runs. With a tool lookup
    /// ([`Builder::tool_finder`]) every tool counts as available; use [`Digest::gather`] to pass more exact means.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn digest(&self, most: usize) -> Result<Digest, Error> {
        let tools = self.engine.tools().names().map(str::to_owned).collect();
        let means = Means { tools: (!self.engine.finds_tools()).then_some(tools), ..Means::default() };
        Digest::gather(self.manager(), most, &means)
    }

    /// Creates a task and returns it. An empty id is made from the name, see [`Manager::create`].
    pub fn create_task(&self, task: NewTask) -> Result<Task, Error> {
        self.manager().change(Command::Create(Box::new(task)))
    }

    /// Returns the task with this id or unique prefix.
    pub fn get_task(&self, id: &str) -> Result<Task, Error> {
        self.manager().get(id)
    }

    /// Returns the matching tasks in the order of the query. An empty query returns all tasks, the oldest first.
    pub fn list_tasks(&self, filter: &Query) -> Result<Vec<Task>, Error> {
        Ok(self.manager().list(filter)?.tasks)
    }

    /// Changes the status of a task by hand, as far as the transition table allows it.
    ///
    /// `done`, `failed`, `skipped`, `cancelled` and `blocked` are set directly. `in_progress` is a claim of 30 minutes. `todo` is a
    /// release, an unblock or a retry, depending on the current status.
    pub fn update_task_status(&self, id: &str, to: Status, change: StatusChange) -> Result<Task, Error> {
        let task = self.get_task(id)?;
        let ids = [task.id.to_string()];
        let StatusChange { reason, result } = change;
        let manager = self.manager();
        match to {
            Status::Todo => self.put_back(&task, &ids)?,
            Status::InProgress => drop(manager.claim(&ids[0], LEASE)?),
            Status::Blocked => {
                let reason = reason.unwrap_or_else(|| "blocked by hand".to_owned());
                drop(manager.block(&ids, reason)?);
            }
            Status::Done => drop(manager.done(&ids, Ending { result, note: reason, attempt: None })?),
            Status::Failed => drop(manager.fail(&ids, Ending { result, note: reason, attempt: None })?),
            Status::Skipped => drop(manager.skip(&ids, reason)?),
            Status::Cancelled => drop(manager.cancel(&ids, reason)?),
        }
        self.get_task(&ids[0])
    }

    fn put_back(&self, task: &Task, ids: &[String]) -> Result<(), Error> {
        let manager = self.manager();
        match task.status {
            Status::Todo => {}
            Status::InProgress => drop(manager.release(ids)?),
            Status::Blocked => drop(manager.unblock(ids)?),
            Status::Done | Status::Failed | Status::Cancelled | Status::Skipped => {
                // Without `cascade`: refused if dependents have run since, because their results would no longer match.
                drop(manager.retry(ids, false)?);
            }
        }
        Ok(())
    }

    /// Changes fields of a task by their JSON names; `null` removes a field.
    pub fn update_task(&self, id: &str, fields: Map) -> Result<Task, Error> {
        self.manager().change(Command::Update { id: id.to_owned(), fields, if_version: None, restart: None })
    }

    /// Merges `metadata` into the metadata of a task; `null` removes a field.
    pub fn update_task_metadata(&self, id: &str, metadata: Map) -> Result<Task, Error> {
        self.update_task(id, Map::from_iter([("metadata".to_owned(), Value::Object(metadata))]))
    }

    /// Adds a dependency: `id` waits for `on`. A cycle is refused.
    pub fn add_dependency(&self, id: &str, on: &str) -> Result<Task, Error> {
        self.manager().change(Command::AddDependency { id: id.to_owned(), on: on.to_owned() })
    }

    /// Removes the dependency of `id` on `on`.
    pub fn remove_dependency(&self, id: &str, on: &str) -> Result<Task, Error> {
        self.manager().change(Command::RemoveDependency { id: id.to_owned(), on: on.to_owned() })
    }

    /// Creates a subtask of `parent`.
    pub fn add_subtask(&self, parent: &str, mut task: NewTask) -> Result<Task, Error> {
        task.parent = Some(parent.to_owned());
        self.create_task(task)
    }

    /// Deletes a task without dependents and returns its id, which is never used again.
    #[expect(clippy::missing_panics_doc, reason = "a bug of ours, never of the caller")]
    pub fn delete_task(&self, id: &str) -> Result<TaskId, Error> {
        let mut deleted = self.manager().delete(&[id.to_owned()])?;
        Ok(deleted.pop().expect("BUG: one task was deleted"))
    }

    /// Applies a plan under `name`, and updates the tasks that differ from the last version with that name.
    pub fn apply(&self, plan: Plan, name: &str, options: ApplyOptions) -> Result<ApplyReport, Error> {
        self.manager().apply(plan, name, options)
    }

    /// Parses a plan in JSON or YAML and applies it under its own name, or under `name` if it has none.
    pub fn apply_text(&self, text: &str, name: &str) -> Result<ApplyReport, Error> {
        let plan = read_plan(text)?;
        let name = plan.name.clone().unwrap_or_else(|| name.to_owned());
        self.apply(plan, &name, ApplyOptions::default())
    }

    /// Parses a plan in JSON or YAML and returns its long form, with every short form expanded.
    pub fn expand_text(text: &str) -> Result<Value, Error> {
        Ok(expand_plan(&parse_plan(text)?))
    }

    /// Runs one task with its subtasks. If its dependencies are unfinished, the task becomes blocked, and is unblocked when they end.
    pub async fn execute_task(&self, id: &str, options: RunOptions) -> Result<RunSummary, RunError> {
        self.engine.execute_task(id, options).await
    }

    /// Runs all ready tasks, and tasks that become ready, until nothing more can start.
    ///
    /// # Cancel safety
    /// Like [`Engine::run_all_ready`]: dropping the future kills running calls; the next run recovers their tasks.
    pub async fn run_all_ready(&self, options: RunOptions) -> Result<RunSummary, RunError> {
        self.engine.run_all_ready(options).await
    }

    /// Waits for a change after `revision`, at most `timeout`, and returns the events since then, in order.
    ///
    /// Blocks the thread: in an async program call it in `spawn_blocking`. Returns an empty list after a timeout.
    pub fn wait_events(&self, revision: u64, timeout: Duration) -> Result<Vec<Event>, Error> {
        let store = self.manager().store();
        store.wait_change(revision, timeout)?;
        Ok(store.events_since(revision, 0)?)
    }
}
