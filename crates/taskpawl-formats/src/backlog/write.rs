//! Writes tasks as files of Backlog.md.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::task::{Priority, Task};
use taskpawl_model::value::Map;
use taskpawl_model::value::TaskId;

use super::{FIELDS, FORMAT, Words, body, files_by_id, ids_in_names, people, priority_of, word_for};
use crate::error::Position;
use crate::existing_document::{self, ExistingDocument, as_spelled};
use crate::files::Files;
use crate::front_matter::{self, entry};
use crate::own_fields::OwnFields;
use crate::preserved::{kept, put, put_rest, take_away};
use crate::reading::{LeftOut, Written};
use crate::record::{option, option_list};
use crate::states;
use crate::times::{minutes, rfc3339, to_minutes};
use crate::unsupported;

/// The order of the fields in front matter; other fields follow.
const ORDER: &[&str] = &[
    "id",
    "title",
    "status",
    "assignee",
    "reporter",
    "created_date",
    "updated_date",
    "due_date",
    "labels",
    "milestone",
    "dependencies",
    "references",
    "documentation",
    "modified_files",
    "parent_task_id",
    "priority",
    "type",
    "ordinal",
];

pub(crate) fn write(tasks: &[Task], document: &ExistingDocument<'_>) -> Written {
    let before = document.files;
    // A configuration that cannot be read does not prevent the export: the default words are used.
    let Ok(words) = Words::read(before).or_else(|_| Words::read(&Files::default())) else {
        return Written::default();
    };
    let present = files_by_id(before);
    let theirs = numbers(&document.in_order(tasks), document, &present, &words);
    let name = |task: &Task| Some((task.id.clone(), document.name(&task.id)?.to_owned()));
    let said: BTreeMap<TaskId, String> = document.tasks.iter().filter_map(name).collect();
    let mut written = Written::default();
    unsupported::say(tasks, FIELDS, "Backlog.md has no place for it", &mut written.left_out);
    // A project may have its configuration elsewhere: only a new folder gets one.
    if before.iter().next().is_none() {
        written.files.insert(super::CONFIG, config(&words));
    }
    written.names = theirs.iter().map(|(id, name)| (id.clone(), name.to_uppercase())).collect();
    // Files of tasks that are not written stay, unless they were removed.
    let is_there = |name: &str| present.contains_key(&name.to_uppercase());
    for (task, name) in document.tasks.iter().zip(document.names).filter(|(_, name)| is_there(name)) {
        written.names.entry(task.id.clone()).or_insert_with(|| name.to_uppercase());
    }
    let below = below(tasks, &theirs);
    let below_before = self::below(document.tasks, &said);
    for task in tasks {
        let id = &theirs[&task.id];
        let (head, body) = parts(task, &words, &theirs, &mut written.left_out);
        // The export of the task as it was read. Comparing it with the new export tells if the file must change at all.
        let was = document.task(&task.id).map(|task| parts(task, &words, &said, &mut Vec::new()));
        let head = was.as_ref().map_or_else(|| head.clone(), |(was, _)| with_links_of(was, head.clone()));
        let name = present
            .get(&id.to_uppercase())
            .map_or_else(|| file_name(id, &task.name, &words.prefix), |name| (*name).to_owned());
        let is_same = was.as_ref().is_some_and(|(was, said)| *said == body && is_same(was, &head))
            && set_of(&below, &task.id) == set_of(&below_before, &task.id);
        let below = below.get(&task.id).map_or(&[] as &[&String], Vec::as_slice);
        let text = before.get(&name).and_then(|text| {
            let was = was.as_ref().map(|(was, _)| was);
            if is_same { Some(text.to_owned()) } else { text_over(text, was, &head, below, &body) }
        });
        written.files.insert(name, text.unwrap_or_else(|| text_of(&head, &body)));
    }
    written
}

/// Returns the ids of the direct subtasks of each task, in file form.
fn below<'t>(
    tasks: &'t [Task],
    theirs: &'t BTreeMap<TaskId, String>,
) -> BTreeMap<&'t TaskId, Vec<&'t String>> {
    let mut below: BTreeMap<&TaskId, Vec<&String>> = BTreeMap::new();
    for task in tasks {
        if let Some(parent) = &task.parent {
            below.entry(parent).or_default().extend(theirs.get(&task.id));
        }
    }
    below
}

