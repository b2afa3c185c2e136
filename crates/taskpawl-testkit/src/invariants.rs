use std::collections::BTreeMap;

use taskpawl_model::rules::rebuild_nodes;
use taskpawl_model::task::{CallStatus, Node, Status, StatusKind, TaskStatus};
use taskpawl_model::value::Key;
use taskpawl_model::view::{View, ViewResult};

/// Returns the contradictions in a store, one per line: derived columns and counts that do not follow from tasks and
/// edges.
pub fn broken_invariants(view: &dyn View) -> ViewResult<Vec<String>> {
    let (mut kept, mut edges) = (BTreeMap::new(), Vec::new());
    view.each_node(&mut |node| {
        kept.insert(node.key, node);
    })?;
    view.each_dependency(&mut |task, on| edges.push((task, on)))?;
    let mut derived = kept.clone();
    rebuild_nodes(&mut derived, &edges);
    let mut broken = Vec::new();
    for (key, node) in &kept {
        if derived[key] != *node {
            broken.push(format!("kept {node:?}, derived {:?}", derived[key]));
        }
        broken.extend(unsettled(node));
    }
    broken.extend(wrong_states(view, &kept)?);
    Ok(broken)
}

/// Returns an error for a node whose gate has not taken effect. Gates take effect in the commit that changes them.
fn unsettled(node: &Node) -> Option<String> {
    use taskpawl_model::task::{GateState as G, Work};
    let is_settled = match (node.status_kind, node.gate_state) {
        (StatusKind::Todo, G::Block | G::Skip) => false,
        (StatusKind::Todo, G::Ready) => node.work != Work::Automatic,
        (StatusKind::BlockedDependency, state) => state == G::Block,
        _ => true,
    };
    (!is_settled).then(|| format!("not settled: {node:?}"))
}

fn wrong_states(view: &dyn View, nodes: &BTreeMap<Key, Node>) -> ViewResult<Vec<String>> {
    let (mut broken, mut counts) = (Vec::new(), BTreeMap::<Status, u64>::new());
    let mut leases = Vec::new();
    for (key, node) in nodes {
        let Some(task) = view.task(*key)? else {
            broken.push(format!("no task {key:?}"));
            continue;
        };
        if StatusKind::of(&task.body.state) != node.status_kind {
            broken.push(format!("`{}` is {:?}, its node {}", task.id, task.body.state, node.status_kind));
        }
        if let TaskStatus::InProgress { claim } = &task.body.state
            && claim.lease_until.is_some()
        {
            leases.push(*key);
        }
        *counts.entry(task.body.state.status()).or_default() += 1;
    }
    if view.leases(None)? != leases {
        broken.push(format!("kept the leases {:?}, found {leases:?}", view.leases(None)?));
    }
    let mut running = Vec::new();
    for key in nodes.keys() {
        if view.calls(*key)?.iter().any(|call| call.body.status == CallStatus::Running) {
            running.push(*key);
        }
    }
    if view.running()? != running {
        broken.push(format!("kept the running {:?}, found {running:?}", view.running()?));
    }
    let mut kept = view.counts()?;
    kept.retain(|_, count| *count > 0);
    if kept != counts {
        broken.push(format!("kept the counts {kept:?}, counted {counts:?}"));
    }
    Ok(broken)
}
