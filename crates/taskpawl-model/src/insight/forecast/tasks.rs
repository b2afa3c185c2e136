//! Simulated nodes of a store: gates are applied by the usual rules, and nothing is written.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::opening::{OpenQuestion, Opening};
use crate::rules::settle::{self, Board, Consequence};
use crate::task::record::{Node, StatusKind, Work};
use crate::task::status::Status;
use crate::task::wait::WaitingFor;
use crate::value::{Key, Timestamp};
use crate::view::{ReadGraph, View, ViewError, ViewResult};

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
    /// The start of the run.
    pub(super) now: Timestamp,
    /// Tasks that wait for a time or a signal at the end of the run.
    pub(super) waits: BTreeMap<Key, WaitingFor>,
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
            now: self.now,
            waits: self.waits.clone(),
        }
    }
}

impl<'a> ForecastTasks<'a> {
    pub(super) fn load(view: &'a dyn View, now: Timestamp) -> ViewResult<Self> {
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
            now,
            waits: BTreeMap::new(),
        })
    }

    pub(super) fn status_kind(&self, key: Key) -> StatusKind {
        self.nodes[&key].status_kind
    }

    /// Returns the tasks that became ready since the last call.
    pub(super) fn take_touched(&mut self) -> Vec<Key> {
        let touched = std::mem::take(&mut self.touched);
        touched.into_iter().filter(|key| self.nodes[key].is_ready()).collect()
    }

    /// Changes the status kind of a task, and the counts of its dependents and its parent.
    pub(super) fn set_status_kind(&mut self, key: Key, status_kind: StatusKind) -> ViewResult<()> {
        self.moved.insert(key, status_kind);
        settle::change_status_kind(self, key, status_kind).map(drop)
    }

    pub(super) fn skip_tree(&mut self, key: Key) -> ViewResult<()> {
        self.set_status_kind(key, StatusKind::Skipped)?;
        let mut below = self.subtasks(key)?;
        while let Some(key) = below.pop() {
            if !matches!(
                self.status_kind(key),
                StatusKind::InProgress | StatusKind::Done | StatusKind::Cancelled | StatusKind::Skipped
            ) {
                self.set_status_kind(key, StatusKind::Skipped)?;
            }
            below.extend(self.subtasks(key)?);
        }
        Ok(())
    }

    /// Queues the gate of a task that may open now.
    pub(super) fn queue_gate(&mut self, key: Key) {
        self.queue.push_back(key);
    }

    /// Applies every queued gate by the same rules as a store.
    pub(super) fn settle(&mut self) -> ViewResult<()> {
        settle::settle(self)
    }

    /// Decides the condition, approval and list of a task, as far as results are known.
    fn open(&mut self, key: Key) -> ViewResult<()> {
        match self.decide_opening(key)? {
            Opening::Skipped => self.skip_tree(key)?,
            Opening::Waits(wait) => drop(self.waits.insert(key, wait)),
            Opening::Failed(why) => {
                self.failures.insert(key, why);
                self.set_status_kind(key, StatusKind::Failed)?;
            }
            Opening::Open => {
                self.opened.insert(key);
                // Items that do not exist yet are simulated by the task itself.
                let stands_for_items = self.items.get(&key).is_some_and(|items| *items != Some(0));
                let has_items = !self.subtasks(key)?.is_empty();
                self.update_node(key, |node| {
                    node.gate.undecided = false;
                    if stands_for_items && !has_items {
                        node.work = Work::Calls;
                    }
                })?;
                self.queue.push_back(key);
            }
        }
        Ok(())
    }
}

/// The simulated graph.
impl ReadGraph for ForecastTasks<'_> {
    fn node(&self, key: Key) -> ViewResult<Option<Node>> {
        Ok(self.nodes.get(&key).copied())
    }

    fn dependencies(&self, key: Key) -> ViewResult<Vec<Key>> {
        self.view.dependencies(key)
    }

    fn dependents(&self, key: Key) -> ViewResult<Vec<Key>> {
        Ok(self.dependents.get(&key).cloned().unwrap_or_default())
    }

    fn subtasks(&self, key: Key) -> ViewResult<Vec<Key>> {
        Ok(self.subtasks.get(&key).cloned().unwrap_or_default())
    }

    fn each_node(&self, each: &mut dyn FnMut(Node)) -> ViewResult<()> {
        self.nodes.values().for_each(|node| each(*node));
        Ok(())
    }

    fn each_dependency(&self, each: &mut dyn FnMut(Key, Key)) -> ViewResult<()> {
        self.view.each_dependency(each)
    }

    fn counts(&self) -> ViewResult<BTreeMap<Status, u64>> {
        let mut counts = BTreeMap::new();
        self.nodes.values().for_each(|node| *counts.entry(node.status_kind.status()).or_default() += 1);
        Ok(counts)
    }
}

impl Board for ForecastTasks<'_> {
    type Error = ViewError;

    fn gates(&mut self) -> &mut VecDeque<Key> {
        &mut self.queue
    }

    fn update_node(&mut self, key: Key, change: impl FnOnce(&mut Node)) -> ViewResult<Node> {
        let node = self.nodes.get_mut(&key).expect("BUG: an edge leads to a task that is there");
        change(node);
        self.touched.insert(key);
        Ok(*node)
    }

    fn close(&mut self, key: Key) -> ViewResult<()> {
        if self.opened.remove(&key) {
            self.update_node(key, |node| node.gate.undecided = true)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, key: Key, consequence: Consequence) -> ViewResult<()> {
        match consequence {
            Consequence::End => self.set_status_kind(key, StatusKind::Done),
            Consequence::Open => self.open(key),
            Consequence::Block => self.set_status_kind(key, StatusKind::BlockedDependency),
            Consequence::Unblock => self.set_status_kind(key, StatusKind::Todo),
            Consequence::Skip => self.skip_tree(key),
            // A forecast assumes that every approval is given, so open questions are not refreshed.
            Consequence::Ask | Consequence::Withdraw => Ok(()),
        }
    }
}