fn set_of<'t>(below: &BTreeMap<&TaskId, Vec<&'t String>>, id: &TaskId) -> BTreeSet<&'t String> {
    below.get(id).into_iter().flatten().copied().collect()
}

/// Returns front matter with its links in the order that they have in `was`, because the order of links has no meaning.
fn with_links_of(was: &Map, mut head: Map) -> Map {
    if let Some(links) = head.remove("dependencies") {
        head.insert(
            "dependencies".to_owned(),
            as_spelled(was.get("dependencies"), &links, existing_document::text_of),
        );
    }
    head
}

/// Returns true if both have equal values, apart from the time of the last change.
fn is_same(was: &Map, head: &Map) -> bool {
    let others = |map: &Map| {
        let mut map = map.clone();
        map.remove("updated_date");
        map
    };
    others(was) == others(head)
}

fn config(words: &Words) -> String {
    let statuses = words.all.iter().map(|word| json!(word).to_string()).collect::<Vec<_>>().join(", ");
    format!(
        "project_name: \"taskpawl\"\ndefault_status: {}\nstatuses: [{statuses}]\nlabels: []\ndate_format: yyyy-mm-dd\ntask_prefix: \"{}\"\n",
        json!(words.first),
        words.prefix
    )
}

/// Assigns an id to every task: the one that it has, or else the next free one, below the id of its parent.
fn numbers(
    tasks: &[&Task],
    document: &ExistingDocument<'_>,
    present: &BTreeMap<String, &str>,
    words: &Words,
) -> BTreeMap<TaskId, String> {
    let own = |task: &Task| {
        // An id of another form stays if a file has it, but no new file gets one.
        if let Some(name) = document.name(&task.id) {
            return Some(name.to_owned());
        }
        let kept = kept(task, FORMAT);
        let id = kept.get("id").and_then(Value::as_str).unwrap_or(task.id.as_str()).to_owned();
        // An id that came from another file must not lead to a task of this folder.
        (is_number(&id) && !present.contains_key(&id.to_uppercase())).then_some(id)
    };
    let mut names = Names { taken: present.keys().cloned().collect(), ..Names::default() };
    let mut numbers: BTreeMap<TaskId, String> = BTreeMap::new();
    let (mut given, mut left) = (BTreeSet::new(), Vec::new());
    for task in tasks {
        match own(task).filter(|id| given.insert(id.to_uppercase())) {
            Some(id) => drop(numbers.insert(task.id.clone(), id)),
            None => left.push(task),
        }
    }
    names.taken.extend(given);
    // A removed file, or one that cannot be read, keeps its id.
    names
        .taken
        .extend(document.names.iter().map(|name| name.to_uppercase()).chain(ids_in_names(document.files)));
    // A preserved link to a missing task must not start to point to a new one.
    names.taken.extend(tasks.iter().flat_map(|task| links_away(task)));
    // An id of a subtask contains that of its parent, so parents are numbered first.
    let mut waiting: BTreeSet<&TaskId> = left.iter().map(|task| &task.id).collect();
    while !left.is_empty() {
        let before = left.len();
        left.retain(|task| {
            if task.parent.as_ref().is_some_and(|parent| waiting.contains(parent)) {
                return true;
            }
            waiting.remove(&task.id);
            let above = task.parent.as_ref().and_then(|parent| numbers.get(parent));
            let id = names.next(above, words);
            numbers.insert(task.id.clone(), id);
            false
        });
        if left.len() == before {
            // Circular parents, which no store contains, would otherwise loop forever here.
            waiting.clear();
        }
    }
    numbers
}

/// Returns the preserved links of a task that lead out of its folder, in upper case.
fn links_away(task: &Task) -> Vec<String> {
    let mut kept = kept(task, FORMAT);
    let parent = kept.get("parent_task_id").cloned();
    let links = take_away(&mut kept, "dependencies").into_iter().chain(parent);
    links.filter_map(|link| link.as_str().map(str::to_uppercase)).collect()
}

/// Ids that are taken, in upper case.
#[derive(Debug, Default)]
struct Names {
    taken: BTreeSet<String>,
    /// The first number that may be free, by the text before it. It only grows: all numbers below it are taken.
    next: BTreeMap<String, u64>,
}

