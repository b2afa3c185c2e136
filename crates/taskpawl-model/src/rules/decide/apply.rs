//! `apply`: stores a plan, compared with its last applied version.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::again::How;
use super::applied::{Applied, Difference, applied, changed_fields, changed_header, header_by, merge_spec};
use super::follow::Standing;
use super::naming::Naming;
use super::params::Values;
use super::unknown;
use crate::command::refusal::{Conflict, Refusal, Remedy};
use crate::command::{Apply, ApplyReport, OnChanged};
use crate::plan::PlanTask;
use crate::rules::cycle::Edge;
use crate::rules::draft::{Decided, Draft};
use crate::task::event::{EventKind, PlanApplied};
use crate::task::record::{PlanRecord, TaskRecord};
use crate::task::status::{Status, TaskStatus};
use crate::value::{Key, SharedText, TaskId, check_id};
use crate::view::Query;
use crate::view::ReadGraph;

/// Reason recorded for tasks cancelled by `--prune`. A later apply recognizes it and restores them.
const PRUNED: &str = "gone from the plan file";

impl Draft<'_> {
    pub(super) fn apply(&mut self, apply: &Apply) -> Decided<()> {
        check_id(&apply.name).map_err(Refusal::from)?;
        // The author of a plan file answers for its values, not the actor that applies it.
        self.writer = self.origin;
        let naming = self.naming(apply)?;
        let apply = &*naming.renamed(apply);
        let mut work = Work::new(self, apply)?;
        naming.tell(apply, &mut work.report);
        work.find_tasks(self, naming.record.prefix.as_deref())?;
        if apply.fresh {
            // Reopening comes before the checks, because a reopened task may change freely.
            work.reopen_all(self)?;
        }
        unknown::refuse(self, apply, &work.keys)?;
        work.compare_values(self)?;
        work.make_new(self)?;
        let differences = work.compare(self)?;
        work.open_parents(self, &differences)?;
        work.start_over(self, &differences)?;
        for difference in differences {
            work.change_one(self, difference)?;
        }
        work.refuse_conflicts()?;
        work.attach_all(self)?;
        work.leave_gone(self)?;
        work.close(self, naming)
    }
}

/// An apply in progress.
pub(super) struct Work<'p> {
    pub(super) apply: &'p Apply,
    pub(super) report: ApplyReport,
    pub(super) conflicts: Vec<Conflict>,
    /// Key of each task of the plan; `None` until it is created.
    pub(super) keys: Vec<Option<Key>>,
    ids: Vec<TaskId>,
    /// Tasks of this plan in the store.
    pub(super) present: BTreeSet<Key>,
    /// Tasks with new edges. All old edges are removed before any is added, so that a file may reverse a dependency.
    to_attach: Vec<Attach>,
    /// Descendants of restored tasks.
    below_back: BTreeSet<Key>,
    values: Values,
}

/// A task of the plan that gets new edges.
struct Attach {
    position: usize,
    /// Previous parent.
    from: Option<Key>,
    moves: bool,
    links: Vec<Key>,
}

impl<'p> Work<'p> {
    fn new(draft: &Draft<'_>, apply: &'p Apply) -> Decided<Self> {
        let query = Query { plan: Some(apply.name.clone()), ..Query::default() };
        let present = draft.view.find(&query)?.into_iter().collect();
        let report = ApplyReport { plan: apply.name.clone(), ..ApplyReport::default() };
        let values = Values::new(apply, draft.view.plan(&apply.name)?.as_ref(), draft.writer)?;
        let (conflicts, keys, ids, to_attach, below_back) = Default::default();
        Ok(Self { apply, report, conflicts, keys, ids, present, to_attach, below_back, values })
    }

