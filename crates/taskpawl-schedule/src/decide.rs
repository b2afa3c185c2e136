//! The rules for overlapping and missed times.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::calendar::{Calendar, Occurrence, Time};

/// A start that is later than this was missed: a server that runs starts within a second.
const LATE: TimeDelta = TimeDelta::minutes(2);

/// The most times that one decision looks at. Further ones are left to the next decision.
const MAX_PASSED: usize = 100_000;

/// The rule for a time at which the instance before still runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// The time is skipped.
    #[default]
    Skip,
    /// The instance starts after the end of the one before. At most one waits: further times are skipped.
    Queue,
    /// The instance before is ended, and the new one starts.
    Replace,
}

/// The rules of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The rule for overlapping times.
    pub overlap: Overlap,
    /// The time after its start at which an instance that only waits for people ends.
    pub expires: TimeDelta,
}

/// The state of a schedule that survives the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Times up to this one have been handled.
    pub handled: Time,
    /// The time whose instance waits for the end of the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<Time>,
}

/// The number of tasks of an instance by what can become of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    /// Tasks that run, are ready for a run, or wait for a time or a signal.
    pub active: u64,
    /// Tasks that wait for a person or an agent.
    pub held: u64,
    /// Failed tasks.
    pub failed: u64,
    /// Other tasks that are not finished.
    pub stuck: u64,
}

/// The state of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InstanceState {
    /// It goes on by itself.
    Running,
    /// It only waits for people or agents.
    Waiting,
    /// It has ended, and something failed or cannot start.
    Failed,
    /// All its tasks are finished.
    Done,
    /// It was ended because people did not answer in time.
    Expired,
    /// It was ended because the next instance replaced it.
    Replaced,
}

impl InstanceState {
    /// Derives the state from the tasks. While something goes on, a failure does not end the instance.
    pub fn of(activity: Activity) -> Self {
        match activity {
            Activity { active: 1.., .. } => Self::Running,
            Activity { failed: 1.., .. } => Self::Failed,
            Activity { held: 1.., .. } => Self::Waiting,
            Activity { stuck: 1.., .. } => Self::Failed,
            Activity { .. } => Self::Done,
        }
    }

    /// Returns whether the instance keeps the next one from starting.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Waiting)
    }
}

/// One thing to do, in the order of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// End the instance, which only waits for people.
    Expire,
    /// Report times that passed while no server ran.
    Missed {
        /// The first of them.
        first: Occurrence,
        /// The last of them.
        last: Occurrence,
        /// Their number.
        count: u64,
    },
    /// Report a time that is skipped because the instance before still runs.
    Skip(Occurrence),
    /// End the instance, because another one replaces it.
    Replace,
    /// Start an instance.
    Start(Occurrence),
}

/// The result of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The action.
    pub steps: Vec<Step>,
    /// The state after that.
    pub memory: Memory,
    /// The time of the next decision, unless the instance changes before.
    pub wake: Option<Time>,
}

/// Decides what to do at a time. `last` has the state and the start of the last instance.
///
/// Of times that were missed, the last one starts an instance, so that they are made up for once.
pub fn decide(
    calendar: &Calendar,
    rules: Rules,
    memory: Memory,
    last: Option<(InstanceState, Time)>,
    now: Time,
) -> Decision {
    let mut decision = Decision { steps: Vec::new(), memory, wake: None };
    let mut end_of_wait = None;
    let mut is_open = false;
    if let Some((state, started)) = last {
        let end = started + rules.expires;
        is_open = state.is_open();
        if state == InstanceState::Waiting {
            if end <= now {
                decision.steps.push(Step::Expire);
                is_open = false;
            } else {
                end_of_wait = Some(end);
            }
        }
    }
    if !is_open && let Some(queued) = decision.memory.queued.take() {
        decision.steps.push(Step::Start(calendar.occurrence(queued)));
        is_open = true;
    }
    let mut passed: Vec<Occurrence> =
        calendar.after(memory.handled).take_while(|one| one.at <= now).take(MAX_PASSED).collect();
    if let Some(due) = passed.pop() {
        decision.memory.handled = due.at;
        let is_late = now - due.at > LATE;
        let count = passed.len() as u64 + u64::from(is_late);
        if count > 0 {
            let first = passed.first().unwrap_or(&due).clone();
            let last = if is_late { due.clone() } else { passed.pop().unwrap_or_else(|| due.clone()) };
            decision.steps.push(Step::Missed { first, last, count });
        }
        decision.start(rules.overlap, due, is_open, is_late);
    }
    let next = calendar.next(decision.memory.handled).map(|next| next.at);
    decision.wake = next.into_iter().chain(end_of_wait).min();
    decision
}

