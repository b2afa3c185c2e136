//! A plan as data.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use taskpawl_json::Position;

use super::{PlanError, PlanErrors};
use crate::spec::{Map, NewCall, TaskSpec, word_enum};
use crate::{Period, Shared, TaskId};

/// A plan as its file says it, checked: every id is valid and unique, every reference is to a task of the plan or to an
/// id that the store must know, and nothing refers to itself in a circle within the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The version of the format: 1.
    pub version: u32,
    /// The name; without one the border takes that of the file.
    pub name: Option<String>,
    /// The parameters that the plan takes.
    pub params: IndexMap<String, Param>,
    /// The values that were given for parameters, converted to their types. A plan file has none.
    pub values: Map,
    /// Fields that the tasks of the plan have unless they say otherwise; already written into the tasks.
    pub defaults: Map,
    /// Capacities of named resources.
    pub resources: IndexMap<String, u32>,
    /// The longest that a run of the plan may take.
    pub timeout: Option<Period>,
    /// What a run of the plan may use up.
    pub budget: Option<Budget>,
    /// After how many failed tasks a run of the plan starts nothing more.
    pub max_failures: Option<u32>,
    /// The program, with its arguments, that is told when something waits, failed or is finished.
    pub notify: Vec<String>,
    /// The tasks, each after the task that it is a subtask of.
    pub tasks: Vec<PlanTask>,
    /// Fields of the author's own, and those that this version does not know.
    pub extra: Map,
    /// Those of its fields, and of its defaults, that are refused unless the store has them: see [`read_plan`](crate::read_plan).
    pub unknown: Vec<PlanError>,
    /// The file that it was read from; none where it is known by its name alone.
    pub source: Option<PlanSource>,
    /// Whether it is an instance: ids that join it later begin with its name, too.
    pub is_instance: bool,
}

impl Plan {
    /// Refuses the unknown fields that were kept when the plan was read, for those who do not compare it with a store.
    ///
    /// # Errors
    /// There are such fields.
    pub fn refuse_unknown(&self) -> Result<(), PlanErrors> {
        let of_tasks = self.tasks.iter().flat_map(|task| &task.unknown);
        let errors: Vec<PlanError> = self.unknown.iter().chain(of_tasks).cloned().collect();
        if errors.is_empty() { Ok(()) } else { Err(PlanErrors::new(errors)) }
    }
}

/// The file of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanSource {
    /// Its path below the project; where it lies elsewhere, its whole path.
    pub path: String,
    /// Whether the plan of that name has moved here from another file.
    pub is_moved: bool,
}

/// A task of a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanTask {
    /// The id, where the author gives one. Without one the task is known by its name within the plan.
    pub id: Option<TaskId>,
    /// What the author writes.
    pub spec: Shared<TaskSpec>,
    /// The first context.
    pub context: Map,
    /// Its tool calls in order, with unique ids where given.
    pub calls: Vec<NewCall>,
    /// What it depends on: positions in [`Plan::tasks`].
    pub needs: Vec<usize>,
    /// What it depends on outside the plan: ids that the store must know.
    pub needs_outside: Vec<TaskId>,
    /// What its expressions call other tasks of the plan: positions in [`Plan::tasks`].
    pub names: BTreeMap<String, usize>,
    /// The task that it is a subtask of: a position in [`Plan::tasks`], smaller than its own.
    pub parent: Option<usize>,
    /// Those of its fields, and of its calls, that are refused unless the store has them: see [`read_plan`](crate::read_plan).
    pub unknown: Vec<PlanError>,
    /// Where it stands in the file.
    pub at: Position,
}

/// A parameter of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Param {
    /// The type of its value.
    #[serde(rename = "type")]
    pub kind: ParamType,
    /// The value when none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

word_enum! {
    /// The type of a parameter.
    ParamType {
        /// Text.
        String = "string",
        /// A whole number.
        Integer = "integer",
        /// A number.
        Number = "number",
        /// True or false.
        Boolean = "boolean",
        /// A list.
        Array = "array",
        /// An object.
        Object = "object",
    }
}

/// What a run of a plan may use up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Starts of tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Period>,
    /// Cost, in the unit that the tools report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}
