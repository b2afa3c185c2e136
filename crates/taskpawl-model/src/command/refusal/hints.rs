//! The hint of each refusal.

use std::collections::BTreeSet;

use super::{Conflict, HeldBy, Refusal, Remedy};
use crate::advice::Advice;
use crate::advice::hint::{Hint, HintOption};
use crate::task::spec::PlanAccess;
use crate::task::status::{BlockedReason, Status};
use crate::value::TaskId;

impl Refusal {
    /// Returns a suggestion as a short sentence. It never advises a destructive command.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::UnknownTask { similar, .. } => unknown_task_hint(similar),
            Self::AmbiguousId { .. } => "give more characters of the id".into(),
            Self::Contradiction { .. } => "give one of them at a time".into(),
            Self::UnknownRun { .. } | Self::RunOver { .. } => {
                Hint::from(Advice::Runs {}).text(" shows the runs")
            }
            Self::ForeignRun { .. } => "a person can stop it".into(),
            // Their messages already contain a hint for each error.
            Self::InvalidId(_)
            | Self::Dependency { .. }
            | Self::InvalidField { .. }
            | Self::Invalid { .. } => return None,
            Self::DuplicateId { .. } => "choose another id, or leave it out to get a new one".into(),
            Self::Transition { id, from, allowed, reason, .. } => {
                transition_hint(id, *from, reason.as_ref(), allowed)
            }
            Self::NotReady { id, .. } => Hint::from(Advice::explain(id))
                .text(" shows the chain of causes and the commands that resolve it"),
            Self::Occupied { id, .. } => {
                Hint::from(Advice::explain(id)).text(" shows the resources; claim it when they are free")
            }
            Self::NothingReady => Hint::from(Advice::List { status: vec![Status::Todo, Status::Blocked] })
                .text(" lists the remaining tasks"),
            Self::NotManual { id, by, ends, .. } => not_manual_hint(id, by, ends),
            Self::HeldByOther { id, lease_until, holder, .. } => held_hint(id, lease_until.is_some(), holder),
            Self::StaleAttempt { id, .. } | Self::ForeignAttempt { id, .. } => {
                Hint::from(Advice::history(id))
                    .text(" shows the changes since then; the report was not recorded")
            }
            Self::CallNotRunning { id, .. } => Hint::from(Advice::show(id)).text(" shows its calls"),
            Self::VersionMismatch { id, .. } => {
                Hint::new("read it again with ").advice(Advice::show(id)).text(", then retry")
            }
            Self::Cycle { .. } => "a task cannot wait for itself, directly or through others".into(),
            Self::WorkStarted { id, status, reopen, .. } => work_started_hint(id, *status, reopen.as_ref()),
            Self::DependentsRan { .. } => {
                Hint::new("add ").option(HintOption::Cascade).text(" to reopen those as well")
            }
            Self::InProgress { tasks } => in_progress_hint(tasks),
            Self::StillEnding { .. } => "retry in a moment".into(),
            Self::StillNeeded { id, .. } => still_needed_hint(id),
            Self::TriggerWithoutDependencies { .. } => {
                Hint::new("give it a dependency with ").option(HintOption::Needs).text(", or another trigger")
            }
            Self::PlanElsewhere { .. } => plan_elsewhere_hint(),
            Self::PlanRenamed { from, to, .. } => plan_renamed_hint(from, to),
            Self::PlanConflict { conflicts, .. } => plan_conflict_hint(conflicts),
            Self::WorkConflict { conflict } => work_conflict_hint(conflict),
            Self::ImportConflict { .. } => import_conflict_hint(),
            Self::BeyondAccess { access: Some(PlanAccess::Read), .. } => {
                "set `planAccess: add` on the call in the plan".into()
            }
            Self::BeyondAccess { .. } => "use this command outside the call".into(),
            Self::AddedEnough { .. } => "let one of the added tasks add more when it runs".into(),
            Self::Relayed { hint, .. } | Self::Expression { hint, .. } => return hint.clone(),
            Self::MissingParams { params, .. } => missing_params_hint(params),
            Self::NotAsked { id, .. } => Hint::from(Advice::show(id)).text(" shows its status"),
            Self::QuestionOver { id, goes_on, .. } => question_over_hint(id, *goes_on),
            Self::StaleHash { given, current, .. } if current.starts_with(given.as_str()) => {
                "give at least the first 8 characters".into()
            }
            Self::StaleHash { id, .. } => Hint::from(Advice::show(id)).text(" shows the current question"),
            Self::WrongAnswer { id, answer, options } => answer_hint(id, answer.as_deref(), options),
            Self::ManyCalls { .. } => {
                "leave the arguments out, or change the calls in the plan and apply it".into()
            }
            Self::RunDecides { .. } | Self::PersonOnly { .. } => "ask a person".into(),
            Self::ForOther { assignee, .. } => Hint::new("ask ").data(assignee).text(", or a person"),
            Self::TakesApproval { .. } => {
                "leave every `approval` as it is, or ask a person to make the change".into()
            }
            Self::StartsWithout { on, .. } => {
                Hint::new("wait for a decision about ").data(on).text(", or ask a person to make the change")
            }
            Self::NothingToUndo { .. } => nothing_to_undo_hint(),
            Self::NotUndoable { before, .. } => not_undoable_hint(*before),
            Self::AlreadyUndone { by, .. } => {
                Hint::from(Advice::Undo { revision: Some(*by) }).text(" redoes it")
            }
            Self::TouchedSince { touches, .. } => touched_hint(&touches.first()?.task),
            Self::RequestReused { .. } => "use a unique name for each request".into(),
            Self::NothingSelected { .. } => {
                Hint::from(Advice::ListSelectors {}).text(" lists the plans and labels")
            }
        })
    }
}

