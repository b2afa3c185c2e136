//! Issues of GitHub, as `gh issue list --json number,title,body,state,…` prints them. They are only read.

use serde_json::{Value, json};
use taskpawl_model::task::{Status, Task};
use taskpawl_model::value::Map;

use crate::error::Position;
use crate::faults::Faults;
use crate::files::Files;
use crate::items::{Item, Items};
use crate::own_fields::OwnFields;
use crate::preserved::keep;
use crate::reading::{Options, Reading};
use crate::record::{Read, Record, blank, set_option, whole};
use crate::states;
use crate::times::rfc3339;

const FORMAT: &str = "github";

const FIELDS: &[&str] = &[
    "name",
    "description",
    "status",
    "error",
    "labels",
    "assignee",
    "createdAt",
    "updatedAt",
    "finishedAt",
    "metadata.github",
];

pub(crate) fn is_one(text: &str) -> bool {
    let Ok(Value::Array(list)) = serde_json::from_str(text) else { return false };
    list.first().is_some_and(|issue| {
        issue.get("number").is_some_and(Value::is_number) && issue.get("title").is_some_and(Value::is_string)
    })
}

pub(crate) fn read(files: &Files, options: &Options, faults: &mut Faults) -> Read<Reading> {
    let (file, text) = files.first();
    let mut place = Position::of(file);
    let Value::Array(list) = whole(text, &mut place)? else {
        return Err(place.error(
            "",
            "expected a list",
            "`gh issue list --json number,title,state` prints one",
        ));
    };
    let mut items = Items::new(options, faults);
    for (number, value) in list.into_iter().enumerate() {
        let place = place.element(None, number, format!("issue {}", number + 1));
        let record = Record::new(value, place.clone()).and_then(|mut record| {
            let name = record.id("number")?;
            Ok((record, name, OwnFields::default()))
        });
        items.add(&place, record, |record| {
            record.place.error("number", "it occurs twice", "remove one of the two")
        });
    }
    Ok(items.resolve(FIELDS, Some(("updatedAt", rfc3339)), |item, _, _| task(item, options)))
}

fn task(item: Item, options: &Options) -> Read<Task> {
    let Item { mut record, id, .. } = item;
    let mut task = blank(id, record.title("title")?, options.now);
    task.description = record.text("body")?.unwrap_or_default();
    set_option(&mut task, "labels", names(record.objects("labels")?, "name")?);
    let people = names(record.objects("assignees")?, "login")?;
    if let Some(first) = people.first() {
        set_option(&mut task, "assignee", first.as_str());
    }
    if let Some((at, _)) = record.time("createdAt", rfc3339)? {
        (task.created_at, task.updated_at) = (at, at);
    }
    if let Some((at, _)) = record.time("updatedAt", rfc3339)? {
        task.updated_at = at;
    }
    task.finished_at = record.time("closedAt", rfc3339)?.map(|(at, _)| at);
    read_state(&mut record, &mut task)?;
    let mut kept: Map = record.map;
    if people.len() > 1 {
        kept.insert("assignees".to_owned(), json!(people));
    }
    keep(&mut task, FORMAT, kept);
    Ok(task)
}

fn names(list: Vec<Record>, field: &str) -> Read<Vec<String>> {
    list.into_iter().map(|mut record| record.title(field)).collect()
}

fn read_state(record: &mut Record, task: &mut Task) -> Read<()> {
    let word = record.text("state")?.unwrap_or_else(|| "OPEN".to_owned());
    let reason = record.text("stateReason")?.unwrap_or_default().to_uppercase();
    let (status, why) = match (word.to_uppercase().as_str(), reason.as_str()) {
        ("OPEN", _) => (Status::Todo, None),
        ("CLOSED", "NOT_PLANNED") => (Status::Cancelled, Some("not planned")),
        ("CLOSED", "DUPLICATE") => (Status::Cancelled, Some("a duplicate")),
        ("CLOSED", _) => (Status::Done, None),
        _ => return Err(record.wrong("state", "OPEN or CLOSED", &json!(word))),
    };
    states::set(task, status, why);
    Ok(())
}
