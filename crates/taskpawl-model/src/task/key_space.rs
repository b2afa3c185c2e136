//! Idempotency keys: an id for each call that stays the same over all its starts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::value::{CallId, TaskId};

/// The common first part of the idempotency keys of a store.
///
/// It is stored, so that a call has one key whatever path the store is opened by, and two stores never share a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeySpace {
    /// The id of the project, or a random id for the store.
    pub project: String,
    /// The file of the store when this was last recorded. A different path means that the store was moved or copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The first parts of calls that had started under another one and had not ended, by the rest of their key. They
    /// keep it, because the other side may have seen the key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<String, String>,
    /// The fencing number: 0, or the time of the restore in milliseconds since 1970 for a store that was restored from a backup.
    /// Workers refuse calls with a smaller number than one that they have seen.
    #[serde(skip_serializing_if = "is_zero")]
    pub fence: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde expects")]
fn is_zero(fence: &u64) -> bool {
    *fence == 0
}

impl KeySpace {
    /// Returns the key of a call. It is the same for every start until the task is reopened or begins another round.
    pub fn key(&self, call: &CallIdentity<'_>) -> String {
        let rest = call.to_string();
        let project = self.kept.get(&rest).unwrap_or(&self.project);
        format!("{project}/{rest}")
    }
}

/// The second part of a key: `TASK/CALL/GENERATION`, with `/ROUND` after the first round of a `repeat`, and with
/// `+REWORK` after a round of rework.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallIdentity<'a> {
    /// The task.
    pub task: &'a TaskId,
    /// The call.
    pub call: &'a CallId,
    /// The number of times the task was reopened.
    pub generation: u32,
    /// The number of finished rounds of `repeat`.
    pub round: u32,
    /// The round of rework in which the call began from the beginning.
    pub rework: u32,
}

impl std::fmt::Display for CallIdentity<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { task, call, generation, round, rework } = self;
        write!(f, "{task}/{call}/{generation}")?;
        if *round > 0 {
            write!(f, "/{round}")?;
        }
        if *rework > 0 { write!(f, "+{rework}") } else { Ok(()) }
    }
}

/// A request to record the first part of keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRequest {
    /// The id of the project, if there is one.
    pub given: Option<String>,
    /// A random id, for a store without an id and for a copy.
    pub fresh: String,
    /// The first part that calls had before, if the store has recorded none: older versions used the path of the store.
    pub before: String,
    /// The file of the store; `None` for a store in memory.
    pub path: Option<String>,
    /// The first part of the store of which this one is a copy.
    pub copy_of: Option<String>,
}

impl KeyRequest {
    /// Returns the first part to use from now on in a store that has recorded `known`.
    pub fn project<'r>(&'r self, known: Option<&'r KeySpace>) -> &'r str {
        let known = known.map(|known| known.project.as_str());
        // A copy must not share keys with its original: two different calls would look like one to the other side.
        let own = known.filter(|known| self.copy_of.as_deref() != Some(known));
        self.given.as_deref().or(own).unwrap_or(&self.fresh)
    }

    /// Returns whether the store has recorded exactly this.
    pub fn is_settled(&self, known: Option<&KeySpace>) -> bool {
        known.is_some_and(|space| space.project == self.project(known) && space.path == self.path)
    }
}
