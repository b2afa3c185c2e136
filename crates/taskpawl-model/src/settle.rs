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
            // What ends by itself, or is decided about, is so last: something that it waits for may just have become open again.
            let Some(key) = last.pop_front() else { return Ok(()) };
            match consequence(&self.node(key)?) {
                Some(Consequence::End) => self.set_state(key, TaskState::Done, Cause::Empty, None)?,
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

    /// Writes what follows from the counts of a node, and tells its subtasks when their entry changed.
    fn derive(&mut self, key: Key) -> Decided<Node> {
        let mut before = self.node(key)?;
        if has_closed(&before) {
            // What was decided when it opened is decided anew when it does so again.
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
        // Most tasks have none: a count says so for less than a look.
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
        self.set_state(key, TaskState::blocked(reason), Cause::Gate, None)
    }

    fn unblock(&mut self, key: Key) -> Decided<()> {
        self.set_state(key, TaskState::Todo, Cause::Gate, None)
    }

    fn skip_by_gate(&mut self, key: Key) -> Decided<()> {
        let reason = "nothing that it waited for has failed";
        self.skip_tree(key, Cause::Gate, Some(&reason.to_owned()))
    }
}

/// What a gate does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// The task can no longer start.
    Block,
    /// It can again, or what it was to run in spite of has ended.
    Unblock,
    /// It is not needed.
    Skip,
    /// It ends without having to run.
    End,
    /// What has to be decided before it starts is decided.
    Open,
    /// What it asks may have changed.
    Ask,
    /// It may ask nothing any more.
    Withdraw,
}

/// Returns what the gate of a task does by itself, once everything derived is up to date.
pub(crate) fn consequence(node: &Node) -> Option<Consequence> {
    if node.is_ready() && node.work == Work::Automatic {
        return Some(Consequence::End);
    }
    let is_to_be_opened = node.gate.is_to_be_opened();
    match (node.phase, node.gate_state) {
        (Phase::Todo, _) if is_to_be_opened => Some(Consequence::Open),
        (Phase::Todo | Phase::BlockedWaiting, GateState::Block) => Some(Consequence::Block),
        (Phase::BlockedDependency, GateState::Wait | GateState::Ready | GateState::Skip) => {
            Some(Consequence::Unblock)
        }
        (Phase::BlockedWaiting, _) if is_to_be_opened || node.gate.before_subtasks() != GateState::Wait => {
            Some(Consequence::Unblock)
        }
        (Phase::Todo, GateState::Skip) => Some(Consequence::Skip),
        (Phase::BlockedOther, _) if is_to_be_opened => Some(Consequence::Ask),
        (Phase::BlockedOther, _) => Some(Consequence::Withdraw),
        _ => None,
    }
}

/// Returns whether a gate is closed that was open, or may have been: a task that is blocked by hand does not tell.
pub(crate) fn has_closed(node: &Node) -> bool {
    (node.opens == Entry::Open || node.phase == Phase::BlockedOther)
        && !node.gate.undecided
        && node.gate.before_subtasks() != GateState::Ready
}
