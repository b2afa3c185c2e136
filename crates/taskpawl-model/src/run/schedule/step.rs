//! One step of the scheduler.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::{Action, Commit, Event, State, Stop, UnderWay, Written};
use crate::command::{CallEnd, Needs, Paused, Report, StartedCall};
use crate::rules::order::Order;
use crate::value::{Key, SharedText};

/// Applies one event and returns the resulting actions, in order.
pub fn step(state: &mut State, event: Event) -> Vec<Action> {
    let mut actions = Vec::new();
    match event {
        Event::Ready(nodes) => {
            // A ready task that was waiting with a grant starts over: the task may have changed, and with it its needs.
            for node in &nodes {
                // A claim under way keeps its entry: the answer to its commit decides about it.
                unpark(state, node.key);
            }
            state.add_ready(nodes);
        }
        Event::Ranked(ranks) => state.late_ranks.extend(ranks),
        Event::Ended(report) => ended(state, *report),
        Event::Committed(written) => committed(state, *written, &mut actions),
        Event::Revoked(key) => revoke(state, key, &mut actions),
        Event::Lost(calls) => calls.into_iter().for_each(|call| report_unstarted(state, call)),
        Event::Found(key, grant) => state.waiting_set.found(key, grant),
        Event::OthersWrote => state.waiting_set.others_wrote(),
        Event::Due(now) => state.waiting_set.due(now),
        Event::PlanEnded(plan) => end_plan(state, plan),
        Event::EndEarly => state.stop = state.stop.max(Stop::Early),
        Event::Stop => stop(state, &mut actions),
        Event::MoreMayCome(more) => state.more_may_come = more,
        Event::Settled => {
            // Only `Settled` commits, so that results which arrive together share one sync of the disk.
            commit(state, &mut actions);
            finish(state, &mut actions);
            return actions;
        }
    }
    start_calls(state, &mut actions);
    state.waiting_set.sweep();
    actions
}

fn unpark(state: &mut State, key: Key) {
    let is_under_way =
        state.commit.as_ref().is_some_and(|commit| commit.claims.iter().any(|order| order.key == key));
    if state.waiting_set.has_limited() && !is_under_way && !state.running.contains_key(&key) {
        state.waiting_set.forget(key);
    }
}

fn ended(state: &mut State, mut report: Report) {
    let key = report.task;
    let mut plan: Option<SharedText> = None;
    if let Some(running) = state.running.get_mut(&key) {
        if let Some(at) = running.calls.iter().position(|(call, _)| *call == report.call)
            && let (_, Some(tool)) = running.calls.remove(at)
        {
            state.waiting_set.free_tool(&tool);
        }
        plan.clone_from(&running.plan);
        if running.calls.is_empty() {
            state.running.remove(&key);
            state.revoked.remove(&key);
            let_go(state, key);
        }
    }
    state.running_calls -= 1;
    report.go_on =
        state.stop == Stop::No && plan.is_none_or(|plan| !state.ended_plans.contains(plan.as_str()));
    state.reports.push(report);
}

/// Releases the resources of a task whose last call may have ended, so that waiting tasks can take them.
fn let_go(state: &mut State, key: Key) {
    // A started call without a slot belongs to the same claim and still needs the resources.
    if state.waiting_set.has_limited() && !state.started.iter().any(|call| call.key == key) {
        state.waiting_set.let_go(key);
    }
}

fn committed(state: &mut State, written: Written, actions: &mut Vec<Action>) {
    let Written { started, ready, needs, paused } = written;
    let under_way = state.commit.take().unwrap_or_default();
    // Ready tasks come first: `need` below moves a task from the ready queue to the waiting set.
    state.add_ready(ready);
    if state.waiting_set.has_limited() {
        keep_or_forget(state, &under_way, &started, &needs, &paused);
    }
    for key in &under_way.reported {
        state.waiting_set.unpause(*key);
    }
    for call in &started {
        state.waiting_set.take_tool(&call.call.spec.tool_name);
    }
    state.started.extend(started);
    for paused in paused {
        // Parallel calls of a task may wait for a slot while other calls of it run.
        let has_calls = has_calls(state, paused.key);
        let has_ended = paused.plan.as_ref().is_some_and(|plan| state.ended_plans.contains(plan.as_str()));
        if !has_ended {
            state.waiting_set.pause(paused, has_calls);
        } else if !has_calls {
            state.releases.push((paused.key, paused.attempt));
        }
    }
    for (key, needs) in needs {
        need(state, &under_way, key, needs, actions);
    }
}

