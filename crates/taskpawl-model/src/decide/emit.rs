//! Plans that grow: tasks that a call returns join the plan of its task, all of them or none.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cycle::Edge;
use crate::draft::{Decided, Draft};
use crate::event::EventKind;
use crate::plan::plan_from_json;
use crate::record::{CallError, CallRecord, TaskRecord};
use crate::refusal::Refusal;
use crate::spec::{Origin, TaskSpec};
use crate::status::{CallStatus, Status};
use crate::{Key, Plan, PlanTask, TaskId};

use super::author::invalid;

/// The field of an emitted task that names tasks which from now on depend on it.
const NEEDED_BY: &str = "neededBy";

impl Draft<'_> {
    /// Writes down that a call has succeeded whose result may hold tasks; these join the plan, or the call fails.
    pub(super) fn close_emitting(&mut self, key: Key, record: &TaskRecord, position: usize) -> Decided<()> {
        let call = self.calls(key)?[position].clone();
        let before = self.clone();
        self.emit_ended(key, record, &call)?;
        let Some(tasks) = call.body.result.as_ref().and_then(emitted).cloned() else { return Ok(()) };
        let Err(error) = self.add_emitted(record, &call, tasks) else { return Ok(()) };
        let refusal = super::refused(error)?;
        *self = before;
        let hint = refusal.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        let message = format!("the tasks that it returned cannot join the plan: {refusal}{hint}");
        self.update_call(key, position, |call| {
            call.body.status = CallStatus::Failed;
            call.body.failures += 1;
            call.body.error = Some(CallError { class: "emit".to_owned(), message });
        })?;
        self.close_failed(key, record, position).map(drop)
    }

    fn add_emitted(&mut self, by: &TaskRecord, call: &CallRecord, mut tasks: Value) -> Decided<()> {
        let needed_by = take_needed_by(&mut tasks)?;
        let plan = plan_from_json(&tasks).map_err(|errors| invalid("tasks", errors.to_string().trim()))?;
        let origin = std::mem::replace(&mut self.origin, Origin::Agent);
        let joined = Emission::new(self, by, call, &plan)?.join(self, &needed_by);
        self.origin = origin;
        joined
    }
}

/// Returns the tasks in the result of a call: those that a tool returns, or what a program printed as JSON.
fn emitted(result: &Value) -> Option<&Value> {
    result.get("tasks").or_else(|| result.get("json")?.get("tasks"))
}

/// Takes the field out that plan files do not have, and returns it by the id or name of the task.
fn take_needed_by(tasks: &mut Value) -> Decided<BTreeMap<String, Vec<String>>> {
    let mut found = BTreeMap::new();
    let Value::Array(tasks) = tasks else { return Err(invalid("tasks", "a list of tasks is needed").into()) };
    let mut queue: Vec<&mut Value> = tasks.iter_mut().collect();
    while let Some(task) = queue.pop() {
        let Value::Object(fields) = task else { continue };
        if let Some(names) = fields.remove(NEEDED_BY) {
            let label = fields.get("id").or_else(|| fields.get("name")).and_then(Value::as_str);
            let names = names_in(&names).ok_or_else(|| invalid(NEEDED_BY, "expected a list of task ids"))?;
            found.insert(label.unwrap_or_default().to_owned(), names);
        }
        if let Some(Value::Array(below)) = fields.get_mut("subtasks") {
            queue.extend(below);
        }
    }
    Ok(found)
}

fn names_in(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(name) => Some(vec![name.clone()]),
        Value::Array(names) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Tasks on their way into the plan.
struct Emission<'e> {
    by: &'e TaskRecord,
    plan: &'e Plan,
    ids: Vec<TaskId>,
    /// The key of each task, and whether it is new: a call that runs again may return what it returned before.
    keys: Vec<(Key, bool)>,
}

impl<'e> Emission<'e> {
    fn new(draft: &mut Draft<'_>, by: &'e TaskRecord, call: &CallRecord, plan: &'e Plan) -> Decided<Self> {
        let (mut ids, mut number) = (Vec::with_capacity(plan.tasks.len()), 0_u64);
        for task in &plan.tasks {
            let id = match &task.id {
                Some(id) => id.clone(),
                None => draft.free_id(by, call, &mut number)?,
            };
            ids.push(id);
        }
        Ok(Self { by, plan, ids, keys: Vec::new() })
    }

