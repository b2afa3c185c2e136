//! The entry points for reading and writing. Each format has its reader and its writer below them.

use std::collections::BTreeSet;

use taskpawl_model::command::SourceRecord;
use taskpawl_model::task::Task;
use taskpawl_model::value::{TaskId, Timestamp};

use crate::error::{FormatError, Position};
use crate::existing_document::ExistingDocument;
use crate::faults::Faults;
use crate::files::{Files, has_extension};
use crate::kind::Format;
use crate::known::Known;
use crate::reading::{Options, Reading, Written};
use crate::{backlog, beads, claude, github, markdown, shrimp, taskmaster, tasks, taskwarrior, todotxt};

impl Format {
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

    /// Returns true if a file of a folder has settings that decide how records are written.
    pub fn has_settings(self, name: &str) -> bool {
        self == Self::Backlog && backlog::has_settings(name)
    }
}

/// Reads files of a format. Faulty records are left out and listed in [`Reading::left_out`].
///
/// # Errors
/// Returns the fault if a file cannot be read as a whole.
pub fn read(format: Format, files: &Files, options: &Options) -> Result<Reading, FormatError> {
    let bare = files.unmarked();
    let files = bare.as_ref();
    let mut faults = Faults::default();
    let reading = match format {
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
    };
    let mut reading = match reading {
        // An empty file is no JSON, and has no tasks, as in the other formats.
        Err(_) if files.are_blank() => Reading::default(),
        reading => reading?,
    };
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
    let before = std::mem::replace(&mut options.known, known);
    let mut reading = read(format, files, &options)?;
    // The file takes over the records of a file of version 0.1 that is gone, as an import of it would.
    let from = |task: &Task| before.of_task(&task.id).and_then(|known| known.from.clone());
    reading.from = reading.tasks.iter().map(from).collect();
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
    let names = reading.names.iter().zip(&is_out).filter(|(_, is_out)| **is_out);
    let names: BTreeSet<&str> = names.map(|(name, _)| name.as_str()).collect();
    let of_folder = |found: fn(&Files, &BTreeSet<&str>) -> Vec<String>| {
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
        Format::TodoTxt => {
            let (left, numbers) = todotxt::without(files, &names);
            let mut read = reading.clone();
            read.retain(&is_out);
            for name in &mut read.names {
                if let Some(now) = numbers.get(name) {
                    name.clone_from(now);
                }
            }
            return (left.marked_as(before), read);
        }
        Format::Backlog => of_folder(backlog::files_of),
        Format::Claude => of_folder(claude::files_of),
        Format::Beads
        | Format::Taskmaster
        | Format::Taskwarrior
        | Format::Shrimp
        | Format::GitHub
        | Format::Tasks => return (files.clone().marked_as(before), reading.clone()),
    };
    if format.is_folder() {
        // Their records have ids. The removed ones tell which links to them are to be removed as well.
        return (left.marked_as(before), reading.clone());
    }
    // Later records are known by their position, so removed ones must leave the reading, too.
    let mut read = reading.clone();
    read.retain(&is_out);
    (left.marked_as(before), read)
}
