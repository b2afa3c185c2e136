//! The unix sockets of other programs, and the paths that lead to them.
//!
//! A socket is identified by the inode that it is bound to, as `sock_diag` lists it. The name that it was bound by is not enough: it may be
//! relative, and the file may have been renamed or linked since.
//!
//! The netlink request is written by hand: it is one message, and two attributes of its answers matter. The netlink crates would bring ten
//! other crates into the process that owns the sandbox.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// The maximum of directory entries that are searched for other names of sockets.
const ENTRIES: usize = 300_000;

/// Directories that hold no sockets, or only those of the sandbox itself.
const SKIPPED: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Large system directories. They are searched last, because sockets rarely have another name there.
const LAST: [&str; 7] = ["/usr", "/opt", "/lib", "/lib64", "/nix", "/gnu", "/snap"];

// From `linux/netlink.h`, `linux/sock_diag.h` and `linux/unix_diag.h`.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const UDIAG_SHOW_NAME_AND_VFS: u32 = 3;
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_VFS: u16 = 1;
const TCP_CLOSE: u8 = 7;
const TCP_LISTEN: u8 = 10;

/// Sizes in bytes of `nlmsghdr`, `unix_diag_req`, `unix_diag_msg` and of the header of an attribute.
const MESSAGE_HEAD: usize = 16;
const REQUEST: usize = 24;
const UNIX_HEAD: usize = 16;
const ATTRIBUTE_HEAD: usize = 4;

/// A socket that is bound to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    /// The name that it was bound by. It may be relative, and the file may have another name by now.
    name: PathBuf,
    /// The lower 32 bits of the inode number; the kernel reports no more. Device numbers are not compared, because btrfs and overlayfs
    /// report another one for each subvolume or layer.
    inode: u32,
}

/// The bound sockets of all programs.
#[derive(Clone, Debug, Default)]
pub(super) struct Sockets {
    bound: Vec<Bound>,
    /// The error of `sock_diag`. With it `bound` is empty, and only the names in `/proc/net/unix` are known.
    problem: Option<String>,
}

impl Sockets {
    /// Lists the bound sockets of the current network namespace.
    pub(super) fn list() -> Self {
        match bound_sockets() {
            Ok(bound) => Self { bound, problem: None },
            Err(error) => Self { bound: Vec::new(), problem: Some(error.to_string()) },
        }
    }

    /// Returns the paths that lead to the sockets, and a gap for the part that was not searched.
    ///
    /// Other names of a socket are looked for beneath `roots`, without the directories beneath `excluded`.
    pub(super) fn reached_at(
        &self,
        roots: &[PathBuf],
        excluded: &[PathBuf],
    ) -> (Vec<PathBuf>, Option<String>) {
        if let Some(problem) = &self.problem {
            let gap = format!(
                "renamed sockets of other programs, and sockets bound by a relative name, can be connected to: {problem}"
            );
            return (named_sockets(), Some(gap));
        }
        // Most sockets are still at the name that they were bound by. Only the others need a search of the file system.
        let (at_name, lost): (Vec<_>, Vec<_>) =
            self.bound.iter().partition(|bound| bound.is_only_at_its_name());
        let mut found: Vec<PathBuf> = at_name.into_iter().map(|bound| bound.name.clone()).collect();
        let mut gap = None;
        if !lost.is_empty() {
            let inodes = lost.iter().map(|bound| bound.inode).collect();
            let is_whole = Search { inodes, excluded, left: ENTRIES, found: &mut found }.run(roots);
            gap = (!is_whole).then(|| {
                format!(
                    "sockets of other programs can be connected to by other names: more than {ENTRIES} files are readable"
                )
            });
        }
        found.sort();
        found.dedup();
        (found, gap)
    }
}

impl Bound {
    /// Returns whether the file at the bound name is this socket and has no other name (hard link).
    fn is_only_at_its_name(&self) -> bool {
        let metadata = self.name.is_absolute().then(|| self.name.symlink_metadata().ok()).flatten();
        metadata.is_some_and(|metadata| {
            metadata.file_type().is_socket() && lower_half(&metadata) == self.inode && metadata.nlink() == 1
        })
    }
}

fn lower_half(metadata: &Metadata) -> u32 {
    let [a, b, c, d, ..] = metadata.ino().to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// A breadth-first search for the files of sockets.
struct Search<'a> {
    inodes: HashSet<u32>,
    excluded: &'a [PathBuf],
    /// The number of directory entries that may still be read.
    left: usize,
    found: &'a mut Vec<PathBuf>,
}

