//! Dynamic tasks: tasks returned by a call join the plan of its task, all of them or none.

use crate::view::ReadGraph;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::command::refusal::Refusal;
use crate::plan::plan_from_json;
use crate::plan::{Plan, PlanTask};
use crate::rules::cycle::Edge;
use crate::rules::draft::{Decided, Draft};
use crate::task::event::EventKind;
use crate::task::record::{CallError, CallRecord, PlanRecord, StatusKind, TaskRecord};
use crate::task::spec::{Origin, TaskSpec};
use crate::task::status::{CallStatus, Cause, Status, TaskStatus};
use crate::value::{Key, TaskId};

use super::again::How;
use super::approval_guard::{is_changed, is_taken};
use super::fields::invalid;

/// Field of a returned task that names tasks which become its dependents.
const NEEDED_BY: &str = "neededBy";

/// Reason recorded for tasks that are skipped because their call starts over and may return others.
const WITHDRAWN: &str = "the call that returned it starts over, and has not returned it again";

impl Draft<'_> {
    /// Records the success of a call that may return tasks. They join the plan; if they cannot, the call fails.
    pub(super) fn close_emitting(&mut self, key: Key, record: &TaskRecord, position: usize) -> Decided<()> {
        let call = self.calls(key)?[position].clone();
        // A refusal may come after some tasks were added. The copy restores the draft, because a failed call adds
        // nothing.
        let before = self.clone();
        self.emit_ended(key, record, &call)?;
        let Some(tasks) = call.body.result.as_ref().and_then(emitted).cloned() else { return Ok(()) };
        let Err(error) = self.add_emitted(key, record, &call, tasks) else { return Ok(()) };
        let refusal = crate::rules::decision::refused(error)?;
        *self = before;
        let hint = refusal.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        let message = format!("the tasks that it returned cannot join the plan: {refusal}{hint}");
        self.update_call(key, position, |call| {
            call.body.status = CallStatus::Failed;
            call.body.failures += 1;
            call.body.error = Some(Box::new(CallError::new("emit", message)));
        })?;
        self.close_failed(key, record, position).map(drop)
    }

    fn add_emitted(&mut self, key: Key, by: &TaskRecord, call: &CallRecord, mut tasks: Value) -> Decided<()> {
        let needed_by = take_needed_by(&mut tasks)?;
        let plan = plan_from_json(&tasks).map_err(|errors| invalid("tasks", errors.to_string().trim()))?;
        let writer = self.writer;
        let origin = self.write_as(Origin::Agent);
        let joined = Emission::new(self, by, call, &plan)?.join(self, &needed_by);
        (self.origin, self.writer) = (origin, writer);
        let mut ids: Vec<TaskId> = joined?.into_iter().map(|(id, ..)| id).collect();
        let position = self.calls(key)?.iter().position(|other| other.id == call.id);
        let position = position.expect("BUG: a call that has ended is one of its task");
        self.update_call(key, position, |call| {
            let emitted = &mut call.body.emitted;
            let known: BTreeSet<TaskId> = emitted.iter().cloned().collect();
            ids.retain(|id| !known.contains(id));
            emitted.extend(ids);
        })
        .map(drop)
    }

    /// Adds the tasks from the cached results of a task again; returns whether all of them could join.
    ///
    /// If not, the draft must not be used.
    pub(super) fn emit_recorded(&mut self, key: Key) -> Decided<bool> {
        let record = self.task(key)?;
        for call in self.known_calls(key)?.iter().filter(|call| call.spec.emit) {
            let Some(tasks) = call.body.result.as_ref().and_then(emitted).cloned() else { continue };
            if let Err(error) = self.add_emitted(key, &record, call, tasks) {
                crate::rules::decision::refused(error)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    // Tasks that a call returned before it started over.

    /// Returns the tasks that calls of a task added since they last started over.
    pub(super) fn emitted_by(&mut self, key: Key) -> Decided<Vec<Key>> {
        let calls = self.known_calls(key)?;
        self.emitted_by_calls(key, &calls)
    }

    /// Returns the tasks that the given calls added since they last started over.
    pub(super) fn emitted_by_calls(&self, key: Key, calls: &[CallRecord]) -> Decided<Vec<Key>> {
        let ids: Vec<TaskId> = calls.iter().flat_map(|call| call.body.emitted.iter().cloned()).collect();
        let (by, mut keys) = (self.id(key)?, Vec::with_capacity(ids.len()));
        for id in ids {
            if let Some(task) = self.find_id(id.as_str())?
                && is_found_during(&self.task(task)?, &by)
            {
                keys.push(task);
            }
        }
        Ok(keys)
    }

    /// Returns all tasks added by calls of these tasks, their descendants, and tasks added by those in turn.
    pub(super) fn emitted_from(&mut self, by: &[Key]) -> Decided<Vec<Key>> {
        let (mut queue, mut seen) = (by.to_vec(), BTreeSet::new());
        let mut all = Vec::new();
        while let Some(key) = queue.pop() {
            for emitted in self.emitted_by(key)? {
                for key in [vec![emitted], self.subtree(emitted)?].concat() {
                    if seen.insert(key) {
                        all.push(key);
                        queue.push(key);
                    }
                }
            }
        }
        Ok(all)
    }

    /// Withdraws the queued tasks, which were added by calls that start over.
    pub(crate) fn withdraw_queued(&mut self) -> Decided<()> {
        while let Some(key) = self.pending.withdrawals.pop_front() {
            self.withdraw(key)?;
        }
        Ok(())
    }

    fn withdraw(&mut self, key: Key) -> Decided<()> {
        if is_withdrawn(&self.task(key)?) {
            return Ok(());
        }
        let tree = [vec![key], self.subtree(key)?].concat();
        for task in &tree {
            // Commands of people check this earlier and refuse. A consequence cannot be refused, so the running task
            // continues.
            if self.node(*task)?.status_kind == StatusKind::InProgress || self.ending_in(*task)?.is_some() {
                return Ok(());
            }
        }
        for task in tree.into_iter().rev() {
            if self.node(task)?.status_kind.status().is_finished() {
                self.start_one_again(task, How::Reopen)?;
            } else {
                self.clear_all(task)?;
            }
        }
        self.skip_tree(key, Cause::Skip, Some(&WITHDRAWN.to_owned()))
    }

    /// Restarts a withdrawn task that its call returned again, with the tasks that others put below it.
    fn bring_back(&mut self, key: Key, by: &TaskId) -> Decided<()> {
        self.start_one_again(key, How::Reopen)?;
        for below in self.subtree(key)? {
            let record = self.task(below)?;
            if is_withdrawn(&record) && !is_found_during(&record, by) {
                self.start_one_again(below, How::Reopen)?;
            }
        }
        Ok(())
    }
}

fn is_withdrawn(record: &TaskRecord) -> bool {
    matches!(&record.body.state, TaskStatus::Skipped { reason: Some(reason) } if reason == WITHDRAWN)
}

pub(super) fn is_found_during(record: &TaskRecord, by: &TaskId) -> bool {
    record.spec.links.as_ref().is_some_and(|links| links.discovered_from.contains(by))
}

/// Returns the tasks in the result of a call: the tool's `tasks`, or those in the JSON that a program printed.
fn emitted(result: &Value) -> Option<&Value> {
    result.get("tasks").or_else(|| result.get("json")?.get("tasks"))
}

/// Removes `neededBy`, which plan files do not have, and returns it by the id or name of the task.
fn take_needed_by(tasks: &mut Value) -> Decided<BTreeMap<String, Vec<String>>> {
    let mut needed_by = BTreeMap::new();
    let Value::Array(tasks) = tasks else { return Err(invalid("tasks", "expected a list of tasks").into()) };
    let mut queue: Vec<&mut Value> = tasks.iter_mut().collect();
    while let Some(task) = queue.pop() {
        let Value::Object(fields) = task else { continue };
        if let Some(names) = fields.remove(NEEDED_BY) {
            let label = fields.get("id").or_else(|| fields.get("name")).and_then(Value::as_str);
            let names = names_in(&names).ok_or_else(|| invalid(NEEDED_BY, "expected a list of task ids"))?;
            needed_by.insert(label.unwrap_or_default().to_owned(), names);
        }
        if let Some(Value::Array(below)) = fields.get_mut("subtasks") {
            queue.extend(below);
        }
    }
    Ok(needed_by)
}

fn names_in(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(name) => Some(vec![name.clone()]),
        Value::Array(names) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Returned tasks while they join the plan.
pub(super) struct Emission<'e> {
    by: &'e TaskRecord,
    plan: &'e Plan,
    /// The plan that they join, which knows the prefix of its ids.
    known: PlanRecord,
    /// Ids of the tasks in the store.
    ids: Vec<TaskId>,
    keys: Vec<(Key, Standing)>,
}

/// Status of a returned task before the call: a repeated call may return the same tasks again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    New,
    /// Withdrawn when its call started over.
    Back,
    Known,
}

impl<'e> Emission<'e> {
    pub(super) fn new(
        draft: &mut Draft<'_>,
        by: &'e TaskRecord,
        call: &CallRecord,
        plan: &'e Plan,
    ) -> Decided<Self> {
        let known = draft.plan_of(by)?;
        let (mut ids, mut number) = (Vec::with_capacity(plan.tasks.len()), 0_u64);
        for task in &plan.tasks {
            let id = match &task.id {
                Some(id) => known.stored_id(id),
                None => draft.free_id(by, call, &mut number)?,
            };
            ids.push(id);
        }
        Ok(Self { by, plan, known, ids, keys: Vec::new() })
    }

    /// Adds the tasks to the plan; returns their ids, and whether each is new.
    pub(super) fn join(
        mut self,
        draft: &mut Draft<'_>,
        needed_by: &BTreeMap<String, Vec<String>>,
    ) -> Decided<Vec<(TaskId, Key, Standing)>> {
        for (task, id) in self.plan.tasks.iter().zip(self.ids.clone()) {
            // All tasks are created before any edge is added, because an edge may lead to a later task of the list.
            let key = self.put(draft, task, &id)?;
            self.keys.push(key);
        }
        for (position, task) in self.plan.tasks.iter().enumerate() {
            self.attach(draft, position, task)?;
        }
        for (position, task) in self.plan.tasks.iter().enumerate() {
            let label = task.id.as_ref().map_or(task.spec.name.as_str(), TaskId::as_str);
            for name in needed_by.get(label).into_iter().flatten() {
                self.let_wait(draft, position, name)?;
            }
        }
        for (key, _) in &self.keys {
            draft.check_references(*key)?;
        }
        let keys = self.keys.into_iter();
        Ok(self.ids.into_iter().zip(keys).map(|(id, (key, standing))| (id, key, standing)).collect())
    }

    /// Creates a task, or updates the one that the same task added before.
    fn put(&self, draft: &mut Draft<'_>, task: &PlanTask, id: &TaskId) -> Decided<(Key, Standing)> {
        let mut spec = task.spec.clone();
        let found_during = &mut spec.links.get_or_insert_default().discovered_from;
        if !found_during.contains(&self.by.id) {
            found_during.push(self.by.id.clone());
        }
        super::fields::check_milestone(&spec, !task.calls.is_empty())?;
        if let Some(key) = draft.find_id(id.as_str())? {
            let record = draft.task(key)?;
            if is_found_during(&record, &self.by.id) {
                let is_back = is_withdrawn(&record);
                if is_back {
                    draft.bring_back(key, &self.by.id)?;
                }
                follow(draft, key, &spec, task, is_back)?;
                return Ok((key, if is_back { Standing::Back } else { Standing::Known }));
            }
        }
        let plan = self.by.plan.as_deref();
        Ok((draft.insert_new(id, plan, &spec, &task.context, &task.calls)?, Standing::New))
    }

    /// Returns the stored ids for names in expressions that use the ids of the plan's file.
    fn names_outside(&self, draft: &Draft<'_>, key: Key) -> Decided<BTreeMap<String, TaskId>> {
        let mut names = BTreeMap::new();
        if self.known.prefix.is_none() && self.known.prefixed.is_empty() {
            return Ok(names);
        }
        for text in draft.mentioned_tasks(key)? {
            let stored = self.known.stored_id(&TaskId::from(text.as_str()));
            if draft.find_id(stored.as_str())?.is_some() {
                names.insert(text, stored);
            }
        }
        Ok(names)
    }

    /// Finds an existing task, first by its id in the file of the plan.
    fn find(&self, draft: &Draft<'_>, id: &str) -> Decided<Key> {
        match draft.find_id(self.known.stored_id(&TaskId::from(id)).as_str())? {
            Some(key) => Ok(key),
            None => exact(draft, id),
        }
    }

    fn put_in_place(&self, draft: &mut Draft<'_>, position: usize, task: &PlanTask) -> Decided<()> {
        let (key, standing) = self.keys[position];
        let parent = task.parent.map(|parent| self.keys[parent].0);
        let from = draft.node(key)?.parent;
        if standing == Standing::Known || from == parent {
            return Ok(());
        }
        draft.set_parent(key, None)?;
        if let Some(parent) = parent {
            if standing == Standing::Back {
                draft.refuse_cycle(Edge::Subtask { task: key, parent })?;
            }
            draft.put_below(key, parent)?;
        }
        if standing == Standing::New {
            return Ok(());
        }
        let from = from.map(|key| draft.id(key)).transpose()?;
        let to = parent.map(|key| draft.id(key)).transpose()?;
        draft.emit(Some(key), EventKind::Moved { from, to })
    }

    fn attach(&self, draft: &mut Draft<'_>, position: usize, task: &PlanTask) -> Decided<()> {
        let (key, standing) = self.keys[position];
        let is_new = standing == Standing::New;
        self.put_in_place(draft, position, task)?;
        let inside = task.needs.iter().map(|on| Ok(self.keys[*on].0));
        let outside = task.needs_outside.iter().map(|id| self.find(draft, id.as_str()));
        for on in inside.chain(outside).collect::<Decided<Vec<_>>>()? {
            if standing == Standing::Known && !draft.depends_on(key, on)? {
                refuse_started(&draft.task(key)?, "its dependencies")?;
            }
            draft.link(key, on, !is_new)?;
        }
        let mut names = self.names_outside(draft, key)?;
        names.extend(task.names.iter().map(|(text, other)| (text.clone(), self.ids[*other].clone())));
        names.retain(|text, id| text != id.as_str());
        if draft.task(key)?.body.names != names {
            draft.update_task(key, |record| record.body.names = names)?;
        }
        let dependencies = draft.dependencies(key)?;
        super::fields::check_trigger(&self.ids[position], &task.spec, !dependencies.is_empty())?;
        if is_new {
            let parent = draft.node(key)?.parent;
            draft.emit_created(key, parent, &dependencies)?;
        }
        Ok(())
    }

    /// Makes another task depend on a returned one.
    fn let_wait(&self, draft: &mut Draft<'_>, position: usize, name: &str) -> Decided<()> {
        let on = self.keys[position].0;
        let stored = self.known.stored_id(&TaskId::from(name));
        let key = match self.ids.iter().position(|id| id.as_str() == name || *id == stored) {
            Some(emitted) => self.keys[emitted].0,
            None => self.find(draft, name)?,
        };
        if draft.depends_on(key, on)? {
            return Ok(());
        }
        refuse_started(&draft.task(key)?, "its dependencies")?;
        draft.refuse_other_way(key)?;
        draft.refuse_cycle(Edge::Dependency { task: key, on })?;
        draft.add_edge(key, on)?;
        draft.update_task(key, |_| ())?;
        draft.emit(Some(key), EventKind::DependencyAdded { on: self.ids[position].clone() })
    }
}

impl Draft<'_> {
    /// Returns the plan record of a task, or an empty record if the task has no plan.
    pub(super) fn plan_of(&self, task: &TaskRecord) -> Decided<PlanRecord> {
        let known = task.plan.as_deref().map(|plan| self.view.plan(plan)).transpose()?.flatten();
        Ok(known.unwrap_or_default())
    }

    /// Returns the next unused id `TASK.CALL.N`. A withdrawn task of the same call gives its id back, so it is
    /// restarted in place.
    fn free_id(&self, by: &TaskRecord, call: &CallRecord, number: &mut u64) -> Decided<TaskId> {
        loop {
            let id = format!("{}.{}.{number}", by.id, call.id);
            *number += 1;
            let is_free = match self.find_id(&id)? {
                Some(key) => {
                    let record = self.task(key)?;
                    is_withdrawn(&record) && is_found_during(&record, &by.id)
                }
                None => self.view.deleted_id(&id)?.is_none(),
            };
            if is_free {
                return Ok(TaskId::from(id));
            }
        }
    }
}

