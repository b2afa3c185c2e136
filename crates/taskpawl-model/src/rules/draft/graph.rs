//! Writing nodes and edges.

use super::{Decided, Draft};
use crate::rules::settle;
use crate::task::record::{Node, StatusKind};
use crate::task::status::Status;
use crate::value::Key;
use crate::view::EdgeChange;
use crate::view::read::missing;

impl Draft<'_> {
    pub(crate) fn update_node(&mut self, key: Key, change: impl FnOnce(&mut Node)) -> Decided<Node> {
        let node = match self.changes.nodes.entry(key) {
            indexmap::map::Entry::Occupied(entry) => entry.into_mut(),
            indexmap::map::Entry::Vacant(entry) => {
                let node = self.view.node(key)?.ok_or_else(|| missing(key))?;
                self.was_ready.insert(key, node.is_ready().then_some(node.work));
                entry.insert(node)
            }
        };
        change(node);
        Ok(*node)
    }

    /// Derives the node again from the specification, the calls and the subtasks.
    pub(crate) fn refresh_node(&mut self, key: Key) -> Decided<()> {
        let record = self.task(key)?;
        let calls = self.calls(key)?.clone();
        self.update_node(key, |node| {
            let has_subtasks = node.gate.subtasks.total() > 0;
            node.describe(&record.spec, &record.body.progress, &calls, has_subtasks);
        })?;
        self.queue(key);
        Ok(())
    }

    /// Adds an edge that the store does not have. Adding one that the draft already added does nothing.
    pub(crate) fn add_edge(&mut self, task: Key, on: Key) -> Decided<()> {
        let outcome = self.node(on)?.status_kind.outcome();
        // An edge that this command removed earlier is still in the view. Dropping the removal restores it.
        if !self.edges.removed.remove(task, on) {
            if !self.edges.dependencies.insert(task, on) {
                return Ok(());
            }
            self.edges.dependents.insert(on, task);
        }
        self.changes.edges.push(EdgeChange { task, on, add: true });
        self.update_node(task, |node| *node.gate.dependencies.of(outcome) += 1)?;
        self.queue(task);
        Ok(())
    }

    pub(crate) fn remove_edge(&mut self, task: Key, on: Key) -> Decided<()> {
        let outcome = self.node(on)?.status_kind.outcome();
        if self.edges.dependencies.remove(task, on) {
            self.edges.dependents.remove(on, task);
        } else {
            self.edges.removed.insert(task, on);
        }
        self.changes.edges.push(EdgeChange { task, on, add: false });
        self.update_node(task, |node| *node.gate.dependencies.of(outcome) -= 1)?;
        self.queue(task);
        Ok(())
    }

    /// Moves a task under a parent, or to the top level, and updates the counts of both parents.
    pub(crate) fn set_parent(&mut self, key: Key, parent: Option<Key>) -> Decided<()> {
        let node = self.node(key)?;
        if node.parent == parent {
            return Ok(());
        }
        if let Some(old) = node.parent {
            if !self.edges.subtasks.remove(old, key) {
                self.edges.moved_away.insert(old, key);
            }
            settle::count_subtask(self, old, node.status_kind, -1)?;
            self.refresh_node(old)?;
        }
        let mut entry = crate::task::Entry::Open;
        if let Some(new) = parent {
            if !self.edges.moved_away.remove(new, key) {
                self.edges.subtasks.insert(new, key);
            }
            settle::count_subtask(self, new, node.status_kind, 1)?;
            self.refresh_node(new)?;
            entry = self.node(new)?.opens;
        }
        self.update_node(key, |node| {
            node.parent = parent;
            node.gate.entry = entry;
        })?;
        self.queue(key);
        self.close_approved_above(key)
    }

    /// Moves new top-level tasks under a parent.
    pub(crate) fn put_items_below(&mut self, parent: Key, keys: &[Key]) -> Decided<()> {
        for key in keys {
            self.edges.subtasks.insert(parent, *key);
            settle::count_subtask(self, parent, StatusKind::Todo, 1)?;
            self.update_node(*key, |node| node.parent = Some(parent))?;
        }
        self.refresh_node(parent)?;
        let entry = self.node(parent)?.opens;
        for key in keys {
            self.update_node(*key, |node| node.gate.entry = entry)?;
            self.queue(*key);
        }
        Ok(())
    }

    pub(super) fn change_status_kind(&mut self, key: Key, status_kind: StatusKind) -> Decided<()> {
        let before = settle::change_status_kind(self, key, status_kind)?;
        if let Some(parent) = before.parent.filter(|_| before.status_kind == StatusKind::InProgress) {
            // The task may be an item of a list that had to end before the list could replace it.
            self.queue(parent);
        }
        if status_kind.outcome() != crate::task::Outcome::Open || status_kind == StatusKind::Cancelled {
            self.note_end(key, status_kind);
        }
        Ok(())
    }

    fn note_end(&mut self, key: Key, status_kind: StatusKind) {
        let status = match status_kind {
            StatusKind::Done => Status::Done,
            StatusKind::Failed => Status::Failed,
            StatusKind::Cancelled => Status::Cancelled,
            StatusKind::Skipped => Status::Skipped,
            StatusKind::BlockedDependency => Status::Blocked,
            StatusKind::Todo
            | StatusKind::InProgress
            | StatusKind::BlockedWaiting
            | StatusKind::BlockedOther => return,
        };
        self.answer.ended.push((key, status));
    }
}
