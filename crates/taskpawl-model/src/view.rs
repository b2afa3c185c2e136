//! What the rules may see of a store, and what they ask it to write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::command::RequestRecord;
use crate::durations::DurationSource;
use crate::event::{Event, EventKind};
use crate::key_space::KeySpace;
use crate::record::{CallRecord, Node, Phase, PlanRecord, RunRecord, TaskRecord, Work};
use crate::spec::Priority;
use crate::status::{CallStatus, Status};
use crate::undo::{Image, Undoable};
use crate::{Actor, Key, KeyMap, Period, RunId, SharedText, TaskId};

/// A store failed to read.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ViewError(#[from] pub Box<dyn std::error::Error + Send + Sync>);

/// The answer of a read.
pub type ViewResult<T> = Result<T, ViewError>;

/// A consistent view of a store. Every method sees the same moment.
///
/// Within a write it sees what the same transaction has written before.
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

    /// Returns what gates need to know of a task.
    fn node(&self, key: Key) -> ViewResult<Option<Node>>;

    /// Returns a task.
    fn task(&self, key: Key) -> ViewResult<Option<TaskRecord>>;

    /// Returns the calls of a task, in order.
    fn calls(&self, key: Key) -> ViewResult<Vec<CallRecord>>;

    /// Returns what a task depends on, by key.
    fn dependencies(&self, key: Key) -> ViewResult<Vec<Key>>;

    /// Returns what depends on a task, by key.
    fn dependents(&self, key: Key) -> ViewResult<Vec<Key>>;

    /// Returns the direct subtasks of a task, by key.
    fn subtasks(&self, key: Key) -> ViewResult<Vec<Key>>;

    /// Returns the specification with which a plan applied the task last, as JSON text.
    fn applied(&self, key: Key) -> ViewResult<Option<String>>;

    /// Returns a plan by its name.
    fn plan(&self, name: &str) -> ViewResult<Option<PlanRecord>>;

    /// Returns all plans, by name.
    fn plans(&self) -> ViewResult<Vec<PlanRecord>>;

    /// Returns a run.
    fn run(&self, id: &RunId) -> ViewResult<Option<RunRecord>>;

    /// Returns the runs, the latest first, at most `limit` (0: all).
    fn runs(&self, limit: usize) -> ViewResult<Vec<RunRecord>>;

    /// Returns the runs of which nobody has written that they ended, the latest first.
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
        let mut failed = None;
        keys.retain(|key| {
            is_leased(self.task(*key), actor).unwrap_or_else(|error| {
                failed = Some(error);
                false
            })
        });
        failed.map_or(Ok(keys), Err)
    }

    /// Returns the tasks of which a call runs, by key.
    fn running(&self) -> ViewResult<Vec<Key>> {
        let mut running = Vec::new();
        for key in self.find(&Query { status: vec![Status::InProgress], ..Query::default() })? {
            if self.calls(key)?.iter().any(|call| call.body.status == CallStatus::Running) {
                running.push(key);
            }
        }
        Ok(running)
    }

    /// Returns the tasks that are blocked for a reason of their own and not because of other tasks, by key, at most `limit` (0: all).
    fn on_hold(&self, limit: usize) -> ViewResult<Vec<Key>> {
        let mut keys = Vec::new();
        for key in self.find(&Query { status: vec![Status::Blocked], ..Query::default() })? {
            if limit > 0 && keys.len() == limit {
                break;
            }
            if self.node(key)?.is_some_and(|node| node.phase == Phase::BlockedOther) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Returns the names of the tools that tasks call, each once: at least of those tasks that are ready for a run.
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
        let mut found = Vec::new();
        for key in keys {
            if limit > 0 && found.len() == limit {
                break;
            }
            if self.calls(key)?.iter().any(|call| call.spec.tool_name == tool) {
                found.push(key);
            }
        }
        Ok(found)
    }

    /// Calls `each` with every node, by key: how a run loads its graph.
    fn each_node(&self, each: &mut dyn FnMut(Node)) -> ViewResult<()>;

    /// Calls `each` with every dependency as (task, what it depends on), by task.
    fn each_dependency(&self, each: &mut dyn FnMut(Key, Key)) -> ViewResult<()>;

    /// Calls `each` with how long every task took when it last ended well, and with how long its author expects it to take, as far
    /// as either is known; in any order.
    fn each_duration(&self, each: &mut dyn FnMut(Key, Period, DurationSource)) -> ViewResult<()> {
        let mut keys = Vec::new();
        self.each_node(&mut |node| keys.push(node.key))?;
        for key in keys {
            let Some(task) = self.task(key)? else { continue };
            let known = [
                (task.body.progress.took, DurationSource::Took),
                (task.spec.estimate, DurationSource::Estimate),
            ];
            for (period, source) in known {
                if let Some(period) = period {
                    each(key, period, source);
                }
            }
        }
        Ok(())
    }

    /// Returns the tasks that are not started and that only what is undecided about them keeps from it, by key.
    fn to_be_opened(&self) -> ViewResult<Vec<Key>> {
        let mut keys = Vec::new();
        self.each_node(&mut |node| {
            if node.phase == Phase::Todo && node.gate.is_to_be_opened() {
                keys.push(node.key);
            }
        })?;
        Ok(keys)
    }

    /// Returns how many tasks there are in each state; kept by the committer, not counted.
    fn counts(&self) -> ViewResult<BTreeMap<Status, u64>>;

    /// Returns the revision of the last event; 0 for an empty store.
    fn revision(&self) -> ViewResult<u64>;

    /// Returns events after `revision` in order, at most `limit` (0: all), of one task if one is given.
    fn events(&self, after: u64, task: Option<Key>, limit: usize) -> ViewResult<Vec<Event>>;

    /// Returns the events that match, in order.
    fn find_events(&self, query: &EventQuery) -> ViewResult<Vec<Event>>;

    /// Returns the last event of each checklist after `revision`, in order: one for each scope, also for those that are over.
    ///
    /// A store that can find them without reading all the others does so.
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

    /// Returns the commands that can be undone, or could before, which have events from revision `first` to `last`, in order.
    fn undoables(&self, first: u64, last: u64) -> ViewResult<Vec<Undoable>>;

    /// Returns the last command of an actor that is neither an undo nor undone.
    fn last_undoable(&self, actor: Actor<'_>) -> ViewResult<Option<Undoable>>;

    /// Returns the record of a request of an actor by its name.
    fn request(&self, actor: Actor<'_>, request: &str) -> ViewResult<Option<RequestRecord>>;

    /// Returns how many requests were done before a time, of which it is known still what was answered.
    fn requests_before(&self, time: crate::Timestamp) -> ViewResult<u64>;

    /// Returns the first part of idempotency keys, where a run has recorded one.
    fn key_space(&self) -> ViewResult<Option<KeySpace>>;

    /// Returns the runs that were forgotten, as far as their ids begin so, and when.
    fn pruned_runs(&self, prefix: &str) -> ViewResult<Vec<(RunId, crate::Timestamp)>>;

    /// Calls `each` with every command that can be undone: its revision, and what it changed, as it was before.
    fn each_image(&self, each: &mut dyn FnMut(u64, Arc<Image>)) -> ViewResult<()>;

    /// Returns what the command of exactly this revision changed, as it was before.
    fn image(&self, revision: u64) -> ViewResult<Option<Arc<Image>>>;
}

fn is_leased(task: ViewResult<Option<TaskRecord>>, actor: Option<&str>) -> ViewResult<bool> {
    let task = task?;
    let holder = task.as_ref().and_then(|task| task.body.state.lease_holder());
    Ok(holder.is_some_and(|holder| actor.is_none_or(|actor| *holder == actor)))
}

/// Which tasks to find. An empty list of a field means: any.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Query {
    /// In one of these states.
    pub status: Vec<Status>,
    /// Ready, and ended by one of these; the order is then priority, due date, age instead of age.
    pub ready: Option<Vec<Work>>,
    /// Assigned to.
    pub assignee: Option<String>,
    /// Assigned to this actor, or to nobody.
    pub free_for: Option<String>,
    /// Of one of these priorities.
    pub priority: Vec<Priority>,
    /// With all of these labels.
    pub labels: Vec<String>,
    /// Of this plan.
    pub plan: Option<String>,
    /// Directly below this task.
    pub parent: Option<Key>,
    /// With this text in id, name or description, in any case.
    pub text: Option<String>,
    /// At most so many; 0 for all.
    pub limit: usize,
    /// After so many.
    pub offset: usize,
}

/// Which events to find. What is not given means: any.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventQuery {
    /// After this revision.
    pub after: u64,
    /// Up to this revision, with it.
    pub until: Option<u64>,
    /// Of the task with this key.
    pub task: Option<Key>,
    /// Of tasks with this id, also of deleted ones: nothing is sorted by it, so all events are looked at.
    pub task_id: Option<TaskId>,
    /// By this actor.
    pub actor: Option<String>,
    /// In this run.
    pub run: Option<RunId>,
    /// Of this kind, by the word of its `type`: nothing is sorted by it, so all events are looked at.
    pub kind: Option<String>,
    /// Not before.
    pub since: Option<crate::Timestamp>,
    /// At most so many; 0 for all.
    pub limit: usize,
    /// Whether these are the last ones that match instead of the first.
    pub latest: bool,
}

