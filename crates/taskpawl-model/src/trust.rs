//! The origin of values: a call is judged by the least trusted author of what its expressions insert.
//!
//! Plans are files that people apply, and the calls of a plan run unasked. A value that a model writes by hand (a context, a parameter,
//! the result of a manual task) could otherwise choose the program that such a call starts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::CallId;
use crate::decide::asks_by_itself;
use crate::gatekeeper::{Gatekeeper, Judgement, Proposed, requested};
use crate::record::{CallRecord, TaskRecord};
use crate::secret::names_secrets;
use crate::spec::{CallSpec, Map, Origin, TaskSpec};

/// Origins of values by name. Only values of models are listed: all others are as trusted as the call that inserts them.
pub type Origins = BTreeMap<String, Origin>;

/// The origins of what was written by hand into a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ValueOrigins {
    /// Of values of the context, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub context: Origins,
    /// Of what decides whether and for what the task runs: `when` and `forEach`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: Origins,
    /// Of the end of the task: its status, its error and a result that was reported by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Origin>,
    /// Values of models that its condition or its list read when it was opened: its calls, and those below it, are judged by them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decided_by: Vec<UntrustedValue>,
    /// Calls whose `trustInputs` a person has confirmed, with the hash of what was confirmed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub confirmed: BTreeMap<CallId, String>,
}

/// A value of a less trusted author than the call that reads it has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UntrustedValue {
    /// The expression that reads it, such as `context.target`.
    pub name: String,
    /// Its origin.
    pub origin: Origin,
    /// The task or the value of the context that it comes from, as `trustInputs` names it; empty where it is neither.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
    /// Whether it stands only where a value is data by construction: the call is not judged by it, its result is.
    #[serde(default, skip_serializing_if = "crate::spec::is_default")]
    pub is_data: bool,
}

impl Origin {
    /// Returns whether a model is the author. The others are trusted alike: a person answers for them.
    pub fn is_of_model(self) -> bool {
        match self {
            Self::Cli | Self::Library | Self::Plan => false,
            Self::Mcp | Self::Agent => true,
        }
    }

    /// Returns the origin where it is worth noting with a value.
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
    /// Returns the value that stands for the end of a call that was reported by hand.
    pub(crate) fn reported(origin: Origin) -> Self {
        Self { name: "the report of its end".to_owned(), origin, input: String::new(), is_data: false }
    }

    /// Returns the reason for a question about the call that reads it.
    pub(crate) fn reason(&self, why: &str) -> String {
        format!("{self}: {why}")
    }
}

/// Adds values to a list that has each name once. A name that is judged somewhere is judged.
pub(crate) fn add_values(values: &mut Vec<UntrustedValue>, more: impl IntoIterator<Item = UntrustedValue>) {
    for value in more {
        match values.iter_mut().find(|known| known.name == value.name && known.origin == value.origin) {
            Some(known) => known.is_data &= value.is_data,
            None => values.push(value),
        }
    }
}

/// Notes the origin of a value under its name: the last writer counts. A model that repeats a value did not write it.
pub(crate) fn note_origin(origins: &mut Origins, name: &str, writer: Origin, is_new: bool) {
    match writer.noted() {
        Some(writer) if is_new => _ = origins.insert(name.to_owned(), writer),
        Some(_) => {}
        None => _ = origins.remove(name),
    }
}

