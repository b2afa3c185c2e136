//! Import baseline of a task: the last values of each source, which the next import compares with.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map as JsonMap, Value, json};

use crate::command::import::{BoundRecord, SourceRecord, SourceValues};
use crate::rules::draft::{Decided, Draft};
use crate::value::Key;
use crate::view::{Query, View, ViewResult};

/// JSON member that holds the last values by source. The other members belong to the task's plan.
const IMPORTED: &str = "imported";

/// JSON member that holds, by source, the fields in which the store deliberately differs.
const APART: &str = "apart";

/// JSON member that holds the record by source.
const RECORDS: &str = "records";

/// The text of [`IMPORTED`] as a member. A task without it needs no parsing.
const IMPORTED_MEMBER: &str = "\"imported\":";

/// Records by source.
type Records = BTreeMap<String, SourceRecord>;

/// Field names by source.
type Fields = BTreeMap<String, BTreeSet<String>>;

/// Baseline of a task for one source.
#[derive(Debug, Clone, Default)]
pub(super) struct Before {
    /// Last values by field; `None` before the first import from this source.
    pub(super) said: Option<BTreeMap<String, Value>>,
    /// Fields in which the store deliberately differs from the source.
    pub(super) apart: BTreeSet<String>,
    /// The record in the source; `None` if version 0.1 stored the baseline.
    pub(super) record: Option<SourceRecord>,
}

/// Returns the baseline of a task for one source.
pub(super) fn of(draft: &Draft<'_>, key: Key, source: &str) -> Decided<Before> {
    let mut kept = kept(draft, key)?;
    let mut all: SourceValues = member(&mut kept, IMPORTED);
    let name = stored_name(&all, source);
    let said = name.as_ref().and_then(|name| all.remove(name));
    let apart = name.and_then(|name| member::<Fields>(&mut kept, APART).remove(&name)).unwrap_or_default();
    let record = member::<Records>(&mut kept, RECORDS).remove(source);
    Ok(Before { said, apart, record })
}

/// Returns true if the task has values of any source.
pub(super) fn has_any(draft: &Draft<'_>, key: Key) -> Decided<bool> {
    let all: SourceValues = member(&mut kept(draft, key)?, IMPORTED);
    Ok(!all.is_empty())
}

/// Returns those of some sources that the task has values of.
pub(super) fn among<'s>(
    draft: &Draft<'_>,
    key: Key,
    sources: &'s BTreeSet<String>,
) -> Decided<Vec<&'s String>> {
    let all: SourceValues = member(&mut kept(draft, key)?, IMPORTED);
    let is_stored = |source: &&String| stored_name(&all, source).is_some();
    // A task has few sources, and a folder of features has many.
    if all.is_empty() { Ok(Vec::new()) } else { Ok(sources.iter().filter(is_stored).collect()) }
}

/// Returns the name under which the values of a source are stored. Version 0.1 appended the prefix of the ids.
fn stored_name(all: &SourceValues, source: &str) -> Option<String> {
    if all.contains_key(source) {
        return Some(source.to_owned());
    }
    let is_prefixed = |name: &&String| name.strip_prefix(source).is_some_and(|rest| rest.starts_with(" as "));
    all.keys().find(is_prefixed).cloned()
}

/// Records the current values of a source.
pub(super) fn note(
    draft: &mut Draft<'_>,
    key: Key,
    source: &str,
    said: BTreeMap<String, Value>,
    apart: BTreeSet<String>,
    record: SourceRecord,
) -> Decided<()> {
    let mut kept = kept(draft, key)?;
    let mut all: SourceValues = member(&mut kept, IMPORTED);
    let mut fields: Fields = member(&mut kept, APART);
    let mut records: Records = member(&mut kept, RECORDS);
    if let Some(name) = stored_name(&all, source) {
        all.remove(&name);
        fields.remove(&name);
    }
    all.insert(source.to_owned(), said);
    fields.insert(source.to_owned(), apart);
    records.insert(source.to_owned(), record);
    put(draft, key, kept, &all, fields, &records);
    Ok(())
}

