//! Publishes the checklists of a process through the events of a store, and receives requests of other processes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use taskpawl_manager::{Error, Manager};
use taskpawl_model::command::Command;
use taskpawl_model::task::ChecklistItem;
use taskpawl_model::task::{ChecklistChanged, Event, EventKind};
use taskpawl_model::value::Timestamp;
use taskpawl_model::view::EventQuery;

use crate::liveness_lock::{LivenessLock, is_gone};

/// Name of the event kind.
const KIND: &str = "checklist";

/// Number of events that one read returns. Small, because the wanted list is usually among the latest events.
const LATEST: usize = 50;

/// A checklist, as last published in the events of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct MirroredList {
    /// Scope of the list.
    pub scope: String,
    /// Actor that keeps the list.
    pub actor: String,
    /// Time of the last change.
    pub at: Timestamp,
    /// Revision of the store with the last change.
    pub revision: u64,
    /// Items of the list, at least one.
    pub items: Vec<ChecklistItem>,
    /// True if the process has ended and left the list for review.
    pub has_ended: bool,
    /// Liveness lock of the process; `None` if it could not create one.
    liveness_lock: Option<String>,
    /// True if the list remains after the end of its process.
    is_kept: bool,
}

impl MirroredList {
    /// Returns whether the process has ended. A killed process cannot record its end, so its lock is checked.
    fn is_left(&self, files: &Path) -> bool {
        self.liveness_lock.as_ref().is_some_and(|liveness_lock| is_gone(files, liveness_lock))
    }

    /// Returns the list in its current state. Returns `None` if the process has ended, since the list was only in its
    /// memory, unless the list is kept.
    fn now(self, files: &Path) -> Option<Self> {
        let has_ended = self.has_ended || self.is_left(files);
        (!has_ended || self.is_kept).then_some(Self { has_ended, ..self })
    }
}

/// The checklists in a store, read once and then updated from new events.
#[derive(Debug)]
pub struct MirroredLists {
    /// Directory that contains the liveness locks.
    files: PathBuf,
    /// Events up to this revision are included.
    revision: u64,
    /// By scope; without empty lists.
    lists: BTreeMap<String, MirroredList>,
}

impl MirroredLists {
    /// Reads the current checklists. `files` is the directory for run locks and output files of the store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn read(manager: &Manager, files: &Path) -> Result<Self, Error> {
        let mut lists = Self { files: files.to_owned(), revision: 0, lists: BTreeMap::new() };
        lists.follow(manager)?;
        Ok(lists)
    }

    /// Applies new events, and removes the lists of processes that have ended meanwhile.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn follow(&mut self, manager: &Manager) -> Result<(), Error> {
        let seen = self.revision;
        let (revision, events) =
            manager.store().view(|view| Ok((view.revision()?, view.newest_checklists(seen)?)))?;
        self.revision = revision;
        for (list, _) in events.into_iter().filter_map(list_of) {
            self.take(list);
        }
        let lists = std::mem::take(&mut self.lists).into_iter();
        self.lists = lists.filter_map(|(scope, list)| Some((scope, list.now(&self.files)?))).collect();
        Ok(())
    }

    fn take(&mut self, list: MirroredList) {
        if list.items.is_empty() {
            self.lists.remove(&list.scope);
        } else {
            self.lists.insert(list.scope.clone(), list);
        }
    }

    /// Returns the lists, ordered by their last change.
    pub fn lists(&self) -> Vec<&MirroredList> {
        let mut lists: Vec<&MirroredList> = self.lists.values().collect();
        lists.sort_by_key(|list| list.revision);
        lists
    }

    /// Returns whether the end of any list may go unrecorded, so that locks have to be polled in addition to events.
    pub fn is_held(&self) -> bool {
        self.lists.values().any(|list| list.liveness_lock.is_some() && !list.has_ended)
    }
}

/// Returns the checklists that are neither empty nor ended, ordered by their last change: see [`MirroredLists`].
///
/// # Errors
/// The store cannot be read.
pub fn mirrored_lists(manager: &Manager, files: &Path) -> Result<Vec<MirroredList>, Error> {
    Ok(MirroredLists::read(manager, files)?.lists().into_iter().cloned().collect())
}

/// Returns the checklist of a scope, or without a scope the list that changed last; `None` if it is empty or has ended.
/// Reads events backwards, only as far as necessary.
///
/// # Errors
/// The store cannot be read.
pub fn mirrored_list(
    manager: &Manager,
    files: &Path,
    scope: Option<&str>,
) -> Result<Option<MirroredList>, Error> {
    let (mut overtaken, mut until) = (BTreeSet::new(), None);
    loop {
        let kind = Some(KIND.to_owned());
        let query = EventQuery { until, kind, latest: true, limit: LATEST, ..EventQuery::default() };
        let events = manager.store().view(|view| view.find_events(&query))?;
        let is_all = events.len() < LATEST;
        until = events.first().map(|oldest| oldest.revision.saturating_sub(1));
        for (list, _) in events.into_iter().rev().filter_map(list_of) {
            let is_meant = scope.is_none_or(|scope| list.scope == scope);
            // Only the latest event of each scope counts; earlier ones are outdated.
            if !is_meant || !overtaken.insert(list.scope.clone()) {
                continue;
            }
            let found = Some(list).filter(|list| !list.items.is_empty()).and_then(|list| list.now(files));
            if found.is_some() || scope.is_some() {
                return Ok(found);
            }
        }
        if is_all {
            return Ok(None);
        }
    }
}

