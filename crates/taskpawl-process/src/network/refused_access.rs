use std::net::IpAddr;
use std::path::PathBuf;

use serde::Serialize;

/// Access to a host, a port or a socket that a program asked for and did not get.
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
    /// A unix socket that no program of the run listens at. Recorded only if another program of this machine does.
    Socket {
        /// The absolute path.
        path: PathBuf,
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
