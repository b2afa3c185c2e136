use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use taskpawl::model::advice::Hint;
use taskpawl::model::value::TaskId;
use taskpawl_formats::write;

pub(crate) use self::args::Args;
use self::chosen::Chosen;
use self::prepared::Prepared;
use crate::app::App;
use crate::commands::import::Records;
use crate::commands::{exchange, import, question};
use crate::error::CliError;
use crate::output::write_data;
use crate::text::path_word;

mod args;
mod chosen;
mod existing;
mod files;
mod prepared;

/// Exports tasks to standard output, to a file or to a folder.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    import::check_prefix(args.prefix.as_ref())?;
    match args.path.as_deref().filter(|path| path.as_os_str() != "-") {
        Some(path) => to_path(app, args, path),
        None => to_stdout(app, args),
    }
}

fn to_stdout(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let out = app.out();
    let Chosen { tasks, .. } = Chosen::of(app.reader()?.manager(), args, None)?;
    let written = write(args.format, &tasks, None);
    if out.is_json {
        let files: Vec<Value> =
            written.files.iter().map(|(name, text)| json!({ "name": name, "text": text })).collect();
        let left_out = exchange::left_out(&written.left_out);
        return out.data(&json!({
            "format": args.format.name(), "tasks": tasks.len(), "files": files, "leftOut": left_out,
        }));
    }
    if args.format.is_folder() {
        return Err(CliError::usage_with(
            format!("`{}` is a folder of files", args.format.name()),
            Hint::new("name it: ").command_of("export", [args.format.name().to_owned(), "PATH".to_owned()]),
        ));
    }
    exchange::remark_left_out(app, &written.left_out);
    let text = written.files.iter().map(|(_, text)| text).next().unwrap_or_default();
    // Other programs get the text unchanged. On a terminal, control sequences in it are removed.
    if app.terminal().stdout {
        return out.print(crate::text::clean_block(text) + "\n");
    }
    // A closed pipe is no error: the reader has read all that it wanted.
    let _ = write_data(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn to_path(app: &App, args: &Args, path: &Path) -> Result<ExitCode, CliError> {
    let manager = if args.dry_run { app.reader()?.manager().clone() } else { question::manager(app)? };
    let records = Records::of(&manager, args.format, &[])?;
    let paths = paths(app, args, path)?;
    let is_alone = paths.len() == 1;
    let prepared = paths.iter().map(|path| Prepared::of(app, args, &manager, &records, path, is_alone));
    // All files are read back and checked before the first one is written.
    let mut prepared = prepared.collect::<Result<Vec<Prepared>, CliError>>()?;
    // A task of another feature is not missing in this one.
    let all: BTreeSet<TaskId> = prepared.iter().flat_map(Prepared::tasks).cloned().collect();
    for file in &mut prepared {
        file.leave_unlisted(&all);
    }
    if !args.dry_run {
        for file in &prepared {
            file.write(args.format, &manager)?;
        }
    }
    report(app, args, path, &prepared)
}

/// Returns the paths to write: of a folder of features, each has one.
fn paths(app: &App, args: &Args, path: &Path) -> Result<Vec<PathBuf>, CliError> {
    if !(args.format.has_features() && path.is_dir()) {
        return Ok(vec![path.to_owned()]);
    }
    let features = exchange::find_all(app, Some(args.format), path)?;
    let paths: Vec<PathBuf> = features.into_iter().map(|feature| feature.path).collect();
    match paths.as_slice() {
        [first, _, ..] if args.add_new || !args.only.is_empty() => Err(several(args, path, first)),
        _ => Ok(paths),
    }
}

/// Tells that each file of a folder has tasks of its own: a task that is added belongs to one of them.
fn several(args: &Args, path: &Path, first: &Path) -> CliError {
    let option = if args.add_new { "--add-new" } else { "--only" };
    let words = [args.format.name().to_owned(), path_word(first)];
    CliError::usage_with(
        format!("`{}` has several features, and `{option}` adds tasks to one", path.display()),
        Hint::new("name its file: ").command_of("export", words).text(format!(" {option} …")),
    )
}

fn report(app: &App, args: &Args, path: &Path, prepared: &[Prepared]) -> Result<ExitCode, CliError> {
    let out = app.out();
    if out.is_json {
        // A folder of features has one answer for each of its files.
        let files: Vec<Value> = prepared.iter().map(|file| file.to_json(args)).collect();
        return match files.as_slice() {
            [one] => out.data(one),
            several => out.data(&json!({
                "format": args.format.name(), "path": path, "dryRun": args.dry_run, "files": several,
            })),
        };
    }
    for file in prepared {
        file.remark(app, args);
    }
    if args.dry_run {
        out.remark("dry run: nothing was written");
    }
    let lines: String = prepared.iter().map(Prepared::summary).collect();
    out.print(crate::text::clean_block(&lines))
}
