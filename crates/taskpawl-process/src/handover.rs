//! Passing a descriptor to a program in addition to its standard streams.

use std::io;
#[cfg(feature = "programs")]
use std::os::fd::AsRawFd;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

/// A descriptor for a program in addition to its standard streams. Requires a supervisor: it is
/// single-threaded, so no other program is started while the descriptor is inheritable.
#[derive(Clone, Debug)]
pub struct Handover {
    /// The descriptor to pass.
    pub descriptor: Arc<OwnedFd>,
    /// The environment variable that gets the number of the descriptor.
    pub variable: &'static str,
}

#[cfg(feature = "programs")]
/// Returns an inheritable duplicate of `descriptor`. Every program that is started before it is dropped
/// inherits it.
pub(crate) fn pass_on(descriptor: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    // Plain `dup` clears the close-on-exec flag.
    rustix::io::dup(descriptor)
}

#[cfg(feature = "programs")]
/// Returns the number of a descriptor as text, for an environment variable.
pub(crate) fn number_of(descriptor: &OwnedFd) -> String {
    descriptor.as_raw_fd().to_string()
}

/// Returns a close-on-exec duplicate of the inherited descriptor with this number.
///
/// # Errors
/// No descriptor with this number is open.
#[expect(unsafe_code, reason = "an inherited descriptor is only known by the number in a variable")]
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(rustix::io::Errno::BADF.into());
    }
    // SAFETY: the borrow lasts for one system call, which fails on a closed number and does not modify an
    // open descriptor.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    borrowed.try_clone_to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_number_is_not_an_inherited_descriptor() {
        let file = std::fs::File::open("/dev/null").unwrap();
        inherited(file.as_raw_fd()).unwrap();
        for number in [-1, RawFd::MAX] {
            inherited(number).unwrap_err();
        }
    }
}
