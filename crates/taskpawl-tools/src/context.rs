mod artifact;
mod ask;
mod steps;

use std::any::{Any, type_name};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use taskpawl_process::{Environment, Handover, Programs, Sandbox, passed};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::artifact::{ArtifactDirs, ArtifactSink};
use crate::ask::SharedQuestions;
use crate::data::Data;
use crate::error::ToolError;
use crate::sandbox::ClosedPlaces;
use crate::scan::{MAX_SCAN, MIN_SCAN, ScanBounds};
use crate::steps::SharedJournal;
use crate::vault::Vault;
use crate::worktrees::SharedWorktrees;

/// A text that sends a call back to correct its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentBack {
    /// The text.
    pub text: String,
    /// True if a person wrote it; otherwise it is the output of a failed verification.
    pub is_of_person: bool,
}

/// Context of one tool call: its ids, directories, limits, and the sinks for progress and usage.
///
/// All fields are owned, so that a call can outlive the function that started it.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallContext {
    /// Id of the task; empty outside a task.
    pub task: String,
    /// Id of the call within its task; empty outside a task.
    pub call: String,
    /// Actor that runs the call.
    pub actor: String,
    /// Scope that the host program attached to the run, such as a conversation, a session or an agent. See
    /// [`in_scope`](crate::in_scope).
    pub scope: Option<String>,
    /// Number of this start of the call, from 1; the first retry is 2.
    pub attempt: u32,
    /// Number of the claim of the task, from 1; all starts within one claim share it.
    pub claim: u32,
    /// Key that is the same for every attempt of one call. Tools pass it on, so that the other side can drop
    /// repetitions.
    pub idempotency_key: String,
    /// W3C trace context of the call, as `traceparent` headers have it; empty outside of a run. Tools pass it on, so that
    /// spans of the other side lie below the call.
    pub traceparent: String,
    /// Root of the project, absolute; file tools never leave it.
    pub root: PathBuf,
    /// Directory that relative paths are resolved against: the root or a directory beneath it.
    pub dir: PathBuf,
    /// Common prefix of the output files of the call: their path without `.stdout` and `.stderr`.
    pub output: PathBuf,
    /// Fires when the call must end early.
    pub cancel: CancellationToken,
    /// Deadline of the call; `None` means that there is none.
    pub deadline: Option<Instant>,
    /// Limits for the output of the call, and the grace period before it is killed.
    pub limits: CallLimits,
    /// Receives progress messages and warnings while the call runs.
    pub progress: Option<ProgressSink>,
    /// Receives the usage that the call reports.
    pub usage: Option<UsageSink>,
    /// Receives the parts of the result that were cut. See [`report_cut`](Self::report_cut).
    pub cut: Option<CutSink>,
    /// Starts programs; shared by all calls of one run. Outside of a run the call has its own, with a supervisor.
    pub programs: Programs,
    /// Sandbox for the programs of the call. A tool that starts a program passes it on.
    ///
    /// A tool that does its work in this process has to confine itself to [`root`](Self::root). Outside of a run this
    /// is [`Sandbox::Off`].
    pub sandbox: Sandbox,
    /// Paths of the project that a tool working in this process must not touch; the sandbox enforces the same paths for
    /// programs. Outside of a run only taskpawl's own files are excluded.
    pub closed: ClosedPlaces,
    /// Environment variables for the programs of the call, in addition to those that the call sets itself.
    pub environment: Arc<Environment>,
    /// Descriptor that gives access to the plan of the task, if the call declares `planAccess`.
    ///
    /// Programs find it through [`PLAN_VARIABLE`]; tools within this process open it with the library. It is closed
    /// when the call ends.
    pub plan: Option<Arc<OwnedFd>>,
    /// Values that the host gave to its tools. See [`get`](Self::get).
    pub data: Data,
    /// Keeps the steps of the call; `None` outside of a run. See [`step`](Self::step).
    pub journal: Option<SharedJournal>,
    /// Puts the questions of the call to people; `None` outside of a run. See [`ask`](Self::ask).
    pub questions: Option<SharedQuestions>,
    /// The text that sent the call back: it corrects the work of its earlier start.
    pub rework: Option<SentBack>,
    /// The sessions of the conversations that calls of the plan share, by the name of the agent; `None` if the call shares none.
    pub shared_sessions: Option<BTreeMap<String, String>>,
    /// Worktrees of tasks, for the tools that commit and merge; `None` for other tools. See [`TaskWorktrees`](crate::TaskWorktrees).
    pub worktrees: Option<SharedWorktrees>,
    /// Receives the artifacts of the call. See [`artifact`](Self::artifact).
    pub artifacts: Option<ArtifactSink>,
    /// Ports of the task's worktree, which no other worktree of the project has. Programs find them as `TASKPAWL_PORT_0` and so on.
    pub ports: Arc<[u16]>,
    /// Directories for artifacts outside of the project; `None` if the host keeps none.
    pub artifact_dirs: Option<Arc<ArtifactDirs>>,
    /// Secrets of the run, for tools whose own configuration names some; secrets in arguments are already substituted.
    ///
    /// A secret that is requested here is redacted from then on in everything that the run stores. `None` outside of a
    /// run.
    pub secrets: Option<Vault>,
}

