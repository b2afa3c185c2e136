//! What tasks need beside a place: resources, files that nobody else writes, and whether their last success may stand for them.

use crate::Key;
use crate::draft::{Decided, Draft};
use crate::record::TaskRecord;

impl Draft<'_> {
    /// Returns whether a task that a run claims has what it needs, with what [`room`](Self::room) grants it. If not, the answer
    /// says what is missing, or the task has ended by a recorded success.
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "nothing is limited yet")]
    pub(crate) fn take_needs(&mut self, _key: Key, _record: &TaskRecord) -> Decided<bool> {
        Ok(true)
    }
}
