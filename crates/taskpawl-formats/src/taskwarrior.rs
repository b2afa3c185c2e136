//! The output of Taskwarrior's `task export`, which `task import` reads.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::task::{Note, Priority, Status, Task};
use taskpawl_model::value::TaskId;
use taskpawl_model::value::{Map, Timestamp};

use crate::error::{Position, Step};
use crate::existing_document::{self, ExistingDocument, Kinds};
use crate::faults::{Faults, leave_out_conflicts};
use crate::files::Files;
use crate::ids::{Ids, hash};
use crate::json_text;
use crate::lines::{self, Line};
use crate::links;
use crate::own_fields::{NAME, OwnFields};
use crate::preserved::{add_away, keep, keep_away, keep_if_other, kept, put, put_rest, take_away};
use crate::reading::{LeftOut, Options, Reading, Written};
use crate::record::{
    Read, Record, Times, Unresolved, blank, option, option_list, resolve, set_option, whole,
};
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

#[derive(Clone)]
struct Item {
    record: Record,
    id: TaskId,
    own_fields: OwnFields,
    theirs: String,
}

impl Unresolved for Item {
    fn key(&self) -> String {
        self.theirs.clone()
    }

    fn place(&self) -> &Position {
        &self.record.place
    }
}

pub(crate) fn read(files: &Files, options: &Options, faults: &mut Faults) -> Read<Reading> {
    let (file, text) = files.first();
    let (mut ids, mut items) = (Ids::new(options), Vec::new());
    for (place, record) in records(file, text, faults)? {
        match record.and_then(|record| item(record, &mut ids)) {
            Ok(item) => items.push(item),
            Err(error) => faults.add(error, &place),
        }
    }
    let mut reading = resolve(items, &mut ids, faults, FIELDS, |item, ids, reading| {
        let (name, record) = (item.theirs.clone(), ids.record(&item.theirs));
        let changed_at = item.record.map.get(TIMES.changed).and_then(|at| parse(at.as_str()?));
        let task = task(item, ids, options, &mut reading.left_out)?;
        reading.push(task, name, record, changed_at);
        Ok(())
    });
    links::settle(&mut reading, |task, on| add_away(task, FORMAT, "depends", json!(on)));
    Ok(reading)
}

fn item(mut record: Record, ids: &mut Ids<'_>) -> Read<Item> {
    let theirs = record.id("uuid")?;
    let own_fields = record.text(NAME)?.map(|text| OwnFields::parse(&text)).unwrap_or_default();
    let Some(id) = ids.add(&theirs, own_fields.id.as_deref()) else {
        let problem = format!("task `{theirs}` is there twice; the first one counts");
        return Err(record.place.error("uuid", problem, "remove one of the two"));
    };
    let own_fields = own_fields.settle(&id);
    Ok(Item { record, id, own_fields, theirs })
}

/// Returns true if the text is a list. Otherwise it has one task per line, as some settings of Taskwarrior print it.
fn is_list(text: &str) -> bool {
    text.trim_start().starts_with('[')
}

fn records(file: &str, text: &str, faults: &mut Faults) -> Read<Vec<(Position, Read<Record>)>> {
    let place = Position::of(file);
    let mut records = Vec::new();
    if is_list(text) {
        let value: Value = whole(text, &place)?;
        let Value::Array(list) = value else { return Ok(records) };
        for (number, value) in list.into_iter().enumerate() {
            let place = place.element(None, number, format!("task {}", number + 1));
            records.push((place.clone(), Record::new(value, place)));
        }
        return Ok(records);
    }
    let is_in_conflict = leave_out_conflicts(file, text, faults);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim().trim_end_matches(',');
        if line.is_empty() || is_in_conflict(number) {
            continue;
        }
        let place = Position { line: Some(number), record: format!("line {number}"), ..place.clone() };
        let value = taskpawl_json::read(line).map_err(|error| place.json(&error, number));
        records.push((place.clone(), value.and_then(|value| Record::new(value, place))));
    }
    Ok(records)
}

fn task(item: Item, ids: &Ids<'_>, options: &Options, left_out: &mut Vec<LeftOut>) -> Read<Task> {
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
            (None, Some(Step::Element(element))) => *element,
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
    let own = task.id.as_str();
    let numbered = format!("{own}#{attempt}");
    let id = if attempt == 0 { own } else { numbered.as_str() };
    if attempt == 0 {
        if let Some(uuid) = kept(task, FORMAT).get("uuid").and_then(Value::as_str) {
            return uuid.to_owned();
        }
        if is_uuid(id) {
            return id.to_owned();
        }
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
