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

mod addition;
mod channel;
mod client;
mod door;
mod serve;
#[cfg(test)]
mod tests;
mod view;
mod wire;

pub use addition::Addition;
pub use channel::{Channel, Patience};
pub(crate) use client::{Nowhere, RemoteStore};
pub use door::{Door, DoorKeeper, door};
pub use serve::{Broken, show};
pub use wire::{Added, Ask, MOST_REQUEST_BYTES, Said, ViewAsk, Welcome};
