use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use taskpawl_process::{Environment, Handover, Programs, Sandbox};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::ToolError;
use crate::sandbox::ClosedPlaces;
use crate::vault::Vault;

/// Everything a call knows about where and for whom it runs. Owned, so that a call can outlive its starter.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallContext {
    /// Id of the task; empty outside a task.
    pub task: String,
    /// Id of the call within its task; empty outside a task.
    pub call: String,
    /// Who runs the call.
    pub actor: String,
    /// What the host program attached to the run: a conversation, a session, an agent. See [`in_scope`](crate::in_scope).
    pub scope: Option<String>,
    /// Which start of the call this is, from 1: a retry is 2, 3 and so on.
    pub attempt: u32,
    /// How often the task of the call was claimed, from 1: all starts of one claim have the same number.
    pub claim: u32,
    /// The same for every attempt of one call; tools pass it on so that the other side can drop repetitions.
    pub idempotency_key: String,
    /// The project's root, absolute; file tools never leave it.
    pub root: PathBuf,
    /// The directory that relative paths start from: the root, or beneath it.
    pub dir: PathBuf,
    /// Where output files of the call go: the path without `.stdout` and `.stderr`.
    pub output: PathBuf,
    /// Fires when the call shall end early.
    pub cancel: CancellationToken,
    /// When the call has to be over; `None` is never.
    pub deadline: Option<Instant>,
    /// How much a call may print and how gently it is ended.
    pub limits: CallLimits,
    /// Who hears what the call says while it runs.
    pub progress: Option<ProgressSink>,
    /// Who adds up what the call uses up.
    pub usage: Option<UsageSink>,
    /// Receives which parts of the result are cut. See [`report_cut`](Self::report_cut).
    pub cut: Option<CutSink>,
    /// What starts programs, shared by the calls of one run. Without a run the call's own, with a supervisor.
    pub programs: Programs,
    /// What the programs of the call may do. Whoever starts one hands it on; a tool that does its work in this process keeps to
    /// [`root`](Self::root) by itself. Without a run [`Sandbox::Off`].
    pub sandbox: Sandbox,
    /// What of the project a tool that does its work in this process leaves alone, as programs do in their sandbox. Without a run
    /// nothing but what is taskpawl's own.
    pub closed: ClosedPlaces,
    /// The variables that the programs of the call see, beside those of the call itself.
    pub environment: Arc<Environment>,
    /// The way to the plan of its task, where the call declares `planAccess`: programs find it by [`PLAN_VARIABLE`], tools within
    /// this process open it with the library. It ends with the call.
    pub plan: Option<Arc<OwnedFd>>,
    /// The secrets of the run, for a tool whose own configuration names some; those of the arguments are in them already. What is
    /// asked for here is taken out of everything that the run keeps from then on. `None` outside of a run.
    pub secrets: Option<Vault>,
}

/// The variable that tells a program by which descriptor it reaches the plan.
pub const PLAN_VARIABLE: &str = "TASKPAWL_FD";

/// How much a call may print and how gently it is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Bytes that a call may write to its output files together; beyond them it is killed and fails.
    pub output_bytes: u64,
    /// Bytes of output that stay in the result; beyond them it holds only head and tail.
    pub keep_bytes: usize,
    /// Whether the author of the call chose `keep_bytes`. Then other limits of a tool, such as a number of matches, that its
    /// arguments do not name are not applied.
    pub is_keep_chosen: bool,
    /// Time between asking a call to end and making it.
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

/// What of a message arrives.
const MOST_MESSAGE_BYTES: usize = 4 << 10;

/// Something that a call says while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// A line for the person who watches.
    Message(String),
    /// A line that whoever started the run has to see, also who does not watch.
    Warning(String),
}

/// Receives what a call says while it runs; it is called on the thread of the call and must not block.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// Receives what a call uses up: an object; numbers of the same name are added up, and `cost` counts for budgets.
pub type UsageSink = Arc<dyn Fn(Value) + Send + Sync>;

/// Receives the parts of a result that are cut, as JSON Pointers.
pub type CutSink = Arc<dyn Fn(String) + Send + Sync>;

impl CallContext {
    /// Makes a context for a call in `root` without task, deadline and sink; its output files begin with `output`.
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
            secrets: None,
        }
    }

    /// Returns the file for what the call's program prints to its standard output.
    pub fn stdout_path(&self) -> PathBuf {
        self.output_path(".stdout")
    }

    /// Returns the file for what the call's program prints to its standard error.
    pub fn stderr_path(&self) -> PathBuf {
        self.output_path(".stderr")
    }

    /// Returns what a program of the call inherits beside its streams.
    pub(crate) fn handover(&self) -> Option<Handover> {
        let descriptor = Arc::clone(self.plan.as_ref()?);
        Some(Handover { descriptor, variable: PLAN_VARIABLE })
    }

    fn output_path(&self, suffix: &str) -> PathBuf {
        let mut path = OsString::from(&self.output);
        path.push(suffix);
        path.into()
    }

    /// Tells whoever watches what the call is doing; nothing happens when nobody does. Of more than 4 KiB only the head arrives.
    pub fn report(&self, message: impl Into<String>) {
        if let Some(sink) = &self.progress {
            sink(Progress::Message(crate::text::head_of_text(message.into(), MOST_MESSAGE_BYTES)));
        }
    }

    /// Tells whoever started the run what must not be missed; else as [`report`](Self::report).
    pub fn warn(&self, message: impl Into<String>) {
        if let Some(sink) = &self.progress {
            sink(Progress::Warning(crate::text::head_of_text(message.into(), MOST_MESSAGE_BYTES)));
        }
    }

    /// Says what the call has used up since it said so last, as an object such as `{"cost": 0.02, "tokens": 1200}`; it counts however the
    /// call ends.
    pub fn report_usage(&self, usage: Value) {
        if let Some(sink) = &self.usage {
            sink(usage);
        }
    }

    /// Marks a part of the result as cut: it holds less than there is, and the arguments of the call did not ask for less. A JSON
    /// Pointer such as `/stdout` names the part; `""` is the whole result. Expressions of the plan do not read such a part
    /// unless they say so.
    pub fn report_cut(&self, pointer: impl Into<String>) {
        if let Some(sink) = &self.cut {
            sink(pointer.into());
        }
    }

    /// Fails when the call is cancelled or its deadline has passed; for loops that do not await.
    pub fn check(&self) -> Result<(), ToolError> {
        if self.cancel.is_cancelled() {
            return Err(ToolError::Cancelled { result: None });
        }
        match self.deadline {
            Some(deadline) if deadline <= Instant::now() => Err(ToolError::Timeout { result: None }),
            Some(_) | None => Ok(()),
        }
    }

    /// Waits until the call is cancelled or its deadline has passed and returns which of the two it was.
    pub async fn interrupted(&self) -> ToolError {
        interrupted(&self.cancel, self.deadline).await
    }

    /// Runs `work` until it ends or the call is cancelled or timed out, whichever comes first.
    ///
    /// # Cancel safety
    ///
    /// In the latter two cases `work` is dropped where it stands.
    pub async fn until_interrupted<T>(&self, work: impl Future<Output = T>) -> Result<T, ToolError> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            error = self.interrupted() => Err(error),
        }
    }
}

/// Waits until a call is cancelled or its deadline has passed and returns which of the two it was.
pub(crate) async fn interrupted(cancel: &CancellationToken, deadline: Option<Instant>) -> ToolError {
    tokio::select! {
        biased;
        () = cancel.cancelled() => ToolError::Cancelled { result: None },
        () = passed(deadline) => ToolError::Timeout { result: None },
    }
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
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
