//! The task graph: an entry and an exit point for each task, on petgraph with dense integer ids.
//!
//! The exit of a task comes after its entry and after the exits of its subtasks. The entry comes after the exits of its
//! dependencies and the entry of its parent.

use std::collections::BTreeMap;

use petgraph::Direction;
use petgraph::algo::{kosaraju_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};

use crate::task::gate::Entry;
use crate::task::record::Node;
use crate::value::{Key, KeyMap};
use crate::view::{View, ViewError};

/// The edges between tasks.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    points: DiGraph<(), (), u32>,
    keys: Vec<Key>,
    /// The duration of each task's own work.
    weights: Vec<u64>,
    positions: KeyMap<u32>,
}

/// The distance of a task from the start and to the end of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// The longest path from the start of the graph to the start of the task's work.
    pub before: u64,
    /// The longest path from the start of the task's work to the end of the graph.
    pub after: u64,
}

impl Graph {
    /// Loads the graph of the tasks for which `weigh` returns a weight: the duration of their work.
    ///
    /// # Errors
    /// The view cannot be read.
    pub fn load(view: &dyn View, weigh: &dyn Fn(&Node) -> Option<u64>) -> Result<Self, ViewError> {
        let mut parents = Vec::new();
        let mut graph = Self::default();
        view.each_node(&mut |node: Node| {
            if let Some(weight) = weigh(&node) {
                graph.add_weighted(node.key, weight);
                parents.extend(node.parent.map(|parent| (node.key, parent)));
            }
        })?;
        for (task, parent) in parents {
            graph.add_subtask(task, parent);
        }
        view.each_dependency(&mut |task, on| graph.add_dependency(task, on))?;
        Ok(graph)
    }

    /// Adds a task with the weight 1.
    pub fn add_task(&mut self, key: Key) {
        self.add_weighted(key, 1);
    }

    /// Adds a task with the duration of its work.
    #[expect(clippy::missing_panics_doc, reason = "a bug of ours, never of the caller")]
    pub fn add_weighted(&mut self, key: Key, weight: u64) {
        let position = u32::try_from(self.keys.len()).expect("BUG: keys are 32 bits wide");
        self.keys.push(key);
        self.weights.push(weight);
        self.positions.insert(key, position);
        let (entry, exit) = (self.points.add_node(()), self.points.add_node(()));
        self.points.add_edge(entry, exit, ());
    }

    /// Adds a dependency. Tasks that are not in the graph are ignored.
    pub fn add_dependency(&mut self, task: Key, on: Key) {
        if let (Some(task), Some(on)) = (self.position(task), self.position(on)) {
            self.points.add_edge(exit_of(on), entry_of(task), ());
        }
    }

    /// Makes a task a subtask of another. Tasks that are not in the graph are ignored.
    pub fn add_subtask(&mut self, task: Key, parent: Key) {
        if let (Some(task), Some(parent)) = (self.position(task), self.position(parent)) {
            self.points.add_edge(entry_of(parent), entry_of(task), ());
            self.points.add_edge(exit_of(task), exit_of(parent), ());
        }
    }

    /// Returns the duration of a task's work; 0 for a task that is not in the graph.
    pub fn weight(&self, key: Key) -> u64 {
        self.position(key).map_or(0, |position| self.weights[position as usize])
    }

    /// Returns the number of tasks with work, and the sum of their durations.
    pub fn work(&self) -> (usize, u64) {
        let count = self.weights.iter().filter(|weight| **weight > 0).count();
        (count, self.weights.iter().fold(0, |sum, weight| sum.saturating_add(*weight)))
    }

    /// Returns the points: the entry of the task at `p` is `2 p`, its exit `2 p + 1`.
    pub(crate) fn points(&self) -> &DiGraph<(), (), u32> {
        &self.points
    }

    /// Returns the tasks in the order in which they were added.
    pub(crate) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Returns the duration of each task's work, in the same order.
    pub(crate) fn weights(&self) -> &[u64] {
        &self.weights
    }

