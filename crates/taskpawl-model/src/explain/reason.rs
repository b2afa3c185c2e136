//! Why a task is as it is: either because of another one, or for a reason of its own, at which a chain of causes ends.

use serde::{Deserialize, Serialize};

use crate::advice::Advice;
use crate::command::Amount;
use crate::means::too_much_text;
use crate::spec::{PERSON, Timestamp, format_time, word_enum};
use crate::{CallId, Period, RunId, TaskId};

word_enum! {
    /// What another task is to the one that waits for it.
    Role {
        /// It depends on it.
        Dependency = "dependency",
        /// It is below it.
        Subtask = "subtask",
        /// It is the task above.
        Above = "above",
    }
}

/// Why a task is as it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Reason {
    /// It waits for another one.
    WaitsFor {
        /// The other one.
        on: TaskId,
        /// What that is to it.
        role: Role,
        /// For how many more of the same kind it waits.
        others: u32,
    },
    /// Another one keeps it from ever starting by itself.
    StoppedBy {
        /// The other one.
        on: TaskId,
        /// What that is to it.
        role: Role,
        /// How many more of the same kind do so.
        others: u32,
    },
    /// It is ready: the next run takes it.
    ReadyForRun {
        /// A run that goes on and takes it when there is a place.
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
    },
    /// It is ready for an agent or a person, and nobody has claimed it.
    Unclaimed {
        /// Who is to do it.
        #[serde(skip_serializing_if = "Option::is_none")]
        assignee: Option<String>,
    },
    /// It is ready, but others hold what it needs.
    Occupied {
        /// The resources and paths.
        names: Vec<String>,
        /// Some of the tasks that hold them.
        by: Vec<TaskId>,
    },
    /// A run still ends calls of the attempt that was cancelled.
    StillEnding {
        /// The run.
        run: RunId,
    },
    /// Its gate is open and it moves by itself with the next command.
    Moving {},
    /// A run works on it.
    Running {
        /// The run.
        run: RunId,
        /// Its actor.
        actor: String,
        /// The calls that run.
        calls: Vec<CallId>,
        /// Since when.
        #[serde(skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
    },
    /// A run holds it and pauses before the next start of a call or the next round.
    Paused {
        /// The run.
        run: RunId,
        /// The call that is next.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// When it goes on.
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// How often the call failed in this round.
        failures: u32,
    },
    /// The run that held it has ended without finishing.
    RunDied {
        /// The run.
        run: RunId,
    },
    /// An agent or a person holds it.
    Held {
        /// Who.
        actor: String,
        /// Until when.
        #[serde(skip_serializing_if = "Option::is_none")]
        lease_until: Option<Timestamp>,
    },
    /// The lease of who held it is over.
    LeaseEnded {
        /// Who held it.
        actor: String,
        /// Until when.
        #[serde(skip_serializing_if = "Option::is_none")]
        lease_until: Option<Timestamp>,
    },
    /// It waits for an approval.
    Approval {
        /// The call; absent where the whole task waits.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The question.
        #[serde(skip_serializing_if = "Option::is_none")]
        ask: Option<String>,
        /// Why it is asked although its author does not say so: the rule, and where it stands.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// The answers to choose from.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// When the question no longer stands.
        #[serde(skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
        /// What counts now that nobody has decided in time: `reject`, `approve`, or one of the options.
        #[serde(skip_serializing_if = "Option::is_none")]
        over: Option<String>,
    },
    /// No tool of that name is known where it was to run.
    MissingTool {
        /// The name.
        name: String,
    },
    /// It needs more of a resource than there is.
    TooMuch {
        /// The resource.
        resource: String,
        /// How much it needs.
        needs: u32,
        /// How much there is.
        there_is: u32,
    },
    /// A call was stopped while it ran, and nobody knows how far it came.
    Interrupted {
        /// The call.
        call: CallId,
        /// What is known of how that came, beyond that it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Somebody blocked it.
    Blocked {
        /// Why.
        text: String,
    },
    /// It ended well.
    Done {
        /// When.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        /// How long it ran.
        #[serde(skip_serializing_if = "Option::is_none")]
        took: Option<Period>,
    },
    /// It failed.
    Failed {
        /// Why.
        error: String,
        /// Whether tool calls of it have run.
        has_calls: bool,
    },
    /// It was given up.
    Cancelled {
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It is not needed.
    Skipped {
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// How much somebody has to do about the end of a chain of causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// Nothing moves before somebody does something.
    Stuck,
    /// Somebody who is known is at it.
    Held,
    /// It moves by itself.
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

    /// Returns what clears it, for the task `id`: what loses nothing comes first.
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
            Self::RunDied { .. } => vec![Advice::run_ready(&[]), Advice::DoctorFix {}],
            Self::Held { .. } => vec![Advice::show(id), Advice::RunReady { only: Vec::new(), wait: true }],
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
            Self::ReadyForRun { run: None } => f.write_str("ready: the next run takes it"),
            Self::ReadyForRun { run: Some(run) } => {
                write!(f, "ready: run `{run}` takes it when it has a place")
            }
            Self::Unclaimed { assignee } => {
                if assignee.as_deref() == Some(PERSON) {
                    return f.write_str("ready, and only a person ends it");
                }
                f.write_str("ready, a task for an agent or a person, and nobody has claimed it")?;
                assignee.as_ref().map_or(Ok(()), |name| write!(f, "; it is assigned to {name}"))
            }
            Self::Occupied { names, by } => {
                write!(f, "ready, but {} held by {}", are(&list(names)), list(by))
            }
            Self::StillEnding { run } => {
                write!(f, "ready, but run `{run}` still ends calls of the attempt that was cancelled")
            }
            Self::Moving {} => f.write_str("moves by itself with the next command"),
            Self::Running { run, calls, since, .. } => fmt_running(f, run, calls, *since),
            Self::Paused { run, call, until, failures } => {
                fmt_paused(f, run, call.as_ref(), *until, *failures)
            }
            Self::RunDied { run } => {
                write!(f, "run `{run}`, which held it, ended without finishing; the next run takes it back")
            }
            Self::Held { actor, lease_until } => write!(f, "held by {actor}{}", until(*lease_until)),
            Self::LeaseEnded { actor, lease_until } => {
                write!(f, "was held by {actor}{}, which is over: who claims it gets it", until(*lease_until))
            }
            Self::Approval { call, ask, why, options, expires_at, over } => {
                fmt_approval(f, call.as_ref(), ask.as_ref(), options)?;
                if let Some(why) = why {
                    write!(f, ": {why}")?;
                }
                let Some(end) = expires_at.map(format_time) else { return Ok(()) };
                match over {
                    Some(word) => write!(f, "; nobody decided until {end}, and then counts: {word}"),
                    None => write!(f, "; it is asked until {end}"),
                }
            }
            Self::MissingTool { name } => {
                write!(f, "needs the tool `{name}`, which is not known where it is to run")
            }
            Self::TooMuch { resource, needs, there_is } => {
                let amount = Amount { units: *needs, of: *there_is };
                write!(f, "no run takes it: {}", too_much_text(resource, amount))
            }
            Self::Interrupted { call, why: Some(why) } => write!(
                f,
                "call `{call}` was interrupted: {why}; look, then say `done` or `fail`, or `unblock` to start it again"
            ),
            Self::Interrupted { call, why: None } => write!(
                f,
                "call `{call}` was stopped while it ran and nobody knows how far it came: look, then say `done` or `fail`, or \
                 `unblock` to start it again"
            ),
            Self::Blocked { text } => write!(f, "blocked by hand: {text}"),
            Self::Done { at, took } => {
                f.write_str("done")?;
                at.map_or(Ok(()), |at| write!(f, " at {}", format_time(at)))?;
                took.map_or(Ok(()), |took| write!(f, ", in {took}"))
            }
            Self::Failed { error, .. } => write!(f, "failed: {error}"),
            Self::Cancelled { reason } => ended(f, "cancelled", reason.as_ref()),
            Self::Skipped { reason } => ended(f, "skipped", reason.as_ref()),
        }
    }
}

fn fmt_running(
    f: &mut std::fmt::Formatter<'_>,
    run: &RunId,
    calls: &[CallId],
    since: Option<Timestamp>,
) -> std::fmt::Result {
    write!(f, "run `{run}` works on it")?;
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
        Some(until) => write!(f, ", and goes on at {}", format_time(until)),
        None => f.write_str(", and goes on when it has a place"),
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
        Role::Above => "the task above it, ".to_owned(),
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
