//! Ranks of tasks: the distance of each task to the end, in milliseconds. Tasks with the longest way to go start first.
//! If the number of slots is known, the ranks include the waits of a [simulated schedule](crate::run::simulated_schedule).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::rules::Graph;
use crate::run::simulated_schedule::Turn;
use crate::task::record::{Node, Work};
use crate::value::{Key, KeyMap};
use crate::view::durations::Durations;
use crate::view::{View, ViewResult};

/// The run that takes ready tasks.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunnerLimits {
    /// The number of calls that it runs at once; `None` if unknown.
    pub(crate) jobs: Option<usize>,
    /// The tasks of its scope; `None` for all tasks.
    pub(crate) scope: Option<Arc<BTreeSet<Key>>>,
}

/// The graph of all tasks with their durations, and the way in which a run takes them.
pub(crate) struct Lengths {
    graph: Graph,
    turns: BTreeMap<Key, Turn>,
    is_timed: bool,
    jobs: Option<usize>,
}

impl Lengths {
    pub(crate) fn load(view: &dyn View, durations: &Durations, taker: &RunnerLimits) -> ViewResult<Self> {
        let turns = RefCell::new(BTreeMap::new());
        let weigh = |node: &Node| {
            if node.status_kind.status().is_finished() {
                return Some(0);
            }
            let turn = taker.turn(node);
            if turn != Turn::default() {
                turns.borrow_mut().insert(node.key, turn);
            }
            Some(durations.of_node(node).0)
        };
        let graph = Graph::load(view, &weigh)?;
        Ok(Self { graph, turns: turns.into_inner(), is_timed: !durations.is_empty(), jobs: taker.jobs })
    }

    /// Returns the longest way from each task to the end.
    pub(crate) fn longest_ways(&self) -> KeyMap<u64> {
        self.graph.ranks()
    }

    /// Returns the ranks by which tasks are taken. Without any known duration a simulation would be pointless.
    pub(crate) fn ranks(&self) -> KeyMap<u64> {
        match self.jobs {
            Some(jobs) if self.is_timed => self.graph.rehearsed_ranks(jobs, &self.turns),
            Some(_) | None => self.graph.ranks(),
        }
    }
}

impl RunnerLimits {
    fn turn(&self, node: &Node) -> Turn {
        let is_inside = self.scope.as_ref().is_none_or(|scope| scope.contains(&node.key));
        let takes_place = is_inside && node.work == Work::Calls;
        Turn { takes_place, priority: node.priority, due: node.due }
    }
}

/// The ranks of all tasks, including those added later.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ranks {
    /// The ranks of the tasks that existed when all were read; `None` until they are needed.
    known: Option<Arc<KeyMap<u64>>>,
    late: KeyMap<u64>,
    taker: RunnerLimits,
    /// The duration of a task without a measurement or an estimate.
    typical: u64,
}

impl Ranks {
    /// Returns empty ranks.
    pub(crate) fn new(taker: RunnerLimits) -> Self {
        Self { taker, ..Self::default() }
    }

    /// Computes the ranks of all tasks.
    pub(crate) fn load(&mut self, view: &dyn View) -> ViewResult<()> {
        let durations = Durations::load(view)?;
        self.known = Some(Arc::new(Lengths::load(view, &durations, &self.taker)?.ranks()));
        self.typical = durations.typical();
        Ok(())
    }

    /// Returns the ranks of the tasks that existed when all were read.
    pub(crate) fn known(&self) -> Arc<KeyMap<u64>> {
        self.known.clone().unwrap_or_default()
    }

    /// Returns whether the rank of some task is unknown.
    pub(crate) fn lacks(&self, nodes: &[Node]) -> bool {
        nodes.iter().any(|node| self.of(node.key).is_none())
    }

    fn of(&self, key: Key) -> Option<u64> {
        let known = self.known.as_ref().and_then(|known| known.get(&key));
        known.or_else(|| self.late.get(&key)).copied()
    }

    /// Computes the ranks of tasks that were added later, with those of related new tasks. Returns the new ranks.
    pub(crate) fn add(&mut self, view: &dyn View, nodes: &[Node]) -> ViewResult<KeyMap<u64>> {
        if self.known.is_none() {
            self.load(view)?;
            return Ok(self.known().as_ref().clone());
        }
        let mut graph = Graph::default();
        let mut edges = Vec::new();
        let mut seen = BTreeSet::new();
        let mut queue: Vec<Key> = nodes.iter().map(|node| node.key).collect();
        while let Some(key) = queue.pop() {
            if !seen.insert(key) {
                continue;
            }
            if let Some(rank) = self.of(key) {
                // Its rank already includes everything behind it.
                graph.add_weighted(key, rank);
                continue;
            }
            graph.add_weighted(key, self.weight(view, key)?);
            // The end of the parent comes after the task, like a dependent.
            let above = view.node(key)?.and_then(|node| node.parent);
            for after in view.dependents(key)?.into_iter().chain(above) {
                edges.push((after, key));
                queue.push(after);
            }
            queue.extend(view.subtasks(key)?);
        }
        for (task, on) in edges {
            graph.add_dependency(task, on);
        }
        let mut late = graph.ranks();
        late.retain(|key, _| self.of(*key).is_none());
        self.late.extend(late.iter().map(|(key, rank)| (*key, *rank)));
        Ok(late)
    }

    fn weight(&self, view: &dyn View, key: Key) -> ViewResult<u64> {
        let task = view.task(key)?;
        let known = task.and_then(|task| task.body.progress.took.or(task.spec.estimate));
        Ok(known.map_or(self.typical, crate::view::durations::millis))
    }
}
