//! What a decision is about: everything that would run, with the arguments as far as they are known, and its hash.

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::flow::KnownArgs;
use crate::spec::{Map, Origin, SandboxRequest, Timestamp};
use crate::trust::UntrustedValue;
use crate::{CallId, TaskId};

/// A question that a task or a call asks before it starts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// The plan that it came with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The call; absent where the whole task waits, with all below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The question in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// Why it is asked although its author does not say so: the rule, and where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The answers to choose from; none stands for yes or no.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// When the question no longer stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What counts then: `reject`, `approve`, or one of the options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<String>,
    /// The SHA-256, in hexadecimal, of what would run: an approval is good for that alone.
    pub hash: String,
    /// The calls that would run.
    pub calls: Vec<AskedCall>,
    /// The elements of the list that each of the calls would run for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<Value>>,
}

/// A call that would run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedCall {
    /// The task.
    pub task: TaskId,
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: String,
    /// Its arguments, evaluated.
    pub args: Map,
    /// The arguments whose values nobody knows before other calls have run: they stand as their author wrote them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// What it asks of the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxRequest>,
    /// Who added it.
    pub origin: Origin,
    /// The values of models that its condition and its arguments read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untrusted: Vec<UntrustedValue>,
    /// Those of its inputs that it trusts from then on if it is approved, be their values others.
    #[serde(rename = "trustInputs", skip_serializing_if = "Vec::is_empty")]
    pub trusts: Vec<String>,
}

impl AskedCall {
    pub(crate) fn known(self) -> KnownArgs {
        let Self { args, unknown, untrusted, .. } = self;
        KnownArgs { args, unknown, untrusted }
    }
}

/// What a decision is about.
#[derive(Debug)]
pub(crate) struct Subject {
    /// The calls; those of a list as they were written.
    pub(crate) calls: Vec<AskedCall>,
    /// The elements of the list.
    pub(crate) items: Option<Vec<Value>>,
    /// The arguments of the calls for each of these.
    pub(crate) args_of_items: Vec<Map>,
}

impl ApprovalRequest {
    /// Returns whether the time to decide is over at `now`.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// Returns the hash of what would run, under a version of the policy.
pub(crate) fn hash(task: &TaskId, subject: &Subject, policy: Option<&str>) -> String {
    let calls: Vec<Value> = subject.calls.iter().map(call_to_hash).collect();
    let mut whole = json!({"task": task, "calls": calls, "items": subject.items});
    // What is not there leaves no trace: earlier versions hashed without it.
    if !subject.args_of_items.is_empty() {
        whole["argsOfItems"] = json!(subject.args_of_items);
    }
    if let Some(policy) = policy {
        whole["policy"] = policy.into();
    }
    let mut text = String::new();
    canonical(&whole, &mut text);
    hex(&Sha256::digest(text))
}

fn call_to_hash(call: &AskedCall) -> Value {
    let mut hashed = json!({"task": call.task, "call": call.call, "tool": call.tool, "args": call.args});
    if let Some(sandbox) = &call.sandbox {
        hashed["sandbox"] = json!(sandbox);
    }
    hashed
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Writes a value so that equal ones have equal texts: objects by the order of their keys.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (key, value) in entries {
                canonical(&Value::from(key.as_str()), text);
                text.push(':');
                canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}
