//! The graph of tasks: entry and exit of each, with dense integer ids, on petgraph.
//!
//! A task's exit comes after its entry; its entry after the exits of its dependencies and the entry of the task above; its exit
//! after the exits of its subtasks.

use std::collections::BTreeMap;

use petgraph::Direction;
use petgraph::algo::{kosaraju_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};

use crate::Key;
use crate::gate::Entry;
use crate::record::Node;
use crate::view::{View, ViewError};

/// The edges between tasks, without their texts.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    points: DiGraph<(), (), u32>,
    keys: Vec<Key>,
    positions: BTreeMap<Key, u32>,
}

impl Graph {
    /// Loads the graph of the tasks that `keep` admits.
    ///
    /// # Errors
    /// The view cannot be read.
    pub fn load(view: &dyn View, keep: &dyn Fn(Key) -> bool) -> Result<Self, ViewError> {
        let mut parents = Vec::new();
        let mut graph = Self::default();
        view.each_node(&mut |node: Node| {
            if keep(node.key) {
                graph.add_task(node.key);
                parents.extend(node.parent.map(|parent| (node.key, parent)));
            }
        })?;
        for (task, parent) in parents {
            graph.add_subtask(task, parent);
        }
        view.each_dependency(&mut |task, on| graph.add_dependency(task, on))?;
        Ok(graph)
    }

    /// Adds a task.
    #[expect(clippy::missing_panics_doc, reason = "a bug of ours, never of the caller")]
    pub fn add_task(&mut self, key: Key) {
        let position = u32::try_from(self.keys.len()).expect("BUG: keys are 32 bits wide");
        self.keys.push(key);
        self.positions.insert(key, position);
        let (entry, exit) = (self.points.add_node(()), self.points.add_node(()));
        self.points.add_edge(entry, exit, ());
    }

    /// Adds a dependency between tasks of the graph; others are left out.
    pub fn add_dependency(&mut self, task: Key, on: Key) {
        if let (Some(task), Some(on)) = (self.position(task), self.position(on)) {
            self.points.add_edge(exit_of(on), entry_of(task), ());
        }
    }

    /// Puts a task of the graph below another.
    pub fn add_subtask(&mut self, task: Key, parent: Key) {
        if let (Some(task), Some(parent)) = (self.position(task), self.position(parent)) {
            self.points.add_edge(entry_of(parent), entry_of(task), ());
            self.points.add_edge(exit_of(task), exit_of(parent), ());
        }
    }

    fn position(&self, key: Key) -> Option<u32> {
        self.positions.get(&key).copied()
    }

    /// Returns the length of the longest path from the start of each task to the end, weighed by `weight`; a circle gives
    /// nothing.
    ///
    /// This is the upward rank of list scheduling: what has the longest way to go is taken first.
    pub fn ranks(&self, weight: &dyn Fn(Key) -> u64) -> BTreeMap<Key, u64> {
        let Ok(order) = toposort(&self.points, None) else { return BTreeMap::new() };
        let mut ranks = vec![0_u64; self.points.node_count()];
        for point in order.into_iter().rev() {
            let after = self.points.neighbors_directed(point, Direction::Outgoing);
            let longest = after.map(|next| ranks[next.index()]).max().unwrap_or(0);
            let is_exit = point.index() % 2 == 1;
            // The work of a task lies before its exit, and so after everything below it.
            let own = if is_exit { weight(self.keys[point.index() / 2]) } else { 0 };
            ranks[point.index()] = longest.saturating_add(own);
        }
        self.keys.iter().enumerate().map(|(position, key)| (*key, ranks[2 * position])).collect()
    }

    /// Returns the tasks of a circle, if there is one.
    pub fn find_cycle(&self) -> Option<Vec<Key>> {
        // Neither search recurses: a chain may be longer than the stack is deep.
        toposort(&self.points, None).err()?;
        let circle = kosaraju_scc(&self.points).into_iter().find(|component| component.len() > 1)?;
        let mut keys: Vec<Key> = circle.into_iter().map(|point| self.keys[point.index() / 2]).collect();
        keys.sort();
        keys.dedup();
        Some(keys)
    }
}

fn entry_of(position: u32) -> NodeIndex<u32> {
    NodeIndex::new(2 * position as usize)
}

fn exit_of(position: u32) -> NodeIndex<u32> {
    NodeIndex::new(2 * position as usize + 1)
}

/// Derives the counts, entries and gates of all nodes anew from their phases and edges.
///
/// The nodes give key, parent, phase, work, trigger, `undecided`, priority and due date; everything else is overwritten. Every
/// parent and every end of an edge must be among the nodes.
pub fn rebuild_nodes<'a>(
    nodes: &mut BTreeMap<Key, Node>,
    dependencies: impl IntoIterator<Item = &'a (Key, Key)>,
) {
    let phases: BTreeMap<Key, _> = nodes.iter().map(|(key, node)| (*key, node.phase)).collect();
    for node in nodes.values_mut() {
        node.gate.dependencies = crate::DependencyCounts::default();
        node.gate.subtasks = crate::SubtaskCounts::default();
        node.gate.entry = Entry::Open;
    }
    for (task, on) in dependencies {
        if let (Some(node), Some(phase)) = (nodes.get_mut(task), phases.get(on)) {
            *node.gate.dependencies.of(phase.outcome()) += 1;
        }
    }
    let mut below: BTreeMap<Key, Vec<Key>> = BTreeMap::new();
    let parents: Vec<_> = nodes.values().filter_map(|node| Some((node.key, node.parent?))).collect();
    for (key, parent) in parents {
        below.entry(parent).or_default().push(key);
        if let Some(node) = nodes.get_mut(&parent) {
            *crate::draft::subtask_count(node, phases[&key]) += 1;
        }
    }
    let mut queue: Vec<Key> =
        nodes.values().filter(|node| node.parent.is_none()).map(|node| node.key).collect();
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
    fn circles_are_found_in_a_chain_longer_than_the_stack_is_deep() {
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
