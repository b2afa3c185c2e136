//! Reasons of a task's own for its status.

use std::collections::{BTreeMap, BTreeSet};

use super::explanation::Facts;
use super::reason::Reason;
use super::search::missing;
use crate::command::Amount;
use crate::rules::decide::on_expiry_word;
use crate::rules::means::{self, Means};
use crate::task::record::{CallRecord, Node, RunRecord, StatusKind, TaskRecord, Work};
use crate::task::status::{BlockedReason, CallStatus, Claim, Status, TaskStatus};
use crate::value::paths;
use crate::value::{Key, RunId, TaskId};
use crate::view::read::why_interrupted;
use crate::view::{Query, View, ViewResult, Waits};

/// Most tasks in progress that are compared with a ready task, and most holders that are listed.
const LOOKED_AT: usize = 1_000;
const MAX_NAMED: usize = 5;

pub(super) fn reason_of_state(view: &dyn View, facts: &Facts<'_>, node: &Node) -> ViewResult<Reason> {
    let task = view.task(node.key)?.ok_or_else(|| missing(node.key))?;
    if let Some(wait) = task.body.progress.waiting_for.as_deref()
        && (node.status_kind == StatusKind::InProgress || node.gate.is_to_be_opened())
    {
        let is_over = Waits::Due(facts.now).is_meant(wait);
        return Ok(Reason::Asleep { waiting_for: wait.clone(), is_over });
    }
    Ok(match &task.body.state {
        TaskStatus::Todo => reason_of_ready(view, facts, node, &task)?,
        TaskStatus::InProgress { claim } => reason_of_claim(view, facts, node.key, &task, claim)?,
        TaskStatus::Blocked { reason } => {
            let mut block_reason = reason_of_block(reason);
            if let Reason::Interrupted { call, why } = &mut block_reason {
                *why = why_interrupted(view, node.key, call)?;
            }
            if let Reason::Approval { call, why, expires_at: Some(end), over, .. } = &mut block_reason
                && *end <= facts.now
            {
                let calls = view.calls(node.key)?;
                let call = calls.iter().find(|other| call.as_ref() == Some(&other.id));
                // Questions of the policy are rejected by timeout.
                let is_by_rules = why.is_some();
                *over = Some(if is_by_rules { "reject".to_owned() } else { on_expiry_word(&task, call) });
            }
            block_reason
        }
        TaskStatus::Done => Reason::Done { at: task.body.finished_at, took: task.body.progress.took },
        TaskStatus::Failed { error, .. } => {
            let has_calls = view.calls(node.key)?.iter().any(|call| call.body.attempts > 0);
            Reason::Failed { error: error.clone(), has_calls }
        }
        TaskStatus::Cancelled { reason } => Reason::Cancelled { reason: reason.clone() },
        TaskStatus::Skipped { reason } => Reason::Skipped { reason: reason.clone() },
    })
}

fn reason_of_block(reason: &BlockedReason) -> Reason {
    match reason {
        // The chain continues with the tasks that block this one. None is left only if the store has just changed.
        BlockedReason::Dependency { .. } | BlockedReason::Waiting { .. } => Reason::Moving {},
        BlockedReason::Approval { call, ask, options, expires_at, why, .. } => Reason::Approval {
            call: call.clone(),
            ask: ask.clone(),
            why: why.clone(),
            options: options.clone(),
            expires_at: *expires_at,
            over: None,
        },
        BlockedReason::MissingTool { name } => Reason::MissingTool { name: name.clone() },
        BlockedReason::Interrupted { call } => Reason::Interrupted { call: call.clone(), why: None },
        BlockedReason::Manual { text } => Reason::Blocked { text: text.clone() },
    }
}

/// Formats the reason why a task is blocked.
pub(crate) fn block_text(reason: &BlockedReason) -> String {
    reason_of_block(reason).to_string()
}

fn reason_of_claim(
    view: &dyn View,
    facts: &Facts<'_>,
    key: Key,
    task: &TaskRecord,
    claim: &Claim,
) -> ViewResult<Reason> {
    let (actor, lease_until) = (claim.actor.to_string(), claim.lease_until);
    let Some(run) = claim.run.clone() else {
        return Ok(if claim.is_expired(facts.now) {
            Reason::LeaseEnded { actor, lease_until }
        } else {
            Reason::Held { actor, lease_until }
        });
    };
    if !(facts.is_alive)(&run) {
        return Ok(Reason::RunDied { run });
    }
    let calls = view.calls(key)?;
    let is_running = |call: &&CallRecord| call.body.status == CallStatus::Running;
    let running: Vec<&CallRecord> = calls.iter().filter(is_running).collect();
    let next = calls.iter().find(|call| !call.body.status.is_settled());
    if let ([], Some(next)) = (running.as_slice(), next) {
        let (call, until) = (Some(next.id.clone()), next.body.due);
        return Ok(Reason::Paused { run, call, until, failures: next.body.failures });
    }
    let since = running.iter().filter_map(|call| call.body.started_at).min().or(task.body.started_at);
    let calls = running.into_iter().map(|call| call.id.clone()).collect();
    Ok(Reason::Running { run, actor, calls, since })
}

