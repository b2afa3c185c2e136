//! The long form of plans.

use serde_json::{Map as JsonMap, Value, json};

use super::node::into_map;
use super::{Plan, PlanTask};
use crate::task::{NewCall, TaskSpec};
use crate::value::Map;
use crate::value::TaskId;

/// Returns the long form of a plan: short forms are expanded, defaults are merged into the tasks, and subtasks are
/// lists of ids. [`parse_plan`](crate::plan::parse_plan) reads the same plan from it. Tasks without ids are referred to by
/// name.
pub fn expand_plan(plan: &Plan) -> Value {
    let mut fields = plan.extra.clone();
    fields.insert("version".to_owned(), plan.version.into());
    let optional = [
        ("name", json!(plan.name)),
        ("params", json!(plan.params)),
        ("defaults", Value::Object(plan.defaults.clone())),
        ("resources", json!(plan.resources)),
        ("timeout", json!(plan.timeout)),
        ("budget", json!(plan.budget)),
        ("maxFailures", json!(plan.max_failures)),
        ("schedule", json!(plan.schedule)),
        ("notify", json!(plan.notify)),
        ("tools", json!(plan.tools)),
        ("requires", json!(plan.requires)),
    ];
    let is_given = |value: &Value| {
        !value.is_null()
            && value.as_object().is_none_or(|map| !map.is_empty())
            && value.as_array().is_none_or(|list| !list.is_empty())
    };
    fields.extend(
        optional.into_iter().filter(|(_, value)| is_given(value)).map(|(key, v)| (key.to_owned(), v)),
    );
    fields.extend(plan.returns.clone().map(|value| ("returns".to_owned(), value)));
    let mut subtasks: Vec<Vec<Value>> = vec![Vec::new(); plan.tasks.len()];
    for task in &plan.tasks {
        if let Some(parent) = task.parent {
            subtasks[parent].push(reference(task));
        }
    }
    let tasks = plan.tasks.iter().zip(subtasks).map(|(task, subtasks)| expand_task(plan, task, subtasks));
    fields.insert("tasks".to_owned(), tasks.collect());
    Value::Object(fields)
}

fn reference(task: &PlanTask) -> Value {
    task.id.as_ref().map_or(task.spec.name.as_str(), TaskId::as_str).into()
}

fn expand_task(plan: &Plan, task: &PlanTask, subtasks: Vec<Value>) -> Value {
    let mut fields = spec_fields(&task.spec);
    // An explicit `null` keeps the default from being applied when the long form is read again.
    for key in plan.defaults.keys() {
        fields.entry(key.clone()).or_insert(Value::Null);
    }
    fields.extend(task.id.as_ref().map(|id| ("id".to_owned(), id.as_str().into())));
    let inside = task.needs.iter().map(|needed| reference(&plan.tasks[*needed]));
    let outside = task.needs_outside.iter().map(|id| id.as_str().into());
    fields.insert("dependencies".to_owned(), inside.chain(outside).collect());
    fields.insert("subtasks".to_owned(), Value::Array(subtasks));
    let mut metadata = task.spec.metadata.clone();
    metadata.insert("toolCalls".to_owned(), task.calls.iter().map(expand_call).collect());
    metadata.insert("context".to_owned(), Value::Object(task.context.clone()));
    fields.insert("metadata".to_owned(), Value::Object(metadata));
    Value::Object(fields)
}

/// Returns the long form of a tool call.
pub(crate) fn expand_call(call: &NewCall) -> Value {
    let mut fields = flattened(json!(call.spec));
    fields.extend(call.id.as_ref().map(|id| ("id".to_owned(), id.as_str().into())));
    fields.entry("args").or_insert_with(|| Value::Object(JsonMap::new()));
    Value::Object(fields)
}

/// Returns the fields of a task's specification in the form of plan files, without its metadata.
pub(crate) fn spec_fields(spec: &TaskSpec) -> Map {
    let mut fields = flattened(json!(spec));
    fields.remove("metadata");
    fields.insert("description".to_owned(), spec.description.as_str().into());
    fields.insert("priority".to_owned(), spec.priority.as_str().into());
    fields
}

/// Moves the unknown fields from `extra` to the top level, where the author wrote them.
fn flattened(value: Value) -> Map {
    let mut fields = into_map(value);
    let extra = fields.remove("extra").map(into_map).unwrap_or_default();
    fields.extend(extra);
    fields
}
