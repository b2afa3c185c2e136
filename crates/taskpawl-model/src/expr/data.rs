//! What an expression sees, and what it refers to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::ast::{Name, TaskField};
use super::provenance::{Provenance, Provenances};
use crate::Status;
use crate::spec::{Map, Origin};
use crate::trust::{Origins, UntrustedValue};

/// What expressions are evaluated with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    /// `params`: the values of the parameters of the plan.
    pub params: Map,
    /// The origins of those that models gave.
    pub params_from: Origins,
    /// `context`: that of the task itself, with the results of its earlier calls.
    pub context: Map,
    /// The provenance of values of the context, by name.
    pub context_from: Provenances,
    /// `tasks`: by the text that the expressions use.
    pub tasks: BTreeMap<String, TaskData>,
    /// `item`: in an item of a `forEach`.
    pub item: Option<Value>,
    /// The values of models that its list was made of.
    pub item_from: Vec<UntrustedValue>,
    /// `index`: in an item of a `forEach`, from 0.
    pub index: Option<u64>,
    /// `attempt`: how often the task was claimed.
    pub attempt: u32,
    /// Bytes of results that calls keep by their own `keep`: an evaluation may cost more where there are some.
    pub kept_bytes: u64,
}

/// What expressions see of a task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskData {
    /// Its context, with the results of its calls.
    pub context: Map,
    /// The provenance of values of its context, by name.
    pub context_from: Provenances,
    /// Its result; null when it has none.
    pub result: Value,
    /// The provenance of its result.
    pub result_from: Provenance,
    /// The results of its items or its calls, in order; null for those that have none. None where they are more than an expression
    /// may walk or copy.
    pub results: Option<Vec<Value>>,
    /// The provenance of each of them; empty where none has one.
    pub results_from: Vec<Provenance>,
    /// Its state.
    pub status: Status,
    /// Why it failed.
    pub error: Option<String>,
    /// The origin of its status and its error, where a model has a part in them.
    pub end_from: Option<Origin>,
}

impl Data {
    /// Returns the values of models that a name stands for.
    pub(super) fn untrusted(&self, name: &Name) -> Vec<UntrustedValue> {
        if *name == Name::Item {
            return self.item_from.clone();
        }
        let input = match name {
            Name::Context(input) | Name::Task { task: input, .. } => input.clone(),
            Name::Param(_) | Name::Item | Name::Index | Name::Attempt => String::new(),
        };
        let value = |origin| UntrustedValue { name: name.to_string(), origin, input, is_data: false };
        self.origin_of(name).map(value).into_iter().collect()
    }

    fn origin_of(&self, name: &Name) -> Option<Origin> {
        match name {
            Name::Param(name) => self.params_from.get(name).copied(),
            Name::Context(name) => self.context_from.get(name)?.origin,
            Name::Task { task, field } => self.tasks.get(task)?.origin_of(field),
            Name::Item | Name::Index | Name::Attempt => None,
        }
    }
}

impl TaskData {
    fn origin_of(&self, field: &TaskField) -> Option<Origin> {
        match field {
            TaskField::Context(name) => self.context_from.get(name)?.origin,
            TaskField::Result => self.result_from.origin,
            TaskField::Results => self.results_from.iter().filter_map(|from| from.origin).max(),
            TaskField::Status | TaskField::Error => self.end_from,
        }
    }
}

/// What expressions refer to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Names of parameters.
    pub params: BTreeSet<String>,
    /// Other tasks, as they are written, with what is used of them.
    pub tasks: BTreeMap<String, TaskUse>,
    /// Names in the task's own context.
    pub context: BTreeSet<String>,
    /// Whether `item` is used.
    pub item: bool,
    /// Whether `index` is used.
    pub index: bool,
}

/// What expressions use of another task beside its state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskUse {
    /// Its result or its context.
    pub outcome: bool,
    /// The list of its results: of a `forEach` those of all items.
    pub results: bool,
    /// Its status or its error: their origin depends on its calls.
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
            outcome: matches!(field, TaskField::Result | TaskField::Context(_)),
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
            Name::Attempt => {}
        }
    }

    /// Adds everything that others refer to.
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

/// A value with the values of models that it was made of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evaluated<T> {
    /// The value.
    pub value: T,
    /// The values of models that were read.
    pub untrusted: Vec<UntrustedValue>,
}

impl<T> Evaluated<T> {
    /// Returns another value that was made of the same values.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Evaluated<U> {
        Evaluated { value: change(self.value), untrusted: self.untrusted }
    }
}

/// Arguments after evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Args {
    /// The values that the tool gets.
    pub args: Map,
    /// Whether a value went into a shell command as it is.
    pub raw: bool,
    /// The values of models that were read.
    pub untrusted: Vec<UntrustedValue>,
}
