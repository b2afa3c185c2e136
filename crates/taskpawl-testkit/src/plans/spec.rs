//! Conversion of random plans to plans that can be applied.

use std::time::Duration;

use serde_json::{Value, json};
use taskpawl_model::plan::{Param, ParamType, Plan, PlanTask};
use taskpawl_model::task::{
    Approval, ApprovalWord, Cache, CallSpec, ForEach, Mode, NewCall, Question, Repeat, Retry, TaskSpec,
};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{CallId, Period};

use super::expr::{Expr, Template};
use super::plan::{Decision, RandomCall, RandomPlan, RandomRetry, RandomTask, Script, Verdict};

/// Name of the tool of all calls.
pub const TOOL: &str = "work";

/// Time until an unanswered question expires, in milliseconds.
const EXPIRES: u64 = 3_600_000;

impl RandomPlan {
    /// Returns the plan in a form that can be applied. Its calls use [`TOOL`] and carry their script in their
    /// arguments.
    pub fn to_plan(&self) -> Plan {
        let tasks = self.tasks.iter().enumerate().filter(|(_, task)| task.made_by.is_none());
        let kind = |value: &Value| match value {
            Value::Bool(_) => ParamType::Boolean,
            Value::Number(_) => ParamType::Integer,
            Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => ParamType::String,
        };
        let param = |value: &Value| Param { kind: kind(value), default: Some(value.clone()) };
        Plan {
            version: 1,
            params: self.params.iter().map(|(name, value)| ((*name).to_owned(), param(value))).collect(),
            resources: self.capacities.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            tasks: tasks.map(|(position, task)| self.plan_task(position, task)).collect(),
            ..Plan::default()
        }
    }

    fn plan_task(&self, position: usize, task: &RandomTask) -> PlanTask {
        let is_there = |on: &usize| self.tasks[*on].made_by.is_none();
        PlanTask {
            id: Some(Self::id(position)),
            spec: spec(position, task).into(),
            calls: self.new_calls(position, task),
            needs: task.needs.iter().copied().filter(is_there).collect(),
            parent: task.parent,
            ..PlanTask::default()
        }
    }

    fn new_calls(&self, position: usize, task: &RandomTask) -> Vec<NewCall> {
        let new_call = |(number, call): (usize, &RandomCall)| NewCall {
            id: Some(CallId::from(format!("c{number}"))),
            spec: self.call_spec(position + number, call).into(),
        };
        task.calls().iter().enumerate().map(new_call).collect()
    }

    fn call_spec(&self, number: usize, call: &RandomCall) -> CallSpec {
        let mut spec = CallSpec {
            tool_name: TOOL.to_owned(),
            when: call.when.as_ref().map(Expr::text),
            save_as: call.name.clone(),
            retry: call.retry.as_ref().map(retry),
            timeout: call.timeout.map(period),
            approval: call.approval.as_ref().map(approval),
            emit: !call.makes.is_empty(),
            idempotent: call.idempotent,
            ..CallSpec::default()
        };
        let mut args = json!({"value": escaped(&call.value.printed()), "pauses": number % 3});
        if let Template::Lone(_) | Template::Text(..) = call.value {
            args["value"] = call.value.printed();
        }
        if call.fails > 0 {
            args["fails"] = json!(call.fails);
            args["class"] = json!(call.class);
        }
        if !call.makes.is_empty() {
            args["makes"] = escaped(&self.made(call));
        }
        if let Value::Object(args) = args {
            spec.args = args;
        }
        spec
    }

    /// Returns the tasks that a call creates, in the form in which it returns them.
    pub(crate) fn made(&self, call: &RandomCall) -> Value {
        let mut tasks: Vec<Value> = call.makes.iter().map(|made| self.made_task(*made)).collect();
        if let (Some(circle), Some(last)) = (call.circle, tasks.last_mut()) {
            let circle = Self::id(circle).to_string();
            for field in ["needs", "neededBy"] {
                if let Some(ids) = last[field].as_array_mut()
                    && !ids.contains(&json!(circle))
                {
                    ids.push(json!(circle));
                }
            }
        }
        Value::Array(tasks)
    }

