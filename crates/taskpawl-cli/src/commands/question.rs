//! Output of the question that a task asks before it starts, and the check of the caller who decides.

use std::fmt::Write as _;

use serde_json::Value;
use taskpawl::Manager;
use taskpawl::model::advice::{Advice, Advised};
use taskpawl::model::task::{ApprovalRequest, AskedCall, AskedResult, Origin};
use taskpawl::model::value::format_time;
use taskpawl::model::value::{TaskId, revealed};
use taskpawl_text::revealed_line;

use crate::app::App;
use crate::error::CliError;
use crate::shown::{Shown, shown};
use crate::text::{Paint, clean, cut, style};

/// Number of characters of an argument that the short form shows.
const MAX_SHOWN: usize = 200;

/// Number of calls and elements that the short form shows.
const MAX_LISTED: usize = 10;

/// Amount of detail of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Every call with all its arguments.
    Full,
    /// As much as a person can read at once, with a count of the rest.
    Short,
}

/// Returns a manager for all commands, including those that can withdraw an approval. Inside a call it
/// records the origin `agent`.
pub(crate) fn manager(app: &App) -> Result<Manager, CliError> {
    let manager = app.manager()?.clone();
    Ok(if app.was_started_by_task() { manager.with_origin(Origin::Agent) } else { manager })
}

/// Formats a question with everything that would run.
pub(crate) fn text(request: &ApprovalRequest, extent: Extent, paint: Paint) -> Shown {
    let mut text = paint.style(style::BOLD, &clean(request.task.as_str()));
    if request.name != request.task.as_str() {
        let _ = write!(text, "  {}", clean(&request.name));
    }
    text.push("\n");
    if let Some(ask) = &request.ask {
        let _ = writeln!(text, "  {}", clean(ask));
    }
    if let Some(why) = &request.why {
        let _ = writeln!(text, "  because {}", clean(why));
    }
    if request.takes_text {
        text.push("  any text answers it, and a plain approval answers `yes`\n");
    }
    let calls = match extent {
        Extent::Full => &request.calls[..],
        Extent::Short => &request.calls[..request.calls.len().min(MAX_LISTED)],
    };
    for call in calls {
        add_call(&mut text, request, call, extent, paint);
    }
    let hidden = request.calls.len() - calls.len();
    if hidden > 0 {
        let _ = writeln!(text, "  … and {hidden} calls more");
    }
    results(&mut text, request, extent, paint);
    if request.calls.is_empty() && !request.after {
        text.push("  nothing is run by it\n");
    }
    items(&mut text, request, extent);
    if let Some(end) = request.expires_at {
        let then = request.on_expiry.as_deref().unwrap_or("reject");
        let _ = writeln!(text, "  until {}, then: {}", format_time(end), clean(then));
    }
    text
}

fn add_call(text: &mut Shown, request: &ApprovalRequest, call: &AskedCall, extent: Extent, paint: Paint) {
    let task = if call.task == request.task { String::new() } else { format!("{}/", call.task) };
    let line = format!("{task}{}  {}  (from {})", call.call, call.tool, call.origin);
    text.push(shown!["  ", paint.style(style::HINT, &revealed_line(&line)), "\n"]);
    if let Some(sandbox) = &call.sandbox {
        let _ = writeln!(text, "    asks of the sandbox: {}", revealed_line(&sandbox.described()));
    }
    // The reason already names the value if it is the only one.
    let deciding: Vec<_> = call.untrusted.iter().filter(|value| !value.is_data).collect();
    for value in deciding.iter().filter(|_| deciding.len() > 1) {
        let _ = writeln!(text, "    {}", revealed_line(&value.to_string()));
    }
    if !call.trusts.is_empty() {
        let names = revealed_line(&call.trusts.join(", "));
        let _ = writeln!(text, "    approving it also trusts later values of {names}");
    }
    for (name, value) in &call.args {
        let is_unknown = call.unknown.contains(name);
        let note = if is_unknown { " (not known yet)" } else { "" };
        argument(text, &format!("{}{note}", revealed_line(name)), value, extent);
    }
}

