//! Writes tasks as issues of beads.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::task::{Note, Status, Task};
use taskpawl_model::value::{Map, Timestamp, format_time};
use taskpawl_model::value::{Period, TaskId};

use super::derived::Recount;
use super::{
    DROPPED, FIELDS, FORMAT, LINKS, close_reason, deferred, ended_badly, is_blocking, number_of, priority_of,
    status_of, word_of,
};
use crate::error::Position;
use crate::existing_document::{self, ExistingDocument, Kinds};
use crate::json_text;
use crate::lines::{self, Line};
use crate::preserved::{kept, put, put_rest};
use crate::reading::{LeftOut, Written};
use crate::record::{Record, option, option_list};
use crate::states;
use crate::times::rfc3339;
use crate::unsupported;

const KINDS: Kinds = Kinds {
    made: "created_at",
    changed: "updated_at",
    of_state: &["started_at", "closed_at"],
    links: &[],
    repeats: &[],
};

pub(crate) fn write(tasks: &[Task], document: &ExistingDocument<'_>) -> Written {
    let (name, text) = document.files.first();
    let name = if name.is_empty() { "issues.jsonl" } else { name };
    let mut written = Written::default();
    unsupported::say(tasks, FIELDS, "beads has no place for it", &mut written.left_out);
    let mut issues = Issues::of(tasks, document);
    let list: Vec<(String, Map)> =
        tasks.iter().map(|task| (issues.id(task), issues.issue(task, &mut written.left_out))).collect();
    let names = tasks.iter().map(|task| (task.id.clone(), issues.id(task)));
    written.names = names.collect();
    let mut said = Issues::of(document.tasks, document);
    let known = document.tasks.iter().map(|task| (said.id(task), said.issue(task, &mut Vec::new())));
    let read = Read { issues: known.collect(), lines: document.lines() };
    written.files.insert(name, text_of(&list, &read, text));
    written
}

/// The issues that were read from the file.
struct Read<'d> {
    issues: BTreeMap<String, Map>,
    /// The lines that they were read from, counted from 1. Without them, each id is there once.
    lines: Option<&'d BTreeSet<u32>>,
}

impl Read<'_> {
    fn is_read(&self, id: &str, line: u32) -> bool {
        self.issues.contains_key(id) && self.lines.is_none_or(|lines| lines.contains(&line))
    }
}

/// Returns the text of the file: existing issues on their lines, new ones after the last of them.
fn text_of(issues: &[(String, Map)], read: &Read<'_>, text: &str) -> String {
    let mut left: BTreeMap<&str, &Map> = issues.iter().map(|(id, issue)| (id.as_str(), issue)).collect();
    let (mut lines, mut last) = (Vec::new(), None);
    let recount = Recount::of(&read.issues, &left);
    for (number, (line, end)) in (1..).zip(lines::parts(text)) {
        let known = known_issue(line).filter(|(id, _)| !is_other(line) && read.is_read(id, number));
        let Some((id, raw)) = known else {
            // No task was read from this line: it stays, also if it is faulty.
            lines.push(Line::document(line, end));
            continue;
        };
        if let Some((issue, said)) = left.remove(id.as_str()).zip(read.issues.get(&id)) {
            let out = recount.apply(&id, existing_document::over(&raw, said, issue, &KINDS));
            lines.push(Line::document(json_text::over(line, &Value::Object(out)), end));
            last = Some(lines.len());
        }
    }
    let new = issues.iter().filter(|(id, _)| left.contains_key(id.as_str()));
    let new: Vec<Line<'_>> =
        new.map(|(_, issue)| Line::new(Value::Object(issue.clone()).to_string())).collect();
    let last = last.unwrap_or(lines.len());
    lines.splice(last..last, new);
    lines::joined(&lines, text)
}

/// Returns the issue on a line, with its id.
fn known_issue(line: &str) -> Option<(String, Map)> {
    let Ok(Value::Object(raw)) = serde_json::from_str(line) else { return None };
    let id = Record { map: raw.clone(), place: Position::default() }.id("id").ok()?;
    Some((id, raw))
}

