//! The tags of a file of Task Master, each with its list of records.

use serde_json::Value;
use taskpawl_json::PathStep;
use taskpawl_model::task::MAX_DEPTH;
use taskpawl_model::value::Map;

use super::words::MASTER;
use crate::error::Position;
use crate::faults::Faults;
use crate::record::{Read, Record, levels};
use crate::unsupported;

/// Members of a tag's `metadata` that Task Master computes.
const COUNTED: &[&str] = &["lastModified", "updated", "taskCount", "completedCount"];

/// The records of a tag, and its other fields.
pub(super) type Tag = (String, Vec<(Position, Read<Record>)>, Map);

/// Returns the records and the other fields of each tag. Files of earlier versions have no tags.
pub(super) fn tags(value: Value, place: &Position, faults: &mut Faults) -> Read<Vec<Tag>> {
    let file = Record::whole(value, place.clone())?;
    if is_without_tags(&file.map) {
        let (records, of_tag) = records_of(file)?;
        return Ok(vec![(MASTER.to_owned(), records, of_tag)]);
    }
    let mut tags = Vec::new();
    for (tag, value) in file.map {
        let path = vec![PathStep::Key(tag.as_str().into())];
        let place = Position { record: format!("tag {tag}"), path, ..place.clone() };
        let found = Record::whole(value, place.clone()).and_then(|record| {
            if !record.map.contains_key("tasks") {
                let hint = "a tag is an object with a list `tasks`";
                return Err(record.place.error("tasks", "it is missing", hint));
            }
            records_of(record)
        });
        match found {
            Ok((records, of_tag)) => tags.push((tag, records, of_tag)),
            Err(error) => faults.add(error, &place),
        }
    }
    Ok(tags)
}

pub(super) fn is_without_tags(file: &Map) -> bool {
    file.get("tasks").is_some_and(Value::is_array)
}

/// A record that may be faulty, with its position.
pub(super) type Element = (Position, Read<Record>);

/// Takes the records out of a tag, or out of a file without tags. Both have the same depth limit, as an export may add tags.
fn records_of(mut tag: Record) -> Read<(Vec<Element>, Map)> {
    let records = tag.elements("tasks")?;
    tag.check(&["tasks"])?;
    if let Some(Value::Object(metadata)) = tag.map.get_mut("metadata") {
        metadata.retain(|field, _| !COUNTED.contains(&field.as_str()));
    }
    tag.map.retain(|_, value| !unsupported::is_empty(value));
    Ok((records, tag.map))
}

/// Returns true if a task can store the tag's fields, one level deeper than its own.
pub(super) fn can_be_kept(of_tag: &Map) -> bool {
    of_tag.values().all(|value| levels(value) + 1 < MAX_DEPTH - 2)
}
