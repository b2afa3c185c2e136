use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use taskpawl::Manager;
use taskpawl::model::advice::Hint;
use taskpawl::model::command::{DivergingField, ImportMode, ImportReport, PreservedField};
use taskpawl::model::task::Task;
use taskpawl::model::value::Selector;
use taskpawl::model::value::TaskId;
use taskpawl::model::view::Query;
use taskpawl_formats::{
    Files, Format, Options, Reading, Written, keep_states, read, without, write, write_over,
};

use crate::app::App;
use crate::commands::exchange::{self, Found};
use crate::commands::{import, parse, question};
use crate::error::CliError;
use crate::output::write_data;

/// Write tasks as another program keeps them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A file that exists is written only if everything in it is here: what is new in it is imported first.
What it has beside its tasks stays. What changed on both sides, and stayed as it is here in an \
import, is overwritten, and that is said; `import --adopt` takes it over instead. A task that is \
gone from the file stays out of it unless it changed here since, or `--again` is given; one that \
was deleted here stays in the file unless `--take-out` is given.
`import --help` lists the formats, `docs/formats.md` what each has room for.

Examples:
  taskpawl export markdown
  taskpawl export backlog backlog
  taskpawl export taskwarrior --only plan:release > release.json
  taskpawl export beads .beads/issues.jsonl --dry-run")]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct Args {
    /// The format
    #[arg(value_name = "FORMAT", value_parser = exchange::format)]
    format: Format,
    /// The file or folder; `-`, or nothing, for standard output
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Only the tasks of a plan, with a label, or a task with all below it, and those that the file has; may be given several times
    #[arg(long, value_name = "plan:NAME|label:NAME|ID", value_parser = parse::selector)]
    only: Vec<Selector>,
    /// The prefix that the file was imported with
    #[arg(long, value_name = "NAME")]
    prefix: Option<String>,
    /// Say what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Write over a file that has something that is not here, or that cannot be read
    #[arg(long)]
    force: bool,
    /// Write tasks again that somebody took out of the file, also where nothing changed in them here since
    #[arg(long)]
    again: bool,
    /// Take tasks out of the file that were deleted here
    #[arg(long)]
    take_out: bool,
}

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
    let tasks = tasks(app.reader()?.manager(), args, &BTreeSet::new())?;
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
    let before = before(args, path)?;
    let root = before.as_ref().map_or_else(|| path.to_owned(), |found| found.path.clone());
    // The same source as an import of this file has, so that the store can compare both.
    let source = exchange::source(app, args.format, &root, args.prefix.as_ref())?;
    let manager = if args.dry_run { app.reader()?.manager().clone() } else { question::manager(app)? };
    let known = known(app, args, &manager, before.as_ref(), &source)?;
    let mut tasks = tasks(&manager, args, &known.ids)?;
    let gone_there = Gone::of(&known, &mut tasks, args.again);
    let count = tasks.len();
    let files = before.as_ref().map(|found| &found.files);
    let (rest, left) = files
        .filter(|_| args.take_out)
        .map(|files| without(args.format, files, &known.reading, &known.deleted))
        .unzip();
    // Without `--take-out`, tasks that were deleted in the store stay in the file unchanged.
    if !args.take_out {
        tasks.extend(known.reading.tasks.iter().filter(|task| known.deleted.contains(&task.id)).cloned());
    }
    let lost = keep_states(&mut tasks, &known.reading);
    // A new `.json` file gets the list form of a format that otherwise is a folder.
    let to_dos = Files::single(root.to_string_lossy(), "[]");
    let to_dos = (files.is_none() && is_list(args.format, &root)).then_some(&to_dos);
    let files_to_keep = rest.as_ref().or(files).filter(|_| !known.ids.is_empty() || !args.force).or(to_dos);
    let none = Files::default();
    let left = left.as_ref().unwrap_or(&known.reading);
    let written = write_over(args.format, &tasks, files_to_keep.unwrap_or(&none), left);
    check_single(args.format, &root, &written)?;
    let mut changed = changed(&written, files);
    let removed = removed(files, rest.as_ref());
    changed.extend(removed.iter().cloned());
    exchange::check_size(&root, &written.files)?;
    let reading = read_again(app, args, rest.as_ref().or(files), &written);
    let apart = with_states(known.apart, &lost, &tasks, &known.reading);
    let overwritten = overwritten(apart, reading.as_ref().map_or(&[], |reading| &reading.tasks));
    if !args.dry_run {
        write_all(args.format, &root, &written, &changed)?;
        remove_all(&root, &removed)?;
        // Recorded as if it was imported, so that the next import sees only later edits of the file.
        manager.import(import::import_of(reading?, source, ImportMode::Record))?;
    }
    let deleted = known.deleted;
    report(app, args, &root, count, &Done { written, changed, overwritten, gone: gone_there, deleted })
}