/// Returns true for lines that are not issues and are preserved: headers, other record types, deleted issues and empty lines.
fn is_other(line: &str) -> bool {
    if line.trim().is_empty() {
        return true;
    }
    let Ok(Value::Object(map)) = serde_json::from_str(line) else { return false };
    let kind = map.get("_type").and_then(Value::as_str).unwrap_or("issue");
    map.contains_key("_schema")
        || kind != "issue"
        || map.get("status").and_then(Value::as_str) == Some("tombstone")
}

/// Returns the ids of all lines, also of those that no task was read from.
fn ids_in(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(known_issue).map(|(id, _)| id).collect()
}

/// The issues of some tasks.
struct Issues<'t> {
    theirs: BTreeMap<&'t TaskId, String>,
    /// The values of `theirs`.
    exported: BTreeSet<String>,
    comments: Comments,
}

impl<'t> Issues<'t> {
    fn of(tasks: &'t [Task], document: &ExistingDocument<'_>) -> Self {
        let candidate = |task: &Task, attempt: u64| match attempt {
            0 => kept(task, FORMAT).get("id").and_then(Value::as_str).unwrap_or(task.id.as_str()).to_owned(),
            1 => task.id.to_string(),
            _ => format!("{}-{attempt}", task.id),
        };
        let theirs = document.names_of(tasks, candidate, ids_in(document.files.first().1));
        let exported = theirs.values().cloned().collect();
        Self { theirs, exported, comments: Comments::of(tasks, document.files.first().1) }
    }

    fn id(&self, task: &Task) -> String {
        self.theirs[&task.id].clone()
    }

    fn issue(&mut self, task: &Task, left_out: &mut Vec<LeftOut>) -> Map {
        issue_of(task, &self.theirs, &self.exported, &mut self.comments, left_out)
    }
}

