//! Answers to a model: an object of bounded size, as text and as structured content.

use std::sync::Arc;

use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};

use super::actions::Action;
use super::options::ServerOptions;
use super::page::Page;

/// Maximum size of an answer, in bytes of JSON, unless the caller asks for more.
pub(super) const MAX_BYTES: usize = 2_000;

/// Maximum size that a caller can ask for.
pub(super) const MAX_BYTES_ASKED: usize = 16_000;

/// Minimum size that a caller can ask for: room for a refusal with its next steps.
pub(super) const MIN_BYTES: usize = 500;

/// Maximum size of a resource, which has no argument to ask for more.
pub(super) const MAX_BYTES_READ: usize = 4_000;

/// Bytes reserved for the names of fields that are added to a full object.
const FIELDS: usize = 100;

/// Part of `FIELDS` that is used by the fields of a page.
const FIELDS_OF_PAGE: usize = 50;

/// Maximum number of next steps.
const MAX_ACTIONS: usize = 12;

/// Bytes reserved for reporting how much of a list was left out.
const LEFT_OUT: usize = 45;

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
    /// Maximum size; `None` for the default.
    max_bytes: Option<usize>,
    /// Lists that may be incomplete, with their total lengths.
    totals: Vec<(&'static str, usize)>,
    /// Parts that may be cut, with the calls that read them whole.
    parts: Vec<Part>,
    /// The call that has the same content, for asking for more of it.
    rest: Option<Action>,
}

/// A part of an answer that a call of its own reads whole.
#[derive(Debug)]
struct Part {
    pointer: &'static str,
    /// Size of the whole, in bytes of JSON.
    bytes: usize,
    call: Action,
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

    /// Adds the first next step, in place of a general one.
    pub(super) fn first(mut self, action: Action) -> Self {
        self.actions.retain(|other| *other != action && *other != Action::call("plan_show", json!({})));
        self.actions.insert(0, action);
        self
    }

    /// Removes next steps that this server cannot take, and adds the store to commands for people.
    pub(super) fn only_here(mut self, options: &ServerOptions) -> Self {
        let line = Arc::new(options.line.clone());
        self.actions.retain(|action| action.is_here(options));
        self.actions.iter_mut().for_each(|action| action.write_as(&line));
        self.rest = self.rest.filter(|call| call.is_here(options));
        self
    }

    /// Adds the caller's name to the calls among the next steps.
    pub(super) fn in_name_of(mut self, agent: Option<&str>) -> Self {
        for action in &mut self.actions {
            *action = action.in_name_of(agent);
        }
        self.page = self.page.map(|page| page.in_name_of(agent));
        self.rest = self.rest.map(|call| call.in_name_of(agent));
        for part in &mut self.parts {
            part.call = part.call.in_name_of(agent);
        }
        self
    }

    /// Sets the maximum size, in bytes of JSON.
    pub(super) fn up_to(mut self, max_bytes: usize) -> Self {
        self.max_bytes = Some(max_bytes);
        self
    }

    /// Sets the call that has the same content, unless there is one. If the answer is cut, the call asks for more.
    pub(super) fn rest(mut self, call: Action) -> Self {
        self.rest.get_or_insert(call);
        self
    }

    /// Sets the call that reads a part whole, which may have been cut before.
    pub(super) fn part(mut self, pointer: &'static str, whole: &Value, call: Action) -> Self {
        if !whole.is_null() && whole != "" {
            self.parts.push(Part { pointer, bytes: whole.to_string().len(), call });
        }
        self
    }

