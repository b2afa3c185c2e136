//! Issues of beads: `.beads/issues.jsonl`, one JSON object per line.

mod derived;
mod lines;
mod write;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taskpawl_model::task::{Note, Priority, Status, Task};
use taskpawl_model::value::Period;
use taskpawl_model::value::{Map, Timestamp, format_time};

use crate::faults::Faults;
use crate::files::Files;
use crate::ids::Ids;
use crate::items::{Item, Items};
use crate::links;
use crate::own_fields::{NAME, OwnFields};
use crate::preserved::{keep, keep_if_other, keep_word, kept};
use crate::reading::{LeftOut, Options, Reading};
use crate::record::{Read, Record, Times, set_option};
use crate::states;
use crate::times::rfc3339;

pub(crate) use write::write;

use lines::{issue, lines, newest};

const FORMAT: &str = "beads";

const FIELDS: &[&str] = &[
    "name",
    "description",
    "status",
    "error",
    "priority",
    "dueDate",
    "assignee",
    "labels",
    "links",
    "estimate",
    "dependencies",
    "parent",
    "notes",
    "createdAt",
    "updatedAt",
    "startedAt",
    "finishedAt",
    "metadata.beads",
];

const TIMES: Times = Times {
    made: "created_at",
    changed: "updated_at",
    started: "started_at",
    ended: "closed_at",
    due: "due_at",
    parse: rfc3339,
    print: format_time,
};

/// The preserved member with the ids of links that cannot hold here.
const DROPPED: &str = "droppedLinks";

/// Fields that beads computes, and one that repeats a link. They are dropped on import.
const DERIVED: &[&str] = &["dependency_count", "dependent_count", "comment_count", "parent"];

/// First words of a close reason, with the status that they mean: all others mean `done`. Exports write these words.
const ENDS: &[(&str, Status)] =
    &[("failed", Status::Failed), ("cancelled", Status::Cancelled), ("skipped", Status::Skipped)];

pub(crate) fn is_one(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let Ok(Value::Object(map)) = serde_json::from_str(first) else { return false };
    map.contains_key("_schema")
        || map.contains_key("_type")
        || (map.contains_key("id") && map.contains_key("title"))
}

pub(crate) fn read(files: &Files, options: &Options, faults: &mut Faults) -> Reading {
    let (file, text) = files.first();
    let (mut left_out, mut records) = (Vec::new(), Vec::new());
    for record in lines(file, text, faults) {
        let place = record.place.clone();
        match issue(record, &mut left_out) {
            Ok(found) => records.extend(found),
            Err(error) => faults.add(error, &place),
        }
    }
    let records = newest(records, faults);
    let mut items = Items::new(options, faults);
    items.left_out = left_out;
    for (mut record, name, _) in records {
        let own_fields = take_ours(&mut record);
        let id = items.ids.add(&name, &name, own_fields.id.as_deref());
        items.push(record, name, id.expect("BUG: every issue is there once"), own_fields);
    }
    let mut reading = items.resolve(FIELDS, Some((TIMES.changed, TIMES.parse)), |item, ids, reading| {
        let line = item.record.place.line;
        let task = task(item, ids, options, &mut reading.left_out)?;
        reading.lines.extend(line);
        Ok(task)
    });
    links::settle(&mut reading, keep_dropped);
    reading
}

/// Preserves a dropped link: an export leaves it in the file.
fn keep_dropped(task: &mut Task, on: &str) {
    let mut kept = kept(task, FORMAT);
    let dropped = kept.entry(DROPPED).or_insert_with(|| json!([]));
    if let Value::Array(list) = dropped {
        list.push(json!(on));
    }
    keep(task, FORMAT, kept);
}

fn take_ours(record: &mut Record) -> OwnFields {
    let Some(Value::Object(metadata)) = record.map.get_mut("metadata") else { return OwnFields::default() };
    let text = metadata.remove(NAME);
    if metadata.is_empty() {
        record.map.remove("metadata");
    }
    text.as_ref().and_then(Value::as_str).map(OwnFields::parse).unwrap_or_default()
}

