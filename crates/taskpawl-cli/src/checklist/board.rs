//! The checklist of a plan: read once, then kept up to date with the events of the store.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use taskpawl::model::insight::unrunnable_task;
use taskpawl::model::rules::Means;
use taskpawl::model::task::EventKind;
use taskpawl::model::task::{BlockedReason, CallRecord, CallStatus, Claim, Status, TaskStatus, Work};
use taskpawl::model::value::{CallId, Key, RunId, TaskId};
use taskpawl::model::value::{Map, Timestamp, format_time};
use taskpawl::model::view::blocked_reason;
use taskpawl::model::view::{Query, View, ViewResult};
use taskpawl::{CallPlaces, Error, Manager, RunState};

use super::item::{Checklist, Item, Mark};
use crate::commands::print;

/// The largest number of tasks that are all kept. Of a larger plan only the most relevant ones are.
const ALL: u64 = 1_000;

/// The maximum number of tasks of each kind, for a plan that is not kept whole.
const OF_EACH: usize = 100;

/// The maximum number of events to apply one by one; after more, the plan is read again.
const FOLLOWED: usize = 500;

/// The tasks of a plan, as far as they are drawn.
#[derive(Debug, Default)]
pub(crate) struct Board {
    /// The tools and actors of the next run, which decide if a ready task can run.
    means: Means,
    /// The revision of the store up to which events are applied.
    revision: u64,
    counts: BTreeMap<Status, u64>,
    tasks: BTreeMap<Key, Entry>,
    keys: BTreeMap<TaskId, Key>,
    /// Killed runs that still hold tasks.
    dead: BTreeSet<RunId>,
}

#[derive(Debug)]
struct Entry {
    id: TaskId,
    name: String,
    parent: Option<Key>,
    status: Status,
    /// True if the task is blocked only by other tasks.
    is_behind: bool,
    /// True if the task is ready, but no run here can execute it.
    is_unrunnable: bool,
    assignee: Option<String>,
    claim: Option<Claim>,
    detail: Option<String>,
    /// The running call with the number of its start.
    running: Option<(CallId, u32)>,
}

impl Board {
    /// Reads a plan. `means` describes the next run.
    pub(crate) fn read(manager: &Manager, means: Means) -> Result<Self, Error> {
        // One read, so that revision, counts and tasks are of the same snapshot.
        let mut board = manager.read(|view| Ok(Self::of(view, means)?))?;
        board.look_after_runs(manager)?;
        Ok(board)
    }

    fn of(view: &dyn View, means: Means) -> ViewResult<Self> {
        let mut board = Self { means, revision: view.revision()?, counts: view.counts()?, ..Self::default() };
        let all: u64 = board.counts.values().sum();
        let keys =
            if all <= ALL { view.find(&Query::default())? } else { those_that_matter(view, board.revision)? };
        for key in keys {
            board.take(view, key)?;
        }
        Ok(board)
    }

    /// Returns the revision of the store that the board shows.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns whether a task is claimed. The death of its holder is no event, so the board must then check
    /// periodically.
    pub(crate) fn is_held(&self) -> bool {
        self.counts.get(&Status::InProgress).is_some_and(|count| *count > 0)
    }

    /// Applies the events since the last call, or reads the plan again.
    pub(crate) fn follow(&mut self, manager: &Manager) -> Result<(), Error> {
        let is_followed = manager.read(|view| Ok(self.take_events(view)?))?;
        if is_followed {
            self.look_after_runs(manager)
        } else {
            *self = Self::read(manager, std::mem::take(&mut self.means))?;
            Ok(())
        }
    }

    /// Applies events. Returns `false` if the plan has to be read again: too many events, too many tasks, or an edit
    /// from outside that names no tasks.
    fn take_events(&mut self, view: &dyn View) -> ViewResult<bool> {
        let events = view.events(self.revision, None, FOLLOWED)?;
        let is_opaque = events.iter().any(|event| matches!(event.kind, EventKind::ExternalEdit { .. }));
        // Tasks that events add to the board stay on it, so a busy store would let it grow without bound.
        let is_crowded = self.tasks.len() as u64 > 2 * ALL;
        if events.len() == FOLLOWED || is_opaque || is_crowded {
            return Ok(false);
        }
        // A task that becomes ready has no event of its own: the event that made it ready lists it.
        let ready: BTreeSet<Key> = events.iter().flat_map(|event| event.ready.iter().copied()).collect();
        for key in ready {
            self.take(view, key)?;
        }
        let touched: BTreeSet<TaskId> = events.into_iter().filter_map(|event| event.task).collect();
        for id in touched {
            match view.key(id.as_str())? {
                Some(key) => self.take(view, key)?,
                None => self.forget(&id),
            }
        }
        self.revision = view.revision()?;
        self.counts = view.counts()?;
        Ok(true)
    }

