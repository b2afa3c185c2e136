//! A draft as a view: the store with the changes of the command. Events, runs that ended and undo snapshots are those
//! of the store before the command.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Draft;
use crate::command::RequestRecord;
use crate::task::Actor;
use crate::task::event::Event;
use crate::task::key_space::KeySpace;
use crate::task::record::{CallRecord, Node, PlanRecord, RunRecord, TaskRecord};
use crate::task::status::Status;
use crate::task::wait::SignalRecord;
use crate::value::Timestamp;
use crate::value::{Key, RunId, TaskId};
use crate::view::undo::{UndoSnapshot, Undoable};
use crate::view::{
    EventQuery, FindTasks, Query, ReadGraph, ReadHistory, ReadRuns, ReadTasks, SignalChange, ViewResult,
};

impl Draft<'_> {
    fn is_deleted(&self, key: Key) -> bool {
        self.changes.deleted.iter().any(|(deleted, ..)| *deleted == key)
    }

    fn without_deleted(&self, mut keys: Vec<Key>) -> Vec<Key> {
        if !self.changes.deleted.is_empty() {
            keys.retain(|key| !self.is_deleted(*key));
        }
        keys.sort_unstable();
        keys
    }
}

impl ReadTasks for Draft<'_> {
    fn key(&self, id: &str) -> ViewResult<Option<Key>> {
        match self.new_tasks.ids.get(id) {
            Some(key) => Ok(Some(*key)),
            None => Ok(self.view.key(id)?.filter(|key| !self.is_deleted(*key))),
        }
    }

    fn id(&self, key: Key) -> ViewResult<Option<TaskId>> {
        match self.changes.tasks.get(&key) {
            Some(change) => Ok(Some(change.record.id.clone())),
            None if self.is_deleted(key) => Ok(None),
            None => self.view.id(key),
        }
    }

    fn ids_with_prefix(&self, prefix: &str, limit: usize) -> ViewResult<Vec<TaskId>> {
        let mut ids: BTreeSet<TaskId> = self.view.ids_with_prefix(prefix, limit)?.into_iter().collect();
        ids.extend(self.new_tasks.ids.keys().filter(|id| id.as_str().starts_with(prefix)).cloned());
        Ok(ids.into_iter().take(limit).collect())
    }

    fn deleted_id(&self, id: &str) -> ViewResult<Option<Option<String>>> {
        self.view.deleted_id(id)
    }

    fn next_key(&self) -> ViewResult<Key> {
        self.new_tasks.next_key.map_or_else(|| self.view.next_key(), Ok)
    }

    fn task(&self, key: Key) -> ViewResult<Option<TaskRecord>> {
        match self.changes.tasks.get(&key) {
            Some(change) => Ok(Some(change.record.clone())),
            None if self.is_deleted(key) => Ok(None),
            None => self.view.task(key),
        }
    }

    fn calls(&self, key: Key) -> ViewResult<Vec<CallRecord>> {
        self.calls.get(&key).map_or_else(|| self.view.calls(key), |calls| Ok(calls.clone()))
    }

    fn applied(&self, key: Key) -> ViewResult<Option<String>> {
        match self.changes.applied.get(&key) {
            Some(text) => Ok(Some(text.clone())),
            None => self.view.applied(key),
        }
    }

    fn plan(&self, name: &str) -> ViewResult<Option<PlanRecord>> {
        match self.changes.plans.iter().rev().find(|plan| plan.name == name) {
            Some(plan) => Ok(Some(plan.clone())),
            None if self.changes.plans_gone.iter().any(|gone| gone == name) => Ok(None),
            None => self.view.plan(name),
        }
    }

    fn plans(&self) -> ViewResult<Vec<PlanRecord>> {
        let stored = self.view.plans()?.into_iter().map(|plan| (plan.name.clone(), plan));
        let mut plans: BTreeMap<String, PlanRecord> = stored.collect();
        self.changes.plans_gone.iter().for_each(|gone| drop(plans.remove(gone)));
        plans.extend(self.changes.plans.iter().map(|plan| (plan.name.clone(), plan.clone())));
        Ok(plans.into_values().collect())
    }
}

