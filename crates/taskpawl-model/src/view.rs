//! Reading a store ([`View`]) and writing to it ([`Changes`]), as the rules see it; its events and undo snapshots.

mod changes;
mod duration_source;
pub(crate) mod durations;
mod error;
mod find;
mod grants;
mod graph;
mod history;
mod query;
pub(crate) mod read;
mod runs;
mod tasks;
pub(crate) mod undo;
mod undo_record;
mod whole;

pub use changes::{CallChange, Changes, EdgeChange, NewEvent, SignalChange, TaskChange};
pub use duration_source::DurationSource;
pub use durations::Durations;
pub use error::{ViewError, ViewResult};
pub use find::{FindTasks, Waits};
pub use grants::{GivenGrants, grants_for};
pub use graph::ReadGraph;
pub use history::ReadHistory;
pub use query::{EventQuery, Query, SearchText};
pub use read::{blocked_reason, ending, read_task, why_interrupted};
pub use runs::ReadRuns;
pub use tasks::ReadTasks;
pub use undo::{DeletedTask, TaskSnapshot, UndoSnapshot, Undoable};
pub use whole::View;
