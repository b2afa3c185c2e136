//! The name server of sandboxed programs. It knows the granted names alone.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::asker::Source;
use super::dns::{Answer, Question};
use super::grant::is_name;
use super::layout::Layout;
use super::refused::RefusedLog;
use super::refused_access::RefusedAccess;

/// Time for a question over TCP.
const PATIENCE: Duration = Duration::from_secs(10);

/// The largest question; larger ones are no questions for an address.
const MAX_QUESTION: usize = 4096;

/// The maximum number of connections with questions. More wait until one of them ends.
const MAX_CONNECTIONS: usize = 64;

/// The names of a layout, with the names beneath wildcards that were looked up.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) layout: Layout,
    /// For each granted name the names beneath it, with the index of the address.
    taken: Mutex<HashMap<usize, Vec<String>>>,
}

impl Names {
    pub(super) fn new(layout: Layout) -> Self {
        Self { layout, taken: Mutex::default() }
    }

    /// Returns the name that the address at `slot` of a granted name stands for.
    pub(super) fn at(&self, index: usize, slot: usize) -> Option<String> {
        let named = self.layout.names.get(index)?;
        if !named.is_wildcard {
            return Some(named.name.clone());
        }
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).get(&index)?.get(slot).cloned()
    }

    /// Returns the answer for a name, and records a refusal.
    async fn answer(&self, name: &str, source: Source, refused: &RefusedLog) -> Answer {
        let Some(index) = self.layout.find(name).filter(|_| is_name(name)) else {
            refused.add(RefusedAccess::Host { name: name.to_owned() }, source).await;
            return Answer::NoSuchName;
        };
        let named = &self.layout.names[index];
        let slot = if named.is_wildcard { self.slot(index, name) } else { 0 };
        if let Some(address) = named.addresses.get(slot) {
            return Answer::Address(*address);
        }
        let (beneath, name) = (named.name.clone(), name.to_owned());
        refused.add(RefusedAccess::TooManyNames { beneath, name }, source).await;
        Answer::Failure
    }

    /// Returns the index of the address for a name beneath a wildcard. It is past the last address if none is left.
    fn slot(&self, index: usize, name: &str) -> usize {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let names = taken.entry(index).or_default();
        let slot = names.iter().position(|taken| taken == name).unwrap_or(names.len());
        if slot == names.len() && self.layout.names[index].addresses.len() > slot {
            names.push(name.to_owned());
        }
        slot
    }

    async fn reply(&self, message: &[u8], source: Source, refused: &RefusedLog) -> Option<Vec<u8>> {
        let question = Question::read(message)?;
        // The root and other names that are none are answered, but are no access to a host.
        let answer = if question.name.is_empty() {
            Answer::NoSuchName
        } else {
            self.answer(&question.name, source, refused).await
        };
        Some(question.answered(answer))
    }

    /// Answers questions over UDP until the socket fails.
    pub(super) async fn answer_packets(&self, socket: UdpSocket, refused: &RefusedLog) -> io::Result<()> {
        let mut buffer = vec![0; MAX_QUESTION];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await?;
            if let Some(reply) = self.reply(&buffer[..length], Source::udp(from.port()), refused).await {
                // The program may have closed its socket; then it waits for no answer.
                let _ = socket.send_to(&reply, from).await;
            }
        }
    }

    /// Answers questions over TCP until the listener fails.
    pub(super) async fn answer_connections(
        self: Arc<Self>,
        listener: TcpListener,
        refused: Arc<RefusedLog>,
    ) -> io::Result<()> {
        let mut connections = JoinSet::new();
        loop {
            while connections.len() >= MAX_CONNECTIONS {
                connections.join_next().await;
            }
            while connections.try_join_next().is_some() {}
            let (stream, from) = listener.accept().await?;
            let (names, refused) = (Arc::clone(&self), Arc::clone(&refused));
            connections.spawn(async move {
                // An error or a timeout closes the connection, which is all that the program has to know.
                let _ =
                    timeout(PATIENCE, names.answer_stream(stream, Source::tcp(from.port()), &refused)).await;
            });
        }
    }

    async fn answer_stream(
        &self,
        mut stream: TcpStream,
        source: Source,
        refused: &RefusedLog,
    ) -> io::Result<()> {
        loop {
            let length = usize::from(stream.read_u16().await?);
            let mut message = vec![0; length];
            stream.read_exact(&mut message).await?;
            let Some(reply) = self.reply(&message, source, refused).await else { return Ok(()) };
            let length = u16::try_from(reply.len()).map_err(io::Error::other)?;
            stream.write_u16(length).await?;
            stream.write_all(&reply).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::super::layout::NAMES_PER_WILDCARD;
    use super::*;
    use crate::profile::Profile;

    #[tokio::test]
    async fn names_beneath_a_wildcard_get_addresses_until_none_is_left() {
        let hosts = ["*.example.org", "a.example.org"].map(|host| host.parse().unwrap()).into();
        let names = Names::new(Layout::of(&Profile { hosts, ..Profile::default() }));
        let refused = RefusedLog::default();
        refused.begin(1);
        let address = |last| Answer::Address(Ipv4Addr::new(127, 64, 0, last));
        assert_eq!(names.answer("x.example.org", Source::udp(9), &refused).await, address(2));
        assert_eq!(names.answer("y.example.org", Source::udp(9), &refused).await, address(3));
        assert_eq!(names.answer("x.example.org", Source::udp(9), &refused).await, address(2));
        assert_eq!(names.answer("a.example.org", Source::udp(9), &refused).await, address(1));
        assert_eq!(names.at(1, 1).as_deref(), Some("y.example.org"));
        assert_eq!(names.at(1, 2), None);
        for number in 2..NAMES_PER_WILDCARD {
            assert!(matches!(
                names.answer(&format!("{number}.example.org"), Source::udp(9), &refused).await,
                Answer::Address(_)
            ));
        }
        assert_eq!(refused.of(1).await, []);
        assert_eq!(names.answer("z.example.org", Source::udp(9), &refused).await, Answer::Failure);
        assert_eq!(names.answer("other.example", Source::udp(9), &refused).await, Answer::NoSuchName);
        let (beneath, name) = ("example.org".to_owned(), "z.example.org".to_owned());
        let other = RefusedAccess::Host { name: "other.example".to_owned() };
        assert_eq!(refused.of(1).await, [RefusedAccess::TooManyNames { beneath, name }, other]);
    }
}
