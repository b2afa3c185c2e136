use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use taskpawl::Manager;
use taskpawl::model::advice::Hint;
use taskpawl::model::command::{DivergingField, Import, ImportMode, ImportReport};
use taskpawl::model::value::{TaskId, check_id};
use taskpawl_formats::{Format, FormatError, Options, Reading, detect, read};

use crate::app::App;
use crate::commands::exchange::{self, Found};
use crate::commands::{apply, print, question};
use crate::error::CliError;
use crate::shown::{Shown, shown};
use crate::text::{clean, style};

/// Bring tasks of another program into the store, with their states: the same file again changes nothing
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Formats:
  beads        .beads/issues.jsonl
  taskmaster   .taskmaster/tasks/tasks.json
  claude       a folder of task files, or a file with a list of to-dos
  taskwarrior  what `task export` prints
  backlog      a folder of Backlog.md
  markdown     a checklist
  tasks        tasks.json of taskpawl, or what `list --json` prints

Of a file that was imported before, what changed in it is taken over, and what changed here stays. Nothing that is \
imported counts as work that ran, and tool calls in it ask before they run. `docs/formats.md` has the tables.

Examples:
  taskpawl import .beads/issues.jsonl --dry-run
  taskpawl import backlog
  taskpawl import taskwarrior -    reads what `task export` prints
  taskpawl import markdown TODO.md --prefix todo")]
pub(crate) struct Args {
    /// The format; or the file or folder alone, where there is no doubt which format it has
    #[arg(value_name = "FORMAT|PATH")]
    format: String,
    /// The file or folder; `-` for standard input [default: where a project keeps that format]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Give the tasks ids that begin with this and a `.`
    #[arg(long, value_name = "NAME")]
    prefix: Option<String>,
    /// Take tasks here that have the same ids for the same tasks: where they differ, the file counts
    #[arg(long)]
    adopt: bool,
}

/// Number of preserved fields that are listed; `--json` lists all.
const MAX_SHOWN: usize = 10;

/// Imports tasks, or previews the import.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    check_prefix(args.prefix.as_ref())?;
    let found = find(&args.format, args.path.as_deref())?;
    let reading = reading(app, &found, args.prefix.as_ref())?;
    let source = exchange::source(app, found.format, &found.path, args.prefix.as_ref())?;
    let mode = if args.adopt { ImportMode::Adopt } else { ImportMode::Merge };
    let left_out = reading.left_out.clone();
    let is_empty = reading.tasks.is_empty();
    let import = import_of(reading, source, mode);
    let report = if args.dry_run {
        manager_to_look(app)?.preview_import(import)?
    } else {
        question::manager(app)?.import(import)?
    };
    let out = app.out();
    if out.is_json {
        return out.data(&json!({
            "format": found.format.name(), "source": report.source, "dryRun": args.dry_run, "created": report.created,
            "changed": report.changed, "unchanged": report.unchanged, "kept": report.kept, "apart": report.apart,
            "gone": report.gone,
            "leftOut": exchange::left_out(&left_out),
        }));
    }
    if out.is_quiet {
        let ids = report.created.iter().chain(&report.changed);
        return out.print(ids.map(|id| format!("{id}\n")).collect::<Vec<_>>().concat());
    }
    exchange::remark_left_out(app, &left_out);
    if is_empty {
        out.remark(&nothing_in(&found));
    }
    if args.dry_run {
        out.remark("dry run: nothing was changed");
    }
    out.print(text_of(app, &report))
}

fn nothing_in(found: &Found) -> String {
    let hint = match found.format {
        Format::Markdown => ": an item of a checklist is a line `- [ ] text`",
        Format::Beads
        | Format::Taskmaster
        | Format::Claude
        | Format::Taskwarrior
        | Format::Backlog
        | Format::Tasks => "",
    };
    format!("there are no tasks of the format `{}` in `{}`{hint}", found.format.name(), found.path.display())
}

pub(super) fn check_prefix(prefix: Option<&String>) -> Result<(), CliError> {
    match prefix.map(|prefix| check_id(prefix)) {
        Some(Err(error)) => Err(CliError::usage(format!("`--prefix`: {error}"))),
        _ => Ok(()),
    }
}

