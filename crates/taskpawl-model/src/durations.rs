//! How long tasks take: as they last did, as their authors expect, or as the others do.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::record::{CallRecord, Node, Work};
use crate::spec::{Mode, Timestamp, word_enum};
use crate::view::{View, ViewResult};
use crate::{Key, Period};

word_enum! {
    /// Where the length of a task is known from.
    DurationSource {
        /// It took so long when it last ended well.
        Took = "took",
        /// Its author expects it.
        Estimate = "estimate",
        /// The median of those that are known.
        Median = "median",
        /// Nothing is known of any task: every one counts the same.
        Unknown = "unknown",
        /// It ends by itself.
        None = "none",
    }
}

/// How long tasks take, in milliseconds.
#[derive(Debug, Clone, Default)]
pub struct Durations {
    known: BTreeMap<Key, (u64, DurationSource)>,
    median: Option<u64>,
}

impl Durations {
    /// Reads how long tasks took or are expected to take; costs as much as there is known of it.
    ///
    /// # Errors
    /// The view cannot be read.
    pub fn load(view: &dyn View) -> ViewResult<Self> {
        let mut known = BTreeMap::new();
        view.each_duration(&mut |key, period, source| {
            let millis = millis(period);
            // What was seen counts more than what was expected.
            if source == DurationSource::Took || !known.contains_key(&key) {
                known.insert(key, (millis, source));
            }
        })?;
        Ok(Self { median: median(known.values().map(|(millis, _)| *millis).collect()), known })
    }

    /// Returns whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns how long a task takes that does not end by itself, and where that is known from: as it took, else as it is
    /// expected to, else the median of those that are known, else 1.
    pub fn of(&self, key: Key) -> (u64, DurationSource) {
        match (self.known.get(&key), self.median) {
            (Some(known), _) => *known,
            (None, Some(median)) => (median, DurationSource::Median),
            (None, None) => (1, DurationSource::Unknown),
        }
    }

    /// Returns how long a task takes of which nothing is known.
    pub fn typical(&self) -> u64 {
        self.median.unwrap_or(1)
    }

    /// Returns how long a task takes, and where that is known from.
    pub fn of_node(&self, node: &Node) -> (u64, DurationSource) {
        if node.work == Work::Automatic { (0, DurationSource::None) } else { self.of(node.key) }
    }
}

/// Returns how long calls ran that have all ended, without the pauses between them; `None` where none did.
pub(crate) fn running_time(calls: &[CallRecord], mode: Mode) -> Option<Duration> {
    let spans: Vec<(Timestamp, Timestamp)> =
        calls.iter().filter_map(|call| Some((call.body.started_at?, call.body.finished_at?))).collect();
    let length = |from: Timestamp, to: Timestamp| (to - from).to_std().unwrap_or_default();
    let (first, last) = (spans.iter().map(|span| span.0).min()?, spans.iter().map(|span| span.1).max()?);
    Some(match mode {
        Mode::Parallel => length(first, last),
        Mode::Sequential => spans.iter().map(|(from, to)| length(*from, *to)).sum(),
    })
}

/// Returns a length of time in milliseconds, at least 1.
pub(crate) fn millis(period: Period) -> u64 {
    u64::try_from(period.0.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable(middle).1)
}
