//! Recording of undo snapshots, before a command overwrites what they keep.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::task::record::{CallRecord, TaskBody};
use crate::task::status::TaskStatus;
use crate::value::{Key, TaskId};
use crate::view::undo::{DeletedTask, TaskSnapshot, UndoSnapshot};
use crate::view::{Changes, View, ViewError, ViewResult};

impl UndoSnapshot {
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
