//! Sockets and files in the sandbox through which programs reach granted names and ports.

use std::fs;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, unmount};

use super::mounts::{attach, copy, mount_memory, set_read_only};
use crate::network::{Layout, MAX_ENDPOINTS, RESOLVER, lookup_order, resolver_settings, watch_ports};
use crate::profile::{NetworkWall, Profile};
use crate::sandbox::refusal::Refusal;

/// The files of name resolution, with their new content.
type Files = [(&'static str, fn(&Layout, &str) -> String); 3];

const FILES: Files = [
    ("/etc/hosts", |layout, of_machine| layout.hosts(of_machine, &machine())),
    ("/etc/nsswitch.conf", |_, of_machine| lookup_order(of_machine)),
    ("/etc/resolv.conf", |_, _| resolver_settings()),
];

/// An existing directory in the sandbox, used for a moment to create the files.
const WORKPLACE: &str = "/dev/shm";

/// Opens the sockets, and mounts files that lead to them. The engine serves the sockets: two of the resolver, one for each endpoint of
/// the profile, and those that tell which ports were refused. Without a network namespace there are none.
///
/// Must come after all other mounts, and before capabilities are dropped.
pub(super) fn open(
    profile: &Profile,
    wall: NetworkWall,
    gaps: &mut Vec<String>,
) -> Result<Vec<OwnedFd>, Refusal> {
    let layout = Layout::of(profile);
    let count = layout.endpoints().len();
    if count > MAX_ENDPOINTS {
        return Err(Refusal::new(
            format!("the granted hosts and ports need {count} sockets, and it can have {MAX_ENDPOINTS}"),
            "grant fewer hosts, ports or wildcards",
        ));
    }
    if wall != NetworkWall::Namespace {
        if wall == NetworkWall::Filter && !layout.is_empty() {
            gaps.push("granted hosts and ports cannot be reached: they need a network namespace".to_owned());
        }
        return Ok(Vec::new());
    }
    let opened = sockets(&layout).and_then(|sockets| cover(&layout).map(|()| sockets));
    Ok(opened.unwrap_or_else(|error| {
        // Programs have less than was granted, never more.
        gaps.push(format!("granted hosts and ports cannot be reached: {error}"));
        Vec::new()
    }))
}

/// Returns the name of this machine.
fn machine() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

fn sockets(layout: &Layout) -> io::Result<Vec<OwnedFd>> {
    let mut sockets = vec![UdpSocket::bind(RESOLVER)?.into(), TcpListener::bind(RESOLVER)?.into()];
    for endpoint in layout.endpoints() {
        sockets.push(TcpListener::bind(endpoint.address)?.into());
    }
    // An error means that refused ports are not recorded: in a container without the right to see packets.
    sockets.extend(watch_ports().unwrap_or_default());
    Ok(sockets)
}

/// Mounts new files over those of the machine that exist.
fn cover(layout: &Layout) -> io::Result<()> {
    let workplace = Path::new(WORKPLACE);
    mount_memory(workplace, c"mode=755")?;
    let covered = FILES.iter().try_for_each(|(file, content)| {
        // A file may be a link into a directory of another program.
        let Ok(file) = Path::new(file).canonicalize() else { return Ok(()) };
        let of_machine = fs::read(&file).unwrap_or_default();
        replace(&file, workplace, &content(layout, &String::from_utf8_lossy(&of_machine)))
    });
    unmount(workplace, UnmountFlags::DETACH)?;
    covered
}

fn replace(file: &Path, workplace: &Path, content: &str) -> io::Result<()> {
    let new: PathBuf = workplace.join(file.file_name().unwrap_or_default());
    fs::write(&new, content)?;
    let tree = copy(&new)?;
    set_read_only(&tree, "", false)?;
    attach(&tree, file)
}
