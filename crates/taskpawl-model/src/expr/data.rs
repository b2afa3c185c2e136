//! The data of an evaluation, and the references of expressions to it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::ast::{Name, TaskField};
use super::provenance::{Provenance, Provenances};
use crate::task::Status;
use crate::task::spec::Origin;
use crate::task::trust::{Origins, UntrustedValue};
use crate::value::Map;

/// The data that expressions are evaluated with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    /// `params`: the parameter values of the plan.
    pub params: Map,
    /// The origins of parameter values that models gave.
    pub params_from: Origins,
    /// `context`: the context of the task, with the results of its earlier calls.
    pub context: Map,
    /// The provenance of context values, by name.
    pub context_from: Provenances,
    /// `tasks`: other tasks, by the text used in the expressions.
    pub tasks: BTreeMap<String, TaskData>,
    /// `item`: in an item of a `forEach`.
    pub item: Option<Value>,
    /// Values from models that the list was made of.
    pub item_from: Vec<UntrustedValue>,
    /// `index`: in an item of a `forEach`, from 0.
    pub index: Option<u64>,
    /// `attempt`: the number of claims of the task.
    pub attempt: u32,
    /// The number of bytes of results that calls keep with `keep`. They raise the budget of an evaluation.
    pub kept_bytes: u64,
}

/// The data of another task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskData {
    /// Its context, with the results of its calls.
    pub context: Map,
    /// The provenance of context values, by name.
    pub context_from: Provenances,
    /// The files that it left, by name.
    pub artifacts: Map,
    /// The provenance of artifacts, by name.
    pub artifacts_from: Provenances,
    /// Its result; null without one.
    pub result: Value,
    /// The provenance of its result.
    pub result_from: Provenance,
    /// The results of its items or its calls, in order, with null for missing ones. `None` if they exceed the budget of
    /// an expression.
    pub results: Option<Vec<Value>>,
    /// The provenance of each result; empty if no result has one.
    pub results_from: Vec<Provenance>,
    /// Its status.
    pub status: Status,
    /// The reason for its failure.
    pub error: Option<String>,
    /// The origin of its status and its error, if a model took part in them.
    pub end_from: Option<Origin>,
    /// The origin of the values by which it has no results, or as many as it has, if a model gave one of them.
    pub outcome_from: Option<Origin>,
}

impl Data {
    /// Returns the values from models to which a name refers.
    pub(super) fn untrusted(&self, name: &Name) -> Vec<UntrustedValue> {
        if *name == Name::Item {
            return self.item_from.clone();
        }
        let input = match name {
            Name::Context(input) | Name::Task { task: input, .. } => input.clone(),
            Name::Param(_) | Name::Variable(_) | Name::Item | Name::Index | Name::Attempt => String::new(),
        };
        let value = |origin| UntrustedValue { name: name.to_string(), origin, input, is_data: false };
        self.origin_of(name).map(value).into_iter().collect()
    }

    fn origin_of(&self, name: &Name) -> Option<Origin> {
        match name {
            Name::Param(name) => self.params_from.get(name).copied(),
            Name::Context(name) => self.context_from.get(name)?.origin,
            Name::Task { task, field } => self.tasks.get(task)?.origin_of(field),
            // The person who gives the command gives the value, too.
            Name::Variable(_) | Name::Item | Name::Index | Name::Attempt => None,
        }
    }
}

impl TaskData {
    fn origin_of(&self, field: &TaskField) -> Option<Origin> {
        match field {
            TaskField::Context(name) => self.context_from.get(name)?.origin,
            TaskField::Artifact(name) => match self.artifacts_from.get(name) {
                Some(from) => from.origin,
                None => self.outcome_from,
            },
            TaskField::Result => self.result_from.origin,
            TaskField::Results => {
                self.results_from.iter().filter_map(|from| from.origin).max().max(self.outcome_from)
            }
            TaskField::Status | TaskField::Error => self.end_from,
        }
    }
}

/// The references of expressions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Names of parameters.
    pub params: BTreeSet<String>,
    /// Other tasks, by the text in the expressions, with the parts that are used.
    pub tasks: BTreeMap<String, TaskUse>,
    /// Names in the task's own context.
    pub context: BTreeSet<String>,
    /// True if `item` is used.
    pub item: bool,
    /// True if `index` is used.
    pub index: bool,
}

/// The parts of another task that expressions use, apart from its existence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskUse {
    /// Its result, its context or its artifacts.
    pub outcome: bool,
    /// The list of its results; for a `forEach`, the results of all items.
    pub results: bool,
    /// Its status or its error, whose origin depends on its calls.
    pub end: bool,
}

impl TaskUse {
    fn add(&mut self, other: Self) {
        self.outcome |= other.outcome;
        self.results |= other.results;
        self.end |= other.end;
    }
}

impl From<&TaskField> for TaskUse {
    fn from(field: &TaskField) -> Self {
        Self {
            outcome: matches!(field, TaskField::Result | TaskField::Context(_) | TaskField::Artifact(_)),
            results: *field == TaskField::Results,
            end: matches!(field, TaskField::Status | TaskField::Error),
        }
    }
}

impl References {
    /// Adds a name.
    pub(crate) fn add(&mut self, name: &Name) {
        match name {
            Name::Param(name) => _ = self.params.insert(name.clone()),
            Name::Context(name) => _ = self.context.insert(name.clone()),
            Name::Task { task, field } => self.tasks.entry(task.clone()).or_default().add(field.into()),
            Name::Item => self.item = true,
            Name::Index => self.index = true,
            Name::Variable(_) | Name::Attempt => {}
        }
    }

    /// Adds the references of other expressions.
    pub fn extend(&mut self, other: Self) {
        self.params.extend(other.params);
        for (task, used) in other.tasks {
            self.tasks.entry(task).or_default().add(used);
        }
        self.context.extend(other.context);
        self.item |= other.item;
        self.index |= other.index;
    }
}

impl<'a> FromIterator<&'a Name> for References {
    fn from_iter<T: IntoIterator<Item = &'a Name>>(names: T) -> Self {
        let mut references = Self::default();
        names.into_iter().for_each(|name| references.add(name));
        references
    }
}

/// A value, with the values from models that it was made of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evaluated<T> {
    /// The value.
    pub value: T,
    /// The values from models that were read.
    pub untrusted: Vec<UntrustedValue>,
}

impl<T> Evaluated<T> {
    /// Converts the value. The values it was made of stay the same.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Evaluated<U> {
        Evaluated { value: change(self.value), untrusted: self.untrusted }
    }
}

/// Evaluated arguments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Args {
    /// The arguments for the tool.
    pub args: Map,
    /// True if `raw` inserted a value into a shell command without quoting.
    pub raw: bool,
    /// The values from models that were read.
    pub untrusted: Vec<UntrustedValue>,
}
