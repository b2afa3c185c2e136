//! Fields of existing records that beads computes: the counts, and the parent that repeats a link. Both are updated with the links.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taskpawl_model::value::Map;

/// The change of each count, and the new parents of issues that moved.
pub(super) struct Recount<'i> {
    counts: BTreeMap<(&'i str, &'static str), i64>,
    moved: BTreeMap<&'i str, Option<&'i str>>,
}

impl<'i> Recount<'i> {
    /// Compares the issues as they were read with those that are to be written, by their ids.
    pub(super) fn of(said: &'i BTreeMap<String, Map>, now: &BTreeMap<&'i str, &'i Map>) -> Self {
        let mut counts = BTreeMap::new();
        for (id, issue) in said {
            count(&mut counts, id, issue, -1);
        }
        for (id, issue) in now {
            count(&mut counts, id, issue, 1);
        }
        let moved = now.iter().filter_map(|(id, issue)| {
            let (was, above) = (above(said.get(*id)?), above(issue));
            (was != above).then_some((*id, above))
        });
        Self { moved: moved.collect(), counts }
    }

    /// Updates the fields of a record. Counts are changed by a difference, because they may include links or comments outside the file.
    pub(super) fn apply(&self, id: &str, mut record: Map) -> Map {
        for field in ["comment_count", "dependency_count", "dependent_count"] {
            let change = self.counts.get(&(id, field)).filter(|change| **change != 0);
            let Some((count, change)) = record.get_mut(field).zip(change) else { continue };
            if let Some(before) = count.as_i64() {
                // A count that was too low must not become negative.
                *count = json!(before.saturating_add(*change).max(0));
            }
        }
        if let Some(above) = self.moved.get(id).filter(|_| record.contains_key("parent")) {
            match above {
                Some(above) => drop(record.insert("parent".to_owned(), json!(above))),
                None => drop(record.remove("parent")),
            }
        }
        record
    }
}

fn count<'i>(counts: &mut BTreeMap<(&'i str, &'static str), i64>, id: &'i str, issue: &'i Map, by: i64) {
    for _ in list(issue, "comments") {
        *counts.entry((id, "comment_count")).or_default() += by;
    }
    // beads counts only blocking links.
    for on in links(issue, "blocks") {
        *counts.entry((id, "dependency_count")).or_default() += by;
        *counts.entry((on, "dependent_count")).or_default() += by;
    }
}

fn above(issue: &Map) -> Option<&str> {
    links(issue, "parent-child").next()
}

/// Returns the ids that links of this type lead to.
fn links<'i>(issue: &'i Map, wanted: &'static str) -> impl Iterator<Item = &'i str> {
    let links = list(issue, "dependencies").iter();
    let links =
        links.filter(move |link| link.get("type").and_then(Value::as_str).unwrap_or("blocks") == wanted);
    links.filter_map(|link| link.get("depends_on_id").and_then(Value::as_str))
}

fn list<'i>(issue: &'i Map, field: &str) -> &'i [Value] {
    issue.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
