//! A view with the changes of a command that is not executed, used to preview its effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::command::RequestRecord;
use crate::event::Event;
use crate::key_space::KeySpace;
use crate::record::{CallRecord, Node, PlanRecord, RunRecord, TaskRecord};
use crate::status::Status;
use crate::undo::{UndoSnapshot, Undoable};
use crate::view::{Changes, EventQuery, Query, View, ViewResult};
use crate::{Actor, Key, RunId, TaskId, Timestamp};

/// A view with the changes of a command on top. Events and undoable commands are those of the view.
#[derive(Debug)]
pub struct Overlay<'a> {
    changes: &'a Changes,
    ids: BTreeMap<&'a str, Key>,
    deleted: BTreeSet<Key>,
    edges: BTreeMap<(Key, Key), bool>,
    base: Base<'a>,
}

struct Base<'a>(&'a dyn View);

impl std::fmt::Debug for Base<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("View")
    }
}

impl<'a> Overlay<'a> {
    /// Returns `view` with `changes` applied.
    pub fn new(view: &'a dyn View, changes: &'a Changes) -> Self {
        let ids = changes.tasks.iter().map(|(key, change)| (change.record.id.as_str(), *key)).collect();
        let deleted = changes.deleted.iter().map(|(key, ..)| *key).collect();
        let edges = changes.edges.iter().map(|edge| ((edge.task, edge.on), edge.add)).collect();
        Self { changes, ids, deleted, edges, base: Base(view) }
    }

    fn is_new(&self, key: Key) -> bool {
        self.changes.tasks.get(&key).is_some_and(|change| change.is_new)
    }

    fn is_match(&self, node: &Node, query: &Query) -> ViewResult<bool> {
        let is_ready = |works: &Vec<crate::Work>| node.is_ready() && works.contains(&node.work);
        let has_status = query.status.is_empty() || query.status.contains(&node.status_kind.status());
        if !has_status || !query.ready.as_ref().is_none_or(is_ready) {
            return Ok(false);
        }
        if query.parent.is_some_and(|parent| node.parent != Some(parent))
            || (!query.priority.is_empty() && !query.priority.contains(&node.priority))
        {
            return Ok(false);
        }
        let Some(task) = self.task(node.key)? else { return Ok(false) };
        let spec = &task.spec;
        let has_text = |text: &String| {
            let text = text.to_lowercase();
            let fields = [task.id.as_str(), &spec.name, &spec.description];
            fields.iter().any(|field| field.to_lowercase().contains(&text))
        };
        Ok(query.plan.as_ref().is_none_or(|plan| task.plan.as_deref() == Some(plan.as_str()))
            && query.assignee.as_ref().is_none_or(|name| spec.assignee.as_ref() == Some(name))
            && query
                .free_for
                .as_ref()
                .is_none_or(|name| spec.assignee.as_ref().is_none_or(|assignee| assignee == name))
            && query.labels.iter().all(|label| spec.labels.contains(label))
            && query.text.as_ref().is_none_or(has_text))
    }

    /// Returns the other ends of the edges of a task, sorted by key.
    fn ends(&self, key: Key, of_base: Vec<Key>, is_task: bool) -> Vec<Key> {
        let pair = |other: Key| if is_task { (key, other) } else { (other, key) };
        let remaining = of_base.into_iter().filter(|other| self.edges.get(&pair(*other)) != Some(&false));
        let mut ends: BTreeSet<Key> = remaining.collect();
        let added = self.edges.iter().filter(|(_, add)| **add);
        ends.extend(added.filter_map(|((task, on), _)| {
            if is_task { (*task == key).then_some(*on) } else { (*on == key).then_some(*task) }
        }));
        ends.into_iter().filter(|end| !self.deleted.contains(end)).collect()
    }
}

