//! A map by [`Key`] for the tasks that a command touches. Commands spend most of their time on lookups of the same few
//! tasks.

use std::hash::{BuildHasherDefault, Hasher};

use indexmap::IndexMap;

use crate::Key;

/// A map by key, in insertion order.
pub type KeyMap<V> = IndexMap<Key, V, BuildHasherDefault<KeyHasher>>;

/// Sorts a map by key. New tasks mostly arrive in order, and then nothing is done.
pub(crate) fn sort<V>(map: &mut KeyMap<V>) {
    if !map.keys().is_sorted() {
        map.sort_unstable_keys();
    }
}

/// Hashes neighbouring keys to neighbouring slots.
///
/// Tasks of one plan have consecutive keys and are visited in that order. The table is then read from front to back
/// and not all over memory. Blocks of keys are spread by a multiplication (Fibonacci hashing: Knuth, The Art of
/// Computer Programming, volume 3, 6.4). The store assigns the keys, so no attacker can choose colliding ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeyHasher(u64);

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The number of bits for the position of a key in its block. A table probes sixteen slots at once. With larger blocks,
/// collisions of blocks would push keys further from their slots.
const BLOCK: u32 = 4;

/// The number of high bits with which a table distinguishes keys in one slot; the slot itself comes from the low bits.
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

    /// Combines the bits. The high bits of a product depend on all bits of the number, the low ones only on its low
    /// bits.
    fn finish(&self) -> u64 {
        let block = (self.0 >> BLOCK).wrapping_mul(GOLDEN);
        let slot = block.rotate_left(33).wrapping_add(self.0 & ((1 << BLOCK) - 1));
        let tag = (block >> (u64::BITS - TAG)) ^ self.0;
        (slot << TAG >> TAG) | (tag << (u64::BITS - TAG))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::KeyHasher;
    use crate::Key;

    /// A table takes the slot from the low bits and compares the high ones.
    #[test]
    fn keys_are_spread_in_the_low_and_in_the_high_bits_for_any_step() {
        let hash = |key| BuildHasherDefault::<KeyHasher>::default().hash_one(Key(key));
        for step in [1, 16, 256, 4096, 1 << 20] {
            let hashes: Vec<u64> = (0..4096_u32).map(|key| hash(key.wrapping_mul(step))).collect();
            let low: BTreeSet<u64> = hashes.iter().map(|hash| hash & 0xFFF).collect();
            let high: BTreeSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            assert!(low.len() > 2000 && high.len() > 64, "step {step}: {} and {}", low.len(), high.len());
        }
    }

    /// Sizes of large plans, with the table sizes that they get.
    #[test]
    fn blocks_are_spread_over_the_whole_table() {
        let hash = |key| BuildHasherDefault::<KeyHasher>::default().hash_one(Key(key));
        for (keys, bits) in [(10_000_u32, 14), (57_000, 16), (100_000, 17), (1_000_000, 21)] {
            let mut parts = vec![0_u32; 1 << (bits - 6)];
            for key in 0..keys {
                let slot = hash(key) & ((1 << bits) - 1);
                parts[usize::try_from(slot >> 6).unwrap()] += 1;
            }
            let most = parts.iter().max().unwrap();
            assert!(*most <= 96, "{keys} keys: {most} want the same 64 places");
        }
    }

    #[test]
    fn neighbouring_keys_get_neighbouring_slots() {
        let slot = |key| BuildHasherDefault::<KeyHasher>::default().hash_one(Key(key)) & 0xFFFF;
        let apart = (0..4096).filter(|key| slot(key + 1) != (slot(*key) + 1) & 0xFFFF).count();
        assert_eq!(apart, 4096 >> super::BLOCK, "once a block");
    }
}