impl Names {
    /// Returns the next free id, below that of the parent if that one is numbered.
    fn next(&mut self, above: Option<&String>, words: &Words) -> String {
        let above = above.filter(|above| is_number(above));
        let stem =
            above.map_or_else(|| format!("{}-", words.prefix.to_uppercase()), |above| format!("{above}."));
        let number = self.next.entry(stem.clone()).or_insert(1);
        loop {
            let id = format!("{stem}{number}");
            *number += 1;
            if self.taken.insert(id.to_uppercase()) {
                return id;
            }
        }
    }
}

/// Returns true if the text has the form of an id in Backlog.md, such as `TASK-2.1`.
fn is_number(text: &str) -> bool {
    let Some((prefix, number)) = text.split_once('-') else { return false };
    let is_digits =
        |part: &str| !part.is_empty() && part.len() < 10 && part.chars().all(|c| c.is_ascii_digit());
    !prefix.is_empty() && prefix.chars().all(|c| c.is_ascii_alphabetic()) && number.split('.').all(is_digits)
}

fn parts(
    task: &Task,
    words: &Words,
    theirs: &BTreeMap<TaskId, String>,
    left_out: &mut Vec<LeftOut>,
) -> (Map, String) {
    let (mut kept, mut head, own) = (kept(task, FORMAT), Map::new(), states::own(task));
    let id = &theirs[&task.id];
    let known = kept.remove("id").is_some_and(|known| known == *id);
    head.insert("id".to_owned(), json!(id));
    head.insert("title".to_owned(), json!(task.name));
    let word = words.word(own);
    put(&mut head, &mut kept, "status", json!(word), |raw| {
        raw.as_str().is_some_and(|raw| states::fits(task, words.status(raw)))
    });
    let assignee = option(task, "assignee");
    put(&mut head, &mut kept, "assignee", json!(people(assignee)), |raw| {
        raw.get(0).and_then(Value::as_str).map(|name| name.trim_start_matches('@')) == assignee
    });
    write_times(task, &mut head, &mut kept);
    head.insert("labels".to_owned(), json!(option_list(task, "labels")));
    let (on, parent) = links(task, theirs, left_out);
    let mut on: Vec<Value> = on.into_iter().map(Value::String).collect();
    on.extend(take_away(&mut kept, "dependencies"));
    head.insert("dependencies".to_owned(), Value::Array(on));
    if let Some(parent) = parent {
        head.insert("parent_task_id".to_owned(), json!(parent));
    }
    let usual = (task.priority != Priority::Medium).then(|| word_for(task.priority));
    put(&mut head, &mut kept, "priority", json!(usual), |raw| {
        raw.as_str().map(priority_of) == Some(task.priority)
    });
    let shown = usual.map_or(Priority::Medium, priority_of);
    let own_fields = OwnFields::of(task, known || task.id.as_str() == id, words.status(&word), shown);
    let body = match kept.remove("body") {
        Some(Value::String(body)) => body::updated(body, task),
        _ => body::of(task),
    };
    let respelled = body::respelled(task).into_iter();
    left_out.extend(respelled.map(|(field, why)| LeftOut::new(format!("{}: {field}", task.id), why)));
    let body = body::with_ours(body, &own_fields, &task.id);
    put_rest(&mut head, kept);
    (head, body)
}

fn write_times(task: &Task, head: &mut Map, kept: &mut Map) {
    let due = option(task, "dueDate").and_then(rfc3339);
    let (created, updated) = (Some(task.created_at), Some(task.updated_at));
    for (field, at) in [("created_date", created), ("updated_date", updated), ("due_date", due)] {
        let text = at.map(to_minutes);
        let usual = text.as_ref().filter(|_| field != "updated_date" || updated != created);
        put(head, kept, field, json!(usual), |raw| {
            let is_unsaid = field == "created_date" && raw.is_null();
            is_unsaid || raw.as_str().and_then(minutes).map(to_minutes) == text
        });
    }
}

