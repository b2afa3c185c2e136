//! The states of tasks and calls, and the one table of what may follow what.

use serde::{Deserialize, Serialize};

use crate::spec::{Timestamp, word_enum};
use crate::{ActorKind, CallId, Period, RunId, SharedText, TaskId};

word_enum! {
    /// The state of a task, as it is seen from outside.
    #[derive(Default)]
    Status {
        /// Not started.
        #[default]
        Todo = "todo",
        /// Claimed by a run, an agent or a person.
        InProgress = "in_progress",
        /// Cannot go on; the reason says why.
        Blocked = "blocked",
        /// Ended well.
        Done = "done",
        /// Ended badly.
        Failed = "failed",
        /// Given up by hand.
        Cancelled = "cancelled",
        /// Not needed.
        Skipped = "skipped",
    }
}

impl Status {
    /// Returns whether nothing more happens to a task in this state by itself.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled | Self::Skipped)
    }
}

word_enum! {
    /// The state of a tool call.
    CallStatus {
        /// Not started.
        Pending = "pending",
        /// Started; no result yet.
        Running = "running",
        /// Ended well.
        Succeeded = "succeeded",
        /// Ended badly.
        Failed = "failed",
        /// Its condition did not hold.
        Skipped = "skipped",
        /// Stopped by hand.
        Cancelled = "cancelled",
        /// Started; nobody knows how it ended.
        Interrupted = "interrupted",
    }
}

impl CallStatus {
    /// Returns whether the call need not be started any more.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Succeeded | Self::Skipped)
    }
}

/// Why a task is blocked, as it is seen from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BlockedReason {
    /// Its gate can no longer open, because of these direct dependencies or subtasks (or the task above).
    Dependency {
        /// The tasks that failed, were cancelled or are blocked themselves.
        #[serde(default)]
        ids: Vec<TaskId>,
    },
    /// It was to run while these were unfinished.
    Waiting {
        /// The unfinished ones.
        #[serde(default)]
        ids: Vec<TaskId>,
    },
    /// It, or one of its calls, waits for a decision.
    #[serde(rename_all = "camelCase")]
    Approval {
        /// The call; absent where the whole task waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The SHA-256, in hexadecimal, of what is to be decided about.
        #[serde(default)]
        hash: String,
        /// The question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<String>,
        /// The answers to choose from; none stands for yes or no.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// When the question no longer stands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
        /// Why it is asked although its author does not say so: the rule, and where it stands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// The version of the policy under which it is asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<String>,
    },
    /// No tool of that name is known here.
    MissingTool {
        /// The name.
        name: String,
    },
    /// A call started and nobody knows how it ended.
    Interrupted {
        /// The call.
        call: CallId,
    },
    /// Somebody said so.
    Manual {
        /// Why.
        text: String,
    },
}

impl BlockedReason {
    /// Returns the word of the reason's `type`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Dependency { .. } => "dependency",
            Self::Waiting { .. } => "waiting",
            Self::Approval { .. } => "approval",
            Self::MissingTool { .. } => "missing_tool",
            Self::Interrupted { .. } => "interrupted",
            Self::Manual { .. } => "manual",
        }
    }
}

word_enum! {
    /// What failed of a task none of whose calls did.
    FailureClass {
        /// An expression has no value.
        Expression = "expression",
        /// An expression reads a value that was cut.
        Truncated = "truncated",
        /// The rounds of `repeat` are used up.
        Rounds = "rounds",
        /// An agent or a person says so.
        Reported = "reported",
    }
}

/// Who holds a task that is in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The run, when a run holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The actor of the run, or the agent or person.
    pub actor: SharedText,
    /// The kind of the actor; `unknown` beside a run, and where the name alone was recorded.
    #[serde(default, skip_serializing_if = "crate::spec::is_default")]
    pub kind: ActorKind,
    /// When the lease of an agent ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Timestamp>,
    /// How long the lease lasts from each renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Period>,
}

word_enum! {
    /// How the claim of a task ended that is still in progress.
    ClaimEnd {
        /// The lease is over.
        Expired = "expired",
        /// The run that held it ended without finishing.
        Killed = "killed",
    }
}

