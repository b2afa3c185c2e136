use std::process::ExitCode;

use serde_json::{Value, json};
use taskpawl::StatusChange;
use taskpawl::model::advice::Hint;
use taskpawl::model::command::Restart;
use taskpawl::model::task::Status;
use taskpawl::model::value::Map;

use crate::app::App;
use crate::commands::fields::FieldArgs;
use crate::commands::{calls, parse, print, question};
use crate::error::CliError;

/// Change fields of a task, or its status
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Lists such as --label and --needs replace what is there; --context and --metadata are merged into it.

New work, with --run or --set calls, lets a failed task go on at the first call that changed.

Examples:
  taskpawl update build --priority critical --due 2026-05-31
  taskpawl update test --run 'cargo test --lib' --retry
  taskpawl update build --set retry='{\"attempts\": 3}' --unset assignee --if-version 4
  taskpawl update review --status done --result '{\"approved\": true}'")]
pub(crate) struct Args {
    /// The task: its id, or the beginning of it
    #[arg(value_name = "ID")]
    id: String,
    /// A new name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Its dependencies, in place of the former ones; may be given several times
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    needs: Vec<String>,
    /// The command that does the work, in place of its tool calls
    #[arg(long, value_name = "COMMAND")]
    run: Option<String>,
    /// Start it over at the first call that changed or did not succeed
    #[arg(long, conflicts_with_all = ["reopen", "status"])]
    retry: bool,
    /// Start it over with all its calls
    #[arg(long, conflicts_with = "status")]
    reopen: bool,
    /// With --retry or --reopen: start what ran after it over, too
    #[arg(long)]
    cascade: bool,
    /// Take a field away, by its name in plan files
    #[arg(long, value_name = "FIELD")]
    unset: Vec<String>,
    /// Only if the task still has this version
    #[arg(long, value_name = "N", value_parser = parse::number::<u64>)]
    if_version: Option<u64>,
    /// The state that it is to have, as far as the table of states allows it; goes without other changes
    #[arg(long, value_name = "STATUS", value_parser = parse::status())]
    status: Option<Status>,
    /// Why, with --status
    #[arg(long, value_name = "TEXT", requires = "status")]
    reason: Option<String>,
    /// The result as JSON, with --status
    #[arg(long, value_name = "JSON", value_parser = parse::json, requires = "status", allow_negative_numbers = true)]
    result: Option<Value>,
    #[command(flatten)]
    fields: FieldArgs,
}

/// Changes the fields or the status of a task.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let fields = args.to_map()?;
    match args.status {
        Some(_) if !fields.is_empty() || args.if_version.is_some() => Err(CliError::usage_with(
            "`--status` goes alone: a change of state and one of fields are two commands",
            Hint::new("give `--status` in a second ").command("update"),
        )),
        Some(status) => {
            let change = StatusChange { reason: args.reason.clone(), result: args.result.clone() };
            let task = app.writer()?.blocking().update_task_status(&args.id, status, change)?;
            print::task(app, &task.id)
        }
        None if fields.is_empty() => Err(CliError::usage_with(
            "there is nothing to change",
            Hint::default().command("update --help").text(" lists the fields"),
        )),
        None => {
            let manager = question::manager(app)?;
            calls::check_all(app, &manager.calls_of_update(&args.id, &fields)?)?;
            let Some(restart) = args.restart()? else {
                return print::task(app, &manager.update(&args.id, fields, args.if_version)?);
            };
            let ids = manager.update_and_restart(&args.id, fields, args.if_version, restart)?;
            // As JSON, a change of fields is one task.
            if app.out().is_json { print::task(app, &ids[0]) } else { print::tasks(app, &ids) }
        }
    }
}

impl Args {
    fn restart(&self) -> Result<Option<Restart>, CliError> {
        let cascade = self.cascade;
        match (self.retry, self.reopen) {
            (true, _) => Ok(Some(Restart::Retry { cascade })),
            (_, true) => Ok(Some(Restart::Reopen { cascade })),
            (false, false) if cascade => Err(CliError::usage_with(
                "`--cascade` goes with `--retry` or `--reopen`",
                Hint::default().command("update --help").text(" lists the flags"),
            )),
            (false, false) => Ok(None),
        }
    }

    fn to_map(&self) -> Result<Map, CliError> {
        let mut fields = self.fields.to_map()?;
        fields.extend(self.name.as_ref().map(|name| ("name".to_owned(), json!(name))));
        fields.extend(self.run.as_ref().map(|run| ("run".to_owned(), json!(run))));
        if !self.needs.is_empty() {
            fields.insert("dependencies".to_owned(), json!(self.needs));
        }
        // `null` removes a field, as in a plan file.
        fields.extend(self.unset.iter().map(|field| (field.clone(), Value::Null)));
        Ok(fields)
    }
}
