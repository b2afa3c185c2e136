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

#![cfg_attr(
    not(feature = "sqlite"),
    allow(dead_code, unused_imports, reason = "shared with the SQLite store")
)]

mod access;
mod backend;
mod backup;
mod committer;
mod derived;
mod error;
mod examine;
#[cfg(feature = "faults")]
pub mod faults;
#[cfg(not(feature = "faults"))]
mod faults;
mod file_system;
mod files;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod handle;
mod json;
mod location;
mod memory;
mod placement;
mod rewrite;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(not(feature = "sqlite"))]
#[path = "no_sqlite.rs"]
mod sqlite;
mod store;
#[cfg(test)]
mod testing;
mod text_change;
mod words;

pub use crate::examine::diagnostic::{Diagnostic, Severity};
pub use access::{
    Acceptor, AccessReply, AccessRequest, Broken, Channel, Handshake, MAX_REQUEST_BYTES, MutationReport,
    Patience, PlanSocket, ViewRequest, plan_socket, show,
};
pub use backup::{BackupContent, BackupNote, OpenBackup, back_up, open_backup};
pub use committer::Committer;
pub use error::StoreError;
pub use examine::{examine, narrow_mode, wide_mode};
pub use location::{Location, open};
pub use placement::{
    AllowedRoots, CopyChoice, Environment, PlacementError, RootKind, Rule, StorePlacement, UnsuitableRoot,
    initialize, locate, plan_project, resolve_copy, state_directory,
};
pub use rewrite::{Rewritten, rewrite};
pub use store::{Outcome, Reply, Store, ViewCallback};
pub use text_change::{Check, TextChange};