/// Updates an unstarted task to the version that its call returned now.
fn follow(draft: &mut Draft<'_>, key: Key, spec: &TaskSpec, task: &PlanTask, is_back: bool) -> Decided<()> {
    let record = draft.task(key)?;
    let present = draft.known_calls(key)?;
    let calls = draft.new_calls(&[], &task.calls)?;
    let is_same_call =
        |(one, other): (&CallRecord, &CallRecord)| (&one.id, &one.spec) == (&other.id, &other.spec);
    let has_same_calls = present.len() == calls.len() && present.iter().zip(&calls).all(is_same_call);
    if *record.spec == *spec && has_same_calls {
        return Ok(());
    }
    refuse_started(&record, "its work")?;
    let (old, new) = ((&*record.spec, &present[..]), (spec, &calls[..]));
    // A withdrawn task is asked about again in any case, so its question may change but not vanish.
    if if is_back { is_taken(old, new) } else { is_changed(old, new) } {
        return Err(Refusal::TakesApproval { id: record.id }.into());
    }
    draft.replace_calls(key, calls)?;
    draft.update_spec(key, |record| record.spec = spec.clone().into())
}

fn exact(draft: &Draft<'_>, id: &str) -> Decided<Key> {
    match draft.find_id(id)? {
        Some(key) => Ok(key),
        None => Err(Refusal::UnknownTask { id: id.to_owned(), similar: Vec::new() }.into()),
    }
}

/// Refuses to change a task that runs or has finished.
pub(super) fn refuse_started(record: &TaskRecord, what: &'static str) -> Decided<()> {
    match record.body.state.status() {
        Status::Todo | Status::Blocked => Ok(()),
        status @ (Status::InProgress
        | Status::Done
        | Status::Failed
        | Status::Cancelled
        | Status::Skipped) => {
            Err(Refusal::WorkStarted { id: record.id.clone(), status, what, reopen: None }.into())
        }
    }
}
