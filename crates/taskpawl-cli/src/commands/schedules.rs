use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use taskpawl::ApplyOptions;
use taskpawl::model::advice::Hint;
use taskpawl::model::value::{Timestamp, check_id, format_time};
use taskpawl_schedule::{InstanceState, Shift, ShiftKind};

use crate::app::App;
use crate::caller::Caller;
use crate::commands::plan_file::{PlanText, Takes};
use crate::commands::{parse, proposed};
use crate::error::CliError;
use crate::person;
use crate::schedules::{Place, Schedule, Times, instance};
use crate::shown::{Shown, shown};
use crate::text::{clean, quoted, style};

/// Times that are listed for each schedule.
const NEXT: usize = 3;

/// The time ahead in which changes of clocks are reported.
const AHEAD: chrono::TimeDelta = chrono::TimeDelta::days(366);

/// The longest stamp of an instance.
const LONGEST_STAMP: &str = "-20261025T0230-2";

/// List scheduled plans with their next times, add them, and remove them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
`taskpawl serve --run` runs the plans that are added here, each at the times of its `schedule`. It takes the text that \
the file has when it is added: add it again after a change. Agents do not add or remove schedules.

Examples:
  taskpawl schedules add nightly.yaml
  taskpawl schedules
  taskpawl schedules remove nightly
  taskpawl serve --run --heartbeat https://monitor.example.org/ping/1f3a")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<ScheduleCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum ScheduleCommand {
    /// Schedule a plan file that has a `schedule`, or replace the text of a scheduled plan
    Add {
        /// The plan, as JSON or YAML
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// A value for a parameter of the plan; lists and objects as JSON. May be given several times
        #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse::assignment)]
        params: Vec<(String, String)>,
        /// Add a plan that a planner wrote without asking; `plan new` writes such files
        #[arg(long)]
        yes: bool,
    },
    /// Remove schedules; instances that exist stay
    Remove {
        /// Names of plans
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
}

/// A schedule in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    file: String,
    /// True if the file, or one that it includes, has another text than the schedule.
    file_changed: bool,
    cron: String,
    timezone: String,
    overlap: String,
    expires: String,
    added_at: String,
    next: Vec<Next>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queued: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Last>,
    /// Changes of clocks within a year that affect its times.
    shifts: Vec<Shifted>,
    /// True if a server runs it now.
    served: bool,
}

#[derive(Debug, Serialize)]
struct Next {
    at: String,
    local: String,
    instance: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Last {
    instance: String,
    state: InstanceState,
    due: String,
    started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Shifted {
    /// The time on the clock, as the expression has it.
    local: String,
    /// The change of clocks that skips it or shows it twice.
    kind: &'static str,
    /// The time at which the plan runs.
    runs: String,
}

/// Lists, adds or removes schedules.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    match &args.command {
        None => list(app),
        Some(ScheduleCommand::Add { file, params, yes }) => add(app, file, params, *yes),
        Some(ScheduleCommand::Remove { names }) => remove(app, names),
    }
}

/// Refuses agents: a scheduled plan runs again and again without a person.
fn refuse_agents(app: &App, by: &'static str) -> Result<(), CliError> {
    person::refuse_within_call(app, by)?;
    match app.caller() {
        Caller::Agent(sign) => Err(CliError::ByAgent { by, sign: sign.clone() }),
        Caller::Person | Caller::Program => Ok(()),
    }
}

fn add(app: &App, path: &Path, params: &[(String, String)], is_yes: bool) -> Result<ExitCode, CliError> {
    refuse_agents(app, "schedules add")?;
    let text = PlanText::read(app, path)?;
    let content = text.text.clone();
    let file = text.plan(app, &Takes::with_params(params.to_vec()))?;
    file.refuse_unknown()?;
    file.check(app)?;
    let Some(fields) = &file.plan.schedule else {
        let hint = "write one, such as `schedule: \"0 3 * * *\"`";
        return Err(CliError::usage_with(format!("{}: the plan has no `schedule`", path.display()), hint));
    };
    check_id(&format!("{}{LONGEST_STAMP}", file.name))
        .map_err(|error| CliError::usage(format!("the plan's name with the time of an instance: {error}")))?;
    proposed::confirm(app, &file, ApplyOptions::default(), is_yes)?;
    let now = app.manager()?.source().now();
    let whole = app.environment().directory.join(path);
    let added = Schedule::new(
        app,
        (file.name.clone(), whole.canonicalize().unwrap_or(whole)),
        (content, Schedule::whole(&file.plan)),
        params.to_vec(),
        now,
    )?;
    let times = Times::of(fields).map_err(|error| CliError::usage(error.to_string()))?;
    let place = Place::of(app)?;
    let stored = added.clone();
    place.change(|schedules| {
        if let Some(before) = schedules.iter_mut().find(|one| one.name == stored.name) {
            // Times of the old calendar are not made up for. What waits in the queue still starts.
            let (queued, last) = (before.memory.queued, before.last.take());
            *before = stored;
            (before.memory.queued, before.last) = (queued, last);
        } else {
            schedules.push(stored);
        }
    })?;
    let listed = Listed::of(app, &added, &times, now, is_served(&place)?)?;
    let out = app.out();
    if out.is_json {
        return out.data(&listed);
    }
    if !listed.served {
        out.remark("no server runs it: start `taskpawl serve --run`");
    }
    out.print(text_of(app, &listed))
}