/// Clears the checklist of `scope` for all processes. The process that keeps it applies this before its next answer.
///
/// # Errors
/// The store cannot be written.
pub fn clear_mirrored(manager: &Manager, scope: &str) -> Result<(), Error> {
    let scope = scope.to_owned();
    let clear =
        Command::Checklist { scope, items: Vec::new(), cleared: true, liveness_lock: None, kept: false };
    manager.command(clear).map(drop)
}

/// Returns the checklist in an event, and whether the event is a request to clear it.
fn list_of(event: Event) -> Option<(MirroredList, bool)> {
    let Event { revision, at, actor, kind, .. } = event;
    #[expect(clippy::wildcard_enum_match_arm, reason = "all other kinds of events are irrelevant here")]
    match kind {
        EventKind::Checklist(list) => {
            let ChecklistChanged { scope, items, cleared, liveness_lock, kept: is_kept } = *list;
            let (actor, has_ended) = (actor.into(), false);
            Some((
                MirroredList { scope, actor, at, revision, items, has_ended, liveness_lock, is_kept },
                cleared,
            ))
        }
        _ => None,
    }
}

/// Connection of [`Lists`](crate::Lists) to a store.
#[derive(Debug)]
pub(crate) struct Mirror {
    manager: Manager,
    files: PathBuf,
    /// Preferred name of the liveness lock.
    id: String,
    /// True if lists remain when this process ends.
    is_kept: bool,
    /// Locked before the first list is published, and released with the last handle. `None` if locking failed.
    liveness_lock: OnceLock<Option<LivenessLock>>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Last revision whose events were processed. Events before the first call are requests to other processes.
    revision: Option<u64>,
    /// Revision of the last write to each scope. Earlier requests to clear it are outdated.
    written: BTreeMap<String, u64>,
}

impl Mirror {
    pub(crate) fn new(manager: Manager, files: PathBuf, id: String, is_kept: bool) -> Self {
        Self { manager, files, id, is_kept, liveness_lock: OnceLock::new(), seen: Mutex::default() }
    }

    /// Returns the list of a scope that another process keeps.
    pub(crate) fn of_another(&self, scope: &str) -> Result<Option<MirroredList>, Error> {
        mirrored_list(&self.manager, &self.files, Some(scope))
    }

    /// Publishes a list.
    pub(crate) fn write(&self, scope: &str, items: Vec<ChecklistItem>) -> Result<(), Error> {
        let scope = scope.to_owned();
        let is_over = items.is_empty();
        let liveness_lock = if is_over { None } else { self.liveness_lock() };
        let answer = self.manager.command(Command::Checklist {
            scope: scope.clone(),
            items,
            cleared: false,
            liveness_lock,
            kept: self.is_kept && !is_over,
        })?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if is_over {
            // The list has ended, so there is nothing left to clear.
            seen.written.remove(&scope);
        } else {
            seen.written.insert(scope, answer.revision);
        }
        Ok(())
    }

    fn liveness_lock(&self) -> Option<String> {
        // A list is published even without a lock. If the process is then killed, the list stays visible until it is
        // cleared.
        let liveness_lock = self.liveness_lock.get_or_init(|| LivenessLock::hold(&self.files, &self.id).ok());
        liveness_lock.as_ref().map(|liveness_lock| liveness_lock.name().to_owned())
    }

    /// Returns the scopes that other processes have asked to clear since the last call.
    pub(crate) fn cleared(&self) -> Result<Vec<String>, Error> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (revision, events) = self.manager.store().view(|view| {
            let revision = view.revision()?;
            let query = |after| EventQuery { after, kind: Some(KIND.to_owned()), ..EventQuery::default() };
            let events = seen.revision.filter(|seen| *seen < revision).map(query);
            Ok((revision, events.map(|query| view.find_events(&query)).transpose()?.unwrap_or_default()))
        })?;
        seen.revision = Some(revision);
        let asked = events.into_iter().filter_map(list_of).filter(|(_, cleared)| *cleared);
        let is_due = |list: &MirroredList| {
            seen.written.get(&list.scope).is_none_or(|written| list.revision > *written)
        };
        Ok(asked.map(|(list, _)| list).filter(is_due).map(|list| list.scope).collect())
    }

    /// Returns the scopes with a published list that has not ended.
    pub(crate) fn told(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).written.keys().cloned().collect()
    }
}