/// Facts about the existing file.
#[derive(Default)]
struct Known {
    /// Ids of the tasks in it.
    ids: BTreeSet<String>,
    /// Fields with another value than in the store, although the last import or export knew that value.
    apart: Vec<DivergingField>,
    /// Tasks that were removed from the file since.
    gone: Vec<TaskId>,
    /// Those of `gone` that have changed in the store since.
    gone_changed: Vec<TaskId>,
    /// Tasks in the file that were deleted in the store.
    deleted: BTreeSet<TaskId>,
    /// The parsed contents.
    reading: Reading,
}

/// Result of an export, or of a preview.
struct Done {
    written: Written,
    /// Names of the files whose content differs.
    changed: Vec<String>,
    /// Values of the file that the export replaced.
    overwritten: Vec<DivergingField>,
    gone: Gone,
    /// Tasks of the file that were deleted in the store.
    deleted: BTreeSet<TaskId>,
}

/// Tasks that were removed from the file by another program or a person.
struct Gone {
    /// Tasks that stay out, because they have not changed in the store since.
    left: Vec<TaskId>,
    /// Tasks that are written again.
    again: Vec<TaskId>,
}

impl Gone {
    /// Removes the tasks that stay out of the file. A task is written again if it has changed in the store,
    /// if one of its subtasks is written, or with `all`.
    fn of(known: &Known, tasks: &mut Vec<Task>, all: bool) -> Self {
        let gone: BTreeSet<&TaskId> = known.gone.iter().collect();
        let changed: BTreeSet<&TaskId> = known.gone_changed.iter().collect();
        let is_wanted = |task: &&Task| all || !gone.contains(&task.id) || changed.contains(&task.id);
        let parents: BTreeMap<&TaskId, &TaskId> =
            tasks.iter().filter_map(|task| Some((&task.id, task.parent.as_ref()?))).collect();
        let mut wanted: BTreeSet<TaskId> = BTreeSet::new();
        for task in tasks.iter().filter(is_wanted) {
            // Parents of written tasks are needed, too: a subtask alone would lose its position.
            let mut above = Some(&task.id);
            while let Some(id) = above.filter(|id| wanted.insert((*id).clone())) {
                above = parents.get(id).copied();
            }
        }
        let written = |id: &&TaskId| wanted.contains(*id) && tasks.iter().any(|task| task.id == **id);
        let (again, left): (Vec<&TaskId>, Vec<&TaskId>) = known.gone.iter().partition(written);
        let (again, left) = (again.into_iter().cloned().collect(), left.into_iter().cloned().collect());
        tasks.retain(|task| wanted.contains(&task.id));
        Self { left, again }
    }
}

/// Reads the file or folder that exists at the path.
fn before(args: &Args, path: &Path) -> Result<Option<Found>, CliError> {
    if path.is_symlink() && !path.is_dir() {
        return Err(CliError::usage_with(
            format!("`{}` is a symbolic link", path.display()),
            "name the file that it leads to",
        ));
    }
    match fs::metadata(path) {
        // Only a missing file means a new one. Any other error must fail: it would overwrite a file that it
        // cannot read.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Ok(metadata) if metadata.is_dir() && args.format.is_folder() => {
            let root = if args.format == Format::Backlog { exchange::backlog_root(path) } else { None };
            let path = root.unwrap_or_else(|| path.to_owned());
            let files = exchange::read_folder(args.format, &path)?;
            Ok(Some(Found { format: args.format, path, files }))
        }
        _ => exchange::find(Some(args.format), path).map(Some),
    }
}

