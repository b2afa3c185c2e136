use maud::{Markup, html};
use taskpawl::digest::RunNow;
use taskpawl::{RunFilter, RunState};

use super::overview::short;
use super::part;
use crate::answer::Problem;
use crate::options::Scope;
use crate::server::{Asked, Inner};
use crate::timeline::{Span, Timeline};

/// Runs that are listed.
const MAX_RUNS: usize = 100;

/// Rows of the timeline. Further calls are counted; the JSON has all.
const MAX_ROWS: usize = 400;

/// The longest calls that are listed.
const MAX_LONGEST: usize = 20;

/// Height of a row of the timeline, and width of its scale, in units of the drawing.
const ROW: usize = 20;
const WIDTH: i64 = 1_000;

/// Returns the runs, the latest first.
pub(super) fn fragment(page: &Inner) -> Result<Markup, Problem> {
    let runs = page.known(page.reader.runs(&RunFilter { limit: MAX_RUNS }))?;
    let runs: Vec<RunNow> = runs.into_iter().map(|run| RunNow::new(&page.reader, run)).collect();
    Ok(html! {
        h1 { "Runs" }
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

fn row(page: &Inner, run: &RunNow) -> Markup {
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
pub(super) fn one(page: &Inner, asked: &Asked) -> Result<Markup, Problem> {
    let id = page.known(page.reader.find_run(&asked.value))?;
    let run = RunNow::new(&page.reader, page.known(page.reader.run(&id))?);
    let timeline = page.known(Timeline::read(&page.reader, &id))?;
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
        @else { (drawn(&timeline)) (longest(&timeline)) }
    })
}

/// Draws the calls, one row each, in the order of their starts.
fn drawn(timeline: &Timeline) -> Markup {
    let shown = &timeline.spans[..timeline.spans.len().min(MAX_ROWS)];
    let height = (shown.len() + 1) * ROW;
    let view = format!("0 0 {WIDTH} {height}");
    html! {
        section aria-labelledby="timeline-title" {
            h2 #timeline-title { "Timeline" }
            div.timeline {
                svg viewBox=(view) role="img" aria-label="Calls over time; the table below has the longest" preserveAspectRatio="none" height=(height) {
                    @for tick in 0..=4_i64 {
                        line.tick x1=(tick * WIDTH / 4) x2=(tick * WIDTH / 4) y1="0" y2=(height) {}
                    }
                    @for (row, span) in shown.iter().enumerate() { (bar(timeline, row, span)) }
                }
                ul.labels {
                    li.scale { "0 to " (part::length(timeline.length)) }
                    @for span in shown { li { (part::task_link(&span.task)) " " span.quiet { (part::length(span.length(timeline.length))) } } }
                }
            }
            @if shown.len() < timeline.spans.len() { p.quiet { "and " (timeline.spans.len() - shown.len()) " more calls" } }
        }
    }
}

fn bar(timeline: &Timeline, row: usize, span: &Span) -> Markup {
    let at = |millis: i64| millis.max(0) * WIDTH / timeline.length;
    let width = at(span.length(timeline.length)).max(2);
    let letter = match span.status.map(taskpawl::model::task::CallStatus::as_str) {
        None => 'x',
        Some("succeeded") => 'd',
        Some("failed") => 'f',
        Some(_) => 'q',
    };
    html! {
        rect class={ "bar f-" (letter) } x=(at(span.from)) y=((row + 1) * ROW + 4) width=(width) height=(ROW - 8) rx="2" {
            title { (part::line(span.task.as_str())) " " (part::line(span.call.as_str())) " " (part::length(span.length(timeline.length))) }
        }
    }
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
                                td { (part::line(span.call.as_str())) @if span.start > 1 { " start " (span.start) } }
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
