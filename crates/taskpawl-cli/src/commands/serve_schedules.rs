//! Starts the instances of scheduled plans, and reports what went wrong with them.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl::model::task::Status;
use taskpawl::model::value::{Map, Timestamp, format_time};
use taskpawl::model::view::Query;
use taskpawl::{Manager, QuietPlans, RunOptions, Taskpawl};
use taskpawl_schedule::{InstanceState, Occurrence, Step, decide};
use tokio_util::sync::CancellationToken;

use super::heartbeat::Heartbeats;
use crate::error::CliError;
use crate::output::Output;
use crate::schedules::{Instance, Place, Schedule, Times, instance};
use taskpawl_text::error_chain;

/// The longest pause: schedules are added and removed without a change of the store.
const LONGEST: Duration = Duration::from_secs(30);

/// The shortest pause, so that a busy run is not looked at after each of its commits.
const SHORTEST: Duration = Duration::from_millis(500);

/// Tasks that one message lists.
const MAX_LISTED: usize = 50;

/// A message to the user's `notify`.
#[derive(Debug, PartialEq)]
struct Message {
    event: &'static str,
    details: Map,
}

/// Runs the schedules of a project, unless another server does.
pub(super) struct Scheduler {
    pub(super) plans: Taskpawl,
    /// `None` without a state directory: then nothing can be scheduled.
    pub(super) place: Option<Place>,
    /// The options that name the user's `notify`, and the plans that runs leave to it.
    pub(super) options: RunOptions,
    pub(super) heartbeats: Heartbeats,
    pub(super) out: Output,
}

/// The result of looking at all schedules.
#[derive(Debug, Default)]
struct Tick {
    messages: Vec<Message>,
    warnings: Vec<String>,
    wake: Option<Timestamp>,
    revision: u64,
}

/// The times of schedules by name, with the text that they were read from.
type Known = BTreeMap<String, (String, Times)>;

impl Scheduler {
    pub(super) async fn keep(self, stop: CancellationToken) -> Result<(), CliError> {
        let (mut lock, mut known, mut is_told) = (None, Known::new(), false);
        while !stop.is_cancelled() {
            if let Some(place) = self.place.as_ref().filter(|_| lock.is_none()) {
                lock = place.serve()?;
            }
            if lock.is_none() && self.place.is_some() && !is_told {
                is_told = true;
                self.out
                    .remark("another server runs the schedules of this project; this one goes on if it ends");
            }
            let mut tick = Tick::default();
            if let Some(place) = self.place.as_ref().filter(|_| lock.is_some()) {
                (tick, known) = self.tick(place.clone(), known).await?;
            }
            for warning in tick.warnings {
                self.out.warn(&warning);
            }
            for Message { event, details } in tick.messages {
                for warning in self.plans.engine().notify(event, details, &self.options).await? {
                    self.out.warn(&warning);
                }
            }
            self.heartbeats.beat(&self.out).await;
            self.pause(tick.wake, tick.revision, &stop).await?;
        }
        Ok(())
    }

    async fn tick(&self, place: Place, known: Known) -> Result<(Tick, Known), CliError> {
        let (manager, quiet) = (self.plans.manager().clone(), self.options.quiet_plans.clone());
        let ticked = tokio::task::spawn_blocking(move || tick(&manager, &place, &quiet, known)).await;
        ticked.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// Sleeps until the next decision, or until the store changes.
    async fn pause(
        &self,
        wake: Option<Timestamp>,
        revision: u64,
        stop: &CancellationToken,
    ) -> Result<(), CliError> {
        let now = self.plans.manager().source().now();
        let left = wake.map_or(LONGEST, |wake| (wake - now).to_std().unwrap_or_default().min(LONGEST));
        let changed = self.plans.manage(move |manager| Ok(manager.store().wait_change(revision, left)?));
        let rest = async {
            tokio::time::sleep(SHORTEST.min(left)).await;
            changed.await
        };
        tokio::select! {
            changed = rest => drop(changed?),
            () = stop.cancelled() => {}
        }
        Ok(())
    }
}

/// Looks at all schedules: starts and ends instances, and stores what was done before anything is reported, so that a crash
/// reports nothing twice.
fn tick(
    manager: &Manager,
    place: &Place,
    quiet: &QuietPlans,
    mut known: Known,
) -> Result<(Tick, Known), CliError> {
    let mut all = Tick { revision: manager.revision()?, ..Tick::default() };
    let mut times = Known::new();
    for before in place.read()? {
        let mut schedule = before.clone();
        let of_schedule = match known.remove(&schedule.name) {
            Some((text, times)) if text == schedule.text => Ok(times),
            _ => times_of(&schedule),
        };
        let of_schedule = match of_schedule {
            Ok(times) => times,
            Err(error) => {
                let why = error_chain(&error);
                all.warnings.push(format!("the schedule of `{}` does not run: {why}", schedule.name));
                continue;
            }
        };
        let mut one = One { manager, quiet, schedule: &mut schedule, times: &of_schedule, tick: &mut all };
        one.look()?;
        if schedule.memory != before.memory || schedule.last != before.last {
            place.change(|schedules| {
                let is_same = |one: &&mut Schedule| one.name == schedule.name && one.text == schedule.text;
                if let Some(stored) = schedules.iter_mut().find(is_same) {
                    (stored.memory, stored.last) = (schedule.memory, schedule.last.clone());
                }
            })?;
        }
        times.insert(schedule.name.clone(), (schedule.text.clone(), of_schedule));
    }
    Ok((all, times))
}

fn times_of(schedule: &Schedule) -> Result<Times, CliError> {
    let plan = schedule.plan()?;
    let missing = || CliError::usage("its plan has no `schedule`");
    let fields = plan.schedule.as_ref().ok_or_else(missing)?;
    Times::of(fields).map_err(|error| CliError::usage(error.to_string()))
}

/// One schedule at one time.
struct One<'t> {
    manager: &'t Manager,
    quiet: &'t QuietPlans,
    schedule: &'t mut Schedule,
    times: &'t Times,
    tick: &'t mut Tick,
}

