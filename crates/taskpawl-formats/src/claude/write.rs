//! Writes tasks as task files of Claude, or as a list of to-dos.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::task::{Priority, Status, Task};
use taskpawl_model::value::{Map, TaskId};

use super::{FIELDS, FORMAT, TASK_FIELDS, TODO, TODO_FIELDS, plain, status_of, word_of};
use crate::error::Position;
use crate::existing_document::{self, ExistingDocument, Kinds};
use crate::files::Files;
use crate::ids::Names;
use crate::json_text;
use crate::own_fields::{NAME, OwnFields, put_text};
use crate::preserved::{kept, put, put_rest, take_away};
use crate::reading::{LeftOut, Written};
use crate::record::{Record, option};
use crate::states;
use crate::unsupported;

const KINDS: Kinds =
    Kinds { made: "", changed: "", of_state: &[], links: &["blocks", "blockedBy"], repeats: &["activeForm"] };

pub(crate) fn write(tasks: &[Task], document: &ExistingDocument<'_>) -> Written {
    let (name, text) = document.files.first();
    let is_list = serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_array());
    if is_list && document.files.iter().nth(1).is_none() {
        return write_todos(tasks, name, text, document);
    }
    let (mut present, mut own_fields) = (BTreeMap::new(), BTreeMap::new());
    for (file, text) in document.files.iter() {
        let Some((id, own)) = ids_of(text) else { continue };
        if let Some(own) = own {
            own_fields.entry(own).or_insert_with(|| id.clone());
        }
        // Of two files with one id the first counts, as in the reading.
        present.entry(id).or_insert_with(|| file.to_owned());
    }
    let theirs = names(tasks, &present, &own_fields, document);
    let mut written = Written::default();
    unsupported::say(tasks, FIELDS, "Claude has no place for it", &mut written.left_out);
    let records = records(&document.in_order(tasks), &theirs, &mut written.left_out);
    written.names = theirs.iter().map(|(id, name)| ((*id).clone(), name.clone())).collect();
    // Files of tasks that are not written stay, unless they were removed.
    let are_there = document.tasks.iter().zip(document.names).filter(|(_, name)| present.contains_key(*name));
    for (task, name) in are_there {
        written.names.entry(task.id.clone()).or_insert_with(|| name.clone());
    }
    let before: Vec<&Task> = document.tasks.iter().collect();
    let said = records_of_before(&before, document);
    for (id, now) in records {
        let name = &theirs[id];
        let file = present.get(name).cloned().unwrap_or_else(|| format!("{name}.json"));
        let text = document.files.get(&file).unwrap_or_default();
        let said = said.get(id).filter(|_| document.name(id) == Some(name.as_str()));
        let out = match (serde_json::from_str(text), said) {
            (Ok(Value::Object(raw)), Some(said)) => existing_document::over(&raw, said, &now, &KINDS),
            _ => now,
        };
        let out = Value::Object(out);
        let text = if text.is_empty() { json_text::pretty(&out) } else { json_text::over(text, &out) };
        written.files.insert(file, text);
    }
    written
}

/// Returns the records of tasks. Each lists its dependents in `blocks`, too.
fn records<'t>(
    tasks: &[&'t Task],
    theirs: &BTreeMap<&TaskId, String>,
    left_out: &mut Vec<LeftOut>,
) -> Vec<(&'t TaskId, Map)> {
    let mut blocks: BTreeMap<&TaskId, Vec<&String>> = BTreeMap::new();
    for task in tasks {
        for on in task.dependencies.iter().filter(|on| theirs.contains_key(on)) {
            blocks.entry(on).or_default().push(&theirs[&task.id]);
        }
    }
    let record = |task: &&'t Task| {
        let blocks = blocks.remove(&task.id).unwrap_or_default();
        (&task.id, record_of(task, theirs, &blocks, left_out))
    };
    tasks.iter().map(record).collect()
}

/// Returns the records of the tasks as they were read, to compare with the new ones.
fn records_of_before<'t>(tasks: &[&'t Task], document: &ExistingDocument<'_>) -> BTreeMap<&'t TaskId, Map> {
    let name = |task: &&'t Task| Some((&task.id, document.name(&task.id)?.to_owned()));
    let theirs = tasks.iter().filter_map(name).collect();
    records(tasks, &theirs, &mut Vec::new()).into_iter().collect()
}

