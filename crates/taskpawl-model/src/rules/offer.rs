//! Checks advice by deciding it: advice that the rules would refuse now is not offered.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::advice::{Advice, SILENT_NOTE};
use crate::command::refusal::Refusal;
use crate::command::{Command, Context};
use crate::rules::DecideError;
use crate::rules::decide::decide;
use crate::task::ActorKind;
use crate::value::TaskId;
use crate::view::{View, ViewResult};

/// Lease of a claim that is only tried. The value does not matter as long as it is valid.
const LEASE: Duration = Duration::from_secs(30 * 60);

/// Returns the advice if the rules accept it from the actor of `context`, and `None` if they refuse it.
///
/// If dependents already ran, `cascade` is added. The check costs as much as the command. Advice without a command is
/// always accepted, and so is [`Advice::RetryFailed`], which covers any number of tasks.
///
/// # Errors
/// The view cannot be read.
pub fn offered(view: &dyn View, advice: Advice, context: &Context) -> ViewResult<Option<Advice>> {
    if let Advice::Then { steps } = advice {
        return of_steps(view, steps, context);
    }
    match refusal_of(view, &advice, context)? {
        None => Ok(Some(advice)),
        Some(Refusal::DependentsRan { .. }) => {
            let Some(advice) = cascading(&advice) else { return Ok(None) };
            Ok(refusal_of(view, &advice, context)?.is_none().then_some(advice))
        }
        Some(_) => Ok(None),
    }
}

/// Returns the pieces of advice that the rules accept, each as [`offered`] returns it.
///
/// # Errors
/// The view cannot be read.
pub fn all_offered(view: &dyn View, advice: Vec<Advice>, context: &Context) -> ViewResult<Vec<Advice>> {
    let kept = advice.into_iter().map(|advice| offered(view, advice, context));
    Ok(kept.collect::<ViewResult<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Adds advice to a refusal that the rules accept from the actor of `context`.
pub(crate) fn with_offers(mut refusal: Refusal, view: &dyn View, context: &Context) -> ViewResult<Refusal> {
    if let Refusal::WorkStarted { id, status, reopen, .. } = &mut refusal
        && status.is_finished()
    {
        // Only a finished task can be reopened, so the check is not made for one in progress.
        *reopen = offered(view, Advice::reopen(id), context)?;
    }
    if let Refusal::NotUndoable { before, .. } = &mut refusal
        && let Some(revision) = *before
        && offered(view, Advice::Undo { revision: Some(revision) }, context)?.is_none()
    {
        *before = None;
    }
    if let Refusal::NotManual { id, by: "run", ends, .. } = &mut refusal {
        *ends = all_offered(view, vec![Advice::done(id), Advice::fail(id)], context)?;
    }
    Ok(refusal)
}

/// Only the first step can be checked against the store. Later steps depend on the outcome of earlier ones.
fn of_steps(view: &dyn View, steps: Vec<Advice>, context: &Context) -> ViewResult<Option<Advice>> {
    let mut steps = steps.into_iter();
    let Some(first) = steps.next() else { return Ok(None) };
    let first = offered(view, first, context)?;
    Ok(first.map(|first| Advice::Then { steps: std::iter::once(first).chain(steps).collect() }))
}

fn refusal_of(view: &dyn View, advice: &Advice, context: &Context) -> ViewResult<Option<Refusal>> {
    let Some(command) = command(advice) else { return Ok(None) };
    match decide(view, &command, &asker(advice, context)) {
        Ok(_) => Ok(None),
        Err(DecideError::Refused(refusal)) => Ok(Some(*refusal)),
        Err(DecideError::View(error)) => Err(error),
    }
}

fn cascading(advice: &Advice) -> Option<Advice> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else has the option")]
    match advice {
        Advice::Retry { id, .. } => Some(Advice::Retry { id: id.clone(), cascade: true }),
        Advice::Reopen { id, .. } => Some(Advice::Reopen { id: id.clone(), cascade: true }),
        _ => None,
    }
}

/// Returns the context for a command that follows `advice`.
///
/// Some advice is for people only, and a claim is released in the name of its holder.
pub fn asker(advice: &Advice, context: &Context) -> Context {
    let mut asker = Context { run: None, ..context.clone() };
    if advice.is_for_people() {
        asker.kind = ActorKind::Person;
    }
    if let Advice::Release { holder: Some(holder), .. } = advice {
        asker.actor = holder.as_str().into();
        asker.kind = ActorKind::Agent;
    }
    asker
}

/// Returns the command of an advice; `None` if it only reads, runs everything, or has several steps.
pub fn command(advice: &Advice) -> Option<Command> {
    let ids = |id: &TaskId| vec![id.to_string()];
    let claim =
        |id| Command::Claim { id, lease: LEASE, capacities: BTreeMap::new(), writes: BTreeMap::new() };
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else is one command on the store")]
    Some(match advice {
        Advice::Claim { id } => claim(Some(id.to_string())),
        Advice::ClaimNext {} => claim(None),
        Advice::Release { id, .. } => Command::Release { ids: ids(id), note: None },
        Advice::ReleaseSilent { id } => Command::Release { ids: ids(id), note: Some(SILENT_NOTE.to_owned()) },
        Advice::Done { id } | Advice::DoneByPerson { id } => {
            Command::Done { ids: ids(id), result: None, note: None, attempt: None }
        }
        Advice::Fail { id } => Command::Fail { ids: ids(id), result: None, note: None, attempt: None },
        Advice::Skip { id } => Command::Skip { ids: ids(id), reason: None },
        Advice::Cancel { id } => Command::Cancel { ids: ids(id), reason: None },
        Advice::Unblock { id } => Command::Unblock { ids: ids(id) },
        Advice::Approve { id, answer } => Command::Approve {
            ids: ids(id),
            answer: answer.clone().map(Value::String),
            args: None,
            hash: None,
        },
        Advice::Reject { id } => Command::Reject { ids: ids(id), reason: None, rework: None },
        Advice::SendBack { id } => {
            Command::Reject { ids: ids(id), reason: None, rework: Some("TEXT".to_owned()) }
        }
        Advice::Retry { id, cascade } => Command::Retry { ids: ids(id), cascade: *cascade },
        Advice::Reopen { id, cascade } => Command::Reopen { ids: ids(id), cascade: *cascade },
        Advice::RunOne { id } => Command::RunOne { id: id.to_string(), missing_tool: None },
        Advice::AddDependency { id, on } => Command::AddDependency { id: id.to_string(), on: on.to_string() },
        Advice::RenamePlan { from, to } => Command::RenamePlan { from: from.clone(), to: to.clone() },
        Advice::Undo { revision: Some(revision) } => Command::Undo { revision: Some(*revision) },
        _ => return None,
    })
}
