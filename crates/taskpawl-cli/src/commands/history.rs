use std::fmt::Write;
use std::process::ExitCode;

use serde_json::Value;
use taskpawl::Manager;
use taskpawl::model::{BlockedReason, Event, EventKind, Status, TaskId, Timestamp, format_time};

use crate::app::App;
use crate::commands::print;
use crate::error::CliError;
use crate::output::PageInfo;
use crate::text::{clean, cut, style};

/// Tell what changed, when, and by whom, in the order in which it happened
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every change has a revision: a number that grows by one.

Examples:
  taskpawl history build
  taskpawl history --since 120 --limit 0 --json")]
pub(crate) struct Args {
    /// Only of this task: its id, or the beginning of it
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Show at most so many, 0 for all: the latest, or with --since the first ones after that [default: 50]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Only what came after this revision
    #[arg(long, value_name = "REVISION")]
    since: Option<u64>,
}

/// Tells what changed.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let limit = args.limit.map_or_else(|| Ok(app.config()?.limit), Ok::<_, CliError>)?;
    let (events, truncated) = find(app.reader()?.manager(), args, limit)?;
    let out = app.out();
    if out.is_json {
        return out
            .page(&events, &PageInfo { limit, offset: 0, count: events.len(), total: None, truncated });
    }
    let mut text = String::new();
    for event in &events {
        let head = format!("{:>5}  {}", event.revision, format_time(event.at));
        let task = event.task.as_ref().map_or_else(String::new, |task| format!("{task}  "));
        let rest = clean(&format!("  {}  {task}{}", event.actor, what(&event.kind)));
        let rest =
            out.width.map_or_else(|| rest.clone(), |width| cut(&rest, width.saturating_sub(head.len())));
        let _ = writeln!(text, "{}{rest}", out.paint.style(style::DIM, &head));
    }
    out.print(&text)?;
    if truncated {
        let last = events.last().map_or(0, |event| event.revision);
        out.remark(&match args.since {
            Some(_) => format!("there is more: `--since {last}` goes on"),
            None => format!("the latest {limit}: `--limit 0` shows all"),
        });
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the events, and whether there are more.
fn find(manager: &Manager, args: &Args, limit: usize) -> Result<(Vec<Event>, bool), CliError> {
    let id = args.id.as_deref();
    if limit == 0 {
        return Ok((manager.history(id, args.since.unwrap_or(0), 0)?, false));
    }
    if let Some(since) = args.since {
        let mut events = manager.history(id, since, limit + 1)?;
        let truncated = events.len() > limit;
        events.truncate(limit);
        return Ok((events, truncated));
    }
    // Of the whole store the latest are known by their numbers; of a task there are only so many.
    let after = if id.is_some() { 0 } else { manager.revision()?.saturating_sub(limit as u64) };
    let events = manager.history(id, after, 0)?;
    let left_out = events.len().saturating_sub(limit);
    Ok((events[left_out..].to_vec(), left_out > 0 || after > 0))
}

/// Returns what happened, in words.
fn what(kind: &EventKind) -> String {
    match kind {
        EventKind::Created { name, plan, parent, .. } => {
            let plan = plan.as_ref().map(|plan| format!(" by plan {plan}")).unwrap_or_default();
            let parent = parent.as_ref().map(|parent| format!(" below {parent}")).unwrap_or_default();
            format!("created{parent}{plan}: {name}")
        }
        EventKind::Updated { fields } => {
            let change = |(field, change): (&String, &taskpawl::model::Change)| {
                format!("{field} {} → {}", short(&change.from), short(&change.to))
            };
            format!("changed {}", fields.iter().map(change).collect::<Vec<_>>().join(", "))
        }
        EventKind::Deleted { .. } => "deleted".to_owned(),
        EventKind::Status { .. } => status(kind),
        EventKind::Renewed { lease_until } => format!("claim renewed{}", until(Some(*lease_until))),
        EventKind::CallStarted { call, start, .. } => format!("call {call} started{}", nth(*start)),
        EventKind::CallEnded { call, status, error, .. } => {
            format!("call {call} {status}{}", after_colon(error.as_deref()))
        }
        EventKind::CallAdded { call, tool } => format!("call {call} added: {tool}"),
        EventKind::DependencyAdded { on } => format!("depends on {on} now"),
        EventKind::DependencyRemoved { on } => format!("no longer depends on {on}"),
        EventKind::Moved { from, to } => {
            let place =
                |id: &Option<TaskId>| id.as_ref().map_or_else(|| "the top".to_owned(), ToString::to_string);
            format!("moved from {} to {}", place(from), place(to))
        }
        EventKind::Noted { text } => format!("note: {text}"),
        EventKind::Applied { plan, created, changed, pruned } => {
            format!("plan {plan} applied: {created} created, {changed} changed, {pruned} pruned")
        }
        EventKind::RunStarted { scope } if scope.is_empty() => "run started".to_owned(),
        EventKind::RunStarted { scope } => format!("run started: {}", scope.join(" ")),
        EventKind::RunFinished { exit, counts } => {
            let counts: Vec<String> =
                counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
            format!("run finished with exit code {exit}: {}", counts.join(", "))
        }
        EventKind::RunKilled {} => "run ended without finishing".to_owned(),
        EventKind::ExternalEdit { tasks } => format!("the file was edited: {}", print::some(tasks)),
        other @ (EventKind::Unknown(_) | _) => other.name().to_owned(),
    }
}

fn status(kind: &EventKind) -> String {
    let EventKind::Status { from, to, cause, reason, text, attempt, lease_until } = kind else {
        return String::new();
    };
    let attempt = if *to == Status::InProgress { format!(", attempt {attempt}") } else { String::new() };
    let because = reason.as_ref().and_then(in_words);
    let because = after_colon(text.as_deref().or(because.as_deref()));
    format!("{from} → {to} by {cause}{attempt}{}{because}", until(*lease_until))
}

/// Events do not keep which tasks a gate waits for: there may be many, and the edges have them.
fn in_words(reason: &BlockedReason) -> Option<String> {
    match reason {
        BlockedReason::Dependency { ids } | BlockedReason::Waiting { ids } if ids.is_empty() => None,
        BlockedReason::Dependency { .. }
        | BlockedReason::Waiting { .. }
        | BlockedReason::Approval { .. }
        | BlockedReason::MissingTool { .. }
        | BlockedReason::Interrupted { .. }
        | BlockedReason::Manual { .. } => Some(print::reason(reason)),
    }
}

fn until(lease: Option<Timestamp>) -> String {
    lease.map(|lease| format!(", until {}", format_time(lease))).unwrap_or_default()
}

fn nth(start: u32) -> String {
    if start > 1 { format!(", start {start}") } else { String::new() }
}

fn after_colon(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).map(|text| format!(": {text}")).unwrap_or_default()
}

fn short(value: &Value) -> String {
    if value.is_null() { "nothing".to_owned() } else { cut(&value.to_string(), 60) }
}
