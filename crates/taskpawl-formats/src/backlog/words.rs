//! The words of a project of Backlog.md.

use serde_json::Value;
use taskpawl_model::task::{Status, Task};
use taskpawl_model::value::Map;

use super::CONFIG;
use crate::error::Position;
use crate::faults::conflict;
use crate::files::Files;
use crate::front_matter;
use crate::reading::LeftOut;
use crate::record::{Read, Record};

/// Words for blocked tasks, in lower case.
const BLOCKED: &[&str] = &["blocked", "on hold"];

/// The status words and the id prefix of a project.
#[derive(Debug, Clone)]
pub(super) struct Words {
    pub(super) all: Vec<String>,
    pub(super) first: String,
    pub(super) prefix: String,
}

impl Words {
    pub(super) fn read(files: &Files) -> Read<Self> {
        let mut words = Self {
            all: ["To Do", "In Progress", "Done"].map(str::to_owned).to_vec(),
            first: "To Do".to_owned(),
            prefix: "task".to_owned(),
        };
        let Some(text) = files.get(CONFIG) else { return Ok(words) };
        if let Some(error) = conflict(CONFIG, text) {
            return Err(error);
        }
        let place = Position::of(CONFIG);
        let mut config = Record { map: front_matter::parse(text, &place, 1)?, place };
        let all = config.texts("statuses")?;
        if !all.is_empty() {
            words.first.clone_from(&all[0]);
            words.all = all;
        }
        if let Some(first) = config.text("default_status")? {
            words.first = first;
        }
        if let Some(prefix) = config.text("task_prefix")?.filter(|prefix| !prefix.is_empty()) {
            words.prefix = prefix;
        }
        Ok(words)
    }

    /// Returns the status for a word. A custom word has the status of its position: the first is `todo`, the last is `done`.
    pub(super) fn status(&self, word: &str) -> Status {
        let is = |other: &str| word.eq_ignore_ascii_case(other);
        let known: [(&[&str], Status); 5] = [
            (&["to do", "todo", "backlog", "open", "draft"], Status::Todo),
            (&["in progress", "doing", "in review", "review"], Status::InProgress),
            (&["done", "completed", "complete", "closed"], Status::Done),
            (BLOCKED, Status::Blocked),
            (&["cancelled", "canceled", "won't do"], Status::Cancelled),
        ];
        let found = known.iter().find(|(words, _)| words.iter().any(|word| is(word)));
        if let Some((_, status)) = found {
            return *status;
        }
        match self.all.iter().position(|other| is(other)) {
            _ if is(&self.first) => Status::Todo,
            Some(0) => Status::Todo,
            Some(place) if place + 1 == self.all.len() => Status::Done,
            Some(_) => Status::InProgress,
            // The project does not list the word, so nothing tells if work may start.
            None => Status::Blocked,
        }
    }

    /// Lists the words of a task that are not known.
    pub(super) fn unknown(&self, task: &Task, kept: &Map) -> Vec<LeftOut> {
        let word = |field: &str| kept.get(field).and_then(Value::as_str);
        let is = |word: &str, known: &[&str]| known.iter().any(|known| known.eq_ignore_ascii_case(word));
        let status = word("status").filter(|word| {
            let is_listed = self.all.iter().any(|known| known.eq_ignore_ascii_case(word));
            self.status(word) == Status::Blocked && !is_listed && !is(word, BLOCKED)
        });
        let priorities = ["critical", "urgent", "high", "medium", "low", ""];
        let priority = word("priority").filter(|word| !is(word, &priorities));
        let found = [("status", status, "blocked"), ("priority", priority, "medium")];
        let one = |(field, word, meaning)| {
            let why = format!("the word `{}` is not known, and counts as {meaning}", word?);
            Some(LeftOut::new(format!("{}: {field}", task.id), why))
        };
        found.into_iter().filter_map(one).collect()
    }

    /// Returns the word for a status: the project's own, or else the nearest one.
    pub(super) fn word(&self, status: Status) -> String {
        let own = self.all.iter().find(|word| self.status(word) == status);
        let last = || self.all.iter().rev().find(|word| self.status(word) == Status::Done);
        match (own, status) {
            (Some(word), status) if status != Status::Todo => word.clone(),
            (_, Status::Done | Status::Cancelled | Status::Skipped) => {
                last().map_or_else(|| "Done".to_owned(), Clone::clone)
            }
            (_, Status::InProgress) => "In Progress".to_owned(),
            (_, Status::Todo | Status::Blocked | Status::Failed) => self.first.clone(),
        }
    }
}