/// Reads the existing file. Without `--force` it is refused if it holds changes that the store lacks.
fn known(
    app: &App,
    args: &Args,
    manager: &Manager,
    before: Option<&Found>,
    source: &str,
) -> Result<Known, CliError> {
    let Some(found) = before else { return Ok(Known::default()) };
    if found.files.iter().all(|(_, text)| text.trim_start_matches('\u{feff}').trim().is_empty()) {
        return Ok(Known::default());
    }
    let reading = match import::reading(app, found, args.prefix.as_ref()) {
        Ok(reading) => reading,
        // `--force` also replaces a file that cannot be parsed.
        Err(_) if args.force => return Ok(Known::default()),
        Err(error) => return Err(error),
    };
    let ids = reading.tasks.iter().map(|task| task.id.to_string()).collect();
    let import = import::import_of(reading.clone(), source.to_owned(), ImportMode::Merge);
    let refuse = |why: String| {
        let words = [args.format.name().to_owned(), found.path.display().to_string()];
        let hint = Hint::default()
            .command_of("import", words)
            .text(" takes over the changes there; `--force` overwrites them");
        CliError::NotHere { path: found.path.clone(), why, hint }
    };
    match manager.preview_import(import) {
        Ok(report) => match news(&report) {
            Some(why) if !args.force => Err(refuse(why)),
            _ => {
                let ImportReport { apart, gone, gone_changed, kept, .. } = report;
                let deleted = kept.into_iter().filter(|kept| kept.field == "id").map(|kept| kept.task);
                Ok(Known { ids, apart, gone, gone_changed, deleted: deleted.collect(), reading })
            }
        },
        Err(_) if args.force => Ok(Known { ids, ..Known::default() }),
        Err(error) => Err(refuse(CliError::from(error).message())),
    }
}

/// Describes changes in the file that the store lacks.
fn news(report: &ImportReport) -> Option<String> {
    // Deletions and statuses always stay as they are in the store, so they are no unseen changes.
    let is_news = |kept: &&PreservedField| !matches!(kept.field.as_str(), "id" | "status");
    let both: BTreeSet<&TaskId> = report.kept.iter().filter(is_news).map(|kept| &kept.task).collect();
    let both: Vec<TaskId> = both.into_iter().filter(|id| !report.changed.contains(id)).cloned().collect();
    let lists =
        [("new", &report.created), ("other than here", &report.changed), ("changed on both sides", &both)];
    let words = lists.into_iter().filter(|(_, ids)| !ids.is_empty());
    let words: Vec<String> = words
        .map(|(word, ids)| {
            format!("{} of its tasks {} {word}", ids.len(), if ids.len() == 1 { "is" } else { "are" })
        })
        .collect();
    let ids = lists.iter().flat_map(|(_, ids)| ids.iter()).take(5).map(|id| format!("`{id}`"));
    let ids: Vec<String> = ids.collect();
    (!words.is_empty()).then(|| format!("{} ({})", words.join(", "), ids.join(", ")))
}

/// Returns the tasks to write. Tasks that are already in the file stay in it, even if `--only` excludes them.
fn tasks(manager: &Manager, args: &Args, known: &BTreeSet<String>) -> Result<Vec<Task>, CliError> {
    let mut tasks = manager.list(&Query::default())?.tasks;
    if !args.only.is_empty() {
        let wanted: BTreeSet<String> = manager.select(&args.only, &[])?.into_iter().collect();
        tasks.retain(|task| wanted.contains(task.id.as_str()) || known.contains(task.id.as_str()));
    }
    Ok(tasks)
}

/// Refuses several tasks if the path is a single file of a folder format.
fn check_single(format: Format, root: &Path, written: &Written) -> Result<(), CliError> {
    let count = written.files.iter().count();
    if !root.is_file() || count <= 1 {
        return Ok(());
    }
    let folder = root.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let path = root.display();
    let words = [format.name().to_owned(), folder.display().to_string()];
    Err(CliError::usage_with(
        format!("`{path}` is one file, and {count} tasks with a file each are to be written"),
        Hint::new("name the folder: ")
            .command_of("export", words)
            .text("; or this task alone, by `--only ID`"),
    ))
}

/// Returns the names of the files whose content differs from the existing one. Unchanged files keep their
/// modification time.
fn changed(written: &Written, before: Option<&Files>) -> Vec<String> {
    let is_same = |name: &str, text: &str| before.and_then(|before| before.get(name)) == Some(text);
    let changed = written.files.iter().filter(|(name, text)| !is_same(name, text));
    changed.map(|(name, _)| name.to_owned()).collect()
}

fn write_all(format: Format, root: &Path, written: &Written, changed: &[String]) -> Result<(), CliError> {
    let is_folder = format.is_folder() && !root.is_file() && !is_list(format, root);
    let changed: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
    for (name, text) in written.files.iter().filter(|(name, _)| changed.contains(name)) {
        let path = if is_folder { root.join(name) } else { root.to_owned() };
        write_file(&path, text).map_err(|source| CliError::File { action: "write", path, source })?;
    }
    Ok(())
}

/// Returns the names of the files that no longer hold any task.
fn removed(before: Option<&Files>, rest: Option<&Files>) -> Vec<String> {
    let Some((before, rest)) = before.zip(rest) else { return Vec::new() };
    let names = before.iter().map(|(name, _)| name).filter(|name| rest.get(name).is_none());
    names.map(str::to_owned).collect()
}

