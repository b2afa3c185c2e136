use std::fmt::Write;
use std::process::ExitCode;

use taskpawl::model::advice::Advised;
use taskpawl::model::insight::{Explanation, Link, ReadyList, ReadyTask, Reason};
use taskpawl::model::value::Selector;
use taskpawl::model::value::format_time;

use crate::app::App;
use crate::commands::{parse, print, running};
use crate::error::CliError;
use crate::output::Output;
use crate::servers::Lack;
use crate::shown::{Shown, shown};
use crate::text::{Cell, Table, clean, style};

/// Explain why a task is not running. Follows the reasons to the first cause, and shows the command that clears it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each line says why a task waits for the next; the last one is where it really hangs. Commands that lose nothing come first.
`taskpawl run-all-ready --dry-run --what-if` shows the effects of an end of a task.

Examples:
  taskpawl explain deploy
  taskpawl explain --ready
  taskpawl explain deploy --json --fields firstCause,nextActions")]
pub(crate) struct Args {
    /// The task: its id, or the beginning of it
    #[arg(value_name = "ID", required_unless_present = "ready")]
    id: Option<String>,
    /// Tell what is ready, in the order in which it is taken, and why in that order
    #[arg(long, conflicts_with = "id")]
    ready: bool,
    /// With --ready: only of a plan, with a label, or a task with all below it; may be given several times
    #[arg(long, requires = "ready", conflicts_with = "id", value_name = "plan:NAME|label:NAME|ID", value_parser = parse::selector)]
    only: Vec<Selector>,
    /// With --ready: show at most so many of each kind, 0 for all [default: 50]
    #[arg(long, short = 'n', requires = "ready", conflicts_with = "id", value_name = "N", value_parser = parse::number::<usize>)]
    limit: Option<usize>,
}

/// Explains one task, or without an id the order of the ready tasks.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    match &args.id {
        Some(id) => one(app, id),
        None => ready(app, args),
    }
}

fn one(app: &App, id: &str) -> Result<ExitCode, CliError> {
    let mut explanation = app.reader()?.manager().explain(id, &running::means(app)?)?;
    tell_lack(app, &mut explanation)?;
    app.write_advice(&mut explanation.next_actions)?;
    let out = app.out();
    if out.is_json {
        return out.data(&explanation);
    }
    out.print(text(&out, &explanation))
}

/// Replaces the reason for a missing tool. Only this program knows why a server or the project does not
/// provide it; the store does not.
fn tell_lack(app: &App, explanation: &mut Explanation) -> Result<(), CliError> {
    let Reason::MissingTool { name } = &explanation.first_cause.reason else { return Ok(()) };
    let Some(lack) = lack(app, name)? else { return Ok(()) };
    explanation.first_cause.text.clone_from(&lack.text);
    if let Some(last) = explanation.chain.last_mut() {
        last.text = lack.text;
    }
    explanation.next_actions.insert(0, lack.advice.into());
    Ok(())
}

fn lack(app: &App, tool: &str) -> Result<Option<Lack>, CliError> {
    let toolbox = app.toolbox()?;
    if toolbox.registry().get(tool).is_some() {
        return Ok(None);
    }
    Ok(toolbox.lack(tool).or(app.servers()?.lack(tool)))
}

fn text(out: &Output, explanation: &Explanation) -> Shown {
    let id = out.paint.style(style::BOLD, &clean(explanation.task.as_str()));
    let is_named = explanation.name != explanation.task.as_str();
    let name = if is_named { format!("  {}", clean(&explanation.name)) } else { String::new() };
    let mut text = shown![id, name, "\n"];
    let half = explanation.chain.len() / 2;
    for (position, link) in explanation.chain.iter().enumerate() {
        if explanation.omitted > 0 && position == half {
            let _ = writeln!(text, "  … {} more in between …", explanation.omitted);
        }
        line(out, &mut text, link, position + 1 == explanation.chain.len() && position > 0);
    }
    if !explanation.is_complete {
        text.push("  (it waits for so many that not all of them were looked at)\n");
    }
    // The commands stay on one line each, so that they can be copied.
    let mut text = text.wrapped(out.width);
    next(out, &mut text, &explanation.next_actions);
    text
}

