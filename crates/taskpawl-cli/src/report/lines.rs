//! Events as lines of text. Text of tasks and tools is escaped here.

use std::time::Duration;

use taskpawl::model::task::{ApprovalRequest, Status};
use taskpawl::{EndedEarly, RunEvent};

use crate::shown::{Shown, shown};
use crate::text::{Paint, clean, style, without_sequences};

/// The width of the longest status of an ended task.
const STATE: usize = 9;

/// Returns the line of an event with its line break, or `None` for an event without one. `took` is the duration of
/// the task that ended.
pub(super) fn line(event: &RunEvent, took: Option<Duration>, paint: Paint) -> Option<Shown> {
    match event {
        RunEvent::TaskEnded { task, name, status, error } => {
            let error = error.as_deref().unwrap_or_default();
            Some(ended(task.as_str(), name, *status, error, took, paint))
        }
        RunEvent::Asked(request) => Some(asked(request, paint)),
        RunEvent::Warning { message } => {
            Some(shown![paint.style(style::WARNING, "warning:"), " ", clean(message), "\n"])
        }
        RunEvent::Cached { task } => {
            let state = paint.style(style::DIM, &format!("{:<STATE$}", "cached"));
            Some(shown![state, "  ", paint.style(style::BOLD, &clean(task.as_str())), "\n"])
        }
        RunEvent::ChangedBeyond { task, files, unknown, .. } => {
            let warning = paint.style(style::WARNING, "warning:");
            Some(shown![warning, " ", changed_beyond(task.as_str(), files, unknown.as_deref()), "\n"])
        }
        RunEvent::EndedEarly(ended) => Some(shown![ended_early(ended), "\n"]),
        RunEvent::Stopping { hard, running } => Some(shown![stopping(*hard, *running), "\n"]),
        RunEvent::RunStarted { .. }
        | RunEvent::CallStarted { .. }
        | RunEvent::Progress { .. }
        | RunEvent::CallEnded { .. }
        | RunEvent::Summary(_)
        | _ => None,
    }
}

fn ended(id: &str, name: &str, status: Status, error: &str, took: Option<Duration>, paint: Paint) -> Shown {
    let state = format!("{:<STATE$}", status.as_str());
    let mut line = paint.style(style::of_status(status), &state);
    line.push("  ");
    line.push(paint.style(style::BOLD, &clean(id)));
    if name != id {
        line.push("  ");
        line.push(clean(name));
    }
    if let Some(took) = took {
        line.push("  ");
        line.push(paint.style(style::DIM, &duration(took)));
    }
    if !error.is_empty() {
        line.push(": ");
        // Errors often contain the colour codes of a program's output. Escaped they would be unreadable, so they are
        // removed.
        line.push(clean(&without_sequences(error)));
    }
    line.push("\n");
    line
}

/// Names files that changed during a task although its `writes` does not list them. `unknown` says why the changes
/// may be incomplete.
pub(super) fn changed_beyond(task: &str, files: &[String], unknown: Option<&str>) -> String {
    let named: Vec<String> = files.iter().take(5).map(|file| clean(file)).collect();
    let more = files.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let task = clean(task);
    match (named.is_empty(), unknown) {
        (true, Some(unknown)) => {
            format!("what {task} changed beyond its `writes` is not known: {}", clean(unknown))
        }
        (_, Some(unknown)) => {
            format!(
                "changed while {task} ran, beyond its `writes`: {}{more} ({})",
                named.join(", "),
                clean(unknown)
            )
        }
        (_, None) => format!("changed while {task} ran, beyond its `writes`: {}{more}", named.join(", ")),
    }
}

/// Names the limit that was reached.
pub(super) fn ended_early(ended: &EndedEarly) -> String {
    let of = ended.plan.as_deref().map_or_else(String::new, |plan| format!(" of plan {}", clean(plan)));
    format!("nothing more{of} starts: `{}` of {} is used up", ended.limit, clean(&ended.value))
}

fn asked(request: &ApprovalRequest, paint: Paint) -> Shown {
    let state = paint.style(style::of_status(Status::Blocked), &format!("{:<STATE$}", "waiting"));
    let id = paint.style(style::BOLD, &clean(request.task.as_str()));
    let ask = request.ask.as_deref().map(|ask| format!(": {}", clean(ask))).unwrap_or_default();
    shown![state, "  ", id, "  for a decision", ask, "\n"]
}

fn stopping(hard: bool, running: usize) -> String {
    let calls = match running {
        0 => return "stopping: nothing runs any more".to_owned(),
        1 => "1 call".to_owned(),
        many => format!("{many} calls"),
    };
    if hard {
        format!("stopping: {calls} killed; once more leaves at once")
    } else {
        format!("stopping: nothing more starts, {calls} may still end; once more kills them")
    }
}

/// Returns a duration in a short form, such as `1m01s`.
pub(super) fn duration(took: Duration) -> String {
    let seconds = took.as_secs();
    match seconds {
        0 => format!("{}ms", took.as_millis()),
        1..10 => format!("{:.1}s", took.as_secs_f64()),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use taskpawl::model::value::TaskId;

    use super::*;

    #[test]
    fn lengths_of_time_are_short() {
        let said =
            [90, 2_345, 59_999, 61_000, 3_720_000].map(|millis| duration(Duration::from_millis(millis)));
        assert_eq!(said, ["90ms", "2.3s", "59s", "1m01s", "1h02m"]);
    }

    #[test]
    fn text_from_tasks_cannot_move_the_cursor() {
        let event = RunEvent::TaskEnded {
            task: TaskId::from("a".to_owned()),
            name: "\u{1b}[2Jname\r\u{202e}".to_owned(),
            status: Status::Failed,
            error: Some("two\nlines\u{1b}]0;title\u{7}".to_owned()),
        };
        let line = line(&event, Some(Duration::from_secs(2)), Paint { is_on: false }).unwrap();
        assert_eq!(line.as_str(), "failed     a  \\u{1b}[2Jname\\u{d}\\u{202e}  2.0s: two lines\n");
    }
}
