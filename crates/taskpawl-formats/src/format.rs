//! The formats: their names, their detection, and the entry points for reading and writing.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl_model::advice::Hint;
use taskpawl_model::command::SourceRecord;
use taskpawl_model::task::{Status, Task};
use taskpawl_model::value::{TaskId, Timestamp};

use crate::error::{FormatError, Position};
use crate::existing_document::ExistingDocument;
use crate::faults::Faults;
use crate::files::Files;
use crate::known::{Ambiguous, Known, Renamed};
use crate::record::fields;
use crate::{backlog, beads, claude, github, markdown, shrimp, taskmaster, tasks, taskwarrior, todotxt};

/// A format of task files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Issues of beads: one JSON object per line.
    Beads,
    /// `tasks.json` of Task Master.
    Taskmaster,
    /// Task files of Claude: a folder with one JSON file per task, or a single file with a list of to-dos.
    Claude,
    /// The output of Taskwarrior's `task export`.
    Taskwarrior,
    /// A folder of Backlog.md.
    Backlog,
    /// A checklist in Markdown.
    Markdown,
    /// `tasks.md` of a feature of spec-kit, or a folder of features.
    SpecKit,
    /// `tasks.md` of a change of `OpenSpec`, or a folder of changes.
    OpenSpec,
    /// `tasks.md` of a spec of Kiro, or a folder of specs.
    Kiro,
    /// A list in the todo.txt format.
    TodoTxt,
    /// `tasks.json` of Shrimp Task Manager.
    Shrimp,
    /// Issues as `gh issue list --json` prints them. They are only read.
    GitHub,
    /// `tasks.json` of taskpawl.
    Tasks,
}

impl Format {
    /// Every format.
    pub const ALL: &'static [Self] = &[
        Self::Beads,
        Self::Taskmaster,
        Self::Claude,
        Self::Taskwarrior,
        Self::Backlog,
        Self::Markdown,
        Self::SpecKit,
        Self::OpenSpec,
        Self::Kiro,
        Self::TodoTxt,
        Self::Shrimp,
        Self::GitHub,
        Self::Tasks,
    ];

    /// Returns the format's name, which is also the name of its member in `metadata`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Beads => "beads",
            Self::Taskmaster => "taskmaster",
            Self::Claude => "claude",
            Self::Taskwarrior => "taskwarrior",
            Self::Backlog => "backlog",
            Self::Markdown => "markdown",
            Self::SpecKit => "spec-kit",
            Self::OpenSpec => "openspec",
            Self::Kiro => "kiro",
            Self::TodoTxt => "todo.txt",
            Self::Shrimp => "shrimp",
            Self::GitHub => "github",
            Self::Tasks => "tasks",
        }
    }

    /// Returns the format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// Returns the format with the most similar name, for suggestions.
    pub fn nearest(name: &str) -> Option<Self> {
        taskpawl_text::nearest(name, Self::ALL.iter().map(|format| format.name())).and_then(Self::from_name)
    }

    /// Returns the path at which a project keeps the format, relative to its root; `None` for formats without a usual path.
    pub fn usual_path(self) -> Option<&'static str> {
        match self {
            Self::Beads => Some(".beads/issues.jsonl"),
            Self::Taskmaster => Some(".taskmaster/tasks/tasks.json"),
            Self::Backlog => Some("backlog"),
            Self::SpecKit => Some("specs"),
            Self::OpenSpec => Some("openspec/changes"),
            Self::Kiro => Some(".kiro/specs"),
            Self::TodoTxt => Some("todo.txt"),
            Self::Claude | Self::Taskwarrior | Self::Markdown | Self::Shrimp | Self::GitHub | Self::Tasks => {
                None
            }
        }
    }

    /// Returns true if the format is a folder of files. That of Claude may also be a single file.
    pub fn is_folder(self) -> bool {
        matches!(self, Self::Backlog | Self::Claude)
    }

    /// Returns true if the format has one `tasks.md` for each feature, in a folder with the name of the feature.
    pub fn has_features(self) -> bool {
        matches!(self, Self::SpecKit | Self::OpenSpec | Self::Kiro)
    }

    /// Returns true if the format can be written.
    pub fn is_writable(self) -> bool {
        self != Self::GitHub
    }

    /// Returns true if a file belongs to a folder of this format. `name` is relative to the folder.
    pub fn takes(self, name: &str) -> bool {
        let is_hidden = name.split('/').any(|part| part.starts_with('.'));
        match self {
            Self::Backlog => backlog::takes(name),
            Self::Claude => !is_hidden && !name.contains('/') && has_extension(name, "json"),
            Self::Beads
            | Self::Taskmaster
            | Self::Taskwarrior
            | Self::Markdown
            | Self::SpecKit
            | Self::OpenSpec
            | Self::Kiro
            | Self::TodoTxt
            | Self::Shrimp
            | Self::GitHub
            | Self::Tasks => false,
        }
    }
}

