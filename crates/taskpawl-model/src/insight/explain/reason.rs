//! Reasons for the status of a task: another task, or a reason of its own, which ends a chain of causes.

use serde::{Deserialize, Serialize};

use crate::advice::Advice;
use crate::command::Amount;
use crate::rules::means::too_much_text;
use crate::task::spec::{PERSON, word_enum};
use crate::task::wait::WaitingFor;
use crate::value::{CallId, Period, RunId, TaskId};
use crate::value::{Timestamp, format_time};

word_enum! {
    /// Relation of a task to the one that waits for it.
    Role {
        /// It is a dependency.
        Dependency = "dependency",
        /// It is a subtask.
        Subtask = "subtask",
        /// It is the parent.
        Above = "above",
    }
}

/// Reason for the status of a task.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Reason {
    /// The task waits for another one.
    WaitsFor {
        /// The other task.
        on: TaskId,
        /// Its relation to the waiting task.
        role: Role,
        /// Number of further tasks with the same relation.
        others: u32,
    },
    /// Another task prevents this one from starting.
    StoppedBy {
        /// The other task.
        on: TaskId,
        /// Its relation to the blocked task.
        role: Role,
        /// Number of further tasks with the same relation.
        others: u32,
    },
    /// Ready for a run.
    ReadyForRun {
        /// An active run that takes the task once it has capacity.
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
    },
    /// Ready for an agent or a person, and unclaimed.
    Unclaimed {
        /// Assignee, if the task has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        assignee: Option<String>,
    },
    /// Ready, but other tasks hold its requirements.
    Occupied {
        /// The resources and paths that it needs.
        names: Vec<String>,
        /// Some of the holders.
        by: Vec<TaskId>,
    },
    /// Ready, but a run still ends calls of the cancelled attempt.
    StillEnding {
        /// The run.
        run: RunId,
    },
    /// The gate is open, and the task changes with the next command.
    Moving {},
    /// A run executes the task.
    Running {
        /// The run.
        run: RunId,
        /// Actor of the run.
        actor: String,
        /// Running calls.
        calls: Vec<CallId>,
        /// Start of the earliest running call.
        #[serde(skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
    },
    /// A run holds the task and pauses before a retry or the next round.
    Paused {
        /// The run.
        run: RunId,
        /// The next call.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// Time at which it continues; `None` if it waits for capacity.
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// Failures of the call in this round.
        failures: u32,
    },
    /// The task waits durably: for a time or a signal, without a run.
    Asleep {
        /// The end of the wait.
        waiting_for: WaitingFor,
        /// True if its time has come, so that the next run goes on with it.
        is_over: bool,
    },
    /// The run that held the task ended without finishing it.
    RunDied {
        /// The run.
        run: RunId,
    },
    /// An agent or a person holds the task.
    Held {
        /// The holder.
        actor: String,
        /// End of the lease.
        #[serde(skip_serializing_if = "Option::is_none")]
        lease_until: Option<Timestamp>,
    },
    /// The holder's lease has expired.
    LeaseEnded {
        /// The former holder.
        actor: String,
        /// Time at which the lease expired.
        #[serde(skip_serializing_if = "Option::is_none")]
        lease_until: Option<Timestamp>,
    },
    /// The task waits for an approval.
    Approval {
        /// The call; absent if the whole task waits.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The question.
        #[serde(skip_serializing_if = "Option::is_none")]
        ask: Option<String>,
        /// The policy rule that asks, and its location; absent if the author of the task asks.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// The answers to choose from.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// End of the time to decide.
        #[serde(skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
        /// Default that applies because the time to decide has ended: `reject`, `approve`, or one of the options.
        #[serde(skip_serializing_if = "Option::is_none")]
        over: Option<String>,
    },
    /// The process that ran the task does not have this tool.
    MissingTool {
        /// Name of the tool.
        name: String,
    },
    /// The task needs more of a resource than its capacity.
    TooMuch {
        /// The resource.
        resource: String,
        /// Units that the task needs.
        needs: u32,
        /// Capacity of the resource.
        there_is: u32,
    },
    /// A call was stopped while it ran, and its outcome is unknown.
    Interrupted {
        /// The call.
        call: CallId,
        /// Details about the interruption, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A command blocked the task.
    Blocked {
        /// The given reason.
        text: String,
    },
    /// The task is done.
    Done {
        /// Time at which it finished.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        /// Its running time.
        #[serde(skip_serializing_if = "Option::is_none")]
        took: Option<Period>,
    },
    /// The task failed.
    Failed {
        /// Text of the failure.
        error: String,
        /// True if any of its tool calls were started.
        has_calls: bool,
    },
    /// The task was cancelled.
    Cancelled {
        /// The given reason.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The task was skipped.
    Skipped {
        /// The given reason.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// Urgency of a first cause, the most urgent first. The search reports the most urgent one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// Nothing continues without a command.
    Stuck,
    /// A known holder works on it.
    Held,
    /// It continues without a command.
    Moves,
}

impl Reason {
    pub(super) fn urgency(&self) -> Urgency {
        match self {
            Self::Held { .. } => Urgency::Held,
            Self::ReadyForRun { run: Some(_) }
            | Self::Occupied { .. }
            | Self::StillEnding { .. }
            | Self::Moving {}
            | Self::Running { .. }
            | Self::Asleep { .. }
            | Self::Paused { .. } => Urgency::Moves,
            Self::WaitsFor { .. }
            | Self::StoppedBy { .. }
            | Self::ReadyForRun { run: None }
            | Self::Unclaimed { .. }
            | Self::RunDied { .. }
            | Self::LeaseEnded { .. }
            | Self::Approval { .. }
            | Self::MissingTool { .. }
            | Self::TooMuch { .. }
            | Self::Interrupted { .. }
            | Self::Blocked { .. }
            | Self::Done { .. }
            | Self::Failed { .. }
            | Self::Cancelled { .. }
            | Self::Skipped { .. } => Urgency::Stuck,
        }
    }

    /// Returns the advice that resolves this reason for the task `id`, advice without loss first.
    pub(super) fn advice(&self, id: &TaskId) -> Vec<Advice> {
        match self {
            Self::WaitsFor { .. }
            | Self::StoppedBy { .. }
            | Self::StillEnding { .. }
            | Self::Moving {}
            | Self::Done { .. }
            | Self::Occupied { .. } => vec![Advice::show(id)],
            Self::ReadyForRun { run: None } => {
                vec![Advice::run_ready_of(id), Advice::RunOne { id: id.clone() }]
            }
            Self::ReadyForRun { run: Some(run) } => vec![Advice::HistoryOfRun { run: run.clone() }],
            Self::Unclaimed { assignee } => Advice::to_end(id, assignee.as_deref()),
            Self::Running { .. } | Self::Paused { .. } => vec![Advice::logs(id)],
            Self::Asleep { is_over: true, .. } => vec![Advice::run_ready_of(id)],
            Self::RunDied { .. } => vec![Advice::run_ready(&[]), Advice::DoctorFix {}],
            Self::Asleep { .. } | Self::Held { .. } => {
                vec![Advice::show(id), Advice::RunReady { only: Vec::new(), wait: true, grants: Vec::new() }]
            }
            Self::LeaseEnded { .. } => vec![Advice::claim(id)],
            Self::Approval { over: Some(word), .. } if word == "reject" => {
                vec![Advice::show(id), Advice::retry(id)]
            }
            Self::Approval { over: Some(_), .. } => vec![Advice::show(id), Advice::run_ready_of(id)],
            Self::Approval { options, .. } => {
                [vec![Advice::show(id)], Advice::decisions(id, options)].concat()
            }
            Self::MissingTool { .. } | Self::TooMuch { .. } => vec![Advice::show(id), Advice::skip(id)],
            Self::Interrupted { .. } => Advice::settlements(id).into(),
            Self::Blocked { .. } => vec![Advice::unblock(id)],
            Self::Failed { has_calls: true, .. } => {
                let again = Advice::Then { steps: vec![Advice::retry(id), Advice::run_ready(&[])] };
                vec![Advice::logs(id), again, Advice::skip(id)]
            }
            Self::Failed { has_calls: false, .. } => {
                vec![Advice::show(id), Advice::retry(id), Advice::skip(id)]
            }
            Self::Cancelled { .. } | Self::Skipped { .. } => vec![Advice::history(id), Advice::retry(id)],
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::WaitsFor { on, role, others } => write!(f, "waits for {}", other(*role, on, *others)),
            Self::StoppedBy { on, role, others } => {
                write!(f, "cannot start because of {}", other(*role, on, *others))
            }
            Self::ReadyForRun { run: None } => f.write_str("ready: the next run starts it"),
            Self::ReadyForRun { run: Some(run) } => {
                write!(f, "ready: run `{run}` starts it when it has capacity")
            }
            Self::Unclaimed { assignee } => fmt_unclaimed(f, assignee.as_deref()),
            Self::Occupied { names, by } => {
                write!(f, "ready, but {} held by {}", are(&list(names)), list(by))
            }
            Self::StillEnding { run } => {
                write!(f, "ready, but run `{run}` is still ending calls of the cancelled attempt")
            }
            Self::Moving {} => f.write_str("its status updates with the next command"),
            Self::Running { run, calls, since, .. } => fmt_running(f, run, calls, *since),
            Self::Paused { run, call, until, failures } => {
                fmt_paused(f, run, call.as_ref(), *until, *failures)
            }
            Self::Asleep { waiting_for, is_over: false } => write!(f, "{waiting_for}"),
            Self::Asleep { waiting_for, is_over: true } => {
                write!(f, "{waiting_for}: that is over, and the next run goes on with it")
            }
            Self::RunDied { run } => {
                write!(f, "its run `{run}` ended without finishing; the next run reclaims it")
            }
            Self::Held { actor, lease_until } => write!(f, "held by {actor}{}", until(*lease_until)),
            Self::LeaseEnded { actor, lease_until } => {
                write!(
                    f,
                    "was held by {actor}{}: its lease has ended, and it can be claimed",
                    until(*lease_until)
                )
            }
            Self::Approval { call, ask, why, options, expires_at, over } => {
                fmt_approval(f, call.as_ref(), ask.as_ref(), options)?;
                why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))?;
                expires_at.map_or(Ok(()), |end| fmt_expiry(f, end, over.as_ref()))
            }
            Self::MissingTool { name } => {
                write!(f, "needs the tool `{name}`, which the run does not have")
            }
            Self::TooMuch { resource, needs, there_is } => {
                let amount = Amount { units: *needs, of: *there_is };
                write!(f, "no run can start it: {}", too_much_text(resource, amount))
            }
            Self::Interrupted { call, why } => fmt_interrupted(f, call, why.as_ref()),
            Self::Blocked { text } => write!(f, "blocked by hand: {text}"),
            Self::Done { at, took } => fmt_done(f, *at, *took),
            Self::Failed { error, .. } => write!(f, "failed: {error}"),
            Self::Cancelled { reason } => ended(f, "cancelled", reason.as_ref()),
            Self::Skipped { reason } => ended(f, "skipped", reason.as_ref()),
        }
    }
}

