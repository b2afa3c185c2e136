use std::process::ExitCode;

use taskpawl::RunFilter;
use taskpawl::model::{RunRecord, format_time};

use crate::app::App;
use crate::error::CliError;
use crate::output::PageInfo;
use crate::text::{Cell, Table, style};

/// List runs, the latest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl runs
  taskpawl runs --limit 1 --json")]
pub(crate) struct Args {
    /// Show at most so many, 0 for all [default: 50]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
}

/// Lists runs.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let limit = args.limit.map_or_else(|| Ok(app.config()?.limit), Ok::<_, CliError>)?;
    let asked = if limit == 0 { 0 } else { limit + 1 };
    let mut runs = app.reader()?.manager().runs(&RunFilter { limit: asked })?;
    let truncated = limit > 0 && runs.len() > limit;
    if truncated {
        runs.truncate(limit);
    }
    let out = app.out();
    if out.is_json {
        return out.page(&runs, &PageInfo { limit, offset: 0, count: runs.len(), total: None, truncated });
    }
    let mut table = Table::new(4);
    for run in &runs {
        table.row(row(run));
    }
    out.print(&table.render(out.paint, out.width))?;
    if truncated {
        out.remark(&format!("the latest {limit}: `taskpawl runs --limit 0` shows all"));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(run: &RunRecord) -> Vec<Cell> {
    let id: String = run.id.to_string().chars().take(8).collect();
    let end = match run.exit {
        Some(exit) => format!("exit {exit}"),
        None => "unfinished".to_owned(),
    };
    let took = run.finished_at.map(|end| format!("{}s", (end - run.started_at).num_seconds()));
    let counts: Vec<String> = run.counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
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
