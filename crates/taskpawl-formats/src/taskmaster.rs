//! `tasks.json` of Task Master: lists of tasks by tag. Each task may have one level of subtasks.

mod write;

use serde_json::{Value, json};
use taskpawl_model::task::MAX_DEPTH;
use taskpawl_model::task::{Priority, Status, Task};
use taskpawl_model::value::TaskId;
use taskpawl_model::value::{Map, format_time};

use crate::error::Position;
use crate::existing_document::text_of;
use crate::files::Files;
use crate::format::{LeftOut, Options, Reading};
use crate::ids::Ids;
use crate::own_fields::{OwnFields, take_text};
use crate::preserved::{keep, keep_away, keep_if_other, keep_word};
use crate::record::{Read, Record, blank, fields, levels, set_option};
use crate::states;
use crate::times::rfc3339;
use crate::unsupported;

pub(crate) use write::write;

const FORMAT: &str = "taskmaster";

/// The tag of tasks without a tag.
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

/// Status words of Task Master. Exports write the first word of a status.
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

/// One record, before its links are resolved.
struct Item {
    record: Record,
    id: TaskId,
    own_fields: OwnFields,
    tag: String,
    /// The number of the parent task.
    above: Option<String>,
    theirs: String,
    /// The tag's own fields, stored with its first task only.
    of_tag: Map,
}

/// The preserved member with the fields of the tag.
const OF_TAG: &str = "ofTag";

/// Members of a tag's `metadata` that Task Master computes.
const COUNTED: &[&str] = &["lastModified", "updated", "taskCount", "completedCount"];

pub(crate) fn read(files: &Files, options: &Options) -> Read<Reading> {
    let (file, text) = files.first();
    let place = Position::of(file);
    let value: Value = taskpawl_json::read(text).map_err(|error| place.json(&error, 1))?;
    let mut reading = Reading { fields: fields(FIELDS), ..Reading::default() };
    let (mut ids, mut items) = (Ids::new(options.prefix.as_ref()), Vec::new());
    for (tag, records, of_tag) in tags(value, &place)? {
        let first = items.len();
        for record in records {
            add(record, &tag, &mut ids, &mut items)?;
        }
        // The fields of a tag are stored with its first task, because a task is the only place for them here.
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
        reading.names.push(item.theirs.clone());
        reading.tasks.push(task(item, &ids, options, &mut reading.left_out)?);
    }
    Ok(reading)
}

/// Returns the records and the other fields of each tag. Files of earlier versions have no tags.
fn tags(value: Value, place: &Position) -> Read<Vec<(String, Vec<Record>, Map)>> {
    let whole = Record::whole(value, place.clone())?;
    if is_without_tags(&whole.map) {
        let (records, of_tag) = records_of(whole)?;
        return Ok(vec![(MASTER.to_owned(), records, of_tag)]);
    }
    let mut tags = Vec::new();
    for (tag, value) in whole.map {
        let record = Record::whole(value, Position { record: format!("tag {tag}"), ..place.clone() })?;
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

fn is_without_tags(file: &Map) -> bool {
    file.get("tasks").is_some_and(Value::is_array)
}

/// Takes the records out of a tag, or out of a file without tags. Both have the same depth limit, as an export may add tags.
fn records_of(mut tag: Record) -> Read<(Vec<Record>, Map)> {
    let records = tag.wholes("tasks")?;
    tag.check_depth()?;
    if let Some(Value::Object(metadata)) = tag.map.get_mut("metadata") {
        metadata.retain(|field, _| !COUNTED.contains(&field.as_str()));
    }
    tag.map.retain(|_, value| !unsupported::is_empty(value));
    Ok((records, tag.map))
}

/// Returns true if a task can store the tag's fields, one level deeper than its own.
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
        let theirs = whole_below(&number, &below);
        subtask.name(&theirs);
        push(subtask, tag, theirs, Some(number.clone()), ids, items)?;
    }
    Ok(())
}

/// Returns the full number of a subtask, such as `3.1`: some files have that, some only its last part.
fn whole_below(above: &str, number: &str) -> String {
    let last = number.strip_prefix(above).and_then(|rest| rest.strip_prefix('.')).unwrap_or(number);
    format!("{above}.{last}")
}

