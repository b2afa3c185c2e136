//! Search for the first cause: down the chain of causes, with a bounded search of alternatives.

use std::collections::BTreeSet;

use super::explanation::Facts;
use super::reason::{Reason, Role, Urgency};
use super::state::reason_of_state;
use crate::task::gate::{Entry, Gate, GateState, Outcome};
use crate::task::record::{Node, StatusKind, Work};
use crate::task::spec::Trigger;
use crate::value::{Key, TaskId};
use crate::view::{View, ViewError, ViewResult};

/// Most tasks visited for a more relevant cause after the first chain has reached its end.
const ASIDE: usize = 1_000;

/// Most direct causes of one task that are compared.
const WEIGHED: usize = 100;

/// Cause of a task's status, found by reading this task and its neighbours.
pub(super) enum Step {
    /// Other tasks, the most likely cause first.
    Others { causes: Vec<Key>, role: Role, is_final: bool, count: u32 },
    /// A reason of its own.
    Own(Box<Reason>),
}

/// A task on the current path of the search.
struct Turn {
    key: Key,
    /// Direct causes that were not visited yet, the most likely one last.
    left: Vec<Key>,
    role: Role,
    is_final: bool,
    others: u32,
}

/// Path from a task to its first cause.
pub(super) struct Way {
    /// Tasks on the path except the last, each with its relation to the next.
    pub(super) steps: Vec<WayStep>,
    /// Last task of the path, and its reason.
    pub(super) end: (Key, Reason),
    /// True if the search visited every task that could be a more relevant cause.
    pub(super) is_complete: bool,
}

/// A task whose status is caused by the next one.
#[derive(Clone, Copy)]
pub(super) struct WayStep {
    pub(super) key: Key,
    pub(super) role: Role,
    pub(super) is_final: bool,
    pub(super) others: u32,
}

