//! Unknown fields of a plan: they are refused, but for those that the store has as they are.
//!
//! Version 0.1 took most of them. A plan file that has not changed since is not refused, and a part of a plan may say again what the
//! store has.

use crate::command::Apply;
use crate::draft::{Decided, Draft};
use crate::plan::{PlanErrors, refused_call_field, refused_plan_field, refused_task_field, shortened};
use crate::refusal::Refusal;
use crate::spec::{CallSpec, Map, TaskSpec};
use crate::{Key, PlanError, PlanProblem, PlanTask, Shared};

/// The rule for the fields of one kind of object.
type Rule = fn(&str) -> Option<(PlanProblem, String)>;

/// The definitions of a task, and those of its calls.
type Stored = (Vec<Shared<TaskSpec>>, Vec<Shared<CallSpec>>);

/// Refuses the unknown fields of a plan that the store does not have; `keys` are those of its tasks that the store has.
pub(super) fn refuse(draft: &Draft<'_>, apply: &Apply, keys: &[Option<Key>]) -> Decided<()> {
    let plan = &apply.plan;
    let header = draft.view.plan(&apply.name)?.map(|record| record.header).unwrap_or_default();
    let (mut errors, header) = (Vec::new(), [&header]);
    let refused = refused(&plan.extra, refused_plan_field, &header);
    errors.extend(refused.map(|error| noted(&plan.unknown, &error).unwrap_or(error)));
    for (task, key) in plan.tasks.iter().zip(keys) {
        for error in of_task(draft, task, *key)? {
            match (noted(&task.unknown, &error), noted(&plan.unknown, &error)) {
                (Some(noted), _) => errors.push(noted),
                // Every task has what stands in the defaults, and it is one fault.
                (None, Some(noted)) if errors.contains(&noted) => {}
                (None, noted) => errors.push(noted.unwrap_or(error)),
            }
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Refusal::from(PlanErrors::new(errors)).into()) }
}

fn of_task(draft: &Draft<'_>, task: &PlanTask, key: Option<Key>) -> Decided<Vec<PlanError>> {
    if task.spec.extra.is_empty() && task.calls.iter().all(|call| call.spec.extra.is_empty()) {
        return Ok(Vec::new());
    }
    let (specs, calls) = key.map(|key| stored(draft, key)).transpose()?.unwrap_or_default();
    let specs: Vec<&Map> = specs.iter().map(|spec| &spec.extra).collect();
    // Calls without ids may have changed their places.
    let calls: Vec<&Map> = calls.iter().map(|call| &call.extra).collect();
    let mut errors: Vec<PlanError> = refused(&task.spec.extra, refused_task_field, &specs).collect();
    for call in &task.calls {
        errors.extend(refused(&call.spec.extra, refused_call_field, &calls));
    }
    for error in &mut errors {
        error.at = task.at;
    }
    Ok(errors)
}

/// Returns a task that a plan speaks of, with its calls, as the store has them now and as they were applied last.
fn stored(draft: &Draft<'_>, key: Key) -> Decided<Stored> {
    let mut specs = vec![draft.task(key)?.spec];
    let mut calls: Vec<_> = draft.known_calls(key)?.into_iter().map(|call| call.spec).collect();
    if let Some(applied) = super::apply::applied(draft, key)? {
        specs.push(applied.spec);
        calls.extend(applied.calls.into_iter().map(|(_, spec)| spec));
    }
    Ok((specs, calls))
}

fn refused(extra: &Map, rule: Rule, stored: &[&Map]) -> impl Iterator<Item = PlanError> {
    let is_stored = |field: &str, value| stored.iter().any(|map| map.get(field) == Some(value));
    let new = extra.iter().filter(move |(field, value)| !is_stored(field, value));
    new.filter_map(move |(field, _)| {
        let (problem, hint) = rule(field)?;
        let path = shortened(field);
        Some(PlanError { at: crate::Position::default(), path, problem, hint: Some(hint.into()) })
    })
}

/// Returns the same fault as it was noted when the plan was read, with the place of the field.
fn noted(unknown: &[PlanError], error: &PlanError) -> Option<PlanError> {
    unknown.iter().find(|noted| noted.problem == error.problem).cloned()
}
