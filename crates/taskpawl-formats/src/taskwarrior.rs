//! The output of Taskwarrior's `task export`, which `task import` reads.

mod write;

use serde_json::{Value, json};
use taskpawl_model::task::{Note, Priority, Status, Task};
use taskpawl_model::value::{Map, Timestamp};

use crate::error::Position;
use crate::faults::{Faults, leave_out_conflicts};
use crate::files::Files;
use crate::ids::Ids;
use crate::items::{Item, Items};
use crate::links;
use crate::own_fields::{NAME, OwnFields};
use crate::preserved::{add_away, keep, keep_away, keep_if_other};
use crate::reading::{LeftOut, Options, Reading};
use crate::record::{Read, Record, Times, set_option, whole};
use crate::states;
use crate::times::{compact, rfc3339, to_compact};

pub(crate) use write::write;

const FORMAT: &str = "taskwarrior";

const FIELDS: &[&str] = &[
    "name",
    "status",
    "priority",
    "dueDate",
    "labels",
    "dependencies",
    "notes",
    "createdAt",
    "updatedAt",
    "startedAt",
    "finishedAt",
    "metadata.taskwarrior",
];

const TIMES: Times = Times {
    made: "entry",
    changed: "modified",
    started: "start",
    ended: "end",
    due: "due",
    parse,
    print: to_compact,
};

const PROGRAM: &str = "Taskwarrior";

/// The author of annotations, which have no author in Taskwarrior.
const ANNOTATOR: &str = "taskwarrior";

pub(crate) fn is_one(text: &str) -> bool {
    let first = match serde_json::from_str(text) {
        Ok(Value::Array(list)) => list.into_iter().next(),
        Ok(value) => Some(value),
        Err(_) => text.lines().next().and_then(|line| serde_json::from_str(line.trim_end_matches(',')).ok()),
    };
    first.is_some_and(|task| task.get("uuid").is_some() && task.get("description").is_some())
}

pub(crate) fn read(files: &Files, options: &Options, faults: &mut Faults) -> Read<Reading> {
    let (file, text) = files.first();
    let records = records(file, text, faults)?;
    let mut items = Items::new(options, faults);
    for (place, record) in records {
        let record = record.and_then(|mut record| {
            let (name, own_fields) = (record.id("uuid")?, record.text(NAME)?);
            Ok((record, name, own_fields.map(|text| OwnFields::parse(&text)).unwrap_or_default()))
        });
        items.add(&place, record, |record| {
            let problem = format!("task `{}` occurs twice", record.place.record);
            record.place.error("uuid", problem, "remove one of the two")
        });
    }
    let mut reading = items.resolve(FIELDS, Some((TIMES.changed, TIMES.parse)), |item, ids, reading| {
        task(item, ids, options, &mut reading.left_out)
    });
    links::settle(&mut reading, |task, on| add_away(task, FORMAT, "depends", json!(on)));
    Ok(reading)
}

/// Returns true if the text is a list. Otherwise it has one task per line, as some settings of Taskwarrior print it.
fn is_list(text: &str) -> bool {
    text.trim_start().starts_with('[')
}

fn records(file: &str, text: &str, faults: &mut Faults) -> Read<Vec<(Position, Read<Record>)>> {
    let mut place = Position::of(file);
    let mut records = Vec::new();
    if is_list(text) {
        let value: Value = whole(text, &mut place)?;
        let Value::Array(list) = value else { return Ok(records) };
        for (number, value) in list.into_iter().enumerate() {
            let place = place.element(None, number, format!("task {}", number + 1));
            records.push((place.clone(), Record::new(value, place)));
        }
        return Ok(records);
    }
    let is_in_conflict = leave_out_conflicts(file, text, faults);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim().trim_end_matches(',');
        if line.is_empty() || is_in_conflict(number) {
            continue;
        }
        let place = Position { line: Some(number), record: format!("line {number}"), ..place.clone() };
        let value = taskpawl_json::read(line).map_err(|error| place.json(&error, number));
        records.push((place.clone(), value.and_then(|value| Record::new(value, place))));
    }
    Ok(records)
}