/// Returns the files of the tasks with these ids. A to-do list has no such files.
pub(crate) fn files_of(files: &Files, ids: &BTreeSet<&str>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut is_wanted =
        |text: &str| ids_of(text).is_some_and(|(id, _)| ids.contains(id.as_str()) && seen.insert(id));
    files.iter().filter(|(_, text)| is_wanted(text)).map(|(file, _)| file.to_owned()).collect()
}

/// Returns the id in a file, and the task id that an earlier export wrote into it.
fn ids_of(text: &str) -> Option<(String, Option<String>)> {
    let mut record = Record::new(serde_json::from_str(text).ok()?, Position::default()).ok()?;
    Some((record.id("id").ok()?, OwnFields::take(&mut record.map).id))
}

/// Assigns a file id to every task, which is also its file name. New tasks get the numbers after the highest one.
fn names<'t>(
    tasks: &'t [Task],
    present: &BTreeMap<String, String>,
    own_fields: &BTreeMap<String, String>,
    document: &ExistingDocument<'_>,
) -> BTreeMap<&'t TaskId, String> {
    let (mut names, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for task in document.in_order(tasks) {
        let kept = kept(task, FORMAT);
        let in_file = document.name(&task.id).or(own_fields.get(task.id.as_str()).map(String::as_str));
        // An id that came from another file must not lead to a task of this one.
        let preserved = kept.get("id").and_then(Value::as_str).filter(|id| !present.contains_key(*id));
        let own = in_file.or(preserved).filter(|id| is_file_name(id) || present.contains_key(*id));
        let id = task.id.as_str();
        let own = own.or(Some(id).filter(|id| number(id).is_some() && !present.contains_key(*id)));
        // A file that cannot be read may have that number.
        let is_free = |id: &str| present.contains_key(id) || !document.files.has(&format!("{id}.json"));
        let own = own.filter(|id| is_free(id));
        if let Some(own) = own.filter(|own| taken.insert((*own).to_owned())) {
            names.insert(&task.id, own.to_owned());
        }
    }
    let mut next = last_number(tasks, &taken, present, document) + 1;
    for task in tasks {
        names.entry(&task.id).or_insert_with(|| {
            next += 1;
            (next - 1).to_string()
        });
    }
    names
}

/// Returns the highest number in use: of a task, of a file, or of a preserved link to a missing task.
fn last_number(
    tasks: &[Task],
    taken: &BTreeSet<String>,
    present: &BTreeMap<String, String>,
    document: &ExistingDocument<'_>,
) -> u64 {
    // Files that cannot be read have numbers, too.
    let files = document.files.names().map(|file| file.trim_end_matches(".json"));
    let ids = taken.iter().chain(present.keys()).chain(document.names).map(String::as_str);
    let links = tasks.iter().flat_map(|task| {
        let mut kept = kept(task, FORMAT);
        ["blockedBy", "blocks"].map(|field| take_away(&mut kept, field)).concat()
    });
    let links = links.filter_map(|link| number(link.as_str()?));
    ids.chain(files).filter_map(number).chain(links).max().unwrap_or(0)
}

/// Returns the number of an id; `None` if it is not a canonical number.
fn number(id: &str) -> Option<u64> {
    // The bound leaves room for the numbers of new tasks.
    id.parse().ok().filter(|number: &u64| number.to_string() == id && *number < u64::MAX / 2)
}

fn is_file_name(id: &str) -> bool {
    taskpawl_model::value::check_id(id).is_ok() && !id.starts_with('.')
}