/// Everything that one command writes. The store applies it whole or not at all.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Tasks made or changed.
    pub tasks: KeyMap<TaskChange>,
    /// Nodes made or changed; every new task has one.
    pub nodes: KeyMap<Node>,
    /// Calls made or changed, by task and position from 0; positions are not reused within a task.
    pub calls: BTreeMap<(Key, u32), CallChange>,
    /// Tasks deleted, with their edges, calls and what was applied; their ids stay taken.
    pub deleted: Vec<(Key, TaskId, Option<String>)>,
    /// Dependencies added and removed, in order.
    pub edges: Vec<EdgeChange>,
    /// What plans applied, by task, as JSON text.
    pub applied: BTreeMap<Key, String>,
    /// Plans made or changed.
    pub plans: Vec<PlanRecord>,
    /// Runs made or changed.
    pub runs: BTreeMap<RunId, RunRecord>,
    /// Plans that are gone.
    pub plans_gone: Vec<String>,
    /// Ids of deleted tasks that may be used again.
    pub freed: BTreeSet<TaskId>,
    /// Runs that are forgotten but for their ids, and when.
    pub runs_gone: Vec<(RunId, crate::Timestamp)>,
    /// Images of commands up to this revision are forgotten.
    pub images_gone: Option<u64>,
    /// Requests that were done before are forgotten.
    pub requests_gone: Option<crate::Timestamp>,
    /// What happened, in order; the store numbers them.
    pub events: Vec<NewEvent>,
    /// What all of it was before, where the command can be undone: kept by the revision of its last event.
    pub image: Option<Arc<Image>>,
    /// The command that this one undoes: from now on it counts as undone by this one.
    pub undoes: Option<u64>,
    /// The first part of idempotency keys, where it changes.
    pub key_space: Option<KeySpace>,
    /// The request by which all of it was asked for, so that it is not done again.
    pub request: Option<RequestRecord>,
    /// Commands that were undone, or are not any more, because of that: with the undo that undid them.
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
    /// The task as it is now.
    pub record: TaskRecord,
    /// Whether it is new.
    pub is_new: bool,
    /// Whether `spec` or `plan` changed; else only the body, the version and the time did.
    pub spec_changed: bool,
}

/// A call to write.
#[derive(Debug, Clone)]
pub struct CallChange {
    /// The call as it is now; `None` removes it.
    pub record: Option<CallRecord>,
    /// Whether `spec` changed or the call is new; else only the body did.
    pub spec_changed: bool,
}

/// A dependency to add or remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeChange {
    /// The task.
    pub task: Key,
    /// What it depends on.
    pub on: Key,
    /// Whether it is added.
    pub add: bool,
}

/// An event before the store numbers it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// When.
    pub at: crate::Timestamp,
    /// Who.
    pub actor: SharedText,
    /// The kind of the actor, as the event records it.
    pub actor_kind: crate::ActorKind,
    /// In which run.
    pub run: Option<RunId>,
    /// To which task.
    pub task: Option<(Key, TaskId)>,
    /// What.
    pub kind: EventKind,
    /// Tasks that became ready with it.
    pub ready: Box<[Key]>,
}
