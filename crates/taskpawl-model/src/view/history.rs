//! Reading events, undo snapshots and answered requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{EventQuery, ViewResult};
use crate::command::RequestRecord;
use crate::task::Actor;
use crate::task::event::{Event, EventKind};
use crate::value::Key;
use crate::value::Timestamp;
use crate::view::undo::{UndoSnapshot, Undoable};

/// The history of a store, up to a snapshot.
pub trait ReadHistory {
    /// Returns the revision of the last event; 0 for an empty store.
    fn revision(&self) -> ViewResult<u64>;

    /// Returns events after `revision` in order, at most `limit` (0: all), of one task if one is given.
    fn events(&self, after: u64, task: Option<Key>, limit: usize) -> ViewResult<Vec<Event>>;

    /// Returns the events that match, in order.
    fn find_events(&self, query: &EventQuery) -> ViewResult<Vec<Event>>;

    /// Returns the last event of each checklist after `revision`, in order. There is one for each scope, including
    /// ended ones.
    ///
    /// A store that can find them without reading all other events overrides this.
    fn newest_checklists(&self, revision: u64) -> ViewResult<Vec<Event>> {
        let kind = Some("checklist".to_owned());
        let events = self.find_events(&EventQuery { after: revision, kind, ..EventQuery::default() })?;
        let mut newest = BTreeMap::new();
        for event in events {
            if let EventKind::Checklist(list) = &event.kind {
                newest.insert(list.scope.clone(), event);
            }
        }
        let mut events: Vec<Event> = newest.into_values().collect();
        events.sort_unstable_by_key(|event| event.revision);
        Ok(events)
    }

    /// Returns the undoable and formerly undoable commands with events from revision `first` to `last`, in order.
    fn undoables(&self, first: u64, last: u64) -> ViewResult<Vec<Undoable>>;

    /// Returns the last command of an actor that is neither an undo nor undone.
    fn last_undoable(&self, actor: Actor<'_>) -> ViewResult<Option<Undoable>>;

    /// Returns the record of an idempotent request of an actor by its name.
    fn request(&self, actor: Actor<'_>, request: &str) -> ViewResult<Option<RequestRecord>>;

    /// Returns the number of requests before a time whose answers are still stored.
    fn requests_before(&self, time: Timestamp) -> ViewResult<u64>;

    /// Calls `each` with every undoable command: its revision and its undo snapshot.
    fn each_undo_snapshot(&self, each: &mut dyn FnMut(u64, Arc<UndoSnapshot>)) -> ViewResult<()>;

    /// Returns the undo snapshot of the command with exactly this revision.
    fn undo_snapshot(&self, revision: u64) -> ViewResult<Option<Arc<UndoSnapshot>>>;
}
