//! Tasks of the reference, and the decisions of their gates.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl_model::command::{Command, Context};
use taskpawl_model::task::{ActorKind, CallStatus, Priority, Status, Trigger};

/// A deliberate fault in a rule of the reference, to prove that the comparison notices it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Dependents of a cancelled task may start.
    CancelledCountsAsDone,
    /// `any_done` waits for all dependencies.
    AnyDoneWaits,
    /// A task that is done may be skipped.
    DoneMayBeSkipped,
    /// Reports about any attempt are accepted.
    AnyAttempt,
    /// Cancelling a task does not cancel its subtasks.
    CancelLeavesSubtasks,
    /// A task may depend on its parent.
    NeedsFromAbove,
    /// A cancelled task may start again while its calls still run.
    AgainBesideItsEnd,
}

/// Holder of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Holder {
    Run(String),
    Actor { name: String, lease: i64, until: i64 },
}

/// Status of a task; blocked tasks by their reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stand {
    Todo,
    Held(Holder),
    BlockedByDependency,
    BlockedUntilFinished,
    BlockedForATool,
    BlockedByInterruption(String),
    BlockedByHand,
    Done,
    Failed,
    Cancelled,
    Skipped,
}

impl Stand {
    pub(super) fn status(&self) -> Status {
        match self {
            Self::Todo => Status::Todo,
            Self::Held(_) => Status::InProgress,
            Self::Done => Status::Done,
            Self::Failed => Status::Failed,
            Self::Cancelled => Status::Cancelled,
            Self::Skipped => Status::Skipped,
            Self::BlockedByDependency
            | Self::BlockedUntilFinished
            | Self::BlockedForATool
            | Self::BlockedByInterruption(_)
            | Self::BlockedByHand => Status::Blocked,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) status: CallStatus,
}

impl Call {
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.status, CallStatus::Succeeded | CallStatus::Skipped)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) stand: Stand,
    pub(super) needs: BTreeSet<u32>,
    pub(super) above: Option<u32>,
    pub(super) trigger: Trigger,
    pub(super) is_milestone: bool,
    pub(super) is_parallel: bool,
    pub(super) priority: Priority,
    pub(super) calls: Vec<Call>,
    pub(super) attempt: u32,
}

/// The way in which a task ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Calls,
    Hand,
    Itself,
}

/// Decision of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Wait,
    Open,
    Shut,
    NotNeeded,
}

/// Result of a command; `None` means refused.
pub(super) type Taken = Option<()>;

/// The expected state of all tasks.
#[derive(Debug, Clone, Default)]
pub(super) struct Reference {
    pub(super) items: BTreeMap<u32, Item>,
    /// Ids of deleted tasks.
    pub(super) gone: BTreeSet<String>,
    pub(super) next: u32,
    /// By run, whether it is still active.
    pub(super) runs: BTreeMap<String, bool>,
    /// Calls of cancelled tasks that have not ended: run, task, attempt, call.
    pub(super) ending: BTreeSet<(String, u32, u32, String)>,
    /// The agent or person that made an attempt, by task and attempt.
    pub(super) makers: BTreeMap<(u32, u32), String>,
    /// The actor and, below, the time of the current command.
    pub(super) actor: String,
    pub(super) now: i64,
    pub(super) flaw: Option<Flaw>,
}

pub(super) fn require(condition: bool) -> Taken {
    condition.then_some(())
}

impl Reference {
    /// Executes a command; returns whether it was accepted. A refused command changes nothing.
    pub(super) fn give(&mut self, command: &Command, context: &Context) -> bool {
        let before = self.clone();
        // A run is another actor than the program of the same name, and holds nothing by hand.
        let is_of_run = context.kind == ActorKind::Run;
        self.actor = if is_of_run { String::new() } else { context.actor.to_string() };
        self.now = context.now.timestamp_millis();
        self.meet(command);
        let is_accepted = self.carry_out(command, context).is_some();
        if is_accepted {
            self.renew_own(command, context);
            self.settle();
        } else {
            *self = before;
        }
        is_accepted
    }

    pub(super) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    pub(super) fn item(&self, key: u32) -> &Item {
        &self.items[&key]
    }