fn line(out: &Output, text: &mut Shown, link: &Link, is_first_cause: bool) {
    let status = out.paint.style(style::of_status(link.status), link.status.as_str());
    let id = out.paint.style(style::BOLD, &clean(link.task.as_str()));
    let mark = if is_first_cause { "  ← first cause" } else { "" };
    // Ends are told with the status in front.
    let told = clean(&link.text);
    let rest = told.strip_prefix(link.status.as_str()).map(|rest| rest.trim_start_matches([':', ' ']));
    let told = rest.unwrap_or(&told);
    text.push(shown!["  ", id, "  ", status, "  ", told, mark, "\n"]);
}

/// Appends the commands that the user can run next.
pub(super) fn next(out: &Output, text: &mut Shown, actions: &[Advised]) {
    if !actions.is_empty() {
        text.push(shown!["\n", out.paint.style(style::BOLD, "next"), "\n"]);
    }
    for action in actions {
        text.push(shown!["  ", out.paint.style(style::HINT, &clean(&action.to_string())), "\n"]);
    }
}

fn ready(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let limit = args.limit.map_or_else(|| Ok(app.config()?.limit), Ok::<_, CliError>)?;
    let mut list = app.reader()?.manager().explain_ready(&args.only, limit, &running::means(app)?)?;
    app.write_advice(&mut list.next_actions)?;
    let out = app.out();
    if out.is_json {
        return out.data(&list);
    }
    let mut text = Shown::new();
    let parts = [
        ("for runs, in this order", &list.for_runs, list.total_for_runs),
        ("for agents and people", &list.by_hand, list.total_by_hand),
    ];
    for (heading, tasks, total) in parts.into_iter().filter(|(.., total)| *total > 0) {
        text.push(shown![out.paint.style(style::BOLD, heading), "\n"]);
        text.push(table(tasks).render(out.paint, out.width));
        if total > tasks.len() {
            let _ = writeln!(text, "… {} more: `--limit 0` shows all", total - tasks.len());
        }
    }
    unrunnable_tasks(&out, &mut text, &list);
    if text.is_empty() {
        out.remark("nothing is ready");
    }
    next(&out, &mut text, &list.next_actions);
    out.print(text)
}

fn unrunnable_tasks(out: &Output, text: &mut Shown, list: &ReadyList) {
    if list.unrunnable.is_empty() {
        return;
    }
    text.push(shown![out.paint.style(style::BOLD, "ready, and no run here can take it"), "\n"]);
    let mut table = Table::new(2);
    for task in &list.unrunnable {
        let (id, because) = (Cell::styled(&task.task, style::BOLD), Cell::new(&task.because));
        table.row(vec![id, because, Cell::new(print::own_name(&task.task, &task.name))]);
    }
    text.push(table.render(out.paint, out.width));
    if list.total_unrunnable > list.unrunnable.len() {
        let more = list.total_unrunnable - list.unrunnable.len();
        let _ = writeln!(text, "… {more} more: `--limit 0` shows all");
    }
}

fn table(tasks: &[ReadyTask]) -> Table {
    let mut table = Table::new(4);
    for (place, task) in tasks.iter().enumerate() {
        let due = task.due_date.map(|due| format!("due {}", format_time(due).trim_end_matches("T00:00:00Z")));
        let way = task.longest_way.map(|way| format!("{way} to the end"));
        let tasks = task.tasks_to_end.map(|tasks| format!("{} to the end", print::count(tasks, "task")));
        let facts = [Some(task.priority.to_string()), due, way, tasks];
        table.row(vec![
            Cell::new((place + 1).to_string()),
            Cell::styled(&task.task, style::BOLD),
            Cell::new(facts.into_iter().flatten().collect::<Vec<_>>().join(" · ")),
            Cell::styled(&task.because, style::DIM),
            Cell::new(print::own_name(&task.task, &task.name)),
        ]);
    }
    table
}