fn remove(app: &App, names: &[String]) -> Result<ExitCode, CliError> {
    refuse_agents(app, "schedules remove")?;
    let unknown = Place::of(app)?.change(|schedules| {
        let unknown = names.iter().find(|name| !schedules.iter().any(|one| one.name == **name)).cloned();
        if unknown.is_none() {
            schedules.retain(|one| !names.contains(&one.name));
        }
        unknown
    })?;
    if let Some(name) = unknown {
        let hint = Hint::default().command("schedules").text(" lists them");
        return Err(CliError::usage_with(format!("no scheduled plan is named {}", quoted(&name)), hint));
    }
    app.out().remark("removed");
    Ok(ExitCode::SUCCESS)
}

fn list(app: &App) -> Result<ExitCode, CliError> {
    let place = Place::of(app)?;
    let schedules = place.read()?;
    let (manager, is_served) = (app.manager()?, is_served(&place)?);
    let now = manager.source().now();
    let mut all = Vec::new();
    for schedule in &schedules {
        let plan = schedule.plan()?;
        let Some(fields) = &plan.schedule else { continue };
        let times = Times::of(fields).map_err(|error| CliError::usage(error.to_string()))?;
        all.push(Listed::of(app, schedule, &times, now, is_served)?);
    }
    let out = app.out();
    if out.is_json {
        return out.data(&all);
    }
    if all.is_empty() {
        let hint = Hint::new("no plan is scheduled: ").command("schedules add FILE").text(" adds one");
        out.remark(&hint.format_with(&*out.line));
        return Ok(ExitCode::SUCCESS);
    }
    if !is_served {
        out.remark("no server runs them: start `taskpawl serve --run`");
    }
    out.print(Shown::joined(all.iter().map(|one| text_of(app, one)), ""))
}

fn is_served(place: &Place) -> Result<bool, CliError> {
    Ok(place.serve()?.is_none())
}

impl Listed {
    fn of(
        app: &App,
        schedule: &Schedule,
        times: &Times,
        now: Timestamp,
        served: bool,
    ) -> Result<Self, CliError> {
        let plan = schedule.plan()?;
        let fields = plan.schedule.as_ref().ok_or_else(|| CliError::usage("the plan has no `schedule`"))?;
        let calendar = &times.calendar;
        let next = calendar.after(now.max(schedule.memory.handled)).take(NEXT).map(|one| Next {
            at: format_time(one.at),
            local: calendar.local(one.at),
            instance: format!("{}-{}", schedule.name, one.stamp),
        });
        let last = schedule.last.as_ref().map(|last| {
            let is_open = last.error.is_none()
                && matches!(
                    last.state,
                    InstanceState::Running | InstanceState::Waiting | InstanceState::Failed
                );
            let state = if is_open { instance::state(app.manager()?, &last.plan)? } else { last.state };
            Ok::<_, CliError>(Last {
                instance: last.plan.clone(),
                state,
                due: format_time(last.due),
                started_at: format_time(last.started_at),
                error: last.error.clone(),
            })
        });
        let shifted = |shift: Shift| Shifted {
            local: shift.local.format("%Y-%m-%d %H:%M").to_string(),
            kind: match shift.kind {
                ShiftKind::Skipped => "skipped",
                ShiftKind::Repeated => "repeated",
            },
            runs: calendar.local(shift.runs.at),
        };
        Ok(Self {
            name: schedule.name.clone(),
            file: schedule.file.display().to_string(),
            file_changed: schedule.has_changed(app),
            cron: fields.cron.clone(),
            timezone: fields.timezone.clone(),
            overlap: fields.overlap.to_string(),
            expires: fields.expires.to_string(),
            added_at: format_time(schedule.added_at),
            next: next.collect(),
            queued: schedule.memory.queued.map(format_time),
            last: last.transpose()?,
            shifts: calendar.shifts(now, now + AHEAD).into_iter().map(shifted).collect(),
            served,
        })
    }
}

fn text_of(app: &App, one: &Listed) -> Shown {
    let name = app.out().paint.style(style::BOLD, &clean(&one.name));
    let mut text = shown![name, "  ", clean(&one.cron), " ", clean(&one.timezone), "\n"];
    let mut line = |words: String| text.push(shown!["  ", clean(&words), "\n"]);
    for next in one.next.iter().take(1) {
        line(format!("next {}", next.local));
    }
    if let Some(queued) = &one.queued {
        line(format!("queued since {queued}, until the last instance has ended"));
    }
    if let Some(last) = &one.last {
        let state = serde_json::to_value(last.state).unwrap_or_default();
        let error = last.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        line(format!("last {}: {}{error}", last.instance, state.as_str().unwrap_or_default()));
    }
    for shift in &one.shifts {
        let how = if shift.kind == "skipped" { "does not exist" } else { "comes twice" };
        line(format!("clocks change: {} {how}; runs at {}", shift.local, shift.runs));
    }
    if one.file_changed {
        line(format!("{} has changed since: `schedules add` takes the change", one.file));
    }
    text
}
