//! Small parts that several screens share.

use maud::{Markup, html};
use taskpawl::model::task::CallStatus;
use taskpawl::model::value::{TaskId, Timestamp, format_time};
use taskpawl_text::{revealed, revealed_line};

use crate::asked::Asked;
use crate::board::Cell;
use crate::page::Page;
use crate::past::Past;
use crate::scope::Scope;

/// Returns the state of a task as a shape, a colour and a word.
pub(super) fn state(cell: Cell) -> Markup {
    html! { span class={ "state s-" (cell.letter()) } { (cell.name()) } }
}

pub(super) fn call_state(status: CallStatus) -> Markup {
    let letter = match status {
        CallStatus::Pending => 'w',
        CallStatus::Running => 'x',
        CallStatus::Succeeded => 'd',
        CallStatus::Failed => 'f',
        CallStatus::Skipped => 's',
        CallStatus::Cancelled => 'c',
        CallStatus::Interrupted => 'q',
    };
    html! { span class={ "state s-" (letter) } { (status.as_str()) } }
}

/// Encodes a value as one segment of a path.
pub(super) fn segment(value: &str) -> String {
    percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC).to_string()
}

pub(super) fn task_link(id: &TaskId) -> Markup {
    html! { a.id href={ "/task/" (segment(id.as_str())) } { (revealed_line(id.as_str())) } }
}

/// Returns text of others with everything that hides written out.
pub(super) fn text(text: &str) -> Markup {
    html! { (revealed(text)) }
}

pub(super) fn line(text: &str) -> Markup {
    html! { (revealed_line(text)) }
}

pub(super) fn time(page: &Page, at: Timestamp) -> Markup {
    let now = page.reader.source().now();
    let full = format_time(at);
    html! { time datetime=(full) title=(full) { ((page.options.words.time)(at, now)) } }
}

/// Returns a length of time, rounded for people.
pub(super) fn length(millis: i64) -> String {
    let millis = u64::try_from(millis).unwrap_or_default();
    match millis {
        ..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis / 1_000 % 60),
        _ => format!("{} h {} min", millis / 3_600_000, millis / 60_000 % 60),
    }
}

pub(super) fn bytes(count: u64) -> String {
    match count {
        ..1_024 => format!("{count} B"),
        1_024..1_048_576 => format!("{} KiB", count / 1_024),
        _ => format!("{}.{} MiB", count / 1_048_576, count % 1_048_576 * 10 / 1_048_576),
    }
}

/// A button for a command of the page, with the command of the terminal that does the same.
pub(super) struct Button<'b> {
    pub(super) command: &'b str,
    pub(super) label: &'b str,
    pub(super) id: &'b str,
    /// Asks before it is sent, with this question.
    pub(super) confirm: Option<&'b str>,
    pub(super) line: String,
}

pub(super) fn button(asked: &Asked, button: &Button<'_>) -> Markup {
    let Button { command, label, id, confirm, line } = button;
    html! {
        div.action {
            @if asked.scope == Scope::Act {
                button type="button" data-command=(command) data-id=(id) data-confirm=[confirm.as_ref()] { (label) }
            }
            code { (revealed_line(line)) }
        }
    }
}

/// Returns the remark that a screen shows an earlier revision.
pub(super) fn past(page: &Page, past: &Past, path: &str) -> Markup {
    html! {
        p.past role="note" {
            "Statuses, counts and runs of revision " strong { (past.revision) } ", " (time(page, past.at)) ". Names, dependencies and plans are those of today. "
            a href=(path) data-now { "Show the present" }
        }
    }
}

/// Returns a place where nothing is, with what it means.
pub(super) fn empty(title: &str, more: &str) -> Markup {
    html! { div.empty { p { strong { (title) } } p { (more) } } }
}
