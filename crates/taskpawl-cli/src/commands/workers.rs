use std::process::ExitCode;

use serde_json::json;
use taskpawl_restate::Worker;

use crate::app::App;
use crate::commands::engine;
use crate::error::CliError;
use crate::text::{Cell, Table};

/// List the workers of a Restate server, or print the key that they have to trust
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A worker runs calls that this user's key has signed. `taskpawl workers key` prints the public key; on the machine of the worker, \
`taskpawl-worker trust KEY` accepts it. docs/beyond-one-machine.md shows all steps.

Examples:
  taskpawl workers
  taskpawl workers key
  taskpawl workers --restate-admin http://10.0.0.5:9070")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<WorkersCommand>,
    /// Address of the admin interface of the server [default: port 9070 of this machine]
    #[arg(long, value_name = "URL")]
    restate_admin: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum WorkersCommand {
    /// Print the public key of this user, which workers have to trust
    Key,
}

/// Lists workers, or prints the key.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    match args.command {
        Some(WorkersCommand::Key) => key(app),
        None => list(app, args),
    }
}

fn key(app: &App) -> Result<ExitCode, CliError> {
    let public = engine::signing_key(app)?.public();
    let out = app.out();
    if out.is_json { out.data(&json!({"key": public})) } else { out.print(format!("{public}\n")) }
}

fn list(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let admin = engine::admin(app, args.restate_admin.as_ref())?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let workers = runtime.block_on(taskpawl_restate::workers(&admin));
    let workers = workers.map_err(|source| CliError::Engine { source })?;
    let out = app.out();
    if out.is_json {
        return out.data(&workers);
    }
    let mut table = Table::new(4);
    for Worker { pool, offer, unusable } in &workers {
        let labels: Vec<&str> = offer.labels.iter().map(String::as_str).collect();
        let told = unusable.clone().unwrap_or_else(|| format!("{} tools", offer.tools.len()));
        let slots = format!("{} slots", offer.slots);
        let cells = [format!("@{}", offer.worker), format!("pool {pool}"), slots, labels.join(","), told];
        table.row(cells.map(Cell::new).into());
    }
    out.print(table.render(out.paint, out.width))?;
    if workers.is_empty() {
        out.remark("no worker is registered; docs/beyond-one-machine.md shows how to start one");
    }
    Ok(ExitCode::SUCCESS)
}
