//! The data types of plans.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use taskpawl_json::Position;

use super::{IncludedPlace, ParamType, PlanError, PlanErrors};
use crate::task::spec::{NewCall, TaskSpec, word_enum};
use crate::value::Map;
use crate::value::{Period, Shared, TaskId};

/// A checked plan. Every id is valid and unique. Every reference is to a task of the plan or to a valid id, which the
/// store must know. There are no cycles within the plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The version of the format: 1.
    pub version: u32,
    /// The name; the caller uses the file name if it is missing.
    pub name: Option<String>,
    /// The declared parameters.
    pub params: IndexMap<String, Param>,
    /// The given values of parameters, converted to their types; empty after reading a plan file.
    pub values: Map,
    /// Default fields of its tasks, already merged into the tasks.
    pub defaults: Map,
    /// Capacities of named resources.
    pub resources: IndexMap<String, u32>,
    /// The time limit of a run.
    pub timeout: Option<Period>,
    /// The limits of a run on calls, time and cost.
    pub budget: Option<Budget>,
    /// The number of failed tasks after which a run starts nothing more.
    pub max_failures: Option<u32>,
    /// The times at which a server runs it by itself.
    pub schedule: Option<PlanSchedule>,
    /// The program, with arguments, to notify when a task waits, fails or finishes.
    pub notify: Vec<String>,
    /// Tools that another program brings: a check does not refuse them as unknown.
    pub tools: Vec<String>,
    /// What it needs from outside.
    pub requires: Requires,
    /// The value of a task that includes it. It has no effect on the plan itself.
    pub returns: Option<Value>,
    /// The tasks, each after its parent.
    pub tasks: Vec<PlanTask>,
    /// Fields of the author's own, and fields unknown to this version.
    pub extra: Map,
    /// Unknown fields of the plan and its defaults. They are refused unless the store has them; see
    /// [`read_plan`](crate::plan::read_plan).
    pub unknown: Vec<PlanError>,
    /// The file it was read from; `None` if it is known only by its name.
    pub source: Option<PlanSource>,
    /// True if the plan is an instance. Ids of tasks that are added later begin with its name as well.
    pub is_instance: bool,
}

impl Plan {
    /// Refuses the unknown fields that were kept when the plan was read, for callers that do not compare it with a
    /// store.
    ///
    /// # Errors
    /// The plan has such fields.
    pub fn refuse_unknown(&self) -> Result<(), PlanErrors> {
        let of_tasks = self.tasks.iter().flat_map(|task| &task.unknown);
        let errors: Vec<PlanError> = self.unknown.iter().chain(of_tasks).cloned().collect();
        if errors.is_empty() { Ok(()) } else { Err(PlanErrors::new(errors)) }
    }

    /// Returns what the plan needs from outside: what it declares, and the variables that its calls name.
    pub fn all_required(&self) -> Requires {
        let mut requires = self.requires.clone();
        let calls = self.tasks.iter().flat_map(|task| &task.calls);
        let named: BTreeSet<String> = calls.flat_map(|call| call.spec.variables()).collect();
        let more: Vec<String> = named.into_iter().filter(|name| !requires.env.contains(name)).collect();
        requires.env.extend(more);
        requires
    }
}

/// What a plan needs from outside, so that its runs are refused at once where it is missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Requires {
    /// Names of environment variables that its programs need.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The position in the file.
    #[serde(skip)]
    pub at: Position,
}

/// The file of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanSource {
    /// Its path relative to the project, or its absolute path outside the project.
    pub path: String,
    /// True if the plan of this name has moved here from another file.
    pub is_moved: bool,
}

/// A task of a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanTask {
    /// The id, if the author gave one. Otherwise the task is known by its name within the plan.
    pub id: Option<TaskId>,
    /// The specification.
    pub spec: Shared<TaskSpec>,
    /// The initial context.
    pub context: Map,
    /// Its tool calls in order. Given ids are unique.
    pub calls: Vec<NewCall>,
    /// Dependencies in the plan, as positions in [`Plan::tasks`].
    pub needs: Vec<usize>,
    /// Dependencies outside the plan, as ids that the store must know.
    pub needs_outside: Vec<TaskId>,
    /// Names by which its expressions refer to other tasks of the plan, with their positions in [`Plan::tasks`].
    pub names: BTreeMap<String, usize>,
    /// The parent, as a position in [`Plan::tasks`] before its own.
    pub parent: Option<usize>,
    /// Unknown fields of the task and its calls. They are refused unless the store has them; see
    /// [`read_plan`](crate::plan::read_plan).
    pub unknown: Vec<PlanError>,
    /// The position in the file. A task of an included plan has that of the `include`.
    pub at: Position,
    /// The place of the task in a plan that was included.
    pub included: Option<Box<IncludedPlace>>,
}

impl PlanTask {
    /// Returns its id, or its name without one, for problems that are found after the plan was read. A task of an included
    /// plan has its place there.
    pub fn place(&self) -> String {
        let name = self.id.as_ref().map_or(self.spec.name.as_str(), TaskId::as_str);
        match &self.included {
            Some(place) => format!("{place}: task `{name}`"),
            None => format!("task `{name}`"),
        }
    }
}

/// A parameter of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Param {
    /// The type of its value.
    #[serde(rename = "type")]
    pub kind: ParamType,
    /// The value if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// The limits of a run of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// The number of started tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// The total duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Period>,
    /// Cost, in the unit that the tools report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// The times at which a server runs a plan. The model knows no calendar: programs that run schedules check the expression and
/// the zone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanSchedule {
    /// The cron expression, with five fields.
    pub cron: String,
    /// The name of the time zone in the IANA database.
    pub timezone: String,
    /// The rule for a time at which the instance before still runs.
    pub overlap: OverlapWord,
    /// The time after which an instance that only waits for people ends.
    pub expires: Period,
    /// True if the user's `notify` is told about failed and waiting instances.
    pub on_failure: Reaction,
    /// True if it is told about missed and skipped times.
    pub on_missed: Reaction,
    /// The position of the expression in the file.
    #[serde(skip)]
    pub at: Position,
    /// The position of the time zone.
    #[serde(skip)]
    pub zone_at: Position,
}

word_enum! {
    /// The rule for a time at which the instance before still runs.
    OverlapWord {
        /// The time is skipped.
        Skip = "skip",
        /// The instance starts after the end of the one before.
        Queue = "queue",
        /// The instance before is ended.
        Replace = "replace",
    }
}

word_enum! {
    /// The reaction to something that went wrong with an instance.
    Reaction {
        /// The user's `notify` is told.
        Notify = "notify",
        /// Nothing happens.
        None = "none",
    }
}
