//! Settling: applies the consequences of gates after a command changed something around them.

use std::collections::VecDeque;

use crate::Key;
use crate::draft::{Decided, Draft};
use crate::gate::{Entry, GateState};
use crate::record::{Node, StatusKind, Work};
use crate::status::{BlockedReason, Cause, TaskStatus};

impl Draft<'_> {
    /// Applies every queued gate, and then the gates that those changes affect.
    ///
    /// This terminates because dependencies and subtasks form no cycle: a change affects only dependents and parents.
    pub(crate) fn settle(&mut self) -> Decided<()> {
        // Tasks that finish without running, or whose condition can be evaluated, wait in `last` until the queue is
        // empty.
        let mut last = VecDeque::new();
        loop {
            self.withdraw_queued()?;
            while let Some(key) = self.queue.pop_front() {
                let node = self.derive(key)?;
                match consequence(&node) {
                    Some(Consequence::End | Consequence::Open) => last.push_back(key),
                    Some(Consequence::Block) => self.block_by_gate(key)?,
                    Some(Consequence::Unblock) => self.unblock(key)?,
                    Some(Consequence::Skip) => self.skip_by_gate(key)?,
                    Some(Consequence::Ask) => self.refresh_question(key)?,
                    Some(Consequence::Withdraw) => self.withdraw_question(key).map(drop)?,
                    None => {}
                }
            }
            // A task finished here cannot be taken back, but a gate still in the queue may close it again. Hence these
            // come last, and each is checked once more.
            let Some(key) = last.pop_front() else { return Ok(()) };
            match consequence(&self.node(key)?) {
                Some(Consequence::End) => self.set_state(key, TaskStatus::Done, Cause::Empty, None)?,
                Some(Consequence::Open) => self.open(key)?,
                Some(
                    Consequence::Block
                    | Consequence::Unblock
                    | Consequence::Skip
                    | Consequence::Ask
                    | Consequence::Withdraw,
                )
                | None => {}
            }
        }
    }

    /// Writes the gate columns derived from the counts of a node, and updates its subtasks if their entry changed.
    fn derive(&mut self, key: Key) -> Decided<Node> {
        let mut before = self.node(key)?;
        if has_closed(&before) {
            // Conditions and lists may read values that change before the gate opens again, so they are evaluated again
            // then.
            self.close(key)?;
            before = self.node(key)?;
        }
        let (gate_state, opens) = (before.gate.state(), before.derive_opens());
        if (gate_state, opens) == (before.gate_state, before.opens) {
            return Ok(before);
        }
        let node = self.update_node(key, |node| {
            node.gate_state = gate_state;
            node.opens = opens;
        })?;
        // Most tasks have no subtasks. The count answers that without reading edges from the store.
        if opens != before.opens && node.gate.subtasks.total() > 0 {
            for subtask in self.subtasks(key)? {
                self.update_node(subtask, |node| node.gate.entry = opens)?;
                self.queue(subtask);
            }
        }
        Ok(node)
    }

    fn block_by_gate(&mut self, key: Key) -> Decided<()> {
        let reason = BlockedReason::Dependency { ids: Vec::new() };
        self.set_state(key, TaskStatus::blocked(reason), Cause::Gate, None)
    }

    fn unblock(&mut self, key: Key) -> Decided<()> {
        self.set_state(key, TaskStatus::Todo, Cause::Gate, None)
    }

    fn skip_by_gate(&mut self, key: Key) -> Decided<()> {
        let reason = "nothing that it waited for has failed";
        self.skip_tree(key, Cause::Gate, Some(&reason.to_owned()))
    }
}

/// Action that follows from a gate without a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// Block the task: it can no longer start.
    Block,
    /// Unblock the task: it may start again, or the unfinished tasks that it waited for have ended.
    Unblock,
    /// Skip the task: it is not needed.
    Skip,
    /// Mark the task as done without running it.
    End,
    /// Evaluate the condition, the list and the approval of the task.
    Open,
    /// Ask again: the proposal of the open question may have changed.
    Ask,
    /// Withdraw the question if the task may no longer ask it.
    Withdraw,
}

/// Returns the action that follows from the gate of a task. Its derived columns must be up to date.
pub(crate) fn consequence(node: &Node) -> Option<Consequence> {
    if node.is_ready() && node.work == Work::Automatic {
        return Some(Consequence::End);
    }
    let is_to_be_opened = node.gate.is_to_be_opened();
    match (node.status_kind, node.gate_state) {
        (StatusKind::Todo, _) if is_to_be_opened => Some(Consequence::Open),
        (StatusKind::Todo | StatusKind::BlockedWaiting, GateState::Block) => Some(Consequence::Block),
        (StatusKind::BlockedDependency, GateState::Wait | GateState::Ready | GateState::Skip) => {
            Some(Consequence::Unblock)
        }
        (StatusKind::BlockedWaiting, _)
            if is_to_be_opened || node.gate.before_subtasks() != GateState::Wait =>
        {
            Some(Consequence::Unblock)
        }
        (StatusKind::Todo, GateState::Skip) => Some(Consequence::Skip),
        (StatusKind::BlockedOther, _) if is_to_be_opened => Some(Consequence::Ask),
        (StatusKind::BlockedOther, _) => Some(Consequence::Withdraw),
        _ => None,
    }
}

/// Returns whether a gate closed that was open before.
///
/// A task with status kind `BlockedOther` counts as open, because its node does not record whether it was open when it was
/// blocked.
pub(crate) fn has_closed(node: &Node) -> bool {
    (node.opens == Entry::Open || node.status_kind == StatusKind::BlockedOther)
        && !node.gate.undecided
        && node.gate.before_subtasks() != GateState::Ready
}
