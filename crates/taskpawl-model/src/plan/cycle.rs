//! Finds cycles among the tasks of a plan.
//!
//! Every task is two nodes, an entry and an exit, because a task with subtasks starts before them and ends after them.
//! The search is iterative, because chains of thousands of tasks are common.

use std::collections::{HashMap, HashSet, VecDeque};

use petgraph::Direction;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

type Graph = DiGraph<(), ()>;

/// Returns one cycle of each group of tasks that wait for each other. Each task waits for the next one, and the last
/// equals the first.
pub(super) fn find(parents: &[Option<usize>], needs: &[Vec<(usize, usize)>]) -> Vec<Vec<usize>> {
    let graph = graph(parents, needs);
    let mut cycles: Vec<Vec<usize>> = kosaraju_scc(&graph)
        .into_iter()
        // Subtasks in a cycle produce two groups, one of entries and one of exits. The second is enough.
        .filter(|group| group.len() > 1 && group.iter().any(|node| is_exit(*node)))
        .map(|group| shortest(&graph, &group))
        .collect();
    cycles.sort();
    cycles
}

fn entry(task: usize) -> NodeIndex {
    NodeIndex::new(2 * task)
}

fn exit(task: usize) -> NodeIndex {
    NodeIndex::new(2 * task + 1)
}

fn is_exit(node: NodeIndex) -> bool {
    node.index() % 2 == 1
}

/// Returns the graph with an edge from each node to the nodes that come after it.
fn graph(parents: &[Option<usize>], needs: &[Vec<(usize, usize)>]) -> Graph {
    let mut graph = Graph::with_capacity(2 * parents.len(), 4 * parents.len());
    for _ in 0..2 * parents.len() {
        graph.add_node(());
    }
    for (task, (parent, needs)) in parents.iter().zip(needs).enumerate() {
        graph.add_edge(entry(task), exit(task), ());
        for (needed, _) in needs {
            graph.add_edge(exit(*needed), entry(task), ());
        }
        if let Some(parent) = *parent {
            graph.add_edge(entry(parent), entry(task), ());
            graph.add_edge(exit(task), exit(parent), ());
        }
    }
    graph
}

/// Returns the shortest cycle through the first task of a group, as tasks.
fn shortest(graph: &Graph, group: &[NodeIndex]) -> Vec<usize> {
    let members: HashSet<NodeIndex> = group.iter().copied().collect();
    // The smallest node makes the result deterministic: the order of the group depends on the algorithm.
    let start = group.iter().copied().min().expect("BUG: a group without nodes");
    let mut came_from: HashMap<NodeIndex, NodeIndex> = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for before in graph.neighbors_directed(node, Direction::Incoming).filter(|n| members.contains(n)) {
            if before == start {
                return tasks_of(start, node, &came_from);
            }
            came_from.entry(before).or_insert_with(|| {
                queue.push_back(before);
                node
            });
        }
    }
    unreachable!("BUG: no circle in a group of nodes that reach each other")
}

/// Returns the tasks on the way from `start` to `last` and back to `start`.
fn tasks_of(start: NodeIndex, last: NodeIndex, came_from: &HashMap<NodeIndex, NodeIndex>) -> Vec<usize> {
    let mut nodes = vec![start, last];
    while let Some(node) = came_from.get(&nodes[nodes.len() - 1]) {
        nodes.push(*node);
    }
    let mut tasks: Vec<usize> = nodes.iter().rev().map(|node| node.index() / 2).collect();
    tasks.push(start.index() / 2);
    tasks.dedup();
    tasks
}
