//! The JSON form of a task: one flat object.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::task::ActorKind;
use crate::task::asked::{Artifact, Asked};
use crate::task::record::{CallBody, CallError, CallRecord, Granted, Note, Progress, TaskBody, TaskRecord};
use crate::task::spec::{CALL_FIELDS, CallSpec, Origin, Priority, TASK_FIELDS, TaskSpec, to_map};
use crate::task::status::{BlockedReason, CallStatus, Claim, ClaimEnd, FailureClass, Status, TaskStatus};
use crate::task::trust::{UntrustedValue, ValueOrigins};
use crate::value::{CallId, RunId, SharedText, TaskId};
use crate::value::{Map, Timestamp};

/// A task as a flat object with camelCase names. `show --json` prints it, the library returns it, and JSON stores keep
/// it.
///
/// Always present: `id`, `name`, `description`, `status`, `priority`, `dependencies`, `subtasks`, `metadata.toolCalls`,
/// `metadata.context`, `createdAt`, `updatedAt`, `attempt`, `version`. Other fields are omitted if they are empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Id that people and agents use.
    pub id: TaskId,
    /// Short title.
    pub name: String,
    /// Work to do, in words.
    #[serde(default)]
    pub description: String,
    /// Status of the task.
    pub status: Status,
    /// Reason, if the task is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_reason: Option<BlockedReason>,
    /// Urgency; decides the order of ready tasks.
    #[serde(default)]
    pub priority: Priority,
    /// Direct dependencies.
    #[serde(default)]
    pub dependencies: Vec<TaskId>,
    /// Direct subtasks.
    #[serde(default)]
    pub subtasks: Vec<TaskId>,
    /// Parent, if the task is a subtask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// Tool calls, context and further fields of the author.
    pub metadata: Metadata,
    /// Plan that the task belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Holder and lease, while the task is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// End of the claim, until a later command puts the task back. Not stored: reads derive it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_ended: Option<ClaimEnd>,
    /// True if the time to decide has ended, and no command has applied the consequence yet. Not stored: reads derive
    /// it.
    #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
    pub question_over: bool,
    /// True if the time that the task waits for has come, and no command has ended the wait yet. Not stored: reads
    /// derive it.
    #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
    pub wait_over: bool,
    /// Run that still ends calls of this task, which was cancelled while they ran. Not stored here: reads derive it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<RunId>,
    /// Reported result of a manual task, or the result of the last call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Notes, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Reason why the task failed, was cancelled or was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Kind of the failure; `None` if a call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_class: Option<FailureClass>,
    /// Number of claims.
    #[serde(default)]
    pub attempt: u32,
    /// Number of times that `reopen` cleared the task.
    #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
    pub generation: u32,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Time of the first claim since the task was last cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Time at which it finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Number of changes.
    #[serde(default)]
    pub version: u64,
    /// Names that its expressions use for other tasks, if they differ from the ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, TaskId>,
    /// Origins of values in it that a model wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origins: Option<Box<ValueOrigins>>,
    /// Progress since the task was opened.
    #[serde(flatten)]
    pub progress: Progress,
    /// All other fields that authors write, and fields that this version does not know.
    #[serde(flatten)]
    pub options: Map,
}

/// The `metadata` object of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Tool calls, in order.
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
    /// Values for expressions, including the results of calls with `saveAs`.
    #[serde(default)]
    pub context: Map,
    /// Further fields of the author.
    #[serde(flatten)]
    pub extra: Map,
}

