//! The JSON schema of an answer, for planners that take one: closed objects, and one branch for each tool.

use serde_json::{Map, Value, json};
use taskpawl_model::plan::{plan_fields, proposed_fields};
use taskpawl_tools::ToolSpec;

use crate::signature::offered;

/// Returns the schema of plans that call these tools.
pub fn answer_schema<'t>(tools: impl IntoIterator<Item = &'t ToolSpec>, max_tasks: usize) -> Value {
    let fields = proposed_fields();
    let tools = offered(tools);
    let calls: Vec<Value> =
        tools.iter().flat_map(|tool| [short_call(tool), long_call(tool, fields.call)]).collect();
    let call = json!({"anyOf": calls});
    let task = fields.task.iter().map(|field| (*field, task_field(field)));
    let task = closed(task.chain([("x-why", text())]), &["id", "name", "x-why"]);
    let plan = fields.plan.iter().map(|field| match *field {
        "tasks" => (
            "tasks",
            json!({"type": "array", "items": {"$ref": "#/$defs/task"}, "minItems": 1, "maxItems": max_tasks}),
        ),
        "name" => ("name", id()),
        "description" => (*field, text()),
        _ => (*field, object(field)),
    });
    let mut schema = closed(plan, &["name", "tasks"]);
    schema["$defs"] = json!({"task": task, "call": call});
    schema
}

/// Returns the schema of changes of a plan, whose calls are of these tools.
pub fn patch_schema<'t>(tools: impl IntoIterator<Item = &'t ToolSpec>, max_tasks: usize) -> Value {
    let plan = answer_schema(tools, max_tasks);
    let mut changed = plan["$defs"]["task"].clone();
    changed["required"] = json!(["id"]);
    let list = |items: Value| json!({"type": "array", "items": items, "maxItems": max_tasks});
    let reasoned = closed([("id", text()), ("reason", text())], &["id", "reason"]);
    let mut schema = closed(
        [
            ("add", list(json!({"$ref": "#/$defs/task"}))),
            ("replace", list(json!({"$ref": "#/$defs/changed"}))),
            ("retry", list(reasoned.clone())),
            ("skip", list(reasoned)),
        ],
        &[],
    );
    schema["$defs"] = plan["$defs"].clone();
    schema["$defs"]["changed"] = changed;
    schema
}

/// Returns the schema of a tool's arguments. References in it would point into the whole, so that such a schema stays out.
fn arguments(tool: &ToolSpec) -> Value {
    let has_references = tool.args_schema.to_string().contains("\"$ref\"");
    if has_references { json!({"type": "object"}) } else { tool.args_schema.clone() }
}

fn text() -> Value {
    json!({"type": "string"})
}

/// Returns the schema of an id, and of the name of a plan.
fn id() -> Value {
    json!({"type": "string", "pattern": "^[A-Za-z0-9._-]+$"})
}

fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

/// Returns the schema of an object with these properties and no others.
fn closed<'n>(properties: impl IntoIterator<Item = (&'n str, Value)>, required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Returns the schema of a call in its short form, `{TOOL: {arguments}}`.
fn short_call(tool: &ToolSpec) -> Value {
    closed([(&*tool.name, arguments(tool))], &[&*tool.name])
}

/// Returns the schema of a call with further fields. The arguments are those of its tool here as well.
fn long_call(tool: &ToolSpec, fields: &[&'static str]) -> Value {
    let value = |field: &str| match field {
        "toolName" => json!({"const": tool.name}),
        "args" => arguments(tool),
        "retry" => json!({"anyOf": [{"type": "integer"}, object(field)]}),
        _ => text(),
    };
    closed(fields.iter().map(|field| (*field, value(field))), &["toolName", "args"])
}

/// Returns the schema of an object with the fields that the language has for it, each with any value.
fn object(field: &str) -> Value {
    let objects = plan_fields().objects;
    match objects.iter().find(|(name, _)| *name == field) {
        Some((_, fields)) => {
            // The prompt does not name questions about results: a model plans none.
            let told = fields.iter().filter(|field| **field != "after");
            closed(told.map(|field| (*field, json!({}))), &[])
        }
        None => json!({"type": "object"}),
    }
}

/// Returns the schema of a field. Short forms that mean the same are left out, so that a model has one way to write it.
fn task_field(field: &str) -> Value {
    match field {
        "id" => id(),
        "needs" | "writes" => texts(),
        "trigger" => json!({"enum": ["all_done", "any_done", "all_finished", "any_failed"]}),
        "mode" => json!({"enum": ["sequential", "parallel"]}),
        "forEach" | "repeat" | "sandbox" | "resources" | "env" => object(field),
        "retry" => json!({"anyOf": [{"type": "integer"}, object(field)]}),
        "approval" => json!({"anyOf": [{"const": "required"}, object(field)]}),
        "milestone" | "idempotent" => json!({"type": "boolean"}),
        "run" => json!({"anyOf": [text(), texts()]}),
        "call" => json!({"$ref": "#/$defs/call"}),
        "calls" => json!({"type": "array", "items": {"$ref": "#/$defs/call"}}),
        "subtasks" => json!({"type": "array", "items": {"$ref": "#/$defs/task"}}),
        _ => text(),
    }
}

#[cfg(test)]
mod tests {
    use taskpawl_tools::Registry;

    use super::*;

    #[test]
    fn each_tool_has_a_branch_and_no_object_of_a_plan_is_open() {
        let registry = Registry::builtin();
        let tools: Vec<ToolSpec> = registry.iter().map(|tool| tool.spec().clone()).collect();
        let schema = answer_schema(&tools, 20);
        let branches = schema["$defs"]["call"]["anyOf"].as_array().unwrap();
        assert_eq!(branches.len(), 2 * offered(&tools).len());
        for object in branches.iter().chain([&schema, &schema["$defs"]["task"]]) {
            assert_eq!(object["additionalProperties"], false, "{object}");
        }
        for (object, fields) in
            [(&schema, proposed_fields().plan), (&schema["$defs"]["task"], proposed_fields().task)]
        {
            for field in fields {
                assert!(object["properties"].get(*field).is_some(), "{field}");
            }
        }
        insta::assert_snapshot!(serde_json::to_string(&schema["$defs"]["task"]).unwrap());
    }
}
