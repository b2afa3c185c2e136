//! Reports a run while it goes on: events for the observer, and messages for the programs that plans and users name.

use std::collections::BTreeMap;
use std::sync::Arc;

use taskpawl_manager::Manager;
use taskpawl_model::command::{CallEnd, StartedCall};
use taskpawl_model::rules::approval_request;
use taskpawl_model::run::run_loop::EndedTask;
use taskpawl_model::task::{CallStatus, Status, TaskStatus};
use taskpawl_model::value::{CallId, Key, TaskId};
use taskpawl_model::view::blocked_reason;
use taskpawl_model::view::{View, ViewResult};

use crate::changes::Changed;
use crate::error::RunError;
use crate::executor::Ended;
use crate::isolation::LowestIsolation;
use crate::notify::Notifier;
use crate::observer::{CallFailure, Observer, RunEvent};
use crate::summary::{ChangedBeyond, MAX_LISTED, interruption, reason_text};

/// The observer of a run, and the facts that its events and its summary need.
pub(crate) struct Reporter {
    manager: Manager,
    observer: Option<Arc<dyn Observer>>,
    pub(crate) notifier: Notifier,
    /// Calls in flight by task, as the observer knows them.
    in_flight: BTreeMap<Key, InFlight>,
    /// Number of tasks that ended with the result of an earlier run.
    pub(crate) cached: u64,
    pub(crate) changed_beyond: BTreeMap<TaskId, ChangedBeyond>,
    pub(crate) isolation: LowestIsolation,
}

#[derive(Debug)]
struct InFlight {
    id: TaskId,
    /// The tool of each call.
    calls: BTreeMap<CallId, String>,
}

/// A task that ended, as an observer hears of it.
struct TaskNews {
    task: TaskId,
    name: String,
    plan: Option<String>,
    /// Why it did not succeed.
    error: Option<String>,
    is_cached: bool,
}

impl Reporter {
    pub(crate) fn new(manager: Manager, observer: Option<Arc<dyn Observer>>, notifier: Notifier) -> Self {
        Self {
            manager,
            observer,
            notifier,
            in_flight: BTreeMap::new(),
            cached: 0,
            changed_beyond: BTreeMap::new(),
            isolation: LowestIsolation::default(),
        }
    }

    pub(crate) fn tell(&self, event: &RunEvent) {
        if let Some(observer) = &self.observer {
            observer.event(event);
        }
    }

    pub(crate) fn warn(&self, message: String) {
        if !message.is_empty() {
            self.tell(&RunEvent::Warning { message });
        }
    }

    pub(crate) fn call_started(&mut self, started: &StartedCall) {
        self.notifier.note_call(started.plan.as_deref());
        let task = self.in_flight.entry(started.key);
        let task = task.or_insert_with(|| InFlight { id: started.task.clone(), calls: BTreeMap::new() });
        task.calls.insert(started.call.id.clone(), started.call.spec.tool_name.clone());
        if let Some(observer) = &self.observer {
            observer.event(&RunEvent::CallStarted {
                task: started.task.clone(),
                name: started.spec.name.clone(),
                call: started.call.id.clone(),
                tool: started.call.spec.tool_name.clone(),
                attempt: started.call.body.attempts,
                claim: started.attempt,
            });
        }
    }

    /// Reports the end of a call, and returns whether it was the last one of its task in flight.
    pub(crate) fn call_ended(&mut self, ended: &Ended) -> bool {
        self.note_changes(ended);
        self.tell_call_ended(ended);
        self.note_isolation(ended);
        let Some(task) = self.in_flight.get_mut(&ended.key) else { return false };
        task.calls.remove(&ended.call);
        let is_last = task.calls.is_empty();
        if is_last {
            self.in_flight.remove(&ended.key);
        }
        is_last
    }

    fn note_isolation(&mut self, ended: &Ended) {
        let tool = self.in_flight.get(&ended.key).and_then(|task| task.calls.get(&ended.call));
        let said = tool.and_then(|tool| self.isolation.take(tool, &ended.end));
        self.warn(said.unwrap_or_default());
    }

    fn tell_call_ended(&self, ended: &Ended) {
        let (Some(observer), Some(task)) = (&self.observer, self.in_flight.get(&ended.key)) else { return };
        let (status, error) = match &ended.end {
            CallEnd::Succeeded(_) => (CallStatus::Succeeded, None),
            CallEnd::Failed { error, .. } => (CallStatus::Failed, Some(error.message.clone())),
            CallEnd::Interrupted { why, .. } => (CallStatus::Interrupted, why.clone()),
            CallEnd::Asks(_) => (CallStatus::Pending, None),
        };
        observer.event(&RunEvent::CallEnded {
            task: task.id.clone(),
            call: ended.call.clone(),
            tool: task.calls.get(&ended.call).cloned().unwrap_or_default(),
            status,
            error,
            millis: u64::try_from(ended.took.as_millis()).unwrap_or(u64::MAX),
            failure: failure_of(ended),
        });
    }

