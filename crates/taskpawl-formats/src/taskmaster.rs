//! `tasks.json` of Task Master: tasks by tag, each with subtasks one level deep.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::{MAX_DEPTH, Map, Priority, Status, Task, TaskId, format_time};

use crate::error::Place;
use crate::files::Files;
use crate::format::{LeftOut, Options, Reading, Written};
use crate::ids::Ids;
use crate::kept::{keep, keep_away, keep_if_other, keep_word, kept, put, put_rest, take_away};
use crate::lost;
use crate::order::{self, Shape};
use crate::ours::{Ours, put_text, take_text};
use crate::record::{Read, Record, blank, fields, levels, option, set_option};
use crate::states;
use crate::times::rfc3339;

const FORMAT: &str = "taskmaster";

/// The tag of tasks that belong to none.
const MASTER: &str = "master";

const FIELDS: &[&str] = &[
    "name",
    "description",
    "status",
    "priority",
    "assignee",
    "dependencies",
    "parent",
    "updatedAt",
    "metadata.taskmaster",
];

/// Words of Task Master; the first of a state is the one that is written.
const WORDS: &[(&str, Status)] = &[
    ("pending", Status::Todo),
    ("in-progress", Status::InProgress),
    ("review", Status::InProgress),
    ("done", Status::Done),
    ("completed", Status::Done),
    ("cancelled", Status::Cancelled),
    ("blocked", Status::Blocked),
    ("deferred", Status::Blocked),
];

pub(crate) fn is_one(text: &str) -> bool {
    let Ok(Value::Object(map)) = serde_json::from_str(text) else { return false };
    let is_tag = |value: &Value| value.get("tasks").is_some_and(Value::is_array);
    let is_plain = map.get("tasks").and_then(Value::as_array).is_some_and(|tasks| {
        tasks.first().is_some_and(|task| task.get("title").is_some() && task.get("id").is_some())
    });
    is_plain || (!map.is_empty() && !map.contains_key("tasks") && map.values().all(is_tag))
}

/// One record before links are known.
struct Item {
    record: Record,
    id: TaskId,
    ours: Ours,
    tag: String,
    /// The number of the task above.
    above: Option<String>,
    theirs: String,
    /// What the tag says of itself, with its first task.
    of_tag: Map,
}

/// The member of what is kept with a task that holds what its tag says of itself.
const OF_TAG: &str = "ofTag";

/// Members of the `metadata` of a tag that Task Master counts anew.
const COUNTED: &[&str] = &["lastModified", "updated", "taskCount", "completedCount"];

pub(crate) fn read(files: &Files, options: &Options) -> Read<Reading> {
    let (file, text) = files.first();
    let place = Place::of(file);
    let value: Value = serde_json::from_str(text).map_err(|error| place.json(&error, 1))?;
    let mut reading = Reading { fields: fields(FIELDS), ..Reading::default() };
    let (mut ids, mut items) = (Ids::new(options.prefix.as_ref()), Vec::new());
    for (tag, records, of_tag) in tags(value, &place)? {
        let first = items.len();
        for record in records {
            add(record, &tag, &mut ids, &mut items)?;
        }
        let why = match items.get_mut(first) {
            Some(item) if can_be_kept(&of_tag) => {
                item.of_tag = of_tag;
                continue;
            }
            Some(_) => "it is nested too deeply",
            None if of_tag.is_empty() => continue,
            None => "it has no tasks",
        };
        let why = format!("{why}; an export into this file leaves it there");
        reading.left_out.push(LeftOut::new(format!("tag {tag}"), why));
    }
    for item in items {
        reading.tasks.push(task(item, &ids, options, &mut reading.left_out)?);
    }
    Ok(reading)
}

/// Returns the records of each tag, and what else it says; files of earlier versions have none.
fn tags(value: Value, place: &Place) -> Read<Vec<(String, Vec<Record>, Map)>> {
    let whole = Record::whole(value, place.clone())?;
    if is_without_tags(&whole.map) {
        let (records, of_tag) = records_of(whole)?;
        return Ok(vec![(MASTER.to_owned(), records, of_tag)]);
    }
    let mut tags = Vec::new();
    for (tag, value) in whole.map {
        let record = Record::whole(value, Place { record: format!("tag {tag}"), ..place.clone() })?;
        if !record.map.contains_key("tasks") {
            return Err(record.place.error(
                "tasks",
                "it is missing",
                "a tag is an object with a list `tasks`",
            ));
        }
        let (records, of_tag) = records_of(record)?;
        tags.push((tag, records, of_tag));
    }
    Ok(tags)
}

