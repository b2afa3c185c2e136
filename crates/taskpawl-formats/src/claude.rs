//! Task files of Claude: `~/.claude/tasks/<list>/<id>.json`, one per task. Older to-do lists are one file each.

mod write;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taskpawl_model::task::{Status, Task};
use taskpawl_model::value::{Map, TaskId, Timestamp};

use crate::content::{self, ContentItem};
use crate::error::Position;
use crate::faults::Faults;
use crate::files::Files;
use crate::ids::Ids;
use crate::items::{Item, Items};
use crate::links;
use crate::own_fields::{NAME, OwnFields};
use crate::preserved::{add_away, keep, keep_away, keep_if_other};
use crate::reading::{LeftOut, Options, Reading};
use crate::record::{Read, Record, blank, set_option, whole};
use crate::states;

pub(crate) use write::{files_of, write};

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

/// Returns true if the text may be a task file that is broken or lacks a field.
pub(crate) fn is_faulty(text: &str) -> bool {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => map.contains_key("id"),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => false,
        Err(_) => true,
    }
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
        let mut place = Position::of(file);
        let value = match whole(text, &mut place) {
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

fn read_tasks(records: Vec<Record>, options: &Options, faults: &mut Faults) -> Reading {
    let mut items = Items::new(options, faults);
    for mut record in records {
        let place = record.place.clone();
        let name = record.id("id");
        let status = record.map.get("status").and_then(Value::as_str);
        if let Ok(name) = &name
            && status.is_some_and(|word| word.eq_ignore_ascii_case("deleted"))
        {
            items.left_out.push(LeftOut::new(name, "it was deleted there").at(place.file, None));
            continue;
        }
        let own_fields = OwnFields::take(&mut record.map);
        items.add(&place, name.map(|name| (record, name, own_fields)), |record| {
            let problem = format!("task `{}` occurs twice", record.place.record);
            record.place.error("id", problem, "remove one of the two files")
        });
    }
    let mut blocks = Vec::new();
    let mut reading = items.resolve(FIELDS, None, |item, ids, reading| {
        task(item, ids, options, &mut blocks, &mut reading.left_out)
    });
    let places: BTreeMap<TaskId, usize> =
        reading.tasks.iter().enumerate().map(|(place, task)| (task.id.clone(), place)).collect();
    // A dependency may stand in `blockedBy` of one task or in `blocks` of the other.
    for (on, name) in blocks {
        let place = items.ids.get(&name).and_then(|id| places.get(id));
        let task = place.map(|place| &mut reading.tasks[*place]);
        if let Some(task) = task.filter(|_| places.contains_key(&on)) {
            task.dependencies.push(on);
        }
    }
    links::settle(&mut reading, |task, on| add_away(task, FORMAT, "blockedBy", json!(on)));
    reading
}

fn task(
    mut item: Item,
    ids: &Ids<'_>,
    options: &Options,
    blocks: &mut Vec<(TaskId, String)>,
    left_out: &mut Vec<LeftOut>,
) -> Read<Task> {
    let (mut task, mut kept) = item.begin("subject", "id", options.now)?;
    let Item { mut record, own_fields, name, .. } = item;
    task.description = record.text("description")?.unwrap_or_default();
    if let Some(owner) = record.text("owner")? {
        set_option(&mut task, "assignee", owner);
    }
    read_status(&mut record, &mut task, &own_fields, &mut kept)?;
    read_form(&mut record, &mut task, &mut kept)?;
    let (on, away) = present(record.texts("blockedBy")?, ids);
    task.dependencies.extend(on.iter().filter_map(|on| ids.get(on)).cloned());
    let (others, beyond) = present(record.texts("blocks")?, ids);
    blocks.extend(others.into_iter().map(|other| (task.id.clone(), other)));
    for (field, away) in [("blockedBy", away), ("blocks", beyond)] {
        let said = |on: &String| LeftOut::new(format!("{name}: {field}"), format!("`{on}` is not there"));
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
    record.check(&[])?;
    kept.extend(record.map);
    keep(&mut task, FORMAT, kept);
    Ok((task, own_fields))
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
