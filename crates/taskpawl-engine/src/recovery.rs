//! What a run does about tasks that a run left behind which is no longer alive.

use taskpawl_manager::{Error, Manager};
use taskpawl_model::{
    CallEnd, CallStatus, Command, Key, Query, Report, RunId, Status, TaskState, View, ViewResult,
};
use taskpawl_tools::Registry;

use crate::engine::Engine;
use crate::liveness;

/// A call that was running when its run ended.
struct Orphan {
    run: RunId,
    task: Key,
    attempt: u32,
    call: taskpawl_model::CallId,
    repeatable: bool,
}

/// Gives the tasks of dead runs back: a call whose end nobody knows is started again only where that is safe; else its task is
/// blocked until somebody decides.
pub(crate) fn recover(engine: &Engine) -> Result<(), Error> {
    let orphans = engine.manager.read(|view| Ok(find_orphans(engine, view)?))?;
    for orphan in orphans {
        give_back(&engine.manager, orphan)?;
    }
    Ok(())
}

fn find_orphans(engine: &Engine, view: &dyn View) -> ViewResult<Vec<Orphan>> {
    let mut orphans = Vec::new();
    for (key, run) in held_by_runs(view)? {
        if liveness::is_alive(&engine.project.files, &run) {
            continue;
        }
        let attempt = view.task(key)?.map_or(0, |task| task.body.attempt);
        let running = view.calls(key)?.into_iter().filter(|call| call.body.status == CallStatus::Running);
        for call in running {
            let repeatable = call.spec.idempotent.unwrap_or_else(|| is_repeatable(&engine.tools, &call));
            orphans.push(Orphan { run: run.clone(), task: key, attempt, call: call.id, repeatable });
        }
    }
    Ok(orphans)
}

/// Returns the tasks that runs hold, with the runs.
pub(crate) fn held_by_runs(view: &dyn View) -> ViewResult<Vec<(Key, RunId)>> {
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
    let Orphan { run, task, attempt, call, repeatable } = orphan;
    let end = CallEnd::Interrupted { repeatable };
    let report = Report { task, attempt, call, end, usage: None, go_on: false };
    match manager.clone().with_run(run).command(Command::Report(Box::new(report))) {
        // Another run was faster: the task is taken care of.
        Ok(_) | Err(Error::Refused(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