// Tasks and their status.

fn unknown_task_hint(similar: &[TaskId]) -> Hint {
    if similar.is_empty() {
        return Hint::from(Advice::List { status: Vec::new() }).text(" shows the ids");
    }
    Hint::new("did you mean ").list(similar).text("?")
}

fn not_manual_hint(id: &TaskId, by: &str, ends: &[Advice]) -> Hint {
    if by == "run" {
        return ends_hint(id, ends);
    }
    Hint::from(Advice::run_ready(&[])).text(" runs its remaining work, and it ends automatically")
}

fn work_started_hint(id: &TaskId, status: Status, reopen: Option<&Advice>) -> Hint {
    match reopen {
        Some(reopen) => Hint::from(reopen.clone()).text(" sets it to `todo` first"),
        None if status.is_finished() => Hint::from(Advice::explain(id)).text(" shows why"),
        None => Hint::new("wait until it has ended, then ").later(Advice::reopen(id)),
    }
}

fn in_progress_hint(tasks: &[TaskId]) -> Hint {
    match tasks.first() {
        Some(task) => Hint::new("wait until it has ended; if it is not needed, ")
            .later(Advice::Cancel { id: task.clone() })
            .text(" first"),
        None => "wait until it has ended".into(),
    }
}

fn still_needed_hint(id: &TaskId) -> Hint {
    Hint::new(
        "remove those dependencies first, or delete all of them together; a task that has not ended can be kept in the record with ",
    )
    .later(Advice::Cancel { id: id.clone() })
}

fn held_hint(id: &TaskId, has_lease: bool, holder: &HeldBy) -> Hint {
    match holder {
        HeldBy::Store(_) => Hint::from(Advice::explain(id)).text(" shows what ends the wait"),
        HeldBy::Run(_) => Hint::new("wait for that run; if it was killed, ")
            .advice(Advice::run_ready(&[]))
            .text(" reclaims its tasks"),
        HeldBy::Actor { .. } if has_lease => Hint::from(Advice::ExplainReady {})
            .text(" shows other tasks to take; or ask the holder to release ")
            .data(id),
        HeldBy::Actor { name, .. } => Hint::new("the claim was imported; ")
            .advice(Advice::Release { id: id.clone(), holder: Some(name.clone()) })
            .text(" releases it on behalf of its holder"),
    }
}

fn ends_hint(id: &TaskId, ends: &[Advice]) -> Hint {
    match ends {
        [done, fail] => Hint::new("an agent or a person must end it: ")
            .advice(done.clone())
            .text(" or ")
            .advice(fail.clone()),
        _ => Hint::new("an agent or a person must end it, which is not possible now: ")
            .advice(Advice::explain(id))
            .text(" shows the cause"),
    }
}