    fn position(&self, key: Key) -> Option<u32> {
        self.positions.get(&key).copied()
    }

    /// Returns the length of the longest path from the start of each task to the end. A cycle gives an empty result.
    ///
    /// This is the upward rank of list scheduling: tasks with the longest way to go are taken first.
    pub fn ranks(&self) -> KeyMap<u64> {
        let Ok(order) = toposort(&self.points, None) else { return KeyMap::default() };
        let ranks = self.lengths(order.into_iter().rev(), Direction::Outgoing);
        self.keys.iter().enumerate().map(|(position, key)| (*key, ranks[2 * position])).collect()
    }

    /// Returns the reach of each task. A cycle gives an empty result.
    pub fn reaches(&self) -> BTreeMap<Key, Reach> {
        let Ok(order) = toposort(&self.points, None) else { return BTreeMap::new() };
        let before = self.lengths(order.iter().copied(), Direction::Incoming);
        let after = self.lengths(order.into_iter().rev(), Direction::Outgoing);
        // The exit is where the work of a task ends.
        let reach = |position: usize| Reach {
            before: before[2 * position + 1] - self.weights[position],
            after: after[2 * position + 1],
        };
        self.keys.iter().enumerate().map(|(position, key)| (*key, reach(position))).collect()
    }

    /// Returns the tasks of the longest path in order, without those that have no work. A cycle gives an empty result.
    pub fn longest_path(&self) -> Vec<Key> {
        let Ok(order) = toposort(&self.points, None) else { return Vec::new() };
        let lengths = self.lengths(order.iter().copied().rev(), Direction::Outgoing);
        let longest = |points: &mut dyn Iterator<Item = NodeIndex<u32>>| {
            points.max_by_key(|point| (lengths[point.index()], std::cmp::Reverse(*point)))
        };
        let mut path = Vec::new();
        let mut next = longest(&mut order.into_iter());
        while let Some(point) = next {
            let position = point.index() / 2;
            if is_exit(point) && self.weights[position] > 0 {
                path.push(self.keys[position]);
            }
            next = longest(&mut self.points.neighbors_directed(point, Direction::Outgoing));
        }
        path
    }

    /// Returns the longest path from each point in the given direction, including the point itself.
    ///
    /// `order` must list each point after the points that follow it in that direction.
    fn lengths(&self, order: impl Iterator<Item = NodeIndex<u32>>, direction: Direction) -> Vec<u64> {
        let mut lengths = vec![0_u64; self.points.node_count()];
        for point in order {
            let on = self.points.neighbors_directed(point, direction);
            let longest = on.map(|next| lengths[next.index()]).max().unwrap_or(0);
            // The work of a task lies before its exit, and so after all its subtasks.
            let own = if is_exit(point) { self.weights[point.index() / 2] } else { 0 };
            lengths[point.index()] = longest.saturating_add(own);
        }
        lengths
    }

    /// Returns the tasks of a cycle, if there is one.
    pub fn find_cycle(&self) -> Option<Vec<Key>> {
        self.find_cycles().into_iter().next()
    }

    /// Returns the tasks of all cycles. Cycles that share a task count as one.
    pub fn find_cycles(&self) -> Vec<Vec<Key>> {
        // Neither search recurses: a chain may be longer than the stack allows.
        if toposort(&self.points, None).is_ok() {
            return Vec::new();
        }
        // Every cycle has two points or more, even that of a task which depends on itself: its exit leads to its entry.
        let circles = kosaraju_scc(&self.points).into_iter().filter(|component| component.len() > 1);
        let keys_of = |circle: Vec<NodeIndex<u32>>| {
            let mut keys: Vec<Key> = circle.into_iter().map(|point| self.keys[point.index() / 2]).collect();
            keys.sort();
            keys.dedup();
            keys
        };
        circles.map(keys_of).collect()
    }
}

fn is_exit(point: NodeIndex<u32>) -> bool {
    point.index() % 2 == 1
}

fn entry_of(position: u32) -> NodeIndex<u32> {
    NodeIndex::new(2 * position as usize)
}

