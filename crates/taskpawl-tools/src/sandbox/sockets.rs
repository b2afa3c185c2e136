//! Tells sockets in use from files that a dead process left behind.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Returns whether a process has the socket open. A left-behind socket file cannot be opened again: a new process has to create a new file.
///
/// The check tries to connect a datagram socket. It sends nothing, and a stream listener does not notice it, because the kernel refuses the
/// connection with another error than that for an unused file. `/proc/net/unix` is no alternative: it lacks the sockets of other network
/// namespaces.
pub(super) fn is_in_use(socket: &Path) -> bool {
    let connected = UnixDatagram::unbound().and_then(|own| own.connect(socket));
    !connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_socket_is_in_use_as_long_as_a_process_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let (streams, datagrams) = (dir.path().join("streams"), dir.path().join("datagrams"));
        let listener = UnixListener::bind(&streams).unwrap();
        listener.set_nonblocking(true).unwrap();
        let receiver = UnixDatagram::bind(&datagrams).unwrap();
        assert!(is_in_use(&streams) && is_in_use(&datagrams));
        assert_eq!(
            listener.accept().unwrap_err().kind(),
            ErrorKind::WouldBlock,
            "the test itself goes unnoticed"
        );
        drop((listener, receiver));
        // A program that another test starts at this moment has the sockets until it is executed.
        let end = Instant::now() + Duration::from_secs(10);
        while is_in_use(&streams) || is_in_use(&datagrams) {
            assert!(Instant::now() < end, "they are closed");
            thread::sleep(Duration::from_millis(5));
        }
        assert!(is_in_use(&dir.path().join("x".repeat(200))), "a path that is too long to be asked about");
    }
}
