use super::find::FindTasks;
use super::history::ReadHistory;
use super::runs::ReadRuns;

/// A consistent snapshot of a store. All methods read the same moment.
///
/// Inside a write, it includes earlier writes of the same transaction. A rule asks for the part that it reads; stores
/// implement all parts.
pub trait View: FindTasks + ReadRuns + ReadHistory {}

impl<T: FindTasks + ReadRuns + ReadHistory + ?Sized> View for T {}
