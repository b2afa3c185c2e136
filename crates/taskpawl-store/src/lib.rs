//! Durable storage of tasks and events for several concurrent processes. The rules of `taskpawl-model` decide
//! which changes are legal; this crate makes their decisions atomic and durable.
//!
//! ```
//! use taskpawl_store::{Location, open};
//!
//! let store = open(&Location::Memory);
//! assert_eq!(store.view(|view| view.revision())?, 0);
//! # Ok::<(), taskpawl_store::StoreError>(())
//! ```

mod access;
mod committer;
mod derived;
mod error;
mod examine;
#[cfg(feature = "faults")]
pub mod faults;
#[cfg(not(feature = "faults"))]
mod faults;
mod files;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod handle;
mod json;
mod location;
mod medium;
mod memory;
mod placement;
mod sqlite;
mod store;
mod words;

pub use access::{
    Added, Addition, Ask, Broken, Channel, Door, DoorKeeper, MOST_REQUEST_BYTES, Patience, Said, ViewAsk,
    Welcome, door, show,
};
pub use committer::Committer;
pub use error::StoreError;
pub use examine::{Finding, Severity, examine, narrow_mode, wide_mode};
pub use location::{Location, open};
pub use placement::{
    CopyChoice, Environment, Place, PlacementError, Rule, initialize, locate, resolve_copy, state_directory,
};
pub use store::{Look, Outcome, Reply, Store};
