//! Checklists as data: items with their marks, the plan, and the lists of models.

use std::collections::BTreeMap;

use serde::Serialize;

/// The progress of an item. The order of the marks is their importance when there is no room for all items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mark {
    /// A run, an agent or a person works on it.
    InProgress,
    /// It failed.
    Failed,
    /// It waits for a decision or for a new owner.
    Waiting,
    /// It was started, but its owner has ended.
    Stopped,
    /// It was not started.
    NotStarted,
    /// Other items block it.
    Blocked,
    /// It is done.
    Completed,
    /// It was cancelled or skipped.
    Dropped,
}

impl Mark {
    /// Every mark, in order.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 8] = [
        Self::InProgress,
        Self::Failed,
        Self::Waiting,
        Self::Stopped,
        Self::NotStarted,
        Self::Blocked,
        Self::Completed,
        Self::Dropped,
    ];

    /// Returns the words for several items with this mark.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::InProgress => "in progress",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Stopped => "stopped",
            Self::NotStarted => "not started",
            Self::Blocked => "blocked",
            Self::Completed => "completed",
            Self::Dropped => "dropped",
        }
    }
}

/// One line of a checklist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Item {
    /// The id that commands accept.
    pub(crate) id: String,
    /// The title, which may be empty.
    pub(crate) title: String,
    /// The progress.
    pub(crate) status: Mark,
    /// The actor that works on it, or the one that it is assigned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    /// The worker that runs its call; absent for the machine of the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worker: Option<String>,
    /// The running call, or the reason why the item does not continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// The number of parents above it.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) depth: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(depth: &usize) -> bool {
    *depth == 0
}

/// Items, each after its parent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Checklist {
    /// The number of completed items.
    pub(crate) completed: u64,
    /// The number of items to complete, without cancelled and skipped ones.
    pub(crate) total: u64,
    /// The listed items.
    pub(crate) items: Vec<Item>,
    /// The number of items that are not listed, by mark.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) unlisted: BTreeMap<Mark, u64>,
}

impl Checklist {
    /// Returns a checklist that lists all of its items.
    pub(crate) fn of(items: Vec<Item>) -> Self {
        let count =
            |wanted: &dyn Fn(Mark) -> bool| items.iter().filter(|item| wanted(item.status)).count() as u64;
        let completed = count(&|mark| mark == Mark::Completed);
        let total = count(&|mark| mark != Mark::Dropped);
        Self { completed, total, items, unlisted: BTreeMap::new() }
    }

    /// Returns the number of items with this mark, listed or not.
    pub(crate) fn count(&self, mark: Mark) -> u64 {
        let listed = self.items.iter().filter(|item| item.status == mark).count() as u64;
        listed + self.unlisted.get(&mark).copied().unwrap_or_default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.total == 0 && self.lines() == 0
    }

    pub(super) fn is_moving(&self) -> bool {
        self.count(Mark::InProgress) > 0
    }

    /// Returns the number of lines without the header.
    pub(super) fn lines(&self) -> usize {
        self.items.len() + usize::from(!self.unlisted.is_empty())
    }
}

/// A checklist that a model keeps beside its work. It shows the model's statements, not what taskpawl ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Kept {
    /// The conversation or session that the list belongs to.
    pub(crate) scope: String,
    /// The actor that keeps the list.
    pub(crate) owner: String,
    /// True if its process has ended and left the list for review.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ended: bool,
    #[serde(flatten)]
    pub(crate) list: Checklist,
}

/// Everything that is drawn: the plan and the lists of models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Sheet {
    #[serde(flatten)]
    pub(crate) plan: Checklist,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) lists: Vec<Kept>,
}

impl Sheet {
    /// Returns whether an item is in progress, so that the spinner has to turn.
    pub(crate) fn is_moving(&self) -> bool {
        self.plan.is_moving() || self.lists.iter().any(|kept| kept.list.is_moving())
    }
}
