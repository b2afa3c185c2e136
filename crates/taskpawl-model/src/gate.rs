//! The gate: one type that decides whether a task may start.

use serde::{Deserialize, Serialize};

use crate::spec::{Trigger, word_enum};

word_enum! {
    /// What the gate of a task says.
    GateState {
        /// Something that it depends on is unfinished.
        Wait = "wait",
        /// It may start.
        Ready = "ready",
        /// It can no longer start by itself.
        Block = "block",
        /// It is not needed.
        Skip = "skip",
    }
}

word_enum! {
    /// What the task above lets its subtasks do.
    Entry {
        /// They may start.
        Open = "open",
        /// Not yet.
        Waiting = "waiting",
        /// Its own gate can no longer open, so theirs cannot either.
        Shut = "shut",
    }
}

word_enum! {
    /// How a task counts for those that depend on it.
    Outcome {
        /// It has not finished, or is blocked for a reason that does not spread.
        Open = "open",
        /// It is done.
        Done = "done",
        /// It was skipped.
        Skipped = "skipped",
        /// It failed, was cancelled, or its own gate can no longer open.
        Failed = "failed",
    }
}

/// How many dependencies count as what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DependencyCounts {
    /// Unfinished.
    pub open: u32,
    /// Done.
    pub done: u32,
    /// Skipped.
    pub skipped: u32,
    /// Failed, cancelled, or blocked by a dependency.
    pub failed: u32,
}

impl DependencyCounts {
    /// Returns the counter of `outcome`.
    pub fn of(&mut self, outcome: Outcome) -> &mut u32 {
        match outcome {
            Outcome::Open => &mut self.open,
            Outcome::Done => &mut self.done,
            Outcome::Skipped => &mut self.skipped,
            Outcome::Failed => &mut self.failed,
        }
    }

    fn finished(self) -> u32 {
        self.done + self.skipped + self.failed
    }
}

/// How many subtasks count as what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtaskCounts {
    /// Unfinished.
    pub open: u32,
    /// Done, skipped or cancelled.
    pub finished: u32,
    /// Failed, or blocked by a dependency.
    pub failed: u32,
}

impl SubtaskCounts {
    /// Returns how many there are.
    pub fn total(self) -> u32 {
        self.open + self.finished + self.failed
    }
}

/// What decides whether a task may start: its trigger, what the task above allows, and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// When the dependencies let it start.
    pub trigger: Trigger,
    /// What the task above allows; `open` for a task that is no subtask.
    pub entry: Entry,
    /// Something has to be evaluated or decided before it starts, and is not: a condition, a list, an approval.
    pub undecided: bool,
    /// Its dependencies.
    pub dependencies: DependencyCounts,
    /// Its direct subtasks.
    pub subtasks: SubtaskCounts,
}

impl Gate {
    /// Returns the gate of a task without dependencies, subtasks or a task above.
    pub fn new(trigger: Trigger) -> Self {
        Self {
            trigger,
            entry: Entry::Open,
            undecided: false,
            dependencies: DependencyCounts::default(),
            subtasks: SubtaskCounts::default(),
        }
    }

    /// Returns whether the task, with its own calls, may start: the task above, the dependencies and the subtasks agree.
    pub fn state(self) -> GateState {
        match self.before_subtasks() {
            GateState::Ready if self.subtasks.failed > 0 => GateState::Block,
            GateState::Ready if self.subtasks.open > 0 => GateState::Wait,
            state @ (GateState::Wait | GateState::Ready | GateState::Block | GateState::Skip) => state,
        }
    }

    /// Returns whether the subtree of the task may start: the task above and the dependencies agree.
    ///
    /// Everything waits for the task above, also what could say already that it can no longer open: the task above may yet
    /// be skipped with all below, and then the answer would depend on the order in which things ended.
    pub fn before_subtasks(self) -> GateState {
        let dependencies = self.dependencies();
        match (self.entry, dependencies) {
            (Entry::Shut, _) => GateState::Block,
            (Entry::Waiting, _) => GateState::Wait,
            (Entry::Open, GateState::Ready) if self.undecided => GateState::Wait,
            (Entry::Open, state) => state,
        }
    }

    /// Returns whether only what is undecided about the task keeps its subtree from starting.
    pub fn is_to_be_opened(self) -> bool {
        self.undecided && Self { undecided: false, ..self }.before_subtasks() == GateState::Ready
    }

    fn dependencies(self) -> GateState {
        let counts = self.dependencies;
        let all_finished = counts.open == 0;
        match self.trigger {
            Trigger::AllDone if counts.failed > 0 => GateState::Block,
            Trigger::AllDone | Trigger::AllFinished if all_finished => GateState::Ready,
            Trigger::AnyDone if counts.done > 0 || (all_finished && counts.finished() == 0) => {
                GateState::Ready
            }
            Trigger::AnyDone if all_finished => GateState::Block,
            Trigger::AnyFailed if counts.failed > 0 => GateState::Ready,
            Trigger::AnyFailed if all_finished => GateState::Skip,
            Trigger::AllDone | Trigger::AnyDone | Trigger::AllFinished | Trigger::AnyFailed => {
                GateState::Wait
            }
        }
    }
}
