//! A map by [`Key`] for what a command touches: most of its time goes into finding the same few tasks again and again.

use std::hash::{BuildHasherDefault, Hasher};

use indexmap::IndexMap;

use crate::Key;

/// A map by key, in the order in which keys came in.
pub type KeyMap<V> = IndexMap<Key, V, BuildHasherDefault<KeyHasher>>;

/// Puts the keys in order. New tasks mostly come in it, and then there is nothing to do.
pub(crate) fn sort<V>(map: &mut KeyMap<V>) {
    if !map.keys().is_sorted() {
        map.sort_unstable_keys();
    }
}

/// Gives neighbours neighbouring places, since tasks of one plan have keys one after the other and are touched in that order: the table
/// is then read from front to back, and not all over memory. Blocks of keys are spread with a multiplication (Fibonacci hashing: Knuth,
/// The Art of Computer Programming, volume 3, 6.4). Keys are given by the store and by nobody from outside.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeyHasher(u64);

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Bits of a key that say where in its block it is: a table looks at sixteen places at once. Where blocks come to lie on each other,
/// longer ones would push keys further from their place.
const BLOCK: u32 = 4;

/// A table takes places from the low bits, and tells keys at one place apart by so many of the high ones.
const TAG: u32 = 7;

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = self.0.rotate_left(32) ^ u64::from(number);
    }

    /// The high bits of a product depend on all bits of the number, the low ones on its low bits alone.
    fn finish(&self) -> u64 {
        let block = (self.0 >> BLOCK).wrapping_mul(GOLDEN);
        let place = block.rotate_left(33).wrapping_add(self.0 & ((1 << BLOCK) - 1));
        let tag = (block >> (u64::BITS - TAG)) ^ self.0;
        (place << TAG >> TAG) | (tag << (u64::BITS - TAG))
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
    fn keys_are_spread_in_the_low_and_in_the_high_bits_whatever_lies_between_them() {
        let hash = |key| BuildHasherDefault::<KeyHasher>::default().hash_one(Key(key));
        for step in [1, 16, 256, 4096, 1 << 20] {
            let hashes: Vec<u64> = (0..4096_u32).map(|key| hash(key.wrapping_mul(step))).collect();
            let low: BTreeSet<u64> = hashes.iter().map(|hash| hash & 0xFFF).collect();
            let high: BTreeSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            assert!(low.len() > 2000 && high.len() > 64, "step {step}: {} and {}", low.len(), high.len());
        }
    }

    /// As of large plans, in the tables that they get.
    #[test]
    fn blocks_are_spread_over_the_whole_table() {
        let hash = |key| BuildHasherDefault::<KeyHasher>::default().hash_one(Key(key));
        for (keys, bits) in [(10_000_u32, 14), (57_000, 16), (100_000, 17), (1_000_000, 21)] {
            let mut parts = vec![0_u32; 1 << (bits - 6)];
            for key in 0..keys {
                let place = hash(key) & ((1 << bits) - 1);
                parts[usize::try_from(place >> 6).unwrap()] += 1;
            }
            let most = parts.iter().max().unwrap();
            assert!(*most <= 96, "{keys} keys: {most} want the same 64 places");
        }
    }

    #[test]
    fn neighbours_lie_side_by_side() {
        let place = |key| BuildHasherDefault::<KeyHasher>::default().hash_one(Key(key)) & 0xFFFF;
        let apart = (0..4096).filter(|key| place(key + 1) != (place(*key) + 1) & 0xFFFF).count();
        assert_eq!(apart, 4096 >> super::BLOCK, "once a block");
    }
}
