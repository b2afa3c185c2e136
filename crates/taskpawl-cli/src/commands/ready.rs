use std::process::ExitCode;

use crate::app::App;
use crate::commands::list::PageArgs;
use crate::commands::print;
use crate::error::CliError;

/// List what can be done now, in the order in which it is taken
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl ready
  taskpawl ready --limit 1 --fields id,name")]
pub(crate) struct Args {
    #[command(flatten)]
    page: PageArgs,
}

/// Lists what is ready.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let (limit, offset) = (args.page.limit(app)?, args.page.offset);
    let page = app.reader()?.manager().ready(limit, offset)?;
    print::page(app, &page, limit, offset, "taskpawl ready")
}