/// A tool call as a flat object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Id, unique within the task.
    pub id: CallId,
    /// Name of the tool.
    pub tool_name: String,
    /// Arguments as the author wrote them.
    #[serde(default)]
    pub args: Map,
    /// Status of the call.
    pub status: CallStatus,
    /// Result that the tool returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Truncated parts of the result, as JSON Pointers; `""` is the whole result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
    /// Usage that the tool reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// Text of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Class of the failure, such as `exit_code` or `timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_class: Option<String>,
    /// Number of starts.
    #[serde(default)]
    pub attempts: u32,
    /// Arguments of the last start, if they differ from those of the author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluated_args: Option<Map>,
    /// Untrusted values that the condition and the arguments read at the last start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inserted: Vec<UntrustedValue>,
    /// Number of failures since the call last started over.
    #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
    pub failures: u32,
    /// Time of the next retry, while the call waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Approval that lets the call start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<Granted>,
    /// Tasks that the call added since it last started over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emitted: Vec<TaskId>,
    /// Questions of its tool, with their answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<Asked>>,
    /// Files that its last start left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The worker that ran its last start; absent for the machine of the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Time of the last start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Time at which it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Origin: the author that added the call.
    pub origin: Origin,
    /// All other fields that authors write, and fields that this version does not know.
    #[serde(flatten)]
    pub options: Map,
}

/// A task split into the parts that a store keeps separately.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskParts {
    /// Record of the task.
    pub record: TaskRecord,
    /// Its calls.
    pub calls: Vec<CallRecord>,
    /// Direct dependencies.
    pub dependencies: Vec<TaskId>,
    /// Direct subtasks.
    pub subtasks: Vec<TaskId>,
    /// Parent.
    pub parent: Option<TaskId>,
}

impl Task {
    /// Returns the result as a type of the caller; a task without a result counts as `null`.
    ///
    /// # Errors
    /// The result does not fit the type.
    pub fn result_as<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(self.result.as_ref().unwrap_or(&Value::Null))
    }

    /// Returns the files that the calls left, in the order of the calls.
    pub fn artifacts(&self) -> impl Iterator<Item = &Artifact> {
        self.metadata.tool_calls.iter().flat_map(|call| &call.artifacts)
    }

    /// Returns the fields that authors write, as types.
    ///
    /// # Errors
    /// A field of another program has a type that this version does not know.
    pub fn spec(&self) -> Result<TaskSpec, serde_json::Error> {
        let spec = spec_from_options(self.options.clone())?;
        let (name, description) = (self.name.clone(), self.description.clone());
        let metadata = self.metadata.extra.clone();
        Ok(TaskSpec { name, description, priority: self.priority, metadata, ..spec })
    }

    /// Returns the flat form. `reason` replaces the stored reason of a blocked task, which lacks the derived ids.
    pub fn from_parts(parts: TaskParts, reason: Option<BlockedReason>) -> Self {
        let TaskParts { record, calls, dependencies, subtasks, parent } = parts;
        let TaskRecord { id, spec, body, plan, created_at, updated_at, version } = record;
        let (spec, body) = (spec.into_inner(), body.into_inner());
        let result = non_null(body.result).or_else(|| last_result(&calls).cloned());
        let (claim, error, error_class) = match &body.state {
            TaskStatus::InProgress { claim } => (Some(claim.clone()), None, None),
            TaskStatus::Failed { error, class } => (None, Some(error.clone()), *class),
            TaskStatus::Cancelled { reason } | TaskStatus::Skipped { reason } => (None, reason.clone(), None),
            TaskStatus::Todo | TaskStatus::Blocked { .. } | TaskStatus::Done => (None, None, None),
        };
        let mut options = to_map(&spec);
        for field in ["name", "description", "priority", "metadata", "extra"] {
            options.remove(field);
        }
        options.extend(spec.extra);
        let mut context = body.context;
        // Stored only with the calls; `into_parts` removes the copies again.
        context.extend(calls.iter().filter_map(saved_result));
        Self {
            id,
            name: spec.name,
            description: spec.description,
            status: body.state.status(),
            blocked_reason: reason.or_else(|| body.state.blocked_reason().cloned()),
            priority: spec.priority,
            dependencies,
            subtasks,
            parent,
            metadata: Metadata {
                tool_calls: calls.into_iter().map(ToolCall::from).collect(),
                context,
                extra: spec.metadata,
            },
            plan: plan.map(String::from),
            claim,
            claim_ended: None,
            question_over: false,
            wait_over: false,
            ended_by: None,
            result,
            notes: body.notes,
            error,
            error_class,
            attempt: body.attempt,
            generation: body.generation,
            created_at,
            updated_at,
            started_at: body.started_at,
            finished_at: body.finished_at,
            version,
            names: body.names,
            origins: body.origins,
            progress: body.progress,
            options,
        }
    }

    /// Splits the flat form into parts again.
    ///
    /// # Errors
    /// A field of the options has an invalid value.
    pub fn into_parts(self) -> Result<TaskParts, serde_json::Error> {
        let calls =
            self.metadata.tool_calls.into_iter().map(CallRecord::try_from).collect::<Result<Vec<_>, _>>()?;
        let mut context = self.metadata.context;
        for name in calls.iter().filter_map(saved_result).map(|(name, _)| name) {
            context.remove(&name);
        }
        let state = state_of(self.status, self.blocked_reason, self.claim, (self.error, self.error_class));
        let mut spec = spec_from_options(self.options)?;
        spec.name = self.name;
        spec.description = self.description;
        spec.priority = self.priority;
        spec.metadata = self.metadata.extra;
        let body = TaskBody {
            state,
            context,
            // The result of the last call is stored with that call. `from_parts` copies it here, so it is dropped
            // again.
            result: non_null(self.result).filter(|result| last_result(&calls) != Some(result)),
            notes: self.notes,
            attempt: self.attempt,
            generation: self.generation,
            started_at: self.started_at,
            finished_at: self.finished_at,
            names: self.names,
            origins: self.origins,
            progress: self.progress,
        };
        let record = TaskRecord {
            id: self.id,
            spec: spec.into(),
            body: body.into(),
            plan: self.plan.map(SharedText::from),
            created_at: self.created_at,
            updated_at: self.updated_at,
            version: self.version,
        };
        let (dependencies, subtasks, parent) = (self.dependencies, self.subtasks, self.parent);
        Ok(TaskParts { record, calls, dependencies, subtasks, parent })
    }
}

