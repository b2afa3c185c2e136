//! The network of sandboxed programs: granted names and ports, which the engine connects to, and a record of everything else that they
//! asked for.

mod address;
mod asker;
mod client_hello;
mod dns;
mod forwarder;
mod grant;
mod layout;
mod own_listener;
mod refused;
mod refused_ports;
mod resolver;

pub use address::special_address;
pub(crate) use asker::{CallLookup, Source, Transport};
pub(crate) use forwarder::Forwarder;
pub use grant::{HostGrant, InvalidHostGrant, powerful_server};
pub(crate) use layout::{Layout, MAX_ENDPOINTS, RESOLVER, lookup_order, resolver_settings};
pub use own_listener::OwnListener;
pub use refused::RefusedAccess;
pub(crate) use refused::RefusedLog;
pub(crate) use refused_ports::open as watch_ports;
