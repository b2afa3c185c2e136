//! Writes tasks as `task import` of Taskwarrior reads them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_json::PathStep;
use taskpawl_model::task::{Note, Status, Task};
use taskpawl_model::value::{Map, TaskId};

use super::{
    ANNOTATOR, FIELDS, FORMAT, PROGRAM, is_list, letter_of, parse, priority_of, records, status_of, wait,
    word_of,
};
use crate::existing_document::{self, ExistingDocument, Kinds};
use crate::faults::Faults;
use crate::json_text;
use crate::lines::{self, Line};
use crate::own_fields::{NAME, OwnFields};
use crate::preserved::{kept, put, put_rest, take_away};
use crate::reading::{LeftOut, Written};
use crate::record::{option, option_list};
use crate::states;
use crate::times::{rfc3339, to_compact};
use crate::unsupported;
use crate::uuids;

const KINDS: Kinds =
    Kinds { made: "entry", changed: "modified", of_state: &["end"], links: &["depends"], repeats: &[] };

pub(crate) fn write(tasks: &[Task], document: &ExistingDocument<'_>) -> Written {
    let (name, text) = document.files.first();
    let name = if name.is_empty() { "taskwarrior.json" } else { name };
    let mut written = Written::default();
    unsupported::say(tasks, FIELDS, "Taskwarrior has no place for it", &mut written.left_out);
    let raw = raw_records(name, text);
    let in_file: BTreeSet<String> = raw.keys().cloned().collect();
    let uuids = |tasks: &'_ [Task]| -> BTreeMap<TaskId, String> {
        let names = document.names_of(tasks, uuid_of, in_file.clone());
        names.into_iter().map(|(id, name)| (id.clone(), name)).collect()
    };
    let (theirs, said) = (uuids(tasks), uuids(document.tasks));
    written.names.clone_from(&theirs);
    let mut list = Vec::new();
    for task in document.in_order(tasks) {
        let now = record_of(task, &theirs, &mut written.left_out);
        let before = document.task(&task.id).map(|task| record_of(task, &said, &mut Vec::new()));
        let uuid = &theirs[&task.id];
        let (place, record) = match raw.get(uuid).zip(before) {
            Some(((place, raw), before)) => {
                (Some(*place), existing_document::over(raw, &before, &now, &KINDS))
            }
            None => (None, now),
        };
        list.push((place, uuid.clone(), Value::Object(record)));
    }
    let read: BTreeSet<usize> =
        document.names.iter().filter_map(|name| raw.get(name)).map(|(place, _)| *place).collect();
    let text = if is_list(text) || text.trim().is_empty() {
        list_of(list, text, &read)
    } else {
        lines_of(list, text, &read)
    };
    written.files.insert(name, text);
    written
}

/// Returns the records of a file by their UUIDs, with their places: indexes in the list, or lines from 0. Of two with one
/// UUID the first counts.
fn raw_records(name: &str, text: &str) -> BTreeMap<String, (usize, Map)> {
    let mut by_id = BTreeMap::new();
    for (place, record) in records(name, text, &mut Faults::default()).unwrap_or_default() {
        let place = match (place.line, place.path.last()) {
            (Some(line), _) => line as usize - 1,
            (None, Some(PathStep::Index(index))) => *index,
            (None, _) => continue,
        };
        let Ok(record) = record else { continue };
        if let Ok(uuid) = record.clone().id("uuid") {
            by_id.entry(uuid).or_insert((place, record.map));
        }
    }
    by_id
}

/// Returns tasks as a list. A new list has one task per line.
fn list_of(list: Vec<(Option<usize>, String, Value)>, text: &str, read: &BTreeSet<usize>) -> String {
    let raw: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let list = list.into_iter().map(|(place, _, record)| (place, record)).collect();
    let list = Value::Array(existing_document::with_unread(list, &raw, |place| read.contains(&place)));
    json_text::over(if is_list(text) { text } else { "[\n]\n" }, &list)
}

/// Returns tasks as lines, with commas between them if the existing lines have them.
fn lines_of(list: Vec<(Option<usize>, String, Value)>, text: &str, read: &BTreeSet<usize>) -> String {
    let has_commas = text.lines().any(|line| line.trim_end().ends_with(','));
    let (new, present): (Vec<_>, Vec<_>) = list.into_iter().partition(|(place, ..)| place.is_none());
    let mut left: BTreeMap<usize, Value> =
        present.into_iter().filter_map(|(place, _, record)| Some((place?, record))).collect();
    let mut lines = Vec::new();
    for (place, (line, end)) in lines::parts(text).enumerate() {
        let bare = line.trim().trim_end_matches(',');
        let (lead, tail) = line.split_once(bare).unwrap_or_default();
        let out = match left.remove(&place) {
            Some(record) => Some(format!("{lead}{}{tail}", json_text::over(bare, &record))),
            // A task was read from this line, and is not written any more.
            None if read.contains(&place) => None,
            None => Some(line.to_owned()),
        };
        lines.extend(out.map(|out| Line::document(out, end)));
    }
    for (.., record) in new {
        if let Some(last) = lines.last_mut().filter(|last| has_commas && !last.text.trim_end().ends_with(','))
        {
            last.text.push(',');
        }
        lines.push(Line::new(record.to_string()));
    }
    lines::joined(&lines, text)
}