/// Takes the records out of a tag, and out of a file without tags: one that is written has them, so neither may be nested deeper.
fn records_of(mut tag: Record) -> Read<(Vec<Record>, Map)> {
    let records = tag.wholes("tasks")?;
    tag.check_depth()?;
    if let Some(Value::Object(metadata)) = tag.map.get_mut("metadata") {
        metadata.retain(|field, _| !COUNTED.contains(&field.as_str()));
    }
    tag.map.retain(|_, value| !lost::is_empty(value));
    Ok((records, tag.map))
}

/// With a task it is one level deeper.
fn can_be_kept(of_tag: &Map) -> bool {
    of_tag.values().all(|value| levels(value) + 1 < MAX_DEPTH - 2)
}

fn add(mut record: Record, tag: &str, ids: &mut Ids, items: &mut Vec<Item>) -> Read<()> {
    let number = record.id("id")?;
    let subtasks = record.objects("subtasks")?;
    record.check_depth()?;
    push(record, tag, number.clone(), None, ids, items)?;
    for mut subtask in subtasks {
        let below = subtask.id("id")?;
        // Some write the whole number of a subtask, some its last part.
        let below = match below.strip_prefix(&format!("{number}.")) {
            Some(last) => last.to_owned(),
            None => below,
        };
        let theirs = format!("{number}.{below}");
        subtask.name(&theirs);
        push(subtask, tag, theirs, Some(number.clone()), ids, items)?;
    }
    Ok(())
}

fn push(
    mut record: Record,
    tag: &str,
    number: String,
    above: Option<String>,
    ids: &mut Ids,
    items: &mut Vec<Item>,
) -> Read<()> {
    let ours = take_text(&mut record.map).map(|text| Ours::parse(&text)).unwrap_or_default();
    let theirs = whole(tag, &number);
    let Some(id) = ids.add(&theirs, ours.id.as_deref()) else {
        let problem = format!("number `{number}` is there twice in the tag `{tag}`");
        return Err(record.place.error("id", problem, "give one of the two another number"));
    };
    let ours = ours.settle(&id);
    items.push(Item { record, id, ours, tag: tag.to_owned(), above, theirs: number, of_tag: Map::new() });
    Ok(())
}

fn whole(tag: &str, number: &str) -> String {
    if tag == MASTER { number.to_owned() } else { format!("{tag}.{number}") }
}

fn task(item: Item, ids: &Ids, options: &Options, left_out: &mut Vec<LeftOut>) -> Read<Task> {
    let Item { mut record, id, ours, tag, above, theirs, of_tag } = item;
    let mut task = blank(id, record.title("title")?, options.now);
    let mut kept = Map::new();
    if ours.id.is_none() && task.id.as_str() != theirs {
        kept.insert("id".to_owned(), json!(theirs));
    }
    keep_if_other(&mut kept, "tag", json!(tag), &json!(MASTER));
    task.description = record.text("description")?.unwrap_or_default();
    if let Some(assignee) = record.text("assignee")? {
        set_option(&mut task, "assignee", assignee);
    }
    if let Some((at, text)) = record.time("updatedAt", rfc3339)? {
        task.updated_at = at;
        keep_if_other(&mut kept, "updatedAt", json!(text), &json!(format_time(at)));
    } else {
        kept.insert("updatedAt".to_owned(), Value::Null);
    }
    if task.updated_at < task.created_at {
        task.created_at = task.updated_at;
    }
    read_words(&mut record, &mut task, &ours, above.is_some(), &mut kept)?;
    let numbers = record.map.get("dependencies").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut away = Vec::new();
    for (on, value) in record.texts("dependencies")?.into_iter().zip(numbers) {
        match dependency(&on, value.is_number(), &tag, above.as_deref(), ids) {
            Some(on) if !task.dependencies.contains(on) => task.dependencies.push(on.clone()),
            Some(_) => {}
            None => {
                left_out.push(LeftOut::new(
                    format!("{theirs}: dependencies"),
                    format!("`{on}` is not in the file"),
                ));
                away.push(value);
            }
        }
    }
    keep_away(&mut kept, "dependencies", away);
    task.parent = above.and_then(|above| ids.get(&whole(&tag, &above)).cloned());
    // They say where the subtask stands, which it does.
    record.map.remove("parentTaskId");
    record.map.remove("parentId");
    for text in ["details", "testStrategy"] {
        if record.map.get(text).and_then(Value::as_str) == Some("") {
            record.map.remove(text);
        }
    }
    kept.extend(record.map);
    if !of_tag.is_empty() {
        kept.insert(OF_TAG.to_owned(), Value::Object(of_tag));
    }
    keep(&mut task, FORMAT, kept);
    Ok(task)
}