    fn forget(&mut self, id: &TaskId) {
        if let Some(key) = self.keys.remove(id) {
            self.tasks.remove(&key);
        }
    }

    /// Reads the current state of a task, and of its parents that are not on the board yet.
    fn take(&mut self, view: &dyn View, key: Key) -> ViewResult<()> {
        let mut next = Some(key);
        while let Some(key) = next {
            let Some(entry) = Entry::read(view, key, &self.means)? else { break };
            next = entry.parent.filter(|parent| !self.tasks.contains_key(parent));
            self.keys.insert(entry.id.clone(), key);
            self.tasks.insert(key, entry);
        }
        Ok(())
    }

    fn look_after_runs(&mut self, manager: &Manager) -> Result<(), Error> {
        let open = manager.read(|view| Ok(view.open_runs()?))?;
        let dead = open.into_iter().filter(|run| manager.run_state(run) == RunState::Killed);
        self.dead = dead.map(|run| run.id).collect();
        Ok(())
    }

    /// Returns the checklist at the time `now`, which decides if leases have expired. `places` has the workers of running calls.
    pub(crate) fn checklist(&self, now: Timestamp, places: &CallPlaces) -> Checklist {
        let count = |status: Status| self.counts.get(&status).copied().unwrap_or_default();
        let dropped = count(Status::Cancelled) + count(Status::Skipped);
        let all: u64 = self.counts.values().sum();
        Checklist {
            completed: count(Status::Done),
            total: all.saturating_sub(dropped),
            items: self.items(now, places),
            unlisted: self.unlisted(),
        }
    }

    /// Returns the items in order of age, each after its parent.
    fn items(&self, now: Timestamp, places: &CallPlaces) -> Vec<Item> {
        let mut below: BTreeMap<Option<Key>, Vec<Key>> = BTreeMap::new();
        for (key, entry) in &self.tasks {
            // A task whose parent is not on the board is drawn at the top level.
            let parent = entry.parent.filter(|parent| self.tasks.contains_key(parent));
            below.entry(parent).or_default().push(*key);
        }
        let mut items = Vec::with_capacity(self.tasks.len());
        let mut open: Vec<(Key, usize)> = Vec::new();
        let add = |keys: Option<Vec<Key>>, depth: usize, open: &mut Vec<(Key, usize)>| {
            open.extend(keys.unwrap_or_default().into_iter().rev().map(|key| (key, depth)));
        };
        add(below.remove(&None), 0, &mut open);
        while let Some((key, depth)) = open.pop() {
            items.push(self.tasks[&key].item(depth, now, &self.dead, places));
            add(below.remove(&Some(key)), depth + 1, &mut open);
        }
        items
    }

    fn unlisted(&self) -> BTreeMap<Mark, u64> {
        let mut left = self.counts.clone();
        for entry in self.tasks.values() {
            let count = left.entry(entry.status).or_default();
            *count = count.saturating_sub(1);
        }
        let mut unlisted = BTreeMap::new();
        for (status, count) in left.into_iter().filter(|(_, count)| *count > 0) {
            // Nearly all blocked tasks wait for other tasks. Tasks that wait for a person or an agent are read first,
            // so few of these are unlisted.
            let mark = if status == Status::Blocked { Mark::Blocked } else { mark_of(status) };
            *unlisted.entry(mark).or_default() += count;
        }
        unlisted
    }
}

/// Returns tasks that run, failed, wait, are ready or changed last; at most `OF_EACH` of each kind.
fn those_that_matter(view: &dyn View, revision: u64) -> ViewResult<Vec<Key>> {
    let find = |query: Query| view.find(&Query { limit: OF_EACH, ..query });
    let mut keys = find(Query { status: vec![Status::InProgress], ..Query::default() })?;
    keys.extend(find(Query { status: vec![Status::Failed], ..Query::default() })?);
    keys.extend(view.on_hold(OF_EACH)?);
    keys.extend(find(Query { ready: Some(vec![Work::Calls, Work::Manual]), ..Query::default() })?);
    let latest = view.events(revision.saturating_sub(OF_EACH as u64), None, 0)?;
    let ids: BTreeSet<TaskId> = latest.into_iter().filter_map(|event| event.task).collect();
    for id in ids {
        keys.extend(view.key(id.as_str())?);
    }
    Ok(keys)
}