    /// Finds the stored tasks of the plan: by id, or by name if the author gave none.
    fn find_tasks(&mut self, draft: &Draft<'_>, prefix: Option<&str>) -> Decided<()> {
        let by_name = self.present_by_name(draft)?;
        let mut reserved = self.ids_in_file();
        // In an empty store there is nothing to find. This is the usual case and saves one read for each task.
        let is_first = draft.view.next_key()? == Key(0);
        for task in &self.apply.plan.tasks {
            let (key, id) = match &task.id {
                Some(id) if is_first => (None, id.clone()),
                Some(id) => (draft.find_id(id.as_str())?, id.clone()),
                None => {
                    if let Some(key) = by_name.get(&task.spec.name) {
                        (Some(*key), draft.id(*key)?)
                    } else {
                        let id = draft.id_from_name(prefix, &task.spec.name, |id| reserved.contains(id))?;
                        reserved.insert(id.clone());
                        (None, id)
                    }
                }
            };
            if let Some(key) = key
                && !self.present.contains(&key)
            {
                self.conflicts.push(foreign(&draft.task(key)?));
            }
            self.keys.push(key);
            self.ids.push(id);
        }
        self.refuse_conflicts()
    }

    /// Returns the ids that the file gives, which no id from a name may take; nothing if no task needs such an id.
    fn ids_in_file(&self) -> HashSet<TaskId> {
        let tasks = &self.apply.plan.tasks;
        if tasks.iter().all(|task| task.id.is_some()) {
            return HashSet::new();
        }
        tasks.iter().filter_map(|task| task.id.clone()).collect()
    }

    /// Refuses changed parameter values that a started task used. Other tasks are decided again with the new values.
    fn compare_values(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        if self.values.changed.is_empty() || self.apply.fresh {
            return Ok(());
        }
        let mut users = Vec::new();
        for key in &self.present {
            if let Some(conflict) = self.values.conflict(draft, *key)? {
                users.push((*key, conflict));
            }
        }
        if self.apply.on_changed == OnChanged::Redo {
            self.redo_over(draft, users.iter().map(|(key, _)| *key))?;
        }
        for (key, conflict) in &users {
            match draft.standing(*key)? {
                Standing::Fixed
                    if self.apply.on_changed == OnChanged::Keep && is_over(&draft.task(*key)?) => {}
                Standing::Fixed => self.conflicts.push(conflict.clone()),
                Standing::Unstarted => draft.close(*key)?,
                // Its items used the value. They are updated when the list is opened again.
                _ if draft.task(*key)?.spec.for_each.is_some() => draft.close(*key)?,
                standing @ (Standing::GoesOn | Standing::Keeps | Standing::Interrupted) => {
                    let calls = draft.continued_calls(*key, None)?;
                    let taken = draft.take_work(*key, standing, &calls, true)?;
                    self.conflicts.extend(taken.err());
                }
            }
        }
        Ok(())
    }

    fn present_by_name(&self, draft: &Draft<'_>) -> Decided<BTreeMap<String, Key>> {
        let mut by_name = BTreeMap::new();
        if self.apply.plan.tasks.iter().all(|task| task.id.is_some()) {
            return Ok(by_name);
        }
        for key in &self.present {
            if let Some(applied) = applied(draft, *key)?
                && !applied.has_id
            {
                by_name.insert(applied.spec.name.clone(), *key);
            }
        }
        Ok(by_name)
    }

    fn make_new(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        let plan = &self.apply.plan;
        let plan_name = SharedText::from(self.apply.name.as_str());
        let mut new = Vec::new();
        draft.expect_new(self.keys.iter().filter(|key| key.is_none()).count());
        for (position, task) in plan.tasks.iter().enumerate() {
            if self.keys[position].is_some() {
                continue;
            }
            super::fields::check_filled(&task.spec)?;
            let (id, name) = (&self.ids[position], Some(self.apply.name.as_str()));
            if task.id.is_some() {
                // `find_tasks` already looked this id up.
                draft.check_free_here(id, name)?;
            } else {
                draft.check_free(id, name)?;
            }
            let key =
                draft.insert_free(id, Some(plan_name.clone()), &task.spec, &task.context, &task.calls)?;
            self.keys[position] = Some(key);
            new.push(position);
        }
        for position in new {
            let links = self.needs(draft, &plan.tasks[position])?;
            self.to_attach.push(Attach { position, from: None, moves: true, links });
        }
        Ok(())
    }

