//! The text after the front matter: sections, some of them between marker comments.

use std::fmt::Write as _;

use taskpawl_model::task::{Note, Task};
use taskpawl_model::value::TaskId;
use taskpawl_model::value::Timestamp;

use crate::lines::one_line;
use crate::own_fields::{COMMENT, OwnFields, comment};
use crate::times::{minutes, to_minutes};

const TITLE: &str = "## Description";
const BEGIN: &str = "<!-- SECTION:DESCRIPTION:BEGIN -->";
const END: &str = "<!-- SECTION:DESCRIPTION:END -->";
const COMMENTS_TITLE: &str = "## Comments";
const COMMENTS_BEGIN: &str = "<!-- COMMENTS:BEGIN -->";
const COMMENTS_END: &str = "<!-- COMMENTS:END -->";

/// Removes taskpawl's own fields from a body: the comment on its last line. Backlog.md preserves that line.
pub(super) fn take_ours(body: &str) -> (&str, OwnFields) {
    let body = body.trim();
    match ours_in(last_line(body)) {
        Some(inside) => (body[..body.len() - last_line(body).len()].trim(), OwnFields::parse(inside)),
        None => (body, OwnFields::default()),
    }
}

/// Appends taskpawl's own fields to a body. If the last line of the text looks like such a comment, one with the id is always appended, so
/// that [`take_ours`] removes that one.
pub(super) fn with_ours(body: String, own_fields: &OwnFields, id: &TaskId) -> String {
    let is_alike = ours_in(last_line(body.trim())).is_some();
    match own_fields.text().or_else(|| is_alike.then(|| format!("id={id}"))) {
        Some(text) if body.is_empty() => comment(&text),
        Some(text) => format!("{body}\n\n{}", comment(&text)),
        None => body,
    }
}

fn last_line(text: &str) -> &str {
    text.rsplit('\n').next().unwrap_or_default()
}

/// Returns the content of a taskpawl comment; `None` if the line is none.
fn ours_in(line: &str) -> Option<&str> {
    let inside = line.trim().strip_prefix(COMMENT)?.strip_suffix("-->")?;
    (!inside.contains("-->")).then_some(inside)
}

/// Returns the description: the text between its markers, or below its title if the body has no markers.
pub(super) fn description(body: &str) -> String {
    if let Some((_, inside, _)) = between(body, BEGIN, END) {
        return inside.trim().to_owned();
    }
    let Some((_, after)) = below(body, TITLE) else { return String::new() };
    let end = after.find("\n## ").unwrap_or(after.len());
    after[..end].trim().to_owned()
}

/// Splits a text at two markers.
fn between<'b>(text: &'b str, begin: &str, end: &str) -> Option<(&'b str, &'b str, &'b str)> {
    let (before, rest) = text.split_once(begin)?;
    let (inside, after) = rest.split_once(end)?;
    Some((before, inside, after))
}

/// Splits a body at its comments section. A marker inside the description is text, and is skipped.
fn at_comments(body: &str) -> Option<(&str, &str, &str)> {
    let described =
        between(body, BEGIN, END).map(|(before, _, after)| before.len()..body.len() - after.len());
    let is_free = |at: &usize| described.as_ref().is_none_or(|range| !range.contains(at));
    let begin = body.match_indices(COMMENTS_BEGIN).map(|(at, _)| at).find(is_free)?;
    let (inside, after) = body[begin + COMMENTS_BEGIN.len()..].split_once(COMMENTS_END)?;
    Some((&body[..begin], inside, after))
}

