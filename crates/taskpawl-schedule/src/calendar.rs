use std::str::FromStr as _;

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, TimeZone as _, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

/// A time.
pub type Time = DateTime<Utc>;

/// A cron expression in a time zone.
#[derive(Debug, Clone)]
pub struct Calendar {
    cron: Cron,
    zone: Tz,
}

/// The reason why a calendar is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CalendarError {
    /// The expression is no cron expression.
    #[error("`{cron}` is no cron expression: {why}")]
    Cron {
        /// The expression.
        cron: String,
        /// The reason.
        why: String,
    },
    /// No time fits the expression, such as the 31st of February.
    #[error("`{cron}` never comes")]
    Never {
        /// The expression.
        cron: String,
    },
    /// The time zone does not exist.
    #[error("`{zone}` is no time zone")]
    Zone {
        /// The name.
        zone: String,
    },
}

impl CalendarError {
    /// Returns one thing to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Cron { .. } => {
                "write minute, hour, day of the month, month and day of the week, as in `0 3 * * *`"
            }
            Self::Never { .. } => "check its day and month",
            Self::Zone { .. } => "write a name of the IANA database, such as `Europe/Berlin` or `UTC`",
        }
    }
}

/// A time at which a plan is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The time.
    pub at: Time,
    /// The time on the clocks of the zone, as `20261128T0300`. The second of two equal times, when clocks are set back,
    /// ends with `-2`.
    pub stamp: String,
}

impl Calendar {
    /// Parses an expression of five fields, and the name of a zone in the IANA database.
    ///
    /// # Errors
    /// One of them is invalid, or no time fits the expression.
    pub fn parse(cron: &str, zone: &str) -> Result<Self, CalendarError> {
        let zone = Tz::from_str(zone).map_err(|_| CalendarError::Zone { zone: zone.to_owned() })?;
        // Seconds are not a field: runs that follow each other so quickly are a loop, not a calendar.
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let parsed = parser.parse(cron);
        let parsed = parsed.map_err(|error| CalendarError::Cron {
            cron: cron.to_owned(),
            why: reason(&error.to_string()),
        })?;
        let calendar = Self { cron: parsed, zone };
        // The search gives up after some thousand years, for an expression that fits no day.
        match calendar.next(DateTime::UNIX_EPOCH) {
            Some(_) => Ok(calendar),
            None => Err(CalendarError::Never { cron: cron.to_owned() }),
        }
    }

    /// Returns the first occurrence after a time.
    ///
    /// A fixed time that clocks skip, when they are set forward, comes at the first moment after the gap, and one that they
    /// show twice comes at the first of them. Expressions with `*`, a step or several values in the minutes or hours follow the
    /// clock.
    pub fn next(&self, after: Time) -> Option<Occurrence> {
        let found = self.cron.find_next_occurrence(&after.with_timezone(&self.zone), false).ok()?;
        let found = found.with_timezone(&Utc);
        (found > after).then(|| self.occurrence(found))
    }

    /// Returns the occurrences after a time, in their order.
    pub fn after(&self, time: Time) -> impl Iterator<Item = Occurrence> + '_ {
        std::iter::successors(self.next(time), |last| self.next(last.at))
    }

    /// Returns whether the hour is `*`.
    pub(crate) fn is_hourly(&self) -> bool {
        let hours = &self.cron.pattern.hours;
        hours.from_wildcard && hours.step == 1
    }

    /// Returns the name of the zone.
    pub fn zone(&self) -> &'static str {
        self.zone.name()
    }

    /// Formats a time by the clocks of the zone, as `2026-11-28 03:00 CET`.
    pub fn local(&self, time: Time) -> String {
        time.with_timezone(&self.zone).format("%Y-%m-%d %H:%M %Z").to_string()
    }

    /// Returns the occurrence at a time that this calendar has returned before.
    pub fn occurrence(&self, at: Time) -> Occurrence {
        let local = at.with_timezone(&self.zone).naive_local();
        let mut stamp = local.format("%Y%m%dT%H%M").to_string();
        if let MappedLocalTime::Ambiguous(_, later) = self.zone.from_local_datetime(&local)
            && later == at
        {
            stamp.push_str("-2");
        }
        Occurrence { at, stamp }
    }

    /// Returns the first time of the clock, from `from` up to `to`, that fits the expression, whether or not it exists.
    pub(crate) fn fits_within(&self, from: NaiveDateTime, to: NaiveDateTime) -> Option<NaiveDateTime> {
        // In UTC no time of the clock is skipped or repeated.
        let found = self.cron.find_next_occurrence(&from.and_utc(), true).ok()?.naive_utc();
        (found < to).then_some(found)
    }

    pub(crate) fn offset_seconds(&self, at: Time) -> i32 {
        use chrono::Offset as _;
        self.zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc()
    }
}