fn exit_of(position: u32) -> NodeIndex<u32> {
    NodeIndex::new(2 * position as usize + 1)
}

/// Computes the counts, entries and gates of all nodes from their status kinds and edges.
///
/// Key, parent, status kind, work, trigger, `undecided`, priority and due date are inputs; everything else is overwritten.
/// Every parent and both ends of every edge must be among the nodes.
pub fn rebuild_nodes<'a>(
    nodes: &mut BTreeMap<Key, Node>,
    dependencies: impl IntoIterator<Item = &'a (Key, Key)>,
) {
    let status_kinds: BTreeMap<Key, _> = nodes.iter().map(|(key, node)| (*key, node.status_kind)).collect();
    for node in nodes.values_mut() {
        node.gate.dependencies = crate::task::DependencyCounts::default();
        node.gate.subtasks = crate::task::SubtaskCounts::default();
        node.gate.entry = Entry::Open;
    }
    for (task, on) in dependencies {
        if let (Some(node), Some(status_kind)) = (nodes.get_mut(task), status_kinds.get(on)) {
            *node.gate.dependencies.of(status_kind.outcome()) += 1;
        }
    }
    let mut below: BTreeMap<Key, Vec<Key>> = BTreeMap::new();
    let parents: Vec<_> = nodes.values().filter_map(|node| Some((node.key, node.parent?))).collect();
    for (key, parent) in parents {
        below.entry(parent).or_default().push(key);
        if let Some(node) = nodes.get_mut(&parent) {
            *crate::rules::settle::subtask_count(node, status_kinds[&key]) += 1;
        }
    }
    let mut queue: Vec<Key> =
        nodes.values().filter(|node| node.parent.is_none()).map(|node| node.key).collect();
    // Parents come before their subtasks, because `opens` of the parent is the `entry` of the subtask.
    while let Some(key) = queue.pop() {
        let Some(node) = nodes.get_mut(&key) else { continue };
        node.gate_state = node.gate.state();
        node.opens = node.derive_opens();
        let opens = node.opens;
        for subtask in below.remove(&key).unwrap_or_default() {
            if let Some(node) = nodes.get_mut(&subtask) {
                node.gate.entry = opens;
            }
            queue.push(subtask);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u32 = 100_000;

    fn chain() -> Graph {
        let mut graph = Graph::default();
        (0..LENGTH).for_each(|n| graph.add_task(Key(n)));
        (1..LENGTH).for_each(|n| graph.add_dependency(Key(n), Key(n - 1)));
        graph
    }

    #[test]
    fn the_work_of_a_parent_counts_after_its_subtasks() {
        let mut graph = Graph::default();
        for (key, weight) in [(0, 5), (1, 10), (2, 7), (3, 1), (4, 100)] {
            graph.add_weighted(Key(key), weight);
        }
        // Task 1, with 2 below it, comes after 0, and 3 after both. Task 4 is independent.
        graph.add_subtask(Key(2), Key(1));
        graph.add_dependency(Key(1), Key(0));
        graph.add_dependency(Key(3), Key(1));
        let ranks: Vec<u64> = graph.ranks().into_values().collect();
        assert_eq!(ranks, [23, 18, 18, 1, 100]);
        assert_eq!(graph.longest_path(), [Key(4)]);
        graph.add_dependency(Key(4), Key(2));
        assert_eq!(graph.longest_path(), [Key(0), Key(2), Key(4)]);
        let reaches = graph.reaches();
        assert_eq!(reaches[&Key(1)], Reach { before: 12, after: 11 });
        assert_eq!(reaches[&Key(4)], Reach { before: 12, after: 100 });
    }

    #[test]
    fn cycles_are_found_in_chains_deeper_than_the_stack() {
        let search = || {
            let mut graph = chain();
            assert_eq!(graph.find_cycle(), None);
            graph.add_dependency(Key(0), Key(LENGTH - 1));
            assert_eq!(graph.find_cycle().map(|keys| keys.len()), Some(LENGTH as usize));
        };
        let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(search).unwrap();
        thread.join().unwrap();
    }
}
