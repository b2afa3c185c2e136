//! Edges that a draft added and removed.

use std::collections::BTreeSet;

use crate::value::{Key, KeyMap};

/// Differences from the edges of the view, indexed from both ends of an edge.
#[derive(Clone, Default)]
pub(crate) struct EdgeOverlay {
    /// Added dependencies, by task.
    pub(crate) dependencies: Pairs,
    /// Added dependents, by task.
    pub(crate) dependents: Pairs,
    /// Added subtasks, by parent.
    pub(crate) subtasks: Pairs,
    /// Removed dependencies, by task.
    pub(crate) removed: Pairs,
    /// Removed subtasks, by former parent.
    pub(crate) moved_away: Pairs,
}

/// Pairs of keys, indexed by the first.
///
/// A hash map, because a large plan inserts many keys and most of them have few partners.
#[derive(Clone, Default)]
pub(crate) struct Pairs(KeyMap<BTreeSet<Key>>);

impl Pairs {
    /// Returns the partners of `key`, in order.
    pub(crate) fn of(&self, key: Key) -> impl Iterator<Item = Key> + '_ {
        self.0.get(&key).into_iter().flatten().copied()
    }

    /// Returns all pairs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, Key)> + '_ {
        self.0.iter().flat_map(|(key, others)| others.iter().map(|other| (*key, *other)))
    }

    pub(crate) fn contains(&self, key: Key, other: Key) -> bool {
        self.0.get(&key).is_some_and(|others| others.contains(&other))
    }

    /// Adds the pair; returns whether it is new.
    pub(crate) fn insert(&mut self, key: Key, other: Key) -> bool {
        self.0.entry(key).or_default().insert(other)
    }

    /// Removes the pair; returns whether it existed.
    pub(crate) fn remove(&mut self, key: Key, other: Key) -> bool {
        self.0.get_mut(&key).is_some_and(|others| others.remove(&other))
    }

    /// Reserves capacity for this number of additional keys.
    pub(crate) fn reserve(&mut self, keys: usize) {
        self.0.reserve(keys);
    }
}

#[cfg(test)]
mod tests {
    use super::Pairs;
    use crate::value::Key;

    #[test]
    fn partners_stay_sorted_after_inserts_and_removals() {
        let mut pairs = Pairs::default();
        let of = |pairs: &Pairs, key| pairs.of(Key(key)).map(|key| key.0).collect::<Vec<_>>();
        for (key, other) in [(1, 9), (1, 2), (2, 1), (1, 5)] {
            assert!(pairs.insert(Key(key), Key(other)));
        }
        assert!(!pairs.insert(Key(1), Key(2)));
        assert!(
            pairs.remove(Key(1), Key(2)) && !pairs.remove(Key(1), Key(2)) && !pairs.remove(Key(3), Key(1))
        );
        assert_eq!((of(&pairs, 1), of(&pairs, 2), of(&pairs, 3)), (vec![5, 9], vec![1], vec![]));
        assert!(pairs.contains(Key(1), Key(9)) && !pairs.contains(Key(9), Key(1)));
        assert!(pairs.remove(Key(2), Key(1)) && pairs.insert(Key(2), Key(1)));
        assert_eq!(of(&pairs, 2), [1]);
    }
}
