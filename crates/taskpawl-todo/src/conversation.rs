//! The `conversation` dialect: one file per conversation, below the project.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};
use taskpawl_tools::CallContext;
use uuid::Uuid;

use crate::answer::Answer;
use crate::args::Args;
use crate::file::{Content, FileError, ListFile, corrupt};
use crate::folder::Place;
use crate::list::{End, Item, ItemId, List, State};
use crate::lists::{Lists, READ_ONLY};
use crate::vocabulary::Verb;

const NO_CONVERSATION: &str = "Error: Task list is not available (no conversation context).";
const NO_UUID: &str = "Error: conversation id must be a UUID.";
const CORRUPT: &str = "Error: Task file is corrupt or invalid.";

/// Name of the argument for the conversation.
pub(crate) const ARGUMENT: &str = "conversation_id";

/// Arguments of all tools of the dialect.
const ARGUMENTS: [&str; 4] = ["title", "description", "taskId", ARGUMENT];

/// A task in the form of the answers.
#[derive(Serialize)]
struct Shown<'a> {
    id: &'a ItemId,
    title: &'a str,
    description: &'a str,
    done: bool,
}

#[derive(Serialize)]
struct All<'a> {
    tasks: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct Changed<'a> {
    ok: bool,
    task: Shown<'a>,
}

impl<'a> Shown<'a> {
    fn of(item: &'a Item) -> Self {
        let done = item.state == State::Done;
        Self { id: &item.id, title: &item.title, description: &item.description, done }
    }
}

/// Handles a call.
pub(crate) fn answer(lists: &Lists, verb: Verb, cx: &CallContext, args: Args<'_>) -> Answer {
    let Some(id) = lists.rule().named(cx, args, ARGUMENT) else { return Answer::line(NO_CONVERSATION) };
    let Some(file) = file(lists, lists.base().unwrap_or(&cx.root), &id) else { return Answer::line(NO_UUID) };
    if let Some(name) = args.unknown_list(&ARGUMENTS) {
        return Answer::not_ok(&format!("unknown argument `{name}`: AddTask takes one task, with a title"));
    }
    if verb != Verb::ListTasks && lists.is_read_only() {
        return Answer::line(format!("Error: {READ_ONLY}."));
    }
    let answered = match verb {
        Verb::AddTask => match added(lists, args) {
            Ok(item) => add(&file, item),
            Err(problem) => return Answer::not_ok(problem),
        },
        Verb::CompleteTask | Verb::UncompleteTask | Verb::DeleteTask => match task_id(args) {
            Some(id) if verb == Verb::DeleteTask => delete(&file, &id),
            Some(id) => mark(&file, &id, verb == Verb::CompleteTask),
            None => return Answer::not_ok("taskId is required"),
        },
        Verb::ListTasks | Verb::Manage | Verb::Write | Verb::Read | Verb::Queue | Verb::Promote => all(&file),
    };
    answered.unwrap_or_else(|error| failed(cx, &file, &error))
}

/// Returns the items of a conversation, or `None` if the id is not a UUID.
pub(crate) fn items(lists: &Lists, base: &Path, id: &str) -> Option<Result<Vec<Item>, FileError>> {
    let file = file(lists, base, id)?;
    Some(file.read().and_then(|content| Ok(list(&content)?.iter().cloned().collect())))
}

/// Returns the file of a conversation, or `None` if the id is not a UUID.
fn file(lists: &Lists, base: &Path, id: &str) -> Option<ListFile> {
    let id = Uuid::parse_str(id).ok()?;
    // The id is written in its simple form, so that all spellings of a UUID name the same file.
    let folder = PathBuf::from(".agents/tasks");
    let place = Place { base: base.to_owned(), folder, is_private: false };
    let known = &["id", "title", "description", "done"];
    Some(ListFile {
        place,
        name: format!("{}.json", id.simple()),
        field: "tasks",
        known,
        memory: lists.memory(),
    })
}

