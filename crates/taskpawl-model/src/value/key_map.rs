//! A map by [`Key`] for the tasks that a command touches. Commands spend most of their time on lookups of the same few
//! tasks.

use foldhash::fast::FixedState;
use indexmap::IndexMap;

use crate::value::Key;

/// A map by key, in insertion order.
///
/// The seed is fixed: the model draws no random numbers, and the store assigns the keys, so no attacker can choose colliding ones.
pub type KeyMap<V> = IndexMap<Key, V, FixedState>;

/// Sorts a map by key. New tasks mostly arrive in order, and then nothing is done.
pub(crate) fn sort<V>(map: &mut KeyMap<V>) {
    if !map.keys().is_sorted() {
        map.sort_unstable_keys();
    }
}
