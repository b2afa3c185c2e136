//! A short status of the plan with the next steps. The library gathers it; here its steps become calls of this
//! server's tools.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taskpawl::digest::{
    Action as Deed, Asleep, Digest, Failures, Held, Listed, NextAction, OnHold, PlanGoal, Ready, RunNow,
};
use taskpawl::model::insight::{ReadyList, UnrunnableTask, unrunnable_task};
use taskpawl::model::rules::Means;
use taskpawl::model::task::{BlockedReason, Node, Status, Task, TaskStatus, Work};
use taskpawl::model::value::Selector;
use taskpawl::model::value::TaskId;
use taskpawl::model::value::format_time;
use taskpawl::model::view::Query;
use taskpawl::{Error, Manager, RunState, Taskpawl};

use super::actions::{Action, restricted};
use super::answer::Answer;
use super::brief;
use super::caller::Caller;
use super::repair::repair;

/// Maximum number of tasks listed in each group. The counts include all.
const MAX_NAMED: usize = 5;

/// Maximum number of tasks blocked for a reason of their own that are examined.
const MAX_ON_HOLD: usize = 1_000;

/// Maximum length of a text in a digest, in characters.
const CHARS: usize = 120;

/// Maximum length of the descriptions of all listed plans, in characters.
const GOAL_CHARS: usize = 400;

/// Returns the status of the plan for the actor of `plans`. `means` are the tools and resources of this server's
/// runs.
pub(super) fn digest(plans: &Taskpawl, means: &Means) -> Result<Answer, Error> {
    let digest = Digest::gather(plans.manager(), MAX_NAMED, means)?;
    let hint = hint(&digest);
    let live = !digest.runs.is_empty();
    Ok(Answer::new(json!({"you": digest.actor, "counts": brief::counts(&digest.counts)}))
        .with("plans", goals(&digest.plans))
        .with("claimedByYou", list(&digest.mine, held))
        .with("heldByOthers", list(&digest.held, held_by_other))
        .with("runs", digest.runs.iter().map(brief::run).collect())
        .with("lastRun", digest.last_run.as_ref().filter(|_| !live).map_or(Value::Null, brief::run))
        .with("readyForRuns", list(&digest.ready_to_run, ready))
        .with("forNobody", list(&digest.unrunnable, untaken))
        .with("readyByHand", list(&digest.ready, ready))
        .with("waitingFor", list(&digest.asleep, asleep))
        .with("onHold", list(&digest.on_hold, on_hold))
        .with("failed", list(&digest.failed, failures))
        .with("more", more(&digest))
        .with("hint", json!(hint))
        .next(next_actions(plans.manager(), &digest)?))
}

/// Tells that there is nothing to do, or nothing left.
fn hint(digest: &Digest) -> Option<&'static str> {
    let is_open = |status: &Status| !matches!(status, Status::Done | Status::Skipped);
    match digest.total {
        0 => Some("the plan is empty"),
        _ if digest.counts.keys().any(is_open) => None,
        _ => Some("nothing is left to do"),
    }
}

/// Returns the calls that start the ready tasks of a scope.
pub(super) fn after(ready: &ReadyList, only: &[Selector]) -> Vec<Action> {
    let run = (ready.total_for_runs > 0).then(|| Action::call("run_ready", restricted(only, json!({}))));
    let claim = (ready.total_by_hand > 0)
        .then(|| Action::call("ready_list", restricted(only, json!({"claim": true}))));
    run.into_iter().chain(claim).chain(to_look_at(&ready.unrunnable)).collect()
}

/// Returns the call that starts a task; `None` if it is not ready.
pub(super) fn begin(caller: &Caller, id: &TaskId) -> Result<Option<Action>, Error> {
    let means = &caller.means;
    caller.reads().read(|view| {
        let node = view.key(id.as_str())?.map(|key| view.node(key)).transpose()?.flatten();
        let Some(node) = node.filter(Node::is_ready) else { return Ok(None) };
        Ok(match node.work {
            Work::Calls if unrunnable_task(view, &node, means)?.is_some() => {
                Some(Action::call("task_get", json!({"id": id})))
            }
            Work::Calls => Some(Action::call("run_ready", json!({"only": [id]}))),
            Work::Manual => Some(Action::call("task_update", json!({"id": id, "action": "claim"}))),
            Work::Automatic => None,
        })
    })
}