pub(crate) fn has_extension(name: &str, wanted: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case(wanted))
}

/// Options of reading.
#[derive(Debug, Clone)]
pub struct Options {
    /// A prefix for the ids of new tasks, separated from them by `.`; the one that the file's tasks have if `None`.
    pub prefix: Option<String>,
    /// The creation time of tasks for which the file has none.
    pub now: Timestamp,
    /// The records that tasks remember from an earlier import or export of the file.
    pub known: Known,
}

impl Options {
    /// Returns options with a time and no prefix.
    pub fn at(now: Timestamp) -> Self {
        Self { prefix: None, now, known: Known::default() }
    }
}

/// The tasks of some files.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The tasks, in file order.
    pub tasks: Vec<Task>,
    /// The ids that the files give the tasks, in the order of `tasks`.
    pub names: Vec<String>,
    /// The fields that the format can express, by their names in a task; `metadata.<format>` is among them.
    pub fields: Vec<String>,
    /// The parts of the files that were not imported.
    pub left_out: Vec<LeftOut>,
    /// The records of the tasks, in the order of `tasks`.
    pub records: Vec<SourceRecord>,
    /// The times of the last change that the records state, in the order of `tasks`.
    pub changed_at: Vec<Option<Timestamp>>,
    /// The sources under which version 0.1 stored the records, if those files are gone; in the order of `tasks`.
    pub from: Vec<Option<String>>,
    /// Whether a task remembers the record, in the order of `tasks`.
    pub is_known: Vec<bool>,
    /// Tasks whose text changed in the file.
    pub renamed: Vec<Renamed>,
    /// Records that more than one task remembers. Nothing may be imported or exported then.
    pub ambiguous: Vec<Ambiguous>,
    /// Statuses that imports set here in place of those in the file.
    pub adapted: BTreeMap<TaskId, Status>,
    /// The lines that the tasks were read from, if the format has one task per line. Counted from 1.
    pub(crate) lines: BTreeSet<u32>,
}

impl Reading {
    pub(crate) fn of(known: &[&str]) -> Self {
        Self { fields: fields(known), ..Self::default() }
    }

    /// Adds a task with its name in the file, its record, and the time of the last change that the record states.
    pub(crate) fn push(
        &mut self,
        task: Task,
        name: String,
        record: SourceRecord,
        changed_at: Option<Timestamp>,
    ) {
        self.tasks.push(task);
        self.names.push(name);
        self.records.push(record);
        self.changed_at.push(changed_at);
    }

    /// Removes tasks.
    fn retain(&mut self, is_out: &[bool]) {
        fn retain<T>(list: &mut Vec<T>, is_out: &[bool]) {
            let mut is_out = is_out.iter();
            list.retain(|_| !is_out.next().copied().unwrap_or_default());
        }
        retain(&mut self.tasks, is_out);
        retain(&mut self.names, is_out);
        retain(&mut self.records, is_out);
        retain(&mut self.changed_at, is_out);
    }

    /// Returns the faulty records that were left out.
    pub fn faults(&self) -> impl Iterator<Item = &LeftOut> {
        self.left_out.iter().filter(|left| left.is_fault)
    }
}

