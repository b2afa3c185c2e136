use maud::{Markup, html};
use taskpawl::RunState;
use taskpawl::digest::RunNow;

use super::overview::short;
use super::part;
use crate::answer::Problem;
use crate::asked::Asked;
use crate::page::Page;
use crate::past;
use crate::scale::{Scale, WIDTH};
use crate::scope::Scope;
use crate::timeline::{Span, Timeline};

/// Runs that are listed.
const MAX_RUNS: usize = 100;

/// Rows of the timeline. Further calls are counted; the JSON has all.
const MAX_ROWS: usize = 400;

/// The longest calls that are listed.
const MAX_LONGEST: usize = 20;

/// Height of a row of the timeline, in units of the drawing.
const ROW: usize = 20;

/// Returns the runs, the latest first.
pub(super) fn fragment(page: &Page, asked: &Asked) -> Result<Markup, Problem> {
    let past = past::past(page, &asked.query)?;
    let runs = past::runs(page, past.as_ref().map(|past| past.at), MAX_RUNS)?;
    Ok(html! {
        h1 { "Runs" }
        @if let Some(past) = &past { (part::past(page, past, "/runs")) }
        @if runs.is_empty() {
            (part::empty("Nothing has run yet.", "Start a run at the terminal, or with the button of the overview:"))
            p.center { code { (page.options.line.with("run-all-ready")) } }
        } @else {
            div.table tabindex="0" role="region" aria-label="Runs" {
                table {
                    thead { tr { th scope="col" { "Run" } th scope="col" { "State" } th scope="col" { "Started" } th scope="col" { "Took" } th scope="col" { "Ended tasks" } th scope="col" { "By" } } }
                    tbody { @for run in &runs { (row(page, run)) } }
                }
            }
        }
    })
}

fn row(page: &Page, run: &RunNow) -> Markup {
    html! {
        tr data-key=(run.run) {
            td { a.id href={ "/run/" (part::segment(run.run.as_str())) } { (short(run.run.as_str())) } }
            td { (run_state(run)) }
            td { (part::time(page, run.started_at)) }
            td { @if let Some(end) = run.finished_at { (part::length((end - run.started_at).num_milliseconds())) } }
            td.wide { (counts(run)) }
            td { (part::line(&run.actor)) }
        }
    }
}

fn counts(run: &RunNow) -> Markup {
    let words: Vec<String> = run.counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
    html! { (words.join(", ")) }
}

fn run_state(run: &RunNow) -> Markup {
    let (letter, text) = match (run.state, run.exit) {
        (RunState::Running, _) => ('x', "running".to_owned()),
        (RunState::Killed, _) => ('f', "killed".to_owned()),
        (RunState::Finished, Some(0) | None) => ('d', "finished".to_owned()),
        (RunState::Finished, Some(3)) => ('q', "waiting, exit 3".to_owned()),
        (RunState::Finished, Some(exit)) => ('f', format!("exit {exit}")),
    };
    html! { span class={ "state s-" (letter) } { (text) } }
}

/// Returns one run with its timeline.
pub(super) fn one(page: &Page, asked: &Asked) -> Result<Markup, Problem> {
    let id = page.known(page.reader.find_run(&asked.value))?;
    let run = RunNow::new(&page.reader, page.known(page.reader.run(&id))?);
    let timeline = page.known(Timeline::read(&page.reader, &page.plans.engine().call_places(), &id))?;
    let is_running = run.state == RunState::Running;
    Ok(html! {
        div.head {
            div {
                h1 { "Run " (short(id.as_str())) }
                p.quiet {
                    (run_state(&run)) " started " (part::time(page, run.started_at)) " by " (part::line(&run.actor)) " · " (part::length(timeline.length))
                    @if !run.scope.is_empty() { " · only " (part::line(&run.scope.join(", "))) }
                }
                @if !run.counts.is_empty() { p { (counts(&run)) } }
            }
            @if is_running && asked.scope == Scope::Act {
                div.controls {
                    button type="button" data-stop=(run.run) { "Stop" }
                    code { (page.options.line.with(&format!("stop {}", short(id.as_str())))) }
                }
            }
        }
        @if timeline.spans.is_empty() { (part::empty("No call was started.", "The run found nothing that it could start.")) }
        @else {
            (drawn(&timeline))
            (chain(&timeline))
            @if is_running { (ahead(page)?) }
            (longest(&timeline))
        }
    })
}