fn task(mut item: Item, ids: &Ids<'_>, options: &Options, left_out: &mut Vec<LeftOut>) -> Read<Task> {
    let (mut task, mut kept) = item.begin("title", "id", options.now)?;
    let Item { mut record, own_fields, .. } = item;
    let own_fields = &own_fields;
    for field in DERIVED {
        record.map.remove(*field);
    }
    task.description = record.text("description")?.unwrap_or_default();
    read_texts(&mut record, &mut task)?;
    read_priority(&mut record, &mut task, own_fields, &mut kept)?;
    record.times(&TIMES, &mut task, &mut kept)?;
    read_status(&mut record, &mut task, own_fields, options.now, &mut kept)?;
    left_out.extend(unknown_word(&task, &kept));
    read_links(&mut record, &mut task, ids, &mut kept, left_out)?;
    read_comments(&mut record, &mut task, &mut kept)?;
    let kind = record.text("issue_type")?.unwrap_or_else(|| "task".to_owned());
    keep_if_other(&mut kept, "issue_type", json!(kind), &json!("task"));
    kept.extend(record.map);
    keep(&mut task, FORMAT, kept);
    Ok(task)
}

fn read_texts(record: &mut Record, task: &mut Task) -> Read<()> {
    if let Some(assignee) = record.text("assignee")? {
        set_option(task, "assignee", assignee);
    }
    let labels = record.texts("labels")?;
    set_option(task, "labels", labels);
    match record.map.remove("estimated_minutes").filter(|value| !value.is_null()) {
        None => {}
        // Within 32 bits the multiplication by 60 cannot overflow.
        Some(value) => match value.as_u64().filter(|minutes| *minutes < 1 << 32) {
            // 0 minutes mean that there is no estimate.
            Some(0) => {}
            Some(minutes) => {
                let period = Period(std::time::Duration::from_secs(60 * minutes));
                set_option(task, "estimate", period.to_string());
            }
            None => return Err(record.wrong("estimated_minutes", "a number of minutes", &value)),
        },
    }
    Ok(())
}

fn read_priority(record: &mut Record, task: &mut Task, own_fields: &OwnFields, kept: &mut Map) -> Read<()> {
    let value = record.map.remove("priority").unwrap_or(json!(2));
    let number = value.as_u64().filter(|number| *number <= 4);
    let Some(number) = number else { return Err(record.wrong("priority", "a number from 0 to 4", &value)) };
    task.priority = priority_of(number);
    // Own fields only count while the word in the file still fits them: otherwise beads changed it after the export.
    if let Some(priority) = own_fields.priority.filter(|priority| number_of(*priority) == number) {
        task.priority = priority;
    }
    keep_if_other(kept, "priority", value, &json!(number_of(task.priority)));
    Ok(())
}

fn priority_of(number: u64) -> Priority {
    match number {
        0 => Priority::Critical,
        1 => Priority::High,
        2 => Priority::Medium,
        _ => Priority::Low,
    }
}

fn number_of(priority: Priority) -> u64 {
    match priority {
        Priority::Critical => 0,
        Priority::High => 1,
        Priority::Medium => 2,
        Priority::Low => 3,
    }
}

fn read_status(
    record: &mut Record,
    task: &mut Task,
    own_fields: &OwnFields,
    now: Timestamp,
    kept: &mut Map,
) -> Read<()> {
    let word = record.text("status")?.unwrap_or_else(|| "open".to_owned());
    let reason = record.text("close_reason")?;
    let (mut status, mut why) = status_of(&word, reason.as_deref());
    if let Some(own) = own_fields.status.filter(|own| word_of(*own).eq_ignore_ascii_case(&word)) {
        status = own;
    }
    if let Some(until) = deferred(&record.map).filter(|until| status == Status::Todo && *until > now) {
        // A deferred issue must not start yet.
        (status, why) = (Status::Blocked, Some(states::put_off(until, FORMAT)));
    }
    if status == Status::Blocked && why.is_none() && !word.eq_ignore_ascii_case("blocked") {
        why = Some(format!("`{word}` in beads"));
    }
    states::set(task, status, why.as_deref());
    if let Some(reason) = reason {
        keep_if_other(
            kept,
            "close_reason",
            json!(reason),
            &json!(close_reason(status, task.error.as_deref())),
        );
    }
    keep_word(kept, "status", &word, word_of(status), status);
    Ok(())
}

/// Returns the time until which an issue is deferred.
fn deferred(record: &Map) -> Option<Timestamp> {
    record.get("defer_until")?.as_str().and_then(rfc3339)
}

/// Words that are blocked here. beads keeps such issues from being ready.
const WAITING: &[&str] = &["blocked", "deferred", "pinned"];

