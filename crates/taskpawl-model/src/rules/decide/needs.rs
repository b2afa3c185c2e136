//! Requirements of tasks other than capacity: resources, and files that no other task may write.
//!
//! A run tracks the holdings of its own tasks. Holders outside the run are found here, in the commit that claims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::command::refusal::Refusal;
use crate::command::{Amount, Grant, Needs};
use crate::rules::draft::{Decided, Draft};
use crate::rules::means;
use crate::task::record::{StatusKind, TaskRecord};
use crate::task::status::{CallStatus, Cause, TaskStatus};
use crate::value::{Key, RunId, TaskId, paths};

/// Most holders that a refusal names.
const MAX_NAMED: usize = 5;

/// A task that holds resources or paths.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    key: Key,
    /// True if the run that asks holds it.
    is_own: bool,
    resources: BTreeMap<String, u32>,
    writes: Vec<String>,
    parent: Option<Key>,
    /// Id of a cancelled task whose calls have not ended, and the run that ends them.
    ending: Option<(TaskId, RunId)>,
}

impl Draft<'_> {
    /// Returns whether a task that is claimed or resumed gets its requirements from the grants of [`room`](Self::room).
    ///
    /// If not, the answer lists the missing ones, or a cache hit has finished the task.
    pub(crate) fn take_needs(&mut self, key: Key, record: &TaskRecord) -> Decided<bool> {
        if record.plan.as_ref().is_some_and(|plan| self.room.ended_plans.contains(plan.as_str())) {
            return Ok(false);
        }
        let is_held = matches!(record.body.state, TaskStatus::InProgress { .. });
        let cache = match if is_held { Ok(None) } else { self.cache_inputs(key, record)? } {
            Ok(cache) => cache,
            Err(problem) => {
                self.fail_without_call(key, problem.failed("cache.key"), Cause::Gate)?;
                return Ok(false);
            }
        };
        let rules = Arc::clone(&self.room.rules);
        let needs = Needs { cache, ..self.needs_of(key, record, &rules.capacities)? };
        if needs.cache.is_none() && !needs.has_limits() {
            if !is_held && record.body.progress.fingerprint.is_some() {
                // The task continues after some of its calls ran. Their inputs may have changed since, so its success
                // is not recorded.
                self.update_task(key, |record| record.body.progress.fingerprint = None)?;
            }
            return Ok(true);
        }
        // A resumed task keeps the paths that its claim was granted, so it needs no new grant.
        let grant = if is_held { Some(Grant::default()) } else { self.room.grants.get(&key).cloned() };
        match grant {
            Some(grant)
                if needs.cache.as_ref().is_none_or(|cache| grant.work.as_ref() == Some(&cache.work))
                    && grant.is_for(&needs.writes) =>
            {
                self.take_granted(key, record, needs, grant)
            }
            Some(_) | None => {
                self.answer.needs.push((key, needs));
                Ok(false)
            }
        }
    }

    fn take_granted(
        &mut self,
        key: Key,
        record: &TaskRecord,
        mut needs: Needs,
        grant: Grant,
    ) -> Decided<bool> {
        needs.resolved = grant.writes.map(|writes| writes.paths).or(needs.resolved);
        let recorded = needs.cache.take().and_then(|cache| cache.recorded);
        if recorded.is_some() && grant.fingerprint == recorded && self.take_recorded(key)? {
            return Ok(false);
        }
        if let Some(is_held_elsewhere) = self.conflict(key, &needs)? {
            self.answer.needs.push((key, Needs { is_held_elsewhere, ..needs }));
            return Ok(false);
        }
        let parent = needs.items.map(|(parent, _)| parent);
        let holder = Holder { writes: needs.paths(), ..Holder::new(key, true, record, parent) };
        self.holders()?.push(holder);
        let is_claimed = !matches!(record.body.state, TaskStatus::InProgress { .. });
        if is_claimed {
            self.update_task(key, |record| {
                let progress = &mut record.body.progress;
                progress.fingerprint = grant.fingerprint.map(Into::into);
                progress.cached_from = None;
                progress.changed_beyond.clear();
                progress.changes_unknown = None;
                progress.resolved_writes = elsewhere(&record.spec.writes, needs.resolved).map(Box::new);
            })?;
        }
        Ok(true)
    }

    /// Returns the refusal of a claim by an agent or a person if other tasks hold its requirements.
    ///
    /// `given` has capacities of resources, which override those declared by plans.
    pub(super) fn occupied(
        &mut self,
        key: Key,
        record: &TaskRecord,
        given: &BTreeMap<String, u32>,
        resolved: Option<Vec<String>>,
    ) -> Decided<Option<Refusal>> {
        let capacities = means::capacities(self.view, given)?;
        let needs = Needs { resolved, ..self.needs_of(key, record, &capacities)? };
        if !needs.has_limits() {
            return Ok(None);
        }
        let leases = self.view.leases(None)?;
        // An expired lease must not occupy resources, so it is released before holders are collected.
        self.return_some_expired(&leases)?;
        let held = self.held_beside(key)?;
        let held: Vec<&Holder> = held.iter().collect();
        let keys: BTreeSet<Key> = in_the_way(&held, &needs).into_iter().map(|holder| holder.key).collect();
        let by = self.ids_of(&keys.into_iter().take(MAX_NAMED).collect::<Vec<_>>())?;
        Ok((!by.is_empty()).then(|| Refusal::Occupied { id: record.id.clone(), by }))
    }

    fn needs_of(
        &mut self,
        key: Key,
        record: &TaskRecord,
        capacities: &BTreeMap<String, u32>,
    ) -> Decided<Needs> {
        let of = |name: &String| means::capacity(capacities, name);
        let wanted = record.spec.wanted_resources(record.plan.as_deref()).filter(|(_, units)| *units > 0);
        let resources = wanted.map(|(name, units)| {
            let amount = Amount { units, of: of(&name) };
            (name, amount)
        });
        let (resources, writes) = (resources.collect(), record.spec.writes.clone());
        // Resolved paths are valid for one attempt only: symbolic links may have changed since.
        let is_held = matches!(record.body.state, TaskStatus::InProgress { .. });
        let resolved = record.body.progress.resolved_writes.as_deref().filter(|_| is_held).cloned();
        let items = self.items_limit(key, record)?;
        Ok(Needs { resources, writes, resolved, items, ..Needs::default() })
    }

    fn items_limit(&mut self, key: Key, record: &TaskRecord) -> Decided<Option<(Key, u32)>> {
        let parent = if record.body.progress.item.is_some() { self.node(key)?.parent } else { None };
        let Some(parent) = parent else { return Ok(None) };
        let limit = self.task(parent)?.spec.for_each.as_ref().and_then(|for_each| for_each.concurrency);
        Ok(limit.map(|limit| (parent, limit)))
    }

    /// Returns whether other tasks hold the requirements of a task: `Some(true)` if none of them belongs to this run.
    fn conflict(&mut self, key: Key, needs: &Needs) -> Decided<Option<bool>> {
        let holders = std::mem::take(self.holders()?);
        let mut held = Vec::new();
        for holder in &holders {
            if holder.key != key && self.still_holds(holder)? {
                held.push(holder);
            }
        }
        let conflicting = in_the_way(&held, needs);
        let conflicting = (!conflicting.is_empty()).then(|| conflicting.iter().all(|holder| !holder.is_own));
        *self.holders()? = holders;
        Ok(conflicting)
    }

    fn held_beside(&mut self, key: Key) -> Decided<Vec<Holder>> {
        let mut held = Vec::new();
        for holder in self.holders()?.clone() {
            if holder.key != key && self.still_holds(&holder)? {
                held.push(holder);
            }
        }
        Ok(held)
    }

    /// Returns the holders at the first request in this command, plus the tasks claimed since.
    fn holders(&mut self) -> Decided<&mut Vec<Holder>> {
        if self.read_once.holders.is_none() {
            self.read_once.holders = Some(self.find_holders()?);
        }
        Ok(self.read_once.holders.get_or_insert_default())
    }

    fn find_holders(&mut self) -> Decided<Vec<Holder>> {
        let mut holders = Vec::new();
        // Starts from running calls and leases instead of all tasks in progress, because thousands of tasks may be
        // paused.
        let held: BTreeSet<Key> = self.view.running()?.into_iter().chain(self.view.leases(None)?).collect();
        for key in held {
            let Some(record) = self.view.task(key)? else { continue };
            let parent = if record.body.progress.item.is_some() { self.node(key)?.parent } else { None };
            let TaskStatus::InProgress { claim } = &record.body.state else { continue };
            let is_own = claim.run == self.context.run;
            let holder = Holder::new(key, is_own, &record, parent);
            if !holder.is_empty() && self.is_holding(key)? {
                holders.push(holder);
            }
        }
        // Calls of a cancelled task may still write files.
        for (id, run) in crate::view::read::ending(self.view)? {
            let Some(key) = self.view.key(id.as_str())? else { continue };
            let Some(record) = self.view.task(key)? else { continue };
            let is_own = self.context.run.as_ref() == Some(&run);
            holders.push(Holder { ending: Some((id, run)), ..Holder::new(key, is_own, &record, None) });
        }
        Ok(holders)
    }

    fn still_holds(&mut self, holder: &Holder) -> Decided<bool> {
        if let Some((id, run)) = &holder.ending {
            return Ok(self.changes.runs.get(run).is_none_or(|run| run.ending.contains_key(id)));
        }
        let is_untouched = !self.changes.tasks.contains_key(&holder.key);
        Ok(is_untouched || self.is_holding(holder.key)?)
    }

    /// Returns whether a task is in progress and not paused.
    fn is_holding(&mut self, key: Key) -> Decided<bool> {
        let Some(node) = self.find_node(key)? else { return Ok(false) };
        let calls = self.calls(key)?;
        let runs = calls.is_empty() || calls.iter().any(|call| call.body.status == CallStatus::Running);
        Ok(node.status_kind == StatusKind::InProgress && runs)
    }
}

