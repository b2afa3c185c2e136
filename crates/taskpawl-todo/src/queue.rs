//! The `queue` dialect: a double-ended queue for each agent, with operations as in Redis.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use taskpawl_model::value::Period;
use taskpawl_model::value::Timestamp;
use taskpawl_tools::CallContext;

use crate::answer::{Answer, text};
use crate::args::Args;
use crate::file::{Content, FileError, ListFile, corrupt};
use crate::folder::Place;
use crate::list::{End, Item, ItemId, List};
use crate::lists::{Lists, READ_ONLY};

/// Longest name of a directory, in bytes.
const MAX_ID_BYTES: usize = 255;

/// Longest lease of an item.
const MAX_LEASE: Duration = Duration::from_hours(365 * 24);

/// Names of the operations.
pub(crate) const OPERATIONS: [&str; 9] =
    ["lpush", "rpush", "lpop", "rpop", "lpeek", "rpeek", "list", "count", "ack"];

/// Arguments of the tool.
const ARGUMENTS: [&str; 5] = ["agent_id", "operation", "item", "lease", "receipt"];

/// The requested operation.
enum Operation {
    Push(End, String),
    Pop(End, Option<Period>),
    Peek(End),
    All,
    Count,
    Ack(String),
}

#[derive(Serialize)]
struct Counted {
    count: usize,
}

#[derive(Serialize)]
struct Taken<'a> {
    item: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<&'a str>,
}

#[derive(Serialize)]
struct All<'a> {
    items: Vec<&'a str>,
}

/// An item that was taken with a lease and is not acknowledged yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Lease {
    receipt: String,
    item: String,
    end: End,
    until: Timestamp,
    #[serde(flatten)]
    beside: Map<String, Value>,
}

/// A queue with its leased items, in the order in which they were taken.
struct Kept {
    list: List,
    leases: Vec<Lease>,
}

/// Handles a call.
pub(crate) fn answer(lists: &Lists, cx: &CallContext, args: Args<'_>) -> Answer {
    let agent = match args.get("agent_id") {
        Some(Value::String(agent)) if !agent.trim().is_empty() => agent,
        Some(Value::Null | Value::String(_)) | None => return Answer::error("agent_id is required"),
        Some(_) => return Answer::error("agent_id must be a string"),
    };
    if let Some(name) = args.unknown_list(&ARGUMENTS) {
        return Answer::error(format!("unknown argument `{name}`: lpush and rpush take one item"));
    }
    let operation = match operation(args) {
        Ok(operation) => operation,
        Err(error) => return Answer::error(error),
    };
    let Some(root) = lists.queue_root() else { return Answer::error("no folder for queues is configured") };
    let Some(file) = file(root, agent) else {
        return Answer::error(format!("agent_id `{}` would leave its folder", agent.escape_default()));
    };
    let answered = match operation {
        Operation::Push(..) | Operation::Pop(..) | Operation::Ack(_) if lists.is_read_only() => {
            return Answer::error(READ_ONLY);
        }
        Operation::Push(end, item) => push(lists, &file, end, item),
        Operation::Pop(end, lease) => pop(lists, &file, end, lease),
        Operation::Ack(receipt) => acknowledge(lists, &file, &receipt),
        Operation::Peek(end) => look(lists, &file, |list| Answer::json(&taken(list.peek(end)))),
        Operation::All => look(lists, &file, |list| {
            Answer::json(&All { items: list.iter().map(|item| item.title.as_str()).collect() })
        }),
        Operation::Count => look(lists, &file, counted),
    };
    answered.unwrap_or_else(|error| failed(cx, agent, &error))
}

/// Returns the items of an agent; `None` for an id that would leave the directory.
pub(crate) fn items(root: &Path, agent: &str, now: Timestamp) -> Option<Result<Vec<Item>, FileError>> {
    let file = file(root, agent)?;
    Some(file.read().and_then(|content| Ok(kept(&content, now)?.list.iter().cloned().collect())))
}

/// Returns items in the form of the answer to `list`.
pub(crate) fn listed(items: &[Item]) -> String {
    text(&All { items: items.iter().map(|item| item.title.as_str()).collect() })
}

fn operation(args: Args<'_>) -> Result<Operation, String> {
    let word = match args.get("operation") {
        None => return Err("operation is required".to_owned()),
        Some(Value::String(word)) => word.clone(),
        Some(other) => other.to_string(),
    };
    let lease = args.get("lease").map(lease).transpose()?;
    if lease.is_some() && word != "lpop" && word != "rpop" {
        return Err("lease is only for lpop and rpop".to_owned());
    }
    match word.as_str() {
        "lpush" => Ok(Operation::Push(End::Front, item(args)?)),
        "rpush" => Ok(Operation::Push(End::Back, item(args)?)),
        "lpop" => Ok(Operation::Pop(End::Front, lease)),
        "rpop" => Ok(Operation::Pop(End::Back, lease)),
        "lpeek" => Ok(Operation::Peek(End::Front)),
        "rpeek" => Ok(Operation::Peek(End::Back)),
        "list" => Ok(Operation::All),
        "count" => Ok(Operation::Count),
        "ack" => args
            .filled("receipt")
            .map(|receipt| Operation::Ack(receipt.to_owned()))
            .ok_or_else(|| "receipt is required".to_owned()),
        _ => Err(format!("unknown operation `{word}`")),
    }
}