impl Search<'_> {
    /// Returns whether everything was searched within the limit.
    fn run(mut self, roots: &[PathBuf]) -> bool {
        let is_last = |root: &&PathBuf| LAST.iter().any(|last| root.starts_with(last));
        let (last, first): (Vec<_>, Vec<_>) = roots.iter().partition(is_last);
        [first, last].into_iter().all(|roots| self.search(roots.into_iter().cloned().collect()))
    }

    fn search(&mut self, mut waiting: VecDeque<PathBuf>) -> bool {
        while let Some(directory) = waiting.pop_front() {
            if self.is_excluded(&directory) {
                continue;
            }
            // A root may itself be a socket.
            self.take_if_socket(&directory);
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                if self.left == 0 {
                    return false;
                }
                self.left -= 1;
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => waiting.push_back(entry.path()),
                    Ok(kind) if kind.is_socket() => self.take_if_socket(&entry.path()),
                    Ok(_) | Err(_) => {}
                }
            }
        }
        true
    }

    fn is_excluded(&self, directory: &Path) -> bool {
        SKIPPED.iter().any(|skipped| directory.starts_with(skipped))
            || self.excluded.iter().any(|excluded| directory.starts_with(excluded))
    }

    fn take_if_socket(&mut self, path: &Path) {
        let metadata = path.symlink_metadata().ok().filter(|metadata| metadata.file_type().is_socket());
        if metadata.is_some_and(|metadata| self.inodes.contains(&lower_half(&metadata))) {
            self.found.push(path.to_owned());
        }
    }
}

/// Returns the absolute names in `/proc/net/unix`, which shows no inodes of files.
fn named_sockets() -> Vec<PathBuf> {
    let text = fs::read("/proc/net/unix").unwrap_or_default();
    let name_of = |line: &[u8]| {
        let at = line.windows(2).position(|pair| pair == b" /")?;
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(&line[at + 1..])))
    };
    text.split(|byte| *byte == b'\n').filter_map(name_of).collect()
}

/// Asks the kernel for all unix sockets that are bound to files.
fn bound_sockets() -> io::Result<Vec<Bound>> {
    let bound = all_sockets(u32::MAX)?.into_iter().filter_map(|socket| {
        let (_, inode) = socket.file?;
        // An accepted connection reports the name of its listener and is skipped. A bound socket that does not listen yet may listen later.
        (socket.is_datagram || [TCP_LISTEN, TCP_CLOSE].contains(&socket.state))
            .then(|| Bound { name: name_of(&socket.name), inode })
    });
    Ok(bound.collect())
}

/// A unix socket, as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListeningSocket {
    /// The inode of the socket itself, which the links in `/proc/PID/fd` name.
    pub(crate) inode: u32,
    /// The device and the inode of the file that it is bound to.
    pub(crate) file: Option<(u32, u32)>,
    name: Vec<u8>,
    is_datagram: bool,
    state: u8,
}

impl ListeningSocket {
    /// Returns the name of an abstract socket, without the leading zero.
    pub(crate) fn abstract_name(&self) -> Option<&[u8]> {
        self.name.strip_prefix(&[0]).filter(|_| self.file.is_none())
    }
}

/// Returns the listening unix sockets of the current network namespace.
pub(crate) fn listening_sockets() -> io::Result<Vec<ListeningSocket>> {
    all_sockets(1 << TCP_LISTEN)
}

/// Asks the kernel for the unix sockets in these states.
fn all_sockets(states: u32) -> io::Result<Vec<ListeningSocket>> {
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    send(&socket, &request(states), SendFlags::empty())?;
    let mut found = Vec::new();
    while receive(&socket, &mut found)? {}
    Ok(found)
}

