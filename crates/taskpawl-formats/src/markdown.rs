//! Checklists in Markdown: `- [ ] something`, nested by indentation. All other lines are preserved.

mod layout;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use taskpawl_model::task::{Status, Task};
use taskpawl_model::value::Map;
use taskpawl_model::value::TaskId;

use crate::existing_document::ExistingDocument;
use crate::files::Files;
use crate::format::{Options, Reading, Written};
use crate::ids::{Ids, name_of};
use crate::lines::{self, one_line};
use crate::own_fields::{COMMENT, OwnFields, comment};
use crate::preserved::{keep, kept};
use crate::record::{Read, blank, fields};
use crate::states;
use crate::unsupported;

const FORMAT: &str = "markdown";

const FIELDS: &[&str] = &["name", "status", "parent", "metadata.markdown"];

/// The maximum nesting of items; deeper ones become siblings.
const MAX_NESTING: usize = 60;

/// Marks inside a box, with their statuses. Exports write the first mark of a status.
const MARKS: &[(char, Status)] = &[
    (' ', Status::Todo),
    ('x', Status::Done),
    ('X', Status::Done),
    ('/', Status::InProgress),
    ('~', Status::InProgress),
    ('-', Status::Cancelled),
    ('!', Status::Blocked),
];

/// A checklist item.
struct Item<'t> {
    /// Its line, counted from 0.
    line: usize,
    /// The text before its box: indentation and bullet.
    lead: &'t str,
    mark: char,
    text: String,
    own_fields: OwnFields,
    /// The index of the parent item.
    above: Option<usize>,
    section: String,
    theirs: String,
}

#[expect(clippy::unnecessary_wraps, reason = "as of every format")]
pub(crate) fn read(files: &Files, options: &Options) -> Read<Reading> {
    let (_, text) = files.first();
    let mut reading = Reading { fields: fields(FIELDS), ..Reading::default() };
    let items = items(text);
    let mut ids = Ids::new(options.prefix.as_ref());
    let own: Vec<TaskId> = items
        .iter()
        .map(|item| {
            ids.add(&item.theirs, item.own_fields.id.as_deref())
                .expect("BUG: every item has a name of its own")
        })
        .collect();
    for (item, id) in items.iter().zip(&own) {
        let is_ours = item.own_fields.id.as_deref() == Some(id.as_str());
        let mut task = blank(id.clone(), item.text.clone(), options.now);
        let status = status_of(item.mark);
        let status = item.own_fields.status.filter(|own| mark_of(*own) == mark_of(status)).unwrap_or(status);
        states::set(&mut task, status, None);
        task.priority = item.own_fields.priority.unwrap_or_default();
        task.parent = item.above.map(|above| own[above].clone());
        let mut kept = Map::new();
        if !is_ours && id.as_str() != item.theirs {
            kept.insert("id".to_owned(), json!(item.theirs));
        }
        // The mark of a task in progress is always preserved: see `states::fits`.
        if item.mark != mark_of(status) || status == Status::InProgress {
            kept.insert("mark".to_owned(), json!(item.mark.to_string()));
        }
        if !item.section.is_empty() {
            kept.insert("section".to_owned(), json!(item.section));
        }
        keep(&mut task, FORMAT, kept);
        reading.tasks.push(task);
        reading.names.push(item.theirs.clone());
    }
    Ok(reading)
}

fn status_of(mark: char) -> Status {
    MARKS.iter().find(|(known, _)| *known == mark).map_or(Status::Todo, |(_, status)| *status)
}

fn mark_of(status: Status) -> char {
    match status {
        Status::Failed => '!',
        Status::Skipped => '-',
        Status::Todo | Status::InProgress | Status::Blocked | Status::Done | Status::Cancelled => {
            MARKS.iter().find(|(_, known)| *known == status).map_or(' ', |(mark, _)| *mark)
        }
    }
}

/// Returns the items of a text, in text order.
fn items(text: &str) -> Vec<Item<'_>> {
    let (mut items, mut open): (Vec<Item<'_>>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    let (mut aside, mut section, mut names) = (None, String::new(), BTreeSet::new());
    for (line, content) in text.lines().enumerate() {
        let (trimmed, is_aside) = (content.trim_start(), aside.is_some());
        aside = Aside::after(aside, trimmed);
        if is_aside || aside.is_some() {
            continue;
        }
        if let Some(title) = heading(content) {
            title.clone_into(&mut section);
            open.clear();
            continue;
        }
        let Some((lead, mark, rest)) = boxed(content) else {
            // An unindented line of text ends a list, as in Markdown.
            if !trimmed.is_empty() && trimmed.len() == content.len() && !is_item(trimmed) {
                open.clear();
            }
            continue;
        };
        let depth = width(lead);
        // An item with the same indentation is a sibling, so it closes as well.
        while open.last().is_some_and(|(other, _)| *other >= depth) {
            open.pop();
        }
        let above = open.last().map(|(_, position)| *position);
        let (text, own_fields) = take_ours(&one_line(rest));
        // A task needs a name.
        let text = if text.is_empty() { "(empty)".to_owned() } else { text };
        let theirs = name_of(&text, &mut names);
        if open.len() < MAX_NESTING {
            open.push((depth, items.len()));
        }
        items.push(Item { line, lead, mark, text, own_fields, above, section: section.clone(), theirs });
    }
    items
}

