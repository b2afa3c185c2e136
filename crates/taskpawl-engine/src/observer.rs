use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use taskpawl_model::{ApprovalRequest, CallId, CallStatus, RunId, Status, TaskId};

use crate::ledger::EndedEarly;
use crate::summary::RunSummary;

/// Is told what happens in a run, in order, on the dispatcher's thread: it must be short and must not block.
///
/// An observer that panics hears nothing more. The run goes on, and its summary says why
/// ([`observer_error`](RunSummary::observer_error)).
pub trait Observer: Send + Sync + Debug {
    /// Takes in one event.
    fn event(&self, event: &RunEvent);
}

/// An observer whose panics do not reach the run: after the first one it hears nothing more.
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

    /// Returns why it was dropped, if it was.
    pub(crate) fn error(&self) -> Option<String> {
        self.error.get().cloned()
    }
}

impl Observer for GuardedObserver {
    fn event(&self, event: &RunEvent) {
        if self.is_dropped.load(Ordering::Relaxed) {
            return;
        }
        // What the observer keeps may be half changed after a panic: it is not called again.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.observer.event(event))) {
            self.is_dropped.store(true, Ordering::Relaxed);
            self.error.get_or_init(|| taskpawl_tools::panic_text(panic.as_ref()));
        }
    }
}

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum RunEvent {
    /// The run is on record.
    RunStarted {
        /// The run.
        run: RunId,
        /// How many calls run at once.
        jobs: usize,
    },
    /// A call starts.
    CallStarted {
        /// The task.
        task: TaskId,
        /// The name of the task.
        name: String,
        /// The call.
        call: CallId,
        /// Its tool.
        tool: String,
        /// Which start of the call this is, from 1.
        attempt: u32,
        /// How often the task was claimed, from 1.
        claim: u32,
    },
    /// A call says something while it runs.
    Progress {
        /// The task.
        task: TaskId,
        /// The call.
        call: CallId,
        /// What it says.
        message: String,
    },
    /// A call ended.
    CallEnded {
        /// The task.
        task: TaskId,
        /// The call.
        call: CallId,
        /// Its tool.
        tool: String,
        /// How.
        status: CallStatus,
        /// Why it failed, or what is known of how it was interrupted.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// How long it took, in milliseconds.
        millis: u64,
    },
    /// A task ended, or can no longer start.
    TaskEnded {
        /// The task.
        task: TaskId,
        /// Its name.
        name: String,
        /// What became of it.
        status: Status,
        /// Why, where it did not end well.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A task, or a call of it, waits for a decision.
    Asked(Box<ApprovalRequest>),
    /// Something went wrong that does not change what becomes of the run.
    Warning {
        /// What.
        message: String,
    },
    /// A task has ended without running: nothing that it depends on has changed since its last success.
    Cached {
        /// The task.
        task: TaskId,
    },
    /// Files changed while a call ran although its task does not say that it writes them.
    ChangedBeyond {
        /// The task.
        task: TaskId,
        /// The call.
        call: CallId,
        /// The files; at most the first 100.
        files: Vec<String>,
        /// Why these are not all that is to be known.
        #[serde(skip_serializing_if = "Option::is_none")]
        unknown: Option<String>,
    },
    /// Nothing more starts in the run, or of a plan, because a limit was reached; what runs may end.
    EndedEarly(EndedEarly),
    /// Somebody asked the run to stop.
    Stopping {
        /// Whether what runs is ended, too.
        hard: bool,
        /// How many calls still run.
        running: usize,
    },
    /// The run is over.
    Summary(Box<RunSummary>),
}