/// Splits a text at the first line that equals `title`.
fn below<'b>(text: &'b str, title: &str) -> Option<(&'b str, &'b str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == title {
            return Some((&text[..at], &text[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// Returns the comments. One without a time gets the creation time of the task.
pub(super) fn comments(body: &str, created: Timestamp) -> Vec<Note> {
    let Some((_, inside, _)) = at_comments(body) else { return Vec::new() };
    let (mut notes, mut lines) = (Vec::new(), inside.lines().peekable());
    while lines.peek().is_some() {
        let mut note = Note { at: created, actor: String::new(), text: String::new() };
        for line in lines.by_ref().take_while(|line| line.trim() != "---") {
            match line.split_once(':').map(|(name, value)| (name.trim(), value.trim())) {
                // The name stays as it is: Backlog.md writes the author as given, with or without `@`.
                Some(("author", name)) => name.clone_into(&mut note.actor),
                Some(("created", at)) => note.at = minutes(at).unwrap_or(created),
                _ => {}
            }
        }
        let text: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "---").collect();
        text.join("\n").trim().clone_into(&mut note.text);
        if !note.text.is_empty() {
            notes.push(note);
        }
    }
    notes
}

/// Returns the body of a task without a preserved body.
pub(super) fn of(task: &Task) -> String {
    let body = with_description(String::new(), &task.description);
    with_comments(body, &task.notes, task.created_at)
}

/// Returns the body with the description and the comments of the task. Unchanged sections keep their text.
pub(super) fn updated(body: String, task: &Task) -> String {
    let body = if description(&body) == task.description.trim() {
        body
    } else {
        with_description(body, &task.description)
    };
    if is_same(&comments(&body, task.created_at), &task.notes) {
        body
    } else {
        with_comments(body, &task.notes, task.created_at)
    }
}

fn is_same(before: &[Note], now: &[Note]) -> bool {
    let same = |one: &Note, other: &Note| {
        // Backlog.md stores minutes, so seconds never survive a round trip.
        one.text == other.text.trim() && to_minutes(one.at) == to_minutes(other.at)
    };
    before.len() == now.len() && before.iter().zip(now).all(|(one, other)| same(one, other))
}

/// Returns a description without the marker that would end its section early.
fn unended(text: &str) -> String {
    text.replace(END, &END.replace("<!", "< !"))
}

/// Returns the fields of a task whose text is written with another spelling, and the reason.
pub(super) fn respelled(task: &Task) -> Vec<(&'static str, &'static str)> {
    let description = (unended(&task.description) != task.description)
        .then_some(("description", "the marker of its end in it is written as `< !-- …`"));
    let notes = task.notes.iter().any(|note| harmless(&note.text) != note.text.trim());
    let notes = notes.then_some((
        "notes",
        "lines of `---` and markers of Backlog.md in them are written as `- - -` and `< !-- …`",
    ));
    description.into_iter().chain(notes).collect()
}

fn with_description(body: String, text: &str) -> String {
    // The end marker inside a description would end the section early.
    let text = unended(text.trim());
    if let Some((before, _, after)) = between(&body, BEGIN, END) {
        return format!("{before}{BEGIN}\n{text}\n{END}{after}");
    }
    if text.is_empty() {
        return body;
    }
    let section = format!("{TITLE}\n\n{BEGIN}\n{text}\n{END}");
    let rest = match below(&body, TITLE) {
        Some((before, after)) => {
            let end = after.find("\n## ").unwrap_or(after.len());
            format!("{before}{}", &after[end..])
        }
        None => body,
    };
    if rest.trim().is_empty() { section } else { format!("{section}\n\n{}", rest.trim()) }
}

/// Returns the body with these comments; those that it has already keep their text. Comments without a time have that of `created`.
fn with_comments(body: String, notes: &[Note], created: Timestamp) -> String {
    let there = comments(&body, created);
    let stays = notes.get(..there.len()).is_some_and(|notes| is_same(&there, notes));
    let kept = at_comments(&body).filter(|_| stays).map(|(_, inside, _)| inside.trim_end());
    let mut inside = kept.map_or_else(String::new, str::to_owned) + "\n";
    for note in &notes[if stays { there.len() } else { 0 }..] {
        if inside.len() > 1 {
            inside.push('\n');
        }
        if !note.actor.is_empty() {
            let _ = writeln!(inside, "author: {}", one_line(&note.actor));
        }
        let _ = writeln!(inside, "created: {}\n---\n{}\n---", to_minutes(note.at), harmless(&note.text));
    }
    if let Some((before, _, after)) = at_comments(&body) {
        return format!("{before}{COMMENTS_BEGIN}{inside}{COMMENTS_END}{after}");
    }
    if notes.is_empty() {
        return body;
    }
    let section = format!("{COMMENTS_TITLE}\n\n{COMMENTS_BEGIN}{inside}{COMMENTS_END}");
    if body.is_empty() { section } else { format!("{body}\n\n{section}") }
}

/// Escapes lines and markers that would end a comment early.
fn harmless(text: &str) -> String {
    let lines: Vec<String> = text
        .trim()
        .lines()
        .map(|line| if line.trim() == "---" { "- - -".to_owned() } else { line.to_owned() })
        .collect();
    let text = lines.join("\n");
    let markers = [BEGIN, END, COMMENTS_BEGIN, COMMENTS_END].into_iter();
    markers.fold(text, |text, marker| text.replace(marker, &marker.replace("<!", "< !")))
}
