//! Events as lines of text. Whatever comes from a task or a tool is made harmless here.

use std::time::Duration;

use taskpawl::RunEvent;
use taskpawl::model::{ApprovalRequest, Status};

use crate::text::{Paint, clean, style};

/// The width of the longest state of a task that ended.
const STATE: usize = 9;

/// Returns the line of an event with its line break, or nothing if the event has none. `took` is how long a task took that
/// ended with it.
pub(super) fn line(event: &RunEvent, took: Option<Duration>, paint: Paint) -> Option<String> {
    match event {
        RunEvent::TaskEnded { task, name, status, error } => {
            let error = error.as_deref().unwrap_or_default();
            Some(ended(task.as_str(), name, *status, error, took, paint))
        }
        RunEvent::Asked(request) => Some(asked(request, paint)),
        RunEvent::Warning { message } => {
            Some(format!("{} {}\n", paint.style(style::WARNING, "warning:"), clean(message)))
        }
        RunEvent::Stopping { hard, running } => Some(format!("{}\n", stopping(*hard, *running))),
        RunEvent::RunStarted { .. }
        | RunEvent::CallStarted { .. }
        | RunEvent::Progress { .. }
        | RunEvent::CallEnded { .. }
        | RunEvent::Summary(_)
        | _ => None,
    }
}

fn ended(id: &str, name: &str, status: Status, error: &str, took: Option<Duration>, paint: Paint) -> String {
    let state = format!("{:<STATE$}", status.as_str());
    let mut line = paint.style(style::of_status(status), &state);
    line.push_str("  ");
    line.push_str(&paint.style(style::BOLD, &clean(id)));
    if name != id {
        line.push_str("  ");
        line.push_str(&clean(name));
    }
    if let Some(took) = took {
        line.push_str("  ");
        line.push_str(&paint.style(style::DIM, &duration(took)));
    }
    if !error.is_empty() {
        line.push_str(": ");
        line.push_str(&clean(error));
    }
    line.push('\n');
    line
}

fn asked(request: &ApprovalRequest, paint: Paint) -> String {
    let state = paint.style(style::of_status(Status::Blocked), &format!("{:<STATE$}", "waiting"));
    let id = paint.style(style::BOLD, &clean(request.task.as_str()));
    let ask = request.ask.as_deref().map(|ask| format!(": {}", clean(ask))).unwrap_or_default();
    format!("{state}  {id}  for a decision{ask}\n")
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

/// Returns a length of time as people say it.
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
    use taskpawl::model::TaskId;

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
        assert_eq!(line, "failed     a  name   2.0s: two lines\n");
    }
}
