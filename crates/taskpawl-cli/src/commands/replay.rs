use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use taskpawl::model::task::{Event, EventKind, RunRecord, Status, Task};
use taskpawl::model::value::{CallId, TaskId};
use taskpawl::{CallFailure, Manager, RunEvent};

use crate::app::App;
use crate::error::CliError;
use crate::report::{Format, Options, ReplayClock, Reporter, duration};
use crate::text::clean;
use crate::{run_events, run_log};

/// Show a past run again as it was shown then, with the times of its history
#[derive(Debug, clap::Args)]
#[command(after_help = "\
On a terminal it is the bar, elsewhere lines. Ctrl-C ends it.

Examples:
  taskpawl replay
  taskpawl replay 3f2a --speed 20")]
pub(crate) struct Args {
    /// The run: its id, or the beginning of it [default: the latest]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// The speed, as a multiple of that of the run
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = speed)]
    speed: f64,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
    speed.ok_or_else(|| "expected a number above 0, as in `20`".to_owned())
}

/// The longest pause between two positions of the clock, so that the bar moves.
const TICK: Duration = Duration::from_millis(100);

/// Shows a past run again.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let plans = app.reader()?;
    let manager = plans.manager();
    let run = run_log::find_run(manager, args.run.as_deref())?;
    let mut events = Vec::new();
    run_events::each(manager, &run, |event| events.push(event.clone()))?;
    let log = run_log::read(app, plans, &run, &run_log::included(app, &[])?)?;
    let clock = Arc::new(ReplayClock::default());
    let is_bar = app.terminal().stderr && app.environment().text("TERM").is_some_and(|term| term != "dumb");
    let mut reporter = Reporter::start(Options {
        format: if is_bar { Format::Bar } else { Format::Plain },
        paint: app.out().paint_err,
        source: app.source()?,
        total: log.tasks.len() as u64,
        over: 0,
        replayed: Some(Arc::clone(&clock)),
    });
    let observer = reporter.observer();
    let mut player = Player { manager, tasks: BTreeMap::new() };
    for event in &events {
        wait_until(&clock, millis_of(&run, event), args.speed);
        if let Some(event) = player.shown(event) {
            observer.event(&event);
        }
    }
    reporter.finish();
    if app.is_json() {
        let counts: BTreeMap<&str, usize> =
            log.counts().into_iter().map(|(outcome, count)| (outcome.as_str(), count)).collect();
        let millis = u64::try_from(log.took().as_millis()).unwrap_or(u64::MAX);
        let data = json!({"run": run.id, "end": log.end_text(), "exit": run.exit, "counts": counts, "millis": millis});
        return app.out().data(&data);
    }
    let line = format!(
        "run {}: {}, {} in {}\n",
        log.short_id(),
        log.end_text(),
        log.counts_text(),
        duration(log.took())
    );
    app.out().print(clean(line.trim_end()) + "\n")
}

fn millis_of(run: &RunRecord, event: &Event) -> u64 {
    u64::try_from((event.at - run.started_at).num_milliseconds()).unwrap_or_default()
}

/// Moves the clock to a time of the run, at the given speed.
fn wait_until(clock: &ReplayClock, millis: u64, speed: f64) {
    while clock.millis() < millis {
        let left = Duration::from_millis(millis - clock.millis()).div_f64(speed);
        let step = left.min(TICK);
        std::thread::sleep(step);
        let passed = u64::try_from(step.mul_f64(speed).as_millis()).unwrap_or(u64::MAX).max(1);
        clock.set(if left <= TICK { millis } else { clock.millis().saturating_add(passed).min(millis) });
    }
}

/// Turns stored events into those that a run tells its observers.
struct Player<'a> {
    manager: &'a Manager,
    tasks: BTreeMap<TaskId, Option<Task>>,
}

impl Player<'_> {
    fn task(&mut self, id: &TaskId) -> Option<&Task> {
        let manager = self.manager;
        self.tasks.entry(id.clone()).or_insert_with(|| run_log::task(manager, id)).as_ref()
    }

    fn name(&mut self, id: &TaskId) -> String {
        self.task(id).map_or_else(|| id.to_string(), |task| task.name.clone())
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other events are not shown")]
    fn shown(&mut self, event: &Event) -> Option<RunEvent> {
        let task = event.task.clone()?;
        Some(match &event.kind {
            EventKind::CallStarted { call, attempt, start, .. } => RunEvent::CallStarted {
                name: self.name(&task),
                tool: self.tool(&task, call),
                task,
                call: call.clone(),
                attempt: *start,
                claim: *attempt,
            },
            EventKind::CallEnded { call, status, error, .. } => RunEvent::CallEnded {
                tool: self.tool(&task, call),
                failure: self.failure(&task, call),
                task,
                call: call.clone(),
                status: *status,
                error: error.as_deref().cloned(),
                millis: 0,
            },
            EventKind::Status { to, text, .. } if !matches!(to, Status::Todo | Status::InProgress) => {
                RunEvent::TaskEnded { name: self.name(&task), task, status: *to, error: text.clone() }
            }
            _ => return None,
        })
    }

    fn tool(&mut self, task: &TaskId, call: &CallId) -> String {
        let calls = self.task(task).map(|task| task.metadata.tool_calls.as_slice()).unwrap_or_default();
        calls.iter().find(|known| known.id == *call).map(|known| known.tool_name.clone()).unwrap_or_default()
    }

    /// Returns the exit code of a failed call, as far as it is stored.
    fn failure(&mut self, task: &TaskId, call: &CallId) -> Option<Box<CallFailure>> {
        let call = self.task(task)?.metadata.tool_calls.iter().find(|known| known.id == *call)?;
        let exit_code = call.result.as_ref()?.get("exitCode")?.as_i64().filter(|code| *code != 0);
        Some(Box::new(CallFailure::new(exit_code, "", None)))
    }
}