/// A block whose lines are never items, because Markdown shows them verbatim or not at all.
#[derive(Debug, Clone, Copy)]
enum Aside {
    /// A fenced code block. It ends with a fence of the same character that is at least as long.
    Code { mark: char, length: usize },
    /// A comment of several lines.
    Comment,
}

impl Aside {
    /// Returns the block that a line opens.
    fn begun(trimmed: &str) -> Option<Self> {
        let comment = trimmed.strip_prefix("<!--");
        if comment.is_some_and(|rest| !rest.contains("-->")) {
            return Some(Self::Comment);
        }
        let (mark, length, rest) = fence(trimmed)?;
        // Backticks after the fence make it inline code, as CommonMark defines.
        (mark != '`' || !rest.contains('`')).then_some(Self::Code { mark, length })
    }

    /// Returns the block that is open after a line.
    fn after(open: Option<Self>, trimmed: &str) -> Option<Self> {
        let Some(open) = open else { return Self::begun(trimmed) };
        let is_end = match open {
            Self::Comment => trimmed.contains("-->"),
            Self::Code { mark, length } => fence(trimmed)
                .is_some_and(|(other, long, rest)| other == mark && long >= length && rest.trim().is_empty()),
        };
        (!is_end).then_some(open)
    }

    /// Returns a line that closes the block.
    fn end(self) -> String {
        match self {
            Self::Comment => "-->".to_owned(),
            Self::Code { mark, length } => mark.to_string().repeat(length),
        }
    }
}

/// Returns the block that is still open at the end of a text.
fn open_at_end(text: &str) -> Option<Aside> {
    text.lines().fold(None, |open, line| Aside::after(open, line.trim_start()))
}

/// Returns the character of a fence, its length, and the text after it.
fn fence(trimmed: &str) -> Option<(char, usize, &str)> {
    let mark = trimmed.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = trimmed.trim_start_matches(mark);
    let length = trimmed.len() - rest.len();
    (length >= 3).then_some((mark, length, rest))
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    ((1..=6).contains(&level) && title.starts_with(' '))
        .then(|| title.trim().trim_end_matches('#').trim_end())
}

fn is_item(trimmed: &str) -> bool {
    bullet(trimmed).is_some()
}

/// Returns the length of the bullet or number of an item, spaces after it included.
fn bullet(trimmed: &str) -> Option<usize> {
    let digits = trimmed.chars().take_while(char::is_ascii_digit).count();
    let end = match trimmed.chars().nth(digits)? {
        '-' | '*' | '+' if digits == 0 => 1,
        '.' | ')' if (1..10).contains(&digits) => digits + 1,
        _ => return None,
    };
    let spaces = trimmed[end..].len() - trimmed[end..].trim_start_matches(' ').len();
    (spaces > 0).then_some(end + spaces)
}

/// Splits a line at its box: the text before it, its mark, and the text after it.
fn boxed(line: &str) -> Option<(&str, char, &str)> {
    let trimmed = line.trim_start();
    let at = line.len() - trimmed.len() + bullet(trimmed)?;
    let mut rest = line[at..].chars();
    let (open, mark, close) = (rest.next()?, rest.next()?, rest.next()?);
    // A letter in brackets, other than an `x`, is a link or text such as `[a]`.
    let is_mark = !mark.is_alphanumeric() || matches!(mark, 'x' | 'X');
    // `str::lines` keeps a `\r` at the end of a text. It becomes part of the line ending once an export adds `\n`.
    let after = rest.as_str().trim_end_matches('\r');
    let is_box = open == '[' && close == ']' && is_mark && (after.is_empty() || after.starts_with(' '));
    (is_box && !mark.is_control()).then_some((&line[..at], mark, after.trim()))
}

/// Returns the width of the indentation in columns; a tab advances to the next multiple of 4.
fn width(lead: &str) -> usize {
    let blank = lead.chars().take_while(|c| c.is_whitespace());
    blank.fold(0, |width, c| if c == '\t' { width / 4 * 4 + 4 } else { width + 1 })
}

fn take_ours(text: &str) -> (String, OwnFields) {
    let found = text
        .rfind(COMMENT)
        .and_then(|at| Some((at, text[at..].strip_prefix(COMMENT)?.strip_suffix(" -->")?)));
    match found {
        Some((at, inside)) => (text[..at].trim_end().to_owned(), OwnFields::parse(inside)),
        None => (text.to_owned(), OwnFields::default()),
    }
}

