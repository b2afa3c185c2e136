//! Issues of beads: `.beads/issues.jsonl`, one JSON object in each line.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::{Map, Note, Period, Priority, Status, Task, TaskId, Timestamp, format_time};

use crate::error::Place;
use crate::files::Files;
use crate::format::{LeftOut, Options, Reading, Written};
use crate::ids::Ids;
use crate::kept::{keep, keep_if_other, keep_word, kept, put, put_rest};
use crate::lost::{self, is_empty};
use crate::order::{self, Shape};
use crate::ours::{NAME, Ours};
use crate::record::{Read, Record, blank, fields, option, option_list, set_option};
use crate::states;
use crate::times::rfc3339;

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

/// What beads counts anew, and what a link says as well.
const COUNTED: &[&str] = &["dependency_count", "dependent_count", "comment_count", "parent"];

/// Words of a close reason that say that an issue did not end well.
const ENDS: &[(&str, Status)] =
    &[("failed", Status::Failed), ("cancelled", Status::Cancelled), ("skipped", Status::Skipped)];

pub(crate) fn is_one(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let Ok(Value::Object(map)) = serde_json::from_str(first) else { return false };
    map.contains_key("_schema")
        || map.contains_key("_type")
        || (map.contains_key("id") && map.contains_key("title"))
}

pub(crate) fn read(files: &Files, options: &Options) -> Read<Reading> {
    let (file, text) = files.first();
    let mut reading = Reading { fields: fields(FIELDS), ..Reading::default() };
    let (mut ids, mut records) = (Ids::new(options.prefix.as_ref()), Vec::new());
    for (line, place, value) in lines(file, text)? {
        let Some(mut record) = issue(value, place, &mut reading.left_out)? else { continue };
        let theirs = record.id("id")?;
        let ours = take_ours(&mut record);
        let Some(id) = ids.add(&theirs, ours.id.as_deref()) else {
            let problem = format!("issue `{theirs}` is there twice, the second time in line {line}");
            return Err(record.place.error("id", problem, "remove one of the two lines"));
        };
        let ours = ours.settle(&id);
        records.push((record, theirs, id, ours));
    }
    for (record, theirs, id, ours) in records {
        reading.tasks.push(task(record, &theirs, id, &ours, &ids, options, &mut reading.left_out)?);
    }
    Ok(reading)
}

/// Returns the lines that say something, from 1.
fn lines(file: &str, text: &str) -> Read<Vec<(u32, Place, Value)>> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let place = Place { line: Some(number), ..Place::of(file) };
        let value = serde_json::from_str(line).map_err(|error| place.json(&error, number))?;
        found.push((number, place, value));
    }
    Ok(found)
}

/// Returns the record of an issue; `None` for what is none.
fn issue(value: Value, place: Place, left_out: &mut Vec<LeftOut>) -> Read<Option<Record>> {
    let mut record = Record::new(value, place)?;
    if record.map.contains_key("_schema") {
        return Ok(None);
    }
    let kind = record.text("_type")?;
    let line = record.place.line.unwrap_or_default();
    match kind.as_deref() {
        None | Some("issue") => {}
        Some(other) => {
            left_out.push(LeftOut::new(
                format!("line {line}"),
                format!("it is a `{other}`, no issue; an export into this file leaves it there"),
            ));
            return Ok(None);
        }
    }
    if record.map.get("status").and_then(Value::as_str) == Some("tombstone") {
        let id = record.map.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        left_out.push(LeftOut::new(id, "it was deleted there"));
        return Ok(None);
    }
    Ok(Some(record))
}

fn take_ours(record: &mut Record) -> Ours {
    let Some(Value::Object(metadata)) = record.map.get_mut("metadata") else { return Ours::default() };
    let text = metadata.remove(NAME);
    if metadata.is_empty() {
        record.map.remove("metadata");
    }
    text.as_ref().and_then(Value::as_str).map(Ours::parse).unwrap_or_default()
}

