//! The server side: answers reads from one snapshot of the store.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the variants that are not listed, and future ones, are treated alike"
)]

use std::io;

use serde::Serialize;
use taskpawl_model::task::Actor;
use taskpawl_model::view::DurationSource;
use taskpawl_model::view::{EventQuery, View, ViewError, ViewResult};

use super::channel::{Channel, Patience};
use super::wire::{AccessRequest, Kind, MAX_REQUEST_BYTES, PART, ViewRequest, frame};
use crate::{Store, StoreError};

/// Reasons for the end of a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// The peer closed the connection or missed the deadline, or the run stopped the connection.
    #[error("the connection has ended")]
    Gone(#[source] io::Error),
    /// The peer sent an invalid request.
    #[error("{problem}")]
    Senseless {
        /// Describes the fault.
        problem: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

impl From<Broken> for ViewError {
    fn from(broken: Broken) -> Self {
        Self(Box::new(broken))
    }
}

/// Answers view requests from one snapshot until the client sends [`AccessRequest::Done`].
///
/// # Errors
/// Every error ends the connection.
pub fn show(store: &dyn Store, channel: &Channel, patience: Patience<'_>) -> Result<(), Broken> {
    let shown = store.read(&mut |view| {
        loop {
            match next(channel, patience)? {
                AccessRequest::View(ask) => answer(view, ask, &Out { channel, patience })?,
                AccessRequest::Done => return Ok(()),
                AccessRequest::Hello { .. }
                | AccessRequest::Look
                | AccessRequest::Revision
                | AccessRequest::Add(_) => {
                    let problem = "end the current view of the plan before another request".to_owned();
                    return Err(Broken::Senseless { problem }.into());
                }
            }
        }
    });
    shown.map_err(|error| match error {
        // `StoreError::View` shares its source, so the original error cannot be moved out of it; rebuild it
        // instead.
        StoreError::View { source } => match source.downcast_ref::<Broken>() {
            Some(Broken::Gone(error)) => Broken::Gone(error.kind().into()),
            Some(Broken::Senseless { problem }) => Broken::Senseless { problem: problem.clone() },
            Some(Broken::Store(error)) => Broken::Store(error.clone()),
            None => Broken::Store(StoreError::View { source }),
        },
        other => Broken::Store(other),
    })
}

/// Receives the next request.
fn next(channel: &Channel, patience: Patience<'_>) -> Result<AccessRequest, Broken> {
    let bytes = channel.receive(MAX_REQUEST_BYTES, patience).map_err(Broken::Gone)?;
    let bytes = bytes.ok_or_else(|| Broken::Gone(io::ErrorKind::UnexpectedEof.into()))?;
    AccessRequest::read(&bytes).map_err(|problem| Broken::Senseless { problem })
}

struct Out<'a> {
    channel: &'a Channel,
    patience: Patience<'a>,
}

impl Out<'_> {
    fn send(&self, kind: Kind, value: &(impl Serialize + ?Sized)) -> ViewResult<()> {
        Ok(self.channel.send(&frame(kind, value), self.patience).map_err(Broken::Gone)?)
    }

    fn value(&self, value: &impl Serialize) -> ViewResult<()> {
        self.send(Kind::Value, value)
    }

    fn list<T: Serialize>(&self, list: &[T]) -> ViewResult<()> {
        let mut parts = list.chunks(PART).peekable();
        while let Some(part) = parts.next() {
            let kind = if parts.peek().is_some() { Kind::Part } else { Kind::Value };
            self.send(kind, part)?;
        }
        // The client waits for a `Value` frame as the end of a list, also of an empty one.
        if list.is_empty() { self.send(Kind::Value, list) } else { Ok(()) }
    }
}

/// Sends the elements of a list while the view produces them, so that the whole list is never in memory.
struct Stream<'a, T> {
    out: &'a Out<'a>,
    part: Vec<T>,
    // The callbacks of a view cannot return an error, so the first one is kept until `finish`.
    failed: Option<ViewError>,
}

impl<'a, T: Serialize> Stream<'a, T> {
    fn new(out: &'a Out<'a>) -> Self {
        Self { out, part: Vec::new(), failed: None }
    }

