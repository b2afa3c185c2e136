//! The network of sandboxed programs: granted names and ports, which the engine connects to, and a record of everything else that they
//! asked for.

mod address;
mod grant;
#[cfg(not(target_os = "linux"))]
#[path = "no_own_listener.rs"]
mod own_listener;
#[cfg(target_os = "linux")]
mod own_listener;
mod refused_access;

#[cfg(feature = "programs")]
mod asker;
#[cfg(feature = "programs")]
mod client_hello;
#[cfg(feature = "programs")]
mod dns;
#[cfg(feature = "programs")]
mod forwarder;
#[cfg(feature = "programs")]
mod layout;
#[cfg(feature = "programs")]
mod refused;
#[cfg(feature = "programs")]
mod refused_ports;
#[cfg(feature = "programs")]
mod resolver;

pub use address::special_address;
pub use grant::{HostGrant, InvalidHostGrant, powerful_server};
pub use own_listener::OwnListener;
pub use refused_access::RefusedAccess;

#[cfg(feature = "programs")]
pub(crate) use self::{
    asker::{CallLookup, Source, Transport},
    forwarder::Forwarder,
    layout::{Layout, MAX_ENDPOINTS, RESOLVER, lookup_order, resolver_settings},
    refused::RefusedLog,
    refused_ports::open as watch_ports,
};