/// Drops `null`. Once written it is read as absent, and a task must look the same before and after a round trip.
fn non_null(value: Option<Value>) -> Option<Value> {
    value.filter(|value| !value.is_null())
}

fn result_of(call: &CallRecord) -> Option<&Value> {
    call.body.result.as_ref().filter(|result| !result.is_null())
}

fn last_result(calls: &[CallRecord]) -> Option<&Value> {
    CallRecord::last_of_work(calls).and_then(result_of)
}

/// Returns the `saveAs` name of a call with its result.
fn saved_result(call: &CallRecord) -> Option<(String, Value)> {
    Some((call.spec.save_as.clone()?, result_of(call)?.clone()))
}

fn state_of(
    status: Status,
    reason: Option<BlockedReason>,
    claim: Option<Claim>,
    (error, class): (Option<String>, Option<FailureClass>),
) -> TaskStatus {
    match status {
        Status::Todo => TaskStatus::Todo,
        // The flat form may come from an import or a file edited by hand, so the claim, the reason or the error may be
        // missing.
        Status::InProgress => TaskStatus::InProgress {
            claim: claim.unwrap_or_else(|| Claim {
                run: None,
                actor: "unknown".into(),
                kind: ActorKind::Unknown,
                lease_until: None,
                lease: None,
            }),
        },
        Status::Blocked => {
            let imported = || BlockedReason::Manual { text: "imported".to_owned() };
            TaskStatus::blocked(without_ids(reason.unwrap_or_else(imported)))
        }
        Status::Done => TaskStatus::Done,
        Status::Failed => {
            TaskStatus::Failed { error: error.unwrap_or_else(|| "reported as failed".to_owned()), class }
        }
        Status::Cancelled => TaskStatus::Cancelled { reason: error },
        Status::Skipped => TaskStatus::Skipped { reason: error },
    }
}

