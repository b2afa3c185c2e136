//! How a question looks that a task asks before it starts.

use std::fmt::Write as _;

use serde_json::Value;
use taskpawl::model::{
    Advice, Advised, ApprovalRequest, AskedCall, Origin, Refusal, SandboxRequest, TaskId, format_time,
    revealed,
};
use taskpawl::{Error, Manager};
use taskpawl_text::revealed_line;

use crate::app::App;
use crate::caller::Caller;
use crate::error::CliError;
use crate::shown::{Shown, shown};
use crate::text::{Paint, clean, cut, style};

/// How many characters of an argument are shown where not all of it is.
const MAX_SHOWN: usize = 200;

/// How many calls and elements are shown where not all are.
const MAX_LISTED: usize = 10;

/// How much of a question is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Everything that would run, whole.
    Full,
    /// As much as can be taken in; what is missing is counted.
    Short,
}

/// Refuses to decide for a program that a task runs: it is known by its environment, and by what it descends from. It is no
/// wall: that takes a sandbox.
pub(crate) fn refuse_within_call(app: &App, by: &'static str) -> Result<(), CliError> {
    if is_within_call(app) {
        Err(Error::Refused(Box::new(Refusal::RunDecides { by })).into())
    } else {
        Ok(())
    }
}

/// Returns whether a program asks that a task runs.
pub(crate) fn is_within_call(app: &App) -> bool {
    app.environment().text("TASKPAWL_TASK").is_some() || taskpawl::is_below_supervisor()
}

/// Returns every command on the plan, for one that may take an approval away but adds no calls.
pub(crate) fn manager(app: &App) -> Result<Manager, CliError> {
    let manager = app.manager()?.clone();
    Ok(if is_within_call(app) { manager.with_origin(Origin::Agent) } else { manager })
}

/// Refuses to decide for anybody but a person at a terminal, who also types the PIN where there is one. That programs of a run do not
/// decide is told apart.
pub(crate) fn refuse_without_person(app: &App, by: &'static str) -> Result<(), CliError> {
    refuse_other_callers(app, by)?;
    crate::pin::ask(app, by)
}

/// As [`refuse_without_person`], without the PIN.
pub(crate) fn refuse_other_callers(app: &App, by: &'static str) -> Result<(), CliError> {
    refuse_within_call(app, by)?;
    match app.caller() {
        Caller::Person => Ok(()),
        Caller::Program => Err(CliError::NoTerminal { by }),
        Caller::Agent(sign) => Err(CliError::ByAgent { by, sign: sign.clone() }),
    }
}

/// Returns a question with everything that would run.
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
    if request.calls.is_empty() {
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
        let _ = writeln!(text, "    asks of the sandbox: {}", revealed_line(&wishes(sandbox)));
    }
    // The reason names one.
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

/// Says what a call asks of the sandbox.
fn wishes(sandbox: &SandboxRequest) -> String {
    let net = sandbox.net.then(|| "the network".to_owned());
    let paths =
        |verb: &str, paths: &[String]| (!paths.is_empty()).then(|| format!("to {verb} {}", paths.join(", ")));
    let all = [net, paths("read", &sandbox.read), paths("write", &sandbox.write)];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Text of several lines keeps them; everything else is JSON.
fn argument(text: &mut Shown, name: &str, value: &Value, extent: Extent) {
    let lines = value.as_str().filter(|text| text.trim_end().contains('\n'));
    let shown = lines.map_or_else(|| value.to_string(), str::to_owned);
    let (shown, hidden) = match extent {
        Extent::Full => (shown, 0),
        Extent::Short => shortened(&shown),
    };
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

/// Returns what decides about a question.
pub(crate) fn advice(id: &TaskId, options: &[String]) -> Vec<Advised> {
    Advice::decisions(id, options).into_iter().map(Advised::from).collect()
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
