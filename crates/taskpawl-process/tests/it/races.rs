//! Attempts to replace what a system call was checked for.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, socket};

/// The time for each race.
const TIME: Duration = Duration::from_secs(2);

/// The address of a socket, which another thread changes.
#[repr(C)]
struct Shared {
    address: libc::sockaddr_un,
}

fn address_of(path: &Path) -> libc::sockaddr_un {
    let path = path.as_os_str().as_bytes();
    let mut sun_path = [0; 108];
    for (to, from) in sun_path.iter_mut().zip(path) {
        *to = from.cast_signed();
    }
    libc::sockaddr_un { sun_family: libc::AF_UNIX.try_into().unwrap(), sun_path }
}

#[expect(unsafe_code, reason = "the address is changed while the kernel reads it")]
fn connect(socket: RawFd, address: *const libc::sockaddr_un) -> bool {
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_un>()).unwrap();
    // SAFETY: the kernel copies the address, and takes any bytes.
    unsafe { libc::connect(socket, address.cast(), length) == 0 }
}

fn new_socket() -> OwnedFd {
    socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap()
}

/// Connects to an own socket at `inside`, while another thread replaces the path by `outside`. Returns the number of connections.
#[expect(unsafe_code, reason = "the address is changed while the kernel reads it")]
pub(crate) fn address(inside: &Path, outside: &Path) -> io::Result<String> {
    let listener = UnixListener::bind(inside)?;
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let shared = Shared { address: address_of(inside) };
    let at = (&raw const shared.address).expose_provenance();
    let is_over = AtomicBool::new(false);
    let connected = std::thread::scope(|scope| {
        scope.spawn(|| {
            let paths = [address_of(inside), address_of(outside)];
            for path in paths.iter().cycle().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                let shared = std::ptr::with_exposed_provenance_mut::<libc::sockaddr_un>(at);
                // SAFETY: no reference to the address is in use, and any bytes are an address.
                unsafe { shared.write_volatile(*path) };
            }
        });
        let end = Instant::now() + TIME;
        let tries = std::iter::from_fn(|| (Instant::now() < end).then(new_socket));
        let connected =
            tries.filter(|socket| connect(socket.as_raw_fd(), std::ptr::with_exposed_provenance(at))).count();
        is_over.store(true, Ordering::Relaxed);
        connected
    });
    Ok(connected.to_string())
}

/// Connects another kind of socket to `outside`, while another thread replaces it by a unix socket. Returns the number of connections.
pub(crate) fn descriptor(outside: &Path) -> io::Result<String> {
    let internet = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    let place = rustix::io::fcntl_dupfd_cloexec(&internet, 100)?;
    let number = place.as_raw_fd();
    let is_over = AtomicBool::new(false);
    let address = address_of(outside);
    let connected = std::thread::scope(|scope| {
        let (internet, is_over) = (&internet, &is_over);
        scope.spawn(move || {
            let mut place = place;
            while !is_over.load(Ordering::Relaxed) {
                rustix::io::dup2(new_socket(), &mut place).unwrap();
                rustix::io::dup2(internet, &mut place).unwrap();
            }
        });
        let end = Instant::now() + TIME;
        let tries =
            std::iter::from_fn(|| (Instant::now() < end).then(|| connect(number, &raw const address)));
        let connected = tries.filter(|is_connected| *is_connected).count();
        is_over.store(true, Ordering::Relaxed);
        connected
    });
    Ok(connected.to_string())
}

/// Returns the microseconds of a connection to an own socket, in the middle of many.
pub(crate) fn time(inside: &Path) -> io::Result<String> {
    let listener = UnixListener::bind(inside)?;
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let mut times: Vec<Duration> = (0..2000)
        .map(|_| {
            let start = Instant::now();
            UnixStream::connect(inside).map(|stream| (start.elapsed(), stream).0)
        })
        .collect::<io::Result<_>>()?;
    times.sort();
    Ok(times[times.len() / 2].as_nanos().div_euclid(100).to_string())
}
