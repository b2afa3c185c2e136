//! Connects granted names and ports of sandboxed programs with the network of the user.
//!
//! A socket stays in the network namespace that it was created in. So the supervisor creates listening sockets inside and hands them
//! out, and this process accepts their connections and connects to the destination outside. Nothing of it runs in the sandbox.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UdpSocket, lookup_host};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::address::special_address;
use super::asker::Source;
use super::client_hello::{self, Beginning};
use super::layout::{Destination, Endpoint, Layout};
use super::own_listener::OwnListener;
use super::refused::RefusedLog;
use super::refused_access::RefusedAccess;
use super::resolver::Names;
use crate::faults::{self, Fault};
use crate::profile::Profile;
use crate::supervisor::Progress;

/// The port whose connections have to ask for the granted name.
const HTTPS: u16 = 443;

/// Time to look a name up, to connect, and for the first message of a TLS client, each.
const PATIENCE: Duration = Duration::from_secs(15);

/// The maximum number of connections at a time; more wait in the queues of the listening sockets.
const MAX_CONNECTIONS: usize = 256;

/// Forwards the connections of one supervisor's programs.
#[derive(Debug)]
pub(crate) struct Forwarder {
    names: Arc<Names>,
    refused: Arc<RefusedLog>,
    room: Arc<Semaphore>,
}

impl Forwarder {
    /// Starts a thread that forwards connections until the supervisor is gone.
    ///
    /// `sockets` are the resolver's packet and stream sockets, one for each endpoint of the profile's layout, and those of refused ports,
    /// if they could be opened.
    pub(crate) fn start(
        mut sockets: Vec<OwnedFd>,
        profile: &Profile,
        refused: Arc<RefusedLog>,
        progress: watch::Receiver<Progress>,
    ) -> io::Result<()> {
        let layout = Layout::of(profile);
        let endpoints = layout.endpoints();
        // Here and not in the thread, which may start later than the first call ends.
        let of_ports = sockets.split_off(sockets.len().min(endpoints.len() + 2));
        refused.watch_ports(of_ports);
        let names = Arc::new(Names::new(layout));
        let forwarder = Arc::new(Self { names, refused, room: Arc::new(Semaphore::new(MAX_CONNECTIONS)) });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let body = move || {
            // An error means that a socket failed. Connections of programs are refused then.
            let _ = runtime.block_on(forwarder.serve(sockets, &endpoints, progress));
            // A lookup that hangs must not hold the thread.
            runtime.shutdown_background();
        };
        std::thread::Builder::new().name("taskpawl-network".to_owned()).spawn(body)?;
        Ok(())
    }

    async fn serve(
        self: Arc<Self>,
        sockets: Vec<OwnedFd>,
        endpoints: &[Endpoint],
        mut progress: watch::Receiver<Progress>,
    ) -> io::Result<()> {
        let mut sockets = sockets.into_iter();
        let (Some(packets), Some(streams)) = (sockets.next(), sockets.next()) else { return Ok(()) };
        let mut tasks = JoinSet::new();
        let (names, refused, packets) =
            (Arc::clone(&self.names), Arc::clone(&self.refused), packets_of(packets)?);
        tasks.spawn(async move { names.answer_packets(packets, &refused).await });
        tasks.spawn(
            Arc::clone(&self.names).answer_connections(listener_of(streams)?, Arc::clone(&self.refused)),
        );
        for (socket, endpoint) in sockets.zip(endpoints) {
            tasks.spawn(Arc::clone(&self).accept(listener_of(socket)?, *endpoint));
        }
        for socket in self.refused.port_sockets() {
            tasks.spawn(watch_ports(socket.try_clone()?, Arc::clone(&self.refused)));
        }
        // An error means that the link is dropped, and with it the supervisor gone.
        let _ = progress.wait_for(|progress| *progress == Progress::Gone).await;
        Ok(())
    }