fn read_words(record: &mut Record, task: &mut Task, ours: &Ours, is_below: bool, kept: &mut Map) -> Read<()> {
    let word = record.text("status")?.unwrap_or_else(|| "pending".to_owned());
    let Some((_, status)) = WORDS.iter().find(|(theirs, _)| *theirs == word) else {
        let all: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
        return Err(record.wrong("status", &format!("one of {}", all.join(", ")), &json!(word)));
    };
    let status = ours.status.filter(|own| word_of(*own) == word).unwrap_or(*status);
    let why = (word == "deferred").then_some("`deferred` in Task Master");
    states::set(task, status, why);
    keep_word(kept, "status", &word, word_of(status), status);
    if let Some(word) = record.text("priority")? {
        let Some(priority) = Priority::from_word(&word) else {
            return Err(record.wrong("priority", "one of critical, high, medium, low", &json!(word)));
        };
        task.priority = priority;
        // It is written where it was, though subtasks usually have none.
        if priority == Priority::Medium && is_below {
            kept.insert("priority".to_owned(), json!(word));
        }
    }
    Ok(())
}

/// Returns the task that a dependency means: within subtasks a number is that of a sibling, and a text that of a task at the top,
/// where there is one.
fn dependency<'i>(
    on: &str,
    is_number: bool,
    tag: &str,
    above: Option<&str>,
    ids: &'i Ids,
) -> Option<&'i TaskId> {
    let sibling = above.filter(|_| !on.contains('.')).map(|above| whole(tag, &format!("{above}.{on}")));
    let (sibling, top) = (sibling.and_then(|sibling| ids.get(&sibling)), ids.get(&whole(tag, on)));
    if is_number { sibling.or(top) } else { top.or(sibling) }
}

fn word_of(status: Status) -> &'static str {
    match status {
        // What failed or was left out is still to be done there, or not any more.
        Status::Failed => "blocked",
        Status::Skipped => "cancelled",
        Status::Todo | Status::InProgress | Status::Blocked | Status::Done | Status::Cancelled => {
            WORDS.iter().find(|(_, theirs)| *theirs == status).map_or("pending", |(word, _)| word)
        }
    }
}

/// Where a task stands in the file.
#[derive(Debug, Clone)]
struct Spot {
    tag: String,
    /// The number of the task at the top, and that below it.
    top: u64,
    below: Option<u64>,
}

impl Spot {
    fn number(&self) -> String {
        self.below.map_or_else(|| self.top.to_string(), |below| format!("{}.{below}", self.top))
    }
}

