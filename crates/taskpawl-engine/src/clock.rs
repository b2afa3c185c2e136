//! The clock of the machine, as runs see it.

use std::time::Instant;

use taskpawl_manager::{Source, SystemSource};
use taskpawl_model::Timestamp;

/// The clock of the machine and random ids. Where a test pauses the time of tokio, the clock is ahead by what was skipped.
///
/// Timers follow the time of tokio. If due times followed another clock, a timer that ended early would be set again at once, over
/// and over, until real time has passed.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunSource;

impl Source for RunSource {
    fn now(&self) -> Timestamp {
        // Both read the same clock unless time is paused, the second one later: then nothing is added.
        let tokio = tokio::time::Instant::now().into_std();
        let skipped = tokio.saturating_duration_since(Instant::now());
        SystemSource.now() + chrono::TimeDelta::from_std(skipped).unwrap_or_default()
    }

    fn new_id(&self) -> String {
        SystemSource.new_id()
    }
}
