//! A view that sends every query over a connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use taskpawl_model::command::RequestRecord;
use taskpawl_model::task::Event;
use taskpawl_model::task::{
    Actor, CallRecord, KeySpace, Node, PlanRecord, RunRecord, SignalRecord, Status, TaskRecord,
};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{Key, Period, RunId, TaskId};
use taskpawl_model::view::DurationSource;
use taskpawl_model::view::{
    EventQuery, FindTasks, Query, ReadGraph, ReadHistory, ReadRuns, ReadTasks, UndoSnapshot, Undoable,
    ViewResult,
};

use super::client::Connection;
use super::wire::{PART, ViewRequest};
use crate::StoreError;

/// A snapshot of a store that another process has open.
pub(super) struct RemoteView<'c>(pub(super) &'c Connection);

impl RemoteView<'_> {
    fn one<T: DeserializeOwned>(&self, ask: ViewRequest) -> ViewResult<T> {
        Ok(self.0.view(ask)?)
    }

    fn all<T: DeserializeOwned>(&self, ask: ViewRequest) -> ViewResult<Vec<T>> {
        let mut all = Vec::new();
        self.each(ask, &mut |value| all.push(value))?;
        Ok(all)
    }

    fn each<T: DeserializeOwned>(&self, ask: ViewRequest, each: &mut dyn FnMut(T)) -> ViewResult<()> {
        Ok(self.0.view_list(ask, each)?)
    }

    /// Fetches events page by page, with at most one frame per page. `ask` builds the query that continues
    /// after the last event.
    fn pages(
        &self,
        limit: usize,
        mut ask: impl FnMut(usize, Option<&Event>) -> ViewRequest,
    ) -> ViewResult<Vec<Event>> {
        let mut events = Vec::new();
        loop {
            let wanted = if limit == 0 { PART } else { PART.min(limit - events.len()) };
            let page: Vec<Event> = self.all(ask(wanted, events.last()))?;
            let is_last = page.len() < wanted;
            events.extend(page);
            if is_last || events.len() == limit {
                return Ok(events);
            }
        }
    }

    /// Fetches the latest events, page by page from the newest to the oldest, and returns them in ascending
    /// order.
    fn latest(&self, query: &EventQuery) -> ViewResult<Vec<Event>> {
        let mut query = query.clone();
        let (limit, mut pages) = (query.limit, Vec::new());
        loop {
            let left = limit - pages.iter().map(Vec::len).sum::<usize>();
            query.limit = PART.min(left);
            let page: Vec<Event> = self.all(ViewRequest::FindEvents(Box::new(query.clone())))?;
            let (is_last, first) = (page.len() < query.limit || page.len() == left, page.first());
            query.until = first.map(|event| event.revision - 1);
            pages.push(page);
            if is_last {
                return Ok(pages.into_iter().rev().flatten().collect());
            }
        }
    }
}

impl ReadTasks for RemoteView<'_> {
    fn key(&self, id: &str) -> ViewResult<Option<Key>> {
        self.one(ViewRequest::Key(id.to_owned()))
    }

    fn id(&self, key: Key) -> ViewResult<Option<TaskId>> {
        self.one(ViewRequest::Id(key))
    }

    fn ids_with_prefix(&self, prefix: &str, limit: usize) -> ViewResult<Vec<TaskId>> {
        self.all(ViewRequest::IdsWithPrefix(prefix.to_owned(), limit))
    }

    fn deleted_id(&self, id: &str) -> ViewResult<Option<Option<String>>> {
        // An array distinguishes "no such id" (empty) from "deleted, without a plan" (`[null]`); both would
        // be `null` otherwise.
        let found: Vec<Option<String>> = self.all(ViewRequest::DeletedId(id.to_owned()))?;
        Ok(found.into_iter().next())
    }

    fn next_key(&self) -> ViewResult<Key> {
        self.one(ViewRequest::NextKey)
    }

    fn task(&self, key: Key) -> ViewResult<Option<TaskRecord>> {
        self.one(ViewRequest::Task(key))
    }

    fn calls(&self, key: Key) -> ViewResult<Vec<CallRecord>> {
        self.all(ViewRequest::Calls(key))
    }

    fn applied(&self, key: Key) -> ViewResult<Option<String>> {
        self.one(ViewRequest::Applied(key))
    }

    fn plan(&self, name: &str) -> ViewResult<Option<PlanRecord>> {
        self.one(ViewRequest::Plan(name.to_owned()))
    }

    fn plans(&self) -> ViewResult<Vec<PlanRecord>> {
        self.all(ViewRequest::Plans)
    }
}

