//! Writes tasks as `tasks.json` of taskpawl.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::task::Task;
use taskpawl_model::value::{Map, TaskId};

use super::{ALWAYS, NO_PLACE, list};
use crate::existing_document::{self, ExistingDocument, Kinds, text_of};
use crate::json_text;
use crate::reading::{LeftOut, Written};
use crate::unsupported::{self, NOT_TAKEN};

const KINDS: Kinds = Kinds {
    made: "createdAt",
    changed: "updatedAt",
    of_state: &["startedAt", "finishedAt"],
    links: &["dependencies", "subtasks"],
    repeats: &[],
};

pub(crate) fn write(tasks: &[Task], document: &ExistingDocument<'_>) -> Written {
    let (name, text) = document.files.first();
    let name = if name.is_empty() { "tasks.json" } else { name };
    let before = serde_json::from_str::<Value>(text).unwrap_or_default();
    let mut written = Written::default();
    let elements: Vec<Value> = list(&before).map(|(_, list)| list.clone()).unwrap_or_default();
    let mut raw: BTreeMap<String, (usize, Map)> = BTreeMap::new();
    for (place, value) in elements.iter().enumerate() {
        if let Some((id, map)) = value.get("id").map(text_of).zip(value.as_object()) {
            raw.entry(id).or_insert_with(|| (place, map.clone()));
        }
    }
    let read: BTreeSet<usize> =
        document.names.iter().filter_map(|name| raw.get(name)).map(|(place, _)| *place).collect();
    let (objects, said) = (Objects::of(tasks), Objects::of(document.tasks));
    let mut list = Vec::new();
    for task in document.in_order(tasks) {
        let raw = document.name(&task.id).and_then(|name| raw.get(name));
        let (place, raw) = (raw.map(|(place, _)| *place), raw.map(|(_, raw)| raw));
        let keeps = |field: &str| raw.is_some_and(|raw| raw.contains_key(field));
        let mut now = objects.object(task, keeps, &mut written.left_out);
        let before = document.task(&task.id).map(|task| said.object(task, keeps, &mut Vec::new()));
        let out = Value::Object(match raw.zip(before) {
            Some((raw, mut before)) => {
                // Such links are part of no task here. With them on both sides of the comparison they count as unchanged.
                for field in KINDS.links {
                    let away = links_away(raw, field, document);
                    add_links(&mut before, field, &away);
                    add_links(&mut now, field, &away);
                }
                existing_document::over(raw, &before, &now, &KINDS)
            }
            None => now,
        });
        let name = out.get("id").map(text_of).unwrap_or_default();
        written.names.insert(task.id.clone(), name);
        list.push((place, out));
    }
    let list = existing_document::with_unread(list, &elements, |place| read.contains(&place));
    unsupported::say_plans(tasks, NO_PLACE, &mut written.left_out);
    let whole = match before {
        Value::Array(_) => Value::Array(list),
        Value::Object(mut map) => {
            let field = if map.contains_key("data") && !map.contains_key("tasks") { "data" } else { "tasks" };
            map.insert(field.to_owned(), Value::Array(list));
            Value::Object(map)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => json!({ "tasks": list }),
    };
    written.files.insert(name, json_text::over(text, &whole));
    written
}

/// Returns the links of a record to tasks outside the file.
fn links_away(raw: &Map, field: &str, document: &ExistingDocument<'_>) -> Vec<Value> {
    let links = raw.get(field).and_then(Value::as_array).into_iter().flatten();
    links.filter(|link| !document.names.contains(&text_of(link))).cloned().collect()
}

fn add_links(object: &mut Map, field: &str, links: &[Value]) {
    if let Some(Value::Array(list)) = object.get_mut(field) {
        list.extend_from_slice(links);
    }
}

/// The objects of some tasks.
struct Objects<'t> {
    ids: BTreeSet<&'t TaskId>,
    below: BTreeMap<&'t TaskId, Vec<&'t TaskId>>,
}

impl<'t> Objects<'t> {
    fn of(tasks: &'t [Task]) -> Self {
        let mut below: BTreeMap<&TaskId, Vec<&TaskId>> = BTreeMap::new();
        for task in tasks {
            if let Some(parent) = &task.parent {
                below.entry(parent).or_default().push(&task.id);
            }
        }
        Self { ids: tasks.iter().map(|task| &task.id).collect(), below }
    }

    /// Returns a task as an object with the fixed fields, and with those that `keeps` allows. Reports the others as left out.
    fn object(&self, task: &Task, keeps: impl Fn(&str) -> bool, left_out: &mut Vec<LeftOut>) -> Map {
        let mut task = task.clone();
        let below = self.below.get(&task.id).into_iter().flatten().map(|id| (*id).clone());
        let below: Vec<TaskId> = below.filter(|id| !task.subtasks.contains(id)).collect();
        task.subtasks.extend(below);
        object_of(task, &self.ids, keeps, left_out)
    }
}

fn object_of(
    mut task: Task,
    ids: &BTreeSet<&TaskId>,
    keeps: impl Fn(&str) -> bool,
    left_out: &mut Vec<LeftOut>,
) -> Map {
    let id = task.id.clone();
    for (field, list) in [("dependencies", &mut task.dependencies), ("subtasks", &mut task.subtasks)] {
        list.retain(|other| {
            let is_there = ids.contains(other);
            if !is_there {
                left_out.push(LeftOut::new(format!("{id}: {field}"), format!("`{other}` is not exported")));
            }
            is_there
        });
    }
    let Ok(Value::Object(mut map)) = serde_json::to_value(&task) else { return Map::new() };
    let mut out = Map::new();
    for field in ALWAYS {
        out.extend(map.remove_entry(*field));
    }
    if let Some(Value::Object(metadata)) = out.get_mut("metadata") {
        metadata.retain(|name, _| {
            let is_kept = matches!(name.as_str(), "toolCalls" | "context");
            if !is_kept {
                left_out.push(LeftOut::new(format!("{id}: metadata.{name}"), NO_PLACE));
            }
            is_kept
        });
    }
    map.retain(|field, _| !NOT_TAKEN.contains(&field.as_str()));
    let (kept, others): (Map, Map) = map.into_iter().partition(|(field, _)| keeps(field));
    out.extend(kept);
    let others = others.keys().filter(|field| *field != "parent");
    left_out.extend(others.map(|field| LeftOut::new(format!("{id}: {field}"), NO_PLACE)));
    out
}
