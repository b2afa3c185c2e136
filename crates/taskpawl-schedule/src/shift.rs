use chrono::{DateTime, NaiveDateTime, TimeDelta};

use crate::calendar::{Calendar, Occurrence, Time};

/// A day on which the clocks of the zone change at a time of the calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shift {
    /// The time on the clock, as the expression has it.
    pub local: NaiveDateTime,
    /// The kind of the change.
    pub kind: ShiftKind,
    /// The occurrence that stands for it.
    pub runs: Occurrence,
}

/// The kinds of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShiftKind {
    /// Clocks are set forward: the time does not exist.
    Skipped,
    /// Clocks are set back: the time comes twice.
    Repeated,
}

impl Calendar {
    /// Returns the changes of clocks from a time on, up to another one, that affect times of this calendar. None affects one that
    /// comes in every hour.
    pub fn shifts(&self, from: Time, to: Time) -> Vec<Shift> {
        let mut shifts = Vec::new();
        if self.is_hourly() {
            return shifts;
        }
        let mut day = from;
        while day < to {
            let next = day + TimeDelta::days(1);
            if self.offset_seconds(day) != self.offset_seconds(next) {
                shifts.extend(self.shift_at(self.change_between(day, next)));
            }
            day = next;
        }
        shifts
    }

    /// Finds the first second with the later offset.
    fn change_between(&self, from: Time, to: Time) -> Time {
        let (mut before, mut after) = (from.timestamp(), to.timestamp());
        let offset = self.offset_seconds(from);
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            let is_before =
                DateTime::from_timestamp(middle, 0).is_some_and(|at| self.offset_seconds(at) == offset);
            if is_before { before = middle } else { after = middle }
        }
        DateTime::from_timestamp(after, 0).unwrap_or(to)
    }

    fn shift_at(&self, change: Time) -> Option<Shift> {
        let before = change - TimeDelta::seconds(1);
        let (old, new) = (self.offset_seconds(before), self.offset_seconds(change));
        let clock = |offset: i32| change.naive_utc() + TimeDelta::seconds(i64::from(offset));
        let (from, to, kind) = if new > old {
            (clock(old), clock(new), ShiftKind::Skipped)
        } else {
            (clock(new), clock(old), ShiftKind::Repeated)
        };
        let local = self.fits_within(from, to)?;
        let first = match kind {
            // The occurrence that replaces a skipped one comes at the change or later.
            ShiftKind::Skipped => before,
            ShiftKind::Repeated => change - (to - from) - TimeDelta::seconds(1),
        };
        Some(Shift { local, kind, runs: self.next(first)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shifts(cron: &str, zone: &str) -> Vec<String> {
        let calendar = Calendar::parse(cron, zone).unwrap();
        let from: Time = "2026-01-01T00:00:00Z".parse().unwrap();
        let found = calendar.shifts(from, from + TimeDelta::days(365));
        found
            .iter()
            .map(|shift| {
                format!("{} {:?} {}", shift.local.format("%m-%d %H:%M"), shift.kind, shift.runs.stamp)
            })
            .collect()
    }

    #[test]
    fn times_that_clocks_skip_or_repeat_are_reported() {
        assert_eq!(
            shifts("30 2 * * *", "Europe/Berlin"),
            ["03-29 02:30 Skipped 20260329T0300", "10-25 02:30 Repeated 20261025T0230"]
        );
        assert_eq!(shifts("30 1 * * *", "America/New_York"), ["11-01 01:30 Repeated 20261101T0130"]);
    }

    #[test]
    fn other_times_are_not() {
        assert_eq!(shifts("0 4 * * *", "Europe/Berlin"), Vec::<String>::new());
        assert_eq!(shifts("30 2 * * *", "UTC"), Vec::<String>::new());
        for hourly in ["* * * * *", "*/15 * * * *", "30 * * * SUN"] {
            assert_eq!(shifts(hourly, "Europe/Berlin"), Vec::<String>::new(), "{hourly}");
        }
        assert_eq!(shifts("30 2 * * MON", "Europe/Berlin"), Vec::<String>::new(), "clocks change on Sundays");
    }
}
