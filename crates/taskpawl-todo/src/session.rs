//! The `session` dialect: every write carries the whole list, which is only kept in memory.

use serde::Serialize;
use serde_json::Value;
use taskpawl_tools::CallContext;

use crate::answer::{self, Answer};
use crate::args::Args;
use crate::list::{Fault, Item, ItemId, List, State, Urgency, ignored};
use crate::lists::{Lists, READ_ONLY};
use crate::vocabulary::Verb;

/// Name of the argument for the session.
pub(crate) const ARGUMENT: &str = "session_id";

/// Fields of an item.
const ITEM_FIELDS: &[&str] = &["id", "content", "status", "priority"];

/// Names of the states.
const STATES: [(&str, State); 4] = [
    ("pending", State::Open),
    ("in_progress", State::Active),
    ("completed", State::Done),
    ("cancelled", State::Cancelled),
];

/// Names of the urgencies.
const URGENCIES: [(&str, Urgency); 3] =
    [("high", Urgency::High), ("medium", Urgency::Medium), ("low", Urgency::Low)];

/// An item in the form of the answers.
#[derive(Serialize)]
struct Shown<'a> {
    id: &'a ItemId,
    content: &'a str,
    status: &'static str,
    priority: Urgency,
}

#[derive(Serialize)]
struct Listed<'a> {
    title: String,
    output: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<Dropped<'a>>,
}

#[derive(Serialize)]
struct Dropped<'a> {
    id: &'a ItemId,
    content: &'a str,
}

/// Handles a call.
pub(crate) fn answer(lists: &Lists, verb: Verb, cx: &CallContext, args: Args<'_>) -> Answer {
    let Some(scope) = lists.rule().any(cx, args, ARGUMENT, lists.own_scope()) else {
        return Answer::error("session_id is required");
    };
    let known: &[&str] = if verb == Verb::Read { &[ARGUMENT] } else { &["todos", ARGUMENT] };
    if let Some(name) = args.unknown_list(known) {
        return Answer::error(format!("unknown argument `{name}`: todowrite takes the list as todos"));
    }
    if verb == Verb::Read {
        return listed(&lists.session(&scope), &[]);
    }
    if lists.is_read_only() {
        return Answer::error(READ_ONLY);
    }
    let items = match parse(lists, args.get("todos")) {
        Ok(items) => items,
        Err(error) => return Answer::error(error),
    };
    let ids: Vec<String> = items.iter().map(|item| item.id.to_string()).collect();
    match lists.replace_session(&scope, items) {
        Ok((list, dropped)) => {
            let given = args.get("todos").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            listed(&list, &dropped).ignoring(ignored(given, ITEM_FIELDS))
        }
        Err(Fault::SeveralActive { position }) => {
            Answer::error(format!("todos[{position}].status: at most one item may be in_progress at a time"))
        }
        Err(Fault::DuplicateId { position }) => {
            Answer::error(format!("todos[{position}].id: `{}` is the id of an earlier item", ids[position]))
        }
    }
}

fn listed(list: &List, dropped: &[Item]) -> Answer {
    let shown: Vec<Shown<'_>> = list.iter().map(shown).collect();
    let title = format!("{} todos", list.len() - list.done());
    let dropped = dropped.iter().map(|item| Dropped { id: &item.id, content: &item.title }).collect();
    Answer::json(&Listed { title, output: answer::text(&shown), dropped })
}

fn shown(item: &Item) -> Shown<'_> {
    let status = STATES.iter().find(|(_, state)| *state == item.state).map_or("", |(word, _)| word);
    let priority = item.urgency.unwrap_or(Urgency::Medium);
    Shown { id: &item.id, content: &item.title, status, priority }
}

fn parse(lists: &Lists, given: Option<&Value>) -> Result<Vec<Item>, String> {
    let items = given.and_then(Value::as_array).ok_or("todos: expected an array")?;
    items.iter().enumerate().map(|(position, value)| item(lists, position, value)).collect()
}

fn item(lists: &Lists, position: usize, value: &Value) -> Result<Item, String> {
    let wrong = |field: &str, problem: String| format!("todos[{position}].{field}: {problem}");
    if !value.is_object() {
        return Err(format!("todos[{position}]: expected an object"));
    }
    let args = Args::of(value);
    let id = match args.get("id") {
        None => lists.source().new_id(),
        Some(Value::String(id)) if id.trim().is_empty() => lists.source().new_id(),
        Some(Value::String(id)) => id.clone(),
        Some(other) => {
            let text = other.to_string();
            return Err(wrong("id", format!("expected a string: write \"{}\"", text.trim_matches('"'))));
        }
    };
    let content = args.text_of_item("content", "it is empty").map_err(|problem| wrong("content", problem))?;
    let state = word(args, "status", &STATES).map_err(|problem| wrong("status", problem))?;
    let urgency = word(args, "priority", &URGENCIES).map_err(|problem| wrong("priority", problem))?;
    Ok(Item { state, urgency: Some(urgency), ..Item::new(ItemId::Text(id), content.to_owned()) })
}

/// Returns the value for the word in a field.
fn word<T: Copy>(args: Args<'_>, field: &str, words: &[(&str, T)]) -> Result<T, String> {
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let given = match args.get(field) {
        Some(Value::String(word)) => word.clone(),
        Some(other) => other.to_string(),
        None => return Err(format!("it is missing: use one of {}", known())),
    };
    let found = words.iter().find(|(word, _)| *word == given);
    found.map(|(_, value)| *value).ok_or_else(|| format!("unknown {field} `{given}`: use one of {}", known()))
}
