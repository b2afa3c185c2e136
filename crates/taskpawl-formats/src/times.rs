//! Time formats of other programs.

use chrono::{DateTime, NaiveDate, NaiveDateTime, SubsecRound, Utc};
use taskpawl_model::value::Timestamp;

/// Parses a time with an offset, or a date, which means midnight in UTC.
pub(crate) fn rfc3339(text: &str) -> Option<Timestamp> {
    match DateTime::parse_from_rfc3339(text) {
        Ok(time) => in_range(time.with_timezone(&Utc)),
        Err(_) => date(text),
    }
}

pub(crate) fn date(text: &str) -> Option<Timestamp> {
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    in_range(date.and_hms_opt(0, 0, 0)?.and_utc())
}

/// Parses a time such as `20261122T144015Z`.
pub(crate) fn compact(text: &str) -> Option<Timestamp> {
    let time = NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%SZ").ok()?;
    in_range(time.and_utc())
}

/// Formats a time such as `20261122T144015Z`. Fractions of a second are cut off.
pub(crate) fn to_compact(time: Timestamp) -> String {
    time.trunc_subsecs(0).format("%Y%m%dT%H%M%SZ").to_string()
}

/// Parses a time such as `2026-11-22 14:40`, also with seconds, which is in UTC, or a date.
pub(crate) fn minutes(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let shapes = ["%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f"];
    let mut times = shapes.iter().filter_map(|shape| NaiveDateTime::parse_from_str(text, shape).ok());
    match times.next() {
        Some(time) => in_range(time.and_utc()),
        None => rfc3339(text),
    }
}

/// Formats a time such as `2026-11-22 14:40`, in UTC.
pub(crate) fn to_minutes(time: Timestamp) -> String {
    time.format("%Y-%m-%d %H:%M").to_string()
}

/// Refuses years outside 1 to 9999: few programs can read them.
fn in_range(time: Timestamp) -> Option<Timestamp> {
    use chrono::Datelike;
    (1..=9999).contains(&time.year()).then_some(time)
}
