//! Whose the sockets of a project are.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Returns whether a socket is somebody's; one that was left behind is nobody's, and nobody can take it up again: it takes a new file.
///
/// What is asked for is a connection for datagrams. Nothing is sent by it, and who listens for streams does not notice it: the system
/// refuses it with another error than that there is nobody. A list of sockets as in `/proc/net/unix` lacks those of other networks.
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