pub(crate) fn write(tasks: &[Task], before: &Files) -> Written {
    let (name, text) = before.first();
    let name = if name.is_empty() { "tasks.json" } else { name };
    let mut written = Written::default();
    lost::say(tasks, FIELDS, "Task Master has no place for it", &mut written.left_out);
    let spots = spots(tasks, &mut written.left_out);
    let mut file = envelope(text);
    let mut lists: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let (tops, subtasks): (Vec<&Task>, Vec<&Task>) =
        tasks.iter().partition(|task| spots[&task.id].below.is_none());
    let mut below: BTreeMap<(&str, u64), Vec<&Task>> = BTreeMap::new();
    for task in subtasks {
        let spot = &spots[&task.id];
        below.entry((spot.tag.as_str(), spot.top)).or_default().push(task);
    }
    for task in tops {
        let (mut out, spot) = (record_of(task, &spots, &mut written.left_out), &spots[&task.id]);
        let below = below.remove(&(spot.tag.as_str(), spot.top)).unwrap_or_default();
        let below: Vec<Value> = below
            .into_iter()
            .map(|other| Value::Object(record_of(other, &spots, &mut written.left_out)))
            .collect();
        out.insert("subtasks".to_owned(), Value::Array(below));
        lists.entry(&spot.tag).or_default().push(Value::Object(out));
    }
    let before = envelope_with_tasks(text);
    for (tag, mut list) in lists {
        order_links(&mut list, before.get(tag).and_then(|tag| tag.get("tasks")));
        let entry = file.entry(tag).or_insert_with(|| Value::Object(of_tag(tag, tasks, &spots)));
        if let Value::Object(entry) = entry {
            entry.insert("tasks".to_owned(), Value::Array(list));
        }
    }
    if file.is_empty() {
        file.insert(MASTER.to_owned(), json!({ "tasks": [] }));
    }
    let text = order::pretty(&Value::Object(file), &shape_of(text)) + "\n";
    written.files.insert(name, text);
    written
}

/// Returns what a tag said of itself where its tasks came from.
fn of_tag(tag: &str, tasks: &[Task], spots: &BTreeMap<TaskId, Spot>) -> Map {
    let mut kept = tasks.iter().filter(|task| spots[&task.id].tag == tag).map(|task| kept(task, FORMAT));
    match kept.find_map(|mut kept| kept.remove(OF_TAG)) {
        Some(Value::Object(of_tag)) => of_tag,
        _ => Map::new(),
    }
}

/// Returns the order of a file that has tags, as it is written in any case.
fn shape_of(text: &str) -> Shape {
    let shape = Shape::of(text);
    let is_bare = matches!(serde_json::from_str(text), Ok(Value::Object(file)) if is_without_tags(&file));
    if is_bare { shape.below(MASTER) } else { shape }
}

fn is_without_tags(file: &Map) -> bool {
    file.get("tasks").is_some_and(Value::is_array)
}

/// Returns the tags of a file without their tasks.
fn envelope(text: &str) -> Map {
    let Ok(Value::Object(mut file)) = serde_json::from_str::<Value>(text) else { return Map::new() };
    if is_without_tags(&file) {
        file.insert("tasks".to_owned(), json!([]));
        return Map::from_iter([(MASTER.to_owned(), Value::Object(file))]);
    }
    for tag in file.values_mut().filter_map(Value::as_object_mut) {
        tag.insert("tasks".to_owned(), json!([]));
    }
    file
}

/// Returns the tags of a file with their tasks.
fn envelope_with_tasks(text: &str) -> Map {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(file)) if is_without_tags(&file) => {
            Map::from_iter([(MASTER.to_owned(), Value::Object(file))])
        }
        Ok(Value::Object(file)) => file,
        _ => Map::new(),
    }
}

/// Puts the dependencies of tasks, and of those below them, into the order that they have in a file; new ones follow.
fn order_links(tasks: &mut [Value], before: Option<&Value>) {
    let Some(before) = before.and_then(Value::as_array) else { return };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let id = |task: &Value| task.get("id").map(text);
    let by_id: BTreeMap<String, &Value> = before.iter().filter_map(|task| Some((id(task)?, task))).collect();
    for task in tasks {
        let Some(was) = id(task).and_then(|id| by_id.get(&id)) else { continue };
        let order = was.get("dependencies").and_then(Value::as_array);
        let order: Vec<String> = order.into_iter().flatten().map(text).collect();
        if let Some(links) = task.get_mut("dependencies").and_then(Value::as_array_mut) {
            let place = |link: &Value| order.iter().position(|other| *other == text(link));
            links.sort_by_cached_key(|link| place(link).unwrap_or(order.len()));
        }
        if let Some(below) = task.get_mut("subtasks").and_then(Value::as_array_mut) {
            order_links(below, was.get("subtasks"));
        }
    }
}

