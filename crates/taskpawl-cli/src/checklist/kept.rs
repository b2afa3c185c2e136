//! The checklists that models keep, in whatever process, as the store tells of them.

use taskpawl::model::EventQuery;
use taskpawl::{Error, Manager};
use taskpawl_todo::{ChecklistItem, ChecklistStatus, MirroredList, mirrored_lists};

use super::{Checklist, Item, Kept, Mark};

/// What is known of them.
#[derive(Debug, Default)]
pub(crate) struct Keeping {
    /// Everything that was told up to here is in the lists.
    revision: u64,
    lists: Vec<MirroredList>,
}

impl Keeping {
    /// Reads what there is.
    pub(crate) fn read(manager: &Manager) -> Result<Self, Error> {
        let mut keeping = Self::default();
        keeping.follow(manager)?;
        Ok(keeping)
    }

    /// Takes over what has happened since.
    pub(crate) fn follow(&mut self, manager: &Manager) -> Result<(), Error> {
        let kind = Some("checklist".to_owned());
        let query = EventQuery { after: self.revision, kind, limit: 1, ..EventQuery::default() };
        let (revision, has_news) =
            manager.store().view(|view| Ok((view.revision()?, !view.find_events(&query)?.is_empty())))?;
        if has_news {
            self.lists = mirrored_lists(manager)?;
        }
        self.revision = revision;
        Ok(())
    }

    /// Returns them, the one that changed last at the end.
    pub(crate) fn lists(&self) -> Vec<Kept> {
        self.lists.iter().map(kept).collect()
    }
}

fn kept(list: &MirroredList) -> Kept {
    let items = list.items.iter().map(item).collect();
    Kept { scope: list.scope.clone(), owner: list.actor.clone(), list: Checklist::of(items) }
}

fn item(item: &ChecklistItem) -> Item {
    let status = match item.status {
        ChecklistStatus::NotStarted => Mark::NotStarted,
        ChecklistStatus::InProgress => Mark::InProgress,
        ChecklistStatus::Completed => Mark::Completed,
    };
    Item { id: item.id.to_string(), title: item.title.clone(), status, owner: None, detail: None, depth: 0 }
}
