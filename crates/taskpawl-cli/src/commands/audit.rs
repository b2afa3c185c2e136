use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use taskpawl::model::value::{Timestamp, bounded, format_time};

use crate::app::App;
use crate::audit::{Entry, Log};
use crate::commands::parse;
use crate::error::CliError;
use crate::text::{Cell, Table};

/// List decisions: approvals, rejections, trust, grants, the PIN, purges, and changes of the policy
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The log is in your state directory, for all projects. Each line holds the hash of the line before: a line that was changed or \
removed is reported, with exit code 1. Keep the last hash elsewhere to detect a rewritten log.

Examples:
  taskpawl audit
  taskpawl audit --since 48h --json")]
pub(crate) struct Args {
    /// Only decisions of the last so long, such as 12h or 48h
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    since: Option<Duration>,
}

/// Lists the log of decisions, and checks its chain.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let log = Log::read(app)?;
    let from: Option<Timestamp> = match args.since {
        Some(since) => {
            app.source()?.now().checked_sub_signed(chrono::TimeDelta::from_std(since).unwrap_or_default())
        }
        None => None,
    };
    let entries: Vec<&Entry> =
        log.entries.iter().filter(|entry| from.is_none_or(|from| entry.at >= from)).collect();
    let out = app.out();
    if out.is_json {
        out.data(&json!({
            "entries": entries, "head": log.head, "broken": log.broken, "unreadable": log.unreadable,
        }))?;
    } else {
        let mut table = Table::new(2);
        for entry in &entries {
            let project = entry.project.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
            let cells = [
                format_time(entry.at),
                entry.action.to_string(),
                entry.about.clone(),
                entry.actor.clone(),
                project,
            ];
            table.row(cells.iter().map(Cell::new).collect());
        }
        out.print(table.render(out.paint, out.width))?;
        if !log.head.is_empty() {
            out.remark(&format!("the last line has the hash {}", log.head));
        }
    }
    if !log.unreadable.is_empty() {
        let lines = bounded::list(&log.unreadable, ", ");
        let subject = if log.unreadable.len() == 1 { "line" } else { "lines" };
        out.warn(&format!(
            "no entry can be read from {subject} {lines}: half a line, or another program wrote it"
        ));
    }
    if let Some(line) = log.broken {
        // An unreadable line is named above.
        if !log.unreadable.contains(&line) {
            out.warn(&format!("line {line} does not follow from the line before: the log was changed"));
        }
        return Ok(ExitCode::from(1));
    }
    Ok(ExitCode::SUCCESS)
}
