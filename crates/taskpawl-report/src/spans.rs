//! The spans of a run: run, tasks and calls.

use taskpawl_model::task::{
    CallStatus, SpanId, StartInRun, Status, TraceId, run_span_id, task_span_id, trace_id,
};
use taskpawl_model::value::Timestamp;

use crate::gen_ai;
use crate::log::{Attempt, CallLog, Outcome, RunEnd, RunLog, TaskLog};

/// A span.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanRecord {
    /// The trace.
    pub trace_id: TraceId,
    /// The id.
    pub span_id: SpanId,
    /// The span above it; none for a run.
    pub parent: Option<SpanId>,
    /// The name: the same for all spans of a kind, apart from tools and tasks.
    pub name: String,
    /// The start.
    pub started_at: Timestamp,
    /// The end; that of the run for a call or task that did not end.
    pub ended_at: Timestamp,
    /// The status.
    pub status: SpanStatus,
    /// The attributes.
    pub attributes: Vec<(&'static str, AttributeValue)>,
}

/// The status of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanStatus {
    /// It has not failed.
    Unset,
    /// It succeeded.
    Ok,
    /// It failed, with a description.
    Error(String),
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u32> for AttributeValue {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

/// Returns the spans of a run: its own first, then for each task the attempts and the calls.
pub fn spans(log: &RunLog) -> Vec<SpanRecord> {
    std::iter::once(run_span(log)).chain(task_spans(log)).collect()
}

/// Returns the spans of the tasks of a run.
pub fn task_spans(log: &RunLog) -> Vec<SpanRecord> {
    let mut spans = Vec::new();
    for task in &log.tasks {
        spans.extend(task.attempts.iter().map(|attempt| of_attempt(log, task, attempt)));
        spans.extend(task.calls.iter().map(|call| of_call(log, task, call)));
    }
    spans
}

/// Returns the span of a run itself.
pub fn run_span(log: &RunLog) -> SpanRecord {
    let status = match log.end {
        RunEnd::Exit(0) => SpanStatus::Ok,
        RunEnd::Running => SpanStatus::Unset,
        RunEnd::Killed | RunEnd::Exit(_) => SpanStatus::Error(log.end_text()),
    };
    let mut attributes =
        vec![(gen_ai::RUN, log.id.to_string().into()), (gen_ai::RUN_END, log.end_text().into())];
    if let RunEnd::Exit(code) = log.end {
        attributes.push((gen_ai::EXIT_CODE, u32::from(code).into()));
    }
    SpanRecord {
        trace_id: trace_id(&log.id),
        span_id: run_span_id(&log.id),
        parent: None,
        name: "run".to_owned(),
        started_at: log.started_at,
        ended_at: log.ended_at,
        status,
        attributes,
    }
}

fn of_attempt(log: &RunLog, task: &TaskLog, attempt: &Attempt) -> SpanRecord {
    let status = match attempt.status {
        Status::Done => SpanStatus::Ok,
        Status::Failed => SpanStatus::Error(task.failure()),
        Status::InProgress if log.end != RunEnd::Running && task.outcome_of(attempt) != Outcome::Waiting => {
            SpanStatus::Error("the run ended before it".to_owned())
        }
        Status::Todo | Status::InProgress | Status::Blocked | Status::Cancelled | Status::Skipped => {
            SpanStatus::Unset
        }
    };
    let mut attributes = vec![
        (gen_ai::TASK, task.id.to_string().into()),
        (gen_ai::TASK_NAME, task.name.clone().into()),
        (gen_ai::STATUS, attempt.status.as_str().into()),
        (gen_ai::ATTEMPT, attempt.number.into()),
    ];
    let texts = [(gen_ai::PLAN, &task.plan), (gen_ai::PROMPT, &task.prompt)];
    attributes.extend(texts.into_iter().filter_map(|(name, text)| Some((name, text.clone()?.into()))));
    SpanRecord {
        trace_id: trace_id(&log.id),
        span_id: task_span_id(&log.id, &task.id, attempt.number),
        parent: Some(run_span_id(&log.id)),
        name: format!("task {}", task.id),
        started_at: attempt.started_at,
        ended_at: attempt.ended_at.unwrap_or(log.ended_at),
        status,
        attributes,
    }
}

fn of_call(log: &RunLog, task: &TaskLog, call: &CallLog) -> SpanRecord {
    let status = match call.status {
        Some(CallStatus::Succeeded) => SpanStatus::Ok,
        None if log.end == RunEnd::Running => SpanStatus::Unset,
        Some(CallStatus::Skipped) => SpanStatus::Unset,
        _ => SpanStatus::Error(call.failure()),
    };
    let start =
        StartInRun { run: &log.id, task: &task.id, attempt: call.attempt, call: &call.id, start: call.start };
    SpanRecord {
        trace_id: trace_id(&log.id),
        span_id: start.span_id(),
        parent: Some(task_span_id(&log.id, &task.id, call.attempt)),
        name: format!("{} {}", gen_ai::EXECUTE_TOOL, call.tool).trim_end().to_owned(),
        started_at: call.started_at,
        ended_at: call.ended_at.unwrap_or(log.ended_at),
        status,
        attributes: attributes_of_call(task, call),
    }
}

fn attributes_of_call(task: &TaskLog, call: &CallLog) -> Vec<(&'static str, AttributeValue)> {
    let mut attributes = vec![
        (gen_ai::OPERATION_NAME, gen_ai::EXECUTE_TOOL.into()),
        (gen_ai::TOOL_NAME, call.tool.clone().into()),
        (gen_ai::TOOL_CALL_ID, call.id.to_string().into()),
        (gen_ai::TASK, task.id.to_string().into()),
        (gen_ai::START, call.start.into()),
    ];
    attributes.extend(call.status.map(|status| (gen_ai::STATUS, status.as_str().into())));
    attributes.extend(call.exit_code.map(|code| (gen_ai::EXIT_CODE, AttributeValue::Number(code))));
    let texts = [
        (gen_ai::ERROR_TYPE, &call.error_class),
        (gen_ai::TOOL_CALL_ARGUMENTS, &call.args),
        (gen_ai::TOOL_CALL_RESULT, &call.result),
    ];
    attributes.extend(texts.into_iter().filter_map(|(name, text)| Some((name, text.clone()?.into()))));
    if !call.output.is_empty() {
        let output: String = call.output.iter().map(|part| part.text.as_str()).collect();
        attributes.push((gen_ai::OUTPUT, output.into()));
    }
    attributes
}
