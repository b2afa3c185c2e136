//! Plan access from inside a call: a store that another process owns, reached through an inherited
//! descriptor.
//!
//! The run keeps one end of a *listener* socket, and the call inherits the other end. All programs of the
//! call share that descriptor. Each client receives its own *connection* through it, so that concurrent
//! programs never mix up their answers. A connection carries frames: a length of four bytes in little-endian
//! order, then JSON.
//!
//! This module has both sides of the protocol. It does not decide which requests a call may make: the run
//! authorizes them.

mod channel;
mod client;
mod flags;
mod relay;
mod serve;
mod socket;
#[cfg(test)]
mod tests;
mod view;
mod wire;

pub use channel::{Channel, Patience};
pub(crate) use client::{NoBackend, RemoteStore};
pub use serve::{Broken, show};
pub use socket::{Acceptor, PlanSocket, plan_socket};
pub use wire::{AccessReply, AccessRequest, Handshake, MAX_REQUEST_BYTES, MutationReport, ViewRequest};
