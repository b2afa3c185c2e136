//! Sockets of programs in this process.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::super::process_tree::process_of;

/// `PIDFD_THREAD`, since Linux 6.9.
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());

/// Returns a descriptor for the file that a thread has open as `number`.
pub(super) fn take(thread: Pid, number: i32) -> io::Result<OwnedFd> {
    let process = match pidfd_open(thread, THREAD) {
        // The thread may be none of the first of its process, which older kernels do not open.
        Err(Errno::INVAL) => pidfd_open(process_of(thread).ok_or(Errno::SRCH)?, PidfdFlags::empty()),
        opened => opened,
    };
    Ok(pidfd_getfd(process?, number, PidfdGetfdFlags::empty())?)
}

/// Connects a socket, as the kernel does it for the program that has it.
#[expect(unsafe_code, reason = "an address of any family has no safe type")]
pub(super) fn connect(socket: &OwnedFd, address: &[u8]) -> Result<(), i32> {
    let length = libc::socklen_t::try_from(address.len()).unwrap_or_default();
    // SAFETY: the kernel reads the address, which has this length.
    let result = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    if result == 0 { Ok(()) } else { Err(errno_of(&io::Error::last_os_error())) }
}

/// Connects a unix socket to the socket that an open file is.
pub(super) fn connect_to_file(socket: &OwnedFd, file: &OwnedFd) -> Result<(), i32> {
    let family = libc::sa_family_t::try_from(libc::AF_UNIX).unwrap_or_default().to_ne_bytes();
    // The link leads to the open file itself, whatever is at its path by now.
    let path = format!("/proc/self/fd/{}\0", file.as_raw_fd());
    connect(socket, &[&family, path.as_bytes()].concat())
}

/// Checks that this process can take sockets and read addresses of its programs.
pub(super) fn check() -> io::Result<()> {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    if scope.trim().parse::<u8>().is_ok_and(|scope| scope > 1) {
        return Err(io::Error::other("`kernel.yama.ptrace_scope` keeps programs from being read"));
    }
    let own = rustix::process::getpid();
    take(own, rustix::stdio::stdin().as_raw_fd())?;
    let byte = [0_u8];
    super::address::Address::copy(own, byte.as_ptr().addr() as u64, 1)?;
    Ok(())
}

/// Returns the error number of a system call.
pub(super) fn errno_of(error: &io::Error) -> i32 {
    let of_kind = if error.kind() == io::ErrorKind::InvalidInput { libc::EINVAL } else { libc::EACCES };
    error.raw_os_error().unwrap_or(of_kind)
}
