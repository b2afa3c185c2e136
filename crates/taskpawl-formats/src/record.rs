//! A record of a file. Readers take its fields one by one; the rest is preserved.

use std::sync::Arc;

use serde_json::Value;
use taskpawl_model::task::MAX_DEPTH;
use taskpawl_model::task::{Metadata, Priority, Status, Task};
use taskpawl_model::value::TaskId;
use taskpawl_model::value::{Map, Timestamp, format_time};

use crate::error::{FormatError, Position, Short, is_in_list};
use crate::existing_document::text_of;
use crate::faults::conflict;
use crate::preserved::keep_if_other;

/// An object of a file, with its position.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) map: Map,
    pub(crate) place: Position,
}

pub(crate) type Read<T> = Result<T, FormatError>;

impl Record {
    pub(crate) fn new(value: Value, place: Position) -> Read<Self> {
        let record = Self::whole(value, place)?;
        record.check(&[])?;
        Ok(record)
    }

    /// Like [`new`](Self::new), for records that contain other records. The caller [checks](Self::check) it once those are taken out.
    pub(crate) fn whole(value: Value, place: Position) -> Read<Self> {
        match value {
            Value::Object(map) => Ok(Self { map, place }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(place.error("", "expected a JSON object", "every record is a JSON object"))
            }
        }
    }

    /// Refuses values too deep for a task's metadata, where they are stored two levels down, duplicate keys, and numbers that cannot
    /// be kept. `apart` names the fields with other records, which were taken out.
    pub(crate) fn check(&self, apart: &[&str]) -> Read<()> {
        if let Some(error) = self.place.json_fault_in(apart) {
            return Err(error);
        }
        let most = MAX_DEPTH - 2;
        if self.map.values().all(|value| levels(value) < most) {
            return Ok(());
        }
        let hint = format!("at most {most} levels can be kept");
        Err(self.place.error("", "it is nested too deeply", hint))
    }

    /// Sets the record's name in error positions, once it is known.
    pub(crate) fn name(&mut self, record: &str) {
        record.clone_into(&mut self.place.record);
    }

    pub(crate) fn wrong(&self, field: &str, expected: &str, value: &Value) -> FormatError {
        let text = value.to_string();
        self.place.error(
            field,
            format!("expected {expected}, and it is `{}`", Short(&text)),
            "write it so, or remove it",
        )
    }

    fn take(&mut self, field: &str) -> Option<Value> {
        self.map.remove(field).filter(|value| !value.is_null())
    }

    /// Takes a string. `null` counts as absent.
    pub(crate) fn text(&mut self, field: &str) -> Read<Option<String>> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(value) => Err(self.wrong(field, "a text", &value)),
        }
    }

    /// Takes an id: a string or a number.
    pub(crate) fn id(&mut self, field: &str) -> Read<String> {
        let id = match self.take(field) {
            Some(Value::String(text)) if !text.is_empty() => text,
            Some(value @ Value::Number(_)) => text_of(&value),
            Some(value) => return Err(self.wrong(field, "an id", &value)),
            None => return Err(self.place.error(field, "it is missing", "every record has one")),
        };
        self.name(&id);
        Ok(id)
    }

    /// Takes a string that must be present and not blank.
    pub(crate) fn title(&mut self, field: &str) -> Read<String> {
        match self.text(field)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(self.place.error(field, "it is empty", "give the record a title")),
            None => Err(self.place.error(field, "it is missing", "give the record a title")),
        }
    }

    /// Takes a list of strings or numbers.
    pub(crate) fn texts(&mut self, field: &str) -> Read<Vec<String>> {
        let list = match self.take(field) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(value) => return Err(self.wrong(field, "a list of texts", &value)),
        };
        let text = |value: &Value| match value {
            Value::String(_) | Value::Number(_) => Ok(text_of(value)),
            other @ (Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
                Err(self.wrong(field, "a list of texts", other))
            }
        };
        list.iter().map(text).collect()
    }

    /// Takes a list of objects.
    pub(crate) fn objects(&mut self, field: &str) -> Read<Vec<Record>> {
        let records = self.wholes(field)?;
        records.iter().try_for_each(|record| record.check(&[]))?;
        Ok(records)
    }

    /// Like [`objects`](Self::objects), for objects that contain other records.
    pub(crate) fn wholes(&mut self, field: &str) -> Read<Vec<Record>> {
        self.elements(field)?.into_iter().map(|(_, record)| record).collect()
    }

    /// Takes a list of objects that may be faulty, each with its position.
    pub(crate) fn elements(&mut self, field: &str) -> Read<Vec<(Position, Read<Record>)>> {
        let list = match self.take(field) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(value) => return Err(self.wrong(field, "a list of objects", &value)),
        };
        let above = &self.place.record;
        let record = if above.is_empty() { field.to_owned() } else { format!("{above}: {field}") };
        let place = |number: usize| self.place.element(Some(field), number, record.clone());
        let element = |(number, value)| (place(number), Self::whole(value, place(number)));
        Ok(list.into_iter().enumerate().map(element).collect())
    }

    /// Takes a time, and returns it with its spelling. An empty text is none.
    pub(crate) fn time(
        &mut self,
        field: &str,
        parse: fn(&str) -> Option<Timestamp>,
    ) -> Read<Option<(Timestamp, String)>> {
        let Some(text) = self.text(field)?.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        match parse(&text) {
            Some(time) => Ok(Some((time, text))),
            None => Err(self.wrong(field, "a time", &Value::String(text))),
        }
    }

    /// Takes the times of a task. A spelling that an export would change is preserved.
    pub(crate) fn times(&mut self, times: &Times, task: &mut Task, kept: &mut Map) -> Read<()> {
        let mut take = |field: &str| -> Read<Option<_>> {
            let Some((time, text)) = self.time(field, times.parse)? else { return Ok(None) };
            keep_if_other(kept, field, Value::String(text), &Value::String((times.print)(time)));
            Ok(Some(time))
        };
        if let Some(at) = take(times.made)? {
            (task.created_at, task.updated_at) = (at, at);
        }
        if let Some(at) = take(times.changed)? {
            task.updated_at = at;
        }
        task.started_at = take(times.started)?;
        task.finished_at = take(times.ended)?;
        if let Some(at) = take(times.due)? {
            set_option(task, "dueDate", format_time(at));
        }
        Ok(())
    }
}

