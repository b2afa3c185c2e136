use std::fmt::Write;
use std::process::ExitCode;

use taskpawl::RunOptions;
use taskpawl::model::insight::{CriticalPath, PathTask};
use taskpawl::model::value::Selector;

use crate::app::App;
use crate::commands::explain::next;
use crate::commands::parse;
use crate::commands::print::own_name;
use crate::error::CliError;
use crate::output::Output;
use crate::shown::{Shown, shown};
use crate::text::{Cell, Table, count, style};

/// Show the longest chain of tasks. No number of jobs makes this chain shorter. Also shows the least time that
/// everything takes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A task counts as long as it took when it last ended well, else as its `estimate` says, else the median of those that are known.

Examples:
  taskpawl critical-path
  taskpawl critical-path --only plan:release --left
  taskpawl critical-path --jobs 16 --json")]
pub(crate) struct Args {
    /// Only the tasks of a plan, with a label, or a task with all below it; may be given several times
    #[arg(long, value_name = "plan:NAME|label:NAME|ID", value_parser = parse::selector)]
    only: Vec<Selector>,
    /// Only tasks that have not ended
    #[arg(long)]
    left: bool,
    /// Number of tool calls that run at once [default: as of a run]
    #[arg(long, short, value_name = "N", value_parser = parse::at_least_one::<usize>)]
    jobs: Option<usize>,
}

/// Shows the critical path for the given number of jobs.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let jobs = args.jobs.or(app.config()?.jobs);
    // `RunOptions::jobs` has the default number: the answer must be for the jobs that a run would use.
    let jobs = RunOptions { jobs, ..RunOptions::default() }.jobs();
    let mut path = app.reader()?.manager().critical_path(&args.only, jobs, args.left)?;
    app.write_advice(&mut path.next_actions)?;
    let out = app.out();
    if out.is_json {
        return out.data(&path);
    }
    out.print(text(&out, &path))
}

fn text(out: &Output, path: &CriticalPath) -> Shown {
    if path.path.is_empty() {
        return "nothing is left\n".into();
    }
    let mut text = Shown::new();
    let heading = |text: &mut Shown, words: &str| {
        text.push(shown![out.paint.style(style::BOLD, words), "\n"]);
    };
    heading(&mut text, "critical path");
    let mut table = Table::new(4);
    for task in &path.path {
        table.row(row(task, String::new()));
    }
    text.push(table.render(out.paint, out.width));
    if !path.is_timed {
        text.push("nothing is known of how long tasks take: each counts as 1ms\n");
    }
    let _ = writeln!(
        text,
        "length {}, work {} in {}; with {} it takes at least {}",
        path.length,
        path.work,
        count(path.tasks as u64, "task"),
        count(path.jobs as u64, "job"),
        path.lower_bound
    );
    if !path.near_critical.is_empty() {
        heading(&mut text, "beside it, with how late each may be");
        let mut table = Table::new(4);
        for near in &path.near_critical {
            table.row(row(&near.task, format!("{} late", near.slack)));
        }
        text.push(table.render(out.paint, out.width));
    }
    next(out, &mut text, &path.next_actions);
    text
}

fn row(task: &PathTask, slack: String) -> Vec<Cell> {
    vec![
        Cell::styled(&task.task, style::BOLD),
        Cell::styled(task.status.as_str(), style::of_status(task.status)),
        Cell::new(format!("{} ({})", task.takes, task.source)),
        Cell::new(slack),
        Cell::new(own_name(&task.task, &task.name)),
    ]
}
