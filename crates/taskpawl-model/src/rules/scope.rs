//! Scopes: the tasks to which a run or a bulk command is restricted.

use std::collections::BTreeSet;

use crate::command::refusal::Refusal;
use crate::rules::DecideError;
use crate::value::{Key, Selector};
use crate::view::{Query, View, ViewError};

impl Selector {
    /// Returns the tasks that it selects now.
    ///
    /// # Errors
    /// The id of a task is unknown or not unique, a plan or label selects nothing, or the view cannot be read.
    pub fn keys(&self, view: &dyn View) -> Result<BTreeSet<Key>, DecideError> {
        self.keys_beside(view, &[])
    }

    /// Returns the tasks that it selects together with other selectors. A task id is first searched in the plans that
    /// these name.
    fn keys_beside(&self, view: &dyn View, others: &[Self]) -> Result<BTreeSet<Key>, DecideError> {
        let keys = match self {
            Self::Plan(name) => {
                let of_plan = find(view, &Query { plan: Some(name.clone()), ..Query::default() })?;
                subtrees(view, of_plan.into_iter().collect())?
            }
            Self::Label(name) => {
                let labelled = find(view, &Query { labels: vec![name.clone()], ..Query::default() })?;
                subtrees(view, labelled.into_iter().collect())?
            }
            Self::Task(id) => subtrees(view, vec![resolve_among(view, others, id)?])?,
        };
        let is_known = !keys.is_empty() || matches!(self, Self::Plan(name) if view.plan(name)?.is_some());
        // A misspelled name must not look like completed work. A plan that exists and has no tasks is no mistake.
        if is_known { Ok(keys) } else { Err(Refusal::NothingSelected { selector: self.to_string() }.into()) }
    }
}

/// Returns the union of all selectors; `None` without selectors, which means all tasks.
///
/// # Errors
/// The id of a task is unknown or not unique, or the view cannot be read.
pub fn select(view: &dyn View, selectors: &[Selector]) -> Result<Option<BTreeSet<Key>>, DecideError> {
    if selectors.is_empty() {
        return Ok(None);
    }
    let mut keys = BTreeSet::new();
    for selector in selectors {
        keys.append(&mut selector.keys_beside(view, selectors)?);
    }
    Ok(Some(keys))
}

/// Finds a task by id, first by the ids in the files of the plans that the selectors name.
///
/// # Errors
/// As for [`resolve`](crate::rules::resolve).
pub fn resolve_among(view: &dyn View, selectors: &[Selector], id: &str) -> Result<Key, DecideError> {
    let plans = selectors.iter().filter_map(|selector| match selector {
        Selector::Plan(name) => Some(name.as_str()),
        Selector::Label(_) | Selector::Task(_) => None,
    });
    crate::rules::resolve::resolve_within(view, plans, id)
}

fn find(view: &dyn View, query: &Query) -> Result<BTreeSet<Key>, ViewError> {
    Ok(view.find(query)?.into_iter().collect())
}

/// Returns the tasks with all their subtasks.
fn subtrees(view: &dyn View, tops: Vec<Key>) -> Result<BTreeSet<Key>, ViewError> {
    let mut keys: BTreeSet<Key> = tops.iter().copied().collect();
    let mut queue = tops;
    while let Some(key) = queue.pop() {
        queue.extend(view.subtasks(key)?.into_iter().filter(|below| keys.insert(*below)));
    }
    Ok(keys)
}
