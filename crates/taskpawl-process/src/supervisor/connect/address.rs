//! The address that a program connects to: copied once, and for a path opened once.

use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::Pid;

/// The size of the largest address (`struct sockaddr_storage`).
const MAX_LENGTH: usize = 128;

const FAMILY: usize = size_of::<libc::sa_family_t>();

/// The bytes of an address, as a program gave them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address(Vec<u8>);

/// The address of a unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UnixAddress<'a> {
    Path(&'a Path),
    /// The name without the leading zero.
    Abstract(&'a [u8]),
}

impl Address {
    /// Copies an address out of the memory of a thread.
    pub(super) fn copy(thread: Pid, pointer: u64, length: u64) -> io::Result<Self> {
        let length = usize::try_from(length).ok().filter(|length| *length <= MAX_LENGTH);
        let mut bytes = vec![0; length.ok_or(io::ErrorKind::InvalidInput)?];
        if bytes.is_empty() || read_memory(thread, pointer, &mut bytes)? == bytes.len() {
            return Ok(Self(bytes));
        }
        Err(io::Error::from_raw_os_error(libc::EFAULT))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn family(&self) -> Option<libc::c_int> {
        let family = self.0.get(..FAMILY)?.try_into().ok()?;
        Some(libc::sa_family_t::from_ne_bytes(family).into())
    }

    /// Returns the address of a unix socket; `None` for the kernel to refuse or to disconnect.
    pub(super) fn unix(&self) -> Option<UnixAddress<'_>> {
        if self.family()? != libc::AF_UNIX {
            return None;
        }
        match self.0.get(FAMILY..)? {
            [] => None,
            [0, name @ ..] => Some(UnixAddress::Abstract(name)),
            path => {
                let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
                Some(UnixAddress::Path(Path::new(OsStr::from_bytes(&path[..end]))))
            }
        }
    }

    /// Returns the address and the port of the internet protocols.
    pub(super) fn internet(&self) -> Option<SocketAddr> {
        let port = u16::from_be_bytes(self.0.get(2..4)?.try_into().ok()?);
        let address: IpAddr = match self.family()? {
            libc::AF_INET => Ipv4Addr::from(<[u8; 4]>::try_from(self.0.get(4..8)?).ok()?).into(),
            libc::AF_INET6 => Ipv6Addr::from(<[u8; 16]>::try_from(self.0.get(8..24)?).ok()?).into(),
            _ => return None,
        };
        Some(SocketAddr::new(address, port))
    }
}

/// Returns the path that means to this process what `path` means to a thread.
pub(super) fn seen_by(thread: Pid, path: &Path) -> PathBuf {
    let own = format!("/proc/{}", thread.as_raw_pid());
    // The links `self` and `thread-self` lead to the process that follows them.
    for link in ["/proc/self", "/proc/thread-self"] {
        if let Ok(rest) = path.strip_prefix(link) {
            return Path::new(&own).join(rest);
        }
    }
    if path.is_absolute() { path.to_owned() } else { Path::new(&own).join("cwd").join(path) }
}

/// Returns the absolute path for a record.
pub(super) fn absolute(thread: Pid, path: &Path) -> PathBuf {
    let directory = std::fs::read_link(format!("/proc/{}/cwd", thread.as_raw_pid())).unwrap_or_default();
    // An absolute path replaces the directory.
    directory.join(path)
}

/// Opens the file at a path, without any access to its content. The descriptor stays with this file, whatever replaces it at its path.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

#[expect(unsafe_code, reason = "there is no safe way to read the memory of another process")]
fn read_memory(thread: Pid, pointer: u64, bytes: &mut [u8]) -> io::Result<usize> {
    let pointer = usize::try_from(pointer).map_err(|_| io::ErrorKind::InvalidInput)?;
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(pointer), iov_len: bytes.len() };
    // SAFETY: the kernel writes to the buffer, which has this length, and checks the other address.
    let read =
        unsafe { libc::process_vm_readv(thread.as_raw_pid(), &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use rustix::thread::gettid;

    use super::*;

    fn address(family: libc::c_int, rest: &[u8]) -> Address {
        let family = libc::sa_family_t::try_from(family).unwrap().to_ne_bytes();
        Address([&family, rest].concat())
    }

    #[test]
    fn addresses_are_read_as_the_kernel_reads_them() {
        let unix = |rest: &'static [u8]| address(libc::AF_UNIX, rest);
        assert_eq!(unix(b"/a\0b").unix(), Some(UnixAddress::Path(Path::new("/a"))));
        assert_eq!(unix(b"\0a\0").unix(), Some(UnixAddress::Abstract(b"a\0")));
        assert_eq!(
            (unix(b"").unix(), address(libc::AF_UNSPEC, b"/a").unix(), Address(vec![1]).unix()),
            (None, None, None)
        );
        let four = address(libc::AF_INET, &[0, 80, 127, 0, 0, 1]);
        assert_eq!(four.internet(), Some("127.0.0.1:80".parse().unwrap()));
        let six = address(libc::AF_INET6, &[[0, 80, 0, 0, 0, 0].as_slice(), &[0; 15], &[1]].concat());
        assert_eq!(six.internet(), Some("[::1]:80".parse().unwrap()));
        assert_eq!(address(libc::AF_INET, &[0, 80]).internet(), None);
    }

    #[test]
    fn an_address_is_copied_out_of_a_thread() {
        let bytes = [1_u8, 0, b'/', b'x'];
        let at = bytes.as_ptr().addr() as u64;
        assert_eq!(Address::copy(gettid(), at, 4).unwrap().bytes(), bytes);
        let error = |pointer, length| Address::copy(gettid(), pointer, length).unwrap_err();
        assert_eq!(error(0, 4).raw_os_error(), Some(libc::EFAULT));
        assert_eq!(error(at, 129).kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn paths_are_those_of_the_thread() {
        let of = |path: &str| seen_by(Pid::from_raw(7).unwrap(), Path::new(path)).display().to_string();
        assert_eq!(
            ["/a", "a/b", "/proc/self/fd/3", "/proc/thread-self/cwd/x", "/proc/selfish"].map(of),
            ["/a", "/proc/7/cwd/a/b", "/proc/7/fd/3", "/proc/7/cwd/x", "/proc/selfish"]
        );
    }
}
