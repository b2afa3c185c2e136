//! Commands and reads that block the calling thread.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use taskpawl_engine::Engine;
use taskpawl_manager::{ApplyOptions, Digest, Ending, Error, Manager};
use taskpawl_model::advice::Hint;
use taskpawl_model::command::{ApplyReport, Command, NewTask};
use taskpawl_model::plan::{
    PlanError, PlanErrors, PlanProblem, Position, expand_plan, parse_plan, read_plan, read_plan_file,
};
use taskpawl_model::rules::Means;
use taskpawl_model::task::{Event, Status, Task};
use taskpawl_model::value::{Map, TaskId};
use taskpawl_model::view::{GivenGrants, Query};
use taskpawl_store::{Diagnostic, Location, Severity};

use crate::plan::Plan;
use crate::plan_directory::PlanDirectory;
use crate::temporary_directory::TemporaryDirectory;

/// Lease of a claim made by [`Blocking::update_task_status`], unless its holder renews it.
const LEASE: Duration = Duration::from_secs(30 * 60);

/// The commands of a [`Taskpawl`](crate::Taskpawl) for programs without a runtime: each method blocks its thread until the change is durable.
///
/// Cheap to clone. [`Taskpawl::blocking`](crate::Taskpawl::blocking) returns one.
#[derive(Debug, Clone)]
pub struct Blocking {
    pub(crate) engine: Engine,
    pub(crate) location: Location,
    /// Directory for the output files of a store in memory, deleted with the last handle.
    pub(crate) _temporary: Option<Arc<TemporaryDirectory>>,
}

/// Details of a status change.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatusChange {
    /// The reason, stored as a note or as the reason of a block.
    pub reason: Option<String>,
    /// The result of the task, for `done` and `failed`; ignored for other statuses.
    pub result: Option<Value>,
}

impl Blocking {
    /// Returns the manager, which has all commands and reads.
    pub fn manager(&self) -> &Manager {
        self.engine.manager()
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
    /// ([`Builder::tool_finder`](crate::Builder::tool_finder)) every tool counts as available; use [`Digest::gather`] to pass more exact means.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn digest(&self, most: usize) -> Result<Digest, Error> {
        let tools = self.engine.tools().names().map(str::to_owned).collect();
        let tools = (!self.engine.finds_tools()).then_some(tools);
        let given = Some(Arc::new(self.engine.remembered_grants()) as Arc<dyn GivenGrants>);
        let means = Means { tools, given, ..Means::default() };
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

    /// Applies a plan, see [`Taskpawl::apply`](crate::Taskpawl::apply).
    pub fn apply(&self, plan: impl Into<Plan>) -> Result<ApplyReport, Error> {
        self.apply_with(plan, ApplyOptions::default())
    }

    /// Applies a plan with options, see [`Taskpawl::apply`](crate::Taskpawl::apply).
    pub fn apply_with(&self, plan: impl Into<Plan>, options: ApplyOptions) -> Result<ApplyReport, Error> {
        let plan = plan.into();
        let (text, root) = (plan.to_text()?, &self.engine.project().root);
        let plan = match plan.file() {
            Some(file) => read_plan_file(&text, &PlanDirectory::of_file(root, file))?,
            None => read_plan(&text)?,
        };
        let Some(name) = plan.name.clone() else {
            let problem = PlanProblem::Missing { field: "name", of: "a plan" };
            let hint = Some(Hint::new("`Plan::named` sets it"));
            let error = PlanError { at: Position::default(), path: String::new(), problem, hint };
            return Err(PlanErrors::from(error).into());
        };
        self.manager().apply(plan, &name, options)
    }

    /// Parses a plan in JSON or YAML and applies it under its own name, or under `name` if it has none.
    pub fn apply_text(&self, text: &str, name: &str) -> Result<ApplyReport, Error> {
        let plan = read_plan(text)?;
        let name = plan.name.clone().unwrap_or_else(|| name.to_owned());
        self.manager().apply(plan, &name, ApplyOptions::default())
    }

    /// Parses a plan in JSON or YAML and returns its long form, with every short form expanded.
    pub fn expand_text(text: &str) -> Result<Value, Error> {
        Ok(expand_plan(&parse_plan(text)?))
    }

    /// Waits for a change after `revision`, at most `timeout`, and returns the events since then, in order.
    ///
    /// Returns an empty list after a timeout.
    pub fn wait_events(&self, revision: u64, timeout: Duration) -> Result<Vec<Event>, Error> {
        let store = self.manager().store();
        store.wait_change(revision, timeout)?;
        Ok(store.events_since(revision, 0)?)
    }
}
