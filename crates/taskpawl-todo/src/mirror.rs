//! The checklists of a process, told to others through the events of a store; and what others say back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use taskpawl_manager::{Error, Manager};
use taskpawl_model::{ChecklistChanged, ChecklistItem, Command, Event, EventKind, EventQuery, Timestamp};

use crate::keeper::{Keeper, is_gone};

/// The word of the events of checklists.
const KIND: &str = "checklist";

/// How many events are read at once, where one of the latest is probably meant.
const LATEST: usize = 50;

/// A checklist, as the events of a store last told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct MirroredList {
    /// Whose it is.
    pub scope: String,
    /// Who keeps it.
    pub actor: String,
    /// When it last changed.
    pub at: Timestamp,
    /// The revision of the store with which it did.
    pub revision: u64,
    /// The items; never none.
    pub items: Vec<ChecklistItem>,
    /// Whether its process has ended and left it for review: nobody is at the items any more.
    pub has_ended: bool,
    /// The lock by which others see that its process is there; none where that cannot be told.
    keeper: Option<String>,
    /// Whether it stays when its process ends.
    is_kept: bool,
}

impl MirroredList {
    /// Returns whether its process has ended: one that was killed has not said so.
    fn is_left(&self, files: &Path) -> bool {
        self.keeper.as_ref().is_some_and(|keeper| is_gone(files, keeper))
    }

    /// Returns the list as it is now, or nothing where it is over: it was in the memory of its process alone, and that has ended.
    fn now(self, files: &Path) -> Option<Self> {
        let has_ended = self.has_ended || self.is_left(files);
        (!has_ended || self.is_kept).then_some(Self { has_ended, ..self })
    }
}

/// What the events of a store tell of checklists: read once, and then kept in step with them.
#[derive(Debug)]
pub struct MirroredLists {
    /// Where the locks of keepers are.
    files: PathBuf,
    /// Everything that was told up to here is in the lists.
    revision: u64,
    /// By scope; never an empty one.
    lists: BTreeMap<String, MirroredList>,
}

impl MirroredLists {
    /// Reads what there is. `files` is the directory for run locks and output files of the store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn read(manager: &Manager, files: &Path) -> Result<Self, Error> {
        let mut lists = Self { files: files.to_owned(), revision: 0, lists: BTreeMap::new() };
        lists.follow(manager)?;
        Ok(lists)
    }

    /// Takes over what has been told since, and leaves out the lists of processes that have ended meanwhile.
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

    /// Returns the lists, the one that changed last at the end.
    pub fn lists(&self) -> Vec<&MirroredList> {
        let mut lists: Vec<&MirroredList> = self.lists.values().collect();
        lists.sort_by_key(|list| list.revision);
        lists
    }

    /// Returns whether there is one whose end may be no event.
    pub fn is_held(&self) -> bool {
        self.lists.values().any(|list| list.keeper.is_some() && !list.has_ended)
    }
}

/// Returns the checklists that are not empty and not over, the one that changed last at the end: see [`MirroredLists`].
///
/// # Errors
/// The store cannot be read.
pub fn mirrored_lists(manager: &Manager, files: &Path) -> Result<Vec<MirroredList>, Error> {
    Ok(MirroredLists::read(manager, files)?.lists().into_iter().cloned().collect())
}

/// Returns the checklist of a scope, or without one that which changed last; `None` where it is empty or over. It reads no further back
/// than that takes.
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

/// Empties the checklist of `scope` for everybody: who keeps it does so before the next answer.
///
/// # Errors
/// The store cannot be written.
pub fn clear_mirrored(manager: &Manager, scope: &str) -> Result<(), Error> {
    let scope = scope.to_owned();
    let clear = Command::Checklist { scope, items: Vec::new(), cleared: true, keeper: None, kept: false };
    manager.command(clear).map(drop)
}

/// Returns what an event tells of a checklist, and whether it asks for it to be emptied.
fn list_of(event: Event) -> Option<(MirroredList, bool)> {
    let Event { revision, at, actor, kind, .. } = event;
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other kinds tell of no checklist")]
    match kind {
        EventKind::Checklist(list) => {
            let ChecklistChanged { scope, items, cleared, keeper, kept: is_kept } = *list;
            let (actor, has_ended) = (actor.into(), false);
            Some((MirroredList { scope, actor, at, revision, items, has_ended, keeper, is_kept }, cleared))
        }
        _ => None,
    }
}

/// The way to the store.
#[derive(Debug)]
pub(crate) struct Mirror {
    manager: Manager,
    files: PathBuf,
    /// What the lock of this process is called.
    id: String,
    /// Whether lists stay when this process ends.
    is_kept: bool,
    /// Taken before the first list is told of, and given back with the last handle.
    keeper: OnceLock<Option<Keeper>>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Up to which revision events were looked at; those before the first answer are none of ours.
    revision: Option<u64>,
    /// With which revision each scope was written last: what was asked for before is overtaken.
    written: BTreeMap<String, u64>,
}

impl Mirror {
    pub(crate) fn new(manager: Manager, files: PathBuf, id: String, is_kept: bool) -> Self {
        Self { manager, files, id, is_kept, keeper: OnceLock::new(), seen: Mutex::default() }
    }

    /// Returns the list of a scope that another process keeps.
    pub(crate) fn of_another(&self, scope: &str) -> Result<Option<MirroredList>, Error> {
        mirrored_list(&self.manager, &self.files, Some(scope))
    }

    /// Tells of a list.
    pub(crate) fn write(&self, scope: &str, items: Vec<ChecklistItem>) -> Result<(), Error> {
        let scope = scope.to_owned();
        let is_over = items.is_empty();
        let keeper = if is_over { None } else { self.keeper() };
        let answer = self.manager.command(Command::Checklist {
            scope: scope.clone(),
            items,
            cleared: false,
            keeper,
            kept: self.is_kept && !is_over,
        })?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if is_over {
            // Nothing is left that somebody could empty.
            seen.written.remove(&scope);
        } else {
            seen.written.insert(scope, answer.revision);
        }
        Ok(())
    }

    fn keeper(&self) -> Option<String> {
        // Without its lock a list is drawn all the same, and if its process is killed until somebody clears it.
        let keeper = self.keeper.get_or_init(|| Keeper::hold(&self.files, &self.id).ok());
        keeper.as_ref().map(|keeper| keeper.name().to_owned())
    }

    /// Returns the scopes whose lists somebody else has asked to be emptied since this was asked last.
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

    /// Returns the scopes of which something was told that is not over.
    pub(crate) fn told(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).written.keys().cloned().collect()
    }
}
