//! One file of an export: the tasks are converted and read back before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use taskpawl::Manager;
use taskpawl::model::command::{DivergingField, Import, ImportMode};
use taskpawl::model::task::Task;
use taskpawl::model::value::TaskId;
use taskpawl_formats::{
    Files, Format, LeftOut, Options, Reading, Written, keep_states, read_back, without, write_over,
};

use super::args::Args;
use super::chosen::{Chosen, Gone};
use super::existing::{self, Existing};
use super::files;
use crate::app::App;
use crate::commands::exchange;
use crate::commands::import::{self, Records};
use crate::commands::print;
use crate::error::CliError;
use crate::text::count;

/// A file or a folder, ready to be written.
pub(super) struct Prepared {
    root: PathBuf,
    written: Written,
    /// Names of the files whose content differs.
    names: Vec<String>,
    /// Names of the files that no longer hold any task.
    removed: Vec<String>,
    /// The number of tasks in the file.
    count: usize,
    /// Tasks whose record changes.
    changed: Vec<TaskId>,
    /// Tasks without a record so far.
    added: Vec<TaskId>,
    /// Tasks that the file does not get.
    not_added: Vec<TaskId>,
    /// Values of the file that the export replaces.
    overwritten: Vec<DivergingField>,
    gone: Gone,
    /// Tasks of the file that were deleted in the store.
    deleted: BTreeSet<TaskId>,
    /// Recorded as if it was imported, so that the next import sees only later edits of the file.
    record: Import,
}

impl Prepared {
    /// Prepares a file. If it is not alone, it is one of several features, and gets no tasks that did not come from it.
    pub(super) fn of(
        app: &App,
        args: &Args,
        manager: &Manager,
        records: &Records,
        path: &Path,
        is_alone: bool,
    ) -> Result<Self, CliError> {
        let before = existing::before(app, args, path)?;
        let root = before.as_ref().map_or_else(|| path.to_owned(), |found| found.path.clone());
        // The same source as an import of this file has, so that the store can compare both.
        let source = exchange::source(app, args.format, &root)?;
        let mut existing = match &before {
            Some(found) => Some(Existing::of(app, args, manager, records, found, &source, is_alone)?),
            None => None,
        };
        if let Some(existing) = &mut existing {
            existing.takes_all &= is_alone;
        }
        let Chosen { mut tasks, not_added } = Chosen::of(manager, args, existing.as_ref())?;
        let existing = existing.unwrap_or_default();
        let gone = Gone::of(&existing, &mut tasks, args.again);
        let count = tasks.len();
        let files = before.as_ref().map(|found| &found.files);
        let (written, rest, lost) = convert(args, &root, files, &existing, &mut tasks);
        files::check_single(args.format, &root, &written)?;
        let removed = files::removed(files, rest.as_ref());
        let mut names = files::changed(&written, files);
        names.extend(removed.iter().cloned());
        if root.is_dir() && !args.force {
            refuse_faulty(args.format, &names, &existing.reading)?;
        }
        exchange::check_size(&root, &written.files)?;
        let options = Options {
            prefix: args.prefix.clone(),
            now: app.source()?.now(),
            known: records.known(app, args.format, &source),
        };
        let all = all_files(args.format, rest.as_ref().or(files), &written);
        let reading = read_back(args.format, &all, &written, &options)
            .map_err(|error| import::foreign(args.format, error))?;
        let (changed, added) = differences(&existing.reading, &reading);
        let apart = with_states(existing.apart, &lost, &tasks, &existing.reading);
        let overwritten = overwritten(apart, &reading.tasks);
        let record = import::import_of(reading, &source, ImportMode::Record);
        let deleted = existing.deleted;
        Ok(Self {
            root,
            written,
            names,
            removed,
            count,
            changed,
            added,
            not_added,
            overwritten,
            gone,
            deleted,
            record,
        })
    }