/// The state of a task with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum TaskState {
    /// Not started.
    #[default]
    Todo,
    /// Claimed.
    InProgress {
        /// By whom.
        claim: Claim,
    },
    /// Cannot go on.
    Blocked {
        /// Why; the ids of `dependency` and `waiting` are not kept but derived on reading.
        reason: Box<BlockedReason>,
    },
    /// Ended well.
    Done,
    /// Ended badly.
    Failed {
        /// Why, for people.
        error: String,
        /// What failed, where it was no call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<FailureClass>,
    },
    /// Given up.
    Cancelled {
        /// Why, where somebody said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Not needed.
    Skipped {
        /// Why, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl TaskState {
    /// Returns the state of a task that cannot go on because of `reason`.
    pub fn blocked(reason: BlockedReason) -> Self {
        Self::Blocked { reason: Box::new(reason) }
    }

    /// Returns who holds the task by a lease; a run holds its tasks without one.
    pub fn lease_holder(&self) -> Option<&SharedText> {
        match self {
            Self::InProgress { claim } if claim.lease_until.is_some() => Some(&claim.actor),
            Self::Todo
            | Self::InProgress { .. }
            | Self::Blocked { .. }
            | Self::Done
            | Self::Failed { .. }
            | Self::Cancelled { .. }
            | Self::Skipped { .. } => None,
        }
    }

    /// Returns the state without what belongs to it.
    pub fn status(&self) -> Status {
        match self {
            Self::Todo => Status::Todo,
            Self::InProgress { .. } => Status::InProgress,
            Self::Blocked { .. } => Status::Blocked,
            Self::Done => Status::Done,
            Self::Failed { .. } => Status::Failed,
            Self::Cancelled { .. } => Status::Cancelled,
            Self::Skipped { .. } => Status::Skipped,
        }
    }

    /// Returns why the task is blocked, when it is.
    pub fn blocked_reason(&self) -> Option<&BlockedReason> {
        match self {
            Self::Blocked { reason } => Some(reason),
            Self::Todo
            | Self::InProgress { .. }
            | Self::Done
            | Self::Failed { .. }
            | Self::Cancelled { .. }
            | Self::Skipped { .. } => None,
        }
    }
}

word_enum! {
    /// What asks for a change of state.
    Cause {
        /// A run, an agent or a person takes the task.
        Claim = "claim",
        /// The gate opened and there is nothing to run: a milestone, a parent without calls.
        Empty = "empty",
        /// The gate decided: blocked, skipped, or open again.
        Gate = "gate",
        /// The calls ended, or the claiming agent reports.
        Report = "report",
        /// A call started and nobody knows how it ended.
        Interrupt = "interrupt",
        /// `run ID` met unfinished dependencies or a missing tool.
        RunOne = "run",
        /// `done` by hand.
        Done = "done",
        /// `fail` by hand.
        Fail = "fail",
        /// `skip` by hand.
        Skip = "skip",
        /// `cancel` by hand.
        Cancel = "cancel",
        /// `block` by hand.
        Block = "block",
        /// `unblock` by hand.
        Unblock = "unblock",
        /// `release` by the holder, the end of a lease, or recovery.
        Release = "release",
        /// `retry` by hand.
        Retry = "retry",
        /// `reopen` by hand.
        Reopen = "reopen",
        /// Its inputs are those of its last success, whose results stand for running it.
        Cached = "cached",
        /// A decision is needed.
        Ask = "ask",
        /// `approve`: by hand, by an approver, or because the plan says so when nobody has decided in time.
        Approve = "approve",
        /// `reject`: likewise.
        Reject = "reject",
        /// What it waits to be decided about asks for no decision any more.
        Withdraw = "withdraw",
        /// `undo` by hand: the state before, outside the table of states.
        Undo = "undo",
        /// `import` by hand: another program says so, outside the table of states.
        Import = "import",
    }
}

/// The step from one state to another is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a task that is `{from}` cannot become `{to}` by `{cause}`")]
pub struct TransitionError {
    /// The state of the task.
    pub from: Status,
    /// The state asked for.
    pub to: Status,
    /// What asked.
    pub cause: Cause,
}

/// Checks the step `from` → `to` for `cause` against the table of states. `reason` is why the task is blocked, if it is.
///
/// # Errors
/// The step is not in the table.
pub fn check_transition(
    from: Status,
    reason: Option<&BlockedReason>,
    to: Status,
    cause: Cause,
) -> Result<(), TransitionError> {
    if is_allowed(from, reason, to, cause) { Ok(()) } else { Err(TransitionError { from, to, cause }) }
}

fn is_allowed(from: Status, reason: Option<&BlockedReason>, to: Status, cause: Cause) -> bool {
    use Status as S;
    let by_itself = matches!(
        reason,
        Some(
            BlockedReason::Dependency { .. }
                | BlockedReason::Waiting { .. }
                | BlockedReason::MissingTool { .. }
        )
    );
    let interrupted = matches!(reason, Some(BlockedReason::Interrupted { .. }));
    let asks = from == S::Blocked && matches!(reason, Some(BlockedReason::Approval { .. }));
    match cause {
        Cause::Claim => from == S::Todo && to == S::InProgress,
        Cause::Empty | Cause::Cached => from == S::Todo && to == S::Done,
        // What is asked about may change while the question stands: then it is asked anew.
        Cause::Ask => (matches!(from, S::Todo | S::InProgress) || asks) && to == S::Blocked,
        Cause::Approve | Cause::Withdraw => asks && to == S::Todo,
        Cause::Reject => asks && to == S::Cancelled,
        Cause::Gate => match (from, to) {
            // Failed: its condition or its list cannot be evaluated.
            (S::Todo, S::Blocked | S::Skipped | S::Failed) => true,
            (S::Blocked, S::Todo) => by_itself,
            // What it waited for ended, and not well.
            (S::Blocked, S::Blocked) => matches!(reason, Some(BlockedReason::Waiting { .. })),
            _ => false,
        },
        Cause::Report => from == S::InProgress && matches!(to, S::Done | S::Failed),
        Cause::Interrupt => from == S::InProgress && to == S::Blocked,
        Cause::RunOne | Cause::Block => from == S::Todo && to == S::Blocked,
        Cause::Done => match to {
            S::Done => from == S::Todo || interrupted,
            // Calls are left; or another one was interrupted, too, or failed beside it.
            S::Todo | S::Blocked | S::Failed => interrupted,
            S::InProgress | S::Cancelled | S::Skipped => false,
        },
        Cause::Fail => (from == S::Todo || interrupted) && to == S::Failed,
        Cause::Skip => matches!(from, S::Todo | S::Blocked | S::Failed) && to == S::Skipped,
        Cause::Cancel => {
            matches!(from, S::Todo | S::InProgress | S::Blocked | S::Failed) && to == S::Cancelled
        }
        Cause::Unblock => from == S::Blocked && !by_itself && !asks && to == S::Todo,
        Cause::Release => from == S::InProgress && to == S::Todo,
        Cause::Retry | Cause::Reopen => from.is_finished() && to == S::Todo,
        // They put a state there, whatever it is, and so do not ask here.
        Cause::Undo | Cause::Import => false,
    }
}

/// Returns what may be done by hand with a task in this state, as words of the command line.
pub fn allowed_by_hand(from: Status, reason: Option<&BlockedReason>) -> Vec<&'static str> {
    const HAND: [(Cause, Status); 11] = [
        (Cause::Claim, Status::InProgress),
        (Cause::Done, Status::Done),
        (Cause::Fail, Status::Failed),
        (Cause::Skip, Status::Skipped),
        (Cause::Cancel, Status::Cancelled),
        (Cause::Block, Status::Blocked),
        (Cause::Unblock, Status::Todo),
        (Cause::Approve, Status::Todo),
        (Cause::Reject, Status::Cancelled),
        (Cause::Retry, Status::Todo),
        (Cause::Reopen, Status::Todo),
    ];
    let mut words: Vec<_> = HAND
        .iter()
        .filter(|(cause, to)| is_allowed(from, reason, *to, *cause))
        .map(|(cause, _)| cause.as_str())
        .collect();
    if from == Status::InProgress {
        words.splice(0..0, ["done", "fail", "release"]);
    }
    words
}
