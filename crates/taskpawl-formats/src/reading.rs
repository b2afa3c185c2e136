//! The input and the results of reading and writing.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl_model::advice::Hint;
use taskpawl_model::command::SourceRecord;
use taskpawl_model::task::{Status, Task};
use taskpawl_model::value::{TaskId, Timestamp};

use crate::files::Files;
use crate::known::{Ambiguous, Known, Renamed};

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
        let fields = known.iter().map(|name| (*name).to_owned()).collect();
        Self { fields, ..Self::default() }
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
    pub(crate) fn retain(&mut self, is_out: &[bool]) {
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
