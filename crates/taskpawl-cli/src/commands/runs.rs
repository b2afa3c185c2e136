use std::process::ExitCode;

use serde::Serialize;
use taskpawl::model::advice::{Advice, Hint};
use taskpawl::model::task::RunRecord;
use taskpawl::model::value::format_time;
use taskpawl::{Manager, RunFilter, RunState};

use crate::app::App;
use crate::commands::parse;
use crate::error::CliError;
use crate::output::PageInfo;
use crate::text::{Cell, Table, style};

/// List runs, latest first. Shows which runs are active, how the others ended, and which were killed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl runs
  taskpawl runs --limit 1 --json")]
pub(crate) struct Args {
    /// Show at most so many, 0 for all [default: 50]
    #[arg(long, short = 'n', value_name = "N", value_parser = parse::number::<usize>)]
    limit: Option<usize>,
}

/// Lists runs, the latest first.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
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
    for run in &runs {
        table.row(row(run));
    }
    out.print(table.render(out.paint, out.width))?;
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

fn row(shown: &Shown) -> Vec<Cell> {
    let Shown { run, state } = shown;
    let id: String = run.id.to_string().chars().take(8).collect();
    let end = match (state, run.exit) {
        (_, Some(exit)) => format!("exit {exit}"),
        (RunState::Running, None) => "running".to_owned(),
        (RunState::Killed | RunState::Finished, None) => "killed".to_owned(),
    };
    let took = run.finished_at.map(|end| format!("{}s", (end - run.started_at).num_seconds()));
    let mut counts: Vec<String> =
        run.counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
    counts.extend(run.output_pruned_at.map(|_| "output pruned".to_owned()));
    let scope = if run.scope.is_empty() { "everything".to_owned() } else { run.scope.join(" ") };
    vec![
        Cell::styled(id, style::BOLD),
        Cell::new(format_time(run.started_at)),
        Cell::new(took.unwrap_or_default()),
        Cell::new(end),
        Cell::new(scope),
        Cell::new(counts.join(", ")),
        Cell::styled(format!("{}@{}", run.actor.split('@').next().unwrap_or_default(), run.host), style::DIM),
    ]
}
