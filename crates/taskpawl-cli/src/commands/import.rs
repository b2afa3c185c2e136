use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use taskpawl::Manager;
use taskpawl::model::advice::Hint;
use taskpawl::model::command::{
    BoundRecord, DivergingField, Import, ImportMode, ImportReport, ImportedRecord,
};
use taskpawl::model::rules::bound_records;
use taskpawl::model::value::{TaskId, check_id, format_time};
use taskpawl_formats::{
    Ambiguous, Format, FormatError, Known, LeftOut, Options, Reading, Renamed, detect, id_in_renamed_tag,
    read,
};

use crate::app::App;
use crate::commands::exchange::{self, Found};
use crate::commands::{plan_file, print, question};
use crate::error::CliError;
use crate::shown::{Shown, shown};
use crate::text::{clean, style};

/// Import tasks of another program. Imports them with their statuses. Importing the same file again changes nothing
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Formats:
  beads        .beads/issues.jsonl
  taskmaster   .taskmaster/tasks/tasks.json
  claude       a folder of task files, or a file with a list of to-dos
  taskwarrior  what `task export` prints
  backlog      a folder of Backlog.md
  markdown     a checklist
  spec-kit     specs/*/tasks.md, or one of them
  openspec     openspec/changes/*/tasks.md, or one of them
  kiro         .kiro/specs/*/tasks.md, or one of them
  todo.txt     a list in that format
  shrimp       tasks.json of Shrimp Task Manager
  github       what `gh issue list --json number,title,state,...` prints; import only
  tasks        tasks.json of taskpawl, or what `list --json` prints

Importing a file again takes over the changes in it; changes made here stay. A record that is older than the last \
export or change here is ignored. A faulty record is left out and listed, and the others are imported. Imported \
statuses never count as work that ran, and imported tool calls ask before they run. `docs/formats.md` has the tables.

Examples:
  taskpawl import .beads/issues.jsonl --dry-run
  taskpawl import backlog
  taskpawl import taskwarrior -    reads what `task export` prints
  taskpawl import specs            every feature of spec-kit, each as a plan
  taskpawl import --moved old/TODO.md TODO.md
  taskpawl import markdown TODO.md --prefix todo")]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct Args {
    /// The format, or only the file or folder if its format can be detected
    #[arg(value_name = "FORMAT|PATH")]
    format: String,
    /// The file or folder; `-` for standard input [default: where a project keeps that format]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Preview the import, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Give new tasks ids that begin with this and a `.`
    #[arg(long, value_name = "NAME")]
    prefix: Option<String>,
    /// Treat existing tasks with the same ids as the same tasks; where they differ, the file wins, even if it is older
    #[arg(long)]
    adopt: bool,
    /// The path that the file had at the last import or export
    #[arg(long, value_name = "OLD")]
    moved: Option<PathBuf>,
    /// A tag of Task Master that was renamed in the file since then
    #[arg(long, value_name = "OLD=NEW", value_parser = tag_pair)]
    moved_tag: Option<(String, String)>,
    /// Refuse a file with faulty records, and import nothing
    #[arg(long)]
    strict: bool,
    /// Make subtasks `todo` that are open below a task that is done in the file, instead of skipping them
    #[arg(long)]
    reopen: bool,
}

fn tag_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.to_owned(), to.to_owned())),
        _ => Err("expected OLD=NEW".to_owned()),
    }
}

/// Number of preserved fields that are listed; `--json` lists all.
const MAX_SHOWN: usize = 10;

/// Imports tasks, or previews the import.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    check_prefix(args.prefix.as_ref())?;
    let found = find(app, &args.format, args.path.as_deref())?;
    let manager = if args.dry_run { manager_to_look(app)? } else { question::manager(app)? };
    let mut batch = Batch::of(app, args, &found)?;
    let mut records = Records::of(&manager, batch.format, &batch.import.moved)?;
    if let Some(tags) = &args.moved_tag {
        records.rename_tag(&batch.import.source, tags)?;
    }
    if args.moved.is_some() && !records.has_any_of(&batch.import.moved) {
        return Err(CliError::usage_with(
            format!("no task remembers `{}`", args.moved.as_deref().unwrap_or(Path::new("")).display()),
            "name the path that the file had at the last import or export",
        ));
    }
    let is_one = found.len() == 1;
    for found in &found {
        let prefix = feature_prefix(args.prefix.as_ref(), found, is_one);
        let mut reading = reading(app, found, &records, prefix.as_ref())?;
        if prefix == args.prefix && is_taken(&manager, &reading) {
            // The ids of a second feature repeat those of the first.
            if let Some(feature) = &found.feature {
                let prefix = joined(args.prefix.as_ref(), feature);
                reading = self::reading(app, found, &records, Some(&prefix))?;
            }
        }
        batch.add(app, found, reading)?;
    }
    refuse_faults(&batch, args.strict)?;
    let import = batch.import.clone();
    let report = if args.dry_run { manager.preview_import(import)? } else { manager.import(import)? };
    show(app, args, &found, &batch, &report)
}

/// The files of one command, as one import.
struct Batch {
    format: Format,
    import: Import,
    left_out: Vec<LeftOut>,
    renamed: Vec<Renamed>,
}

impl Batch {
    fn of(app: &App, args: &Args, found: &[Found]) -> Result<Self, CliError> {
        let format = found[0].format;
        let path = match found {
            [one] => one.path.clone(),
            several => several[0].path.parent().and_then(Path::parent).unwrap_or(Path::new(".")).to_owned(),
        };
        let source = exchange::source(app, format, &path)?;
        let mut moved = Vec::new();
        if let Some(old) = &args.moved {
            for found in found {
                let now = exchange::source(app, format, &found.path)?;
                // Below a folder that moved, each file has moved with it.
                let below = found.path.strip_prefix(&path).unwrap_or(Path::new(""));
                let before = if below.as_os_str().is_empty() { old.clone() } else { old.join(below) };
                moved.push((exchange::source(app, format, &before)?, now));
            }
        }
        let mode = if args.adopt { ImportMode::Adopt } else { ImportMode::Merge };
        let import = Import { source, mode, moved, reopen: args.reopen, ..Import::default() };
        Ok(Self { format, import, left_out: Vec::new(), renamed: Vec::new() })
    }

    fn add(&mut self, app: &App, found: &Found, reading: Reading) -> Result<(), CliError> {
        let source = exchange::source(app, found.format, &found.path)?;
        let plan = found.feature.clone().filter(|plan| check_id(plan).is_ok());
        self.left_out.extend(found.left_out.iter().chain(&reading.left_out).cloned());
        self.renamed.extend(reading.renamed.iter().cloned());
        let Import { tasks, records, fields, .. } = import_of(reading, &source, self.import.mode);
        let of_plan = |record: ImportedRecord| ImportedRecord { plan: plan.clone(), ..record };
        self.import.tasks.extend(tasks);
        self.import.records.extend(records.into_iter().map(of_plan));
        self.import.fields = fields;
        Ok(())
    }
}

/// Refuses files without a readable record, and, if `is_strict`, those with a faulty one.
fn refuse_faults(batch: &Batch, is_strict: bool) -> Result<(), CliError> {
    if is_strict || batch.import.tasks.is_empty() {
        refuse_any(batch.format, &batch.left_out)?;
    }
    Ok(())
}

/// Refuses faulty records, with all of them.
pub(super) fn refuse_any(format: Format, left_out: &[LeftOut]) -> Result<(), CliError> {
    let errors: Vec<FormatError> = left_out.iter().filter(|left| left.is_fault).map(error_of).collect();
    if errors.is_empty() { Ok(()) } else { Err(CliError::Foreign { format: format.name(), errors }) }
}

fn error_of(left: &LeftOut) -> FormatError {
    FormatError {
        file: left.file.clone(),
        line: left.line,
        record: left.what.clone(),
        field: String::new(),
        problem: left.why.clone(),
        hint: left.hint.clone(),
    }
}

/// Returns the prefix of the ids of a feature. Several features have the same numbers, so each has a prefix.
fn feature_prefix(prefix: Option<&String>, found: &Found, is_one: bool) -> Option<String> {
    match &found.feature {
        Some(feature) if !is_one => Some(joined(prefix, feature)),
        _ => prefix.cloned(),
    }
}

fn joined(prefix: Option<&String>, feature: &str) -> String {
    prefix.map_or_else(|| feature.to_owned(), |prefix| format!("{prefix}.{feature}"))
}

/// Returns true if a new task of a feature has the id of another task.
fn is_taken(manager: &Manager, reading: &Reading) -> bool {
    let known = reading.tasks.iter().zip(&reading.is_known);
    known
        .filter(|(_, is_known)| !**is_known)
        .any(|(task, _)| manager.get(task.id.as_str()).is_ok_and(|found| found.id == task.id))
}

fn show(
    app: &App,
    args: &Args,
    found: &[Found],
    batch: &Batch,
    report: &ImportReport,
) -> Result<ExitCode, CliError> {
    let (out, first) = (app.out(), &found[0]);
    let renamed: Vec<Value> = batch
        .renamed
        .iter()
        .map(|renamed| json!({ "task": renamed.task, "from": renamed.from, "to": renamed.to }))
        .collect();
    if out.is_json {
        return out.data(&json!({
            "format": first.format.name(), "detected": first.why, "source": report.source, "dryRun": args.dry_run,
            "created": report.created, "changed": report.changed, "unchanged": report.unchanged, "kept": report.kept,
            "apart": report.apart, "gone": report.gone, "older": report.older, "differs": report.differs,
            "skipped": report.skipped, "renamed": renamed, "leftOut": exchange::left_out(&batch.left_out),
        }));
    }
    if out.is_quiet {
        let ids = report.created.iter().chain(&report.changed);
        return out.print(ids.map(|id| format!("{id}\n")).collect::<Vec<_>>().concat());
    }
    if let Some(why) = &first.why {
        out.remark(&format!("read as {}: {why}", first.format.name()));
    }
    exchange::remark_left_out(app, &batch.left_out);
    if batch.import.tasks.is_empty() {
        out.remark(&nothing_in(first));
    }
    remark_changes(app, batch, report);
    if args.dry_run {
        out.remark("dry run: nothing was changed");
    }
    out.print(text_of(app, report))
}

/// Reports tasks whose text or status does not follow from the file as it stands.
fn remark_changes(app: &App, batch: &Batch, report: &ImportReport) {
    let renamed = batch.renamed.iter();
    let renamed =
        renamed.map(|renamed| format!("{}: `{}` is now `{}`", renamed.task, renamed.from, renamed.to));
    exchange::remark_some(app, "renamed", renamed);
    let older = report.older.iter().map(|older| {
        let (there, here) = (format_time(older.there), format_time(older.here));
        format!(
            "{}: its record is of {there}, the state here of {here}; `--adopt` takes the record",
            older.task
        )
    });
    exchange::remark_some(app, "older", older);
    let skipped = report
        .skipped
        .iter()
        .map(|skipped| format!("{}: {}; `--reopen` makes it todo", skipped.task, skipped.why));
    exchange::remark_some(app, "skipped", skipped);
    let differs =
        report.differs.iter().map(|differs| format!("{}: {}", differs.task, exchange::both(differs)));
    exchange::remark_some(app, "differs", differs);
}

fn nothing_in(found: &Found) -> String {
    let hint = match found.format {
        Format::Markdown | Format::SpecKit | Format::OpenSpec | Format::Kiro => {
            ": an item of a checklist is a line `- [ ] text`"
        }
        Format::Beads
        | Format::Taskmaster
        | Format::Claude
        | Format::Taskwarrior
        | Format::Backlog
        | Format::Shrimp
        | Format::GitHub
        | Format::TodoTxt
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

/// The records of one format that the tasks of a store remember.
pub(super) struct Records {
    bound: Vec<BoundRecord>,
}

impl Records {
    /// Reads the records. Those of `moved` sources count under their new names.
    pub(super) fn of(
        manager: &Manager,
        format: Format,
        moved: &[(String, String)],
    ) -> Result<Self, CliError> {
        let start = format!("{} ", format.name());
        let mut bound =
            manager.read(|view| Ok(bound_records(view, &|source| source.starts_with(&start))?))?;
        for record in &mut bound {
            for (before, now) in moved {
                if let Some(rest) = record.source.strip_prefix(before).filter(|rest| is_end(rest)) {
                    record.source = format!("{now}{rest}");
                    break;
                }
            }
        }
        Ok(Self { bound })
    }

    /// Lets the records of a tag count under its new name. The import stores them under it.
    fn rename_tag(&mut self, source: &str, (from, to): &(String, String)) -> Result<(), CliError> {
        let mut count = 0;
        for bound in self.bound.iter_mut().filter(|bound| bound.source == source) {
            let Some(record) = &mut bound.record else { continue };
            if let Some(id) = id_in_renamed_tag(&record.id, from, to) {
                record.id = id;
                count += 1;
            }
        }
        if count > 0 {
            return Ok(());
        }
        let problem = format!("no task remembers the tag `{from}` of this file");
        Err(CliError::usage_with(
            problem,
            "name a tag that a file of Task Master had at the last import or export",
        ))
    }

    fn has_any_of(&self, moved: &[(String, String)]) -> bool {
        let is_now =
            |source: &str| moved.iter().any(|(_, now)| source.strip_prefix(now.as_str()).is_some_and(is_end));
        self.bound.iter().any(|record| is_now(&record.source))
    }

    /// Returns the records of one file.
    pub(super) fn known(&self, app: &App, format: Format, source: &str) -> Known {
        Known::of(format, source, &self.bound, |source| exchange::is_gone(app, format, source))
    }
}

/// Returns true if nothing but the prefix of version 0.1 follows a source.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(" as ")
}

/// Reads a file with the records that tasks remember of it.
pub(super) fn reading(
    app: &App,
    found: &Found,
    records: &Records,
    prefix: Option<&String>,
) -> Result<Reading, CliError> {
    let source = exchange::source(app, found.format, &found.path)?;
    let known = records.known(app, found.format, &source);
    let options = Options { prefix: prefix.cloned(), now: app.source()?.now(), known };
    let reading = read(found.format, &found.files, &options).map_err(|mut error| {
        if let Some(other) = detect(&found.files).filter(|other| *other != found.format) {
            error.hint = other_format(other);
        }
        foreign(found.format, error)
    })?;
    // Any file of a feature looks like a checklist, also one whose items are all part of a conflict.
    if reading.tasks.is_empty()
        && !found.format.has_features()
        && let Some(first) = reading.faults().next()
        && let Some(other) = detect(&found.files).filter(|other| *other != found.format)
    {
        // Every line is faulty in the same way: it is another format.
        let error = FormatError { hint: other_format(other), ..error_of(first) };
        return Err(foreign(found.format, error));
    }
    refuse_ambiguous(found, &reading)?;
    Ok(reading)
}

fn other_format(other: Format) -> Hint {
    Hint::new("it looks like ")
        .text(other.name())
        .text(": name that, ")
        .command_of("import", [other.name().to_owned(), "PATH".to_owned()])
}

/// Refuses a file with records that more than one task may have come from.
fn refuse_ambiguous(found: &Found, reading: &Reading) -> Result<(), CliError> {
    if reading.ambiguous.is_empty() {
        return Ok(());
    }
    let error = |ambiguous: &Ambiguous| {
        let tasks: Vec<String> = ambiguous.tasks.iter().map(|task| format!("`{task}`")).collect();
        FormatError {
            file: found.path.display().to_string(),
            line: None,
            record: ambiguous.record.clone(),
            field: String::new(),
            problem: format!("it could be {}", tasks.join(" or ")),
            hint: Hint::new("delete one of them, or import the file that the other came from first"),
        }
    };
    let errors = reading.ambiguous.iter().map(error).collect();
    Err(CliError::Foreign { format: found.format.name(), errors })
}

pub(super) fn foreign(format: Format, error: FormatError) -> CliError {
    CliError::Foreign { format: format.name(), errors: vec![error] }
}

pub(super) fn import_of(reading: Reading, source: &str, mode: ImportMode) -> Import {
    let records = reading.records.into_iter().zip(reading.changed_at).zip(reading.from);
    let record = |((record, changed_at), from)| ImportedRecord {
        source: source.to_owned(),
        record,
        changed_at,
        plan: None,
        from,
    };
    Import {
        source: source.to_owned(),
        tasks: reading.tasks,
        records: records.map(record).collect(),
        fields: reading.fields,
        mode,
        ..Import::default()
    }
}

/// Returns a manager for previews, which need no project.
pub(super) fn manager_to_look(app: &App) -> Result<Manager, CliError> {
    plan_file::preview_manager(app)
}

/// Reads the files to import. A single word is a path, unless no such file exists and it names a format with
/// a usual path.
fn find(app: &App, word: &str, path: Option<&Path>) -> Result<Vec<Found>, CliError> {
    if let Some(path) = path {
        let format = exchange::format(word).map_err(CliError::usage)?;
        return exchange::find_all(app, Some(format), path);
    }
    let usual = Format::from_name(word).filter(|_| !Path::new(word).exists());
    match usual.map(|format| (format, format.usual_path())) {
        Some((format, Some(path))) => exchange::find_all(app, Some(format), Path::new(path)),
        Some((format, None)) => Err(CliError::usage_with(
            format!("`{word}` has no usual place"),
            Hint::new("name the file: ").command_of("import", [format.name().to_owned(), "PATH".to_owned()]),
        )),
        None => exchange::find_all(app, None, Path::new(word)),
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
