use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};

use crate::faults::{self, Fault};

/// The namespaces that this process has left for new ones.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    pub(super) mounts: bool,
    pub(super) network: bool,
    pub(super) has_own_user: bool,
    problem: Option<io::Error>,
}

impl Namespaces {
    /// Explains why there is no new namespace of `kind`.
    pub(super) fn why(&self, kind: &str) -> String {
        match &self.problem {
            Some(error) => format!("the system provides no {kind} namespace ({error})"),
            None => format!("the system provides no {kind} namespace"),
        }
    }
}

/// Enters new mount and System V IPC namespaces, and with `wants_network` a new network namespace.
///
/// If that fails it tries again without the network, so that a system that forbids only new networks still gives mounts of its own.
pub(super) fn enter(wants_network: bool) -> Namespaces {
    let own = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    let attempts = [(own | UnshareFlags::NEWNET, true), (own, false)];
    let mut namespaces = Namespaces::default();
    if faults::is_on(Fault::NoNamespaces) {
        return namespaces;
    }
    for (flags, network) in attempts.into_iter().filter(|(_, network)| wants_network || !network) {
        // Without a user namespace first, because one maps only a single user and a single group id.
        for has_own_user in [false, true] {
            match leave(flags, has_own_user) {
                Ok(()) => return Namespaces { mounts: true, network, has_own_user, problem: None },
                Err(error) => namespaces.problem = Some(error),
            }
        }
    }
    namespaces
}

/// Enters new namespaces directly, which takes `CAP_SYS_ADMIN`, or together with a user namespace, in which each process has it.
fn leave(flags: UnshareFlags, with_user: bool) -> io::Result<()> {
    if !with_user {
        let is_able = capabilities(None)?.effective.contains(CapabilitySet::SYS_ADMIN);
        return if is_able { unshare(flags) } else { Err(rustix::io::Errno::PERM.into()) };
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    unshare(flags | UnshareFlags::NEWUSER)?;
    // The kernel refuses `gid_map` before this: dropping a group could otherwise give access to files that are closed to that group.
    let _ = std::fs::write("/proc/self/setgroups", "deny");
    let map = |file: &str, id: u32| std::fs::write(file, format!("{id} {id} 1"));
    map("/proc/self/uid_map", user)?;
    map("/proc/self/gid_map", group)
}

#[expect(unsafe_code, reason = "leaving some namespaces has no safe way")]
fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: the table of file descriptors stays shared.
    unsafe { rustix::thread::unshare_unsafe(flags) }?;
    Ok(())
}

/// Brings the loopback device of a new network namespace up. The device exists there from the start, but is down.
#[expect(unsafe_code, reason = "there is no safe way to set up a network device")]
pub(super) fn raise_loopback() -> io::Result<()> {
    if faults::is_on(Fault::NoMounts) {
        return Err(rustix::io::Errno::PERM.into());
    }
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: `ifreq` is plain data, for which all bits zero are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = byte.cast_signed();
    }
    #[expect(clippy::cast_possible_truncation, reason = "the flags are small")]
    let flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    request.ifr_ifru.ifru_flags = flags;
    // SAFETY: the kernel reads a valid request, and keeps no pointer to it.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