impl TaskRecord {
    /// Notes the author of what is other than `before`: of values of the context, of `when` and of `forEach`. A trusted author also
    /// answers for the values that it writes again, whose names are in `written`.
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
                    // It is opened anew, and decided anew by what it reads then.
                    origins.decided_by.clear();
                }
            }
        });
    }

    /// Returns the value that stands for a field which a model wrote: it decides about the calls as a value does that it reads.
    pub(crate) fn field_of_model(&self, field: &str) -> Option<UntrustedValue> {
        let origin = self.body.origins.as_ref().and_then(|origins| origins.fields.get(field).copied())?;
        Some(UntrustedValue { name: field.to_owned(), origin, input: String::new(), is_data: false })
    }

    /// Returns the origin of the end of the task, where a model reported it.
    pub(crate) fn origin_of_end(&self) -> Option<Origin> {
        self.body.origins.as_ref().and_then(|origins| origins.end)
    }

    /// Returns the values of models by which it was decided that the task runs.
    pub(crate) fn decided_by(&self) -> &[UntrustedValue] {
        self.body.origins.as_ref().map_or(&[], |origins| &origins.decided_by)
    }

    /// Returns the hash of what a person confirms who lets a call trust its inputs; `None` where it asks for nothing of the kind, or may
    /// not have it. The hash holds for one plan, one task and one call as it is written.
    pub(crate) fn confirmation(&self, call: &CallRecord) -> Option<String> {
        let names = trusted_inputs(&self.spec, &call.spec);
        if names.is_empty() || call.origin.is_of_model() || names_secrets(&call.spec) {
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

    /// Changes the origins of what was written by hand into the task.
    pub(crate) fn change_origins(&mut self, change: impl FnOnce(&mut ValueOrigins)) {
        let mut origins = self.body.origins.as_deref().cloned().unwrap_or_default();
        change(&mut origins);
        if self.body.origins.as_deref() != Some(&origins) {
            self.body.origins = (origins != ValueOrigins::default()).then(|| Box::new(origins));
        }
    }
}

impl CallRecord {
    /// Returns the origin of its result, where a model has a part in it: a result is as trusted as the least trusted value that the call
    /// was given. That a program or a host produced it counts for nothing.
    pub(crate) fn origin_of_result(&self) -> Option<Origin> {
        let inserted = self.body.inserted.iter().flat_map(|values| values.iter());
        self.origin.noted().or_else(|| inserted.map(|value| value.origin).max())
    }
}

/// Returns the names that a call may trust, by its own request or by that of its task.
pub(crate) fn trusted_inputs<'s>(task: &'s TaskSpec, call: &'s CallSpec) -> BTreeSet<&'s str> {
    task.trust_inputs.iter().chain(&call.trust_inputs).map(String::as_str).collect()
}

/// Returns the judgement about a call by the policy, if there is one, and by the rules that no policy lifts.
pub(crate) fn judge_whole(
    gatekeeper: Option<&dyn Gatekeeper>,
    record: &TaskRecord,
    call: &CallRecord,
    args: &Map,
    values: &[UntrustedValue],
) -> Judgement {
    let judgement = gatekeeper.map_or(Judgement::Allow, |keeper| judge(keeper, record, call, args, values));
    if judgement != Judgement::Allow {
        return judgement;
    }
    match asks_by_itself(call.origin, &call.spec, values) {
        Some(why) => Judgement::Ask { why },
        None => Judgement::Allow,
    }
}

/// Returns the judgement about a call with these arguments, by its own origin and by that of each value that decides about it.
fn judge(
    gatekeeper: &dyn Gatekeeper,
    record: &TaskRecord,
    call: &CallRecord,
    args: &Map,
    values: &[UntrustedValue],
) -> Judgement {
    let as_of = |origin| {
        let sandbox = requested(&record.spec, &call.spec);
        gatekeeper.judge(&Proposed { tool: &call.spec.tool_name, args, origin, sandbox })
    };
    let mut judgement = as_of(call.origin);
    for value in deciding(call, values) {
        let other = match as_of(value.origin) {
            Judgement::Allow => continue,
            Judgement::Ask { why } => Judgement::Ask { why: value.reason(&why) },
            Judgement::Deny { why } => Judgement::Deny { why: value.reason(&why) },
        };
        if other.strictness() > judgement.strictness() {
            judgement = other;
        }
    }
    judgement
}

/// Returns the values by which a call is judged beside its own origin, one of each origin.
fn deciding<'v>(
    call: &CallRecord,
    values: &'v [UntrustedValue],
) -> impl Iterator<Item = &'v UntrustedValue> + use<'v> {
    let is_less_trusted = !call.origin.is_of_model();
    Origin::ALL.iter().filter_map(move |origin| {
        let mut of_origin = values.iter().filter(|value| value.origin == *origin && !value.is_data);
        of_origin.next().filter(|_| is_less_trusted)
    })
}
