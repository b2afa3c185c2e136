//! Descriptors that running programs leave to the rest of the process.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, getrlimit};

use crate::group::Streams;

/// Descriptors that a running program may open later: one file for each output stream.
const LATER: u64 = 2;

/// Descriptors that stay free for the store, for file tools and for connections, if the limit allows so many.
const RESERVE: u64 = 32;

/// The running programs of a run. Each holds descriptors of this process, and opens more when it prints.
#[derive(Debug, Default)]
pub(crate) struct DescriptorUse {
    running: AtomicUsize,
}

/// The descriptors of one running program.
#[derive(Debug)]
pub(crate) struct DescriptorShare<'a>(&'a DescriptorUse);

impl DescriptorUse {
    /// Counts a program with these streams as running. Returns `None` if too few descriptors would be left, and
    /// another program will release some when it ends.
    pub(crate) fn begin(&self, streams: &Streams) -> Option<DescriptorShare<'_>> {
        self.begin_within(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), used_by(streams))
    }

    fn begin_within(&self, limit: u64, used: u64) -> Option<DescriptorShare<'_>> {
        let next = |running| (running == 0 || has_room(limit, used, running as u64)).then_some(running + 1);
        self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        Some(DescriptorShare(self))
    }
}

impl Drop for DescriptorShare<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the least number of descriptors that are in use: the system gives out the lowest free number.
fn used_by(streams: &Streams) -> u64 {
    let others = streams.stdin.iter().chain(&streams.handover);
    let highest = streams.outputs.iter().chain(others).map(OwnedFd::as_raw_fd).max();
    highest.map_or(0, |number| u64::from(number.unsigned_abs()) + 1)
}

/// Returns whether one more program fits beside `running` others.
fn has_room(limit: u64, used: u64, running: u64) -> bool {
    let reserve = RESERVE.min(limit / 8);
    used + reserve + LATER * (running + 1) <= limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_and_the_output_files_of_all_programs_stay_free() {
        assert!(has_room(1024, 1024 - 32 - 2 * 11, 10));
        assert!(!has_room(1024, 1024 - 32 - 2 * 11 + 1, 10));
        assert!(has_room(40, 40 - 5 - 2 * 2, 1), "a low limit has a smaller reserve");
        assert!(has_room(u64::MAX, 1 << 20, 1 << 20));
    }

    #[test]
    fn a_program_that_runs_alone_takes_any_descriptor() {
        let descriptors = DescriptorUse::default();
        let alone = descriptors.begin_within(64, 64).unwrap();
        assert!(descriptors.begin_within(64, 64).is_none());
        let second = descriptors.begin_within(64, 32).unwrap();
        drop((alone, second));
        assert!(descriptors.begin_within(64, 64).is_some(), "the end of a program makes room");
    }
}
