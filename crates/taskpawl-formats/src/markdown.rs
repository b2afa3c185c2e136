//! Checklists in Markdown: `- [ ] something`, nested by indentation. All other lines are preserved.

mod dialect;
mod items;
mod layout;
mod moves;
mod phases;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::task::{Status, Task};
use taskpawl_model::value::{Map, TaskId};

use crate::content;
use crate::existing_document::ExistingDocument;
use crate::faults::{Faults, leave_out_conflicts};
use crate::files::Files;
use crate::ids::{Ids, Names};
use crate::kind::Format;
use crate::known::KnownRecord;
use crate::lines::{self, one_line};
use crate::own_fields::{OwnFields, comment};
use crate::preserved::{keep, kept};
use crate::reading::{LeftOut, Options, Reading, Written};
use crate::record::{blank, option_list, set_option};
use crate::states;
use crate::unsupported;

use dialect::{Dialect, is_story, stories, stories_of};
use items::{Boxed, Item, boxed, contents, items, near_items, take_ours};
use phases::phases;

/// The label of items that a star behind their box marks as optional.
const OPTIONAL: &str = "optional";

/// Marks inside a box, with their statuses. Exports write the first mark of a status.
const MARKS: &[(&str, Status)] = &[
    (" ", Status::Todo),
    ("x", Status::Done),
    ("X", Status::Done),
    ("\u{2713}", Status::Done),
    ("\u{2714}", Status::Done),
    ("\u{2705}", Status::Done),
    ("/", Status::InProgress),
    ("-", Status::InProgress),
    ("~", Status::InProgress),
    ("\u{1f504}", Status::InProgress),
    ("!", Status::Blocked),
];

/// The mark that meant a cancelled item in version 0.1.
const CANCELLED_BEFORE: &str = "-";

pub(crate) fn read(format: Format, files: &Files, options: &Options, faults: &mut Faults) -> Reading {
    let dialect = Dialect::of(format);
    let (file, text) = files.first();
    let is_in_conflict = leave_out_conflicts(file, text, faults);
    let items = items(text, dialect);
    let mut ids = Ids::new(options);
    let found = content::find(&contents(&items, dialect), &mut ids);
    let mut reading = Reading { fields: dialect.fields(), renamed: found.renamed, ..Reading::default() };
    let needs =
        if dialect == Dialect::SpecKit { phases(file, &items, &found.ids, faults) } else { BTreeMap::new() };
    for (place, (item, record)) in items.iter().zip(found.records).enumerate() {
        let id = &found.ids[place];
        let mut task = blank(id.clone(), item.text.clone(), options.now);
        let known = options.known.of_task(id);
        read_state(item, known, &mut task);
        task.parent = item.above.map(|above| found.ids[above].clone());
        task.dependencies = needs.get(&place).cloned().unwrap_or_default();
        let mut labels = if dialect == Dialect::SpecKit { stories(&item.tags) } else { Vec::new() };
        labels.extend(item.is_optional.then(|| OPTIONAL.to_owned()));
        set_option(&mut task, "labels", labels);
        let preserved = preserved_of(item, known, &task);
        keep(&mut task, dialect.name(), preserved);
        if !is_known_mark(item.mark) {
            let why = format!("the mark `[{}]` is not known, and counts as open", item.mark);
            let line = u32::try_from(item.line + 1).ok();
            reading.left_out.push(LeftOut::new(format!("{id}: status"), why).at(file, line));
        }
        reading.push(task, String::new(), record, None);
    }
    for (line, why) in near_items(text).into_iter().filter(|(line, _)| !is_in_conflict(*line)) {
        reading.left_out.push(LeftOut::new(format!("line {line}"), why).at(file, Some(line)));
    }
    reading
}