fn remove_all(root: &Path, names: &[String]) -> Result<(), CliError> {
    for name in names {
        let path = if root.is_dir() { root.join(name) } else { root.to_owned() };
        fs::remove_file(&path).map_err(|source| CliError::File { action: "remove", path, source })?;
    }
    Ok(())
}

/// Returns whether the path names the list form of a format that otherwise is a folder.
fn is_list(format: Format, path: &Path) -> bool {
    format == Format::Claude
        && !path.is_dir()
        && path.extension().is_some_and(|extension| extension == "json")
}

/// Replaces a file atomically: a crash leaves the old or the new content, never a part.
fn write_file(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    if path.is_symlink() {
        return Err(std::io::Error::other("it is a symbolic link"));
    }
    // In the same folder, because a rename is atomic only within one file system.
    let mut file = tempfile::Builder::new().prefix(".taskpawl-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    // Synced before the rename: otherwise a crash could leave an empty file in place of the old one.
    file.as_file().sync_all()?;
    // A temporary file has mode 0600: other users could no longer read it.
    if let Ok(before) = fs::metadata(path) {
        file.as_file().set_permissions(before.permissions())?;
    } else {
        use std::os::unix::fs::PermissionsExt as _;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    file.persist(path)?;
    Ok(())
}

/// Parses the result before it is written, together with the files that stay unchanged.
fn read_again(
    app: &App,
    args: &Args,
    before: Option<&Files>,
    written: &Written,
) -> Result<Reading, CliError> {
    let mut files =
        if args.format.is_folder() { before.cloned().unwrap_or_default() } else { Files::default() };
    for (name, text) in written.files.iter() {
        files.insert(name, text);
    }
    let options = Options { prefix: args.prefix.clone(), now: app.source()?.now() };
    read(args.format, &files, &options).map_err(|error| import::foreign(args.format, error))
}

/// Adds the statuses of the file that the export replaces, because here they derive from subtasks.
fn with_states(
    mut apart: Vec<DivergingField>,
    lost: &[TaskId],
    tasks: &[Task],
    there: &Reading,
) -> Vec<DivergingField> {
    let status = |tasks: &[Task], id: &TaskId| {
        tasks.iter().find(|task| task.id == *id).map_or(Value::Null, |task| json!(task.status))
    };
    for id in lost {
        if !apart.iter().any(|apart| apart.task == *id && apart.field == "status") {
            let (here, there) = (status(tasks, id), status(&there.tasks, id));
            apart.push(DivergingField { task: id.clone(), field: "status".to_owned(), here, there });
        }
    }
    apart
}

/// Returns the values that the written tasks no longer have.
fn overwritten(apart: Vec<DivergingField>, tasks: &[Task]) -> Vec<DivergingField> {
    let is_still_there = |apart: &DivergingField| {
        let task = tasks.iter().find(|task| task.id == apart.task).map(|task| json!(task));
        let (value, member) = match apart.field.strip_prefix("metadata.") {
            Some(member) => (task.as_ref().and_then(|task| task.get("metadata")), member),
            None => (task.as_ref(), apart.field.as_str()),
        };
        value.is_some_and(|value| value.get(member).unwrap_or(&Value::Null) == &apart.there)
    };
    apart.into_iter().filter(|apart| !is_still_there(apart)).collect()
}

fn report(app: &App, args: &Args, root: &Path, tasks: usize, done: &Done) -> Result<ExitCode, CliError> {
    let out = app.out();
    if out.is_json {
        let left_out = exchange::left_out(&done.written.left_out);
        return out.data(&json!({
            "format": args.format.name(), "path": root, "dryRun": args.dry_run, "tasks": tasks, "written": done.changed,
            "overwritten": done.overwritten, "writtenAgain": done.gone.again, "gone": done.gone.left,
            "deletedHere": done.deleted, "takenOut": args.take_out,
            "leftOut": left_out,
        }));
    }
    exchange::remark_left_out(app, &done.written.left_out);
    exchange::remark_overwritten(app, &done.overwritten);
    exchange::remark_again(app, &done.gone.again);
    exchange::remark_gone(app, &done.gone.left);
    exchange::remark_deleted(app, &done.deleted, args.take_out);
    if args.dry_run {
        out.remark("dry run: nothing was written");
    }
    let tasks = crate::text::count(tasks as u64, "task");
    let files = crate::text::count(done.changed.len() as u64, "file");
    out.print(crate::text::clean_block(&format!("{tasks} in `{}`, {files} written\n", root.display())))
}
