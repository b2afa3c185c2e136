//! A descriptor that a program inherits beside its streams, and the other side of that.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

/// A descriptor that a program inherits beside its streams. Only a supervisor can pass it on: it starts one program at a time, so
/// that no other one inherits it as well.
#[derive(Clone, Debug)]
pub struct Handover {
    /// The descriptor.
    pub descriptor: Arc<OwnedFd>,
    /// The variable that tells the program its number.
    pub variable: &'static str,
}

/// Returns a duplicate of `descriptor` that programs inherit until it is dropped.
pub(crate) fn pass_on(descriptor: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    // A duplicate made in this way is not closed by the start of a program.
    rustix::io::dup(descriptor)
}

/// Returns what a variable tells the program of a descriptor.
pub(crate) fn number_of(descriptor: &OwnedFd) -> String {
    descriptor.as_raw_fd().to_string()
}

/// Returns a duplicate of the descriptor with this number, which this process has inherited; programs do not inherit the duplicate.
///
/// # Errors
/// No descriptor with this number is open.
#[expect(unsafe_code, reason = "a number in a variable is all that tells of an inherited descriptor")]
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(rustix::io::Errno::BADF.into());
    }
    // SAFETY: the number is only used for one call, which fails where it is not open and else changes nothing about it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    borrowed.try_clone_to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_open_is_inherited() {
        let file = std::fs::File::open("/dev/null").unwrap();
        inherited(file.as_raw_fd()).unwrap();
        for number in [-1, RawFd::MAX] {
            inherited(number).unwrap_err();
        }
    }
}
