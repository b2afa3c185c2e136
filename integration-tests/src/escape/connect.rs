//! Bypass cases: connecting to a socket that appears in the project during the run. No mount covers it, so that only the broker of
//! connections holds these cases where programs have unix sockets.

use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, socket};

use super::{Way, World, held, out_if, system_call};

pub(super) const WAYS: &[Way] = &[
    Way::held("late-socket", |world| UnixStream::connect(late(world)?)?.write_all(b"escaped")),
    Way::held("late-socket-other-name", |world| {
        let (late, other) = (late(world)?, world.project.join("other-name"));
        fs::rename(&late, &other)?;
        let reached = UnixStream::connect(&other).and_then(|mut stream| stream.write_all(b"escaped"));
        fs::rename(other, late)?;
        reached
    }),
    Way::held("late-socket-address-race", |world| race_of_address(world, &late(world)?)),
    Way::held("late-socket-descriptor-race", |world| race_of_descriptor(&late(world)?)),
];

/// The time for each race.
const TIME: Duration = Duration::from_secs(2);

/// The time within which the harness listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// The size of `sockaddr_un`.
const LENGTH: i64 = 110;

/// An address that another thread replaces, in words that are written at once.
type Words = [AtomicU64; 14];

/// Asks the harness for the socket, and waits for it.
fn late(world: &World) -> io::Result<PathBuf> {
    fs::write(world.project.join(World::WANTS_LATE), "")?;
    let (socket, end) = (world.project.join(World::LATE), Instant::now() + PATIENCE);
    while !socket.exists() {
        if Instant::now() > end {
            return Err(held("the socket of the harness is not there"));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(socket)
}

fn words(path: &Path) -> [u64; 14] {
    let mut bytes = [0; 112];
    bytes[..2].copy_from_slice(&libc::AF_UNIX.to_ne_bytes()[..2]);
    for (to, from) in bytes[2..].iter_mut().zip(path.as_os_str().as_bytes()) {
        *to = *from;
    }
    std::array::from_fn(|word| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[word * 8 + byte])))
}

fn connect(socket: i32, address: &Words) -> bool {
    let address = std::ptr::from_ref(address).cast::<u8>() as i64;
    system_call(libc::SYS_connect, [socket.into(), address, LENGTH, 0, 0]).is_ok()
}

/// Connects to an own socket while another thread replaces the path of the address.
fn race_of_address(world: &World, outside: &Path) -> io::Result<()> {
    let inside = world.project.join("mine");
    let listener = UnixListener::bind(&inside)?;
    thread::spawn(move || listener.incoming().for_each(drop));
    let paths = [words(&inside), words(outside)];
    let address: Words = paths[0].map(AtomicU64::new);
    let is_over = AtomicBool::new(false);
    let is_out = thread::scope(|scope| {
        scope.spawn(|| {
            for path in paths.iter().cycle().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                for (to, from) in address.iter().zip(path) {
                    to.store(*from, Ordering::Relaxed);
                }
            }
        });
        let is_out = tries().any(|()| reached(&address).is_ok_and(|peer| peer != inside));
        is_over.store(true, Ordering::Relaxed);
        is_out
    });
    fs::remove_file(inside)?;
    out_if(is_out, "every connection led inside")
}

/// Returns the path that the socket at the other end of a connection was bound to.
fn reached(address: &Words) -> io::Result<PathBuf> {
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    if !connect(socket.as_raw_fd(), address) {
        return Err(held("refused"));
    }
    let mut stream = UnixStream::from(socket);
    let peer = stream.peer_addr()?.as_pathname().ok_or_else(|| held("no path"))?.to_owned();
    // A message alone shows the harness that it was reached.
    let _ = stream.write_all(b"escaped");
    Ok(peer)
}

/// Connects a socket of the internet to the address of a unix socket, while another thread replaces it by a unix socket.
fn race_of_descriptor(outside: &Path) -> io::Result<()> {
    let internet = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    let place = rustix::io::fcntl_dupfd_cloexec(&internet, 100)?;
    let number = place.as_raw_fd();
    let address: Words = words(outside).map(AtomicU64::new);
    let is_over = AtomicBool::new(false);
    let is_out = thread::scope(|scope| {
        let (internet, is_over) = (&internet, &is_over);
        scope.spawn(move || {
            let mut place = place;
            while !is_over.load(Ordering::Relaxed) {
                let Ok(unix) = socket(AddressFamily::UNIX, SocketType::STREAM, None) else { return };
                let _ =
                    rustix::io::dup2(unix, &mut place).and_then(|()| rustix::io::dup2(internet, &mut place));
            }
        });
        let is_out = tries().any(|()| connect(number, &address));
        is_over.store(true, Ordering::Relaxed);
        is_out
    });
    out_if(is_out, "no connection was made")
}

fn tries() -> impl Iterator<Item = ()> {
    let end = Instant::now() + TIME;
    std::iter::from_fn(move || (Instant::now() < end).then_some(()))
}
