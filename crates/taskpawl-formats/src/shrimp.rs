//! `tasks.json` of Shrimp Task Manager: one list of tasks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::task::{Priority, Status, Task};
use taskpawl_model::value::{Map, TaskId, format_time};

use crate::error::Position;
use crate::existing_document::{self, ExistingDocument, Kinds, text_of};
use crate::faults::Faults;
use crate::files::Files;
use crate::ids::Ids;
use crate::items::{Item, Items};
use crate::json_text;
use crate::links;
use crate::own_fields::{NAME, OwnFields};
use crate::preserved::{add_away, keep, keep_away, keep_if_other, kept, put, put_rest, take_away};
use crate::reading::{LeftOut, Options, Reading, Written};
use crate::record::{Read, Record, Times, whole};
use crate::states;
use crate::times::rfc3339;
use crate::unsupported;
use crate::uuids;

const FORMAT: &str = "shrimp";

const FIELDS: &[&str] = &[
    "name",
    "description",
    "status",
    "dependencies",
    "createdAt",
    "updatedAt",
    "finishedAt",
    "metadata.shrimp",
];

const TIMES: Times = Times {
    made: "createdAt",
    changed: "updatedAt",
    started: "startedAt",
    ended: "completedAt",
    due: "dueAt",
    parse: rfc3339,
    print: format_time,
};

const KINDS: Kinds =
    Kinds { made: "createdAt", changed: "updatedAt", of_state: &["completedAt"], links: &[], repeats: &[] };

/// Status words of Shrimp. Exports write the first word of a status.
const WORDS: &[(&str, Status)] = &[
    ("pending", Status::Todo),
    ("in_progress", Status::InProgress),
    ("completed", Status::Done),
    ("blocked", Status::Blocked),
];

/// Fields that no other program has.
const OWN: &[&str] =
    &["implementationGuide", "verificationCriteria", "relatedFiles", "analysisResult", "summary"];

pub(crate) fn is_one(text: &str) -> bool {
    let Ok(Value::Object(file)) = serde_json::from_str::<Value>(text) else { return false };
    let Some(first) = file.get("tasks").and_then(Value::as_array).and_then(|list| list.first()) else {
        return false;
    };
    let word = first.get("status").and_then(Value::as_str).unwrap_or_default();
    let has_own = OWN.iter().any(|field| first.get(field).is_some());
    first.get("id").is_some()
        && first.get("name").is_some()
        && first.get("metadata").is_none()
        && (has_own && first.get("parent").is_none() || matches!(word, "pending" | "completed"))
}

pub(crate) fn read(files: &Files, options: &Options, faults: &mut Faults) -> Read<Reading> {
    let (file, text) = files.first();
    let mut place = Position::of(file);
    let mut file = Record::whole(whole(text, &mut place)?, place.clone())?;
    if !file.map.contains_key("tasks") {
        return Err(place.error("tasks", "it is missing", "the file is an object with a list `tasks`"));
    }
    let mut items = Items::new(options, faults);
    for (place, record) in file.elements("tasks")? {
        let record = record.and_then(|mut record| {
            let name = record.id("id")?;
            let own_fields = record.text(NAME).unwrap_or_default();
            Ok((record, name, own_fields.map(|text| OwnFields::parse(&text)).unwrap_or_default()))
        });
        items.add(&place, record, |record| {
            let problem = format!("task `{}` occurs twice", record.place.record);
            record.place.error("id", problem, "remove one of the two")
        });
    }
    let mut reading = items.resolve(FIELDS, Some((TIMES.changed, TIMES.parse)), |item, ids, reading| {
        task(item, ids, options, &mut reading.left_out)
    });
    links::settle(&mut reading, |task, on| add_away(task, FORMAT, "dependencies", link(on)));
    Ok(reading)
}

fn task(mut item: Item, ids: &Ids<'_>, options: &Options, left_out: &mut Vec<LeftOut>) -> Read<Task> {
    item.record.check(&[])?;
    let (mut task, mut kept) = item.begin("name", "id", options.now)?;
    let Item { mut record, own_fields, name, .. } = item;
    task.description = record.text("description")?.unwrap_or_default();
    record.times(&TIMES, &mut task, &mut kept)?;
    let word = record.text("status")?.unwrap_or_else(|| "pending".to_owned());
    let Some((_, status)) = WORDS.iter().find(|(theirs, _)| theirs.eq_ignore_ascii_case(&word)) else {
        return Err(record.wrong("status", "one of pending, in_progress, completed, blocked", &json!(word)));
    };
    let status = own_fields.status.filter(|own| word_of(*own) == word_of(*status)).unwrap_or(*status);
    states::set(&mut task, status, None);
    task.priority = own_fields.priority.unwrap_or_default();
    keep_if_other(&mut kept, "status", json!(word), &json!(word_of(status)));
    let mut away = Vec::new();
    let links = record.map.remove("dependencies").unwrap_or_default();
    for raw in links.as_array().into_iter().flatten() {
        let on = text_of(raw.get("taskId").unwrap_or(raw));
        if let Some(on) = ids.get(&on) {
            task.dependencies.push(on.clone());
        } else {
            let why = format!("`{on}` is not in the file");
            left_out.push(LeftOut::new(format!("{name}: dependencies"), why));
            away.push(raw.clone());
        }
    }
    keep_away(&mut kept, "dependencies", away);
    kept.extend(record.map);
    keep(&mut task, FORMAT, kept);
    Ok(task)
}

