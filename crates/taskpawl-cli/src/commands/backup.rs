use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};
use taskpawl::model::value::Timestamp;
use taskpawl::store::{self, BackupNote, Location, StoreError};
use tokio::time::MissedTickBehavior;

use crate::app::App;
use crate::commands::parse;
use crate::commands::server_signals::Signals;
use crate::error::CliError;
use crate::text::clean;

/// Write a backup of the store to a file, while runs go on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file has the store at one moment, with all tasks, results and history, and the workers of calls that run elsewhere. It is written under \
a temporary name, so an older backup stays until the new one is complete. It does not have output files of calls, the files of the project, \
policies and secrets.

With --every the command writes it again and again until it is stopped. `taskpawl restore FILE` makes a store of it, on any machine.

Examples:
  taskpawl backup /mnt/backups/app.db
  taskpawl backup /mnt/backups/app.db --every 1m")]
pub(crate) struct Args {
    /// The file. An older backup is replaced, any other file is not
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write it again after each such time, such as 1m
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    every: Option<Duration>,
}

/// A backup that was written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    file: PathBuf,
    revision: u64,
    made_at: Timestamp,
    /// Calls that were with workers.
    calls_elsewhere: usize,
}

/// Writes one backup, or one after another.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let location = app.place()?.location.resolved();
    if location.path().is_none() {
        return Err(CliError::usage("a store in memory has no backup"));
    }
    check_target(&args.file)?;
    let written = write(app, &location, &args.file)?;
    let Some(every) = args.every else {
        let out = app.out();
        return if out.is_json { out.data(&written) } else { out.print(line(&written)) };
    };
    say(app, &written)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    runtime.block_on(async {
        let mut signals = Signals::listen().map_err(CliError::Runtime)?;
        let mut turns = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = turns.tick() => {}
                exit = signals.stop(|| {}) => return Ok(ExitCode::from(exit)),
            }
            // A full disk or a share that is gone may come back; the last backup is still complete.
            match write(app, &location, &args.file) {
                Ok(written) => say(app, &written)?,
                Err(error) => app.out().warn(&error.message()),
            }
        }
    })
}

/// Refuses a file that is no backup: it may be a store.
fn check_target(file: &Path) -> Result<(), CliError> {
    match std::fs::metadata(file) {
        Err(_) => return Ok(()),
        Ok(data) if data.is_file() && data.len() == 0 => return Ok(()),
        Ok(_) => {}
    }
    store::open_backup(file).map(drop).map_err(|error| {
        let path = clean(&file.display().to_string());
        let is_newer = matches!(error, StoreError::Newer { .. });
        let why = if is_newer { "it is the backup of a newer taskpawl" } else { "it is no backup" };
        let hint = "name another file, or remove this one";
        CliError::usage_with(format!("refusing to overwrite `{path}`: {why}"), hint)
    })
}

fn write(app: &App, location: &Location, file: &Path) -> Result<Written, CliError> {
    let engine = app.reader()?.engine();
    // A call whose run ends while the store is copied is in the first list, one that starts meanwhile in the second.
    let mut places = engine.exported_places();
    let made_at = app.source()?.now();
    let note = &mut || {
        places = merged(std::mem::take(&mut places), engine.exported_places());
        BackupNote {
            made_at,
            host: app.environment().host(),
            store: location.path().unwrap_or(Path::new("")).to_owned(),
            beside: Map::from_iter([("places".to_owned(), Value::Object(places.clone()))]),
        }
    };
    let content = store::back_up(location, file, note).map_err(taskpawl::Error::from)?;
    let lines = places.values().filter_map(Value::as_str).map(|text| text.lines().count());
    let calls_elsewhere = lines.sum();
    Ok(Written { file: file.to_owned(), revision: content.revision, made_at, calls_elsewhere })
}

/// Adds what runs have sent since `before`. The file of a run only grows.
fn merged(mut before: Map<String, Value>, after: Map<String, Value>) -> Map<String, Value> {
    before.extend(after);
    before
}

fn say(app: &App, written: &Written) -> Result<(), CliError> {
    let out = app.out();
    if out.is_json { out.lines(std::slice::from_ref(written)) } else { out.piece(&line(written).into()) }
}

fn line(written: &Written) -> String {
    let elsewhere = match written.calls_elsewhere {
        0 => String::new(),
        calls => format!(", with the places of {}", crate::text::count(calls as u64, "call")),
    };
    let file = clean(&written.file.display().to_string());
    format!("backed up revision {} to {file}{elsewhere}\n", written.revision)
}
