use std::collections::BTreeMap;

use maud::{Markup, html};
use taskpawl::RunState;
use taskpawl::digest::{Failures, NextAction, RunNow, Running};
use taskpawl::model::task::Status;
use taskpawl::model::value::TaskId;
use taskpawl::{CallPlaces, Digest};

use super::{list, part};
use crate::answer::Problem;
use crate::asked::Asked;
use crate::board::Cell;
use crate::page::Page;
use crate::past::{self, Past};
use crate::scope::Scope;

/// Entries of each list beside the matrix.
const MAX_LISTED: usize = 8;

/// Tasks below the matrix, those that matter most first.
const MAX_TASKS: usize = 40;

/// Returns counts, matrix and what needs attention.
pub(super) fn fragment(page: &Page, asked: &Asked) -> Result<Markup, Problem> {
    if let Some(shown) = past::past(page, &asked.query)? {
        return past(page, asked, &shown);
    }
    let digest = page.known(Digest::gather(&page.reader, MAX_LISTED, &page.options.means))?;
    if digest.total == 0 {
        return Ok(html! {
            h1 { "Nothing is planned yet" }
            (part::empty("This store has no tasks.", "Apply a plan at the terminal, and it appears here:"))
            p.center { code { (page.options.line.with("apply plan.yaml")) } }
        });
    }
    Ok(html! {
        (head(page, asked, &digest))
        div #outlook data-keep {}
        (filters(&page.hub.board().count_cells(), None))
        div.columns {
            div { (matrix(digest.total >= LEAST_FOLDED)) section { h2 { "Tasks" } (list::first(page, &asked.query, MAX_TASKS)?) p { a href="/tasks" { "All tasks" } } } }
            div.attention { (attention(page, &digest)) }
        }
    })
}

/// Tasks of a plan whose ended bands the matrix folds; its script has the same number.
const LEAST_FOLDED: u64 = 200;

/// Returns counts and matrix of an earlier revision.
fn past(page: &Page, asked: &Asked, past: &Past) -> Result<Markup, Problem> {
    let count = |status| past.board().counts().get(&status).copied().unwrap_or_default();
    let all: u64 = past.board().counts().values().sum();
    let dropped = count(Status::Cancelled) + count(Status::Skipped);
    Ok(html! {
        div.head { h1 { "Overview" } }
        (part::past(page, past, "/"))
        (progress(count(Status::Done), all - dropped, dropped))
        (filters(&past.board().count_cells(), Some(past.revision)))
        (matrix(all >= LEAST_FOLDED))
        section { h2 { "Tasks" } (list::first(page, &asked.query, MAX_TASKS)?) }
    })
}

fn progress(done: u64, all: u64, dropped: u64) -> Markup {
    html! {
        div.progress {
            progress max=(all.max(1)) value=(done) aria-label="Finished tasks" {}
            span { strong { (done) } " of " (all) " done" @if dropped > 0 { ", " (dropped) " not needed" } }
        }
    }
}

/// Returns the place of the matrix, which a script draws.
fn matrix(is_large: bool) -> Markup {
    html! {
        section.matrix aria-labelledby="matrix-title" {
            h2 #matrix-title { "Tasks by layer" }
            div #matrix data-keep {
                canvas tabindex="0" role="img" aria-label="Matrix of all tasks. The list of tasks has the same as text." {}
                p.tip role="status" {}
            }
            p.quiet {
                "One cell a task; a task stands below its dependencies. "
                @if is_large { "Bands whose tasks have all ended are folded. " button type="button" data-fold { "Unfold ended bands" } }
            }
        }
    }
}

/// Returns the name of a task, where it says more than its id.
fn name(id: &TaskId, name: &str) -> Markup {
    html! { @if name != id.as_str() { " " span.quiet { (part::line(name)) } } }
}

fn head(page: &Page, asked: &Asked, digest: &Digest) -> Markup {
    let goal = digest.plans.items.first();
    let dropped = digest.count(Status::Cancelled) + digest.count(Status::Skipped);
    let (done, all) = (digest.count(Status::Done), digest.total - dropped);
    html! {
        div.head {
            div {
                h1 { @match goal { Some(plan) => (part::line(&plan.name)), None => "Plan" } }
                @if let Some(text) = goal.and_then(|plan| plan.description.as_deref()) { p.quiet { (part::line(text)) } }
            }
            (controls(page, asked, digest))
        }
        (progress(done, all, dropped))
    }
}

