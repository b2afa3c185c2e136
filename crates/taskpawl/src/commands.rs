//! The commands and reads that do not block the runtime.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;
use taskpawl_manager::{ApplyOptions, Approving, Digest, Error, HistoryEntry, HistoryFilter, Manager, Page};
use taskpawl_model::command::{ApplyReport, NewTask};
use taskpawl_model::task::{Status, Task};
use taskpawl_model::value::{Map, TaskId};
use taskpawl_model::view::Query;

use crate::blocking::{Blocking, StatusChange};
use crate::facade::Taskpawl;
use crate::plan::Plan;

/// The failure of [`Taskpawl::result`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// The task has no result yet, or has failed.
    #[error("task `{id}` is {status}{}", .error.as_ref().map(|error| format!(": {error}")).unwrap_or_default())]
    NotDone {
        /// Id of the task.
        id: TaskId,
        /// Its status.
        status: Status,
        /// Reason of a failure.
        error: Option<String>,
    },
    /// The result has another type.
    #[error("the result of task `{id}` does not fit")]
    Type {
        /// Id of the task.
        id: TaskId,
        /// The difference.
        source: serde_json::Error,
    },
    /// The task is unknown, or the store failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Taskpawl {
    /// Carries out any command of the [`Manager`] on a blocking thread of tokio.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let plans = taskpawl::Taskpawl::open(":memory:")?;
    /// plans.apply_text("tasks: [{id: look}]", "example").await?;
    /// plans.manage(|manager| manager.note("look", "nothing to see")).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// A command that has started is carried out, even if the future is dropped.
    ///
    /// # Panics
    /// If `command` panics, or outside of a tokio runtime.
    pub async fn manage<T, F>(&self, command: F) -> Result<T, Error>
    where
        F: FnOnce(&Manager) -> Result<T, Error> + Send + 'static,
        T: Send + 'static,
    {
        self.offload(|plans| command(plans.manager())).await
    }

    /// Runs `work` on a blocking thread of tokio.
    pub(crate) async fn offload<T, F>(&self, work: F) -> T
    where
        F: FnOnce(&Blocking) -> T + Send + 'static,
        T: Send + 'static,
    {
        let plans = self.blocking().clone();
        match tokio::task::spawn_blocking(move || work(&plans)).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down and will not poll this future again.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Creates a task and returns it. An empty id is made from the name, see [`Manager::create`].
    pub async fn create_task(&self, task: NewTask) -> Result<Task, Error> {
        self.offload(|plans| plans.create_task(task)).await
    }

    /// Returns the task with this id or unique prefix.
    pub async fn get_task(&self, id: &str) -> Result<Task, Error> {
        let id = id.to_owned();
        self.offload(move |plans| plans.get_task(&id)).await
    }

    /// Returns the matching tasks in the order of the query. An empty query returns all tasks, the oldest first.
    pub async fn list_tasks(&self, filter: &Query) -> Result<Vec<Task>, Error> {
        let filter = filter.clone();
        self.offload(move |plans| plans.list_tasks(&filter)).await
    }

    /// Returns the tasks with these ids or unique prefixes, in this order, from one state of the store.
    pub async fn get_tasks(&self, ids: &[&str]) -> Result<Vec<Task>, Error> {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.manage(move |manager| manager.get_all(&ids)).await
    }

    /// Returns the result of a task as a type.
    ///
    /// # Errors
    /// The task is not done, or its result does not fit the type.
    pub async fn result<T: DeserializeOwned>(&self, id: &str) -> Result<T, ResultError> {
        let task = self.get_task(id).await?;
        if task.status != Status::Done {
            return Err(ResultError::NotDone { id: task.id, status: task.status, error: task.error });
        }
        task.result_as().map_err(|source| ResultError::Type { id: task.id, source })
    }

    /// Returns a page of the matching tasks, with the number of all matching tasks.
    pub async fn page(&self, filter: &Query) -> Result<Page, Error> {
        let filter = filter.clone();
        self.manage(move |manager| manager.list_counted(&filter)).await
    }

    /// Returns the number of tasks by status.
    pub async fn counts(&self) -> Result<BTreeMap<Status, u64>, Error> {
        self.manage(Manager::counts).await
    }

    /// Changes the status of a task by hand, like [`Blocking::update_task_status`].
    pub async fn update_task_status(
        &self,
        id: &str,
        to: Status,
        change: StatusChange,
    ) -> Result<Task, Error> {
        let id = id.to_owned();
        self.offload(move |plans| plans.update_task_status(&id, to, change)).await
    }

    /// Changes fields of a task by their JSON names; `null` removes a field.
    pub async fn update_task(&self, id: &str, fields: Map) -> Result<Task, Error> {
        let id = id.to_owned();
        self.offload(move |plans| plans.update_task(&id, fields)).await
    }

    /// Merges `metadata` into the metadata of a task; `null` removes a field.
    pub async fn update_task_metadata(&self, id: &str, metadata: Map) -> Result<Task, Error> {
        let id = id.to_owned();
        self.offload(move |plans| plans.update_task_metadata(&id, metadata)).await
    }

    /// Adds a dependency: `id` waits for `on`. A cycle is refused.
    pub async fn add_dependency(&self, id: &str, on: &str) -> Result<Task, Error> {
        let (id, on) = (id.to_owned(), on.to_owned());
        self.offload(move |plans| plans.add_dependency(&id, &on)).await
    }

    /// Removes the dependency of `id` on `on`.
    pub async fn remove_dependency(&self, id: &str, on: &str) -> Result<Task, Error> {
        let (id, on) = (id.to_owned(), on.to_owned());
        self.offload(move |plans| plans.remove_dependency(&id, &on)).await
    }

    /// Creates a subtask of `parent`.
    pub async fn add_subtask(&self, parent: &str, task: NewTask) -> Result<Task, Error> {
        let parent = parent.to_owned();
        self.offload(move |plans| plans.add_subtask(&parent, task)).await
    }

    /// Deletes a task without dependents and returns its id, which is never used again.
    pub async fn delete_task(&self, id: &str) -> Result<TaskId, Error> {
        let id = id.to_owned();
        self.offload(move |plans| plans.delete_task(&id)).await
    }

    /// Applies a plan under its name in one commit: creates its tasks, and updates those that differ from the last version with that
    /// name. It is a text, JSON or built; all of it is applied, or nothing.
    ///
    /// # Errors
    /// The plan has errors or no name, or changes tasks that have ended: [`apply_with`](Self::apply_with) decides about those.
    pub async fn apply(&self, plan: impl Into<Plan>) -> Result<ApplyReport, Error> {
        self.apply_with(plan, ApplyOptions::default()).await
    }

    /// Applies a plan like [`apply`](Self::apply), with options.
    pub async fn apply_with(
        &self,
        plan: impl Into<Plan>,
        options: ApplyOptions,
    ) -> Result<ApplyReport, Error> {
        let plan = plan.into();
        self.offload(move |plans| plans.apply_with(plan, options)).await
    }

    /// Parses a plan in JSON or YAML and applies it under its own name, or under `name` if it has none.
    pub async fn apply_text(&self, text: &str, name: &str) -> Result<ApplyReport, Error> {
        let (text, name) = (text.to_owned(), name.to_owned());
        self.offload(move |plans| plans.apply_text(&text, &name)).await
    }

    /// Approves a task that waits for a person, or one of its calls. `answer` is the chosen one if the request has options.
    pub async fn approve(&self, id: &str, answer: Option<Value>) -> Result<Task, Error> {
        self.one(id, move |manager, ids| manager.approve(ids, Approving { answer, ..Approving::default() }))
            .await
    }

    /// Rejects the request of a task, which cancels it. A task that asks about its result fails.
    pub async fn reject(&self, id: &str, reason: &str) -> Result<Task, Error> {
        let reason = Some(reason.to_owned());
        self.one(id, move |manager, ids| manager.reject(ids, reason)).await
    }

    /// Sends the result of a task back to its agent with a text, see [`Manager::send_back`].
    pub async fn send_back(&self, id: &str, text: &str) -> Result<Task, Error> {
        let text = text.to_owned();
        self.one(id, move |manager, ids| manager.send_back(ids, text)).await
    }

    /// Sends a signal to a task that waits for it, see [`Manager::signal`]. Returns its id, and the task that took it.
    ///
    /// # Durability
    /// Once this returns, the signal survives crashes, and exactly one task takes it.
    pub async fn signal(
        &self,
        name: &str,
        data: serde_json::Value,
        to: Option<&str>,
    ) -> Result<(String, Option<TaskId>), Error> {
        let (name, to) = (name.to_owned(), to.map(str::to_owned));
        self.manage(move |manager| manager.signal(&name, data, to.as_deref())).await
    }

    /// Adds a note to a task.
    pub async fn note(&self, id: &str, text: &str) -> Result<Task, Error> {
        let text = text.to_owned();
        self.one(id, move |manager, ids| manager.note(&ids[0], text)).await
    }

    /// Runs a finished task again, from its first call without success.
    ///
    /// # Errors
    /// Dependents have run since, so that their results would no longer match: use [`Manager::retry`] with `cascade`.
    pub async fn retry(&self, id: &str) -> Result<Task, Error> {
        self.one(id, |manager, ids| manager.retry(ids, false)).await
    }

    /// Returns the matching part of the history, in order.
    pub async fn history(&self, filter: HistoryFilter) -> Result<Vec<HistoryEntry>, Error> {
        self.manage(move |manager| manager.find_history(&filter)).await
    }

    /// Returns the status of the plan, like [`Blocking::digest`].
    pub async fn digest(&self, most: usize) -> Result<Digest, Error> {
        self.offload(move |plans| plans.digest(most)).await
    }

    /// Returns the current revision of the store, from which [`changes`](Self::changes) reports what comes next.
    pub async fn revision(&self) -> Result<u64, Error> {
        self.manage(|manager| Ok(manager.revision()?)).await
    }

    /// Carries out a command on one task and returns the task.
    async fn one<T>(
        &self,
        id: &str,
        command: impl FnOnce(&Manager, &[String]) -> Result<T, Error> + Send + 'static,
    ) -> Result<Task, Error> {
        let ids = [id.to_owned()];
        self.manage(move |manager| {
            command(manager, &ids)?;
            manager.get(&ids[0])
        })
        .await
    }
}
