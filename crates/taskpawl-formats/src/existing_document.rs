//! The document that an export writes over. Unchanged parts keep the spelling that they have in it.
//!
//! Three versions of a record meet here: `raw` is the record in the file, `said` is the export of the task as it was read. `now` is the
//! export of the task as it is now. Only the difference between `said` and `now` is applied to `raw`.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use serde_json::Value;
use taskpawl_model::task::Task;
use taskpawl_model::value::Map;
use taskpawl_model::value::TaskId;

use crate::files::Files;
use crate::reading::Reading;

/// Files that are written over, with the tasks that were read from them.
pub(crate) struct ExistingDocument<'r> {
    pub(crate) files: &'r Files,
    /// The tasks in the files, in file order.
    pub(crate) tasks: &'r [Task],
    /// The ids that the files give the tasks, in the same order.
    pub(crate) names: &'r [String],
    places: BTreeMap<&'r TaskId, usize>,
    lines: Option<&'r BTreeSet<u32>>,
}

impl<'r> ExistingDocument<'r> {
    pub(crate) fn of(files: &'r Files, reading: &'r Reading) -> Self {
        let places = reading.tasks.iter().enumerate().map(|(place, task)| (&task.id, place));
        Self {
            files,
            tasks: &reading.tasks,
            names: &reading.names,
            places: places.collect(),
            lines: (!reading.lines.is_empty()).then_some(&reading.lines),
        }
    }

    /// Returns the lines that the tasks were read from, if the format has one task per line.
    pub(crate) fn lines(&self) -> Option<&'r BTreeSet<u32>> {
        self.lines
    }

    /// Returns the task as it was read from the files.
    pub(crate) fn task(&self, id: &TaskId) -> Option<&'r Task> {
        self.tasks.get(*self.places.get(id)?)
    }

    /// Returns the id that the files give a task.
    pub(crate) fn name(&self, id: &TaskId) -> Option<&'r str> {
        self.names.get(*self.places.get(id)?).map(String::as_str)
    }

    /// Returns the ids that the tasks have, or get, in the file. A task that is not in the file gets the
    /// first candidate that no other record has: none is given twice. `taken` has the ids of records that cannot be read.
    pub(crate) fn names_of<'t>(
        &self,
        tasks: &'t [Task],
        candidate: impl Fn(&Task, u64) -> String,
        mut taken: BTreeSet<String>,
    ) -> BTreeMap<&'t TaskId, String> {
        taken.extend(self.names.iter().cloned());
        let mut names = BTreeMap::new();
        for task in tasks {
            if let Some(name) = self.name(&task.id) {
                names.insert(&task.id, name.to_owned());
            }
        }
        for task in tasks.iter().filter(|task| self.name(&task.id).is_none()) {
            let name =
                (0..u64::MAX).map(|attempt| candidate(task, attempt)).find(|name| !taken.contains(name));
            let name = name.expect("BUG: numbers do not end");
            taken.insert(name.clone());
            names.insert(&task.id, name);
        }
        names
    }

    /// Returns the tasks in file order. Tasks that are not in the files follow, in the order given.
    pub(crate) fn in_order<'t>(&self, tasks: &'t [Task]) -> Vec<&'t Task> {
        let mut sorted: Vec<&Task> = tasks.iter().collect();
        sorted.sort_by_key(|task| self.places.get(&task.id).copied().unwrap_or(usize::MAX));
        sorted
    }
}

/// Returns the elements of a list as they are written. Elements of the file that no task was read from stay between their
/// neighbours: `written` has the index of each other element in the file.
pub(crate) fn with_unread(
    written: Vec<(Option<usize>, Value)>,
    raw: &[Value],
    is_read: impl Fn(usize) -> bool,
) -> Vec<Value> {
    let mut unread = (0..raw.len()).filter(|index| !is_read(*index)).peekable();
    let mut list = Vec::with_capacity(raw.len());
    for (index, value) in written {
        let end = index.unwrap_or(raw.len());
        while let Some(other) = unread.next_if(|other| *other < end) {
            list.push(raw[other].clone());
        }
        list.push(value);
    }
    list.extend(unread.map(|other| raw[other].clone()));
    list
}

/// Fields of a format that [`over`] must not compare as plain values.
#[derive(Default)]
pub(crate) struct Kinds {
    /// The time of creation. It is never rewritten: no command changes it.
    pub(crate) made: &'static str,
    /// The time of the last change. It is only written if another field changed, and if the record already has it.
    pub(crate) changed: &'static str,
    /// Times of a status change. They are not added to a record without them as long as its status is the same.
    pub(crate) of_state: &'static [&'static str],
    /// Links to other records. Their order has no meaning.
    pub(crate) links: &'static [&'static str],
    /// Fields that repeat another field in new records. They are not added to a record without them.
    pub(crate) repeats: &'static [&'static str],
}

impl Kinds {
    /// Returns true if both values of a field mean the same.
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
    let set = |list: &[Value]| list.iter().map(Value::to_string).collect::<BTreeSet<String>>();
    one.len() == other.len() && set(one) == set(other)
}

