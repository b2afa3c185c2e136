//! Lists in the todo.txt format: one task per line, with a priority, dates, `+projects`, `@contexts` and `due:`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::task::{Priority, Status, Task};
use taskpawl_model::value::{Map, TaskId, Timestamp, format_time};

use crate::content::{self, ContentItem};
use crate::error::Position;
use crate::escapes::{escaped, unescaped};
use crate::existing_document::ExistingDocument;
use crate::faults::{Faults, leave_out_conflicts};
use crate::files::Files;
use crate::ids::{Ids, Names};
use crate::lines::{self, Line, one_line, parts};
use crate::own_fields::OwnFields;
use crate::preserved::{keep, kept};
use crate::reading::{LeftOut, Options, Reading, Written};
use crate::record::{blank, option, option_list, set_option};
use crate::states;
use crate::times::{date, rfc3339};
use crate::unsupported;

const FORMAT: &str = "todo.txt";

const FIELDS: &[&str] =
    &["name", "status", "priority", "dueDate", "labels", "createdAt", "finishedAt", "metadata.todo.txt"];

/// The start of words with taskpawl's own fields, such as `taskpawl:status=blocked`.
const OWN: &str = "taskpawl:";

/// Returns true if a line has the form of a task with a mark, a priority or a date.
pub(crate) fn is_one(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let marked = lines.iter().filter(|line| Entry::parse(line).is_marked()).count();
    !lines.is_empty() && 2 * marked >= lines.len()
}

/// The parts of a line.
#[derive(Debug, Default)]
struct Entry<'l> {
    is_over: bool,
    priority: Option<char>,
    /// The dates as they stand: that of completion first, if there are two.
    dates: [Option<&'l str>; 2],
    rest: &'l str,
}

impl<'l> Entry<'l> {
    fn parse(line: &'l str) -> Self {
        let mut rest = line.trim();
        let mut entry = Self::default();
        if let Some(after) = rest.strip_prefix("x ") {
            (entry.is_over, rest) = (true, after.trim_start());
        }
        if let Some((letter, after)) = priority(rest) {
            (entry.priority, rest) = (Some(letter), after);
        }
        // Only a task that is over has two dates.
        let dates = if entry.is_over { 2 } else { 1 };
        for slot in entry.dates.iter_mut().take(dates) {
            let Some((word, after)) = rest.split_once(' ').filter(|(word, _)| is_date(word)) else { break };
            (*slot, rest) = (Some(word), after.trim_start());
        }
        entry.rest = rest;
        entry
    }

    /// Returns true if something stands before the text.
    fn is_marked(&self) -> bool {
        self.is_over || self.priority.is_some() || self.dates[0].is_some()
    }

    /// Returns the dates of creation and of completion.
    fn created_and_finished(&self) -> (Option<&'l str>, Option<&'l str>) {
        match (self.is_over, self.dates) {
            (true, [finished, created]) => (created, finished),
            (false, [created, _]) => (created, None),
        }
    }
}

fn priority(text: &str) -> Option<(char, &str)> {
    let (letter, after) = text.strip_prefix('(')?.split_once(") ")?;
    let letter = letter.chars().next().filter(|c| letter.len() == 1 && c.is_ascii_uppercase())?;
    Some((letter, after.trim_start()))
}

fn is_date(word: &str) -> bool {
    word.len() == 10 && date(word).is_some()
}

/// The words of a text, by their meaning.
#[derive(Debug, Default, PartialEq, Eq)]
struct Words {
    name: String,
    labels: Vec<String>,
    due: Option<String>,
    priority: Option<char>,
    own: OwnFields,
}

