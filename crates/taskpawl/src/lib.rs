//! taskpawl runs the plans of AI agents. It stores a graph of tasks durably, runs the tool calls of all ready tasks in parallel,
//! records every result, and reports the status from the calls that actually ran.
//!
//! Start with [`Taskpawl`]: it opens a store, accepts plans and single tasks, and runs them.
//!
//! ```standalone_crate
//! use taskpawl::Taskpawl;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Has to come first: programs of tool calls belong to a second process of this program, the supervisor.
//! taskpawl::child_entry();
//! let plans = Taskpawl::open(":memory:")?;
//! plans.apply_text("tasks: [{id: hello, run: echo hello}, {id: after, needs: hello, milestone: true}]", "greeting").await?;
//! let summary = plans.run().await?;
//! assert_eq!(summary.exit, 0);
//! assert_eq!(plans.get_task("hello").await?.result.unwrap()["stdout"], "hello\n");
//! # Ok(())
//! # }
//! ```
//!
//! The library installs no signal handler, no subscriber and no global state; it works on a current-thread runtime, with the
//! I/O and time drivers enabled. Handles are cheap to clone.

mod blocking;
mod builder;
mod changes;
mod check;
mod claims;
mod commands;
mod context;
mod error;
mod facade;
mod near;
mod plan;
mod plan_directory;
#[cfg(feature = "planner")]
mod planner;
mod policy_adapter;
pub mod prelude;
mod printed;
mod run;
mod temporary_directory;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(feature = "macros")]
pub mod typed;

pub use async_trait::async_trait;
pub use blocking::{Blocking, StatusChange};
pub use builder::Builder;
pub use changes::Changes;
pub use check::{
    CheckError, CheckOptions, CheckProblem, CheckSeverity, ExplainTool, MAX_PROBLEMS, PlanCheck,
    unmarked_warning,
};
pub use claims::{Claimed, ReportError};
pub use commands::ResultError;
pub use context::PlansOfCall;
pub use error::OpenError;
pub use facade::Taskpawl;
pub use near::{AskedByRule, near_rules};
pub use plan::{IntoCall, Plan, TaskBuilder};
pub use plan_directory::{NamedPlanText, PlanDirectory, PlanNames};
#[cfg(feature = "planner")]
pub use planner::{ChangeRequest, MAX_REPAIRS, NoChange, PlanChange};
pub use policy_adapter::call_origin;
pub use printed::{can_be_shown, is_unfinished, kept_text};
pub use run::{Run, RunBuilder};
pub use taskpawl_engine::{
    ApprovalVerdict, Approver, CacheLayers, CallExecutor, CallFailure, CallPlaces, ChangedBeyond, EndedEarly,
    Engine, EnvFileError, ExecuteError, FailedTask, FailureGroup, FilesOutline, KeptWorktree, KeySource,
    LateFilesOfRun, LocalExecutor, LocalOptions, NotRun, Observer, Offer, Outcome, Output, OutputPart,
    OutputStream, Project, PruneOptions, PruneReport, QuietPlans, RememberedGrants, ReturnedFiles,
    RunControl, RunError, RunEvent, RunOptions, RunSource, RunSummary, RunUsage, RunVariables, SentCall,
    SentEnd, SentFiles, SentOutcome, TaskUsage, Ticket, TicketStatus, VariableError, Waiting, WorktreeDiff,
    WorktreeState, keyed_digest, leftover_refs, outline, remove_refs,
};
/// Turns an async function into a tool.
///
/// The parameters are the arguments, their documentation describes them, and the schemas come from the types. A first parameter
/// `&CallContext` gets the context of the call. The function returns a `Result`; see [`typed::CallResult`] for its types.
///
/// The attribute leaves a unit struct with the name of the function: the tool, for [`Builder::tool`]. `NAME::with(…)` makes a call of it
/// for a task, `NAME::run(…)` is the function itself.
///
/// Options: `name = "…"`, `timeout_seconds = N`, and the hints `read_only`, `idempotent`, `destructive`, `open_world`.
///
/// ```
/// use taskpawl::prelude::*;
///
/// /// Counts the words of a text.
/// #[tool(read_only)]
/// async fn count_words(
///     /// The text to count.
///     text: String,
/// ) -> std::io::Result<usize> {
///     Ok(text.split_whitespace().count())
/// }
///
/// let plans = Taskpawl::builder(":memory:").tool(count_words).open()?;
/// # Ok::<(), taskpawl::OpenError>(())
/// ```
#[cfg(feature = "macros")]
pub use taskpawl_macros::tool;
pub use taskpawl_manager::{
    ApplyOptions, Approving, CallOfRun, Digest, Ending, Error, FixedSource, HistoryEntry, HistoryFilter,
    Liveness, Manager, OnChanged, Page, ReadyPage, Redact, RunFilter, RunState, Source, SystemSource, digest,
};
pub use taskpawl_model as model;
#[cfg(feature = "planner")]
pub use taskpawl_planner as planning;
pub use taskpawl_store as store;
pub use taskpawl_tools as tools;
pub use taskpawl_tools::{
    CallLayer, Next, SandboxMode, SandboxSettings, SecretError, SecretSource, Supervision, child_entry,
    is_below_supervisor,
};

/// Compiles and runs the examples of `docs/library.md`.
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;

/// Compiles the example of the README.
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
