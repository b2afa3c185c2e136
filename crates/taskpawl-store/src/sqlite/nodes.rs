//! Writes nodes, and of an existing node only the changed columns.

use rusqlite::params;
use taskpawl_model::task::{Gate, Node};
use taskpawl_model::view::Changes;
use taskpawl_model::view::ReadGraph;

use super::cache::MAX_NODES;
use super::insert::{Values, one};
use super::session::Session;
use super::write::is_new;
use crate::StoreError;
use crate::words::Code;

/// The values of a node, in the order of the columns.
macro_rules! node_params {
    ($node:ident, $gate:ident) => {
        params![
            $node.key.0,
            $node.parent.map(|key| key.0),
            $node.status_kind.code(),
            $node.work.code(),
            $node.gate_state.code(),
            $node.opens.code(),
            $gate.trigger.code(),
            $gate.entry.code(),
            $node.priority.code(),
            $node.due,
            $gate.dependencies.open,
            $gate.dependencies.done,
            $gate.dependencies.skipped,
            $gate.dependencies.failed,
            $gate.subtasks.open,
            $gate.subtasks.finished,
            $gate.subtasks.failed,
            $gate.undecided,
        ]
    };
}

/// The columns to update in an existing node. SQLite does not touch an index whose columns are not updated,
/// and binding fewer values is cheaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The dependency counts. A finished dependency changes only these while others are still open.
    Dependencies,
    /// The dependency counts and the gate, which the last dependency changes.
    Gate,
    /// Phase and gate, which the start or the end of the task itself changes.
    StatusKind,
    /// Dependency counts, gate and status kind, if the task starts in the commit that finishes its last dependency.
    Turn,
    /// All columns without an index.
    Counts,
    Whole,
}

impl Part {
    const ALL: [Self; 6] =
        [Self::Dependencies, Self::Gate, Self::StatusKind, Self::Turn, Self::Counts, Self::Whole];

    /// Returns the smallest set of columns that turns `old` into `new`, or `None` if they are equal.
    fn between(old: &Node, new: &Node) -> Option<Self> {
        if old == new {
            return None;
        }
        let Node { status_kind, gate_state, opens, .. } = *new;
        let counted = Node { gate: Gate { dependencies: new.gate.dependencies, ..old.gate }, ..*old };
        if counted == *new {
            Some(Self::Dependencies)
        } else if (Node { gate_state, opens, ..counted }) == *new {
            Some(Self::Gate)
        } else if (Node { status_kind, gate_state, opens, ..*old }) == *new {
            Some(Self::StatusKind)
        } else if (Node { status_kind, gate_state, opens, ..counted }) == *new {
            Some(Self::Turn)
        } else if has_same_place(old, new) {
            Some(Self::Counts)
        } else {
            Some(Self::Whole)
        }
    }

    fn sql(self) -> &'static str {
        match self {
            Self::Dependencies => {
                "UPDATE nodes SET dependencies_open = ?2, dependencies_done = ?3, dependencies_skipped = ?4, \
                 dependencies_failed = ?5 WHERE key = ?1"
            }
            Self::Gate => {
                "UPDATE nodes SET dependencies_open = ?2, dependencies_done = ?3, dependencies_skipped = ?4, \
                 dependencies_failed = ?5, gate_state = ?6, opens = ?7 WHERE key = ?1"
            }
            Self::StatusKind => "UPDATE nodes SET phase = ?2, gate_state = ?3, opens = ?4 WHERE key = ?1",
            Self::Turn => {
                "UPDATE nodes SET dependencies_open = ?2, dependencies_done = ?3, dependencies_skipped = ?4, \
                 dependencies_failed = ?5, gate_state = ?6, opens = ?7, phase = ?8 WHERE key = ?1"
            }
            Self::Counts => {
                "UPDATE nodes SET opens = ?2, entry = ?3, dependencies_open = ?4, dependencies_done = ?5, \
                 dependencies_skipped = ?6, dependencies_failed = ?7, subtasks_open = ?8, subtasks_finished = ?9, \
                 subtasks_failed = ?10, undecided = ?11 WHERE key = ?1"
            }
            Self::Whole => {
                "UPDATE nodes SET parent = ?2, phase = ?3, work = ?4, gate_state = ?5, opens = ?6, gate_trigger = ?7, \
                 entry = ?8, priority = ?9, due = ?10, dependencies_open = ?11, dependencies_done = ?12, \
                 dependencies_skipped = ?13, dependencies_failed = ?14, subtasks_open = ?15, subtasks_finished = ?16, \
                 subtasks_failed = ?17, undecided = ?18 WHERE key = ?1"
            }
        }
    }

    fn give(self, node: &Node, values: &mut Values<'_, '_>) -> Result<(), StoreError> {
        let Node { key, gate, gate_state, opens, status_kind, .. } = node;
        let (on, below) = (gate.dependencies, gate.subtasks);
        let (key, gate_state, opens, status_kind) =
            (key.0, gate_state.code(), opens.code(), status_kind.code());
        match self {
            Self::Dependencies => values.give(params![key, on.open, on.done, on.skipped, on.failed]),
            Self::Gate => {
                values.give(params![key, on.open, on.done, on.skipped, on.failed, gate_state, opens])
            }
            Self::StatusKind => values.give(params![key, status_kind, gate_state, opens]),
            Self::Turn => values.give(params![
                key,
                on.open,
                on.done,
                on.skipped,
                on.failed,
                gate_state,
                opens,
                status_kind
            ]),
            Self::Counts => values.give(params![
                key,
                opens,
                gate.entry.code(),
                on.open,
                on.done,
                on.skipped,
                on.failed,
                below.open,
                below.finished,
                below.failed,
                gate.undecided,
            ]),
            Self::Whole => values.give(node_params!(node, gate)),
        }
    }
}