    /// Returns the answer as the text of a resource.
    pub(super) fn into_text(self) -> String {
        self.up_to(MAX_BYTES_READ).into_json().to_string()
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

    /// Returns the object, cut to its maximum size. What was cut is marked, and the first of the next steps read it.
    pub(super) fn into_json(mut self) -> Value {
        let most = self.max_bytes.unwrap_or(MAX_BYTES);
        self.actions.truncate(MAX_ACTIONS);
        let mut actions: Vec<Value> = self.actions.iter().map(Action::to_json).collect();
        while size_of(&actions) > most / 3 {
            actions.pop();
        }
        let further = Further::of(&mut self, most);
        let left_out = LEFT_OUT * self.totals.len();
        let room = most.saturating_sub(FIELDS + left_out + size_of(&actions) + further.reserve());
        let mut fields = self.fields;
        let whole = size(&fields) + self.page.as_ref().map_or(0, Page::size);
        let taken = size(&fields);
        let is_cut = self.page.is_some_and(|page| page.put_into(&mut fields, room.saturating_sub(taken)));
        let offset = fields.get("nextOffset").and_then(Value::as_u64);
        let mut value = Value::Object(fields);
        // A page that fits is not cut again because of the fields that belong to it.
        let is_shortened = shorten(&mut value, room + FIELDS_OF_PAGE) || is_cut;
        let mut calls = further.calls(&value, offset, is_shortened.then_some(whole));
        if is_shortened {
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
        actions.retain(|action| !calls.contains(action));
        calls.append(&mut actions);
        if !calls.is_empty() {
            value["nextActions"] = calls.into();
        }
        value
    }

    pub(super) fn into_result(self) -> CallToolResult {
        let is_error = self.is_error;
        let value = self.into_json();
        if is_error { CallToolResult::structured_error(value) } else { CallToolResult::structured(value) }
    }
}

/// Calls that read what is cut.
#[derive(Debug)]
struct Further {
    /// The call for the next page.
    page: Option<Action>,
    parts: Vec<Part>,
    rest: Option<Action>,
    /// Maximum size of the answer.
    most: usize,
}

impl Further {
    /// Takes the calls of an answer, except those that are too long to be repeated: the caller has their arguments.
    fn of(answer: &mut Answer, most: usize) -> Self {
        let fits = |call: &Action| longest(call) <= most / 4;
        let page = answer.page.as_ref().and_then(Page::same).filter(|call| fits(call)).cloned();
        let rest = answer.rest.take().filter(fits);
        let mut parts = std::mem::take(&mut answer.parts);
        parts.retain(|part| fits(&part.call));
        Self { page, parts, rest, most }
    }

    /// Returns the bytes to reserve for the calls.
    fn reserve(&self) -> usize {
        let parts = self.parts.iter().map(|part| &part.call);
        self.page.iter().chain(&self.rest).chain(parts).map(longest).sum()
    }

    /// Returns the calls that are needed. `whole` is the size of the answer before it was cut.
    fn calls(self, value: &Value, offset: Option<u64>, whole: Option<usize>) -> Vec<Value> {
        let mut calls = Vec::new();
        if let (Some(page), Some(offset)) = (self.page, offset) {
            calls.push(page.at_offset(offset).to_json());
        }
        let is_cut = |part: &Part| {
            value.pointer(part.pointer).map_or(0, |shown| shown.to_string().len()) != part.bytes
        };
        calls.extend(self.parts.iter().filter(|part| is_cut(part)).map(|part| part.call.to_json()));
        if let (Some(rest), Some(whole), true) = (self.rest, whole, calls.is_empty()) {
            calls.extend(asking(&rest, whole, self.most));
        }
        calls
    }
}

/// Returns the call with a size that has room for `whole`; `None` if no call has more than `most`.
fn asking(call: &Action, whole: usize, most: usize) -> Option<Value> {
    let asked = (whole + ROUNDED).next_multiple_of(ROUNDED).clamp(MAX_BYTES, MAX_BYTES_ASKED);
    (asked > most).then(|| call.of_size(asked).to_json())
}

/// Sizes that are asked for are multiples of this.
const ROUNDED: usize = 1_000;

/// Returns the size of a call with the largest argument that is added to it.
fn longest(call: &Action) -> usize {
    call.at_offset(u64::MAX).to_json().to_string().len() + 1
}

fn size(fields: &Map<String, Value>) -> usize {
    fields.iter().map(|(name, value)| name.len() + value.to_string().len() + 4).sum()
}

fn size_of(actions: &[Value]) -> usize {
    actions.iter().map(|action| action.to_string().len() + 1).sum()
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
    // Objects lose fields only when there is no list or text left to cut.
    for fields_too in [false, true] {
        loop {
            let size = value.to_string().len();
            if size <= most {
                return is_shortened;
            }
            let Some(largest) = largest(value, fields_too) else { break };
            is_shortened = true;
            shorten_by(largest, size - most);
        }
    }
    is_shortened
}

/// Removes about `excess` bytes from a part, but at most half of it: another part may then be the largest.
fn shorten_by(part: &mut Value, excess: usize) {
    let size = part.to_string().len();
    match part {
        Value::Array(items) => {
            let count = items.len() * excess / size + 1;
            items.truncate(items.len().saturating_sub(count).max(items.len() / 2));
        }
        Value::String(text) => {
            let chars = text.chars().count();
            let kept = chars.saturating_sub(chars * excess / size + 2).max(chars / 2).max(MIN_CHARS);
            *text = text.chars().take(kept).chain(['…']).collect();
        }
        Value::Object(fields) => {
            let last = fields.keys().next_back().cloned();
            last.and_then(|name| fields.remove(&name));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the largest part that can be shortened. A part of a short list or of an object comes before the whole.
fn largest(value: &mut Value, fields_too: bool) -> Option<&mut Value> {
    let parts: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(fields) => fields.values_mut().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let parts = parts.into_iter().filter(|part| can_be_shortened(part, fields_too));
    let part = parts.max_by_key(|part| part.to_string().len())?;
    let is_deep = match &*part {
        // A short list is shortened inside its elements. A long one loses elements.
        Value::Array(items) => items.len() < 4,
        Value::Object(_) => true,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if is_deep && has_shortenable(part, fields_too) {
        return largest(part, fields_too);
    }
    Some(part)
}

fn can_be_shortened(value: &Value, fields_too: bool) -> bool {
    is_shortenable(value, fields_too) || has_shortenable(value, fields_too)
}

fn has_shortenable(value: &Value, fields_too: bool) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| can_be_shortened(item, fields_too)),
        Value::Object(fields) => {
            !is_call(fields) && fields.values().any(|field| can_be_shortened(field, fields_too))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_shortenable(value: &Value, fields_too: bool) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => fields_too && !fields.is_empty() && !is_call(fields),
        Value::String(text) => text.chars().count() > MIN_CHARS + 1,
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns whether an object is a call, which would be wrong without a part of it.
fn is_call(fields: &Map<String, Value>) -> bool {
    fields.len() == 2 && fields.contains_key("tool") && fields.contains_key("arguments")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
            let value = result.structured_content.unwrap();
            let bytes = value.to_string().len();
            assert!((MAX_BYTES / 2..=MAX_BYTES).contains(&bytes), "{bytes} bytes: {value}");
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
    fn what_is_cut_is_read_by_the_first_of_the_next_steps() {
        let get = || Action::call("task_get", json!({"id": "a"}));
        let text = "x".repeat(5_000);
        let answer =
            || Answer::new(json!({"task": {"description": text, "id": "a"}})).next([get()]).rest(get());
        let asks = json!({"tool": "task_get", "arguments": {"id": "a", "max_bytes": 7_000}});
        assert_eq!(answer().into_json()["nextActions"], json!([asks, get().to_json()]));
        let part = Action::call("task_get", json!({"id": "a", "part": "description"}));
        let cut = answer().part("/task/description", &json!(text), part.clone()).into_json();
        assert_eq!(cut["nextActions"], json!([part.to_json(), get().to_json()]));
        let whole = answer().part("/task/description", &json!(text), part).up_to(6_000).into_json();
        assert_eq!((&whole["nextActions"], whole.get("shortened")), (&json!([get().to_json()]), None));
    }

    #[test]
    fn a_call_within_an_answer_is_not_cut() {
        let call = json!({"tool": "task_get", "arguments": {"id": "i".repeat(90), "part": "result"}});
        let needs: Vec<Value> = (0..3).map(|_| json!({"result": "x".repeat(900), "rest": call})).collect();
        let value = Answer::new(json!({"needs": needs})).into_json();
        assert!(value["needs"].as_array().unwrap().iter().all(|need| need["rest"] == call), "{value}");
        assert!(value.to_string().len() <= MAX_BYTES, "{value}");
    }

    #[test]
    fn what_is_short_stays_as_it_is() {
        let value = Answer::new(json!({"a": 1})).with("b", json!([])).with("c", json!([1])).into_json();
        assert_eq!(value, json!({"a": 1, "c": [1]}));
    }
}
