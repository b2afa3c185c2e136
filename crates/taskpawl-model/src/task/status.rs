//! Task and call statuses, and the single table of allowed status transitions.

use serde::{Deserialize, Serialize};

use crate::task::ActorKind;
use crate::task::spec::word_enum;
use crate::value::Timestamp;
use crate::value::{CallId, Period, RunId, SharedText, TaskId};

word_enum! {
    /// Status of a task, as shown outside the store.
    #[derive(Default)]
    Status {
        /// Not started.
        #[default]
        Todo = "todo",
        /// Claimed by a run, an agent or a person.
        InProgress = "in_progress",
        /// Cannot continue; [`BlockedReason`] says why.
        Blocked = "blocked",
        /// Finished successfully.
        Done = "done",
        /// Finished with a failure.
        Failed = "failed",
        /// Cancelled by a command.
        Cancelled = "cancelled",
        /// Not needed: dependents may start.
        Skipped = "skipped",
    }
}

impl Status {
    /// Returns whether the task is finished: only a command can change this status again.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled | Self::Skipped)
    }
}

word_enum! {
    /// Status of a tool call.
    CallStatus {
        /// Not started.
        Pending = "pending",
        /// Started; the store has no result yet.
        Running = "running",
        /// Ended successfully.
        Succeeded = "succeeded",
        /// Ended with an error.
        Failed = "failed",
        /// Its condition was false.
        Skipped = "skipped",
        /// Stopped because its task was cancelled.
        Cancelled = "cancelled",
        /// Started, but the store does not know the outcome: the process that ran it is gone.
        Interrupted = "interrupted",
    }
}

impl CallStatus {
    /// Returns whether the call is complete, so that the task may continue with the next one.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Succeeded | Self::Skipped)
    }
}

/// Reason why a task is blocked, as shown outside the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BlockedReason {
    /// The gate can no longer open, because of these direct dependencies or subtasks, or because of the parent.
    Dependency {
        /// The tasks that failed, were cancelled or are blocked themselves.
        #[serde(default)]
        ids: Vec<TaskId>,
    },
    /// `run ID` was asked to run the task while these tasks were unfinished.
    Waiting {
        /// The unfinished tasks.
        #[serde(default)]
        ids: Vec<TaskId>,
    },
    /// The task or one of its calls waits for an approval.
    #[serde(rename_all = "camelCase")]
    Approval {
        /// The call; absent if the whole task waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// SHA-256, in hexadecimal, of the proposal to decide about.
        #[serde(default)]
        hash: String,
        /// The question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<String>,
        /// The answers to choose from; empty for a yes/no question.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// Time after which the question can no longer be answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
        /// The policy rule that asks, and its location; absent if the author of the task asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// Version of the policy under which the question was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<String>,
        /// True if the question is about the result of the task.
        #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
        after: bool,
    },
    /// No tool of that name is registered in the process that tried to run the task.
    MissingTool {
        /// Name of the tool.
        name: String,
    },
    /// A call was started and its outcome is unknown.
    Interrupted {
        /// The interrupted call.
        call: CallId,
    },
    /// A person or an agent blocked the task.
    Manual {
        /// The reason that was given.
        text: String,
    },
}

impl BlockedReason {
    /// Returns the `type` word of this reason in JSON.
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
    /// Failure of a task none of whose calls failed.
    FailureClass {
        /// An expression could not be evaluated.
        Expression = "expression",
        /// An expression reads a value that was truncated when it was stored.
        Truncated = "truncated",
        /// All rounds of `repeat` were used and its condition still does not hold.
        Rounds = "rounds",
        /// An agent or a person reported the failure.
        Reported = "reported",
    }
}

/// The claim on a task that is in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The run that holds the task; `None` for a claim of an agent or a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Name of the actor: that of the run, or the agent or person.
    pub actor: SharedText,
    /// Kind of the actor; `unknown` for runs, and for claims recorded by name only.
    #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
    pub kind: ActorKind,
    /// Time at which the lease ends; `None` for runs, which hold tasks without a lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Timestamp>,
    /// Length that each renewal gives the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Period>,
}

word_enum! {
    /// End of the claim on a task that is still recorded as in progress.
    ClaimEnd {
        /// The lease expired.
        Expired = "expired",
        /// The run that held the task ended without finishing it.
        Killed = "killed",
    }
}