impl Words {
    fn parse(text: &str) -> Self {
        let (mut words, mut name, mut own) = (Self::default(), Vec::new(), Vec::new());
        // Byte order marks would vanish from the start of a file.
        for word in text.split(|c: char| c.is_whitespace() || c == '\u{feff}').filter(|word| !word.is_empty())
        {
            let tag = |mark: char| word.strip_prefix(mark).filter(|tag| !tag.is_empty());
            if let Some(project) = tag('+') {
                add(&mut words.labels, project);
            } else if tag('@').is_some() {
                add(&mut words.labels, word);
            } else if let Some(due) = word.strip_prefix("due:").filter(|due| is_date(due)) {
                words.due = Some(due.to_owned());
            } else if let Some(letter) = letter_in(word) {
                words.priority = Some(letter);
            } else if let Some(field) = word.strip_prefix(OWN) {
                own.push(field);
            } else {
                name.push(unescaped(word, is_syntax));
            }
        }
        words.own = OwnFields::parse(&own.join(" "));
        words.name = name.join(" ");
        if words.name.is_empty() {
            // A task needs a name: a line may have nothing but tags.
            let tags: Vec<&str> = words_of(text).filter(|word| word.starts_with(['+', '@'])).collect();
            words.name = tags.join(" ");
        }
        words
    }
}

/// Returns the priority in a word such as `pri:A`.
fn letter_in(word: &str) -> Option<char> {
    let letter = word.strip_prefix("pri:").filter(|letter| letter.len() == 1)?;
    letter.chars().next().filter(char::is_ascii_uppercase)
}

/// Returns true if a word is no part of a name.
fn is_syntax(word: &str) -> bool {
    is_tag(word)
        || word.strip_prefix("due:").is_some_and(is_date)
        || letter_in(word).is_some()
        || word.starts_with(OWN)
}

/// Returns true for projects and contexts.
fn is_tag(word: &str) -> bool {
    word.strip_prefix(['+', '@']).is_some_and(|tag| !tag.is_empty())
}

/// Returns the words of a text. A byte order mark separates words, because it would vanish from the start of a file.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || c == '\u{feff}').filter(|word| !word.is_empty())
}

fn add(labels: &mut Vec<String>, label: &str) {
    if !labels.iter().any(|known| known == label) {
        labels.push(label.to_owned());
    }
}

pub(crate) fn read(files: &Files, options: &Options, faults: &mut Faults) -> Reading {
    let (file, text) = files.first();
    let is_in_conflict = leave_out_conflicts(file, text, faults);
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let place = u32::try_from(number + 1).unwrap_or(u32::MAX);
        if line.trim().is_empty() || is_in_conflict(place) {
            continue;
        }
        let entry = Entry::parse(line);
        let words = Words::parse(entry.rest);
        if words.name.is_empty() {
            let place = Position { line: Some(place), record: format!("line {place}"), ..Position::of(file) };
            faults.add_line(place.error(
                "",
                "it has no text",
                "write the text of the task, or remove the line",
            ));
            continue;
        }
        found.push((number, entry, words));
    }
    let items: Vec<ContentItem> = found
        .iter()
        .map(|(_, _, words)| ContentItem {
            text: words.name.clone(),
            task: words.own.id.clone(),
            ..ContentItem::default()
        })
        .collect();
    let mut ids = Ids::new(options);
    let matched = content::find(&items, &mut ids);
    let mut reading = Reading { renamed: matched.renamed, ..Reading::of(FIELDS) };
    for (((number, entry, words), id), record) in found.into_iter().zip(matched.ids).zip(matched.records) {
        // The name is the place in the text: an export finds the line there.
        reading.push(task(id, &entry, words, options.now), number.to_string(), record, None);
    }
    reading
}