/// Appends an argument. Text of several lines keeps its lines, any other value is JSON.
fn argument(text: &mut Shown, name: &str, value: &Value, extent: Extent) {
    let lines = value.as_str().filter(|text| text.trim_end().contains('\n'));
    let shown = lines.map_or_else(|| value.to_string(), str::to_owned);
    let (shown, hidden) = match extent {
        Extent::Full => (shown, 0),
        Extent::Short => shortened(&shown),
    };
    // Invisible and direction-changing characters are escaped, so that a command cannot look harmless.
    let shown = revealed(&shown);
    if shown.contains('\n') {
        let _ = writeln!(text, "    {name}:");
        for line in shown.lines() {
            let _ = writeln!(text, "      {line}");
        }
    } else {
        let _ = writeln!(text, "    {name}: {shown}");
    }
    if hidden > 0 {
        let _ = writeln!(text, "      … {hidden} characters more, which `show` shows");
    }
}

/// Appends the results that a question is about.
fn results(text: &mut Shown, request: &ApprovalRequest, extent: Extent, paint: Paint) {
    for AskedResult { call, tool, result, cut, artifacts, .. } in &request.results {
        let line = revealed_line(&format!("result of {call}  {tool}"));
        text.push(shown!["  ", paint.style(style::HINT, &line), "\n"]);
        match result {
            Some(Value::Object(fields)) => {
                for (name, value) in fields {
                    argument(text, &revealed_line(name), value, extent);
                }
            }
            Some(Value::Null) | None => {}
            Some(value) => argument(text, "result", value, extent),
        }
        if !cut.is_empty() {
            let _ = writeln!(text, "    shortened: {}; `logs` has the whole", revealed_line(&cut.join(", ")));
        }
        for file in artifacts {
            let _ = writeln!(text, "    file {}: {} bytes", revealed_line(&file.path), file.bytes);
        }
    }
}

fn shortened(text: &str) -> (String, usize) {
    let length = text.chars().count();
    if length <= MAX_SHOWN {
        (text.to_owned(), 0)
    } else {
        (text.chars().take(MAX_SHOWN).collect(), length - MAX_SHOWN)
    }
}

fn items(text: &mut Shown, request: &ApprovalRequest, extent: Extent) {
    let Some(items) = &request.items else { return };
    let _ = writeln!(text, "  for each of {}:", super::print::count(items.len() as u64, "element"));
    let shown = if extent == Extent::Full { items.len() } else { items.len().min(MAX_LISTED) };
    for item in &items[..shown] {
        let line = revealed_line(&item.to_string());
        let _ = writeln!(text, "    {}", if extent == Extent::Full { line } else { cut(&line, MAX_SHOWN) });
    }
    if shown < items.len() {
        let _ = writeln!(text, "    … and {} more", items.len() - shown);
    }
}

/// Returns the commands that decide the question.
pub(crate) fn advice(id: &TaskId, options: &[String]) -> Vec<Advised> {
    Advice::decisions(id, options).into_iter().map(Advised::from).collect()
}

/// Returns the first command that answers a question.
pub(crate) fn first_answer(request: &ApprovalRequest) -> Advised {
    let is_answer = |advice: &Advice| matches!(advice, Advice::Approve { .. });
    let answer = Advice::decisions_of(request).into_iter().find(is_answer);
    answer.unwrap_or_else(|| Advice::show(&request.task)).into()
}

/// Like [`advice`], for a question that is at hand.
pub(crate) fn advice_of(request: &ApprovalRequest) -> Vec<Advised> {
    Advice::decisions_of(request).into_iter().map(Advised::from).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_would_run_hides_nothing() {
        let mut text = Shown::new();
        argument(&mut text, "command", &json!("echo a\u{202e}b\u{200b}"), Extent::Full);
        argument(&mut text, "stdin", &json!("one\ntw\u{2066}o"), Extent::Full);
        let shown = "    command: \"echo a\\u{202e}b\\u{200b}\"\n    stdin:\n      one\n      tw\\u{2066}o\n";
        assert_eq!(text.as_str(), shown);
    }
}