    /// Returns the tasks that the file has once it is written.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &TaskId> {
        self.record.tasks.iter().map(|task| &task.id)
    }

    /// Does not list tasks as left out that another file of the export has.
    pub(super) fn leave_unlisted(&mut self, elsewhere: &BTreeSet<TaskId>) {
        self.not_added.retain(|id| !elsewhere.contains(id));
    }

    /// Writes the files, and records their content in the store.
    pub(super) fn write(&self, format: Format, manager: &Manager) -> Result<(), CliError> {
        files::write_all(format, &self.root, &self.written, &self.names)?;
        files::remove_all(&self.root, &self.removed)?;
        manager.import(self.record.clone())?;
        Ok(())
    }

    pub(super) fn to_json(&self, args: &Args) -> Value {
        json!({
            "format": args.format.name(), "path": self.root, "dryRun": args.dry_run, "tasks": self.count,
            "written": self.names, "changed": self.changed, "added": self.added, "notAdded": self.not_added,
            "overwritten": self.overwritten, "writtenAgain": self.gone.again, "gone": self.gone.left,
            "deletedHere": self.deleted, "takenOut": args.take_out,
            "leftOut": exchange::left_out(&self.written.left_out),
        })
    }

    pub(super) fn remark(&self, app: &App, args: &Args) {
        exchange::remark_left_out(app, &self.written.left_out);
        exchange::remark_overwritten(app, &self.overwritten);
        exchange::remark_again(app, &self.gone.again);
        let gone = self.gone.left.iter().map(|id| format!("{id}: {}", self.gone.why));
        exchange::remark_some(app, "gone", gone);
        exchange::remark_deleted(app, &self.deleted, args.take_out);
    }

    /// Returns the line that tells what happens to the file.
    pub(super) fn summary(&self) -> String {
        let tasks = count(self.count as u64, "task");
        let files = count(self.names.len() as u64, "file");
        let mut line = format!("{tasks} in `{}`, {files} written", self.root.display());
        let lists = [
            ("changed", &self.changed, ""),
            ("added", &self.added, ""),
            ("not added", &self.not_added, "; `--add-new` adds them"),
        ];
        for (label, ids, hint) in lists.into_iter().filter(|(_, ids, _)| !ids.is_empty()) {
            let _ = write!(line, "; {} {label} ({}{hint})", ids.len(), print::some(ids));
        }
        line + "\n"
    }
}

/// Converts the tasks. Returns the result, the files without the tasks that were taken out, and the parents whose status in the file is
/// replaced.
fn convert(
    args: &Args,
    root: &Path,
    files: Option<&Files>,
    existing: &Existing,
    tasks: &mut Vec<Task>,
) -> (Written, Option<Files>, Vec<TaskId>) {
    let (rest, left) = files
        .filter(|_| args.take_out)
        .map(|files| without(args.format, files, &existing.reading, &existing.deleted))
        .unzip();
    // Without `--take-out`, tasks that were deleted in the store stay in the file unchanged.
    if !args.take_out {
        let there = existing.reading.tasks.iter();
        tasks.extend(there.filter(|task| existing.deleted.contains(&task.id)).cloned());
    }
    keep_parents(tasks, existing);
    let lost = keep_states(tasks, &existing.reading);
    // A new or empty `.json` file gets the list form of a format that otherwise is a folder.
    let is_list = files.is_none_or(Files::are_blank) && files::is_list(args.format, root);
    let name = files.and_then(|files| files.iter().next()).map(|(name, _)| name.to_owned());
    let to_dos = Files::single(name.unwrap_or_else(|| root.to_string_lossy().into_owned()), "[]");
    let none = Files::default();
    let present = rest.as_ref().or(files).filter(|_| !existing.is_unreadable);
    let over = Some(&to_dos).filter(|_| is_list).or(present).unwrap_or(&none);
    let written = write_over(args.format, tasks, over, left.as_ref().unwrap_or(&existing.reading));
    (written, rest, lost)
}