fn task(id: TaskId, entry: &Entry<'_>, words: Words, now: Timestamp) -> Task {
    let mut task = blank(id, words.name, now);
    let mut kept = Map::new();
    kept.insert("text".to_owned(), json!(entry.rest));
    let status = if entry.is_over { Status::Done } else { Status::Todo };
    let status = words.own.status.filter(|own| is_over(*own) == entry.is_over).unwrap_or(status);
    states::set(&mut task, status, None);
    let letter = entry.priority.or(words.priority.filter(|_| entry.is_over));
    task.priority = letter.map_or(Priority::Medium, priority_of);
    if let Some(letter) = letter {
        kept.insert("priority".to_owned(), json!(letter.to_string()));
    }
    let (created, finished) = entry.created_and_finished();
    if let Some(at) = created.and_then(date) {
        (task.created_at, task.updated_at) = (at, at);
        kept.insert("created".to_owned(), json!(true));
    }
    task.finished_at = finished.and_then(date);
    if let Some(at) = words.due.as_deref().and_then(date) {
        set_option(&mut task, "dueDate", format_time(at));
    }
    set_option(&mut task, "labels", words.labels);
    keep(&mut task, FORMAT, kept);
    task
}

fn is_over(status: Status) -> bool {
    matches!(status, Status::Done | Status::Cancelled | Status::Skipped)
}

fn priority_of(letter: char) -> Priority {
    match letter {
        'A' => Priority::Critical,
        'B' => Priority::High,
        'C' => Priority::Medium,
        _ => Priority::Low,
    }
}

fn letter_of(priority: Priority) -> Option<char> {
    match priority {
        Priority::Critical => Some('A'),
        Priority::High => Some('B'),
        Priority::Medium => None,
        Priority::Low => Some('D'),
    }
}

pub(crate) fn write(tasks: &[Task], document: &ExistingDocument<'_>) -> Written {
    let (name, text) = document.files.first();
    let name = if name.is_empty() { "todo.txt" } else { name };
    let mut written = Written::default();
    unsupported::say(tasks, FIELDS, "todo.txt has no place for it", &mut written.left_out);
    say_labels(tasks, &mut written.left_out);
    let by_id: BTreeMap<&TaskId, &Task> = tasks.iter().map(|task| (&task.id, task)).collect();
    let read: BTreeMap<usize, &Task> =
        document.names.iter().filter_map(|name| name.parse().ok()).zip(document.tasks).collect();
    let (mut out, mut names) = (Vec::new(), Names::default());
    for (number, (line, end)) in parts(text).enumerate() {
        let Some(said) = read.get(&number) else {
            out.push(Line::document(line, end));
            continue;
        };
        written.order.push(said.id.clone());
        let has_id = Words::parse(Entry::parse(line).rest).own.id.is_none();
        if has_id {
            names.unmarked(&by_id.get(&said.id).unwrap_or(said).name);
        } else {
            names.marked(&said.id);
        }
        let text = by_id.get(&said.id).map_or_else(
            || line.to_owned(),
            |task| {
                let now = line_of(&without_new_date(task, said), has_id);
                if line_of(said, has_id) == now { line.to_owned() } else { now }
            },
        );
        out.push(Line::document(text, end));
    }
    for task in tasks.iter().filter(|task| document.task(&task.id).is_none()) {
        let has_id = names.is_next(&one_line(&task.name), &task.id);
        out.push(Line::new(line_of(task, has_id)));
        written.order.push(task.id.clone());
    }
    written.files.insert(name, lines::joined(&out, text));
    written
}

/// Reports labels that are no single word.
fn say_labels(tasks: &[Task], left_out: &mut Vec<LeftOut>) {
    for task in tasks {
        let labels = option_list(task, "labels").into_iter();
        for label in labels.filter(|label| label.contains(char::is_whitespace)) {
            let why =
                format!("a label of todo.txt is one word: `{label}` is written as `{}`", tag_of(&label));
            left_out.push(LeftOut::new(format!("{}: labels", task.id), why));
        }
    }
}

/// Returns a task without the date of completion if its line was over without one: the store has the time of the import.
fn without_new_date<'t>(task: &'t Task, said: &Task) -> Cow<'t, Task> {
    let stays_over = is_over(states::own(task)) && is_over(states::own(said));
    if stays_over && said.finished_at.is_none() && task.finished_at.is_some() {
        return Cow::Owned(Task { finished_at: None, ..task.clone() });
    }
    Cow::Borrowed(task)
}

