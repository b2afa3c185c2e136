//! The broker of connections: every `connect` of a program is made by its supervisor, which takes the socket and the address once.
//!
//! A filter of system calls sees neither the address nor the kind of a socket. So the kernel hands each `connect` to a thread of the
//! supervisor, and the program waits. The thread copies the address, takes the socket, decides, connects, and returns the result. It never
//! lets the program's own call go on: the program could have replaced the address or the descriptor after the decision.

mod address;
mod broker;
mod listeners;
mod notifications;
mod recent;
mod take;

pub(super) use broker::{Broker, Reach};
pub(super) use recent::RecentSources;
