//! Undo snapshots: the state before a command of everything that the command changed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::task::event::EventKind;
use crate::task::record::{CallRecord, PlanRecord, TaskBody, TaskRecord};
use crate::task::spec::TaskSpec;
use crate::task::status::TaskStatus;
use crate::value::{Key, SharedText, TaskId};
use crate::view::{Changes, View, ViewError, ViewResult};

/// A command of a person or an agent that the store can undo, or could undo earlier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Undoable {
    /// Revision of its last event, which identifies the command.
    pub revision: u64,
    /// Revision of its first event.
    pub first: u64,
    /// Name of the actor that gave the command.
    pub actor: String,
    /// Revision of the command that it undoes, if it is an `undo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// Revision of the `undo` that undid it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<u64>,
}

impl Undoable {
    /// Returns whether the command has no effect left: it was undone, or it is itself an `undo`.
    pub fn is_void(&self) -> bool {
        self.undoes.is_some() || self.undone_by.is_some()
    }
}

/// Undo snapshot: everything that a command changed, as it was before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UndoSnapshot {
    /// Tasks that the command created: the first and the last key of each range.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub created: Vec<(Key, Key)>,
    /// Ids of created tasks that deleted tasks had used before.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub reused: BTreeSet<TaskId>,
    /// Tasks that changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskSnapshot>,
    /// Tasks that the command deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<DeletedTask>,
    /// Dependencies added between existing tasks, as `(task, dependency)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<(Key, Key)>,
    /// Dependencies removed between tasks that still exist, as `(task, dependency)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<(Key, Key)>,
    /// Moved tasks with their parent before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<(Key, Option<Key>)>,
    /// Spec that each plan last applied to a task, as JSON text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<(Key, String)>,
    /// Plan records before, by name; `None` if the plan did not exist.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub plans: BTreeMap<String, Option<PlanRecord>>,
}

/// A task as it was before a command changed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskSnapshot {
    /// Key of the task.
    pub key: Key,
    /// Specification, if the command changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<TaskSpec>,
    /// Name of its plan, if the command changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<SharedText>,
    /// Status, results, notes and everything else that changes as the task runs.
    pub body: TaskBody,
    /// Changed calls by position; `None` if the command added the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<(u32, Option<CallRecord>)>,
}

/// A task as it was before a command deleted it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletedTask {
    /// Key of the task; keys are never reused, so undo can restore it.
    pub key: Key,
    /// The task record.
    pub record: TaskRecord,
    /// Its calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallRecord>,
    /// Its dependencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Key>,
    /// Its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Key>,
    /// Spec that its plan last applied, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<String>,
    /// True if the deletion made its id available for new tasks.
    #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
    pub freed: bool,
}

impl UndoSnapshot {
    /// Returns every task that the snapshot touches, including deleted and created ones.
    pub fn keys(&self) -> BTreeSet<Key> {
        let mut keys: BTreeSet<Key> = self.created_keys().collect();
        keys.extend(self.tasks.iter().map(|task| task.key));
        keys.extend(self.deleted.iter().map(|task| task.key));
        keys.extend(self.added.iter().chain(&self.removed).map(|(task, _)| *task));
        keys.extend(self.parents.iter().map(|(task, _)| *task));
        keys.extend(self.applied.iter().map(|(task, _)| *task));
        keys
    }

    /// Returns the tasks that the command created.
    pub fn created_keys(&self) -> impl Iterator<Item = Key> {
        self.created.iter().flat_map(|(first, last)| (first.0..=last.0).map(Key))
    }

    /// Returns the snapshot of everything that `changes` will overwrite, read from `view` before they are written.
    pub(crate) fn of(view: &dyn View, changes: &Changes, reused: BTreeSet<TaskId>) -> ViewResult<Self> {
        let deleted: BTreeSet<Key> = changes.deleted.iter().map(|(key, ..)| *key).collect();
        // Only tasks that existed before and still exist afterwards have a previous state to restore.
        let stays =
            |key: &Key| !deleted.contains(key) && changes.tasks.get(key).is_none_or(|change| !change.is_new);
        let mut undo_snapshot = Self { created: ranges(changes), reused, ..Self::default() };
        undo_snapshot.take_tasks(view, changes, &stays)?;
        undo_snapshot.take_deleted(view, changes)?;
        undo_snapshot.take_edges(view, changes, &stays)?;
        for key in changes.applied.keys().filter(|key| stays(key)) {
            undo_snapshot.applied.extend(view.applied(*key)?.map(|spec| (*key, spec)));
        }
        for name in changes.plans.iter().map(|plan| &plan.name).chain(&changes.plans_gone) {
            undo_snapshot.plans.insert(name.clone(), view.plan(name)?);
        }
        Ok(undo_snapshot)
    }

