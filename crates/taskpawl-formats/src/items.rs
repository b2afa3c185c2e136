//! Records of one file with the ids of their tasks, before their links are resolved: a link may lead to a later record, but not to a
//! faulty one.

use std::collections::BTreeMap;

use serde_json::json;
use taskpawl_model::task::Task;
use taskpawl_model::value::{Map, TaskId, Timestamp};

use crate::error::{FormatError, Position};
use crate::faults::Faults;
use crate::ids::Ids;
use crate::own_fields::OwnFields;
use crate::reading::{LeftOut, Options, Reading};
use crate::record::{Read, Record, blank};

/// A record with the id of its task. `M` has the parts of a record that only one format has.
#[derive(Clone)]
pub(crate) struct Item<M = ()> {
    pub(crate) record: Record,
    /// The id that the file gives the record.
    pub(crate) name: String,
    /// The id under which links lead to the record.
    pub(crate) key: String,
    pub(crate) id: TaskId,
    pub(crate) own_fields: OwnFields,
    pub(crate) more: M,
}

impl<M> Item<M> {
    /// Returns the task with its name from the field `title`, and its preserved fields: the id in the file, if that of the task
    /// does not follow from it.
    pub(crate) fn begin(&mut self, title: &str, id_field: &str, now: Timestamp) -> Read<(Task, Map)> {
        let task = blank(self.id.clone(), self.record.title(title)?, now);
        let mut kept = Map::new();
        if self.own_fields.id.is_none() && self.id.as_str() != self.name {
            kept.insert(id_field.to_owned(), json!(self.name));
        }
        Ok((task, kept))
    }

    /// Returns the time in a field, without taking it.
    fn time(&self, field: &str, parse: fn(&str) -> Option<Timestamp>) -> Option<Timestamp> {
        parse(self.record.map.get(field)?.as_str()?)
    }
}

/// The time field of a format with the last change of a record, and the conversion of its value.
pub(crate) type Changed = (&'static str, fn(&str) -> Option<Timestamp>);

/// The records of one file. Of records with one key the first counts, and the others are faults.
pub(crate) struct Items<'a, M = ()> {
    pub(crate) ids: Ids<'a>,
    pub(crate) faults: &'a mut Faults,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) list: Vec<Item<M>>,
    /// The positions of the records by their keys, for messages about keys that occur twice.
    seen: BTreeMap<String, Position>,
}

impl<'a, M: Clone> Items<'a, M> {
    pub(crate) fn new(options: &'a Options, faults: &'a mut Faults) -> Self {
        let ids = Ids::new(options);
        Self { ids, faults, left_out: Vec::new(), list: Vec::new(), seen: BTreeMap::new() }
    }

    /// Assigns a task id to a record. `base` is the text that a new id is made from, and `known` the id that an export wrote into the
    /// record. If the key occurs twice, `twice` is the fault.
    pub(crate) fn assign(
        &mut self,
        record: &Record,
        key: &str,
        (base, known): (&str, Option<&str>),
        twice: impl FnOnce(&Record) -> FormatError,
    ) -> Option<TaskId> {
        let first = self.seen.get(key);
        let id = if first.is_none() { self.ids.add(key, base, known) } else { None };
        match id {
            Some(_) => self.occupy(key, &record.place),
            None => self.faults.add_twice(twice(record), &record.place, first),
        }
        id
    }

    /// Marks a key as taken: of equal keys the first one counts, even if its record is faulty.
    pub(crate) fn occupy(&mut self, key: &str, place: &Position) {
        self.seen.entry(key.to_owned()).or_insert_with(|| place.clone());
    }

    /// Resolves the records. One that is faulty is left out, and the others are resolved again without it. `changed` is the field with
    /// the last change of a record, if the format has one.
    pub(crate) fn resolve(
        &mut self,
        fields: &[&str],
        changed: Option<Changed>,
        mut task: impl FnMut(Item<M>, &Ids<'_>, &mut Reading) -> Read<Task>,
    ) -> Reading {
        loop {
            let mut reading = Reading::of(fields);
            let mut failed = BTreeMap::new();
            for (number, item) in self.list.iter().enumerate() {
                match task(item.clone(), &self.ids, &mut reading) {
                    Ok(task) => {
                        let changed_at = changed.and_then(|(field, parse)| item.time(field, parse));
                        reading.push(task, item.name.clone(), self.ids.record(&item.key), changed_at);
                    }
                    Err(error) => _ = failed.insert(number, error),
                }
            }
            if failed.is_empty() {
                reading.ambiguous = std::mem::take(&mut self.ids.ambiguous);
                self.left_out.append(&mut reading.left_out);
                reading.left_out = std::mem::take(&mut self.left_out);
                return reading;
            }
            let mut number = 0;
            self.list.retain(|item| {
                let error = failed.remove(&number);
                number += 1;
                let Some(error) = error else { return true };
                self.ids.forget(&item.key);
                self.faults.add(error, &item.record.place);
                false
            });
        }
    }
}

impl Items<'_> {
    /// Adds a record under its own id. A record that could not be read is a fault.
    pub(crate) fn add(
        &mut self,
        place: &Position,
        record: Read<(Record, String, OwnFields)>,
        twice: impl FnOnce(&Record) -> FormatError,
    ) {
        let (record, name, own_fields) = match record {
            Ok(record) => record,
            Err(error) => return self.faults.add(error, place),
        };
        if let Some(id) = self.assign(&record, &name, (&name, own_fields.id.as_deref()), twice) {
            self.push(record, name, id, own_fields);
        }
    }

    /// Adds a record with its task id.
    pub(crate) fn push(&mut self, record: Record, name: String, id: TaskId, own_fields: OwnFields) {
        let (key, own_fields) = (name.clone(), own_fields.settle(&id));
        self.list.push(Item { record, name, key, id, own_fields, more: () });
    }
}
