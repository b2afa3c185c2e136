//! Tells sockets in use from files that a dead process left behind.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Returns whether a process has the socket open. A left-behind socket file cannot be opened again: a new process has to create a new file.
///
/// The check tries to connect a datagram socket. It sends nothing, and a stream listener does not notice it, because the kernel refuses the
/// connection with another error than that for an unused file. `/proc/net/unix` is no alternative: it lacks the sockets of other network
/// namespaces.
pub(super) fn is_somebodys(socket: &Path) -> bool {
    let connected = UnixDatagram::unbound().and_then(|own| own.connect(socket));
    !connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_is_somebodys_as_long_as_somebody_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let (streams, datagrams) = (dir.path().join("streams"), dir.path().join("datagrams"));
        let listener = UnixListener::bind(&streams).unwrap();
        listener.set_nonblocking(true).unwrap();
        let receiver = UnixDatagram::bind(&datagrams).unwrap();
        assert!(is_somebodys(&streams) && is_somebodys(&datagrams));
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nobody notices");
        drop((listener, receiver));
        assert!(!is_somebodys(&streams) && !is_somebodys(&datagrams));
        assert!(is_somebodys(&dir.path().join("x".repeat(200))), "nobody knows");
    }
}
