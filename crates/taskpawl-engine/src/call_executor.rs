//! The seam between a run and the processes that execute its calls elsewhere.
//!
//! A run decides everything and keeps its plan in the store. Only calls that the store has recorded as started leave, each as a
//! [`SentCall`], and a [`SentEnd`] comes back. Everything here is plain data, so that any transport can carry it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use taskpawl_model::command::{CallEnd, StartedCall};
use taskpawl_model::task::{
    Artifact, CallBody, CallError, CallRecord, SandboxRequest, StartInRun, TaskSpec, ToolQuestion,
};
use taskpawl_model::value::{Map, RunId, TaskId};

use crate::files_by_git::{ReturnedFiles, SentFiles};

/// The identity of one start of a call. The key alone is the same for every start, so that a newer start can fence an older one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ticket {
    /// The idempotency key of the call.
    pub key: String,
    /// The number of the start, from 1.
    pub start: u32,
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.key, self.start)
    }
}

/// A started call on its way to another process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SentCall {
    /// Its ticket.
    pub ticket: Ticket,
    /// The run that sends it.
    pub run: RunId,
    /// The id of its store: the first part of the keys of its calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub store: String,
    /// The fencing number of the store. A worker refuses a smaller one than it has seen, because the store was restored elsewhere.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fence: u64,
    /// Its task.
    pub task: TaskId,
    /// The attempt of the task.
    pub attempt: u32,
    /// The number of times that the task was cleared.
    pub generation: u32,
    /// The number of completed `repeat` rounds.
    pub round: u32,
    /// Its record.
    pub call: CallRecord,
    /// Its evaluated arguments. References to secrets and variables are resolved where the call runs.
    pub args: Map,
    /// The plan of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The paths that the task writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// The files with which it begins; without them it runs in the directory of the worker's project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<SentFiles>,
    /// Sandbox permissions that were granted to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxRequest>,
    /// Time left until the time limit of the task, in milliseconds. The clocks of two machines may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_millis: Option<u64>,
    /// Time left until the time limit of the run or plan, in milliseconds, and the message for calls that exceed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_millis: Option<(u64, String)>,
    /// True if the run considers the call safe to repeat. The receiver also asks its own tool.
    pub is_repeatable: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde expects")]
fn is_zero(fence: &u64) -> bool {
    *fence == 0
}

/// The end of a [`SentCall`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SentEnd {
    /// The outcome.
    pub outcome: SentOutcome,
    /// The executor that ran the call.
    pub worker: String,
    /// The run time in milliseconds.
    pub millis: u64,
    /// Usage that the tool reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// Truncated parts of the result, as JSON Pointers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
    /// Files that the call left for its readers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Files that changed although the task does not declare them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Reason why changed files are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes_unknown: Option<String>,
    /// A hint that would probably let a failed call succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Files in `writes` that it changed, for a call that began with files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<ReturnedFiles>,
}

/// A [`CallEnd`] as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum SentOutcome {
    /// The call succeeded.
    Succeeded {
        /// The result.
        result: Value,
    },
    /// The call failed.
    Failed {
        /// The error.
        error: CallError,
        /// Result that the tool returned despite the error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
    /// The outcome is unknown.
    Interrupted {
        /// True if the call may be repeated anyway.
        repeatable: bool,
        /// Details.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// The tool asks a person.
    Asks {
        /// The question.
        question: Box<ToolQuestion>,
    },
}

impl From<CallEnd> for SentOutcome {
    fn from(end: CallEnd) -> Self {
        match end {
            CallEnd::Succeeded(result) => Self::Succeeded { result },
            CallEnd::Failed { error, result } => Self::Failed { error, result },
            CallEnd::Interrupted { repeatable, why } => Self::Interrupted { repeatable, why },
            CallEnd::Asks(question) => Self::Asks { question },
        }
    }
}

impl From<SentOutcome> for CallEnd {
    fn from(outcome: SentOutcome) -> Self {
        match outcome {
            SentOutcome::Succeeded { result } => Self::Succeeded(result),
            SentOutcome::Failed { error, result } => Self::Failed { error, result },
            SentOutcome::Interrupted { repeatable, why } => Self::Interrupted { repeatable, why },
            SentOutcome::Asks { question } => Self::Asks(question),
        }
    }
}

impl SentEnd {
    /// Returns an end without usage and files.
    pub fn new(outcome: impl Into<SentOutcome>, worker: impl Into<String>) -> Self {
        Self {
            outcome: outcome.into(),
            worker: worker.into(),
            millis: 0,
            usage: None,
            cut: Vec::new(),
            artifacts: Vec::new(),
            changed: Vec::new(),
            changes_unknown: None,
            hint: None,
            files: None,
        }
    }

    /// Returns the end of a call that was refused before its tool started.
    pub fn refused(class: &str, why: impl Into<String>, worker: impl Into<String>) -> Self {
        let error = CallError::new(class, why.into());
        Self::new(SentOutcome::Failed { error, result: None }, worker)
    }
}

/// The services of one worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// The name of the worker.
    pub worker: String,
    /// The number of calls that it runs at once.
    pub slots: usize,
    /// Its labels, for `runsOn`.
    #[serde(default)]
    pub labels: BTreeSet<String>,
    /// Its tools.
    #[serde(default)]
    pub tools: BTreeSet<String>,
}

