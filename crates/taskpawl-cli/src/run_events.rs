//! Events of a run, with the ends of its durable waits: these belong to no run, because a signal or the time ended them.

use std::collections::BTreeSet;

use taskpawl::model::task::{Cause, Event, EventKind, RunRecord, Status};
use taskpawl::model::value::{RunId, TaskId, Timestamp};
use taskpawl::{HistoryFilter, Manager, RunState};

use crate::error::CliError;

/// Chooses the events of one run from the history.
#[derive(Debug)]
pub(crate) struct RunEvents {
    run: RunId,
    /// The tasks that the run gave to the store, until their waits end.
    waiting: BTreeSet<TaskId>,
}

impl RunEvents {
    /// Chooses the events of this run.
    pub(crate) fn new(run: RunId) -> Self {
        Self { run, waiting: BTreeSet::new() }
    }

    /// Returns whether the next event of the history belongs to the run.
    pub(crate) fn takes(&mut self, event: &Event) -> bool {
        let is_own = event.run.as_ref() == Some(&self.run);
        let Some(task) = &event.task else { return is_own };
        let is_end_of_wait = event.run.is_none() && self.waiting.contains(task);
        if let EventKind::Status { to, cause, .. } = &event.kind {
            let begins = is_own && *cause == Cause::Wait && *to == Status::InProgress;
            let _ = if begins { self.waiting.insert(task.clone()) } else { self.waiting.remove(task) };
        }
        is_own || is_end_of_wait
    }

    /// Returns the position before the first event of the run.
    pub(crate) fn start(&self, manager: &Manager) -> Result<u64, CliError> {
        let run = Some(self.run.to_string());
        let first = manager.find_history(&HistoryFilter { run, limit: 1, ..HistoryFilter::default() })?;
        Ok(first.first().map_or(0, |entry| entry.event.revision.saturating_sub(1)))
    }
}

/// Calls `each` with the events of a run, in order.
pub(crate) fn each(manager: &Manager, run: &RunRecord, mut each: impl FnMut(&Event)) -> Result<(), CliError> {
    let mut chosen = RunEvents::new(run.id.clone());
    let end = end(manager, run)?;
    let filter = HistoryFilter { after: chosen.start(manager)?, ..HistoryFilter::default() };
    manager.each_history(&filter, |page| {
        for entry in &page {
            if end.is_some_and(|end| end.is_before(&entry.event)) {
                return false;
            }
            if chosen.takes(&entry.event) {
                each(&entry.event);
            }
        }
        true
    })?;
    Ok(())
}

/// The end of a run in the history.
#[derive(Clone, Copy)]
enum End {
    Time(Timestamp),
    /// The last event of a killed run.
    Revision(u64),
}

impl End {
    fn is_before(self, event: &Event) -> bool {
        match self {
            Self::Time(end) => event.at > end,
            Self::Revision(last) => event.revision > last,
        }
    }
}

fn end(manager: &Manager, run: &RunRecord) -> Result<Option<End>, CliError> {
    if let Some(end) = run.finished_at {
        return Ok(Some(End::Time(end)));
    }
    if manager.run_state(run) == RunState::Running {
        return Ok(None);
    }
    let id = Some(run.id.to_string());
    let last = manager.find_history(&HistoryFilter {
        run: id,
        limit: 1,
        latest: true,
        ..HistoryFilter::default()
    })?;
    Ok(last.last().map(|entry| End::Revision(entry.event.revision)))
}
