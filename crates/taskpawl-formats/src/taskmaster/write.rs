//! Writes tasks as `tasks.json` of Task Master.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::task::{Priority, Task};
use taskpawl_model::value::TaskId;
use taskpawl_model::value::{Map, format_time};

use super::{
    FIELDS, FORMAT, MASTER, OF_TAG, WORDS, is_without_tags, key, number_of_link, qualified, whole_below,
    word_of,
};
use crate::existing_document::{self, ExistingDocument, Kinds, as_spelled, text_of};
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

/// The position of a task in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Spot {
    tag: String,
    /// The number of the top-level task, and that of the subtask in it.
    top: u64,
    below: Option<u64>,
}

impl Spot {
    fn number(&self) -> String {
        self.below.map_or_else(|| self.top.to_string(), |below| format!("{}.{below}", self.top))
    }
}

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
    spots: BTreeMap<TaskId, Spot>,
    /// The positions that the tasks have in the file.
    said: BTreeMap<TaskId, Spot>,
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
        let mut below: BTreeMap<(&str, u64), Vec<&Task>> = BTreeMap::new();
        for task in self.tasks {
            let spot = &self.spots[&task.id];
            if spot.below.is_some() {
                below.entry((spot.tag.as_str(), spot.top)).or_default().push(task);
            }
        }
        let mut lists: BTreeMap<String, Vec<(Option<usize>, Value)>> = BTreeMap::new();
        for task in self.tasks {
            let spot = &self.spots[&task.id];
            if spot.below.is_some() {
                continue;
            }
            let mut out = self.record(task, left_out);
            let below = below.remove(&(spot.tag.as_str(), spot.top)).unwrap_or_default();
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

/// The records of a file.
#[derive(Default)]
struct Raw {
    /// The records without their subtasks, by tag and full number. Of two with one number the first counts.
    records: BTreeMap<(String, String), Map>,
    /// The index of each record in its list.
    index: BTreeMap<(String, String), usize>,
    /// The lists by tag, and by the number of the task above.
    lists: BTreeMap<(String, Option<String>), Vec<Value>>,
    /// The elements of lists that tasks were read from.
    read: BTreeSet<(String, Option<String>, usize)>,
    /// The numbers in use, of faulty records as well.
    numbers: BTreeSet<(String, String)>,
}

impl Raw {
    fn of(text: &str, document: &ExistingDocument<'_>) -> Self {
        let Ok(Value::Object(file)) = serde_json::from_str::<Value>(text) else { return Self::default() };
        let file = if is_without_tags(&file) {
            Map::from_iter([(MASTER.to_owned(), Value::Object(file))])
        } else {
            file
        };
        let known: BTreeSet<(String, &str)> =
            document.tasks.iter().map(tag_of).zip(document.names.iter().map(String::as_str)).collect();
        let is_read = |tag: &str, number: &str| known.contains(&(tag.to_owned(), number));
        let mut raw = Self::default();
        for (tag, value) in &file {
            raw.add_list(tag, None, value.get("tasks"), &is_read);
        }
        raw
    }

    fn add_list(
        &mut self,
        tag: &str,
        above: Option<&str>,
        list: Option<&Value>,
        is_read: &impl Fn(&str, &str) -> bool,
    ) {
        let Some(list) = list.and_then(Value::as_array) else { return };
        for (index, value) in list.iter().enumerate() {
            let Some(record) = value.as_object() else { continue };
            let own = record.get("id").map(text_of).unwrap_or_default();
            let number = above.map_or_else(|| own.clone(), |above| whole_below(above, &own));
            let key = (tag.to_owned(), number.clone());
            self.numbers.insert(key.clone());
            if self.records.contains_key(&key) || !is_read(tag, &number) {
                continue;
            }
            let mut record = record.clone();
            if above.is_none() && record.get("subtasks").is_some_and(Value::is_array) {
                let below = record.insert("subtasks".to_owned(), json!([]));
                self.add_list(tag, Some(&number), below.as_ref(), is_read);
            }
            self.records.insert(key.clone(), record);
            self.index.insert(key, index);
            self.read.insert((tag.to_owned(), above.map(str::to_owned), index));
        }
        self.lists.insert((tag.to_owned(), above.map(str::to_owned)), list.clone());
    }

    /// Returns a list with the elements of the file that no task was read from.
    fn with_unread(
        &self,
        list: Option<&(String, Option<String>)>,
        written: Vec<(Option<usize>, Value)>,
    ) -> Vec<Value> {
        let raw = list.and_then(|list| self.lists.get(list));
        let is_read = |index: usize| {
            list.is_some_and(|(tag, above)| self.read.contains(&(tag.clone(), above.clone(), index)))
        };
        existing_document::with_unread(written, raw.map_or(&[], Vec::as_slice), is_read)
    }
}

/// Assigns a position to every task: the present one, or else the next free number. Deeper subtasks go below their top-level task.
fn spots(
    tasks: &[&Task],
    document: &ExistingDocument<'_>,
    raw: &Raw,
    left_out: &mut Vec<LeftOut>,
) -> BTreeMap<TaskId, Spot> {
    let by_id: BTreeMap<&TaskId, &Task> = tasks.iter().map(|task| (&task.id, *task)).collect();
    let mut numbers = Numbers::of(document, raw);
    let tops: BTreeMap<&TaskId, &TaskId> =
        tasks.iter().map(|task| (&task.id, top_of(task, &by_id))).collect();
    // All numbers are reserved before the first new one is chosen, so that no new task gets the number of a later one.
    for task in tasks {
        let tag = tag_of(by_id[tops[&task.id]]);
        numbers.reserve(task, &tag, tops[&task.id] == &task.id);
    }
    let mut spots: BTreeMap<TaskId, Spot> = BTreeMap::new();
    for task in tasks.iter().filter(|task| tops[&task.id] == &task.id) {
        let tag = tag_of(task);
        let top = numbers.top(task, &tag);
        spots.insert(task.id.clone(), Spot { tag, top, below: None });
    }
    for task in tasks.iter().filter(|task| tops[&task.id] != &task.id) {
        numbers.reserve_beside(task, &spots[tops[&task.id]]);
    }
    for task in tasks.iter().filter(|task| tops[&task.id] != &task.id) {
        let above = spots[tops[&task.id]].clone();
        let below = numbers.below(task, &above);
        if task.parent.as_ref() != Some(tops[&task.id]) {
            let why = format!("Task Master goes one level deep: it stands below `{}`", tops[&task.id]);
            left_out.push(LeftOut::new(format!("{}: parent", task.id), why));
        }
        spots.insert(task.id.clone(), Spot { below: Some(below), ..above });
    }
    spots
}

fn top_of<'t>(task: &'t Task, by_id: &BTreeMap<&'t TaskId, &'t Task>) -> &'t TaskId {
    let mut top = task;
    // Circular parents come from no store, but must not loop forever.
    for _ in 0..by_id.len() {
        match top.parent.as_ref().and_then(|parent| by_id.get(parent)) {
            Some(parent) => top = parent,
            None => break,
        }
    }
    &top.id
}