fn links(
    task: &Task,
    theirs: &BTreeMap<TaskId, String>,
    left_out: &mut Vec<LeftOut>,
) -> (Vec<String>, Option<String>) {
    let mut find = |field: &str, id: &TaskId| {
        let found = theirs.get(id).cloned();
        if found.is_none() {
            left_out.push(LeftOut::new(format!("{}: {field}", task.id), format!("`{id}` is not exported")));
        }
        found
    };
    let on = task.dependencies.iter().filter_map(|on| find("dependencies", on)).collect();
    (on, task.parent.as_ref().and_then(|parent| find("parent", parent)))
}

/// Returns the text of an existing file with new values; unchanged parts keep their text. `was` has the fields as they would be written
/// for the task that was read from the file. `None` if the file cannot be edited in place.
fn text_over(before: &str, was: Option<&Map>, head: &Map, below: &[&String], body: &str) -> Option<String> {
    let (old_head, old_body) = front_matter::split(before)?;
    let old = front_matter::parse(old_head, &Position::default(), 1).ok()?;
    let mut head = was.map_or_else(|| head.clone(), |was| with_changes(&old, was, head));
    if let Some(links) = head.remove("dependencies") {
        // Upper and lower case are equal in ids.
        let as_now = |link: &Value| {
            let text = existing_document::text_of(link);
            texts(&links).find(|now| now.eq_ignore_ascii_case(&text)).unwrap_or(&text).to_owned()
        };
        head.insert("dependencies".to_owned(), as_spelled(old.get("dependencies"), &links, as_now));
    }
    // Not every file has this list, which repeats the parent ids of the subtasks. It is updated, but never added.
    if let Some(list) = old.get("subtasks").cloned() {
        let said: BTreeSet<String> = texts(&list).map(str::to_uppercase).collect();
        let is_so = said == below.iter().map(|id| id.to_uppercase()).collect();
        head.insert("subtasks".to_owned(), if is_so { list } else { json!(below) });
    }
    let new_head = front_matter::over(old_head, &head, ORDER)?;
    let (around, rest) = before.split_at(before.len() - old_body.len());
    let head_at = around.find('\n')? + 1;
    let (open, close) = (&around[..head_at], &around[head_at + old_head.len()..]);
    Some(format!("{open}{new_head}{close}{}", body_over(rest, body, open)))
}

/// Returns the fields of a file with the differences between two exports. A field without a difference stays as it is, or absent.
fn with_changes(old: &Map, was: &Map, now: &Map) -> Map {
    let mut head = old.clone();
    head.retain(|field, _| now.contains_key(field) || !was.contains_key(field));
    for (field, value) in now.iter().filter(|(field, value)| was.get(*field) != Some(*value)) {
        head.insert(field.clone(), value.clone());
    }
    head
}

/// Returns the text after the front matter. An unchanged body keeps its text; a new one gets the surrounding blank lines of the old one.
fn body_over(before: &str, body: &str, first_line: &str) -> String {
    let said = before.trim();
    if said.replace("\r\n", "\n") == body {
        return before.to_owned();
    }
    let end = if first_line.ends_with("\r\n") { "\r\n" } else { "\n" };
    let body = body.replace('\n', end);
    match before.split_once(said).filter(|_| !said.is_empty()) {
        Some((lead, tail)) => format!("{lead}{body}{tail}"),
        None => format!("{end}{body}{end}"),
    }
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn text_of(head: &Map, body: &str) -> String {
    let known = ORDER.iter().filter_map(|name| head.get_key_value(*name));
    let others = head.iter().filter(|(name, _)| !ORDER.contains(&name.as_str()));
    let head: String = known.chain(others).map(|(name, value)| entry(name, value)).collect();
    format!("---\n{head}---\n\n{body}\n")
}

/// Returns the file name that Backlog.md would choose: `tasks/task-1 - Title.md`. It only finds files whose names begin with the prefix.
fn file_name(id: &str, title: &str, prefix: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut slug = String::new();
    for c in title.chars().take(60) {
        let c = if is_kept(c) { c } else { '-' };
        if c != '-' || !slug.ends_with('-') {
            slug.push(c);
        }
    }
    let (id, start) = (id.to_lowercase(), format!("{}-", prefix.to_lowercase()));
    let start = if id.starts_with(&start) { "" } else { &start };
    format!("tasks/{start}{id} - {}.md", slug.trim_matches('-'))
}
