//! Connections to ports at which nothing listens inside, but a server of this machine does outside.
//!
//! The supervisor opens raw sockets in the network namespace of the programs, with a filter for two answers: a connection is refused
//! (RST and ACK with the number zero), or accepted (SYN and ACK). It only listens, so that it neither delays a connection nor decides
//! about one. A packet socket would see both protocols, but closing one waits until no processor of the machine can use it: 7 to 15 ms.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recvfrom, socket_with};

use super::layout::is_of_name;
use super::own_listener::OwnListener;

/// The bytes of each packet that are delivered. The ports are within the first of them, whatever options the packet has.
const SNAP: u32 = 96;

/// The time for which the answer whether a server listens outside is used again.
const FRESH: Duration = Duration::from_secs(1);

const SYN_ACK: u32 = 0x12;
const RST_ACK: u32 = 0x14;

/// Opens a socket for each version of IP in the current network namespace. Needs `CAP_NET_RAW` there.
pub(crate) fn open() -> io::Result<Vec<OwnedFd>> {
    // The kernel puts the header of IPv4 before what it delivers, and leaves that of IPv6 out.
    let of_ipv4 = open_for(AddressFamily::INET, &filter(true))?;
    // A machine may be without IPv6.
    Ok(std::iter::once(of_ipv4).chain(open_for(AddressFamily::INET6, &filter(false))).collect())
}

#[expect(unsafe_code, reason = "there is no safe way to attach a filter")]
fn open_for(family: AddressFamily, filter: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // No packet is there before the first program.
    let socket = socket_with(family, SocketType::RAW, flags, Some(rustix::net::ipproto::TCP))?;
    let length = u16::try_from(filter.len()).unwrap_or_default();
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the valid program, and neither changes it nor keeps a pointer to it.
    let attached = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>().try_into().unwrap_or_default(),
        )
    };
    if attached == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// Returns the filter: TCP with SYN and ACK, or with RST, ACK and the sequence number zero.
fn filter(has_header: bool) -> Vec<libc::sock_filter> {
    const LOAD_BYTE_AT: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_IND;
    const LOAD_WORD_AT: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_IND;
    const EQUALS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    #[expect(clippy::cast_possible_truncation, reason = "codes of instructions have sixteen bits")]
    let op = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let (reject, accept) =
        (op(libc::BPF_RET | libc::BPF_K, 0, 0, 0), op(libc::BPF_RET | libc::BPF_K, 0, 0, SNAP));
    // The length of the header goes into X.
    let start = if has_header {
        op(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0, 0, 0)
    } else {
        op(libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM, 0, 0, 0)
    };
    vec![
        start,
        // Flags of TCP.
        op(LOAD_BYTE_AT, 0, 0, 13),
        op(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, SYN_ACK | RST_ACK),
        op(EQUALS, 4, 0, SYN_ACK),
        op(EQUALS, 0, 2, RST_ACK),
        op(LOAD_WORD_AT, 0, 0, 4),
        op(EQUALS, 1, 0, 0),
        reject,
        accept,
    ]
}

/// An answer to a connection of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer {
    address: IpAddr,
    port: u16,
    /// The port of the program.
    client: u16,
    is_refused: bool,
}

impl Answer {
    /// Reads the ports and the flags of a packet that has passed the filter, and that an address has sent.
    fn read(address: IpAddr, packet: &[u8]) -> Option<Self> {
        let head = if address.is_ipv4() { usize::from(packet.first()? & 15) * 4 } else { 0 };
        let tcp = packet.get(head..)?;
        let port = |at: usize| Some(u16::from_be_bytes(tcp.get(at..at + 2)?.try_into().ok()?));
        let (port, client) = (port(0)?, port(2)?);
        Some(Self { address, port, client, is_refused: u32::from(*tcp.get(13)?) & RST_ACK == RST_ACK })
    }

    /// Returns whether the address is that of this machine for programs outside.
    fn is_of_machine(&self) -> bool {
        match self.address {
            IpAddr::V4(address) => address.is_loopback() && !is_of_name(address),
            IpAddr::V6(address) => address == Ipv6Addr::LOCALHOST,
        }
    }
}

/// Answers to connections of programs.
#[derive(Debug, Default)]
pub(super) struct PortAnswers {
    /// Ports at which only a server outside listens, each with the port of the program.
    pub(super) refused: Vec<(u16, u16)>,
    /// Ports that have answered.
    pub(super) answered: Vec<u16>,
}

/// The raw sockets of a supervisor, and the ports at which its programs listen or have listened.
#[derive(Debug)]
pub(super) struct PortWatch {
    sockets: Vec<OwnedFd>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// A port that was refused while its server of the run started up is not missing.
    answered: BTreeSet<u16>,
    /// The ports at which servers of this machine listen, and the time when they were listed.
    outside: Option<(Instant, BTreeSet<u16>)>,
}

