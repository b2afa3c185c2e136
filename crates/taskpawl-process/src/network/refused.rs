//! A record of the network access that programs asked for and did not get.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Serialize;

use super::refused_ports::PortWatch;

/// The maximum number of different records of a run. More are recorded as [`RefusedAccess::Further`].
const MAX_RECORDS: usize = 256;

/// Network access that a program asked for and did not get.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum RefusedAccess {
    /// A name that is not granted was looked up.
    Host {
        /// The name, in lower case.
        name: String,
    },
    /// A granted name is not reached, because none of its addresses may be used.
    Address {
        /// The granted name.
        host: String,
        /// The first of its addresses.
        address: IpAddr,
        /// The kind of the address, as `a link-local address`.
        reason: &'static str,
    },
    /// A connection to port 443 of a granted name did not ask for that name by TLS.
    ServerName {
        /// The granted name.
        host: String,
        /// The name in the connection; `None` without a TLS client that names a server.
        asked: Option<String>,
    },
    /// A port of this machine, at which a server listens outside of the sandbox.
    Port {
        /// The port.
        port: u16,
    },
    /// More names beneath a wildcard were looked up than a run can use.
    TooManyNames {
        /// The name of the wildcard, without `*.`.
        beneath: String,
        /// The name that got no address.
        name: String,
    },
    /// Further access was refused after the record was full.
    Further,
}

/// The refused access of all programs of a supervisor. The engine's network thread writes it, and calls read it.
#[derive(Debug, Default)]
pub(crate) struct RefusedLog {
    records: Mutex<Records>,
    /// Refused ports come from a socket, which is also read before each question to this record: otherwise a call could end before the
    /// network thread has read the answer to its last connection.
    ports: OnceLock<PortWatch>,
    taking: Mutex<()>,
}

#[derive(Debug, Default)]
struct Records {
    /// The number of refusals so far.
    count: u64,
    /// The number of the last refusal of each kind.
    last: BTreeMap<RefusedAccess, u64>,
}

impl RefusedLog {
    pub(super) fn add(&self, access: RefusedAccess) {
        let mut records = self.records();
        records.count += 1;
        let count = records.count;
        let is_full = records.last.len() >= MAX_RECORDS && !records.last.contains_key(&access);
        records.last.insert(if is_full { RefusedAccess::Further } else { access }, count);
    }

    /// Records refused ports from now on.
    pub(super) fn watch_ports(&self, socket: OwnedFd) {
        // Cannot fail: a supervisor hands out its sockets once.
        let _ = self.ports.set(PortWatch::new(socket));
    }

    /// Returns the socket that becomes readable with answers about ports.
    pub(super) fn port_socket(&self) -> Option<&OwnedFd> {
        self.ports.get().map(PortWatch::socket)
    }

    /// Takes the answers about ports that have come so far.
    pub(super) fn take_ports(&self) {
        let Some(ports) = self.ports.get() else { return };
        // Until all of them are recorded: another thread that finds no more answers would otherwise read the record too early.
        let _taking = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        let (refused, answered) = ports.drain();
        for access in refused {
            self.add(access);
        }
        let mut records = self.records();
        for access in &answered {
            records.last.remove(access);
        }
    }

    /// Returns the current position.
    pub(crate) fn position(&self) -> u64 {
        self.take_ports();
        self.records().count
    }

    /// Returns the access that was refused after a position, in order of its last refusal.
    pub(crate) fn since(&self, position: u64) -> Vec<RefusedAccess> {
        self.take_ports();
        let records = self.records();
        let mut after: Vec<_> = records.last.iter().filter(|(_, last)| **last > position).collect();
        after.sort_by_key(|(_, last)| **last);
        after.into_iter().map(|(access, _)| access.clone()).collect()
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> RefusedAccess {
        RefusedAccess::Host { name: name.to_owned() }
    }

    #[test]
    fn a_call_sees_what_was_refused_since_its_start() {
        let log = RefusedLog::default();
        log.add(host("a"));
        let start = log.position();
        assert_eq!(log.since(start), []);
        for name in ["c", "b", "a", "c"] {
            log.add(host(name));
        }
        assert_eq!(log.since(start), ["b", "a", "c"].map(host));
    }

    #[test]
    fn a_full_record_says_so() {
        let log = RefusedLog::default();
        (0..MAX_RECORDS + 5).for_each(|number| log.add(host(&number.to_string())));
        let all = log.since(0);
        assert_eq!((all.len(), all.last()), (MAX_RECORDS + 1, Some(&RefusedAccess::Further)));
    }
}
