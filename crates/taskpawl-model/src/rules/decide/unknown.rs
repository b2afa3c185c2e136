//! Refuses unknown fields of a plan, unless the store already has them with the same value.
//!
//! Version 0.1 accepted most of them. An unchanged plan file must still apply, and a part of a plan may repeat stored
//! fields.

use crate::command::Apply;
use crate::command::refusal::Refusal;
use crate::plan::{
    PlanError, PlanErrors, PlanProblem, PlanTask, refused_call_field, refused_plan_field, refused_task_field,
    shortened,
};
use crate::rules::draft::{Decided, Draft};
use crate::task::spec::{CallSpec, TaskSpec};
use crate::value::{Key, Map, Shared};

/// Checks a field name of one kind of object; returns the problem and a hint.
type Rule = fn(&str) -> Option<(PlanProblem, String)>;

/// Stored specifications of a task, and of its calls.
type Stored = (Vec<Shared<TaskSpec>>, Vec<Shared<CallSpec>>);

/// Refuses unknown fields of a plan that the store does not have. `keys` has the stored task for each task of the plan.
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
                // A field in `defaults` reaches every task, but it is one error.
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
    // Calls without ids may have moved, so a field may come from any stored call.
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

/// Returns the specification of a task and of its calls, both as stored now and as last applied.
fn stored(draft: &Draft<'_>, key: Key) -> Decided<Stored> {
    let mut specs = vec![draft.task(key)?.spec];
    let mut calls: Vec<_> = draft.known_calls(key)?.into_iter().map(|call| call.spec).collect();
    if let Some(applied) = super::applied::applied(draft, key)? {
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
        Some(PlanError { at: crate::plan::Position::default(), path, problem, hint: Some(hint.into()) })
    })
}

/// Returns the same error as the parser noted it, which includes the position of the field.
fn noted(unknown: &[PlanError], error: &PlanError) -> Option<PlanError> {
    unknown.iter().find(|noted| noted.problem == error.problem).cloned()
}
