//! The commands that the page may give: those that the terminal allows a program.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use taskpawl::model::value::Selector;
use taskpawl::{Error, Manager};

use crate::answer::{Problem, Reply};
use crate::page::Page;

/// Maximum size of a command, in bytes.
pub(crate) const MAX_BYTES: usize = 64 << 10;

/// A command on tasks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Command {
    #[serde(rename = "command")]
    verb: Verb,
    #[serde(default)]
    ids: Vec<String>,
    /// For `undo`: a revision of the command.
    #[serde(default)]
    revision: Option<u64>,
    /// The reason of `cancel`, `skip` and `block`, and the text of `note`.
    #[serde(default)]
    text: Option<String>,
    /// For `retry` and `reopen`: also what ran after the tasks.
    #[serde(default)]
    cascade: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verb {
    Retry,
    Reopen,
    Cancel,
    Skip,
    Block,
    Unblock,
    Note,
    Undo,
}

/// The tasks of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartRun {
    /// Ids, `plan:NAME` or `label:NAME`; empty for all tasks.
    #[serde(default)]
    pub(crate) only: Vec<String>,
}

impl StartRun {
    pub(crate) fn selectors(&self) -> Vec<Selector> {
        // Every text is a selector: one without a prefix names a task.
        self.only.iter().map(|text| text.parse().unwrap_or_else(|error| match error {})).collect()
    }
}

/// The way to stop a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopRun {
    /// Also ends running calls.
    #[serde(default)]
    pub(crate) now: bool,
}

/// Reads the body of a request, which is an object. A list would fill the fields of a type in their order.
///
/// # Errors
/// The body is no JSON of this form.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // Duplicate names are refused: two readers of one text must not see two commands.
    let object: Result<Map<String, Value>, _> = taskpawl_json::read(body);
    let invalid = |error: &dyn std::fmt::Display| Problem::invalid(format!("the body is not valid: {error}"));
    let object = object.map_err(|error| invalid(&error))?;
    serde_json::from_value(Value::Object(object)).map_err(|error| invalid(&error))
}

impl Command {
    /// Gives the command. `manager` acts as a program.
    ///
    /// # Errors
    /// The rules refuse it, or it lacks what it is about.
    pub(crate) fn give(self, page: &Page) -> Result<Reply, Problem> {
        let manager = page.plans.manager();
        if self.verb == Verb::Undo {
            let Some(revision) = self.revision else {
                return Err(Problem::invalid("`undo` needs a revision"));
            };
            return Ok(Reply::json(&page.known(manager.undo(Some(revision)))?));
        }
        if self.ids.is_empty() || self.revision.is_some() {
            return Err(Problem::invalid("the command needs ids, and no revision"));
        }
        page.known(self.give_to(manager))
    }

    fn give_to(self, manager: &Manager) -> Result<Reply, Error> {
        let Self { verb, ids, text, cascade, .. } = self;
        let tasks = match verb {
            Verb::Retry => manager.retry(&ids, cascade)?,
            Verb::Reopen => manager.reopen(&ids, cascade)?,
            Verb::Cancel => manager.cancel(&ids, text)?,
            Verb::Skip => manager.skip(&ids, text)?,
            Verb::Block => manager.block(&ids, text.unwrap_or_default())?,
            Verb::Unblock => manager.unblock(&ids)?,
            Verb::Note | Verb::Undo => {
                let text = text.unwrap_or_default();
                ids.iter().map(|id| manager.note(id, text.clone())).collect::<Result<_, _>>()?
            }
        };
        Ok(Reply::json(&json!({"tasks": tasks})))
    }
}
