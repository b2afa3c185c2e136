//! What an import leaves alone: fields that were changed here since their source said something of them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Timestamp;

/// The longest text that is repeated where it is kept, in characters.
const SHOWN: usize = 60;

/// Returns whether a field is here as its source said it last, as far as formats keep what they write.
///
/// What a format keeps in a form of its own, in `metadata` and for the machinery of tasks, cannot be told apart so and counts as said.
pub(super) fn is_as_said(
    field: &str,
    here: Option<&Value>,
    before: &Value,
    is_deleted: impl Fn(&str) -> bool,
) -> bool {
    let here = here.unwrap_or(&Value::Null);
    match field {
        // Formats write them in one line, or without what stands around them.
        "name" | "description" => words(here).eq(words(before)),
        "priority" | "assignee" | "parent" => here == before,
        "dueDate" => here == before || time(here).zip(time(before)).is_some_and(|(one, other)| one == other),
        "labels" => texts(here).eq(&texts(before)),
        // Nothing depends on what was deleted here.
        "dependencies" => {
            let before: BTreeSet<&str> = texts(before).into_iter().filter(|id| !is_deleted(id)).collect();
            texts(here) == before
        }
        _ => true,
    }
}

/// Says why a field stays as it is here.
pub(super) fn why(here: Option<&Value>, there: &Value) -> String {
    let short = |value: &Value| {
        let text = value.as_str().filter(|text| text.chars().count() <= SHOWN && !text.contains('\n'));
        text.map(|text| format!("`{text}`"))
    };
    match here.and_then(short).zip(short(there)) {
        Some((here, there)) => format!("it became {here} here meanwhile, and is {there} there"),
        None => "it was changed here meanwhile, and in another way there".to_owned(),
    }
}

fn words(value: &Value) -> impl Iterator<Item = &str> {
    value.as_str().unwrap_or_default().split_whitespace()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

fn texts(value: &Value) -> BTreeSet<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}
