//! Reading a store ([`View`]) and writing to it ([`Changes`]), as the rules see it; its events and undo snapshots.

mod changes;
pub(crate) mod durations;
mod find;
mod graph;
mod history;
mod query;
pub(crate) mod read;
mod runs;
mod tasks;
pub(crate) mod undo;

pub use changes::{CallChange, Changes, EdgeChange, NewEvent, TaskChange};
pub use durations::{DurationSource, Durations};
pub use find::FindTasks;
pub use graph::ReadGraph;
pub use history::ReadHistory;
pub use query::{EventQuery, Query, SearchText};
pub use read::{blocked_reason, ending, grants_for, read_task, why_interrupted};
pub use runs::ReadRuns;
pub use tasks::ReadTasks;
pub use undo::{DeletedTask, TaskSnapshot, UndoSnapshot, Undoable};

/// Reading the store failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ViewError(#[from] pub Box<dyn std::error::Error + Send + Sync>);

/// The result of a read.
pub type ViewResult<T> = Result<T, ViewError>;

/// A consistent snapshot of a store. All methods read the same moment.
///
/// Inside a write, it includes earlier writes of the same transaction. A rule asks for the part that it reads; stores
/// implement all parts.
pub trait View: FindTasks + ReadRuns + ReadHistory {}

impl<T: FindTasks + ReadRuns + ReadHistory + ?Sized> View for T {}
