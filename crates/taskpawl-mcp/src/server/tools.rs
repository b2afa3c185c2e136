//! The core tools: their arguments and answers, and the functions that run them.

mod definition;
mod plan_show;
mod plan_write;
pub(super) mod ready_list;
pub(super) mod run_ready;
mod task_add;
mod task_delete;
mod task_get;
pub(super) mod task_update;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value};

use super::answer::Answer;
use super::caller::Caller;
use super::core::Core;
use super::options::ServerOptions;
use super::refusal::Refused;
use definition::Definition;

impl Core {
    /// Returns the definition for clients.
    pub(super) fn definition(self, options: &ServerOptions) -> Tool {
        let Definition { description, mut input, hints } = match self {
            Self::PlanShow => plan_show::definition(),
            Self::PlanWrite => plan_write::definition(options.within.is_some()),
            Self::ReadyList => ready_list::definition(options.claims_nothing()),
            Self::RunReady => run_ready::definition(),
            Self::TaskAdd => task_add::definition(),
            Self::TaskDelete => task_delete::definition(),
            Self::TaskGet => task_get::definition(),
            Self::TaskUpdate => task_update::definition(options.offer),
        };
        if options.within.is_some()
            && let Some(properties) = input["properties"].as_object_mut()
        {
            // Answers of idempotent requests are stored with the plan, and a run stores none for its calls.
            properties.remove("request_id");
        }
        let annotations = ToolAnnotations::new()
            .read_only(hints.reads_only)
            .destructive(hints.destroys)
            .idempotent(hints.is_idempotent)
            .open_world(hints.is_open);
        // Without a schema of the answer: a model reads the answer itself, and a definition costs it context in every turn.
        Tool::new(self.name(), description, object(input)).with_annotations(annotations)
    }

    /// Checks the arguments of a call without making it.
    pub(super) fn check(self, arguments: Map<String, Value>) -> Result<(), Refused> {
        match self {
            Self::PlanShow => plan_show::check_arguments(arguments),
            Self::PlanWrite => plan_write::check_arguments(arguments),
            Self::ReadyList => ready_list::check_arguments(arguments),
            Self::RunReady => run_ready::Arguments::read(arguments).map(drop),
            Self::TaskAdd => task_add::check_arguments(arguments),
            Self::TaskDelete => task_delete::check_arguments(arguments),
            Self::TaskGet => task_get::check_arguments(arguments),
            Self::TaskUpdate => task_update::check_arguments(arguments),
        }
    }

    /// Runs a call. Blocks. A call of `run_ready` is not handled here, because it waits.
    pub(super) fn call(
        self,
        caller: &Caller,
        options: &ServerOptions,
        arguments: Map<String, Value>,
    ) -> Result<Answer, Refused> {
        match self {
            Self::PlanShow => plan_show::call(caller, arguments),
            Self::PlanWrite => plan_write::call(caller, options, arguments),
            Self::ReadyList => ready_list::call(caller, options, arguments),
            Self::TaskAdd => task_add::call(caller, options, arguments),
            Self::TaskDelete => task_delete::call(caller, arguments),
            Self::TaskGet => task_get::call(caller, arguments),
            Self::TaskUpdate => task_update::call(caller, options, arguments),
            Self::RunReady => unreachable!("BUG: a run is waited for"),
        }
    }
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else {
        unreachable!("BUG: a schema is an object");
    };
    fields
}
