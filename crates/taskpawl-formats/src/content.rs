//! Identity by content: finds the tasks of items that have no ids in their file.
//!
//! An item is the task that remembers an equal text under the same headings and items, else under the same heading, else
//! anywhere. Among equals their neighbours decide, then the order. Every step is linear: a list may have thousands of equal items.

mod matching;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;

use taskpawl_model::command::SourceRecord;
use taskpawl_model::value::TaskId;

use crate::ids::Ids;
use crate::known::{KnownRecord, Renamed};

/// An item without an id.
#[derive(Debug, Clone, Default)]
pub(crate) struct ContentItem {
    pub(crate) text: String,
    /// The headings and items above it, outermost first.
    pub(crate) under: Vec<String>,
    /// The number of headings in `under`.
    pub(crate) headings: usize,
    /// The task id that an earlier export wrote into it.
    pub(crate) task: Option<String>,
    /// The id that its file gives it.
    pub(crate) id: Option<String>,
    /// True if numbers at the start of its text, and of the texts above it, are only places.
    pub(crate) has_number: bool,
}

/// The tasks of items, in the order of the items.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) ids: Vec<TaskId>,
    pub(crate) records: Vec<SourceRecord>,
    pub(crate) renamed: Vec<Renamed>,
}

/// Finds the task of every item. Items without one get a new id.
pub(crate) fn find(items: &[ContentItem], ids: &mut Ids<'_>) -> Found {
    let known = ids.known();
    let (matched, renamed) = matching::pairs(items, known);
    let mut found = Found { renamed, ..Found::default() };
    // Known tasks first: no new item may take the id of one that stands further below.
    for (_, known) in &matched {
        ids.take(known.task.clone());
    }
    let matched: BTreeMap<usize, &KnownRecord> = matched.into_iter().collect();
    // Then the ids that an export wrote into the file: an item above may have the same slug.
    let is_new = |place: &usize| !matched.contains_key(place);
    let written: BTreeMap<usize, TaskId> = (0..items.len())
        .filter(is_new)
        .filter_map(|place| Some((place, ids.add_written(items[place].task.as_deref()?)?)))
        .collect();
    for (place, item) in items.iter().enumerate() {
        let known = matched.get(&place).map(|known| known.task.clone());
        let id = known.or_else(|| written.get(&place).cloned());
        let id = id.unwrap_or_else(|| ids.add_item(item.id.as_deref(), &item.text));
        found.records.push(record(item, place, ids));
        found.ids.push(id);
    }
    found
}

fn record(item: &ContentItem, place: usize, ids: &Ids<'_>) -> SourceRecord {
    let id = item.id.clone().unwrap_or_else(|| item.text.clone());
    let place = u64::try_from(place).ok();
    SourceRecord {
        id,
        under: item.under.clone(),
        place,
        prefix: ids.prefix().cloned(),
        ..SourceRecord::default()
    }
}

impl ContentItem {
    /// Returns the innermost heading above the item.
    fn heading(&self) -> &[String] {
        &self.under[self.headings.saturating_sub(1)..self.headings]
    }
}
