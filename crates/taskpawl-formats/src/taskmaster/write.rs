//! Writes tasks as `tasks.json` of Task Master.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taskpawl_model::task::{Priority, Task};
use taskpawl_model::value::{Map, format_time};

use super::raw::{Raw, number_of_link};
use super::spots::{Spots, spots};
use super::tags::is_without_tags;
use super::words::{FIELDS, FORMAT, MASTER, OF_TAG, WORDS, key, qualified, tag_of, word_of};
use crate::existing_document::{self, ExistingDocument, Kinds, as_spelled};
use crate::json_text;
use crate::own_fields::{OwnFields, put_text};
use crate::preserved::{kept, put, put_rest, take_away};
use crate::reading::{LeftOut, Written};
use crate::record::option;
use crate::states;
use crate::times::rfc3339;
use crate::unsupported;

/// Dependencies count as links, because one number has several spellings.
const KINDS: Kinds =
    Kinds { made: "", changed: "updatedAt", of_state: &[], links: &["dependencies"], repeats: &[] };

pub(crate) fn write(tasks: &[Task], document: &ExistingDocument<'_>) -> Written {
    let (name, text) = document.files.first();
    let name = if name.is_empty() { "tasks.json" } else { name };
    let mut written = Written::default();
    unsupported::say(tasks, FIELDS, "Task Master has no place for it", &mut written.left_out);
    let tasks = document.in_order(tasks);
    let records = Records::of(&tasks, document, &mut written.left_out);
    let mut lists = records.lists(&mut written.left_out);
    let names = records.spots.iter().map(|(id, spot)| (id.clone(), key(&spot.tag, &spot.number())));
    written.names = names.collect();
    let text = match envelope(text) {
        Some(mut file) if is_without_tags(&file) && lists.keys().all(|tag| tag == MASTER) => {
            // A file without tags stays so, unless a task belongs to another tag.
            file.insert("tasks".to_owned(), Value::Array(lists.remove(MASTER).unwrap_or_default()));
            json_text::over(text, &Value::Object(file))
        }
        file => {
            let file = with_tags(file.unwrap_or_default(), lists, &records);
            json_text::over(text, &Value::Object(file))
        }
    };
    written.files.insert(name, text);
    written
}

/// Returns the file with the tasks in their tags.
fn with_tags(mut file: Map, lists: BTreeMap<String, Vec<Value>>, records: &Records<'_>) -> Map {
    if is_without_tags(&file) {
        file = Map::from_iter([(MASTER.to_owned(), Value::Object(file))]);
    }
    for (tag, list) in lists {
        let entry = file.entry(tag.as_str()).or_insert_with(|| Value::Object(records.of_tag(&tag)));
        if let Value::Object(entry) = entry {
            entry.insert("tasks".to_owned(), Value::Array(list));
        }
    }
    if file.is_empty() {
        file.insert(MASTER.to_owned(), json!({ "tasks": [] }));
    }
    file
}

/// Returns the file without its tasks, but with their lists.
fn envelope(text: &str) -> Option<Map> {
    let Ok(Value::Object(mut file)) = serde_json::from_str::<Value>(text) else { return None };
    let clear = |tag: &mut Map| {
        if let Some(Value::Array(tasks)) = tag.get_mut("tasks") {
            tasks.clear();
        }
    };
    if is_without_tags(&file) {
        clear(&mut file);
    } else {
        file.values_mut().filter_map(Value::as_object_mut).for_each(clear);
    }
    Some(file)
}

/// The records of the tasks, and those of the file.
struct Records<'t> {
    tasks: &'t [&'t Task],
    document: &'t ExistingDocument<'t>,
    spots: Spots,
    /// The positions that the tasks have in the file.
    said: Spots,
    raw: Raw,
}

