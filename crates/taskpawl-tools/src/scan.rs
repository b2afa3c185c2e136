//! Time limits for scans of the file system: a slow or endless tree must not delay the end of a call, a timeout or a
//! signal.

use std::io;
use std::time::Duration;

use taskpawl_process::{Unfinished, blocking_within};
use thiserror::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Longest scan before or after a call. Such a scan only produces a report, so that the call never waits longer for it.
pub(crate) const MAX_SCAN: Duration = Duration::from_secs(10);

/// Time for a scan after a call that was cancelled or timed out. The changes of a killed call matter most, so that it
/// gets some time in any case.
pub(crate) const MIN_SCAN: Duration = Duration::from_secs(1);

/// Time limits of one scan. The scan checks them for each entry, and for each block that it reads.
#[derive(Clone, Debug, Default)]
pub struct ScanBounds {
    cancel: CancellationToken,
    pub(crate) deadline: Option<Instant>,
}

/// Error of a scan that reached its limits. Nothing can be concluded from the part that it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ScanStopped {
    /// The call or the run was cancelled.
    #[error("the scan of the project was cancelled")]
    Cancelled,
    /// The deadline passed.
    #[error("the scan of the project took too long")]
    TimedOut,
}

impl From<ScanStopped> for io::Error {
    fn from(stopped: ScanStopped) -> Self {
        Self::other(stopped)
    }
}

impl ScanBounds {
    /// Makes limits that end with `cancel` and at `deadline`; `None` is no deadline.
    pub fn new(cancel: CancellationToken, deadline: Option<Instant>) -> Self {
        Self { cancel, deadline }
    }

    /// Limits the time from now on.
    #[must_use]
    pub fn at_most(mut self, time: Duration) -> Self {
        let end = Instant::now().checked_add(time);
        self.deadline = [self.deadline, end].into_iter().flatten().min();
        self
    }

    /// Extends the limits to at least `time` from now on, even if the scan is already cancelled.
    #[must_use]
    pub fn at_least(mut self, time: Duration) -> Self {
        let end = Instant::now().checked_add(time);
        if self.cancel.is_cancelled() {
            return Self::new(CancellationToken::new(), end);
        }
        self.deadline = self.deadline.and_then(|deadline| Some(deadline.max(end?)));
        self
    }

    /// Fails once a limit is reached.
    ///
    /// # Errors
    /// The scan is cancelled or its deadline has passed.
    pub fn check(&self) -> Result<(), ScanStopped> {
        if self.cancel.is_cancelled() {
            return Err(ScanStopped::Cancelled);
        }
        match self.deadline {
            Some(deadline) if deadline <= Instant::now() => Err(ScanStopped::TimedOut),
            Some(_) | None => Ok(()),
        }
    }

    /// Runs a scan on a blocking thread. It returns at the limits even if a system call of the scan hangs.
    ///
    /// # Errors
    /// A limit was reached, or the runtime shuts down.
    ///
    /// # Panics
    /// The scan panicked.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the scan, which ends at its next check.
    pub async fn run<T, F>(self, scan: F) -> Result<T, ScanStopped>
    where
        T: Send + 'static,
        F: FnOnce(&Self) -> Result<T, ScanStopped> + Send + 'static,
    {
        let Self { cancel, deadline } = self;
        let inner = Self::new(cancel.child_token(), deadline);
        let _cancelled_on_drop = inner.cancel.clone().drop_guard();
        match blocking_within(&cancel, deadline, move || scan(&inner)).await {
            Ok(done) => done,
            Err(Unfinished::Cancelled) => Err(ScanStopped::Cancelled),
            Err(Unfinished::TimedOut) => Err(ScanStopped::TimedOut),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Simulates a system call on an unresponsive file system.
    fn hung() -> (std::sync::mpsc::Sender<()>, impl FnOnce(&ScanBounds) -> Result<(), ScanStopped> + Send) {
        let (sender, receiver) = channel::<()>();
        let scan = move |_: &ScanBounds| {
            let _ = receiver.recv();
            Ok(())
        };
        (sender, scan)
    }

    #[tokio::test]
    async fn a_hung_scan_ends_at_its_deadline_and_when_it_is_cancelled() {
        let (_held, scan) = hung();
        let bounds = ScanBounds::default().at_most(Duration::from_millis(20));
        assert_eq!(bounds.run(scan).await, Err(ScanStopped::TimedOut));
        let (_held, scan) = hung();
        let cancel = CancellationToken::new();
        let scan = ScanBounds::new(cancel.clone(), None).run(scan);
        let (ended, ()) = tokio::join!(scan, async { cancel.cancel() });
        assert_eq!(ended, Err(ScanStopped::Cancelled));
    }

    #[tokio::test]
    async fn an_abandoned_scan_ends_at_its_next_check() {
        let (sender, receiver) = channel();
        let scan = ScanBounds::default().run(move |bounds| {
            while bounds.check().is_ok() {
                std::thread::yield_now();
            }
            let _ = sender.send(bounds.check());
            Ok(())
        });
        drop(tokio::time::timeout(Duration::ZERO, scan).await);
        assert_eq!(receiver.recv_timeout(Duration::from_secs(10)), Ok(Err(ScanStopped::Cancelled)));
    }
}
