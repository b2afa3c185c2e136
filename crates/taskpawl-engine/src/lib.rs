//! Runs the tool calls of ready tasks: a dispatcher drives one [`RunLoop`](taskpawl_model::run::run_loop::RunLoop), an executor starts the
//! tools, and a reporter tells observers.
//!
//! The dispatcher writes only through the manager. It starts a call only after the store has recorded it as started.
//! The end of a task, the tasks that become ready by it and the next claims are written in one commit.

mod adoption;
mod approver;
mod artifacts;
mod asking;
mod broker;
mod cache_layers;
mod call_executor;
mod call_places;
mod changes;
mod clock;
mod conversion;
mod dispatcher;
mod engine;
mod env_file;
mod error;
mod examine;
mod executor;
#[cfg(feature = "faults")]
pub mod faults;
#[cfg(not(feature = "faults"))]
mod faults;
mod files_by_git;
mod fingerprint;
mod isolation;
mod journal;
mod keys;
mod late_files;
mod liveness;
mod local_executor;
mod notify;
mod observer;
mod options;
mod outcome;
mod output;
mod placements;
mod private_tmp;
#[cfg(feature = "programs")]
mod project_files;
#[cfg(not(feature = "programs"))]
#[path = "no_project_files.rs"]
mod project_files;
mod prune;
mod questions;
mod quiet_plans;
mod recovery;
mod remembered;
mod reporter;
mod required;
mod runs;
mod scans;
mod secret_variables;
mod secrets;
mod sending;
mod shared_sessions;
mod spans;
mod summary;
mod temporary;
mod tool_lookup;
mod unpassed;
mod variable_key;
mod variables;
mod worktrees;
mod written;

pub use approver::{ApprovalVerdict, Approver};
pub use cache_layers::CacheLayers;
pub use call_executor::{
    CallExecutor, ExecuteError, Offer, SentCall, SentEnd, SentOutcome, Ticket, TicketStatus,
};
pub use call_places::CallPlaces;
pub use clock::RunSource;
pub use engine::{Engine, Project};
pub use env_file::EnvFileError;
pub use error::RunError;
pub use files_by_git::{FilesOutline, ReturnedFiles, SentFiles, leftover_refs, outline, remove_refs};
pub use keys::KeySource;
pub use local_executor::{LocalExecutor, LocalOptions};
pub use observer::{CallFailure, Observer, OutputStream, RunEvent};
pub use options::{RunControl, RunOptions};
pub use outcome::Outcome;
pub use output::{Output, OutputPart};
pub use prune::{PruneOptions, PruneReport};
pub use quiet_plans::QuietPlans;
pub use remembered::RememberedGrants;
pub use summary::{ChangedBeyond, FailedTask, FailureGroup, LateFilesOfRun, NotRun, RunSummary, Waiting};
pub use taskpawl_model::run::run_loop::{EndedEarly, RunUsage, TaskUsage};
pub use variable_key::keyed_digest;
pub use variables::{RunVariables, VariableError};
pub use worktrees::{KeptWorktree, WorktreeDiff, WorktreeState};
