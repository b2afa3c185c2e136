//! Every command has the result that a second, independent model of the rules predicts.
//!
//! A failing seed is printed with the shortest sequence of commands that was found. `SEED=17 cargo test -p
//! taskpawl-testkit --test it reference` replays it.

use std::sync::Mutex;

use taskpawl_testkit::harness::{failure_of_control, first_failure, replayed_seed, seeds};
use taskpawl_testkit::reference::{Difference, Flaw, Tally, play};

const SEEDS: u64 = 2_500;
const MORE_SEEDS: u64 = 200_000;

/// Seeds that are searched for a failure of a control whose pinned seed shows none.
const SEARCHED: u64 = 10_000;

const LENGTH: usize = 100;

/// Kinds of commands that are never refused.
const ALWAYS_ACCEPTED: &[&str] = &["Round", "Settle", "StartRun", "ToolsKnown", "ReturnExpired"];

fn tell(seed: u64, difference: &Difference) -> String {
    let Difference { commands, lines } = difference;
    let replay = format!("SEED={seed} cargo test -p taskpawl-testkit --test it reference");
    format!("{}\n{}\n{replay}", commands.join("\n"), lines.join("\n"))
}

#[test]
fn commands_match_the_reference() {
    if let Some(seed) = replayed_seed() {
        if let Err(difference) = play(seed, LENGTH, None) {
            panic!("{}", tell(seed, &difference));
        }
        return;
    }
    let (seeds, tally) = (seeds(SEEDS, MORE_SEEDS), Mutex::new(Tally::default()));
    let failure = first_failure(seeds.clone(), |seed| match play(seed, LENGTH, None) {
        Ok(counted) => {
            tally.lock().unwrap().merge(&counted);
            None
        }
        Err(difference) => Some(difference),
    });
    if let Some((seed, difference)) = failure {
        panic!("{}", tell(seed, &difference));
    }
    let tally = tally.into_inner().unwrap();
    println!("P8 reference: sequences {seeds:?} of {LENGTH} commands");
    for (kind, (accepted, refused)) in &tally.counts {
        println!("  {kind}: {accepted} accepted, {refused} refused");
        let can_be_refused = !ALWAYS_ACCEPTED.contains(&kind.as_str());
        assert!(*accepted > 0 && (*refused > 0) == can_be_refused, "{kind}: {accepted}, {refused}");
    }
    assert_eq!(tally.counts.len(), 28, "{:?}", tally.counts.keys());
}

#[test]
fn faults_in_the_rules_are_noticed() {
    let flaws = [
        (Flaw::CancelledCountsAsDone, 5),
        (Flaw::AnyDoneWaits, 4),
        (Flaw::DoneMayBeSkipped, 0),
        (Flaw::AnyAttempt, 1),
        (Flaw::CancelLeavesSubtasks, 5),
        (Flaw::NeedsFromAbove, 2),
        (Flaw::AgainBesideItsEnd, 8),
    ];
    for (flaw, pinned) in flaws {
        let failure = failure_of_control(pinned, SEARCHED, |seed| play(seed, LENGTH, Some(flaw)).err());
        let (seed, difference) = failure.unwrap_or_else(|| panic!("{flaw:?} was not noticed"));
        println!("{flaw:?} is noticed with seed {seed}, by {} commands", difference.commands.len());
    }
}