/// Returns `raw` with the fields changed that differ between `said` and `now`. All other fields keep their value and spelling.
pub(crate) fn over(raw: &Map, said: &Map, now: &Map, kinds: &Kinds) -> Map {
    let mut out = raw.clone();
    let differs = |field: &&String| !kinds.is_same(field, said.get(*field), now.get(*field));
    let new = now.keys().filter(|field| !said.contains_key(*field));
    let fields: Vec<&String> = said.keys().chain(new).filter(differs).collect();
    let is_same_state = said.get("status") == now.get("status");
    // Not every record has these times. Without a change of status, adding one would be a change of its own.
    let is_unsaid_time =
        |field: &str| kinds.of_state.contains(&field) && is_same_state && !raw.contains_key(field);
    // The times of a status change count here, so that a changed `started_at` also updates the time of the last change.
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

/// Applies [`over`] to any value: parts that are equal in `said` and `now` keep their spelling in `raw`.
fn value_over(before: Option<(&Value, &Value)>, now: &Value) -> Value {
    match (before, now) {
        (Some((Value::Object(raw), Value::Object(said))), Value::Object(now)) => {
            Value::Object(over(raw, said, now, &Kinds::default()))
        }
        // `list_over` uses an index of `said` for `raw`, which needs equal lengths.
        (Some((Value::Array(raw), Value::Array(said))), Value::Array(now)) if raw.len() == said.len() => {
            list_over(raw, said, now)
        }
        _ => now.clone(),
    }
}

/// Rewrites a list. A new element is paired with an equal one of `said`, or else with the one that has the same id.
fn list_over(raw: &[Value], said: &[Value], now: &[Value]) -> Value {
    // Indexed by their texts: a list may have thousands of elements.
    let mut equal = places_by(said, |element| Some(element.to_string()));
    let mut same_id = places_by(said, id_text);
    let mut is_taken = vec![false; said.len()];
    let mut item = |now: &Value| {
        let mut next = |queue: Option<&mut VecDeque<usize>>| {
            let queue = queue?;
            while let Some(place) = queue.pop_front() {
                if !std::mem::replace(&mut is_taken[place], true) {
                    return Some(place);
                }
            }
            None
        };
        let found = next(equal.get_mut(&now.to_string()))
            .or_else(|| next(id_text(now).and_then(|id| same_id.get_mut(&id))));
        found.map_or_else(|| now.clone(), |place| part_over(&raw[place], &said[place], now))
    };
    Value::Array(now.iter().map(&mut item).collect())
}

fn id_text(element: &Value) -> Option<String> {
    element.get("id").map(Value::to_string)
}

/// Returns the places of the elements that have a key, by key, in order.
fn places_by(elements: &[Value], key: impl Fn(&Value) -> Option<String>) -> HashMap<String, VecDeque<usize>> {
    let mut places: HashMap<String, VecDeque<usize>> = HashMap::new();
    for (place, element) in elements.iter().enumerate() {
        if let Some(key) = key(element) {
            places.entry(key).or_default().push_back(place);
        }
    }
    places
}

fn part_over(raw: &Value, said: &Value, now: &Value) -> Value {
    if said == now { raw.clone() } else { value_over(Some((raw, said)), now) }
}

/// Returns links with the spelling and the order that they have in `before`; new links follow. `name` returns the id that a link of
/// `before` leads to.
pub(crate) fn as_spelled(before: Option<&Value>, now: &Value, name: impl Fn(&Value) -> String) -> Value {
    let mut left: Vec<Option<&Value>> = items(Some(now)).iter().map(Some).collect();
    // Indexed by their texts: a task may have thousands of links.
    let mut by_text: BTreeMap<String, VecDeque<usize>> = BTreeMap::new();
    for (place, link) in items(Some(now)).iter().enumerate() {
        by_text.entry(text_of(link)).or_default().push_back(place);
    }
    let mut links = Vec::new();
    // A link that the file repeats in two spellings stays in both: the second finds its id among those that were taken.
    let (mut taken, mut names) = (BTreeSet::new(), BTreeSet::new());
    for link in items(before) {
        let name = name(link);
        let by_name = by_text.get_mut(&name).and_then(VecDeque::pop_front);
        let found = by_name.or_else(|| {
            let queue = by_text.get_mut(&text_of(link))?;
            queue.front().filter(|place| left[**place] == Some(link))?;
            queue.pop_front()
        });
        if let Some(link) = found.and_then(|place| left[place].take()) {
            taken.insert(link.to_string());
            names.insert(text_of(link));
        } else if !names.contains(&name) && !taken.contains(&link.to_string()) {
            continue;
        }
        links.push(link.clone());
    }
    links.extend(left.into_iter().flatten().cloned());
    Value::Array(links)
}

/// Returns an id or a link as a text. Programs that have only one kind of number read `1.0` as `1`.
pub(crate) fn text_of(value: &Value) -> String {
    let whole = |number: &f64| number.fract() == 0.0 && number.abs() < 1e15;
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if !number.is_u64() && !number.is_i64() => {
            number.as_f64().filter(whole).map_or_else(|| number.to_string(), |number| format!("{number:.0}"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    #[test]
    fn elements_keep_their_spelling_wherever_they_move() {
        let raw = json!([{"id": "1", "x": 0}, {"id": 2, "x": 0}, "text"]);
        let said = json!([{"id": 1}, {"id": 2}, "text"]);
        let now = json!(["text", {"id": 2, "new": true}, {"id": 1}, {"id": 1}]);
        let written = list_over(items(Some(&raw)), items(Some(&said)), items(Some(&now)));
        let expected = json!(["text", {"id": 2, "x": 0, "new": true}, {"id": "1", "x": 0}, {"id": 1}]);
        assert_eq!(written, expected);
    }

    #[test]
    fn long_lists_are_paired_in_linear_time() {
        let said: Vec<Value> = (0..100_000).map(|id| json!({"id": id})).collect();
        let now: Vec<Value> = said.iter().rev().cloned().collect();
        let start = Instant::now();
        assert_eq!(list_over(&said, &said, &now), Value::Array(now));
        // Comparing each element with each other takes minutes.
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}
