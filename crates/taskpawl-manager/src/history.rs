use serde::{Deserialize, Serialize};
use taskpawl_model::command::{Command, Refusal};
use taskpawl_model::rules::DecideError;
use taskpawl_model::rules::resolve;
use taskpawl_model::task::{CallRecord, CallStatus, Event, Status, TaskStatus};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{RunId, TaskId};
use taskpawl_model::view::{EventQuery, Query, Undoable, View, ViewResult};

use crate::error::Error;
use crate::manager::Manager;

/// Events per read of the whole history. Each chunk is a separate read transaction, because a long one would
/// keep SQLite from checkpointing its log.
const CHUNK: usize = 5_000;

/// A filter for the history. An empty field matches everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HistoryFilter {
    /// Events of this task: its id or a unique prefix. A deleted task must be named by its full id.
    pub task: Option<String>,
    /// Events by this actor.
    pub actor: Option<String>,
    /// Events of this run: its id or a unique prefix.
    pub run: Option<String>,
    /// Events after this revision.
    pub after: u64,
    /// Events at or after this time.
    pub since: Option<Timestamp>,
    /// The maximum number of events, 0 for all.
    pub limit: usize,
    /// True if the limit keeps the last matching events instead of the first.
    pub latest: bool,
}

/// One event of the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HistoryEntry {
    /// The event itself.
    #[serde(flatten)]
    pub event: Event,
    /// The revision of the undo that reverted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<u64>,
}

impl Manager {
    /// Returns the matching part of the history, in order.
    pub fn find_history(&self, filter: &HistoryFilter) -> Result<Vec<HistoryEntry>, Error> {
        let query = self.history_query(filter)?;
        self.read(|view| Ok(entries(view, &query)?))
    }

    /// Calls `each` with chunks of the history, in order, until it returns false. Use it for a history that
    /// may not fit into memory.
    ///
    /// Events that are added during the call are not included.
    pub fn each_history(
        &self,
        filter: &HistoryFilter,
        mut each: impl FnMut(Vec<HistoryEntry>) -> bool,
    ) -> Result<(), Error> {
        let mut query = self.history_query(filter)?;
        query.until = Some(self.revision()?);
        let mut left = if query.limit == 0 { usize::MAX } else { query.limit };
        while left > 0 {
            query.limit = left.min(CHUNK);
            let page = self.read(|view| Ok(entries(view, &query)?))?;
            let Some(last) = page.last() else { break };
            query.after = last.event.revision;
            left -= page.len();
            let is_last = page.len() < query.limit;
            if !each(page) || is_last {
                break;
            }
        }
        Ok(())
    }

    fn history_query(&self, filter: &HistoryFilter) -> Result<EventQuery, Error> {
        let HistoryFilter { task, actor, run, after, since, limit, latest } = filter.clone();
        self.read(|view| {
            let mut query = EventQuery { after, actor, since, limit, latest, ..EventQuery::default() };
            if let Some(id) = &task {
                match resolve(view, id) {
                    Err(DecideError::Refused(_)) if view.deleted_id(id)?.is_some() => {
                        query.task_id = Some(TaskId::from(id.as_str()));
                    }
                    found => query.task = Some(found?),
                }
            }
            query.run = run.as_deref().map(|run| resolve_run(view, run)).transpose()?;
            Ok(query)
        })
    }
}

fn entries(view: &dyn View, query: &EventQuery) -> ViewResult<Vec<HistoryEntry>> {
    let events = view.find_events(query)?;
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(Vec::new()) };
    let commands = view.undoables(first.revision, last.revision)?;
    Ok(events.into_iter().map(|event| entry(event, &commands)).collect())
}

fn entry(mut event: Event, commands: &[Undoable]) -> HistoryEntry {
    // Internal keys of tasks are meaningful only to other processes of this program.
    event.ready = Box::default();
    // The first command that ends at or after the event; it contains the event only if it also starts before
    // it.
    let at = commands.partition_point(|command| command.revision < event.revision);
    let command = commands.get(at).filter(|command| command.first <= event.revision);
    HistoryEntry { undone_by: command.and_then(|command| command.undone_by), event }
}

impl Manager {
    /// Returns the run with the id `text`, or the only run whose id starts with it.
    pub fn find_run(&self, text: &str) -> Result<RunId, Error> {
        self.read(|view| resolve_run(view, text))
    }
}

/// A running call of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct CallOfRun {
    /// The task.
    pub task: TaskId,
    /// The call.
    pub call: CallRecord,
}

impl Manager {
    /// Asks a run of another process to stop: nothing more starts, and with `now` its running calls are ended, too. The run notices
    /// within a second.
    ///
    /// # Errors
    /// The run is unknown or has ended, or an agent asks and did not start the run.
    pub fn stop_run(&self, run: &RunId, now: bool) -> Result<(), Error> {
        let record = self.read(|view| Ok(view.run(run)?))?;
        if record.is_some_and(|record| record.is_open() && !self.is_alive(run)) {
            return Err(Refusal::RunOver { id: run.to_string() }.into());
        }
        self.command(Command::StopRun { id: run.clone(), now }).map(drop)
    }

    /// Returns the running calls of a run, in the order of their tasks.
    ///
    /// # Errors
    /// The store failed.
    pub fn calls_of_run(&self, run: &RunId) -> Result<Vec<CallOfRun>, Error> {
        self.read(|view| Ok(calls_of_run(view, run)?))
    }
}

fn calls_of_run(view: &dyn View, run: &RunId) -> ViewResult<Vec<CallOfRun>> {
    let query = Query { status: vec![Status::InProgress], ..Query::default() };
    let mut found = Vec::new();
    for key in view.find(&query)? {
        let Some(task) = view.task(key)? else { continue };
        let TaskStatus::InProgress { claim } = &task.body.state else { continue };
        if claim.run.as_ref() == Some(run) {
            let running = view.calls(key)?.into_iter().filter(|call| call.body.status == CallStatus::Running);
            found.extend(running.map(|call| CallOfRun { task: task.id.clone(), call }));
        }
    }
    Ok(found)
}

/// Returns the run with the id `text`, or the only run whose id starts with it.
fn resolve_run(view: &dyn View, text: &str) -> Result<RunId, DecideError> {
    let exact = RunId::from(text);
    if view.run(&exact)?.is_some() {
        return Ok(exact);
    }
    let pruned = view.pruned_runs(text)?.into_iter().map(|(id, _)| id);
    let runs = view.runs(0)?.into_iter().map(|run| run.id).chain(pruned);
    let mut found: Vec<RunId> = runs.filter(|id| id.as_str().starts_with(text)).take(2).collect();
    match (found.pop(), found.pop()) {
        (Some(run), None) if !text.is_empty() => Ok(run),
        (None, _) => Err(Refusal::UnknownRun { id: text.to_owned() }.into()),
        _ => {
            let problem = format!("several runs begin with `{text}`: give more characters");
            Err(Refusal::InvalidField { field: "run".to_owned(), problem }.into())
        }
    }
}
