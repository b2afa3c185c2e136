//! Selection of the items to draw when there is no room for all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::item::{Checklist, Mark};

/// The selected items.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fit {
    /// The positions of the items, in order.
    pub(super) items: Vec<usize>,
    /// The number of items left out, by mark.
    pub(super) hidden: BTreeMap<Mark, u64>,
}

/// Selects the most important items for `room` lines, one of which names the items left out. Without `room`, selects
/// all items.
pub(super) fn fit(list: &Checklist, room: Option<usize>) -> Fit {
    let whole = list.items.len() + usize::from(!list.unlisted.is_empty());
    let Some(room) = room.filter(|room| *room < whole) else {
        return Fit { items: (0..list.items.len()).collect(), hidden: list.unlisted.clone() };
    };
    let room = room.saturating_sub(1);
    let mut chosen = BTreeSet::new();
    for position in by_weight(list) {
        let mut needed = above(list, position);
        needed.insert(position);
        needed.retain(|position| !chosen.contains(position));
        // Parents give context. If there is no room for them, the item itself is still drawn.
        if chosen.len() + needed.len() <= room {
            chosen.append(&mut needed);
        } else if chosen.len() < room {
            chosen.insert(position);
        } else {
            break;
        }
    }
    let mut hidden = list.unlisted.clone();
    for (position, item) in list.items.iter().enumerate() {
        if !chosen.contains(&position) {
            *hidden.entry(item.status).or_default() += 1;
        }
    }
    Fit { items: chosen.into_iter().collect(), hidden }
}

/// Returns the positions of all items, most important first. Among finished items the latest come first.
fn by_weight(list: &Checklist) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..list.items.len()).collect();
    positions.sort_by_key(|position| {
        let status = list.items[*position].status;
        let is_over = status >= Mark::Completed;
        (status, if is_over { usize::MAX - position } else { *position })
    });
    positions
}

/// Returns the positions of an item's parents.
fn above(list: &Checklist, position: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut depth = list.items[position].depth;
    for earlier in (0..position).rev() {
        if depth == 0 {
            break;
        }
        if list.items[earlier].depth < depth {
            depth = list.items[earlier].depth;
            found.insert(earlier);
        }
    }
    found
}