/// Gives every task its number: the one that it has, else the next free one. Task Master goes one level deep.
fn spots(tasks: &[Task], left_out: &mut Vec<LeftOut>) -> BTreeMap<TaskId, Spot> {
    let by_id: BTreeMap<&TaskId, &Task> = tasks.iter().map(|task| (&task.id, task)).collect();
    let mut numbers = Numbers::default();
    let tops: BTreeMap<&TaskId, &TaskId> =
        tasks.iter().map(|task| (&task.id, top_of(task, &by_id))).collect();
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
    // Tasks that are above one another in a circle come from no store, and are not waited for.
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

/// The number that a task has there, or would have by its own id.
fn number_of(task: &Task) -> Option<(u64, Option<u64>)> {
    let kept = kept(task, FORMAT);
    let text = kept.get("id").and_then(Value::as_str).unwrap_or(task.id.as_str()).to_owned();
    let (top, below) = match text.split_once('.') {
        Some((top, below)) => (top, Some(below.parse().ok()?)),
        None => (text.as_str(), None),
    };
    let number = (top.parse::<u64>().ok()?, below);
    let again = number.1.map_or_else(|| number.0.to_string(), |below: u64| format!("{}.{below}", number.0));
    (again == text).then_some(number)
}

/// Returns the links of a task that lead out of the file that it came from.
fn links_away(task: &Task) -> Vec<String> {
    let links = take_away(&mut kept(task, FORMAT), "dependencies");
    links.iter().map(|link| link.as_str().map_or_else(|| link.to_string(), str::to_owned)).collect()
}

/// Numbers that are taken, by tag and by task at the top.
#[derive(Debug, Default)]
struct Numbers {
    given: BTreeSet<(String, u64)>,
    reserved: BTreeSet<(String, u64)>,
    reserved_below: BTreeSet<(String, u64, u64)>,
    below: BTreeSet<(String, u64, u64)>,
    /// No number below this one is free: at the top of a tag, or below a task.
    next: BTreeMap<(String, Option<u64>), u64>,
}

impl Numbers {
    fn reserve(&mut self, task: &Task, tag: &str, is_top: bool) {
        if let (true, Some((number, None))) = (is_top, number_of(task)) {
            self.reserved.insert((tag.to_owned(), number));
        }
        // What links lead to that is not there is no number for another task.
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

    /// As [`reserve`](Self::reserve), for links of a subtask, whose numbers are those of others beside it.
    fn reserve_beside(&mut self, task: &Task, above: &Spot) {
        let links = links_away(task).into_iter().filter_map(|link| link.parse().ok());
        self.reserved_below.extend(links.map(|number| (above.tag.clone(), above.top, number)));
    }

    fn top(&mut self, task: &Task, tag: &str) -> u64 {
        if let Some((number, None)) = number_of(task)
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
        if let Some((top, Some(number))) = number_of(task)
            && top == above.top
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
        WORDS.iter().any(|(word, status)| raw.as_str() == Some(word) && states::fits(task, *status))
    });
    // Subtasks have none there, unless somebody gave them one.
    let had_one = kept.remove("priority").is_some();
    if spot.below.is_none() || had_one || task.priority != Priority::Medium {
        out.insert("priority".to_owned(), json!(task.priority));
    }
    if let Some(assignee) = option(task, "assignee") {
        out.insert("assignee".to_owned(), json!(assignee));
    }
    let at = task.updated_at;
    put(&mut out, &mut kept, "updatedAt", json!(format_time(at)), |raw| {
        // Nobody said when, and nobody has to.
        raw.is_null() || raw.as_str().and_then(rfc3339) == Some(at)
    });
    let mut on = dependencies(task, spots, left_out);
    on.extend(take_away(&mut kept, "dependencies"));
    out.insert("dependencies".to_owned(), Value::Array(on));
    if let Some(above) = spot.below.map(|_| spot.top) {
        out.insert("parentTaskId".to_owned(), json!(above));
    }
    let has_id = known || task.id.as_str() == whole(&spot.tag, &spot.number());
    let status = WORDS.iter().find(|(theirs, _)| *theirs == word).map_or(own, |(_, status)| *status);
    if let Some(text) = Ours::of(task, has_id, status, task.priority).text() {
        put_text(&mut kept, text);
    }
    put_rest(&mut out, kept);
    out
}

fn dependencies(task: &Task, spots: &BTreeMap<TaskId, Spot>, left_out: &mut Vec<LeftOut>) -> Vec<Value> {
    let spot = &spots[&task.id];
    let mut list = Vec::new();
    for on in &task.dependencies {
        let why = match spots.get(on) {
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
