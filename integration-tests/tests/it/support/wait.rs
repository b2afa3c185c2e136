//! Waiting for a condition.

use std::time::{Duration, Instant};

/// Time limit of a wait. Generous, so that a loaded machine causes no failures.
const PATIENCE: Duration = Duration::from_mins(2);

/// Calls `look` until it returns a value. Panics after two minutes.
pub(crate) fn until<T>(goal: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {goal}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