/// Returns whether all indexed columns are equal.
fn has_same_place(old: &Node, new: &Node) -> bool {
    let place = |node: &Node| {
        (
            node.parent,
            node.status_kind,
            node.work,
            node.gate_state,
            node.gate.trigger,
            node.priority,
            node.due,
        )
    };
    place(old) == place(new)
}

impl Session {
    pub(super) fn put_nodes(&self, changes: &Changes) -> Result<(), StoreError> {
        let (mut new, mut present) = (Vec::new(), Vec::new());
        for node in changes.nodes.values() {
            if is_new(changes, node.key) {
                new.push(node);
                continue;
            }
            match self.node(node.key).map_err(StoreError::from_view)? {
                None => new.push(node),
                Some(old) => {
                    present.extend(Part::between(&old, node).map(|part| (part, node)));
                    self.move_count(&old, node);
                }
            }
        }
        self.insert_nodes(&new)?;
        self.update_nodes(&present)?;
        let mut known = self.live().known.borrow_mut();
        if !new.is_empty() || present.iter().any(|(part, _)| *part == Part::Whole) {
            known.forget_subtasks();
        }
        // More than fit would be evicted at once. New nodes are not cached yet, so skipping them leaves no
        // stale entry.
        if new.len() > MAX_NODES {
            new.clear();
        }
        new.into_iter()
            .chain(present.into_iter().map(|(_, node)| node))
            .for_each(|node| known.note_node(*node));
        Ok(())
    }

    pub(super) fn insert_nodes(&self, nodes: &[&Node]) -> Result<(), StoreError> {
        self.insert(one::NODE, nodes, |node, values| {
            let Node { gate, .. } = node;
            self.live().count(|counters| *counters.of(node.status_kind.status()) += 1);
            values.give(node_params!(node, gate))
        })
    }

    fn update_nodes(&self, nodes: &[(Part, &Node)]) -> Result<(), StoreError> {
        for part in Part::ALL {
            let alike: Vec<&Node> =
                nodes.iter().filter(|(of, _)| *of == part).map(|(_, node)| *node).collect();
            self.execute_each(part.sql(), &alike, |node, values| part.give(node, values))?;
        }
        Ok(())
    }

    /// Updates the counters if the status of the task has changed.
    fn move_count(&self, old: &Node, new: &Node) {
        if old.status_kind != new.status_kind {
            self.live().count(|counters| {
                let count = counters.of(old.status_kind.status());
                *count = count.saturating_sub(1);
                *counters.of(new.status_kind.status()) += 1;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use taskpawl_model::task::{Entry, Gate, GateState, Node, Priority, StatusKind, Trigger, Work};
    use taskpawl_model::value::Key;

    use super::Part;

    /// Every column outside the chosen part must be equal in both nodes.
    #[test]
    fn only_the_necessary_columns_are_written() {
        let old = Node::new(Key(1), Trigger::AllDone, Work::Calls);
        let mut counted = old;
        counted.gate.dependencies.open += 1;
        let gate = |change: fn(&mut Gate)| {
            let mut node = counted;
            change(&mut node.gate);
            node
        };
        let cases = [
            (old, None),
            (counted, Some(Part::Dependencies)),
            (Node { gate_state: GateState::Block, opens: Entry::Waiting, ..counted }, Some(Part::Gate)),
            (Node { status_kind: StatusKind::Done, ..old }, Some(Part::StatusKind)),
            (
                Node { status_kind: StatusKind::InProgress, gate_state: GateState::Ready, ..counted },
                Some(Part::Turn),
            ),
            (Node { status_kind: StatusKind::Done, priority: Priority::Low, ..old }, Some(Part::Whole)),
            (gate(|gate| gate.undecided = true), Some(Part::Counts)),
            (gate(|gate| gate.entry = Entry::Waiting), Some(Part::Counts)),
            (gate(|gate| gate.subtasks.failed = 1), Some(Part::Counts)),
            (gate(|gate| gate.trigger = Trigger::AnyDone), Some(Part::Whole)),
            (Node { parent: Some(Key(0)), ..old }, Some(Part::Whole)),
            (Node { work: Work::Manual, ..old }, Some(Part::Whole)),
            (Node { priority: Priority::Low, ..old }, Some(Part::Whole)),
            (Node { due: 1, ..old }, Some(Part::Whole)),
        ];
        for (new, part) in cases {
            assert_eq!(Part::between(&old, &new), part, "{new:?}");
        }
    }
}
