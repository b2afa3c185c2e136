//! One run: its tasks in the order of their starts, how long they waited and ran, and how they ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use taskpawl::model::task::ShortHash;
use taskpawl::model::task::{CallStatus, Event, EventKind, RunRecord, Status};
use taskpawl::model::value::{CallId, TaskId, Timestamp};
use taskpawl::{CallPlaces, Manager, RunState};

use super::end_of;
use crate::app::App;
use crate::error::CliError;
use crate::report::duration;
use crate::run_events;
use crate::shown::{Shown, shown};
use crate::text::{Cell, Paint, Table, clean, count, style, time};

/// A run with its tasks.
#[derive(Debug, Serialize)]
pub(super) struct RunDetail {
    #[serde(flatten)]
    run: RunRecord,
    state: RunState,
    tasks: Vec<RunTask>,
}

/// A task that the run started or ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RunTask {
    task: TaskId,
    /// Its last status in the run.
    status: Status,
    started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    /// Time between the start of the run, or the end of its last dependency, and its own start.
    waited_millis: u64,
    /// Time between its start and its end; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    millis: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    calls: Vec<RunCall>,
}

/// A start of a call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RunCall {
    call: CallId,
    start: u32,
    /// A hash of its evaluated arguments, to compare it with other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    args_hash: Option<ShortHash>,
    /// A hash of its result, to compare it with other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_hash: Option<ShortHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<CallStatus>,
    /// The worker that runs or ran it; absent for the machine of the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    #[serde(skip)]
    started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    millis: Option<u64>,
}

impl RunDetail {
    /// Reads what a run did from the events of the history. `places` has the workers of calls that run now.
    pub(super) fn read(manager: &Manager, places: &CallPlaces, run: RunRecord) -> Result<Self, CliError> {
        let mut tasks: Vec<RunTask> = Vec::new();
        let mut positions: BTreeMap<TaskId, usize> = BTreeMap::new();
        run_events::each(manager, &run, |event| {
            let Some(task) = event.task.clone() else { return };
            if let EventKind::Status { to: Status::InProgress, .. } = &event.kind {
                positions.entry(task.clone()).or_insert(tasks.len());
                if positions[&task] == tasks.len() {
                    tasks.push(RunTask::new(task.clone(), event.at));
                }
            }
            if let Some(position) = positions.get(&task) {
                tasks[*position].take(event);
            }
        })?;
        for task in &mut tasks {
            for call in task.calls.iter_mut().filter(|call| call.status.is_none()) {
                call.worker = places.worker(&task.task, &call.call, call.start).map(str::to_owned);
            }
        }
        add_waits(manager, run.started_at, &mut tasks);
        let state = manager.run_state(&run);
        Ok(Self { run, state, tasks })
    }

    /// Returns the run as text. `now` is given on a terminal, where times are relative.
    pub(super) fn text(&self, now: Option<Timestamp>, paint: Paint, width: Option<usize>) -> Shown {
        let run = &self.run;
        let id = paint.style(style::BOLD, &clean(run.id.as_str()));
        let scope = if run.scope.is_empty() { "everything".to_owned() } else { clean(&run.scope.join(" ")) };
        let begin = time(run.started_at, now);
        let took = run.finished_at.map(|end| format!(" in {}", length(millis(run.started_at, end))));
        let head = format!("{}{}", end_of(run, self.state), took.unwrap_or_default());
        let mut text = shown!["run ", id, "  ", head, "\n"];
        text.push(format!("  runs {scope}, started {begin} by {}\n", clean(&run.actor)));
        if self.tasks.is_empty() {
            text.push("  no task was started\n");
            return text.wrapped(width);
        }
        let mut text = text.wrapped(width);
        let mut table = Table::wrapping(4);
        for task in &self.tasks {
            table.row(task.row());
        }
        text.push(shown!["\n", table.render(paint, width)]);
        text
    }
}

impl RunTask {
    fn new(task: TaskId, started_at: Timestamp) -> Self {
        let (ended_at, millis, error) = (None, None, None);
        let calls = Vec::new();
        Self {
            task,
            status: Status::InProgress,
            started_at,
            ended_at,
            waited_millis: 0,
            millis,
            error,
            calls,
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other events tell nothing about what the run did")]
    fn take(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Status { to, text, .. } => {
                self.status = *to;
                let is_over = *to != Status::InProgress;
                self.ended_at = is_over.then_some(event.at);
                self.millis = is_over.then(|| millis(self.started_at, event.at));
                self.error = text.as_deref().map(str::to_owned);
            }
            EventKind::CallStarted { call, start, args_hash, .. } => self.calls.push(RunCall {
                call: call.clone(),
                start: *start,
                args_hash: *args_hash,
                result_hash: None,
                status: None,
                worker: None,
                started_at: event.at,
                millis: None,
            }),
            EventKind::CallEnded { call, status, result_hash, worker, .. } => {
                if let Some(started) = self
                    .calls
                    .iter_mut()
                    .rev()
                    .find(|started| started.call == *call && started.status.is_none())
                {
                    started.status = Some(*status);
                    started.worker = worker.as_deref().cloned();
                    started.result_hash = *result_hash;
                    started.millis = Some(millis(started.started_at, event.at));
                }
            }
            _ => {}
        }
    }

    fn row(&self) -> Vec<Cell> {
        let waited = if self.waited_millis < 100 {
            String::new()
        } else {
            format!("waited {}", length(self.waited_millis))
        };
        let starts = self.calls.len() as u64;
        let calls = if starts > 1 { count(starts, "call") } else { String::new() };
        let error = if self.status == Status::Done { None } else { self.error.as_deref() };
        let workers: BTreeSet<&str> = self.calls.iter().filter_map(|call| call.worker.as_deref()).collect();
        let workers = workers.into_iter().map(|worker| format!("@{worker}")).collect::<Vec<_>>().join(" ");
        let beside = [workers, calls, waited, error.unwrap_or_default().to_owned()];
        let beside: Vec<String> = beside.into_iter().filter(|part| !part.is_empty()).collect();
        vec![
            Cell::new(""),
            Cell::styled(&self.task, style::BOLD),
            Cell::styled(self.status.as_str(), style::of_status(self.status)),
            Cell::new(self.millis.map(length).unwrap_or_default()),
            Cell::styled(beside.join(", "), style::DIM),
        ]
    }
}

/// Sets how long each task waited: since the start of the run, or the end of its last dependency in it.
fn add_waits(manager: &Manager, begin: Timestamp, tasks: &mut [RunTask]) {
    let ends: BTreeMap<TaskId, Timestamp> =
        tasks.iter().filter_map(|task| Some((task.task.clone(), task.ended_at?))).collect();
    for task in tasks {
        // A task that was deleted since then has no dependencies any more.
        let needs = manager.get(task.task.as_str()).map(|task| task.dependencies).unwrap_or_default();
        let ready = needs.iter().filter_map(|on| ends.get(on)).max().copied().unwrap_or(begin);
        task.waited_millis = millis(ready, task.started_at);
    }
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from((to - from).num_milliseconds()).unwrap_or_default()
}

fn length(millis: u64) -> String {
    duration(Duration::from_millis(millis))
}

/// Returns the pointer to the output of a run.
pub(super) fn pointer(app: &App, run: &RunRecord) {
    let id: String = run.id.as_str().chars().take(8).collect();
    let out = app.out();
    let logs = out.line.with(&format!("logs --run {id}"));
    out.remark(&format!("`{logs}` shows what it printed"));
}