pub(super) struct Search<'a> {
    pub(super) view: &'a dyn View,
    pub(super) facts: &'a Facts<'a>,
    seen: BTreeSet<Key>,
    turns: Vec<Turn>,
    best: Option<(Urgency, Way)>,
    left: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(view: &'a dyn View, facts: &'a Facts<'a>) -> Self {
        Self { view, facts, seen: BTreeSet::new(), turns: Vec::new(), best: None, left: ASIDE }
    }

    /// Follows the causes of a task to the first one. The cost is the length of the path.
    ///
    /// If a task waits for several others, one that needs a command is a better answer than one that continues by
    /// itself. Up to [`ASIDE`] tasks are visited to find one.
    pub(super) fn follow(mut self, start: Key) -> ViewResult<Way> {
        let mut next = Some((start, Role::Dependency));
        while let Some((key, role)) = next {
            self.seen.insert(key);
            match self.look(key, role == Role::Above)? {
                Step::Own(reason) => {
                    if self.note(key, *reason) {
                        break;
                    }
                }
                Step::Others { mut causes, role, is_final, count } => {
                    causes.reverse();
                    let others = count.saturating_sub(1);
                    self.turns.push(Turn { key, left: causes, role, is_final, others });
                }
            }
            next = self.next();
        }
        let (_, mut way) = self.best.ok_or_else(|| missing(start))?;
        way.is_complete = self.left > 0;
        Ok(way)
    }

    /// Keeps the end of a path if it is the most urgent so far; returns whether no end can be more urgent.
    fn note(&mut self, key: Key, reason: Reason) -> bool {
        let urgency = reason.urgency();
        if self.best.as_ref().is_none_or(|(best, _)| urgency < *best) {
            let steps = self.turns.iter().map(Turn::step).collect();
            self.best = Some((urgency, Way { steps, end: (key, reason), is_complete: true }));
        }
        urgency == Urgency::Stuck
    }

    fn next(&mut self) -> Option<(Key, Role)> {
        while let Some(turn) = self.turns.last_mut() {
            let role = turn.role;
            if let Some(key) = turn.left.pop() {
                if self.seen.contains(&key) {
                    continue;
                }
                if self.best.is_some() {
                    // The first chain is followed to its end without a limit. Only alternatives to it are bounded.
                    self.left = self.left.checked_sub(1).filter(|left| *left > 0).unwrap_or_default();
                    if self.left == 0 {
                        return None;
                    }
                }
                return Some((key, role));
            }
            self.turns.pop();
        }
        None
    }

    /// Reads one task. Its own status is the reason, unless it waits, or is a parent whose gate is not open.
    fn look(&self, key: Key, from_below: bool) -> ViewResult<Step> {
        let node = self.node(key)?;
        let waits = match node.status_kind {
            StatusKind::Todo | StatusKind::BlockedDependency | StatusKind::BlockedWaiting => true,
            StatusKind::InProgress | StatusKind::Done | StatusKind::Failed => {
                // A finished parent can still hold its subtasks back, because its gate may have closed again.
                from_below && node.gate.before_subtasks() != GateState::Ready
            }
            StatusKind::BlockedOther | StatusKind::Cancelled | StatusKind::Skipped => false,
        };
        let step = if waits { self.gate(&node)? } else { None };
        match step {
            Some(step) => Ok(step),
            None => Ok(Step::Own(Box::new(reason_of_state(self.view, self.facts, &node)?))),
        }
    }

    /// Returns the tasks that keep the gate of a task closed; `None` if it is open.
    fn gate(&self, node: &Node) -> ViewResult<Option<Step>> {
        if let (Some(parent), Entry::Waiting | Entry::Shut) = (node.parent, node.gate.entry) {
            let (causes, is_final) = (vec![parent], node.gate.entry == Entry::Shut);
            return Ok(Some(Step::Others { causes, role: Role::Above, is_final, count: 1 }));
        }
        // The entry was handled above. An undecided condition must not hide unfinished dependencies.
        let own = Gate { entry: Entry::Open, undecided: false, ..node.gate };
        let counts = own.dependencies;
        match own.before_subtasks() {
            GateState::Block => {
                let skipped_too = own.trigger == Trigger::AnyDone;
                let is_cause = |node: &Node| match node.status_kind.outcome() {
                    Outcome::Failed => true,
                    Outcome::Skipped => skipped_too,
                    Outcome::Open | Outcome::Done => false,
                };
                let count = counts.failed + if skipped_too { counts.skipped } else { 0 };
                let on = self.view.dependencies(node.key)?;
                self.others(on, is_cause, Role::Dependency, true, count)
            }
            GateState::Wait => {
                let is_cause = |node: &Node| node.status_kind.outcome() == Outcome::Open;
                let on = self.view.dependencies(node.key)?;
                self.others(on, is_cause, Role::Dependency, false, counts.open)
            }
            GateState::Ready if node.gate.undecided => Ok(None),
            GateState::Ready => self.gate_of_subtasks(node),
            GateState::Skip => Ok(None),
        }
    }

    fn gate_of_subtasks(&self, node: &Node) -> ViewResult<Option<Step>> {
        let counts = node.gate.subtasks;
        let (outcome, count) = match (counts.failed, counts.open) {
            (0, 0) => return Ok(None),
            (0, open) => (Outcome::Open, open),
            (failed, _) => (Outcome::Failed, failed),
        };
        let is_cause = |node: &Node| node.status_kind.outcome_above() == outcome;
        let below = self.view.subtasks(node.key)?;
        self.others(below, is_cause, Role::Subtask, outcome == Outcome::Failed, count)
    }

    fn others(
        &self,
        keys: Vec<Key>,
        is_cause: impl Fn(&Node) -> bool,
        role: Role,
        is_final: bool,
        count: u32,
    ) -> ViewResult<Option<Step>> {
        let mut nodes = Vec::new();
        for key in keys {
            let node = self.node(key)?;
            if is_cause(&node) {
                nodes.push(node);
            }
            if nodes.len() == WEIGHED {
                break;
            }
        }
        nodes.sort_by_key(|node| (likelihood(node), node.key));
        let causes: Vec<Key> = nodes.iter().map(|node| node.key).collect();
        Ok((!causes.is_empty()).then_some(Step::Others { causes, role, is_final, count }))
    }

    fn node(&self, key: Key) -> ViewResult<Node> {
        self.view.node(key)?.ok_or_else(|| missing(key))
    }
}

impl Turn {
    fn step(&self) -> WayStep {
        WayStep { key: self.key, role: self.role, is_final: self.is_final, others: self.others }
    }
}

/// Returns the visiting order of a direct cause: first those that need a command, then waiting ones, running ones last.
fn likelihood(node: &Node) -> u8 {
    match node.status_kind {
        StatusKind::Failed | StatusKind::BlockedOther => 0,
        StatusKind::Cancelled
        | StatusKind::Skipped
        | StatusKind::BlockedDependency
        | StatusKind::BlockedWaiting => 1,
        StatusKind::Todo if node.is_ready() && node.work == Work::Manual => 1,
        StatusKind::Todo if !node.is_ready() => 2,
        StatusKind::InProgress => 3,
        StatusKind::Todo | StatusKind::Done => 4,
    }
}

pub(super) fn missing(key: Key) -> ViewError {
    ViewError(format!("the store has no task {key}, but a record refers to it").into())
}

/// Returns the id of a task that must exist.
pub(super) fn id_of(view: &dyn View, key: Key) -> ViewResult<TaskId> {
    view.id(key)?.ok_or_else(|| missing(key))
}
