//! Runs: starting, waiting and stopping. Reports about a run are read from the store.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ProgressNotificationParam;
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use taskpawl::digest::RunNow;
use taskpawl::model::advice::{Advice, Hint};
use taskpawl::model::rules::Means;
use taskpawl::model::task::{ApprovalRequest, RunRecord};
use taskpawl::model::value::Selector;
use taskpawl::model::value::{RunId, TaskId};
use taskpawl::{Error, Manager, RunOptions, RunState};
use tokio::time::Instant;

use super::definition::{Definition, number, schema, switch, text, texts};
use crate::server::actions::Action;
use crate::server::answer::Answer;
use crate::server::arguments;
use crate::server::brief;
use crate::server::caller::Caller;
use crate::server::digest::{Standing, after, interrupted, standing, to_look_at};
use crate::server::mcp_server::{McpServer, blocking};
use crate::server::refusal::Refused;
use crate::server::repair::repair;
use crate::server::runs::key_of;

/// Maximum time that a call waits for a run, in seconds. Clients time out after a minute.
const MAX_WAIT: u64 = 45;

/// Maximum time that one wait for changes blocks a thread.
const LOOK: Duration = Duration::from_millis(500);

/// Maximum number of listed tasks of each group.
const MAX_NAMED: usize = 5;

