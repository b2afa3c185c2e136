//! The descriptors of this process, which calls that run at once share.
//!
//! A call that begins says how many it will open. It waits while too few would be left for the calls that run already,
//! and for the store.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bounded::passed;

/// Pause before another attempt to begin a call for which too few descriptors were free.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Descriptors that stay free for the store and for connections, if the limit allows so many.
const RESERVE: u64 = 32;

/// The descriptors of this process.
static OF_THIS_PROCESS: DescriptorTable = DescriptorTable { promised: AtomicU64::new(0) };

#[derive(Debug)]
struct DescriptorTable {
    /// Number of descriptors that running calls may open.
    promised: AtomicU64,
}

/// Descriptors that a running call may open. Dropping it makes room for other calls.
#[derive(Debug)]
pub struct DescriptorShare<'a> {
    table: &'a DescriptorTable,
    count: u64,
}

/// Waits until `count` descriptors are free, or no other call runs that will release some. Returns `None` after the
/// deadline or a cancellation.
///
/// # Cancel safety
/// Dropping the future takes no descriptors.
pub async fn free_descriptors(
    count: u64,
    deadline: Option<Instant>,
    cancel: &CancellationToken,
) -> Option<DescriptorShare<'static>> {
    loop {
        if let Some(share) = number_in_use().and_then(|used| share_beside(used, count)) {
            return Some(share);
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = passed(deadline) => return None,
            () = cancel.cancelled() => return None,
        }
    }
}

/// Returns a share of `count` descriptors if `used` are in use, or `None` if too few are free and another call runs.
pub(crate) fn share_beside(used: u64, count: u64) -> Option<DescriptorShare<'static>> {
    OF_THIS_PROCESS.share(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), used, count)
}

/// Returns the least number of descriptors in use if `open` is: the system gives out the lowest free number.
pub(crate) fn used_up_to(open: impl AsFd) -> u64 {
    u64::from(open.as_fd().as_raw_fd().unsigned_abs()) + 1
}

/// Returns the least number of descriptors in use, or `None` if no more can be opened.
fn number_in_use() -> Option<u64> {
    match File::open("/dev/null") {
        Ok(file) => Some(used_up_to(file) - 1),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::MFILE) => None,
        Err(_) => Some(0),
    }
}

impl DescriptorTable {
    fn share(&self, limit: u64, used: u64, count: u64) -> Option<DescriptorShare<'_>> {
        let reserve = RESERVE.min(limit / 8);
        let next = |promised: u64| {
            let has_room = used.saturating_add(reserve + promised + count) <= limit;
            (promised == 0 || has_room).then_some(promised + count)
        };
        self.promised.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        Some(DescriptorShare { table: self, count })
    }
}

impl Drop for DescriptorShare<'_> {
    fn drop(&mut self) {
        self.table.promised.fetch_sub(self.count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(promised: u64) -> DescriptorTable {
        DescriptorTable { promised: AtomicU64::new(promised) }
    }

    #[test]
    fn a_reserve_and_the_shares_of_running_calls_stay_free() {
        assert!(table(20).share(1024, 1024 - 32 - 20 - 2, 2).is_some());
        assert!(table(20).share(1024, 1024 - 32 - 20 - 1, 2).is_none());
        assert!(table(2).share(40, 40 - 5 - 2 - 2, 2).is_some(), "a low limit has a smaller reserve");
        assert!(table(2).share(u64::MAX, 1 << 20, 2).is_some());
    }

    #[test]
    fn a_call_that_runs_alone_takes_any_descriptor() {
        let table = table(0);
        let alone = table.share(64, 64, 2).unwrap();
        assert!(table.share(64, 64, 2).is_none());
        let second = table.share(64, 32, 2).unwrap();
        drop((alone, second));
        assert!(table.share(64, 64, 2).is_some(), "the end of a call makes room");
    }
}