fn reason_of_ready(view: &dyn View, facts: &Facts<'_>, node: &Node, task: &TaskRecord) -> ViewResult<Reason> {
    if !node.is_ready() {
        return Ok(Reason::Moving {});
    }
    match node.work {
        Work::Manual => {
            let occupied = occupied(view, facts, task)?;
            let unclaimed = || Reason::Unclaimed { assignee: task.spec.assignee.clone() };
            return Ok(occupied.map_or_else(unclaimed, |(names, by)| Reason::Occupied { names, by }));
        }
        Work::Automatic => return Ok(Reason::Moving {}),
        Work::Calls => {}
    }
    let runs: Vec<RunRecord> =
        view.open_runs()?.into_iter().filter(|run| (facts.is_alive)(&run.id)).collect();
    if let Some(run) = runs.iter().find(|run| run.ending.contains_key(&task.id)) {
        return Ok(Reason::StillEnding { run: run.id.clone() });
    }
    let capacities = means::capacities(view, &facts.means.capacities)?;
    if let Some(reason) = lacking(&view.calls(node.key)?, task, facts.means, &capacities) {
        return Ok(reason);
    }
    if let Some((names, by)) = occupied(view, facts, task)? {
        return Ok(Reason::Occupied { names, by });
    }
    let mut taker: Option<RunId> = None;
    for run in runs {
        if taker.is_none() && is_in_scope(view, node.key, &run.scope)? {
            taker = Some(run.id);
        }
    }
    Ok(Reason::ReadyForRun { run: taker })
}

/// Returns the first requirement of a ready task that no run here meets.
pub(super) fn lacking(
    calls: &[CallRecord],
    task: &TaskRecord,
    means: &Means,
    capacities: &BTreeMap<String, u32>,
) -> Option<Reason> {
    let left = calls.iter().filter(|call| !call.body.status.is_settled());
    if let Some(name) = means.missing_tool(left) {
        return Some(Reason::MissingTool { name: name.to_owned() });
    }
    let too_much = means::too_much(&task.spec, capacities);
    too_much.map(|(resource, Amount { units: needs, of: there_is })| Reason::TooMuch {
        resource,
        needs,
        there_is,
    })
}

/// Returns whether a run restricted to these selectors takes a task.
///
/// # Errors
/// The store cannot be read.
pub fn is_in_scope(view: &dyn View, key: Key, scope: &[String]) -> ViewResult<bool> {
    let mut above = Some(key);
    while let Some(key) = above {
        let Some(task) = view.task(key)? else { return Ok(false) };
        let is_meant = |word: &String| match word.split_once(':') {
            Some(("plan", name)) => task.plan.as_deref() == Some(name),
            Some(("label", name)) => task.spec.labels.iter().any(|label| label == name),
            _ => task.id.as_str().starts_with(word.as_str()),
        };
        if scope.is_empty() || scope.iter().any(is_meant) {
            return Ok(true);
        }
        above = view.node(key)?.and_then(|node| node.parent);
    }
    Ok(false)
}

/// Returns the resources and paths that a ready task needs and other tasks hold, with some of the holders.
fn occupied(
    view: &dyn View,
    facts: &Facts<'_>,
    task: &TaskRecord,
) -> ViewResult<Option<(Vec<String>, Vec<TaskId>)>> {
    let spec = &task.spec;
    if spec.resources.is_empty() && spec.writes.is_empty() {
        return Ok(None);
    }
    let writes = paths::written(&spec.writes);
    let (mut used, mut holders, mut names) = (BTreeMap::<&String, u32>::new(), Vec::new(), BTreeSet::new());
    let query = Query { status: vec![Status::InProgress], limit: LOOKED_AT, ..Query::default() };
    for key in view.find(&query)? {
        let Some(other) = view.task(key)? else { continue };
        for (name, units) in &other.spec.resources {
            if let Some((name, _)) = spec.resources.get_key_value(name) {
                *used.entry(name).or_default() += units;
                holders.push((name.clone(), other.id.clone()));
            }
        }
        let held = crate::rules::decide::held_paths(&other);
        for path in writes.iter().filter(|path| held.iter().any(|other| paths::overlap(path, other))) {
            names.insert(path.clone());
            holders.push((path.clone(), other.id.clone()));
        }
    }
    let capacities = means::capacities(view, &facts.means.capacities)?;
    for (name, used) in used {
        let wanted = spec.resources.get(name).copied().unwrap_or(1);
        if used + wanted > means::capacity(&capacities, name) {
            names.insert(name.clone());
        }
    }
    let mut by: Vec<TaskId> =
        holders.into_iter().filter(|(name, _)| names.contains(name)).map(|(_, id)| id).collect();
    by.dedup();
    by.truncate(MAX_NAMED);
    Ok((!names.is_empty()).then(|| (names.into_iter().collect(), by)))
}
