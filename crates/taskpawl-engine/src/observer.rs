use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use taskpawl_model::run::run_loop::EndedEarly;
use taskpawl_model::task::{ApprovalRequest, CallStatus, Status};
use taskpawl_model::value::{CallId, RunId, TaskId};

use crate::summary::RunSummary;

/// Receives the events of a run, in order, on the thread of the dispatcher. Implementations have to be fast and must
/// not block.
///
/// An observer that panics receives no further events. The run continues, and its summary contains the panic message
/// ([`observer_error`](RunSummary::observer_error)).
pub trait Observer: Send + Sync + Debug {
    /// Handles one event.
    fn event(&self, event: &RunEvent);
}

/// Wraps an observer so that its panics do not reach the run.
#[derive(Debug)]
pub(crate) struct GuardedObserver {
    observer: Arc<dyn Observer>,
    is_dropped: AtomicBool,
    error: OnceLock<String>,
}

impl GuardedObserver {
    pub(crate) fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer, is_dropped: AtomicBool::new(false), error: OnceLock::new() }
    }

    /// Returns the panic message, if the observer has panicked.
    pub(crate) fn error(&self) -> Option<String> {
        self.error.get().cloned()
    }
}

impl Observer for GuardedObserver {
    fn event(&self, event: &RunEvent) {
        if self.is_dropped.load(Ordering::Relaxed) {
            return;
        }
        // `AssertUnwindSafe` is sound because the observer, which may be in an inconsistent state after a panic, is
        // never called again.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.observer.event(event))) {
            self.is_dropped.store(true, Ordering::Relaxed);
            self.error.get_or_init(|| taskpawl_tools::panic_text(panic.as_ref()));
        }
    }
}

/// Something that happened in a run. Hosts receive it as JSON, tagged by `type`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum RunEvent {
    /// The run is recorded.
    RunStarted {
        /// Id of the run.
        run: RunId,
        /// Number of calls that run at the same time.
        jobs: usize,
    },
    /// A call is started.
    CallStarted {
        /// The task of the call.
        task: TaskId,
        /// Name of the task.
        name: String,
        /// Id of the call, unique within its task.
        call: CallId,
        /// Name of the tool.
        tool: String,
        /// Number of this start of the call, from 1.
        attempt: u32,
        /// Number of the claim of the task, from 1.
        claim: u32,
    },
    /// A running call reports progress.
    Progress {
        /// The task of the call.
        task: TaskId,
        /// Id of the call.
        call: CallId,
        /// Text of the report, with secrets removed.
        message: String,
        /// Part of the work that is done, from 0 to 1, if the tool tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fraction: Option<f64>,
    },
    /// A running program printed something. Only handles report it that were asked for output.
    Output {
        /// The task of the call.
        task: TaskId,
        /// Id of the call.
        call: CallId,
        /// The stream of the program.
        stream: OutputStream,
        /// Printed text since the last event, with secrets removed. Invalid UTF-8 is replaced.
        text: String,
    },
    /// A call ended.
    CallEnded {
        /// The task of the call.
        task: TaskId,
        /// Id of the call.
        call: CallId,
        /// Name of the tool.
        tool: String,
        /// Final status of the call.
        status: CallStatus,
        /// Error message of a failed call, or the known reason of an interruption.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Duration in milliseconds.
        millis: u64,
        /// Details of a failed call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Box<CallFailure>>,
    },
    /// A task ended, or can no longer start.
    TaskEnded {
        /// Id of the task.
        task: TaskId,
        /// Name of the task.
        name: String,
        /// New status of the task.
        status: Status,
        /// Reason, if the task did not succeed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A task, or a call of it, waits for an approval.
    Asked(Box<ApprovalRequest>),
    /// A problem that does not affect the result of the run.
    Warning {
        /// Text for users.
        message: String,
    },
    /// A task succeeded without running, because its inputs have not changed since its last success.
    Cached {
        /// Id of the task.
        task: TaskId,
    },
    /// Files changed while a call ran, although its task does not declare that it writes them.
    ChangedBeyond {
        /// The task of the call.
        task: TaskId,
        /// Id of the call.
        call: CallId,
        /// Paths relative to the project, at most the first 100.
        files: Vec<String>,
        /// Set if `files` is incomplete: the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unknown: Option<String>,
    },
    /// A limit was reached: nothing more starts in the run, or of one plan. Running calls may finish.
    EndedEarly(EndedEarly),
    /// The run was asked to stop.
    Stopping {
        /// True if running calls are ended as well.
        hard: bool,
        /// Number of calls that still run.
        running: usize,
    },
    /// The run is over.
    Summary(Box<RunSummary>),
}

/// A stream that a program prints to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// The standard output.
    Stdout,
    /// The standard error.
    Stderr,
}

impl OutputStream {
    /// All streams.
    pub const ALL: [Self; 2] = [Self::Stdout, Self::Stderr];

    /// Returns the name of the stream, which ends the names of its output files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Details of a failed call, for people who look at the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallFailure {
    /// Exit code of the program; 128 plus the number of the signal if a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The last lines that the program printed: of its standard error, or else of its standard output. Secrets are
    /// removed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// A change with which the call would probably succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The last lines of output that are reported.
const OUTPUT_LINES: usize = 15;

/// The most bytes of them.
const OUTPUT_BYTES: usize = 4096;

impl CallFailure {
    /// Makes the details of a failure, for programs that show a run again.
    pub fn new(exit_code: Option<i64>, output: impl Into<String>, hint: Option<String>) -> Self {
        Self { exit_code, output: output.into(), hint }
    }

    /// Returns the details from the result that a failed call left.
    pub(crate) fn of(result: Option<&serde_json::Value>, hint: Option<String>) -> Self {
        let field = |name| result.and_then(|result| result.get(name));
        let printed = ["stderr", "stdout"].map(|name| field(name).and_then(serde_json::Value::as_str));
        let printed = printed.into_iter().flatten().find(|text| !text.trim().is_empty());
        Self {
            exit_code: field("exitCode").and_then(serde_json::Value::as_i64),
            output: printed.map(last_lines).unwrap_or_default(),
            hint,
        }
    }
}

fn last_lines(text: &str) -> String {
    let text = taskpawl_text::tail(text.trim_end(), OUTPUT_BYTES);
    let start = text.rmatch_indices('\n').nth(OUTPUT_LINES - 1).map_or(0, |(at, _)| at + 1);
    text[start..].to_owned()
}
