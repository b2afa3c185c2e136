//! Parameter values of a plan, as they are stored with it.

use indexmap::IndexMap;
use serde_json::Value;

use super::apply::is_over;
use super::fields::invalid;
use super::references::uses_param;
use crate::command::Apply;
use crate::command::refusal::{Conflict, Refusal, Remedy};
use crate::plan::Param;
use crate::rules::draft::{Decided, Draft};
use crate::task::record::PlanRecord;
use crate::task::spec::Origin;
use crate::task::trust::{Origins, note_origin};
use crate::value::Key;
use crate::value::Map;

/// Parameter values of a plan, and those that differ from the stored ones.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) all: Map,
    /// Origins of values that models gave.
    pub(super) origins: Origins,
    /// Name, previous value and new value of each changed parameter.
    pub(super) changed: Vec<(String, Value, Value)>,
}

impl Values {
    /// Returns the values to apply a plan with. Values of this apply win over those of an earlier apply, and these over
    /// defaults.
    pub(super) fn new(apply: &Apply, stored: Option<&PlanRecord>, writer: Origin) -> Decided<Self> {
        let plan = &apply.plan;
        if let Some(name) = plan.values.keys().find(|name| !plan.params.contains_key(*name)) {
            return Err(invalid("params", format!("the plan has no parameter `{name}`")).into());
        }
        let (mut values, mut missing) = (Self::default(), Vec::new());
        let before = stored.map(given_before).unwrap_or_default();
        let mut origins = stored.map(|stored| stored.param_origins.clone()).unwrap_or_default();
        for (name, param) in &plan.params {
            let given = plan.values.get(name);
            // A value from an earlier apply is dropped without an error if the parameter has another type now.
            let kept = before.get(name).filter(|value| param.kind.fits(value));
            match given.or(kept).or(param.default.as_ref()) {
                Some(value) if param.kind.fits(value) => {
                    if given.is_some() || kept.is_none() {
                        let is_new = stored.and_then(|stored| stored.params.get(name)) != Some(value);
                        note_origin(&mut origins, name, writer, is_new);
                    }
                    values.all.insert(name.clone(), value.clone());
                }
                Some(_) => {
                    let problem = format!("the value of `{name}` is not of type `{}`", param.kind);
                    return Err(invalid("params", problem).into());
                }
                None => missing.push(name.clone()),
            }
        }
        if !missing.is_empty() {
            return Err(Refusal::MissingParams { plan: apply.name.clone(), params: missing }.into());
        }
        origins.retain(|name, _| values.all.contains_key(name));
        values.origins = origins;
        values.compare(stored);
        Ok(values)
    }

    fn compare(&mut self, stored: Option<&PlanRecord>) {
        for (name, now) in stored.into_iter().flat_map(|_| &self.all) {
            let before = stored.and_then(|stored| stored.params.get(name));
            if let Some(before) = before.filter(|before| *before != now) {
                self.changed.push((name.clone(), before.clone(), now.clone()));
            }
        }
    }

    /// Returns a conflict if a task uses a changed parameter. It only matters for started tasks; others take the new value.
    pub(super) fn conflict(&self, draft: &Draft<'_>, key: Key) -> Decided<Option<Conflict>> {
        let (record, calls) = (draft.task(key)?, draft.known_calls(key)?);
        let used = self.changed.iter().find(|(name, ..)| uses_param(&record, &calls, name));
        Ok(used.map(|(name, before, now)| {
            let status = record.body.state.status();
            let why = format!(
                "is `{status}` and uses the parameter `{name}`, which would change from `{before}` to `{now}`"
            );
            let remedy = if is_over(&record) { Remedy::RedoOrKeep } else { Remedy::Wait };
            Conflict::new(&record.id, why, remedy)
        }))
    }
}

/// Returns the values that an earlier apply was given. Defaults of the file are excluded, so that a new default takes
/// effect.
fn given_before(stored: &PlanRecord) -> Map {
    let declared = stored.header.get("params").cloned().unwrap_or_default();
    let declared: IndexMap<String, Param> = serde_json::from_value(declared).unwrap_or_default();
    let is_default = |name: &str, value: &Value| {
        declared.get(name).is_some_and(|param| param.default.as_ref() == Some(value))
    };
    let given = stored.params.iter().filter(|(name, value)| !is_default(name, value));
    given.map(|(name, value)| (name.clone(), value.clone())).collect()
}
