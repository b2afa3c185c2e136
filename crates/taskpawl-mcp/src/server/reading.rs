//! Reads what models write: values in another type, other words for states and actions, other names of arguments.
//!
//! It happens once, before policy, digest and store, and only where one thing can be meant. What stands in `args`, `result`,
//! `context`, `params` and `metadata`, and text, is taken as it is. What was understood is told in the answer.

mod calls;
pub(super) mod corrected;
pub(super) mod foreign;
mod ids;
mod needs;
mod tasks;
mod texts;
mod values;
mod words;

use std::cell::OnceCell;
use std::collections::BTreeSet;

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};
use taskpawl::Manager;
use taskpawl::tools::Registry;
use taskpawl_text::nearest;

use super::actions::Action;
use super::brief::cut;
use super::core::Core;
use super::refusal::Refused;

/// Maximum number of readings that an answer names.
const MAX_TOLD: usize = 6;

/// Maximum length of a value in a reading, in characters.
const SHOWN_CHARS: usize = 40;

/// Arguments that every tool takes, also where its schema leaves them out.
pub(super) const FOR_ALL: [&str; 3] = ["agent", "request_id", "max_bytes"];

/// The readings of one call.
pub(super) struct Reading<'a> {
    pub(super) manager: &'a Manager,
    pub(super) tools: &'a Registry,
    told: Vec<String>,
    known: OnceCell<Vec<KnownTask>>,
}

/// A task that a text can mean.
struct KnownTask {
    id: String,
    /// In lower case.
    folded_id: String,
    /// In lower case.
    folded_name: String,
}

impl<'a> Reading<'a> {
    pub(super) fn new(manager: &'a Manager, tools: &'a Registry) -> Self {
        Self { manager, tools, told: Vec::new(), known: OnceCell::new() }
    }

    /// Reads the arguments of a call to a tool with this schema. Blocks.
    ///
    /// # Errors
    /// A value can mean several things, or the action needs the exact one. The refusal has the corrected call.
    pub(super) fn read(
        &mut self,
        tool: Core,
        schema: &JsonObject,
        arguments: &mut Map<String, Value>,
    ) -> Result<(), Refused> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
        self.names(tool, properties, arguments);
        one_id(tool, arguments)?;
        for (name, property) in properties {
            // A plan given as text has its own rules.
            if let Some(value) =
                arguments.get_mut(name).filter(|_| !(name == "plan" && property["type"] == "object"))
            {
                self.value(name, property, value)?;
            }
        }
        for name in FOR_ALL.into_iter().filter(|name| !properties.contains_key(*name)) {
            if let Some(value) = arguments.get_mut(name) {
                let kind = if name == "max_bytes" { "integer" } else { "string" };
                self.value(name, &json!({"type": kind}), value)?;
            }
        }
        // `null` is absent, as some clients send every field.
        arguments.retain(|name, value| !value.is_null() || name == "result");
        match tool {
            Core::PlanWrite => self.plan(arguments)?,
            Core::TaskAdd => {
                self.task("", arguments);
                // Under another name it was not read as a list yet.
                if let (Some(property), Some(needs)) = (properties.get("needs"), arguments.get_mut("needs")) {
                    self.value("needs", property, needs)?;
                }
            }
            Core::TaskUpdate => {
                if let Some(Value::Object(fields)) = arguments.get_mut("fields") {
                    self.task("fields.", fields);
                }
            }
            Core::PlanShow | Core::TaskGet | Core::TaskDelete | Core::ReadyList | Core::RunReady => {}
        }
        self.ids(tool, arguments)?;
        unknown(tool, properties, arguments)
    }

    /// Returns what was understood, in words.
    pub(super) fn told(mut self) -> Vec<String> {
        // The tasks of a plan are usually all written in the same way.
        let mut seen = BTreeSet::new();
        self.told.retain(|told| seen.insert(told.clone()));
        let more = self.told.len().saturating_sub(MAX_TOLD);
        self.told.truncate(MAX_TOLD);
        if more > 0 {
            self.told.push(format!("and {more} more"));
        }
        self.told
    }

    fn tell(&mut self, place: &str, given: &Value, read: &Value) {
        let shown = |value: &Value| match value.as_str() {
            Some(text) => cut(text, SHOWN_CHARS),
            None => cut(&value.to_string(), SHOWN_CHARS),
        };
        let is_other_type = shown(given) == shown(read);
        // The quotes show which of them is the text.
        let (given, meant) = if is_other_type {
            (cut(&given.to_string(), SHOWN_CHARS), cut(&read.to_string(), SHOWN_CHARS))
        } else {
            (shown(given), shown(read))
        };
        self.told.push(format!("{place}: {given} as {meant}"));
    }

    fn tell_name(&mut self, given: &str, read: &str) {
        self.told.push(format!("{given} as {read}"));
    }

    /// Renames arguments that have another usual name.
    fn names(&mut self, tool: Core, properties: &Map<String, Value>, arguments: &mut Map<String, Value>) {
        let given: Vec<String> =
            arguments.keys().filter(|name| !properties.contains_key(*name)).cloned().collect();
        for name in given {
            let Some(meant) = words::argument(tool, &name, arguments[&name].is_array()) else { continue };
            let is_known = properties.contains_key(meant) || FOR_ALL.contains(&meant);
            if arguments.contains_key(meant) || !is_known {
                continue;
            }
            if let Some(value) = arguments.remove(&name) {
                // A plan without a name is no plan: with all others it would be one that does not exist.
                if name == "plan" && value == "" {
                    continue;
                }
                self.tell_name(&name, meant);
                arguments.insert(meant.to_owned(), words::in_place(tool, &name, meant, value));
            }
        }
    }
}

