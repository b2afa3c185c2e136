//! What a run does about tasks that a run left behind which is no longer alive.

use taskpawl_manager::{Error, Manager};
use taskpawl_model::{
    CallEnd, CallId, CallStatus, Command, Key, Query, Report, Round, RunId, Status, TaskState, Timestamp,
    View, ViewResult,
};
use taskpawl_tools::Registry;

use crate::engine::Engine;
use crate::liveness;

/// A task that a run held when it ended.
struct Orphan {
    run: RunId,
    task: Key,
    attempt: u32,
    /// The calls that were running, each with whether it may be started again.
    calls: Vec<(CallId, bool)>,
}

/// Gives the tasks of dead runs back: a call whose end nobody knows is started again only where that is safe; else its task is
/// blocked until somebody decides. Gives back, too, what agents held whose leases have ended.
pub(crate) fn recover(engine: &Engine) -> Result<(), Error> {
    let now = engine.manager.source().now();
    let (orphans, any_expired) =
        engine.manager.read(|view| Ok((find_orphans(engine, view)?, has_expired(view, now)?)))?;
    for orphan in orphans {
        give_back(&engine.manager, orphan)?;
    }
    if any_expired {
        engine.manager.command(Command::ReturnExpired)?;
    }
    Ok(())
}

fn has_expired(view: &dyn View, now: Timestamp) -> ViewResult<bool> {
    for key in view.find(&Query { status: vec![Status::InProgress], ..Query::default() })? {
        if let Some(task) = view.task(key)?
            && let TaskState::InProgress { claim } = task.body.state
            && claim.lease_until.is_some_and(|end| end <= now)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn find_orphans(engine: &Engine, view: &dyn View) -> ViewResult<Vec<Orphan>> {
    let mut orphans = Vec::new();
    for (key, run) in held_by_runs(view)? {
        if liveness::is_alive(&engine.project.files, &run) {
            continue;
        }
        let attempt = view.task(key)?.map_or(0, |task| task.body.attempt);
        let running = view.calls(key)?.into_iter().filter(|call| call.body.status == CallStatus::Running);
        let calls = running.map(|call| {
            let repeatable = call.spec.idempotent.unwrap_or_else(|| is_repeatable(&engine.tools, &call));
            (call.id, repeatable)
        });
        orphans.push(Orphan { calls: calls.collect(), run, task: key, attempt });
    }
    Ok(orphans)
}

/// Returns the tasks that runs hold, with the runs.
fn held_by_runs(view: &dyn View) -> ViewResult<Vec<(Key, RunId)>> {
    let mut held = Vec::new();
    for key in view.find(&Query { status: vec![Status::InProgress], ..Query::default() })? {
        if let Some(task) = view.task(key)?
            && let TaskState::InProgress { claim } = task.body.state
            && let Some(run) = claim.run
        {
            held.push((key, run));
        }
    }
    Ok(held)
}

fn is_repeatable(tools: &Registry, call: &taskpawl_model::CallRecord) -> bool {
    let args = serde_json::Value::Object(call.spec.args.clone());
    tools.get(&call.spec.tool_name).is_some_and(|tool| tool.tool().is_repeatable(&args))
}

fn give_back(manager: &Manager, orphan: Orphan) -> Result<(), Error> {
    let Orphan { run, task, attempt, calls } = orphan;
    // A task without a running call is nobody's either: a run waits for as long as another seems to hold something.
    let releases = if calls.is_empty() { vec![(task, attempt)] } else { Vec::new() };
    let report = |(call, repeatable)| {
        let end = CallEnd::Interrupted { repeatable };
        Report { task, attempt, call, end, usage: None, go_on: false }
    };
    // Where another run was faster, the task is taken care of, and the round leaves this out.
    let round = Round { reports: calls.into_iter().map(report).collect(), releases, ..Round::default() };
    manager.clone().with_run(run).command(Command::Round(Box::new(round)))?;
    Ok(())
}
