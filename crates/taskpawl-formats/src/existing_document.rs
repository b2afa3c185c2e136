//! What a file that is written over says already: what did not change stays as it is there, in whatever words.

use std::collections::BTreeMap;

use serde_json::Value;
use taskpawl_model::{Map, Task, TaskId};

use crate::files::Files;
use crate::format::Reading;

/// Files that are written over, with what was read of them.
pub(crate) struct ExistingDocument<'r> {
    pub(crate) files: &'r Files,
    /// The tasks in them, in their order.
    pub(crate) tasks: &'r [Task],
    /// What they are called there.
    pub(crate) names: &'r [String],
    places: BTreeMap<&'r TaskId, usize>,
}

impl<'r> ExistingDocument<'r> {
    pub(crate) fn of(files: &'r Files, reading: &'r Reading) -> Self {
        let places = reading.tasks.iter().enumerate().map(|(place, task)| (&task.id, place));
        Self { files, tasks: &reading.tasks, names: &reading.names, places: places.collect() }
    }

    /// Returns a task as it is there.
    pub(crate) fn task(&self, id: &TaskId) -> Option<&'r Task> {
        self.tasks.get(*self.places.get(id)?)
    }

    /// Returns what a task is called there.
    pub(crate) fn name(&self, id: &TaskId) -> Option<&'r str> {
        self.names.get(*self.places.get(id)?).map(String::as_str)
    }

    /// Returns tasks in the order that they have there; others follow.
    pub(crate) fn in_order<'t>(&self, tasks: &'t [Task]) -> Vec<&'t Task> {
        let mut sorted: Vec<&Task> = tasks.iter().collect();
        sorted.sort_by_key(|task| self.places.get(&task.id).copied().unwrap_or(usize::MAX));
        sorted
    }
}

/// What fields of a record are besides values of their own.
#[derive(Default)]
pub(crate) struct Kinds {
    /// When it was made: nothing that is done here changes that.
    pub(crate) made: &'static str,
    /// When it changed last: of no concern where nothing else did, or where nobody wrote it.
    pub(crate) changed: &'static str,
    /// When its state became another one: not said where it was not and the state is the same.
    pub(crate) of_state: &'static [&'static str],
    /// Links to others, whose order says nothing.
    pub(crate) links: &'static [&'static str],
    /// What a new record says once more in another field: not said where it was not.
    pub(crate) repeats: &'static [&'static str],
}

impl Kinds {
    /// Returns whether a field says the same.
    pub(crate) fn is_same(&self, field: &str, said: Option<&Value>, now: Option<&Value>) -> bool {
        said == now || (self.links.contains(&field) && is_same_set(said, now))
    }

    fn is_time(&self, field: &str) -> bool {
        field == self.made || field == self.changed || self.of_state.contains(&field)
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_same_set(one: Option<&Value>, other: Option<&Value>) -> bool {
    let (one, other) = (items(one), items(other));
    one.len() == other.len() && one.iter().all(|link| other.contains(link))
}

/// Returns a record as it is to be: `raw` as it stands there, but for what would be written for it `now` in another way than for
/// what was read of it, which is what it `said`.
pub(crate) fn over(raw: &Map, said: &Map, now: &Map, kinds: &Kinds) -> Map {
    let mut out = raw.clone();
    let differs = |field: &&String| !kinds.is_same(field, said.get(*field), now.get(*field));
    let new = now.keys().filter(|field| !said.contains_key(*field));
    let fields: Vec<&String> = said.keys().chain(new).filter(differs).collect();
    let is_same_state = said.get("status") == now.get("status");
    let is_unsaid_time =
        |field: &str| kinds.of_state.contains(&field) && is_same_state && !raw.contains_key(field);
    let is_changed = fields.iter().any(|field| {
        !kinds.is_time(field) || (kinds.of_state.contains(&field.as_str()) && !is_unsaid_time(field))
    });
    for field in fields {
        let is_there = raw.contains_key(field);
        let is_unsaid = (field == kinds.changed && !(is_changed && is_there))
            || (kinds.repeats.contains(&field.as_str()) && !is_there);
        if field == kinds.made || is_unsaid || is_unsaid_time(field) {
            continue;
        }
        match now.get(field) {
            Some(value) if kinds.links.contains(&field.as_str()) => {
                out.insert(field.clone(), as_spelled(raw.get(field), value, text_of));
            }
            Some(value) => {
                let value = value_over(raw.get(field).zip(said.get(field)), value);
                out.insert(field.clone(), value);
            }
            None => drop(out.remove(field)),
        }
    }
    out
}

/// As [`over`], for any value: parts of it that say the same stay as they stand there.
fn value_over(before: Option<(&Value, &Value)>, now: &Value) -> Value {
    match (before, now) {
        (Some((Value::Object(raw), Value::Object(said))), Value::Object(now)) => {
            Value::Object(over(raw, said, now, &Kinds::default()))
        }
        (Some((Value::Array(raw), Value::Array(said))), Value::Array(now)) if raw.len() == said.len() => {
            list_over(raw, said, now)
        }
        _ => now.clone(),
    }
}

/// An item of a list is the one that said the same, or the one with its id.
fn list_over(raw: &[Value], said: &[Value], now: &[Value]) -> Value {
    let mut left: Vec<usize> = (0..said.len()).collect();
    let mut item = |now: &Value| {
        let id = now.get("id");
        let is_same = |place: &usize| said[*place] == *now;
        let has_id = |place: &usize| id.is_some() && said[*place].get("id") == id;
        let found = left.iter().position(is_same).or_else(|| left.iter().position(has_id));
        let place = found.map(|found| left.remove(found));
        place.map_or_else(|| now.clone(), |place| part_over(&raw[place], &said[place], now))
    };
    Value::Array(now.iter().map(&mut item).collect())
}

fn part_over(raw: &Value, said: &Value, now: &Value) -> Value {
    if said == now { raw.clone() } else { value_over(Some((raw, said)), now) }
}

/// Returns links as they are spelled before, and in that order; new ones follow. `name` says what one of before leads to.
pub(crate) fn as_spelled(before: Option<&Value>, now: &Value, name: impl Fn(&Value) -> String) -> Value {
    let mut left = items(Some(now)).to_vec();
    let mut links = Vec::new();
    let mut known: Vec<Value> = Vec::new();
    for link in items(before) {
        let is_same = |other: &Value| other == link || text_of(other) == name(link);
        if let Some(place) = left.iter().position(is_same) {
            known.push(left.remove(place));
        } else if !known.iter().any(is_same) {
            continue;
        }
        links.push(link.clone());
    }
    links.extend(left);
    Value::Array(links)
}

pub(crate) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