/// The names of a format's time fields, and the conversions of their values.
pub(crate) struct Times {
    pub(crate) made: &'static str,
    pub(crate) changed: &'static str,
    pub(crate) started: &'static str,
    pub(crate) ended: &'static str,
    pub(crate) due: &'static str,
    pub(crate) parse: fn(&str) -> Option<Timestamp>,
    pub(crate) print: fn(Timestamp) -> String,
}

/// Returns the number of levels of a value. The recursion is safe, because the JSON and YAML readers bound the depth.
pub(crate) fn levels(value: &Value) -> usize {
    let below = match value {
        Value::Array(items) => items.iter().map(levels).max(),
        Value::Object(map) => map.values().map(levels).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    1 + below.unwrap_or(0)
}

/// Returns a task with an id, a name and defaults.
pub(crate) fn blank(id: TaskId, name: String, now: Timestamp) -> Task {
    Task {
        id,
        name,
        description: String::new(),
        status: Status::Todo,
        blocked_reason: None,
        priority: Priority::Medium,
        dependencies: Vec::new(),
        subtasks: Vec::new(),
        parent: None,
        metadata: Metadata::default(),
        plan: None,
        claim: None,
        claim_ended: None,
        question_over: false,
        wait_over: false,
        ended_by: None,
        result: None,
        notes: Vec::new(),
        error: None,
        error_class: None,
        attempt: 0,
        generation: 0,
        created_at: now,
        updated_at: now,
        started_at: None,
        finished_at: None,
        version: 0,
        names: std::collections::BTreeMap::new(),
        origins: None,
        progress: taskpawl_model::task::Progress::default(),
        options: Map::new(),
    }
}

/// Returns a string of a task's options.
pub(crate) fn option<'t>(task: &'t Task, name: &str) -> Option<&'t str> {
    task.options.get(name).and_then(Value::as_str)
}

/// Returns a list of strings of a task's options.
pub(crate) fn option_list(task: &Task, name: &str) -> Vec<String> {
    let list = task.options.get(name).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(crate) fn set_option(task: &mut Task, name: &str, value: impl Into<Value>) {
    let value = value.into();
    let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty) || value == "";
    if !is_empty {
        task.options.insert(name.to_owned(), value);
    }
}

/// Parses a file that is JSON as a whole. A git conflict in it is named as such. Duplicate keys and inexact numbers inside a list are
/// noted in `place`: they only make their records faulty.
pub(crate) fn whole(text: &str, place: &mut Position) -> Read<Value> {
    // The position of each fault is searched for from the start of the file.
    const MAX_FAULTS: usize = 100;
    let (value, faults) = taskpawl_json::read_with_faults(text, MAX_FAULTS)
        .map_err(|error| conflict(&place.file, text).unwrap_or_else(|| place.json(&error, 1)))?;
    let of_file = faults.iter().find(|fault| !is_in_list(&fault.path));
    let of_file = of_file.or(faults.first().filter(|_| faults.len() >= MAX_FAULTS));
    if let Some(fault) = of_file {
        return Err(place.json_fault(fault, 1));
    }
    place.json_faults = Arc::new(faults);
    Ok(value)
}
