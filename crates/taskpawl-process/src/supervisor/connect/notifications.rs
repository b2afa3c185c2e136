//! The kernel's interface by which a process answers system calls of its descendants (`seccomp_unotify(2)`).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

// From `linux/seccomp.h`.
const SECCOMP_SET_MODE_FILTER: libc::c_ulong = 1;
const SECCOMP_FILTER_FLAG_NEW_LISTENER: libc::c_ulong = 1 << 3;
const SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV: libc::c_ulong = 1 << 5;
const SECCOMP_RET_USER_NOTIF: u32 = 0x7fc0_0000;
const SECCOMP_IOCTL_NOTIF_RECV: libc::c_ulong = 0xc050_2100;
const SECCOMP_IOCTL_NOTIF_SEND: libc::c_ulong = 0xc018_2101;
const SECCOMP_IOCTL_NOTIF_ID_VALID: libc::c_ulong = 0x4008_2102;

const SECCOMP_USER_NOTIF_FLAG_CONTINUE: u32 = 1;

/// Stands for the answer that lets a call go on. The program can replace the address or the socket before it does, so that only the
/// control of a test gives this answer.
pub(super) const GO_ON: i32 = i32::MIN;

/// A system call of a program that waits for its answer: `struct seccomp_notif`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Notification {
    pub(super) id: u64,
    /// The calling thread.
    pub(super) thread: u32,
    flags: u32,
    number: i32,
    architecture: u32,
    instruction: u64,
    pub(super) arguments: [u64; 6],
}

/// `struct seccomp_notif_resp`.
#[derive(Debug)]
#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// Receives the `connect` calls of this thread and of all processes that it starts from now on.
#[derive(Debug)]
pub(super) struct Listener(OwnedFd);

impl Listener {
    /// Installs the filter for the calling thread, for good. The threads that answer must exist before: their own calls would wait for
    /// themselves.
    ///
    /// A program that waits is interrupted by signals that kill it alone, unless `is_interruptible`. Otherwise the kernel would restart
    /// the call of a program that handles many signals, and it would find its socket connected.
    #[expect(unsafe_code, reason = "there is no safe way to install a filter with a listener")]
    pub(super) fn install(is_interruptible: bool) -> io::Result<Self> {
        let mut filter = filter();
        let length = u16::try_from(filter.len()).unwrap_or_default();
        let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
        let install = |flags: libc::c_ulong| {
            // SAFETY: the kernel copies the valid program, and keeps no pointer to it.
            let fd = unsafe {
                libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &raw const program)
            };
            // SAFETY: the descriptor is new and has no other owner.
            i32::try_from(fd).ok().filter(|fd| *fd >= 0).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
        };
        let plain = SECCOMP_FILTER_FLAG_NEW_LISTENER;
        let waiting = plain | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        // Linux 5.19 has the flag.
        let listener =
            if is_interruptible { install(plain) } else { install(waiting).or_else(|| install(plain)) };
        listener.map(Self).ok_or_else(io::Error::last_os_error)
    }

    /// Waits for the next call.
    #[expect(unsafe_code, reason = "there is no safe way to receive a notification")]
    pub(super) fn receive(&self) -> io::Result<Notification> {
        loop {
            let mut notification = Notification::default();
            // SAFETY: the kernel fills a zeroed buffer of its size.
            let received =
                unsafe { libc::ioctl(self.0.as_raw_fd(), SECCOMP_IOCTL_NOTIF_RECV, &raw mut notification) };
            if received == 0 {
                return Ok(notification);
            }
            let error = io::Error::last_os_error();
            // The calling thread was killed before its call was received.
            if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::ENOENT)) {
                return Err(error);
            }
        }
    }

    /// Returns whether the calling thread still waits. Its number may belong to another one otherwise.
    #[expect(unsafe_code, reason = "there is no safe way to check a notification")]
    pub(super) fn still_waits(&self, notification: &Notification) -> bool {
        // SAFETY: the kernel reads a number.
        let valid = unsafe {
            libc::ioctl(self.0.as_raw_fd(), SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const notification.id)
        };
        valid == 0
    }

    /// Ends the call with an error number; 0 is success, and [`GO_ON`] lets it go on.
    #[expect(unsafe_code, reason = "there is no safe way to answer a notification")]
    pub(super) fn answer(&self, notification: &Notification, errno: i32) {
        let (error, flags) = if errno == GO_ON { (0, SECCOMP_USER_NOTIF_FLAG_CONTINUE) } else { (-errno, 0) };
        let response = Response { id: notification.id, value: 0, error, flags };
        // SAFETY: the kernel reads a valid response. An error means that the calling thread was killed.
        unsafe { libc::ioctl(self.0.as_raw_fd(), SECCOMP_IOCTL_NOTIF_SEND, &raw const response) };
    }
}

/// Returns the filter: `connect` waits for an answer. An earlier filter ends programs of another architecture.
fn filter() -> [libc::sock_filter; 4] {
    #[expect(clippy::cast_possible_truncation, reason = "codes of instructions have sixteen bits")]
    let op = |code: u32, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let connect = u32::try_from(libc::SYS_connect).unwrap_or_default();
    [
        op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, connect),
        op(libc::BPF_RET | libc::BPF_K, 0, SECCOMP_RET_USER_NOTIF),
        op(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
