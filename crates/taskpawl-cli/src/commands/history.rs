mod change;

use std::process::ExitCode;

use taskpawl::model::task::{ActorKind, BlockedReason, Cause, ChecklistItem, ChecklistStatus};
use taskpawl::model::task::{ChecklistChanged, Event, EventKind, PlanApplied, TaskCreated};
use taskpawl::model::value::TaskId;
use taskpawl::model::value::{Timestamp, format_time};
use taskpawl::{HistoryEntry, HistoryFilter, Manager};
use unicode_width::UnicodeWidthStr;

use change::{StatusChange, of_fields};

use crate::app::App;
use crate::commands::{parse, print};
use crate::error::CliError;
use crate::output::{Output, PageInfo};
use crate::shown::{Shown, shown};
use crate::text::{MIN_WRAPPED, clean, lease_end, quoted, style, time, without_sequences, wrap};

/// Show changes: what, when, by which actor. Shows changes in the order in which they happened
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every change has a revision: a number that grows by one, and by which `undo` takes it.
For an audit, `--limit 0 --format ndjson` exports all of it: `taskpawl schema event` describes each line.

Examples:
  taskpawl history build
  taskpawl history --by ann@host --since 2026-05-31
  taskpawl history --limit 0 --format ndjson > audit.ndjson")]
pub(crate) struct Args {
    /// Only of this task: its id, or the beginning of it
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Show at most so many, 0 for all: the latest, or with --since the first ones after that [default: 50]
    #[arg(long, short = 'n', value_name = "N", value_parser = parse::number::<usize>)]
    limit: Option<usize>,
    /// Only what came after this revision, or not before this time, as in 2026-05-31 or 2026-05-31T12:00:00Z
    #[arg(long, value_name = "REVISION|TIME", value_parser = since)]
    since: Option<Since>,
    /// Only what was done in this name
    #[arg(long = "by", value_name = "ACTOR")]
    by: Option<String>,
    /// Only what happened in this run: its id, or the beginning of it
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Print each change as it is: ndjson prints one JSON object a line, as it is read
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Auto)]
    format: Format,
}

/// Start of the listed history: after a revision, or at a time.
#[derive(Debug, Clone, Copy)]
enum Since {
    Revision(u64),
    Time(Timestamp),
}

/// How changes are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text, or with --json one document
    Auto,
    /// One JSON object a line, for programs and for the record
    Ndjson,
}

fn since(text: &str) -> Result<Since, String> {
    if let Ok(revision) = text.parse() {
        return Ok(Since::Revision(revision));
    }
    // A date alone has 10 characters and means midnight UTC.
    let full = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    let time = chrono::DateTime::parse_from_rfc3339(&full);
    time.map(|time| Since::Time(time.into()))
        .map_err(|_| "expected a revision, or a time such as 2026-05-31 or 2026-05-31T12:00:00Z".to_owned())
}

/// Lists events.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let limit = args.limit.map_or_else(|| Ok(app.config()?.limit), Ok::<_, CliError>)?;
    let manager = app.reader()?.manager();
    let filter = filter(args, limit);
    let out = app.out();
    // `--fields` implies JSON and selects the fields of each line, so only `--json` itself contradicts
    // `ndjson`.
    if args.format == Format::Ndjson && app.is_json() && out.fields.is_empty() {
        let hint = "leave `--json` out: each line of the stream is an object";
        return Err(CliError::usage_with("`--json` is one document and `--format ndjson` is many", hint));
    }
    if limit == 0 {
        return print_all(&out, manager, &filter, args.format);
    }
    let (entries, truncated) = find(manager, &filter)?;
    if args.format == Format::Ndjson {
        out.lines(&entries)?;
    } else if out.is_json {
        let page = PageInfo { limit, count: entries.len(), truncated, ..PageInfo::default() };
        return out.page(&entries, &page);
    } else {
        out.print(lines(&out, &entries))?;
    }
    if truncated {
        let last = entries.last().map_or(0, |entry| entry.event.revision);
        out.remark(&match args.since {
            Some(_) => format!("there is more: `--since {last}` goes on"),
            None => format!("the latest {limit}: `--limit 0` shows all"),
        });
    }
    Ok(ExitCode::SUCCESS)
}

