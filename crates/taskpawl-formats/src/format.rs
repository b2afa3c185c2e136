//! The formats: their names, their detection, and the entry points for reading and writing.

use std::collections::BTreeSet;

use taskpawl_model::task::Task;
use taskpawl_model::value::TaskId;
use taskpawl_model::value::Timestamp;

use crate::error::FormatError;
use crate::existing_document::ExistingDocument;
use crate::files::Files;
use crate::{backlog, beads, claude, markdown, taskmaster, tasks, taskwarrior};

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
            Self::Claude | Self::Taskwarrior | Self::Markdown | Self::Tasks => None,
        }
    }

    /// Returns true if the format is a folder of files. That of Claude may also be a single file.
    pub fn is_folder(self) -> bool {
        matches!(self, Self::Backlog | Self::Claude)
    }

    /// Returns true if a file belongs to a folder of this format. `name` is relative to the folder.
    pub fn takes(self, name: &str) -> bool {
        let is_hidden = name.split('/').any(|part| part.starts_with('.'));
        match self {
            Self::Backlog => backlog::takes(name),
            Self::Claude => !is_hidden && !name.contains('/') && has_extension(name, "json"),
            Self::Beads | Self::Taskmaster | Self::Taskwarrior | Self::Markdown | Self::Tasks => false,
        }
    }
}

pub(crate) fn has_extension(name: &str, wanted: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case(wanted))
}

/// Options of reading.
#[derive(Debug, Clone)]
pub struct Options {
    /// A prefix for every id, separated from it by `.`.
    pub prefix: Option<String>,
    /// The creation time of tasks for which the file has none.
    pub now: Timestamp,
}

impl Options {
    /// Returns options with a time and no prefix.
    pub fn at(now: Timestamp) -> Self {
        Self { prefix: None, now }
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
}

/// A part that was not imported or not exported, because the other side cannot express it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The record or the task, and the field.
    pub what: String,
    /// The reason, as a fragment.
    pub why: String,
}

impl LeftOut {
    pub(crate) fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into() }
    }
}

/// The result of an export.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// The files. Unchanged ones of a folder are included.
    pub files: Files,
    /// The parts of the tasks that the format cannot express.
    pub left_out: Vec<LeftOut>,
}

/// Reads files of a format.
///
/// # Errors
/// Returns the first part of the files that does not follow the format. Nothing is imported then.
pub fn read(format: Format, files: &Files, options: &Options) -> Result<Reading, FormatError> {
    let bare = files.unmarked();
    let files = bare.as_ref();
    match format {
        Format::Beads => beads::read(files, options),
        Format::Taskmaster => taskmaster::read(files, options),
        Format::Claude => claude::read(files, options),
        Format::Taskwarrior => taskwarrior::read(files, options),
        Format::Backlog => backlog::read(files, options),
        Format::Markdown => markdown::read(files, options),
        Format::Tasks => tasks::read(files, options),
    }
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
        Format::Markdown => markdown::write(tasks, &document),
        Format::Tasks => tasks::write(tasks, &document),
    };
    Written { files: written.files.marked_as(before), ..written }
}

/// Removes tasks from files that were read: their lines with everything indented below them, or their files. In the other formats a
/// task is only its record, which the next export leaves out. Returns the remaining files and the reading to [write over](write_over).
pub fn without(format: Format, files: &Files, reading: &Reading, ids: &BTreeSet<TaskId>) -> (Files, Reading) {
    let bare = files.unmarked();
    let (before, files) = (files, bare.as_ref());
    let mut read = reading.clone();
    let tasks = reading.tasks.iter().zip(&reading.names);
    let left = match format {
        Format::Markdown => {
            let is_out: Vec<bool> = reading.tasks.iter().map(|task| ids.contains(&task.id)).collect();
            // An item is identified by its position among items with the same text, so removed items must leave the reading, too.
            let is_left = |(task, _): &(&Task, &String)| !ids.contains(&task.id);
            (read.tasks, read.names) =
                tasks.filter(is_left).map(|(task, name)| (task.clone(), name.clone())).unzip();
            markdown::without(files, &is_out)
        }
        Format::Backlog | Format::Claude => {
            let names: BTreeSet<&str> =
                tasks.filter(|(task, _)| ids.contains(&task.id)).map(|(_, name)| name.as_str()).collect();
            let found = if format == Format::Claude { claude::files_of } else { backlog::files_of };
            let mut left = files.clone();
            for file in &found(files, &names) {
                left.remove(file);
            }
            left
        }
        Format::Beads | Format::Taskmaster | Format::Taskwarrior | Format::Tasks => files.clone(),
    };
    (left.marked_as(before), read)
}

/// A format, and the function that recognises its text.
type Check = (Format, fn(&str) -> bool);

/// Returns the format of files, or `None` if none matches or several do.
pub fn detect(files: &Files) -> Option<Format> {
    let bare = files.unmarked();
    let files = bare.as_ref();
    let (name, text) = files.first();
    let is_one = files.iter().nth(1).is_none();
    if files.iter().any(|(name, _)| name.starts_with("tasks/") || name == "config.yml") {
        return Some(Format::Backlog);
    }
    // Formats of several files are Backlog.md and Claude; with Backlog.md excluded, each file must be a task of Claude.
    if !is_one {
        let all_json = files.iter().all(|(name, text)| has_extension(name, "json") && claude::is_task(text));
        return all_json.then_some(Format::Claude);
    }
    if has_extension(name, "md") || has_extension(name, "markdown") {
        return Some(Format::Markdown);
    }
    let checks: [Check; 5] = [
        (Format::Tasks, tasks::is_one),
        (Format::Taskmaster, taskmaster::is_one),
        (Format::Taskwarrior, taskwarrior::is_one),
        (Format::Claude, claude::is_one),
        (Format::Beads, beads::is_one),
    ];
    let mut found = checks.into_iter().filter(|(_, is_one)| is_one(text)).map(|(format, _)| format);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}
