//! Simulation of a run in virtual time: every call succeeds after its known or expected duration.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::tasks::ForecastTasks;
use crate::task::record::{Node, StatusKind, Work};
use crate::task::spec::Priority;
use crate::task::wait::WaitingFor;
use crate::value::{Key, KeyMap};
use crate::view::ViewResult;

/// Sort key of ready tasks in a run.
type QueueOrder = (Priority, i64, Reverse<u64>, Key);

/// Settings of a simulated run.
pub(super) struct SimulationRules<'p> {
    pub(super) jobs: usize,
    pub(super) ranks: &'p KeyMap<u64>,
    pub(super) takes: &'p dyn Fn(&Node, Option<usize>) -> u64,
    /// True if the run takes a task: it is selected, and its tools exist.
    pub(super) may_take: &'p dyn Fn(Key) -> bool,
    /// Reason why a task fails once it is started.
    pub(super) fails: &'p dyn Fn(Key) -> Option<&'p str>,
    /// The wait for a time or a signal that a task begins once it is started.
    pub(super) waits: &'p dyn Fn(Key) -> Option<&'p WaitingFor>,
}

/// Start and end of a task, in units of `takes`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) key: Key,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl SimulationRules<'_> {
    /// Simulates until the run has nothing left to do; returns the started tasks in order.
    pub(super) fn play(&self, board: &mut ForecastTasks<'_>) -> ViewResult<Vec<Turn>> {
        let (mut ready, mut running, mut turns) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        // Tasks in progress occupy jobs from the start. Their full duration is assumed, although part of
        // it has passed.
        let held: Vec<Node> = board.nodes.values().copied().collect();
        for node in held {
            if node.status_kind == StatusKind::InProgress
                && node.work == Work::Calls
                && (self.may_take)(node.key)
                && !board.waits.contains_key(&node.key)
            {
                self.start(board, &mut running, &mut turns, node.key, 0)?;
            } else {
                self.add(&mut ready, &node);
            }
        }
        board.take_touched();
        let mut now = 0;
        loop {
            while running.len() < self.jobs
                && let Some((.., key)) = ready.pop_first()
            {
                self.start(board, &mut running, &mut turns, key, now)?;
            }
            let Some((end, _)) = running.first().copied() else { return Ok(turns) };
            now = end;
            // All tasks that end at the same time are ended before the gates are applied, so that their order does not
            // matter.
            while let Some((_, key)) = running.first().copied().filter(|(end, _)| *end == now) {
                running.remove(&(now, key));
                self.end(board, key)?;
            }
            board.settle()?;
            for key in board.take_touched() {
                let node = board.nodes[&key];
                self.add(&mut ready, &node);
            }
        }
    }

    fn start(
        &self,
        board: &mut ForecastTasks<'_>,
        running: &mut BTreeSet<(u64, Key)>,
        turns: &mut Vec<Turn>,
        key: Key,
        now: u64,
    ) -> ViewResult<()> {
        let node = board.nodes[&key];
        let end = now + (self.takes)(&node, board.items.get(&key).copied().flatten());
        board.set_status_kind(key, StatusKind::InProgress)?;
        running.insert((end, key));
        turns.push(Turn { key, start: now, end });
        Ok(())
    }

    fn end(&self, board: &mut ForecastTasks<'_>, key: Key) -> ViewResult<()> {
        let failure = (self.fails)(key);
        if let Some(wait) = (self.waits)(key).filter(|_| failure.is_none()) {
            // The task stays in progress, and the run ends without it.
            board.waits.insert(key, wait.clone());
            return Ok(());
        }
        if let Some(why) = failure {
            board.failures.insert(key, why.to_owned());
        }
        board.set_status_kind(key, if failure.is_some() { StatusKind::Failed } else { StatusKind::Done })
    }

    fn add(&self, ready: &mut BTreeSet<QueueOrder>, node: &Node) {
        if node.is_ready() && node.work == Work::Calls && (self.may_take)(node.key) {
            let rank = Reverse(self.ranks.get(&node.key).copied().unwrap_or(0));
            ready.insert((node.priority, node.due, rank, node.key));
        }
    }
}
