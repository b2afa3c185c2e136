//! The checklists of a process, told to others through the events of a store; and what others say back.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use taskpawl_manager::{Error, Manager};
use taskpawl_model::{ChecklistItem, Command, Event, EventKind, EventQuery, Timestamp};

/// The word of the events of checklists.
const KIND: &str = "checklist";

/// How many events are read at once.
const CHUNK: usize = 500;

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
}

/// Returns the checklists that are not empty, the one that changed last at the end.
///
/// # Errors
/// The store cannot be read.
pub fn mirrored_lists(manager: &Manager) -> Result<Vec<MirroredList>, Error> {
    let mut lists = BTreeMap::new();
    let mut query = EventQuery { kind: Some(KIND.to_owned()), limit: CHUNK, ..EventQuery::default() };
    loop {
        let events = manager.store().view(|view| view.find_events(&query))?;
        let Some(newest) = events.last() else { break };
        query.after = newest.revision;
        for event in events {
            let Some((list, _)) = list_of(event) else { continue };
            if list.items.is_empty() {
                lists.remove(&list.scope);
            } else {
                lists.insert(list.scope.clone(), list);
            }
        }
    }
    let mut lists: Vec<MirroredList> = lists.into_values().collect();
    lists.sort_by_key(|list| list.revision);
    Ok(lists)
}

/// Empties the checklist of `scope` for everybody: who keeps it does so before the next answer.
///
/// # Errors
/// The store cannot be written.
pub fn clear_mirrored(manager: &Manager, scope: &str) -> Result<(), Error> {
    let scope = scope.to_owned();
    manager.command(Command::Checklist { scope, items: Vec::new(), cleared: true }).map(drop)
}

/// Returns what an event tells of a checklist, and whether it asks for it to be emptied.
fn list_of(event: Event) -> Option<(MirroredList, bool)> {
    let Event { revision, at, actor, kind, .. } = event;
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other kinds tell of no checklist")]
    match kind {
        EventKind::Checklist { scope, items, cleared } => {
            Some((MirroredList { scope, actor: actor.into(), at, revision, items }, cleared))
        }
        _ => None,
    }
}

/// The way to the store.
#[derive(Debug)]
pub(crate) struct Mirror {
    manager: Manager,
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
    pub(crate) fn new(manager: Manager) -> Self {
        Self { manager, seen: Mutex::default() }
    }

    pub(crate) fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Tells of a list.
    pub(crate) fn write(&self, scope: &str, items: Vec<ChecklistItem>) -> Result<(), Error> {
        let scope = scope.to_owned();
        let is_over = items.is_empty();
        let answer =
            self.manager.command(Command::Checklist { scope: scope.clone(), items, cleared: false })?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if is_over {
            // Nothing is left that somebody could empty.
            seen.written.remove(&scope);
        } else {
            seen.written.insert(scope, answer.revision);
        }
        Ok(())
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
