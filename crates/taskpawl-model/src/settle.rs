//! Settling: what gates do by themselves once something around them changed.

use std::collections::VecDeque;

use crate::Key;
use crate::draft::{Decided, Draft};
use crate::gate::{Entry, GateState};
use crate::record::{Node, Phase, Work};
use crate::status::{BlockedReason, Cause, TaskState};

impl Draft<'_> {
    /// Lets every queued gate take effect, and those that this touches in turn.
    ///
    /// Ends because dependencies and subtasks form no circle: a state changes only what is behind or above it.
    pub(crate) fn settle(&mut self) -> Decided<()> {
        let mut last = VecDeque::new();
        loop {
            while let Some(key) = self.queue.pop_front() {
                let node = self.derive(key)?;
                if ends_by_itself(&node) || is_to_be_opened(&node) {
                    last.push_back(key);
                } else {
                    self.act(node)?;
                }
            }
            // What ends by itself, or is decided about, is so last: something that it waits for may just have become open again.
            let Some(key) = last.pop_front() else { return Ok(()) };
            let node = self.node(key)?;
            if ends_by_itself(&node) {
                self.set_state(key, TaskState::Done, Cause::Empty, None)?;
            } else if is_to_be_opened(&node) {
                self.open(key)?;
            }
        }
    }

    /// Writes what follows from the counts of a node, and tells its subtasks when their entry changed.
    fn derive(&mut self, key: Key) -> Decided<Node> {
        let before = self.node(key)?;
        if has_closed(&before) {
            // What was decided when it opened is decided anew when it does so again.
            self.close(key)?;
        }
        let before = self.node(key)?;
        let (gate_state, opens) = (before.gate.state(), before.derive_opens());
        if (gate_state, opens) == (before.gate_state, before.opens) {
            return Ok(before);
        }
        let node = self.update_node(key, |node| {
            node.gate_state = gate_state;
            node.opens = opens;
        })?;
        if opens != before.opens {
            for subtask in self.subtasks(key)? {
                self.update_node(subtask, |node| node.gate.entry = opens)?;
                self.queue.push_back(subtask);
            }
        }
        Ok(node)
    }

    fn act(&mut self, node: Node) -> Decided<()> {
        match (node.phase, node.gate_state) {
            (Phase::Todo | Phase::BlockedWaiting, GateState::Block) => self.block_by_gate(node.key),
            (Phase::BlockedDependency, GateState::Wait | GateState::Ready | GateState::Skip) => {
                self.unblock(node.key)
            }
            (Phase::BlockedWaiting, _)
                if node.gate.is_to_be_opened() || node.gate.before_subtasks() != GateState::Wait =>
            {
                self.unblock(node.key)
            }
            (Phase::Todo, GateState::Skip) => self.skip_by_gate(node.key),
            (Phase::BlockedOther, _) if node.gate.is_to_be_opened() => self.refresh_question(node.key),
            _ => Ok(()),
        }
    }

    fn block_by_gate(&mut self, key: Key) -> Decided<()> {
        let reason = BlockedReason::Dependency { ids: Vec::new() };
        self.set_state(key, TaskState::Blocked { reason }, Cause::Gate, None)
    }

    fn unblock(&mut self, key: Key) -> Decided<()> {
        self.set_state(key, TaskState::Todo, Cause::Gate, None)
    }

    fn skip_by_gate(&mut self, key: Key) -> Decided<()> {
        let reason = "nothing that it waited for has failed";
        self.skip_tree(key, Cause::Gate, Some(&reason.to_owned()))
    }
}

/// Returns whether a gate is closed that was open, or may have been: a task that is blocked by hand does not tell.
fn has_closed(node: &Node) -> bool {
    (node.opens == Entry::Open || node.phase == Phase::BlockedOther)
        && !node.gate.undecided
        && node.gate.before_subtasks() != GateState::Ready
}

fn is_to_be_opened(node: &Node) -> bool {
    node.phase == Phase::Todo && node.gate.is_to_be_opened()
}

fn ends_by_itself(node: &Node) -> bool {
    node.is_ready() && node.work == Work::Automatic
}