fn without_ids(reason: BlockedReason) -> BlockedReason {
    match reason {
        BlockedReason::Dependency { .. } => BlockedReason::Dependency { ids: Vec::new() },
        BlockedReason::Waiting { .. } => BlockedReason::Waiting { ids: Vec::new() },
        BlockedReason::Approval { .. }
        | BlockedReason::MissingTool { .. }
        | BlockedReason::Interrupted { .. }
        | BlockedReason::Manual { .. } => reason,
    }
}

fn spec_from_options(options: Map) -> Result<TaskSpec, serde_json::Error> {
    let (known, extra) = split(options, TASK_FIELDS);
    let mut spec: TaskSpec = serde_json::from_value(Value::Object(known))?;
    spec.extra = extra;
    Ok(spec)
}

/// Separates the fields that this version knows from all others.
fn split(options: Map, known: &[&str]) -> (Map, Map) {
    options.into_iter().partition(|(name, _)| known.contains(&name.as_str()))
}

impl From<CallRecord> for ToolCall {
    fn from(call: CallRecord) -> Self {
        let CallRecord { id, spec, origin, body } = call;
        let (spec, body) = (spec.into_inner(), body.into_inner());
        let mut options = to_map(&spec);
        for field in ["toolName", "args", "extra"] {
            options.remove(field);
        }
        options.extend(spec.extra);
        let (error, error_class) = body.error.map(|error| (error.message, error.class)).unzip();
        Self {
            id,
            tool_name: spec.tool_name,
            args: spec.args,
            status: body.status,
            result: non_null(body.result),
            cut: body.cut.map(|cut| *cut).unwrap_or_default(),
            usage: non_null(body.usage.map(|usage| *usage)),
            error,
            error_class,
            attempts: body.attempts,
            evaluated_args: body.args,
            inserted: body.inserted.map(|values| *values).unwrap_or_default(),
            failures: body.failures,
            due: body.due,
            granted: body.approval.map(|granted| *granted),
            emitted: body.emitted,
            asked: body.asked,
            artifacts: body.artifacts.map(|artifacts| *artifacts).unwrap_or_default(),
            worker: body.worker.map(|worker| *worker),
            started_at: body.started_at,
            finished_at: body.finished_at,
            origin,
            options,
        }
    }
}

impl TryFrom<ToolCall> for CallRecord {
    type Error = serde_json::Error;

    fn try_from(call: ToolCall) -> Result<Self, serde_json::Error> {
        let (known, extra) = split(call.options, CALL_FIELDS);
        let mut spec: CallSpec = serde_json::from_value(Value::Object(known))?;
        spec.extra = extra;
        spec.tool_name = call.tool_name;
        spec.args = call.args;
        let class = call.error_class.unwrap_or_else(|| "failed".to_owned());
        let body = CallBody {
            status: call.status,
            result: non_null(call.result),
            cut: Some(call.cut).filter(|cut| !cut.is_empty()).map(Box::new),
            usage: non_null(call.usage).map(Box::new),
            error: call.error.map(|message| Box::new(CallError::new(class, message))),
            attempts: call.attempts,
            args: call.evaluated_args,
            inserted: Some(call.inserted).filter(|values| !values.is_empty()).map(Box::new),
            failures: call.failures,
            due: call.due,
            approval: call.granted.map(Box::new),
            emitted: call.emitted,
            asked: call.asked,
            worker: call.worker.map(Box::from),
            artifacts: Some(call.artifacts).filter(|artifacts| !artifacts.is_empty()).map(Box::new),
            started_at: call.started_at,
            finished_at: call.finished_at,
        };
        Ok(Self { id: call.id, spec: spec.into(), origin: call.origin, body: body.into() })
    }
}
