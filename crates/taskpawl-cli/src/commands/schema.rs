use std::process::ExitCode;

use clap::ValueEnum;

use crate::app::App;
use crate::error::CliError;
use crate::schema;

/// Print JSON Schemas. Prints the schema of plan files, of a part of them, of events, or of the configuration
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl schema > plan.schema.json
  taskpawl schema task")]
pub(crate) struct Args {
    /// Of what
    #[arg(value_name = "WHAT", value_enum, default_value_t = What::Plan)]
    what: What,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// A plan file
    Plan,
    /// A task of a plan
    Task,
    /// A tool call of a task
    Call,
    /// A file of the configuration
    Config,
    /// A policy file
    Policy,
    /// A change, as `history` exports it
    Event,
}

/// Prints a JSON schema.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let schema = match args.what {
        What::Plan => schema::plan(),
        What::Task => schema::task(),
        What::Call => schema::call(),
        What::Config => schema::config(),
        What::Policy => taskpawl::tools::policy_schema(),
        What::Event => schema::event(),
    };
    let out = app.out();
    if out.is_json {
        return out.data(&schema);
    }
    // The output is a schema file, so `--json` adds no envelope to it.
    let text = crate::output::to_text(&schema, true).map_err(|error| CliError::Output(error.into()))?;
    out.print(&(text + "\n"))
}
