use serde_json::{Map, Value, json};
use taskpawl::model::command::NewTask;
use taskpawl::model::plan::{PlanTask, task_from_json};

use super::plan_write::{check_calls, warnings_of_task};
use super::{Definition, WRITES, schema, text, texts};
use crate::server::actions::Action;
use crate::server::announced::announced;
use crate::server::answer::Answer;
use crate::server::arguments::found;
use crate::server::brief;
use crate::server::caller::Caller;
use crate::server::digest::begin;
use crate::server::refusal::Refused;

pub(super) fn definition() -> Definition {
    Definition {
        description: "Adds one task. Work: run, or call: {TOOL: {args}}, or none (by hand). Other plan fields too: when, dueDate, retry.",
        input: schema(
            json!({
                "name": text(), "id": text(), "description": text(), "needs": texts(), "parent": text(), "plan": text(),
                "priority": text(),
                "run": {"type": "string", "description": "shell command"}, "call": {"type": "object"},
            }),
            &["name"],
            true,
        ),
        hints: WRITES,
    }
}

pub(super) fn call(caller: &Caller, mut arguments: Map<String, Value>) -> Result<Answer, Refused> {
    arguments.retain(|_, value| !value.is_null());
    if let Some(needs) = arguments.get("needs").filter(|needs| !needs.is_array()) {
        return Err(Refused::argument("needs", format!("expected a list, not {}", found(needs))));
    }
    let (parent, plan) = (word(&mut arguments, "parent")?, word(&mut arguments, "plan")?);
    let PlanTask { id, spec, context, calls, needs_outside, .. } = task_from_json(&Value::Object(arguments))?;
    check_calls(&caller.plans, calls.iter().map(|call| (spec.name.clone(), call)))?;
    let warnings = warnings_of_task(caller, &spec, &calls);
    let dependencies = needs_outside.iter().map(ToString::to_string).collect();
    let (id, spec) = (id.unwrap_or_default(), spec.into_inner());
    let task = NewTask { id, spec, context, calls, dependencies, parent, plan };
    let id = caller.manager().create(task)?;
    let task = caller.reads().get(id.as_str())?;
    let whole = Action::call("task_get", json!({"id": id}));
    // A task that waits for others has no step of its own; the digest has the first step.
    let next = begin(caller, &id)?.unwrap_or_else(|| Action::call("plan_show", json!({})));
    Ok(Answer::new(json!({"task": brief::task(&task)}))
        .with("warnings", json!(warnings))
        .with("asks", announced(caller, std::slice::from_ref(&id), task.plan.as_deref())?)
        .next([next])
        .rest(whole))
}

fn word(arguments: &mut Map<String, Value>, name: &str) -> Result<Option<String>, Refused> {
    match arguments.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(value) => Err(Refused::argument(name, format!("expected text, not {}", found(&value)))),
    }
}