fn all(file: &ListFile) -> Result<Answer, FileError> {
    let list = list(&file.read()?)?;
    Ok(Answer::json(&All { tasks: list.iter().map(Shown::of).collect() }))
}

fn added(lists: &Lists, args: Args<'_>) -> Result<Item, &'static str> {
    let title = args.filled("title").ok_or("title is required")?;
    let description = match args.get("description") {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(_) => return Err("description must be a string"),
    };
    let id = ItemId::Text(lists.source().new_id());
    Ok(Item { description, ..Item::new(id, title.to_owned()) })
}

fn add(file: &ListFile, item: Item) -> Result<Answer, FileError> {
    file.change(|content| {
        let mut list = list(content)?;
        let answer = Answer::json(&Shown::of(&item));
        list.push(End::Back, item);
        write(content, &list);
        Ok(answer)
    })
}

fn mark(file: &ListFile, id: &str, is_done: bool) -> Result<Answer, FileError> {
    let changed = file.change_existing(|content| {
        let mut list = list(content)?;
        let Some(item) = list.find(id) else { return Ok(not_found()) };
        item.state = if is_done { State::Done } else { State::Open };
        let answer = Answer::json(&Changed { ok: true, task: Shown::of(item) });
        write(content, &list);
        Ok(answer)
    })?;
    Ok(changed.unwrap_or_else(not_found))
}

fn delete(file: &ListFile, id: &str) -> Result<Answer, FileError> {
    let changed = file.change_existing(|content| {
        let mut list = list(content)?;
        if !list.remove(id) {
            return Ok(was_gone());
        }
        write(content, &list);
        Ok(Answer::ok())
    })?;
    Ok(changed.unwrap_or_else(was_gone))
}

/// A missing task needs no deletion. This is not an error, because a call that is repeated after a crash finds the task
/// gone.
fn was_gone() -> Answer {
    not_found().no_refusal()
}

/// Returns the id in a call. Other programs may have written files with numeric ids.
fn task_id(args: Args<'_>) -> Option<String> {
    let id = ItemId::read(args.get("taskId")?)?.to_string();
    (!id.trim().is_empty()).then_some(id)
}

fn not_found() -> Answer {
    Answer::not_ok("Task not found")
}

fn failed(cx: &CallContext, file: &ListFile, error: &FileError) -> Answer {
    match error {
        FileError::Corrupt { detail } => {
            cx.report(format!("failed to read `{}`: {detail}", file.name));
            Answer::line(CORRUPT)
        }
        FileError::Io(error) => Answer::line(format!("Error: {error}")),
    }
}

fn list(content: &Content) -> Result<List, FileError> {
    let items = content.items.iter().enumerate().map(|(position, value)| {
        read(value).ok_or_else(|| corrupt(format!("`tasks[{position}]` is not a task")))
    });
    Ok(List::of(items.collect::<Result<Vec<_>, _>>()?))
}

/// Parses a task. Missing fields get a default; a field of the wrong type is an error.
fn read(value: &Value) -> Option<Item> {
    let mut beside = value.as_object()?.clone();
    let mut text = |name: &str| match beside.remove(name) {
        None => Some(String::new()),
        Some(Value::String(text)) => Some(text),
        Some(_) => None,
    };
    let (title, description) = (text("title")?, text("description")?);
    let id = match beside.remove("id") {
        None => ItemId::Text(String::new()),
        Some(id) => ItemId::read(&id)?,
    };
    let state = match beside.remove("done") {
        None | Some(Value::Bool(false)) => State::Open,
        Some(Value::Bool(true)) => State::Done,
        Some(_) => return None,
    };
    Some(Item { id, title, description, state, urgency: None, beside })
}

fn write(content: &mut Content, list: &List) {
    content.items = list.iter().map(value).collect();
}

fn value(item: &Item) -> Value {
    let mut object = item.beside.clone();
    object.insert("id".to_owned(), json!(item.id));
    object.insert("title".to_owned(), json!(item.title));
    object.insert("description".to_owned(), json!(item.description));
    object.insert("done".to_owned(), json!(item.state == State::Done));
    Value::Object(object)
}
