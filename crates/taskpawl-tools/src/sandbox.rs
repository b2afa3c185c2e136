//! Computes the sandbox profile of each call from the user's settings, the location of the project and the call's requests.
//! `taskpawl-process` enforces the profile.

mod closed;
mod closed_reason;
mod confinement;
#[cfg(feature = "programs")]
mod copies;
mod denial;
mod dotenv;
mod excluded_paths;
mod hard_links;
mod hint;
mod home;
mod late;
mod links;
mod made;
mod named;
mod named_access;
mod named_grant;
mod names;
mod obeyed;
mod obeyed_names;
mod places;
mod repositories;
mod settings;
mod sockets;
mod tree;
mod variables;
mod warning;
mod watch;
mod worktree;

pub use crate::sandbox::closed_reason::ClosedReason;
pub use closed::ClosedPlaces;
pub use confinement::{CallSandbox, Confinement, SandboxError};

pub use denial::Denials;
pub(crate) use denial::{hint, hint_for_start, met_protected, of_hidden};
pub use hint::{Grant, Hint};
pub use late::LateFiles;
pub use made::{BeforeCall, CreatedInCall};
pub(crate) use named::hidden_names;
pub(crate) use named_access::{NamedAccess, named_access};
pub use named_grant::{GrantedCall, GrantedWork, InvalidGrant, NamedGrant, RememberedGrant};
pub use places::{PRIVATE_CACHES, SHARED_TEMPORARY, SandboxPlaces};
pub use settings::{SandboxMode, SandboxSettings, Widening};