    fn made_task(&self, position: usize) -> Value {
        let task = &self.tasks[position];
        let ids = |positions: &[usize]| -> Vec<String> {
            positions.iter().map(|position| Self::id(*position).to_string()).collect()
        };
        let needs: Vec<usize> = task.needs.iter().copied().collect();
        // Created tasks list their own needs, so only existing tasks are named here.
        let needs_it = |other: &usize| {
            self.tasks[*other].needs.contains(&position) && self.tasks[*other].made_by.is_none()
        };
        let needed_by: Vec<usize> = (0..self.tasks.len()).filter(needs_it).collect();
        let mut value = serde_json::to_value(spec(position, task)).unwrap_or_default();
        let calls = self.new_calls(position, task).into_iter().map(|call| {
            let mut value = serde_json::to_value(call.spec).unwrap_or_default();
            value["id"] = json!(call.id);
            value
        });
        value["id"] = json!(Self::id(position));
        value["needs"] = json!(ids(&needs));
        value["neededBy"] = json!(ids(&needed_by));
        let calls: Vec<Value> = calls.collect();
        if !calls.is_empty() {
            value["toolCalls"] = json!(calls);
        }
        value
    }
}

fn spec(position: usize, task: &RandomTask) -> TaskSpec {
    TaskSpec {
        name: format!("task {position}"),
        // A trigger needs dependencies to have any effect.
        trigger: (!task.needs.is_empty()).then_some(task.trigger),
        when: task.when.as_ref().map(Expr::text),
        for_each: task
            .items
            .as_ref()
            .map(|items| ForEach { list: items.list.printed(), concurrency: items.concurrency }),
        repeat: task.rounds.as_ref().map(|rounds| Repeat {
            until: until(task, rounds.enough).text(),
            max: rounds.most,
            delay: Some(period(rounds.delay)),
        }),
        retry: task.retry.as_ref().map(retry),
        timeout: task.timeout.map(period),
        mode: task.is_parallel().then_some(Mode::Parallel),
        milestone: task.script == Script::Milestone,
        priority: task.priority,
        resources: task.resources.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        writes: task.writes.iter().map(ToString::to_string).collect(),
        approval: task.approval.as_ref().map(approval),
        cache: task.is_cached.then(|| Cache { key: Some("params.n".to_owned()), ..Cache::default() }),
        due_date: task.due.and_then(|days| Timestamp::from_timestamp(86_400 * i64::from(days), 0)),
        ..TaskSpec::default()
    }
}

/// Returns the condition that ends the rounds of a task.
pub(crate) fn until(task: &RandomTask, enough: u32) -> Expr {
    let name = task.calls().first().map(|call| call.name(0)).unwrap_or_default();
    Expr::Own(name).known("round", |of| Expr::AtLeast(of, enough))
}

/// Escapes literal texts, so that they are not parsed as expressions.
fn escaped(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(text.replace("${{", "$${{")),
        Value::Array(items) => items.iter().map(escaped).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), escaped(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn period(millis: u64) -> Period {
    Period(Duration::from_millis(millis))
}

fn retry(retry: &RandomRetry) -> Retry {
    Retry {
        attempts: retry.attempts,
        delay: retry.delay.map(period),
        factor: None,
        max_delay: None,
        jitter: None,
        retry_on: retry.on.iter().map(|class| json!(class)).collect(),
    }
}

fn approval(decision: &Decision) -> Approval {
    if !decision.is_question {
        return Approval::Word(ApprovalWord::Required);
    }
    Approval::Question(Question {
        ask: "which one?".to_owned(),
        after: false,
        options: vec!["red".to_owned(), "blue".to_owned()],
        expires: (decision.verdict == Verdict::Expired).then(|| period(EXPIRES)),
        on_expiry: None,
    })
}
