//! Ports of taskpawl's own servers, which no grant opens: their clients add and run tasks.
//!
//! A server announces its port by an abstract unix socket. It is freed with the process, needs no file, and is visible to every taskpawl
//! in the same network namespace, whichever state directory that one uses. Another program can announce a port as well, which closes one
//! more port to programs and opens none.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// The announcement of a port, until it is dropped.
#[derive(Debug)]
pub struct OwnListener(#[expect(dead_code, reason = "the socket is held open")] UnixListener);

impl OwnListener {
    /// Announces that a server of taskpawl listens at this port.
    ///
    /// # Errors
    /// The port is already announced, or no socket can be opened.
    pub fn announce(port: u16) -> io::Result<Self> {
        let address = SocketAddr::from_abstract_name(name(port))?;
        UnixListener::bind_addr(&address).map(Self)
    }

    /// Returns whether a server of taskpawl listens at this port.
    pub fn is_announced(port: u16) -> bool {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let tried = SocketAddrUnix::new_abstract_name(name(port).as_bytes()).and_then(|address| {
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            connect(&socket, &address)
        });
        // Connections are never accepted, so that the queue of an announcement may be full (`EAGAIN`).
        !matches!(tried, Err(error) if error != rustix::io::Errno::AGAIN)
    }
}

fn name(port: u16) -> String {
    format!("taskpawl-listener-{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_announced_until_its_server_ends() {
        // A port that no other test uses.
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        assert!(!OwnListener::is_announced(port));
        let announced = OwnListener::announce(port).unwrap();
        assert!((0..300).all(|_| OwnListener::is_announced(port)));
        OwnListener::announce(port).unwrap_err();
        drop(announced);
        assert!(!OwnListener::is_announced(port));
    }
}
