//! Task files of Claude: `~/.claude/tasks/<list>/<id>.json`, one per task. Older to-do lists are one file each.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::task::{Priority, Status, Task};
use taskpawl_model::value::{Map, TaskId, Timestamp};

use crate::content::{self, ContentItem};
use crate::error::Position;
use crate::existing_document::{self, ExistingDocument, Kinds};
use crate::faults::Faults;
use crate::files::Files;
use crate::ids::{Ids, Names};
use crate::json_text;
use crate::links;
use crate::own_fields::{NAME, OwnFields, put_text, take_text};
use crate::preserved::{add_away, keep, keep_away, keep_if_other, kept, put, put_rest, take_away};
use crate::reading::{LeftOut, Options, Reading, Written};
use crate::record::{Read, Record, Unresolved, blank, option, resolve, set_option, whole};
use crate::states;
use crate::unsupported;

const FORMAT: &str = "claude";

const FIELDS: &[&str] = &["name", "description", "status", "assignee", "dependencies", "metadata.claude"];

/// Fields of a task file with a meaning of their own. Others are preserved.
const TASK_FIELDS: &[&str] = &["id", "subject", "description", "status", "owner", "blocks", "blockedBy"];

/// The member of the preserved fields for those fields of a to-do that would have a meaning in a task file.
const TODO: &str = "todo";

const TODO_FIELDS: &[&str] = &["name", "status", "metadata.claude"];

/// Returns true if the text is a task file.
pub(crate) fn is_task(text: &str) -> bool {
    let Ok(Value::Object(map)) = serde_json::from_str(text) else { return false };
    map.contains_key("subject") && map.contains_key("status") && map.contains_key("id")
}

pub(crate) fn is_one(text: &str) -> bool {
    let is_todo = |value: &Value| value.get("content").is_some() && value.get("status").is_some();
    match serde_json::from_str(text) {
        Ok(Value::Array(list)) => list.first().is_some_and(is_todo),
        Ok(Value::Object(_)) => is_task(text),
        _ => false,
    }
}