/// Returns the UUID of a task. An id that is no UUID is hashed, so that every export gives the same one.
fn uuid_of(task: &Task, attempt: u64) -> String {
    let kept = kept(task, FORMAT);
    // Version 8 is free for such uses.
    uuids::of(task, kept.get("uuid").and_then(Value::as_str), attempt, 8)
}

fn record_of(task: &Task, theirs: &BTreeMap<TaskId, String>, left_out: &mut Vec<LeftOut>) -> Map {
    let (mut kept, mut out, own) = (kept(task, FORMAT), Map::new(), states::own(task));
    let uuid = &theirs[&task.id];
    let known = kept.remove("uuid").is_some();
    out.insert("uuid".to_owned(), json!(uuid));
    out.insert("description".to_owned(), json!(task.name));
    let is_started = write_state(task, own, &mut out, &mut kept);
    let letter = letter_of(task.priority);
    put(&mut out, &mut kept, "priority", json!(letter), |raw| {
        priority_of(raw.as_str()) == priority_of(letter)
    });
    let labels = option_list(task, "labels");
    if !labels.is_empty() {
        out.insert("tags".to_owned(), json!(labels));
    }
    write_notes(task, &mut out, left_out);
    let mut depends = Vec::new();
    for on in &task.dependencies {
        match theirs.get(on) {
            Some(uuid) => depends.push(json!(uuid)),
            None => left_out
                .push(LeftOut::new(format!("{}: dependencies", task.id), format!("`{on}` is not exported"))),
        }
    }
    depends.extend(take_away(&mut kept, "depends"));
    if !depends.is_empty() {
        out.insert("depends".to_owned(), json!(depends));
    }
    let shown = priority_of(letter);
    let said = out.get("status").and_then(Value::as_str).and_then(|word| status_of(word, is_started));
    let said = said.filter(|_| !states::is_put_off(task, wait(&kept), PROGRAM)).unwrap_or(own);
    let own_fields = OwnFields::of(task, known || task.id.as_str() == uuid, said, shown);
    if let Some(text) = own_fields.text() {
        out.insert(NAME.to_owned(), json!(text));
    }
    put_rest(&mut out, kept);
    out
}

/// Writes the status with its times. Returns true if the record marks the task as started.
fn write_state(task: &Task, own: Status, out: &mut Map, kept: &mut Map) -> bool {
    // Taskwarrior has no status for work in progress: a start time alone means that.
    let start = match own {
        Status::InProgress => Some(task.started_at.unwrap_or(task.updated_at)),
        // Taskwarrior removes it from a task that ends.
        Status::Todo
        | Status::Blocked
        | Status::Failed
        | Status::Done
        | Status::Cancelled
        | Status::Skipped => None,
    };
    let meant = if states::is_put_off(task, wait(kept), PROGRAM) { Status::Todo } else { own };
    put(out, kept, "status", json!(word_of(own)), |raw| {
        raw.as_str().and_then(|word| status_of(word, start.is_some())) == Some(meant)
    });
    let is_over = matches!(word_of(own), "completed" | "deleted");
    let due = option(task, "dueDate").and_then(rfc3339);
    for (field, at) in [
        ("entry", Some(task.created_at)),
        ("modified", Some(task.updated_at)),
        ("start", start),
        ("end", is_over.then(|| task.finished_at.unwrap_or(task.updated_at))),
        ("due", due),
    ] {
        put(out, kept, field, json!(at.map(to_compact)), |raw| raw.as_str().and_then(parse) == at);
    }
    start.is_some()
}

fn write_notes(task: &Task, out: &mut Map, left_out: &mut Vec<LeftOut>) {
    if task.notes.iter().any(|note| !matches!(note.actor.as_str(), "" | ANNOTATOR)) {
        let why = "Taskwarrior has no place for who wrote them";
        left_out.push(LeftOut::new(format!("{}: notes", task.id), why));
    }
    let note = |note: &Note| json!({ "entry": to_compact(note.at), "description": note.text });
    let notes: Vec<Value> = task.notes.iter().map(note).collect();
    if !notes.is_empty() {
        out.insert("annotations".to_owned(), Value::Array(notes));
    }
}
