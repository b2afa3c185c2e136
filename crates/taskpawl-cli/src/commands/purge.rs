mod files;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use taskpawl::model::value::RunId;
use taskpawl::store::{self, Location, StoreError};
use taskpawl::tools::ValueRemoval;
use taskpawl::{RunFilter, RunState, keyed_digest};

use self::files::Cleaned;
use crate::app::App;
use crate::audit::{self, Action};
use crate::caller::Caller;
use crate::commands::print::count;
use crate::error::CliError;
use crate::person;
use crate::state_files::{state_directory_of, state_file};
use crate::text::clean;

/// Name of the command in refusals.
const BY: &str = "purge";

/// The longest value, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// Remove a leaked value from the store. Removes it from tasks, results, history, undo, output, logs, private caches and `/tmp`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For a password or a key that a call has printed or a plan has had in it. Each place gets the word PURGED instead, in JSON a number \
becomes 0. The value is found as it is, with the escapes of JSON, shells and HTML, in base64, in hexadecimal and in percent encoding. \
It has at least 8 bytes. Nothing reverts it: `undo` does not, and copies of the store that taskpawl keeps beside it are changed as well. \
Approvals and caches of changed calls do not count any more.

It does not reach: other backups, exported files and reports, the files of the project itself, other machines, memory of running programs, \
swap, and unused blocks of the disk. Change the password, too.

No run of the project may be at work. Agents cannot purge. The log of decisions gets a keyed digest of the value.

Exit codes: 0 it is gone or was nowhere · 1 it is left in the files that are named · 7 a run is at work, or an agent asks

Examples:
  taskpawl purge --value-from -
  taskpawl purge --value-from leaked.txt")]
pub(crate) struct Args {
    /// Read the value from this file; `-` for standard input. A line break at its end does not count
    #[arg(long, value_name = "FILE")]
    value_from: PathBuf,
}

/// The result of a purge.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Purged {
    /// Number of changed texts of the store.
    texts: u64,
    /// Changed copies of the store.
    copies: Vec<PathBuf>,
    /// Number of changed files.
    files: u64,
    /// Files that may still have the value, each with the reason.
    left: Vec<Left>,
    /// Places that a purge does not reach.
    unreached: &'static [&'static str],
}

/// A file that may still have the value.
#[derive(Debug, Serialize)]
pub(super) struct Left {
    path: PathBuf,
    reason: String,
}

const UNREACHED: &[&str] = &[
    "other backups of the store",
    "exported files, reports and sent traces",
    "the files of the project itself",
    "other machines",
    "memory of running programs, and swap",
    "unused blocks of the disk",
];

/// Removes a value from everything that belongs to the store of the project.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    person::refuse_within_call(app, BY)?;
    if let Caller::Agent(sign) = app.caller() {
        return Err(CliError::ByAgent { by: BY, sign: sign.clone() });
    }
    let value = read_value(&args.value_from)?;
    let removal = ValueRemoval::new(&value).ok_or_else(|| {
        CliError::usage_with(
            format!("the value has {}", count(value.len() as u64, "byte")),
            format!(
                "a purge needs at least {}, because a shorter value is also in other texts",
                ValueRemoval::MIN_BYTES
            ),
        )
    })?;
    let location = app.place()?.location.resolved();
    let Some(path) = location.path() else {
        return Err(CliError::usage("a store in memory keeps nothing that could be purged"));
    };
    let revision = refuse_during_run(app)?;
    let purged = purge(&location, path, &removal, revision)?;
    record(app, &value)?;
    print(app, &purged)
}

/// Reads the value. Only one line break at its end is taken off: others may belong to a key.
fn read_value(from: &Path) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let read = if from.as_os_str() == "-" {
        std::io::stdin().take(MAX_BYTES + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(from).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(|source| CliError::File { action: "read", path: from.to_owned(), source })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(CliError::usage("the value is longer than 64 KiB"));
    }
    let value = String::from_utf8(bytes).map_err(|_| CliError::usage("the value is not UTF-8"))?;
    let line = value.strip_suffix('\n').unwrap_or(&value);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// Refuses a purge while a run is at work, which would write the value again. Returns the revision of the store.
fn refuse_during_run(app: &App) -> Result<u64, CliError> {
    // Its own handle, closed before the files are searched: closing a file releases the locks of SQLite on it.
    let plans = app.builder()?.without_builtin_tools().open()?;
    let manager = plans.manager();
    let is_at_work = |run: &&taskpawl::model::task::RunRecord| manager.run_state(run) == RunState::Running;
    let runs = manager.runs(&RunFilter { limit: 0 })?;
    match runs.iter().find(is_at_work) {
        Some(run) => Err(CliError::RunAtWork { by: BY, run: RunId::clone(&run.id) }),
        None => Ok(manager.read(|view| Ok(view.revision()?))?),
    }
}

fn purge(
    location: &Location,
    path: &Path,
    removal: &ValueRemoval,
    revision: u64,
) -> Result<Purged, CliError> {
    let change = |text: &str| removal.text(text);
    let check = |view: &dyn taskpawl::model::view::View| {
        if view.revision().is_ok_and(|now| now == revision) {
            return Ok(());
        }
        Err(StoreError::Busy { path: path.to_owned() })
    };
    let rewritten = store::rewrite(location, &check, &change).map_err(taskpawl::Error::from)?;
    let mut cleaned = Cleaned::default();
    let beside = beside(path, ".files");
    files::clean(&beside, removal, &mut cleaned);
    // The value is gone where no file of the store has its bytes.
    files::search(path, removal, &mut cleaned);
    files::search(&beside, removal, &mut cleaned);
    Ok(Purged {
        texts: rewritten.texts,
        copies: rewritten.copies,
        files: cleaned.files,
        left: cleaned.left,
        unreached: UNREACHED,
    })
}

/// Returns the path of a file beside the store.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Logs the purge with a digest that tells nothing about the value without the key beside the log.
fn record(app: &App, value: &str) -> Result<(), CliError> {
    let Some(log) = state_file(app, "audit.ndjson") else { return Ok(()) };
    let directory = state_directory_of(&log).map_err(|source| CliError::File {
        action: "make",
        path: log.clone(),
        source,
    })?;
    let digest = keyed_digest(directory, BY, value).map_err(|source| CliError::File {
        action: "write",
        path: directory.to_owned(),
        source,
    })?;
    audit::record(app, Action::Purge, &format!("value {digest}"))
}

fn print(app: &App, purged: &Purged) -> Result<ExitCode, CliError> {
    let code = if purged.left.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) };
    let out = app.out();
    if out.is_json {
        out.data(purged)?;
        return Ok(code);
    }
    let is_found = purged.texts > 0 || purged.files > 0;
    out.print(if is_found {
        let (texts, files) = (count(purged.texts, "text"), count(purged.files, "file"));
        format!("removed from {texts} of the store and {files}\n")
    } else {
        "the value was nowhere in the store and its files\n".to_owned()
    })?;
    for copy in &purged.copies {
        out.remark(&format!("also removed from the copy `{}`", clean(&copy.display().to_string())));
    }
    for Left { path, reason } in purged.left.iter().take(10) {
        out.warn(&format!("`{}` may still have it: {reason}", clean(&path.display().to_string())));
    }
    let more = purged.left.len().saturating_sub(10);
    if more > 0 {
        out.warn(&format!("{} may still have it, listed by `--json`", count(more as u64, "more file")));
    }
    out.remark(&format!("not reached: {}", purged.unreached.join("; ")));
    Ok(code)
}
