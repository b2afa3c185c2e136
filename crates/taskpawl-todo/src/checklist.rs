//! The `checklist` dialect: every call carries the whole list. The list is kept in memory and published to observers.

use serde::Serialize;
use serde_json::Value;
use taskpawl_model::task::{ChecklistItem, ChecklistStatus};
use taskpawl_tools::CallContext;

use crate::answer::{Answer, text};
use crate::args::Args;
use crate::list::{Fault, Item, ItemId, ignored};
use crate::lists::{Lists, READ_ONLY};
use crate::published::{shown, state};

/// Name of the argument for the session.
pub(crate) const ARGUMENT: &str = "session_id";

/// Names of the argument for the list. Each of the two tools documents one of them, but accepts both.
pub(crate) const LIST_ARGUMENTS: [&str; 2] = ["taskList", "todoList"];

/// Fields of an item.
const ITEM_FIELDS: &[&str] = &["id", "title", "status"];

const NO_ARRAY: &str = "Invalid JSON array for taskList";
const SEVERAL: &str = "At most one task may be in-progress at a time";

#[derive(Serialize)]
struct Failed<'a> {
    success: bool,
    error: &'a str,
}

#[derive(Serialize)]
struct Shown {
    success: bool,
    #[serde(rename = "taskList")]
    list: Vec<ChecklistItem>,
}

#[derive(Serialize)]
struct Updated<'a> {
    success: bool,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<Dropped<'a>>,
}

#[derive(Serialize)]
struct Dropped<'a> {
    id: &'a ItemId,
    title: &'a str,
}

/// Handles a call.
pub(crate) fn answer(lists: &Lists, cx: &CallContext, args: Args<'_>) -> Answer {
    let Some(scope) = lists.rule().any(cx, args, ARGUMENT, lists.own_scope()) else {
        return failed("session_id is required");
    };
    if let Some(name) = args.unknown_list(&[&LIST_ARGUMENTS[..], &["operation", ARGUMENT]].concat()) {
        return failed(&format!("unknown argument `{name}`: give the list as taskList"));
    }
    let list = LIST_ARGUMENTS.into_iter().find_map(|name| args.get(name));
    match (args.get("operation"), list) {
        (None, None) => read(lists, cx, &scope),
        (Some(Value::String(word)), _) if word == "read" => read(lists, cx, &scope),
        (None, Some(list)) => write(lists, cx, &scope, list),
        (Some(Value::String(word)), list) if word == "write" => {
            write(lists, cx, &scope, list.unwrap_or(&Value::Null))
        }
        (Some(other), _) => {
            let word = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            failed(&format!("unknown operation `{word}`: use write or read"))
        }
    }
}

fn failed(error: &str) -> Answer {
    Answer::Refused(text(&Failed { success: false, error }))
}

fn read(lists: &Lists, cx: &CallContext, scope: &str) -> Answer {
    let list = lists.checklist(cx, scope).iter().map(shown).collect();
    Answer::json(&Shown { success: true, list })
}

fn write(lists: &Lists, cx: &CallContext, scope: &str, given: &Value) -> Answer {
    if lists.is_read_only() {
        return failed(READ_ONLY);
    }
    let given = array(given).ok_or_else(|| NO_ARRAY.to_owned());
    let (items, ignored) = match given.and_then(|given| Ok((parse(&given)?, ignored(&given, ITEM_FIELDS)))) {
        Ok(read) => read,
        Err(error) => return failed(&error),
    };
    let names: Vec<String> = items.iter().map(|item| item.id.to_string()).collect();
    match lists.replace_checklist(cx, scope, items) {
        Ok((list, dropped)) => {
            let message = format!("Task list updated: {}/{} completed", list.done(), list.len());
            let dropped = dropped.iter().map(|item| Dropped { id: &item.id, title: &item.title }).collect();
            Answer::json(&Updated { success: true, message, dropped }).ignoring(ignored)
        }
        Err(Fault::SeveralActive { .. }) => failed(SEVERAL),
        Err(Fault::DuplicateId { position }) => {
            failed(&format!("taskList[{position}].id: `{}` is the id of an earlier item", names[position]))
        }
    }
}

/// Returns the given list. Some models send the array as a JSON string.
fn array(given: &Value) -> Option<Vec<Value>> {
    match given {
        Value::Array(items) => Some(items.clone()),
        Value::String(text) => taskpawl_json::read(text).ok(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn parse(items: &[Value]) -> Result<Vec<Item>, String> {
    items.iter().enumerate().map(|(position, value)| item(position, value)).collect()
}

/// The names of the states, for errors.
const USE_STATUS: &str = "use not-started, in-progress or completed";

fn item(position: usize, value: &Value) -> Result<Item, String> {
    let wrong = |field: &str, problem: &str| format!("taskList[{position}].{field}: {problem}");
    if !value.is_object() {
        return Err(format!("taskList[{position}]: expected an object"));
    }
    let args = Args::of(value);
    let id = match args.get("id") {
        Some(Value::Number(number)) => ItemId::Number(number.clone()),
        Some(other) => return Err(wrong("id", &no_number(other, position))),
        None => return Err(wrong("id", &format!("it is missing: write {}", position + 1))),
    };
    let title = args.text_of_item("title", "it is missing").map_err(|problem| wrong("title", &problem))?;
    let word = match args.get("status") {
        Some(Value::String(word)) => word.clone(),
        Some(other) => other.to_string(),
        None => return Err(wrong("status", &format!("it is missing: {USE_STATUS}"))),
    };
    let status = ChecklistStatus::from_word(&word)
        .ok_or_else(|| wrong("status", &format!("unknown status `{word}`: {USE_STATUS}")))?;
    Ok(Item { state: state(status), ..Item::new(id, title.to_owned()) })
}

/// Returns the problem with an id that is not a number.
fn no_number(given: &Value, position: usize) -> String {
    let written = given.as_str().and_then(|text| text.trim().parse::<u64>().ok());
    let number = written.unwrap_or(position as u64 + 1);
    format!("expected a number: write {number}, without quotes")
}