impl ReadGraph for RemoteView<'_> {
    fn node(&self, key: Key) -> ViewResult<Option<Node>> {
        self.one(ViewRequest::Node(key))
    }

    fn dependencies(&self, key: Key) -> ViewResult<Vec<Key>> {
        self.all(ViewRequest::Dependencies(key))
    }

    fn dependents(&self, key: Key) -> ViewResult<Vec<Key>> {
        self.all(ViewRequest::Dependents(key))
    }

    fn subtasks(&self, key: Key) -> ViewResult<Vec<Key>> {
        self.all(ViewRequest::Subtasks(key))
    }

    fn each_node(&self, each: &mut dyn FnMut(Node)) -> ViewResult<()> {
        self.each(ViewRequest::EachNode, each)
    }

    fn each_dependency(&self, each: &mut dyn FnMut(Key, Key)) -> ViewResult<()> {
        self.each(ViewRequest::EachDependency, &mut |(task, on)| each(task, on))
    }

    fn counts(&self) -> ViewResult<BTreeMap<Status, u64>> {
        self.one(ViewRequest::Counts)
    }
}

impl FindTasks for RemoteView<'_> {
    fn find(&self, query: &Query) -> ViewResult<Vec<Key>> {
        self.all(ViewRequest::Find(Box::new(query.clone())))
    }

    fn leases(&self, actor: Option<&str>) -> ViewResult<Vec<Key>> {
        self.all(ViewRequest::Leases(actor.map(str::to_owned)))
    }

    fn running(&self) -> ViewResult<Vec<Key>> {
        self.all(ViewRequest::Running)
    }

    fn tools(&self) -> ViewResult<Vec<String>> {
        self.all(ViewRequest::Tools)
    }

    fn ready_calling(&self, tool: &str, limit: usize) -> ViewResult<Vec<Key>> {
        self.all(ViewRequest::ReadyCalling(tool.to_owned(), limit))
    }

    fn to_be_opened(&self) -> ViewResult<Vec<Key>> {
        self.all(ViewRequest::ToBeOpened)
    }

    fn each_duration(&self, each: &mut dyn FnMut(Key, Period, DurationSource)) -> ViewResult<()> {
        self.each(ViewRequest::EachDuration, &mut |(key, period, is_estimate)| {
            let source = if is_estimate { DurationSource::Estimate } else { DurationSource::Took };
            each(key, period, source);
        })
    }
}

impl ReadRuns for RemoteView<'_> {
    fn run(&self, id: &RunId) -> ViewResult<Option<RunRecord>> {
        self.one(ViewRequest::Run(id.clone()))
    }

    fn runs(&self, limit: usize) -> ViewResult<Vec<RunRecord>> {
        self.all(ViewRequest::Runs(limit))
    }

    fn open_runs(&self) -> ViewResult<Vec<RunRecord>> {
        self.all(ViewRequest::OpenRuns)
    }

    fn pruned_runs(&self, prefix: &str) -> ViewResult<Vec<(RunId, Timestamp)>> {
        self.all(ViewRequest::PrunedRuns(prefix.to_owned()))
    }

    /// Signals are taken by runs and sent by people and programs; a call does neither.
    fn signals(&self, _name: Option<&str>) -> ViewResult<Vec<SignalRecord>> {
        Ok(Vec::new())
    }

    /// Idempotency keys are made by runs, and a call cannot start one.
    fn key_space(&self) -> ViewResult<Option<KeySpace>> {
        Ok(None)
    }
}

impl ReadHistory for RemoteView<'_> {
    fn revision(&self) -> ViewResult<u64> {
        self.one(ViewRequest::Revision)
    }

    fn events(&self, after: u64, task: Option<Key>, limit: usize) -> ViewResult<Vec<Event>> {
        self.pages(limit, |limit, last| {
            let after = last.map_or(after, |event| event.revision);
            ViewRequest::Events { after, task, limit }
        })
    }

    fn find_events(&self, query: &EventQuery) -> ViewResult<Vec<Event>> {
        if query.latest && query.limit > 0 {
            return self.latest(query);
        }
        self.pages(query.limit, |limit, last| {
            let after = last.map_or(query.after, |event| event.revision);
            ViewRequest::FindEvents(Box::new(EventQuery { after, limit, latest: false, ..query.clone() }))
        })
    }

    fn undoables(&self, first: u64, last: u64) -> ViewResult<Vec<Undoable>> {
        self.all(ViewRequest::Undoables(first, last))
    }

    fn last_undoable(&self, actor: Actor<'_>) -> ViewResult<Option<Undoable>> {
        self.one(ViewRequest::LastUndoable(actor.kind, actor.name.to_owned()))
    }

    /// Idempotency records are not visible to calls: the run sends each command of a call exactly once.
    fn request(&self, _: Actor<'_>, _: &str) -> ViewResult<Option<RequestRecord>> {
        Ok(None)
    }

    fn requests_before(&self, _: Timestamp) -> ViewResult<u64> {
        Ok(0)
    }

    fn each_undo_snapshot(&self, _: &mut dyn FnMut(u64, Arc<UndoSnapshot>)) -> ViewResult<()> {
        Err(no_undo_snapshots().into())
    }

    fn undo_snapshot(&self, _: u64) -> ViewResult<Option<Arc<UndoSnapshot>>> {
        Err(no_undo_snapshots().into())
    }
}

fn no_undo_snapshots() -> StoreError {
    StoreError::OutOfReach { problem: "undo data is not available to calls".to_owned() }
}
