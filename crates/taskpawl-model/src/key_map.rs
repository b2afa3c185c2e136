//! A map by [`Key`] for what a command touches: most of its time goes into finding the same few tasks again and again.

use std::hash::{BuildHasherDefault, Hasher};

use indexmap::IndexMap;

use crate::Key;

/// A map by key, in the order in which keys came in.
pub type KeyMap<V> = IndexMap<Key, V, BuildHasherDefault<KeyHasher>>;

/// Spreads keys, which are given one after the other by the store and by nobody from outside, with a single multiplication
/// (Fibonacci hashing: Knuth, The Art of Computer Programming, volume 3, 6.4).
#[derive(Debug, Clone, Copy, Default)]
pub struct KeyHasher(u64);

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0.rotate_left(32) ^ u64::from(number)).wrapping_mul(GOLDEN);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::KeyHasher;
    use crate::Key;

    /// A table takes places from the low bits and compares the high ones.
    #[test]
    fn keys_side_by_side_are_spread_in_the_low_and_in_the_high_bits() {
        let hashes: Vec<u64> =
            (0..4096).map(|key| BuildHasherDefault::<KeyHasher>::default().hash_one(Key(key))).collect();
        for bits in [|hash: u64| hash & 0xFFF, |hash: u64| hash >> 52] {
            let places: BTreeSet<u64> = hashes.iter().map(|hash| bits(*hash)).collect();
            assert!(places.len() > 2000, "{}", places.len());
        }
    }
}
