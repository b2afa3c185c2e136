//! Output of tasks.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::{Value, json};
use taskpawl::model::task::{ClaimEnd, Priority, Status, Task, WaitingFor};
use taskpawl::model::value::{CallId, RunId, TaskId};
use taskpawl::{Manager, Page};

use crate::app::App;
use crate::error::CliError;
use crate::output::PageInfo;
pub(super) use crate::text::count;
use crate::text::{Cell, Table, style};

/// Number of characters of a random id that lists show. Commands accept any unique prefix.
const SHOWN_ID: usize = 8;

/// Prints one task that a command created or changed.
pub(super) fn task(app: &App, id: &TaskId) -> Result<ExitCode, CliError> {
    let task = match app.manager()?.get(id.as_str()) {
        Ok(task) => task,
        Err(error) => {
            return saved_but_unread(app, std::slice::from_ref(id), &json!({ "id": id }), &error.into());
        }
    };
    let out = app.out();
    if out.is_json {
        return out.data(&task);
    }
    changed(app, std::slice::from_ref(&task))
}

/// Prints the tasks that a command changed, in its order.
pub(super) fn tasks(app: &App, ids: &[TaskId]) -> Result<ExitCode, CliError> {
    let tasks = match read(app.manager()?, ids) {
        Ok(tasks) => tasks,
        Err(error) => {
            let shown = ids.iter().map(|id| json!({ "id": id })).collect();
            return saved_but_unread(app, ids, &shown, &error);
        }
    };
    let out = app.out();
    if out.is_json {
        return out.data(&tasks);
    }
    changed(app, &tasks)
}

/// Prints ids of tasks that could not be read back, or `shown` with `--json`. The change is already durable:
/// a failure exit code would make callers repeat it, so this only warns.
pub(super) fn saved_but_unread(
    app: &App,
    ids: &[TaskId],
    shown: &Value,
    error: &CliError,
) -> Result<ExitCode, CliError> {
    let out = app.out();
    out.warn(&format!("done, but it could not be shown: {}", error.message()));
    if out.is_json {
        return out.data(shown);
    }
    let lines: Vec<String> = ids.iter().map(|id| format!("{id}\n")).collect();
    out.print(lines.concat())
}

fn read(manager: &Manager, ids: &[TaskId]) -> Result<Vec<Task>, CliError> {
    let tasks = ids.iter().map(|id| manager.get(id.as_str())).collect::<Result<_, _>>()?;
    Ok(tasks)
}

fn changed(app: &App, tasks: &[Task]) -> Result<ExitCode, CliError> {
    let out = app.out();
    if out.is_quiet {
        let ids: Vec<String> = tasks.iter().map(|task| format!("{}\n", task.id)).collect();
        return out.print(ids.concat());
    }
    let mut table = Table::new(2);
    for task in tasks {
        table.row(vec![
            Cell::styled(&task.id, style::BOLD),
            Cell::styled(task.status.as_str(), style::of_status(task.status)),
            Cell::new(own_name(&task.id, &task.name)),
        ]);
    }
    out.print(table.render(out.paint, out.width))
}