fn filter(args: &Args, limit: usize) -> HistoryFilter {
    let (after, since) = match args.since {
        Some(Since::Revision(revision)) => (revision, None),
        Some(Since::Time(time)) => (0, Some(time)),
        None => (0, None),
    };
    HistoryFilter {
        task: args.id.clone(),
        actor: args.by.clone(),
        run: args.run.clone(),
        after,
        since,
        limit,
        latest: args.since.is_none(),
    }
}

/// Prints events while they are read: the whole history may not fit into memory.
fn print_all(
    out: &Output,
    manager: &Manager,
    filter: &HistoryFilter,
    format: Format,
) -> Result<ExitCode, CliError> {
    let filter = HistoryFilter { latest: false, ..filter.clone() };
    let each = |print: &mut dyn FnMut(&[HistoryEntry]) -> Result<(), CliError>| {
        let (mut count, mut result) = (0, Ok(()));
        manager.each_history(&filter, |entries| {
            count += entries.len();
            result = print(&entries);
            result.is_ok()
        })?;
        result.map(|()| PageInfo { count, ..PageInfo::default() })
    };
    match (format, out.is_json) {
        (Format::Ndjson, _) => each(&mut |entries| out.lines(entries))?,
        (Format::Auto, true) => return out.stream(each),
        (Format::Auto, false) => each(&mut |entries| out.piece(&lines(out, entries)))?,
    };
    Ok(ExitCode::SUCCESS)
}

/// Returns the entries, and whether more exist.
fn find(manager: &Manager, filter: &HistoryFilter) -> Result<(Vec<HistoryEntry>, bool), CliError> {
    let limit = filter.limit;
    // One more than the limit is read, to learn whether more exist without counting all.
    let mut entries = manager.find_history(&HistoryFilter { limit: limit + 1, ..filter.clone() })?;
    let truncated = entries.len() > limit;
    if filter.latest {
        entries.drain(..entries.len().saturating_sub(limit));
    } else {
        entries.truncate(limit);
    }
    Ok((entries, truncated))
}

/// Formats one line per entry.
pub(super) fn lines(out: &Output, entries: &[HistoryEntry]) -> Shown {
    let mut text = Shown::new();
    let columns = Columns::of(out, entries);
    let mut before = None;
    for HistoryEntry { event, undone_by, .. } in entries {
        let head = columns.head(event);
        let task = event.task.as_ref().map_or_else(String::new, |task| format!("{task}  "));
        let run = event.run.as_ref().map_or_else(String::new, |run| {
            format!(" in run {}", run.as_str().chars().take(8).collect::<String>())
        });
        let undone = undone_by.map_or_else(String::new, |by| format!("  (undone by {by})"));
        let change = what(event, before, out.now);
        let rest = clean(&format!("  {}{run}  {task}{change}{undone}", actor(event)));
        let head_width = head.width() + 2;
        let lines = match out.width {
            Some(width) => wrap(rest.trim_start(), width.saturating_sub(head_width).max(MIN_WRAPPED)),
            None => vec![rest.trim_start().to_owned()],
        };
        let indent = format!("\n{}", " ".repeat(head_width));
        text.push(shown![out.paint.style(style::DIM, &head), "  ", lines.join(&indent), "\n"]);
        before = Some(event);
    }
    text
}

/// The widths of the first columns. On a terminal they are as narrow as their entries; elsewhere they are the same for all
/// parts of a long history.
struct Columns {
    revision: usize,
    time: usize,
    now: Option<Timestamp>,
}

impl Columns {
    fn of(out: &Output, entries: &[HistoryEntry]) -> Self {
        let now = out.now;
        if out.width.is_none() {
            return Self { revision: 5, time: 10, now };
        }
        let widest = |width: &dyn Fn(&Event) -> usize| {
            entries.iter().map(|entry| width(&entry.event)).max().unwrap_or_default()
        };
        Self {
            revision: widest(&|event| event.revision.to_string().len()),
            time: widest(&|event| time(event.at, now).width()),
            now,
        }
    }

