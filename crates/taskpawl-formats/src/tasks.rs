//! `tasks.json` of taskpawl: tasks with a fixed set of fields, and any further fields that the file already has.

mod write;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::advice::Hint;
use taskpawl_model::task::{Status, Task};
use taskpawl_model::value::TaskId;
use taskpawl_model::value::{Map, format_time};

use crate::error::Position;
use crate::faults::Faults;
use crate::files::Files;
use crate::ids::Ids;
use crate::items::Items;
use crate::links;
use crate::own_fields::OwnFields;
use crate::reading::{LeftOut, Options, Reading};
use crate::record::{Read, Record, whole};
use crate::states;
use crate::times::rfc3339;
use crate::unsupported::NOT_TAKEN;

pub(crate) use write::write;

/// The fields that every task has, in output order. Of `metadata` only `toolCalls` and `context` are written.
const ALWAYS: &[&str] = &[
    "id",
    "name",
    "description",
    "status",
    "priority",
    "dependencies",
    "subtasks",
    "metadata",
    "createdAt",
    "updatedAt",
];

/// Fields that a file always determines: an absent one means the default.
const SAID: &[&str] = &[
    "name",
    "description",
    "status",
    "priority",
    "dependencies",
    "parent",
    "metadata.toolCalls",
    "metadata.context",
    "createdAt",
    "updatedAt",
];

const NO_PLACE: &str = "`tasks.json` has the fields that every task has";

/// Results of calls. Other tasks use them as input, so only calls that ran here may have them.
const RECORDED: &[&str] = &["result", "usage", "evaluatedArgs", "error", "errorClass", "artifacts"];

/// The error of a task that is imported as failed.
const FAILED_THERE: &str = "it failed where it was imported from";

/// Decisions about a call, and the state of a running one.
const DECIDED: &[&str] = &["granted", "due", "emitted", "asked"];

pub(crate) fn is_one(text: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return false };
    let first = list(&value).and_then(|(_, list)| list.first());
    first.is_some_and(|task| {
        task.get("name").is_some()
            && task.get("id").is_some()
            && (task.get("metadata").is_some() || task.get("status").is_some_and(is_status))
    })
}

fn is_status(word: &Value) -> bool {
    word.as_str().is_some_and(|word| Status::from_word(word).is_some())
}

/// Returns the tasks of a list, of an object with `tasks`, or of the output of `list --json`.
fn list(value: &Value) -> Option<(Option<&'static str>, &Vec<Value>)> {
    let field = |name: &'static str| Some((Some(name), value.get(name)?.as_array()?));
    let whole = value.as_array().map(|list| (None, list));
    whole.or_else(|| field("tasks")).or_else(|| field("data"))
}

pub(crate) fn read(files: &Files, options: &Options, faults: &mut Faults) -> Read<Reading> {
    let (file, text) = files.first();
    let mut place = Position::of(file);
    let value = whole(text, &mut place)?;
    let Some((field, list)) = list(&value) else {
        return Err(place.error(
            "tasks",
            "it is missing",
            "the file is a list of tasks, or an object with a list `tasks`",
        ));
    };
    let mut items = Items::new(options, faults);
    for (number, value) in list.iter().enumerate() {
        let place = place.element(field, number, format!("task {}", number + 1));
        let record = Record::new(value.clone(), place.clone()).and_then(|mut record| {
            let name = record.id("id")?;
            Ok((record, name, OwnFields::default()))
        });
        items.add(&place, record, |record| {
            record.place.error("id", "it occurs twice", "give one of the two another id")
        });
    }
    let mut said: BTreeSet<String> = SAID.iter().map(|field| (*field).to_owned()).collect();
    let mut reading = items.resolve(&[], Some(("updatedAt", rfc3339)), |item, ids, reading| {
        task(item.record, &item.id, ids, options, &mut said, &mut reading.left_out)
    });
    put_below(&mut reading, &items.ids, list);
    say_plans(list, &mut reading.left_out);
    reading.fields = said.into_iter().collect();
    links::settle(&mut reading, |_, _| ());
    Ok(reading)
}

