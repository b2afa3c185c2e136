//! The output of Taskwarrior's `task export`, which `task import` reads.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taskpawl_model::task::{Note, Priority, Status, Task};
use taskpawl_model::value::TaskId;
use taskpawl_model::value::{Map, Timestamp};

use crate::error::Position;
use crate::existing_document::{self, ExistingDocument, Kinds};
use crate::files::Files;
use crate::format::{LeftOut, Options, Reading, Written};
use crate::ids::{Ids, hash};
use crate::json_text;
use crate::lines::{self, Line};
use crate::own_fields::{NAME, OwnFields};
use crate::preserved::{keep, keep_away, keep_if_other, kept, put, put_rest, take_away};
use crate::record::{Read, Record, Times, blank, fields, option, option_list, set_option};
use crate::states;
use crate::times::{compact, rfc3339, to_compact};
use crate::unsupported;

const FORMAT: &str = "taskwarrior";

const FIELDS: &[&str] = &[
    "name",
    "status",
    "priority",
    "dueDate",
    "labels",
    "dependencies",
    "notes",
    "createdAt",
    "updatedAt",
    "startedAt",
    "finishedAt",
    "metadata.taskwarrior",
];

const KINDS: Kinds =
    Kinds { made: "entry", changed: "modified", of_state: &["end"], links: &["depends"], repeats: &[] };

const TIMES: Times = Times {
    made: "entry",
    changed: "modified",
    started: "start",
    ended: "end",
    due: "due",
    parse,
    print: to_compact,
};

const PROGRAM: &str = "Taskwarrior";

/// The author of annotations, which have no author in Taskwarrior.
const ANNOTATOR: &str = "taskwarrior";

pub(crate) fn is_one(text: &str) -> bool {
    let first = match serde_json::from_str(text) {
        Ok(Value::Array(list)) => list.into_iter().next(),
        Ok(value) => Some(value),
        Err(_) => text.lines().next().and_then(|line| serde_json::from_str(line.trim_end_matches(',')).ok()),
    };
    first.is_some_and(|task| task.get("uuid").is_some() && task.get("description").is_some())
}

struct Item {
    record: Record,
    id: TaskId,
    own_fields: OwnFields,
    theirs: String,
}

pub(crate) fn read(files: &Files, options: &Options) -> Read<Reading> {
    let (file, text) = files.first();
    let mut reading = Reading { fields: fields(FIELDS), ..Reading::default() };
    let (mut ids, mut items) = (Ids::new(options.prefix.as_ref()), Vec::new());
    for mut record in records(file, text)? {
        let theirs = record.id("uuid")?;
        let own_fields = record.text(NAME)?.map(|text| OwnFields::parse(&text)).unwrap_or_default();
        let Some(id) = ids.add(&theirs, own_fields.id.as_deref()) else {
            let problem = format!("task `{theirs}` is there twice");
            return Err(record.place.error("uuid", problem, "remove one of the two"));
        };
        let own_fields = own_fields.settle(&id);
        items.push(Item { record, id, own_fields, theirs });
    }
    for item in items {
        reading.names.push(item.theirs.clone());
        reading.tasks.push(task(item, &ids, options, &mut reading.left_out)?);
    }
    Ok(reading)
}

/// Returns true if the text is a list. Otherwise it has one task per line, as some settings of Taskwarrior print it.
fn is_list(text: &str) -> bool {
    text.trim_start().starts_with('[')
}

fn records(file: &str, text: &str) -> Read<Vec<Record>> {
    let place = Position::of(file);
    let mut records = Vec::new();
    if is_list(text) {
        let value: Value = taskpawl_json::read(text).map_err(|error| place.json(&error, 1))?;
        for (number, value) in (1..).zip(value.as_array().into_iter().flatten()) {
            records.push(Record::new(
                value.clone(),
                Position { record: format!("task {number}"), ..place.clone() },
            )?);
        }
        return Ok(records);
    }
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim().trim_end_matches(',');
        if line.is_empty() {
            continue;
        }
        let place = Position { line: Some(number), ..place.clone() };
        let value = taskpawl_json::read(line).map_err(|error| place.json(&error, number))?;
        records.push(Record::new(value, place)?);
    }
    Ok(records)
}