impl<'t> Records<'t> {
    fn of(tasks: &'t [&'t Task], document: &'t ExistingDocument<'t>, left_out: &mut Vec<LeftOut>) -> Self {
        let before: Vec<&Task> = document.tasks.iter().collect();
        let said = spots(&before, document, &Raw::default(), &mut Vec::new());
        let raw = Raw::of(document.files.first().1, document);
        let spots = spots(tasks, document, &raw, left_out);
        Self { tasks, document, spots, said, raw }
    }

    /// Returns the records of the top-level tasks by tag, with their subtasks.
    fn lists(&self, left_out: &mut Vec<LeftOut>) -> BTreeMap<String, Vec<Value>> {
        let mut below: BTreeMap<(&str, &str), Vec<&Task>> = BTreeMap::new();
        for task in self.tasks {
            let spot = &self.spots[&task.id];
            if spot.below.is_some() {
                below.entry((spot.tag.as_str(), spot.top.as_str())).or_default().push(task);
            }
        }
        let mut lists: BTreeMap<String, Vec<(Option<usize>, Value)>> = BTreeMap::new();
        for task in self.tasks {
            let spot = &self.spots[&task.id];
            if spot.below.is_some() {
                continue;
            }
            let mut out = self.record(task, left_out);
            let below = below.remove(&(spot.tag.as_str(), spot.top.as_str())).unwrap_or_default();
            let below: Vec<(Option<usize>, Value)> = below
                .into_iter()
                .map(|other| (self.index(other), Value::Object(self.record(other, left_out))))
                .collect();
            let list = self.document.name(&task.id).map(|name| (spot.tag.clone(), Some(name.to_owned())));
            let below = self.raw.with_unread(list.as_ref(), below);
            // A record without a list gets none as long as it has no subtasks.
            let had_none = self.raw(task).is_some_and(|raw| !raw.contains_key("subtasks"));
            if !(below.is_empty() && (had_none || out.get("subtasks").is_some_and(Value::is_null))) {
                out.insert("subtasks".to_owned(), Value::Array(below));
            }
            lists.entry(spot.tag.clone()).or_default().push((self.index(task), Value::Object(out)));
        }
        for (tag, _) in self.raw.lists.keys().filter(|(_, above)| above.is_none()) {
            lists.entry(tag.clone()).or_default();
        }
        let whole = |(tag, list): (String, Vec<(Option<usize>, Value)>)| {
            let list = self.raw.with_unread(Some(&(tag.clone(), None)), list);
            (tag, list)
        };
        lists.into_iter().map(whole).collect()
    }

    /// Returns the index of a task's record in its list of the file.
    fn index(&self, task: &Task) -> Option<usize> {
        let (document, name) = (self.document.task(&task.id)?, self.document.name(&task.id)?);
        self.raw.index.get(&(tag_of(document), name.to_owned())).copied()
    }

    /// Returns the record of a task in the file.
    fn raw(&self, task: &Task) -> Option<&Map> {
        let (document, name) = (self.document.task(&task.id)?, self.document.name(&task.id)?);
        self.raw.records.get(&(tag_of(document), name.to_owned()))
    }

    fn record(&self, task: &Task, left_out: &mut Vec<LeftOut>) -> Map {
        let now = record_of(task, &self.spots, left_out);
        let Some((raw, document)) = self.raw(task).zip(self.document.task(&task.id)) else { return now };
        let said = record_of(document, &self.said, &mut Vec::new());
        let mut out = existing_document::over(raw, &said, &now, &KINDS);
        let is_moved = self.spots[&task.id] != self.said[&task.id];
        let (before, links) = (said.get("dependencies"), now.get("dependencies"));
        if let Some(links) = links
            && (is_moved || !KINDS.is_same("dependencies", before, Some(links)))
        {
            // Numbers are relative to the position of a subtask, so a moved task gets its links in the new form.
            let links = if is_moved { links.clone() } else { self.spelled(raw, document, links) };
            out.insert("dependencies".to_owned(), links);
        }
        out
    }

    /// Returns links with the spelling that they have in the record of the task.
    fn spelled(&self, raw: &Map, task: &Task, links: &Value) -> Value {
        let (tag, name) = (tag_of(task), self.document.name(&task.id).unwrap_or_default());
        let above = name.rsplit_once('.').map(|(above, _)| above);
        let is_there = |number: &str| self.raw.records.contains_key(&(tag.clone(), number.to_owned()));
        as_spelled(raw.get("dependencies"), links, |link| number_of_link(link, name, above, is_there))
    }

    /// Returns the preserved fields of a tag.
    fn of_tag(&self, tag: &str) -> Map {
        let tasks = self.tasks.iter().filter(|task| self.spots[&task.id].tag == tag);
        match tasks.map(|task| kept(task, FORMAT)).find_map(|mut kept| kept.remove(OF_TAG)) {
            Some(Value::Object(of_tag)) => of_tag,
            _ => Map::new(),
        }
    }
}

