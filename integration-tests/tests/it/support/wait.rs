//! Waiting for something to be so.

use std::time::{Duration, Instant};

/// Longer than anything takes on a machine that has other things to do; who waits so long waits for ever.
const PATIENCE: Duration = Duration::from_mins(2);

/// Returns what `look` finds as soon as it finds something.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
