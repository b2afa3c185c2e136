//! The scale of a timeline, in which long gaps without a call are folded. Pure: numbers in, numbers out.

/// Width of the whole drawing, in its own units.
pub(crate) const WIDTH: i64 = 100_000;

/// Width of a folded gap.
const FOLDED: i64 = 1_500;

/// A gap is folded if it is longer than this part of the whole.
const PART: i64 = 10;

/// Most gaps that are folded: the longest.
const MAX_FOLDS: usize = 12;

/// A gap: no call ran between two times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) from: i64,
    pub(crate) to: i64,
}

impl Gap {
    pub(crate) fn length(self) -> i64 {
        self.to - self.from
    }
}

/// Converts times to places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scale {
    length: i64,
    /// In the order of time.
    pub(crate) folds: Vec<Gap>,
}

impl Scale {
    /// Creates the scale for a length of time with calls from and to some times.
    pub(crate) fn new(length: i64, spans: impl Iterator<Item = (i64, i64)>) -> Self {
        let mut spans: Vec<(i64, i64)> = spans.collect();
        spans.sort_unstable();
        let (mut gaps, mut end) = (Vec::new(), 0);
        for (from, to) in spans {
            if from > end {
                gaps.push(Gap { from: end, to: from });
            }
            end = end.max(to);
        }
        gaps.retain(|gap| gap.length() > length / PART);
        gaps.sort_by_key(|gap| std::cmp::Reverse(gap.length()));
        gaps.truncate(MAX_FOLDS);
        gaps.sort_by_key(|gap| gap.from);
        Self { length: length.max(1), folds: gaps }
    }

    /// Returns the place of a time, between 0 and [`WIDTH`].
    pub(crate) fn place(&self, at: i64) -> i64 {
        let folded: i64 = self.folds.iter().map(|gap| gap.length()).sum();
        let open = (self.length - folded).max(1);
        let room = WIDTH - FOLDED * i64::try_from(self.folds.len()).unwrap_or_default();
        let at = at.clamp(0, self.length);
        let (mut time, mut extra) = (at, 0);
        for gap in self.folds.iter().filter(|gap| gap.from < at) {
            let inside = at.min(gap.to) - gap.from;
            time -= inside;
            extra += inside * FOLDED / gap.length();
        }
        time * room / open + extra
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_gaps_places_are_proportional() {
        let scale = Scale::new(1_000, [(0, 600), (500, 1_000)].into_iter());
        assert!(scale.folds.is_empty());
        assert_eq!([0, 250, 1_000].map(|at| scale.place(at)), [0, 25_000, WIDTH]);
    }

    #[test]
    fn a_night_between_two_calls_takes_little_room() {
        let night = 8 * 3_600_000;
        let scale = Scale::new(night + 20_000, [(0, 10_000), (night + 10_000, night + 20_000)].into_iter());
        assert_eq!(scale.folds, [Gap { from: 10_000, to: night + 10_000 }]);
        let (before, after) = (scale.place(10_000), scale.place(night + 10_000));
        assert_eq!((after - before, scale.place(night + 20_000)), (FOLDED, WIDTH));
        assert!(before > 49_000, "{before}");
        // Places never go back.
        let places: Vec<i64> = (0..=200).map(|at| scale.place((night + 20_000) / 200 * at)).collect();
        assert!(places.is_sorted());
    }
}