/// Returns calls that explain why no run of this server can start some tasks.
pub(super) fn to_look_at(nobody: &[UnrunnableTask]) -> impl Iterator<Item = Action> {
    nobody.iter().take(2).map(|task| Action::call("task_get", json!({"id": task.task})))
}

fn list<T>(list: &Listed<T>, each: impl Fn(&T) -> Value) -> Value {
    list.items.iter().map(each).collect()
}

/// Returns the names of the lists that were cut.
fn more(digest: &Digest) -> Value {
    let lists = [
        ("plans", digest.plans.truncated),
        ("claimedByYou", digest.mine.truncated),
        ("heldByOthers", digest.held.truncated),
        ("readyForRuns", digest.ready_to_run.truncated),
        ("forNobody", digest.unrunnable.truncated),
        ("readyByHand", digest.ready.truncated),
        ("waitingFor", digest.asleep.truncated),
        ("onHold", digest.on_hold.truncated),
        ("failed", digest.failed.truncated),
    ];
    lists.into_iter().filter(|(_, is_longer)| *is_longer).map(|(name, _)| name).collect()
}

/// Returns the names of the plans, with what they are for: a model that lost its context has nothing else to learn it
/// from.
fn goals(plans: &Listed<PlanGoal>) -> Value {
    let most = GOAL_CHARS / plans.items.len().max(1);
    list(plans, |plan| {
        let mut brief = json!({"name": plan.name});
        if let Some(text) = &plan.description {
            brief["description"] = json!(brief::cut(text, most));
        }
        brief
    })
}

fn held(held: &Held) -> Value {
    let mut brief = json!({"id": held.task, "name": brief::cut(&held.name, CHARS), "attempt": held.attempt});
    if let Some(end) = held.lease_until {
        brief["until"] = json!(format_time(end));
    }
    if held.expired {
        brief["claimEnded"] = json!("expired");
    }
    if let Some(note) = &held.note {
        brief["note"] = json!(brief::cut(note, CHARS));
    }
    brief
}

fn held_by_other(other: &Held) -> Value {
    let mut brief = held(other);
    brief["by"] = json!(other.actor);
    brief
}

fn ready(ready: &Ready) -> Value {
    let mut brief = json!({"id": ready.task, "name": brief::cut(&ready.name, CHARS)});
    if let Some(assignee) = &ready.assignee {
        brief["assignee"] = json!(assignee);
    }
    brief
}

fn untaken(task: &UnrunnableTask) -> Value {
    let mut brief = json!(task);
    brief["name"] = json!(brief::cut(&task.name, CHARS));
    brief
}

fn asleep(task: &Asleep) -> Value {
    json!({"id": task.task, "name": brief::cut(&task.name, CHARS), "waitingFor": task.waiting_for})
}

fn on_hold(held: &OnHold) -> Value {
    json!({"id": held.task, "name": brief::cut(&held.name, CHARS), "blockedBy": brief::reason(&held.reason)})
}

fn failures(group: &Failures) -> Value {
    let error = brief::cut(&group.error, CHARS);
    let mut brief = json!({"id": group.task, "class": group.class, "error": error});
    if !group.tool.is_empty() {
        brief["tool"] = json!(group.tool);
    }
    if group.count > 1 {
        brief["likeIt"] = json!(group.count - 1);
    }
    brief
}

/// Returns the next steps as calls.
fn next_actions(manager: &Manager, digest: &Digest) -> Result<Vec<Action>, Error> {
    if digest.total == 0 {
        let plan = json!({"tasks": [{"id": "first", "name": "First step"}]});
        return Ok(vec![Action::call("plan_write", json!({"plan": plan}))]);
    }
    // Without a terminal, waiting for a run is possible only through this server, so the step is added here.
    let live = digest.runs.iter().filter(|run| run.state == RunState::Running).take(1);
    let wait = live.map(|run: &RunNow| json!({"run_id": run.run, "wait_s": 45}));
    let mut actions = Vec::new();
    for next in &digest.next_actions {
        let failed = digest.failed.items.first();
        if next.action == Deed::Look && failed.map(|failed| &failed.task) == next.task.as_ref() {
            // A failed task is mended before it is looked at again: the list of failures has its error.
            actions.extend(mend(manager, digest)?);
        }
        actions.extend(translated(manager, next, digest)?);
    }
    actions.extend(wait.map(|arguments| Action::call("run_ready", arguments)));
    Ok(actions)
}

