//! Settling: applies the consequences of gates after a command changed something around them.

use std::collections::VecDeque;

use crate::rules::draft::{Decided, Draft};
use crate::task::gate::{Entry, GateState, Outcome};
use crate::task::record::{Node, StatusKind, Work};
use crate::task::status::{BlockedReason, Cause, TaskStatus};
use crate::value::Key;
use crate::view::read::known_node;
use crate::view::{ReadGraph, ViewError};

/// The nodes that settling works on: those of a draft, or those that a forecast simulates. They differ in the way in
/// which a consequence is carried out.
pub(crate) trait Board: ReadGraph {
    type Error: From<ViewError>;
    /// Tasks whose gate may have changed.
    fn gates(&mut self) -> &mut VecDeque<Key>;
    fn update_node(&mut self, key: Key, change: impl FnOnce(&mut Node)) -> Result<Node, Self::Error>;
    /// Lets conditions and lists be evaluated again when the gate opens again: they may read values that change before.
    fn close(&mut self, key: Key) -> Result<(), Self::Error>;
    fn carry_out(&mut self, key: Key, consequence: Consequence) -> Result<(), Self::Error>;
    /// Does what comes before any gate.
    fn prepare(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
    fn queue(&mut self, key: Key) {
        // Consecutive duplicates are common and cheap to detect here. Other duplicates are harmless, because settling
        // is idempotent.
        if self.gates().back() != Some(&key) {
            self.gates().push_back(key);
        }
    }
}

/// Applies every queued gate, and then the gates that those changes affect.
///
/// This terminates because dependencies and subtasks form no cycle: a change affects only dependents and parents.
pub(crate) fn settle<B: Board>(board: &mut B) -> Result<(), B::Error> {
    // Tasks that finish without running, or whose condition can be evaluated, wait in `last` until the queue is empty.
    let mut last = VecDeque::new();
    loop {
        board.prepare()?;
        while let Some(key) = board.gates().pop_front() {
            let node = derive(board, key)?;
            match consequence(&node) {
                Some(consequence) if consequence.comes_last() => last.push_back(key),
                Some(consequence) => board.carry_out(key, consequence)?,
                None => {}
            }
        }
        // A task finished here cannot be taken back, but a gate still in the queue may close it again. Hence these come
        // last, and each is checked once more.
        let Some(key) = last.pop_front() else { return Ok(()) };
        if let Some(consequence) = consequence(&known_node(board, key)?).filter(|next| next.comes_last()) {
            board.carry_out(key, consequence)?;
        }
    }
}

/// Writes the gate columns derived from the counts of a node, and updates its subtasks if their entry changed.
fn derive<B: Board>(board: &mut B, key: Key) -> Result<Node, B::Error> {
    let mut before = known_node(board, key)?;
    if has_closed(&before) {
        board.close(key)?;
        before = known_node(board, key)?;
    }
    let (gate_state, opens) = (before.gate.state(), before.derive_opens());
    if (gate_state, opens) == (before.gate_state, before.opens) {
        return Ok(before);
    }
    let node = board.update_node(key, |node| {
        node.gate_state = gate_state;
        node.opens = opens;
    })?;
    // Most tasks have no subtasks. The count answers that without reading edges from the store.
    if opens != before.opens && node.gate.subtasks.total() > 0 {
        for subtask in board.subtasks(key)? {
            board.update_node(subtask, |node| node.gate.entry = opens)?;
            board.queue(subtask);
        }
    }
    Ok(node)
}

/// Changes the status kind of a node, and the counts of its dependents and its parent; returns the node before.
pub(crate) fn change_status_kind<B: Board>(
    board: &mut B,
    key: Key,
    status_kind: StatusKind,
) -> Result<Node, B::Error> {
    let before = known_node(board, key)?;
    board.update_node(key, |node| node.status_kind = status_kind)?;
    let (old, new) = (before.status_kind.outcome(), status_kind.outcome());
    if old != new {
        for dependent in board.dependents(key)? {
            board.update_node(dependent, |node| {
                *node.gate.dependencies.of(old) -= 1;
                *node.gate.dependencies.of(new) += 1;
            })?;
            board.queue(dependent);
        }
    }
    if let Some(parent) = before.parent
        && before.status_kind.outcome_above() != status_kind.outcome_above()
    {
        count_subtask(board, parent, before.status_kind, -1)?;
        count_subtask(board, parent, status_kind, 1)?;
    }
    board.queue(key);
    Ok(before)
}

/// Adds `by` to the number of subtasks that a parent has with this status kind.
pub(crate) fn count_subtask<B: Board>(
    board: &mut B,
    parent: Key,
    status_kind: StatusKind,
    by: i32,
) -> Result<(), B::Error> {
    board.update_node(parent, |node| {
        let count = subtask_count(node, status_kind);
        *count = count.checked_add_signed(by).expect("BUG: a subtask was not counted");
    })?;
    board.queue(parent);
    Ok(())
}

pub(crate) fn subtask_count(node: &mut Node, status_kind: StatusKind) -> &mut u32 {
    let counts = &mut node.gate.subtasks;
    match status_kind.outcome_above() {
        Outcome::Open => &mut counts.open,
        Outcome::Done | Outcome::Skipped => &mut counts.finished,
        Outcome::Failed => &mut counts.failed,
    }
}

impl Board for Draft<'_> {
    type Error = crate::rules::DecideError;

    fn gates(&mut self) -> &mut VecDeque<Key> {
        &mut self.pending.gates
    }

    fn update_node(&mut self, key: Key, change: impl FnOnce(&mut Node)) -> Decided<Node> {
        Draft::update_node(self, key, change)
    }

    fn close(&mut self, key: Key) -> Decided<()> {
        Draft::close(self, key)
    }

    fn prepare(&mut self) -> Decided<()> {
        self.withdraw_queued()
    }

    fn carry_out(&mut self, key: Key, consequence: Consequence) -> Decided<()> {
        match consequence {
            Consequence::End => self.set_state(key, TaskStatus::Done, Cause::Empty, None),
            Consequence::Open => self.open(key),
            Consequence::Block => self.block_by_gate(key),
            Consequence::Unblock => self.set_state(key, TaskStatus::Todo, Cause::Gate, None),
            Consequence::Skip => self.skip_by_gate(key),
            Consequence::Ask => self.refresh_question(key),
            Consequence::Withdraw => self.withdraw_question(key).map(drop),
        }
    }
}

impl Draft<'_> {
    pub(crate) fn settle(&mut self) -> Decided<()> {
        settle(self)
    }

    fn block_by_gate(&mut self, key: Key) -> Decided<()> {
        let reason = BlockedReason::Dependency { ids: Vec::new() };
        self.set_state(key, TaskStatus::blocked(reason), Cause::Gate, None)
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

impl Consequence {
    /// Returns whether it waits until every queued gate is applied, because it cannot be taken back.
    fn comes_last(self) -> bool {
        matches!(self, Self::End | Self::Open)
    }
}

/// Returns the action that follows from the gate of a task. Its derived columns must be up to date.
fn consequence(node: &Node) -> Option<Consequence> {
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
fn has_closed(node: &Node) -> bool {
    (node.opens == Entry::Open || node.status_kind == StatusKind::BlockedOther)
        && !node.gate.undecided
        && node.gate.before_subtasks() != GateState::Ready
}
