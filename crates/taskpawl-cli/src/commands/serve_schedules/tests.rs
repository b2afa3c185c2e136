//! Nights of a scheduled plan, on a clock of their own.

use std::sync::{Arc, Mutex};

use taskpawl::{SandboxSettings, Source};

use super::*;

/// A clock that a test sets.
#[derive(Debug)]
struct Clock(Mutex<(Timestamp, u64)>);

impl Source for Clock {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap().0
    }

    fn new_id(&self) -> String {
        let mut state = self.0.lock().unwrap();
        state.1 += 1;
        format!("id-{}", state.1)
    }
}

fn at(text: &str) -> Timestamp {
    format!("2026-11-{}:00Z", text.replace(' ', "T")).parse().unwrap()
}

struct Nights {
    plans: Taskpawl,
    clock: Arc<Clock>,
    place: Place,
    known: Known,
    _directory: tempfile::TempDir,
}

impl Nights {
    /// Schedules a plan on 27 November at noon.
    fn new(schedule: &str, tasks: &str) -> Self {
        let clock = Arc::new(Clock(Mutex::new((at("27 12:00"), 0))));
        let builder = Taskpawl::builder(":memory:").sandbox(SandboxSettings::off());
        let plans = builder.source(Arc::<Clock>::clone(&clock)).open().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let place = Place::for_tests(directory.path());
        let text = format!("{{schedule: {schedule}, tasks: {tasks}}}");
        let added = place.schedule("nightly", text, at("27 12:00"));
        place.change(|schedules| schedules.push(added)).unwrap();
        Self { plans, clock, place, known: Known::new(), _directory: directory }
    }

    /// Looks at the schedules at a time, and returns the messages in words.
    fn look(&mut self, time: &str) -> Vec<String> {
        self.clock.0.lock().unwrap().0 = at(time);
        let known = std::mem::take(&mut self.known);
        let quiet = QuietPlans::default();
        let (tick, known) = tick(self.plans.manager(), &self.place, &quiet, known).unwrap();
        self.known = known;
        assert_eq!(tick.warnings, Vec::<String>::new());
        let words = tick.messages.iter().map(|message| {
            assert_eq!(message.details["schedule"], "nightly");
            let about = message.details.get("instance").or(message.details.get("count")).unwrap();
            format!("{} {}", message.event, about.to_string().trim_matches('"'))
        });
        words.collect()
    }

    fn run(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.plans.run_all_ready(RunOptions::default())).unwrap();
    }

    fn last(&self) -> (String, InstanceState) {
        let last = self.place.read().unwrap().remove(0).last.unwrap();
        (last.plan, last.state)
    }
}

const DAILY: &str = "0 3 * * *";
const NONE: [&str; 0] = [];

#[test]
fn a_good_night_is_quiet() {
    let mut nights = Nights::new(DAILY, "[{id: a, call: {log: {message: x}}}]");
    assert_eq!(nights.look("27 12:00"), NONE);
    assert_eq!(nights.look("28 03:00"), NONE);
    assert_eq!(nights.last(), ("nightly-20261128T0300".to_owned(), InstanceState::Running));
    nights.run();
    assert_eq!(nights.look("28 03:01"), NONE);
    assert_eq!(nights.last().1, InstanceState::Done);
    assert_eq!(nights.look("29 03:00"), NONE);
    let ids = nights.plans.manager().list(&Query::default()).unwrap().tasks;
    let ids: Vec<&str> = ids.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["nightly-20261128T0300.a", "nightly-20261129T0300.a"]);
}

#[test]
fn a_failed_night_is_reported_once() {
    let mut nights = Nights::new(DAILY, "[{id: a, call: {fail: {message: broken}}}]");
    assert_eq!(nights.look("28 03:00"), NONE);
    nights.run();
    assert_eq!(nights.look("28 03:01"), ["failed nightly-20261128T0300"]);
    assert_eq!(nights.look("28 03:02"), NONE);
    // A server that starts over reports nothing again.
    nights.known.clear();
    assert_eq!(nights.look("28 03:03"), NONE);
    // A repaired night ends well.
    nights.plans.manager().skip(&["nightly-20261128T0300.a".to_owned()], None).unwrap();
    assert_eq!(nights.look("28 03:04"), NONE);
    assert_eq!(nights.last().1, InstanceState::Done);
    assert_eq!(nights.look("29 03:00"), NONE, "the next night starts");
}