    /// Adds the new edges. The parser already found cycles within the plan, so only a stored task can close one.
    fn attach_all(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        let search = !self.present.is_empty();
        let to_attach = std::mem::take(&mut self.to_attach);
        for attach in to_attach.iter().filter(|attach| attach.moves) {
            self.put_in_place(draft, attach, search)?;
        }
        for Attach { position, links, .. } in &to_attach {
            for on in links {
                draft.link(self.key(*position), *on, search)?;
            }
        }
        let params: Vec<String> = self.apply.plan.params.keys().cloned().collect();
        for Attach { position, .. } in to_attach {
            self.close_task(draft, position)?;
            draft.check_references_with(self.key(position), &params)?;
        }
        Ok(())
    }

    fn put_in_place(&self, draft: &mut Draft<'_>, attach: &Attach, search: bool) -> Decided<()> {
        let key = self.key(attach.position);
        let parent = self.apply.plan.tasks[attach.position].parent.map(|parent| self.key(parent));
        if let Some(parent) = parent {
            if search {
                draft.refuse_cycle(Edge::Subtask { task: key, parent })?;
            }
            draft.put_below(key, parent)?;
        }
        if draft.is_new(key) || attach.from == parent {
            return Ok(());
        }
        let from = attach.from.map(|key| draft.id(key)).transpose()?;
        let to = parent.map(|key| draft.id(key)).transpose()?;
        draft.emit(Some(key), EventKind::Moved { from, to })
    }

    fn close_task(&mut self, draft: &mut Draft<'_>, position: usize) -> Decided<()> {
        let key = self.key(position);
        let dependencies = draft.dependencies(key)?;
        let spec = &draft.look_at(key)?.spec;
        super::fields::check_trigger(&self.ids[position], spec, !dependencies.is_empty())?;
        self.write_names(draft, position)?;
        if draft.is_new(key) {
            let parent = draft.node(key)?.parent;
            draft.emit_created(key, parent, &dependencies)?;
            self.write_applied(draft, position)?;
            self.report.created.push(self.ids[position].clone());
        }
        Ok(())
    }

