//! Simulated nodes of a store: gates are applied by the usual rules, and nothing is written.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::opening::{OpenQuestion, Opening};
use crate::Key;
use crate::draft::subtask_count;
use crate::record::{Node, StatusKind, Work};
use crate::settle::{Consequence, consequence, has_closed};
use crate::view::{View, ViewResult};

/// Nodes of the store with the simulated changes.
pub(super) struct ForecastTasks<'a> {
    pub(super) view: &'a dyn View,
    pub(super) nodes: BTreeMap<Key, Node>,
    dependents: HashMap<Key, Vec<Key>>,
    subtasks: HashMap<Key, Vec<Key>>,
    /// Simulated status kinds that differ from the store.
    pub(super) moved: BTreeMap<Key, StatusKind>,
    queue: VecDeque<Key>,
    /// Tasks that may have become ready.
    touched: BTreeSet<Key>,
    /// Conditions and lists that were assumed, because they depend on unknown results.
    pub(super) open: BTreeMap<Key, OpenQuestion>,
    /// Tasks that need an approval before they start.
    pub(super) asking: BTreeSet<Key>,
    /// Number of items of each `forEach`, if known.
    pub(super) items: BTreeMap<Key, Option<usize>>,
    /// Tasks whose condition, approval and list are decided.
    opened: BTreeSet<Key>,
    /// Reasons why tasks fail or do not open.
    pub(super) failures: BTreeMap<Key, String>,
}

impl Clone for ForecastTasks<'_> {
    fn clone(&self) -> Self {
        Self {
            view: self.view,
            nodes: self.nodes.clone(),
            dependents: self.dependents.clone(),
            subtasks: self.subtasks.clone(),
            moved: self.moved.clone(),
            queue: self.queue.clone(),
            touched: self.touched.clone(),
            open: self.open.clone(),
            asking: self.asking.clone(),
            items: self.items.clone(),
            opened: self.opened.clone(),
            failures: self.failures.clone(),
        }
    }
}

impl<'a> ForecastTasks<'a> {
    pub(super) fn load(view: &'a dyn View) -> ViewResult<Self> {
        let (mut nodes, mut subtasks) = (BTreeMap::new(), HashMap::<Key, Vec<Key>>::new());
        view.each_node(&mut |node| {
            if let Some(parent) = node.parent {
                subtasks.entry(parent).or_default().push(node.key);
            }
            nodes.insert(node.key, node);
        })?;
        let mut dependents = HashMap::<Key, Vec<Key>>::new();
        view.each_dependency(&mut |task, on| dependents.entry(on).or_default().push(task))?;
        Ok(Self {
            view,
            nodes,
            dependents,
            subtasks,
            moved: BTreeMap::new(),
            queue: VecDeque::new(),
            touched: BTreeSet::new(),
            open: BTreeMap::new(),
            asking: BTreeSet::new(),
            items: BTreeMap::new(),
            opened: BTreeSet::new(),
            failures: BTreeMap::new(),
        })
    }

    pub(super) fn status_kind(&self, key: Key) -> StatusKind {
        self.nodes[&key].status_kind
    }

