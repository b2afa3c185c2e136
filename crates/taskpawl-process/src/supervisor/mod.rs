//! The supervisor process, which owns the programs of a run, and the connection to it.

mod askers;
mod bwrap;
mod calls;
mod connect;
mod entry;
mod link;
mod marker;
mod outer;
mod process_tree;
mod server;
mod signals;
mod socket;
mod spawn;
mod wire;

pub(crate) use bwrap::version as version_of_bubbles;
pub use entry::child_entry;
pub(crate) use entry::this_program;
pub(crate) use link::{Ending, Link, Progress, Ticket};
pub use outer::is_in_sandbox;
pub use process_tree::is_below_supervisor;
