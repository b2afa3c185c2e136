//! Additions that a call may make to its plan from inside the run, in their serialized form.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the variants that are not listed, and future ones, are treated alike"
)]
#![expect(clippy::result_large_err, reason = "a refusal is rare, and the caller boxes it")]

use crate::command::{Apply, Command, NewTask, OnChanged, PlanMutation, Refusal, TaskRef};
use crate::plan::{Plan, expand_plan, plan_from_json};
use crate::task::NewCall;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One addition to a plan. It names neither the actor nor the call: the run that serves the request knows
/// both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MutationRequest {
    /// Adds a task.
    Create(Box<NewTask>),
    /// Adds the tasks of a plan, sent as the fully expanded JSON form. The receiver parses and validates them
    /// again.
    Join(Value),
    /// Adds a tool call to an existing task.
    AddCall {
        /// The task that gets the call.
        id: TaskRef,
        /// The call to add, not yet validated.
        call: Box<NewCall>,
    },
    /// Adds a dependency between two tasks.
    AddDependency {
        /// The task that waits.
        id: TaskRef,
        /// The task that it waits for.
        on: TaskRef,
    },
    /// Adds a note to a task.
    Note {
        /// The task that gets the note.
        id: TaskRef,
        /// The text of the note.
        text: String,
    },
}

impl MutationRequest {
    /// Converts a command to an addition. Commands that do more than add, such as `done` or `prune`, are
    /// refused.
    pub fn of(command: &Command) -> Result<Self, Refusal> {
        Ok(match command {
            Command::Create(task) => Self::Create(task.clone()),
            Command::AddCall { id, call } => Self::AddCall { id: id.clone(), call: call.clone() },
            Command::AddDependency { id, on } => Self::AddDependency { id: id.clone(), on: on.clone() },
            Command::Note { id, text } => Self::Note { id: id.clone(), text: text.clone() },
            Command::Apply(apply) => Self::of_plan(apply)?,
            other => return Err(beyond(format!("`{}` is not allowed", other.traits().word))),
        })
    }

    /// Converts `apply` to an addition of tasks. Flags and header fields are refused, because they would
    /// change the existing plan.
    fn of_plan(apply: &Apply) -> Result<Self, Refusal> {
        let flags = [
            ("--prune", apply.prune),
            ("--fresh", apply.fresh),
            ("--redo-changed", apply.on_changed == OnChanged::Redo),
            ("--keep-changed", apply.on_changed == OnChanged::Keep),
            ("--retry-failed", apply.retry_failed),
        ];
        if let Some((flag, _)) = flags.iter().find(|(_, is_set)| *is_set) {
            return Err(beyond(format!("`{flag}` is not allowed")));
        }
        if let Some(field) = header_field(&apply.plan) {
            let what =
                format!("the tasks of a plan file join the plan of the call, but its `{field}` cannot");
            return Err(beyond(what));
        }
        Ok(Self::Join(expand_plan(&apply.plan)["tasks"].take()))
    }

    /// Converts the addition to the command that the rules decide on.
    ///
    /// # Errors
    /// The JSON of [`Join`](Self::Join) is not a valid list of tasks.
    pub fn into_mutation(self) -> Result<PlanMutation, Refusal> {
        Ok(match self {
            Self::Create(task) => PlanMutation::Create(task),
            Self::AddCall { id, call } => PlanMutation::AddCall { id, call },
            Self::AddDependency { id, on } => PlanMutation::AddDependency { id, on },
            Self::Note { id, text } => PlanMutation::Note { id, text },
            Self::Join(tasks) => PlanMutation::Join(Box::new(joining(&tasks)?)),
        })
    }
}

fn joining(tasks: &Value) -> Result<Plan, Refusal> {
    let invalid = |problem: String| Refusal::InvalidField { field: "tasks".to_owned(), problem };
    if !tasks.is_array() {
        return Err(invalid("expected a list of tasks".to_owned()));
    }
    plan_from_json(tasks).map_err(|errors| invalid(errors.to_string().trim().to_owned()))
}

fn beyond(what: String) -> Refusal {
    Refusal::BeyondAccess { access: None, what }
}

/// Returns the first header field of a plan, other than its tasks, that affects the way the tasks run.
fn header_field(plan: &Plan) -> Option<&'static str> {
    let fields = [
        ("params", !plan.params.is_empty()),
        ("resources", !plan.resources.is_empty()),
        ("timeout", plan.timeout.is_some()),
        ("budget", plan.budget.is_some()),
        ("maxFailures", plan.max_failures.is_some()),
        ("schedule", plan.schedule.is_some()),
        ("notify", !plan.notify.is_empty()),
        ("requires", !plan.requires.env.is_empty()),
    ];
    fields.into_iter().find(|(_, is_given)| *is_given).map(|(field, _)| field)
}
