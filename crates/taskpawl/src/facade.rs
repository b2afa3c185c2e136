use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use taskpawl_engine::{Engine, RunError, RunOptions, RunSummary};
use taskpawl_manager::{ApplyOptions, Ending, Error, Manager};
use taskpawl_model::{
    ActorKind, ApplyReport, Command, Event, Map, Means, NewTask, Plan, Query, Status, Task, TaskId,
    expand_plan, parse_plan, read_plan,
};
use taskpawl_store::{Door, Finding, Location, Severity};
use taskpawl_tools::{CallContext, inherited};

use crate::builder::Builder;
use crate::digest::Digest;
use crate::error::OpenError;

/// How long a claim lasts unless its holder renews it.
const LEASE: Duration = Duration::from_mins(30);

/// A plan store with the engine that runs it.
///
/// Cheap to clone. Tasks are named by their id or a unique prefix of it. Every change is durable when its method returns, and
/// is refused with a hint where the rules do not allow it; several processes may use one store at once.
#[derive(Debug, Clone)]
pub struct Taskpawl {
    engine: Engine,
    location: Location,
    /// The output files of a store in memory: gone with the last handle.
    _temporary: Option<Arc<tempfile::TempDir>>,
}

/// What is said with a change of state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatusChange {
    /// Why.
    pub reason: Option<String>,
    /// What came out of the task.
    pub result: Option<Value>,
}

impl Taskpawl {
    pub(crate) fn new(engine: Engine, location: Location, temporary: Option<Arc<tempfile::TempDir>>) -> Self {
        Self { engine, location, _temporary: temporary }
    }

    /// Opens the store that `store` names: the path of a database file, `json:PATH`, or `:memory:`. Tools work beneath the current
    /// directory.
    ///
    /// # Errors
    /// The current directory cannot be found.
    pub fn open(store: &str) -> Result<Self, OpenError> {
        Self::builder(store).open()
    }

    /// Returns a builder for the store that `store` names, as of [`open`](Self::open).
    pub fn builder(store: &str) -> Builder {
        Self::builder_at(Location::parse(store, Path::new("")))
    }

    /// Returns a builder for the store at `location`.
    pub fn builder_at(location: Location) -> Builder {
        Builder::new(location)
    }

    /// Returns a builder for the plan of a call that declares `planAccess`, for a tool within this process; `None` for other calls.
    ///
    /// It shows the plan and, with `planAccess: add`, takes new tasks, in the name of the call and until it ends; everything else is
    /// refused. Its methods block: they belong into `spawn_blocking`, for the run that answers may be on the same thread.
    pub fn builder_of(call: &CallContext) -> Option<Builder> {
        let door = Door::from(Arc::clone(call.plan.as_ref()?));
        Some(Self::builder_at(Location::Call(door)))
    }

    /// Returns a builder for the plan of the call that this program belongs to, as of [`builder_of`](Self::builder_of). `descriptor` is
    /// the number that the variable `TASKPAWL_FD` says.
    ///
    /// # Errors
    /// No descriptor with this number is open: some program in between has not passed it on.
    pub fn builder_within(descriptor: i32) -> io::Result<Builder> {
        Ok(Self::builder_at(Location::Call(Door::from(inherited(descriptor)?))))
    }

    /// Returns every command on the plan, and the reads.
    pub fn manager(&self) -> &Manager {
        self.engine.manager()
    }

    /// Returns a handle on the same store that acts in the name of another actor.
    #[must_use]
    pub fn acting_as(&self, actor: impl Into<String>) -> Self {
        Self { engine: self.engine.clone().with_actor(actor), ..self.clone() }
    }

    /// Returns a handle on the same store that acts as an actor of this kind.
    #[must_use]
    pub fn acting_as_kind(&self, kind: ActorKind) -> Self {
        Self { engine: self.engine.clone().with_kind(kind), ..self.clone() }
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Looks for what is wrong with the store, and for what runs and calls left behind. With `mend`, mends what can be mended
    /// without loss.
    ///
    /// # Errors
    /// The store cannot be opened for another reason than damage, or mending failed. Damage is a finding.
    pub fn examine(&self, mend: bool) -> Result<Vec<Finding>, Error> {
        let context = self.manager().request(Command::Settle).context;
        let mut found = taskpawl_store::examine(&self.location, mend.then_some(&context))?;
        if found.iter().any(|finding| finding.severity == Severity::Damage) {
            let message = "leases, runs and output were not looked at";
            let remedy = "look again when the damage is gone";
            found.push(Finding::new("skipped", Severity::Note, &self.location, message, remedy));
            return Ok(found);
        }
        found.extend(self.engine.examine(mend)?);
        Ok(found)
    }

    /// Returns where the plan stands, as the actor of this handle sees it, with at most `most` of everything. What no run of this
    /// handle can take is no work for runs; where tools are found while a run needs them ([`Builder::tool_finder`]), every tool counts
    /// as known, and [`Digest::gather`] is for those who know better.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn digest(&self, most: usize) -> Result<Digest, Error> {
        let tools = self.engine.tools().names().map(str::to_owned).collect();
        let means = Means { tools: (!self.engine.finds_tools()).then_some(tools), ..Means::default() };
        Digest::gather(self.manager(), most, &means)
    }