impl Holder {
    fn new(key: Key, is_own: bool, record: &TaskRecord, parent: Option<Key>) -> Self {
        let resources = record.spec.wanted_resources(record.plan.as_deref()).collect();
        Self { key, is_own, resources, writes: held_paths(record), parent, ending: None }
    }

    fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.writes.is_empty() && self.parent.is_none()
    }
}

/// Returns the paths that a claimed task writes, in the form used for comparison.
pub(crate) fn held_paths(record: &TaskRecord) -> Vec<String> {
    let written = &record.spec.writes;
    let resolved = record.body.progress.resolved_writes.as_deref().filter(|_| !written.is_empty());
    paths::written(resolved.map_or(&written[..], Vec::as_slice))
}

/// Returns the resolved paths if they differ from those of the author. Only these have to be stored.
pub(super) fn elsewhere(written: &[String], resolved: Option<Vec<String>>) -> Option<Vec<String>> {
    resolved.filter(|resolved| paths::written(resolved) != paths::written(written))
}

/// Returns the holders that conflict with the requirements.
fn in_the_way<'h>(held: &[&'h Holder], needs: &Needs) -> Vec<&'h Holder> {
    let mut in_the_way: Vec<&Holder> = Vec::new();
    for (name, amount) in &needs.resources {
        let units = |holder: &Holder| holder.resources.get(name).copied().unwrap_or(0);
        // Summed as `u64`, because the units of several tasks may exceed `u32`.
        let used: u64 = held.iter().map(|holder| u64::from(units(holder))).sum();
        if used + u64::from(amount.units) > u64::from(amount.of) {
            in_the_way.extend(held.iter().copied().filter(|holder| units(holder) > 0));
        }
    }
    if let Some((parent, most)) = needs.items {
        let items = held.iter().copied().filter(|holder| holder.parent == Some(parent));
        if items.clone().count() >= most as usize {
            in_the_way.extend(items);
        }
    }
    let writes = needs.paths();
    in_the_way.extend(held.iter().copied().filter(|holder| {
        writes.iter().any(|path| holder.writes.iter().any(|other| paths::overlap(path, other)))
    }));
    in_the_way
}
