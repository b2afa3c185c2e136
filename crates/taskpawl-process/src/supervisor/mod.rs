//! The supervisor process, which owns the programs of a run, and the connection to it.

mod bubble;
mod calls;
mod entry;
mod kin;
mod link;
mod server;
mod signals;
mod socket;
mod spawn;
mod wire;

pub(crate) use bubble::version as version_of_bubbles;
pub use entry::child_entry;
pub(crate) use entry::this_program;
pub use kin::is_below_supervisor;
pub(crate) use link::{Ending, Link, Ticket};
