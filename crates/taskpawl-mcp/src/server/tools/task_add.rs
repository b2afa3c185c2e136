use serde_json::{Map, Value, json};
use taskpawl::Error;
use taskpawl::model::command::{NewTask, Refusal};
use taskpawl::model::plan::{PlanTask, task_from_json};

use super::definition::{Definition, WRITES, schema, text, texts};
use super::plan_write::{check_calls, warnings_of_task};
use crate::server::actions::Action;
use crate::server::announced::announced;
use crate::server::answer::Answer;
use crate::server::arguments::found;
use crate::server::brief;
use crate::server::caller::Caller;
use crate::server::digest::begin;
use crate::server::options::ServerOptions;
use crate::server::reading::corrected;
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

/// The arguments of a call: the place of the task, and its fields as in a plan.
struct Given {
    parent: Option<String>,
    plan: Option<String>,
    fields: Map<String, Value>,
}

impl Given {
    fn of(mut arguments: Map<String, Value>) -> Result<Self, Refused> {
        arguments.retain(|_, value| !value.is_null());
        if let Some(needs) = arguments.get("needs").filter(|needs| !needs.is_array()) {
            return Err(Refused::argument("needs", format!("expected a list, not {}", found(needs))));
        }
        let (parent, plan) = (word(&mut arguments, "parent")?, word(&mut arguments, "plan")?);
        Ok(Self { parent, plan, fields: arguments })
    }

    /// Returns the call with other fields.
    fn with(&self, mut fields: Map<String, Value>) -> Action {
        let place = [("parent", &self.parent), ("plan", &self.plan)];
        fields
            .extend(place.into_iter().filter_map(|(name, at)| Some((name.to_owned(), json!(at.as_ref()?)))));
        Action::call("task_add", Value::Object(fields))
    }

    fn task(&self) -> Result<PlanTask, Refused> {
        task_from_json(&Value::Object(self.fields.clone())).map_err(|errors| {
            let corrected = corrected::task(&self.fields, &errors);
            let refused = Refused::from(errors);
            match corrected {
                Some(fields) => refused.corrected(self.with(fields)),
                None => refused,
            }
        })
    }
}

/// Checks the arguments of a call.
pub(super) fn check_arguments(given: Map<String, Value>) -> Result<(), Refused> {
    Given::of(given)?.task().map(drop)
}

pub(super) fn call(
    caller: &Caller,
    options: &ServerOptions,
    arguments: Map<String, Value>,
) -> Result<Answer, Refused> {
    let given = Given::of(arguments)?;
    let PlanTask { id, spec, context, calls, needs_outside, .. } = given.task()?;
    let (parent, plan) = (given.parent.clone(), given.plan.clone());
    let brought = caller.reads().brought_tools(plan.as_deref(), parent.as_deref())?;
    check_calls(caller, options, &brought, calls.iter().map(|call| (spec.name.clone(), call)))?;
    let warnings = warnings_of_task(caller, &spec, &calls);
    let dependencies = needs_outside.iter().map(ToString::to_string).collect();
    let (id, spec) = (id.unwrap_or_default(), spec.into_inner());
    let task = NewTask { id, spec, context, calls, dependencies, parent: parent.clone(), plan: plan.clone() };
    let id = caller.manager().create(task).map_err(|error| {
        let is_taken =
            matches!(&error, Error::Refused(refusal) if matches!(**refusal, Refusal::DuplicateId { .. }));
        let refused = Refused::from(error);
        if !is_taken {
            return refused;
        }
        let mut fields = given.fields.clone();
        fields.remove("id");
        refused.corrected(given.with(fields))
    })?;
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