fn task(
    mut record: Record,
    theirs: &str,
    id: TaskId,
    ours: &Ours,
    ids: &Ids,
    options: &Options,
    left_out: &mut Vec<LeftOut>,
) -> Read<Task> {
    let mut task = blank(id, record.title("title")?, options.now);
    let mut kept = Map::new();
    if task.id.as_str() != theirs && ours.id.is_none() {
        kept.insert("id".to_owned(), json!(theirs));
    }
    for count in COUNTED {
        record.map.remove(*count);
    }
    task.description = record.text("description")?.unwrap_or_default();
    read_texts(&mut record, &mut task)?;
    read_priority(&mut record, &mut task, ours, &mut kept)?;
    read_times(&mut record, &mut task, &mut kept)?;
    read_status(&mut record, &mut task, ours, options.now, &mut kept)?;
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
        Some(value) => match value.as_u64().filter(|minutes| *minutes < 1 << 32) {
            // Nothing takes no time: it is no estimate.
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

fn read_priority(record: &mut Record, task: &mut Task, ours: &Ours, kept: &mut Map) -> Read<()> {
    let value = record.map.remove("priority").unwrap_or(json!(2));
    let number = value.as_u64().filter(|number| *number <= 4);
    let Some(number) = number else { return Err(record.wrong("priority", "a number from 0 to 4", &value)) };
    task.priority = priority_of(number);
    if let Some(priority) = ours.priority.filter(|priority| number_of(*priority) == number) {
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

fn read_times(record: &mut Record, task: &mut Task, kept: &mut Map) -> Read<()> {
    let mut time = |record: &mut Record, field: &str| -> Read<Option<_>> {
        let Some((time, text)) = record.time(field, rfc3339)? else { return Ok(None) };
        keep_if_other(kept, field, json!(text), &json!(format_time(time)));
        Ok(Some(time))
    };
    if let Some(at) = time(record, "created_at")? {
        (task.created_at, task.updated_at) = (at, at);
    }
    if let Some(at) = time(record, "updated_at")? {
        task.updated_at = at;
    }
    task.started_at = time(record, "started_at")?;
    task.finished_at = time(record, "closed_at")?;
    if let Some(at) = time(record, "due_at")? {
        set_option(task, "dueDate", format_time(at));
    }
    Ok(())
}

fn read_status(
    record: &mut Record,
    task: &mut Task,
    ours: &Ours,
    now: Timestamp,
    kept: &mut Map,
) -> Read<()> {
    let word = record.text("status")?.unwrap_or_else(|| "open".to_owned());
    let reason = record.text("close_reason")?;
    let (mut status, mut why) = status_of(&word, reason.as_deref());
    if let Some(own) = ours.status.filter(|own| word_of(*own) == word) {
        status = own;
    }
    if let Some(until) = deferred(&record.map).filter(|until| status == Status::Todo && *until > now) {
        // It is no work that is ready.
        (status, why) = (Status::Blocked, Some(states::put_off(until, FORMAT)));
    }
    if status == Status::Blocked && why.is_none() && word != "blocked" {
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

/// Returns the time until which an issue is put off.
fn deferred(record: &Map) -> Option<Timestamp> {
    record.get("defer_until")?.as_str().and_then(rfc3339)
}

/// Returns the state that words of beads stand for. What is put aside is no work that is ready.
fn status_of(word: &str, reason: Option<&str>) -> (Status, Option<String>) {
    match word {
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

/// Which links of beads are which of ours; the others are kept.
const LINKS: &[(&str, &str)] = &[
    ("relates-to", "relatesTo"),
    ("related", "relatesTo"),
    ("discovered-from", "discoveredFrom"),
    ("duplicates", "duplicates"),
];

fn read_links(
    record: &mut Record,
    task: &mut Task,
    ids: &Ids,
    kept: &mut Map,
    left_out: &mut Vec<LeftOut>,
) -> Read<()> {
    let mut raw = Vec::new();
    let mut links: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for mut link in record.objects("dependencies")? {
        raw.push(Value::Object(link.map.clone()));
        let on = link.text("depends_on_id")?.unwrap_or_default();
        let kind = link.text("type")?.unwrap_or_else(|| "blocks".to_owned());
        let known = ids.get(&on).cloned();
        match (kind.as_str(), known) {
            ("blocks" | "waits-for", Some(on)) if !task.dependencies.contains(&on) => {
                task.dependencies.push(on);
            }
            ("parent-child", Some(on)) if task.parent.is_none() => task.parent = Some(on),
            ("blocks" | "waits-for" | "parent-child", Some(_)) => {}
            ("blocks" | "waits-for" | "parent-child", None) => {
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
    if task.parent.as_ref().is_some_and(|parent| task.dependencies.contains(parent)) {
        // Below it, it comes before its end by itself.
        task.dependencies.retain(|on| Some(on) != task.parent.as_ref());
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

pub(crate) fn write(tasks: &[Task], before: &Files) -> Written {
    let (name, text) = before.first();
    let name = if name.is_empty() { "issues.jsonl" } else { name };
    let theirs: BTreeMap<&TaskId, String> = tasks.iter().map(|task| (&task.id, their_id(task))).collect();
    let mut written = Written::default();
    lost::say(tasks, FIELDS, "beads has no place for it", &mut written.left_out);
    let mut issues: Vec<(String, Map)> = Vec::new();
    for task in tasks {
        issues.push((theirs[&task.id].clone(), issue_of(task, &theirs, &mut written.left_out)));
    }
    let lines = lines_of(&issues, text);
    written.files.insert(name, lines.into_iter().map(|line| line + "\n").collect::<String>());
    written
}

/// Returns the lines of a file: what is there where it is, and what is new behind its last issue.
fn lines_of(issues: &[(String, Map)], text: &str) -> Vec<String> {
    let mut left: BTreeMap<&str, &Map> = issues.iter().map(|(id, issue)| (id.as_str(), issue)).collect();
    let (mut lines, mut end) = (Vec::new(), None);
    for line in text.lines() {
        if is_other(line) {
            lines.push(line.to_owned());
        } else if let Some((before, issue)) = known_issue(line, &mut left) {
            lines.push(line_of(issue, before, line));
            end = Some(lines.len());
        }
    }
    let new = issues.iter().filter(|(id, _)| left.contains_key(id.as_str()));
    let new: Vec<String> = new.map(|(_, issue)| Value::Object(issue.clone()).to_string()).collect();
    let end = end.unwrap_or(lines.len());
    lines.splice(end..end, new);
    lines
}

/// Returns the issue of a line as it is there, and as it is to be; `None` for one that is not written, or was already.
fn known_issue<'i>(line: &str, left: &mut BTreeMap<&str, &'i Map>) -> Option<(Map, &'i Map)> {
    let Ok(Value::Object(before)) = serde_json::from_str(line) else { return None };
    let id = Record { map: before.clone(), place: Place::default() }.id("id").ok()?;
    Some((before, left.remove(id.as_str())?))
}

/// Returns the line of an issue: the one that is there, where it says the same; else with its fields in the order that they had.
fn line_of(issue: &Map, mut before: Map, line: &str) -> String {
    let mut issue = issue.clone();
    issue.extend(before.remove_entry("_type"));
    let says = |field: &str, value: &Value| !COUNTED.contains(&field) && !is_empty(value);
    before.retain(|field, value| says(field, value));
    let mut said = issue.clone();
    said.retain(|field, value| says(field, value));
    if said == before { line.to_owned() } else { order::compact(&Value::Object(issue), &Shape::of(line)) }
}

/// Returns whether a line is no issue and so stays.
fn is_other(line: &str) -> bool {
    let Ok(Value::Object(map)) = serde_json::from_str(line) else { return false };
    let kind = map.get("_type").and_then(Value::as_str).unwrap_or("issue");
    map.contains_key("_schema")
        || kind != "issue"
        || map.get("status").and_then(Value::as_str) == Some("tombstone")
}

fn their_id(task: &Task) -> String {
    kept(task, FORMAT).get("id").and_then(Value::as_str).unwrap_or(task.id.as_str()).to_owned()
}

fn issue_of(task: &Task, theirs: &BTreeMap<&TaskId, String>, left_out: &mut Vec<LeftOut>) -> Map {
    let (mut kept, mut out) = (kept(task, FORMAT), Map::new());
    let own = states::own(task);
    kept.remove("id");
    out.insert("id".to_owned(), json!(theirs[&task.id]));
    out.insert("title".to_owned(), json!(task.name));
    if !task.description.is_empty() {
        out.insert("description".to_owned(), json!(task.description));
    }
    write_status(task, own, &mut out, &mut kept);
    let number = number_of(task.priority);
    put(&mut out, &mut kept, "priority", json!(number), |raw| {
        raw.as_u64().map(priority_of) == Some(task.priority)
    });
    put(&mut out, &mut kept, "issue_type", json!("task"), |_| true);
    for (field, value) in [("assignee", option(task, "assignee")), ("due_at", option(task, "dueDate"))] {
        put(&mut out, &mut kept, field, json!(value), |raw| {
            field == "due_at" && raw.as_str().and_then(rfc3339) == value.and_then(rfc3339)
        });
    }
    let labels = option_list(task, "labels");
    if !labels.is_empty() {
        out.insert("labels".to_owned(), json!(labels));
    }
    write_estimate(task, &mut out, left_out);
    for (field, at) in [
        ("created_at", Some(task.created_at)),
        ("updated_at", Some(task.updated_at)),
        ("started_at", task.started_at),
        ("closed_at", closed_at(task, own)),
    ] {
        let text = at.map(format_time);
        put(&mut out, &mut kept, field, json!(text), |raw| raw.as_str().and_then(rfc3339) == at);
    }
    write_links(task, theirs, &mut out, &mut kept, left_out);
    write_comments(task, theirs, &mut out, &mut kept);
    put_rest(&mut out, kept);
    out
}

fn write_status(task: &Task, own: Status, out: &mut Map, kept: &mut Map) {
    let error = task.error.as_deref();
    let reason = close_reason(own, error);
    put(out, kept, "close_reason", json!(reason), |raw| {
        let raw = raw.as_str();
        word_of(own) == "closed"
            && raw.and_then(ended_badly).map_or(Status::Done, |(status, _)| status) == own
    });
    let reason = out.get("close_reason").and_then(Value::as_str).map(str::to_owned);
    let is_put_off = states::is_put_off(task, deferred(kept), FORMAT);
    put(out, kept, "status", json!(word_of(own)), |raw| {
        let status = raw.as_str().map(|word| status_of(word, reason.as_deref()).0);
        status.is_some_and(|status| states::fits(task, status) || (is_put_off && status == Status::Todo))
    });
}

/// An issue has this time if, and only if, it is closed.
fn closed_at(task: &Task, own: Status) -> Option<Timestamp> {
    (word_of(own) == "closed").then(|| task.finished_at.unwrap_or(task.updated_at))
}

fn write_estimate(task: &Task, out: &mut Map, left_out: &mut Vec<LeftOut>) {
    let Some(period) = option(task, "estimate").and_then(|text| text.parse::<Period>().ok()) else { return };
    let seconds = period.0.as_secs();
    out.insert("estimated_minutes".to_owned(), json!(seconds.div_ceil(60)));
    if seconds % 60 != 0 || period.0.subsec_nanos() != 0 {
        left_out.push(LeftOut::new(format!("{}: estimate", task.id), "beads counts whole minutes"));
    }
}

fn write_links(
    task: &Task,
    theirs: &BTreeMap<&TaskId, String>,
    out: &mut Map,
    kept: &mut Map,
    left_out: &mut Vec<LeftOut>,
) {
    let raw = kept.remove("dependencies");
    let raw: Vec<Map> = raw
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .cloned()
        .collect();
    let text = |map: &Map, field: &str| map.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut wanted: Vec<(String, &str)> = Vec::new();
    let mut want = |id: &TaskId, kind: &'static str| match theirs.get(id) {
        Some(id) => wanted.push((id.clone(), kind)),
        None => {
            left_out.push(LeftOut::new(format!("{}: {kind}", task.id), format!("`{id}` is not exported")));
        }
    };
    task.dependencies.iter().for_each(|on| want(on, "blocks"));
    task.parent.iter().for_each(|parent| want(parent, "parent-child"));
    let links = task.options.get("links").and_then(Value::as_object);
    for (kind, name) in LINKS.iter().filter(|(kind, _)| *kind != "related") {
        let list = links.and_then(|links| links.get(*name)).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).for_each(|id| want(&TaskId::from(id), kind));
    }
    let known: BTreeSet<&String> = theirs.values().collect();
    let above = task.parent.as_ref().and_then(|parent| theirs.get(parent));
    let mut links: Vec<Value> = Vec::new();
    let mut written: BTreeSet<usize> = BTreeSet::new();
    for map in raw {
        let (on, kind) = (text(&map, "depends_on_id"), text(&map, "type"));
        let place = wanted.iter().position(|(id, ours)| *id == on && same_kind(ours, &kind));
        written.extend(place);
        // What is above it waits for it anyway, here without a link of its own.
        let is_said_by_parent = above == Some(&on) && same_kind("blocks", &kind);
        if place.is_some() || is_said_by_parent || !is_mapped(&kind) || !known.contains(&on) {
            links.push(Value::Object(map));
        }
    }
    let new = wanted.into_iter().enumerate().filter(|(place, _)| !written.contains(place));
    links.extend(new.map(|(_, (on, kind))| {
        json!({ "issue_id": theirs[&task.id], "depends_on_id": on, "type": kind, "created_at": format_time(task.updated_at) })
    }));
    if !links.is_empty() {
        out.insert("dependencies".to_owned(), Value::Array(links));
    }
}

fn same_kind(ours: &str, theirs: &str) -> bool {
    ours == theirs
        || (ours == "blocks" && matches!(theirs, "waits-for" | ""))
        || (ours == "relates-to" && theirs == "related")
}

fn is_mapped(kind: &str) -> bool {
    matches!(kind, "blocks" | "waits-for" | "parent-child" | "")
        || LINKS.iter().any(|(theirs, _)| *theirs == kind)
}

fn write_comments(task: &Task, theirs: &BTreeMap<&TaskId, String>, out: &mut Map, kept: &mut Map) {
    let raw = kept.remove("comments");
    let raw = raw.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
    let is_same = |raw: &&Value, note: &Note| {
        let at = raw["created_at"].as_str().and_then(rfc3339).unwrap_or(task.created_at);
        raw["text"].as_str().unwrap_or_default() == note.text && at == note.at
    };
    let comment = |(number, note): (usize, &Note)| {
        raw.iter().find(|raw| is_same(raw, note)).cloned().unwrap_or_else(|| {
            json!({
                "id": format!("{}-{}", theirs[&task.id], number + 1), "issue_id": theirs[&task.id], "author": note.actor,
                "text": note.text, "created_at": format_time(note.at),
            })
        })
    };
    let comments: Vec<Value> = task.notes.iter().enumerate().map(comment).collect();
    if !comments.is_empty() {
        out.insert("comments".to_owned(), Value::Array(comments));
    }
}
