//! The one list that all dialects are about.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use crate::prompt::plain_title;

/// What a model calls an item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ItemId {
    /// A text.
    Text(String),
    /// A number.
    Number(Number),
}

impl ItemId {
    /// Reads an id; other values are none.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Number(number) => Some(Self::Number(number.clone())),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Returns what two ids have in common that mean the same: `1` and `1.0` do.
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

/// How far an item is. Each dialect has words for some of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// Nobody has begun it.
    #[default]
    Open,
    /// It is being worked on.
    Active,
    /// It is done.
    Done,
    /// It is not needed any more.
    Cancelled,
}

/// How urgent an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Urgency {
    /// Before others.
    High,
    /// As others.
    Medium,
    /// After others.
    Low,
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What the model calls it; empty where a dialect has no ids.
    pub id: ItemId,
    /// What is to be done, as the model wrote it.
    pub title: String,
    /// More about it.
    pub description: String,
    /// How far it is.
    pub state: State,
    /// How urgent it is, where the dialect says that.
    pub urgency: Option<Urgency>,
    /// Fields that this version does not know.
    pub(crate) beside: Map<String, Value>,
}

impl Item {
    /// Returns an open item with a title.
    pub(crate) fn new(id: ItemId, title: String) -> Self {
        let (description, beside) = Default::default();
        Self { id, title, description, state: State::Open, urgency: None, beside }
    }

    /// Returns its id, where it has one, and its title without marks.
    pub fn line(&self) -> String {
        let (id, title) = (self.id.to_string(), plain_title(&self.title));
        if id.is_empty() { title } else { format!("{id}  {title}") }
    }

    /// Returns whether something is left to be done.
    pub fn is_unfinished(&self) -> bool {
        matches!(self.state, State::Open | State::Active)
    }
}

/// An end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum End {
    Front,
    Back,
}

/// Why a list cannot take the place of another. Positions count from 0.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    /// An item has the id of an earlier one.
    DuplicateId { position: usize },
    /// A second item is being worked on.
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

    /// Returns how many items are done.
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

    /// Returns the first item that is called `id`.
    pub(crate) fn find(&mut self, id: &str) -> Option<&mut Item> {
        self.items.iter_mut().find(|item| item.id.to_string() == id)
    }

    /// Takes the first item out that is called `id`, and returns whether there was one.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        let found = self.items.iter().position(|item| item.id.to_string() == id);
        found.and_then(|position| self.items.remove(position)).is_some()
    }

    /// Takes `items` instead of what there was, and returns what was unfinished and is gone.
    ///
    /// # Errors
    /// Two items have the same id, or two are being worked on. Nothing is changed then.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: i64, state: State) -> Item {
        Item { state, ..Item::new(ItemId::Number(id.into()), format!("item {id}")) }
    }

    #[test]
    fn a_list_that_does_not_fit_changes_nothing() {
        let mut list = List::of([item(1, State::Open)]);
        let before = list.clone();
        let twice = vec![item(2, State::Open), item(2, State::Done)];
        assert_eq!(list.replace(twice), Err(Fault::DuplicateId { position: 1 }));
        let busy = vec![item(1, State::Active), item(2, State::Open), item(3, State::Active)];
        assert_eq!(list.replace(busy), Err(Fault::SeveralActive { position: 2 }));
        assert_eq!(list, before);
    }

    #[test]
    fn what_was_unfinished_and_is_gone_is_told() {
        let mut list = List::of([item(1, State::Active), item(2, State::Done), item(3, State::Cancelled)]);
        assert_eq!(list.replace(vec![item(4, State::Open)]).unwrap(), [item(1, State::Active)]);
    }

    #[test]
    fn numbers_that_are_equal_are_one_id() {
        let of = |text: &str| ItemId::Number(text.parse().unwrap());
        assert_eq!(of("1").key(), of("1.0").key());
        assert_ne!(of("1").key(), of("1.5").key());
    }
}