fn has_calls(state: &State, key: Key) -> bool {
    state.running.contains_key(&key) || state.started.iter().any(|call| call.key == key)
}

/// Keeps the resources of resumed tasks and frees those of tasks that ended or were not claimed.
fn keep_or_forget(
    state: &mut State,
    under_way: &UnderWay,
    started: &[StartedCall],
    needs: &[(Key, Needs)],
    paused: &[Paused],
) {
    let started: BTreeSet<Key> = started.iter().chain(&state.started).map(|call| call.key).collect();
    let waiting: BTreeSet<Key> =
        needs.iter().map(|(key, _)| *key).chain(paused.iter().map(|paused| paused.key)).collect();
    for key in &under_way.reported {
        if started.contains(key) {
            state.waiting_set.keep(*key);
        } else if !waiting.contains(key) && !state.running.contains_key(key) && !is_reported(state, *key) {
            state.waiting_set.forget(*key);
        }
    }
    let claimed = under_way.claims.iter().map(|order| order.key);
    for key in claimed.chain(under_way.resumes.iter().map(|paused| paused.key)) {
        if !started.contains(&key) && !waiting.contains(&key) {
            state.waiting_set.forget(key);
        }
    }
}

/// Returns whether a call of a task has ended and its result is not in the store yet.
fn is_reported(state: &State, key: Key) -> bool {
    state.reports.iter().any(|report| report.task == key)
}

/// Handles a task that was not claimed or resumed because it needs something first.
fn need(state: &mut State, under_way: &UnderWay, key: Key, needs: Needs, actions: &mut Vec<Action>) {
    if let Some(paused) = under_way.resumes.iter().find(|paused| paused.key == key) {
        if needs.is_held_elsewhere {
            // The wait has no known end, so the task is released and another run may take it.
            state.waiting_set.forget(key);
            state.releases.push((key, paused.attempt));
        } else {
            state.waiting_set.pause_again(paused.clone());
        }
        return;
    }
    let claimed = under_way.claims.iter().find(|order| order.key == key).copied();
    let Some(order) = state.waiting.get(&key).copied().or(claimed) else { return };
    // Nothing is missing: the store only had no slot left. The task goes back to the ready queue.
    if needs == Needs::default() {
        state.add_order(order);
        return;
    }
    if let Some(order) = state.waiting.remove(&key) {
        state.ready.remove(&order);
    }
    if let Some(inquiry) = state.waiting_set.park(order, needs) {
        actions.push(Action::Find(key, inquiry));
    }
}

fn revoke(state: &mut State, key: Key, actions: &mut Vec<Action>) {
    let (lost, kept): (VecDeque<StartedCall>, _) =
        std::mem::take(&mut state.started).into_iter().partition(|call| call.key == key);
    state.started = kept;
    for call in lost {
        give_up(state, call);
    }
    if state.running.contains_key(&key) {
        state.revoked.insert(key);
        actions.push(Action::Kill(key));
    } else {
        unpark(state, key);
        // Without this the run would wait for the end of a pause that it no longer owns.
        state.waiting_set.unpause(key);
    }
}

fn give_up(state: &mut State, call: StartedCall) {
    state.waiting_set.free_tool(&call.call.spec.tool_name);
    report_unstarted(state, call);
}

/// Reports a call that the store has recorded as started and that will never start.
fn report_unstarted(state: &mut State, call: StartedCall) {
    // `true` records that the tool did not run, so the call may run again without the risk of doing its work twice.
    let end = CallEnd::interrupted(true);
    state.reports.push(Report::new(call.key, call.attempt, call.call.id, end));
}

fn stop(state: &mut State, actions: &mut Vec<Action>) {
    state.stop = if state.stop < Stop::Soft { Stop::Soft } else { Stop::Hard };
    if state.stop == Stop::Hard {
        actions.push(Action::KillAll);
    }
}

fn end_plan(state: &mut State, plan: String) {
    let (ended, kept): (VecDeque<StartedCall>, _) = std::mem::take(&mut state.started)
        .into_iter()
        .partition(|call| call.plan.as_deref() == Some(plan.as_str()));
    state.started = kept;
    for call in ended {
        give_back(state, call);
    }
    give_back_paused(state, |paused| paused.plan.as_deref() == Some(plan.as_str()));
    Arc::make_mut(&mut state.ended_plans).insert(plan);
}

fn start_calls(state: &mut State, actions: &mut Vec<Action>) {
    if state.stop != Stop::No {
        for call in std::mem::take(&mut state.started) {
            give_back(state, call);
        }
        return;
    }
    while state.running_calls < state.jobs
        && let Some(call) = state.take_started()
    {
        if may_start(state, &call) {
            start(state, call, actions);
        } else {
            give_back(state, call);
        }
    }
}