/// Environment variable that holds the number of the descriptor through which a program reaches the plan.
pub const PLAN_VARIABLE: &str = "TASKPAWL_FD";

/// Environment variable that holds the directory of the run for artifacts.
pub(crate) const ARTIFACTS_VARIABLE: &str = "TASKPAWL_ARTIFACTS";

/// Limits for the output of a call, and its grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Maximum of bytes in all output files of the call together; a call that exceeds it is killed and fails.
    pub output_bytes: u64,
    /// Maximum of output bytes in the result; longer output is reduced to its head and tail.
    pub keep_bytes: usize,
    /// Set when the author of the call chose `keep_bytes`. Then defaults of a tool for other limits, such as the number
    /// of matches, do not apply; explicit arguments still do.
    pub is_keep_chosen: bool,
    /// Time between the request to end and the kill.
    pub grace: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            output_bytes: 64 << 20,
            keep_bytes: 256 << 10,
            is_keep_chosen: false,
            grace: Duration::from_secs(5),
        }
    }
}

/// Longest message that is passed on, in bytes; the rest is dropped.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// Message that a call sends while it runs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// One line for an observer of the run.
    Message(String),
    /// A part of the work that is done.
    Part {
        /// From 0 to 1.
        fraction: f64,
        /// One line for an observer of the run.
        message: String,
    },
    /// One line that must reach the person who started the run, even without a live display.
    Warning(String),
}

/// Receives the messages of a running call. It is called on the thread of the call and must not block.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// Receives the usage of a call: a JSON object. Numbers of the same name are added up; `cost` counts against budgets.
pub type UsageSink = Arc<dyn Fn(Value) + Send + Sync>;

/// Receives the parts of a result that were cut, as JSON Pointers.
pub type CutSink = Arc<dyn Fn(String) + Send + Sync>;

impl CallContext {
    /// Returns the environment of a program of this call, with its own variables `env`. The ids of the call are added last: a plan must not
    /// be able to forge the key by which other systems recognise a repetition.
    pub fn program_environment(&self, env: BTreeMap<String, String>) -> Environment {
        let ids = [
            ("TASKPAWL_TASK", self.task.clone()),
            ("TASKPAWL_CALL", self.call.clone()),
            ("TASKPAWL_ATTEMPT", self.attempt.to_string()),
            ("TASKPAWL_CLAIM", self.claim.to_string()),
            ("TASKPAWL_IDEMPOTENCY_KEY", self.idempotency_key.clone()),
        ];
        let trace =
            Some(("TRACEPARENT", self.traceparent.clone())).filter(|(_, context)| !context.is_empty());
        let artifacts = self.artifact_dirs.as_ref().map(|dirs| dirs.of_run.as_os_str().to_owned());
        let artifacts = artifacts.map(|path| (OsString::from(ARTIFACTS_VARIABLE), path));
        let ids = ids.into_iter().chain(trace).map(|(name, value)| (name.to_owned(), value));
        let changes =
            env.into_iter().chain(ids).map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let ports = self.ports.iter().enumerate();
        let ports =
            ports.map(|(at, port)| (format!("TASKPAWL_PORT_{at}").into(), OsString::from(port.to_string())));
        Environment::clone(&self.environment).with(changes.chain(artifacts).chain(ports))
    }

