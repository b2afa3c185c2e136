//! Tests over many seeds: the seeds of today, and the first of them that fails, on all cores.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_OF_A_DAY: u64 = 86_400;

/// Returns the seed to replay, from the variable `SEED`.
///
/// # Panics
/// Panics if the variable is not a number.
pub fn replayed_seed() -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "selects the seed that a test replays")]
    let seed = std::env::var("SEED").ok();
    seed.map(|seed| seed.parse().expect("SEED is a number"))
}

/// Returns the seeds of today: `usual` of them, or `full` if `TASKPAWL_HARNESS` is `full`.
///
/// They move with the day, so that the same time for each change covers more histories in the long run.
pub fn seeds(usual: u64, full: u64) -> Range<u64> {
    #[expect(clippy::disallowed_methods, reason = "selects the number of seeds of a test")]
    let harness = std::env::var("TASKPAWL_HARNESS");
    #[expect(clippy::disallowed_methods, reason = "selects the seeds of a test, which prints them")]
    let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let first = age.as_secs() / SECONDS_OF_A_DAY * full;
    first..first + if harness.as_deref() == Ok("full") { full } else { usual }
}

/// Returns the failure of a control: of its pinned seed, which was found by the search that is repeated if that one passes.
#[expect(clippy::print_stdout, reason = "a test harness prints the seed to pin")]
pub fn failure_of_control<T: Send>(
    pinned: u64,
    count: u64,
    fails: impl Fn(u64) -> Option<T> + Sync,
) -> Option<(u64, T)> {
    if let Some(failure) = fails(pinned) {
        return Some((pinned, failure));
    }
    let found = first_failure(0..count, fails);
    if let Some((seed, _)) = &found {
        println!("seed {pinned} shows nothing any more: pin {seed}");
    }
    found
}

/// Tries seeds in order until one fails, and returns the lowest of those that failed.
///
/// # Panics
/// Panics if `fails` does.
pub fn first_failure<T: Send>(
    seeds: Range<u64>,
    fails: impl Fn(u64) -> Option<T> + Sync,
) -> Option<(u64, T)> {
    let (next, stopped) = (AtomicU64::new(seeds.start), AtomicBool::new(false));
    let found = Mutex::new(Vec::new());
    let work = || {
        // Seeds are handed out in order and started ones are finished, so the lowest failing seed is found regardless
        // of timing.
        while !stopped.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            if let Some(failure) = fails(seed) {
                stopped.store(true, Ordering::Relaxed);
                found.lock().unwrap_or_else(PoisonError::into_inner).push((seed, failure));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.into_iter().min_by_key(|(seed, _)| *seed)
}
