//! Output of a forecast.

use std::fmt::Write;
use std::process::ExitCode;

use serde::Serialize;
use taskpawl::model::insight::{Approach, Effects, Forecast, OpenQuestion, Planned, UnfinishedTask};
use taskpawl::model::value::TaskId;

use crate::app::App;
use crate::commands::explain::next;
use crate::commands::notify_programs::NotifyProgram;
use crate::commands::print::own_name;
use crate::error::CliError;
use crate::output::Output;
use crate::shown::{Shown, shown};
use crate::text::{Cell, Table, clean, count, style};

/// Number of lines that each list shows; `--json` lists all.
const MAX_SHOWN: usize = 20;

/// A forecast, with the programs that plans would notify.
#[derive(Debug, Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    forecast: &'a Forecast,
    notify: &'a [NotifyProgram],
}

/// Prints a forecast and the programs to notify. `words` are the options of the real command, for the advice
/// to run it.
pub(super) fn print(
    app: &App,
    mut forecast: Forecast,
    words: Vec<String>,
    told: &[NotifyProgram],
) -> Result<ExitCode, CliError> {
    app.write_advice_for_run(&mut forecast.next_actions, words, None)?;
    let out = app.out();
    match (out.is_json, told) {
        (true, []) => return out.data(&forecast),
        (true, notify) => return out.data(&Whole { forecast: &forecast, notify }),
        (false, _) => {}
    }
    out.remark("dry run: nothing was changed");
    out.print(text(&out, &forecast, told))
}

pub(super) fn text(out: &Output, forecast: &Forecast, told: &[NotifyProgram]) -> Shown {
    let mut text = Shown::new();
    if let Some(effects) = &forecast.effects {
        add_effects(out, &mut text, effects);
    }
    for wave in &forecast.waves {
        heading(out, &mut text, &format!("wave {}", wave.number));
        let mut table = Table::new(3);
        for task in wave.tasks.iter().take(MAX_SHOWN) {
            table.row(row(task));
        }
        text.push(table.render(out.paint, out.width));
        add_rest(&mut text, wave.tasks.len());
    }
    if forecast.waves.is_empty() {
        text.push("nothing would run\n");
    }
    let (after, before): (Vec<_>, Vec<_>) = forecast.approvals.iter().partition(|asked| asked.after);
    for (asked, words) in [(before, "asks for approval first"), (after, "asks about its result")] {
        if asked.is_empty() {
            continue;
        }
        heading(out, &mut text, words);
        add_list(&mut text, &asked, |asked| {
            let call = asked.call.as_ref().map(|call| format!(", call {call}")).unwrap_or_default();
            let why = asked.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            format!("{}{call}{why}", asked.task)
        });
    }
    if !forecast.open.is_empty() {
        heading(out, &mut text, "decided by results that are not known yet");
        add_list(&mut text, &forecast.open, open_line);
    }
    if !forecast.failures.is_empty() {
        heading(out, &mut text, "would fail");
        add_list(&mut text, &forecast.failures, |failed| format!("{}: {}", failed.task, failed.reason));
    }
    if !forecast.left.is_empty() {
        heading(out, &mut text, "would not run or not end");
        add_list(&mut text, &forecast.left, left_line);
    }
    if !told.is_empty() {
        heading(out, &mut text, "tells by a program");
        add_list(&mut text, told, NotifyProgram::line);
    }
    add_end(out, &mut text, forecast);
    next(out, &mut text, &forecast.next_actions);
    text
}

fn row(task: &Planned) -> Vec<Cell> {
    let items = task.items.map(|items| match items {
        Approach::Known(items) => count(items as u64, "item"),
        Approach::Unknown(_) => "items not known yet, counted as one".to_owned(),
    });
    let facts = [
        task.starts_after.map(|start| format!("after {start}")),
        task.takes.map(|takes| format!("takes {takes} ({})", task.source)),
        items,
        task.asks.then(|| "asks for approval".to_owned()),
    ];
    let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    vec![
        Cell::new(""),
        Cell::styled(&task.task, style::BOLD),
        Cell::styled(facts, style::DIM),
        Cell::new(own_name(&task.task, &task.name)),
    ]
}

fn open_line(open: &OpenQuestion) -> String {
    format!("{}: {} {} waits for {}", open.task, open.field, open.expression, ids(&open.waits_for))
}

fn left_line(left: &UnfinishedTask) -> String {
    match &left.first_cause {
        Some(cause) => format!("{}: because of {cause}: {}", left.task, left.reason),
        None => format!("{}: {}", left.task, left.reason),
    }
}

fn heading(out: &Output, text: &mut Shown, words: &str) {
    text.push(shown![out.paint.style(style::BOLD, words), "\n"]);
}

fn add_list<T>(text: &mut Shown, items: &[T], line: impl Fn(&T) -> String) {
    for item in items.iter().take(MAX_SHOWN) {
        let _ = writeln!(text, "  {}", clean(&line(item)));
    }
    add_rest(text, items.len());
}

fn add_rest(text: &mut Shown, count: usize) {
    if count > MAX_SHOWN {
        let _ = writeln!(text, "  … {} more (--json lists them)", count - MAX_SHOWN);
    }
}

fn ids(ids: &[TaskId]) -> String {
    ids.iter().map(TaskId::as_str).collect::<Vec<_>>().join(", ")
}

fn add_effects(out: &Output, text: &mut Shown, effects: &Effects) {
    heading(out, text, &format!("if {}", clean(&effects.given.join(", "))));
    let lists = [
        ("ready", &effects.ready),
        ("done", &effects.done),
        ("failed", &effects.failed),
        ("blocked", &effects.blocked),
        ("unblocked", &effects.unblocked),
        ("skipped", &effects.skipped),
    ];
    for (label, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        let more = if list.len() > MAX_SHOWN {
            format!(" and {} more", list.len() - MAX_SHOWN)
        } else {
            String::new()
        };
        let shown = ids(&list[..list.len().min(MAX_SHOWN)]);
        let _ = writeln!(text, "  {label:<9}  {}{more}", clean(&shown));
    }
}

fn add_end(out: &Output, text: &mut Shown, forecast: &Forecast) {
    let counts: Vec<String> =
        forecast.counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let time =
        forecast.duration.map(|time| format!(", after {time} with {}", count(forecast.jobs as u64, "job")));
    let ends = format!("ends with {}{}: {}", forecast.exit, time.unwrap_or_default(), counts.join(", "));
    heading(out, text, &ends);
    if !forecast.waves.is_empty() {
        text.push("  if every call ends well, every approval is given and open conditions hold\n");
    }
}
