//! `decide`: turns a command and a view of the store into changes and an answer.

mod acceptance;
mod again;
mod ahead;
mod applied;
mod apply;
mod approval;
mod approval_guard;
mod author;
mod authorize;
mod cached;
mod checklist;
mod claim;
mod emit;
mod ending;
mod fields;
mod follow;
mod hand;
mod ids;
mod import;
mod item_name;
mod keys;
mod merge;
mod mutate;
mod naming;
mod needs;
mod open;
mod params;
mod part;
mod prune;
mod rearm;
mod redo;
mod references;
mod release;
mod retry;
mod rework;
mod run;
mod step;
mod undo;
mod unknown;
mod update;
mod verdict;
mod wait;

pub(crate) use needs::{Holder, held_paths};

pub use ahead::approvals_ahead;
pub use approval::approval_request;
pub(crate) use approval::on_expiry_word;
pub use import::bound_records;
pub use part::complete_part;
pub use update::calls_of_update;

use crate::command::refusal::Refusal;
use crate::command::{Answer, Command, Context, GivenBy, IdempotentRequest, RequestRecord};
use crate::rules::draft::{Decided, Draft};
use crate::rules::{DecideError, Decision};
use crate::view::View;

/// Decides `command` against the state that `view` shows.
///
/// Pure: the same view, command and context give the same decision. Nothing is written here. The store applies the
/// changes of the decision in the transaction that the view belongs to.
///
/// # Errors
/// A refusal by the rules, or a view that cannot be read.
pub fn decide(view: &dyn View, command: &Command, context: &Context) -> Result<Decision, DecideError> {
    decide_plainly(view, command, context).map_err(|error| with_offers(error, view, context))
}

/// Returns what `read` says of the state that `command` would leave. Nothing is written.
///
/// # Errors
/// As for [`decide`].
pub fn preview<T>(
    view: &dyn View,
    command: &Command,
    context: &Context,
    read: impl FnOnce(&dyn View) -> T,
) -> Result<T, DecideError> {
    let after = draft_of(view, command, context).and_then(|mut draft| {
        draft.settle()?;
        Ok(draft)
    });
    after.map(|draft| read(&draft)).map_err(|error| with_offers(error, view, context))
}

/// Adds checked advice to a refusal. The check calls `decide` again, once for each advice.
fn with_offers(error: DecideError, view: &dyn View, context: &Context) -> DecideError {
    match error {
        DecideError::Refused(refusal) => crate::rules::offer::with_offers(*refusal, view, context)
            .map_or_else(DecideError::from, DecideError::from),
        error @ DecideError::View(_) => error,
    }
}

/// Decides a command without adding advice to a refusal.
fn decide_plainly(view: &dyn View, command: &Command, context: &Context) -> Result<Decision, DecideError> {
    if let Command::Idempotent(once) = command {
        return decide_once(view, once, context);
    }
    draft_of(view, command, context)?.finish()
}

/// Returns the draft of a command. Its gates are not settled yet.
fn draft_of<'a>(view: &'a dyn View, command: &Command, context: &'a Context) -> Decided<Draft<'a>> {
    let mut draft = Draft::new(view, context);
    let given_by = command.traits().by;
    draft.undo_notes.is_undoable = given_by == GivenBy::Hand;
    draft.meet(&command.names())?;
    // The copy is taken after `meet`, so that expired leases and questions count as present before the command.
    let before = draft.is_kept_from_deciding(command).then(|| draft.clone());
    dispatch(&mut draft, command)?;
    if let Some(before) = before {
        draft.refuse_loosened(&before)?;
    }
    if given_by != GivenBy::Run && context.run.is_none() {
        draft.renew_own_leases()?;
    }
    Ok(draft)
}

/// Decides a command with a request name. The record of the request is part of its changes, so both are written or
/// neither.
fn decide_once(
    view: &dyn View,
    once: &IdempotentRequest,
    context: &Context,
) -> Result<Decision, DecideError> {
    let IdempotentRequest { request, digest, command } = once;
    let actor = context.as_actor();
    if let Some(before) = view.request(actor, request)? {
        if before.digest != *digest {
            return Err(Refusal::RequestReused { request: request.clone(), at: before.at }.into());
        }
        let RequestRecord { tasks, applied, .. } = before;
        let answer = Answer { tasks, applied, repeated: true, ..Answer::default() };
        return Ok(Decision { answer, ..Decision::default() });
    }
    let mut decision = decide(view, command, context)?;
    // A command that changes nothing needs no record: repeating it is harmless.
    if !decision.changes.is_empty() {
        decision.changes.request = Some(RequestRecord {
            actor: actor.name.to_owned(),
            kind: actor.kind,
            request: request.clone(),
            digest: digest.clone(),
            at: context.now,
            tasks: decision.answer.tasks.clone(),
            applied: decision.answer.applied.clone(),
        });
    }
    Ok(decision)
}