/// Status of a task together with the data that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not started.
    #[default]
    Todo,
    /// Claimed.
    InProgress {
        /// The holder and its lease.
        claim: Claim,
    },
    /// Cannot continue.
    Blocked {
        /// The reason. The ids of `dependency` and `waiting` are not stored; reads derive them from the edges.
        reason: Box<BlockedReason>,
    },
    /// Finished successfully.
    Done,
    /// Finished with a failure.
    Failed {
        /// Text of the failure, for people.
        error: String,
        /// Kind of the failure; `None` if a call failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<FailureClass>,
    },
    /// Cancelled.
    Cancelled {
        /// The reason, if the command gave one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Not needed.
    Skipped {
        /// The reason, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl TaskStatus {
    /// Returns the blocked state with this `reason`.
    pub fn blocked(reason: BlockedReason) -> Self {
        Self::Blocked { reason: Box::new(reason) }
    }

    /// Returns the actor that holds the task by a lease. Runs hold their tasks without one, so they give `None`.
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

    /// Returns the status without its data.
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

    /// Returns the reason why the task is blocked, if it is.
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
    /// Cause of a status change, as recorded in its event.
    Cause {
        /// A run, an agent or a person claims the task.
        Claim = "claim",
        /// The gate opened and there is nothing to run: a milestone, or a parent without calls.
        Empty = "empty",
        /// The gate blocks, skips, fails or unblocks the task.
        Gate = "gate",
        /// The calls ended, or the claiming agent reports.
        Report = "report",
        /// The outcome of a started call is unknown.
        Interrupt = "interrupt",
        /// `run ID` found unfinished dependencies or a missing tool.
        RunOne = "run",
        /// The `done` command.
        Done = "done",
        /// The `fail` command.
        Fail = "fail",
        /// The `skip` command.
        Skip = "skip",
        /// The `cancel` command.
        Cancel = "cancel",
        /// The `block` command.
        Block = "block",
        /// The `unblock` command.
        Unblock = "unblock",
        /// The `release` command of the holder, an expired lease, or recovery after a crash.
        Release = "release",
        /// A call waits durably: the run gives the task back to the store.
        Wait = "wait",
        /// The `retry` command.
        Retry = "retry",
        /// The `reopen` command.
        Reopen = "reopen",
        /// Cache hit: the inputs equal those of the last success, so its results are reused.
        Cached = "cached",
        /// An approval is needed.
        Ask = "ask",
        /// Approval by a person or an approver, or by the plan's default when the time to decide ended.
        Approve = "approve",
        /// Rejection by a person or an approver, or by the plan's default when the time to decide ended.
        Reject = "reject",
        /// The question is withdrawn: the task no longer needs the approval that it waits for.
        Withdraw = "withdraw",
        /// The `undo` command, which restores an earlier state without the transition table.
        Undo = "undo",
        /// The `import` command, which takes the status from another program without the transition table.
        Import = "import",
    }
}

/// A transition that the table does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a task that is `{from}` cannot become `{to}` by `{cause}`")]
pub struct TransitionError {
    /// Current status of the task.
    pub from: Status,
    /// Requested status.
    pub to: Status,
    /// Cause of the request.
    pub cause: Cause,
}

/// Checks the transition `from` → `to` for `cause` against the table. `reason` is the blocked reason, if the task is
/// blocked.
///
/// # Errors
/// The transition is not in the table.
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
    // The gate or a later check clears these reasons without a command, so `unblock` is not offered for them.
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
    let is_result = matches!(reason, Some(BlockedReason::Approval { after: true, .. }));
    match cause {
        Cause::Claim => from == S::Todo && to == S::InProgress,
        Cause::Empty | Cause::Cached => from == S::Todo && to == S::Done,
        // The proposal may change while its question is open. Asking again records the new hash and stays blocked.
        Cause::Ask => (matches!(from, S::Todo | S::InProgress) || asks) && to == S::Blocked,
        // Nothing is left to do once a result is accepted.
        Cause::Approve => asks && to == if is_result { S::Done } else { S::Todo },
        Cause::Withdraw => asks && to == S::Todo,
        // A result that is sent back starts its agent again.
        Cause::Reject if is_result => asks && matches!(to, S::Failed | S::Todo),
        Cause::Reject => asks && to == S::Cancelled,
        Cause::Gate => match (from, to) {
            // A condition or a `forEach` list that cannot be evaluated fails the task before it starts.
            (S::Todo, S::Blocked | S::Skipped | S::Failed) => true,
            (S::Blocked, S::Todo) => by_itself,
            // The task was waiting for its dependencies, and one of them failed: the reason becomes `dependency`.
            (S::Blocked, S::Blocked) => matches!(reason, Some(BlockedReason::Waiting { .. })),
            _ => false,
        },
        Cause::Report => from == S::InProgress && matches!(to, S::Done | S::Failed),
        Cause::Interrupt => from == S::InProgress && to == S::Blocked,
        Cause::Wait => from == S::InProgress && to == S::InProgress,
        Cause::RunOne | Cause::Block => from == S::Todo && to == S::Blocked,
        Cause::Done => match to {
            S::Done => from == S::Todo || interrupted,
            // Only one interrupted call is settled: others may be pending, interrupted too, or failed.
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
        // `todo` only after an attempt, which these rules do not see: `retry` and `reopen` check it.
        Cause::Retry | Cause::Reopen => (from.is_finished() || from == S::Todo) && to == S::Todo,
        // Both restore an arbitrary status from elsewhere and bypass this check.
        Cause::Undo | Cause::Import => false,
    }
}

/// Returns the command-line verbs allowed by hand for a task with this status.
pub fn allowed_by_hand(from: Status, reason: Option<&BlockedReason>) -> Vec<&'static str> {
    const HAND: [(Cause, Status); 13] = [
        (Cause::Claim, Status::InProgress),
        (Cause::Done, Status::Done),
        (Cause::Fail, Status::Failed),
        (Cause::Skip, Status::Skipped),
        (Cause::Cancel, Status::Cancelled),
        (Cause::Block, Status::Blocked),
        (Cause::Unblock, Status::Todo),
        (Cause::Approve, Status::Todo),
        (Cause::Approve, Status::Done),
        (Cause::Reject, Status::Cancelled),
        (Cause::Reject, Status::Failed),
        (Cause::Retry, Status::Todo),
        (Cause::Reopen, Status::Todo),
    ];
    let mut words: Vec<_> = HAND
        .iter()
        .filter(|(cause, to)| is_allowed(from, reason, *to, *cause))
        .map(|(cause, _)| cause.as_str())
        .collect();
    // These three depend on the holder of the claim, which this table does not know. The caller filters them.
    if from == Status::InProgress {
        words.splice(0..0, ["done", "fail", "release"]);
    }
    words
}
