use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::DateTime;
use taskpawl_model::value::Timestamp;

/// The source of time and new ids. Injected, so that tests produce stable values.
pub trait Source: Send + Sync + Debug {
    /// Returns the current time, in whole milliseconds.
    fn now(&self) -> Timestamp;

    /// Returns a unique id.
    fn new_id(&self) -> String;
}

/// The system clock and random ids.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemSource;

impl Source for SystemSource {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
        let now = std::time::SystemTime::now();
        let since_1970 = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let millis = i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX);
        DateTime::from_timestamp_millis(millis).unwrap_or_default()
    }

    fn new_id(&self) -> String {
        uuid::Uuid::new_v4().to_string()
    }
}

/// A fixed time and ids derived from a seed, for tests.
#[derive(Debug)]
pub struct FixedSource {
    now: Timestamp,
    seed: u64,
    count: AtomicU64,
}

impl FixedSource {
    /// Creates a source that always returns `now`. Sources with different seeds return different ids.
    pub fn new(now: Timestamp, seed: u64) -> Self {
        Self { now, seed, count: AtomicU64::new(0) }
    }
}

impl Source for FixedSource {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn new_id(&self) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let bits = splitmix(self.seed.wrapping_mul(0x1000).wrapping_add(count));
        uuid::Builder::from_u128((u128::from(bits) << 64) | u128::from(splitmix(bits)))
            .with_version(uuid::Version::Random)
            .with_variant(uuid::Variant::RFC4122)
            .into_uuid()
            .to_string()
    }
}

/// Mixes the bits of a counter (`SplitMix64`, Steele, Lea and Flood 2014).
fn splitmix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
