//! What beads counts anew, and the link that it says twice: made right where it stands and another thing became of it here.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taskpawl_model::Map;

/// By how much each count of an issue changed, and what is above issues now that others or none were above.
pub(super) struct Recount<'i> {
    counts: BTreeMap<(&'i str, &'static str), i64>,
    moved: BTreeMap<&'i str, Option<&'i str>>,
}

impl<'i> Recount<'i> {
    /// Compares issues by their ids, as they were read and as they are to be written.
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

    /// Makes right what stands in a record. A number of a part of the links, or of comments that are not in the file, stays one.
    pub(super) fn apply(&self, id: &str, mut record: Map) -> Map {
        for field in ["comment_count", "dependency_count", "dependent_count"] {
            let change = self.counts.get(&(id, field)).filter(|change| **change != 0);
            let Some((count, change)) = record.get_mut(field).zip(change) else { continue };
            if let Some(before) = count.as_i64() {
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
    // Of the links only these count there.
    for on in links(issue, "blocks") {
        *counts.entry((id, "dependency_count")).or_default() += by;
        *counts.entry((on, "dependent_count")).or_default() += by;
    }
}

fn above(issue: &Map) -> Option<&str> {
    links(issue, "parent-child").next()
}

/// Returns what links of a kind lead to.
fn links<'i>(issue: &'i Map, wanted: &'static str) -> impl Iterator<Item = &'i str> {
    let links = list(issue, "dependencies").iter();
    let links =
        links.filter(move |link| link.get("type").and_then(Value::as_str).unwrap_or("blocks") == wanted);
    links.filter_map(|link| link.get("depends_on_id").and_then(Value::as_str))
}

fn list<'i>(issue: &'i Map, field: &str) -> &'i [Value] {
    issue.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
