//! What is kept with a task of what sources said: the baseline that the next import compares with.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map as JsonMap, Value, json};

use crate::Key;
use crate::draft::{Decided, Draft};
use crate::import::Said;

/// The member of what is kept with a task that holds what sources said; the others are of its plan.
const IMPORTED: &str = "imported";

/// The member that holds in which fields a source says something else than what is here, and was not followed.
const APART: &str = "apart";

/// Fields by source.
type Fields = BTreeMap<String, BTreeSet<String>>;

/// What one source said of a task.
#[derive(Debug, Clone, Default)]
pub(super) struct Before {
    /// What it said last, by field; `None` where it said nothing yet.
    pub(super) said: Option<BTreeMap<String, Value>>,
    /// The fields in which it was not followed.
    pub(super) apart: BTreeSet<String>,
}

/// Returns what a source said of a task.
pub(super) fn of(draft: &Draft<'_>, key: Key, source: &str) -> Decided<Before> {
    let mut kept = kept(draft, key)?;
    let said = member::<Said>(&mut kept, IMPORTED).remove(source);
    let apart = member::<Fields>(&mut kept, APART).remove(source).unwrap_or_default();
    Ok(Before { said, apart })
}

/// Writes down what a source says of a task now.
pub(super) fn note(
    draft: &mut Draft<'_>,
    key: Key,
    source: &str,
    said: BTreeMap<String, Value>,
    apart: BTreeSet<String>,
) -> Decided<()> {
    let mut kept = kept(draft, key)?;
    let mut all: Said = member(&mut kept, IMPORTED);
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

/// Writes down what a plan applied, and leaves what sources said.
pub(in crate::decide) fn write_applied(
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

/// What a plan applied, beside what sources said.
#[derive(Serialize)]
struct WithKept<'a, T> {
    #[serde(flatten)]
    applied: &'a T,
    #[serde(flatten)]
    kept: JsonMap<String, Value>,
}

/// Returns everything that is kept with a task beside it.
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
