//! The checklists of models in all processes, as the events of the store mirror them.

use taskpawl::{Error, Manager, Taskpawl};
use taskpawl_todo::{ChecklistItem, ChecklistStatus, MirroredList, MirroredLists};

use super::item::{Checklist, Item, Kept, Mark};

/// The mirrored checklists.
#[derive(Debug)]
pub(crate) struct Keeping(MirroredLists);

impl Keeping {
    /// Reads the checklists from the store.
    pub(crate) fn read(plans: &Taskpawl) -> Result<Self, Error> {
        Ok(Self(MirroredLists::read(plans.manager(), &plans.engine().project().files)?))
    }

    /// Applies the events since the last call.
    pub(crate) fn follow(&mut self, manager: &Manager) -> Result<(), Error> {
        self.0.follow(manager)
    }

    /// Returns whether a checklist ends with its process. The death of a process is no event, so the caller must
    /// check periodically.
    pub(crate) fn is_held(&self) -> bool {
        self.0.is_held()
    }

    /// Returns the checklists; the one that changed last comes last.
    pub(crate) fn lists(&self) -> Vec<Kept> {
        self.0.lists().into_iter().map(kept).collect()
    }
}

fn kept(list: &MirroredList) -> Kept {
    let ended = list.has_ended;
    let items = list.items.iter().map(|one| item(one, ended)).collect();
    Kept { scope: list.scope.clone(), owner: list.actor.clone(), ended, list: Checklist::of(items) }
}

fn item(item: &ChecklistItem, has_ended: bool) -> Item {
    let status = match item.status {
        ChecklistStatus::NotStarted => Mark::NotStarted,
        ChecklistStatus::InProgress if has_ended => Mark::Stopped,
        ChecklistStatus::InProgress => Mark::InProgress,
        ChecklistStatus::Completed => Mark::Completed,
    };
    Item {
        id: item.id.to_string(),
        title: item.title.clone(),
        status,
        owner: None,
        worker: None,
        detail: None,
        depth: 0,
    }
}
