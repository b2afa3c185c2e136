//! A folder of Backlog.md: one Markdown file per task, with front matter and sections.

mod body;
mod words;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::task::{Priority, Task};
use taskpawl_model::value::{Map, format_time};

use crate::error::Position;
use crate::faults::{Faults, conflict};
use crate::files::{Files, has_extension};
use crate::front_matter;
use crate::ids::Ids;
use crate::items::{self, Items};
use crate::links;
use crate::own_fields::OwnFields;
use crate::preserved::{add_away, keep, keep_away, keep_if_other, keep_word};
use crate::reading::{LeftOut, Options, Reading};
use crate::record::{Read, Record, set_option};
use crate::states;
use crate::times::{minutes, to_minutes};

pub(crate) use write::write;

use words::Words;

const FORMAT: &str = "backlog";

/// The file with the project's status words.
const CONFIG: &str = "config.yml";

const FIELDS: &[&str] = &[
    "name",
    "description",
    "status",
    "priority",
    "dueDate",
    "assignee",
    "labels",
    "dependencies",
    "parent",
    "notes",
    "createdAt",
    "updatedAt",
    "metadata.backlog",
];

/// Folders with tasks.
const TASKS: &[&str] = &["tasks/", "completed/"];

/// Returns true if the file has the settings of the project.
pub(crate) fn has_settings(name: &str) -> bool {
    name == CONFIG
}

pub(crate) fn takes(name: &str) -> bool {
    let is_inside = TASKS.iter().chain(&["drafts/"]).any(|folder| {
        // Other systems leave files such as `._task-1.md` beside the real ones.
        let is_task = |file: &str| !file.contains('/') && !file.starts_with('.') && has_extension(file, "md");
        name.strip_prefix(folder).is_some_and(is_task)
    });
    name == CONFIG || is_inside
}

/// A record with the text after its front matter.
type Item = items::Item<String>;

pub(crate) fn read(files: &Files, options: &Options, faults: &mut Faults) -> Read<Reading> {
    let words = Words::read(files).or_else(|error| {
        // Its tasks still come in: custom words count as unknown until the settings can be read.
        faults.add_line(error);
        Words::read(&Files::default())
    })?;
    let mut items = Items::new(options, faults);
    for (file, text) in files.iter().filter(|(name, _)| *name != CONFIG) {
        if file.starts_with("drafts/") {
            items.left_out.push(LeftOut::new(file, "it is a draft").at(file, None));
            continue;
        }
        if !is_task_file(file, &words) {
            let why = format!("not a task: task files are named `{}-*.md`", words.prefix);
            items.left_out.push(LeftOut::new(file, why).at(file, None));
            continue;
        }
        if let Err(error) = add(file, text, &mut items) {
            items.faults.add_line(error);
        }
    }
    let mut reading = items.resolve(FIELDS, Some(("updated_date", minutes)), |item, ids, reading| {
        task(item, &words, ids, options, &mut reading.left_out)
    });
    links::settle(&mut reading, |task, on| add_away(task, FORMAT, "dependencies", json!(on)));
    Ok(reading)
}

/// Returns true if Backlog.md takes the file for a task: its name begins with the prefix of the project's ids. In a folder
/// without a configuration of its own, any file with a head may be one.
fn is_task_file(file: &str, words: &Words) -> bool {
    let name = file.rsplit('/').next().unwrap_or_default().to_lowercase();
    name.strip_prefix(&words.prefix.to_lowercase()).is_some_and(|rest| rest.starts_with('-'))
}

