//! Bounded collection of the smallest items of a long sequence.

use std::collections::BinaryHeap;

/// Keeps the smallest of the offered items within limits of number and size, independent of their order.
#[derive(Debug)]
pub(super) struct First<T> {
    kept: BinaryHeap<Sized<T>>,
    bytes: usize,
    most: usize,
    most_bytes: usize,
    /// Smallest item that did not fit. All items from it on are excluded, even if a later one would fit: otherwise the
    /// result would have gaps.
    cut: Option<T>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sized<T> {
    item: T,
    bytes: usize,
}

impl<T: Ord> First<T> {
    /// Makes a collection of at most `most` items with at most `most_bytes` bytes together.
    pub(super) fn new(most: usize, most_bytes: usize) -> Self {
        Self { kept: BinaryHeap::new(), bytes: 0, most, most_bytes, cut: None }
    }

    /// Returns the limit of items.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Returns the number of items.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Returns the limit of bytes.
    pub(super) fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    /// Returns whether an item would be kept if it was offered now.
    pub(super) fn has_room_for(&self, item: &T) -> bool {
        self.cut.as_ref().is_none_or(|cut| item < cut)
    }

    /// Adds an item, which may displace larger ones.
    pub(super) fn offer(&mut self, item: T, bytes: usize) {
        if !self.has_room_for(&item) {
            return;
        }
        self.bytes += bytes;
        self.kept.push(Sized { item, bytes });
        while self.kept.len() > self.most || self.bytes > self.most_bytes {
            let Some(Sized { item, bytes }) = self.kept.pop() else { break };
            self.bytes -= bytes;
            self.cut = Some(item);
        }
    }

    /// Returns whether an item was excluded.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Returns the items in ascending order.
    pub(super) fn into_sorted(self) -> impl Iterator<Item = T> {
        self.kept.into_sorted_vec().into_iter().map(|sized| sized.item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(offered: &[usize], most: usize, most_bytes: usize) -> (Vec<usize>, bool) {
        let mut first = First::new(most, most_bytes);
        for item in offered {
            first.offer(*item, *item);
        }
        let is_cut = first.is_cut();
        (first.into_sorted().collect(), is_cut)
    }

    #[test]
    fn the_smallest_items_are_kept_in_any_order() {
        assert_eq!(kept(&[3, 1, 2], 3, 100), (vec![1, 2, 3], false));
        for offered in [[1, 2, 3, 4], [4, 3, 2, 1], [3, 1, 4, 2]] {
            assert_eq!(kept(&offered, 2, 100), (vec![1, 2], true));
            assert_eq!(kept(&offered, 10, 6), (vec![1, 2, 3], true));
            assert_eq!(kept(&offered, 10, 5), (vec![1, 2], true));
        }
        assert_eq!(kept(&[7, 2], 10, 5), (vec![2], true));
        assert_eq!(kept(&[7], 10, 5), (vec![], true));
    }
}