    fn head(&self, event: &Event) -> String {
        let (revision, time) = (event.revision, time(event.at, self.now));
        format!("{revision:>0$}  {time:>1$}", self.revision, self.time)
    }
}

/// Formats an event of one task: time, actor and change.
pub(crate) fn line(event: &Event) -> String {
    format!("{}  {}  {}", format_time(event.at), actor(event), what(event, None, None))
}

/// Describes the change of an event, without its time and actor.
pub(crate) fn change(event: &Event) -> String {
    what(event, None, None)
}

/// Returns the actor with its kind. The kind of a run is shown by the run itself, and old events have none.
fn actor(event: &Event) -> String {
    match event.kind_of_actor() {
        ActorKind::Run | ActorKind::Unknown => event.actor.to_string(),
        kind @ (ActorKind::Person | ActorKind::Agent | ActorKind::Program) => {
            format!("{} ({kind})", event.actor)
        }
    }
}

/// Describes a change in words. Times are relative to `now`. An error that `before`, the previous change, has shown is not
/// repeated.
fn what(event: &Event, before: Option<&Event>, now: Option<Timestamp>) -> String {
    let kind = &event.kind;
    match kind {
        EventKind::Created(task) => created(event.task.as_ref(), task),
        EventKind::Updated { fields } => of_fields(fields),
        EventKind::Deleted { .. } => "deleted".to_owned(),
        EventKind::Status { .. } => status(event, error_of_call(event, before), now),
        EventKind::Renewed { lease_until } => format!("claim renewed{}", until(Some(*lease_until), now)),
        EventKind::CallStarted { call, start, .. } => format!("call {call} started{}", nth(*start)),
        EventKind::CallEnded { call, status, error, again_at, worker, .. } => {
            let worker = worker.as_deref().map(|worker| format!(" on @{worker}")).unwrap_or_default();
            let error = error.as_deref().map(|error| without_sequences(error));
            let again = again(again_at.as_deref().copied(), now);
            format!("call {call} {status}{worker}{again}{}", after_colon(error.as_deref()))
        }
        EventKind::Stopped { .. } => "all its calls have ended".to_owned(),
        EventKind::RoundEnded { round, of, again_at } => {
            format!("round {round} of at most {of} ended{}", again(*again_at, now))
        }
        EventKind::SentBack { call, round, of } => {
            format!("sent back, call {call} goes on: rework {round} of at most {of}")
        }
        EventKind::ApprovedAhead { call } => {
            let call = call.as_ref().map(|call| format!(" call {call}"));
            format!("approved ahead{}", call.unwrap_or_default())
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
        EventKind::Applied(plan) => applied(plan),
        EventKind::Undone { first, last } if first == last => format!("undid revision {last}"),
        EventKind::Undone { first, last } => format!("undid revisions {first} to {last}"),
        EventKind::Pruned { runs, outputs, files, .. } => {
            let (runs, outputs, files) =
                (print::count(*runs, "run"), print::count(*outputs, "other"), print::count(*files, "file"));
            format!("pruned {runs}, and the output of {outputs}: {files}")
        }
        EventKind::RunStarted { scope } if scope.is_empty() => "run started".to_owned(),
        EventKind::RunStarted { scope } => format!("run started: {}", scope.join(" ")),
        EventKind::RunFinished { exit, counts } => run_finished(*exit, &print::counts(counts)),
        EventKind::RunStopRequested { id, now } => {
            let id: String = id.as_str().chars().take(8).collect();
            format!("run {id} asked to stop{}", if *now { " now" } else { "" })
        }
        EventKind::RunKilled {} => "run ended without finishing".to_owned(),
        EventKind::ExternalEdit { tasks } => format!("the file was edited: {}", print::some(tasks)),
        EventKind::Signal(signal) => {
            let to = signal.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
            format!("signal {}{to} {}", signal.name, signal.step)
        }
        EventKind::Checklist(list) => checklist(list),
        other @ (EventKind::Unknown(_) | _) => other.name().to_owned(),
    }
}

fn created(id: Option<&TaskId>, task: &TaskCreated) -> String {
    let TaskCreated { name, plan, parent, .. } = task;
    let plan = plan.as_ref().map(|plan| format!(" by plan {plan}")).unwrap_or_default();
    let parent = parent.as_ref().map(|parent| format!(" below {parent}")).unwrap_or_default();
    format!("created{parent}{plan}{}", name_beside(id, name))
}

fn applied(plan: &PlanApplied) -> String {
    let PlanApplied { plan, created, changed, pruned, notify } = plan;
    let told = notify.as_deref().map(tells).unwrap_or_default();
    format!("plan {plan} applied: {created} created, {changed} changed, {pruned} pruned{told}")
}

fn run_finished(exit: u8, counts: &[String]) -> String {
    let counts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
    format!("run finished with exit code {exit}{counts}")
}

fn checklist(list: &ChecklistChanged) -> String {
    let ChecklistChanged { scope, items, .. } = list;
    let is_done = |item: &&ChecklistItem| item.status == ChecklistStatus::Completed;
    let done = items.iter().filter(is_done).count();
    format!("checklist of {scope}: {done}/{} completed", items.len())
}

/// Returns the error of the call whose end, `before`, led to a change.
fn error_of_call<'b>(event: &Event, before: Option<&'b Event>) -> Option<&'b str> {
    let before = before.filter(|before| before.task == event.task)?;
    let EventKind::CallEnded { error, .. } = &before.kind else { return None };
    error.as_deref().map(String::as_str)
}

