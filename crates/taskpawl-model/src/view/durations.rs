//! Durations of tasks: measured, estimated by the author, or the median of the others.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::task::record::{CallRecord, Node, Work};
use crate::task::spec::Mode;
use crate::value::Timestamp;
use crate::value::{Key, Period};
use crate::view::{DurationSource, View, ViewResult};

/// Durations of tasks, in milliseconds.
#[derive(Debug, Clone, Default)]
pub struct Durations {
    known: BTreeMap<Key, (u64, DurationSource)>,
    median: Option<u64>,
}

impl Durations {
    /// Reads all known durations. The cost is proportional to their number.
    ///
    /// # Errors
    /// The view cannot be read.
    pub fn load(view: &dyn View) -> ViewResult<Self> {
        let mut known = BTreeMap::new();
        view.each_duration(&mut |key, period, source| {
            let millis = millis(period);
            // A measurement counts more than an estimate.
            if source == DurationSource::Took || !known.contains_key(&key) {
                known.insert(key, (millis, source));
            }
        })?;
        Ok(Self { median: median(known.values().map(|(millis, _)| *millis).collect()), known })
    }

    /// Returns whether no duration is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns the duration of a task with work, and its source: the measurement, the estimate, the median, or 1.
    pub fn of(&self, key: Key) -> (u64, DurationSource) {
        match (self.known.get(&key), self.median) {
            (Some(known), _) => *known,
            (None, Some(median)) => (median, DurationSource::Median),
            (None, None) => (1, DurationSource::Unknown),
        }
    }

    /// Returns the duration of a task without a measurement or an estimate.
    pub fn typical(&self) -> u64 {
        self.median.unwrap_or(1)
    }

    /// Returns the duration of a task, and its source.
    pub fn of_node(&self, node: &Node) -> (u64, DurationSource) {
        if node.work == Work::Automatic { (0, DurationSource::None) } else { self.of(node.key) }
    }
}

/// Returns the running time of ended calls, without the pauses between them; `None` if no call ran.
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

/// Converts a duration to milliseconds, at least 1.
pub(crate) fn millis(period: Period) -> u64 {
    u64::try_from(period.0.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable(middle).1)
}
