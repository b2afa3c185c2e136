//! The calls of a run over time, from its events.

use std::collections::BTreeMap;

use serde::Serialize;
use taskpawl::model::task::{CallStatus, Event, EventKind, Status};
use taskpawl::model::value::{CallId, RunId, TaskId, Timestamp};
use taskpawl::model::view::{View, ViewResult};
use taskpawl::{CallPlaces, Error, HistoryFilter, Manager};

use crate::scale::Scale;

/// One start of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Span {
    pub(crate) task: TaskId,
    pub(crate) call: CallId,
    pub(crate) start: u32,
    /// Milliseconds since the start of the run.
    pub(crate) from: i64,
    /// The end; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<CallStatus>,
    /// The worker that runs or ran it; absent for the machine of the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worker: Option<String>,
    /// The time at which it could have begun: its task was ready, or its pause for a retry began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<i64>,
    /// The claim of its task, after which the call was handed to its tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) claimed: Option<i64>,
    /// It is a retry: the time before it was a pause.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_retry: bool,
    /// It is on the chain of calls that decided the length of the run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_critical: bool,
}

impl Span {
    /// Returns its length in milliseconds, up to `now` if it has not ended.
    pub(crate) fn length(&self, now: i64) -> i64 {
        (self.to.unwrap_or(now) - self.from).max(0)
    }
}

/// Collects spans from events.
#[derive(Default)]
struct Reading {
    spans: Vec<Span>,
    open: BTreeMap<(TaskId, CallId), usize>,
    /// Claims of tasks.
    claims: BTreeMap<TaskId, i64>,
    /// The ends of the calls of tasks: the next call could have begun then.
    ends: BTreeMap<TaskId, i64>,
    /// The ends of calls that are retried.
    pauses: BTreeMap<(TaskId, CallId), i64>,
}

impl Reading {
    fn add(&mut self, event: Event, at: i64) {
        let Some(task) = event.task else { return };
        if let EventKind::Status { to: Status::InProgress, .. } = event.kind {
            self.claims.insert(task.clone(), at);
            self.ends.remove(&task);
        } else if let EventKind::CallStarted { call, start, .. } = event.kind {
            self.open.insert((task.clone(), call.clone()), self.spans.len());
            let pause = self.pauses.remove(&(task.clone(), call.clone()));
            let claimed = self.claims.get(&task).copied();
            let since = pause.or_else(|| self.ends.get(&task).copied()).or(claimed);
            let is_retry = pause.is_some();
            let (to, status, is_critical) = (None, None, false);
            self.spans.push(Span {
                task,
                call,
                start,
                from: at,
                to,
                status,
                worker: None,
                since,
                claimed,
                is_retry,
                is_critical,
            });
        } else if let EventKind::CallEnded { call, status, again_at, worker, .. } = event.kind
            && let Some(span) = self.open.remove(&(task.clone(), call.clone()))
        {
            (self.spans[span].to, self.spans[span].status) = (Some(at), Some(status));
            self.spans[span].worker = worker.map(|worker| *worker);
            if again_at.is_some() {
                self.pauses.insert((task.clone(), call), at);
            }
            self.ends.insert(task, at);
        }
    }
}

/// Returns the dependencies of the tasks of spans.
fn needs(view: &dyn View, spans: &[Span]) -> ViewResult<BTreeMap<TaskId, Vec<TaskId>>> {
    let mut needs = BTreeMap::new();
    for span in spans {
        if needs.contains_key(&span.task) {
            continue;
        }
        let Some(key) = view.key(span.task.as_str())? else { continue };
        let mut ids = Vec::new();
        for dependency in view.dependencies(key)? {
            ids.extend(view.id(dependency)?);
        }
        needs.insert(span.task.clone(), ids);
    }
    Ok(needs)
}

