//! Import baseline of a task: the last values of each source, which the next import compares with.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map as JsonMap, Value, json};

use crate::command::import::SourceValues;
use crate::rules::draft::{Decided, Draft};
use crate::value::Key;

/// JSON member that holds the last values by source. The other members belong to the task's plan.
const IMPORTED: &str = "imported";

/// JSON member that holds, by source, the fields in which the store deliberately differs.
const APART: &str = "apart";

/// Field names by source.
type Fields = BTreeMap<String, BTreeSet<String>>;

/// Baseline of a task for one source.
#[derive(Debug, Clone, Default)]
pub(super) struct Before {
    /// Last values by field; `None` before the first import from this source.
    pub(super) said: Option<BTreeMap<String, Value>>,
    /// Fields in which the store deliberately differs from the source.
    pub(super) apart: BTreeSet<String>,
}

/// Returns the baseline of a task for one source.
pub(super) fn of(draft: &Draft<'_>, key: Key, source: &str) -> Decided<Before> {
    let mut kept = kept(draft, key)?;
    let said = member::<SourceValues>(&mut kept, IMPORTED).remove(source);
    let apart = member::<Fields>(&mut kept, APART).remove(source).unwrap_or_default();
    Ok(Before { said, apart })
}

/// Records the current values of a source.
pub(super) fn note(
    draft: &mut Draft<'_>,
    key: Key,
    source: &str,
    said: BTreeMap<String, Value>,
    apart: BTreeSet<String>,
) -> Decided<()> {
    let mut kept = kept(draft, key)?;
    let mut all: SourceValues = member(&mut kept, IMPORTED);
    all.insert(source.to_owned(), said);
    kept.insert(IMPORTED.to_owned(), json!(all));
    let mut fields: Fields = member(&mut kept, APART);
    fields.insert(source.to_owned(), apart);
    fields.retain(|_, fields| !fields.is_empty());
    if !fields.is_empty() {
        kept.insert(APART.to_owned(), json!(fields));
    }
    draft.changes.applied.insert(key, Value::Object(kept).to_string());
    Ok(())
}

/// Records the specification that a plan applied, and keeps the baselines of sources.
pub(in crate::rules::decide) fn write_applied(
    draft: &mut Draft<'_>,
    key: Key,
    applied: &impl Serialize,
) -> Decided<()> {
    let mut kept = kept(draft, key)?;
    kept.retain(|name, _| [IMPORTED, APART].contains(&name.as_str()));
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