/// Refuses several ids where one is expected, with the call for the first.
fn one_id(tool: Core, arguments: &Map<String, Value>) -> Result<(), Refused> {
    let ids = arguments.get("id").and_then(Value::as_array).filter(|ids| ids.len() > 1);
    let Some(first) = ids.and_then(|ids| ids.first()).cloned() else { return Ok(()) };
    let mut corrected = arguments.clone();
    corrected.insert("id".to_owned(), first);
    Err(instead(tool, "id", "expected one id: make a call for each".to_owned(), corrected))
}

/// Refuses an argument that the tool does not have, with the call as it should be. Without the argument a call that changes something could
/// do more than was meant, or lose what it was to record. Tools that take further fields of plans check these themselves.
fn unknown(
    tool: Core,
    properties: &Map<String, Value>,
    arguments: &Map<String, Value>,
) -> Result<(), Refused> {
    if tool == Core::TaskAdd {
        return Ok(());
    }
    let is_known = |name: &str| properties.contains_key(name) || FOR_ALL.contains(&name);
    let Some(name) = arguments.keys().find(|name| !is_known(name)) else { return Ok(()) };
    let mut corrected = arguments.clone();
    let value = corrected.remove(name);
    let free = properties.keys().map(String::as_str).filter(|known| !arguments.contains_key(*known));
    let near = nearest(name, free);
    if let (Some(near), Some(value)) = (near, value) {
        corrected.insert(near.to_owned(), value);
    }
    let known: Vec<&str> = properties.keys().map(String::as_str).collect();
    let problem = format!("there is no such argument, only {}", known.join(", "));
    let may_leave_out =
        if tool.reads(arguments) { !words::is_restriction(name) } else { words::is_remark(tool, name) };
    if near.is_none() && !may_leave_out {
        return Err(Refused::argument(name, problem));
    }
    Err(instead(tool, name, problem, corrected))
}

/// Returns the refusal of an argument, with the corrected call.
pub(super) fn instead(tool: Core, name: &str, problem: String, corrected: Map<String, Value>) -> Refused {
    Refused::argument(name, problem).corrected(Action::call(tool.name(), Value::Object(corrected)))
}
