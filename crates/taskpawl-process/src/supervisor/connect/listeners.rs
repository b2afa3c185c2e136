//! The unix sockets that programs of a run may connect to: their own, and granted ones.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, StatxFlags, statx};
use rustix::process::getpid;

use super::super::process_tree::{descendants, holds_socket};
use super::address::open;
use crate::sandbox::{ListeningSocket, listening_sockets};

/// A file by the device of its file system and its inode. The kernel's list of sockets has 32 bits of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FileKey {
    device: u32,
    inode: u32,
}

/// The sockets of a run.
#[derive(Debug)]
pub(super) struct Listeners {
    /// The kernel lists sockets of other programs, too, because the run shares their network.
    is_shared: bool,
    granted: Vec<FileKey>,
    /// The devices of mounts. `stat` reports others for btrfs and overlayfs. Programs cannot mount, so that mounts stay as they are.
    devices: Mutex<HashMap<u64, u32>>,
}

impl Listeners {
    /// Returns the sockets of a run that may also connect to the sockets at `granted`.
    pub(super) fn new(is_shared: bool, granted: &[PathBuf]) -> Self {
        let mut listeners = Self { is_shared, granted: Vec::new(), devices: Mutex::default() };
        let keys = granted.iter().filter_map(|path| listeners.key_of_socket(path));
        listeners.granted = keys.collect();
        listeners
    }

    fn key_of_socket(&self, path: &Path) -> Option<FileKey> {
        let file = open(path).ok()?;
        let status = rustix::fs::fstat(&file).ok()?;
        let is_socket = rustix::fs::FileType::from_raw_mode(status.st_mode).is_socket();
        is_socket.then(|| self.key_of(&file).ok())?
    }

    /// Returns whether programs may connect to the socket with this file. A file without a listener counts as well: the kernel refuses it.
    pub(super) fn may_reach_file(&self, file: &OwnedFd) -> io::Result<bool> {
        let key = self.key_of(file)?;
        if self.granted.contains(&key) {
            return Ok(true);
        }
        let is_it = |socket: &ListeningSocket| socket.file == Some((key.device, key.inode));
        self.has_listener(is_it)
    }

    /// Returns whether programs may connect to the abstract socket with this name.
    pub(super) fn may_reach_name(&self, name: &[u8]) -> io::Result<bool> {
        // The names belong to the network, and in a network of their own to the programs.
        if !self.is_shared {
            return Ok(true);
        }
        self.has_listener(|socket| socket.abstract_name() == Some(name))
    }

    fn has_listener(&self, is_it: impl Fn(&ListeningSocket) -> bool) -> io::Result<bool> {
        let found: Vec<_> = listening_sockets()?.into_iter().filter(is_it).collect();
        Ok(!found.is_empty() && (!self.is_shared || is_held(&found)))
    }

    fn key_of(&self, file: &OwnedFd) -> io::Result<FileKey> {
        let status = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)?;
        let [a, b, c, d, ..] = status.stx_ino.to_le_bytes();
        let inode = u32::from_le_bytes([a, b, c, d]);
        Ok(FileKey { device: self.device_of(status.stx_mnt_id)?, inode })
    }

    fn device_of(&self, mount: u64) -> io::Result<u32> {
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        if !devices.contains_key(&mount) {
            let table = fs::read_to_string("/proc/thread-self/mountinfo")?;
            devices.extend(table.lines().filter_map(device_of_line));
        }
        devices.get(&mount).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Reads the number and the device of a mount. The kernel packs a device into 12 bits and 20 bits.
fn device_of_line(line: &str) -> Option<(u64, u32)> {
    let mut words = line.split(' ');
    let mount = words.next()?.parse().ok()?;
    let (major, minor) = words.nth(1)?.split_once(':')?;
    Some((mount, major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?))
}

/// Returns whether a program of this supervisor has one of the sockets open.
fn is_held(sockets: &[ListeningSocket]) -> bool {
    let inodes: Vec<String> = sockets.iter().map(|socket| socket.inode.to_string()).collect();
    descendants(getpid()).into_iter().any(|descendant| holds_socket(descendant.process, &inodes))
}

/// Returns whether a descriptor is a unix socket.
pub(super) fn is_unix(socket: impl AsFd) -> bool {
    rustix::net::sockopt::socket_domain(socket).is_ok_and(|domain| domain == rustix::net::AddressFamily::UNIX)
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    use super::*;

    #[test]
    fn a_listening_socket_is_known_by_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let (listening, left) = (dir.path().join("listening"), dir.path().join("left"));
        let _listener = UnixListener::bind(&listening).unwrap();
        drop(UnixListener::bind(&left).unwrap());
        let reached =
            |listeners: &Listeners, path: &Path| listeners.may_reach_file(&open(path).unwrap()).unwrap();
        let own = Listeners::new(false, &[]);
        assert!(reached(&own, &listening) && !reached(&own, &left));
        // No descendant of this process has it.
        let shared = Listeners::new(true, &[]);
        assert!(!reached(&shared, &listening));
        assert!(reached(&Listeners::new(true, std::slice::from_ref(&listening)), &listening));
    }

    #[test]
    fn an_abstract_name_of_a_shared_network_needs_a_program_of_the_run() {
        let name = format!("taskpawl-listeners-{}", std::process::id());
        let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        assert!(Listeners::new(false, &[]).may_reach_name(name.as_bytes()).unwrap());
        assert!(!Listeners::new(true, &[]).may_reach_name(name.as_bytes()).unwrap());
    }

    #[test]
    fn a_device_is_read_from_the_table_of_mounts() {
        let line = "36 35 98:5 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        assert_eq!(device_of_line(line), Some((36, 98 << 20 | 5)));
        assert_eq!(device_of_line("x"), None);
    }
}
