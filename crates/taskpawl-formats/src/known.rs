//! Records of a file that tasks in the store remember from its last import or export.

use std::collections::BTreeMap;

use serde_json::Value;
use taskpawl_model::command::BoundRecord;
use taskpawl_model::command::SourceRecord;
use taskpawl_model::task::Status;
use taskpawl_model::value::TaskId;

use crate::kind::Format;
use crate::taskmaster::{MASTER, in_tag};

/// The records of one file that tasks remember, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Known {
    records: Vec<KnownRecord>,
    by_id: BTreeMap<String, Vec<usize>>,
    by_task: BTreeMap<TaskId, usize>,
    prefix: Option<String>,
}

/// A record that a task remembers.
#[derive(Debug, Clone)]
pub(crate) struct KnownRecord {
    pub(crate) task: TaskId,
    pub(crate) record: SourceRecord,
    /// The text that the item had at the last import or export, if its record has an id instead.
    pub(crate) name: Option<String>,
    /// The status in the file at the last import or export.
    pub(crate) status: Option<Status>,
    /// True if version 0.1 stored the record: only the innermost heading is known.
    pub(crate) is_legacy: bool,
    /// The id that version 0.1 preserved with a task of a checklist.
    pub(crate) preserved_id: Option<String>,
    /// The source under which it is stored, if that is another one.
    pub(crate) from: Option<String>,
}

impl KnownRecord {
    /// Returns the text of an item.
    pub(crate) fn text(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.record.id)
    }
}

impl Known {
    /// Returns the records of the file `source`. Records of version 0.1 also count if the file that they came from is
    /// gone: `is_gone` tells that of a source.
    pub fn of(format: Format, source: &str, bound: &[BoundRecord], is_gone: impl Fn(&str) -> bool) -> Self {
        let own = |name: &str| name == source || name.strip_prefix(source).is_some_and(is_prefix);
        let mut known = Self::default();
        let mut others = Vec::new();
        for one in bound {
            if own(&one.source) {
                known.add(record_of(format, one, None));
            } else if one.record.is_none() && is_gone(place_of(&one.source)) {
                others.push(record_of(format, one, Some(one.source.clone())));
            }
        }
        for other in others {
            let is_new = !known.by_task.contains_key(&other.task)
                && known
                    .by_id
                    .get(&other.record.id)
                    .is_none_or(|found| found.iter().all(|place| known.records[*place].from.is_some()));
            if is_new {
                known.add(other);
            }
        }
        known.sort();
        known
    }

    /// Returns records for files that were just written: those of the tasks in a reading of them.
    pub fn written(records: impl IntoIterator<Item = (TaskId, SourceRecord)>) -> Self {
        let mut known = Self::default();
        for (task, record) in records {
            known.add(KnownRecord {
                task,
                record,
                name: None,
                status: None,
                is_legacy: false,
                preserved_id: None,
                from: None,
            });
        }
        known.sort();
        known
    }

    fn add(&mut self, record: KnownRecord) {
        let place = self.records.len();
        self.by_id.entry(record.record.id.clone()).or_default().push(place);
        self.by_task.entry(record.task.clone()).or_insert(place);
        self.prefix = self.prefix.take().or_else(|| record.record.prefix.clone());
        self.records.push(record);
    }

    /// Sorts the records by their place in the file. Records of version 0.1 have none, and stay in the order of their tasks.
    fn sort(&mut self) {
        let records = std::mem::take(&mut self.records);
        let prefix = self.prefix.take();
        let mut sorted: Vec<KnownRecord> = records;
        // Among equal texts, one that is in the file comes before one that is gone from it.
        sorted.sort_by_key(|known| (known.record.gone, known.record.place.unwrap_or(0)));
        *self = Self { prefix, ..Self::default() };
        for record in sorted {
            self.add(record);
        }
    }

    /// Returns the prefix that the ids of the file's tasks have.
    pub(crate) fn prefix(&self) -> Option<&String> {
        self.prefix.as_ref()
    }

    pub(crate) fn records(&self) -> &[KnownRecord] {
        &self.records
    }

