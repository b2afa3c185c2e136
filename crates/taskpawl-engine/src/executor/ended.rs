use std::time::Duration;

use serde_json::Value;
use taskpawl_model::command::CallEnd;
use taskpawl_model::task::Artifact;
use taskpawl_model::value::{CallId, Key, SharedText};

use crate::changes::Changed;
use crate::files_by_git::ReturnedFiles;

/// Result of a call, with everything that the dispatcher needs to report it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) key: Key,
    pub(crate) attempt: u32,
    pub(crate) call: CallId,
    pub(crate) end: CallEnd,
    pub(crate) took: Duration,
    /// Duration by the clock of the records. Tests control that clock; `took` is always real time.
    pub(crate) spent: Duration,
    pub(crate) plan: Option<SharedText>,
    pub(crate) usage: Option<Value>,
    /// Parts of the result that were cut, as JSON Pointers.
    pub(crate) cut: Vec<String>,
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) changed: Changed,
    /// A change with which a failed call would probably succeed.
    pub(crate) hint: Option<String>,
    /// Set if the files that the cache of the task covers have changed since the claim. The success is then not cached.
    pub(crate) inputs_changed: bool,
    /// Files that a call with a work tree of its own changed.
    pub(crate) files: Option<ReturnedFiles>,
    /// The worker that ran the call; `None` for this process.
    pub(crate) worker: Option<String>,
    /// True if the call never left, because the engine was silent.
    pub(crate) is_unsent: bool,
}
