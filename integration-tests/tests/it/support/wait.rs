//! Waiting for a condition.

use std::time::{Duration, Instant};

/// Time limit of a wait. Generous, so that a loaded machine causes no failures.
const PATIENCE: Duration = Duration::from_mins(2);

/// Calls `look` until it returns a value. Panics after two minutes.
pub(crate) fn until<T>(goal: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        let started = Instant::now();
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {goal}");
        // A search of all processes takes milliseconds: without a longer pause it would take the CPU from the processes waited for.
        std::thread::sleep(Duration::from_millis(1).max(started.elapsed() * 2));
    }
}