fn may_start(state: &mut State, call: &StartedCall) -> bool {
    let Some(plan) = &call.plan else { return true };
    if state.ended_plans.contains(plan.as_str()) {
        return false;
    }
    match state.plan_calls_left.get_mut(plan.as_str()) {
        Some(0) => false,
        Some(left) => {
            *left -= 1;
            true
        }
        None => true,
    }
}

fn start(state: &mut State, call: StartedCall, actions: &mut Vec<Action>) {
    let tool = &call.call.spec.tool_name;
    let tool = state.waiting_set.has_limit(tool).then(|| tool.clone());
    let running = state.running.entry(call.key).or_default();
    running.calls.push((call.call.id.clone(), tool));
    if running.plan.is_none() {
        running.plan.clone_from(&call.plan);
    }
    state.running_calls += 1;
    if let Some(left) = &mut state.calls_left {
        *left = left.saturating_sub(1);
    }
    actions.push(Action::Start(Box::new(call)));
}

/// Returns a call that was recorded as started and never ran. Its task is released, unless other calls of it run.
fn give_back(state: &mut State, call: StartedCall) {
    // Releasing the task would take it from the calls that still run, so only this call is reported.
    if state.running.contains_key(&call.key) && !state.revoked.contains(&call.key) {
        give_up(state, call);
        return;
    }
    state.waiting_set.free_tool(&call.call.spec.tool_name);
    if !state.releases.contains(&(call.key, call.attempt)) {
        state.releases.push((call.key, call.attempt));
    }
}

/// Releases paused tasks. Those with running calls only lose their pause: they are released when the calls have ended.
fn give_back_paused(state: &mut State, which: impl Fn(&Paused) -> bool) {
    let State { waiting_set, running, releases, .. } = state;
    releases.extend(waiting_set.take_paused(|paused| which(paused), |key| running.contains_key(&key)));
}

fn commit(state: &mut State, actions: &mut Vec<Action>) {
    if state.commit.is_some() {
        return;
    }
    if state.stop != Stop::No {
        give_back_paused(state, |_| true);
    }
    let places = state.free_places();
    // Paused tasks come before new claims: they are claimed already.
    let resumes = state.waiting_set.take_resumable(places);
    let claims = take_claims(state, places - resumes.len());
    let commit = Commit {
        reports: std::mem::take(&mut state.reports),
        releases: std::mem::take(&mut state.releases),
        grants: grants(state, &claims),
        claims: claims.iter().map(|order| order.key).collect(),
        resumes: resumes.iter().map(|paused| (paused.key, paused.attempt)).collect(),
        places,
        tool_places: state.waiting_set.tool_places(),
        // The store cannot tell a task that still has calls to end here from others, so it must not claim any.
        takes_new: state.revoked.is_empty(),
        ended_plans: Arc::clone(&state.ended_plans),
    };
    let is_empty = commit.reports.is_empty() && commit.releases.is_empty();
    if !(is_empty && commit.claims.is_empty() && commit.resumes.is_empty()) {
        // Without limits and pauses nothing reads these keys.
        let reported = if state.waiting_set.is_empty() { Vec::new() } else { reported(&commit) };
        state.commit = Some(UnderWay { claims, resumes, reported });
        actions.push(Action::Commit(Box::new(commit)));
    }
}

/// Takes tasks to claim, first those that were granted their needs.
fn take_claims(state: &mut State, most: usize) -> Vec<Order> {
    let State { waiting_set, running, .. } = &mut *state;
    let mut claims = waiting_set.take_claimable(most, |key| !running.contains_key(&key));
    claims.extend(state.take_ready(most - claims.len()));
    claims
}

fn grants(state: &State, claims: &[Order]) -> BTreeMap<Key, crate::command::Grant> {
    claims.iter().filter_map(|order| Some((order.key, state.waiting_set.grant(order.key)?))).collect()
}

fn reported(commit: &Commit) -> Vec<Key> {
    let reported = commit.reports.iter().map(|report| report.task);
    reported.chain(commit.releases.iter().map(|(key, _)| *key)).collect()
}

fn finish(state: &mut State, actions: &mut Vec<Action>) {
    let nothing_left = state.stop != Stop::No || (state.has_nothing_to_claim() && !state.more_may_come);
    if state.is_idle() && nothing_left && !state.finished {
        state.finished = true;
        actions.push(Action::Finish);
    }
}