    fn push(&mut self, value: T) {
        if self.failed.is_some() {
            return;
        }
        self.part.push(value);
        if self.part.len() == PART {
            self.failed = self.out.send(Kind::Part, &self.part).err();
            self.part.clear();
        }
    }

    fn finish(self) -> ViewResult<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.out.send(Kind::Value, &self.part),
        }
    }
}

fn answer(view: &dyn View, ask: ViewRequest, out: &Out<'_>) -> ViewResult<()> {
    match ask {
        ViewRequest::Key(id) => out.value(&view.key(&id)?),
        ViewRequest::Id(key) => out.value(&view.id(key)?),
        ViewRequest::IdsWithPrefix(prefix, limit) => out.list(&view.ids_with_prefix(&prefix, limit)?),
        ViewRequest::DeletedId(id) => out.list(view.deleted_id(&id)?.as_slice()),
        ViewRequest::NextKey => out.value(&view.next_key()?),
        ViewRequest::Node(key) => out.value(&view.node(key)?),
        ViewRequest::Task(key) => out.value(&view.task(key)?),
        ViewRequest::Calls(key) => out.list(&view.calls(key)?),
        ViewRequest::Dependencies(key) => out.list(&view.dependencies(key)?),
        ViewRequest::Dependents(key) => out.list(&view.dependents(key)?),
        ViewRequest::Subtasks(key) => out.list(&view.subtasks(key)?),
        ViewRequest::Applied(key) => out.value(&view.applied(key)?),
        ViewRequest::Plan(name) => out.value(&view.plan(&name)?),
        ViewRequest::Plans => out.list(&view.plans()?),
        ViewRequest::Run(id) => out.value(&view.run(&id)?),
        ViewRequest::Runs(limit) => out.list(&view.runs(limit)?),
        ViewRequest::OpenRuns => out.list(&view.open_runs()?),
        ViewRequest::Find(query) => out.list(&view.find(&query)?),
        ViewRequest::Leases(actor) => out.list(&view.leases(actor.as_deref())?),
        ViewRequest::Running => out.list(&view.running()?),
        ViewRequest::Tools => out.list(&view.tools()?),
        ViewRequest::ReadyCalling(tool, limit) => out.list(&view.ready_calling(&tool, limit)?),
        ViewRequest::EachNode | ViewRequest::EachDependency | ViewRequest::EachDuration => {
            stream(view, &ask, out)
        }
        ViewRequest::ToBeOpened => out.list(&view.to_be_opened()?),
        ViewRequest::Counts => out.value(&view.counts()?),
        ViewRequest::Revision => out.value(&view.revision()?),
        ViewRequest::Events { after, task, limit } => out.list(&view.events(after, task, bounded(limit))?),
        ViewRequest::FindEvents(query) => {
            let limit = bounded(query.limit);
            out.list(&view.find_events(&EventQuery { limit, ..*query })?)
        }
        ViewRequest::Undoables(first, last) => out.list(&view.undoables(first, last)?),
        ViewRequest::LastUndoable(kind, name) => out.value(&view.last_undoable(Actor { kind, name: &name })?),
        ViewRequest::PrunedRuns(prefix) => out.list(&view.pruned_runs(&prefix)?),
    }
}

fn stream(view: &dyn View, ask: &ViewRequest, out: &Out<'_>) -> ViewResult<()> {
    if matches!(ask, ViewRequest::EachNode) {
        let mut nodes = Stream::new(out);
        view.each_node(&mut |node| nodes.push(node))?;
        nodes.finish()
    } else if matches!(ask, ViewRequest::EachDependency) {
        let mut edges = Stream::new(out);
        view.each_dependency(&mut |task, on| edges.push((task, on)))?;
        edges.finish()
    } else {
        let mut durations = Stream::new(out);
        view.each_duration(&mut |key, period, source| {
            durations.push((key, period, source == DurationSource::Estimate));
        })?;
        durations.finish()
    }
}

/// Limits a page of events to one frame, because each event of a page is held in memory. The client asks for
/// further pages.
fn bounded(limit: usize) -> usize {
    if limit == 0 { PART } else { limit.min(PART) }
}
