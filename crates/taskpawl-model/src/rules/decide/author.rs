//! Commands of authors: create, change, link and delete tasks.

use super::fields::{
    check_approval_after, check_depth, check_filled, check_milestone, check_own_fields, check_rework,
    check_trigger, check_values, check_worktree, invalid, is_work_fixed, meaningless, taken, takes_subtasks,
};
use crate::view::ReadGraph;
use std::collections::BTreeSet;

use crate::command::NewTask;
use crate::command::refusal::Refusal;
use crate::rules::cycle::{self, Edge};
use crate::rules::draft::{Decided, Draft};
use crate::task::event::{EventKind, TaskCreated};
use crate::task::fault;
use crate::task::interpreter::with_interpreter;
use crate::task::record::{CallRecord, Node, Note, StatusKind, TaskRecord, Work};
use crate::task::spec::{NewCall, TaskSpec};
use crate::value::Map;
use crate::value::{CallId, Key, Shared, SharedText, TaskId, check_id};

/// Most dependencies that the event of a new task lists.
const LISTED_DEPENDENCIES: usize = 20;

impl Draft<'_> {
    pub(super) fn create(&mut self, task: &NewTask) -> Decided<()> {
        if task.id.as_str().is_empty() {
            let id = self.id_from_name(None, &task.spec.name, |_| false)?;
            return self.create_stored(&NewTask { id, ..task.clone() });
        }
        check_id(task.id.as_str()).map_err(Refusal::from)?;
        self.create_stored(task)
    }

    /// Like [`create`](Self::create), but without checking the id: a prefixed id may be longer than the limit.
    pub(super) fn create_stored(&mut self, task: &NewTask) -> Decided<()> {
        let named = task.plan.as_deref();
        let dependencies = task.dependencies.iter().map(|id| self.resolve_in(named, id));
        let dependencies = dependencies.collect::<Decided<Vec<_>>>()?;
        let parent = task.parent.as_deref().map(|id| self.resolve_in(named, id)).transpose()?;
        check_trigger(&task.id, &task.spec, !dependencies.is_empty())?;
        check_milestone(&task.spec, !task.calls.is_empty())?;
        check_rework(&task.spec, task.calls.iter().map(|call| &*call.spec))?;
        check_approval_after(&task.spec, task.calls.iter().map(|call| &*call.spec))?;
        check_worktree(&task.spec, task.calls.iter().map(|call| &*call.spec))?;
        check_filled(&task.spec)?;
        check_own_fields(&task.spec, &task.calls)?;
        if task.spec.repeat.is_some() && task.calls.is_empty() {
            return Err(invalid("repeat", "`repeat` repeats the calls of a task, and it has none").into());
        }
        let plan = self.plan_of_new(task.plan.as_deref(), parent)?;
        let key = self.insert_new(&task.id, plan.as_deref(), &task.spec, &task.context, &task.calls)?;
        if let Some(parent) = parent {
            self.put_below(key, parent)?;
        }
        for on in &dependencies {
            self.link(key, *on, parent.is_some())?;
        }
        self.check_references(key)?;
        self.emit_created(key, parent, &dependencies)?;
        self.answer.tasks.push(task.id.clone());
        Ok(())
    }

    /// Resolves a reference by the ids of a plan's file, or else as [`resolve`](Self::resolve) does.
    pub(super) fn resolve_in(&self, plan: Option<&str>, id: &str) -> Decided<Key> {
        let record = plan.map(|plan| self.view.plan(plan)).transpose()?.flatten();
        let stored = record.map(|record| record.stored_id(&TaskId::from(id)));
        match stored.map(|id| self.find_id(id.as_str())).transpose()?.flatten() {
            Some(key) => Ok(key),
            None => self.resolve(id),
        }
    }

    fn plan_of_new(&self, given: Option<&str>, parent: Option<Key>) -> Decided<Option<String>> {
        match (given, parent) {
            (Some(name), _) if self.view.plan(name)?.is_none() => {
                Err(Refusal::NothingSelected { selector: format!("plan:{name}") }.into())
            }
            (Some(name), _) => Ok(Some(name.to_owned())),
            (None, Some(parent)) => Ok(self.task(parent)?.plan.map(String::from)),
            (None, None) => Ok(None),
        }
    }

    /// Creates a task without edges.
    pub(super) fn insert_new(
        &mut self,
        id: &TaskId,
        plan: Option<&str>,
        spec: &TaskSpec,
        context: &Map,
        calls: &[NewCall],
    ) -> Decided<Key> {
        self.check_free(id, plan)?;
        let plan = plan.map(SharedText::from);
        self.insert_free(id, plan, &spec.clone().into(), context, calls)
    }

    /// Like [`insert_new`](Self::insert_new), if the caller knows that the id is unused.
    pub(super) fn insert_free(
        &mut self,
        id: &TaskId,
        plan: Option<SharedText>,
        spec: &Shared<TaskSpec>,
        context: &Map,
        calls: &[NewCall],
    ) -> Decided<Key> {
        check_depth("context", context.values())?;
        check_depth("metadata", spec.metadata.values().chain(spec.extra.values()))?;
        check_depth("args", calls.iter().flat_map(|call| call.spec.args.values()))?;
        check_values(spec)?;
        let key = self.new_key()?;
        let now = self.now();
        let mut body = self.new_tasks.bodies.0.clone();
        if !context.is_empty() {
            body.context.clone_from(context);
        }
        let mut record = TaskRecord {
            id: id.clone(),
            spec: spec.clone(),
            body,
            plan,
            created_at: now,
            updated_at: now,
            version: 1,
        };
        if self.writer.is_of_model() {
            record.note_writer(None, &Map::new(), self.writer);
        }
        let calls = self.new_calls(&[], calls)?;
        let mut node = Node::new(key, spec.trigger(), Work::Manual);
        node.describe(&record.spec, &record.body.progress, &calls, false);
        self.insert_task(node, record, calls);
        Ok(key)
    }

    pub(super) fn check_free(&mut self, id: &TaskId, plan: Option<&str>) -> Decided<()> {
        if self.find_id(id.as_str())?.is_some() {
            return Err(taken(id).into());
        }
        self.check_not_deleted(id, plan)
    }

    /// Like [`check_free`](Self::check_free), if the caller knows that the store has no task with this id.
    pub(super) fn check_free_here(&mut self, id: &TaskId, plan: Option<&str>) -> Decided<()> {
        if self.has_made(id) {
            return Err(taken(id).into());
        }
        self.check_not_deleted(id, plan)
    }

    fn check_not_deleted(&mut self, id: &TaskId, plan: Option<&str>) -> Decided<()> {
        match self.view.deleted_id(id.as_str())? {
            // A plan may reuse the id of its own deleted task, so that a task removed from the file and added again
            // keeps its name.
            Some(owner) if owner.is_none() || owner.as_deref() != plan => {
                Err(Refusal::DuplicateId { id: id.clone(), deleted: true }.into())
            }
            Some(_) => {
                self.undo_notes.reused.insert(id.clone());
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(super) fn emit_created(
        &mut self,
        key: Key,
        parent: Option<Key>,
        dependencies: &[Key],
    ) -> Decided<()> {
        let record = self.look_at(key)?;
        let (name, plan) = (record.spec.name.clone(), record.plan.clone());
        let listed = &dependencies[..dependencies.len().min(LISTED_DEPENDENCIES)];
        let created = TaskCreated {
            name,
            parent: parent.map(|parent| self.id(parent)).transpose()?,
            dependencies: self.ids_of(listed)?,
            plan,
        };
        self.emit(Some(key), EventKind::Created(Box::new(created)))
    }

    /// Assigns ids to calls: the author's, or the next unused `c1`, `c2`, …
    pub(super) fn new_calls(&self, present: &[CallRecord], new: &[NewCall]) -> Decided<Vec<CallRecord>> {
        let mut taken: BTreeSet<CallId> = present.iter().map(|call| call.id.clone()).collect();
        let given = new.iter().filter_map(|call| call.id.clone());
        for id in given {
            check_id(id.as_str()).map_err(Refusal::from)?;
            if !taken.insert(id.clone()) {
                let problem = format!("call id `{id}` is already used in this task");
                return Err(Refusal::InvalidField { field: "toolCalls".to_owned(), problem }.into());
            }
        }
        if let Some((field, fault)) = new.iter().find_map(|call| fault::of_call(&call.spec)) {
            return Err(meaningless(&format!("toolCalls.{field}"), &fault).into());
        }
        let mut records = Vec::with_capacity(new.len());
        let mut number = present.len();
        for call in new {
            let id = call.id.clone().unwrap_or_else(|| {
                loop {
                    number += 1;
                    let id = CallId::from(format!("c{number}"));
                    if taken.insert(id.clone()) {
                        return id;
                    }
                }
            });
            let (origin, body) = (self.origin, self.new_tasks.bodies.1.clone());
            records.push(CallRecord { id, spec: with_interpreter(&call.spec), origin, body });
        }
        Ok(records)
    }

    pub(super) fn put_below(&mut self, key: Key, parent: Key) -> Decided<()> {
        let above = self.task(parent)?;
        let status = above.body.state.status();
        if !takes_subtasks(status) {
            return Err(
                Refusal::WorkStarted { id: above.id, status, what: "its subtasks", reopen: None }.into()
            );
        }
        self.set_parent(key, Some(parent))
    }

    /// Adds a dependency; `search` looks for a cycle first, unless the caller knows that none can arise.
    pub(super) fn link(&mut self, key: Key, on: Key, search: bool) -> Decided<()> {
        if search || key == on {
            self.refuse_cycle(Edge::Dependency { task: key, on })?;
        }
        // `add_edge` recognizes edges that the command itself has added.
        if !self.is_new(key) && self.dependencies(key)?.contains(&on) {
            return Ok(());
        }
        self.add_edge(key, on)
    }

    pub(super) fn refuse_cycle(&self, edge: Edge) -> Decided<()> {
        match cycle::find(self, edge)? {
            Some(path) => Err(Refusal::Cycle { path: self.ids_of(&path)? }.into()),
            None => Ok(()),
        }
    }

    pub(super) fn refuse_changed_work(&mut self, key: Key, what: &'static str) -> Decided<()> {
        self.take_from_store(key)?;
        let record = self.task(key)?;
        let status = record.body.state.status();
        if is_work_fixed(status) {
            return Err(Refusal::WorkStarted { id: record.id, status, what, reopen: None }.into());
        }
        Ok(())
    }

    pub(super) fn delete(&mut self, ids: &[String]) -> Decided<()> {
        let keys = self.resolve_all(ids)?;
        let named: BTreeSet<Key> = keys.iter().copied().collect();
        for key in &keys {
            let id = self.id(*key)?;
            if self.free(*key)? == StatusKind::InProgress {
                return Err(Refusal::InProgress { tasks: vec![id] }.into());
            }
            self.refuse_ending(*key)?;
            let needed = self.dependents(*key)?.into_iter().chain(self.subtasks(*key)?);
            let by: Vec<_> = needed.filter(|other| !named.contains(other)).take(5).collect();
            if !by.is_empty() {
                return Err(Refusal::StillNeeded { id, by: self.ids_of(&by)? }.into());
            }
        }
        for key in &keys {
            let task = serde_json::to_value(self.flat_task(*key)?).expect("BUG: a task is always valid JSON");
            self.emit(Some(*key), EventKind::Deleted { task })?;
            self.answer.tasks.push(self.id(*key)?);
        }
        self.delete_tasks(&keys)
    }

    pub(super) fn add_call_to(&mut self, id: &str, call: &NewCall) -> Decided<()> {
        let key = self.resolve(id)?;
        self.refuse_changed_work(key, "its tool calls")?;
        self.refuse_for_person(key, "add-tool-call")?;
        let record = self.task(key)?;
        check_milestone(&record.spec, true)?;
        check_own_fields(&TaskSpec::default(), std::slice::from_ref(call))?;
        let present = self.calls(key)?.clone();
        let records = self.new_calls(&present, std::slice::from_ref(call))?;
        for record in records {
            let event = EventKind::CallAdded { call: record.id.clone(), tool: record.spec.tool_name.clone() };
            self.add_call(key, record)?;
            self.update_task(key, |_| ())?;
            self.emit(Some(key), event)?;
        }
        self.check_references(key)?;
        self.answer.tasks.push(record.id);
        Ok(())
    }

    pub(super) fn add_dependency(&mut self, id: &str, on: &str) -> Decided<()> {
        let key = self.resolve(id)?;
        let on = self.resolve_beside(key, on)?;
        self.refuse_changed_work(key, "its dependencies")?;
        if self.depends_on(key, on)? {
            return Err(Refusal::Dependency { id: self.id(key)?, on: self.id(on)?, exists: true }.into());
        }
        self.link(key, on, true)?;
        self.update_task(key, |_| ())?;
        let event = EventKind::DependencyAdded { on: self.id(on)? };
        self.emit(Some(key), event)?;
        self.answer.tasks.push(self.id(key)?);
        Ok(())
    }

    pub(super) fn remove_dependency(&mut self, id: &str, on: &str) -> Decided<()> {
        let key = self.resolve(id)?;
        let on = self.resolve_beside(key, on)?;
        self.refuse_changed_work(key, "its dependencies")?;
        let record = self.task(key)?;
        let present = self.dependencies(key)?;
        if !present.contains(&on) {
            return Err(Refusal::Dependency { id: record.id, on: self.id(on)?, exists: false }.into());
        }
        check_trigger(&record.id, &record.spec, present.len() > 1)?;
        self.remove_edge(key, on)?;
        self.check_references_behind(&[key])?;
        self.update_task(key, |_| ())?;
        let event = EventKind::DependencyRemoved { on: self.id(on)? };
        self.emit(Some(key), event)?;
        self.answer.tasks.push(record.id);
        Ok(())
    }

    pub(super) fn move_task(&mut self, id: &str, parent: Option<&String>) -> Decided<()> {
        let key = self.resolve(id)?;
        let to = parent.map(|parent| self.resolve_beside(key, parent)).transpose()?;
        let record = self.task(key)?;
        let from = self.node(key)?.parent;
        self.answer.tasks.push(record.id);
        if from == to {
            return Ok(());
        }
        self.refuse_changed_work(key, "its place")?;
        if let Some(parent) = to {
            // Detached first, because the edge to the previous parent must not count in the search for a cycle.
            self.set_parent(key, None)?;
            self.refuse_cycle(Edge::Subtask { task: key, parent })?;
            self.put_below(key, parent)?;
        } else {
            self.set_parent(key, None)?;
        }
        self.check_references_behind(&[key])?;
        self.update_task(key, |_| ())?;
        let event = EventKind::Moved {
            from: from.map(|key| self.id(key)).transpose()?,
            to: to.map(|key| self.id(key)).transpose()?,
        };
        self.emit(Some(key), event)
    }

    pub(super) fn note(&mut self, id: &str, text: &str) -> Decided<()> {
        let key = self.resolve(id)?;
        if text.trim().is_empty() {
            return Err(invalid("note", "the text is empty").into());
        }
        self.add_note(key, text)?;
        self.answer.tasks.push(self.id(key)?);
        Ok(())
    }

    pub(super) fn add_note(&mut self, key: Key, text: &str) -> Decided<()> {
        let note = Note { at: self.now(), actor: self.context.actor.to_string(), text: text.to_owned() };
        self.update_task(key, |record| record.body.notes.push(note))?;
        self.emit(Some(key), EventKind::Noted { text: text.to_owned() })
    }
}
