//! Reading a store ([`View`]) and writing to it ([`Changes`]), as the rules see it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::command::RequestRecord;
use crate::durations::DurationSource;
use crate::event::{Event, EventKind};
use crate::key_space::KeySpace;
use crate::record::{CallRecord, Node, PlanRecord, RunRecord, StatusKind, TaskRecord, Work};
use crate::spec::Priority;
use crate::status::{CallStatus, Status};
use crate::undo::{UndoSnapshot, Undoable};
use crate::{Actor, Key, KeyMap, Period, RunId, SharedText, TaskId};

/// Reading the store failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ViewError(#[from] pub Box<dyn std::error::Error + Send + Sync>);

/// The result of a read.
pub type ViewResult<T> = Result<T, ViewError>;

/// A consistent snapshot of a store. All methods read the same moment.
///
/// Inside a write, it includes earlier writes of the same transaction.
pub trait View {
    /// Returns the key of the task with exactly this id.
    fn key(&self, id: &str) -> ViewResult<Option<Key>>;

    /// Returns the id of a task.
    fn id(&self, key: Key) -> ViewResult<Option<TaskId>>;

    /// Returns at most `limit` ids that begin with `prefix`, in order.
    fn ids_with_prefix(&self, prefix: &str, limit: usize) -> ViewResult<Vec<TaskId>>;

    /// Returns the plan that a deleted task with this id belonged to (`Some(None)` for none); `None` if the id is free.
    fn deleted_id(&self, id: &str) -> ViewResult<Option<Option<String>>>;

    /// Returns the key that the next new task takes. Keys are not reused.
    fn next_key(&self) -> ViewResult<Key>;

    /// Returns the node of a task.
    fn node(&self, key: Key) -> ViewResult<Option<Node>>;

    /// Returns a task.
    fn task(&self, key: Key) -> ViewResult<Option<TaskRecord>>;

    /// Returns the calls of a task, in order.
    fn calls(&self, key: Key) -> ViewResult<Vec<CallRecord>>;

    /// Returns the dependencies of a task, by key.
    fn dependencies(&self, key: Key) -> ViewResult<Vec<Key>>;

    /// Returns the dependents of a task, by key.
    fn dependents(&self, key: Key) -> ViewResult<Vec<Key>>;

    /// Returns the direct subtasks of a task, by key.
    fn subtasks(&self, key: Key) -> ViewResult<Vec<Key>>;

    /// Returns the specification that a plan last applied to the task, as JSON text.
    fn applied(&self, key: Key) -> ViewResult<Option<String>>;

    /// Returns a plan by its name.
    fn plan(&self, name: &str) -> ViewResult<Option<PlanRecord>>;

    /// Returns all plans, by name.
    fn plans(&self) -> ViewResult<Vec<PlanRecord>>;

    /// Returns a run.
    fn run(&self, id: &RunId) -> ViewResult<Option<RunRecord>>;

    /// Returns the runs, the latest first, at most `limit` (0: all).
    fn runs(&self, limit: usize) -> ViewResult<Vec<RunRecord>>;

    /// Returns the runs without a recorded end, the latest first.
    fn open_runs(&self) -> ViewResult<Vec<RunRecord>> {
        let mut runs = self.runs(0)?;
        runs.retain(RunRecord::is_open);
        Ok(runs)
    }

    /// Returns the keys of the tasks that match, in the order of the query.
    fn find(&self, query: &Query) -> ViewResult<Vec<Key>>;

    /// Returns the tasks that agents and people hold, by key: all of them, or those of `actor`.
    fn leases(&self, actor: Option<&str>) -> ViewResult<Vec<Key>> {
        let mut keys = self.find(&Query { status: vec![Status::InProgress], ..Query::default() })?;
        // `retain` cannot return early, so the first error is carried out of the closure.
        let mut failed = None;
        keys.retain(|key| {
            is_leased(self.task(*key), actor).unwrap_or_else(|error| {
                failed = Some(error);
                false
            })
        });
        failed.map_or(Ok(keys), Err)
    }