    /// Makes a context for a call in `root`, without a task, a deadline or sinks. `output` is the prefix of its output
    /// files.
    pub fn new(root: impl Into<PathBuf>, output: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self {
            task: String::new(),
            call: String::new(),
            actor: String::new(),
            scope: crate::current_scope(),
            attempt: 1,
            claim: 1,
            idempotency_key: String::new(),
            traceparent: String::new(),
            dir: root.clone(),
            root,
            output: output.into(),
            cancel: CancellationToken::new(),
            deadline: None,
            limits: CallLimits::default(),
            progress: None,
            usage: None,
            cut: None,
            programs: Programs::default(),
            sandbox: Sandbox::default(),
            closed: ClosedPlaces::default(),
            environment: Arc::default(),
            plan: None,
            data: Data::default(),
            journal: None,
            questions: None,
            rework: None,
            shared_sessions: None,
            worktrees: None,
            artifacts: None,
            artifact_dirs: None,
            ports: Arc::default(),
            secrets: None,
        }
    }

    /// Returns the path of the file that captures the standard output of the call's program.
    pub fn stdout_path(&self) -> PathBuf {
        self.output_path(".stdout")
    }

    /// Returns the path of the file that captures the standard error of the call's program.
    pub fn stderr_path(&self) -> PathBuf {
        self.output_path(".stderr")
    }

    /// Returns the descriptor that programs of the call inherit in addition to their standard streams.
    pub fn handover(&self) -> Option<Handover> {
        let descriptor = Arc::clone(self.plan.as_ref()?);
        Some(Handover { descriptor, variable: PLAN_VARIABLE })
    }

    fn output_path(&self, suffix: &str) -> PathBuf {
        let mut path = OsString::from(&self.output);
        path.push(suffix);
        path.into()
    }

    /// Returns the value of a type that the host gave to its tools, such as a client or a pool of connections.
    ///
    /// # Errors
    /// There is none of this type.
    pub fn get<T: Any + Send + Sync>(&self) -> Result<&T, ToolError> {
        let missing = || {
            let name = type_name::<T>();
            ToolError::failed(format!(
                "no value of type `{name}` was given to the tools; `Builder::data` gives one"
            ))
        };
        self.data.get().ok_or_else(missing)
    }

    /// Sends a progress message to the observers, if there are any. Only the first 4 KiB are passed on.
    pub fn report(&self, message: impl Into<String>) {
        if let Some(sink) = &self.progress {
            sink(Progress::Message(crate::text::head_of_text(message.into(), MAX_MESSAGE_BYTES)));
        }
    }

    /// Tells the observers how much of the work is done, from 0 to 1, like [`report`](Self::report).
    pub fn progress(&self, fraction: f64, message: impl Into<String>) {
        if let Some(sink) = &self.progress {
            let message = crate::text::head_of_text(message.into(), MAX_MESSAGE_BYTES);
            sink(Progress::Part { fraction: fraction.clamp(0.0, 1.0), message });
        }
    }

    /// Sends a warning that must not be missed; otherwise like [`report`](Self::report).
    pub fn warn(&self, message: impl Into<String>) {
        if let Some(sink) = &self.progress {
            sink(Progress::Warning(crate::text::head_of_text(message.into(), MAX_MESSAGE_BYTES)));
        }
    }