pub(super) fn reading(app: &App, found: &Found, prefix: Option<&String>) -> Result<Reading, CliError> {
    let options = Options { prefix: prefix.cloned(), now: app.source()?.now() };
    read(found.format, &found.files, &options).map_err(|mut error| {
        if let Some(other) = detect(&found.files).filter(|other| *other != found.format) {
            error.hint = Hint::new("it looks like ")
                .text(other.name())
                .text(": name that, ")
                .command_of("import", [other.name().to_owned(), "PATH".to_owned()]);
        }
        foreign(found.format, error)
    })
}

pub(super) fn foreign(format: Format, error: FormatError) -> CliError {
    CliError::Foreign { format: format.name(), error: Box::new(error) }
}

pub(super) fn import_of(reading: Reading, source: String, mode: ImportMode) -> Import {
    Import { source, tasks: reading.tasks, fields: reading.fields, mode }
}

/// Returns a manager for previews, which need no project.
pub(super) fn manager_to_look(app: &App) -> Result<Manager, CliError> {
    apply::preview_manager(app)
}

/// Reads the files to import. A single word is a path, unless no such file exists and it names a format with
/// a usual path.
fn find(word: &str, path: Option<&Path>) -> Result<Found, CliError> {
    if let Some(path) = path {
        let format = exchange::format(word).map_err(CliError::usage)?;
        return exchange::find(Some(format), path);
    }
    let usual = Format::from_name(word).filter(|_| !Path::new(word).exists());
    match usual.map(|format| (format, format.usual_path())) {
        Some((format, Some(path))) => exchange::find(Some(format), Path::new(path)),
        Some((format, None)) => Err(CliError::usage_with(
            format!("`{word}` has no usual place"),
            Hint::new("name the file: ").command_of("import", [format.name().to_owned(), "PATH".to_owned()]),
        )),
        None => exchange::find(None, Path::new(word)),
    }
}

fn text_of(app: &App, report: &ImportReport) -> Shown {
    let paint = app.out().paint;
    let mut text = shown![paint.style(style::BOLD, &clean(&report.source)), "\n"];
    let lists = [("created", &report.created), ("changed", &report.changed), ("gone", &report.gone)];
    for (label, ids) in lists.into_iter().filter(|(_, ids)| !ids.is_empty()) {
        let _ = writeln!(text, "  {label:<9}  {:>5}  {}", ids.len(), clean(&some(ids)));
    }
    if report.unchanged > 0 {
        let _ = writeln!(text, "  {:<9}  {:>5}", "unchanged", report.unchanged);
    }
    for kept in report.kept.iter().take(MAX_SHOWN) {
        let line = format!("{}: {}: {}", kept.task, kept.field, kept.why);
        let _ = writeln!(text, "  {:<9}  {}", "kept", clean(&line));
    }
    if report.kept.len() > MAX_SHOWN {
        let _ = writeln!(text, "  {:<9}  {} more (--json lists them)", "kept", report.kept.len() - MAX_SHOWN);
    }
    text.push(apart_of(report));
    text
}

/// Lists fields that an earlier import preserved and that still differ. Those of this import are listed as
/// `kept`.
fn apart_of(report: &ImportReport) -> String {
    let is_new = |apart: &DivergingField| {
        report.kept.iter().any(|kept| (&kept.task, &kept.field) == (&apart.task, &apart.field))
    };
    let before: Vec<&DivergingField> = report.apart.iter().filter(|apart| !is_new(apart)).collect();
    let mut text = String::new();
    for apart in before.iter().take(MAX_SHOWN) {
        let line = format!("{}: {}: {}", apart.task, apart.field, exchange::both(apart));
        let _ = writeln!(text, "  {:<9}  {}", "apart", clean(&line));
    }
    if before.len() > MAX_SHOWN {
        let _ = writeln!(text, "  {:<9}  {} more (--json lists them)", "apart", before.len() - MAX_SHOWN);
    }
    text
}

fn some(ids: &[TaskId]) -> String {
    print::some(ids)
}
