//! Runs many seeds on all cores, and reports the first that fails.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Returns the seed to replay, from the variable `SEED`.
pub(crate) fn replayed_seed() -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "selects the seed that a test replays")]
    let seed = std::env::var("SEED").ok();
    seed.map(|seed| seed.parse().expect("SEED is a number"))
}

/// Returns the number of seeds: `usual`, or `full` if `TASKPAWL_HARNESS` is `full`.
pub(crate) fn seeds(usual: u64, full: u64) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "selects the number of seeds of a test")]
    let harness = std::env::var("TASKPAWL_HARNESS");
    if harness.as_deref() == Ok("full") { full } else { usual }
}

/// Tries seeds from 0 until one fails, and returns the lowest of those that failed.
pub(crate) fn first_failure<T: Send>(
    count: u64,
    fails: impl Fn(u64) -> Option<T> + Sync,
) -> Option<(u64, T)> {
    let (next, stopped) = (AtomicU64::new(0), AtomicBool::new(false));
    let found = Mutex::new(Vec::new());
    let work = || {
        // Seeds are handed out in order and started ones are finished, so the lowest failing seed is found regardless
        // of timing.
        while !stopped.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
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