impl PortWatch {
    pub(super) fn new(sockets: Vec<OwnedFd>) -> Self {
        Self { sockets, state: Mutex::default() }
    }

    pub(super) fn sockets(&self) -> &[OwnedFd] {
        &self.sockets
    }

    /// Returns whether no server of the run has listened at a port, and one of this machine does.
    pub(super) fn is_only_outside(&self, port: u16) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        !state.answered.contains(&port) && state.listens_outside(port)
    }

    /// Reads all waiting answers.
    pub(super) fn drain(&self) -> PortAnswers {
        let mut answers = PortAnswers::default();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for socket in &self.sockets {
            // Bounded, so that a program which connects without end does not hold the reader.
            for answer in std::iter::from_fn(|| receive(socket).ok()).take(4096).flatten() {
                let Answer { port, client, is_refused, .. } = answer;
                if !is_refused {
                    state.answered.insert(port);
                    answers.answered.push(port);
                } else if !state.answered.contains(&port) && state.listens_outside(port) {
                    answers.refused.push((port, client));
                }
            }
        }
        answers
    }
}

/// Takes a packet from a socket, and returns its answer if this machine has sent it. Fails if no packet waits.
fn receive(socket: &OwnedFd) -> io::Result<Option<Answer>> {
    let mut buffer = [0; SNAP as usize];
    let (_, length, from) = recvfrom(socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
    let address = from.and_then(|from| SocketAddr::try_from(from).ok());
    let answer = address.zip(buffer.get(..length)).and_then(|(from, packet)| Answer::read(from.ip(), packet));
    Ok(answer.filter(Answer::is_of_machine))
}

impl State {
    fn listens_outside(&mut self, port: u16) -> bool {
        let is_fresh = self.outside.as_ref().is_some_and(|(at, _)| at.elapsed() < FRESH);
        if !is_fresh {
            let lists = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"]
                .map(|file| fs::read_to_string(file).unwrap_or_default());
            self.outside = Some((
                Instant::now(),
                lists.iter().flat_map(|list| list.lines().filter_map(listening)).collect(),
            ));
        }
        let is_listed = self.outside.as_ref().is_some_and(|(_, ports)| ports.contains(&port));
        is_listed && !OwnListener::is_announced(port)
    }
}

/// Returns the port of a line of `/proc/net/tcp`, if a server listens there for programs of this machine.
fn listening(line: &str) -> Option<u16> {
    let mut words = line.split_whitespace().skip(1);
    let (address, port) = words.next()?.rsplit_once(':')?;
    let is_listening = words.nth(1)? == "0A";
    let is_any = address.bytes().all(|byte| byte == b'0');
    // Words of the address are in the order of this machine.
    let loopback = format!("{:08X}", u32::from_ne_bytes(Ipv4Addr::LOCALHOST.octets()));
    let is_loopback = address == loopback || address == "00000000000000000000000001000000";
    (is_listening && (is_any || is_loopback)).then(|| u16::from_str_radix(port, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_outside_are_those_that_listen_for_programs_of_this_machine() {
        let lines = [
            "  sl  local_address rem_address   st tx_queue",
            "   0: 0100007F:1538 00000000:0000 0A 00000000:00000000",
            "   1: 00000000:0016 00000000:0000 0A 00000000:00000000",
            "   2: 0100007F:1539 0100007F:1538 01 00000000:00000000",
            "   3: 0A00000A:0050 00000000:0000 0A 00000000:00000000",
            "   4: 00000000000000000000000001000000:0CEA 00000000000000000000000000000000:0000 0A 0",
        ];
        let ports: Vec<u16> = lines.iter().filter_map(|line| listening(line)).collect();
        assert_eq!(ports, [5432, 22, 3306]);
    }

    #[test]
    fn odd_packets_are_no_answers() {
        for packet in [&[][..], &[0x45], &[0x4f; 20], &[0xff; 40]] {
            assert_eq!(Answer::read(Ipv4Addr::LOCALHOST.into(), packet), None);
        }
        assert_eq!(Answer::read(Ipv6Addr::LOCALHOST.into(), &[0; 13]), None);
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[20..22].copy_from_slice(&5432_u16.to_be_bytes());
        packet[22..24].copy_from_slice(&9090_u16.to_be_bytes());
        packet[33] = 0x14;
        let answer =
            Answer { address: Ipv4Addr::LOCALHOST.into(), port: 5432, client: 9090, is_refused: true };
        assert_eq!(Answer::read(Ipv4Addr::LOCALHOST.into(), &packet), Some(answer));
        assert!(answer.is_of_machine());
        let without_header = Answer { address: Ipv6Addr::LOCALHOST.into(), ..answer };
        assert_eq!(Answer::read(Ipv6Addr::LOCALHOST.into(), &packet[20..]), Some(without_header));
    }
}
