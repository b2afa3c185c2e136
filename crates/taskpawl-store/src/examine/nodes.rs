//! Compares stored nodes with the tasks and edges that they are derived from.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl_model::rules::{Graph, rebuild_nodes};
use taskpawl_model::task::{GateState, Node, Status, StatusKind, Work};
use taskpawl_model::value::{Key, TaskId};
use taskpawl_model::view::{View, ViewResult};

use crate::derived::node_of;
use crate::examine::diagnostic::{Diagnostic, Diagnostics, Severity};

/// The nodes derived from tasks and edges.
pub(crate) struct Derived {
    /// The derived nodes, by key. These are the values that the store should contain.
    pub(crate) nodes: BTreeMap<Key, Node>,
    ids: BTreeMap<Key, TaskId>,
}

impl Derived {
    /// Derives all nodes from tasks, calls, dependencies and `parents`. Parents are an argument because the
    /// store has them in no other column. Tasks that are missing or unreadable are left out; other checks
    /// report them.
    pub(crate) fn new(view: &dyn View, parents: &BTreeMap<Key, Option<Key>>) -> ViewResult<Self> {
        let above: BTreeSet<Key> = parents.values().flatten().copied().collect();
        let (mut nodes, mut ids) = (BTreeMap::new(), BTreeMap::new());
        for (key, parent) in parents {
            let Ok(Some(record)) = view.task(*key) else { continue };
            let Ok(calls) = view.calls(*key) else { continue };
            let mut node = node_of(*key, &record, &calls, above.contains(key));
            node.parent = parent.filter(|parent| parents.contains_key(parent));
            nodes.insert(*key, node);
            ids.insert(*key, record.id);
        }
        let edges = edges(view, &nodes)?;
        rebuild_nodes(&mut nodes, &edges);
        Ok(Self { nodes, ids })
    }

    /// Returns the name of a task for a diagnostic.
    fn place(&self, key: Key) -> String {
        self.ids.get(&key).map_or_else(|| format!("task number {}", key.0), |id| format!("task `{id}`"))
    }
}

fn edges(view: &dyn View, nodes: &BTreeMap<Key, Node>) -> ViewResult<Vec<(Key, Key)>> {
    let mut edges = Vec::new();
    view.each_dependency(&mut |task, on| edges.push((task, on)))?;
    edges.retain(|(task, on)| nodes.contains_key(task) && nodes.contains_key(on));
    Ok(edges)
}

/// Compares the stored nodes in `kept` with the derived ones. Also checks for gates that have not taken
/// effect, wrong counters and dependency cycles.
pub(crate) fn check_nodes(
    view: &dyn View,
    derived: &Derived,
    kept: &BTreeMap<Key, Option<Node>>,
) -> ViewResult<Vec<Diagnostic>> {
    let rebuild = "recompute it from the tasks and their dependencies";
    let mut wrong = Diagnostics::new("node", Severity::Repairable, rebuild);
    let mut gates = Diagnostics::new("gate", Severity::Repairable, "apply the gate");
    for (key, node) in &derived.nodes {
        match kept.get(key) {
            Some(Some(kept)) if node.is_as_kept(kept) => {}
            Some(Some(kept)) => wrong.add(derived.place(*key), difference(kept, node)),
            _ => wrong.add(derived.place(*key), "the inputs of its gate are unreadable"),
        }
        if !is_settled(node) {
            gates.add(
                derived.place(*key),
                format!("it is {}, but its gate is {}", node.status_kind, node.gate_state),
            );
        }
    }
    let mut found = wrong.finish();
    found.extend(gates.finish());
    found.extend(check_counts(view, derived)?);
    found.extend(check_order(view, derived)?);
    Ok(found)
}

fn difference(kept: &Node, node: &Node) -> String {
    let fields = [
        ("the state", kept.status_kind != node.status_kind),
        ("the counts of its gate", kept.gate != node.gate),
        ("the state of its gate", kept.gate_state != node.gate_state),
        ("whether its subtasks may start", kept.opens != node.opens),
        ("the parent", kept.parent != node.parent),
        ("the kind of its work", kept.work != node.work),
        ("its position in the order", (kept.priority, kept.due) != (node.priority, node.due)),
    ];
    let wrong: Vec<_> = fields.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
    format!("stored data does not match the tasks: {}", wrong.join(", "))
}

/// Returns whether the gate has taken effect. Every commit settles the gates that it changes, so an open one
/// is a fault.
fn is_settled(node: &Node) -> bool {
    match (node.status_kind, node.gate_state) {
        (StatusKind::Todo, GateState::Block | GateState::Skip) => false,
        (StatusKind::Todo, GateState::Ready) => node.work != Work::Automatic,
        (StatusKind::BlockedDependency, state) => state == GateState::Block,
        _ => true,
    }
}

fn check_counts(view: &dyn View, derived: &Derived) -> ViewResult<Vec<Diagnostic>> {
    let mut counted: BTreeMap<Status, u64> = Status::ALL.iter().map(|status| (*status, 0)).collect();
    for node in derived.nodes.values() {
        *counted.entry(node.status_kind.status()).or_default() += 1;
    }
    let mut found = Diagnostics::new("counters", Severity::Repairable, "recount");
    for (status, kept) in view.counts()? {
        let counted = counted[&status];
        if kept != counted {
            found.add("the store", format!("it counts {kept} tasks as {status}, but {counted} are"));
        }
    }
    let next = view.next_key()?;
    if let Some((last, _)) = derived.nodes.last_key_value().filter(|(last, _)| **last >= next) {
        found.add(
            "the store",
            format!("the next task would get the key {}, but {} is already used", next.0, last.0),
        );
    }
    Ok(found.finish())
}

fn check_order(view: &dyn View, derived: &Derived) -> ViewResult<Vec<Diagnostic>> {
    let mut graph = Graph::default();
    derived.nodes.keys().for_each(|key| graph.add_task(*key));
    for node in derived.nodes.values() {
        if let Some(parent) = node.parent {
            graph.add_subtask(node.key, parent);
        }
    }
    edges(view, &derived.nodes)?.into_iter().for_each(|(task, on)| graph.add_dependency(task, on));
    let Some(circle) = graph.find_cycle() else { return Ok(Vec::new()) };
    let tasks: Vec<_> = circle.iter().map(|key| derived.place(*key)).collect();
    let message = format!("dependency cycle: {}", tasks.join(", "));
    let remedy = "break the cycle with `taskpawl remove-dependency`";
    Ok(vec![Diagnostic::new("circle", Severity::Damage, "the store", message, remedy)])
}
