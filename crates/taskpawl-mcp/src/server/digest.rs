//! Where the plan stands, in a few lines, and what to do next.

use serde_json::{Value, json};
use taskpawl::model::{Means, Query, Selector, Status, Task, read_task};
use taskpawl::{Error, Manager, RunFilter, RunState};

use super::actions::Action;
use super::answer::Answer;
use super::brief;

/// How many of each kind are named; the counts have all.
const NAMED: usize = 5;

/// How many of the latest runs are looked at.
const RUNS: usize = 10;

/// Returns where everything stands, as the actor of `manager` sees it.
pub(super) fn digest(manager: &Manager) -> Result<Answer, Error> {
    let mine = mine(manager)?;
    let ready = manager.explain_ready(&[], NAMED, &Means::default())?;
    let failed = with_status(manager, Status::Failed)?;
    let waiting = manager.approval_requests(&[])?;
    let runs = manager.runs(&RunFilter { limit: RUNS })?;
    let live: Vec<_> = runs.iter().filter(|run| manager.run_state(run) == RunState::Running).collect();
    let named = |tasks: &[taskpawl::model::ReadyTask]| -> Vec<Value> {
        tasks.iter().map(|task| json!({"id": task.task, "name": brief::cut(&task.name, 80)})).collect()
    };
    let counts = manager.counts()?;
    let counts: serde_json::Map<String, Value> = counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(status, count)| (status.to_string(), json!(count)))
        .collect();
    let mut actions: Vec<Action> =
        mine.iter().take(1).map(|task| Action::call("task_get", json!({"id": task.id}))).collect();
    actions.extend(
        live.iter().take(1).map(|run| Action::call("run_ready", json!({"run_id": run.id, "wait_s": 45}))),
    );
    if live.is_empty() && ready.total_for_runs > 0 {
        actions.push(Action::call("run_ready", json!({})));
    }
    if mine.is_empty() && ready.total_for_hands > 0 {
        actions.push(Action::call("ready_list", json!({"claim": true})));
    }
    actions.extend(failed.iter().take(1).map(|task| Action::call("task_get", json!({"id": task.id}))));
    actions.extend(
        waiting.iter().take(1).map(|request| Action::Person(format!("taskpawl approve {}", request.task))),
    );
    let is_empty = counts.is_empty();
    if is_empty {
        actions.push(Action::call(
            "plan_write",
            json!({"plan": {"tasks": [{"id": "first", "name": "First step"}]}}),
        ));
    }
    let lists = |tasks: &[Task]| tasks.iter().take(NAMED).map(brief::task).collect::<Vec<_>>();
    Ok(Answer::new(json!({"you": manager.actor(), "counts": counts}))
        .with("claimedByYou", json!(lists(&mine)))
        .with("runs", json!(live.iter().map(|run| brief::run(manager, run)).collect::<Vec<_>>()))
        .with(
            "lastRun",
            runs.first().filter(|_| live.is_empty()).map_or(Value::Null, |run| brief::run(manager, run)),
        )
        .with("readyForRuns", json!(named(&ready.for_runs)))
        .with("readyForRunsTotal", some(ready.total_for_runs))
        .with("readyByHand", json!(named(&ready.for_hands)))
        .with("readyByHandTotal", some(ready.total_for_hands))
        .with("waitForPerson", json!(waiting.iter().take(NAMED).map(brief::question).collect::<Vec<_>>()))
        .with("failed", json!(lists(&failed)))
        .with("hint", if is_empty { json!("the plan is empty") } else { Value::Null })
        .next(actions))
}

fn some(count: usize) -> Value {
    if count == 0 { Value::Null } else { json!(count) }
}

/// Returns the tasks that the actor holds.
pub(super) fn mine(manager: &Manager) -> Result<Vec<Task>, Error> {
    manager.read(|view| {
        let mut tasks = Vec::new();
        for key in view.leases(Some(manager.actor()))? {
            tasks.extend(read_task(view, key)?);
        }
        Ok(tasks)
    })
}

fn with_status(manager: &Manager, status: Status) -> Result<Vec<Task>, Error> {
    let query = Query { status: vec![status], limit: NAMED, ..Query::default() };
    Ok(manager.list(&query)?.tasks)
}

/// How a scope stands: how many of its tasks are in each state, and some of those that one has to look at.
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub(super) total: u64,
    pub(super) finished: u64,
    pub(super) counts: std::collections::BTreeMap<Status, u64>,
    pub(super) running: Vec<String>,
    pub(super) failed: Vec<Task>,
}

/// Returns how the tasks stand that the selectors select.
pub(super) fn standing(manager: &Manager, only: &[Selector]) -> Result<Standing, Error> {
    let mut standing = Standing::default();
    for status in Status::ALL.iter().copied() {
        // Without a restriction the counters of the store say it.
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
        let looks = matches!(status, Status::InProgress | Status::Failed) && count > 0;
        if looks {
            let tasks = if only.is_empty() {
                with_status(manager, status)?
            } else {
                ids.iter().take(NAMED).map(|id| manager.get(id)).collect::<Result<_, _>>()?
            };
            if status == Status::Failed {
                standing.failed = tasks;
            } else {
                standing.running = tasks.iter().map(|task| task.id.to_string()).collect();
            }
        }
    }
    Ok(standing)
}
