//! The plan as it was at an earlier revision: its statuses, counts and runs, with the tasks and dependencies of today.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::RwLockReadGuard;

use taskpawl::digest::RunNow;
use taskpawl::model::task::{Event, EventKind, Status, Work};
use taskpawl::model::value::{Key, TaskId, Timestamp};
use taskpawl::model::view::{View, ViewResult};
use taskpawl::{RunFilter, RunState};

use crate::answer::Problem;
use crate::board::{Board, Cell};
use crate::page::Page;
use crate::request::Query;

/// Events that are read in one step.
const STEP: usize = 2_000;

/// The board that a request is about.
pub(crate) enum Shown<'p> {
    Now(RwLockReadGuard<'p, Board>),
    Past(Box<Past>),
}

/// The board of an earlier revision.
#[derive(Debug)]
pub(crate) struct Past {
    board: Board,
    pub(crate) revision: u64,
    /// The time of the revision.
    pub(crate) at: Timestamp,
}

impl Past {
    pub(crate) fn board(&self) -> &Board {
        &self.board
    }
}

impl Deref for Shown<'_> {
    type Target = Board;

    fn deref(&self) -> &Board {
        match self {
            Self::Now(board) => board,
            Self::Past(past) => &past.board,
        }
    }
}

/// Returns the board that a query asks for: that of `at`, or the present one. No other read of the store may begin while the present one
/// is held.
///
/// # Errors
/// `at` is no revision of the store.
pub(crate) fn shown<'p>(page: &'p Page, query: &Query) -> Result<Shown<'p>, Problem> {
    match past(page, query)? {
        Some(past) => Ok(Shown::Past(Box::new(past))),
        None => Ok(Shown::Now(page.hub.board())),
    }
}

/// Returns the past that a query asks for.
///
/// # Errors
/// `at` is no revision of the store.
pub(crate) fn past(page: &Page, query: &Query) -> Result<Option<Past>, Problem> {
    let Some(revision) = query.number::<u64>("at")? else { return Ok(None) };
    let past = page.known(page.reader.read(|view| Ok(read(view, revision)?)))?;
    past.map(Some).ok_or_else(|| {
        Problem::missing(format!("the store has no revision {revision}, or its events were pruned"))
    })
}

fn read(view: &dyn View, revision: u64) -> ViewResult<Option<Past>> {
    let Some(event) = view.events(revision.saturating_sub(1), None, 1)?.pop() else { return Ok(None) };
    if event.revision != revision {
        return Ok(None);
    }
    let mut rewound = Rewound::default();
    let mut after = revision;
    loop {
        let events = view.events(after, None, STEP)?;
        after = events.last().map_or(after, |event| event.revision);
        let is_last = events.len() < STEP;
        for event in events {
            rewound.add(event);
        }
        if is_last {
            break;
        }
    }
    let mut board = Board::read(view, 0)?;
    rewound.apply(view, &mut board, revision)?;
    Ok(Some(Past { board, revision, at: event.at }))
}

/// The statuses before the events that are undone.
#[derive(Debug, Default)]
struct Rewound {
    /// The status at the revision; absent for a task that did not exist.
    statuses: BTreeMap<TaskId, Option<Status>>,
}

impl Rewound {
    fn add(&mut self, event: Event) {
        let Some(task) = event.task else { return };
        if let EventKind::Status { from, .. } = event.kind {
            // The first change after the revision tells the status at it.
            self.statuses.entry(task).or_insert(Some(from));
        } else if let EventKind::Created(_) = event.kind {
            self.statuses.entry(task).or_insert(None);
        }
    }

    fn apply(self, view: &dyn View, board: &mut Board, revision: u64) -> ViewResult<()> {
        let mut statuses = BTreeMap::<Key, Status>::new();
        view.each_node(&mut |node| {
            statuses.insert(node.key, node.status_kind.status());
        })?;
        for (id, status) in self.statuses {
            let Some(key) = view.key(id.as_str())? else { continue };
            if let Some(status) = status {
                statuses.insert(key, status);
            } else {
                statuses.remove(&key);
            }
        }
        let mut behind: BTreeMap<Key, Vec<Key>> = BTreeMap::new();
        view.each_dependency(&mut |task, on| behind.entry(task).or_default().push(on))?;
        let mut cells = BTreeMap::new();
        view.each_node(&mut |node| {
            if let Some(status) = statuses.get(&node.key) {
                let needs = behind.get(&node.key).into_iter().flatten();
                let needs: Vec<Status> = needs.filter_map(|key| statuses.get(key).copied()).collect();
                cells.insert(node.key, cell(*status, node.work, &needs));
            }
        })?;
        let mut counts: BTreeMap<Status, u64> = Status::ALL.iter().map(|status| (*status, 0)).collect();
        for status in statuses.values() {
            *counts.entry(*status).or_default() += 1;
        }
        board.show_past(revision, counts, &cells);
        Ok(())
    }
}

/// Returns the state of a task with its status and those of its dependencies.
fn cell(status: Status, work: Work, needs: &[Status]) -> Cell {
    let may_start = needs.iter().all(|need| matches!(need, Status::Done | Status::Skipped));
    let cannot =
        needs.iter().any(|need| matches!(need, Status::Failed | Status::Cancelled | Status::Blocked));
    let is_manual = work == Work::Manual;
    match status {
        Status::Todo if may_start && is_manual => Cell::ReadyByHand,
        Status::Todo if may_start => Cell::Ready,
        Status::Todo => Cell::Waiting,
        Status::InProgress if is_manual => Cell::Held,
        Status::InProgress => Cell::Running,
        Status::Blocked if cannot => Cell::Blocked,
        Status::Blocked => Cell::Asking,
        Status::Done => Cell::Done,
        Status::Failed => Cell::Failed,
        Status::Cancelled => Cell::Cancelled,
        Status::Skipped => Cell::Skipped,
    }
}

/// Returns the runs that had started at a time, as they were then; without one, as they are now.
///
/// # Errors
/// The store cannot be read.
pub(crate) fn runs(page: &Page, at: Option<Timestamp>, limit: usize) -> Result<Vec<RunNow>, Problem> {
    let wanted = if at.is_some() { 0 } else { limit };
    let runs = page.known(page.reader.runs(&RunFilter { limit: wanted }))?;
    let runs = runs.into_iter().filter(|run| at.is_none_or(|at| run.started_at <= at)).take(limit);
    let runs = runs.map(|run| RunNow::new(&page.reader, run));
    Ok(runs.map(|run| if let Some(at) = at { of_then(run, at) } else { run }).collect())
}

fn of_then(mut run: RunNow, at: Timestamp) -> RunNow {
    if run.finished_at.is_some_and(|end| end > at) {
        // Its counts are those of its end, which had not come.
        run.counts.clear();
        (run.state, run.finished_at, run.exit) = (RunState::Running, None, None);
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_task_follows_from_its_dependencies_of_then() {
        let run = |status, needs: &[Status]| cell(status, Work::Calls, needs);
        assert_eq!(run(Status::Todo, &[Status::Done, Status::Skipped]), Cell::Ready);
        assert_eq!(run(Status::Todo, &[Status::Done, Status::Todo]), Cell::Waiting);
        assert_eq!(run(Status::Blocked, &[Status::Failed]), Cell::Blocked);
        assert_eq!(run(Status::Blocked, &[Status::Done]), Cell::Asking);
        assert_eq!(cell(Status::Todo, Work::Manual, &[]), Cell::ReadyByHand);
    }
}
