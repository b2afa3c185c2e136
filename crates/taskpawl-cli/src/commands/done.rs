use std::process::ExitCode;

use serde_json::Value;
use taskpawl::Ending;

use crate::app::App;
use crate::commands::{parse, print};
use crate::error::CliError;

/// Mark manual tasks as done. Of a task with interrupted calls, these count as succeeded
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The holder of a task reports without naming the attempt. A report about a task that another actor has taken \
or ended is refused, with the changes since then; one that comes after the claim has ended counts for \
as long as no other actor has taken the task.

Examples:
  taskpawl done review --result '{\"approved\": true}' --note \"looks good\"
  taskpawl done draft outline")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) end: EndArgs,
}

/// Arguments of the commands that end tasks.
#[derive(Debug, clap::Args)]
pub(crate) struct EndArgs {
    /// The tasks: their ids, or the beginnings of them; all of them end, or none
    #[arg(value_name = "ID", required = true)]
    pub(super) ids: Vec<String>,
    /// The result, as JSON
    #[arg(long, value_name = "JSON", value_parser = parse::json, allow_negative_numbers = true)]
    result: Option<Value>,
    /// A remark; of a failure the reason
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// The attempt that the report is about: refused if the task was claimed again since
    #[arg(long, value_name = "N", value_parser = parse::number::<u32>)]
    attempt: Option<u32>,
}

impl EndArgs {
    /// Returns the ending for these tasks. An attempt number belongs to one task, so it is refused with
    /// several.
    pub(super) fn ending(&self) -> Result<Ending, CliError> {
        if self.attempt.is_some() && self.ids.len() > 1 {
            return Err(CliError::usage("`--attempt` is about one task, and several are named"));
        }
        Ok(Ending { result: self.result.clone(), note: self.note.clone(), attempt: self.attempt })
    }
}

/// Marks manual tasks as done.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let ending = args.end.ending()?;
    print::tasks(app, &app.manager()?.done(&args.end.ids, ending)?)
}
