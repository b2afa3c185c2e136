use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::app::App;
use crate::args::Cli;
use crate::error::CliError;

/// Print shell completions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl completions bash > ~/.local/share/bash-completion/completions/taskpawl
  taskpawl completions fish | source")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Prints the completion script of a shell.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "taskpawl", &mut script);
    let out = app.out();
    let script = String::from_utf8_lossy(&script);
    if out.is_json {
        return out.data(&serde_json::json!({ "shell": args.shell.to_string(), "script": script }));
    }
    out.print(&*script)
}