/// Marks the chain that ends with the last call: before each of them stands the call of the same task, or of a dependency, that ended
/// last.
fn mark_critical(spans: &mut [Span], needs: &BTreeMap<TaskId, Vec<TaskId>>) {
    let end = |span: &Span| span.to.unwrap_or(i64::MAX);
    let mut of_task: BTreeMap<TaskId, Vec<usize>> = BTreeMap::new();
    for (at, span) in spans.iter().enumerate() {
        of_task.entry(span.task.clone()).or_default().push(at);
    }
    let mut next = (0..spans.len()).max_by_key(|at| end(&spans[*at]));
    while let Some(at) = next {
        if spans[at].is_critical {
            break;
        }
        spans[at].is_critical = true;
        let task = spans[at].task.clone();
        let before = needs.get(&task).into_iter().flatten().chain([&task]);
        let before = before.filter_map(|task| of_task.get(task)).flatten().copied();
        let earlier = before.filter(|other| *other != at && end(&spans[*other]) <= spans[at].from);
        next = earlier.max_by_key(|other| end(&spans[*other]));
    }
}

/// The calls of a run, in the order of their starts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Timeline {
    pub(crate) started_at: Timestamp,
    /// Milliseconds from the start of the run to its end, or to now.
    pub(crate) length: i64,
    pub(crate) spans: Vec<Span>,
}

impl Timeline {
    /// Reads the events of a run.
    ///
    /// # Errors
    /// The run is unknown, or the store cannot be read.
    pub(crate) fn read(manager: &Manager, places: &CallPlaces, id: &RunId) -> Result<Self, Error> {
        let run = manager.run(id)?;
        let began = run.started_at;
        let since = |at: Timestamp| (at - began).num_milliseconds();
        let mut reading = Reading::default();
        let filter = HistoryFilter { run: Some(id.to_string()), ..HistoryFilter::default() };
        manager.each_history(&filter, |entries| {
            for event in entries.into_iter().map(|entry| entry.event) {
                let at = since(event.at);
                reading.add(event, at);
            }
            true
        })?;
        let mut spans = reading.spans;
        for span in spans.iter_mut().filter(|span| span.to.is_none()) {
            span.worker = places.worker(&span.task, &span.call, span.start).map(str::to_owned);
        }
        let needs = manager.read(|view| Ok(needs(view, &spans)?))?;
        mark_critical(&mut spans, &needs);
        let end = run.ended_at().unwrap_or_else(|| manager.source().now());
        let length = since(end).max(spans.iter().filter_map(|span| span.to).max().unwrap_or_default()).max(1);
        Ok(Self { started_at: began, length, spans })
    }

    /// Returns the scale of its drawing.
    pub(crate) fn scale(&self) -> Scale {
        let spans = self.spans.iter().map(|span| (span.from, span.to.unwrap_or(self.length)));
        Scale::new(self.length, spans)
    }

    /// Returns the calls that decided its length, in the order of time.
    pub(crate) fn critical(&self) -> impl Iterator<Item = &Span> {
        self.spans.iter().filter(|span| span.is_critical)
    }

    /// Returns the longest calls, at most `most`.
    pub(crate) fn longest(&self, most: usize) -> Vec<&Span> {
        let mut spans: Vec<&Span> = self.spans.iter().collect();
        spans.sort_by_key(|span| std::cmp::Reverse(span.length(self.length)));
        spans.truncate(most);
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_that_decided_the_length_follows_dependencies() {
        let span = |task: &str, from, to| Span {
            task: TaskId::from(task),
            call: CallId::from("c"),
            start: 1,
            from,
            to: Some(to),
            status: None,
            worker: None,
            since: None,
            claimed: None,
            is_retry: false,
            is_critical: false,
        };
        let mut spans =
            [span("a", 0, 10), span("b", 0, 30), span("c", 31, 40), span("d", 41, 60), span("e", 0, 35)];
        let needs = [("c", vec!["a", "b"]), ("d", vec!["c"])];
        let needs =
            needs.map(|(task, ids)| (TaskId::from(task), ids.into_iter().map(TaskId::from).collect()));
        mark_critical(&mut spans, &needs.into_iter().collect());
        let marked: Vec<&str> =
            spans.iter().filter(|span| span.is_critical).map(|span| span.task.as_str()).collect();
        assert_eq!(marked, ["b", "c", "d"]);
    }
}
