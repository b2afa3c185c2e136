//! The rules accept every piece of advice from the actor to whom it is given.
//!
//! `SEED=17 cargo test -p taskpawl-testkit --test it offers` replays a failing seed.

use std::sync::Mutex;

use taskpawl_testkit::harness::{failure_of_control, first_failure, replayed_seed, seeds};
use taskpawl_testkit::reference::{OfferFlaw, Offers, take_offers};

const SEEDS: u64 = 250;
const MORE_SEEDS: u64 = 50_000;

/// Seeds that are searched for a failure of a control whose pinned seed shows none.
const SEARCHED: u64 = 1_000;

const LENGTH: usize = 100;

#[test]
fn all_advice_about_random_stores_is_accepted() {
    if let Some(seed) = replayed_seed() {
        take_offers(seed, LENGTH, None).unwrap();
        return;
    }
    let (seeds, all) = (seeds(SEEDS, MORE_SEEDS), Mutex::new(Offers::default()));
    let failure = first_failure(seeds.clone(), |seed| match take_offers(seed, LENGTH, None) {
        Ok(offers) => {
            all.lock().unwrap().merge(&offers);
            None
        }
        Err(refused) => Some(refused),
    });
    if let Some((seed, refused)) = failure {
        panic!("{refused}\nSEED={seed} cargo test -p taskpawl-testkit --test it offers");
    }
    let all = all.into_inner().unwrap();
    println!("P17 advice: sequences {seeds:?} of {LENGTH} commands");
    for ((source, kind), count) in &all.taken {
        println!("  {source}: {kind}: {count} taken");
    }
    for source in ["refusal", "explain", "ready"] {
        assert!(all.taken.keys().any(|(from, _)| *from == source), "{source} advises nothing");
    }
}

#[test]
fn false_advice_is_noticed() {
    for (flaw, pinned) in [(OfferFlaw::WrongActor, 75), (OfferFlaw::WrongId, 2), (OfferFlaw::Untried, 0)] {
        let failure =
            failure_of_control(pinned, SEARCHED, |seed| take_offers(seed, LENGTH, Some(flaw)).err());
        let (seed, refused) = failure.unwrap_or_else(|| panic!("{flaw:?} passes"));
        println!("{flaw:?} is noticed with seed {seed}: {refused}");
    }
}