fn tag_of(task: &Task) -> String {
    kept(task, FORMAT).get("tag").and_then(Value::as_str).unwrap_or(MASTER).to_owned()
}

/// Returns the number that the task has in the file, or else the one in its id.
fn number_of(task: &Task, document: Option<&ExistingDocument<'_>>) -> Option<(u64, Option<u64>)> {
    let kept = kept(task, FORMAT);
    let known =
        document.and_then(|document| document.name(&task.id)).or(kept.get("id").and_then(Value::as_str));
    let text = known.unwrap_or(task.id.as_str()).to_owned();
    let (top, below) = match text.split_once('.') {
        Some((top, below)) => (top, Some(below.parse().ok()?)),
        None => (text.as_str(), None),
    };
    let number = (top.parse::<u64>().ok()?, below);
    // Only a canonical number can be restored: `01` would come back as `1`.
    let again = number.1.map_or_else(|| number.0.to_string(), |below: u64| format!("{}.{below}", number.0));
    (again == text).then_some(number)
}

/// Returns the preserved links of a task that lead out of its file.
fn links_away(task: &Task) -> Vec<String> {
    take_away(&mut kept(task, FORMAT), "dependencies").iter().map(text_of).collect()
}

/// Numbers in use, by tag and top-level task.
#[derive(Default)]
struct Numbers<'t> {
    document: Option<&'t ExistingDocument<'t>>,
    given: BTreeSet<(String, u64)>,
    reserved: BTreeSet<(String, u64)>,
    reserved_below: BTreeSet<(String, u64, u64)>,
    below: BTreeSet<(String, u64, u64)>,
    /// The numbers of the records in the file.
    of_others: BTreeSet<(String, u64)>,
    of_others_below: BTreeSet<(String, u64, u64)>,
    /// The first number that may be free, by tag and, for subtasks, by top-level task.
    next: BTreeMap<(String, Option<u64>), u64>,
}

impl<'t> Numbers<'t> {
    fn of(document: &'t ExistingDocument<'t>, raw: &Raw) -> Self {
        let mut numbers = Self { document: Some(document), ..Self::default() };
        for (tag, number) in &raw.numbers {
            let (top, below) = number.split_once('.').unwrap_or((number, ""));
            match (top.parse(), below.parse()) {
                (Ok(top), Ok(below)) => drop(numbers.reserved_below.insert((tag.clone(), top, below))),
                (Ok(top), Err(_)) => drop(numbers.reserved.insert((tag.clone(), top))),
                (Err(_), _) => {}
            }
        }
        numbers.of_others.clone_from(&numbers.reserved);
        numbers.of_others_below.clone_from(&numbers.reserved_below);
        numbers
    }

