//! Decisions that tasks and calls wait for.

use crate::Key;
use crate::draft::{Decided, Draft};

impl Draft<'_> {
    /// Returns whether a task, or the call at a position of it, may start as far as decisions go; else it is blocked now and
    /// waits for one.
    ///
    /// Of a task it is asked when everything else lets it start, before its list is known; of a call when its arguments are
    /// known and none of the calls of its task runs.
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "nothing asks for a decision yet")]
    pub(crate) fn ask_approval(&mut self, _key: Key, _call: Option<usize>) -> Decided<bool> {
        Ok(true)
    }
}