    pub(super) fn change(&mut self, key: u32) -> &mut Item {
        self.items.get_mut(&key).expect("BUG: only tasks that are there are changed")
    }

    pub(super) fn keys(&self) -> Vec<u32> {
        self.items.keys().copied().collect()
    }

    /// Finds a task by its id, or by a prefix that only one id has.
    pub(super) fn find(&self, text: &str) -> Option<u32> {
        let with = |is_it: &dyn Fn(&str) -> bool| -> Vec<u32> {
            self.items.iter().filter(|(_, item)| is_it(&item.id)).map(|(key, _)| *key).collect()
        };
        if let [key] = with(&|id| id == text)[..] {
            return Some(key);
        }
        if let [key] = with(&|id| id.starts_with(text))[..] { Some(key) } else { None }
    }

    /// Finds several tasks, without duplicates.
    pub(super) fn find_all(&self, ids: &[String]) -> Option<Vec<u32>> {
        let mut keys = Vec::new();
        for id in ids {
            let key = self.find(id)?;
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Some(keys)
    }

    /// Refuses to restart or delete a cancelled task while its calls still run.
    pub(super) fn check_ended(&self, key: u32) -> Taken {
        let is_ending = self.ending.iter().any(|(_, task, ..)| *task == key);
        require(!is_ending || self.has(Flaw::AgainBesideItsEnd))
    }

    pub(super) fn directly_below(&self, key: u32) -> Vec<u32> {
        self.items.iter().filter(|(_, item)| item.above == Some(key)).map(|(key, _)| *key).collect()
    }

    /// Returns all direct and indirect subtasks.
    pub(super) fn below(&self, key: u32) -> Vec<u32> {
        let mut all = self.directly_below(key);
        let mut next = 0;
        while next < all.len() {
            all.extend(self.directly_below(all[next]));
            next += 1;
        }
        all
    }

    pub(super) fn is_below(&self, key: u32, top: u32) -> bool {
        self.below(top).contains(&key)
    }

    pub(super) fn dependents(&self, key: u32) -> Vec<u32> {
        self.items.iter().filter(|(_, item)| item.needs.contains(&key)).map(|(key, _)| *key).collect()
    }

    pub(super) fn work(&self, key: u32) -> Work {
        let item = self.item(key);
        match (item.calls.is_empty(), item.is_milestone || !self.directly_below(key).is_empty()) {
            (false, _) => Work::Calls,
            (true, true) => Work::Itself,
            (true, false) => Work::Hand,
        }
    }

    pub(super) fn is_ready(&self, key: u32) -> bool {
        self.item(key).stand == Stand::Todo && self.verdict(key) == Verdict::Open
    }

    /// Returns the combined decision of dependencies, subtasks and parent.
    pub(super) fn verdict(&self, key: u32) -> Verdict {
        let verdict = self.verdict_before_subtasks(key);
        if verdict != Verdict::Open {
            return verdict;
        }
        let below: Vec<&Stand> =
            self.directly_below(key).into_iter().map(|key| &self.item(key).stand).collect();
        if below.iter().any(|stand| matches!(stand, Stand::Failed | Stand::BlockedByDependency)) {
            return Verdict::Shut;
        }
        let is_over = |stand: &&Stand| matches!(stand, Stand::Done | Stand::Skipped | Stand::Cancelled);
        if below.iter().all(is_over) { Verdict::Open } else { Verdict::Wait }
    }

    pub(super) fn verdict_before_subtasks(&self, key: u32) -> Verdict {
        match self.item(key).above.map_or(Verdict::Open, |above| self.lets_in(above)) {
            Verdict::Open => self.verdict_of_dependencies(key),
            other => other,
        }
    }

    /// Returns whether a task allows its subtasks to start.
    fn lets_in(&self, key: u32) -> Verdict {
        match self.item(key).stand {
            Stand::BlockedForATool
            | Stand::BlockedByInterruption(_)
            | Stand::BlockedByHand
            | Stand::Cancelled
            | Stand::Skipped => Verdict::Wait,
            Stand::Todo
            | Stand::Held(_)
            | Stand::BlockedByDependency
            | Stand::BlockedUntilFinished
            | Stand::Done
            | Stand::Failed => match self.verdict_before_subtasks(key) {
                Verdict::NotNeeded => Verdict::Wait,
                other => other,
            },
        }
    }

    fn verdict_of_dependencies(&self, key: u32) -> Verdict {
        let (mut done, mut skipped, mut failed) = (0, 0, 0);
        let item = self.item(key);
        for on in &item.needs {
            match self.item(*on).stand {
                Stand::Done => done += 1,
                Stand::Cancelled if self.has(Flaw::CancelledCountsAsDone) => done += 1,
                Stand::Skipped => skipped += 1,
                Stand::Failed | Stand::Cancelled | Stand::BlockedByDependency => failed += 1,
                Stand::Todo
                | Stand::Held(_)
                | Stand::BlockedUntilFinished
                | Stand::BlockedForATool
                | Stand::BlockedByInterruption(_)
                | Stand::BlockedByHand => {}
            }
        }
        let are_all_finished = done + skipped + failed == item.needs.len();
        let if_finished = |verdict| if are_all_finished { verdict } else { Verdict::Wait };
        match item.trigger {
            Trigger::AllDone if failed > 0 => Verdict::Shut,
            Trigger::AllDone | Trigger::AllFinished => if_finished(Verdict::Open),
            Trigger::AnyDone if done > 0 && !self.has(Flaw::AnyDoneWaits) => Verdict::Open,
            Trigger::AnyDone => if_finished(if done > 0 { Verdict::Open } else { Verdict::Shut }),
            Trigger::AnyFailed if failed > 0 => Verdict::Open,
            Trigger::AnyFailed => if_finished(Verdict::NotNeeded),
        }
    }

    /// Lets gates take effect until nothing changes any more.
    pub(super) fn settle(&mut self) {
        // Automatic tasks end last: a change in this round may have reopened a task that they wait for.
        while self.keys().into_iter().any(|key| self.act(key))
            || self.keys().into_iter().any(|key| self.end_by_itself(key))
        {}
    }

    fn end_by_itself(&mut self, key: u32) -> bool {
        let ends = self.is_ready(key) && self.work(key) == Work::Itself;
        if ends {
            self.change(key).stand = Stand::Done;
        }
        ends
    }

    fn act(&mut self, key: u32) -> bool {
        let verdict = self.verdict(key);
        let to = match (&self.item(key).stand, verdict) {
            (Stand::Todo | Stand::BlockedUntilFinished, Verdict::Shut) => Stand::BlockedByDependency,
            (Stand::BlockedByDependency, Verdict::Wait | Verdict::Open | Verdict::NotNeeded) => Stand::Todo,
            (Stand::BlockedUntilFinished, _) if self.verdict_before_subtasks(key) != Verdict::Wait => {
                Stand::Todo
            }
            (Stand::Todo, Verdict::NotNeeded) => Stand::Skipped,
            _ => return false,
        };
        if to == Stand::Skipped {
            self.skip_with_all_below(key);
        } else {
            self.change(key).stand = to;
        }
        true
    }

    /// Skips a task and those of its subtasks that are neither in progress nor ended successfully.
    pub(super) fn skip_with_all_below(&mut self, key: u32) {
        self.change(key).stand = Stand::Skipped;
        for below in self.below(key) {
            self.free(below);
            let stand = &mut self.change(below).stand;
            if !matches!(stand, Stand::Held(_) | Stand::Done | Stand::Cancelled | Stand::Skipped) {
                *stand = Stand::Skipped;
            }
        }
    }

    /// Returns whether starts and ends of all tasks can be ordered, which means that there is no cycle.
    pub(super) fn has_order(&self) -> bool {
        let (mut begun, mut over) = (BTreeSet::new(), BTreeSet::new());
        loop {
            let before = begun.len() + over.len();
            for (key, item) in &self.items {
                if item.needs.is_subset(&over) && item.above.is_none_or(|above| begun.contains(&above)) {
                    begun.insert(*key);
                }
                let are_over = self.directly_below(*key).iter().all(|below| over.contains(below));
                if begun.contains(key) && (are_over || self.has(Flaw::NeedsFromAbove)) {
                    over.insert(*key);
                }
            }
            if begun.len() + over.len() == before {
                return over.len() == self.items.len();
            }
        }
    }
}
