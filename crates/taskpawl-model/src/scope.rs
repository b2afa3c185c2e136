//! Scopes: which tasks a run or a command over many is restricted to.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Key;
use crate::command::DecideError;
use crate::refusal::Refusal;
use crate::view::{Query, View, ViewError};

/// One restriction, as `--only` takes it: `plan:NAME`, `label:NAME` or a task id; each stands for all below, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// The tasks of a plan, with all below them.
    Plan(String),
    /// The tasks with a label, with all below them.
    Label(String),
    /// A task with all below it.
    Task(String),
}

impl FromStr for Selector {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once(':') {
            Some(("plan", name)) => Self::Plan(name.to_owned()),
            Some(("label", name)) => Self::Label(name.to_owned()),
            _ => Self::Task(text.to_owned()),
        })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(name) => write!(f, "plan:{name}"),
            Self::Label(name) => write!(f, "label:{name}"),
            Self::Task(id) => f.write_str(id),
        }
    }
}

impl Serialize for Selector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(text.parse().unwrap_or_else(|never| match never {}))
    }
}

impl Selector {
    /// Returns the tasks that it selects now.
    ///
    /// # Errors
    /// The id of a task is unknown or not unique, a plan or label selects nothing, or the view cannot be read.
    pub fn keys(&self, view: &dyn View) -> Result<BTreeSet<Key>, DecideError> {
        self.keys_beside(view, &[])
    }

    /// Returns the tasks that it selects beside other selectors: the id of a task is looked for in the plans that these name first.
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
        // A slip in a name must not look like work that is done.
        if is_known { Ok(keys) } else { Err(Refusal::NothingSelected { selector: self.to_string() }.into()) }
    }
}

/// Returns the tasks that any of the selectors selects; `None` when there are none, which stands for all tasks.
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

/// Finds the task that an id beside selectors names: first as the files of the plans that these name call it.
///
/// # Errors
/// As [`resolve`](crate::resolve).
pub fn resolve_among(view: &dyn View, selectors: &[Selector], id: &str) -> Result<Key, DecideError> {
    let plans = selectors.iter().filter_map(|selector| match selector {
        Selector::Plan(name) => Some(name.as_str()),
        Selector::Label(_) | Selector::Task(_) => None,
    });
    crate::read::resolve_within(view, plans, id)
}

fn find(view: &dyn View, query: &Query) -> Result<BTreeSet<Key>, ViewError> {
    Ok(view.find(query)?.into_iter().collect())
}

/// Returns the tasks with all below them.
fn subtrees(view: &dyn View, tops: Vec<Key>) -> Result<BTreeSet<Key>, ViewError> {
    let mut keys: BTreeSet<Key> = tops.iter().copied().collect();
    let mut queue = tops;
    while let Some(key) = queue.pop() {
        queue.extend(view.subtasks(key)?.into_iter().filter(|below| keys.insert(*below)));
    }
    Ok(keys)
}