    /// Returns the tasks with a running call, by key.
    fn running(&self) -> ViewResult<Vec<Key>> {
        let mut running = Vec::new();
        for key in self.find(&Query { status: vec![Status::InProgress], ..Query::default() })? {
            if self.calls(key)?.iter().any(|call| call.body.status == CallStatus::Running) {
                running.push(key);
            }
        }
        Ok(running)
    }

    /// Returns the tasks that are blocked for a reason of their own, not because of other tasks. They are ordered by
    /// key, at most `limit` (0: all).
    fn on_hold(&self, limit: usize) -> ViewResult<Vec<Key>> {
        let mut keys = Vec::new();
        for key in self.find(&Query { status: vec![Status::Blocked], ..Query::default() })? {
            if limit > 0 && keys.len() == limit {
                break;
            }
            if self.node(key)?.is_some_and(|node| node.status_kind == StatusKind::BlockedOther) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Returns the names of the tools that tasks call, each once. The result covers at least the tasks that are ready
    /// for a run.
    fn tools(&self) -> ViewResult<Vec<String>> {
        let mut tools = BTreeSet::new();
        for key in self.find(&Query { ready: Some(vec![Work::Calls]), ..Query::default() })? {
            tools.extend(self.calls(key)?.into_iter().map(|call| call.spec.tool_name.clone()));
        }
        Ok(tools.into_iter().collect())
    }

    /// Returns tasks that are ready for a run and have a call of this tool, by key, at most `limit` (0: all).
    fn ready_calling(&self, tool: &str, limit: usize) -> ViewResult<Vec<Key>> {
        let mut keys = self.find(&Query { ready: Some(vec![Work::Calls]), ..Query::default() })?;
        keys.sort_unstable();
        let mut matching = Vec::new();
        for key in keys {
            if limit > 0 && matching.len() == limit {
                break;
            }
            if self.calls(key)?.iter().any(|call| call.spec.tool_name == tool) {
                matching.push(key);
            }
        }
        Ok(matching)
    }

    /// Calls `each` with every node, by key. Runs load their graph with it.
    fn each_node(&self, each: &mut dyn FnMut(Node)) -> ViewResult<()>;

    /// Calls `each` with every dependency as (task, dependency), by task.
    fn each_dependency(&self, each: &mut dyn FnMut(Key, Key)) -> ViewResult<()>;

    /// Calls `each` with the duration of the last success of every task, and with the estimate of its author, if known.
    /// The order is undefined.
    fn each_duration(&self, each: &mut dyn FnMut(Key, Period, DurationSource)) -> ViewResult<()> {
        let mut keys = Vec::new();
        self.each_node(&mut |node| keys.push(node.key))?;
        for key in keys {
            let Some(task) = self.task(key)? else { continue };
            let durations = [
                (task.body.progress.took, DurationSource::Took),
                (task.spec.estimate, DurationSource::Estimate),
            ];
            for (period, source) in durations {
                if let Some(period) = period {
                    each(key, period, source);
                }
            }
        }
        Ok(())
    }

    /// Returns the tasks that could start but for an undecided condition or list, by key.
    fn to_be_opened(&self) -> ViewResult<Vec<Key>> {
        let mut keys = Vec::new();
        self.each_node(&mut |node| {
            if node.status_kind == StatusKind::Todo && node.gate.is_to_be_opened() {
                keys.push(node.key);
            }
        })?;
        Ok(keys)
    }

    /// Returns the number of tasks in each status. The committer maintains it, so reading it is cheap.
    fn counts(&self) -> ViewResult<BTreeMap<Status, u64>>;

    /// Returns the revision of the last event; 0 for an empty store.
    fn revision(&self) -> ViewResult<u64>;

    /// Returns events after `revision` in order, at most `limit` (0: all), of one task if one is given.
    fn events(&self, after: u64, task: Option<Key>, limit: usize) -> ViewResult<Vec<Event>>;

    /// Returns the events that match, in order.
    fn find_events(&self, query: &EventQuery) -> ViewResult<Vec<Event>>;

    /// Returns the last event of each checklist after `revision`, in order. There is one for each scope, including
    /// ended ones.
    ///
    /// A store that can find them without reading all other events overrides this.
    fn newest_checklists(&self, revision: u64) -> ViewResult<Vec<Event>> {
        let kind = Some("checklist".to_owned());
        let events = self.find_events(&EventQuery { after: revision, kind, ..EventQuery::default() })?;
        let mut newest = BTreeMap::new();
        for event in events {
            if let EventKind::Checklist(list) = &event.kind {
                newest.insert(list.scope.clone(), event);
            }
        }
        let mut events: Vec<Event> = newest.into_values().collect();
        events.sort_unstable_by_key(|event| event.revision);
        Ok(events)
    }

    /// Returns the undoable and formerly undoable commands with events from revision `first` to `last`, in order.
    fn undoables(&self, first: u64, last: u64) -> ViewResult<Vec<Undoable>>;

    /// Returns the last command of an actor that is neither an undo nor undone.
    fn last_undoable(&self, actor: Actor<'_>) -> ViewResult<Option<Undoable>>;

    /// Returns the record of an idempotent request of an actor by its name.
    fn request(&self, actor: Actor<'_>, request: &str) -> ViewResult<Option<RequestRecord>>;

    /// Returns the number of requests before a time whose answers are still stored.
    fn requests_before(&self, time: crate::Timestamp) -> ViewResult<u64>;

    /// Returns the common first part of idempotency keys, if a run has recorded one.
    fn key_space(&self) -> ViewResult<Option<KeySpace>>;

    /// Returns the pruned runs whose ids begin with `prefix`, with the time of pruning.
    fn pruned_runs(&self, prefix: &str) -> ViewResult<Vec<(RunId, crate::Timestamp)>>;

    /// Calls `each` with every undoable command: its revision and its undo snapshot.
    fn each_undo_snapshot(&self, each: &mut dyn FnMut(u64, Arc<UndoSnapshot>)) -> ViewResult<()>;

    /// Returns the undo snapshot of the command with exactly this revision.
    fn undo_snapshot(&self, revision: u64) -> ViewResult<Option<Arc<UndoSnapshot>>>;
}

fn is_leased(task: ViewResult<Option<TaskRecord>>, actor: Option<&str>) -> ViewResult<bool> {
    let task = task?;
    let holder = task.as_ref().and_then(|task| task.body.state.lease_holder());
    Ok(holder.is_some_and(|holder| actor.is_none_or(|actor| *holder == actor)))
}

/// Conditions on tasks. An empty field matches everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Query {
    /// With one of these statuses.
    pub status: Vec<Status>,
    /// Ready, and ended by one of these actors. The order is then priority, due date and age, instead of age alone.
    pub ready: Option<Vec<Work>>,
    /// With this assignee.
    pub assignee: Option<String>,
    /// With this assignee, or with none.
    pub free_for: Option<String>,
    /// With one of these priorities.
    pub priority: Vec<Priority>,
    /// With all of these labels.
    pub labels: Vec<String>,
    /// Created by this plan.
    pub plan: Option<String>,
    /// Direct subtasks of this task.
    pub parent: Option<Key>,
    /// With this text in the id, name or description, ignoring case.
    pub text: Option<String>,
    /// The maximum number of results; 0 for all.
    pub limit: usize,
    /// The number of results to skip.
    pub offset: usize,
}

/// Conditions on events. An absent field matches everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventQuery {
    /// After this revision.
    pub after: u64,
    /// Up to and including this revision.
    pub until: Option<u64>,
    /// Of the task with this key.
    pub task: Option<Key>,
    /// Of tasks with this id, including deleted ones. There is no index on it, so all events are scanned.
    pub task_id: Option<TaskId>,
    /// By this actor.
    pub actor: Option<String>,
    /// In this run.
    pub run: Option<RunId>,
    /// Of this kind, by the word of its `type`. There is no index on it, so all events are scanned.
    pub kind: Option<String>,
    /// At this time or later.
    pub since: Option<crate::Timestamp>,
    /// The maximum number of results; 0 for all.
    pub limit: usize,
    /// True to return the last matches instead of the first.
    pub latest: bool,
}

/// All writes of one command. The store applies all of them or none.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Created or changed tasks.
    pub tasks: KeyMap<TaskChange>,
    /// Created or changed nodes; every new task has one.
    pub nodes: KeyMap<Node>,
    /// Created or changed calls, by task and position from 0. Positions are not reused within a task.
    pub calls: BTreeMap<(Key, u32), CallChange>,
    /// Deleted tasks, with their edges, calls and applied specification. Their ids stay reserved.
    pub deleted: Vec<(Key, TaskId, Option<String>)>,
    /// Dependencies added and removed, in order.
    pub edges: Vec<EdgeChange>,
    /// Specifications that plans applied, by task, as JSON text.
    pub applied: BTreeMap<Key, String>,
    /// Created or changed plans.
    pub plans: Vec<PlanRecord>,
    /// Created or changed runs.
    pub runs: BTreeMap<RunId, RunRecord>,
    /// Deleted plans.
    pub plans_gone: Vec<String>,
    /// Ids of deleted tasks that become available again.
    pub freed: BTreeSet<TaskId>,
    /// Runs to prune, with the time. Only their ids are kept.
    pub runs_gone: Vec<(RunId, crate::Timestamp)>,
    /// Undo snapshots up to this revision are deleted.
    pub images_gone: Option<u64>,
    /// Requests before this time are deleted.
    pub requests_gone: Option<crate::Timestamp>,
    /// New events, in order; the store numbers them.
    pub events: Vec<NewEvent>,
    /// The undo snapshot, if the command can be undone. It is stored under the revision of the last event.
    pub undo_snapshot: Option<Arc<UndoSnapshot>>,
    /// The command that this one undoes, to be marked as undone by this one.
    pub undoes: Option<u64>,
    /// The new first part of idempotency keys, if it changes.
    pub key_space: Option<KeySpace>,
    /// The idempotent request that caused the command, stored so that a repetition does not run it again.
    pub request: Option<RequestRecord>,
    /// Commands whose undone mark changes with this one: each with the undo that now undoes it, or `None`.
    pub undone_by: Vec<(u64, Option<u64>)>,
}

impl Changes {
    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.tasks.is_empty()
            && self.nodes.is_empty()
            && self.applied.is_empty()
            && self.runs.is_empty()
            && self.key_space.is_none()
    }
}