impl View for Overlay<'_> {
    fn key(&self, id: &str) -> ViewResult<Option<Key>> {
        match self.ids.get(id) {
            Some(key) => Ok(Some(*key)),
            None => Ok(self.base.0.key(id)?.filter(|key| !self.deleted.contains(key))),
        }
    }

    fn id(&self, key: Key) -> ViewResult<Option<TaskId>> {
        match self.changes.tasks.get(&key) {
            Some(change) => Ok(Some(change.record.id.clone())),
            None if self.deleted.contains(&key) => Ok(None),
            None => self.base.0.id(key),
        }
    }

    fn ids_with_prefix(&self, prefix: &str, limit: usize) -> ViewResult<Vec<TaskId>> {
        let own = self.ids.keys().filter(|id| id.starts_with(prefix)).map(|id| TaskId::from(*id));
        let mut ids: BTreeSet<TaskId> = own.collect();
        ids.extend(self.base.0.ids_with_prefix(prefix, limit)?);
        Ok(ids.into_iter().take(limit).collect())
    }

    fn deleted_id(&self, id: &str) -> ViewResult<Option<Option<String>>> {
        self.base.0.deleted_id(id)
    }

    fn next_key(&self) -> ViewResult<Key> {
        let next = self.base.0.next_key()?;
        Ok(self.changes.tasks.keys().max().map_or(next, |last| next.max(Key(last.0 + 1))))
    }

    fn node(&self, key: Key) -> ViewResult<Option<Node>> {
        match self.changes.nodes.get(&key) {
            Some(node) => Ok(Some(*node)),
            None if self.deleted.contains(&key) => Ok(None),
            None => self.base.0.node(key),
        }
    }

    fn task(&self, key: Key) -> ViewResult<Option<TaskRecord>> {
        match self.changes.tasks.get(&key) {
            Some(change) => Ok(Some(change.record.clone())),
            None if self.deleted.contains(&key) => Ok(None),
            None => self.base.0.task(key),
        }
    }

    fn calls(&self, key: Key) -> ViewResult<Vec<CallRecord>> {
        let base = if self.is_new(key) { Vec::new() } else { self.base.0.calls(key)? };
        let mut calls: BTreeMap<u32, CallRecord> = (0..).zip(base).collect();
        for ((_, position), change) in self.changes.calls.range((key, 0)..=(key, u32::MAX)) {
            match &change.record {
                Some(call) => drop(calls.insert(*position, call.clone())),
                None => drop(calls.remove(position)),
            }
        }
        Ok(calls.into_values().collect())
    }

    fn dependencies(&self, key: Key) -> ViewResult<Vec<Key>> {
        let base = if self.is_new(key) { Vec::new() } else { self.base.0.dependencies(key)? };
        Ok(self.ends(key, base, true))
    }

    fn dependents(&self, key: Key) -> ViewResult<Vec<Key>> {
        let base = if self.is_new(key) { Vec::new() } else { self.base.0.dependents(key)? };
        Ok(self.ends(key, base, false))
    }

    fn subtasks(&self, key: Key) -> ViewResult<Vec<Key>> {
        let mut below: BTreeSet<Key> =
            if self.is_new(key) { BTreeSet::new() } else { self.base.0.subtasks(key)?.into_iter().collect() };
        for node in self.changes.nodes.values() {
            if node.parent == Some(key) {
                below.insert(node.key);
            } else {
                below.remove(&node.key);
            }
        }
        Ok(below.into_iter().filter(|key| !self.deleted.contains(key)).collect())
    }

    fn applied(&self, key: Key) -> ViewResult<Option<String>> {
        match self.changes.applied.get(&key) {
            Some(text) => Ok(Some(text.clone())),
            None => self.base.0.applied(key),
        }
    }

    fn plan(&self, name: &str) -> ViewResult<Option<PlanRecord>> {
        match self.changes.plans.iter().rev().find(|plan| plan.name == name) {
            Some(plan) => Ok(Some(plan.clone())),
            None => self.base.0.plan(name),
        }
    }

    fn plans(&self) -> ViewResult<Vec<PlanRecord>> {
        let mut plans = self.base.0.plans()?;
        plans.retain(|plan| !self.changes.plans.iter().any(|changed| changed.name == plan.name));
        plans.extend(self.changes.plans.iter().cloned());
        plans.retain(|plan| !self.changes.plans_gone.contains(&plan.name));
        Ok(plans)
    }

    fn run(&self, id: &RunId) -> ViewResult<Option<RunRecord>> {
        match self.changes.runs.get(id) {
            Some(run) => Ok(Some(run.clone())),
            None => self.base.0.run(id),
        }
    }

    fn runs(&self, limit: usize) -> ViewResult<Vec<RunRecord>> {
        self.base.0.runs(limit)
    }

    fn find(&self, query: &Query) -> ViewResult<Vec<Key>> {
        let mut nodes = Vec::new();
        self.each_node(&mut |node| nodes.push(node))?;
        let mut matching = Vec::new();
        for node in nodes {
            if self.is_match(&node, query)? {
                matching.push(node);
            }
        }
        if query.ready.is_some() {
            matching.sort_by_key(|node| (node.priority, node.due, node.key));
        }
        let limit = if query.limit == 0 { usize::MAX } else { query.limit };
        Ok(matching.into_iter().map(|node| node.key).skip(query.offset).take(limit).collect())
    }

    fn each_node(&self, each: &mut dyn FnMut(Node)) -> ViewResult<()> {
        self.base.0.each_node(&mut |node| {
            if !self.deleted.contains(&node.key) && !self.is_new(node.key) {
                each(self.changes.nodes.get(&node.key).copied().unwrap_or(node));
            }
        })?;
        self.changes.nodes.values().filter(|node| self.is_new(node.key)).for_each(|node| each(*node));
        Ok(())
    }

    fn each_dependency(&self, each: &mut dyn FnMut(Key, Key)) -> ViewResult<()> {
        self.base.0.each_dependency(&mut |task, on| {
            if !self.edges.contains_key(&(task, on)) {
                each(task, on);
            }
        })?;
        self.edges.iter().filter(|(_, add)| **add).for_each(|((task, on), _)| each(*task, *on));
        Ok(())
    }

    fn counts(&self) -> ViewResult<BTreeMap<Status, u64>> {
        let mut counts = BTreeMap::new();
        self.each_node(&mut |node| *counts.entry(node.status_kind.status()).or_default() += 1)?;
        Ok(counts)
    }

    fn revision(&self) -> ViewResult<u64> {
        self.base.0.revision()
    }

    fn events(&self, after: u64, task: Option<Key>, limit: usize) -> ViewResult<Vec<Event>> {
        self.base.0.events(after, task, limit)
    }

    fn find_events(&self, query: &EventQuery) -> ViewResult<Vec<Event>> {
        self.base.0.find_events(query)
    }

    fn newest_checklists(&self, revision: u64) -> ViewResult<Vec<Event>> {
        self.base.0.newest_checklists(revision)
    }

    fn undoables(&self, first: u64, last: u64) -> ViewResult<Vec<Undoable>> {
        self.base.0.undoables(first, last)
    }

    fn last_undoable(&self, actor: Actor<'_>) -> ViewResult<Option<Undoable>> {
        self.base.0.last_undoable(actor)
    }

    fn request(&self, actor: Actor<'_>, request: &str) -> ViewResult<Option<RequestRecord>> {
        self.base.0.request(actor, request)
    }

    fn requests_before(&self, time: Timestamp) -> ViewResult<u64> {
        self.base.0.requests_before(time)
    }

    fn key_space(&self) -> ViewResult<Option<KeySpace>> {
        match &self.changes.key_space {
            Some(space) => Ok(Some(space.clone())),
            None => self.base.0.key_space(),
        }
    }

    fn pruned_runs(&self, prefix: &str) -> ViewResult<Vec<(RunId, Timestamp)>> {
        self.base.0.pruned_runs(prefix)
    }

    fn each_undo_snapshot(&self, each: &mut dyn FnMut(u64, Arc<UndoSnapshot>)) -> ViewResult<()> {
        self.base.0.each_undo_snapshot(each)
    }

    fn undo_snapshot(&self, revision: u64) -> ViewResult<Option<Arc<UndoSnapshot>>> {
        self.base.0.undo_snapshot(revision)
    }
}
