//! A sparse table by key. Keys are dense and increasing, so a lookup is index arithmetic instead of a search.

use taskpawl_model::value::Key;

/// Slots per page. A page is freed when its last slot becomes empty.
const SLOTS: u32 = 64;

/// Pages per chapter. Bounds the memory that a single huge key costs; only a hostile file has such a key.
const PAGES: u32 = 8192;

/// A map from keys to values, iterated in key order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pages<T> {
    chapters: Vec<Vec<Option<Box<Page<T>>>>>,
    len: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct Page<T> {
    slots: [Option<T>; SLOTS as usize],
    taken: u32,
}

/// The location of a key: chapter, page, slot.
type SlotIndex = [usize; 3];

fn slot(key: Key) -> SlotIndex {
    let (page, slot) = (key.0 / SLOTS, key.0 % SLOTS);
    [page / PAGES, page % PAGES, slot].map(|number| number as usize)
}

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Self { chapters: Vec::new(), len: 0 }
    }
}

impl<T> Pages<T> {
    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let [chapter, page, slot] = slot(key);
        self.chapters.get(chapter)?.get(page)?.as_ref()?.slots[slot].as_ref()
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let [chapter, page, slot] = slot(key);
        self.chapters.get_mut(chapter)?.get_mut(page)?.as_mut()?.slots[slot].as_mut()
    }

    /// Stores a value and returns the previous one.
    pub(crate) fn insert(&mut self, key: Key, value: T) -> Option<T> {
        let [chapter, page, slot] = slot(key);
        let pages = entry(&mut self.chapters, chapter);
        let page = entry(pages, page)
            .get_or_insert_with(|| Box::new(Page { slots: [const { None }; SLOTS as usize], taken: 0 }));
        let before = page.slots[slot].replace(value);
        if before.is_none() {
            page.taken += 1;
            self.len += 1;
        }
        before
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let [chapter, page, slot] = slot(key);
        let page = self.chapters.get_mut(chapter)?.get_mut(page)?;
        let slots = page.as_mut()?;
        let value = slots.slots[slot].take()?;
        slots.taken -= 1;
        self.len -= 1;
        if slots.taken == 0 {
            *page = None;
        }
        Some(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns all entries, in key order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        let pages = (self.chapters.iter().zip(0..)).flat_map(|(pages, chapter): (_, u32)| {
            pages.iter().zip(0..).map(move |(page, number): (_, u32)| (page, chapter * PAGES + number))
        });
        let pages = pages.filter_map(|(page, number)| Some((page.as_ref()?, number * SLOTS)));
        pages.flat_map(|(page, first)| {
            let slots = page.slots.iter().zip(0..);
            slots.filter_map(move |(slot, number): (_, u32)| Some((Key(first + number), slot.as_ref()?)))
        })
    }
}

impl<T> Pages<Vec<T>> {
    /// Appends a value to the list of `key`.
    pub(crate) fn push(&mut self, key: Key, value: T) {
        match self.get_mut(key) {
            Some(list) => list.push(value),
            None => drop(self.insert(key, vec![value])),
        }
    }
}

/// Returns the entry at `position`, and fills the gap before it with empty entries.
fn entry<T: Default>(list: &mut Vec<T>, position: usize) -> &mut T {
    if list.len() <= position {
        list.resize_with(position + 1, T::default);
    }
    &mut list[position]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use taskpawl_model::value::Key;

    use super::Pages;

    fn keys() -> impl Strategy<Value = Key> {
        prop_oneof![8 => 0..300_u32, 1 => 524_280..524_300_u32, 1 => u32::MAX - 1..=u32::MAX].prop_map(Key)
    }

    proptest! {
        #[test]
        fn it_behaves_like_an_ordered_map(
            steps in prop::collection::vec((keys(), prop::option::of(any::<u8>())), 0..300)
        ) {
            let (mut pages, mut map) = (Pages::default(), BTreeMap::new());
            for (key, value) in steps {
                if let Some(value) = value {
                    prop_assert_eq!(pages.insert(key, value), map.insert(key, value));
                } else {
                    prop_assert_eq!(pages.remove(key), map.remove(&key));
                }
                prop_assert_eq!(pages.get(key), map.get(&key));
                prop_assert_eq!(pages.get_mut(key), map.get_mut(&key));
                prop_assert_eq!(pages.len(), map.len());
            }
            prop_assert!(pages.iter().eq(map.iter().map(|(key, value)| (*key, value))));
            for key in map.keys() {
                pages.remove(*key);
            }
            prop_assert!(pages.chapters.iter().flatten().all(Option::is_none), "an empty page was not freed");
        }
    }
}
