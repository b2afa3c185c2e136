//! The origins of values: a call is authorized by the least trusted author of the values in it.
//!
//! Plans are files that people apply, and the calls of a plan run without approval. Models write values by hand:
//! context values, parameters, results of manual tasks. Without this check such a value could choose the program that a
//! trusted call starts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::task::record::{CallRecord, TaskRecord};
use crate::task::spec::{CallSpec, Origin, TaskSpec};
use crate::value::{CallId, Map};

/// Origins of values by name. Only values from models are listed. All others are as trusted as the call that reads
/// them.
pub type Origins = BTreeMap<String, Origin>;

/// The origins of values in a task that were written by hand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ValueOrigins {
    /// Origins of context values by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub context: Origins,
    /// Origins of the fields that decide on running the task: `when` and `forEach`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: Origins,
    /// The origin of the end of the task: its status, its error, and a result that was reported by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Origin>,
    /// Values from models that its condition or its list read when it was opened. Its calls, and those of its subtasks,
    /// are authorized with them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decided_by: Vec<UntrustedValue>,
    /// Calls whose `trustInputs` a person has confirmed, with the hash of the confirmed content.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub confirmed: BTreeMap<CallId, String>,
    /// Digests of the environment variables that the last question about the work covered, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
}

/// A value whose author is less trusted than the call that reads it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UntrustedValue {
    /// The expression that reads it, such as `context.target`.
    pub name: String,
    /// Its origin.
    pub origin: Origin,
    /// The task or context value it comes from, as named in `trustInputs`; empty if it is neither.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
    /// True if it is used only where values are data by construction. The call is authorized without it, but the result
    /// of the call is as untrusted as the value.
    #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
    pub is_data: bool,
}

impl Origin {
    /// Returns whether a model is the author. All other origins are trusted alike, because a person is responsible for
    /// them.
    pub fn is_of_model(self) -> bool {
        match self {
            Self::Cli | Self::Library | Self::Plan => false,
            Self::Mcp | Self::Agent => true,
        }
    }

    /// Returns the origin if it has to be recorded with a value, which is the case for models.
    pub(crate) fn noted(self) -> Option<Self> {
        Some(self).filter(|origin| origin.is_of_model())
    }

    fn author(self) -> &'static str {
        match self {
            Self::Cli => "came from the command line",
            Self::Library => "came from a program",
            Self::Plan => "came from a plan file",
            Self::Mcp => "came over MCP",
            Self::Agent => "came from an agent",
        }
    }
}

impl fmt::Display for UntrustedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.name, self.origin.author())
    }
}

impl UntrustedValue {
    /// Returns the value that represents the end of a call that was reported by hand.
    pub(crate) fn reported(origin: Origin) -> Self {
        Self { name: "its completion report".to_owned(), origin, input: String::new(), is_data: false }
    }

    /// Returns the reason for an approval of the call that reads this value.
    pub(crate) fn reason(&self, why: &str) -> String {
        format!("{self}: {why}")
    }
}

/// Adds values to a list without duplicates. A value counts as data only if it is data everywhere.
pub(crate) fn add_values(values: &mut Vec<UntrustedValue>, more: impl IntoIterator<Item = UntrustedValue>) {
    for value in more {
        match values.iter_mut().find(|known| known.name == value.name && known.origin == value.origin) {
            Some(known) => known.is_data &= value.is_data,
            None => values.push(value),
        }
    }
}

/// Records the origin of a value under its name. The last writer counts, except a model that repeats an existing value.
pub(crate) fn note_origin(origins: &mut Origins, name: &str, writer: Origin, is_new: bool) {
    match writer.noted() {
        // Repeating a value must not make it untrusted, or a model could spoil the values of people by writing them
        // again.
        Some(writer) if is_new => _ = origins.insert(name.to_owned(), writer),
        Some(_) => {}
        None => _ = origins.remove(name),
    }
}