/// Adds the task of a file, unless an earlier file has its id.
fn add(file: &str, text: &str, items: &mut Items<'_, String>) -> Read<()> {
    if let Some(error) = conflict(file, text) {
        return Err(error);
    }
    let (mut record, body) = head(file, text)?;
    let name = record.id("id")?;
    let (body, own_fields) = body::take_ours(&body);
    // Backlog.md ignores the case of ids.
    let key = name.to_uppercase();
    let own = items.ids.prefixed(&name);
    // An id that an earlier export wrote is preferred, but not if another record took it. The fallback has the prefix, too.
    let known = own_fields.id.as_deref().filter(|id| items.ids.is_free(id)).unwrap_or(&own).to_owned();
    let id = items.assign(&record, &key, (&key, Some(&known)), |record| {
        let problem = format!("task `{name}` occurs twice");
        record.place.error("id", problem, "`backlog doctor` repairs that")
    });
    if let Some(id) = id {
        let own_fields = own_fields.settle(&id);
        items.list.push(Item { record, name, key, id, own_fields, more: body.to_owned() });
    }
    Ok(())
}

/// Returns the front matter of a file and the text after it.
fn head(file: &str, text: &str) -> Read<(Record, String)> {
    let place = Position::of(file);
    let Some((head, body)) = front_matter::split(text) else {
        let hint = "a task begins with a line `---`, its fields and another `---`";
        return Err(Position { line: Some(1), ..place }.error("", "it has no front matter", hint));
    };
    let map = front_matter::parse(head, &place, 2)?;
    Ok((Record::new(Value::Object(map), place)?, body.replace("\r\n", "\n").trim().to_owned()))
}

fn task(
    mut item: Item,
    words: &Words,
    ids: &Ids<'_>,
    options: &Options,
    left_out: &mut Vec<LeftOut>,
) -> Read<Task> {
    // YAML parses an unquoted title such as `2026` or `true` as another type.
    let title = item.record.map.get_mut("title");
    if let Some(title) = title.filter(|title| title.is_number() || title.is_boolean()) {
        *title = json!(title.to_string());
    }
    let (mut task, mut kept) = item.begin("title", "id", options.now)?;
    let Item { mut record, own_fields, more: body, .. } = item;
    read_people(&mut record, &mut task, &mut kept)?;
    let labels = record.texts("labels")?;
    set_option(&mut task, "labels", labels);
    let word = record.text("status")?.unwrap_or_else(|| words.first.clone());
    let mut status = words.status(&word);
    if let Some(own) = own_fields.status.filter(|own| words.word(*own).eq_ignore_ascii_case(&word)) {
        status = own;
    }
    states::set(&mut task, status, None);
    keep_word(&mut kept, "status", &word, &words.word(status), status);
    read_priority(&mut record, &mut task, &own_fields, &mut kept)?;
    left_out.extend(words.unknown(&task, &kept));
    read_times(&mut record, &mut task, &mut kept)?;
    read_links(&mut record, &mut task, ids, &mut kept, left_out)?;
    task.description = body::description(&body);
    task.notes = body::comments(&body, task.created_at);
    keep_if_other(&mut kept, "body", json!(body), &json!(body::of(&task)));
    // Each subtask names its parent itself; this list only repeats that.
    record.map.remove("subtasks");
    kept.extend(record.map);
    keep(&mut task, FORMAT, kept);
    Ok(task)
}

fn read_people(record: &mut Record, task: &mut Task, kept: &mut Map) -> Read<()> {
    let names = match record.map.get("assignee") {
        Some(Value::String(_)) => record.text("assignee")?.into_iter().collect(),
        _ => record.texts("assignee")?,
    };
    let first =
        names.first().map(|name| name.trim_start_matches('@').to_owned()).filter(|name| !name.is_empty());
    keep_if_other(kept, "assignee", json!(names), &json!(people(first.as_deref())));
    if let Some(name) = first {
        set_option(task, "assignee", name);
    }
    Ok(())
}

fn people(name: Option<&str>) -> Vec<String> {
    name.map(|name| format!("@{}", name.trim_start_matches('@'))).into_iter().collect()
}

fn read_priority(record: &mut Record, task: &mut Task, own_fields: &OwnFields, kept: &mut Map) -> Read<()> {
    let Some(word) = record.text("priority")? else { return Ok(()) };
    task.priority = priority_of(&word);
    if let Some(priority) =
        own_fields.priority.filter(|priority| priority_of(word_for(*priority)) == task.priority)
    {
        task.priority = priority;
    }
    // The default priority is only written if the file had it.
    let usual = (task.priority != Priority::Medium).then(|| word_for(task.priority));
    keep_if_other(kept, "priority", json!(word), &json!(usual));
    Ok(())
}