impl ReadGraph for Draft<'_> {
    fn node(&self, key: Key) -> ViewResult<Option<Node>> {
        match self.changes.nodes.get(&key) {
            Some(node) => Ok(Some(*node)),
            None if self.is_deleted(key) => Ok(None),
            None => self.view.node(key),
        }
    }

    fn dependencies(&self, key: Key) -> ViewResult<Vec<Key>> {
        let mut keys = if self.is_new(key) { Vec::new() } else { self.view.dependencies(key)? };
        keys.retain(|on| !self.edges.removed.contains(key, *on));
        keys.extend(self.edges.dependencies.of(key));
        Ok(self.without_deleted(keys))
    }

    fn dependents(&self, key: Key) -> ViewResult<Vec<Key>> {
        let mut keys = if self.is_new(key) { Vec::new() } else { self.view.dependents(key)? };
        keys.retain(|task| !self.edges.removed.contains(*task, key));
        keys.extend(self.edges.dependents.of(key));
        Ok(self.without_deleted(keys))
    }

    fn subtasks(&self, key: Key) -> ViewResult<Vec<Key>> {
        let mut keys = if self.is_new(key) { Vec::new() } else { self.view.subtasks(key)? };
        keys.retain(|task| !self.edges.moved_away.contains(key, *task));
        keys.extend(self.edges.subtasks.of(key));
        Ok(self.without_deleted(keys))
    }

    fn each_node(&self, each: &mut dyn FnMut(Node)) -> ViewResult<()> {
        let deleted: BTreeSet<Key> = self.changes.deleted.iter().map(|(key, ..)| *key).collect();
        self.view.each_node(&mut |node| {
            if !deleted.contains(&node.key) {
                each(self.changes.nodes.get(&node.key).copied().unwrap_or(node));
            }
        })?;
        self.changes.nodes.values().filter(|node| self.is_new(node.key)).for_each(|node| each(*node));
        Ok(())
    }

    fn each_dependency(&self, each: &mut dyn FnMut(Key, Key)) -> ViewResult<()> {
        self.view.each_dependency(&mut |task, on| {
            if !self.edges.removed.contains(task, on) {
                each(task, on);
            }
        })?;
        self.edges.dependencies.iter().for_each(|(task, on)| each(task, on));
        Ok(())
    }

    fn counts(&self) -> ViewResult<BTreeMap<Status, u64>> {
        let mut counts: BTreeMap<Status, u64> = Status::ALL.iter().map(|status| (*status, 0)).collect();
        self.each_node(&mut |node| *counts.entry(node.status_kind.status()).or_default() += 1)?;
        Ok(counts)
    }
}

impl FindTasks for Draft<'_> {
    fn find(&self, query: &Query) -> ViewResult<Vec<Key>> {
        let mut nodes = Vec::new();
        self.each_node(&mut |node| nodes.push(node))?;
        let (text, mut matching) = (query.search_text(), Vec::new());
        for node in nodes {
            if let Some(task) = ReadTasks::task(self, node.key)?
                && query.is_match(&node, &task, text.as_ref())
            {
                matching.push(node);
            }
        }
        if query.ready.is_some() {
            matching.sort_by_key(|node| (node.priority, node.due, node.key));
        }
        let limit = if query.limit == 0 { usize::MAX } else { query.limit };
        Ok(matching.into_iter().map(|node| node.key).skip(query.offset).take(limit).collect())
    }
}

impl ReadRuns for Draft<'_> {
    fn run(&self, id: &RunId) -> ViewResult<Option<RunRecord>> {
        match self.changes.runs.get(id) {
            Some(run) => Ok(Some(run.clone())),
            None => self.view.run(id),
        }
    }

    fn runs(&self, limit: usize) -> ViewResult<Vec<RunRecord>> {
        self.view.runs(limit)
    }

    fn pruned_runs(&self, prefix: &str) -> ViewResult<Vec<(RunId, Timestamp)>> {
        self.view.pruned_runs(prefix)
    }

    fn signals(&self, name: Option<&str>) -> ViewResult<Vec<SignalRecord>> {
        let mut kept = self.view.signals(name)?;
        for change in &self.changes.signals {
            match change {
                SignalChange::Keep(signal) if name.is_none_or(|name| signal.name == name) => {
                    kept.push((**signal).clone());
                }
                SignalChange::Keep(_) => {}
                SignalChange::Remove(id) => kept.retain(|signal| signal.id != *id),
            }
        }
        Ok(kept)
    }

    fn key_space(&self) -> ViewResult<Option<KeySpace>> {
        match &self.changes.key_space {
            Some(space) => Ok(Some(space.clone())),
            None => self.view.key_space(),
        }
    }
}

impl ReadHistory for Draft<'_> {
    fn revision(&self) -> ViewResult<u64> {
        self.view.revision()
    }

    fn events(&self, after: u64, task: Option<Key>, limit: usize) -> ViewResult<Vec<Event>> {
        self.view.events(after, task, limit)
    }

    fn find_events(&self, query: &EventQuery) -> ViewResult<Vec<Event>> {
        self.view.find_events(query)
    }

    fn newest_checklists(&self, revision: u64) -> ViewResult<Vec<Event>> {
        self.view.newest_checklists(revision)
    }

    fn undoables(&self, first: u64, last: u64) -> ViewResult<Vec<Undoable>> {
        self.view.undoables(first, last)
    }

    fn last_undoable(&self, actor: Actor<'_>) -> ViewResult<Option<Undoable>> {
        self.view.last_undoable(actor)
    }

    fn request(&self, actor: Actor<'_>, request: &str) -> ViewResult<Option<RequestRecord>> {
        self.view.request(actor, request)
    }

    fn requests_before(&self, time: Timestamp) -> ViewResult<u64> {
        self.view.requests_before(time)
    }

    fn each_undo_snapshot(&self, each: &mut dyn FnMut(u64, Arc<UndoSnapshot>)) -> ViewResult<()> {
        self.view.each_undo_snapshot(each)
    }

    fn undo_snapshot(&self, revision: u64) -> ViewResult<Option<Arc<UndoSnapshot>>> {
        self.view.undo_snapshot(revision)
    }
}
