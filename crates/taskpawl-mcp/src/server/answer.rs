//! Answers to a model: an object of bounded size, as text and as structured content.

use std::sync::Arc;

use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};

use super::actions::Action;
use super::options::ServerOptions;
use super::page::{Page, weight};

/// Maximum weight of an object, as [`weight`] counts, unless the caller asks for more. The object is sent twice. With
/// the parts that the protocol adds, an answer stays below 8 kB.
pub(super) const MAX_BYTES: usize = 7_600;

/// The same for an answer that is only text and contains the object once: at worst two thirds of its weight.
pub(super) const MAX_BYTES_READ: usize = 11_400;

/// Maximum weight of an object if the caller asked for a length.
pub(super) const MAX_BYTES_ASKED: usize = 200_000;

/// Weight reserved for fields that are added to a full object.
const FIELDS: usize = 200;

/// Part of `FIELDS` that is used by the fields of a page.
const FIELDS_OF_PAGE: usize = 100;

/// Maximum number of next steps.
const MAX_ACTIONS: usize = 12;

/// Weight reserved for reporting how much of a list was left out.
const LEFT_OUT: usize = 100;

/// Minimum length of a shortened text, in characters.
const MIN_CHARS: usize = 80;

/// An answer to a call.
#[derive(Debug, Default)]
pub(super) struct Answer {
    fields: Map<String, Value>,
    /// The part that is cut to the available space.
    page: Option<Page>,
    actions: Vec<Action>,
    is_error: bool,
    most: Most,
    /// Lists that may be incomplete, with their total lengths.
    totals: Vec<(&'static str, usize)>,
}

/// Maximum length of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Most {
    #[default]
    Usual,
    /// It is sent as text alone.
    Read,
    /// The caller has asked for a length.
    Asked,
}

impl Most {
    fn weight(self) -> usize {
        match self {
            Self::Usual => MAX_BYTES,
            Self::Read => MAX_BYTES_READ,
            Self::Asked => MAX_BYTES_ASKED,
        }
    }
}

impl Answer {
    /// Returns an answer with the fields of an object.
    pub(super) fn new(fields: Value) -> Self {
        let Value::Object(fields) = fields else {
            unreachable!("BUG: an answer is an object");
        };
        Self { fields, ..Self::default() }
    }

    /// Returns an answer that is an error.
    pub(super) fn refused(fields: Value) -> Self {
        Self { is_error: true, ..Self::new(fields) }
    }

    /// Adds next steps, without duplicates.
    pub(super) fn next(mut self, actions: impl IntoIterator<Item = Action>) -> Self {
        for action in actions {
            if !self.actions.contains(&action) {
                self.actions.push(action);
            }
        }
        self
    }

    /// Removes next steps that this server cannot take, and adds the store to commands for people.
    pub(super) fn only_here(mut self, options: &ServerOptions) -> Self {
        let line = Arc::new(options.line.clone());
        self.actions.retain(|action| action.is_here(options));
        self.actions.iter_mut().for_each(|action| action.write_as(&line));
        self
    }

    /// Adds the caller's name to the calls among the next steps.
    pub(super) fn in_name_of(mut self, agent: Option<&str>) -> Self {
        for action in &mut self.actions {
            *action = action.in_name_of(agent);
        }
        self.page = self.page.map(|page| page.in_name_of(agent));
        self
    }

    /// Allows a longer answer if the caller asked for one.
    pub(super) fn long_if(mut self, is_asked_for: bool) -> Self {
        if is_asked_for {
            self.most = Most::Asked;
        }
        self
    }

    /// Returns the answer as the text of a resource.
    pub(super) fn into_text(mut self) -> String {
        self.most = Most::Read;
        self.into_json().to_string()
    }

    /// Sets the total length of a list, so that `leftOut` can tell how many elements are missing.
    pub(super) fn out_of(mut self, list: &'static str, total: usize) -> Self {
        self.totals.push((list, total));
        self
    }

    /// Adds one page of a longer list or text.
    pub(super) fn page(mut self, page: Page) -> Self {
        self.page = Some(page);
        self
    }

    /// Adds a field, unless it is `null` or empty.
    pub(super) fn with(mut self, name: &str, value: Value) -> Self {
        if !is_empty(&value) {
            self.fields.insert(name.to_owned(), value);
        }
        self
    }

    /// Returns the object, shortened to the available space.
    pub(super) fn into_json(mut self) -> Value {
        let most = self.most.weight() - LEFT_OUT * self.totals.len();
        self.actions.truncate(MAX_ACTIONS);
        let mut actions: Vec<Value> = self.actions.iter().map(Action::to_json).collect();
        while weight_of(&actions) > most / 2 {
            actions.pop();
        }
        // The next page's call is measured with the longest possible offset. A call that is too long is left out: the
        // caller repeats it with `nextOffset`.
        let longest = |same: &Action| weight_of(&[same.at_offset(u64::MAX).to_json()]);
        let next_page = self.page.as_ref().and_then(Page::same).cloned();
        let next_page = next_page.filter(|same| longest(same) <= most / 4);
        let room = most - FIELDS - weight_of(&actions) - next_page.as_ref().map_or(0, longest);
        let mut fields = self.fields;
        let taken = weight(&json!(fields).to_string());
        let is_cut = self.page.is_some_and(|page| page.put_into(&mut fields, room.saturating_sub(taken)));
        if let (Some(same), Some(offset)) = (next_page, fields.get("nextOffset").and_then(Value::as_u64)) {
            actions.insert(0, same.at_offset(offset).to_json());
        }
        let mut value = Value::Object(fields);
        // A page that fits is not cut again because of the fields that belong to it.
        if shorten(&mut value, room + FIELDS_OF_PAGE) || is_cut {
            value["shortened"] = true.into();
        }
        for (list, total) in self.totals {
            // In a refusal the lists are in `error`.
            let shown = value.get(list).unwrap_or(&value["error"][list]);
            let left_out = total.saturating_sub(shown.as_array().map_or(0, Vec::len));
            if left_out > 0 {
                value["leftOut"][list] = left_out.into();
            }
        }
        if !actions.is_empty() {
            value["nextActions"] = actions.into();
        }
        value
    }

