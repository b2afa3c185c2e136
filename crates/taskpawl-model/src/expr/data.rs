//! What an expression sees, and what it refers to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::ast::{Name, TaskField};
use super::provenance::{Provenance, Provenances};
use crate::Status;
use crate::spec::Map;

/// What expressions are evaluated with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    /// `params`: the values of the parameters of the plan.
    pub params: Map,
    /// `context`: that of the task itself, with the results of its earlier calls.
    pub context: Map,
    /// The provenance of values of the context, by name.
    pub context_from: Provenances,
    /// `tasks`: by the text that the expressions use.
    pub tasks: BTreeMap<String, TaskData>,
    /// `item`: in an item of a `forEach`.
    pub item: Option<Value>,
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
}

impl TaskUse {
    fn add(&mut self, other: Self) {
        self.outcome |= other.outcome;
        self.results |= other.results;
    }
}

impl From<&TaskField> for TaskUse {
    fn from(field: &TaskField) -> Self {
        Self {
            outcome: matches!(field, TaskField::Result | TaskField::Context(_)),
            results: *field == TaskField::Results,
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

/// Arguments after evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Args {
    /// The values that the tool gets.
    pub args: Map,
    /// Whether a value went into a shell command as it is.
    pub raw: bool,
}