/// Returns the runs that are going on, and the button that starts one.
fn controls(page: &Page, asked: &Asked, digest: &Digest) -> Markup {
    let live: Vec<&RunNow> = digest.runs.iter().filter(|run| run.state == RunState::Running).collect();
    html! {
        div.controls {
            @for run in &live {
                div.run {
                    a href={ "/run/" (part::segment(run.run.as_str())) } { "Run " (short(run.run.as_str())) }
                    " since " (part::time(page, run.started_at))
                    @if asked.scope == Scope::Act {
                        button type="button" data-stop=(run.run) { "Stop" }
                    }
                }
            }
            @if live.is_empty() && asked.scope == Scope::Act && !digest.ready_to_run.is_empty() {
                button.main type="button" data-run="" { "Run all ready" }
            }
            @if live.is_empty() && let Some(run) = &digest.last_run {
                span.quiet {
                    "Last run " a href={ "/run/" (part::segment(run.run.as_str())) } { (short(run.run.as_str())) }
                    " ended " @if let Some(at) = run.finished_at { (part::time(page, at)) }
                    @if let Some(exit) = run.exit { ", exit code " (exit) }
                }
            }
        }
    }
}

/// Returns the beginning of a run's id, which names it at the terminal as well.
pub(super) fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

fn filters(counts: &BTreeMap<char, u64>, at: Option<u64>) -> Markup {
    let at = at.map(|at| format!("&at={at}")).unwrap_or_default();
    html! {
        ul.filters aria-label="Tasks by state" {
            @for (cell, letter, _) in Cell::ALL {
                @if let Some(count) = counts.get(&letter) {
                    li { a href={ "/tasks?state=" (letter) (at) } { (part::state(cell)) " " strong { (count) } } }
                }
            }
        }
    }
}

fn attention(page: &Page, digest: &Digest) -> Markup {
    let places = page.plans.engine().call_places();
    html! {
        @if !digest.failed.is_empty() {
            section { h2 { "Failed" } ul.cards { @for group in &digest.failed.items { (failure(group)) } } }
        }
        @if !digest.on_hold.is_empty() {
            section {
                h2 { "Waiting for a decision" }
                ul.cards {
                    @for held in &digest.on_hold.items {
                        li {
                            (part::task_link(&held.task)) (name(&held.task, &held.name))
                            p { (part::line(&(page.options.words.reason)(&held.reason))) }
                        }
                    }
                }
                p { a href="/questions" { "All questions" } }
            }
        }
        @if !digest.running.is_empty() {
            section { h2 { "Running" } ul.cards { @for call in &digest.running.items { (running(page, &places, call)) } } }
        }
        @if !digest.ready.is_empty() {
            section {
                h2 { "For a person or an agent" }
                ul.cards { @for ready in &digest.ready.items { li { (part::task_link(&ready.task)) (name(&ready.task, &ready.name)) } } }
            }
        }
        @if !digest.unrunnable.is_empty() {
            section {
                h2 { "Ready, but no run here can start it" }
                ul.cards {
                    @for task in &digest.unrunnable.items { li { (part::task_link(&task.task)) p { (part::line(&task.because)) } } }
                }
            }
        }
        @if !digest.next_actions.is_empty() {
            section { h2 { "Next" } ul.cards { @for next in &digest.next_actions { (action(page, next)) } } }
        }
        @if digest.failed.is_empty() && digest.on_hold.is_empty() && digest.running.is_empty() && digest.next_actions.is_empty() {
            (part::empty("Nothing needs attention.", "No task has failed, and none waits for a decision."))
        }
    }
}

fn failure(group: &Failures) -> Markup {
    html! {
        li.bad {
            (part::task_link(&group.task))
            @if group.count > 1 { span.quiet { " and " (group.count - 1) " more like it" } }
            p { (part::line(&group.error)) }
            @if group.has_logs { p { a href={ "/log/" (part::segment(group.task.as_str())) } { "Read its log" } } }
        }
    }
}

fn running(page: &Page, places: &CallPlaces, call: &Running) -> Markup {
    html! {
        li {
            (part::task_link(&call.task)) " " span.quiet { (part::line(&call.tool)) }
            @if let Some(worker) = places.worker(&call.task, &call.call, call.start) { " on @" (part::line(worker)) }
            @if let Some(at) = call.started_at { " since " (part::time(page, at)) }
            " " a href={ "/log/" (part::segment(call.task.as_str())) } { "log" }
        }
    }
}

fn action(page: &Page, next: &NextAction) -> Markup {
    html! { li { code { (part::line(&page.options.line.of(next.command.advice()))) } p.quiet { (part::line(&next.why)) } } }
}