fn task(mut item: Item, ids: &Ids<'_>, options: &Options, left_out: &mut Vec<LeftOut>) -> Read<Task> {
    let (mut task, mut kept) = item.begin("description", "uuid", options.now)?;
    let Item { mut record, own_fields, name, .. } = item;
    // `id` is a position in the current list, and `urgency` depends on the time. Taskwarrior computes both.
    record.map.remove("id");
    record.map.remove("urgency");
    record.times(&TIMES, &mut task, &mut kept)?;
    read_status(&mut record, &mut task, &own_fields, options.now, &mut kept)?;
    read_priority(&mut record, &mut task, &own_fields, &mut kept)?;
    left_out.extend(unknown_priority(&name, &kept));
    let tags = match record.map.get("tags") {
        Some(Value::String(_)) => vec![record.text("tags")?.unwrap_or_default()],
        _ => record.texts("tags")?,
    };
    set_option(&mut task, "labels", tags);
    let mut away = Vec::new();
    for on in depends(&mut record)? {
        if let Some(on) = ids.get(&on) {
            task.dependencies.push(on.clone());
        } else {
            left_out.push(LeftOut::new(format!("{name}: depends"), format!("`{on}` is not in the file")));
            away.push(json!(on));
        }
    }
    keep_away(&mut kept, "depends", away);
    for mut note in record.objects("annotations")? {
        let at = note.time("entry", parse)?.map_or(task.created_at, |(at, _)| at);
        let text = note.text("description")?.unwrap_or_default();
        task.notes.push(Note { at, actor: ANNOTATOR.to_owned(), text });
    }
    kept.extend(record.map);
    keep(&mut task, FORMAT, kept);
    Ok(task)
}

fn parse(text: &str) -> Option<Timestamp> {
    compact(text).or_else(|| rfc3339(text))
}

/// Takes the dependencies. Earlier versions wrote them as one string with commas.
fn depends(record: &mut Record) -> Read<Vec<String>> {
    match record.map.get("depends") {
        Some(Value::String(_)) => {
            let text = record.text("depends")?.unwrap_or_default();
            Ok(text.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect())
        }
        _ => record.texts("depends"),
    }
}

fn read_status(
    record: &mut Record,
    task: &mut Task,
    own_fields: &OwnFields,
    now: Timestamp,
    kept: &mut Map,
) -> Read<()> {
    let word = record.text("status")?.unwrap_or_else(|| "pending".to_owned());
    let is_started = task.started_at.is_some();
    let Some(status) = status_of(&word, is_started) else {
        let known = "one of pending, waiting, completed, deleted, recurring";
        return Err(record.wrong("status", known, &json!(word)));
    };
    let status = own_fields.status.filter(|own| plain(*own, is_started) == status).unwrap_or(status);
    if let Some(until) = wait(&record.map).filter(|until| status == Status::Todo && *until > now) {
        // A waiting task must not start yet.
        states::set(task, Status::Blocked, Some(&states::put_off(until, PROGRAM)));
    } else {
        let why = word
            .eq_ignore_ascii_case("recurring")
            .then_some("the template of a recurring task of Taskwarrior");
        states::set(task, status, why);
    }
    keep_if_other(kept, "status", json!(word), &json!(word_of(status)));
    Ok(())
}

/// Returns the time until which a task is hidden.
fn wait(record: &Map) -> Option<Timestamp> {
    record.get("wait")?.as_str().and_then(parse)
}

fn status_of(word: &str, is_started: bool) -> Option<Status> {
    match word.to_lowercase().as_str() {
        "pending" if is_started => Some(Status::InProgress),
        "pending" | "waiting" => Some(Status::Todo),
        "completed" => Some(Status::Done),
        "deleted" => Some(Status::Cancelled),
        "recurring" => Some(Status::Blocked),
        _ => None,
    }
}

fn word_of(status: Status) -> &'static str {
    match status {
        Status::Todo | Status::InProgress | Status::Blocked | Status::Failed => "pending",
        Status::Done => "completed",
        Status::Cancelled | Status::Skipped => "deleted",
    }
}

fn plain(status: Status, is_started: bool) -> Status {
    status_of(word_of(status), is_started).unwrap_or(Status::Todo)
}

fn read_priority(record: &mut Record, task: &mut Task, own_fields: &OwnFields, kept: &mut Map) -> Read<()> {
    let word = record.text("priority")?;
    task.priority = priority_of(word.as_deref());
    if let Some(priority) =
        own_fields.priority.filter(|priority| priority_of(letter_of(*priority)) == task.priority)
    {
        task.priority = priority;
    }
    if let Some(word) = word {
        keep_if_other(kept, "priority", json!(word), &json!(letter_of(task.priority)));
    }
    Ok(())
}

/// Lists a priority that Taskwarrior gets from its configuration.
fn unknown_priority(name: &str, kept: &Map) -> Option<LeftOut> {
    let word = kept.get("priority")?.as_str()?;
    let is_known = matches!(word.to_uppercase().as_str(), "H" | "M" | "L" | "");
    let why = || format!("the word `{word}` is not known, and counts as medium");
    (!is_known).then(|| LeftOut::new(format!("{name}: priority"), why()))
}

fn priority_of(word: Option<&str>) -> Priority {
    match word.map(str::to_uppercase).as_deref() {
        Some("H") => Priority::High,
        Some("L") => Priority::Low,
        _ => Priority::Medium,
    }
}

fn letter_of(priority: Priority) -> Option<&'static str> {
    match priority {
        Priority::Critical | Priority::High => Some("H"),
        Priority::Medium => None,
        Priority::Low => Some("L"),
    }
}