#[test]
fn a_night_that_waits_for_people_is_reported_once_skips_the_next_time_and_expires() {
    let schedule = "{cron: 0 3 * * *, expires: 30h}";
    let mut nights = Nights::new(schedule, "[{id: a, approval: required, call: {log: {message: x}}}]");
    assert_eq!(nights.look("28 03:00"), ["waiting nightly-20261128T0300"]);
    nights.run();
    assert_eq!(nights.look("28 03:01"), NONE);
    assert_eq!(nights.look("28 04:00"), NONE);
    assert_eq!(nights.look("29 03:00"), ["skipped nightly-20261128T0300"]);
    assert_eq!(nights.look("29 03:01"), NONE);
    assert_eq!(nights.look("29 09:00"), NONE);
    assert_eq!(nights.last(), ("nightly-20261128T0300".to_owned(), InstanceState::Expired));
    let task = nights.plans.manager().get("nightly-20261128T0300.a").unwrap();
    assert_eq!(task.status, Status::Cancelled);
    assert_eq!(nights.look("30 03:00"), ["waiting nightly-20261130T0300"]);
}

#[test]
fn missed_nights_are_reported_once_and_made_up_for_once() {
    let mut nights = Nights::new(DAILY, "[{id: a, call: {log: {message: x}}}]");
    assert_eq!(nights.look("30 09:00"), ["missed 3"]);
    assert_eq!(nights.last().0, "nightly-20261130T0300");
    nights.known.clear();
    assert_eq!(nights.look("30 09:01"), NONE);
    assert_eq!(nights.plans.manager().list(&Query::default()).unwrap().tasks.len(), 1);
}

#[test]
fn the_next_night_waits_for_the_last_or_replaces_it() {
    let tasks = "[{id: a, approval: required, call: {log: {message: x}}}]";
    let mut queue = Nights::new("{cron: 0 3 * * *, overlap: queue, expires: 90h}", tasks);
    queue.look("28 03:00");
    queue.run();
    queue.look("28 03:01");
    assert_eq!(queue.look("29 03:00"), NONE);
    assert_eq!(queue.last().0, "nightly-20261128T0300");
    queue.plans.manager().skip(&["nightly-20261128T0300.a".to_owned()], None).unwrap();
    assert_eq!(queue.look("29 05:00"), ["waiting nightly-20261129T0300"]);

    let mut replace = Nights::new("{cron: 0 3 * * *, overlap: replace}", tasks);
    replace.look("28 03:00");
    replace.run();
    assert_eq!(replace.look("29 03:00"), ["waiting nightly-20261129T0300"]);
    let before = replace.plans.manager().get("nightly-20261128T0300.a").unwrap();
    assert_eq!(before.status, Status::Cancelled);
}

#[test]
fn a_plan_may_leave_messages_out() {
    let schedule = "{cron: 0 3 * * *, onFailure: none, onMissed: none}";
    let mut nights = Nights::new(schedule, "[{id: a, call: {fail: {message: broken}}}]");
    assert_eq!(nights.look("30 09:00"), NONE);
    nights.run();
    assert_eq!(nights.look("30 09:01"), NONE);
    assert_eq!(nights.last().1, InstanceState::Failed);
}

#[test]
fn a_plan_that_cannot_be_applied_is_a_failed_night() {
    let mut nights = Nights::new(DAILY, "[{id: a, needs: gone, call: {log: {message: x}}}]");
    assert_eq!(nights.look("28 03:00"), ["failed nightly-20261128T0300"]);
    assert_eq!(nights.look("28 03:01"), NONE);
    assert!(nights.place.read().unwrap().remove(0).last.unwrap().error.unwrap().contains("gone"));
    assert_eq!(nights.look("29 03:00"), ["failed nightly-20261129T0300"]);
}