/// Removes the lines with these numbers. Also returns the number that each other line has then.
pub(crate) fn without(files: &Files, numbers: &BTreeSet<&str>) -> (Files, BTreeMap<String, String>) {
    let (name, text) = files.first();
    let (mut left, mut now) = (Vec::new(), BTreeMap::new());
    for (number, (line, end)) in parts(text).enumerate() {
        let number = number.to_string();
        if !numbers.contains(number.as_str()) {
            now.insert(number, left.len().to_string());
            left.push(Line::document(line, end));
        }
    }
    let mut files = files.clone();
    files.insert(name, lines::joined(&left, text));
    (files, now)
}

fn line_of(task: &Task, has_id: bool) -> String {
    let (kept, own) = (kept(task, FORMAT), states::own(task));
    let mut words = Vec::new();
    let known = kept.get("priority").and_then(Value::as_str).and_then(|letter| letter.chars().next());
    let letter = known.filter(|letter| priority_of(*letter) == task.priority).or(letter_of(task.priority));
    let day = |at: Timestamp| at.format("%Y-%m-%d").to_string();
    let text = text_of(task, kept.get("text").and_then(Value::as_str), letter.filter(|_| is_over(own)));
    // Behind a date of creation, a text may begin like a line of its own.
    let has_created = kept.get("created").is_some()
        || kept.get("text").is_none()
        || Entry::parse(&format!("{text} {OWN}")).is_marked();
    let created = has_created.then(|| day(task.created_at));
    if is_over(own) {
        words.push("x".to_owned());
        let finished = task.finished_at.map(day);
        // A date of creation alone would be read as that of completion.
        words.extend(finished.or_else(|| created.as_ref().map(|_| day(task.updated_at))));
        words.extend(created);
    } else {
        words.extend(letter.map(|letter| format!("({letter})")));
        words.extend(created);
    }
    words.push(text);
    let said = if is_over(own) { Status::Done } else { Status::Todo };
    let fields = OwnFields::of(task, has_id, said, task.priority).text();
    words.extend(fields.iter().flat_map(|text| text.split(' ')).map(|field| format!("{OWN}{field}")));
    words.join(" ")
}

/// Returns a label as a word.
fn tag_of(label: &str) -> String {
    let word = label.split_whitespace().collect::<Vec<_>>().join("-");
    if word.starts_with('@') && word.len() > 1 { word } else { format!("+{word}") }
}

/// Returns the text of a task. The text of the file stays, except for words whose meaning changed.
fn text_of(task: &Task, before: Option<&str>, letter: Option<char>) -> String {
    let name = one_line(&task.name);
    let labels = option_list(task, "labels");
    let due = option(task, "dueDate").and_then(rfc3339).map(|at| at.format("due:%Y-%m-%d").to_string());
    let said = before.map(Words::parse).unwrap_or_default();
    let mut words: Vec<String> = Vec::new();
    match before.filter(|_| said.name == name) {
        Some(text) => words.extend(words_of(text).map(str::to_owned)),
        None => words.extend(name.split(' ').map(|word| escaped(word, is_syntax).into_owned())),
    }
    words.retain(|word| {
        let label = word.strip_prefix('+').unwrap_or(word);
        let is_gone = is_tag(word) && said.name == name && !labels.iter().any(|known| known == label);
        let is_other = is_syntax(word) && !is_tag(word) && due.as_ref() != Some(word);
        !is_gone && !is_other
    });
    let has = |words: &[String], wanted: &str| words.iter().any(|word| word == wanted);
    for label in &labels {
        let tag = tag_of(label);
        if !has(&words, &tag) {
            words.push(tag);
        }
    }
    words.extend(due.filter(|due| !has(&words, due)));
    words.extend(letter.map(|letter| format!("pri:{letter}")));
    words.join(" ")
}