    fn take_tasks(
        &mut self,
        view: &dyn View,
        changes: &Changes,
        stays: &dyn Fn(&Key) -> bool,
    ) -> ViewResult<()> {
        let mut calls = BTreeMap::<Key, Vec<u32>>::new();
        for (key, position) in changes.calls.keys().filter(|(key, _)| stays(key)) {
            calls.entry(*key).or_default().push(*position);
        }
        for (key, change) in changes.tasks.iter().filter(|(key, _)| stays(key)) {
            let before = expect_record(view.task(*key)?, *key)?;
            let calls = calls_before(view, *key, calls.remove(key).unwrap_or_default())?;
            let spec = change.spec_changed.then(|| before.spec.clone().into_inner());
            if spec.is_some() || !calls.is_empty() || !is_same_but_lease(&before.body, &change.record.body) {
                let plan = before.plan.filter(|plan| change.record.plan.as_ref() != Some(plan));
                self.tasks.push(TaskSnapshot {
                    key: *key,
                    spec,
                    plan,
                    body: before.body.into_inner(),
                    calls,
                });
            }
        }
        Ok(())
    }

    fn take_deleted(&mut self, view: &dyn View, changes: &Changes) -> ViewResult<()> {
        for (key, id, _) in &changes.deleted {
            self.deleted.push(DeletedTask {
                key: *key,
                record: expect_record(view.task(*key)?, *key)?,
                calls: view.calls(*key)?,
                dependencies: view.dependencies(*key)?,
                parent: expect_record(view.node(*key)?, *key)?.parent,
                applied: view.applied(*key)?,
                freed: changes.freed.contains(id),
            });
        }
        Ok(())
    }

    fn take_edges(
        &mut self,
        view: &dyn View,
        changes: &Changes,
        stays: &dyn Fn(&Key) -> bool,
    ) -> ViewResult<()> {
        // One command can add and remove the same edge. Only the last change counts, and only if it differs from the
        // store.
        let mut last = BTreeMap::new();
        for edge in changes.edges.iter().filter(|edge| stays(&edge.task)) {
            last.insert((edge.task, edge.on), edge.add);
        }
        let mut before = BTreeMap::new();
        for ((task, on), is_there) in last {
            let before = match before.entry(task) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(BTreeSet::from_iter(view.dependencies(task)?)),
            };
            match (before.contains(&on), is_there) {
                (false, true) => self.added.push((task, on)),
                (true, false) => self.removed.push((task, on)),
                (true, true) | (false, false) => {}
            }
        }
        for node in changes.nodes.values().filter(|node| stays(&node.key)) {
            let before = expect_record(view.node(node.key)?, node.key)?.parent;
            if before != node.parent {
                self.parents.push((node.key, before));
            }
        }
        Ok(())
    }
}

/// Groups created tasks into key ranges. A command allocates consecutive keys, so a plan of any size needs one pair.
fn ranges(changes: &Changes) -> Vec<(Key, Key)> {
    let mut ranges: Vec<(Key, Key)> = Vec::new();
    for (key, _) in changes.tasks.iter().filter(|(_, change)| change.is_new) {
        match ranges.last_mut() {
            Some((_, last)) if last.0 + 1 == key.0 => *last = *key,
            _ => ranges.push((*key, *key)),
        }
    }
    ranges
}

fn calls_before(
    view: &dyn View,
    key: Key,
    positions: Vec<u32>,
) -> ViewResult<Vec<(u32, Option<CallRecord>)>> {
    if positions.is_empty() {
        return Ok(Vec::new());
    }
    let calls = view.calls(key)?;
    let at = |position: u32| usize::try_from(position).ok().and_then(|position| calls.get(position));
    Ok(positions.into_iter().map(|position| (position, at(position).cloned())).collect())
}

/// Returns whether two bodies differ at most in the end of a lease. Every report of the holder renews the lease, and a
/// renewal is nothing to undo.
fn is_same_but_lease(before: &TaskBody, after: &TaskBody) -> bool {
    let without_lease = |body: &TaskBody| {
        let mut body = body.clone();
        if let TaskStatus::InProgress { claim } = &mut body.state {
            claim.lease_until = None;
        }
        body
    };
    before == after || without_lease(before) == without_lease(after)
}

fn expect_record<T>(record: Option<T>, key: Key) -> ViewResult<T> {
    record.ok_or_else(|| ViewError(format!("the store has no task {key}, but a record refers to it").into()))
}

/// Returns whether an event conflicts with undoing an earlier command on the same task.
///
/// Renewals do not: leases are renewed all the time. `Stopped` does not either: it only follows from a cancellation.
pub(crate) fn changes_the_task(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Renewed { .. } | EventKind::Stopped { .. })
}
