//! Edges that a draft added and removed.

use std::collections::BTreeSet;

use crate::{Key, KeyMap};

/// What differs from the edges of the view. Each end of an edge is found by the other.
#[derive(Clone, Default)]
pub(crate) struct EdgeOverlay {
    /// What a task depends on.
    pub(crate) dependencies: Pairs,
    /// What depends on a task.
    pub(crate) dependents: Pairs,
    /// What lies below a task.
    pub(crate) subtasks: Pairs,
    /// Tasks, and what they do not depend on any more.
    pub(crate) removed: Pairs,
    /// Tasks, and what does not lie below them any more.
    pub(crate) moved_away: Pairs,
}

/// Pairs of keys, found by the first; by a hash, because a plan brings many and most have few others.
#[derive(Clone, Default)]
pub(crate) struct Pairs(KeyMap<BTreeSet<Key>>);

impl Pairs {
    /// Returns the others of `key`, in order.
    pub(crate) fn of(&self, key: Key) -> impl Iterator<Item = Key> + '_ {
        self.0.get(&key).into_iter().flatten().copied()
    }

    pub(crate) fn contains(&self, key: Key, other: Key) -> bool {
        self.0.get(&key).is_some_and(|others| others.contains(&other))
    }

    /// Returns whether the pair is new.
    pub(crate) fn insert(&mut self, key: Key, other: Key) -> bool {
        self.0.entry(key).or_default().insert(other)
    }

    /// Returns whether there was such a pair.
    pub(crate) fn remove(&mut self, key: Key, other: Key) -> bool {
        self.0.get_mut(&key).is_some_and(|others| others.remove(&other))
    }

    /// Makes room for so many keys.
    pub(crate) fn reserve(&mut self, keys: usize) {
        self.0.reserve(keys);
    }
}

#[cfg(test)]
mod tests {
    use super::Pairs;
    use crate::Key;

    #[test]
    fn the_others_of_a_key_are_in_order_whatever_came_and_went() {
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
