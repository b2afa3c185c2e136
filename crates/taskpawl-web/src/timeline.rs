//! The calls of a run over time, from its events.

use std::collections::BTreeMap;

use serde::Serialize;
use taskpawl::model::task::{CallStatus, EventKind};
use taskpawl::model::value::{CallId, RunId, TaskId, Timestamp};
use taskpawl::{Error, HistoryFilter, Manager};

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
}

impl Span {
    /// Returns its length in milliseconds, up to `now` if it has not ended.
    pub(crate) fn length(&self, now: i64) -> i64 {
        (self.to.unwrap_or(now) - self.from).max(0)
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
    pub(crate) fn read(manager: &Manager, id: &RunId) -> Result<Self, Error> {
        let run = manager.run(id)?;
        let began = run.started_at;
        let since = |at: Timestamp| (at - began).num_milliseconds();
        let (mut spans, mut open) = (Vec::<Span>::new(), BTreeMap::new());
        let filter = HistoryFilter { run: Some(id.to_string()), ..HistoryFilter::default() };
        manager.each_history(&filter, |entries| {
            for event in entries.into_iter().map(|entry| entry.event) {
                let Some(task) = event.task else { continue };
                if let EventKind::CallStarted { call, start, .. } = event.kind {
                    open.insert((task.clone(), call.clone()), spans.len());
                    spans.push(Span { task, call, start, from: since(event.at), to: None, status: None });
                } else if let EventKind::CallEnded { call, status, .. } = event.kind
                    && let Some(at) = open.remove(&(task, call))
                {
                    (spans[at].to, spans[at].status) = (Some(since(event.at)), Some(status));
                }
            }
            true
        })?;
        let end = run.ended_at().unwrap_or_else(|| manager.source().now());
        let length = since(end).max(spans.iter().filter_map(|span| span.to).max().unwrap_or_default()).max(1);
        Ok(Self { started_at: began, length, spans })
    }

    /// Returns the longest calls, at most `most`.
    pub(crate) fn longest(&self, most: usize) -> Vec<&Span> {
        let mut spans: Vec<&Span> = self.spans.iter().collect();
        spans.sort_by_key(|span| std::cmp::Reverse(span.length(self.length)));
        spans.truncate(most);
        spans
    }
}