fn read_state(item: &Item<'_>, known: Option<&KnownRecord>, task: &mut Task) {
    let status = status_of(item.mark);
    let own = item.own_fields.status.filter(|own| mark_of(*own) == mark_of(status));
    // Version 0.1 wrote this mark for cancelled tasks, and read it so.
    let before = known.and_then(|known| known.status);
    let before = before.filter(|_| item.mark == CANCELLED_BEFORE);
    let before = before.filter(|before| matches!(before, Status::Cancelled | Status::Skipped));
    states::set(task, before.or(own).unwrap_or(status), None);
    task.priority = item.own_fields.priority.unwrap_or_default();
}

fn preserved_of(item: &Item<'_>, known: Option<&KnownRecord>, task: &Task) -> Map {
    let mut kept = Map::new();
    if let Some(id) = known.and_then(|known| known.preserved_id.as_ref()) {
        kept.insert("id".to_owned(), json!(id));
    }
    // The mark of a task in progress is always preserved: see `states::fits`.
    let is_usual = item.mark == mark_of(task.status) && task.status != Status::InProgress;
    let is_cancelled = item.mark == CANCELLED_BEFORE && status_of(item.mark) != task.status;
    if !is_usual && !is_cancelled {
        kept.insert("mark".to_owned(), json!(item.mark));
    }
    if !item.section().is_empty() {
        kept.insert("section".to_owned(), json!(item.section()));
    }
    if !item.tags.is_empty() {
        kept.insert("tags".to_owned(), json!(item.tags));
    }
    kept
}

fn is_known_mark(mark: &str) -> bool {
    MARKS.iter().any(|(known, _)| *known == plain(mark))
}

/// Returns a mark without the selector that makes it an emoji.
fn plain(mark: &str) -> &str {
    mark.trim_end_matches('\u{fe0f}')
}

fn status_of(mark: &str) -> Status {
    MARKS.iter().find(|(known, _)| *known == plain(mark)).map_or(Status::Todo, |(_, status)| *status)
}

fn mark_of(status: Status) -> &'static str {
    match status {
        Status::Failed => "!",
        // Nothing is left to do. The exact status goes into a comment.
        Status::Skipped | Status::Cancelled => "x",
        Status::Todo | Status::InProgress | Status::Blocked | Status::Done => {
            MARKS.iter().find(|(_, known)| *known == status).map_or(" ", |(mark, _)| *mark)
        }
    }
}

pub(crate) fn write(format: Format, tasks: &[Task], document: &ExistingDocument<'_>) -> Written {
    let dialect = Dialect::of(format);
    let (name, text) = document.files.first();
    let name = if name.is_empty() { "tasks.md" } else { name };
    let mut written = Written::default();
    say_unsupported(dialect, tasks, document, &mut written.left_out);
    let lines = layout::lines(tasks, text, document, dialect);
    let mut new = NewTags::of(dialect, tasks, document);
    let mut style = Style { dialect, started: started_mark(text, dialect), names: Names::default() };
    let mut out = Vec::new();
    for line in &lines {
        written.order.extend(line.id.cloned());
        let now = style.rendered(line, &mut new);
        out.push(match line.document {
            Some((raw, end)) => {
                let said = style.said(line);
                let text = said.map_or_else(|| raw.to_owned(), |said| as_there(raw, &said, now));
                lines::Line::document(text, end)
            }
            None => lines::Line::new(now),
        });
    }
    written.files.insert(name, lines::joined(&out, text));
    written
}

