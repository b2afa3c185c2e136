//! The tree of commands, and the way from the words of the command line to an exit code.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::app::App;
use crate::commands;
use crate::config::ColorWord;
use crate::environment::Environment;
use crate::error::CliError;

const EXIT_CODES: &str = "\
Exit codes:
  0      done; of a run: everything in its scope is finished
  1      of a run: a task failed
  2      the command line, a file that it names or the configuration is wrong
  3      of a run: something waits for an approval, an agent or a decision
  4      of a run: tasks are blocked otherwise
  6      an id is unknown, or not unique
  7      refused: nothing was changed
  8      the store cannot be used
  130    interrupted (143: terminated)

Examples:
  taskpawl init
  taskpawl apply plan.yaml && taskpawl run-all-ready
  taskpawl create \"Write the report\" --needs build --priority high
  taskpawl list --status failed,blocked --json";

/// Runs the plans of AI agents: keeps tasks safely, runs what is ready in parallel, tells the truth about where things stand
#[derive(Debug, Parser)]
#[command(name = "taskpawl", version, after_help = EXIT_CODES, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Use this store: a database file or json:PATH [env: TASKPAWL_STORE]
    #[arg(long, global = true, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Act in this name [env: TASKPAWL_ACTOR] [default: user@host]
    #[arg(long, global = true, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) actor: Option<String>,
    /// Print JSON: {schemaVersion, data, page?}, and errors as {schemaVersion, error}, both on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only these fields of each object, as in id,status,metadata.context; implies --json
    #[arg(long, global = true, value_name = "FIELDS", value_delimiter = ',')]
    pub(crate) fields: Vec<String>,
    /// Print ids alone where a command lists the tasks that it changed, and no remarks
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// When to use colours [env: TASKPAWL_COLOR, NO_COLOR] [default: auto]
    #[arg(long, global = true, value_name = "WHEN", value_enum, hide_default_value = true)]
    pub(crate) color: Option<ColorWord>,
}

/// What can be done. The order is that of `--help`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(commands::list::Args),
    Show(commands::show::Args),
    Where(commands::placement::Args),
}

impl Command {
    fn run(&self, app: &App) -> Result<ExitCode, CliError> {
        match self {
            Self::List(args) => commands::list::run(app, args),
            Self::Show(args) => commands::show::run(app, args),
            Self::Where(args) => commands::placement::run(app, args),
        }
    }
}

/// Does what the command line says and returns the exit code.
pub(crate) fn main(environment: Environment) -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) => return CliError::from(error).report(asks_for_json(&words), environment.terminal),
    };
    let terminal = environment.terminal;
    let app = App::new(cli.global, environment);
    let is_json = app.is_json();
    cli.command.run(&app).unwrap_or_else(|error| error.report(is_json, terminal))
}

/// Returns whether a command line that could not be understood asks for JSON all the same.
fn asks_for_json(words: &[OsString]) -> bool {
    let is_flag = |word: &OsStr| word == "--json" || word.to_string_lossy().starts_with("--fields");
    words.iter().take_while(|word| *word != "--").any(|word| is_flag(word))
}
