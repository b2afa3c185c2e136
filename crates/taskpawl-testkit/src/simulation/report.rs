use std::collections::BTreeMap;

/// A deliberate fault, to prove that the simulation notices it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Tools are started before the commit that claims them is answered.
    EarlyStart,
    /// Recovery restarts every call, even if that is unsafe.
    RepeatEverything,
    /// A killed run counts as dead although its tools are still running.
    LockFreesEarly,
    /// Reports about any attempt are accepted.
    AnyAttempt,
    /// Some commits are answered but not written.
    LostCommit,
    /// Some ready tasks are not reported to runs.
    DroppedReady,
    /// The store forgets that calls of cancelled tasks have not ended.
    ForgottenEnding,
    /// Runs assume unlimited resources.
    PlentyOfAll,
    /// The clock of some rounds is ahead.
    ClockAhead,
    /// Every round of a task counts as the first.
    ForgottenRounds,
    /// The loops of runs do not read what others wrote.
    IgnoresOthers,
}

/// Numbers of situations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Number of occurrences by situation.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Coverage {
    pub(super) fn add(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Returns the number of occurrences of a situation.
    pub fn of(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// Adds the numbers of another simulation.
    pub fn merge(&mut self, other: &Self) {
        for (what, count) in &other.counts {
            *self.counts.entry(what).or_default() += count;
        }
    }
}

/// Failure of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Number of steps before the failure.
    pub step: u64,
    /// The violations, one per line.
    pub lines: Vec<String>,
}

/// Result of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    /// Situations that occurred.
    pub coverage: Coverage,
    /// The failure, if any.
    pub broken: Option<Broken>,
    /// The trace, one line per happening; empty unless it was requested.
    pub trace: Vec<String>,
}
