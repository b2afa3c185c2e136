//! Detection of formats, with the reason for each.

use serde_json::Value;

use crate::files::{Files, has_extension};
use crate::kind::Format;
use crate::{beads, claude, github, markdown, shrimp, taskmaster, tasks, taskwarrior, todotxt};

/// A format that was detected without doubt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    /// The format.
    pub format: Format,
    /// The reason, as a sentence about the file without a period.
    pub why: String,
}

impl Detected {
    fn new(format: Format, why: impl Into<String>) -> Self {
        Self { format, why: why.into() }
    }
}

/// Returns the format of files, or `None` if none matches or several do.
pub fn detect(files: &Files) -> Option<Format> {
    detected("", files).ok().map(|detected| detected.format)
}

/// Returns the format of files. `path` is the path that they were read from, with `/` between its parts.
///
/// # Errors
/// Returns a description of the files, and the nearest way to import them.
pub fn detected(path: &str, files: &Files) -> Result<Detected, String> {
    let bare = files.unmarked();
    let files = bare.as_ref();
    let (name, text) = files.first();
    if files.iter().any(|(name, _)| name.starts_with("tasks/") || name == "config.yml") {
        return Ok(Detected::new(Format::Backlog, "it has `tasks/` or `config.yml` of Backlog.md"));
    }
    if files.iter().nth(1).is_some() {
        // Backlog.md is excluded, so each file must be a task of Claude. Faulty files do not hide the others.
        let is_json = files.iter().all(|(name, _)| has_extension(name, "json"));
        let (tasks, others): (Vec<&str>, Vec<&str>) =
            files.iter().map(|(_, text)| text).partition(|text| claude::is_task(text));
        return match others.as_slice() {
            [] if is_json => {
                Ok(Detected::new(Format::Claude, "each file is JSON with `id`, `subject` and `status`"))
            }
            others if is_json && !tasks.is_empty() && others.iter().all(|text| claude::is_faulty(text)) => {
                let why = format!(
                    "{} of {} files are JSON with `id`, `subject` and `status`",
                    tasks.len(),
                    tasks.len() + others.len()
                );
                Ok(Detected::new(Format::Claude, why))
            }
            _ => Err("several files, and not each is a JSON file of one task".to_owned()),
        };
    }
    if has_extension(name, "md") || has_extension(name, "markdown") {
        return Ok(of_markdown(path, text));
    }
    if let Some(nearest) = not_read(name) {
        return Err(nearest.to_owned());
    }
    of_text(name, text)
}

/// A format, the function that recognises its text, and the features that it checks.
type Check = (Format, fn(&str) -> bool, &'static str);

const CHECKS: &[Check] = &[
    (Format::Tasks, tasks::is_one, "its tasks have `id`, `name` and a status of taskpawl"),
    (Format::Shrimp, shrimp::is_one, "its tasks have `id`, `name` and a status or fields of Shrimp"),
    (Format::Taskmaster, taskmaster::is_one, "it has lists `tasks` with `id` and `title`"),
    (Format::Taskwarrior, taskwarrior::is_one, "its tasks have `uuid` and `description`"),
    (Format::GitHub, github::is_one, "its elements have `number`, `title` and `state`"),
    (Format::Claude, claude::is_one, "its elements have `content` and `status`, or it is one task file"),
    (Format::Beads, beads::is_one, "its lines are JSON objects with `id` and `title`"),
];

fn of_text(name: &str, text: &str) -> Result<Detected, String> {
    let found: Vec<&Check> = CHECKS.iter().filter(|(_, is_one, _)| is_one(text)).collect();
    match found.as_slice() {
        [(format, _, why)] => Ok(Detected::new(*format, *why)),
        [] if is_todo_txt(name) && !text.trim_start().starts_with(['{', '[']) => {
            Ok(Detected::new(Format::TodoTxt, "it is a text named like a todo.txt"))
        }
        [] if todotxt::is_one(text) => Ok(Detected::new(
            Format::TodoTxt,
            "its lines begin with `x`, a priority or a date, as in todo.txt",
        )),
        [] if markdown::has_items(text) => {
            Ok(Detected::new(Format::Markdown, "it has lines such as `- [ ] text`"))
        }
        [] => Err(seen(text)),
        several => {
            let names: Vec<&str> = several.iter().map(|(format, ..)| format.name()).collect();
            Err(format!("it could be {}", names.join(" or ")))
        }
    }
}

fn is_todo_txt(name: &str) -> bool {
    let name = name.to_lowercase();
    has_extension(&name, "txt")
        && (name.starts_with("todo") || name.starts_with("done") || name.ends_with("todo.txt"))
}

fn of_markdown(path: &str, text: &str) -> Detected {
    let parts: Vec<&str> = path.split('/').collect();
    let is_below = |above: &[&str]| parts.windows(above.len()).any(|window| window == above);
    if is_below(&[".kiro", "specs"]) {
        return Detected::new(Format::Kiro, "it lies below `.kiro/specs`");
    }
    if is_below(&["openspec", "changes"]) {
        return Detected::new(Format::OpenSpec, "it lies below `openspec/changes`");
    }
    if markdown::has_spec_ids(text) {
        return Detected::new(Format::SpecKit, "most of its items begin with ids such as `T001`");
    }
    Detected::new(Format::Markdown, "it is a Markdown file")
}

/// Returns the nearest way to import a format that is not read.
fn not_read(name: &str) -> Option<&'static str> {
    if has_extension(name, "org") {
        return Some(
            "it is an org file, which is not read; convert it with `pandoc -f org -t gfm` and import that as markdown",
        );
    }
    if has_extension(name, "csv") || has_extension(name, "tsv") {
        return Some(
            "it is a table, which is not read; convert its rows to JSON objects with `id`, `name` and `status` and import that as tasks",
        );
    }
    None
}

/// Describes a text of no known format.
fn seen(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(list)) => match list.first() {
            Some(Value::Object(map)) => format!("a JSON list of objects with {}", fields(map.keys())),
            Some(_) => "a JSON list without objects".to_owned(),
            None => "an empty JSON list".to_owned(),
        },
        Ok(Value::Object(map)) => format!("a JSON object with {}", fields(map.keys())),
        Ok(_) => "a single JSON value".to_owned(),
        Err(_) if text.trim().is_empty() => "an empty file".to_owned(),
        Err(_) => "a text without lines such as `- [ ] text`".to_owned(),
    }
}

fn fields<'f>(names: impl Iterator<Item = &'f String>) -> String {
    const MAX_NAMES: usize = 5;
    let names: Vec<String> = names.take(MAX_NAMES).map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "no fields".to_owned() } else { names.join(", ") }
}