fn word_of(status: Status) -> &'static str {
    match status {
        Status::Failed => "blocked",
        Status::Cancelled | Status::Skipped => "completed",
        Status::Todo | Status::InProgress | Status::Blocked | Status::Done => {
            WORDS.iter().find(|(_, known)| *known == status).map_or("pending", |(word, _)| word)
        }
    }
}

/// Returns the status that an import of a word reads.
fn plain(status: Status) -> Status {
    let word = word_of(status);
    WORDS.iter().find(|(theirs, _)| *theirs == word).map_or(status, |(_, status)| *status)
}

fn link(on: &str) -> Value {
    json!({ "taskId": on })
}

pub(crate) fn write(tasks: &[Task], document: &ExistingDocument<'_>) -> Written {
    let (name, text) = document.files.first();
    let name = if name.is_empty() { "tasks.json" } else { name };
    let mut written = Written::default();
    unsupported::say(tasks, FIELDS, "Shrimp has no place for it", &mut written.left_out);
    let mut file = match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(file)) => file,
        _ => Map::new(),
    };
    let elements = file.get("tasks").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut raw: BTreeMap<String, (usize, &Map)> = BTreeMap::new();
    for (place, value) in elements.iter().enumerate() {
        if let Some((id, map)) = value.get("id").map(text_of).zip(value.as_object()) {
            raw.entry(id).or_insert((place, map));
        }
    }
    // The tools of Shrimp refuse ids that are no UUIDs of version 4.
    let candidate = |task: &Task, attempt: u64| {
        let kept = kept(task, FORMAT);
        uuids::of(task, kept.get("id").and_then(Value::as_str), attempt, 4)
    };
    let names = document.names_of(tasks, candidate, raw.keys().cloned().collect());
    written.names = names.iter().map(|(id, name)| ((*id).clone(), name.clone())).collect();
    let said: BTreeMap<&TaskId, String> =
        document.tasks.iter().map(|task| &task.id).zip(document.names.iter().cloned()).collect();
    let mut list = Vec::new();
    for task in document.in_order(tasks) {
        let now = record_of(task, &names, &mut written.left_out);
        let before = document.task(&task.id).map(|task| record_of(task, &said, &mut Vec::new()));
        let found = raw.get(&names[&task.id]).zip(before);
        list.push(match found {
            Some(((place, raw), before)) => {
                (Some(*place), Value::Object(existing_document::over(raw, &before, &now, &KINDS)))
            }
            None => (None, Value::Object(now)),
        });
    }
    let read: BTreeSet<usize> =
        document.names.iter().filter_map(|name| raw.get(name)).map(|(place, _)| *place).collect();
    let list = existing_document::with_unread(list, &elements, |place| read.contains(&place));
    file.insert("tasks".to_owned(), Value::Array(list));
    written.files.insert(name, json_text::over(text, &Value::Object(file)));
    written
}

fn record_of(task: &Task, names: &BTreeMap<&TaskId, String>, left_out: &mut Vec<LeftOut>) -> Map {
    let (mut kept, mut out, own) = (kept(task, FORMAT), Map::new(), states::own(task));
    let name = &names[&task.id];
    let known = kept.remove("id").is_some_and(|id| id == *name);
    out.insert("id".to_owned(), json!(name));
    out.insert("name".to_owned(), json!(task.name));
    out.insert("description".to_owned(), json!(task.description));
    put(&mut out, &mut kept, "status", json!(word_of(own)), |raw| {
        raw.as_str().is_some_and(|raw| raw.eq_ignore_ascii_case(word_of(own)))
    });
    let mut on = Vec::new();
    for other in &task.dependencies {
        if let Some(name) = names.get(other) {
            on.push(link(name));
        } else {
            let why = format!("`{other}` is not exported");
            left_out.push(LeftOut::new(format!("{}: dependencies", task.id), why));
        }
    }
    on.extend(take_away(&mut kept, "dependencies"));
    out.insert("dependencies".to_owned(), Value::Array(on));
    let finished = (own == Status::Done).then(|| task.finished_at.unwrap_or(task.updated_at));
    let times = [
        ("createdAt", Some(task.created_at)),
        ("updatedAt", Some(task.updated_at)),
        ("completedAt", finished),
    ];
    for (field, at) in times {
        put(&mut out, &mut kept, field, json!(at.map(format_time)), |raw| {
            raw.as_str().and_then(rfc3339) == at
        });
    }
    let has_id = known || task.id.as_str() == name;
    if let Some(text) = OwnFields::of(task, has_id, plain(own), Priority::Medium).text() {
        out.insert(NAME.to_owned(), json!(text));
    }
    put_rest(&mut out, kept);
    out
}
