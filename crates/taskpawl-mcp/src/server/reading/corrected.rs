//! Corrected plans and tasks, for refusals. They are offered, not done: a caller decides whether it meant that.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use taskpawl::model::plan::{PlanErrors, task_from_json};
use taskpawl::model::value::check_id;

/// Fields of a task that only describe it, also of other programs. Without any other one, such as `approval`, `when` or `requires_review`,
/// more would run than was meant.
const DESCRIPTIVE: &[&str] = &[
    "activeForm",
    "assignee",
    "author",
    "category",
    "color",
    "completed",
    "component",
    "createdAt",
    "created_at",
    "description",
    "details",
    "done",
    "dueDate",
    "effort",
    "epic",
    "estimate",
    "estimated_time",
    "index",
    "kind",
    "labels",
    "links",
    "metadata",
    "milestone",
    "notes",
    "number",
    "owner",
    "points",
    "priority",
    "rationale",
    "reason",
    "sprint",
    "state",
    "status",
    "story_points",
    "tags",
    "type",
    "updatedAt",
    "updated_at",
    "url",
];

/// Returns the task without the descriptive fields that have faults, if it can be read then. An id gets a form that is
/// allowed, a condition its name; of two forms of work the first stays. Faults of other fields have no correction: the author decides about them.
pub(crate) fn task(fields: &Map<String, Value>, errors: &PlanErrors) -> Option<Map<String, Value>> {
    let mut corrected = fields.clone();
    if corrected.contains_key("run") {
        corrected.remove("call");
    }
    for error in errors.errors() {
        let field = error.path.split(['.', '[']).next().unwrap_or_default();
        match field {
            "id" => slugged(&mut corrected),
            "condition" | "if" if !corrected.contains_key("when") => {
                let condition = corrected.remove(field)?;
                corrected.insert("when".to_owned(), condition);
            }
            _ if DESCRIPTIVE.contains(&field) => _ = corrected.remove(field),
            // Two forms of work, which are told apart above.
            "run" | "call" if fields.contains_key("run") && fields.contains_key("call") => {}
            _ => return None,
        }
    }
    task_from_json(&Value::Object(corrected.clone())).ok().map(|_| corrected)
}

/// Returns the plan with ids that are allowed and differ, without states. The caller reads it again.
pub(crate) fn plan(plan: &Value) -> Option<Value> {
    let mut corrected = plan.clone();
    let tasks = corrected.get_mut("tasks")?.as_array_mut()?;
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut taken: Vec<String> = Vec::new();
    for task in tasks.iter_mut().filter_map(Value::as_object_mut) {
        task.remove("status");
        let Some(given) = task.get("id").and_then(Value::as_str).map(str::to_owned) else { continue };
        slugged(task);
        let id = free(task["id"].as_str().unwrap_or(&given), &taken);
        task.insert("id".to_owned(), json!(id));
        names.entry(given).or_insert_with(|| id.clone());
        taken.push(id);
    }
    for task in tasks.iter_mut().filter_map(Value::as_object_mut) {
        for need in task.get_mut("needs").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(id) = need.as_str().and_then(|name| names.get(name)) {
                *need = json!(id);
            }
        }
    }
    (corrected != *plan).then_some(corrected)
}

/// Returns the plan without the needs at these paths, such as `tasks[0].needs[1]`; `None` if one of the tasks has work, which would
/// start too early without its need.
pub(crate) fn without_needs(plan: &Value, paths: &[&str]) -> Option<Value> {
    let mut corrected = plan.clone();
    let mut pointers: Vec<String> =
        paths.iter().map(|path| format!("/{}", path.replace(['.', '['], "/").replace(']', ""))).collect();
    // From the end, so that earlier positions stay what they are.
    pointers.sort();
    for pointer in pointers.iter().rev() {
        let (list, index) = pointer.rsplit_once('/')?;
        let task = corrected.pointer(list.rsplit_once('/')?.0)?;
        if ["call", "calls", "run"].iter().any(|name| task.get(name).is_some()) {
            return None;
        }
        let (items, index) = (corrected.pointer_mut(list)?.as_array_mut()?, index.parse::<usize>().ok()?);
        if index < items.len() {
            items.remove(index);
        }
    }
    Some(corrected)
}

/// Gives a task an id that is allowed.
fn slugged(task: &mut Map<String, Value>) {
    let Some(id) = task.get("id").and_then(Value::as_str).filter(|id| check_id(id).is_err()) else { return };
    let words: Vec<&str> = id
        .split(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)))
        .filter(|word| !word.is_empty())
        .collect();
    let slug = words.join("-");
    if slug.is_empty() {
        task.remove("id");
    } else {
        task.insert("id".to_owned(), json!(slug));
    }
}

fn free(id: &str, taken: &[String]) -> String {
    let is_free = |id: &str| taken.iter().all(|other| other != id);
    if is_free(id) {
        return id.to_owned();
    }
    let mut numbered = (2..=taken.len() + 2).map(|number| format!("{id}-{number}"));
    numbered.find(|id| is_free(id)).unwrap_or_default()
}