fn push(
    mut record: Record,
    tag: &str,
    number: String,
    above: Option<String>,
    ids: &mut Ids,
    items: &mut Vec<Item>,
) -> Read<()> {
    let own_fields = take_text(&mut record.map).map(|text| OwnFields::parse(&text)).unwrap_or_default();
    let theirs = whole(tag, &number);
    let Some(id) = ids.add(&theirs, own_fields.id.as_deref()) else {
        let problem = format!("number `{number}` is there twice in the tag `{tag}`");
        return Err(record.place.error("id", problem, "give one of the two another number"));
    };
    let own_fields = own_fields.settle(&id);
    items.push(Item {
        record,
        id,
        own_fields,
        tag: tag.to_owned(),
        above,
        theirs: number,
        of_tag: Map::new(),
    });
    Ok(())
}

fn whole(tag: &str, number: &str) -> String {
    if tag == MASTER { number.to_owned() } else { format!("{tag}.{number}") }
}

fn task(item: Item, ids: &Ids, options: &Options, left_out: &mut Vec<LeftOut>) -> Read<Task> {
    let Item { mut record, id, own_fields, tag, above, theirs, of_tag } = item;
    let mut task = blank(id, record.title("title")?, options.now);
    let mut kept = Map::new();
    if own_fields.id.is_none() && task.id.as_str() != theirs {
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
    // The creation time is that of the import, which may be later than the last change in the file.
    if task.updated_at < task.created_at {
        task.created_at = task.updated_at;
    }
    read_words(&mut record, &mut task, &own_fields, above.is_some(), &mut kept)?;
    let numbers = record.map.get("dependencies").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut away = Vec::new();
    for (on, value) in record.texts("dependencies")?.into_iter().zip(numbers) {
        let leads_to =
            number_of_link(&value, &theirs, above.as_deref(), |top| ids.get(&whole(&tag, top)).is_some());
        match ids.get(&whole(&tag, &leads_to)).filter(|on| **on != task.id) {
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
    // Both repeat the number of the parent, which the position of the subtask already gives.
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

fn read_words(
    record: &mut Record,
    task: &mut Task,
    own_fields: &OwnFields,
    is_below: bool,
    kept: &mut Map,
) -> Read<()> {
    let word = record.text("status")?.unwrap_or_else(|| "pending".to_owned());
    let Some((_, status)) = WORDS.iter().find(|(theirs, _)| *theirs == word) else {
        let all: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
        return Err(record.wrong("status", &format!("one of {}", all.join(", ")), &json!(word)));
    };
    let status = own_fields.status.filter(|own| word_of(*own) == word).unwrap_or(*status);
    let why = (word == "deferred").then_some("`deferred` in Task Master");
    states::set(task, status, why);
    keep_word(kept, "status", &word, word_of(status), status);
    if let Some(word) = record.text("priority")? {
        let Some(priority) = Priority::from_word(&word) else {
            return Err(record.wrong("priority", "one of critical, high, medium, low", &json!(word)));
        };
        task.priority = priority;
        // Exports omit the default priority of subtasks, so one in the file must be preserved.
        if priority == Priority::Medium && is_below {
            kept.insert("priority".to_owned(), json!(word));
        }
    }
    Ok(())
}

/// Returns the full number that a dependency means. In a subtask, a number means a sibling. A string means a top-level task if that
/// exists, except for the parent, which depends on its subtasks anyway.
fn number_of_link(link: &Value, from: &str, above: Option<&str>, is_there: impl Fn(&str) -> bool) -> String {
    let text = text_of(link);
    let Some(above) = above.filter(|_| !text.contains('.')) else { return text };
    let sibling = format!("{above}.{text}");
    let is_top = text != above && !link.is_number() && is_there(&text);
    if is_top || (sibling == from && text != above) { text } else { sibling }
}

fn word_of(status: Status) -> &'static str {
    match status {
        // Task Master has no word for these two. Failed work is still to be done; skipped work is not.
        Status::Failed => "blocked",
        Status::Skipped => "cancelled",
        Status::Todo | Status::InProgress | Status::Blocked | Status::Done | Status::Cancelled => {
            WORDS.iter().find(|(_, theirs)| *theirs == status).map_or("pending", |(word, _)| word)
        }
    }
}
