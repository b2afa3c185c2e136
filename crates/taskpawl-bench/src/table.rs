//! Figures as Markdown tables.

use std::fmt::Write as _;

use crate::group::{Beside, Goal, Group, Reading, Subject};
use crate::sample::{Metric, Spread};

/// Returns a row for each goal: its text, the comparison and the verdict.
pub(crate) fn goals<'a>(groups: impl Iterator<Item = &'a Group>) -> String {
    let mut text = "| what | goal | found: median (least – most) | |\n| --- | --- | --- | --- |\n".to_owned();
    for group in groups {
        for goal in &group.goals {
            let found = goal.found(group);
            let shown = found.map_or_else(|| why_missing(group, goal), |found| spread(found, goal));
            let _ = writeln!(
                text,
                "| {}: {} | {} | {shown} | {} |",
                group.title,
                goal.of,
                aim(goal),
                verdict(goal, found)
            );
        }
    }
    text
}

/// Returns the figures of each subject of a group.
pub(crate) fn subjects(group: &Group) -> String {
    let metrics: Vec<Metric> = Metric::ALL
        .into_iter()
        .filter(|metric| group.subjects.iter().any(|it| it.spread(*metric).is_some()))
        .collect();
    let mut text = format!("### {}\n\n| |", group.title);
    for metric in &metrics {
        let _ = write!(text, " {} a {} |", metric.title(), group.unit);
    }
    text.push('\n');
    let _ = writeln!(text, "| --- |{}", " --- |".repeat(metrics.len()));
    for subject in &group.subjects {
        let _ = writeln!(text, "| {} |{}", subject.name, cells(subject, &metrics));
    }
    text
}

fn cells(subject: &Subject, metrics: &[Metric]) -> String {
    if let Some(why) = subject.why_missing() {
        return format!(" {why} |{}", " |".repeat(metrics.len().saturating_sub(1)));
    }
    let cell = |metric: &Metric| {
        subject
            .spread(*metric)
            .map_or_else(|| " |".to_owned(), |found| format!(" {} |", range(found, *metric)))
    };
    metrics.iter().map(cell).collect()
}

/// Returns the verdict about a goal, which depends on the median only.
pub(crate) fn verdict(goal: &Goal, found: Option<Spread>) -> &'static str {
    match found {
        None => "not measured",
        Some(found) if goal.is_stretch_met_by(found.median) => "met, and the stretch",
        Some(found) if goal.is_met_by(found.median) => "met",
        Some(_) => "missed",
    }
}

/// Returns a goal as text.
pub(crate) fn aim(goal: &Goal) -> String {
    let stretch = goal.stretch.map(|limit| format!(" (stretch {})", number(limit))).unwrap_or_default();
    let (metric, limit) = (goal.metric.title(), number(goal.limit));
    match (&goal.beside, goal.reading) {
        (Beside::Figure(_), _) => format!("{metric}: ≤ {}{stretch}", figure(goal.limit, goal.metric)),
        (Beside::Subject(name), Reading::Cost) => format!("{metric}: ≤ {limit} ×{stretch} {name}"),
        (Beside::Subject(name), Reading::TimesBetter) => {
            format!("{metric}: {name} takes ≥ {limit} ×{stretch} as much")
        }
        (Beside::Subject(name), Reading::Rate) => format!("rate: ≥ {limit} ×{stretch} that of {name}"),
    }
}

fn spread(found: Spread, goal: &Goal) -> String {
    match goal.beside {
        Beside::Figure(_) => range(found, goal.metric),
        Beside::Subject(_) => {
            format!("{} × ({} – {})", number(found.median), number(found.least), number(found.most))
        }
    }
}

fn why_missing(group: &Group, goal: &Goal) -> String {
    let other = match &goal.beside {
        Beside::Subject(name) => Some(name.as_str()),
        Beside::Figure(_) => None,
    };
    let subjects =
        [Some(goal.of.as_str()), other].into_iter().flatten().filter_map(|name| group.subject(name));
    let reasons: Vec<&str> = subjects.filter_map(Subject::why_missing).collect();
    reasons.join(", ")
}

fn range(found: Spread, metric: Metric) -> String {
    let [median, least, most] = [found.median, found.least, found.most].map(|it| figure(it, metric));
    format!("{median} ({least} – {most})")
}

/// Returns a figure with its unit.
pub(crate) fn figure(figure: f64, metric: Metric) -> String {
    match metric {
        Metric::Cpu | Metric::Wall if figure >= 10_000.0 => format!("{} ms", number(figure / 1000.0)),
        Metric::Cpu | Metric::Wall => format!("{} µs", number(figure)),
        Metric::Memory if figure >= 1_048_576.0 => format!("{} MiB", number(figure / 1_048_576.0)),
        Metric::Memory => format!("{} B", number(figure)),
        Metric::Syncs | Metric::Count => number(figure),
    }
}

/// Returns a number with about three significant digits.
fn number(number: f64) -> String {
    let digits = match number.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{number:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::{aim, number, verdict};
    use crate::group::Goal;
    use crate::sample::Spread;

    #[test]
    fn numbers_have_about_three_digits() {
        assert_eq!(
            [12345.6, 12.34, 1.0, 1.256, 0.0123, 0.0].map(number),
            ["12346", "12.3", "1", "1.26", "0.0123", "0"]
        );
    }

    #[test]
    fn the_verdict_follows_from_the_median() {
        let goal = Goal::at_most("taskpawl", 6.0, "the loop").stretch(3.0);
        assert_eq!(aim(&goal), "CPU: ≤ 6 × (stretch 3) the loop");
        let verdict_for = |median| verdict(&goal, Some(Spread { median, least: 0.0, most: 99.0 }));
        assert_eq!([2.0, 4.0, 7.0].map(verdict_for), ["met, and the stretch", "met", "missed"]);
        assert_eq!(verdict(&goal, None), "not measured");
    }
}
