//! Reading runs.

use super::ViewResult;
use crate::task::key_space::KeySpace;
use crate::task::record::RunRecord;
use crate::task::wait::SignalRecord;
use crate::value::RunId;
use crate::value::Timestamp;

/// The runs of a snapshot, and the signals that wait for one.
pub trait ReadRuns {
    /// Returns a run.
    fn run(&self, id: &RunId) -> ViewResult<Option<RunRecord>>;

    /// Returns the runs, the latest first, at most `limit` (0: all).
    fn runs(&self, limit: usize) -> ViewResult<Vec<RunRecord>>;

    /// Returns the runs without a recorded end, the latest first.
    fn open_runs(&self) -> ViewResult<Vec<RunRecord>> {
        let mut runs = self.runs(0)?;
        runs.retain(RunRecord::is_open);
        Ok(runs)
    }

    /// Returns the pruned runs whose ids begin with `prefix`, with the time of pruning.
    fn pruned_runs(&self, prefix: &str) -> ViewResult<Vec<(RunId, Timestamp)>>;

    /// Returns the signals that no task has taken, the oldest first: those with a name, or all.
    fn signals(&self, name: Option<&str>) -> ViewResult<Vec<SignalRecord>>;

    /// Returns the common first part of idempotency keys, if a run has recorded one.
    fn key_space(&self) -> ViewResult<Option<KeySpace>>;
}
