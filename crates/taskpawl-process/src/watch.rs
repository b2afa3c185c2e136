use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::capture::Capture;
use crate::group::Group;
use crate::program::End;

/// Waits until a program ends or one of its limits is reached, and returns which.
pub(crate) async fn watch(
    group: &mut Group,
    capture: &Capture,
    output_bytes: u64,
    deadline: Option<Instant>,
    cancel: Option<&CancellationToken>,
) -> End {
    let mut pace = Pace::new();
    loop {
        tokio::select! {
            biased;
            () = group.ended() => return End::Exited,
            () = cancelled(cancel) => return End::Cancelled,
            () = passed(deadline) => return End::TimedOut,
            () = tokio::time::sleep(pace.interval) => {}
        }
        // A file that cannot be measured any more is not bounded any more either.
        let size = capture.size().unwrap_or(u64::MAX);
        if size > output_bytes {
            return End::OutputLimit;
        }
        pace.adapt(size, output_bytes);
    }
}

async fn cancelled(cancel: Option<&CancellationToken>) {
    match cancel {
        Some(cancel) => cancel.cancelled().await,
        None => std::future::pending().await,
    }
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// How often the output is measured: rarely while little comes, often while the limit comes near.
#[derive(Debug)]
struct Pace {
    interval: Duration,
    seen: u64,
}

impl Pace {
    const SHORTEST: Duration = Duration::from_millis(5);
    const LONGEST: Duration = Duration::from_millis(100);

    fn new() -> Self {
        Self { interval: Self::SHORTEST, seen: 0 }
    }

    /// Doubles the interval if four times what came in the last one would still fit below the limit.
    fn adapt(&mut self, size: u64, limit: u64) {
        let grown = size.saturating_sub(self.seen);
        let is_near = size.saturating_add(grown.saturating_mul(4)) > limit;
        self.interval = if is_near { Self::SHORTEST } else { (self.interval * 2).min(Self::LONGEST) };
        self.seen = size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_slows_down_for_the_quiet_and_quickens_near_the_limit() {
        let mut pace = Pace::new();
        let mut intervals = Vec::new();
        for size in [0, 0, 10, 10, 10, 10, 400, 500, 500] {
            pace.adapt(size, 1000);
            intervals.push(pace.interval.as_millis());
        }
        assert_eq!(intervals, [10, 20, 40, 80, 100, 100, 5, 10, 20]);
    }
}
