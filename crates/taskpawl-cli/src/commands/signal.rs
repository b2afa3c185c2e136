use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;
use taskpawl::model::task::SignalRecord;
use taskpawl::model::value::TaskId;
use taskpawl::tools::Power;

use super::parse;
use crate::app::App;
use crate::error::CliError;
use crate::person;
use crate::shown::{Shown, shown};
use crate::text::{clean, short_line, style};

/// Send a signal to a task that waits for it, or list the signals that no task has taken
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The first task that waits for the signal takes it. If none waits yet, the signal is kept for the first that will.
Each signal is taken once. Its data is the result of the call of `wait`.
An agent may not send to tasks that are assigned to a person or to another agent.

Examples:
  taskpawl signal deployed
  taskpawl signal review --data '{\"ok\": true}' --to release
  taskpawl signal --list
  taskpawl signal review --drop")]
pub(crate) struct Args {
    /// The name: letters, digits, `.`, `_` and `-`
    #[arg(value_name = "NAME", required_unless_present = "list")]
    name: Option<String>,
    /// The data, as JSON
    #[arg(long, value_name = "JSON", value_parser = parse::json, conflicts_with_all = ["list", "drop"])]
    data: Option<Value>,
    /// The only task that may take it
    #[arg(long, value_name = "TASK", conflicts_with_all = ["list", "drop"])]
    to: Option<String>,
    /// List the signals that no task has taken
    #[arg(long, conflicts_with = "drop")]
    list: bool,
    /// Drop the signals of this name that no task has taken
    #[arg(long)]
    drop: bool,
}

/// Result of sending a signal.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    id: String,
    name: String,
    /// The task that took it; absent if it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_by: Option<TaskId>,
}

/// Result of dropping signals.
#[derive(Debug, Serialize)]
struct Dropped {
    name: String,
    dropped: u64,
}

/// Sends, lists or drops signals.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let (manager, out) = (app.manager()?, app.out());
    let Some(name) = args.name.as_deref().filter(|_| !args.list) else {
        let kept = manager.signals(args.name.as_deref())?;
        return if out.is_json { out.data(&kept) } else { out.print(list(&kept)) };
    };
    person::check_power(app, Power::Signals, "signal")?;
    if args.drop {
        let done = Dropped { name: name.to_owned(), dropped: manager.drop_signals(name)? };
        let text = shown!["dropped: ", done.dropped.to_string(), "\n"];
        return if out.is_json { out.data(&done) } else { out.print(text) };
    }
    let data = args.data.clone().unwrap_or_default();
    let (id, taken_by) = manager.signal(name, data, args.to.as_deref())?;
    let sent = Sent { id, name: name.to_owned(), taken_by };
    if out.is_json {
        return out.data(&sent);
    }
    let name = out.paint.style(style::BOLD, &clean(&sent.name));
    let Some(task) = &sent.taken_by else {
        return out.print(shown!["kept ", name, ": no task waits for it yet\n"]);
    };
    out.print(shown![clean(task.as_str()), " takes ", name, "\n"])
}

fn list(kept: &[SignalRecord]) -> Shown {
    if kept.is_empty() {
        return shown!["no signals are kept", "\n"];
    }
    let lines = kept.iter().map(|signal| {
        let to = signal.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        let line = format!("{}{to}, from {}: {}", signal.name, signal.actor, signal.data);
        shown![short_line(&clean(&line)).into_owned(), "\n"]
    });
    Shown::joined(lines, "")
}
