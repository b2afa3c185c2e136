//! taskpawl runs the plans of AI agents. It stores a graph of tasks durably, runs the tool calls of all ready tasks in parallel,
//! records every result, and reports the status from the calls that actually ran.
//!
//! Start with [`Taskpawl`]: it opens a store, accepts plans and single tasks, and runs them.
//!
//! ```standalone_crate
//! use taskpawl::{RunOptions, Taskpawl};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Has to come first: programs of tool calls belong to a second process of this program, the supervisor.
//! taskpawl::child_entry();
//! let plans = Taskpawl::open(":memory:")?;
//! plans.apply_text("tasks: [{id: hello, run: echo hello}, {id: after, needs: hello, milestone: true}]", "greeting")?;
//! let summary = plans.run_all_ready(RunOptions::default()).await?;
//! assert_eq!(summary.exit, 0);
//! assert_eq!(plans.get_task("hello")?.result.unwrap()["stdout"], "hello\n");
//! # Ok(())
//! # }
//! ```
//!
//! The library installs no signal handler, no subscriber and no global state; it works on a current-thread runtime, with the
//! I/O and time drivers enabled. Handles are cheap to clone.

mod builder;
mod check;
mod error;
mod facade;
mod near;
mod policy_adapter;

pub use async_trait::async_trait;
pub use builder::Builder;
pub use check::{
    CheckOptions, CheckProblem, CheckSeverity, ExplainTool, MAX_PROBLEMS, PlanCheck, unmarked_warning,
};
pub use error::OpenError;
pub use facade::{StatusChange, Taskpawl};
pub use near::{AskedByRule, near_rules};
pub use taskpawl_engine::{
    ApprovalVerdict, Approver, CallFailure, ChangedBeyond, EndedEarly, Engine, EnvFileError, FailedTask,
    FailureGroup, KeySource, NotRun, Observer, Output, OutputPart, Project, PruneOptions, PruneReport,
    RunControl, RunError, RunEvent, RunOptions, RunSource, RunSummary, RunUsage, RunVariables, TaskUsage,
    VariableError, Waiting,
};
pub use taskpawl_manager::{
    ApplyOptions, Approving, CallOfRun, Digest, Ending, Error, FixedSource, HistoryEntry, HistoryFilter,
    Liveness, Manager, OnChanged, Page, ReadyPage, Redact, RunFilter, RunState, Source, SystemSource, digest,
};
pub use taskpawl_model as model;
pub use taskpawl_store as store;
pub use taskpawl_tools as tools;
pub use taskpawl_tools::{
    SandboxMode, SandboxSettings, SecretError, SecretSource, Supervision, child_entry, is_below_supervisor,
};