/// Renames a source of a task. Returns whether the task had it.
pub(super) fn rename(draft: &mut Draft<'_>, key: Key, from: &str, to: &str) -> Decided<bool> {
    let mut kept = kept(draft, key)?;
    let mut all: SourceValues = member(&mut kept, IMPORTED);
    let mut fields: Fields = member(&mut kept, APART);
    let mut records: Records = member(&mut kept, RECORDS);
    let Some(name) = stored_name(&all, from) else { return Ok(false) };
    if let Some(said) = all.remove(&name) {
        all.insert(to.to_owned(), said);
    }
    if let Some(apart) = fields.remove(&name) {
        fields.insert(to.to_owned(), apart);
    }
    if let Some(record) = records.remove(from) {
        records.insert(to.to_owned(), record);
    }
    put(draft, key, kept, &all, fields, &records);
    Ok(true)
}

fn put(
    draft: &mut Draft<'_>,
    key: Key,
    mut kept: JsonMap<String, Value>,
    all: &SourceValues,
    mut fields: Fields,
    records: &Records,
) {
    fields.retain(|_, fields| !fields.is_empty());
    kept.insert(IMPORTED.to_owned(), json!(all));
    if !fields.is_empty() {
        kept.insert(APART.to_owned(), json!(fields));
    }
    if !records.is_empty() {
        kept.insert(RECORDS.to_owned(), json!(records));
    }
    draft.changes.applied.insert(key, Value::Object(kept).to_string());
}

/// Returns the records that tasks remember, of the sources that `is_wanted` accepts, in the order of the tasks' creation.
///
/// # Errors
/// The view cannot be read.
pub fn bound_records(view: &dyn View, is_wanted: &dyn Fn(&str) -> bool) -> ViewResult<Vec<BoundRecord>> {
    let mut found = Vec::new();
    let mut keys = view.find(&Query::default())?;
    keys.sort_unstable();
    for key in keys {
        let Some(text) = view.applied(key)?.filter(|text| text.contains(IMPORTED_MEMBER)) else { continue };
        let mut kept: JsonMap<String, Value> = serde_json::from_str(&text).unwrap_or_default();
        let (all, mut records): (SourceValues, Records) =
            (member(&mut kept, IMPORTED), member(&mut kept, RECORDS));
        let Some(task) = view.id(key)? else { continue };
        for (source, values) in all.into_iter().filter(|(source, _)| is_wanted(source)) {
            let record = records.remove(&source);
            found.push(BoundRecord { task: task.clone(), source, record, values });
        }
    }
    Ok(found)
}

/// Records the specification that a plan applied, and keeps the baselines of sources.
pub(in crate::rules::decide) fn write_applied(
    draft: &mut Draft<'_>,
    key: Key,
    applied: &impl Serialize,
) -> Decided<()> {
    let mut kept = kept(draft, key)?;
    kept.retain(|name, _| [IMPORTED, APART, RECORDS].contains(&name.as_str()));
    let text = serde_json::to_string(&WithKept { applied, kept });
    draft.changes.applied.insert(key, text.expect("BUG: a specification is always valid JSON"));
    Ok(())
}

/// Specification that a plan applied, together with the baselines.
#[derive(Serialize)]
struct WithKept<'a, T> {
    #[serde(flatten)]
    applied: &'a T,
    #[serde(flatten)]
    kept: JsonMap<String, Value>,
}

/// Returns the stored JSON object with the baselines and the plan's specification.
fn kept(draft: &Draft<'_>, key: Key) -> Decided<JsonMap<String, Value>> {
    let text = match draft.changes.applied.get(&key) {
        Some(text) => Some(text.clone()),
        None if draft.is_new(key) => None,
        None => draft.view.applied(key)?,
    };
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

fn member<T: Default + serde::de::DeserializeOwned>(kept: &mut JsonMap<String, Value>, name: &str) -> T {
    kept.remove(name).and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default()
}