impl One<'_> {
    fn look(&mut self) -> Result<(), CliError> {
        let now = self.manager.source().now();
        self.refresh()?;
        let last = self.schedule.last.as_ref().map(|last| (last.state, last.started_at));
        let decision = decide(&self.times.calendar, self.times.rules, self.schedule.memory, last, now);
        for step in decision.steps {
            self.carry_out(step, now)?;
        }
        self.schedule.memory = decision.memory;
        self.report_state()?;
        self.tick.wake = self.tick.wake.into_iter().chain(decision.wake).min();
        Ok(())
    }

    /// Reads the state of the last instance. Repaired tasks open a failed one again.
    fn refresh(&mut self) -> Result<(), CliError> {
        let Some(last) = &mut self.schedule.last else { return Ok(()) };
        self.quiet.insert(last.plan.clone());
        let may_change =
            matches!(last.state, InstanceState::Running | InstanceState::Waiting | InstanceState::Failed);
        if may_change && last.error.is_none() {
            last.state = instance::state(self.manager, &last.plan)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, step: Step, now: Timestamp) -> Result<(), CliError> {
        match step {
            Step::Expire => {
                self.end("it only waited for people, until its `expires`", InstanceState::Expired)
            }
            Step::Replace => {
                self.end("the next instance of its schedule replaces it", InstanceState::Replaced)
            }
            Step::Missed { first, last, count } => {
                let details = json!({
                    "first": format_time(first.at), "last": format_time(last.at), "count": count,
                });
                self.tell_missed("missed", details);
                Ok(())
            }
            Step::Skip(due) => {
                let running = self.schedule.last.as_ref().map(|last| last.plan.clone());
                self.tell_missed("skipped", json!({"due": format_time(due.at), "instance": running}));
                Ok(())
            }
            Step::Start(due) => self.start(&due, now),
        }
    }

    fn end(&mut self, reason: &str, state: InstanceState) -> Result<(), CliError> {
        let Some(last) = &mut self.schedule.last else { return Ok(()) };
        instance::end(self.manager, &last.plan, reason)?;
        last.state = state;
        Ok(())
    }

    fn start(&mut self, due: &Occurrence, now: Timestamp) -> Result<(), CliError> {
        let plan = format!("{}-{}", self.schedule.name, due.stamp);
        self.quiet.insert(plan.clone());
        let started = instance::start(self.manager, self.schedule, &plan);
        let error = started.err().map(|error| error_chain(&error));
        let state = if error.is_some() { InstanceState::Failed } else { InstanceState::Running };
        let (due, told) = (due.at, Vec::new());
        self.schedule.last = Some(Instance { plan, due, started_at: now, state, told, error });
        self.refresh()
    }

    /// Reports an instance that failed or waits for people, once each.
    fn report_state(&mut self) -> Result<(), CliError> {
        let Some(last) = &mut self.schedule.last else { return Ok(()) };
        let (event, status) = match last.state {
            InstanceState::Failed => ("failed", Status::Failed),
            InstanceState::Waiting => ("waiting", Status::Blocked),
            InstanceState::Running
            | InstanceState::Done
            | InstanceState::Expired
            | InstanceState::Replaced => return Ok(()),
        };
        if last.told.contains(&last.state) {
            return Ok(());
        }
        last.told.push(last.state);
        let query = Query {
            plan: Some(last.plan.clone()),
            status: vec![status],
            limit: MAX_LISTED,
            ..Query::default()
        };
        let tasks = self.manager.list(&query)?.tasks;
        let tasks = tasks.iter().map(|task| json!({"task": task.id, "name": task.name, "error": task.error}));
        let details = json!({
            "instance": last.plan, "due": format_time(last.due), "startedAt": format_time(last.started_at),
            "error": last.error, "tasks": tasks.collect::<Vec<_>>(),
        });
        if self.times.tells_failures {
            self.tell(event, details);
        }
        Ok(())
    }

    fn tell_missed(&mut self, event: &'static str, details: Value) {
        if self.times.tells_missed {
            self.tell(event, details);
        }
    }

    fn tell(&mut self, event: &'static str, details: Value) {
        if let Value::Object(mut details) = details {
            details.insert("schedule".to_owned(), json!(self.schedule.name));
            self.tick.messages.push(Message { event, details });
        }
    }
}
