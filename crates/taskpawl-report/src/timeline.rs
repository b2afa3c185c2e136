//! The timeline of a run as SVG: a bar for each attempt, in as few rows as the overlaps allow.

use maud::{Markup, html};
use taskpawl_text::{cut, duration, plain_line};

use crate::log::{Outcome, RunLog, between};

/// The most bars. Beyond that they would be thinner than a pixel.
const MAX_BARS: usize = 20_000;

/// The height of a row in pixels.
const ROW: usize = 22;

/// The height of the axis in pixels.
const AXIS: usize = 22;

/// Returns a row for each of the spans of time, which are sorted by their start: the first row that is free.
pub(crate) fn lanes(times: &[(i64, i64)]) -> Vec<usize> {
    let mut ends: Vec<i64> = Vec::new();
    let mut rows = Vec::with_capacity(times.len());
    for (start, end) in times {
        let free = ends.iter().position(|before| before <= start).unwrap_or(ends.len());
        if free == ends.len() {
            ends.push(*end);
        } else {
            ends[free] = *end;
        }
        rows.push(free);
    }
    rows
}

/// A bar.
struct Bar<'a> {
    id: &'a str,
    title: String,
    outcome: Outcome,
    start: i64,
    end: i64,
}

/// Returns the timeline; nothing for a run without attempts.
pub(crate) fn timeline(log: &RunLog) -> Markup {
    let mut bars = bars(log);
    let left_out = bars.len().saturating_sub(MAX_BARS);
    bars.truncate(MAX_BARS);
    if bars.is_empty() {
        return html! {};
    }
    let times: Vec<(i64, i64)> = bars.iter().map(|bar| (bar.start, bar.end)).collect();
    let rows = lanes(&times);
    let height = AXIS + ROW * rows.iter().max().map_or(0, |last| last + 1);
    let whole = bars.iter().map(|bar| bar.end).max().unwrap_or(1).max(1);
    html! {
        section aria-labelledby="timeline" {
            h2 id="timeline" { "Timeline" }
            div.timeline { svg role="img" aria-label="A bar for each attempt of a task" width="100%" height=(height) {
                (axis(whole, height))
                @for (bar, row) in bars.iter().zip(rows) { (drawn(bar, row, whole)) }
            } }
            @if left_out > 0 { p.quiet { (left_out) " further attempts are not drawn." } }
        }
    }
}

fn bars(log: &RunLog) -> Vec<Bar<'_>> {
    let millis = |time| i64::try_from(between(log.started_at, time).as_millis()).unwrap_or(i64::MAX);
    let mut bars: Vec<Bar<'_>> = Vec::new();
    for task in &log.tasks {
        for attempt in &task.attempts {
            let end = attempt.ended_at.unwrap_or(log.ended_at);
            let took = duration(between(attempt.started_at, end));
            let outcome = task.outcome_of(attempt);
            let title = format!("{}: {}, {took}", plain_line(&task.name), outcome.as_str());
            let (start, end) = (millis(attempt.started_at), millis(end));
            bars.push(Bar { id: task.id.as_str(), title, outcome, start, end });
        }
    }
    bars.sort_by_key(|bar| bar.start);
    bars
}

/// Returns the lines of a quarter of the time each.
fn axis(whole: i64, height: usize) -> Markup {
    let at = |quarter: i64| u64::try_from(whole * quarter / 4).unwrap_or_default();
    html! {
        @for quarter in 0..4_i64 {
            @let x = format!("{}%", quarter * 25);
            line.axis x1=(x) x2=(x) y1="0" y2=(height) {}
            text.axis x=(x) y="14" dx="4" { (duration(std::time::Duration::from_millis(at(quarter)))) }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a position on the screen")]
fn percent(part: i64, whole: i64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

fn drawn(bar: &Bar<'_>, row: usize, whole: i64) -> Markup {
    let (x, width) = (percent(bar.start, whole), percent(bar.end - bar.start, whole).max(0.1));
    let (x, width) = (x.min(99.9), width.min(100.0 - x.min(99.9)));
    let y = AXIS + row * ROW;
    // The inner picture cuts the name at the end of the bar.
    html! {
        svg x=(format!("{x:.3}%")) width=(format!("{width:.3}%")) y=(y) height=(ROW - 3) {
            title { (bar.title) }
            rect class=(bar.outcome.as_str()) width="100%" height="100%" rx="2" {}
            @if width > 2.0 { text.bar x="4" y="14" { (cut(&plain_line(bar.id), 80)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::lanes;

    #[test]
    fn overlapping_times_get_rows_of_their_own() {
        assert_eq!(lanes(&[(0, 10), (0, 5), (5, 7), (7, 20), (10, 12)]), [0, 1, 1, 1, 0]);
        assert!(lanes(&[]).is_empty());
    }
}