/// A task to write.
#[derive(Debug, Clone)]
pub struct TaskChange {
    /// The new task.
    pub record: TaskRecord,
    /// True if it is new.
    pub is_new: bool,
    /// True if `spec` or `plan` changed. Otherwise only the body, the version and the time did.
    pub spec_changed: bool,
}

/// A call to write.
#[derive(Debug, Clone)]
pub struct CallChange {
    /// The new call; `None` removes it.
    pub record: Option<CallRecord>,
    /// True if `spec` changed or the call is new. Otherwise only the body did.
    pub spec_changed: bool,
}

/// A dependency to add or remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeChange {
    /// The task.
    pub task: Key,
    /// The dependency.
    pub on: Key,
    /// True if the edge is added; otherwise it is removed.
    pub add: bool,
}

/// An event before the store numbers it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// The time.
    pub at: crate::Timestamp,
    /// The actor.
    pub actor: SharedText,
    /// The kind of the actor, as the event records it.
    pub actor_kind: crate::ActorKind,
    /// The run, if a run caused it.
    pub run: Option<RunId>,
    /// The task, if it concerns one.
    pub task: Option<(Key, TaskId)>,
    /// The change.
    pub kind: EventKind,
    /// Tasks that became ready because of it.
    pub ready: Box<[Key]>,
}
