//! The gate: one type that decides if a task may start.
//!
//! A gate holds counts and no edges, so that deciding costs the same for one dependency as for thousands.

use serde::{Deserialize, Serialize};

use crate::task::spec::{Trigger, word_enum};

word_enum! {
    /// Result of evaluating the gate of a task.
    GateState {
        /// A dependency, a subtask or the parent is unfinished.
        Wait = "wait",
        /// The task may start.
        Ready = "ready",
        /// The task can no longer start by itself.
        Block = "block",
        /// The task is not needed.
        Skip = "skip",
    }
}

word_enum! {
    /// Permission of the parent for its subtasks to start.
    Entry {
        /// They may start.
        Open = "open",
        /// The parent's own gate is not open yet.
        Waiting = "waiting",
        /// The parent's gate can no longer open, so the subtasks cannot start either.
        Shut = "shut",
    }
}

word_enum! {
    /// Outcome of a task, as its dependents count it.
    Outcome {
        /// Unfinished, or blocked for a reason that does not spread to dependents.
        Open = "open",
        /// The task is done.
        Done = "done",
        /// The task was skipped.
        Skipped = "skipped",
        /// The task failed, was cancelled, or its own gate can no longer open.
        Failed = "failed",
    }
}

/// Number of dependencies with each outcome.
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

/// Number of subtasks with each outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtaskCounts {
    /// Unfinished.
    pub open: u32,
    /// Done, skipped or cancelled. A cancelled subtask does not block its parent, although it blocks its dependents.
    pub finished: u32,
    /// Failed, or blocked by a dependency.
    pub failed: u32,
}

impl SubtaskCounts {
    /// Returns the number of subtasks.
    pub fn total(self) -> u32 {
        self.open + self.finished + self.failed
    }
}

/// Inputs of the start decision: the trigger, the entry that the parent allows, and the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// Rule that says which outcomes of the dependencies let the task start.
    pub trigger: Trigger,
    /// Entry that the parent allows; `open` for a top-level task.
    pub entry: Entry,
    /// A condition, a list or an approval must still be evaluated or decided before the task starts.
    pub undecided: bool,
    /// Outcomes of the dependencies.
    pub dependencies: DependencyCounts,
    /// Outcomes of the direct subtasks.
    pub subtasks: SubtaskCounts,
}

impl Gate {
    /// Returns the gate of a top-level task without dependencies or subtasks.
    pub fn new(trigger: Trigger) -> Self {
        Self {
            trigger,
            entry: Entry::Open,
            undecided: false,
            dependencies: DependencyCounts::default(),
            subtasks: SubtaskCounts::default(),
        }
    }

    /// Returns whether the task's own calls may start: the parent, the dependencies and the subtasks must all agree.
    ///
    /// The calls of a parent run after its subtasks.
    pub fn state(self) -> GateState {
        match self.before_subtasks() {
            GateState::Ready if self.subtasks.failed > 0 => GateState::Block,
            GateState::Ready if self.subtasks.open > 0 => GateState::Wait,
            state @ (GateState::Wait | GateState::Ready | GateState::Block | GateState::Skip) => state,
        }
    }

    /// Returns whether the subtree of the task may start: the parent and the dependencies must agree.
    ///
    /// A waiting parent wins over every other answer, even over dependencies that already failed. The parent may still
    /// be skipped together with its subtasks. Blocking them earlier would make the result depend on the order in which
    /// tasks end.
    pub fn before_subtasks(self) -> GateState {
        let dependencies = self.dependencies();
        match (self.entry, dependencies) {
            (Entry::Shut, _) => GateState::Block,
            (Entry::Waiting, _) => GateState::Wait,
            (Entry::Open, GateState::Ready) if self.undecided => GateState::Wait,
            (Entry::Open, state) => state,
        }
    }

    /// Returns whether the undecided condition, list or approval is all that keeps the subtree from starting.
    pub fn is_to_be_opened(self) -> bool {
        self.undecided && Self { undecided: false, ..self }.before_subtasks() == GateState::Ready
    }

    fn dependencies(self) -> GateState {
        let counts = self.dependencies;
        let all_finished = counts.open == 0;
        match self.trigger {
            Trigger::AllDone if counts.failed > 0 => GateState::Block,
            Trigger::AllDone | Trigger::AllFinished if all_finished => GateState::Ready,
            // Without any dependency `any_done` is ready at once: the second case covers an empty list.
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