/// Restores the file's parent of tasks that an import left at the top level, because their parent took no subtasks here.
fn keep_parents(tasks: &mut [Task], existing: &Existing) {
    let apart = existing.apart.iter().filter(|apart| apart.field == "parent" && apart.here.is_null());
    let apart: BTreeSet<&TaskId> = apart.map(|apart| &apart.task).collect();
    let there = by_id(&existing.reading.tasks);
    for task in tasks.iter_mut().filter(|task| apart.contains(&task.id)) {
        if let Some(there) = there.get(&task.id) {
            task.parent.clone_from(&there.parent);
        }
    }
}

/// Refuses to overwrite files of a folder that cannot be read, and to write records without the settings that decide about their
/// words.
fn refuse_faulty(format: Format, names: &[String], before: &Reading) -> Result<(), CliError> {
    let is_written = |fault: &&LeftOut| {
        names.contains(&fault.file) || (!names.is_empty() && format.has_settings(&fault.file))
    };
    let faults: Vec<LeftOut> = before.faults().filter(is_written).cloned().collect();
    import::refuse_any(format, &faults)
}

/// Returns the files as they are once the export has written them.
fn all_files(format: Format, before: Option<&Files>, written: &Written) -> Files {
    let mut files = if format.is_folder() { before.cloned().unwrap_or_default() } else { Files::default() };
    for (name, text) in written.files.iter() {
        files.insert(name, text);
    }
    files
}

/// Returns the tasks whose record changes, and those without one before.
fn differences(before: &Reading, after: &Reading) -> (Vec<TaskId>, Vec<TaskId>) {
    let there = by_id(&before.tasks);
    let (mut changed, mut added) = (Vec::new(), Vec::new());
    for task in &after.tasks {
        let Some(before) = there.get(&task.id) else {
            added.push(task.id.clone());
            continue;
        };
        // A format without times has that of its reading.
        let (created_at, updated_at) = (before.created_at, before.updated_at);
        if (Task { created_at, updated_at, ..task.clone() }) != **before {
            changed.push(task.id.clone());
        }
    }
    (changed, added)
}

/// Adds the statuses of the file that the export replaces, because here they derive from subtasks.
fn with_states(
    mut apart: Vec<DivergingField>,
    lost: &[TaskId],
    tasks: &[Task],
    there: &Reading,
) -> Vec<DivergingField> {
    let (here, there) = (by_id(tasks), by_id(&there.tasks));
    let status = |tasks: &BTreeMap<&TaskId, &Task>, id: &TaskId| {
        tasks.get(id).map_or(Value::Null, |task| json!(task.status))
    };
    let of_status = apart.iter().filter(|apart| apart.field == "status");
    let known: BTreeSet<TaskId> = of_status.map(|apart| apart.task.clone()).collect();
    for id in lost.iter().filter(|id| !known.contains(*id)) {
        let (here, there) = (status(&here, id), status(&there, id));
        apart.push(DivergingField { task: id.clone(), field: "status".to_owned(), here, there });
    }
    apart
}

fn by_id(tasks: &[Task]) -> BTreeMap<&TaskId, &Task> {
    tasks.iter().map(|task| (&task.id, task)).collect()
}

/// Returns the values that the written tasks no longer have.
fn overwritten(apart: Vec<DivergingField>, tasks: &[Task]) -> Vec<DivergingField> {
    let tasks = by_id(tasks);
    let is_still_there = |apart: &DivergingField| {
        let task = tasks.get(&apart.task).map(|task| json!(task));
        let (value, member) = match apart.field.strip_prefix("metadata.") {
            Some(member) => (task.as_ref().and_then(|task| task.get("metadata")), member),
            None => (task.as_ref(), apart.field.as_str()),
        };
        value.is_some_and(|value| value.get(member).unwrap_or(&Value::Null) == &apart.there)
    };
    apart.into_iter().filter(|apart| !is_still_there(apart)).collect()
}
