//! Writing tasks and calls.

use crate::view::ReadGraph;
use std::collections::BTreeSet;

use super::{Decided, Draft};
use crate::task::record::{CallRecord, Node, StatusKind, TaskBody, TaskRecord};
use crate::task::spec::TaskSpec;
use crate::task::status::Status;
use crate::value::{Key, SharedText};
use crate::view::read::missing;
use crate::view::{CallChange, TaskChange};

impl Draft<'_> {
    pub(crate) fn insert_task(&mut self, node: Node, record: TaskRecord, calls: Vec<CallRecord>) {
        let key = node.key;
        self.new_tasks.ids.insert(record.id.clone(), key);
        self.was_ready.insert(key, None);
        self.changes.nodes.insert(key, node);
        self.changes.tasks.insert(key, TaskChange { record, is_new: true, spec_changed: true });
        for (position, call) in (0..).zip(&calls) {
            let change = CallChange { record: Some(call.clone()), spec_changed: true };
            self.changes.calls.insert((key, position), change);
        }
        self.calls.insert(key, calls);
        self.queue(key);
    }

    /// Deletes tasks. The caller has checked that no remaining task depends on them or is below them.
    pub(crate) fn delete_tasks(&mut self, keys: &[Key]) -> Decided<()> {
        let mut deleted = Vec::with_capacity(keys.len());
        for key in keys {
            let record = self.task(*key)?;
            deleted.push((*key, record.id, record.plan.map(String::from)));
            for on in self.dependencies(*key)? {
                self.remove_edge(*key, on)?;
            }
            self.set_parent(*key, None)?;
        }
        for (key, ..) in &deleted {
            self.was_ready.swap_remove(key);
            self.changes.nodes.swap_remove(key);
            self.changes.tasks.swap_remove(key);
        }
        let gone: BTreeSet<&Key> = keys.iter().collect();
        self.pending.gates.retain(|queued| !gone.contains(queued));
        self.changes.deleted.extend(deleted);
        Ok(())
    }

    /// Changes a task, and updates its version and its time of change.
    pub(crate) fn update_task(&mut self, key: Key, change: impl FnOnce(&mut TaskRecord)) -> Decided<()> {
        self.write_task(key, false, change)
    }

    /// Changes the specification of a task, and everything derived from it.
    pub(crate) fn update_spec(&mut self, key: Key, change: impl FnOnce(&mut TaskRecord)) -> Decided<()> {
        let before = self.task(key)?.spec;
        self.write_task(key, true, change)?;
        self.note_former_items(key, before.for_each.is_some())?;
        if before.approval.is_some() && self.task(key)?.spec.approval.is_none() {
            self.forget_decision(key)?;
        }
        self.close_unstarted(key)?;
        self.refresh_node(key)
    }

    /// Moves a task to a renamed plan. Unlike a change of the specification, this keeps its conditions and approvals
    /// decided.
    pub(crate) fn rename_plan_of(&mut self, key: Key, plan: SharedText) -> Decided<()> {
        self.write_task(key, true, |record| record.plan = Some(plan))
    }

    fn note_former_items(&mut self, key: Key, had_items: bool) -> Decided<()> {
        let record = self.task(key)?;
        let is_loop = record.spec.for_each.is_some();
        let has_former =
            !is_loop && (record.body.progress.former_items || had_items && !self.subtasks(key)?.is_empty());
        if has_former == record.body.progress.former_items {
            return Ok(());
        }
        self.write_task(key, false, |record| record.body.progress.former_items = has_former)
    }

    /// Discards the decided conditions and approvals of a task that has not started: they were made for its previous
    /// work.
    fn close_unstarted(&mut self, key: Key) -> Decided<()> {
        match self.node(key)?.status_kind.status() {
            Status::Todo | Status::Blocked => self.close(key)?,
            Status::InProgress | Status::Done | Status::Failed | Status::Cancelled | Status::Skipped => {}
        }
        self.close_approved_above(key)
    }

    /// Discards approvals of the parents, which covered all work below them and not the changed work.
    pub(super) fn close_approved_above(&mut self, key: Key) -> Decided<()> {
        let mut above = self.node(key)?.parent;
        // A new parent has no approval yet. Its own parents were checked when it was put below them.
        while let Some(parent) = above.filter(|parent| !self.is_new(*parent)) {
            let node = self.node(parent)?;
            let is_open = node.status_kind == StatusKind::Todo && !node.gate.undecided;
            let record = self.task(parent)?;
            // If only the policy asks about a list, each of its calls carries an approval of its own, so changed work
            // cannot use it.
            let is_asked_alone = record.spec.for_each.is_some() && record.spec.approval_before().is_none();
            if is_open && record.body.progress.approval.is_some() && !is_asked_alone {
                self.close(parent)?;
            }
            above = node.parent;
        }
        Ok(())
    }

    pub(super) fn write_task(
        &mut self,
        key: Key,
        spec_changed: bool,
        change: impl FnOnce(&mut TaskRecord),
    ) -> Decided<()> {
        let now = self.now();
        let entry = match self.changes.tasks.entry(key) {
            indexmap::map::Entry::Occupied(entry) => entry.into_mut(),
            indexmap::map::Entry::Vacant(entry) => {
                let mut record = self.view.task(key)?.ok_or_else(|| missing(key))?;
                // Only the first change within a command counts: the version counts commits, not calls of this method.
                record.version += 1;
                entry.insert(TaskChange { record, is_new: false, spec_changed: false })
            }
        };
        entry.spec_changed |= spec_changed;
        entry.record.updated_at = now;
        change(&mut entry.record);
        Ok(())
    }

    pub(crate) fn update_call(
        &mut self,
        key: Key,
        position: usize,
        change: impl FnOnce(&mut CallRecord),
    ) -> Decided<CallRecord> {
        let call = &mut self.calls(key)?[position];
        change(call);
        let call = call.clone();
        let at = (key, u32::try_from(position).expect("BUG: a task has fewer than 2^32 calls"));
        let spec_changed = self.changes.calls.get(&at).is_some_and(|before| before.spec_changed);
        self.changes.calls.insert(at, CallChange { record: Some(call.clone()), spec_changed });
        Ok(call)
    }

    pub(crate) fn add_call(&mut self, key: Key, call: CallRecord) -> Decided<()> {
        let calls = self.calls(key)?;
        calls.push(call.clone());
        let position = u32::try_from(calls.len() - 1).expect("BUG: a task has fewer than 2^32 calls");
        self.changes.calls.insert((key, position), CallChange { record: Some(call), spec_changed: true });
        self.close_unstarted(key)?;
        self.refresh_node(key)
    }

    /// Replaces the calls of a task that did not run.
    pub(crate) fn replace_calls(&mut self, key: Key, calls: Vec<CallRecord>) -> Decided<()> {
        let before = self.calls(key)?.len();
        for position in 0..before.max(calls.len()) {
            let at = (key, u32::try_from(position).expect("BUG: a task has fewer than 2^32 calls"));
            let change = CallChange { record: calls.get(position).cloned(), spec_changed: true };
            self.changes.calls.insert(at, change);
        }
        self.calls.insert(key, calls);
        self.close_unstarted(key)?;
        self.refresh_node(key)
    }

    /// Restores an earlier status outside the transition table. Counters keep growing: version, attempt and starts of
    /// calls.
    pub(crate) fn restore_task(
        &mut self,
        key: Key,
        spec: Option<TaskSpec>,
        mut body: TaskBody,
        calls: Option<Vec<CallRecord>>,
    ) -> Decided<()> {
        body.attempt = body.attempt.max(self.task(key)?.body.attempt);
        let status_kind = StatusKind::of(&body.state);
        if let Some(calls) = calls {
            self.replace_calls(key, calls)?;
        }
        let spec_changed = spec.is_some();
        self.write_task(key, spec_changed, |record| {
            if let Some(spec) = spec {
                record.spec = spec.into();
            }
            record.body = body.into();
        })?;
        self.refresh_node(key)?;
        if self.node(key)?.status_kind == status_kind {
            Ok(())
        } else {
            self.change_status_kind(key, status_kind)
        }
    }
}
