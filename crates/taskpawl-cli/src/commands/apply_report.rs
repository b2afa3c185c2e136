//! The report of an applied plan as text.

use std::fmt::Write as _;

use taskpawl::model::advice::Hint;
use taskpawl::model::command::{ApplyReport, KeptStatus};
use taskpawl::model::value::TaskId;

use crate::app::App;
use crate::shown::{Shown, shown};
use crate::text::{clean, style};

/// Returns the report with the number of tasks of each kind, and the first ids.
pub(super) fn text_of(app: &App, report: &ApplyReport) -> Shown {
    let paint = app.out().paint;
    let mut text = shown!["plan ", paint.style(style::BOLD, &clean(&report.plan)), "\n"];
    let lists = [
        ("created", &report.created),
        ("changed", &report.changed),
        ("gone", &report.gone),
        ("pruned", &report.pruned),
        ("retried", &report.retried),
        ("kept", &report.kept),
    ];
    for (label, ids) in lists.into_iter().filter(|(_, ids)| !ids.is_empty()) {
        let _ = writeln!(text, "  {label:<9}  {:>5}  {}", ids.len(), clean(&listed(ids)));
    }
    if !report.header.is_empty() {
        let _ = writeln!(
            text,
            "  {:<9}  {:>5}  {}",
            "header",
            report.header.len(),
            clean(&report.header.join(", "))
        );
    }
    if let Some(told) = told_prefix(report) {
        let _ = writeln!(text, "  {:<9}  {}", "prefix", clean(&told));
    }
    for (label, count) in [("unchanged", report.unchanged), ("reopened", report.reopened)] {
        if count > 0 {
            let _ = writeln!(text, "  {label:<9}  {count:>5}");
        }
    }
    for task in report.waiting.iter().take(MAX_LISTED) {
        let _ = writeln!(text, "  {}", clean(&waiting_text(app, task)));
    }
    text
}

/// Says why a changed task does not continue by itself, and what lets it.
pub(super) fn waiting_text(app: &App, task: &KeptStatus) -> String {
    let hint = Hint::new(format!("{} is {} and took its new definition: ", task.id, task.status));
    hint.advice(task.advice()).format_with(&*app.out().line)
}

/// Explains in words that ids of the file were taken, and which prefix the tasks have instead.
pub(super) fn told_prefix(report: &ApplyReport) -> Option<String> {
    if !report.prefixed.is_empty() {
        let of = format!("{}.", report.plan);
        return Some(format!(
            "ids that were taken, and begin with `{of}` here: {}",
            listed(&report.prefixed)
        ));
    }
    let prefix = report.prefix.as_ref().filter(|_| !report.created.is_empty())?;
    let first = report.created.first()?;
    Some(format!("ids of the file were taken: all tasks of the plan begin with `{prefix}.`, as `{first}`"))
}

/// Number of ids that the report of an apply lists of each kind; `--json` lists all.
const MAX_LISTED: usize = 20;

/// Joins the first ids of a list, with a count of the rest.
fn listed(ids: &[TaskId]) -> String {
    let mut words: Vec<String> = ids.iter().take(MAX_LISTED).map(ToString::to_string).collect();
    if ids.len() > MAX_LISTED {
        words.push(format!("{} more (--json lists them)", ids.len() - MAX_LISTED));
    }
    words.join(", ")
}