pub(crate) fn read(files: &Files, options: &Options, faults: &mut Faults) -> Read<Reading> {
    let mut records = Vec::new();
    let is_one = files.iter().nth(1).is_none();
    for (file, text) in files.iter() {
        let place = Position::of(file);
        let value = match whole(text, &place) {
            Ok(value) => value,
            Err(error) if is_one => return Err(error),
            Err(error) => {
                faults.add_line(error);
                continue;
            }
        };
        if let (Value::Array(list), true) = (&value, is_one) {
            return Ok(read_todos(list.clone(), &place, options, faults));
        }
        match Record::new(value, place) {
            Ok(record) => records.push(record),
            Err(error) => faults.add_line(error),
        }
    }
    Ok(read_tasks(records, options, faults))
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

fn read_tasks(records: Vec<Record>, options: &Options, faults: &mut Faults) -> Reading {
    let (mut ids, mut items, mut left_out) = (Ids::new(options), Vec::new(), Vec::new());
    let mut seen: BTreeMap<String, Position> = BTreeMap::new();
    for mut record in records {
        let theirs = match record.id("id") {
            Ok(theirs) => theirs,
            Err(error) => {
                faults.add_line(error);
                continue;
            }
        };
        if record.map.get("status").and_then(Value::as_str) == Some("deleted") {
            left_out.push(LeftOut::new(theirs, "it was deleted there").at(record.place.file, None));
            continue;
        }
        let own_fields = take_ours(&mut record);
        let Some(id) = ids.add(&theirs, own_fields.id.as_deref()) else {
            let problem = format!("task `{theirs}` is there twice");
            let error = record.place.error("id", problem, "remove one of the two files");
            faults.add_twice(error, &record.place, seen.get(&theirs));
            continue;
        };
        seen.insert(theirs.clone(), record.place.clone());
        let own_fields = own_fields.settle(&id);
        items.push(Item { record, id, own_fields, theirs });
    }
    let blocks = RefCell::new(Vec::new());
    let mut reading = resolve(items, &mut ids, faults, FIELDS, |item, ids, reading| {
        let (name, record) = (item.theirs.clone(), ids.record(&item.theirs));
        let task = task(item, ids, options, &mut blocks.borrow_mut(), &mut reading.left_out)?;
        reading.push(task, name, record, None);
        Ok(())
    });
    let places: BTreeMap<TaskId, usize> =
        reading.tasks.iter().enumerate().map(|(place, task)| (task.id.clone(), place)).collect();
    // A dependency may stand in `blockedBy` of one task or in `blocks` of the other.
    for (on, theirs) in blocks.into_inner() {
        let place = ids.get(&theirs).and_then(|id| places.get(id));
        let task = place.map(|place| &mut reading.tasks[*place]);
        if let Some(task) = task.filter(|task| places.contains_key(&on) && !task.dependencies.contains(&on)) {
            task.dependencies.push(on);
        }
    }
    left_out.append(&mut reading.left_out);
    reading.left_out = left_out;
    links::settle(&mut reading, |task, on| add_away(task, FORMAT, "blockedBy", json!(on)));
    reading
}

fn take_ours(record: &mut Record) -> OwnFields {
    take_text(&mut record.map).map(|text| OwnFields::parse(&text)).unwrap_or_default()
}

fn task(
    item: Item,
    ids: &Ids<'_>,
    options: &Options,
    blocks: &mut Vec<(TaskId, String)>,
    left_out: &mut Vec<LeftOut>,
) -> Read<Task> {
    let Item { mut record, id, own_fields, theirs } = item;
    let mut task = blank(id, record.title("subject")?, options.now);
    let mut kept = Map::new();
    if own_fields.id.is_none() && task.id.as_str() != theirs {
        kept.insert("id".to_owned(), json!(theirs));
    }
    task.description = record.text("description")?.unwrap_or_default();
    if let Some(owner) = record.text("owner")? {
        set_option(&mut task, "assignee", owner);
    }
    read_status(&mut record, &mut task, &own_fields, &mut kept)?;
    read_form(&mut record, &mut task, &mut kept)?;
    let (on, away) = present(record.texts("blockedBy")?, ids);
    for on in on.iter().filter_map(|on| ids.get(on)) {
        if !task.dependencies.contains(on) {
            task.dependencies.push(on.clone());
        }
    }
    let (others, beyond) = present(record.texts("blocks")?, ids);
    blocks.extend(others.into_iter().map(|other| (task.id.clone(), other)));
    for (field, away) in [("blockedBy", away), ("blocks", beyond)] {
        let said = |on: &String| LeftOut::new(format!("{theirs}: {field}"), format!("`{on}` is not there"));
        left_out.extend(away.iter().map(said));
        keep_away(&mut kept, field, away.into_iter().map(Value::String).collect());
    }
    kept.extend(record.map);
    keep(&mut task, FORMAT, kept);
    Ok(task)
}

/// Splits ids into those of tasks that were read and the rest.
fn present(list: Vec<String>, ids: &Ids<'_>) -> (Vec<String>, Vec<String>) {
    list.into_iter().partition(|id| ids.get(id).is_some())
}

fn read_status(record: &mut Record, task: &mut Task, own_fields: &OwnFields, kept: &mut Map) -> Read<()> {
    let word = record.text("status")?.unwrap_or_else(|| "pending".to_owned());
    let status = status_of(&word.to_lowercase())
        .ok_or_else(|| record.wrong("status", "one of pending, in_progress, completed", &json!(word)))?;
    let status = own_fields.status.filter(|own| word_of(*own) == word_of(status)).unwrap_or(status);
    states::set(task, status, None);
    task.priority = own_fields.priority.unwrap_or_default();
    keep_if_other(kept, "status", json!(word), &json!(word_of(status)));
    Ok(())
}

fn read_form(record: &mut Record, task: &mut Task, kept: &mut Map) -> Read<()> {
    if let Some(form) = record.text("activeForm")? {
        keep_if_other(kept, "activeForm", json!(form), &json!(task.name));
    }
    Ok(())
}

fn status_of(word: &str) -> Option<Status> {
    match word {
        "pending" | "open" => Some(Status::Todo),
        "in_progress" => Some(Status::InProgress),
        "completed" | "resolved" => Some(Status::Done),
        "cancelled" => Some(Status::Cancelled),
        _ => None,
    }
}

fn word_of(status: Status) -> &'static str {
    match status {
        Status::Todo | Status::Blocked | Status::Failed => "pending",
        Status::InProgress => "in_progress",
        Status::Done | Status::Cancelled | Status::Skipped => "completed",
    }
}

