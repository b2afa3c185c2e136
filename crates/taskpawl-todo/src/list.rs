//! The list type behind all dialects.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use crate::args::Args;
use crate::prompt::plain_title;

/// Id of an item, as chosen by the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ItemId {
    /// A string.
    Text(String),
    /// A number, which may be fractional.
    Number(Number),
}

impl ItemId {
    /// Parses an id; only strings and numbers are valid.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Number(number) => Some(Self::Number(number.clone())),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Returns a form in which equal ids are equal: `1` and `1.0` are.
    fn key(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => {
                number.as_f64().map_or_else(|| number.to_string(), |value| value.to_string())
            }
        }
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.pad(text),
            Self::Number(number) => f.pad(&number.to_string()),
        }
    }
}

/// Status of an item. Each dialect supports a subset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// Not started.
    #[default]
    Open,
    /// In progress.
    Active,
    /// Completed.
    Done,
    /// Not needed any more.
    Cancelled,
}

/// Urgency of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Urgency {
    /// Before others.
    High,
    /// The default.
    Medium,
    /// After others.
    Low,
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Id as chosen by the model; empty in dialects without ids.
    pub id: ItemId,
    /// Title as written by the model, including Markdown.
    pub title: String,
    /// Further text; empty in dialects without descriptions.
    pub description: String,
    /// Current status.
    pub state: State,
    /// Urgency; `None` in dialects without one.
    pub urgency: Option<Urgency>,
    /// Fields that this version does not support, preserved when the file is written.
    pub(crate) beside: Map<String, Value>,
}

impl Item {
    /// Returns an open item with a title.
    pub(crate) fn new(id: ItemId, title: String) -> Self {
        let (description, beside) = Default::default();
        Self { id, title, description, state: State::Open, urgency: None, beside }
    }

    /// Returns the id, if there is one, and the title without Markdown.
    pub fn line(&self) -> String {
        let (id, title) = (self.id.to_string(), plain_title(&self.title));
        if id.is_empty() { title } else { format!("{id}  {title}") }
    }

    /// Returns whether the item is open or in progress.
    pub fn is_unfinished(&self) -> bool {
        matches!(self.state, State::Open | State::Active)
    }
}

/// End of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum End {
    Front,
    Back,
}

/// Reason to refuse a new list. Positions are zero-based.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    /// The item has the same id as an earlier one.
    DuplicateId { position: usize },
    /// The item is the second one in progress.
    SeveralActive { position: usize },
}

/// Items in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct List {
    items: VecDeque<Item>,
}

impl List {
    pub(crate) fn of(items: impl IntoIterator<Item = Item>) -> Self {
        Self { items: items.into_iter().collect() }
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Item> {
        self.items.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the number of completed items.
    pub(crate) fn done(&self) -> usize {
        self.iter().filter(|item| item.state == State::Done).count()
    }

    pub(crate) fn push(&mut self, end: End, item: Item) {
        match end {
            End::Front => self.items.push_front(item),
            End::Back => self.items.push_back(item),
        }
    }

    pub(crate) fn pop(&mut self, end: End) -> Option<Item> {
        match end {
            End::Front => self.items.pop_front(),
            End::Back => self.items.pop_back(),
        }
    }

    pub(crate) fn peek(&self, end: End) -> Option<&Item> {
        match end {
            End::Front => self.items.front(),
            End::Back => self.items.back(),
        }
    }

    /// Returns the first item with this id.
    pub(crate) fn find(&mut self, id: &str) -> Option<&mut Item> {
        self.items.iter_mut().find(|item| item.id.to_string() == id)
    }

    /// Removes the first item with this id; returns false if there is none.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        let found = self.items.iter().position(|item| item.id.to_string() == id);
        found.and_then(|position| self.items.remove(position)).is_some()
    }

    /// Replaces the list, and returns the unfinished items that are missing from the new one.
    ///
    /// # Errors
    /// Two items have the same id, or two are in progress. The list is unchanged then.
    pub(crate) fn replace(&mut self, items: Vec<Item>) -> Result<Vec<Item>, Fault> {
        let mut ids = BTreeSet::new();
        for (position, item) in items.iter().enumerate() {
            if !ids.insert(item.id.key()) {
                return Err(Fault::DuplicateId { position });
            }
        }
        let mut active = (0..items.len()).filter(|position| items[*position].state == State::Active);
        if let Some(position) = active.nth(1) {
            return Err(Fault::SeveralActive { position });
        }
        let before = std::mem::replace(self, Self::of(items));
        let is_gone = |item: &Item| item.is_unfinished() && !ids.contains(&item.id.key());
        Ok(before.items.into_iter().filter(is_gone).collect())
    }
}

/// Returns the fields of given items that are not kept, each once.
pub(crate) fn ignored(given: &[Value], known: &[&str]) -> Vec<String> {
    let all: BTreeSet<&str> = given.iter().flat_map(|item| Args::of(item).unknown(known)).collect();
    all.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: i64, state: State) -> Item {
        Item { state, ..Item::new(ItemId::Number(id.into()), format!("item {id}")) }
    }

    #[test]
    fn an_invalid_list_changes_nothing() {
        let mut list = List::of([item(1, State::Open)]);
        let before = list.clone();
        let twice = vec![item(2, State::Open), item(2, State::Done)];
        assert_eq!(list.replace(twice), Err(Fault::DuplicateId { position: 1 }));
        let busy = vec![item(1, State::Active), item(2, State::Open), item(3, State::Active)];
        assert_eq!(list.replace(busy), Err(Fault::SeveralActive { position: 2 }));
        assert_eq!(list, before);
    }

    #[test]
    fn replace_returns_missing_unfinished_items() {
        let mut list = List::of([item(1, State::Active), item(2, State::Done), item(3, State::Cancelled)]);
        assert_eq!(list.replace(vec![item(4, State::Open)]).unwrap(), [item(1, State::Active)]);
    }

    #[test]
    fn equal_numbers_are_the_same_id() {
        let of = |text: &str| ItemId::Number(text.parse().unwrap());
        assert_eq!(of("1").key(), of("1.0").key());
        assert_ne!(of("1").key(), of("1.5").key());
    }
}