    /// Reports the usage since the last report, as an object such as `{"cost": 0.02, "tokens": 1200}`. It counts even
    /// if the call fails.
    pub fn report_usage(&self, usage: Value) {
        if let Some(sink) = &self.usage {
            sink(usage);
        }
    }

    /// Marks a part of the result as cut: it was shortened although the arguments of the call did not ask for that.
    ///
    /// A JSON Pointer such as `/stdout` names the part; `""` is the whole result. Expressions of the plan refuse to
    /// read a cut part unless they accept that explicitly.
    pub fn report_cut(&self, pointer: impl Into<String>) {
        if let Some(sink) = &self.cut {
            sink(pointer.into());
        }
    }

    /// Fails if the call is cancelled or past its deadline. Loops that do not await call this regularly.
    pub fn check(&self) -> Result<(), ToolError> {
        if self.cancel.is_cancelled() {
            return Err(ToolError::Cancelled { result: None });
        }
        match self.deadline {
            Some(deadline) if deadline <= Instant::now() => Err(ToolError::Timeout { result: None }),
            Some(_) | None => Ok(()),
        }
    }

    /// Waits until the call is cancelled or its deadline has passed, and returns the matching error.
    pub async fn interrupted(&self) -> ToolError {
        interrupted(&self.cancel, self.deadline).await
    }

    /// Runs `work` until it completes, or until the call is cancelled or timed out.
    ///
    /// # Cancel safety
    ///
    /// On cancellation and timeout `work` is dropped at its current await point.
    pub async fn until_interrupted<T>(&self, work: impl Future<Output = T>) -> Result<T, ToolError> {
        tokio::select! {
            // If both are ready, the finished work wins, so that its result is not lost.
            biased;
            done = work => Ok(done),
            error = self.interrupted() => Err(error),
        }
    }
}

/// Waits until the call is cancelled or its deadline has passed, and returns the matching error.
pub(crate) async fn interrupted(cancel: &CancellationToken, deadline: Option<Instant>) -> ToolError {
    tokio::select! {
        // If both are ready, the call counts as cancelled, not as timed out.
        biased;
        () = cancel.cancelled() => ToolError::Cancelled { result: None },
        () = passed(deadline) => ToolError::Timeout { result: None },
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext")
            .field("task", &self.task)
            .field("call", &self.call)
            .field("attempt", &self.attempt)
            .field("root", &self.root)
            .field("dir", &self.dir)
            .field("output", &self.output)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Limits that follow from a call.
impl ScanBounds {
    /// Returns the limits of a call.
    pub fn of_call(cx: &CallContext) -> Self {
        Self::new(cx.cancel.clone(), cx.deadline)
    }

    /// Returns limits for a report before a call: those of the call, and at most ten seconds.
    pub fn before_call(cx: &CallContext) -> Self {
        Self::of_call(cx).at_most(MAX_SCAN)
    }

    /// Returns limits for a report after a call: like [`before_call`](Self::before_call), but at least one second.
    pub fn after_call(cx: &CallContext) -> Self {
        Self::of_call(cx).at_least(MIN_SCAN).at_most(MAX_SCAN)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::scan::ScanStopped;

    #[tokio::test(start_paused = true)]
    async fn a_scan_after_a_call_has_between_one_and_ten_seconds() {
        let now = Instant::now();
        let mut cx = CallContext::new("/", "/");
        let time = |cx: &CallContext| ScanBounds::after_call(cx).deadline.map(|deadline| deadline - now);
        assert_eq!(time(&cx), Some(MAX_SCAN));
        cx.deadline = Some(now);
        assert_eq!(time(&cx), Some(MIN_SCAN));
        assert_eq!(ScanBounds::before_call(&cx).check(), Err(ScanStopped::TimedOut));
        cx.deadline = Some(now + Duration::from_secs(3));
        assert_eq!(time(&cx), Some(Duration::from_secs(3)));
        cx.cancel.cancel();
        assert_eq!(time(&cx), Some(MIN_SCAN));
        assert_eq!(ScanBounds::after_call(&cx).check(), Ok(()));
    }
}