impl Entry {
    fn read(view: &dyn View, key: Key, means: &Means) -> ViewResult<Option<Self>> {
        let (Some(task), Some(node)) = (view.task(key)?, view.node(key)?) else { return Ok(None) };
        let state = task.body.state.clone();
        let lacking = unrunnable_task(view, &node, means)?.map(|task| task.because);
        let is_unrunnable = lacking.is_some();
        let wait = task.body.progress.waiting_for.as_deref().map(ToString::to_string);
        let calls =
            if matches!(state, TaskStatus::InProgress { .. }) { view.calls(key)? } else { Vec::new() };
        let running = calls.iter().find(|call| call.body.status == CallStatus::Running);
        let running = running.map(|call| (call.id.clone(), call.body.attempts));
        let detail = match &state {
            TaskStatus::Todo | TaskStatus::InProgress { .. } if wait.is_some() => wait,
            TaskStatus::InProgress { .. } => now_doing(&calls),
            TaskStatus::Blocked { reason } => Some(print::reason(&blocked_reason(view, key, reason)?)),
            TaskStatus::Failed { error, .. } => error.lines().next().map(str::to_owned),
            TaskStatus::Todo => lacking,
            TaskStatus::Done | TaskStatus::Cancelled { .. } | TaskStatus::Skipped { .. } => None,
        };
        let is_behind = matches!(
            state.blocked_reason(),
            Some(BlockedReason::Dependency { .. } | BlockedReason::Waiting { .. })
        );
        let status = state.status();
        let claim = if let TaskStatus::InProgress { claim } = state { Some(claim) } else { None };
        let (name, assignee) = (task.spec.name.clone(), task.spec.assignee.clone());
        let parent = node.parent;
        Ok(Some(Self {
            id: task.id,
            name,
            parent,
            status,
            is_behind,
            is_unrunnable,
            assignee,
            claim,
            detail,
            running,
        }))
    }

    fn item(&self, depth: usize, now: Timestamp, dead: &BTreeSet<RunId>, places: &CallPlaces) -> Item {
        let worker = self.running.as_ref().and_then(|(call, start)| places.worker(&self.id, call, *start));
        let ended = self.claim.as_ref().and_then(|claim| {
            let is_dead = claim.run.as_ref().is_some_and(|run| dead.contains(run));
            let end = if is_dead { Some("its run was killed") } else { None };
            end.or_else(|| claim.is_expired(now).then_some("the claim is over"))
        });
        let status = if ended.is_some() || self.is_unrunnable {
            Mark::Waiting
        } else if self.is_behind {
            Mark::Blocked
        } else {
            mark_of(self.status)
        };
        let assignee = if self.status.is_finished() { None } else { self.assignee.as_ref() };
        let owner = self.claim.as_ref().map(|claim| claim.actor.to_string());
        Item {
            id: self.id.to_string(),
            title: self.name.clone(),
            worker: worker.map(str::to_owned),
            status,
            owner: owner.or_else(|| assignee.map(|name| format!("for {name}"))),
            detail: ended.map(str::to_owned).or_else(|| self.detail.clone()),
            depth,
        }
    }
}

fn mark_of(status: Status) -> Mark {
    match status {
        Status::Todo => Mark::NotStarted,
        Status::InProgress => Mark::InProgress,
        Status::Blocked => Mark::Waiting,
        Status::Done => Mark::Completed,
        Status::Failed => Mark::Failed,
        Status::Cancelled | Status::Skipped => Mark::Dropped,
    }
}

/// Returns the call that runs, or the one that will be retried.
fn now_doing(calls: &[CallRecord]) -> Option<String> {
    let running = calls.iter().find(|call| call.body.status == CallStatus::Running);
    if let Some(call) = running {
        let work = work(call.body.args.as_ref().unwrap_or(&call.spec.args));
        return Some(
            work.map_or_else(
                || call.spec.tool_name.clone(),
                |work| format!("{}: {work}", call.spec.tool_name),
            ),
        );
    }
    calls.iter().find_map(|call| {
        let due = call.body.due?;
        Some(format!("{} again at {}", call.spec.tool_name, format_time(due)))
    })
}

/// Returns the most telling argument of a call.
fn work(args: &Map) -> Option<String> {
    let named = ["command", "argv", "path", "url", "pattern", "message", "duration"];
    let value = named.iter().find_map(|name| args.get(*name))?;
    match value {
        Value::String(text) => text.lines().next().map(str::to_owned),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(words.join(" "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}