/// Returns the reason of the parser without its name for the kind of error.
fn reason(text: &str) -> String {
    let text = text.split_once(": ").map_or(text, |(_, reason)| reason);
    let mut characters = text.trim_end_matches('.').chars();
    let first = characters.next().map(|first| first.to_lowercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(cron: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let calendar = Calendar::parse(cron, zone).unwrap();
        let found = calendar.after(after.parse().unwrap()).take(count);
        found.map(|one| format!("{} {}", one.at.format("%d %H:%MZ"), one.stamp)).collect()
    }

    #[test]
    fn times_are_those_of_the_zone() {
        assert_eq!(
            times("0 3 * * *", "Europe/Berlin", "2026-11-28T02:00:00Z", 2),
            ["29 02:00Z 20261129T0300", "30 02:00Z 20261130T0300"]
        );
        assert_eq!(times("0 3 * * *", "UTC", "2026-11-28T02:00:00Z", 1), ["28 03:00Z 20261128T0300"]);
        assert_eq!(times("@daily", "UTC", "2026-11-28T02:00:00Z", 1), ["29 00:00Z 20261129T0000"]);
        assert_eq!(
            times("30 4 * * MON-FRI", "America/New_York", "2026-11-27T10:00:00Z", 1),
            ["30 09:30Z 20261130T0430"]
        );
    }

    #[test]
    fn a_fixed_time_runs_once_on_the_days_of_a_shift() {
        // Clocks in Berlin go from 02:00 to 03:00 on 29 March, and from 03:00 back to 02:00 on 25 October.
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2),
            ["29 01:00Z 20260329T0300", "30 00:30Z 20260330T0230"]
        );
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
            ["25 00:30Z 20261025T0230", "26 01:30Z 20261026T0230"]
        );
    }

    #[test]
    fn an_hourly_time_follows_the_clock() {
        assert_eq!(
            times("30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 3),
            ["25 00:30Z 20261025T0230", "25 01:30Z 20261025T0230-2", "25 02:30Z 20261025T0330"]
        );
        assert_eq!(
            times("30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 2),
            ["29 00:30Z 20260329T0130", "29 01:30Z 20260329T0330"]
        );
    }

    #[test]
    fn what_is_no_calendar_is_refused_with_a_remedy() {
        let refused = |cron: &str, zone: &str| {
            let error = Calendar::parse(cron, zone).unwrap_err();
            assert!(!error.remedy().is_empty());
            error.to_string()
        };
        for cron in ["", "x", "61 * * * *", "0 3 * *", "0 0 3 * * *", "@reboot", "0 3 * * MOO"] {
            let text = refused(cron, "UTC");
            assert!(text.starts_with(&format!("`{cron}` is no cron expression: ")), "{text}");
        }
        assert_eq!(refused("0 0 31 2 *", "UTC"), "`0 0 31 2 *` never comes");
        for zone in ["", "Berlin", "+01:00", "CEST"] {
            assert_eq!(refused("0 3 * * *", zone), format!("`{zone}` is no time zone"));
        }
    }
}
