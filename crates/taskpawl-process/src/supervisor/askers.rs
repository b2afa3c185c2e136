//! The call whose programs have a socket.

use std::fs;

use rustix::process::getpid;

use super::calls::Calls;
use super::connect::RecentSources;
use super::process_tree::{descendants, holds_socket};
use crate::network::{Source, Transport};

/// Returns the call whose programs have a socket at this port, in the network namespace of this process.
///
/// The kernel's table of sockets and the open files of all programs decide, so that a program can neither hide nor blame another call.
pub(super) fn call_of(calls: &Calls, recent: &RecentSources, source: Source) -> Option<u64> {
    let inodes = inodes_at(source);
    if inodes.is_empty() {
        // The socket is closed. The broker has noted the call when it connected the socket.
        return recent.call_of(source);
    }
    let programs = descendants(getpid()).into_iter().map(|descendant| descendant.process);
    let mut holders = programs.filter(|process| holds_socket(*process, &inodes));
    calls.call_of_program(holders.next()?)
}

/// Returns the inodes of the sockets at a port.
fn inodes_at(source: Source) -> Vec<String> {
    let files = match source.transport {
        Transport::Tcp => ["tcp", "tcp6"],
        Transport::Udp => ["udp", "udp6"],
    };
    let tables =
        files.map(|file| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default());
    tables
        .iter()
        .flat_map(|table| table.lines().skip(1).filter_map(|line| inode_at(line, source.port)))
        .collect()
}

/// Returns the inode of a line of such a table, if its socket is at the port and belongs to a process.
fn inode_at(line: &str, port: u16) -> Option<String> {
    let mut words = line.split_whitespace().skip(1);
    let (_, at) = words.next()?.rsplit_once(':')?;
    let inode = words.nth(7)?;
    (u16::from_str_radix(at, 16) == Ok(port) && inode != "0").then(|| inode.to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn the_sockets_at_a_port_are_found() {
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let inode = |socket: &dyn AsFd| rustix::fs::fstat(socket.as_fd()).unwrap().st_ino.to_string();
        let port = |address: std::io::Result<std::net::SocketAddr>| address.unwrap().port();
        assert_eq!(inodes_at(Source::tcp(port(tcp.local_addr()))), [inode(&tcp)]);
        assert!(inodes_at(Source::udp(port(udp.local_addr()))).contains(&inode(&udp)));
        assert_eq!(inodes_at(Source::tcp(0)), [] as [String; 0]);
    }
}
