//! Finding tasks by conditions.

use std::collections::BTreeSet;

use super::{Query, ReadGraph, ReadTasks, ViewResult};
use crate::task::record::{StatusKind, TaskRecord, Work};
use crate::task::status::{CallStatus, Status};
use crate::task::wait::WaitingFor;
use crate::value::{Key, Period, Timestamp};
use crate::view::DurationSource;

/// A choice of durable waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits<'a> {
    /// All of them.
    All,
    /// Those whose time has come.
    Due(Timestamp),
    /// Those for a signal of this name.
    Signal(&'a str),
}

impl Waits<'_> {
    /// The statuses that a waiting task may have.
    pub const STATUSES: [Status; 3] = [Status::Todo, Status::InProgress, Status::Blocked];

    /// Returns whether a wait is one of these.
    pub fn is_meant(self, wait: &WaitingFor) -> bool {
        match self {
            Self::All => true,
            Self::Due(now) => wait.time.is_some_and(|time| time <= now),
            Self::Signal(name) => wait.signals().any(|signal| signal == name),
        }
    }
}

/// Searches over all tasks of a snapshot.
///
/// The default implementations are correct for every store. A store with an index overrides them.
pub trait FindTasks: ReadTasks + ReadGraph {
    /// Returns the keys of the tasks that match, in the order of the query.
    fn find(&self, query: &Query) -> ViewResult<Vec<Key>>;

    /// Returns the tasks that agents and people hold, by key: all of them, or those of `actor`.
    fn leases(&self, actor: Option<&str>) -> ViewResult<Vec<Key>> {
        let mut keys = self.find(&Query { status: vec![Status::InProgress], ..Query::default() })?;
        // `retain` cannot return early, so the first error is carried out of the closure.
        let mut failed = None;
        keys.retain(|key| {
            is_leased(self.task(*key), actor).unwrap_or_else(|error| {
                failed = Some(error);
                false
            })
        });
        failed.map_or(Ok(keys), Err)
    }

    /// Returns the tasks with a running call, by key.
    fn running(&self) -> ViewResult<Vec<Key>> {
        let mut running = Vec::new();
        for key in self.find(&Query { status: vec![Status::InProgress], ..Query::default() })? {
            if self.calls(key)?.iter().any(|call| call.body.status == CallStatus::Running) {
                running.push(key);
            }
        }
        Ok(running)
    }

    /// Returns the tasks that are blocked for a reason of their own, not because of other tasks. They are ordered by
    /// key, at most `limit` (0: all).
    fn on_hold(&self, limit: usize) -> ViewResult<Vec<Key>> {
        let mut keys = Vec::new();
        for key in self.find(&Query { status: vec![Status::Blocked], ..Query::default() })? {
            if limit > 0 && keys.len() == limit {
                break;
            }
            if self.node(key)?.is_some_and(|node| node.status_kind == StatusKind::BlockedOther) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Returns the names of the tools that tasks call, each once. The result covers at least the tasks that are ready
    /// for a run.
    fn tools(&self) -> ViewResult<Vec<String>> {
        let mut tools = BTreeSet::new();
        for key in self.find(&Query { ready: Some(vec![Work::Calls]), ..Query::default() })? {
            tools.extend(self.calls(key)?.into_iter().map(|call| call.spec.tool_name.clone()));
        }
        Ok(tools.into_iter().collect())
    }

    /// Returns tasks that are ready for a run and have a call of this tool, by key, at most `limit` (0: all).
    fn ready_calling(&self, tool: &str, limit: usize) -> ViewResult<Vec<Key>> {
        let mut keys = self.find(&Query { ready: Some(vec![Work::Calls]), ..Query::default() })?;
        keys.sort_unstable();
        let mut matching = Vec::new();
        for key in keys {
            if limit > 0 && matching.len() == limit {
                break;
            }
            if self.calls(key)?.iter().any(|call| call.spec.tool_name == tool) {
                matching.push(key);
            }
        }
        Ok(matching)
    }

    /// Returns the tasks that could start but for an undecided condition or list, by key.
    fn to_be_opened(&self) -> ViewResult<Vec<Key>> {
        let mut keys = Vec::new();
        self.each_node(&mut |node| {
            if node.status_kind == StatusKind::Todo && node.gate.is_to_be_opened() {
                keys.push(node.key);
            }
        })?;
        Ok(keys)
    }

    /// Returns tasks that wait durably, by key.
    fn waiting(&self, which: Waits<'_>) -> ViewResult<Vec<Key>> {
        let mut waiting = Vec::new();
        for key in self.find(&Query { status: Waits::STATUSES.to_vec(), ..Query::default() })? {
            let task = self.task(key)?;
            if task
                .and_then(|task| task.body.progress.waiting_for.clone())
                .is_some_and(|wait| which.is_meant(&wait))
            {
                waiting.push(key);
            }
        }
        waiting.sort_unstable();
        Ok(waiting)
    }

    /// Returns the first time at which a durable wait ends.
    fn next_wake(&self) -> ViewResult<Option<Timestamp>> {
        let mut next: Option<Timestamp> = None;
        for key in self.waiting(Waits::All)? {
            let time = self.task(key)?.and_then(|task| task.body.progress.waiting_for.as_ref()?.time);
            next = next.into_iter().chain(time).min();
        }
        Ok(next)
    }

    /// Calls `each` with the duration of the last success of every task, and with the estimate of its author, if known.
    /// The order is undefined.
    fn each_duration(&self, each: &mut dyn FnMut(Key, Period, DurationSource)) -> ViewResult<()> {
        let mut keys = Vec::new();
        self.each_node(&mut |node| keys.push(node.key))?;
        for key in keys {
            let Some(task) = self.task(key)? else { continue };
            let durations = [
                (task.body.progress.took, DurationSource::Took),
                (task.spec.estimate, DurationSource::Estimate),
            ];
            for (period, source) in durations {
                if let Some(period) = period {
                    each(key, period, source);
                }
            }
        }
        Ok(())
    }
}

fn is_leased(task: ViewResult<Option<TaskRecord>>, actor: Option<&str>) -> ViewResult<bool> {
    let task = task?;
    let holder = task.as_ref().and_then(|task| task.body.state.lease_holder());
    Ok(holder.is_some_and(|holder| actor.is_none_or(|actor| *holder == actor)))
}
