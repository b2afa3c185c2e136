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

    /// A table takes places from the low bits, and those of a product depend on the low bits of the number alone.
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
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
}
