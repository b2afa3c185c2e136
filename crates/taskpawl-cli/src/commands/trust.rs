use std::fs;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use taskpawl::model::value::format_time;
use taskpawl::model::value::revealed;
use taskpawl::tools::Power;
use toml::de::{DeTable, DeValue};

use crate::app::App;
use crate::audit::{self, Action};
use crate::config::files;
use crate::error::CliError;
use crate::files::{read_bytes, read_file};
use crate::output::write_err;
use crate::person;
use crate::shown::{Shown, shown};
use crate::text::{clean, style};
use crate::trust::{self, Trusted};

/// File of a project that describes MCP servers, besides the configuration.
const SERVERS: &str = ".mcp.json";

/// Trust the tool files of this project. Trusts the files that describe tools or MCP servers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The tools that a project describes run programs on this machine, and another person may have written them. Until it \
is trusted, a file describes nothing. Trust is for the content as it is shown: a changed file has to be \
trusted again. It takes a terminal: no script and no agent trusts anything.

Without FILE it is about taskpawl.toml of the project, where it describes tools or servers \
or names `run.notify`, and .mcp.json.

Examples:
  taskpawl trust
  taskpawl trust --list
  taskpawl trust --remove")]
pub(crate) struct Args {
    /// The files
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only show which files there are and whether they are trusted
    #[arg(long, conflicts_with_all = ["remove", "yes"])]
    list: bool,
    /// Trust them no longer
    #[arg(long, conflicts_with = "yes")]
    remove: bool,
    /// Show them, and trust them without asking
    #[arg(long)]
    yes: bool,
}

/// A file that can be trusted.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedFile {
    file: PathBuf,
    /// `trusted`, `changed` (since it was trusted) or `untrusted`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
}

/// Trusts files, removes trust, or lists the status.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let directory = &app.environment().directory;
    let named: Vec<PathBuf> = args.files.iter().map(|file| directory.join(file)).collect();
    let files = if named.is_empty() { describing(app) } else { named };
    if args.list {
        return list(app, &files);
    }
    person::refuse_without_person(app, "trust")?;
    if files.is_empty() {
        app.out().remark("this project describes no tools and no servers: nothing needs trust");
        return Ok(ExitCode::SUCCESS);
    }
    if args.remove {
        return remove(app, &files);
    }
    person::refuse_never(app, Power::Trust)?;
    give(app, &files, args.yes)
}

fn list(app: &App, files: &[PathBuf]) -> Result<ExitCode, CliError> {
    let trusted = Trusted::read(app)?;
    let mut shown = Vec::new();
    for file in files {
        let entry = trusted.entry(file);
        let state = match (entry, trust::hash(file)) {
            (None, _) => "untrusted",
            (Some(entry), Ok(now)) if now == entry.sha256 => "trusted",
            (Some(_), _) => "changed",
        };
        shown.push(ListedFile { file: file.clone(), state, since: entry.map(|entry| format_time(entry.at)) });
    }
    let out = app.out();
    if out.is_json {
        return out.data(&shown);
    }
    let line = |shown: &ListedFile| {
        let since = shown.since.as_ref().map(|since| format!("  since {since}")).unwrap_or_default();
        format!("{:9}  {}{since}\n", shown.state, clean(&shown.file.to_string_lossy()))
    };
    out.print(shown.iter().map(line).collect::<String>())?;
    if shown.is_empty() {
        out.remark("this project describes no tools and no servers");
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(app: &App, files: &[PathBuf]) -> Result<ExitCode, CliError> {
    let mut trusted = Trusted::read(app)?;
    let removed = files.iter().filter(|file| trusted.remove(file)).count();
    trusted.write(app)?;
    record(app, Action::Distrust, files)?;
    app.out().remark(if removed == 0 { "nothing of it was trusted" } else { "it is no longer trusted" });
    Ok(ExitCode::SUCCESS)
}

/// Shows each file in full, and trusts the content as shown.
fn give(app: &App, files: &[PathBuf], is_sure: bool) -> Result<ExitCode, CliError> {
    let out = app.out();
    let mut hashes = Vec::new();
    for file in files {
        let failed = |source| CliError::File { action: "read", path: file.clone(), source };
        let bytes = read_bytes(file).map_err(failed)?;
        let name = out.paint_err.style(style::BOLD, &clean(&file.to_string_lossy()));
        say(&shown![name, "\n", revealed(&String::from_utf8_lossy(&bytes)), "\n"]);
        // Hashed from the bytes that were shown: a file that changes during the question is not trusted.
        hashes.push(taskpawl::tools::content_hash(&bytes));
    }
    if !is_sure && !is_wanted(files.len()) {
        out.remark("nothing was trusted");
        return Ok(ExitCode::SUCCESS);
    }
    // Read after the question, so that the answer of another process in the meantime is not lost.
    let (mut trusted, now) = (Trusted::read(app)?, app.source()?.now());
    for (file, hash) in files.iter().zip(hashes) {
        trusted.insert(file, hash, now);
    }
    trusted.write(app)?;
    record(app, Action::Trust, files)?;
    out.remark("it is trusted as it was shown");
    Ok(ExitCode::SUCCESS)
}

fn record(app: &App, action: Action, files: &[PathBuf]) -> Result<(), CliError> {
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    audit::record(app, action, &files.join(", "))
}

/// Asks on the controlling terminal, even if the standard streams are redirected.
fn is_wanted(count: usize) -> bool {
    let what = if count == 1 { "this file" } else { "these files" };
    let Ok(mut terminal) = fs::OpenOptions::new().read(true).write(true).open("/dev/tty") else {
        return false;
    };
    // If the question cannot be printed, the answer is no.
    let question = Shown::from(format!("Trust {what}, to run the programs that are described there? [y/N] "));
    let asked = terminal.write_all(question.as_str().as_bytes());
    let mut line = String::new();
    let read = std::io::BufReader::new(terminal).read_line(&mut line);
    asked.is_ok() && read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

fn say(text: &Shown) {
    // A reader who does not see the file will not confirm it.
    let _ = write_err(text);
}

/// Returns the files of the project that describe tools or servers.
fn describing(app: &App) -> Vec<PathBuf> {
    let directory = &app.environment().directory;
    let project = files(app.environment()).project;
    let root = app.place().map_or(directory, |place| &place.root);
    let servers = root.join(SERVERS);
    let config = project.filter(|file| describes(file));
    config.into_iter().chain(servers.is_file().then_some(servers)).collect()
}

/// Returns whether a configuration describes a tool, a server or a notify program. Mere limits on concurrency need
/// no trust. A file that cannot be read or parsed may describe anything, so it counts as one that does.
fn describes(file: &Path) -> bool {
    let Ok(text) = read_file(file) else { return true };
    let Ok(table) = DeTable::parse(&text) else { return true };
    let is_plain = |key: &str| matches!(key, "concurrency" | "hosts");
    table.get_ref().iter().any(|(name, value)| match (name.get_ref().as_ref(), value.get_ref()) {
        ("tools", DeValue::Table(tools)) => tools.values().any(|tool| {
            let DeValue::Table(keys) = tool.get_ref() else { return true };
            keys.keys().any(|key| !is_plain(key.get_ref()))
        }),
        ("mcpServers" | "mcp" | "servers", _) => true,
        ("run", DeValue::Table(run)) => run.keys().any(|key| key.get_ref() == "notify"),
        _ => false,
    })
}