/// Prints one page of tasks. `more` is the command for the next page, without `--offset`.
pub(super) fn page(
    app: &App,
    page: &Page,
    limit: usize,
    offset: usize,
    more: &str,
) -> Result<ExitCode, CliError> {
    let out = app.out();
    if out.is_json {
        return out.page(&page.tasks, &PageInfo::of(page, limit, offset));
    }
    out.print(table_of(&page.tasks).render(out.paint, out.width))?;
    if page.tasks.is_empty() {
        out.remark("no tasks");
    }
    if page.truncated {
        let next = offset + page.tasks.len();
        let of = page.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let more = out.line.with(more);
        out.remark(&format!(
            "{} to {next}{of}: `{more} --offset {next}` shows the next page, `{more} --limit 0` shows all",
            offset + 1
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn table_of(tasks: &[Task]) -> Table {
    let mut table = Table::new(3);
    for task in tasks {
        let priority = if task.priority == Priority::default() { "" } else { task.priority.as_str() };
        table.row(vec![
            Cell::styled(short(&task.id), style::BOLD),
            Cell::styled(task.status.as_str(), style::of_status(task.status)),
            Cell::styled(priority, style::of_priority(task.priority)),
            Cell::new(own_name(&task.id, &task.name)),
            Cell::styled(beside(task), style::DIM),
        ]);
    }
    table
}

/// Returns the name of a task; nothing if it only repeats the id, as in plans that give no names.
pub(super) fn own_name<'n>(id: &TaskId, name: &'n str) -> &'n str {
    if name == id.as_str() { "" } else { name }
}

/// Returns the prefix of a random id, and any other id in full.
fn short(id: &TaskId) -> &str {
    let text = id.as_str();
    let is_random = text.len() == 36 && text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
    if is_random { &text[..SHOWN_ID] } else { text }
}

/// Returns further facts about a task in a list.
fn beside(task: &Task) -> String {
    let due = task.options.get("dueDate").and_then(|due| due.as_str());
    let assignee = task.options.get("assignee").and_then(|assignee| assignee.as_str());
    let wait = task.progress.waiting_for.as_deref();
    let claim = task.claim.as_ref().filter(|_| wait.is_none()).map(|claim| match task.claim_ended {
        None => format!("held by {}", claim.actor),
        Some(ClaimEnd::Expired) => format!("held by {}, whose claim is over", claim.actor),
        Some(ClaimEnd::Killed) => "held by a run that ended without finishing".to_owned(),
    });
    let parts = [
        due.map(|due| format!("due {}", due.trim_end_matches("T00:00:00Z"))),
        assignee.map(|assignee| format!("for {assignee}")),
        claim,
        wait.map(|wait| wait_text(wait, task.wait_over)),
        task.ended_by.as_ref().map(ending),
        task.blocked_reason.as_ref().map(reason),
        task.question_over.then(|| "no decision came in time".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Describes the wait of a task. Without a process that looks at the clock, it may be over.
pub(super) fn wait_text(wait: &WaitingFor, is_over: bool) -> String {
    if is_over { format!("{wait}: that is over, and the next run goes on with it") } else { wait.to_string() }
}

/// Reports that calls of a cancelled task are still being ended.
pub(super) fn ending(run: &RunId) -> String {
    format!("its call is still being ended by run {run}")
}

/// Describes the reason why a task is blocked.
pub(crate) fn reason(reason: &taskpawl::model::task::BlockedReason) -> String {
    use taskpawl::model::task::BlockedReason as Reason;
    match reason {
        Reason::Dependency { ids } => format!("because of {}", some(ids)),
        Reason::Waiting { ids } => format!("waits for {}", some(ids)),
        Reason::Approval { call, ask, options, .. } => asks(call.as_ref(), ask.as_deref(), options),
        Reason::MissingTool { name } => format!("no tool {name} here"),
        Reason::Interrupted { call } => format!("call {call} was interrupted: its outcome is unknown"),
        Reason::Manual { text } => text.clone(),
    }
}

fn asks(call: Option<&CallId>, ask: Option<&str>, options: &[String]) -> String {
    let what = match (ask, call) {
        (Some(ask), _) => format!("asks: {ask}"),
        (None, Some(call)) => format!("call {call} waits for approval"),
        (None, None) => "waits for approval".to_owned(),
    };
    if options.is_empty() { what } else { format!("{what} ({})", options.join(", ")) }
}

/// The statuses in the order in which counts are told, the most urgent first.
const URGENCY: [Status; 7] = [
    Status::Failed,
    Status::Blocked,
    Status::InProgress,
    Status::Todo,
    Status::Cancelled,
    Status::Skipped,
    Status::Done,
];

/// Returns the number of tasks in each status, in words.
pub(super) fn counts(counts: &BTreeMap<String, u64>) -> Vec<String> {
    let counted = URGENCY.iter().filter_map(|status| Some((status.as_str(), counts.get(status.as_str())?)));
    counted.map(|(status, count)| format!("{count} {}", status.replace('_', " "))).collect()
}

/// Joins the first ids, with a count of the rest.
pub(super) fn some(ids: &[TaskId]) -> String {
    const MAX_SHOWN: usize = 5;
    let mut words: Vec<String> = ids.iter().take(MAX_SHOWN).map(ToString::to_string).collect();
    if ids.len() > MAX_SHOWN {
        words.push(format!("{} more", ids.len() - MAX_SHOWN));
    }
    words.join(", ")
}