pub(crate) fn write(tasks: &[Task], document: &ExistingDocument<'_>) -> Written {
    let (name, text) = document.files.first();
    let name = if name.is_empty() { "tasks.md" } else { name };
    let mut written = Written::default();
    unsupported::say(tasks, FIELDS, "a checklist has no place for it", &mut written.left_out);
    let said = layout::lines(document.tasks, text, document.names);
    let mut said = rendered(&said, true).into_iter().zip(&said).filter(|(_, line)| line.document.is_some());
    let (lines, mut out) = (layout::lines(tasks, text, document.names), Vec::new());
    for (line, now) in lines.iter().zip(rendered(&lines, false)) {
        out.push(match line.document.zip(line.document.and_then(|_| said.next())) {
            Some(((raw, end), (said, _))) => lines::Line::document(as_there(raw, &said, now), end),
            None => lines::Line::new(now),
        });
    }
    written.files.insert(name, lines::joined(&out, text));
    written
}

/// Removes items from a text, with the lines indented below them that are not other items.
pub(crate) fn without(files: &Files, is_out: &[bool]) -> Files {
    let (name, text) = files.first();
    let mut left = files.clone();
    left.insert(name, layout::without(text, is_out));
    left
}

/// Returns the existing line if the export of the task did not change. If only the mark changed, replaces only that.
fn as_there(raw: &str, said: &str, now: String) -> String {
    if said == now {
        return raw.to_owned();
    }
    let (Some((lead, mark, _)), Some((_, _, said)), Some((new_lead, new_mark, new))) =
        (boxed(raw), boxed(said), boxed(&now))
    else {
        return now;
    };
    if said != new || lead != new_lead {
        return now;
    }
    let (before, after) = raw.split_at(lead.len() + 1);
    format!("{before}{new_mark}{}", &after[mark.len_utf8()..])
}

/// A line to write.
struct Line<'t> {
    what: What<'t>,
    /// The existing line, with its ending; `None` for a new one.
    document: Option<(&'t str, &'t str)>,
}

impl Line<'_> {
    fn text(text: impl Into<String>) -> Self {
        Self { what: What::Text(text.into()), document: None }
    }
}

/// The kind of a line.
enum What<'t> {
    /// A line that is not an item.
    Text(String),
    /// An item without a task here.
    Other { line: String, text: String },
    /// A task.
    Task { task: &'t Task, lead: String, known_by: KnownBy },
}

/// The way in which a line identifies its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KnownBy {
    /// By its previous text.
    Text,
    /// By a taskpawl comment.
    Comment,
    /// Not at all: the line is new.
    Nothing,
}

/// Returns lines as text. Equal names are numbered as the new text will be read. With `is_there` the lines are those of the existing
/// text, in which the text of a line identifies its task.
fn rendered(lines: &[Line<'_>], is_there: bool) -> Vec<String> {
    let mut names = BTreeSet::new();
    let one = |line: &Line<'_>| match &line.what {
        What::Text(line) => line.clone(),
        What::Other { line, text } => {
            name_of(text, &mut names);
            line.clone()
        }
        What::Task { task, lead, known_by } => {
            let name = name_of(&one_line(&task.name), &mut names);
            let is_named = match known_by {
                KnownBy::Text => is_there || own_name(task) == name,
                KnownBy::Comment => false,
                KnownBy::Nothing => task.id.as_str() == name,
            };
            line_of(task, lead, is_named)
        }
    };
    lines.iter().map(one).collect()
}

/// Returns the name of a task in the file that it was imported from.
fn own_name(task: &Task) -> String {
    kept(task, FORMAT).get("id").and_then(Value::as_str).unwrap_or(task.id.as_str()).to_owned()
}

fn line_of(task: &Task, lead: &str, has_id: bool) -> String {
    let own = states::own(task);
    let kept = kept(task, FORMAT);
    let before = kept.get("mark").and_then(Value::as_str).and_then(|mark| mark.chars().next());
    let before = before.filter(|mark| states::fits(task, status_of(*mark)));
    let mark = before.unwrap_or(mark_of(own));
    let said = before.map_or(status_of(mark), |_| own);
    let name = one_line(&task.name);
    // A name that ends like a taskpawl comment would be misread. A comment with the id after it prevents that.
    let has_id = has_id && take_ours(&name).0 == name;
    let own_fields = OwnFields::of(task, has_id, said, taskpawl_model::task::Priority::Medium).text();
    let own_fields = own_fields.map(|text| format!(" {}", comment(&text))).unwrap_or_default();
    format!("{lead}[{mark}] {name}{own_fields}")
}