/// A part that was not imported or not exported, because the other side cannot express it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The record or the task, and the field.
    pub what: String,
    /// The reason, as a fragment.
    pub why: String,
    /// The file, by its name within the files that were read; empty for a part of a task.
    pub file: String,
    /// The line, counted from 1, if it is known.
    pub line: Option<u32>,
    /// True if the part is a faulty record or line, and not one that the format leaves out by its rules.
    pub is_fault: bool,
    /// One thing to do about a fault.
    pub hint: Hint,
}

impl LeftOut {
    pub(crate) fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            why: why.into(),
            file: String::new(),
            line: None,
            is_fault: false,
            hint: Hint::default(),
        }
    }

    /// Returns the part with its position.
    pub(crate) fn at(self, file: impl Into<String>, line: Option<u32>) -> Self {
        Self { file: file.into(), line, ..self }
    }
}

/// The result of an export.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// The files. Unchanged ones of a folder are included.
    pub files: Files,
    /// The parts of the tasks that the format cannot express.
    pub left_out: Vec<LeftOut>,
    /// The ids of the records, as a reading of the files finds them.
    pub(crate) names: BTreeMap<TaskId, String>,
    /// The tasks in the order of their items, where the format has no ids.
    pub(crate) order: Vec<TaskId>,
}

/// Reads files of a format. Faulty records are left out and listed in [`Reading::left_out`].
///
/// # Errors
/// Returns the fault if a file cannot be read as a whole.
pub fn read(format: Format, files: &Files, options: &Options) -> Result<Reading, FormatError> {
    let bare = files.unmarked();
    let files = bare.as_ref();
    let mut faults = Faults::default();
    let mut reading = match format {
        Format::Beads => Ok(beads::read(files, options, &mut faults)),
        Format::Taskmaster => taskmaster::read(files, options, &mut faults),
        Format::Claude => claude::read(files, options, &mut faults),
        Format::Taskwarrior => taskwarrior::read(files, options, &mut faults),
        Format::Backlog => backlog::read(files, options, &mut faults),
        Format::Markdown | Format::SpecKit | Format::OpenSpec | Format::Kiro => {
            Ok(markdown::read(format, files, options, &mut faults))
        }
        Format::TodoTxt => Ok(todotxt::read(files, options, &mut faults)),
        Format::Shrimp => shrimp::read(files, options, &mut faults),
        Format::GitHub => github::read(files, options, &mut faults),
        Format::Tasks => tasks::read(files, options, &mut faults),
    }?;
    reading.left_out.extend(faults.into_left_out(files));
    reading.adapted = options.known.adapted();
    let known = reading.tasks.iter().map(|task| options.known.of_task(&task.id));
    (reading.is_known, reading.from) =
        known.map(|known| (known.is_some(), known.and_then(|known| known.from.clone()))).unzip();
    Ok(reading)
}

/// Writes tasks as files of a format, over the files of `before`. Other content of those files is preserved. A link to a task that is not
/// in `tasks` is reported as left out.
pub fn write(format: Format, tasks: &[Task], before: Option<&Files>) -> Written {
    let none = Files::default();
    let before = before.unwrap_or(&none);
    // Files that cannot be read count as files without tasks.
    let reading = read(format, before, &Options::at(Timestamp::default())).unwrap_or_default();
    write_over(format, tasks, before, &reading)
}

/// Writes over files that were read already; the reading must have the prefix of the tasks. Otherwise it works like [`write`](fn@write).
/// Unchanged records keep their text and their order.
pub fn write_over(format: Format, tasks: &[Task], before: &Files, reading: &Reading) -> Written {
    let bare = before.unmarked();
    let document = ExistingDocument::of(&bare, reading);
    let written = match format {
        Format::Beads => beads::write(tasks, &document),
        Format::Taskmaster => taskmaster::write(tasks, &document),
        Format::Claude => claude::write(tasks, &document),
        Format::Taskwarrior => taskwarrior::write(tasks, &document),
        Format::Backlog => backlog::write(tasks, &document),
        Format::Markdown | Format::SpecKit | Format::OpenSpec | Format::Kiro => {
            markdown::write(format, tasks, &document)
        }
        Format::TodoTxt => todotxt::write(tasks, &document),
        Format::Shrimp => shrimp::write(tasks, &document),
        // Issues are changed through GitHub, never through this file: it stays as it is.
        Format::GitHub => Written { files: document.files.clone(), ..Written::default() },
        Format::Tasks => tasks::write(tasks, &document),
    };
    Written { files: written.files.marked_as(before), ..written }
}