/// Lists a status word that beads gets from its configuration.
fn unknown_word(task: &Task, kept: &Map) -> Option<LeftOut> {
    let word = kept.get("status")?.as_str()?;
    let (status, _) = status_of(word, None);
    let is_known = status != Status::Blocked || WAITING.contains(&word.to_lowercase().as_str());
    let why = || format!("the word `{word}` is not known, and counts as blocked");
    (!is_known).then(|| LeftOut::new(format!("{}: status", task.id), why()))
}

/// Returns the status for a word of beads. Unknown words are blocked, so that a custom status never counts as ready.
fn status_of(word: &str, reason: Option<&str>) -> (Status, Option<String>) {
    match word.to_lowercase().as_str() {
        "open" => (Status::Todo, None),
        "in_progress" | "hooked" => (Status::InProgress, None),
        "closed" => reason.and_then(ended_badly).unwrap_or((Status::Done, None)),
        _ => (Status::Blocked, None),
    }
}

fn ended_badly(reason: &str) -> Option<(Status, Option<String>)> {
    let found = ENDS.iter().find_map(|(word, status)| Some((reason.strip_prefix(word)?, *status)));
    match found {
        Some(("", status)) => Some((status, None)),
        Some((rest, status)) => rest.strip_prefix(": ").map(|why| (status, Some(why.to_owned()))),
        None => None,
    }
}

fn word_of(status: Status) -> &'static str {
    match status {
        Status::Todo => "open",
        Status::InProgress => "in_progress",
        Status::Blocked => "blocked",
        Status::Done | Status::Failed | Status::Cancelled | Status::Skipped => "closed",
    }
}

fn close_reason(status: Status, error: Option<&str>) -> Option<String> {
    let (word, _) = ENDS.iter().find(|(_, ends)| *ends == status)?;
    Some(error.map_or_else(|| (*word).to_owned(), |error| format!("{word}: {error}")))
}

/// Link types of beads with the task's link names. Links of other types are preserved only.
const LINKS: &[(&str, &str)] = &[
    ("relates-to", "relatesTo"),
    ("related", "relatesTo"),
    ("discovered-from", "discoveredFrom"),
    ("duplicates", "duplicates"),
];

/// Returns true for link types that keep an issue from being ready.
fn is_blocking(kind: &str) -> bool {
    matches!(kind, "blocks" | "waits-for" | "conditional-blocks" | "")
}

fn read_links(
    record: &mut Record,
    task: &mut Task,
    ids: &Ids<'_>,
    kept: &mut Map,
    left_out: &mut Vec<LeftOut>,
) -> Read<()> {
    let mut raw = Vec::new();
    let mut links: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for mut link in record.objects("dependencies")? {
        // Every link is preserved whole: it has members that a task cannot express, such as its time of creation.
        raw.push(Value::Object(link.map.clone()));
        let on = link.text("depends_on_id")?.unwrap_or_default();
        let kind = link.text("type")?.unwrap_or_else(|| "blocks".to_owned());
        let known = ids.get(&on).cloned();
        match (kind.as_str(), known) {
            (kind, Some(on)) if is_blocking(kind) => task.dependencies.push(on),
            ("parent-child", Some(on)) if task.parent.is_none() => task.parent = Some(on),
            ("parent-child", Some(_)) => {}
            (kind, None) if is_blocking(kind) || kind == "parent-child" => {
                left_out.push(LeftOut::new(
                    format!("{}: dependencies", task.id),
                    format!("`{on}` is not in the file"),
                ));
            }
            (kind, Some(on)) => {
                if let Some((_, name)) = LINKS.iter().find(|(theirs, _)| *theirs == kind) {
                    links.entry(name).or_default().push(on.to_string());
                }
            }
            (_, None) => {}
        }
    }
    if !links.is_empty() {
        set_option(task, "links", json!(links));
    }
    if !raw.is_empty() {
        kept.insert("dependencies".to_owned(), Value::Array(raw));
    }
    Ok(())
}

fn read_comments(record: &mut Record, task: &mut Task, kept: &mut Map) -> Read<()> {
    let mut raw = Vec::new();
    for mut comment in record.objects("comments")? {
        raw.push(Value::Object(comment.map.clone()));
        let at = comment.time("created_at", rfc3339)?.map_or(task.created_at, |(at, _)| at);
        let actor = comment.text("author")?.unwrap_or_default();
        let text = comment.text("text")?.unwrap_or_default();
        task.notes.push(Note { at, actor, text });
    }
    if !raw.is_empty() {
        kept.insert("comments".to_owned(), Value::Array(raw));
    }
    Ok(())
}
