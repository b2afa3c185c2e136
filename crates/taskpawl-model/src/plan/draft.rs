//! Tasks of a plan while it is read.

use std::collections::{BTreeMap, BTreeSet};

use super::PlanTask;
use super::program::ProgramDefaults;
use crate::task::TaskSpec;
use crate::value::Map;
use taskpawl_json::Position;

/// A task with unresolved references.
#[derive(Debug)]
pub(super) struct Draft<'n> {
    pub(super) task: PlanTask,
    pub(super) place: Place,
    pub(super) needs: Vec<Reference<'n>>,
    pub(super) subtasks: Vec<Subtask<'n>>,
    pub(super) marks: Marks<'n>,
    /// Defaults of the task for its calls.
    pub(super) program: ProgramDefaults,
    /// References that are resolved already, because they come from an included plan. Few tasks have them.
    pub(super) resolved: Option<Box<Resolved>>,
    /// True if it includes a plan whose tasks are missing because of an error.
    pub(super) is_incomplete: bool,
}

impl Draft<'_> {
    /// Returns whether it is a task of an included plan.
    pub(super) fn is_included(&self) -> bool {
        matches!(self.place, Place::Included { .. })
    }
}

/// Resolved references of a draft.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// Its dependencies, as drafts.
    pub(super) needs: Vec<usize>,
    /// Names in its expressions, with their drafts.
    pub(super) names: BTreeMap<String, usize>,
    /// Names in its expressions that come from a `with`. They are those of the plan itself.
    pub(super) given: BTreeSet<String>,
}

/// The location of a task in the plan.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// A single task, outside a plan.
    Alone,
    /// An element of the list of tasks.
    Top(usize),
    /// An element of the subtasks of the draft `parent`.
    Nested { parent: usize, index: usize },
    /// A task of the plan that the draft `by` includes.
    Included { by: usize },
}

/// A reference to a task by id or name, with its position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference<'n> {
    pub(super) text: &'n str,
    pub(super) at: Position,
    pub(super) field: &'n str,
    /// The index, if it is in a list.
    pub(super) index: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Subtask<'n> {
    /// A task object in place, as the index of its draft.
    Nested(usize),
    Named(Reference<'n>),
}

/// Facts about the fields of a task that its checks need.
#[derive(Debug, Default)]
pub(super) struct Marks<'n> {
    /// True if an id or a name is given, valid or not.
    pub(super) named: bool,
    /// The fields that gave the dependencies, the calls and the context.
    pub(super) needs: Option<&'n str>,
    pub(super) calls: Option<&'n str>,
    pub(super) context: Option<&'n str>,
    pub(super) milestone: Option<Position>,
    pub(super) trigger: Option<Position>,
    pub(super) resources: Option<Position>,
    pub(super) worktree: Option<Position>,
    pub(super) approval: Option<Position>,
    /// The position of the subtasks.
    pub(super) subtasks: Option<Position>,
}

/// Default fields of the tasks of a plan.
#[derive(Debug, Default)]
pub(super) struct Defaults {
    pub(super) spec: TaskSpec,
    pub(super) program: ProgramDefaults,
    /// The given fields, as the author wrote them.
    pub(super) given: Map,
}