fn request(states: u32) -> Vec<u8> {
    let length = u32::try_from(MESSAGE_HEAD + REQUEST).unwrap_or_default();
    let mut bytes = Vec::with_capacity(MESSAGE_HEAD + REQUEST);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([u8::try_from(libc::AF_UNIX).unwrap_or_default(), 0, 0, 0]);
    // Sockets with any inode.
    bytes.extend(states.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(UDIAG_SHOW_NAME_AND_VFS.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes
}

/// Receives one packet of answers; returns whether more follow.
fn receive(socket: &OwnedFd, found: &mut Vec<ListeningSocket>) -> io::Result<bool> {
    let mut buffer = vec![0_u8; 64 << 10];
    let (_, length) = recv(socket, &mut buffer[..], RecvFlags::empty())?;
    let mut rest = buffer.get(..length).unwrap_or_default();
    if rest.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    while let Some((kind, body, next)) = message(rest) {
        match kind {
            NLMSG_DONE => return Ok(false),
            NLMSG_ERROR => {
                let errno = number(body, 0).map_or(0, u32::cast_signed);
                return Err(io::Error::from_raw_os_error(-errno));
            }
            SOCK_DIAG_BY_FAMILY => found.extend(described(body)),
            _ => {}
        }
        rest = next;
    }
    Ok(true)
}

/// Splits off the first message. Returns its type, its body and the remaining bytes.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(number(bytes, 0)?).ok()?;
    let body = bytes.get(MESSAGE_HEAD..length)?;
    Some((short(bytes, 4)?, body, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// Reads the description of a socket.
fn described(body: &[u8]) -> Option<ListeningSocket> {
    let (kind, state, inode) = (*body.get(1)?, *body.get(2)?, number(body, 4)?);
    let is_datagram = i32::from(kind) == libc::SOCK_DGRAM;
    let (mut name, mut file) = (Vec::new(), None);
    let mut rest = body.get(UNIX_HEAD..)?;
    while let Some((kind, value, next)) = attribute(rest) {
        match kind {
            UNIX_DIAG_NAME => name = value.to_vec(),
            // An abstract socket has a name and no file.
            UNIX_DIAG_VFS => file = number(value, 4).zip(number(value, 0)),
            _ => {}
        }
        rest = next;
    }
    Some(ListeningSocket { inode, file, name, is_datagram, state })
}

fn name_of(value: &[u8]) -> PathBuf {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    PathBuf::from(std::ffi::OsStr::from_bytes(&value[..end]))
}

/// Splits off the first attribute. Returns its type, its value and the remaining bytes.
fn attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::from(short(bytes, 0)?);
    let value = bytes.get(ATTRIBUTE_HEAD..length)?;
    Some((short(bytes, 2)?, value, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    use super::*;

    fn reached(root: &Path, excluded: &[PathBuf]) -> Vec<PathBuf> {
        let (found, _) = Sockets::list().reached_at(&[root.to_owned()], excluded);
        let beneath = found.into_iter().filter_map(|path| Some(path.strip_prefix(root).ok()?.to_owned()));
        beneath.collect()
    }

    #[test]
    fn a_socket_is_found_by_its_inode_whatever_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir(at("deep")).unwrap();
        let _listeners =
            ["absolute", "before", "first", "new\nline"].map(|name| UnixListener::bind(at(name)).unwrap());
        let _odd = UnixListener::bind(root.join(OsStr::from_bytes(b"odd\xff"))).unwrap();
        let _datagram = UnixDatagram::bind(at("datagram")).unwrap();
        drop(UnixListener::bind(at("left-behind")).unwrap());
        fs::rename(at("before"), at("deep/renamed")).unwrap();
        fs::hard_link(at("first"), at("second")).unwrap();
        let expected: Vec<PathBuf> =
            ["absolute", "datagram", "deep/renamed", "first", "new\nline"].map(PathBuf::from).into();
        let odd = PathBuf::from(OsStr::from_bytes(b"odd\xff"));
        assert_eq!(reached(&root, &[]), [&expected[..], &[odd, "second".into()]].concat());
    }

    #[test]
    fn a_relative_name_is_looked_for_where_programs_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let server = "import os, socket, sys\nos.chdir(sys.argv[1])\ns = socket.socket(socket.AF_UNIX)\ns.bind('relative')\ns.listen()\nopen('ready', 'w')\nsys.stdin.read()";
        let mut child = std::process::Command::new("python3")
            .args(["-c", server])
            .arg(&root)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        while !root.join("ready").exists() {
            assert!(child.try_wait().unwrap().is_none(), "it listens until its input ends");
            std::thread::yield_now();
        }
        let (found, excluded) = (reached(&root, &[]), reached(&root, std::slice::from_ref(&root)));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(found, [Path::new("relative")]);
        assert_eq!(excluded, [] as [PathBuf; 0]);
    }

    #[test]
    fn an_accepted_connection_is_no_socket_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let _client = UnixStream::connect(&path).unwrap();
        let _accepted = listener.accept().unwrap();
        let bound = bound_sockets().unwrap();
        assert_eq!(bound.iter().filter(|bound| bound.name == path).count(), 1);
    }

    #[test]
    fn a_search_that_is_cut_says_so() {
        let dir = tempfile::tempdir().unwrap();
        (0..10).for_each(|number| fs::write(dir.path().join(number.to_string()), "").unwrap());
        let whole = |left| {
            let search = Search { inodes: HashSet::new(), excluded: &[], left, found: &mut Vec::new() };
            search.run(&[dir.path().to_owned()])
        };
        assert!(whole(10) && !whole(9));
    }

    #[test]
    fn odd_answers_of_the_kernel_are_left_out() {
        for bytes in [&[][..], &[1, 2, 3], &[255; 40], &[0; 64], &[4, 0, 0, 0, 20, 0, 0, 0]] {
            assert!(described(bytes).is_none_or(|socket| socket.file.is_none()));
            let _ = message(bytes);
        }
    }
}
