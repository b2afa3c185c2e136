//! Conditions, lists and approvals in a forecast: evaluated if possible, otherwise reported as open.

use serde::Serialize;
use serde_json::Value;

use super::tasks::ForecastTasks;
use crate::expr::{self, Evaluated, ExprError, Mention, Name, TaskField};
use crate::rules::flow;
use crate::task::record::{CallRecord, PlanRecord, StatusKind, TaskRecord};
use crate::task::status::TaskStatus;
use crate::task::wait::WaitingFor;
use crate::value::{Key, TaskId};
use crate::view::{ReadTasks, ViewResult};

/// Failure text of tasks that are assumed to fail.
pub(super) const TAKEN_TO_FAIL: &str = "it is assumed to fail";

/// Result of opening a task.
pub(super) enum Opening {
    /// It may start.
    Open,
    /// Its condition is false.
    Skipped,
    /// It fails, with the reason.
    Failed(String),
    /// Its `notBefore` is ahead.
    Waits(WaitingFor),
}

/// A condition or list that depends on unknown results. A condition is assumed to be true, a list to have one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenQuestion {
    /// The task.
    pub task: TaskId,
    /// Name of the field: `when` or `forEach`.
    pub field: &'static str,
    /// The expression.
    pub expression: String,
    /// Tasks whose results it reads.
    pub waits_for: Vec<TaskId>,
}

/// The simulated store, for evaluating expressions. Tasks and calls are those of the store, but for the statuses that
/// were simulated.
impl ReadTasks for ForecastTasks<'_> {
    fn task(&self, key: Key) -> ViewResult<Option<TaskRecord>> {
        let mut record = self.view.task(key)?;
        if let (Some(record), Some(status_kind)) = (&mut record, self.moved.get(&key)) {
            record.body.state = state_of(*status_kind, &record.body.state);
        }
        Ok(record)
    }

    fn key(&self, id: &str) -> ViewResult<Option<Key>> {
        self.view.key(id)
    }

    fn id(&self, key: Key) -> ViewResult<Option<TaskId>> {
        self.view.id(key)
    }

    fn ids_with_prefix(&self, prefix: &str, limit: usize) -> ViewResult<Vec<TaskId>> {
        self.view.ids_with_prefix(prefix, limit)
    }

    fn deleted_id(&self, id: &str) -> ViewResult<Option<Option<String>>> {
        self.view.deleted_id(id)
    }

    fn next_key(&self) -> ViewResult<Key> {
        self.view.next_key()
    }

    fn calls(&self, key: Key) -> ViewResult<Vec<CallRecord>> {
        self.view.calls(key)
    }

    fn applied(&self, key: Key) -> ViewResult<Option<String>> {
        self.view.applied(key)
    }

    fn plan(&self, name: &str) -> ViewResult<Option<PlanRecord>> {
        self.view.plan(name)
    }

    fn plans(&self) -> ViewResult<Vec<PlanRecord>> {
        self.view.plans()
    }
}

fn state_of(status_kind: StatusKind, before: &TaskStatus) -> TaskStatus {
    match status_kind {
        StatusKind::Done => TaskStatus::Done,
        StatusKind::Failed => TaskStatus::Failed { error: TAKEN_TO_FAIL.to_owned(), class: None },
        StatusKind::Cancelled => TaskStatus::Cancelled { reason: None },
        StatusKind::Skipped => TaskStatus::Skipped { reason: None },
        StatusKind::Todo => TaskStatus::Todo,
        StatusKind::InProgress
        | StatusKind::BlockedDependency
        | StatusKind::BlockedWaiting
        | StatusKind::BlockedOther => before.clone(),
    }
}

impl ForecastTasks<'_> {
    pub(super) fn decide_opening(&mut self, key: Key) -> ViewResult<Opening> {
        let Some(record) = self.view.task(key)? else { return Ok(Opening::Open) };
        if let Some(time) = record.spec.not_before.filter(|time| *time > self.now) {
            return Ok(Opening::Waits(WaitingFor::until(time)));
        }
        let calls = self.view.calls(key)?;
        if let Some(when) = &record.spec.when
            && !self.is_unknown(key, &record, ("when", when), expr::condition_mentions(when))?
        {
            match flow::holds(self, &record, &calls, when)? {
                Ok(Evaluated { value: true, .. }) => {}
                Ok(Evaluated { value: false, .. }) => return Ok(Opening::Skipped),
                Err(problem) => return Ok(Opening::Failed(problem.of("when").text)),
            }
        }
        if record.spec.approval_before().is_some() && record.body.progress.approval.is_none() {
            self.asking.insert(key);
        }
        if let Some(for_each) = &record.spec.for_each {
            let text = for_each.list.as_str().map_or_else(|| for_each.list.to_string(), str::to_owned);
            // Text is an expression, bare or in braces. The elements of a literal list may be templates.
            let mentions = match &for_each.list {
                Value::String(text) => expr::condition_mentions(text),
                list @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_)) => expr::mentions(list),
            };
            let is_unknown = self.is_unknown(key, &record, ("forEach", &text), mentions)?;
            let mut count = None;
            if !is_unknown {
                match flow::list(self, &record, &calls, for_each)? {
                    Ok(list) => count = Some(list.value.len()),
                    Err(problem) => return Ok(Opening::Failed(problem.of("forEach").text)),
                }
            }
            self.items.insert(key, count);
        }
        Ok(Opening::Open)
    }

    /// Returns whether an expression reads results of tasks whose end is only simulated, and records it as open then.
    fn is_unknown(
        &mut self,
        key: Key,
        record: &TaskRecord,
        (field, expression): (&'static str, &str),
        mentions: Result<Vec<Mention>, ExprError>,
    ) -> ViewResult<bool> {
        // An expression that cannot be parsed fails where it is evaluated.
        let mentions = mentions.unwrap_or_default();
        let mut waits_for = Vec::new();
        for mention in mentions {
            // Status and error of a simulated task are known, its results are not.
            if let Name::Task { task, field } = mention.name
                && !matches!(field, TaskField::Status | TaskField::Error)
                && let Some(on) = flow::named(self, record, &task)?
                && self.moved.get(&on) == Some(&StatusKind::Done)
                && let Some(id) = self.view.id(on)?
                && !waits_for.contains(&id)
            {
                waits_for.push(id);
            }
        }
        if waits_for.is_empty() {
            return Ok(false);
        }
        let (task, expression) = (record.id.clone(), expression.to_owned());
        self.open.insert(key, OpenQuestion { task, field, expression, waits_for });
        Ok(true)
    }
}