/// Draws the calls, one row each, in the order of their starts.
fn drawn(timeline: &Timeline) -> Markup {
    let shown = &timeline.spans[..timeline.spans.len().min(MAX_ROWS)];
    let (height, scale) = ((shown.len() + 1) * ROW, timeline.scale());
    let view = format!("0 0 {WIDTH} {height}");
    html! {
        section aria-labelledby="timeline-title" {
            h2 #timeline-title { "Timeline" }
            div.zoom role="group" aria-label="Zoom of the timeline" {
                button type="button" data-zoom="in" { "Zoom in" }
                button type="button" data-zoom="out" { "Zoom out" }
                button type="button" data-zoom="left" aria-label="Earlier" { "←" }
                button type="button" data-zoom="right" aria-label="Later" { "→" }
                button type="button" data-zoom="all" { "All" }
                span.quiet { "Thin: claimed and waiting. Dashed: pause for a retry. Outlined: the calls that decided the length." }
            }
            div.timeline {
                svg #timeline viewBox=(view) role="img" aria-label="Calls over time; the table below has the longest" preserveAspectRatio="none" height=(height) {
                    @for tick in 0..=4_i64 {
                        line.tick x1=(tick * WIDTH / 4) x2=(tick * WIDTH / 4) y1="0" y2=(height) {}
                    }
                    @for gap in &scale.folds {
                        rect.fold x=(scale.place(gap.from)) width=(scale.place(gap.to) - scale.place(gap.from)) y="0" height=(height) {
                            title { "Nothing ran for " (part::length(gap.length())) }
                        }
                    }
                    @for (row, span) in shown.iter().enumerate() { (bar(timeline, &scale, row, span)) }
                }
                ul.labels {
                    li.scale { "0 to " (part::length(timeline.length)) @if !scale.folds.is_empty() { ", " (scale.folds.len()) " gaps folded" } }
                    @for span in shown { li { (part::task_link(&span.task)) " " span.quiet { (part::length(span.length(timeline.length))) } } }
                }
            }
            @if shown.len() < timeline.spans.len() { p.quiet { "and " (timeline.spans.len() - shown.len()) " more calls" } }
        }
    }
}

fn bar(timeline: &Timeline, scale: &Scale, row: usize, span: &Span) -> Markup {
    let (from, to) = (scale.place(span.from), scale.place(span.to.unwrap_or(timeline.length)));
    let (width, top) = ((to - from).max(WIDTH / 500), (row + 1) * ROW);
    let before = span.since.map(|since| scale.place(since)).filter(|since| *since < from);
    let letter = match span.status.map(taskpawl::model::task::CallStatus::as_str) {
        None => 'x',
        Some("succeeded") => 'd',
        Some("failed") => 'f',
        Some(_) => 'q',
    };
    html! {
        @if let Some(since) = before {
            line class=(if span.is_retry { "pause" } else { "wait" }) x1=(since) x2=(from) y1=(top + ROW / 2) y2=(top + ROW / 2) {}
        }
        rect class={ "bar f-" (letter) @if span.is_critical { " critical" } } x=(from) y=(top + 4) width=(width) height=(ROW - 8) {
            title { (part::line(span.task.as_str())) " " (part::line(span.call.as_str())) " " (part::length(span.length(timeline.length))) }
        }
    }
}

/// Returns the calls that decided the length of a run, as text.
fn chain(timeline: &Timeline) -> Markup {
    let chain: Vec<&Span> = timeline.critical().collect();
    html! {
        section {
            h2 { "Calls that decided the length" }
            ol.path {
                @for span in chain.iter().take(MAX_LONGEST) {
                    li { (part::task_link(&span.task)) " " span.quiet { (part::length(span.length(timeline.length))) } }
                }
            }
            @if chain.len() > MAX_LONGEST { p.quiet { "and " (chain.len() - MAX_LONGEST) " more" } }
        }
    }
}

/// Returns the forecast and the longest chain of what is left.
fn ahead(page: &Page) -> Result<Markup, Problem> {
    let outlook = page.outlooks.get(page)?;
    Ok(html! {
        section {
            h2 { "Ahead" }
            p { (outlook.words()) }
            (super::outlook::path(&outlook))
        }
    })
}

fn longest(timeline: &Timeline) -> Markup {
    let all: i64 = timeline.spans.iter().map(|span| span.length(timeline.length)).sum();
    html! {
        section {
            h2 { "Longest calls" }
            div.table tabindex="0" role="region" aria-label="Longest calls" {
                table {
                    thead { tr { th scope="col" { "Task" } th scope="col" { "Call" } th.number scope="col" { "Took" } th.number scope="col" { "Share" } } }
                    tbody {
                        @for span in timeline.longest(MAX_LONGEST) {
                            tr {
                                td { (part::task_link(&span.task)) }
                                td { (part::line(span.call.as_str())) @if span.start > 1 { " start " (span.start) } @if let Some(worker) = &span.worker { " on @" (part::line(worker)) } }
                                td.number { (part::length(span.length(timeline.length))) }
                                td.number { (span.length(timeline.length) * 100 / all.max(1)) " %" }
                            }
                        }
                    }
                }
            }
        }
    }
}
