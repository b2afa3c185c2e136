//! The tasks of an included plan as tasks of the plan that includes it.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::draft::Resolved;
use super::{Plan, PlanTask};
use crate::expr::{ExprError, Name, OPEN, rename_in_condition, rename_in_value};
use crate::task::{CallSpec, MERGE_TOOL, NewCall};
use crate::value::TaskId;

/// An expression in place of a parameter.
pub(super) struct Bound {
    pub(super) text: String,
    /// The tasks that it names, in the plan that includes the other.
    pub(super) tasks: BTreeSet<String>,
}

/// The tasks of an included plan, with their new ids and without parameters.
pub(super) struct IncludedTasks<'p> {
    pub(super) plan: &'p Plan,
    /// The id of the task that includes them.
    pub(super) prefix: &'p TaskId,
    /// The draft of the first one.
    pub(super) first: usize,
    pub(super) bound: &'p HashMap<String, Bound>,
}

impl IncludedTasks<'_> {
    /// Returns the task at an index, with its references.
    ///
    /// # Errors
    /// An expression becomes too long or too deep.
    pub(super) fn task(&self, index: usize) -> Result<(PlanTask, Resolved), ExprError> {
        let mut task = self.plan.tasks[index].clone();
        let mut resolved = Resolved {
            needs: task.needs.iter().map(|needed| self.first + needed).collect(),
            ..Resolved::default()
        };
        let names = std::mem::take(&mut task.names);
        let mut renaming = |name: &Name| self.renamed(name, |text| names.get(text).copied(), &mut resolved);
        let spec = &mut *task.spec;
        for condition in [
            spec.when.as_mut(),
            spec.repeat.as_mut().map(|repeat| &mut repeat.until),
            spec.cache.as_mut().and_then(|cache| cache.key.as_mut()),
        ]
        .into_iter()
        .flatten()
        {
            *condition = rename_in_condition(condition, &mut renaming)?;
        }
        match spec.for_each.as_mut().map(|each| &mut each.list) {
            Some(Value::String(list)) => *list = rename_in_condition(list, &mut renaming)?,
            Some(list) => rename_in_value(list, &mut renaming)?,
            None => {}
        }
        for NewCall { spec, .. } in &mut task.calls {
            let spec: &mut CallSpec = &mut *spec;
            if let Some(when) = &mut spec.when {
                *when = rename_in_condition(when, &mut renaming)?;
            }
            spec.args.values_mut().try_for_each(|value| rename_in_value(value, &mut renaming))?;
            self.rename_merged(spec);
            spec.trust_inputs
                .iter_mut()
                .for_each(|text| self.rename_text(text, names.get(text.as_str()).copied()));
        }
        let spec = &mut *task.spec;
        spec.trust_inputs
            .iter_mut()
            .for_each(|text| self.rename_text(text, names.get(text.as_str()).copied()));
        if let Some(links) = &mut spec.links {
            for id in [&mut links.relates_to, &mut links.discovered_from, &mut links.duplicates]
                .into_iter()
                .flatten()
            {
                if let Some(other) = self.find(id.as_str()) {
                    *id = self.id(other);
                }
            }
        }
        task.id = Some(self.id(index));
        Ok((task, resolved))
    }

    /// Returns a value of the included plan, with its references.
    pub(super) fn value(&self, value: &Value) -> Result<(Value, Resolved), ExprError> {
        let (mut value, mut resolved) = (value.clone(), Resolved::default());
        let mut renaming = |name: &Name| self.renamed(name, |text| self.find(text), &mut resolved);
        rename_in_value(&mut value, &mut renaming)?;
        Ok((value, resolved))
    }

    fn id(&self, index: usize) -> TaskId {
        let own = self.plan.tasks[index].id.as_ref().map_or("", TaskId::as_str);
        TaskId::from(format!("{}.{own}", self.prefix))
    }

    /// Returns the text in place of a name, and records the tasks that it names.
    fn renamed(
        &self,
        name: &Name,
        find: impl Fn(&str) -> Option<usize>,
        resolved: &mut Resolved,
    ) -> Option<String> {
        match name {
            Name::Param(param) => {
                let bound = self.bound.get(param)?;
                resolved.given.extend(bound.tasks.iter().cloned());
                Some(bound.text.clone())
            }
            Name::Task { task, field } => {
                let other = find(task)?;
                let id = self.id(other);
                resolved.names.insert(id.to_string(), self.first + other);
                Some(Name::Task { task: id.to_string(), field: field.clone() }.to_string())
            }
            Name::Context(_) | Name::Variable(_) | Name::Item | Name::Index | Name::Attempt => None,
        }
    }

    /// Returns the task with this id or name.
    fn find(&self, text: &str) -> Option<usize> {
        let tasks = &self.plan.tasks;
        let by_id = tasks.iter().position(|task| task.id.as_ref().is_some_and(|id| id.as_str() == text));
        by_id.or_else(|| tasks.iter().position(|task| task.spec.name == text))
    }

    /// Renames the tasks whose work a call merges: they are arguments, not expressions.
    fn rename_merged(&self, spec: &mut CallSpec) {
        if spec.tool_name != MERGE_TOOL {
            return;
        }
        let of = spec.args.get_mut("of").and_then(Value::as_array_mut);
        for value in of.into_iter().flatten() {
            if let Value::String(text) = value
                && !text.contains(OPEN)
            {
                self.rename_text(text, self.find(text));
            }
        }
    }

    fn rename_text(&self, text: &mut String, other: Option<usize>) {
        if let Some(other) = other {
            *text = self.id(other).to_string();
        }
    }
}
