//! The [`Tool`] trait, the [`Registry`] of tools and the built-in tools of taskpawl.
//!
//! This crate knows no tasks: a call sees the ids of its task and itself only as text in its [`CallContext`].
//! The usual way to run a call is [`call_guarded`], which checks the arguments against the tool's schema, holds
//! the tool to its deadline and turns a panic into a failed call.
//!
//! ```standalone_crate
//! use serde_json::json;
//! use taskpawl_tools::{CallContext, Registry, call_guarded, child_entry};
//!
//! // The first line of `main`: it makes the process able to start programs.
//! child_entry();
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(async {
//! let dir = tempfile::tempdir().unwrap();
//! let registry = Registry::builtin();
//! let exec = registry.get("exec").unwrap().clone();
//! let cx = CallContext::new(dir.path(), dir.path().join("output/call-1"));
//!
//! let result = call_guarded(exec, cx, json!({"argv": ["echo", "hello"]})).await.unwrap();
//! assert_eq!(result["stdout"], "hello\n");
//! # });
//! ```

#![cfg_attr(
    not(all(feature = "builtin-tools", feature = "programs")),
    allow(dead_code, unused_imports, reason = "shared with the tools that are left out")
)]

mod adjusted;
mod artifact;
mod ask;
mod builtin;
mod command_tool;
mod context;
mod copied;
mod data;
mod error;
mod files;
mod finder;
mod foresee;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod guard;
mod layer;
mod policy;
mod redact;
mod registry;
#[cfg_attr(not(feature = "builtin-tools"), allow(dead_code, reason = "the tools for files use all of it"))]
mod root;
mod sandbox;
mod scan;
mod schema;
mod scope;
mod secrets;
mod steps;
mod text;
mod tool;
mod vault;
mod worktrees;

pub use adjusted::{AdjustedError, RetryAdvice};
pub use artifact::{Artifact, ArtifactDirs, ArtifactSink, MAX_ARTIFACTS};
pub use ask::{Ask, CallQuestions, SharedQuestions};
pub use builtin::has_unfit_ignore_file;
#[cfg(feature = "http")]
pub use builtin::http::{HttpAccess, InvalidHost};
pub use command_tool::{CommandTool, DefinitionError};
pub use context::{
    CallContext, CallLimits, CutSink, PLAN_VARIABLE, Progress, ProgressSink, SentBack, UsageSink,
};
pub use copied::{CopiedFiles, FileCopier};
pub use data::Data;
pub use error::{BlockReason, RegistryError, ToolError};
pub use files::{open_file, read_bytes_if_there, read_if_there};
pub use finder::ToolFinder;
pub use foresee::Foreseen;
pub use guard::{call_guarded, call_layered, panic_text};
pub use layer::{CallLayer, Next};
pub use policy::{
    CEILING, CallOrigin, Decision, Explained, Layer, LayerKind, NearRule, Policy, PolicyCall, PolicyError,
    PolicyFiles, Power, PowerInForce, RememberedApproval, Rule, Ruling, SandboxNeed, Standing, Step,
    content_hash, policy_schema,
};
pub use redact::{Redactor, RedactorStream, ValueRemoval};
pub use registry::{RegisteredTool, Registry, check_foreign};
pub use sandbox::{
    BeforeCall, CallSandbox, ClosedPlaces, ClosedReason, Confinement, CreatedInCall, Denials, Grant,
    GrantedCall, GrantedWork, Hint, InvalidGrant, LateFiles, NamedGrant, PRIVATE_CACHES, RememberedGrant,
    SHARED_TEMPORARY, SandboxError, SandboxMode, SandboxPlaces, SandboxSettings, Widening,
};
pub use scan::{ScanBounds, ScanStopped};
pub use scope::{current_scope, in_scope};
pub use secrets::{ConfiguredSecrets, MIN_SECRET_BYTES, NoSecrets, SecretError, SecretFrom, SecretSource};
pub use steps::{SharedJournal, StepJournal};
pub use taskpawl_process::{
    End, Enforcement, Environment, Handover, HostGrant, InvalidHostGrant, Isolation, Level, Limits, Network,
    NetworkWall, Outcome, OutputFiles, OutputFilter, OwnListener, Profile, Program, Programs, RefusedAccess,
    ResourceLimits, Sandbox, SearchPath, SpawnError, StreamFilter, Supervision, Way, bubblewrap, child_entry,
    filter_file, follow, inherited, is_below_supervisor, is_in_sandbox, keep_owner_rights,
    make_private_directories, make_private_directory, open_beneath, powerful_server, probe,
};
#[cfg(feature = "programs")]
pub use taskpawl_process::{Piped, PipedEnd, share_heap};
pub use text::head_of_text;
pub use tokio_util::sync::CancellationToken;
pub use tool::{Hints, IntoTool, Tool, ToolCommand, ToolSpec};
pub use vault::Vault;
pub use worktrees::{
    CheckTree, HookedCommit, JoinedWork, Joining, MergeConflict, OpenConflict, SharedWorktrees, StagedWork,
    TaskWorktrees,
};