    fn join(mut self, draft: &mut Draft<'_>, needed_by: &BTreeMap<String, Vec<String>>) -> Decided<()> {
        for (task, id) in self.plan.tasks.iter().zip(self.ids.clone()) {
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
        Ok(())
    }

    /// Makes a task, or brings the one in line that the same task emitted before.
    fn put(&self, draft: &mut Draft<'_>, task: &PlanTask, id: &TaskId) -> Decided<(Key, bool)> {
        let mut spec = task.spec.clone();
        let found_during = &mut spec.links.get_or_insert_default().discovered_from;
        if !found_during.contains(&self.by.id) {
            found_during.push(self.by.id.clone());
        }
        super::author::check_milestone(&spec, !task.calls.is_empty())?;
        if let Some(key) = draft.find_id(id.as_str())?
            && self.is_own(&draft.task(key)?)
        {
            follow(draft, key, &spec, task)?;
            return Ok((key, false));
        }
        let plan = self.by.plan.as_deref();
        Ok((draft.insert_new(id, plan, &spec, &task.context, &task.calls)?, true))
    }

    fn is_own(&self, record: &TaskRecord) -> bool {
        let links = record.spec.links.as_ref();
        links.is_some_and(|links| links.discovered_from.contains(&self.by.id))
    }

    fn attach(&self, draft: &mut Draft<'_>, position: usize, task: &PlanTask) -> Decided<()> {
        let (key, is_new) = self.keys[position];
        if let Some(parent) = task.parent.filter(|_| is_new) {
            draft.put_below(key, self.keys[parent].0)?;
        }
        for on in &task.needs {
            draft.link(key, self.keys[*on].0, !is_new)?;
        }
        for id in &task.needs_outside {
            let on = exact(draft, id.as_str())?;
            draft.link(key, on, !is_new)?;
        }
        let names = task.names.iter().map(|(text, other)| (text.clone(), self.ids[*other].clone()));
        let names: BTreeMap<_, _> = names.filter(|(text, id)| text != id.as_str()).collect();
        draft.update_task(key, |record| record.body.names = names)?;
        let dependencies = draft.dependencies(key)?;
        super::author::check_trigger(&self.ids[position], &task.spec, !dependencies.is_empty())?;
        if is_new {
            let parent = draft.node(key)?.parent;
            draft.emit_created(key, parent, &dependencies, self.by.plan.as_deref())?;
        }
        Ok(())
    }

    /// Lets another task depend on an emitted one.
    fn let_wait(&self, draft: &mut Draft<'_>, position: usize, name: &str) -> Decided<()> {
        let on = self.keys[position].0;
        let key = match self.ids.iter().position(|id| id.as_str() == name) {
            Some(emitted) => self.keys[emitted].0,
            None => exact(draft, name)?,
        };
        if draft.depends_on(key, on)? {
            return Ok(());
        }
        refuse_started(&draft.task(key)?, "its dependencies")?;
        draft.refuse_cycle(Edge::Dependency { task: key, on })?;
        draft.add_edge(key, on)?;
        draft.update_task(key, |_| ())?;
        draft.emit(Some(key), EventKind::DependencyAdded { on: self.ids[position].clone() })
    }
}

impl Draft<'_> {
    /// Returns the next id that nobody has or had: `TASK.CALL.0`, …
    fn free_id(&self, by: &TaskRecord, call: &CallRecord, number: &mut u64) -> Decided<TaskId> {
        loop {
            let id = format!("{}.{}.{number}", by.id, call.id);
            *number += 1;
            if self.find_id(&id)?.is_none() && self.view.deleted_id(&id)?.is_none() {
                return Ok(TaskId::from(id));
            }
        }
    }
}

/// Lets a task follow what its emitter says now, as long as it did not start.
fn follow(draft: &mut Draft<'_>, key: Key, spec: &TaskSpec, task: &PlanTask) -> Decided<()> {
    let record = draft.task(key)?;
    let present = draft.known_calls(key)?;
    let calls = draft.new_calls(&[], &task.calls)?;
    let is_same_call =
        |(one, other): (&CallRecord, &CallRecord)| (&one.id, &one.spec) == (&other.id, &other.spec);
    let has_same_calls = present.len() == calls.len() && present.iter().zip(&calls).all(is_same_call);
    if record.spec == *spec && has_same_calls {
        return Ok(());
    }
    refuse_started(&record, "its work")?;
    draft.replace_calls(key, calls)?;
    draft.update_spec(key, |record| record.spec = spec.clone())
}

fn exact(draft: &Draft<'_>, id: &str) -> Decided<Key> {
    match draft.find_id(id)? {
        Some(key) => Ok(key),
        None => Err(Refusal::UnknownTask { id: id.to_owned(), similar: Vec::new() }.into()),
    }
}

/// Refuses to change what runs, or is over.
fn refuse_started(record: &TaskRecord, what: &'static str) -> Decided<()> {
    match record.body.state.status() {
        Status::Todo | Status::Blocked => Ok(()),
        status @ (Status::InProgress
        | Status::Done
        | Status::Failed
        | Status::Cancelled
        | Status::Skipped) => Err(Refusal::WorkStarted { id: record.id.clone(), status, what }.into()),
    }
}
