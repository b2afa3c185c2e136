//! Tasks and plans in the words of other tools.

use serde_json::{Map, Value, json};
use taskpawl::model::plan::{plan_value, read_plan};

use super::texts::{duration, fenced, items, object};
use super::values::rename;
use super::{Reading, words};
use crate::server::refusal::Refused;

/// Fields of other to-do lists that say nothing that a task could keep.
const LEFT_OUT: &[&str] = &["activeForm", "active_form"];

/// Fields for which an empty text means none.
const EMPTY_IS_ABSENT: &[&str] = &["id", "name", "dueDate", "needs", "dependencies"];

/// Maximum size of a plan in YAML that is read in the words of other tools, in bytes.
const MAX_READ_TEXT: usize = 256 << 10;

/// Names under which plans list their tasks.
const TASKS: &[&str] = &["steps", "todos", "items"];

impl Reading<'_> {
    /// Reads the argument `plan` of `plan_write`.
    pub(super) fn plan(&mut self, arguments: &mut Map<String, Value>) -> Result<(), Refused> {
        let Some(plan) = arguments.get_mut("plan") else { return Ok(()) };
        if let Value::String(text) = plan {
            if let Some(block) = fenced(text)? {
                self.told.push("plan: the fenced part".to_owned());
                *plan = block.into();
            }
            if let Some(read) = plan.as_str().and_then(object) {
                *plan = read;
            } else if let Some(text) = plan.as_str().map(str::to_owned)
                && let Some(read) = self.plan_as_text(&text)?
            {
                *plan = read;
            }
        }
        if !plan.is_string() {
            self.plan_as_value(plan)?;
        }
        let Some(Value::Object(fields)) = arguments.get_mut("plan") else { return Ok(()) };
        let mut fields = std::mem::take(fields);
        if let Some(explanation) = arguments.remove("explanation") {
            self.tell_name("explanation", "plan.description");
            fields.entry("description").or_insert(explanation);
        }
        arguments.insert("plan".to_owned(), fields.into());
        Ok(())
    }

    /// Reads a plan in YAML. Returns nothing for one that is written as plans are: problems of a text have positions, which
    /// those of an object have not.
    fn plan_as_text(&mut self, text: &str) -> Result<Option<Value>, Refused> {
        let Some(mut plan) =
            Some(text).filter(|text| text.len() <= MAX_READ_TEXT).and_then(|text| plan_value(text).ok())
        else {
            return Ok(None);
        };
        let before = self.told.len();
        self.plan_as_value(&mut plan)?;
        if self.told.len() > before && is_valid(&plan) {
            return Ok(Some(plan));
        }
        self.told.truncate(before);
        Ok(None)
    }

    fn plan_as_value(&mut self, plan: &mut Value) -> Result<(), Refused> {
        if plan.is_array() {
            *plan = json!({"tasks": plan.take()});
        }
        let Value::Object(fields) = plan else { return Ok(()) };
        for name in TASKS {
            if rename(fields, name, "tasks") {
                self.tell_name(name, "tasks");
            }
        }
        let Some(tasks) = fields.get_mut("tasks") else { return Ok(()) };
        self.tasks(tasks);
        self.needs_of_plan(tasks)
    }

    fn tasks(&mut self, tasks: &mut Value) {
        if let Some(read) = tasks.as_str().and_then(object) {
            self.replace("tasks", tasks, read);
        }
        if let Value::Object(by_id) = tasks {
            self.told.push("tasks: each key as an id".to_owned());
            *tasks = std::mem::take(by_id).into_iter().map(with_id).collect();
        }
        for task in tasks.as_array_mut().into_iter().flatten() {
            if let Value::Object(fields) = task {
                self.task("", fields);
            }
        }
    }

    /// Reads the fields of a task.
    pub(super) fn task(&mut self, place: &str, fields: &mut Map<String, Value>) {
        let given: Vec<String> = fields.keys().cloned().collect();
        for name in &given {
            let Some(meant) = words::task_field(name, &fields[name]) else { continue };
            if name == "dependencies" || fields.contains_key(meant) {
                continue;
            }
            if meant == "timeout"
                && let Some(given) = milliseconds(&fields[name])
            {
                fields.insert(name.clone(), given.into());
            }
            if rename(fields, name, meant) {
                self.tell_name(&format!("{place}{name}"), meant);
            }
        }
        // A new task has no other status. A task that is there would keep its own, so there it is not left out.
        if place.is_empty() && fields.get("status").and_then(Value::as_str).is_some_and(words::is_unbegun) {
            fields.remove("status");
            self.told.push("status: left out, as a new task has no other".to_owned());
        }
        fields.retain(|name, value| {
            let is_left_out = LEFT_OUT.contains(&name.as_str());
            if is_left_out {
                self.told.push(format!("{name}: left out, as a task has one name"));
            }
            let is_empty = EMPTY_IS_ABSENT.contains(&name.as_str()) && value == "";
            !is_left_out && !is_empty
        });
        for (name, value) in fields.iter_mut() {
            self.task_value(&format!("{place}{name}"), name, value);
            if let Value::Object(options) = value {
                self.options(&format!("{place}{name}"), name, options);
            }
        }
        if let Some(call) = fields.get_mut("call") {
            self.calls(call);
        }
        for name in ["calls", "toolCalls"] {
            if let Some(calls) = fields.get_mut(name) {
                self.calls(calls);
            }
        }
        if let Some(subtasks) = fields.get_mut("subtasks").filter(|subtasks| subtasks.is_array()) {
            self.tasks(subtasks);
        }
    }

    /// Reads the counts and pauses of a loop or a retry.
    fn options(&mut self, place: &str, field: &str, options: &mut Map<String, Value>) {
        for (name, value) in options.iter_mut() {
            let read = match (field, name.as_str(), &*value) {
                ("retry", "attempts", Value::String(count))
                | ("repeat", "max", Value::String(count))
                | ("forEach", "concurrency", Value::String(count)) => {
                    count.trim().parse::<u32>().ok().map(Value::from)
                }
                ("retry", "delay" | "maxDelay", Value::String(text))
                | ("repeat", "delay", Value::String(text)) => duration(text).map(Value::from),
                _ => None,
            };
            if let Some(read) = read {
                self.replace(&format!("{place}.{name}"), value, read);
            }
        }
    }

    fn task_value(&mut self, place: &str, name: &str, value: &mut Value) {
        let read = match (name, &value) {
            ("id", Value::Number(number)) => Some(json!(number.to_string())),
            // Without any item the text stays, so that it is refused.
            ("needs" | "dependencies" | "labels", Value::String(text)) => {
                Some(items(text)).filter(|items| !items.is_empty()).map(Value::from)
            }
            ("needs" | "dependencies", Value::Number(number)) => Some(json!([number.to_string()])),
            ("needs" | "dependencies", Value::Array(given)) if given.iter().any(Value::is_number) => {
                let text =
                    |item: &Value| if item.is_number() { json!(item.to_string()) } else { item.clone() };
                Some(given.iter().map(text).collect())
            }
            ("priority", given) => words::priority(given).map(Value::from).filter(|read| read != *given),
            ("timeout", Value::Number(seconds)) => Some(json!(format!("{seconds}s"))),
            ("timeout" | "estimate", Value::String(text)) => duration(text).map(Value::from),
            ("retry", Value::String(count)) => count.trim().parse::<u32>().ok().map(Value::from),
            ("milestone", Value::String(word)) => word.parse::<bool>().ok().map(Value::from),
            _ => None,
        };
        // A single need of a plan stays as it was written: plans take it.
        let is_one = |read: &Value| {
            place == name && value.is_string() && read.as_array().is_some_and(|list| list.len() == 1)
        };
        if let Some(read) = read.filter(|read| !is_one(read)) {
            self.replace(place, value, read);
        }
    }
}

/// Returns whether a plan can be applied as it is written.
fn is_valid(plan: &Value) -> bool {
    read_plan(&plan.to_string()).is_ok_and(|plan| plan.refuse_unknown().is_ok())
}

/// Returns a number of milliseconds, also one in text, as a duration. Without its unit it would be read as seconds.
fn milliseconds(given: &Value) -> Option<String> {
    let count = match given {
        Value::String(text) => text.trim().parse::<u64>().ok()?,
        Value::Number(number) => number.as_u64()?,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(format!("{count}ms"))
}

/// Returns a task of a plan that lists them by id.
fn with_id((id, mut task): (String, Value)) -> Value {
    match &mut task {
        Value::Object(fields) => {
            fields.entry("id").or_insert(json!(id));
            task
        }
        Value::String(name) => json!({"id": id, "name": name}),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => task,
    }
}
