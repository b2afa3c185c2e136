//! Every command on a plan, and the reads beside them: the only gate through which anything is written.
//!
//! A [`Manager`] knows who asks, what time it is and where ids come from; the rules are in `taskpawl-model`, what is kept in
//! `taskpawl-store`. It starts no tools.

mod error;
mod explain;
mod history;
mod liveness;
mod manager;
mod paths;
mod pruned;
mod reads;
mod redaction;
mod source;

pub use error::Error;
pub use history::{HistoryEntry, HistoryFilter};
pub use liveness::{Liveness, RunState};
pub use manager::{ApplyOptions, Approving, Ending, Manager};
pub use paths::Paths;
pub use reads::{Page, ReadyPage, RunFilter};
pub use redaction::Redact;
pub use source::{FixedSource, Source, SystemSource};
