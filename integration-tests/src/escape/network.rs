//! Bypass cases: reaching hosts and sockets outside of the sandbox.

use std::fs::File;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::net::{AddressFamily, Protocol, RawProtocol, SocketType, socket};

use super::{Control, Way, World, engine, no_such_way, system_call};

const PATIENCE: Duration = Duration::from_secs(2);

pub(super) const WAYS: &[Way] = &[
    Way::held("tcp", |world| connect(SocketAddr::from(([127, 0, 0, 1], world.tcp)))),
    Way::held("tcp6", |world| {
        if world.tcp6 == 0 {
            return Err(no_such_way("there is no IPv6 here"));
        }
        connect(SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], world.tcp6)))
    })
    .open_to(Control::Depends),
    // UDP has no handshake, so sending always succeeds: the harness checks whether the packet arrived.
    Way::held("udp", |world| {
        let socket = UdpSocket::bind(("127.0.0.1", 0))?;
        socket.send_to(b"escaped", ("127.0.0.1", world.udp))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.recv_from(&mut [0; 16]).map(drop)
    }),
    Way::held("name-server", |_| {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.connect("192.0.2.1:53")?;
        socket.send(b"x").map(drop)
    })
    .open_to(Control::Depends),
    Way::held("unix-socket", |world| UnixStream::connect(&world.socket)?.write_all(b"escaped")),
    Way::held("unix-datagram", |world| {
        let socket = UnixDatagram::unbound()?;
        socket.send_to(b"escaped", world.socket.with_extension("datagram")).map(drop)
    }),
    Way::held("unix-socket-relative-name", |world| reach(&world.home.join("relative"))),
    Way::held("unix-socket-renamed", |world| reach(&world.home.join("renamed"))),
    Way::held("unix-socket-hard-link", |world| reach(&world.home.join("second-name"))),
    Way::held("abstract-socket", |world| {
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&world.abstract_name)?;
        UnixStream::connect_addr(&address)?.write_all(b"escaped")
    }),
    Way::held("raw-socket", |_| {
        let protocol = Protocol::from_raw(RawProtocol::new(1).ok_or_else(|| no_such_way("no protocol"))?);
        Ok(socket(AddressFamily::INET, SocketType::RAW, Some(protocol)).map(drop)?)
    })
    .open_to(Control::Superuser),
    Way::held("packet-socket", |_| Ok(socket(AddressFamily::PACKET, SocketType::RAW, None).map(drop)?))
        .open_to(Control::Superuser),
    Way::held("vsock", |_| {
        let family = AddressFamily::from_raw(u16::try_from(libc::AF_VSOCK).unwrap_or(0));
        Ok(socket(family, SocketType::STREAM, None).map(drop)?)
    })
    .open_to(Control::Depends),
    Way::held("join-network", |_| join("net")).open_to(Control::Superuser),
    Way::held("configure-device", configure_device).open_to(Control::Depends),
];

fn reach(socket: &Path) -> io::Result<()> {
    UnixStream::connect(socket)?.write_all(b"escaped")
}

fn connect(address: SocketAddr) -> io::Result<()> {
    TcpStream::connect_timeout(&address, PATIENCE)?.write_all(b"escaped")
}

/// Sets the flags of the loopback device to their current values, so that a success changes nothing on the machine.
fn configure_device(_: &World) -> io::Result<()> {
    let socket = UdpSocket::bind(("127.0.0.1", 0))?;
    let mut request = [0_u8; 40];
    request[..2].copy_from_slice(b"lo");
    let request = std::ptr::from_mut(&mut request) as i64;
    for operation in [libc::SIOCGIFFLAGS, libc::SIOCSIFFLAGS] {
        let operation = i64::try_from(operation).map_err(|_| no_such_way("no such operation"))?;
        system_call(libc::SYS_ioctl, [socket.as_raw_fd().into(), operation, request, 0, 0])?;
    }
    Ok(())
}

/// Joins a namespace of the engine.
pub(super) fn join(kind: &str) -> io::Result<()> {
    let namespace = File::open(format!("/proc/{}/ns/{kind}", engine()?))?;
    system_call(libc::SYS_setns, [namespace.as_raw_fd().into(), 0, 0, 0, 0]).map(drop)
}