    pub(super) fn into_result(self) -> CallToolResult {
        let is_error = self.is_error;
        let value = self.into_json();
        if is_error { CallToolResult::structured_error(value) } else { CallToolResult::structured(value) }
    }
}

fn weight_of(actions: &[Value]) -> usize {
    actions.iter().map(|action| weight(&action.to_string()) + 2).sum()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Shortens an object: the longest lists lose their last elements, the longest texts their ends. Returns whether
/// anything was cut.
fn shorten(value: &mut Value, most: usize) -> bool {
    let mut is_shortened = false;
    while weight(&value.to_string()) > most {
        let Some(largest) = largest(value) else { break };
        is_shortened = true;
        // Halving needs few rounds, each of which serializes the whole object.
        match largest {
            Value::Array(items) => items.truncate(items.len() / 2),
            Value::String(text) => *text = head(text),
            Value::Object(fields) => {
                let last = fields.keys().next_back().cloned();
                last.and_then(|name| fields.remove(&name));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => break,
        }
    }
    is_shortened
}

fn head(text: &str) -> String {
    let half = text.chars().count() / 2;
    text.chars().take(half.max(MIN_CHARS)).chain(['…']).collect()
}

/// Returns the largest part that can be shortened. An inner object counts only if nothing inside it can be.
fn largest(value: &mut Value) -> Option<&mut Value> {
    let parts: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(fields) => fields.values_mut().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let part = parts.into_iter().max_by_key(|part| part.to_string().len())?;
    let is_deep = match &*part {
        // A short list is shortened inside its elements. A long one loses elements.
        Value::Array(items) => items.len() < 4 && !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if is_deep && has_shortenable(part) {
        return largest(part);
    }
    is_shortenable(part).then_some(part)
}

fn has_shortenable(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| is_shortenable(item) || has_shortenable(item)),
        Value::Object(fields) => fields.values().any(|field| is_shortenable(field) || has_shortenable(field)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_shortenable(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => text.chars().count() > MIN_CHARS + 1,
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_answered_fits() {
        let long = "\"x\" ".repeat(20_000);
        let many: Vec<Value> = (0..5_000).map(|n| json!({"id": format!("task-{n}"), "name": "n"})).collect();
        let deep =
            (0..100).fold(json!("x".repeat(50)), |inner, n| json!({format!("k{n}"): inner, "a": [1, 2]}));
        let wide: Map<String, Value> = (0..3_000).map(|n| (format!("key-{n}"), json!(n))).collect();
        let single = json!([[[long.clone()]]]);
        for fields in [
            json!({"text": long, "name": "kept"}),
            json!({"tasks": many, "name": "kept"}),
            json!({"a": {"b": {"text": long, "tasks": many}}, "name": "kept"}),
            json!({"deep": deep, "text": long, "name": "kept"}),
            json!({"wide": wide, "name": "kept"}),
            json!({"single": single, "name": "kept"}),
            json!({"quotes": "\\\"".repeat(20_000), "name": "kept"}),
            json!({"controls": "\u{1b}".repeat(20_000), "name": "kept"}),
        ] {
            let result = Answer::new(fields)
                .next([Action::person(taskpawl::model::advice::Advice::show(&"a".into()))])
                .into_result();
            let text = serde_json::to_string(&result).unwrap();
            assert!(text.len() <= 8_000, "{} bytes: {}", text.len(), &text[..200]);
            let value = result.structured_content.unwrap();
            assert_eq!((&value["name"], &value["shortened"]), (&json!("kept"), &json!(true)), "{value}");
            assert_eq!(value["nextActions"].as_array().unwrap().len(), 1);
        }
    }

    #[test]
    fn a_call_that_takes_the_room_of_its_answer_is_not_repeated() {
        let page = |text: &str| {
            let same = Action::call("plan_show", json!({"text": text}));
            let page = Page::of_list("tasks", 0, vec![json!({"id": "a"})], true).then(same);
            Answer::new(json!({})).page(page).into_json()
        };
        assert_eq!(page("x")["nextActions"][0]["arguments"], json!({"offset": 1, "text": "x"}));
        let of_long = page(&"x".repeat(100_000));
        assert_eq!(of_long, json!({"tasks": [{"id": "a"}], "nextOffset": 1}));
    }

    #[test]
    fn what_is_short_stays_as_it_is() {
        let value = Answer::new(json!({"a": 1})).with("b", json!([])).with("c", json!([1])).into_json();
        assert_eq!(value, json!({"a": 1, "c": [1]}));
    }
}
