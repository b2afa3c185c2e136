//! Reading a draft.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Decided, Draft};
use crate::command::refusal::Refusal;
use crate::rules::DecideError;
use crate::task::Task;
use crate::task::record::{CallRecord, Node, TaskRecord};
use crate::value::{Key, TaskId};
use crate::view::read::missing;
use crate::view::{ReadGraph, ViewResult};

impl Draft<'_> {
    /// Resolves a reference to a task: an exact id, or the only id with this prefix.
    pub(crate) fn resolve(&self, text: &str) -> Decided<Key> {
        match self.new_tasks.ids.get(text) {
            Some(key) => Ok(*key),
            None => crate::rules::resolve::resolve(self.view, text),
        }
    }

    /// Resolves a reference to a task other than `asker`. A refusal does not suggest `asker` itself.
    pub(crate) fn resolve_beside(&self, asker: Key, text: &str) -> Decided<Key> {
        let asker = self.id(asker)?;
        self.resolve(text).map_err(|error| match error {
            DecideError::Refused(mut refusal) => {
                if let Refusal::UnknownTask { similar, .. } = &mut *refusal {
                    similar.retain(|id| *id != asker);
                }
                DecideError::Refused(refusal)
            }
            other @ DecideError::View(_) => other,
        })
    }

    pub(crate) fn resolve_all(&self, ids: &[String]) -> Decided<Vec<Key>> {
        let (mut keys, mut seen) = (Vec::with_capacity(ids.len()), BTreeSet::new());
        for id in ids {
            let key = self.resolve(id)?;
            if seen.insert(key) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Returns whether the command has created a task with this id.
    pub(crate) fn has_made(&self, id: &TaskId) -> bool {
        self.new_tasks.ids.contains_key(id)
    }

    pub(crate) fn find_id(&self, id: &str) -> Decided<Option<Key>> {
        match self.new_tasks.ids.get(id) {
            Some(key) => Ok(Some(*key)),
            None => Ok(self.view.key(id)?),
        }
    }

    pub(crate) fn id(&self, key: Key) -> Decided<TaskId> {
        match self.changes.tasks.get(&key) {
            Some(change) => Ok(change.record.id.clone()),
            None => Ok(self.view.id(key)?.ok_or_else(|| missing(key))?),
        }
    }

    pub(crate) fn ids_of(&self, keys: &[Key]) -> Decided<Vec<TaskId>> {
        keys.iter().map(|key| self.id(*key)).collect()
    }

    pub(crate) fn node(&self, key: Key) -> Decided<Node> {
        Ok(ReadGraph::node(self, key)?.ok_or_else(|| missing(key))?)
    }

    pub(crate) fn find_node(&self, key: Key) -> ViewResult<Option<Node>> {
        ReadGraph::node(self, key)
    }

    /// Returns a task in flat form.
    pub(crate) fn flat_task(&self, key: Key) -> Decided<Task> {
        Ok(crate::view::read_task(self, key)?.ok_or_else(|| missing(key))?)
    }

    pub(crate) fn task(&self, key: Key) -> Decided<TaskRecord> {
        self.look_at(key).map(Cow::into_owned)
    }

    /// Returns a task for reading. A task that the command changed is borrowed instead of cloned.
    pub(crate) fn look_at(&self, key: Key) -> Decided<Cow<'_, TaskRecord>> {
        match self.changes.tasks.get(&key) {
            Some(change) => Ok(Cow::Borrowed(&change.record)),
            None => Ok(Cow::Owned(self.view.task(key)?.ok_or_else(|| missing(key))?)),
        }
    }

    pub(crate) fn calls(&mut self, key: Key) -> Decided<&mut Vec<CallRecord>> {
        let view = self.view;
        Ok(match self.calls.entry(key) {
            indexmap::map::Entry::Occupied(entry) => entry.into_mut(),
            indexmap::map::Entry::Vacant(entry) => entry.insert(view.calls(key)?),
        })
    }

    /// Returns the calls of a task without caching them in the draft.
    pub(crate) fn known_calls(&self, key: Key) -> Decided<Vec<CallRecord>> {
        self.look_at_calls(key).map(Cow::into_owned)
    }

    /// Returns the calls of a task for reading. Cached calls are borrowed instead of cloned.
    pub(crate) fn look_at_calls(&self, key: Key) -> Decided<Cow<'_, [CallRecord]>> {
        match self.calls.get(&key) {
            Some(calls) => Ok(Cow::Borrowed(calls)),
            None => Ok(Cow::Owned(self.view.calls(key)?)),
        }
    }

    /// Returns whether the task depends directly on another one.
    ///
    /// For a new task this looks up one edge and does not collect its other dependencies.
    pub(crate) fn depends_on(&self, key: Key, on: Key) -> Decided<bool> {
        let is_added = self.edges.dependencies.contains(key, on);
        Ok(is_added || (!self.is_new(key) && self.dependencies(key)?.contains(&on)))
    }

    /// Returns all descendants of a task, each after its parent.
    pub(crate) fn subtree(&self, key: Key) -> Decided<Vec<Key>> {
        let mut below = self.subtasks(key)?;
        let mut next = 0;
        while let Some(key) = below.get(next).copied() {
            below.extend(self.subtasks(key)?);
            next += 1;
        }
        Ok(below)
    }

    pub(crate) fn is_new(&self, key: Key) -> bool {
        self.changes.tasks.get(&key).is_some_and(|change| change.is_new)
    }
}