fn fmt_unclaimed(f: &mut std::fmt::Formatter<'_>, assignee: Option<&str>) -> std::fmt::Result {
    if assignee == Some(PERSON) {
        return f.write_str("ready: a person must do it");
    }
    f.write_str("ready: an agent or a person must claim it")?;
    assignee.map_or(Ok(()), |name| write!(f, "; it is assigned to {name}"))
}

fn fmt_running(
    f: &mut std::fmt::Formatter<'_>,
    run: &RunId,
    calls: &[CallId],
    since: Option<Timestamp>,
) -> std::fmt::Result {
    write!(f, "run `{run}` is running it")?;
    since.map_or(Ok(()), |since| write!(f, " since {}", format_time(since)))?;
    match calls {
        [] => Ok(()),
        [call] => write!(f, ": call `{call}`"),
        calls => write!(f, ": calls {}", list(calls)),
    }
}

fn fmt_paused(
    f: &mut std::fmt::Formatter<'_>,
    run: &RunId,
    call: Option<&CallId>,
    until: Option<Timestamp>,
    failures: u32,
) -> std::fmt::Result {
    write!(f, "run `{run}` pauses")?;
    call.map_or(Ok(()), |call| write!(f, " before call `{call}`"))?;
    match failures {
        0 => {}
        1 => f.write_str(", which failed once so far")?,
        more => write!(f, ", which failed {more} times so far")?,
    }
    match until {
        Some(until) => write!(f, ", and continues at {}", format_time(until)),
        None => f.write_str(", and continues when it has capacity"),
    }
}

