//! The summary of a run as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use taskpawl::model::task::Status;
use taskpawl::model::value::TaskId;
use taskpawl::{FailureGroup, RunSummary};
use taskpawl_text::duration;

use crate::failure_words::failure_words;
use crate::report::lines;
use crate::shown::{Shown, shown};
use crate::text::{Paint, clean, count, style, without_sequences};

/// The maximum number of tasks that a section names.
const MAX_NAMED: usize = 10;

/// The statuses that the first line counts beside `done`, the most urgent first.
const OTHERS: [Status; 6] =
    [Status::Failed, Status::Blocked, Status::InProgress, Status::Todo, Status::Cancelled, Status::Skipped];

/// What the terminal knows of a run beside its summary.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    /// Duration of the run.
    pub(crate) took: Duration,
    /// Failed tasks that were shown when they failed.
    pub(crate) shown: BTreeSet<TaskId>,
    /// True if the run applied a plan file.
    pub(crate) of_file: bool,
}

/// Returns the summary of a run: counts, failures, waiting and blocked tasks, tasks that did not run, and the next
/// commands.
///
/// `width` is that of the terminal. The next commands are not wrapped, so that they can be copied.
pub(crate) fn summary_text(summary: &RunSummary, ran: &Ran, paint: Paint, width: Option<usize>) -> Shown {
    let mut text = counts(summary, ran, paint);
    failures(&mut text, summary, &ran.shown, paint);
    waiting(&mut text, summary, paint);
    let blocked =
        summary.blocked.iter().map(|task| (task.task.as_str(), task.name.as_str(), task.reason.as_str()));
    section(&mut text, "Blocked", blocked, summary.blocked_unlisted, "blocked", paint);
    let not_run = summary.not_run.iter().map(|task| (task.task.as_str(), "", task.reason.as_str()));
    section(&mut text, "Not run", not_run, 0, "todo", paint);
    limits(&mut text, summary, paint);
    let mut text = text.wrapped(width);
    if !summary.next_actions.is_empty() {
        heading(&mut text, "Next", paint);
        for action in &summary.next_actions {
            let _ = writeln!(text, "  {}", clean(&action.to_string()));
        }
    }
    text
}

/// Adds reached limits, unexpected file changes and consumption.
fn limits(text: &mut Shown, summary: &RunSummary, paint: Paint) {
    if !summary.ended_early.is_empty() {
        heading(text, "Ended early", paint);
        for ended in &summary.ended_early {
            let _ = writeln!(text, "  {}", lines::ended_early(ended));
        }
    }
    if !summary.changed_beyond.is_empty() {
        heading(text, "Changed beyond `writes`", paint);
        for changed in &summary.changed_beyond {
            let line =
                lines::changed_beyond(changed.task.as_str(), &changed.files, changed.unknown.as_deref());
            let _ = writeln!(text, "  {line}");
        }
    }
    spent(text, summary, paint);
}

/// Adds the consumption, if a tool reported usage or a limit was reached.
fn spent(text: &mut Shown, summary: &RunSummary, paint: Paint) {
    let spent = &summary.spent;
    if spent.usage.is_none() && summary.ended_early.is_empty() {
        return;
    }
    heading(text, "Used", paint);
    let line = |calls: u64, millis: u64, usage: Option<&Value>| {
        let calls = if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
        let usage = usage.map_or_else(String::new, |usage| format!(", {}", clean(&usage.to_string())));
        format!("{calls}, {}{usage}", duration(Duration::from_millis(millis)))
    };
    let _ = writeln!(text, "  in total: {}", line(spent.calls, spent.millis, spent.usage.as_ref()));
    for task in spent.tasks.iter().take(MAX_NAMED) {
        let id = paint.style(style::BOLD, &clean(task.task.as_str()));
        text.push(shown!["  ", id, ": ", line(task.calls, task.millis, task.usage.as_ref()), "\n"]);
    }
    let more = spent.tasks.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        let _ = writeln!(text, "  and more with less: --json lists {} of them", spent.tasks.len());
    }
}