fn dispatch(draft: &mut Draft<'_>, command: &Command) -> Decided<()> {
    match command {
        Command::Create(task) => draft.create(task),
        Command::Update { id, fields, if_version, restart } => {
            draft.update(id, fields, *if_version, *restart)
        }
        Command::Delete { ids } => draft.delete(ids),
        Command::Claim { id: Some(id), lease, capacities, writes } => {
            draft.claim(id, *lease, capacities, writes)
        }
        Command::Claim { id: None, lease, capacities, writes } => {
            draft.claim_next(*lease, capacities, writes)
        }
        Command::Renew { id, lease } => draft.renew(id, *lease),
        Command::Release { ids, note } => draft.release(ids, note.as_deref()),
        Command::Done { ids, result, note, attempt } => {
            draft.end_by_hand(ids, &hand::End { good: true, result, note, attempt: *attempt })
        }
        Command::Fail { ids, result, note, attempt } => {
            draft.end_by_hand(ids, &hand::End { good: false, result, note, attempt: *attempt })
        }
        Command::Skip { ids, reason } => draft.skip(ids, reason.as_ref()),
        Command::Block { ids, reason } => draft.block(ids, reason),
        Command::Unblock { ids } => draft.unblock_by_hand(ids),
        Command::Retry { ids, cascade } => draft.start_again(ids, again::How::Retry, *cascade),
        Command::Reopen { ids, cascade } => draft.start_again(ids, again::How::Reopen, *cascade),
        Command::Cancel { ids, reason } => draft.cancel(ids, reason.as_ref()),
        Command::AddCall { id, call } => draft.add_call_to(id, call),
        Command::AddDependency { id, on } => draft.add_dependency(id, on),
        Command::RemoveDependency { id, on } => draft.remove_dependency(id, on),
        Command::Move { id, parent } => draft.move_task(id, parent.as_ref()),
        Command::Note { id, text } => draft.note(id, text),
        Command::Apply(apply) => draft.apply(apply),
        Command::RenamePlan { from, to } => draft.rename_plan(from, to),
        Command::Undo { revision } => draft.undo(*revision),
        Command::Prune(prune) => draft.prune(prune),
        Command::Signal(signal) => draft.signal(signal),
        Command::DropSignals { name } => draft.drop_signals(name),
        Command::Wake { tasks } => draft.wake(tasks),
        Command::StartRun(start) => draft.start_run(start),
        Command::SettleKeys(request) => draft.settle_keys(request),
        Command::FinishRun { id, exit, counts } => draft.finish_run(id, *exit, counts),
        Command::StopRun { id, now } => draft.stop_run(id, *now),
        Command::Round(round) => draft.round(round),
        Command::Report(report) => draft.report(report),
        Command::RunOne { id, missing_tool } => draft.run_one(id, missing_tool.as_ref()),
        Command::Settle => draft.settle_all(),
        Command::CloseRun { id } => draft.close_run(id),
        Command::ReturnExpired { tasks } => draft.return_some_expired(tasks),
        Command::Approve { ids, answer, args, hash } => {
            let verdict = verdict::ApprovalAnswer { answer, args, hash: hash.as_deref() };
            draft.approve(ids, &verdict)
        }
        Command::ApproveAhead { task, call, hash } => draft.approve_ahead(task, call.as_ref(), hash),
        Command::Reject { ids, reason, rework } => draft.reject(ids, reason.as_deref(), rework.as_deref()),
        Command::ExpireApprovals { tasks } => draft.expire_questions(tasks),
        Command::ToolsKnown { tasks } => draft.tools_known(tasks),
        Command::PolicyKnown { tasks } => draft.policy_known(tasks),
        Command::Idempotent(once) => dispatch(draft, &once.command),
        Command::Mutate(grow) => draft.grow(grow),
        Command::Checklist { scope, items, cleared, liveness_lock, kept } => {
            draft.checklist(scope, items, *cleared, liveness_lock.as_deref(), *kept)
        }
        Command::Import(import) => draft.import(import),
    }
}