/// Returns the status that an export followed by an import leaves: Claude has fewer statuses.
fn plain(status: Status) -> Status {
    status_of(word_of(status)).unwrap_or(Status::Todo)
}

fn read_todos(list: Vec<Value>, place: &Position, options: &Options, faults: &mut Faults) -> Reading {
    let mut todos = Vec::new();
    for (number, value) in list.into_iter().enumerate() {
        let place = place.element(None, number, format!("to-do {}", number + 1));
        match Record::whole(value, place.clone()).and_then(todo) {
            Ok(todo) => todos.push((number, todo)),
            Err(error) => faults.add(error, &place),
        }
    }
    let items: Vec<ContentItem> = todos
        .iter()
        .map(|(_, (task, own_fields))| ContentItem {
            text: task.name.clone(),
            task: own_fields.id.clone(),
            ..ContentItem::default()
        })
        .collect();
    let mut ids = Ids::new(options);
    let found = content::find(&items, &mut ids);
    let mut reading = Reading { renamed: found.renamed, ..Reading::of(TODO_FIELDS) };
    for (((number, (task, _)), id), record) in todos.into_iter().zip(found.ids).zip(found.records) {
        let (created_at, updated_at) = (options.now, options.now);
        let task = Task { id, created_at, updated_at, ..task };
        // The name is the place in the list: an export finds the to-do there.
        reading.push(task, number.to_string(), record, None);
    }
    reading
}

/// Returns the task of a to-do, without its id.
fn todo(mut record: Record) -> Read<(Task, OwnFields)> {
    let own_fields = record.text(NAME)?.map(|text| OwnFields::parse(&text)).unwrap_or_default();
    let content = record.title("content")?;
    let mut task = blank(TaskId::from(""), content, Timestamp::default());
    let mut kept = Map::new();
    read_status(&mut record, &mut task, &own_fields, &mut kept)?;
    read_form(&mut record, &mut task, &mut kept)?;
    record.map = apart(record.map);
    // Checked after `apart`, which may add a level: a task file with these fields must be readable again.
    record.check_depth()?;
    kept.extend(record.map);
    keep(&mut task, FORMAT, kept);
    Ok((task, own_fields))
}

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
        present.insert(id, file.to_owned());
    }
    let theirs = names(tasks, &present, &own_fields, document);
    let mut written = Written::default();
    unsupported::say(tasks, FIELDS, "Claude has no place for it", &mut written.left_out);
    let records = records(&document.in_order(tasks), &theirs, &mut written.left_out);
    written.names = theirs.iter().map(|(id, name)| ((*id).clone(), name.clone())).collect();
    // Files of tasks that are not written stay.
    for (task, name) in document.tasks.iter().zip(document.names) {
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
    let is_wanted = |text: &str| ids_of(text).is_some_and(|(id, _)| ids.contains(id.as_str()));
    files.iter().filter(|(_, text)| is_wanted(text)).map(|(file, _)| file.to_owned()).collect()
}

/// Returns the id in a file, and the task id that an earlier export wrote into it.
fn ids_of(text: &str) -> Option<(String, Option<String>)> {
    let mut record = Record::new(serde_json::from_str(text).ok()?, Position::default()).ok()?;
    Some((record.id("id").ok()?, take_ours(&mut record).id))
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
    let files = present.values().map(|file| file.trim_end_matches(".json"));
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

/// Moves the fields that would have a meaning in a task file into [`TODO`]. In a to-do they have none.
fn apart(map: Map) -> Map {
    let means = |field: &str| field == TODO || TASK_FIELDS.contains(&field);
    let (apart, mut rest): (Map, Map) = map.into_iter().partition(|(field, _)| means(field));
    if !apart.is_empty() {
        rest.insert(TODO.to_owned(), Value::Object(apart));
    }
    rest
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
