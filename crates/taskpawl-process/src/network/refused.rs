//! A record of the access to hosts, ports and sockets that programs asked for and did not get.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::asker::{CallLookup, Source};
use super::refused_access::RefusedAccess;
use super::refused_ports::{PortAnswers, PortWatch};
use crate::bounded::blocking_within;
use crate::sandbox::{ListeningSocket, listening_sockets};

/// The maximum number of different records of a call. More are recorded as [`RefusedAccess::Further`].
const MAX_RECORDS: usize = 256;

/// The longest time to look at the paths of sockets.
const LOOK: Duration = Duration::from_secs(1);

/// The refused access of each running call of a supervisor. The engine's network thread writes it, and each call takes its own.
#[derive(Debug, Default)]
pub(crate) struct RefusedLog {
    calls: Mutex<HashMap<u64, Records>>,
    lookup: OnceLock<Arc<dyn CallLookup>>,
    /// Refused ports come from sockets, which are also read before a call takes its records: otherwise a call could end before the
    /// network thread has read the answer to its last connection.
    ports: OnceLock<PortWatch>,
    /// Until all answers are recorded: another reader that finds no more answers would otherwise take its records too early.
    taking: tokio::sync::Mutex<()>,
}

/// The records of a call.
#[derive(Debug, Default)]
struct Records {
    /// The number of refusals so far.
    count: u64,
    /// The number of the last refusal of each kind.
    last: BTreeMap<RefusedAccess, u64>,
}

impl Records {
    fn add(&mut self, access: RefusedAccess) {
        self.count += 1;
        let is_full = self.last.len() >= MAX_RECORDS && !self.last.contains_key(&access);
        self.last.insert(if is_full { RefusedAccess::Further } else { access }, self.count);
    }
}

impl RefusedLog {
    /// Starts the records of a call. Access that is refused to no known call is not recorded.
    pub(crate) fn begin(&self, call: u64) {
        self.calls().insert(call, Records::default());
    }

    /// Drops the records of a call.
    pub(crate) fn end(&self, call: u64) {
        self.calls().remove(&call);
    }

    /// Sets the way to find the call of a socket.
    pub(crate) fn find_calls_by(&self, lookup: Arc<dyn CallLookup>) {
        // Cannot fail: a link sets it once.
        let _ = self.lookup.set(lookup);
    }

    /// Records access that was refused to the program with a socket. Returns after the call is found, which the program must wait for:
    /// its socket is closed with it.
    pub(super) async fn add(&self, access: RefusedAccess, source: Source) {
        if let Some(call) = self.call_of(source).await {
            self.add_to(call, access);
        }
    }

    /// Records access that was refused to a call.
    pub(crate) fn add_to(&self, call: u64, access: RefusedAccess) {
        if let Some(records) = self.calls().get_mut(&call) {
            records.add(access);
        }
    }

    /// Records that a call found no listener at a port of the loopback, if a server of this machine listens there outside.
    pub(crate) fn add_port(&self, call: u64, port: u16) {
        if self.ports.get().is_some_and(|ports| ports.is_only_outside(port)) {
            self.add_to(call, RefusedAccess::Port { port });
        }
    }

    /// Returns the call that a socket belongs to. Another running call must not be blamed: `None` if it is not known.
    async fn call_of(&self, source: Source) -> Option<u64> {
        let only = {
            let calls = self.calls();
            let mut ids = calls.keys().copied();
            ids.next().filter(|_| ids.next().is_none())
        };
        match (only, self.lookup.get()) {
            (Some(_), _) | (None, None) => only,
            (None, Some(lookup)) => lookup.call_of(source).await,
        }
    }

    /// Records refused ports from now on.
    pub(super) fn watch_ports(&self, sockets: Vec<OwnedFd>) {
        // Cannot fail: a supervisor hands out its sockets once.
        let _ = self.ports.set(PortWatch::new(sockets));
    }