    async fn accept(self: Arc<Self>, listener: TcpListener, endpoint: Endpoint) -> io::Result<()> {
        let mut connections = JoinSet::new();
        loop {
            let (stream, from) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) if is_passing(&error) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            // Only after a connection came: there may be more listening sockets than connections at a time.
            let Ok(room) = Arc::clone(&self.room).acquire_owned().await else { return Ok(()) };
            while connections.try_join_next().is_some() {}
            let forwarder = Arc::clone(&self);
            connections.spawn(async move {
                forwarder.carry(stream, Source::tcp(from.port()), endpoint).await;
                drop(room);
            });
        }
    }

    /// Connects a program with its destination, until one of them ends.
    async fn carry(&self, mut inside: TcpStream, source: Source, endpoint: Endpoint) {
        match self.connect(&mut inside, source, endpoint).await {
            Some(mut outside) => {
                // An error ends the connection on both sides.
                let _ = copy_bidirectional(&mut inside, &mut outside).await;
            }
            None => {
                // The connection is reset, which programs report as an error, instead of closed like a finished one.
                let _ = rustix::net::sockopt::set_socket_linger(&inside, Some(Duration::ZERO));
            }
        }
    }

    async fn connect(&self, inside: &mut TcpStream, source: Source, endpoint: Endpoint) -> Option<TcpStream> {
        let port = endpoint.address.port();
        let Destination::Name(index, slot) = endpoint.destination else {
            // Asked at each connection: the server may have started after the port was granted.
            if OwnListener::is_announced(port) {
                return None;
            }
            let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            return first_connected(loopback.map(|address| (address, port).into())).await;
        };
        let is_wildcard = self.names.layout.names.get(index)?.is_wildcard;
        let name = self.names.at(index, slot)?;
        let beginning = if port == HTTPS { self.beginning(inside, source, &name).await? } else { Vec::new() };
        let addresses = self.addresses(&name, port, source, is_wildcard).await?;
        let mut outside = first_connected(addresses).await?;
        outside.write_all(&beginning).await.ok()?;
        Some(outside)
    }

    /// Reads the first message of a TLS client, which must name the server `name`.
    async fn beginning(&self, inside: &mut TcpStream, source: Source, name: &str) -> Option<Vec<u8>> {
        let (bytes, asked) = timeout(PATIENCE, first_message(inside)).await.ok()?.ok()?;
        if asked.as_deref() == Some(name) || faults::is_on(Fault::AnyDestination) {
            return Some(bytes);
        }
        self.refused.add(RefusedAccess::ServerName { host: name.to_owned(), asked }, source).await;
        None
    }

    /// Looks a name up. Addresses that are not public are left out: otherwise the owner of the name would decide which machine of the
    /// user's own network programs reach. Those of private networks are kept for names that a person wrote in full.
    async fn addresses(
        &self,
        name: &str,
        port: u16,
        source: Source,
        is_wildcard: bool,
    ) -> Option<Vec<SocketAddr>> {
        let found: Vec<SocketAddr> = timeout(PATIENCE, lookup_host((name, port))).await.ok()?.ok()?.collect();
        let reason_against = |address: &SocketAddr| {
            let reason = special_address(address.ip())?;
            let is_open = !is_wildcard && is_private(address.ip()) || faults::is_on(Fault::AnyDestination);
            (!is_open).then_some(reason)
        };
        let (open, closed): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|address| reason_against(address).is_none());
        if open.is_empty()
            && let Some(first) = closed.first()
            && let Some(reason) = reason_against(first)
        {
            let (host, address) = (name.to_owned(), first.ip());
            self.refused.add(RefusedAccess::Address { host, address, reason }, source).await;
        }
        Some(open)
    }
}

/// Reads answers about ports as they come, because the socket holds only a few hundred.
#[expect(unsafe_code, reason = "tokio has no safe way to wait for a raw socket")]
async fn watch_ports(socket: OwnedFd, refused: Arc<RefusedLog>) -> io::Result<()> {
    // SAFETY: the descriptor belongs to the `AsyncFd`, which never gives it away, so that it stays open and the same.
    let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?;
    loop {
        let mut ready = socket.readable().await?;
        refused.take_ports().await;
        ready.clear_ready();
        // Later answers wait for the next turn, however many connections a program makes.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns whether an address belongs to a private network: that of a company or a household, a VPN, or a carrier.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            address.is_private() || (a == 100 && b & 0b1100_0000 == 64)
        }
        IpAddr::V6(address) => address.is_unique_local(),
    }
}

/// Returns whether a later accept may succeed: the other side gave up, or descriptors are missing.
fn is_passing(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [libc::ECONNABORTED, libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM].map(Some).contains(&code)
}

async fn first_connected(addresses: impl IntoIterator<Item = SocketAddr>) -> Option<TcpStream> {
    for address in addresses {
        if let Ok(Ok(stream)) = timeout(PATIENCE, TcpStream::connect(address)).await {
            return Some(stream);
        }
    }
    None
}

/// Reads until the first message of a TLS client is complete. Returns it, and the server that it names.
async fn first_message(stream: &mut TcpStream) -> io::Result<(Vec<u8>, Option<String>)> {
    let mut bytes = Vec::new();
    loop {
        match client_hello::read(&bytes) {
            Beginning::Names(name) => return Ok((bytes, Some(name))),
            Beginning::Nameless => return Ok((bytes, None)),
            Beginning::Incomplete => {}
        }
        let mut buffer = [0; 4096];
        let most = buffer.len().min(client_hello::MAX_BYTES - bytes.len());
        match stream.read(&mut buffer[..most]).await? {
            0 => return Ok((bytes, None)),
            length => bytes.extend_from_slice(&buffer[..length]),
        }
    }
}

fn listener_of(socket: OwnedFd) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::from(socket);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

fn packets_of(socket: OwnedFd) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::from(socket);
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn each_of_many_listening_sockets_accepts() {
        let listeners: Vec<_> = (0..=MAX_CONNECTIONS)
            .map(|_| std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
            .collect();
        let addresses: Vec<_> = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
        // Of a name that was not granted: each connection is reset.
        let destination = Destination::Name(0, 0);
        let endpoints: Vec<_> =
            addresses.iter().map(|address| Endpoint { address: *address, destination }).collect();
        let packets = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let streams = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let sockets = [OwnedFd::from(packets), streams.into()].into_iter();
        let sockets = sockets.chain(listeners.into_iter().map(OwnedFd::from)).collect();
        let forwarder = Arc::new(Forwarder {
            names: Arc::new(Names::new(Layout::of(&Profile::default()))),
            refused: Arc::new(RefusedLog::default()),
            room: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        });
        let (end, progress) = watch::channel(Progress::Open);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(forwarder.serve(sockets, &endpoints, progress))
        });
        // The last one first: each connection that ends would make room for it.
        for address in addresses.into_iter().rev() {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let error = stream.read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{address}");
        }
        end.send(Progress::Gone).unwrap();
        thread.join().unwrap().unwrap();
    }
}