fn item(args: Args<'_>) -> Result<String, String> {
    match args.get("item") {
        Some(Value::String(item)) if !item.trim().is_empty() => Ok(item.clone()),
        Some(Value::String(_)) | None => Err("item is required".to_owned()),
        Some(_) => Err("item must be a string".to_owned()),
    }
}

fn lease(given: &Value) -> Result<Period, String> {
    let period: Option<Period> = given.as_str().and_then(|text| text.parse().ok());
    period
        .filter(|period| period.0 <= MAX_LEASE)
        .ok_or_else(|| "lease must be a duration such as `5m`, of at most 8760h".to_owned())
}

/// Returns the file of an agent; `None` unless the id is a valid name for a single directory.
fn file(root: &Path, agent: &str) -> Option<ListFile> {
    let is_name = agent != "."
        && agent != ".."
        && agent.len() <= MAX_ID_BYTES
        && !agent.chars().any(|c| c == '/' || c == '\\' || c.is_control());
    let folder = PathBuf::from("system/agents").join(agent);
    let place = Place { base: root.to_owned(), folder, is_private: true };
    is_name.then(|| ListFile {
        place,
        name: "tasks.json".to_owned(),
        field: "items",
        known: &[],
        memory: None,
    })
}

fn push(lists: &Lists, file: &ListFile, end: End, item: String) -> Result<Answer, FileError> {
    let now = lists.source().now();
    file.change(|content| {
        let mut kept = kept(content, now)?;
        kept.list.push(end, Item::new(ItemId::Text(String::new()), item));
        let answer = counted(&kept.list);
        kept.write(content);
        Ok(answer)
    })
}

fn pop(lists: &Lists, file: &ListFile, end: End, lease: Option<Period>) -> Result<Answer, FileError> {
    let (now, receipt) = (lists.source().now(), lists.source().new_id());
    let popped = file.change_existing(|content| {
        let mut kept = kept(content, now)?;
        let item = kept.list.pop(end);
        let lease = lease.and_then(|period| {
            let item = item.as_ref()?.title.clone();
            Some(Lease { receipt, item, end, until: now + period.0, beside: Map::new() })
        });
        let receipt = lease.as_ref().map(|lease| lease.receipt.as_str());
        let answer = Answer::json(&Taken { receipt, ..taken(item.as_ref()) });
        kept.leases.extend(lease);
        kept.write(content);
        Ok(answer)
    })?;
    Ok(popped.unwrap_or_else(|| Answer::json(&taken(None))))
}

fn acknowledge(lists: &Lists, file: &ListFile, receipt: &str) -> Result<Answer, FileError> {
    let now = lists.source().now();
    let unknown = || Answer::error(format!("unknown receipt `{}`", receipt.escape_default()));
    let found = file.change_existing(|content| {
        let mut kept = kept(content, now)?;
        let before = kept.leases.len();
        kept.leases.retain(|lease| lease.receipt != receipt);
        let is_known = kept.leases.len() < before;
        kept.write(content);
        Ok(if is_known { Answer::ok() } else { unknown() })
    })?;
    Ok(found.unwrap_or_else(unknown))
}

fn look(lists: &Lists, file: &ListFile, answer: impl FnOnce(&List) -> Answer) -> Result<Answer, FileError> {
    Ok(answer(&kept(&file.read()?, lists.source().now())?.list))
}

fn counted(list: &List) -> Answer {
    Answer::json(&Counted { count: list.len() })
}

fn taken(item: Option<&Item>) -> Taken<'_> {
    Taken { item: item.map(|item| item.title.as_str()), receipt: None }
}

/// Returns the content of a queue file. Items whose lease has expired by `now` are put back at the end from which they
/// were taken.
fn kept(content: &Content, now: Timestamp) -> Result<Kept, FileError> {
    let items = content.items.iter().enumerate().map(|(position, value)| match value {
        Value::String(item) => Ok(Item::new(ItemId::Text(String::new()), item.clone())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(corrupt(format!("`items[{position}]` is not text")))
        }
    });
    let mut list = List::of(items.collect::<Result<Vec<_>, _>>()?);
    let leases: Vec<Lease> = match content.beside.get("leased") {
        None => Vec::new(),
        Some(value) => Vec::deserialize(value).map_err(|error| corrupt(format!("`leased`: {error}")))?,
    };
    let (leases, over): (Vec<_>, Vec<_>) = leases.into_iter().partition(|lease| lease.until > now);
    // The last item taken is the nearest neighbour of the rest, so it goes back first.
    for lease in over.into_iter().rev() {
        list.push(lease.end, Item::new(ItemId::Text(String::new()), lease.item));
    }
    Ok(Kept { list, leases })
}

impl Kept {
    fn write(self, content: &mut Content) {
        content.items = self.list.iter().map(|item| Value::String(item.title.clone())).collect();
        if self.leases.is_empty() {
            content.beside.remove("leased");
        } else {
            content.beside.insert("leased".to_owned(), json!(self.leases));
        }
    }
}

fn failed(cx: &CallContext, agent: &str, error: &FileError) -> Answer {
    match error {
        FileError::Corrupt { detail } => {
            cx.report(format!("failed to read the queue of `{agent}`: {detail}"));
            Answer::error("the queue is corrupt or invalid; its file is unchanged")
        }
        FileError::Io(error) => Answer::error(error.to_string()),
    }
}