    /// Returns the sockets that become readable with answers about ports.
    pub(super) fn port_sockets(&self) -> &[OwnedFd] {
        self.ports.get().map_or(&[], PortWatch::sockets)
    }

    /// Records the answers about ports that have come so far.
    pub(super) async fn take_ports(&self) {
        let Some(ports) = self.ports.get() else { return };
        let _taking = self.taking.lock().await;
        let PortAnswers { refused, answered } = ports.drain();
        for (port, client) in refused {
            self.add(RefusedAccess::Port { port }, Source::tcp(client)).await;
        }
        for port in answered {
            let access = RefusedAccess::Port { port };
            self.calls().values_mut().for_each(|records| {
                records.last.remove(&access);
            });
        }
    }

    /// Returns the access that was refused to a call, in order of its last refusal.
    pub(crate) async fn of(&self, call: u64) -> Vec<RefusedAccess> {
        self.take_ports().await;
        let recorded = self.recorded(call);
        if !recorded.iter().any(|access| matches!(access, RefusedAccess::Socket { .. })) {
            return recorded;
        }
        // Programs try sockets that may be there, and a path may be on a file system that does not answer.
        let deadline = Some(Instant::now() + LOOK);
        let is_there =
            |access: &RefusedAccess| !matches!(access, RefusedAccess::Socket { path } if !has_listener(path));
        let never = CancellationToken::new();
        let looked =
            blocking_within(&never, deadline, move || recorded.into_iter().filter(is_there).collect());
        looked.await.unwrap_or_default()
    }

    fn recorded(&self, call: u64) -> Vec<RefusedAccess> {
        let calls = self.calls();
        let mut records: Vec<_> =
            calls.get(&call).map(|records| records.last.iter().collect()).unwrap_or_default();
        records.sort_by_key(|(_, last)| **last);
        records.into_iter().map(|(access, _)| access.clone()).collect()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<u64, Records>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a program outside of the sandbox listens at a path. A file that a program of the run has left there is none.
fn has_listener(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return false };
    let [a, b, c, d, ..] = metadata.ino().to_le_bytes();
    let inode = u32::from_le_bytes([a, b, c, d]);
    let is_it = |socket: &ListeningSocket| socket.file.is_some_and(|(_, file)| file == inode);
    metadata.file_type().is_socket() && listening_sockets().is_ok_and(|sockets| sockets.iter().any(is_it))
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use super::*;

    fn host(name: &str) -> RefusedAccess {
        RefusedAccess::Host { name: name.to_owned() }
    }

    /// Even ports belong to the call 2, those of 1 to no call.
    #[derive(Debug)]
    struct ByPort;

    impl CallLookup for ByPort {
        fn call_of(&self, source: Source) -> Pin<Box<dyn Future<Output = Option<u64>> + Send + '_>> {
            Box::pin(async move {
                (source.port != 1).then_some(if source.port.is_multiple_of(2) { 2 } else { 3 })
            })
        }
    }

    #[tokio::test]
    async fn each_call_has_its_own_refusals() {
        let log = RefusedLog::default();
        log.find_calls_by(Arc::new(ByPort));
        log.begin(2);
        log.begin(3);
        for (name, port) in [("c", 2), ("b", 3), ("a", 4), ("c", 6), ("lost", 1)] {
            log.add(host(name), Source::udp(port)).await;
        }
        assert_eq!(log.of(2).await, ["a", "c"].map(host));
        assert_eq!(log.of(3).await, ["b"].map(host));
        log.end(3);
        // It runs alone now.
        log.add(host("d"), Source::udp(1)).await;
        assert_eq!((log.of(2).await.len(), log.of(3).await.len()), (3, 0));
    }

    #[tokio::test]
    async fn a_full_record_says_so() {
        let log = RefusedLog::default();
        log.begin(1);
        (0..MAX_RECORDS + 5).for_each(|number| log.add_to(1, host(&number.to_string())));
        let all = log.of(1).await;
        assert_eq!((all.len(), all.last()), (MAX_RECORDS + 1, Some(&RefusedAccess::Further)));
    }
}
