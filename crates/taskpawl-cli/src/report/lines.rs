//! Events as lines of text. Text of tasks and tools is escaped here.

use std::time::Duration;

use taskpawl::model::task::{ApprovalRequest, Status};
use taskpawl::{CallFailure, EndedEarly, RunEvent};
use taskpawl_text::duration;

use crate::shown::{Shown, shown};
use crate::text::{Paint, clean, style, without_sequences};

/// Indentation of the output of a failed program.
const INDENT: &str = "    ";

/// The longest command that is shown with its failure.
const SHORT_COMMAND: usize = 60;

/// A task that ended, as the reporter followed it.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// Time since its first call started.
    pub(super) took: Option<Duration>,
    /// Its last failed call.
    pub(super) failure: Option<Box<CallFailure>>,
    /// True if it took an earlier success and did not run.
    pub(super) is_cached: bool,
}

/// Returns the line of an event with its line break, or `None` for an event without one. `followed` is what is known of
/// the task that ended.
pub(super) fn line(event: &RunEvent, followed: &Followed, paint: Paint) -> Option<Shown> {
    match event {
        RunEvent::TaskEnded { task, name, status, error } => {
            let id = (task.as_str(), name.as_str());
            Some(ended(id, *status, error.as_deref().unwrap_or_default(), followed, paint))
        }
        RunEvent::Asked(request) => Some(asked(request, paint)),
        RunEvent::Warning { message } => {
            Some(shown![paint.style(style::WARNING, "warning:"), " ", clean(message), "\n"])
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
        | RunEvent::Output { .. }
        | RunEvent::CallEnded { .. }
        | RunEvent::Cached { .. }
        | RunEvent::Summary(_)
        | _ => None,
    }
}

/// Returns the mark of a status, which stands before the id of a task that ended.
fn mark(status: Status) -> &'static str {
    match status {
        Status::Done => "✓",
        Status::Failed => "✗",
        Status::Blocked => "!",
        Status::Skipped | Status::Cancelled | Status::Todo | Status::InProgress => "-",
    }
}

fn ended((id, name): (&str, &str), status: Status, error: &str, followed: &Followed, paint: Paint) -> Shown {
    let mut line = paint.style(style::of_status(status), mark(status));
    line.push(" ");
    line.push(paint.style(style::BOLD, &clean(id)));
    if name != id {
        line.push("  ");
        line.push(clean(name));
    }
    let exit = followed.failure.as_ref().and_then(|failure| failure.exit_code);
    let what = match (status, exit) {
        (Status::Done, _) if followed.is_cached => "cached".to_owned(),
        (Status::Done, _) => String::new(),
        (Status::Failed, Some(code)) => format!("exit {code}"),
        (other, _) => other.to_string(),
    };
    let took = followed.took.map(duration).unwrap_or_default();
    let how = match (what.is_empty(), took.is_empty()) {
        (false, false) => format!("{what} after {took}"),
        _ => what + &took,
    };
    if !how.is_empty() {
        line.push("  ");
        line.push(paint.style(style::DIM, &how));
    }
    match &followed.failure {
        Some(failure) if status == Status::Failed => failed(&mut line, error, failure, paint),
        _ if !error.is_empty() => line.push(shown![": ", plain(error), "\n"]),
        _ => line.push("\n"),
    }
    line
}

/// Adds what a failed call printed, or else its error, and what would help.
fn failed(line: &mut Shown, error: &str, failure: &CallFailure, paint: Paint) {
    // With output and an exit code, the error only repeats them, and the command.
    let says_all = failure.exit_code.is_some() && !failure.output.is_empty();
    if !says_all || error.len() <= SHORT_COMMAND {
        line.push(": ");
        line.push(plain(error));
    }
    line.push("\n");
    for printed in failure.output.lines() {
        line.push(shown![INDENT, plain(printed), "\n"]);
    }
    // Where the error is shown, it ends with the hint.
    if let Some(hint) = failure.hint.as_ref().filter(|_| says_all) {
        line.push(shown!["  ", paint.style(style::HINT, "hint:"), " ", plain(hint), "\n"]);
    }
}

/// Returns text of a program without its colour codes: escaped they would be unreadable.
fn plain(text: &str) -> String {
    clean(&without_sequences(text))
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
            format!("the files that {task} changed beyond its `writes` are not known: {}", clean(unknown))
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
    let mark = paint.style(style::of_status(Status::Blocked), "?");
    let id = paint.style(style::BOLD, &clean(request.task.as_str()));
    let ask = request.ask.as_deref().map(|ask| format!(": {}", clean(ask))).unwrap_or_default();
    shown![mark, " ", id, "  waits for a decision", ask, "\n"]
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

#[cfg(test)]
mod tests {
    use taskpawl::model::value::TaskId;

    use super::*;

    #[test]
    fn text_from_tasks_cannot_move_the_cursor() {
        let event = RunEvent::TaskEnded {
            task: TaskId::from("a".to_owned()),
            name: "\u{1b}[2Jname\r\u{202e}".to_owned(),
            status: Status::Failed,
            error: Some("two\nlines\u{1b}]0;title\u{7}".to_owned()),
        };
        let followed = Followed { took: Some(Duration::from_secs(2)), ..Followed::default() };
        let line = line(&event, &followed, Paint { is_on: false }).unwrap();
        assert_eq!(line.as_str(), "✗ a  \\u{1b}[2Jname\\u{d}\\u{202e}  failed after 2.0 s: two lines\n");
    }

    #[test]
    fn a_failure_is_shown_with_what_was_printed() {
        let failure = |exit_code, output: &str, hint: Option<&str>| Followed {
            took: Some(Duration::from_millis(17)),
            failure: Some(Box::new(CallFailure::new(exit_code, output, hint.map(str::to_owned)))),
            is_cached: false,
        };
        let said = |error: &str, followed: &Followed| {
            let event = RunEvent::TaskEnded {
                task: TaskId::from("lint"),
                name: "lint".to_owned(),
                status: Status::Failed,
                error: Some(error.to_owned()),
            };
            line(&event, followed, Paint { is_on: false }).unwrap().as_str().to_owned()
        };
        let long = "x".repeat(70);
        assert_eq!(
            said(&long, &failure(Some(1), "a\u{1b}[31m\nb", Some("try"))),
            "✗ lint  exit 1 after 17 ms\n    a\n    b\n  hint: try\n"
        );
        assert_eq!(said("short", &failure(Some(2), "", None)), "✗ lint  exit 2 after 17 ms: short\n");
        assert_eq!(said(&long, &failure(Some(2), "", None)), format!("✗ lint  exit 2 after 17 ms: {long}\n"));
        assert_eq!(said("late", &failure(None, "", None)), "✗ lint  failed after 17 ms: late\n");
    }
}