impl Decision {
    /// Starts an instance, or applies the rule for overlapping times.
    fn start(&mut self, overlap: Overlap, due: Occurrence, is_open: bool, is_late: bool) {
        match overlap {
            _ if !is_open => self.steps.push(Step::Start(due)),
            Overlap::Replace => self.steps.extend([Step::Replace, Step::Start(due)]),
            Overlap::Queue if self.memory.queued.is_none() => self.memory.queued = Some(due.at),
            // A late time has been reported as missed.
            Overlap::Queue | Overlap::Skip if is_late => {}
            Overlap::Queue | Overlap::Skip => self.steps.push(Step::Skip(due)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Time {
        format!("2026-11-{}:00Z", text.replace(' ', "T")).parse().unwrap()
    }

    struct Night {
        overlap: Overlap,
        memory: Memory,
        last: Option<(InstanceState, Time)>,
    }

    impl Night {
        fn new(overlap: Overlap) -> Self {
            Self { overlap, memory: Memory { handled: at("27 12:00"), queued: None }, last: None }
        }

        fn with_last(self, state: InstanceState, started: &str) -> Self {
            Self { last: Some((state, at(started))), ..self }
        }

        /// Decides, and returns the steps and the next time in words.
        fn decide(&mut self, now: &str) -> (String, String) {
            let calendar = Calendar::parse("0 3 * * *", "UTC").unwrap();
            let rules = Rules { overlap: self.overlap, expires: TimeDelta::hours(12) };
            let decision = decide(&calendar, rules, self.memory, self.last, at(now));
            self.memory = decision.memory;
            let day = |one: &Occurrence| one.at.format("%d").to_string();
            let words = decision.steps.iter().map(|step| match step {
                Step::Expire => "expire".to_owned(),
                Step::Missed { first, last, count } => {
                    format!("missed {}-{} ({count})", day(first), day(last))
                }
                Step::Skip(one) => format!("skip {}", day(one)),
                Step::Replace => "replace".to_owned(),
                Step::Start(one) => format!("start {}", day(one)),
            });
            let words: Vec<String> = words.collect();
            (words.join(", "), decision.wake.unwrap().format("%d %H:%M").to_string())
        }
    }

    fn decided(steps: &str, wake: &str) -> (String, String) {
        (steps.to_owned(), wake.to_owned())
    }

    #[test]
    fn a_time_starts_an_instance_once() {
        let mut night = Night::new(Overlap::Skip);
        assert_eq!(night.decide("28 02:59"), decided("", "28 03:00"));
        assert_eq!(night.decide("28 03:00"), decided("start 28", "29 03:00"));
        assert_eq!(night.decide("28 03:00"), decided("", "29 03:00"));
        let mut night = night.with_last(InstanceState::Done, "28 03:00");
        assert_eq!(night.decide("29 03:01"), decided("start 29", "30 03:00"));
    }

    #[test]
    fn missed_times_start_once_and_are_reported_once() {
        let mut night = Night::new(Overlap::Skip);
        assert_eq!(night.decide("28 09:00"), decided("missed 28-28 (1), start 28", "29 03:00"));
        let mut night = Night::new(Overlap::Skip);
        assert_eq!(night.decide("30 09:00"), decided("missed 28-30 (3), start 30", "01 03:00"));
        assert_eq!(night.decide("30 09:01"), decided("", "01 03:00"));
        let mut night = Night::new(Overlap::Skip);
        assert_eq!(night.decide("30 03:00"), decided("missed 28-29 (2), start 30", "01 03:00"));
    }

    #[test]
    fn the_rule_for_overlaps_decides_while_the_last_instance_runs() {
        for state in [InstanceState::Running, InstanceState::Waiting] {
            let night = |overlap| Night::new(overlap).with_last(state, "27 20:00");
            assert_eq!(night(Overlap::Skip).decide("28 03:00").0, "skip 28");
            assert_eq!(night(Overlap::Replace).decide("28 03:00").0, "replace, start 28");
            assert_eq!(night(Overlap::Queue).decide("28 03:00").0, "");
        }
        let ended =
            [InstanceState::Done, InstanceState::Failed, InstanceState::Expired, InstanceState::Replaced];
        for state in ended {
            assert_eq!(
                Night::new(Overlap::Skip).with_last(state, "27 20:00").decide("28 03:00").0,
                "start 28"
            );
        }
    }

    #[test]
    fn one_instance_waits_in_the_queue() {
        let mut night = Night::new(Overlap::Queue).with_last(InstanceState::Running, "27 20:00");
        assert_eq!(night.decide("28 03:00").0, "");
        assert_eq!(night.memory.queued, Some(at("28 03:00")));
        assert_eq!(night.decide("29 03:00").0, "skip 29");
        let mut night = night.with_last(InstanceState::Failed, "27 20:00");
        assert_eq!(night.decide("29 04:00").0, "start 28");
        assert_eq!(night.memory.queued, None);
        // The queued instance and the next time come at once: the later one waits.
        let mut night = Night::new(Overlap::Queue);
        night.memory.queued = Some(at("27 03:00"));
        assert_eq!(night.decide("28 03:00").0, "start 27");
        assert_eq!(night.memory.queued, Some(at("28 03:00")));
    }

    #[test]
    fn an_instance_that_waits_for_people_ends_after_its_time() {
        let mut night = Night::new(Overlap::Skip).with_last(InstanceState::Waiting, "27 14:00");
        assert_eq!(night.decide("28 01:00"), decided("", "28 02:00"));
        assert_eq!(night.decide("28 02:00"), decided("expire", "28 03:00"));
        let mut night = Night::new(Overlap::Skip).with_last(InstanceState::Waiting, "27 14:00");
        assert_eq!(night.decide("28 03:00").0, "expire, start 28");
        let mut night = Night::new(Overlap::Skip).with_last(InstanceState::Running, "27 01:00");
        assert_eq!(night.decide("28 02:00").0, "", "work that goes on is not ended");
    }

    #[test]
    fn the_state_of_an_instance_follows_from_its_tasks() {
        let state = |active, held, failed, stuck| InstanceState::of(Activity { active, held, failed, stuck });
        assert_eq!(state(0, 0, 0, 0), InstanceState::Done);
        assert_eq!(state(1, 1, 1, 1), InstanceState::Running);
        assert_eq!(state(0, 1, 0, 2), InstanceState::Waiting);
        assert_eq!(state(0, 1, 1, 2), InstanceState::Failed);
        assert_eq!(state(0, 0, 0, 1), InstanceState::Failed);
    }
}