fn issue_of(
    task: &Task,
    theirs: &BTreeMap<&TaskId, String>,
    exported: &BTreeSet<String>,
    comments: &mut Comments,
    left_out: &mut Vec<LeftOut>,
) -> Map {
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
    // A task has no type here, so a preserved type always counts.
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
    write_links(task, theirs, exported, &mut out, &mut kept, left_out);
    write_comments(task, theirs, comments, &mut out, &mut kept);
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

/// Returns the closing time. Only a closed issue has one, and every closed issue must have it.
fn closed_at(task: &Task, own: Status) -> Option<Timestamp> {
    (word_of(own) == "closed").then(|| task.finished_at.unwrap_or(task.updated_at))
}

fn write_estimate(task: &Task, out: &mut Map, left_out: &mut Vec<LeftOut>) {
    let Some(period) = option(task, "estimate").and_then(|text| text.parse::<Period>().ok()) else { return };
    let seconds = period.0.as_secs();
    // Rounded up: a short estimate must not become 0, which the reader takes for no estimate.
    out.insert("estimated_minutes".to_owned(), json!(seconds.div_ceil(60)));
    if seconds % 60 != 0 || period.0.subsec_nanos() != 0 {
        left_out.push(LeftOut::new(format!("{}: estimate", task.id), "beads counts whole minutes"));
    }
}

fn write_links(
    task: &Task,
    theirs: &BTreeMap<&TaskId, String>,
    exported: &BTreeSet<String>,
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
    // `related` and `relates-to` are the same link here. Only the latter is written.
    for (kind, name) in LINKS.iter().filter(|(kind, _)| *kind != "related") {
        let list = links.and_then(|links| links.get(*name)).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).for_each(|id| want(&TaskId::from(id), kind));
    }
    let dropped = kept.remove(DROPPED);
    let is_dropped = |on: &String| {
        dropped.as_ref().and_then(Value::as_array).is_some_and(|list| list.contains(&json!(on)))
    };
    let mut links: Vec<Value> = Vec::new();
    let mut written: BTreeSet<usize> = BTreeSet::new();
    // Indexed by the other issue: an issue may wait for thousands.
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, (on, _)) in wanted.iter().enumerate() {
        places.entry(on).or_default().push(place);
    }
    for map in raw {
        let (on, kind) = (text(&map, "depends_on_id"), text(&map, "type"));
        let same = places.get(on.as_str()).into_iter().flatten();
        let place = same.copied().find(|place| same_kind(wanted[*place].1, &kind));
        written.extend(place);
        // The reader dropped links that cannot hold here. In the file they stay.
        let is_dropped = same_kind("blocks", &kind) && is_dropped(&on);
        // A link that the task no longer has is dropped, unless a task could not express it or its target is not exported.
        if place.is_some() || is_dropped || !is_mapped(&kind) || !exported.contains(&on) {
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

fn same_kind(own_fields: &str, theirs: &str) -> bool {
    own_fields == theirs
        || (own_fields == "blocks" && is_blocking(theirs))
        || (own_fields == "relates-to" && theirs == "related")
}

fn is_mapped(kind: &str) -> bool {
    is_blocking(kind) || kind == "parent-child" || LINKS.iter().any(|(theirs, _)| *theirs == kind)
}

/// Writes the comments: those that beads has keep their records; new ones follow with the next ids.
fn write_comments(
    task: &Task,
    theirs: &BTreeMap<&TaskId, String>,
    all: &mut Comments,
    out: &mut Map,
    kept: &mut Map,
) {
    let raw = kept.remove("comments");
    let raw = raw.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
    let is_same = |raw: &Value, note: &Note| {
        let at = raw["created_at"].as_str().and_then(rfc3339).unwrap_or(task.created_at);
        raw["text"].as_str().unwrap_or_default() == note.text && at == note.at
    };
    // Comments of an earlier export are in the file. The task itself only knows them if it was imported again since.
    let document = all.document.get(&theirs[&task.id]).into_iter().flatten();
    let mut comments: Vec<Value> = Vec::new();
    let is_ours = |raw: &&Value| task.notes.iter().any(|note| is_same(raw, note));
    let says = |raw: &Value| (raw["text"].clone(), raw["created_at"].clone());
    for comment in raw.iter().chain(document).filter(is_ours) {
        if !comments.iter().any(|known| says(known) == says(comment)) {
            comments.push(comment.clone());
        }
    }
    let known = comments.len();
    for note in &task.notes {
        if comments[..known].iter().any(|raw| is_same(raw, note)) {
            continue;
        }
        comments.push(json!({
            "id": all.next_id(), "issue_id": theirs[&task.id], "author": note.actor, "text": note.text,
            "created_at": format_time(note.at),
        }));
    }
    if !comments.is_empty() {
        out.insert("comments".to_owned(), Value::Array(comments));
    }
}

/// The comments in the file, by issue, and the next comment id. No task and no issue in the file has that id.
struct Comments {
    document: BTreeMap<String, Vec<Value>>,
    next: i64,
    /// True if existing ids are strings; new ones follow that.
    is_text: bool,
}

impl Comments {
    fn of(tasks: &[Task], text: &str) -> Self {
        let list = |list: Option<&Value>| list.and_then(Value::as_array).cloned().unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let of_line = |line: Value| Some((line["id"].as_str()?.to_owned(), list(line.get("comments"))));
        let document: BTreeMap<String, Vec<Value>> = lines.filter_map(of_line).collect();
        let here = tasks.iter().flat_map(|task| list(kept(task, FORMAT).get("comments")));
        let (mut most, mut is_text) = (0, false);
        for comment in document.values().flatten().cloned().chain(here) {
            let id = comment.get("id");
            is_text |= id.is_some_and(Value::is_string);
            let number = id.and_then(|id| id.as_i64().or_else(|| id.as_str()?.parse().ok()));
            most = most.max(number.unwrap_or(0));
        }
        Self { next: most.saturating_add(1), is_text, document }
    }

    fn next_id(&mut self) -> Value {
        let id = if self.is_text { json!(self.next.to_string()) } else { json!(self.next) };
        self.next = self.next.saturating_add(1);
        id
    }
}
