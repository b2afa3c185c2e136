//! Reading tasks, their calls and the plans that they belong to.

use super::ViewResult;
use crate::task::record::{CallRecord, PlanRecord, TaskRecord};
use crate::value::{Key, TaskId};

/// The tasks, calls and plans of a snapshot.
pub trait ReadTasks {
    /// Returns the key of the task with exactly this id.
    fn key(&self, id: &str) -> ViewResult<Option<Key>>;

    /// Returns the id of a task.
    fn id(&self, key: Key) -> ViewResult<Option<TaskId>>;

    /// Returns at most `limit` ids that begin with `prefix`, in order.
    fn ids_with_prefix(&self, prefix: &str, limit: usize) -> ViewResult<Vec<TaskId>>;

    /// Returns the plan that a deleted task with this id belonged to (`Some(None)` for none); `None` if the id is free.
    fn deleted_id(&self, id: &str) -> ViewResult<Option<Option<String>>>;

    /// Returns the key that the next new task takes. Keys are not reused.
    fn next_key(&self) -> ViewResult<Key>;

    /// Returns a task.
    fn task(&self, key: Key) -> ViewResult<Option<TaskRecord>>;

    /// Returns the calls of a task, in order.
    fn calls(&self, key: Key) -> ViewResult<Vec<CallRecord>>;

    /// Returns the specification that a plan last applied to the task, as JSON text.
    fn applied(&self, key: Key) -> ViewResult<Option<String>>;

    /// Returns a plan by its name.
    fn plan(&self, name: &str) -> ViewResult<Option<PlanRecord>>;

    /// Returns all plans, by name.
    fn plans(&self) -> ViewResult<Vec<PlanRecord>>;
}
