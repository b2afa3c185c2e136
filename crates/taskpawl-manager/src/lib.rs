//! The commands on a plan, and reads of it. Everything that is written to a store goes through this crate.
//!
//! A [`Manager`] adds actor, time and ids to a command. The rules are in `taskpawl-model`, storage is in
//! `taskpawl-store`. This crate starts no tools.
//!
//! What the terminal, MCP and programs all show is gathered here: the digest, explanations, forecasts and histories.

pub mod digest;
mod error;
mod explain;
mod history;
mod liveness;
mod manager;
mod paths;
mod pruned;
mod reads;
mod redaction;
mod signals;
mod source;

pub use digest::Digest;
pub use error::Error;
pub use history::{CallOfRun, HistoryEntry, HistoryFilter};
pub use liveness::{Liveness, RunState};
pub use manager::{ApplyOptions, Approving, Ending, Manager};
pub use paths::Paths;
pub use reads::{Page, ReadyPage, RunFilter};
pub use source::{FixedSource, Source, SystemSource};
pub use taskpawl_model::command::OnChanged;
pub use taskpawl_model::command::Redact;