fn priority_of(word: &str) -> Priority {
    match word.to_lowercase().as_str() {
        "critical" | "urgent" => Priority::Critical,
        "high" => Priority::High,
        "low" => Priority::Low,
        _ => Priority::Medium,
    }
}

fn word_for(priority: Priority) -> &'static str {
    match priority {
        Priority::Critical | Priority::High => "high",
        Priority::Medium => "medium",
        Priority::Low => "low",
    }
}

fn read_times(record: &mut Record, task: &mut Task, kept: &mut Map) -> Read<()> {
    let mut time = |record: &mut Record, field: &str| -> Read<Option<_>> {
        let Some((time, text)) = record.time(field, minutes)? else { return Ok(None) };
        keep_if_other(kept, field, json!(text), &json!(to_minutes(time)));
        Ok(Some(time))
    };
    let created = time(record, "created_date")?;
    if let Some(at) = created {
        (task.created_at, task.updated_at) = (at, at);
    }
    if let Some(at) = time(record, "due_date")? {
        set_option(task, "dueDate", format_time(at));
    }
    if created.is_none() {
        // The file has no creation date, and an export does not add one.
        kept.insert("created_date".to_owned(), Value::Null);
    }
    if let Some((at, text)) = record.time("updated_date", minutes)? {
        task.updated_at = at;
        // An export omits this date if it equals the creation date.
        let usual = (at != task.created_at).then(|| to_minutes(at));
        keep_if_other(kept, "updated_date", json!(text), &json!(usual));
    }
    Ok(())
}

fn read_links(
    record: &mut Record,
    task: &mut Task,
    ids: &Ids<'_>,
    kept: &mut Map,
    left_out: &mut Vec<LeftOut>,
) -> Read<()> {
    let mut leave_out = |field: &str, on: &str| {
        left_out.push(LeftOut::new(format!("{}: {field}", task.id), format!("`{on}` is not there")));
    };
    let mut away = Vec::new();
    for on in record.texts("dependencies")? {
        if let Some(on) = ids.get(&on.to_uppercase()) {
            task.dependencies.push(on.clone());
        } else {
            leave_out("dependencies", &on);
            away.push(json!(on));
        }
    }
    keep_away(kept, "dependencies", away);
    if let Some(parent) = record.text("parent_task_id")? {
        if let Some(parent) = ids.get(&parent.to_uppercase()) {
            task.parent = Some(parent.clone());
        } else {
            leave_out("parent_task_id", &parent);
            kept.insert("parent_task_id".to_owned(), json!(parent));
        }
    }
    Ok(())
}

/// Returns the files of the tasks with these ids. Upper and lower case are equal in ids of Backlog.md.
pub(crate) fn files_of(files: &Files, ids: &BTreeSet<&str>) -> Vec<String> {
    let by_id = files_by_id(files);
    ids.iter().filter_map(|id| by_id.get(&id.to_uppercase())).map(|file| (*file).to_owned()).collect()
}

/// Returns the ids that the names of task files begin with, in upper case.
fn ids_in_names(files: &Files) -> impl Iterator<Item = String> {
    let names = files.names().filter_map(|name| TASKS.iter().find_map(|folder| name.strip_prefix(folder)));
    names.filter_map(|name| Some(name.split_once(" - ")?.0.to_uppercase()))
}

/// Returns the names of task files by the ids in them, in upper case.
fn files_by_id(files: &Files) -> BTreeMap<String, &str> {
    let tasks = files.iter().filter(|(name, _)| TASKS.iter().any(|folder| name.starts_with(folder)));
    let id = |(name, text)| Some((head(name, text).ok()?.0.id("id").ok()?.to_uppercase(), name));
    let mut by_id = BTreeMap::new();
    // Of two files with one id the first counts, as in `read`.
    for (id, name) in tasks.filter_map(id) {
        by_id.entry(id).or_insert(name);
    }
    by_id
}