    /// Returns true if a record of the file has the number, and not the task.
    fn is_of_other(&self, task: &Task, tag: &str, top: u64, below: Option<u64>) -> bool {
        let is_its_own = self.document.is_some_and(|document| document.name(&task.id).is_some());
        !is_its_own
            && match below {
                Some(below) => self.of_others_below.contains(&(tag.to_owned(), top, below)),
                None => self.of_others.contains(&(tag.to_owned(), top)),
            }
    }

    fn reserve(&mut self, task: &Task, tag: &str, is_top: bool) {
        if let (true, Some((number, None))) = (is_top, number_of(task, self.document)) {
            self.reserved.insert((tag.to_owned(), number));
        }
        // A preserved link to a missing task must not start to point to a new one.
        for link in links_away(task) {
            match link
                .split_once('.')
                .map_or((link.parse(), None), |(top, below)| (top.parse(), below.parse().ok()))
            {
                (Ok(top), None) => drop(self.reserved.insert((tag.to_owned(), top))),
                (Ok(top), Some(below)) => drop(self.reserved_below.insert((tag.to_owned(), top, below))),
                (Err(_), _) => {}
            }
        }
    }

    /// Like [`reserve`](Self::reserve), for links of a subtask: there, a number means a sibling.
    fn reserve_beside(&mut self, task: &Task, above: &Spot) {
        let links = links_away(task).into_iter().filter_map(|link| link.parse().ok());
        self.reserved_below.extend(links.map(|number| (above.tag.clone(), above.top, number)));
    }

    fn top(&mut self, task: &Task, tag: &str) -> u64 {
        if let Some((number, None)) = number_of(task, self.document)
            && !self.is_of_other(task, tag, number, None)
            && self.given.insert((tag.to_owned(), number))
        {
            return number;
        }
        let next = self.next.entry((tag.to_owned(), None)).or_insert(1);
        loop {
            let place = (tag.to_owned(), *next);
            *next += 1;
            if !self.reserved.contains(&place) && !self.given.contains(&place) {
                let number = place.1;
                self.given.insert(place);
                return number;
            }
        }
    }

    fn below(&mut self, task: &Task, above: &Spot) -> u64 {
        if let Some((top, Some(number))) = number_of(task, self.document)
            && top == above.top
            && !self.is_of_other(task, &above.tag, top, Some(number))
            && self.below.insert((above.tag.clone(), top, number))
        {
            return number;
        }
        let next = self.next.entry((above.tag.clone(), Some(above.top))).or_insert(1);
        loop {
            let place = (above.tag.clone(), above.top, *next);
            if !self.reserved_below.contains(&place) && self.below.insert(place) {
                return *next;
            }
            *next += 1;
        }
    }
}

fn record_of(task: &Task, spots: &BTreeMap<TaskId, Spot>, left_out: &mut Vec<LeftOut>) -> Map {
    let (mut kept, mut out, own) = (kept(task, FORMAT), Map::new(), states::own(task));
    let spot = &spots[&task.id];
    let known = kept.remove("id").is_some_and(|id| id == spot.number());
    kept.remove("tag");
    kept.remove(OF_TAG);
    out.insert("id".to_owned(), json!(spot.below.unwrap_or(spot.top)));
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
    if let Some(above) = spot.below.map(|_| spot.top) {
        out.insert("parentTaskId".to_owned(), json!(above));
    }
    let has_id = known || task.id.as_str() == qualified(&spot.tag, &spot.number());
    let status = WORDS.iter().find(|(theirs, _)| *theirs == word).map_or(own, |(_, status)| *status);
    if let Some(text) = OwnFields::of(task, has_id, status, task.priority).text() {
        put_text(&mut kept, text);
    }
    put_rest(&mut out, kept);
    out
}

/// Returns true if a subtask has a sibling with the number of `other`: a link without a dot would mean that one.
fn has_sibling(spots: &BTreeMap<TaskId, Spot>, spot: &Spot, other: &Spot) -> bool {
    let sibling = Spot { below: Some(other.top), ..spot.clone() };
    spots.values().any(|spot| *spot == sibling)
}

fn dependencies(task: &Task, spots: &BTreeMap<TaskId, Spot>, left_out: &mut Vec<LeftOut>) -> Vec<Value> {
    let spot = &spots[&task.id];
    let mut list = Vec::new();
    for on in &task.dependencies {
        let why = match spots.get(on) {
            Some(other)
                if spot.below.is_some() && other.below.is_none() && has_sibling(spots, spot, other) =>
            {
                format!("a subtask with the number of `{on}` stands beside it")
            }
            Some(other) if other.tag == spot.tag => {
                list.push(match (spot.below, other.below) {
                    (None, None) => json!(other.top),
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
