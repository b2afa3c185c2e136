//! A preview shows the state that the command leaves.
//!
//! `SEED=17 cargo test -p taskpawl-testkit --test it previews` replays a failing seed.

use std::sync::atomic::{AtomicUsize, Ordering};

use taskpawl_testkit::harness::{first_failure, replayed_seed, seeds};
use taskpawl_testkit::reference::take_previews;

const SEEDS: u64 = 200;
const MORE_SEEDS: u64 = 10_000;
const LENGTH: usize = 80;

#[test]
fn previews_show_the_state_that_commands_leave() {
    if let Some(seed) = replayed_seed() {
        take_previews(seed, LENGTH, false).unwrap();
        return;
    }
    let (seeds, accepted) = (seeds(SEEDS, MORE_SEEDS), AtomicUsize::new(0));
    let failure = first_failure(seeds.clone(), |seed| match take_previews(seed, LENGTH, false) {
        Ok(number) => {
            accepted.fetch_add(number, Ordering::Relaxed);
            None
        }
        Err(difference) => Some(difference),
    });
    if let Some((seed, difference)) = failure {
        panic!("{difference}\nSEED={seed} cargo test -p taskpawl-testkit --test it previews");
    }
    let accepted = accepted.into_inner();
    println!("{accepted} previews in sequences {seeds:?} of {LENGTH} commands");
    assert!(accepted > 1_000, "only {accepted} commands were accepted");
}

#[test]
fn a_stale_preview_is_noticed() {
    assert!(first_failure(0..5, |seed| take_previews(seed, LENGTH, true).err()).is_some());
}