fn transition_hint(
    id: &TaskId,
    from: Status,
    reason: Option<&BlockedReason>,
    allowed: &[&'static str],
) -> Hint {
    match reason {
        Some(BlockedReason::Dependency { ids }) if !ids.is_empty() => {
            Hint::new("it opens automatically when ")
                .list(ids)
                .text(" can continue: `retry` failed tasks, or `skip` tasks that are not needed")
        }
        Some(BlockedReason::Waiting { .. }) => {
            "it opens automatically when its dependencies are finished".into()
        }
        _ if allowed.is_empty() => Hint::from(Advice::history(id)).text(" shows why it is ").data(from),
        _ => {
            Hint::new("from ").data(from).text(format!(", the allowed commands are: {}", allowed.join(", ")))
        }
    }
}

// Questions.

fn question_over_hint(id: &TaskId, goes_on: bool) -> Hint {
    if goes_on {
        return Hint::new("its plan approves it by default: ").advice(Advice::run_ready(&[]));
    }
    Hint::new("this counts as a rejection; ").advice(Advice::retry(id)).text(" lets it ask again")
}

fn answer_hint(id: &TaskId, answer: Option<&str>, options: &[String]) -> Hint {
    if options.is_empty() {
        let yes = Advice::Approve { id: id.clone(), answer: None };
        return Hint::from(yes)
            .text(" approves, ")
            .advice(Advice::Reject { id: id.clone() })
            .text(" rejects");
    }
    let meant = |answer: &str| taskpawl_text::nearest(answer, options.iter().map(String::as_str));
    match answer.and_then(meant) {
        Some(nearest) => Hint::new("did you mean ").data(nearest).text("? The answers are ").list(options),
        None => Hint::new("the answers are ")
            .list(options)
            .text(": ")
            .advice(Advice::Approve { id: id.clone(), answer: Some("ANSWER".to_owned()) }),
    }
}

// Plans and imports.

fn plan_elsewhere_hint() -> Hint {
    Hint::new("use ")
        .option(HintOption::Instance)
        .text(" for a separate plan, or ")
        .option(HintOption::Moved)
        .text(" if the file has moved")
}

fn plan_renamed_hint(from: &str, to: &str) -> Hint {
    Hint::from(Advice::RenamePlan { from: from.to_owned(), to: to.to_owned() })
        .text(" renames the plan; ")
        .option(HintOption::Instance)
        .text(" creates a separate plan")
}

fn work_conflict_hint(conflict: &Conflict) -> Hint {
    match conflict.remedy {
        Remedy::Redo | Remedy::RedoOrKeep => Hint::from(Advice::reopen(&conflict.task))
            .text(" starts it over; give it its new work then, or with the same command"),
        Remedy::OtherId | Remedy::Settle | Remedy::Wait => plan_conflict_hint(std::slice::from_ref(conflict)),
    }
}

/// Names the remedy of each kind of conflict once, in the order of the kinds.
fn plan_conflict_hint(conflicts: &[Conflict]) -> Hint {
    let remedies: BTreeSet<Remedy> = conflicts.iter().map(|conflict| conflict.remedy).collect();
    let of =
        |remedy| conflicts.iter().find(|conflict| conflict.remedy == remedy).map(|conflict| &conflict.task);
    let mut hint = Hint::default();
    for (nth, remedy) in remedies.into_iter().enumerate() {
        hint = if nth > 0 { hint.text("; ") } else { hint };
        hint = match (remedy, of(remedy)) {
            (Remedy::OtherId, _) => hint
                .text("give those tasks other ids in the file, or use ")
                .option(HintOption::Instance)
                .text(" for a separate instance"),
            (Remedy::Redo, _) => {
                hint.option(HintOption::RedoChanged).text(" starts those over, and what ran after them")
            }
            (Remedy::RedoOrKeep, _) => hint
                .option(HintOption::RedoChanged)
                .text(" starts over what changed and all that ran after it, ")
                .option(HintOption::KeepChanged)
                .text(" keeps its results"),
            (Remedy::Settle, Some(id)) => hint
                .text("first report how the interrupted call ended, with ")
                .advice(Advice::done(id))
                .text(" or ")
                .advice(Advice::fail(id)),
            (Remedy::Settle, None) => hint.text("first report how the interrupted call ended"),
            (Remedy::Wait, _) => hint.text("wait until those tasks have ended"),
        };
    }
    hint
}

fn import_conflict_hint() -> Hint {
    Hint::default()
        .option(HintOption::Prefix)
        .text(" gives them separate ids; ")
        .option(HintOption::Adopt)
        .text(" treats them as the same tasks, and the file takes precedence; ")
        .option(HintOption::Moved)
        .text(" names the path that the file had before")
}

fn missing_params_hint(params: &[String]) -> Hint {
    let name = params.first().map_or("NAME", String::as_str).to_owned();
    Hint::new("set it with ").option(HintOption::Param { name }).text(", or declare a `default`")
}

// Undo.

fn nothing_to_undo_hint() -> Hint {
    Hint::from(Advice::History { id: None })
        .text(" shows the changes by others; ")
        .advice(Advice::Undo { revision: None })
        .text(" undoes that")
}

fn not_undoable_hint(before: Option<u64>) -> Hint {
    match before {
        Some(before) => {
            Hint::from(Advice::Undo { revision: Some(before) }).text(" undoes the command before it")
        }
        None => Hint::from(Advice::History { id: None }).text(" lists the commands and their revisions"),
    }
}

fn touched_hint(task: &TaskId) -> Hint {
    Hint::from(Advice::history(task)).text(
        " shows the changes since then; undo those not made by a run first, or change the tasks by hand",
    )
}
