//! Idempotency keys: what tells a call from every other, however often it starts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{CallId, TaskId};

/// The first part of the idempotency keys of a store.
///
/// Recorded in the store, so that one store has one key for a call however the store is named, and two stores never share one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeySpace {
    /// The id of the project, or a random id of the store.
    pub project: String,
    /// The file of the store when it was last settled: a store that lies elsewhere was moved or copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Calls that had started under another first part and had not ended: by the rest of their key. They keep that key, because
    /// the other side may have seen it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<String, String>,
}

impl KeySpace {
    /// Returns the key of a call: the same for every start until its task is reopened or begins another round.
    pub fn key(&self, call: &CallIdentity<'_>) -> String {
        let rest = call.to_string();
        let project = self.kept.get(&rest).unwrap_or(&self.project);
        format!("{project}/{rest}")
    }
}

/// What stands in a key after its first part: `TASK/CALL/GENERATION`, and `/ROUND` after the first round of a `repeat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallIdentity<'a> {
    /// The task.
    pub task: &'a TaskId,
    /// The call.
    pub call: &'a CallId,
    /// How often the task was reopened.
    pub generation: u32,
    /// How many rounds of `repeat` are over.
    pub round: u32,
}

impl std::fmt::Display for CallIdentity<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { task, call, generation, round } = self;
        write!(f, "{task}/{call}/{generation}")?;
        if *round > 0 { write!(f, "/{round}") } else { Ok(()) }
    }
}

/// Asks for the first part of keys that holds from now on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRequest {
    /// The id of the project, where there is one.
    pub given: Option<String>,
    /// A random id, for a store that has none and for a copy.
    pub fresh: String,
    /// The first part that calls had where the store has recorded none: versions that recorded none took the name of the store.
    pub before: String,
    /// The file of the store; `None` in memory.
    pub path: Option<String>,
    /// The first part that another store has, of which this one is a copy.
    pub copy_of: Option<String>,
}

impl KeyRequest {
    /// Returns the first part that holds from now on in a store that has recorded `known`.
    pub fn project<'r>(&'r self, known: Option<&'r KeySpace>) -> &'r str {
        let known = known.map(|known| known.project.as_str());
        let own = known.filter(|known| self.copy_of.as_deref() != Some(known));
        self.given.as_deref().or(own).unwrap_or(&self.fresh)
    }

    /// Returns whether the store has recorded exactly this already.
    pub fn is_settled(&self, known: Option<&KeySpace>) -> bool {
        known.is_some_and(|space| space.project == self.project(known) && space.path == self.path)
    }
}
