//! The lines of a file of beads: the issues among them, each once.

use std::collections::BTreeMap;

use serde_json::Value;
use taskpawl_model::value::Timestamp;

use super::TIMES;
use crate::error::Position;
use crate::faults::{Faults, leave_out_conflicts};
use crate::reading::LeftOut;
use crate::record::{Read, Record};
use crate::times::rfc3339;

/// Returns the record of an issue; `None` for other records and deleted issues.
pub(super) fn issue(
    mut record: Record,
    left_out: &mut Vec<LeftOut>,
) -> Read<Option<(Record, String, Option<Timestamp>)>> {
    if record.map.contains_key("_schema") {
        return Ok(None);
    }
    let kind = record.text("_type")?;
    let (file, line) = (record.place.file.clone(), record.place.line);
    match kind.as_deref() {
        None | Some("issue") => {}
        Some(other) => {
            let why = format!("it is a `{other}`, no issue; an export into this file leaves it there");
            left_out.push(LeftOut::new(record.place.record, why).at(file, line));
            return Ok(None);
        }
    }
    let status = record.map.get("status").and_then(Value::as_str);
    if status.is_some_and(|word| word.eq_ignore_ascii_case("tombstone")) {
        let id = record.map.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        left_out.push(LeftOut::new(id, "it was deleted there").at(file, line));
        return Ok(None);
    }
    let theirs = record.id("id")?;
    let changed_at = record.map.get(TIMES.changed).and_then(|at| rfc3339(at.as_str()?));
    Ok(Some((record, theirs, changed_at)))
}

/// Of several records with one id, as a union merge leaves them, keeps the one that changed last, at the first place.
pub(super) fn newest(
    records: Vec<(Record, String, Option<Timestamp>)>,
    faults: &mut Faults,
) -> Vec<(Record, String, Option<Timestamp>)> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut kept: Vec<(Record, String, Option<Timestamp>)> = Vec::new();
    for (record, theirs, changed_at) in records {
        let Some(place) = places.get(&theirs).copied() else {
            places.insert(theirs.clone(), kept.len());
            kept.push((record, theirs, changed_at));
            continue;
        };
        let mut other = (record, theirs, changed_at);
        // Without times, the first counts.
        if other.2 > kept[place].2 {
            std::mem::swap(&mut kept[place], &mut other);
        }
        let line = |record: &Record| record.place.line.unwrap_or_default();
        let problem = format!(
            "issue `{}` occurs twice, in lines {} and {}; that of line {} counts",
            other.1,
            line(&kept[place].0).min(line(&other.0)),
            line(&kept[place].0).max(line(&other.0)),
            line(&kept[place].0)
        );
        faults.add_line(other.0.place.error("", problem, "remove one of the two lines"));
    }
    kept
}

/// Returns the records of the lines that are not empty.
pub(super) fn lines(file: &str, text: &str, faults: &mut Faults) -> Vec<Record> {
    let mut found = Vec::new();
    let is_in_conflict = leave_out_conflicts(file, text, faults);
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || is_in_conflict(number) {
            continue;
        }
        let place = Position { line: Some(number), record: format!("line {number}"), ..Position::of(file) };
        let record = taskpawl_json::read(line)
            .map_err(|error| place.json(&error, number))
            .and_then(|value| Record::new(value, place));
        match record {
            Ok(record) => found.push(record),
            Err(error) => faults.add_line(error),
        }
    }
    found
}