    /// Returns the tasks that remember the record with this id. More than one means that version 0.1 cannot tell them apart.
    pub(crate) fn with_id(&self, id: &str) -> impl ExactSizeIterator<Item = &KnownRecord> {
        self.by_id.get(id).map_or(&[] as &[usize], Vec::as_slice).iter().map(|place| &self.records[*place])
    }

    pub(crate) fn of_task(&self, task: &TaskId) -> Option<&KnownRecord> {
        self.by_task.get(task).map(|place| &self.records[*place])
    }

    /// Returns the tasks with a record in the file.
    pub(crate) fn has_task(&self, task: &TaskId) -> bool {
        self.by_task.contains_key(task)
    }

    /// Returns the statuses that imports set here in place of those in the file.
    pub(crate) fn adapted(&self) -> BTreeMap<TaskId, Status> {
        let records = self.records.iter();
        records.filter_map(|known| Some((known.task.clone(), known.record.adapted?))).collect()
    }
}

/// Two or more tasks that could be meant by a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ambiguous {
    /// The id of the record.
    pub record: String,
    /// The tasks.
    pub tasks: Vec<TaskId>,
}

fn is_prefix(rest: &str) -> bool {
    rest.starts_with(" as ")
}

/// Returns a source of version 0.1 without the prefix of its ids.
fn place_of(source: &str) -> &str {
    source.rfind(" as ").map_or(source, |at| &source[..at])
}

fn record_of(format: Format, bound: &BoundRecord, from: Option<String>) -> KnownRecord {
    let status = bound.values.get("status").and_then(Value::as_str).and_then(Status::from_word);
    let metadata = bound.values.get(&format!("metadata.{}", format.name()));
    let preserved = |name: &str| Some(metadata?.get(name)?.as_str()?.to_owned());
    let record = bound.record.clone();
    let is_legacy = record.is_none();
    let record = record.unwrap_or_else(|| {
        let name = || bound.values.get("name").and_then(Value::as_str).map(str::to_owned);
        let id = if is_by_content(format, bound) { name() } else { preserved("id").or(preserved("uuid")) };
        let id = id.unwrap_or_else(|| bound.task.to_string());
        let id = match preserved("tag").filter(|_| format == Format::Taskmaster) {
            Some(tag) => in_tag(&tag, &id),
            None => id,
        };
        let prefix = bound.source.rsplit_once(" as ").map(|(_, prefix)| prefix.to_owned());
        SourceRecord {
            id,
            under: preserved("section").into_iter().collect(),
            prefix,
            ..SourceRecord::default()
        }
    });
    let preserved_id = preserved("id").filter(|_| is_by_content(format, bound));
    let name = bound.values.get("name").and_then(Value::as_str).filter(|name| *name != record.id);
    let name = name.filter(|_| format == Format::SpecKit).map(str::to_owned);
    KnownRecord { task: bound.task.clone(), record, name, status, is_legacy, preserved_id, from }
}

/// Returns the id of a record of Task Master after its tag was renamed; `None` if the record is in another tag.
pub fn id_in_renamed_tag(id: &str, from: &str, to: &str) -> Option<String> {
    let number = match id.rsplit_once(": ") {
        Some((tag, number)) => (tag == from).then_some(number),
        None => (from == MASTER).then_some(id),
    }?;
    Some(if to == MASTER { number.to_owned() } else { in_tag(to, number) })
}

/// Returns true if the records of the format have no ids. A list of to-dos of Claude has no descriptions.
fn is_by_content(format: Format, bound: &BoundRecord) -> bool {
    match format {
        Format::Claude => !bound.values.contains_key("dependencies"),
        Format::Markdown | Format::SpecKit | Format::OpenSpec | Format::Kiro | Format::TodoTxt => true,
        Format::Beads
        | Format::Taskmaster
        | Format::Taskwarrior
        | Format::Backlog
        | Format::Shrimp
        | Format::GitHub
        | Format::Tasks => false,
    }
}

/// A task that took another text, because its line was edited in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// The task.
    pub task: TaskId,
    /// The text before.
    pub from: String,
    /// The text now.
    pub to: String,
}
