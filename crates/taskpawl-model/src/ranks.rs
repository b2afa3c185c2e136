//! Ranks: how long it is from each task to the end of everything, in milliseconds. What has the longest way to go starts first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::durations::Durations;
use crate::record::Node;
use crate::view::{View, ViewResult};
use crate::{Graph, Key};

/// The ranks of all tasks, and of those that came later.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ranks {
    /// Of the tasks that were there when it was looked at all of them; `None` as long as nobody needed to know.
    known: Option<Arc<BTreeMap<Key, u64>>>,
    late: BTreeMap<Key, u64>,
    /// How long a task takes of which nothing is known.
    typical: u64,
}

impl Ranks {
    /// Looks at everything.
    pub(crate) fn load(view: &dyn View) -> ViewResult<Self> {
        let durations = Durations::load(view)?;
        let weigh = |node: &Node| {
            let is_over = node.phase.status().is_finished();
            Some(if is_over { 0 } else { durations.of_node(node).0 })
        };
        let known = Graph::load(view, &weigh)?.ranks();
        Ok(Self { known: Some(Arc::new(known)), late: BTreeMap::new(), typical: durations.typical() })
    }

    /// Returns the ranks of the tasks that were there from the beginning.
    pub(crate) fn known(&self) -> Arc<BTreeMap<Key, u64>> {
        self.known.clone().unwrap_or_default()
    }

    /// Returns whether the rank of a task is not known.
    pub(crate) fn lacks(&self, nodes: &[Node]) -> bool {
        nodes.iter().any(|node| self.of(node.key).is_none())
    }

    fn of(&self, key: Key) -> Option<u64> {
        let known = self.known.as_ref().and_then(|known| known.get(&key));
        known.or_else(|| self.late.get(&key)).copied()
    }

    /// Finds the ranks of tasks that came later, and of what came with them; returns those that are new.
    pub(crate) fn add(&mut self, view: &dyn View, nodes: &[Node]) -> ViewResult<BTreeMap<Key, u64>> {
        if self.known.is_none() {
            *self = Self::load(view)?;
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
                // What lies behind it is in its rank already.
                graph.add_weighted(key, rank);
                continue;
            }
            graph.add_weighted(key, self.weight(view, key)?);
            // The end of the task above comes after it, like a dependent.
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
        Ok(known.map_or(self.typical, crate::durations::millis))
    }
}
