//! The system clock, as runs see it.

use std::time::Instant;

use taskpawl_manager::{Source, SystemSource};
use taskpawl_model::value::Timestamp;

/// System clock and random ids. While a test pauses the tokio clock, this clock is ahead by the skipped time.
///
/// Timers follow the tokio clock. If due times followed another clock, a timer that fires early would be set again at
/// once, over and over, until real time has passed.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunSource;

impl Source for RunSource {
    fn now(&self) -> Timestamp {
        // Both calls read the same monotonic clock unless time is paused. The tokio instant is taken first, so the
        // difference is then zero or negative and nothing is added.
        let tokio = tokio::time::Instant::now().into_std();
        let skipped = tokio.saturating_duration_since(Instant::now());
        SystemSource.now() + chrono::TimeDelta::from_std(skipped).unwrap_or_default()
    }

    fn new_id(&self) -> String {
        SystemSource.new_id()
    }
}
