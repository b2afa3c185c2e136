use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::CommandFactory;

use crate::app::App;
use crate::args::Cli;
use crate::error::CliError;

/// Print manual pages. Prints the main page, or writes the pages of all commands into a directory
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl man | man -l -
  taskpawl man --dir ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Write a page for each command into this directory, which is made if it does not exist
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints the manual page, or writes the pages of all commands to a directory.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let out = app.out();
    if let Some(dir) = &args.dir {
        let pages =
            write(dir).map_err(|source| CliError::File { action: "write", path: dir.clone(), source })?;
        if out.is_json {
            return out.data(&serde_json::json!({ "dir": dir, "pages": pages }));
        }
        out.remark(&format!("wrote {pages} pages to `{}`", dir.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(CliError::Output)?;
    let page = String::from_utf8_lossy(&page);
    if out.is_json {
        return out.data(&serde_json::json!({ "page": page }));
    }
    out.print(&*page)
}

fn write(dir: &Path) -> std::io::Result<usize> {
    std::fs::create_dir_all(dir)?;
    // clap would write a page for `help` and each of its subcommands, which repeat the others.
    let command = Cli::command().disable_help_subcommand(true);
    let pages = 1 + command.get_subcommands().count();
    clap_mangen::generate_to(command, dir)?;
    Ok(pages)
}