    /// Reports files that changed although the task does not declare that it writes them.
    fn note_changes(&mut self, ended: &Ended) {
        let (Some(task), false) = (self.in_flight.get(&ended.key), ended.changed == Changed::default())
        else {
            return;
        };
        let Changed { files, unknown } = ended.changed.clone();
        if let Some(observer) = &self.observer {
            let (task, call) = (task.id.clone(), ended.call.clone());
            let (files, unknown) = (files.clone(), unknown.clone());
            observer.event(&RunEvent::ChangedBeyond { task, call, files, unknown });
        }
        // Memory stays bounded: further tasks are reported to the observer, but not kept for the summary.
        if self.changed_beyond.len() < MAX_LISTED || self.changed_beyond.contains_key(&task.id) {
            let new = || ChangedBeyond { task: task.id.clone(), files: Vec::new(), unknown: None };
            let entry = self.changed_beyond.entry(task.id.clone()).or_insert_with(new);
            entry.files.extend(files);
            entry.files.sort();
            entry.files.dedup();
            entry.unknown = unknown.or(entry.unknown.take());
        }
    }

    pub(crate) fn task_ended(&mut self, ended: EndedTask) {
        let EndedTask { key, status, started } = ended;
        if let (Some((task, spec)), Status::Done) = (&started, status) {
            // The common case of a run: everything to report is known, so that the store is not read once per task.
            if let Some(observer) = &self.observer {
                let (task, name) = (task.clone(), spec.name.clone());
                observer.event(&RunEvent::TaskEnded { task, name, status, error: None });
            }
            return;
        }
        if (self.observer.is_some() || matches!(status, Status::Done | Status::Failed))
            && let Ok(Some(news)) = self.manager.store().view(|view| task_news(view, key))
        {
            self.tell_task_ended(news, status);
        }
    }

    fn tell_task_ended(&mut self, news: TaskNews, status: Status) {
        let TaskNews { task, name, plan, error, is_cached } = news;
        let is_cached = is_cached && status == Status::Done;
        self.cached += u64::from(is_cached);
        if status == Status::Failed {
            self.notifier.failed(task.as_str(), &name, plan.as_deref(), error.as_deref());
        }
        if is_cached {
            self.tell(&RunEvent::Cached { task: task.clone() });
        }
        self.tell(&RunEvent::TaskEnded { task, name, status, error });
    }

    /// Reports that a task began to wait for a decision.
    pub(crate) fn waiting(&mut self, key: Key) -> Result<(), RunError> {
        if let Some(request) = self.manager.read(|view| approval_request(view, key))? {
            self.notifier.waiting(&request);
            self.tell(&RunEvent::Asked(Box::new(request)));
        }
        Ok(())
    }
}

fn failure_of(ended: &Ended) -> Option<Box<CallFailure>> {
    match &ended.end {
        CallEnd::Failed { result, .. } => {
            Some(Box::new(CallFailure::of(result.as_ref(), ended.hint.clone())))
        }
        CallEnd::Succeeded(_) | CallEnd::Interrupted { .. } | CallEnd::Asks(_) => None,
    }
}

/// Returns the news of a task that ended. Its calls and edges are not read, since there may be many, unless one was interrupted.
fn task_news(view: &dyn View, key: Key) -> ViewResult<Option<TaskNews>> {
    let Some(task) = view.task(key)? else { return Ok(None) };
    let error = match &task.body.state {
        TaskStatus::Failed { error, .. } => Some(error.clone()),
        TaskStatus::Cancelled { reason } | TaskStatus::Skipped { reason } => reason.clone(),
        TaskStatus::Blocked { reason } => Some(match interruption(view, key, reason)? {
            Some(text) => text,
            None => reason_text(&blocked_reason(view, key, reason)?),
        }),
        TaskStatus::Todo | TaskStatus::InProgress { .. } | TaskStatus::Done => None,
    };
    let is_cached = task.body.progress.cached_from.is_some();
    Ok(Some(TaskNews {
        task: task.id,
        name: task.spec.name.clone(),
        plan: task.plan.map(String::from),
        error,
        is_cached,
    }))
}