fn task(
    mut record: Record,
    id: &TaskId,
    ids: &Ids<'_>,
    options: &Options,
    said: &mut BTreeSet<String>,
    left_out: &mut Vec<LeftOut>,
) -> Read<Task> {
    record.title("name").map(|name| record.map.insert("name".to_owned(), json!(name)))?;
    record.map.insert("id".to_owned(), json!(id));
    for field in ["createdAt", "updatedAt"] {
        let time = record.time(field, rfc3339)?.map_or(options.now, |(time, _)| time);
        record.map.insert(field.to_owned(), json!(format_time(time)));
    }
    if let Some((due, _)) = record.time("dueDate", rfc3339)? {
        record.map.insert("dueDate".to_owned(), json!(format_time(due)));
    }
    record.map.entry("status").or_insert_with(|| json!("todo"));
    let dependencies = others(&mut record, "dependencies", ids, left_out)?;
    record.map.insert("dependencies".to_owned(), json!(dependencies));
    let parent = record.text("parent")?.and_then(|parent| ids.get(&parent).cloned());
    record.map.insert("parent".to_owned(), json!(parent));
    record.map.remove("subtasks");
    record.map.remove("result");
    record.map.remove("errorClass");
    // The error of a cancelled task is a remark and is imported. That of a failed one is an input for other tasks, like a result.
    if record.map.get("status").and_then(Value::as_str) == Some(Status::Failed.as_str()) {
        record.map.remove("error");
    }
    complete_calls(&mut record)?;
    note_said(&record.map, said);
    for field in NOT_TAKEN.iter().filter(|field| !matches!(**field, "id" | "metadata")) {
        record.map.remove(*field);
    }
    let place = record.place.clone();
    let task: Task = serde_json::from_value(Value::Object(record.map)).map_err(|error| {
        place.error(
            "",
            error.to_string(),
            Hint::default().command("schema task").text(" shows the fields of a task"),
        )
    })?;
    let mut task = task;
    let status = task.status;
    if matches!(status, Status::InProgress | Status::Failed) {
        states::set(&mut task, status, Some(FAILED_THERE));
    }
    // Only for its errors: here the position in the file is still known.
    task.clone().into_parts().map_err(|error| {
        place.error(
            "",
            error.to_string(),
            Hint::default().command("schema task").text(" shows the fields of a task"),
        )
    })?;
    Ok(task)
}

fn others(record: &mut Record, field: &str, ids: &Ids<'_>, left_out: &mut Vec<LeftOut>) -> Read<Vec<TaskId>> {
    let mut found = Vec::new();
    for other in record.texts(field)? {
        if let Some(id) = ids.get(&other) {
            found.push(id.clone());
        } else {
            let what = format!("{}: {field}", record.place.record);
            left_out.push(LeftOut::new(what, format!("`{other}` is not in the file")));
        }
    }
    Ok(found)
}

/// Fills in omitted fields of calls. A file cannot set their origin, results and decisions.
fn complete_calls(record: &mut Record) -> Read<()> {
    let metadata = record.map.remove("metadata").unwrap_or_else(|| json!({}));
    let Value::Object(mut metadata) = metadata else {
        return Err(record.wrong("metadata", "an object", &metadata));
    };
    let calls = metadata.remove("toolCalls").unwrap_or_else(|| json!([]));
    let Value::Array(mut calls) = calls else {
        return Err(record.wrong("metadata.toolCalls", "a list of objects", &calls));
    };
    for (number, call) in (1..).zip(calls.iter_mut()) {
        let Value::Object(call) = call else {
            return Err(record.wrong("metadata.toolCalls", "a list of objects", call));
        };
        call.entry("id").or_insert_with(|| json!(format!("c{number}")));
        call.entry("status").or_insert_with(|| json!("pending"));
        call.insert("origin".to_owned(), json!("agent"));
        call.retain(|field, _| !DECIDED.contains(&field.as_str()) && !RECORDED.contains(&field.as_str()));
    }
    metadata.insert("toolCalls".to_owned(), Value::Array(calls));
    record.map.insert("metadata".to_owned(), Value::Object(metadata));
    Ok(())
}

fn note_said(map: &Map, said: &mut BTreeSet<String>) {
    said.extend(map.keys().filter(|field| !NOT_TAKEN.contains(&field.as_str())).cloned());
    let metadata = map.get("metadata").and_then(Value::as_object);
    said.extend(metadata.into_iter().flat_map(Map::keys).map(|field| format!("metadata.{field}")));
}

/// Reports the plans that the tasks of a file belong to. They are not imported: only `apply` creates plans.
fn say_plans(list: &[Value], left_out: &mut Vec<LeftOut>) {
    let plans: BTreeSet<&str> = list.iter().filter_map(|task| task.get("plan")?.as_str()).collect();
    let said =
        |plan| LeftOut::new(format!("plan: {plan}"), "the tasks come in without it: `apply` makes plans");
    left_out.extend(plans.into_iter().map(said));
}

/// Sets the parents of the tasks in `subtasks` lists: either side of the relation may name the other.
fn put_below(reading: &mut Reading, ids: &Ids<'_>, list: &[Value]) {
    let places: BTreeMap<TaskId, usize> =
        reading.tasks.iter().enumerate().map(|(place, task)| (task.id.clone(), place)).collect();
    for value in list {
        let Some(parent) = value.get("id").and_then(Value::as_str).and_then(|id| ids.get(id)) else {
            continue;
        };
        let Some(Value::Array(below)) = value.get("subtasks") else { continue };
        for other in below.iter().filter_map(Value::as_str) {
            let what = || format!("{parent}: subtasks");
            let Some(place) = ids.get(other).and_then(|id| places.get(id)) else {
                reading.left_out.push(LeftOut::new(what(), format!("`{other}` is not in the file")));
                continue;
            };
            match &reading.tasks[*place].parent {
                Some(before) if before != parent => {
                    let why = format!("`{other}` is below `{before}`, and a task is below one other task");
                    reading.left_out.push(LeftOut { is_fault: true, ..LeftOut::new(what(), why) });
                }
                _ => reading.tasks[*place].parent = Some(parent.clone()),
            }
        }
    }
}