pub(super) fn definition() -> Definition {
    Definition {
        description: "Runs all that is ready or becomes so; answers at once with run_id. With run_id: how it stands; wait_s waits for its end; cancel stops it, twice kills what runs. only: plan:NAME, label:NAME or id.",
        input: schema(
            json!({"only": texts(), "jobs": number(), "run_id": text(), "wait_s": {"type": "integer", "maximum": MAX_WAIT}, "cancel": switch()}),
            &[],
            true,
        ),
        hints: super::definition::Hints {
            reads_only: false,
            destroys: true,
            is_idempotent: false,
            is_open: true,
        },
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::server) struct Arguments {
    only: Vec<String>,
    jobs: Option<usize>,
    run_id: Option<String>,
    wait_s: u64,
    cancel: bool,
}

impl Arguments {
    pub(in crate::server) fn read(arguments: Map<String, Value>) -> Result<Self, Refused> {
        let arguments: Self = arguments::read(arguments)?;
        if arguments.wait_s > MAX_WAIT {
            return Err(Refused::argument("wait_s", format!("expected at most {MAX_WAIT}")));
        }
        let is_start = arguments.run_id.is_none();
        let has_start = arguments.jobs.is_some() || !arguments.only.is_empty();
        match (is_start, has_start, arguments.cancel) {
            (true, _, true) => Err(Refused::argument("cancel", "it goes with run_id")),
            (false, true, _) => {
                Err(Refused::argument("run_id", "it goes without only and jobs: the run has begun"))
            }
            _ if arguments.jobs == Some(0) => Err(Refused::argument("jobs", "expected at least 1")),
            _ => Ok(arguments),
        }
    }

    /// Returns whether the call starts a run.
    pub(in crate::server) fn is_start(&self) -> bool {
        self.run_id.is_none()
    }

    pub(in crate::server) fn wait(&self) -> Duration {
        Duration::from_secs(self.wait_s)
    }
}

/// Starts a run, or finds or stops one. Returns its id.
pub(in crate::server) async fn begin(
    server: &McpServer,
    caller: &Caller,
    arguments: Arguments,
    is_elicited: bool,
) -> Result<RunId, Refused> {
    let Arguments { only, jobs, run_id, cancel, .. } = arguments;
    if let Some(text) = run_id {
        let id = find(caller, text).await?;
        if cancel {
            stop(server, caller, &id).await?;
        }
        return Ok(id);
    }
    let only: Vec<Selector> =
        only.iter().map(|word| word.parse().unwrap_or_else(|never| match never {})).collect();
    let id = caller.run_id();
    // A repeated request finds the run that it has started, even in another process.
    if is_there(caller, id.clone(), only.clone()).await? {
        return Ok(id);
    }
    let mut options = RunOptions { only, ..server.options().run.clone() };
    options.jobs = jobs.or(options.jobs);
    options.params.extend(caller.digest().map(|digest| ("request".to_owned(), digest.into())));
    server.runs().start(caller.plans.clone(), id.clone(), options, is_elicited).await?;
    Ok(id)
}

/// Returns whether this request has already started its run. Refuses selectors without tasks.
async fn is_there(caller: &Caller, id: RunId, only: Vec<Selector>) -> Result<bool, Refused> {
    let (manager, digest) = (caller.reads().clone(), caller.digest().map(str::to_owned));
    blocking(move || {
        if digest.is_some()
            && let Some(run) = manager.read(|view| Ok(view.run(&id)?))?
        {
            if run.params.get("request").and_then(Value::as_str) == digest.as_deref() {
                return Ok(true);
            }
            let request = "this request_id".to_owned();
            return Err(
                taskpawl::model::command::Refusal::RequestReused { request, at: run.started_at }.into()
            );
        }
        manager.select(&only, &[])?;
        Ok(false)
    })
    .await
}

pub(in crate::server) async fn find(caller: &Caller, text: String) -> Result<RunId, Refused> {
    let manager = caller.reads().clone();
    let found = blocking(move || manager.find_run(&text)).await?;
    Ok(found)
}

async fn stop(server: &McpServer, caller: &Caller, id: &RunId) -> Result<(), Refused> {
    if server.runs().stop(id) {
        return Ok(());
    }
    let (manager, id) = (caller.reads().clone(), id.clone());
    let (run, state) = blocking(move || -> Result<_, Error> {
        let run = manager.run(&id)?;
        let state = manager.run_state(&run);
        Ok((run, state))
    })
    .await?;
    if state != RunState::Running {
        return Ok(());
    }
    let what = format!(
        "run `{}` belongs to another process, which `{}` started on `{}`",
        run.id, run.actor, run.host
    );
    let hint = Hint::new("its starter can stop it; tasks of it can be cancelled one by one; ")
        .advice(Advice::HistoryOfRun { run: run.id })
        .text(" says how it stands");
    Err(Refused::NotHere { what, hint: Some(hint) })
}

/// Waits until the run has ended, `asks` has a question for this client, or the time is over.
pub(in crate::server) async fn wait(
    server: &McpServer,
    caller: &Caller,
    id: &RunId,
    end: Instant,
    asks: fn(&McpServer, &RunId) -> bool,
    context: &RequestContext<RoleServer>,
) -> Result<(), Refused> {
    let mut news = server.runs().news();
    let mut told = Told { last: -1.0 };
    loop {
        let (seen, revision) = look(caller, id).await?;
        told.tell(&seen, context).await;
        // The end is recorded before a run of this process has returned, so its entry must be gone as well.
        let is_over = seen.state != RunState::Running && !server.runs().is_own(id);
        if is_over || asks(server, id) || Instant::now() >= end {
            return Ok(());
        }
        let store = Arc::clone(caller.reads().store());
        let left = end.saturating_duration_since(Instant::now()).min(LOOK);
        tokio::select! {
            changed = blocking(move || store.wait_change(revision, left)) => drop(changed.map_err(Error::from)?),
            _ = news.changed() => {}
            () = context.ct.cancelled() => return Ok(()),
        }
    }
}

struct Seen {
    state: RunState,
    standing: Standing,
}

async fn look(caller: &Caller, id: &RunId) -> Result<(Seen, u64), Refused> {
    let (manager, id) = (caller.reads().clone(), id.clone());
    let seen = blocking(move || -> Result<_, Error> {
        let revision = manager.revision()?;
        let run = manager.run(&id)?;
        let standing = standing(&manager, &scope(&run))?;
        Ok((Seen { state: manager.run_state(&run), standing }, revision))
    });
    Ok(seen.await?)
}

/// The progress that was reported to the client. MCP requires it to grow with each report.
struct Told {
    last: f64,
}

impl Told {
    async fn tell(&mut self, seen: &Seen, context: &RequestContext<RoleServer>) {
        let Some(token) = context.meta.get_progress_token() else { return };
        let Standing { finished, total, running, .. } = &seen.standing;
        #[expect(clippy::cast_precision_loss, reason = "there are fewer tasks than that")]
        let (done, total) = (*finished as f64, *total as f64);
        if done <= self.last {
            return;
        }
        self.last = done;
        let message =
            if running.is_empty() { String::new() } else { format!("running: {}", running.join(", ")) };
        let progress = ProgressNotificationParam::new(token, done).with_total(total).with_message(message);
        // An error means that the client is gone.
        let _ = context.peer.notify_progress(progress).await;
    }
}

fn scope(run: &RunRecord) -> Vec<Selector> {
    run.scope.iter().map(|word| word.parse().unwrap_or_else(|never| match never {})).collect()
}

/// Returns the report of a run. Blocks.
pub(in crate::server) fn describe(
    server: &McpServer,
    manager: &Manager,
    id: &RunId,
) -> Result<Answer, Error> {
    let run = manager.run(id)?;
    let state = manager.run_state(&run);
    let only = scope(&run);
    let Standing { counts, running, failed, .. } = standing(manager, &only)?;
    let waiting = manager.approval_requests(&only)?;
    let asked = server.runs().questions(id);
    let is_asked = |request: &&ApprovalRequest| {
        server.runs().has_form(id) && asked.iter().any(|open| open.task == request.task)
    };
    let mut answer = Answer::new(brief::run(&RunNow::new(manager, run.clone())))
        .with("counts", brief::counts(&counts))
        .with("running", if state == RunState::Running { json!(running) } else { Value::Null })
        .with("failed", json!(failed.iter().map(brief::task).collect::<Vec<_>>()))
        .with("onHold", json!(waiting.iter().take(MAX_NAMED).map(brief::question).collect::<Vec<_>>()))
        .with("asks", json!(asked.iter().map(key_of).collect::<Vec<_>>()))
        .with("problem", json!(server.runs().problem(id)));
    let mut actions = Vec::new();
    let scope = if run.scope.is_empty() { json!({}) } else { json!({"only": run.scope}) };
    match state {
        RunState::Running => {
            actions.push(Action::call("run_ready", json!({"run_id": run.id, "wait_s": MAX_WAIT})));
            let stops = server.runs().stops(id);
            if stops > 0 {
                answer = answer.with("stopping", json!(stopping(stops)));
            }
            if stops == 1 {
                actions.push(Action::call("run_ready", json!({"run_id": run.id, "cancel": true})));
            }
        }
        RunState::Killed => actions.push(Action::call("run_ready", scope)),
        RunState::Finished => {
            let ready = manager.explain_ready(&only, MAX_NAMED, &server.means())?;
            let interrupted = interrupted(manager, &only)?;
            if ready.total_by_hand > 0 {
                actions.push(Action::call("ready_list", json!({"claim": true})));
            }
            // Another run cannot continue tasks whose call was interrupted.
            let goes_on = ready.total_for_runs > 0 || interrupted.is_empty();
            if run.exit.is_some_and(|exit| exit >= 128) && goes_on {
                actions.push(Action::call("run_ready", scope));
            }
            actions.extend(after_interruption(&interrupted));
            actions.extend(to_look_at(&ready.unrunnable));
            if actions.is_empty() && failed.is_empty() && waiting.is_empty() {
                actions.extend(beyond(manager, &server.means(), &only)?);
            }
            answer =
                answer.with("interrupted", json!(interrupted)).with("forNobody", json!(ready.unrunnable));
        }
    }
    let mend = |task| [repair(task), Some(Action::call("task_get", json!({"id": task.id})))];
    actions.extend(failed.iter().take(2).flat_map(mend).flatten());
    let person = |request: &ApprovalRequest| {
        Action::person(Advice::Approve { id: request.task.clone(), answer: None })
    };
    // A person with the form open needs no terminal.
    actions.extend(waiting.iter().filter(|request| !is_asked(request)).take(2).map(person));
    if !run.counts.is_empty() {
        answer = answer.with("ended", json!(run.counts));
    }
    let same = Action::call("run_ready", json!({"run_id": run.id}));
    Ok(answer.next(actions).rest(same))
}

/// Returns the calls that go on outside the scope of a run which has nothing left to do.
fn beyond(manager: &Manager, means: &Means, only: &[Selector]) -> Result<Vec<Action>, Error> {
    let mut actions = Vec::new();
    if !only.is_empty() {
        actions = after(&manager.explain_ready(&[], MAX_NAMED, means)?, &[]);
    }
    actions.push(Action::call("plan_show", json!({})));
    Ok(actions)
}

/// Describes a run after `stops` stop requests.
fn stopping(stops: u32) -> &'static str {
    match stops {
        1 => "nothing more starts, and running calls may end; a second cancel ends them, too",
        _ => "running calls are being ended",
    }
}

/// Returns the steps that release interrupted tasks: read how the call ended, then ask a person to unblock the task.
fn after_interruption(tasks: &[String]) -> impl Iterator<Item = Action> {
    tasks.iter().take(2).flat_map(|id| {
        [
            Action::call("task_get", json!({"id": id})),
            Action::person(Advice::unblock(&TaskId::from(id.as_str()))),
        ]
    })
}