/// Reads files back that were just written. Every record leads to the task that it was written for.
///
/// # Errors
/// Returns the fault if the files cannot be read, or hold other tasks than those that were written.
pub fn read_back(
    format: Format,
    files: &Files,
    written: &Written,
    options: &Options,
) -> Result<Reading, FormatError> {
    let mut options = options.clone();
    let adapted = options.known.adapted();
    let record = |id: &TaskId, record: SourceRecord| {
        let prefix = options.known.of_task(id).and_then(|known| known.record.prefix.clone());
        let adapted = adapted.get(id).copied();
        (id.clone(), SourceRecord { prefix, adapted, ..record })
    };
    let known = if written.order.is_empty() {
        let record = |(id, name): (&TaskId, &String)| {
            record(id, SourceRecord { id: name.clone(), ..SourceRecord::default() })
        };
        Known::written(written.names.iter().map(record))
    } else {
        let plain = read(format, files, &Options::at(options.now))?;
        if plain.records.len() != written.order.len() {
            return Err(not_as_written(files, written.order.len(), plain.records.len()));
        }
        Known::written(written.order.iter().zip(plain.records).map(|(id, found)| record(id, found)))
    };
    let count = if written.order.is_empty() { written.names.len() } else { written.order.len() };
    options.known = known;
    let reading = read(format, files, &options)?;
    let is_known = |task: &Task| options.known.has_task(&task.id);
    if reading.tasks.len() != count || !reading.tasks.iter().all(is_known) {
        return Err(not_as_written(files, count, reading.tasks.iter().filter(|task| is_known(task)).count()));
    }
    Ok(reading)
}

fn not_as_written(files: &Files, wanted: usize, found: usize) -> FormatError {
    let place = Position::of(files.first().0);
    let problem = format!("of {wanted} tasks, {found} would be read back from it; nothing was written");
    place.error("", problem, "report this as a fault of taskpawl, with the file")
}

/// Removes tasks from files that were read: their lines with everything indented below them, or their files. In the other formats a
/// task is only its record, which the next export leaves out. Returns the remaining files and the reading to [write over](write_over).
pub fn without(format: Format, files: &Files, reading: &Reading, ids: &BTreeSet<TaskId>) -> (Files, Reading) {
    let bare = files.unmarked();
    let (before, files) = (files, bare.as_ref());
    let is_out: Vec<bool> = reading.tasks.iter().map(|task| ids.contains(&task.id)).collect();
    let of_folder = |found: fn(&Files, &BTreeSet<&str>) -> Vec<String>| {
        let names = reading.names.iter().zip(&is_out).filter(|(_, is_out)| **is_out);
        let names: BTreeSet<&str> = names.map(|(name, _)| name.as_str()).collect();
        let mut left = files.clone();
        for file in &found(files, &names) {
            left.remove(file);
        }
        left
    };
    let left = match format {
        Format::Markdown | Format::SpecKit | Format::OpenSpec | Format::Kiro => {
            markdown::without(format, files, &is_out)
        }
        Format::TodoTxt => todotxt::without(files, &is_out),
        Format::Backlog => of_folder(backlog::files_of),
        Format::Claude => of_folder(claude::files_of),
        Format::Beads
        | Format::Taskmaster
        | Format::Taskwarrior
        | Format::Shrimp
        | Format::GitHub
        | Format::Tasks => return (files.clone().marked_as(before), reading.clone()),
    };
    if format.is_folder() && left.iter().count() == files.iter().count() {
        // A list of to-dos in one file: like the formats above.
        return (files.clone().marked_as(before), reading.clone());
    }
    // Later records are known by their position, so removed ones must leave the reading, too.
    let mut read = reading.clone();
    read.retain(&is_out);
    (left.marked_as(before), read)
}