fn status(event: &Event, shown: Option<&str>, now: Option<Timestamp>) -> String {
    let EventKind::Status { from, to, cause, reason, text, attempt, lease_until } = &event.kind else {
        return String::new();
    };
    let (from, to, cause, attempt) = (*from, *to, *cause, *attempt);
    let words = StatusChange { from, to, cause, attempt, has_lease: lease_until.is_some() }.words();
    // A report without a claim before it claims the task for no time.
    let lease_until = lease_until.filter(|end| *end > event.at);
    let because = reason.as_deref().and_then(in_words);
    // The error of a task ends with that of its call.
    let text = text.as_deref().map(|text| {
        let rest = shown.and_then(|shown| text.strip_suffix(shown));
        without_sequences(rest.map_or(text, |rest| rest.trim_end_matches([':', ' '])))
    });
    let because = after_colon(text.as_deref().or(because.as_deref()));
    match because.strip_prefix(": ") {
        // The question says that it is one.
        Some(question) if cause == Cause::Ask => question.to_owned(),
        _ => format!("{words}{}{because}", until(lease_until, now)),
    }
}

/// Events do not store the tasks that a gate waits for: there may be many, and the edges already hold them.
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

/// Names the program that a plan notifies from now on.
fn tells(argv: &[String]) -> String {
    let words: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
    if words.is_empty() { ", tells no program".to_owned() } else { format!(", tells {}", words.join(" ")) }
}

/// Returns the name of a task behind a colon, unless its id says the same.
fn name_beside(id: Option<&TaskId>, name: &str) -> String {
    if id.is_some_and(|id| id.as_str() == name) { String::new() } else { after_colon(Some(name)) }
}

fn until(lease: Option<Timestamp>, now: Option<Timestamp>) -> String {
    lease.map(|lease| format!(", {}", lease_end(lease, now))).unwrap_or_default()
}

fn again(at: Option<Timestamp>, now: Option<Timestamp>) -> String {
    let word = if now.is_some() { "again" } else { "again at" };
    at.map(|at| format!(", {word} {}", time(at, now))).unwrap_or_default()
}

fn nth(start: u32) -> String {
    if start > 1 { format!(", start {start}") } else { String::new() }
}

fn after_colon(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).map(|text| format!(": {text}")).unwrap_or_default()
}