    pub(super) fn dependents(&self, key: Key) -> &[Key] {
        self.dependents.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn subtasks(&self, key: Key) -> &[Key] {
        self.subtasks.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Returns the tasks that became ready since the last call.
    pub(super) fn take_touched(&mut self) -> Vec<Key> {
        let touched = std::mem::take(&mut self.touched);
        touched.into_iter().filter(|key| self.nodes[key].is_ready()).collect()
    }

    fn update(&mut self, key: Key, change: impl FnOnce(&mut Node)) -> Node {
        let node = self.nodes.get_mut(&key).expect("BUG: an edge leads to a task that is there");
        change(node);
        self.touched.insert(key);
        *node
    }

    /// Changes the status kind of a task, and the counts of its dependents and its parent.
    pub(super) fn set_status_kind(&mut self, key: Key, status_kind: StatusKind) {
        let before = self.nodes[&key];
        self.moved.insert(key, status_kind);
        self.update(key, |node| node.status_kind = status_kind);
        let (old, new) = (before.status_kind.outcome(), status_kind.outcome());
        if old != new {
            for dependent in self.dependents(key).to_vec() {
                self.update(dependent, |node| {
                    *node.gate.dependencies.of(old) -= 1;
                    *node.gate.dependencies.of(new) += 1;
                });
                self.queue.push_back(dependent);
            }
        }
        if let Some(parent) =
            before.parent.filter(|_| before.status_kind.outcome_above() != status_kind.outcome_above())
        {
            self.update(parent, |node| {
                *subtask_count(node, before.status_kind) -= 1;
                *subtask_count(node, status_kind) += 1;
            });
            self.queue.push_back(parent);
        }
        self.queue.push_back(key);
    }

    pub(super) fn skip_tree(&mut self, key: Key) {
        self.set_status_kind(key, StatusKind::Skipped);
        let mut below = self.subtasks(key).to_vec();
        while let Some(key) = below.pop() {
            if !matches!(
                self.status_kind(key),
                StatusKind::InProgress | StatusKind::Done | StatusKind::Cancelled | StatusKind::Skipped
            ) {
                self.set_status_kind(key, StatusKind::Skipped);
            }
            below.extend_from_slice(self.subtasks(key));
        }
    }

    /// Applies every queued gate by the same rules as a store.
    pub(super) fn settle(&mut self) -> ViewResult<()> {
        let mut last = VecDeque::new();
        loop {
            while let Some(key) = self.queue.pop_front() {
                let node = self.derive(key);
                match consequence(&node) {
                    Some(Consequence::End | Consequence::Open) => last.push_back(key),
                    Some(Consequence::Block) => self.set_status_kind(key, StatusKind::BlockedDependency),
                    Some(Consequence::Unblock) => self.set_status_kind(key, StatusKind::Todo),
                    Some(Consequence::Skip) => self.skip_tree(key),
                    // A forecast assumes that every approval is given, so open questions are not refreshed.
                    Some(Consequence::Ask | Consequence::Withdraw) | None => {}
                }
            }
            let Some(key) = last.pop_front() else { return Ok(()) };
            match consequence(&self.nodes[&key]) {
                Some(Consequence::End) => self.set_status_kind(key, StatusKind::Done),
                Some(Consequence::Open) => self.open(key)?,
                Some(
                    Consequence::Block
                    | Consequence::Unblock
                    | Consequence::Skip
                    | Consequence::Ask
                    | Consequence::Withdraw,
                )
                | None => {}
            }
        }
    }

    fn derive(&mut self, key: Key) -> Node {
        let before = self.nodes[&key];
        let is_closed = has_closed(&before) && self.opened.remove(&key);
        let node = self.update(key, |node| {
            node.gate.undecided |= is_closed;
            node.gate_state = node.gate.state();
            node.opens = node.derive_opens();
        });
        if node.opens != before.opens {
            for subtask in self.subtasks(key).to_vec() {
                self.update(subtask, |below| below.gate.entry = node.opens);
                self.queue.push_back(subtask);
            }
        }
        node
    }

    /// Decides the condition, approval and list of a task, as far as results are known.
    fn open(&mut self, key: Key) -> ViewResult<()> {
        match self.decide_opening(key)? {
            Opening::Skipped => self.skip_tree(key),
            Opening::Failed(why) => {
                self.failures.insert(key, why);
                self.set_status_kind(key, StatusKind::Failed);
            }
            Opening::Open => {
                self.opened.insert(key);
                // Items that do not exist yet are simulated by the task itself.
                let stands_for_items = self.items.get(&key).is_some_and(|items| *items != Some(0));
                let has_items = !self.subtasks(key).is_empty();
                self.update(key, |node| {
                    node.gate.undecided = false;
                    if stands_for_items && !has_items {
                        node.work = Work::Calls;
                    }
                });
                self.queue.push_back(key);
            }
        }
        Ok(())
    }
}
