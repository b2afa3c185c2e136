//! A self-contained page of a run. Maud escapes every text in it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};
use taskpawl_model::value::format_time;
use taskpawl_text::{duration, escaped, without_sequences};

use crate::log::{CallLog, Outcome, RunEnd, RunLog, TaskLog};
use crate::timeline::timeline;

const STYLE: &str = include_str!("html/style.css");

/// The most rows of the table of tasks. Failures have sections of their own.
const MAX_ROWS: usize = 10_000;

/// The most failures with a section.
const MAX_FAILURES: usize = 500;

/// Returns the page of a run. It loads nothing and runs no script, and its policy forbids both.
pub fn html(log: &RunLog) -> String {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    let policy =
        format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'");
    let title = format!("run {}: {}", log.short_id(), log.end_text());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="taskpawl-included" content=(log.included.to_string());
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (head(log))
                main {
                    (failures(log))
                    (timeline(log))
                    (tasks(log))
                }
                footer {
                    "Made by taskpawl " (env!("CARGO_PKG_VERSION")) " from the history of the run. \
                     Included beyond names, statuses, times and exit codes: " (log.included.to_string()) "."
                }
            }
        }
    };
    page.into_string()
}

fn head(log: &RunLog) -> Markup {
    let class = match log.end {
        RunEnd::Exit(0) => "done",
        RunEnd::Running => "unfinished",
        RunEnd::Killed | RunEnd::Exit(_) => "failed",
    };
    let scope = if log.scope.is_empty() { "everything".to_owned() } else { log.scope.join(" ") };
    html! {
        header {
            h1 { "Run " code { (log.short_id()) } " " span class=(format!("badge {class}")) { (log.end_text()) } }
            dl {
                div { dt { "Started" } dd { (format_time(log.started_at)) } }
                div { dt { "Duration" } dd { (duration(log.took())) } }
                div { dt { "Scope" } dd { (scope) } }
                div { dt { "Tasks" } dd { (counts(log)) } }
                @if !log.sandboxes.is_empty() { div { dt { "Sandbox" } dd { (log.sandboxes.to_string()) } } }
                div { dt { "Also included" } dd { (log.included.to_string()) } }
            }
        }
    }
}

fn counts(log: &RunLog) -> Markup {
    html! {
        @for (outcome, count) in log.counts() {
            span class=(format!("count {}", outcome.as_str())) { (count) " " (outcome.as_str()) } " "
        }
        @if log.tasks.is_empty() { "none" }
    }
}

fn failures(log: &RunLog) -> Markup {
    let count = log.failures().count();
    if count == 0 {
        return html! {};
    }
    html! {
        section aria-labelledby="failures" {
            h2 id="failures" { "Not done" }
            @for task in log.failures().take(MAX_FAILURES) { (failure(log, task)) }
            @if count > MAX_FAILURES { p.quiet { (count - MAX_FAILURES) " more are in the table below." } }
        }
    }
}

fn failure(log: &RunLog, task: &TaskLog) -> Markup {
    html! {
        article class=(task.outcome().as_str()) {
            h3 { (named(task)) " " (badge(task.outcome())) }
            p { (escaped(&task.failure())) }
            p.quiet {
                "after " (duration(task.took(log.ended_at)))
                @if let Some(plan) = &task.plan { ", plan " (escaped(plan)) }
                @if let Some(line) = &task.line { ", " code { (escaped(&line.file)) ":" (line.line) } }
            }
            @for call in &task.calls { (details(call)) }
        }
    }
}

/// Returns the included details of a call.
fn details(call: &CallLog) -> Markup {
    let texts = [("arguments", &call.args), ("result", &call.result)];
    html! {
        @for (name, text) in texts {
            @if let Some(text) = text {
                details { summary { (escaped(call.id.as_str())) ": " (name) } pre { (escaped(text)) } }
            }
        }
        @for part in &call.output {
            details open {
                summary {
                    (escaped(call.id.as_str())) ", start " (call.start) ": " (escaped(&part.stream))
                    @if part.is_cut { " (the end)" }
                }
                pre { (escaped(&without_sequences(&part.text))) }
            }
        }
    }
}

fn tasks(log: &RunLog) -> Markup {
    if log.tasks.is_empty() {
        return html! { p.empty { "The run started no task." } };
    }
    let left_out = log.tasks.len().saturating_sub(MAX_ROWS);
    html! {
        section aria-labelledby="tasks" {
            h2 id="tasks" { "Tasks" }
            table {
                thead { tr {
                    th scope="col" { "Task" } th scope="col" { "Status" } th.number scope="col" { "Start" }
                    th.number scope="col" { "Time" } th.calls scope="col" { "Calls" }
                } }
                tbody { @for task in log.tasks.iter().take(MAX_ROWS) { (row(log, task)) } }
            }
            @if left_out > 0 { p.quiet { (left_out) " further tasks are left out." } }
        }
    }
}

fn row(log: &RunLog, task: &TaskLog) -> Markup {
    let start = task.started_at().map(|at| format!("+{}", duration(crate::log::between(log.started_at, at))));
    html! {
        tr {
            th scope="row" {
                (named(task))
                @if let Some(prompt) = &task.prompt { p.quiet { (escaped(prompt)) } }
                (crate::artifacts::html(&task.artifacts))
            }
            td { (badge(task.outcome())) }
            td.number { @if let Some(start) = start { (start) } }
            td.number { @if !task.attempts.is_empty() { (duration(task.took(log.ended_at))) } }
            td.calls { @for call in &task.calls { (call_text(log, call)) } }
        }
    }
}

fn call_text(log: &RunLog, call: &CallLog) -> Markup {
    let time = crate::log::between(call.started_at, call.ended_at.unwrap_or(log.ended_at));
    let status = call.status.map_or("unfinished", |status| status.as_str());
    html! {
        div {
            code { (escaped(call.id.as_str())) } " " (escaped(&call.tool))
            @if call.start > 1 { " (start " (call.start) ")" }
            " " span.quiet { (status) ", " (duration(time)) }
        }
    }
}

fn badge(outcome: Outcome) -> Markup {
    html! { span class=(format!("badge {}", outcome.as_str())) { (outcome.as_str()) } }
}

/// Returns the id of a task, with its name if that differs.
fn named(task: &TaskLog) -> Markup {
    let id = task.id.as_str();
    html! {
        code { (escaped(id)) }
        @if task.name != id { " " span.name { (escaped(&task.name)) } }
    }
}