fn task(item: Item, ids: &Ids, options: &Options, left_out: &mut Vec<LeftOut>) -> Read<Task> {
    let Item { mut record, id, own_fields, theirs } = item;
    let mut task = blank(id, record.title("description")?, options.now);
    let mut kept = Map::new();
    if own_fields.id.is_none() && task.id.as_str() != theirs {
        kept.insert("uuid".to_owned(), json!(theirs));
    }
    // `id` is a position in the current list, and `urgency` depends on the time. Taskwarrior computes both.
    record.map.remove("id");
    record.map.remove("urgency");
    record.times(&TIMES, &mut task, &mut kept)?;
    read_status(&mut record, &mut task, &own_fields, options.now, &mut kept)?;
    read_priority(&mut record, &mut task, &own_fields, &mut kept)?;
    let tags = match record.map.get("tags") {
        Some(Value::String(_)) => vec![record.text("tags")?.unwrap_or_default()],
        _ => record.texts("tags")?,
    };
    set_option(&mut task, "labels", tags);
    let mut away = Vec::new();
    for on in depends(&mut record)? {
        match ids.get(&on) {
            Some(on) if !task.dependencies.contains(on) => task.dependencies.push(on.clone()),
            Some(_) => {}
            None => {
                left_out
                    .push(LeftOut::new(format!("{theirs}: depends"), format!("`{on}` is not in the file")));
                away.push(json!(on));
            }
        }
    }
    keep_away(&mut kept, "depends", away);
    for mut note in record.objects("annotations")? {
        let at = note.time("entry", parse)?.map_or(task.created_at, |(at, _)| at);
        let text = note.text("description")?.unwrap_or_default();
        task.notes.push(Note { at, actor: ANNOTATOR.to_owned(), text });
    }
    kept.extend(record.map);
    keep(&mut task, FORMAT, kept);
    Ok(task)
}

fn parse(text: &str) -> Option<Timestamp> {
    compact(text).or_else(|| rfc3339(text))
}

/// Takes the dependencies. Earlier versions wrote them as one string with commas.
fn depends(record: &mut Record) -> Read<Vec<String>> {
    match record.map.get("depends") {
        Some(Value::String(_)) => {
            let text = record.text("depends")?.unwrap_or_default();
            Ok(text.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect())
        }
        _ => record.texts("depends"),
    }
}

fn read_status(
    record: &mut Record,
    task: &mut Task,
    own_fields: &OwnFields,
    now: Timestamp,
    kept: &mut Map,
) -> Read<()> {
    let word = record.text("status")?.unwrap_or_else(|| "pending".to_owned());
    let is_started = task.started_at.is_some();
    let Some(status) = status_of(&word, is_started) else {
        let known = "one of pending, waiting, completed, deleted, recurring";
        return Err(record.wrong("status", known, &json!(word)));
    };
    let status = own_fields.status.filter(|own| plain(*own, is_started) == status).unwrap_or(status);
    if let Some(until) = wait(&record.map).filter(|until| status == Status::Todo && *until > now) {
        // A waiting task must not start yet.
        states::set(task, Status::Blocked, Some(&states::put_off(until, PROGRAM)));
    } else {
        let why = (word == "recurring").then_some("the template of a recurring task of Taskwarrior");
        states::set(task, status, why);
    }
    keep_if_other(kept, "status", json!(word), &json!(word_of(status)));
    Ok(())
}

/// Returns the time until which a task is hidden.
fn wait(record: &Map) -> Option<Timestamp> {
    record.get("wait")?.as_str().and_then(parse)
}

fn status_of(word: &str, is_started: bool) -> Option<Status> {
    match word {
        "pending" if is_started => Some(Status::InProgress),
        "pending" | "waiting" => Some(Status::Todo),
        "completed" => Some(Status::Done),
        "deleted" => Some(Status::Cancelled),
        "recurring" => Some(Status::Blocked),
        _ => None,
    }
}

fn word_of(status: Status) -> &'static str {
    match status {
        Status::Todo | Status::InProgress | Status::Blocked | Status::Failed => "pending",
        Status::Done => "completed",
        Status::Cancelled | Status::Skipped => "deleted",
    }
}

fn plain(status: Status, is_started: bool) -> Status {
    status_of(word_of(status), is_started).unwrap_or(Status::Todo)
}

fn read_priority(record: &mut Record, task: &mut Task, own_fields: &OwnFields, kept: &mut Map) -> Read<()> {
    let word = record.text("priority")?;
    task.priority = priority_of(word.as_deref());
    if let Some(priority) =
        own_fields.priority.filter(|priority| priority_of(letter_of(*priority)) == task.priority)
    {
        task.priority = priority;
    }
    if let Some(word) = word {
        keep_if_other(kept, "priority", json!(word), &json!(letter_of(task.priority)));
    }
    Ok(())
}

fn priority_of(word: Option<&str>) -> Priority {
    match word {
        Some("H") => Priority::High,
        Some("L") => Priority::Low,
        _ => Priority::Medium,
    }
}