fn fmt_approval(
    f: &mut std::fmt::Formatter<'_>,
    call: Option<&CallId>,
    ask: Option<&String>,
    options: &[String],
) -> std::fmt::Result {
    call.map_or(Ok(()), |call| write!(f, "call `{call}` "))?;
    f.write_str("waits for an approval")?;
    ask.map_or(Ok(()), |ask| write!(f, ": {ask}"))?;
    if options.is_empty() { Ok(()) } else { write!(f, " ({})", options.join(", ")) }
}

fn fmt_expiry(f: &mut std::fmt::Formatter<'_>, end: Timestamp, over: Option<&String>) -> std::fmt::Result {
    let end = format_time(end);
    match over {
        Some(word) => write!(f, "; no decision was made by {end}, so the default applies: {word}"),
        None => write!(f, "; the approval expires at {end}"),
    }
}

fn fmt_interrupted(f: &mut std::fmt::Formatter<'_>, call: &CallId, why: Option<&String>) -> std::fmt::Result {
    match why {
        Some(why) => write!(f, "call `{call}` was interrupted: {why}; ")?,
        None => write!(f, "call `{call}` was interrupted, and its progress is unknown: ")?,
    }
    f.write_str("check its effects, then use `done` or `fail`, or `unblock` to start it again")
}

fn fmt_done(
    f: &mut std::fmt::Formatter<'_>,
    at: Option<Timestamp>,
    took: Option<Period>,
) -> std::fmt::Result {
    f.write_str("done")?;
    at.map_or(Ok(()), |at| write!(f, " at {}", format_time(at)))?;
    took.map_or(Ok(()), |took| write!(f, ", in {took}"))
}

fn ended(f: &mut std::fmt::Formatter<'_>, word: &str, reason: Option<&String>) -> std::fmt::Result {
    match reason {
        Some(reason) => write!(f, "{word}: {reason}"),
        None => f.write_str(word),
    }
}

fn other(role: Role, on: &TaskId, others: u32) -> String {
    let what = match role {
        Role::Dependency => String::new(),
        Role::Subtask => "its subtask ".to_owned(),
        Role::Above => "its parent ".to_owned(),
    };
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    format!("{what}`{on}`{more}")
}

fn list(words: &[impl std::fmt::Display]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn are(names: &str) -> String {
    format!("{names} {}", if names.contains(", ") { "are" } else { "is" })
}

fn until(lease: Option<Timestamp>) -> String {
    lease.map_or_else(String::new, |end| format!(" until {}", format_time(end)))
}
