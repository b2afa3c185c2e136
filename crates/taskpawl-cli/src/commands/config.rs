use std::process::ExitCode;

use serde::Serialize;

use crate::app::App;
use crate::config::{Key, Setting, files};
use crate::error::CliError;
use crate::text::{Cell, Table, style};

mod change;

/// Show the configuration and its sources, or change it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Layers, each over the one before: taskpawl.toml of the project, config.toml of the user, TASKPAWL_* variables, flags.
[resources] says how much there is of each resource, as in gpu = 2; [tools.NAME] says how many \
calls of a tool run at once, as in concurrency = 1, or describes a tool of one's own (see \
`taskpawl tools --help`). [tools.http_request] reaches only the hosts in \
its list, as in hosts = [\"api.example.com\", \"*.example.org\", \"127.0.0.1:8080\"]: without it every \
public host, with it those alone. The list of a project takes hosts away and adds none.
[sandbox] has the permissions of programs: mode = on, strict or off; net = true; write, read, env, hide \
and protect are lists, memory = \"4GiB\" and processes = 500 are limits. The file of a project only \
narrows it: there mode cannot be off, net is false, and nothing is added to write, read and env.
[secrets.NAME] of the user's file says where the secret comes from that plans name as ${secret:NAME}:
env = \"VARIABLE\", file = \"~/path\" (mode 0600), or command = [\"program\", \"argument\"].
[planner] of the user's file names the planner of `plan new`: command = [\"claude\"], or url and model (docs/planner.md).

Examples:
  taskpawl config list --origin
  taskpawl config get lease
  taskpawl config set lease 2h
  taskpawl config set sandbox.net false --project
  taskpawl config edit
  taskpawl config path")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show every key with its value
    List {
        /// Also show where each value comes from
        #[arg(long)]
        origin: bool,
    },
    /// Print the value of one key
    Get {
        /// The key
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// Set one key in the file of the user. Comments and all other values stay as they are
    Set {
        /// The key
        #[arg(value_name = "KEY")]
        key: String,
        /// The value; numbers, lists and tables as in TOML
        #[arg(value_name = "VALUE", allow_hyphen_values = true)]
        value: String,
        /// Set it in taskpawl.toml of the project instead
        #[arg(long)]
        project: bool,
    },
    /// Edit the file of the user with $VISUAL or $EDITOR. It is written only if it is valid
    Edit {
        /// Edit taskpawl.toml of the project instead
        #[arg(long)]
        project: bool,
    },
    /// Print the files of the configuration
    Path,
}

#[derive(Serialize)]
struct Shown<'a> {
    key: &'a str,
    value: &'a str,
    origin: String,
}

/// Shows or changes settings, or shows the paths of the configuration files.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    match &args.what {
        What::List { origin } => list(app, *origin),
        What::Get { key } => get(app, key),
        What::Set { key, value, project } => change::set(app, key, value, *project),
        What::Edit { project } => change::edit(app, *project),
        What::Path => path(app),
    }
}

fn list(app: &App, with_origin: bool) -> Result<ExitCode, CliError> {
    let settings = app.config()?.settings();
    let out = app.out();
    if out.is_json {
        return out.data(&settings.iter().map(shown).collect::<Vec<_>>());
    }
    let mut table = Table::new(1);
    for setting in settings {
        let origin = if with_origin { setting.origin.to_string() } else { String::new() };
        table.row(vec![
            Cell::styled(&setting.name, style::BOLD),
            Cell::new(&setting.value),
            Cell::styled(origin, style::DIM),
        ]);
    }
    out.print(table.render(out.paint, out.width))
}

fn shown(setting: &Setting) -> Shown<'_> {
    Shown { key: &setting.name, value: &setting.value, origin: setting.origin.to_string() }
}

fn get(app: &App, name: &str) -> Result<ExitCode, CliError> {
    let settings = app.config()?.settings();
    let Some(setting) = settings.iter().find(|setting| setting.name == name) else {
        let hint = Key::from_name(name).err().unwrap_or_default();
        return Err(CliError::usage_with(format!("there is no key `{name}`"), hint));
    };
    let out = app.out();
    if out.is_json {
        return out.data(&shown(setting));
    }
    out.print(format!("{}\n", crate::text::clean(&setting.value)))
}

fn path(app: &App) -> Result<ExitCode, CliError> {
    let files = files(app.environment());
    let out = app.out();
    if out.is_json {
        return out.data(&files);
    }
    let mut table = Table::new(1);
    for (label, path) in [("project", &files.project), ("user", &files.user)] {
        let text = match path {
            Some(path) if path.is_file() => path.display().to_string(),
            Some(path) if path.symlink_metadata().is_ok() => format!("{} (no file)", path.display()),
            Some(path) => format!("{} (not there)", path.display()),
            None => "none".to_owned(),
        };
        table.row(vec![Cell::styled(label, style::DIM), Cell::new(text)]);
    }
    out.print(table.render(out.paint, None))
}
