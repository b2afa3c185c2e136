//! Runs the tool calls of ready tasks: one dispatcher loop around [`taskpawl_model::schedule::step`], with executors that start
//! tools and observers that are told what happens.
//!
//! The dispatcher writes only through the manager. It starts a call after the store has it on record as started, and writes
//! the end of a task together with what that makes ready and what is claimed next.

mod approver;
mod broker;
mod changes;
mod clock;
mod conversion;
mod dispatcher;
mod engine;
mod error;
mod examine;
mod executor;
#[cfg(feature = "faults")]
pub mod faults;
#[cfg(not(feature = "faults"))]
mod faults;
mod finding;
mod fingerprint;
mod keys;
mod ledger;
mod liveness;
mod notify;
mod observer;
mod output;
mod prune;
mod questions;
mod recovery;
mod scans;
mod secrets;
mod summary;
mod temporary;
mod written;

pub use approver::{Approver, Verdict};
pub use clock::RunSource;
pub use engine::{Engine, Project, RunControl, RunOptions};
pub use error::RunError;
pub use keys::KeySource;
pub use ledger::{EndedEarly, Spent, TaskSpent};
pub use observer::{Observer, RunEvent};
pub use output::{Output, OutputPart};
pub use prune::{PruneOptions, PruneReport};
pub use summary::{ChangedBeyond, FailedTask, FailureGroup, NotRun, RunSummary, Waiting};
