//! The formats by name, how one is recognised, and the way in and out of each.

use std::collections::BTreeSet;

use taskpawl_model::{Task, TaskId, Timestamp};

use crate::error::FormatError;
use crate::existing_document::ExistingDocument;
use crate::files::Files;
use crate::{backlog, beads, claude, markdown, taskmaster, tasks, taskwarrior};

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Issues of beads: one JSON object in each line.
    Beads,
    /// `tasks.json` of Task Master.
    Taskmaster,
    /// Task files of Claude: a folder with one JSON file for each task; or one file with a list of to-dos.
    Claude,
    /// What `task export` of Taskwarrior prints.
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

    /// Returns its name, which is also that of its member in `metadata`.
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

    /// Returns the format of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// Returns the format whose name is nearest to what was written.
    pub fn nearest(name: &str) -> Option<Self> {
        taskpawl_text::nearest(name, Self::ALL.iter().map(|format| format.name())).and_then(Self::from_name)
    }

    /// Returns where a project keeps it, where there is such a place.
    pub fn usual_path(self) -> Option<&'static str> {
        match self {
            Self::Beads => Some(".beads/issues.jsonl"),
            Self::Taskmaster => Some(".taskmaster/tasks/tasks.json"),
            Self::Backlog => Some("backlog"),
            Self::Claude | Self::Taskwarrior | Self::Markdown | Self::Tasks => None,
        }
    }

    /// Returns whether it is a folder of files; that of Claude may also be one file.
    pub fn is_folder(self) -> bool {
        matches!(self, Self::Backlog | Self::Claude)
    }

    /// Returns whether a file of a folder belongs to it, by its name within the folder.
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

/// How files are read.
#[derive(Debug, Clone)]
pub struct Options {
    /// What stands before every id, with a `.`.
    pub prefix: Option<String>,
    /// The time of tasks that say none.
    pub now: Timestamp,
}

impl Options {
    /// Returns the options without anything but the time.
    pub fn at(now: Timestamp) -> Self {
        Self { prefix: None, now }
    }
}

/// What was read.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// What the files call the tasks, one for each.
    pub names: Vec<String>,
    /// What the format says of a task, by the names of fields of a task.
    pub fields: Vec<String>,
    /// What could not be taken over.
    pub left_out: Vec<LeftOut>,
}

/// Something that one side has and the other does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The record or the task, with the field.
    pub what: String,
    /// Why.
    pub why: String,
}

impl LeftOut {
    pub(crate) fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into() }
    }
}

/// What was written.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// The files; those of a folder that did not change are among them.
    pub files: Files,
    /// What the format has no place for.
    pub left_out: Vec<LeftOut>,
}

/// Reads files of a format.
///
/// # Errors
/// Something in them is not of the format: then nothing is read.
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

/// Writes tasks as files of a format. What `before` has beside its tasks stays; a task above or before another one has to be among
/// the tasks, else the link is left out.
pub fn write(format: Format, tasks: &[Task], before: Option<&Files>) -> Written {
    let none = Files::default();
    let before = before.unwrap_or(&none);
    let reading = read(format, before, &Options::at(Timestamp::default())).unwrap_or_default();
    write_over(format, tasks, before, &reading)
}

/// As [`write`](fn@write), over files that were read already: with the prefix that the tasks have. What did not change since they said it
/// stays there as it is, in its order and its words.
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

/// Takes tasks out of files that were read: their lines, with what is set in below them, or their files. Other formats have nothing
/// of a task beside its record, and are written without it. Returns what is left with the reading to [write over it](write_over).
pub fn without(format: Format, files: &Files, reading: &Reading, ids: &BTreeSet<TaskId>) -> (Files, Reading) {
    let bare = files.unmarked();
    let (before, files) = (files, bare.as_ref());
    let mut read = reading.clone();
    let tasks = reading.tasks.iter().zip(&reading.names);
    let left = match format {
        Format::Markdown => {
            let is_out: Vec<bool> = reading.tasks.iter().map(|task| ids.contains(&task.id)).collect();
            // An item is known by its place among those of the same text, so that what is out may not count.
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

/// Says whether a text is one of a format.
type Check = (Format, fn(&str) -> bool);

/// Returns the format of files, where there is no doubt.
pub fn detect(files: &Files) -> Option<Format> {
    let bare = files.unmarked();
    let files = bare.as_ref();
    let (name, text) = files.first();
    let is_one = files.iter().nth(1).is_none();
    if files.iter().any(|(name, _)| name.starts_with("tasks/") || name == "config.yml") {
        return Some(Format::Backlog);
    }
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
