mod detail;

use std::process::ExitCode;

use serde::Serialize;
use taskpawl::model::advice::{Advice, Hint};
use taskpawl::model::task::RunRecord;
use taskpawl::model::value::{Timestamp, format_time};
use taskpawl::{Manager, RunFilter, RunState};

use detail::RunDetail;

use crate::app::App;
use crate::commands::{parse, print};
use crate::error::CliError;
use crate::output::PageInfo;
use crate::report::duration;
use crate::shown::{Shown as Text, shown};
use crate::text::{Cell, MIN_WRAPPED, Paint, Table, clean, style, time, wrap};

/// List runs, latest first, or show what one run did. Shows which runs are active, how the others ended, and which were
/// killed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl runs
  taskpawl runs 3f2a
  taskpawl runs --limit 1 --json")]
pub(crate) struct Args {
    /// The run to show: its id, or the beginning of it
    #[arg(value_name = "RUN", conflicts_with = "limit")]
    run: Option<String>,
    /// Show at most so many, 0 for all [default: 50]
    #[arg(long, short = 'n', value_name = "N", value_parser = parse::number::<usize>)]
    limit: Option<usize>,
}

/// Lists runs, the latest first.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    if let Some(run) = &args.run {
        return show(app, run);
    }
    let limit = args.limit.map_or_else(|| Ok(app.config()?.limit), Ok::<_, CliError>)?;
    // One more than the limit is read, to learn whether more exist.
    let asked = if limit == 0 { 0 } else { limit + 1 };
    let manager = app.reader()?.manager();
    let mut runs = manager.runs(&RunFilter { limit: asked })?;
    let truncated = limit > 0 && runs.len() > limit;
    if truncated {
        runs.truncate(limit);
    }
    let runs: Vec<Shown> = runs.into_iter().map(|run| Shown::new(manager, run)).collect();
    let out = app.out();
    if out.is_json {
        return out.page(&runs, &PageInfo { limit, count: runs.len(), truncated, ..PageInfo::default() });
    }
    let mut table = Table::new(4);
    let now = out.now;
    for run in &runs {
        table.row(row(run, now));
    }
    let fits = out.width.is_none_or(|width| table.width() <= width);
    let narrow = out.width.filter(|_| !fits);
    out.print(match narrow {
        Some(width) => runs.iter().map(|run| block(run, now, width, out.paint)).collect(),
        None => table.render(out.paint, out.width),
    })?;
    if truncated {
        let latest = Hint::new(format!("the latest {limit}: "));
        out.advise(&latest.command("runs --limit 0").text(" shows all"));
    } else {
        let pruned = app.reader()?.manager().pruned_runs()?;
        if let Some(at) = pruned.iter().map(|(_, at)| *at).max() {
            let which = if pruned.len() == 1 {
                "1 older run".to_owned()
            } else {
                format!("{} older runs", pruned.len())
            };
            let pruned = Hint::new(format!("{which} not shown: pruned, last at {}; ", format_time(at)));
            out.advise(&pruned.advice(Advice::History { id: None }).text(" still has their events"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows what one run did.
fn show(app: &App, run: &str) -> Result<ExitCode, CliError> {
    let plans = app.reader()?;
    let manager = plans.manager();
    let run = manager.run(&manager.find_run(run)?)?;
    let shown = RunDetail::read(manager, &plans.engine().call_places(), run.clone())?;
    let out = app.out();
    if out.is_json {
        return out.data(&shown);
    }
    let code = out.print(shown.text(out.now, out.paint, out.width))?;
    detail::pointer(app, &run);
    Ok(code)
}

/// Returns how a run ended, in words.
fn end_of(run: &RunRecord, state: RunState) -> String {
    match (state, run.exit) {
        (_, Some(exit)) => format!("exit {exit}"),
        (RunState::Running, None) if run.stop.is_some() => "stopping".to_owned(),
        (RunState::Running, None) => "running".to_owned(),
        (RunState::Killed | RunState::Finished, None) => "killed".to_owned(),
    }
}

/// A run in the `--json` output.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    run: RunRecord,
    /// Not stored: whether the run is alive is known only from its liveness lock.
    state: RunState,
}

impl Shown {
    fn new(manager: &Manager, run: RunRecord) -> Self {
        let state = manager.run_state(&run);
        Self { run, state }
    }
}

/// Returns a run on several lines, for a terminal that is too narrow for the table.
fn block(shown: &Shown, now: Option<Timestamp>, width: usize, paint: Paint) -> Text {
    let [id, at, took, end, scope, counts, by] = facts(shown, now);
    let head = [at, took, end].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ");
    let rest = [scope, counts, by].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let lines = wrap(&clean(&rest), width.saturating_sub(2).max(MIN_WRAPPED));
    shown![paint.style(style::BOLD, &id), "  ", clean(&head), "\n  ", lines.join("\n  "), "\n"]
}

fn row(shown: &Shown, now: Option<Timestamp>) -> Vec<Cell> {
    let [id, at, took, end, scope, counts, by] = facts(shown, now);
    let plain = [at, took, end, scope, counts].map(Cell::new);
    let id = Cell::styled(id, style::BOLD);
    std::iter::once(id).chain(plain).chain([Cell::styled(by, style::DIM)]).collect()
}

/// Returns the columns: id, start, duration, end, scope, counts and actor.
fn facts(shown: &Shown, now: Option<Timestamp>) -> [String; 7] {
    let Shown { run, state } = shown;
    let id: String = run.id.to_string().chars().take(8).collect();
    let end = end_of(run, *state);
    let took = run.finished_at.map(|end| duration((end - run.started_at).to_std().unwrap_or_default()));
    let mut counts = print::counts(&run.counts);
    counts.extend(run.output_pruned_at.map(|_| "output pruned".to_owned()));
    let scope = if run.scope.is_empty() { "everything".to_owned() } else { run.scope.join(" ") };
    [
        id,
        time(run.started_at, now),
        took.unwrap_or_default(),
        end,
        scope,
        counts.join(", "),
        format!("{}@{}", run.actor.split('@').next().unwrap_or_default(), run.host),
    ]
}