/// Tells what this run did, and how its tasks stand.
fn counts(summary: &RunSummary, ran: &Ran, paint: Paint) -> Shown {
    let of =
        |counts: &BTreeMap<String, u64>, status: Status| counts.get(status.as_str()).copied().unwrap_or(0);
    let total: u64 = summary.counts.values().sum();
    let (done, now_done) = (of(&summary.counts, Status::Done), of(&summary.ended, Status::Done));
    let now = now_done + of(&summary.ended, Status::Failed);
    if total == 0 {
        return "no tasks\n".into();
    }
    let all = paint.style(style::of_status(Status::Done), &all_done(total));
    if total == done && now == 0 {
        let again = if ran.of_file { "; `--fresh` runs them again" } else { "" };
        return shown!["nothing to run: ", all, again, "\n"];
    }
    let before = done.saturating_sub(now_done);
    let ran_count = now.saturating_sub(summary.cached);
    let ran_text = if ran_count == 0 { "nothing ran".to_owned() } else { format!("{ran_count} ran") };
    let mut parts = vec![Shown::from(ran_text)];
    if summary.cached > 0 {
        parts.push(format!("{} taken from an earlier success", summary.cached).into());
    }
    if before > 0 {
        parts.push(format!("{before} {} done before", if before == 1 { "was" } else { "were" }).into());
    }
    for status in OTHERS {
        let count = of(&summary.counts, status);
        if count > 0 {
            let text = format!("{count} {}", status.as_str().replace('_', " "));
            parts.push(paint.style(style::of_status(status), &text));
        }
    }
    let end = if total == done { shown![": ", all] } else { Shown::new() };
    shown![Shown::joined(parts, ", "), " in ", duration(ran.took), end, "\n"]
}

fn all_done(total: u64) -> String {
    if total == 1 { "the task is done".to_owned() } else { format!("all {total} tasks are done") }
}

fn heading(text: &mut Shown, title: &str, paint: Paint) {
    text.push(shown!["\n", paint.style(style::BOLD, title), "\n"]);
}

fn failures(text: &mut Shown, summary: &RunSummary, shown: &BTreeSet<TaskId>, paint: Paint) {
    if summary.failures.is_empty() {
        return;
    }
    heading(text, "Failed", paint);
    for group in &summary.failures {
        text.push(shown!["  ", paint.style(style::of_status(Status::Failed), &title(group)), "\n"]);
        // What was shown when it happened is not repeated.
        let (before, now): (Vec<_>, Vec<_>) =
            group.tasks.iter().take(MAX_NAMED).partition(|failed| !shown.contains(&failed.task));
        if !now.is_empty() {
            let names: Vec<String> = now.iter().map(|failed| clean(failed.task.as_str())).collect();
            let _ = writeln!(text, "    {}", names.join(", "));
        }
        for failed in before {
            let error = clean(&without_sequences(&failed.error));
            let _ = writeln!(text, "    {}: {error}", clean(failed.task.as_str()));
        }
        more(text, "    ", group.count.saturating_sub(MAX_NAMED as u64), "failed");
    }
}

fn title(group: &FailureGroup) -> String {
    let what = clean(&failure_words(&group.tool, &group.class));
    let tasks = count(group.count, "task");
    match group.blocks {
        0 => format!("{what}: {tasks}"),
        blocks => format!("{what}: {tasks}, {blocks} blocked by it"),
    }
}

fn waiting(text: &mut Shown, summary: &RunSummary, paint: Paint) {
    if summary.waiting.is_empty() {
        return;
    }
    let lines =
        summary.waiting.iter().map(|task| (task.task.as_str(), task.name.as_str(), task.reason.as_str()));
    heading(text, "Waiting", paint);
    for line in lines.take(MAX_NAMED) {
        line_of(text, line, paint);
    }
    let rest = summary.waiting.len().saturating_sub(MAX_NAMED) as u64;
    more(text, "  ", rest + summary.waiting_unlisted, "todo,in_progress,blocked");
}

fn section<'a>(
    text: &mut Shown,
    title: &str,
    lines: impl ExactSizeIterator<Item = (&'a str, &'a str, &'a str)>,
    unlisted: u64,
    status: &str,
    paint: Paint,
) {
    let count = lines.len();
    if count == 0 {
        return;
    }
    heading(text, title, paint);
    for line in lines.take(MAX_NAMED) {
        line_of(text, line, paint);
    }
    more(text, "  ", count.saturating_sub(MAX_NAMED) as u64 + unlisted, status);
}

fn line_of(text: &mut Shown, (task, name, reason): (&str, &str, &str), paint: Paint) {
    let name = if name.is_empty() || name == task { String::new() } else { format!("  {}", clean(name)) };
    text.push(shown!["  ", paint.style(style::BOLD, &clean(task)), name, ": ", clean(reason), "\n"]);
}

fn more(text: &mut Shown, indent: &str, count: u64, status: &str) {
    if count > 0 {
        let _ = writeln!(text, "{indent}and {count} more: taskpawl list --status {status}");
    }
}
