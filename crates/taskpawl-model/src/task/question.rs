//! Approval requests: the calls that would run, their arguments as far as they are known, and the hash of both.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::task::asked::Artifact;
use crate::task::record::CallRecord;
use crate::task::spec::{Origin, SandboxRequest};
use crate::task::trust::UntrustedValue;
use crate::task::work_hash::{canonical_hash, work_hash};
use crate::value::{CallId, TaskId, used_variables};
use crate::value::{Map, Timestamp};

/// A request to approve a task or a call before it starts, or the result of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// The task.
    pub task: TaskId,
    /// The name of the task.
    pub name: String,
    /// The plan that created the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The call; absent if the request is for the whole task with its subtasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The question of the author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// The reason, if the author did not ask for an approval: the rule and its location.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The possible answers; empty for yes or no.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// True if any text is an answer: the tool of the call asks, and gives no options.
    #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
    pub takes_text: bool,
    /// The time at which the question expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The answer after that time: `reject`, `approve`, or one of the options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<String>,
    /// The SHA-256, in hexadecimal, of the calls. An approval is valid for this hash only.
    pub hash: String,
    /// True if the request is about the result of the task, whose calls have run.
    #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
    pub after: bool,
    /// The calls that would run; none if the request is about a result.
    pub calls: Vec<AskedCall>,
    /// The results to decide about, if the calls have run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<AskedResult>,
    /// The elements of the list, if the calls would run for each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<Value>>,
}

/// Questions that tasks will ask.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ApprovalsAhead {
    /// Those that can be answered now.
    pub requests: Vec<ApprovalRequest>,
    /// Those that will be asked when the task or the call starts.
    pub later: Vec<LaterApproval>,
}

/// A question that cannot be answered before it is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LaterApproval {
    /// The task.
    pub task: TaskId,
    /// The call; absent if the question is for the whole task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The reason.
    pub reason: LaterReason,
}

/// The reason why a question cannot be answered before it is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LaterReason {
    /// The author of the plan wants a decision at that point.
    Author,
    /// The author of the plan wants a decision about the result.
    Result,
    /// The list of the task is not known.
    List,
    /// These arguments are not known.
    Arguments(Vec<String>),
    /// The values of these environment variables belong to a run.
    Variables(Vec<String>),
}

impl std::fmt::Display for LaterReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Author => f.write_str("its author wants a decision when it starts"),
            Self::Result => f.write_str("its author wants a decision about its result"),
            Self::List => f.write_str("its list is not known yet"),
            Self::Arguments(names) => write!(f, "not known yet: {}", names.join(", ")),
            Self::Variables(names) => write!(f, "it uses variables of the run: {}", names.join(", ")),
        }
    }
}

/// A call that would run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AskedCall {
    /// The task.
    pub task: TaskId,
    /// The call.
    pub call: CallId,
    /// The name of the tool.
    pub tool: String,
    /// The arguments, evaluated.
    pub args: Map,
    /// The arguments whose values depend on calls that have not run yet. They keep the text of the author.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Permissions that it requests from the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxRequest>,
    /// The kind of author that added it.
    pub origin: Origin,
    /// Values from models that its condition and its arguments read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untrusted: Vec<UntrustedValue>,
    /// The inputs that the call trusts from then on if it is approved, even if their values change.
    #[serde(rename = "trustInputs", default, skip_serializing_if = "Vec::is_empty")]
    pub trusts: Vec<String>,
}

/// The result of a call of a task that a person decides about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AskedResult {
    /// The call.
    pub call: CallId,
    /// The name of the tool.
    pub tool: String,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The fields of the result that were cut when it was stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
    /// The number of starts: an equal result of a later start is another one.
    pub attempts: u32,
    /// The files that the call recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
}

impl AskedResult {
    /// Returns the result of a call.
    pub(crate) fn of(call: &CallRecord) -> Self {
        let body = &call.body;
        Self {
            call: call.id.clone(),
            tool: call.spec.tool_name.clone(),
            result: body.result.clone(),
            cut: body.cut.as_deref().cloned().unwrap_or_default(),
            attempts: body.attempts,
            artifacts: body.artifacts.as_deref().cloned().unwrap_or_default(),
        }
    }
}

/// Returns the hash of the results of a task.
pub(crate) fn hash_of_results(task: &TaskId, results: &[AskedResult]) -> String {
    canonical_hash(&json!({"task": task, "results": results}))
}

/// The work that an approval covers.
#[derive(Debug)]
pub(crate) struct Subject {
    /// The calls; those of a list without evaluated items.
    pub(crate) calls: Vec<AskedCall>,
    /// The elements of the list.
    pub(crate) items: Option<Vec<Value>>,
    /// The arguments of the calls for each element.
    pub(crate) args_of_items: Vec<Map>,
}

impl AskedCall {
    /// Returns the hash of the work that the call does: its tool, its arguments and its sandbox request, in any task.
    pub fn work_hash(&self) -> String {
        work_hash(&self.tool, &self.args, self.sandbox.as_ref())
    }
}

impl ApprovalRequest {
    /// Returns whether a plain yes decides it.
    pub fn is_plain(&self) -> bool {
        self.options.is_empty() && !self.takes_text
    }

    /// Returns whether the request has expired at `now`.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

impl Subject {
    /// Returns the names of the environment variables that the calls use.
    pub(crate) fn variables(&self) -> BTreeSet<String> {
        let of_calls = self.calls.iter().map(|call| used_variables(&call.args));
        let of_items = self.args_of_items.iter().map(used_variables);
        of_calls.chain(of_items).flatten().collect()
    }
}

/// Returns the hash of the calls under a version of the policy. `variables` are digests of the environment variables that
/// they use.
pub(crate) fn hash(
    task: &TaskId,
    subject: &Subject,
    policy: Option<&str>,
    variables: &BTreeMap<String, String>,
) -> String {
    let calls: Vec<Value> = subject.calls.iter().map(call_to_hash).collect();
    let mut whole = json!({"task": task, "calls": calls, "items": subject.items});
    // Absent parts are left out of the hash, so that hashes of earlier versions stay valid.
    if !subject.args_of_items.is_empty() {
        whole["argsOfItems"] = json!(subject.args_of_items);
    }
    if !variables.is_empty() {
        whole["variables"] = json!(variables);
    }
    if let Some(policy) = policy {
        whole["policy"] = policy.into();
    }
    canonical_hash(&whole)
}

fn call_to_hash(call: &AskedCall) -> Value {
    let mut hashed = json!({"task": call.task, "call": call.call, "tool": call.tool, "args": call.args});
    if let Some(sandbox) = &call.sandbox {
        hashed["sandbox"] = json!(sandbox);
    }
    hashed
}
