//! The core tools: their names, arguments and answers, and the functions that run them.

mod plan_show;
mod plan_write;
pub(super) mod ready_list;
pub(super) mod run_ready;
mod task_add;
mod task_delete;
mod task_get;
pub(super) mod task_update;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use taskpawl::model::command::Refusal;
use taskpawl::model::task::PlanAccess;

use super::actions::Action;
use super::answer::Answer;
use super::caller::Caller;
use super::options::{Offer, ServerOptions};
use super::refusal::Refused;

/// A core tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Core {
    PlanShow,
    PlanWrite,
    ReadyList,
    RunReady,
    TaskAdd,
    TaskDelete,
    TaskGet,
    TaskUpdate,
}

/// The behaviour of a tool, in the terms of MCP.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "four independent facts, named as in MCP")]
struct Hints {
    reads_only: bool,
    destroys: bool,
    is_idempotent: bool,
    is_open: bool,
}

const READS: Hints = Hints { reads_only: true, destroys: false, is_idempotent: true, is_open: false };

/// Repeating a call with a `request_id` changes nothing; without one it may.
const WRITES: Hints = Hints { reads_only: false, destroys: false, is_idempotent: false, is_open: false };

/// The definition of a tool, as clients see it.
struct Definition {
    description: &'static str,
    input: Value,
    hints: Hints,
}

impl Core {
    /// All tools, in the order in which a plan is written and carried out.
    pub(super) const ALL: [Self; 8] = [
        Self::PlanShow,
        Self::PlanWrite,
        Self::TaskAdd,
        Self::TaskGet,
        Self::TaskUpdate,
        Self::TaskDelete,
        Self::ReadyList,
        Self::RunReady,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::PlanShow => "plan_show",
            Self::PlanWrite => "plan_write",
            Self::ReadyList => "ready_list",
            Self::RunReady => "run_ready",
            Self::TaskAdd => "task_add",
            Self::TaskDelete => "task_delete",
            Self::TaskGet => "task_get",
            Self::TaskUpdate => "task_update",
        }
    }

    /// Returns the tool with this name, if the server offers it.
    pub(super) fn named(name: &str, options: &ServerOptions) -> Option<Self> {
        Self::all(options).find(|tool| tool.name() == name)
    }

    /// Returns the tools that the server offers.
    pub(super) fn all(options: &ServerOptions) -> impl Iterator<Item = Self> + use<> {
        let ServerOptions { has_plan, read_only, within, offer, .. } = *options;
        Self::ALL.into_iter().filter(move |tool| {
            let is_admitted = match within {
                None => !read_only,
                Some(access) => !read_only && access == PlanAccess::Add && tool.adds(),
            };
            let is_offered = match offer {
                Offer::All => true,
                Offer::Work => matches!(tool, Self::TaskGet | Self::TaskUpdate | Self::ReadyList),
            };
            has_plan && is_offered && (is_admitted || tool.has_read_only_form())
        })
    }

    /// Returns the refusal of a tool that programs of a call with this access cannot use.
    pub(super) fn beyond(self, access: PlanAccess) -> Refusal {
        if self.adds() {
            return Refusal::BeyondAccess {
                access: Some(access),
                what: "this command would change it".to_owned(),
            };
        }
        Refusal::BeyondAccess { access: None, what: format!("`{}` is not allowed", self.name()) }
    }

    /// Returns the tool with this name, even if the server does not offer it.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Returns whether the tool only adds to a plan.
    fn adds(self) -> bool {
        matches!(self, Self::TaskAdd | Self::PlanWrite)
    }

    /// Returns whether a call only reads, so that it can be repeated for more of the answer.
    pub(super) fn reads(self, arguments: &Map<String, Value>) -> bool {
        match self {
            Self::PlanShow | Self::TaskGet => true,
            Self::ReadyList => arguments.get("claim") != Some(&Value::Bool(true)),
            Self::PlanWrite | Self::RunReady | Self::TaskAdd | Self::TaskDelete | Self::TaskUpdate => false,
        }
    }

    /// Returns the same call as a next step.
    pub(super) fn again(self, arguments: &Map<String, Value>) -> Action {
        let mut same = arguments.clone();
        same.retain(|_, value| !value.is_null());
        Action::call(self.name(), same.into())
    }

    fn has_read_only_form(self) -> bool {
        matches!(self, Self::PlanShow | Self::TaskGet | Self::ReadyList)
    }

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

/// Returns the schema of a tool's arguments. Every tool takes `agent`; those that write take `request_id`.
fn schema(mut properties: Value, required: &[&str], writes: bool) -> Value {
    properties["agent"] = text();
    if writes {
        properties["request_id"] = text();
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn text() -> Value {
    json!({"type": "string"})
}

fn texts() -> Value {
    json!({"type": "array", "items": text()})
}

fn number() -> Value {
    json!({"type": "integer"})
}

fn switch() -> Value {
    json!({"type": "boolean"})
}
