use std::collections::BTreeMap;

/// What goes wrong on purpose, to see that the simulation notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Tools are started before the commit that claims them is answered.
    EarlyStart,
    /// Recovery starts everything again, whatever it is.
    RepeatEverything,
    /// A dead run counts as dead though its tools live.
    LockFreesEarly,
    /// Reports are accepted whatever their attempt.
    AnyAttempt,
    /// Some commits are answered and not written.
    LostCommit,
    /// Runs do not hear that some tasks became ready.
    DroppedReady,
    /// Nobody remembers that calls of cancelled tasks have not ended.
    ForgottenEnding,
    /// Runs take it that there is plenty of every resource.
    PlentyOfAll,
    /// Some rounds of runs are an hour ahead.
    ClockAhead,
    /// Every round of a task is taken for the first.
    ForgottenRounds,
}

/// How often what happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// How often, by what.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Coverage {
    pub(super) fn add(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Returns how often something happened.
    pub fn of(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// Adds what another simulation counted.
    pub fn merge(&mut self, other: &Self) {
        for (what, count) in &other.counts {
            *self.counts.entry(what).or_default() += count;
        }
    }
}

/// What a simulation found to be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// After so many steps.
    pub step: u64,
    /// What is wrong, a line each.
    pub lines: Vec<String>,
}

/// A simulation that was played to its end, or until something was wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    /// What happened.
    pub coverage: Coverage,
    /// What was wrong.
    pub broken: Option<Broken>,
    /// What happened, a line each; empty unless it was asked for.
    pub trace: Vec<String>,
}