    /// Returns the stored tasks that differ from what was applied last, and restores those that were pruned.
    fn compare(&mut self, draft: &mut Draft<'_>) -> Decided<Vec<Difference<'p>>> {
        let mut differences = Vec::new();
        for position in 0..self.apply.plan.tasks.len() {
            let key = self.key(position);
            if draft.is_new(key) {
                continue;
            }
            let before = applied(draft, key)?;
            let after = self.wanted(draft, position)?;
            let is_back = self.bring_back_pruned(draft, key)?;
            match before {
                Some(before) if before == after && is_back => self.report.changed.push(draft.id(key)?),
                Some(before) if before == after => self.report.unchanged += 1,
                before => {
                    let changed = before.as_ref().map(|before| changed_fields(before, &after));
                    let changed = changed.unwrap_or_default();
                    differences.push(Difference { position, key, before, after, changed });
                }
            }
        }
        Ok(differences)
    }

    /// Restores a task that an earlier apply pruned, with the descendants that were cancelled only because of it.
    fn bring_back_pruned(&mut self, draft: &mut Draft<'_>, key: Key) -> Decided<bool> {
        if !is_pruned(draft, key)? {
            return Ok(false);
        }
        draft.start_one_again(key, How::Retry)?;
        for below in draft.unseen_below(key, &mut self.below_back)? {
            if !self.present.contains(&below) && is_pruned(draft, below)? {
                draft.start_one_again(below, How::Retry)?;
            }
        }
        Ok(true)
    }

    fn change_one(&mut self, draft: &mut Draft<'_>, difference: Difference<'p>) -> Decided<()> {
        let key = difference.key;
        let standing = match difference.work() {
            Some(_) => draft.standing(key)?,
            None => Standing::Unstarted,
        };
        let record = draft.task(key)?;
        let keeps =
            standing == Standing::Fixed && self.apply.on_changed == OnChanged::Keep && is_over(&record);
        if let Some(field) = difference.work().filter(|_| standing == Standing::Fixed && !keeps) {
            self.conflicts.push(finished(&record, field));
            return Ok(());
        }
        let (position, before, after) = (difference.position, difference.before.as_ref(), &difference.after);
        self.follow(draft, position, before, after)?;
        if keeps {
            draft.keep_ended_calls(key, difference.calls())?;
            self.report.kept.push(record.id.clone());
        } else if standing != Standing::Unstarted {
            let calls = draft.continued_calls(key, difference.calls())?;
            self.redo_items(draft, key, &calls)?;
            if let Err(conflict) = draft.take_work(key, standing, &calls, difference.is_whole())? {
                self.conflicts.push(conflict);
                return Ok(());
            }
            self.list_waiting(draft, key, standing)?;
        } else if let Some(calls) = difference.calls() {
            let calls = draft.continued_calls(key, Some(calls))?;
            draft.replace_calls(key, calls)?;
        }
        self.detach(draft, position, before, after)?;
        draft.emit(Some(key), EventKind::Updated { fields: difference.changed })?;
        self.write_applied(draft, position)?;
        self.report.changed.push(record.id);
        Ok(())
    }

    /// Updates the fields that the file changed, except for the calls. Changes made by commands in between are kept.
    fn follow(
        &self,
        draft: &mut Draft<'_>,
        position: usize,
        before: Option<&Applied<'_>>,
        after: &Applied<'_>,
    ) -> Decided<()> {
        super::fields::check_values(&after.spec)?;
        super::fields::check_filled(&after.spec)?;
        let key = self.key(position);
        let stood = draft.task(key)?;
        let spec = merge_spec(before.map(|before| &*before.spec), &after.spec, &stood.spec)?;
        draft.update_spec(key, |record| record.spec = spec.into())?;
        if before.is_none_or(|before| before.context != after.context) {
            draft.update_task(key, |record| record.body.context.clone_from(&after.context))?;
        }
        let writer = draft.writer;
        draft.update_task(key, |record| record.note_writer(Some(&stood), &after.context, writer))?;
        Ok(())
    }

    /// Removes the edges that are gone from the file, and collects the new ones.
    fn detach(
        &mut self,
        draft: &mut Draft<'_>,
        position: usize,
        before: Option<&Applied<'_>>,
        after: &Applied<'_>,
    ) -> Decided<()> {
        let key = self.key(position);
        let wanted: BTreeSet<Key> =
            self.needs(draft, &self.apply.plan.tasks[position])?.into_iter().collect();
        let present: BTreeSet<Key> = draft.dependencies(key)?.into_iter().collect();
        for on in present.iter().copied() {
            let was_in_file = match before {
                Some(before) => before.needs.contains(&draft.id(on)?),
                None => true,
            };
            if was_in_file && !wanted.contains(&on) {
                draft.remove_edge(key, on)?;
            }
        }
        let needs_changed = before.is_none_or(|before| before.needs != after.needs);
        let links = if needs_changed { wanted.difference(&present).copied().collect() } else { Vec::new() };
        let (from, moves) =
            (draft.node(key)?.parent, before.is_none_or(|before| before.parent != after.parent));
        if moves {
            draft.set_parent(key, None)?;
        }
        self.to_attach.push(Attach { position, from, moves, links });
        Ok(())
    }

    fn leave_gone(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        let kept: BTreeSet<Key> = self.keys.iter().copied().flatten().collect();
        let mut gone: Vec<Key> = Vec::new();
        for key in self.present.difference(&kept) {
            // Items and returned tasks belong to the plan, but never stood in its file.
            if applied(draft, *key)?.is_some() {
                gone.push(*key);
            }
        }
        let bound = if self.apply.prune { above_bound(draft, &gone, &kept)? } else { BTreeSet::new() };
        let mut to_prune = Vec::new();
        for key in gone {
            if self.apply.prune && !bound.contains(&key) && is_open(draft, key)? {
                to_prune.push(key);
                self.report.pruned.push(draft.id(key)?);
            } else {
                self.report.gone.push(draft.id(key)?);
            }
        }
        let below = all_below(draft, &to_prune)?;
        // Cancelling a task cancels its descendants, too.
        for key in to_prune.into_iter().filter(|key| !below.contains(key)) {
            draft.cancel_tree(key, Some(&PRUNED.to_owned()))?;
        }
        Ok(())
    }

    fn close(self, draft: &mut Draft<'_>, naming: Naming) -> Decided<()> {
        let mut report = self.report;
        let stored = draft.view.plan(&report.plan)?;
        let header = header_by(draft.origin, &self.apply.plan, stored.as_ref());
        report.header = changed_header(stored.as_ref(), &header);
        let Values { all: params, origins: param_origins, .. } = self.values;
        let is_new_header = stored.is_none_or(|stored| {
            stored.header != header
                || stored.params != params
                || stored.param_origins != param_origins
                || !naming.is_of(&stored)
        });
        let is_same = report.created.is_empty() && report.changed.is_empty() && report.pruned.is_empty();
        // Applying an unchanged file writes nothing, so it does not notify other processes.
        if !is_same || is_new_header || report.reopened > 0 {
            let applied_at = Some(draft.now());
            let notify = report.header.iter().any(|name| name == "notify");
            let notify = notify.then(|| self.apply.plan.notify.clone());
            let name = report.plan.clone();
            let record = PlanRecord { name, header, params, param_origins, applied_at, ..naming.record };
            draft.changes.plans.push(record);
            let applied = PlanApplied {
                plan: report.plan.clone(),
                created: report.created.len() as u64,
                changed: report.changed.len() as u64,
                pruned: report.pruned.len() as u64,
                notify,
            };
            draft.emit(None, EventKind::Applied(Box::new(applied)))?;
        }
        draft.answer.applied = Some(report);
        Ok(())
    }

    fn refuse_conflicts(&self) -> Decided<()> {
        if self.conflicts.is_empty() {
            return Ok(());
        }
        Err(Refusal::PlanConflict { plan: self.apply.name.clone(), conflicts: self.conflicts.clone() }.into())
    }

    pub(super) fn key(&self, position: usize) -> Key {
        self.keys[position].expect("BUG: every task of the plan has a key once the new ones are made")
    }

    fn needs(&self, draft: &Draft<'_>, task: &PlanTask) -> Decided<Vec<Key>> {
        let mut keys: Vec<Key> = task.needs.iter().map(|position| self.key(*position)).collect();
        for id in &task.needs_outside {
            let Some(key) = draft.find_id(id.as_str())? else {
                return Err(unknown_outside(draft, id, task)?.into());
            };
            keys.push(key);
        }
        Ok(keys)
    }

    fn wanted(&self, draft: &Draft<'_>, position: usize) -> Decided<Applied<'p>> {
        let task = &self.apply.plan.tasks[position];
        let needs = self.needs(draft, task)?;
        Ok(Applied {
            has_id: task.id.is_some(),
            spec: task.spec.clone(),
            context: Cow::Borrowed(&task.context),
            calls: task.calls.iter().map(|call| (call.id.clone(), call.spec.clone())).collect(),
            needs: draft.ids_of(&needs)?.into_iter().collect(),
            parent: task.parent.map(|parent| self.ids[parent].clone()),
        })
    }

    /// Stores the names that the expressions of a task use for others, if they differ from the ids.
    fn write_names(&self, draft: &mut Draft<'_>, position: usize) -> Decided<()> {
        let key = self.key(position);
        let given = self.apply.plan.tasks[position].names.iter();
        let given = given.map(|(text, other)| (text.clone(), self.ids[*other].clone()));
        let names: BTreeMap<_, _> = given.filter(|(text, id)| text != id.as_str()).collect();
        if draft.look_at(key)?.body.names == names {
            return Ok(());
        }
        draft.update_task(key, |record| record.body.names = names)
    }

    fn write_applied(&self, draft: &mut Draft<'_>, position: usize) -> Decided<()> {
        let wanted = self.wanted(draft, position)?;
        super::import::write_applied(draft, self.key(position), &wanted)
    }
}

fn is_pruned(draft: &Draft<'_>, key: Key) -> Decided<bool> {
    let state = draft.task(key)?.body.state.clone();
    Ok(matches!(state, TaskStatus::Cancelled { reason: Some(reason) } if reason == PRUNED))
}

/// Returns whether the task was neither started nor finished.
fn is_open(draft: &Draft<'_>, key: Key) -> Decided<bool> {
    let record = draft.task(key)?;
    Ok(!record.body.state.status().is_finished() && !draft.is_started(key, &record)?)
}

/// Returns the ancestors, up to `tops`, of tasks that were started or are still in the file. They cannot be pruned.
fn above_bound(draft: &Draft<'_>, tops: &[Key], kept: &BTreeSet<Key>) -> Decided<BTreeSet<Key>> {
    let mut bound = BTreeSet::new();
    for key in all_below(draft, tops)? {
        if kept.contains(&key) || draft.is_started(key, &draft.task(key)?)? {
            let mut above = draft.node(key)?.parent;
            while let Some(key) = above
                && bound.insert(key)
            {
                above = draft.node(key)?.parent;
            }
        }
    }
    Ok(bound)
}

fn all_below(draft: &Draft<'_>, tops: &[Key]) -> Decided<BTreeSet<Key>> {
    let mut below = BTreeSet::new();
    for key in tops {
        draft.unseen_below(*key, &mut below)?;
    }
    Ok(below)
}

fn foreign(record: &TaskRecord) -> Conflict {
    let why = match &record.plan {
        Some(plan) => format!("belongs to the plan `{plan}`"),
        None => "was not created by a plan".to_owned(),
    };
    Conflict::new(&record.id, why, Remedy::OtherId)
}

/// Returns whether a task has finished, so that its results can be kept although its definition changed.
pub(super) fn is_over(record: &TaskRecord) -> bool {
    matches!(record.body.state.status(), Status::Done | Status::Skipped)
}

fn finished(record: &TaskRecord, field: &str) -> Conflict {
    let remedy = if is_over(record) { Remedy::RedoOrKeep } else { Remedy::Wait };
    let why = format!("is `{}` and its `{field}` would change", record.body.state.status());
    Conflict::new(&record.id, why, remedy)
}

fn unknown_outside(draft: &Draft<'_>, id: &TaskId, task: &PlanTask) -> Decided<Refusal> {
    let name = task.id.as_ref().map_or(task.spec.name.as_str(), TaskId::as_str);
    match draft.resolve(id.as_str()) {
        Err(crate::rules::DecideError::Refused(refusal))
            if matches!(*refusal, Refusal::UnknownTask { .. }) =>
        {
            Ok(*refusal)
        }
        Err(error @ crate::rules::DecideError::View(_)) => Err(error),
        _ => {
            let problem = format!(
                "`{name}` depends on `{id}`, which is neither a task of the plan nor an id in the store"
            );
            Ok(super::fields::invalid("dependencies", problem))
        }
    }
}
