//! The engine in simulated time, with crashes, several runs, agents and people.
//!
//! A failing seed is printed. `SEED=17 cargo test -p taskpawl-testkit --test it simulation -- --nocapture` replays it
//! and prints a trace.

use std::sync::Mutex;

use taskpawl_testkit::harness::{failure_of_control, first_failure, replayed_seed, seeds};
use taskpawl_testkit::simulation::{Coverage, Fault, Played, play, play_aloud};

const SEEDS: u64 = 2_500;
const MORE_SEEDS: u64 = 200_000;

/// Seeds that are searched for a failure of a control whose pinned seed shows none.
const SEARCHED: u64 = 10_000;

/// Situations that have to occur at least once in a thousand seeds. Without them the test would prove nothing.
const COVERED: &[&str] = &[
    "runs beside another",
    "restricted runs",
    "runs finished",
    "runs stopped",
    "crashes",
    "crashes with tools",
    "crashes while recovering",
    "rounds lost in a crash",
    "ends that nobody heard",
    "tools ended after a crash",
    "recoveries",
    "signals",
    "tools killed",
    "interruptions decided",
    "claims by agents",
    "leases renewed or released",
    "late reports",
    "reports in time",
    "reports refused",
    "answers behind others",
    "commands by hand",
    "commands by hand refused",
    "retries refused while calls end",
    "questions decided",
    "questions to an approver",
    "runs with limits",
    "limits reached",
    "starts in later rounds",
    "starts after failures",
    "starts of items",
    "starts that make tasks",
    "starts with limits",
    "crashes in later rounds",
    "crashes after failures",
    "crashes among items",
    "crashes while tasks are made",
    "crashes in pauses",
    "simulations with hands",
    "simulations compared with the interpreter",
];

fn tell(seed: u64, played: &Played) -> String {
    let broken = played.broken.as_ref().map(|broken| broken.lines.join("\n")).unwrap_or_default();
    format!("{broken}\nSEED={seed} cargo test -p taskpawl-testkit --test it simulation -- --nocapture")
}

#[test]
fn simulations_keep_every_rule() {
    if let Some(seed) = replayed_seed() {
        let played = play_aloud(seed, None);
        println!("{}", played.trace.join("\n"));
        assert!(played.broken.is_none(), "{}", tell(seed, &played));
        return;
    }
    let (seeds, coverage) = (seeds(SEEDS, MORE_SEEDS), Mutex::new(Coverage::default()));
    let failure = first_failure(seeds.clone(), |seed| {
        let played = play(seed, None);
        coverage.lock().unwrap().merge(&played.coverage);
        played.broken.is_some().then_some(played)
    });
    if let Some((seed, played)) = failure {
        panic!("{}", tell(seed, &played));
    }
    let coverage = coverage.into_inner().unwrap();
    println!("P8 simulation: seeds {seeds:?}");
    let count = seeds.end - seeds.start;
    for (what, count) in &coverage.counts {
        println!("  {what}: {count}");
    }
    for what in COVERED {
        assert!(coverage.of(what) >= count / 1000, "`{what}` happened {} times", coverage.of(what));
    }
}

#[test]
fn seeds_that_found_faults_keep_every_rule() {
    // A person retries a task that already waits for a resource of the run. An item is moved to another list, and asks what that asks.
    for seed in [4_157_000_674, 4_157_001_065] {
        let played = play(seed, None);
        assert!(played.broken.is_none(), "{}", tell(seed, &played));
    }
}

#[test]
fn the_same_seed_gives_the_same_simulation() {
    for seed in 0..40 {
        let (one, other) = (play_aloud(seed, None), play_aloud(seed, None));
        assert_eq!(one, other, "seed {seed}");
        assert!(!one.trace.is_empty());
    }
}

#[expect(clippy::print_stdout, reason = "a test harness prints its measurements")]
/// Returns the error of the pinned seed with a fault, or of the first seed that fails.
fn red(fault: Fault, pinned: u64) -> String {
    // A driver that violates its contract may cause a panic in the rules. Such a seed says nothing about the checks.
    let played = |seed| std::panic::catch_unwind(|| play(seed, Some(fault)).broken).ok().flatten();
    let failure = failure_of_control(pinned, SEARCHED, played);
    let (seed, broken) = failure.unwrap_or_else(|| panic!("{fault:?} was not noticed"));
    println!("{fault:?} is noticed with seed {seed}, after {} steps: {}", broken.step, broken.lines[0]);
    broken.lines.join("\n")
}

#[test]
fn a_tool_started_before_its_commit_is_noticed() {
    assert!(red(Fault::EarlyStart, 5).contains("the store does not know"));
}

#[test]
fn a_recovery_that_repeats_everything_is_noticed() {
    assert!(red(Fault::RepeatEverything, 13).contains("started again, though nobody decided that"));
}

#[test]
fn a_lock_released_before_the_tools_end_is_noticed() {
    assert!(red(Fault::LockFreesEarly, 7).contains("lives"));
}

#[test]
fn accepting_a_report_about_any_attempt_is_noticed() {
    assert!(red(Fault::AnyAttempt, 8).contains("was accepted"));
}

#[test]
fn an_answered_but_unwritten_commit_is_noticed() {
    let text = red(Fault::LostCommit, 0);
    assert!(
        text.contains("does not know") || text.contains("was lost") || text.contains("is over"),
        "{text}"
    );
}

#[test]
fn a_lost_notification_of_ready_tasks_is_noticed() {
    assert!(red(Fault::DroppedReady, 11).contains("are ready"));
}

#[test]
fn a_restart_during_the_end_of_cancelled_calls_is_noticed() {
    assert!(red(Fault::ForgottenEnding, 88).contains("lives"));
}

#[test]
fn exceeding_a_resource_is_noticed() {
    assert!(red(Fault::PlentyOfAll, 50).contains("units of"));
}

#[test]
fn shortened_delays_are_noticed() {
    assert!(red(Fault::ClockAhead, 831).contains("before its pause is over"));
}

#[test]
fn lost_rounds_are_noticed() {
    let text = red(Fault::ForgottenRounds, 12);
    assert!(text.contains("is started in round") || text.contains("expected the result"), "{text}");
}

#[test]
fn a_run_loop_that_ignores_other_writers_is_noticed() {
    let text = red(Fault::IgnoresOthers, 5);
    assert!(text.contains("has not ended") || text.contains("are ready"), "{text}");
}