fn record_of(
    task: &Task,
    theirs: &BTreeMap<&TaskId, String>,
    blocks: &[&String],
    left_out: &mut Vec<LeftOut>,
) -> Map {
    let (mut kept, mut out, own) = (kept(task, FORMAT), Map::new(), states::own(task));
    let name = &theirs[&task.id];
    let known = kept.remove("id").is_some_and(|id| id == *name);
    out.insert("id".to_owned(), json!(name));
    out.insert("subject".to_owned(), json!(task.name));
    out.insert("description".to_owned(), json!(task.description));
    write_state(task, own, &mut out, &mut kept);
    if let Some(owner) = option(task, "assignee") {
        out.insert("owner".to_owned(), json!(owner));
    }
    let mut by = Vec::new();
    for on in &task.dependencies {
        match theirs.get(on) {
            Some(on) => by.push(json!(on)),
            None => left_out
                .push(LeftOut::new(format!("{}: dependencies", task.id), format!("`{on}` is not exported"))),
        }
    }
    by.extend(take_away(&mut kept, "blockedBy"));
    let mut blocks: Vec<Value> = blocks.iter().map(|other| json!(other)).collect();
    blocks.extend(take_away(&mut kept, "blocks"));
    out.insert("blocks".to_owned(), json!(blocks));
    out.insert("blockedBy".to_owned(), json!(by));
    let own_fields = OwnFields::of(task, known || task.id.as_str() == name, plain(own), Priority::Medium);
    if let Some(text) = own_fields.text() {
        put_text(&mut kept, text);
    }
    // Preserved fields of a to-do may have the names of task fields. They must not become fields of the task.
    kept.retain(|field, _| !TASK_FIELDS.contains(&field.as_str()));
    put_rest(&mut out, kept);
    out
}

fn write_state(task: &Task, own: Status, out: &mut Map, kept: &mut Map) {
    put(out, kept, "status", json!(word_of(own)), |raw| {
        raw.as_str().and_then(|raw| status_of(&raw.to_lowercase())) == Some(own)
    });
    // Claude does not show a task without this field.
    put(out, kept, "activeForm", json!(task.name), |_| true);
}

fn write_todos(tasks: &[Task], name: &str, text: &str, document: &ExistingDocument<'_>) -> Written {
    let mut written = Written::default();
    unsupported::say(tasks, TODO_FIELDS, "a list of to-dos has no place for it", &mut written.left_out);
    let raw: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let (mut list, mut names) = (Vec::new(), Names::default());
    for task in document.in_order(tasks) {
        let place = document.name(&task.id).and_then(|name| name.parse::<usize>().ok());
        let before = place.and_then(|place| raw.get(place)?.as_object()).zip(document.task(&task.id));
        let is_marked = before.is_some_and(|(raw, _)| is_marked(raw, &task.id));
        // A to-do of the file is known by its text. A new one needs its id if that does not follow from the text.
        let has_id = match &before {
            Some(_) if is_marked => {
                names.marked(&task.id);
                false
            }
            Some(_) => {
                names.unmarked(&task.name);
                true
            }
            None => names.is_next(&task.name, &task.id),
        };
        let now = todo_of(task, has_id);
        let now = match before {
            Some((raw, said)) => existing_document::over(raw, &todo_of(said, !is_marked), &now, &KINDS),
            None => now,
        };
        list.push((place, Value::Object(now)));
        written.order.push(task.id.clone());
    }
    let read: BTreeSet<&str> = document.names.iter().map(String::as_str).collect();
    let list = existing_document::with_unread(list, &raw, |place| read.contains(place.to_string().as_str()));
    written.files.insert(name, json_text::over(text, &Value::Array(list)));
    written
}

/// Returns true if a to-do contains the task id. Otherwise only its text identifies the task.
fn is_marked(raw: &Map, id: &TaskId) -> bool {
    let text = raw.get(NAME).and_then(Value::as_str);
    text.and_then(|text| OwnFields::parse(text).id).is_some_and(|own| own == id.as_str())
}

/// Returns the to-do for a task.
fn todo_of(task: &Task, has_id: bool) -> Map {
    let (mut kept, mut out, own) = (kept(task, FORMAT), Map::new(), states::own(task));
    out.insert("content".to_owned(), json!(task.name));
    write_state(task, own, &mut out, &mut kept);
    if let Some(text) = OwnFields::of(task, has_id, plain(own), Priority::Medium).text() {
        out.insert(NAME.to_owned(), json!(text));
    }
    kept.remove(NAME);
    if let Some(Value::Object(apart)) = kept.remove(TODO) {
        kept.extend(apart);
    }
    put_rest(&mut out, kept);
    out
}