/// Reports the fields that a checklist has no place for.
fn say_unsupported(
    dialect: Dialect,
    tasks: &[Task],
    document: &ExistingDocument<'_>,
    left_out: &mut Vec<LeftOut>,
) {
    const WHY: &str = "a checklist has no place for it";
    let metadata = format!("metadata.{}", dialect.name());
    unsupported::say(
        tasks,
        &["name", "status", "parent", "labels", "dependencies", &metadata],
        WHY,
        left_out,
    );
    if dialect != Dialect::Plain {
        // The plan of a feature is its folder.
        left_out.retain(|left| !left.what.starts_with("plan: "));
    }
    moves::say_parents(tasks, document, left_out);
    for task in tasks {
        let said = document.task(&task.id);
        let of_file = said.map(|said| option_list(said, "labels")).unwrap_or_default();
        let is_expressed = |label: &String| {
            label == OPTIONAL || of_file.contains(label) || (dialect == Dialect::SpecKit && is_story(label))
        };
        if !option_list(task, "labels").iter().all(is_expressed) {
            left_out.push(LeftOut::new(format!("{}: labels", task.id), WHY));
        }
        let said = said.map_or(&[] as &[TaskId], |said| said.dependencies.as_slice());
        if !task.dependencies.iter().all(|on| said.contains(on)) {
            left_out.push(LeftOut::new(format!("{}: dependencies", task.id), WHY));
        }
    }
}

/// Removes items from a text, with the lines indented below them that are not other items.
pub(crate) fn without(format: Format, files: &Files, is_out: &[bool]) -> Files {
    let (name, text) = files.first();
    let mut left = files.clone();
    left.insert(name, layout::without(text, is_out, Dialect::of(format)));
    left
}

/// Returns the mark of items in progress that the text uses.
fn started_mark(text: &str, dialect: Dialect) -> String {
    let marks = items(text, dialect);
    let mut marks = marks.iter().map(|item| item.mark).filter(|mark| status_of(mark) == Status::InProgress);
    let usual = match dialect {
        Dialect::Numbered(Format::Kiro) => "-",
        Dialect::Plain | Dialect::SpecKit | Dialect::Numbered(_) => mark_of(Status::InProgress),
    };
    marks.next().unwrap_or(usual).to_owned()
}

/// Returns the existing line if the export of the task did not change. If only the mark changed, replaces only that.
fn as_there(raw: &str, said: &str, now: String) -> String {
    if said == now {
        return raw.to_owned();
    }
    let (Some(before), Some(said), Some(new)) = (boxed(raw), boxed(said), boxed(&now)) else { return now };
    let is_same = said.text == new.text && said.is_optional == new.is_optional && before.lead == new.lead;
    if !is_same {
        return now;
    }
    let Boxed { lead, mark, .. } = before;
    let (start, after) = raw.split_at(lead.len() + 1);
    format!("{start}{}{}", new.mark, &after[mark.len()..])
}

/// A line to write.
struct Line<'t> {
    what: What<'t>,
    /// The existing line, with its ending; `None` for a new one.
    document: Option<(&'t str, &'t str)>,
    /// The task of an item, also of one that is not written.
    id: Option<&'t TaskId>,
}

impl Line<'_> {
    fn text(text: impl Into<String>) -> Self {
        Self { what: What::Text(text.into()), document: None, id: None }
    }
}

/// The kind of a line.
enum What<'t> {
    /// A line that is not an item, or an item without a task here.
    Text(String),
    /// A task.
    Task {
        task: &'t Task,
        lead: String,
        /// The task as it was read from the line; `None` for a new line.
        said: Option<&'t Task>,
        /// True if the line has the id of the task in a comment.
        has_comment: bool,
    },
}

/// The form of the lines of one file.
struct Style {
    dialect: Dialect,
    /// The mark of a task in progress.
    started: String,
    names: Names,
}

impl Style {
    /// Returns a line as text.
    fn rendered(&mut self, line: &Line<'_>, new: &mut NewTags) -> String {
        match &line.what {
            What::Text(line) => line.clone(),
            What::Task { task, lead, said, has_comment } => {
                let name = one_line(&task.name);
                let Some(said) = said else {
                    let tags = new.next(task);
                    // A new line is known by the id in its tags, by its text, or by a comment.
                    let has_id = match self.dialect.id_of(&tags) {
                        Some(id) => task.id.as_str() == id,
                        None => self.names.is_next(&name, &task.id),
                    };
                    return self.line_of(task, lead, &tags, has_id);
                };
                if *has_comment {
                    self.names.marked(&task.id);
                } else {
                    self.names.unmarked(&name);
                }
                let tags = self.dialect.tags_of(&tags(said, self.dialect), task);
                self.line_of(task, lead, &tags, !has_comment)
            }
        }
    }