fn record_of(task: &Task, spots: &Spots, left_out: &mut Vec<LeftOut>) -> Map {
    let (mut kept, mut out, own) = (kept(task, FORMAT), Map::new(), states::own(task));
    let spot = &spots[&task.id];
    let known = kept.remove("id").is_some_and(|id| id == spot.number());
    kept.remove("tag");
    kept.remove(OF_TAG);
    out.insert("id".to_owned(), number(spot.below.as_ref().unwrap_or(&spot.top)));
    out.insert("title".to_owned(), json!(task.name));
    out.insert("description".to_owned(), json!(task.description));
    for text in ["details", "testStrategy"] {
        put(&mut out, &mut kept, text, json!(""), |_| true);
    }
    let word = word_of(own);
    put(&mut out, &mut kept, "status", json!(word), |raw| {
        WORDS.iter().any(|(word, status)| {
            raw.as_str().is_some_and(|raw| raw.eq_ignore_ascii_case(word)) && states::fits(task, *status)
        })
    });
    // Subtasks have no priority in Task Master, unless the file had one or the task's differs from the default.
    let had_one = kept.remove("priority").is_some();
    if spot.below.is_none() || had_one || task.priority != Priority::Medium {
        out.insert("priority".to_owned(), json!(task.priority));
    }
    if let Some(assignee) = option(task, "assignee") {
        out.insert("assignee".to_owned(), json!(assignee));
    }
    let at = task.updated_at;
    put(&mut out, &mut kept, "updatedAt", json!(format_time(at)), |raw| {
        // `null` was preserved for a record without a time. Such records do not get one.
        raw.is_null() || raw.as_str().and_then(rfc3339) == Some(at)
    });
    let mut on = dependencies(task, spots, left_out);
    on.extend(take_away(&mut kept, "dependencies"));
    out.insert("dependencies".to_owned(), Value::Array(on));
    if spot.below.is_some() {
        out.insert("parentTaskId".to_owned(), number(&spot.top));
    }
    let has_id = known || task.id.as_str() == qualified(&spot.tag, &spot.number());
    let status = WORDS.iter().find(|(theirs, _)| *theirs == word).map_or(own, |(_, status)| *status);
    if let Some(text) = OwnFields::of(task, has_id, status, task.priority).text() {
        put_text(&mut kept, text);
    }
    put_rest(&mut out, kept);
    out
}

/// Returns a number as a number, and any other text as it is.
fn number(text: &str) -> Value {
    text.parse()
        .ok()
        .filter(|number: &u64| number.to_string() == text)
        .map_or_else(|| json!(text), |number| json!(number))
}

fn dependencies(task: &Task, spots: &Spots, left_out: &mut Vec<LeftOut>) -> Vec<Value> {
    let spot = &spots[&task.id];
    let mut list = Vec::new();
    for on in &task.dependencies {
        let why = match spots.get(on) {
            Some(other)
                if spot.below.is_some() && other.below.is_none() && spots.has_sibling(spot, other) =>
            {
                format!("a subtask with the number of `{on}` is its sibling")
            }
            Some(other) if other.tag == spot.tag => {
                list.push(match (&spot.below, &other.below) {
                    (None, None) => number(&other.top),
                    _ => json!(other.number()),
                });
                continue;
            }
            Some(other) => format!("`{on}` is in another tag, `{}`", other.tag),
            None => format!("`{on}` is not exported"),
        };
        left_out.push(LeftOut::new(format!("{}: dependencies", task.id), why));
    }
    list
}