/// Returns the call that mends the first failed task.
fn mend(manager: &Manager, digest: &Digest) -> Result<Option<Action>, Error> {
    match digest.failed.items.first() {
        Some(failed) => Ok(repair(&manager.get(failed.task.as_str())?)),
        None => Ok(None),
    }
}

fn translated(manager: &Manager, next: &NextAction, digest: &Digest) -> Result<Option<Action>, Error> {
    let look = || next.task.as_ref().map(|id| Action::call("task_get", json!({"id": id})));
    Ok(match next.action {
        Deed::Report => Some(Action::call("task_update", json!({"id": next.task, "action": "done"}))),
        Deed::Decide | Deed::Look => look(),
        Deed::Approve => Some(Action::Person(next.command.clone())),
        Deed::Retry => mend(manager, digest)?,
        // Claims the first free task in the same order: another actor may claim the named one first.
        Deed::Claim => Some(Action::call("ready_list", json!({"claim": true}))),
        Deed::Release => Action::of(next.command.advice()).into_iter().next(),
        Deed::Run => Some(Action::call("run_ready", json!({}))),
        // Steps that a later version of the library adds have no call here.
        _ => None,
    })
}

/// Returns some of a scope's tasks whose call was interrupted. They stay blocked until an actor that knows the call's
/// end decides.
pub(super) fn interrupted(manager: &Manager, only: &[Selector]) -> Result<Vec<String>, Error> {
    let ids: Vec<String> = manager.read(|view| {
        let mut ids = Vec::new();
        for key in view.on_hold(MAX_ON_HOLD)? {
            let Some(task) = view.task(key)? else { continue };
            if matches!(task.body.state.blocked_reason(), Some(BlockedReason::Interrupted { .. })) {
                ids.push(task.id.to_string());
            }
        }
        Ok(ids)
    })?;
    let is_all = only.is_empty() || ids.is_empty();
    let inside = if is_all { Vec::new() } else { manager.select(only, &[Status::Blocked])? };
    Ok(ids.into_iter().filter(|id| is_all || inside.contains(id)).take(MAX_NAMED).collect())
}

fn with_status(manager: &Manager, status: Status) -> Result<Vec<Task>, Error> {
    let query = Query { status: vec![status], limit: MAX_NAMED, ..Query::default() };
    Ok(manager.list(&query)?.tasks)
}

/// The status of a scope: its counts, and some of the tasks that need attention.
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub(super) total: u64,
    pub(super) finished: u64,
    pub(super) counts: BTreeMap<Status, u64>,
    pub(super) running: Vec<String>,
    pub(super) failed: Vec<Task>,
}

/// Returns some of the tasks that runs hold, restricted to `ids`. Tasks that are claimed by hand do not count as
/// running.
fn held_by_runs(manager: &Manager, ids: Option<&[String]>) -> Result<Vec<String>, Error> {
    manager.read(|view| {
        let mut held = Vec::new();
        for key in view.find(&Query { status: vec![Status::InProgress], ..Query::default() })? {
            let Some(task) = view.task(key)? else { continue };
            let is_meant = ids.is_none_or(|ids| ids.iter().any(|id| id == task.id.as_str()));
            if is_meant && matches!(&task.body.state, TaskStatus::InProgress { claim } if claim.run.is_some())
            {
                held.push(task.id.to_string());
            }
            if held.len() == MAX_NAMED {
                break;
            }
        }
        Ok(held)
    })
}

/// Returns the status of the selected tasks.
pub(super) fn standing(manager: &Manager, only: &[Selector]) -> Result<Standing, Error> {
    let mut standing = Standing::default();
    for status in Status::ALL.iter().copied() {
        // Without a scope the store's counters have the answer.
        let ids = if only.is_empty() { Vec::new() } else { manager.select(only, &[status])? };
        let count = if only.is_empty() {
            manager.counts()?.get(&status).copied().unwrap_or(0)
        } else {
            ids.len() as u64
        };
        standing.total += count;
        standing.finished += if status.is_finished() { count } else { 0 };
        if count > 0 {
            standing.counts.insert(status, count);
        }
        if status == Status::Failed && count > 0 {
            standing.failed = if only.is_empty() {
                with_status(manager, status)?
            } else {
                ids.iter().take(MAX_NAMED).map(|id| manager.get(id)).collect::<Result<_, _>>()?
            };
        }
        if status == Status::InProgress && count > 0 {
            standing.running = held_by_runs(manager, (!only.is_empty()).then_some(ids.as_slice()))?;
        }
    }
    Ok(standing)
}