    /// Returns an existing line as it would be written for the task that was read from it.
    fn said(&self, line: &Line<'_>) -> Option<String> {
        let What::Task { lead, said: Some(said), has_comment, .. } = &line.what else { return None };
        Some(self.line_of(said, lead, &tags(said, self.dialect), !has_comment))
    }

    fn line_of(&self, task: &Task, lead: &str, tags: &str, has_id: bool) -> String {
        let own = states::own(task);
        let kept = kept(task, self.dialect.name());
        let before = kept.get("mark").and_then(Value::as_str).filter(|mark| !mark.is_empty());
        let before = before.filter(|mark| states::fits(task, status_of(mark)));
        let usual = if own == Status::InProgress { self.started.as_str() } else { mark_of(own) };
        let mark = before.unwrap_or(usual);
        let said = before.map_or(status_of(mark), |_| own);
        let name = self.dialect.text_of(tags, &one_line(&task.name));
        // A name that ends like a taskpawl comment would be misread. A comment with the id after it prevents that.
        let has_id = has_id && take_ours(&name).0 == name;
        let own_fields = OwnFields::of(task, has_id, said, taskpawl_model::task::Priority::Medium).text();
        let own_fields = own_fields.map(|text| format!(" {}", comment(&text))).unwrap_or_default();
        let star = if option_list(task, "labels").iter().any(|label| label == OPTIONAL) { "*" } else { "" };
        let blank = if tags.is_empty() || tags.ends_with(' ') { "" } else { " " };
        format!("{lead}[{mark}]{star} {tags}{blank}{name}{own_fields}")
    }
}

/// The ids and tags of new items of spec-kit.
struct NewTags {
    dialect: Dialect,
    given: BTreeSet<String>,
    last: u64,
}

impl NewTags {
    fn of(dialect: Dialect, tasks: &[Task], document: &ExistingDocument<'_>) -> Self {
        let number = |id: String| id.trim_start_matches('T').parse::<u64>().ok();
        let given: BTreeSet<String> =
            document.tasks.iter().filter_map(|task| dialect.id_of(&tags(task, dialect))).collect();
        let wanted = tasks.iter().filter_map(|task| dialect.id_of(&tags(task, dialect)));
        let last = given.iter().cloned().chain(wanted).filter_map(number).max();
        Self { dialect, given, last: last.unwrap_or(0) }
    }

    /// Returns the tags of a new item: those that its task came with, if no other item has that id.
    fn next(&mut self, task: &Task) -> String {
        if self.dialect != Dialect::SpecKit {
            return String::new();
        }
        let tags = tags(task, self.dialect);
        if self.dialect.id_of(&tags).is_some_and(|id| self.given.insert(id)) {
            return self.dialect.tags_of(&tags, task);
        }
        self.last += 1;
        let stories = stories_of(&option_list(task, "labels"));
        format!("T{:03} {stories}", self.last)
    }
}

/// Returns the id and the tags that a task came with.
fn tags(task: &Task, dialect: Dialect) -> String {
    let kept = kept(task, dialect.name());
    kept.get("tags").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns true if the text has an item of a checklist.
pub(crate) fn has_items(text: &str) -> bool {
    !items(text, Dialect::Plain).is_empty()
}

/// Returns true if most items of the text have ids of spec-kit.
pub(crate) fn has_spec_ids(text: &str) -> bool {
    let items = items(text, Dialect::SpecKit);
    let with_id = items.iter().filter(|item| Dialect::SpecKit.id_in(&item.tags).is_some()).count();
    with_id >= 2 && 2 * with_id >= items.len()
}