fn letter_of(priority: Priority) -> Option<&'static str> {
    match priority {
        Priority::Critical | Priority::High => Some("H"),
        Priority::Medium => None,
        Priority::Low => Some("L"),
    }
}

pub(crate) fn write(tasks: &[Task], document: &ExistingDocument<'_>) -> Written {
    let (name, text) = document.files.first();
    let name = if name.is_empty() { "taskwarrior.json" } else { name };
    let mut written = Written::default();
    unsupported::say(tasks, FIELDS, "Taskwarrior has no place for it", &mut written.left_out);
    let uuids = |tasks: &'_ [Task]| -> BTreeMap<TaskId, String> {
        tasks.iter().map(|task| (task.id.clone(), uuid_of(task, document))).collect()
    };
    let (theirs, said) = (uuids(tasks), uuids(document.tasks));
    let raw = raw_records(name, text);
    let mut list = Vec::new();
    for task in document.in_order(tasks) {
        let now = record_of(task, &theirs, &mut written.left_out);
        let before = document.task(&task.id).map(|task| record_of(task, &said, &mut Vec::new()));
        let uuid = &theirs[&task.id];
        let record = match raw.get(uuid).zip(before) {
            Some((raw, before)) => existing_document::over(raw, &before, &now, &KINDS),
            None => now,
        };
        list.push((uuid.clone(), Value::Object(record)));
    }
    let text = if is_list(text) || raw.is_empty() { list_of(list, text) } else { lines_of(list, text) };
    written.files.insert(name, text);
    written
}

/// Returns the records of a file by their UUIDs.
fn raw_records(name: &str, text: &str) -> BTreeMap<String, Map> {
    let record = |record: Record| Some((record.clone().id("uuid").ok()?, record.map));
    records(name, text).unwrap_or_default().into_iter().filter_map(record).collect()
}

/// Returns tasks as a list. A new list has one task per line.
fn list_of(list: Vec<(String, Value)>, text: &str) -> String {
    let list = Value::Array(list.into_iter().map(|(_, record)| record).collect());
    json_text::over(if is_list(text) { text } else { "[\n]\n" }, &list)
}

/// Returns tasks as lines, with commas between them if the existing lines have them.
fn lines_of(list: Vec<(String, Value)>, text: &str) -> String {
    let has_commas = text.lines().any(|line| line.trim_end().ends_with(','));
    let mut left: BTreeMap<String, Value> = list.iter().cloned().collect();
    let mut lines = Vec::new();
    for (line, end) in lines::parts(text) {
        let bare = line.trim().trim_end_matches(',');
        let (lead, tail) = line.split_once(bare).unwrap_or_default();
        let record =
            serde_json::from_str(bare).ok().and_then(|value| Record::new(value, Position::default()).ok());
        let record = match record.and_then(|mut record| record.id("uuid").ok()) {
            Some(uuid) => {
                left.remove(&uuid).map(|record| format!("{lead}{}{tail}", json_text::over(bare, &record)))
            }
            None => Some(line.to_owned()),
        };
        lines.extend(record.map(|record| Line::document(record, end)));
    }
    for (_, record) in list.into_iter().filter(|(uuid, _)| left.contains_key(uuid)) {
        if let Some(last) = lines.last_mut().filter(|last| has_commas && !last.text.trim_end().ends_with(','))
        {
            last.text.push(',');
        }
        lines.push(Line::new(record.to_string()));
    }
    lines::joined(&lines, text)
}

/// Returns the UUID of a task. An id that is no UUID is hashed, so that every export gives the same one.
fn uuid_of(task: &Task, document: &ExistingDocument<'_>) -> String {
    if let Some(name) = document.name(&task.id) {
        return name.to_owned();
    }
    let kept = kept(task, FORMAT);
    if let Some(uuid) = kept.get("uuid").and_then(Value::as_str) {
        return uuid.to_owned();
    }
    let id = task.id.as_str();
    if is_uuid(id) {
        return id.to_owned();
    }
    // A hash has no version of its own: these bits make it a valid UUID of version 8, which is free for such uses.
    let (high, low) = (hash(id), hash(&format!("{id}/")));
    let (version, variant) = (0x8000 | (high & 0x0fff), 0x8000 | ((low >> 48) & 0x3fff));
    format!(
        "{:08x}-{:04x}-{version:04x}-{variant:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        low & 0xffff_ffff_ffff
    )
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| part.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c)))
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
        Status::Todo | Status::Blocked | Status::Failed => None,
        Status::Done | Status::Cancelled | Status::Skipped => task.started_at,
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
