//! Figures of one measurement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A measured quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Metric {
    /// User and system time, in microseconds.
    #[serde(rename = "cpuMicros")]
    Cpu,
    /// Wall time, in microseconds.
    #[serde(rename = "wallMicros")]
    Wall,
    /// Memory or file size, in bytes.
    #[serde(rename = "memoryBytes")]
    Memory,
    /// Number of system calls that make data durable.
    Syncs,
    /// Any other count.
    Count,
}

impl Metric {
    /// All metrics in the order of their display.
    pub(crate) const ALL: [Self; 5] = [Self::Cpu, Self::Wall, Self::Memory, Self::Syncs, Self::Count];

    /// Returns the name for tables.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Wall => "wall",
            Self::Memory => "memory",
            Self::Syncs => "syncs",
            Self::Count => "count",
        }
    }
}

/// Figures of one measurement by metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample(BTreeMap<Metric, f64>);

impl Sample {
    pub(crate) fn with(mut self, metric: Metric, figure: f64) -> Self {
        self.0.insert(metric, figure);
        self
    }

    pub(crate) fn get(&self, metric: Metric) -> Option<f64> {
        self.0.get(&metric).copied()
    }

    /// Divides all figures by `count`.
    pub(crate) fn each(self, count: usize) -> Self {
        Self(self.0.into_iter().map(|(metric, figure)| (metric, figure / count as f64)).collect())
    }
}

/// Median and range of figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Returns the median and range; `None` if there are no figures.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let (least, most) = (*figures.first()?, *figures.last()?);
        let middle = figures.len() / 2;
        let median = if figures.len().is_multiple_of(2) {
            f64::midpoint(*figures.get(middle - 1)?, *figures.get(middle)?)
        } else {
            *figures.get(middle)?
        };
        Some(Self { median, least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn the_median_of_even_and_odd_counts() {
        let spread = Spread::of([5.0, 1.0, 9.0]).unwrap();
        assert_eq!(spread, Spread { median: 5.0, least: 1.0, most: 9.0 });
        assert!((Spread::of([4.0, 1.0, 2.0, 9.0]).unwrap().median - 3.0).abs() < 1e-9);
        assert_eq!(Spread::of([]), None);
    }
}
