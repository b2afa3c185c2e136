//! A live checklist: what there is to do, what is being done and by whom, and what is done.
//!
//! [`Checklist`] is plain data, whatever it was made from: `board` makes it from a plan, `kept` from what models keep beside it, and a
//! [`Sheet`] has all of them. `frame` turns that into lines and knows no terminal; `screen` owns the terminal.

mod board;
mod fit;
mod frame;
mod kept;
mod screen;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

pub(crate) use board::Board;
pub(crate) use frame::{View, frame};
pub(crate) use kept::Keeping;
pub(crate) use screen::{Screen, TURN};

/// How far an item is. The order is that in which items matter when there is no room for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mark {
    /// Somebody or something is at it.
    InProgress,
    /// It went wrong.
    Failed,
    /// It waits for somebody: a decision, or whoever takes it back.
    Waiting,
    /// It was begun, and whoever was at it has ended.
    Stopped,
    /// Nobody has begun.
    NotStarted,
    /// It cannot begin because of others.
    Blocked,
    /// It went well.
    Completed,
    /// It is not needed any more.
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

    /// Returns the words for several items that are so.
    fn words(self) -> &'static str {
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
    /// What it is called by commands.
    pub(crate) id: String,
    /// What is to be done.
    pub(crate) title: String,
    /// How far it is.
    pub(crate) status: Mark,
    /// Who is at it, or is to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    /// The call that runs, or why it does not go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// How many items it is below.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) depth: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(depth: &usize) -> bool {
    *depth == 0
}

/// A list of items, each after the one that it is below.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Checklist {
    /// How many items are completed.
    pub(crate) completed: u64,
    /// How many there are to be completed: what is not needed any more does not count.
    pub(crate) total: u64,
    /// The items.
    pub(crate) items: Vec<Item>,
    /// How many more there are that are not among the items.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) unlisted: BTreeMap<Mark, u64>,
}

impl Checklist {
    /// Returns a list of all items that there are.
    pub(crate) fn of(items: Vec<Item>) -> Self {
        let count =
            |wanted: &dyn Fn(Mark) -> bool| items.iter().filter(|item| wanted(item.status)).count() as u64;
        let completed = count(&|mark| mark == Mark::Completed);
        let total = count(&|mark| mark != Mark::Dropped);
        Self { completed, total, items, unlisted: BTreeMap::new() }
    }

    /// Returns how many items are so, listed or not.
    pub(crate) fn count(&self, mark: Mark) -> u64 {
        let listed = self.items.iter().filter(|item| item.status == mark).count() as u64;
        listed + self.unlisted.get(&mark).copied().unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        self.total == 0 && self.lines() == 0
    }

    fn is_moving(&self) -> bool {
        self.count(Mark::InProgress) > 0
    }

    /// Returns how many lines it takes, without its header.
    fn lines(&self) -> usize {
        self.items.len() + usize::from(!self.unlisted.is_empty())
    }
}

/// A checklist that a model keeps beside its work: what it says, not what ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Kept {
    /// Whose it is: a conversation or a session.
    pub(crate) scope: String,
    /// Who keeps it.
    pub(crate) owner: String,
    /// Whether its process has ended and left it for review.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ended: bool,
    #[serde(flatten)]
    pub(crate) list: Checklist,
}

/// Everything that is drawn: the plan, and what models keep beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Sheet {
    #[serde(flatten)]
    pub(crate) plan: Checklist,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) lists: Vec<Kept>,
}

impl Sheet {
    /// Returns whether something is going on, so that a picture of it has to move.
    pub(crate) fn is_moving(&self) -> bool {
        self.plan.is_moving() || self.lists.iter().any(|kept| kept.list.is_moving())
    }
}