/// The state of a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TicketStatus {
    /// The executor does not know it.
    Unknown,
    /// The call waits or runs.
    Running,
    /// The call has ended, and its end can be joined.
    Ended,
}

/// The reason why an executor gave no end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// The call certainly never left.
    #[error("the call was not sent: {0}")]
    NotSent(String),
    /// The call may run.
    #[error("the call gave no answer: {0}")]
    Unanswered(String),
}

/// Executes calls in other processes.
///
/// # Contract
///
/// - [`execute`](Self::execute) begins a call, or joins it if its ticket is known. A ticket starts a tool at most once, unless the
///   call is repeatable and its worker was lost.
/// - A start fences older starts of its key: two starts of one key never run at the same time on one worker.
/// - Dropping a future of [`execute`](Self::execute) leaves the call running; only [`stop`](Self::stop) ends it.
#[async_trait]
pub trait CallExecutor: fmt::Debug + Send + Sync {
    /// Returns the workers that are known now. Called for every call, so it must not wait.
    fn offers(&self) -> Arc<[Offer]>;

    /// Runs a call on a worker, or joins it, and returns its end.
    async fn execute(&self, worker: &str, call: SentCall) -> Result<SentEnd, ExecuteError>;

    /// Returns the status of each ticket.
    async fn status(&self, worker: &str, tickets: &[Ticket]) -> Result<Vec<TicketStatus>, ExecuteError>;

    /// Returns the worker to which a ticket was sent, if the executor knows it. Only asked after a restore: commits of the lost store may
    /// have started calls that the restored one does not know.
    async fn find(&self, ticket: &Ticket) -> Result<Option<String>, ExecuteError>;

    /// Ends a call. Its end still comes from [`execute`](Self::execute).
    async fn stop(&self, worker: &str, ticket: &Ticket) -> Result<(), ExecuteError>;
}

impl SentCall {
    /// Returns the trace of the call, which is that of the run that sent it.
    pub(crate) fn traceparent(&self) -> String {
        let Self { run, task, attempt, call, .. } = self;
        StartInRun { run, task, attempt: *attempt, call: &call.id, start: self.ticket.start }.traceparent()
    }

    /// Returns the SHA-256 of everything that depends neither on the time at which the call is sent nor on a restore of its store, in
    /// hexadecimal. Its files are those of the project when it was sent. Of the progress of the call only its approval counts: a coordinator that joins it has read the rest from the store.
    ///
    /// # Panics
    /// Never: the call is plain data.
    pub fn content_hash(&self) -> String {
        let body = CallBody { approval: self.call.body.approval.clone(), ..CallBody::default() };
        let call = CallRecord { body: body.into(), ..self.call.clone() };
        let timeless = Self {
            task_millis: None,
            run_millis: None,
            fence: 0,
            store: String::new(),
            files: None,
            call,
            ..self.clone()
        };
        let text = serde_json::to_vec(&timeless).expect("BUG: a call is plain data");
        format!("{:x}", Sha256::digest(text))
    }

    /// Returns the call as it was recorded, for an executor in this process. `now` is the time of the caller.
    pub(crate) fn started(
        &self,
        key: taskpawl_model::value::Key,
        now: taskpawl_model::value::Timestamp,
    ) -> StartedCall {
        let spec = TaskSpec { writes: self.writes.clone(), ..TaskSpec::default() };
        let after = |millis: u64| now + Duration::from_millis(millis);
        StartedCall {
            key,
            task: self.task.clone(),
            attempt: self.attempt,
            generation: self.generation,
            round: self.round,
            call: self.call.clone(),
            args: self.args.clone(),
            deadline: self.task_millis.map(after),
            plan: self.plan.as_deref().map(Into::into),
            spec: spec.into(),
            sandbox: self.sandbox.clone(),
            cache: None,
        }
    }
}