    /// Makes a task and returns it. An empty id stands for a new random one.
    pub fn create_task(&self, task: NewTask) -> Result<Task, Error> {
        self.manager().change(self.manager().creation(task))
    }

    /// Returns a task.
    pub fn get_task(&self, id: &str) -> Result<Task, Error> {
        self.manager().get(id)
    }

    /// Returns the tasks that match, in the order of the query; an empty query gives all, by age.
    pub fn list_tasks(&self, filter: &Query) -> Result<Vec<Task>, Error> {
        Ok(self.manager().list(filter)?.tasks)
    }

    /// Changes the state of a task by hand, as far as the table of states allows it: `done`, `failed`, `skipped`, `cancelled`,
    /// `blocked`, `in_progress` (a claim of 30 minutes) and `todo` (release, unblock or retry, by the state that it has).
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
                drop(manager.retry(ids, false)?);
            }
        }
        Ok(())
    }

    /// Changes fields of a task by their names on the outside; `null` takes a field away.
    pub fn update_task(&self, id: &str, fields: Map) -> Result<Task, Error> {
        self.manager().change(Command::Update { id: id.to_owned(), fields, if_version: None })
    }

    /// Merges `metadata` into that of a task; `null` takes a field away.
    pub fn update_task_metadata(&self, id: &str, metadata: Map) -> Result<Task, Error> {
        self.update_task(id, Map::from_iter([("metadata".to_owned(), Value::Object(metadata))]))
    }

    /// Makes a task depend on another.
    pub fn add_dependency(&self, id: &str, on: &str) -> Result<Task, Error> {
        self.manager().change(Command::AddDependency { id: id.to_owned(), on: on.to_owned() })
    }

    /// Makes a task not depend on another any more.
    pub fn remove_dependency(&self, id: &str, on: &str) -> Result<Task, Error> {
        self.manager().change(Command::RemoveDependency { id: id.to_owned(), on: on.to_owned() })
    }

    /// Makes a task below another.
    pub fn add_subtask(&self, parent: &str, mut task: NewTask) -> Result<Task, Error> {
        task.parent = Some(parent.to_owned());
        self.create_task(task)
    }

    /// Deletes a task that nothing else needs and returns its id, which is not used again.
    #[expect(clippy::missing_panics_doc, reason = "a bug of ours, never of the caller")]
    pub fn delete_task(&self, id: &str) -> Result<TaskId, Error> {
        let mut deleted = self.manager().delete(&[id.to_owned()])?;
        Ok(deleted.pop().expect("BUG: one task was deleted"))
    }

    /// Applies a plan under `name`, compared with what was applied under that name last.
    pub fn apply(&self, plan: Plan, name: &str, options: ApplyOptions) -> Result<ApplyReport, Error> {
        self.manager().apply(plan, name, options)
    }

    /// Reads a plan in JSON or YAML and applies it under its own name, or else under `name`.
    pub fn apply_text(&self, text: &str, name: &str) -> Result<ApplyReport, Error> {
        let plan = read_plan(text)?;
        let name = plan.name.clone().unwrap_or_else(|| name.to_owned());
        self.apply(plan, &name, ApplyOptions::default())
    }

    /// Returns a plan in JSON or YAML in the long form, with every short form written out.
    pub fn expand_text(text: &str) -> Result<Value, Error> {
        Ok(expand_plan(&parse_plan(text)?))
    }

    /// Runs one task with all below it, when its dependencies are finished; else it is blocked, and opens by itself later.
    pub async fn execute_task(&self, id: &str, options: RunOptions) -> Result<RunSummary, RunError> {
        self.engine.execute_task(id, options).await
    }

    /// Runs everything that is ready, and what becomes ready by it, until nothing more can be done.
    ///
    /// # Cancel safety
    /// As of [`Engine::run_all_ready`]: dropping the future ends what runs; the next run recovers the record.
    pub async fn run_all_ready(&self, options: RunOptions) -> Result<RunSummary, RunError> {
        self.engine.run_all_ready(options).await
    }

    /// Waits until the store has changed after `revision`, at most `timeout`, and returns the events since, in order.
    ///
    /// Blocks the thread; in an async program call it from `spawn_blocking`.
    pub fn wait_events(&self, revision: u64, timeout: Duration) -> Result<Vec<Event>, Error> {
        let store = self.manager().store();
        store.wait_change(revision, timeout)?;
        Ok(store.events_since(revision, 0)?)
    }
}