impl TaskRecord {
    /// Records the author of all differences to `before`: context values, `when` and `forEach`.
    ///
    /// `written` has the context values that the command wrote. A trusted author takes responsibility for these, even
    /// if they are unchanged.
    pub(crate) fn note_writer(&mut self, before: Option<&Self>, written: &Map, writer: Origin) {
        let empty = Map::new();
        let old = before.map_or(&empty, |before| &before.body.context);
        let context = self.body.context.clone();
        let old_spec = before.map(|before| &before.spec);
        let (when, list) = (&self.spec.when, &self.spec.for_each);
        let has_other_when = when.is_some() && old_spec.is_none_or(|spec| spec.when != *when);
        let has_other_list = list.is_some() && old_spec.is_none_or(|spec| spec.for_each != *list);
        self.change_origins(|origins| {
            origins.context.retain(|name, _| context.contains_key(name));
            for (name, value) in &context {
                let is_new = old.get(name) != Some(value);
                if is_new || written.contains_key(name) {
                    note_origin(&mut origins.context, name, writer, is_new);
                }
            }
            for (field, is_new) in [("when", has_other_when), ("forEach", has_other_list)] {
                if is_new {
                    note_origin(&mut origins.fields, field, writer, true);
                    // The task is opened again, and then decided by the values it reads at that time.
                    origins.decided_by.clear();
                }
            }
        });
    }

    /// Returns the value that represents a field written by a model. It influences the calls like a value they read.
    pub(crate) fn field_of_model(&self, field: &str) -> Option<UntrustedValue> {
        let origin = self.body.origins.as_ref().and_then(|origins| origins.fields.get(field).copied())?;
        Some(UntrustedValue { name: field.to_owned(), origin, input: String::new(), is_data: false })
    }

    /// Returns the origin of the end of the task, if a model reported it.
    pub(crate) fn origin_of_end(&self) -> Option<Origin> {
        self.body.origins.as_ref().and_then(|origins| origins.end)
    }

    /// Returns the values from models by which the task was opened.
    pub(crate) fn decided_by(&self) -> &[UntrustedValue] {
        self.body.origins.as_ref().map_or(&[], |origins| &origins.decided_by)
    }

    /// Returns the hash that a person confirms to let a call trust its inputs. `None` if the call does not request
    /// this, or may not have it.
    ///
    /// The hash covers the plan, the task and the call as written, so that any change requires a new confirmation.
    pub(crate) fn confirmation(&self, call: &CallRecord) -> Option<String> {
        let names = trusted_inputs(&self.spec, &call.spec);
        // Calls that name secrets always need an approval if a model influences them; see `asks_by_itself`.
        if names.is_empty() || call.origin.is_of_model() || call.spec.refers_to_secrets() {
            return None;
        }
        let (plan, task, spec) = (self.plan.as_deref(), &self.id, &call.spec);
        let whole = json!([plan, task, call.id, spec.tool_name, spec.args, spec.when, names]);
        Some(format!("{:x}", Sha256::digest(whole.to_string())))
    }

    /// Returns whether a person has confirmed that a call trusts its inputs.
    pub(crate) fn is_confirmed(&self, call: &CallRecord) -> bool {
        let confirmed = self.body.origins.as_ref().and_then(|origins| origins.confirmed.get(&call.id));
        confirmed.is_some() && confirmed == self.confirmation(call).as_ref()
    }

    /// Changes the origins of values in the task that were written by hand.
    pub(crate) fn change_origins(&mut self, change: impl FnOnce(&mut ValueOrigins)) {
        let mut origins = self.body.origins.as_deref().cloned().unwrap_or_default();
        change(&mut origins);
        if self.body.origins.as_deref() != Some(&origins) {
            self.body.origins = (origins != ValueOrigins::default()).then(|| Box::new(origins));
        }
    }
}

impl CallRecord {
    /// Returns the origin of its result, if a model took part in it.
    ///
    /// A result is as trusted as the least trusted value that the call read. The program or host that produced it does
    /// not matter.
    pub(crate) fn origin_of_result(&self) -> Option<Origin> {
        let inserted = self.body.inserted.iter().flat_map(|values| values.iter());
        self.origin.noted().or_else(|| inserted.map(|value| value.origin).max())
    }
}

/// Returns the names of the inputs that a call requests to trust, itself or through its task.
pub(crate) fn trusted_inputs<'s>(task: &'s TaskSpec, call: &'s CallSpec) -> BTreeSet<&'s str> {
    task.trust_inputs.iter().chain(&call.trust_inputs).map(String::as_str).collect()
}
