use std::fmt::Write;
use std::process::ExitCode;

use serde_json::json;
use taskpawl::model::command::Undone;
use taskpawl::{HistoryFilter, Manager};

use crate::app::App;
use crate::commands::{history, parse, print, question};
use crate::error::CliError;
use crate::output::Output;
use crate::shown::{Shown, shown};
use crate::text::style;

/// Number of changes and tasks that are listed; the rest is counted.
const MAX_SHOWN: usize = 20;

/// Undo a command. Restores everything that the command changed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Work of runs is never undone. A command that later changes build on is not undone either: it is refused, with a list.
A signal, a stop and a renewal are not undone: right after one, name the command before it.
An undo is a change of its own: it stands in the history, and can be undone.

Examples:
  taskpawl undo                 takes back what you did last
  taskpawl history -n 10        shows the revisions
  taskpawl undo 42 --dry-run")]
pub(crate) struct Args {
    /// The command, by a revision from `history` [default: your last one that is not undone]
    #[arg(value_name = "REVISION", value_parser = parse::number::<u64>)]
    revision: Option<u64>,
    /// Only say what would be undone
    #[arg(long)]
    dry_run: bool,
}

/// Undoes a command, or previews that.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let out = app.out();
    if args.dry_run {
        let manager = app.reader()?.manager();
        let undone = manager.preview_undo(args.revision)?;
        return if out.is_json { out.data(&undone) } else { preview(&out, manager, &undone) };
    }
    let manager = &question::manager(app)?;
    let undone = manager.undo(args.revision)?;
    if out.is_json { out.data(&undone) } else { report(app, manager, &undone) }
}

fn preview(out: &Output, manager: &Manager, undone: &Undone) -> Result<ExitCode, CliError> {
    let mut text = changes(out, manager, undone, "would undo")?;
    for (word, ids) in [("would restore", &undone.restored), ("would remove", &undone.removed)] {
        if !ids.is_empty() {
            let _ = writeln!(text, "{word} {}", print::some(ids));
        }
    }
    out.print(text)
}

fn report(app: &App, manager: &Manager, undone: &Undone) -> Result<ExitCode, CliError> {
    let out = app.out();
    let ids = || undone.restored.iter().chain(&undone.removed);
    if out.is_quiet {
        return out.print(ids().map(|id| format!("{id}\n")).collect::<Vec<_>>().concat());
    }
    match story(&out, manager, undone) {
        Ok(text) => out.print(text),
        Err(error) => {
            print::saved_but_unread(app, &ids().cloned().collect::<Vec<_>>(), &json!(undone), &error)
        }
    }
}

/// Formats the undone changes and the restored tasks.
fn story(out: &Output, manager: &Manager, undone: &Undone) -> Result<Shown, CliError> {
    let mut text = changes(out, manager, undone, "undid")?;
    for id in undone.restored.iter().take(MAX_SHOWN) {
        let task = manager.get(id.as_str())?;
        let status = out.paint.style(style::of_status(task.status), task.status.as_str());
        text.push(shown![out.paint.style(style::BOLD, id.as_str()), " is ", status, " again\n"]);
    }
    more(&mut text, undone.restored.len(), "tasks are as before");
    for id in undone.removed.iter().take(MAX_SHOWN) {
        text.push(shown![out.paint.style(style::BOLD, id.as_str()), " is gone again\n"]);
    }
    more(&mut text, undone.removed.len(), "tasks are gone again");
    Ok(text)
}

/// Formats the changes that the command had made.
fn changes(out: &Output, manager: &Manager, undone: &Undone, word: &str) -> Result<Shown, CliError> {
    let after = undone.first.saturating_sub(1);
    let count = usize::try_from(undone.last - after).unwrap_or(usize::MAX);
    let filter = HistoryFilter { after, limit: count.min(MAX_SHOWN), ..HistoryFilter::default() };
    let mut entries = manager.find_history(&filter)?;
    for entry in &mut entries {
        // Every entry is undone here, so a note on each would be noise.
        entry.undone_by = None;
    }
    let mut text = shown![word, "\n", history::lines(out, &entries)];
    more(&mut text, count, "changes");
    Ok(text)
}

fn more(text: &mut Shown, count: usize, what: &str) {
    if count > MAX_SHOWN {
        let _ = writeln!(text, "and {} more {what}", count - MAX_SHOWN);
    }
}
