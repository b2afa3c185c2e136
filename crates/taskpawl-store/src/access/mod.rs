//! The plan as a call reaches it from inside: a store that somebody else has, behind a descriptor.
//!
//! Whoever runs the call keeps a *door*, and the call has the other side of it: one descriptor that all of its programs share.
//! Through the door come *channels*, one for each that asks, so that programs which run at the same time never mix up their
//! answers. A channel carries frames: a length of four bytes, in little-endian order, and what it says, as JSON.
//!
//! This module has both sides of the conversation, but not what the other side allows: that is for whoever serves it.

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
