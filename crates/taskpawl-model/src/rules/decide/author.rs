//! Commands of authors: create, change, link and delete tasks.

use crate::view::ReadGraph;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::command::NewTask;
use crate::command::refusal::Refusal;
use crate::plan::{change_spec, refused_call_field, refused_metadata_field, refused_task_field, spec_fields};
use crate::rules::cycle::{self, Edge};
use crate::rules::draft::{Decided, Draft};
use crate::task::event::{Change, EventKind, TaskCreated};
use crate::task::limits::{MAX_DEPTH, is_too_deep};
use crate::task::record::{CallRecord, Node, Note, StatusKind, TaskRecord, Work};
use crate::task::spec::{NewCall, TASK_FIELDS, TaskSpec, Trigger, to_map};
use crate::task::status::Status;
use crate::task::{ValueFault, fault};
use crate::value::Map;
use crate::value::{CallId, Key, Shared, SharedText, TaskId, check_id};

/// Most dependencies that the event of a new task lists.
const LISTED_DEPENDENCIES: usize = 20;

/// Fields that define the execution of a task. They cannot change while it runs or once it is done.
const WORK_FIELDS: &[&str] = &[
    "trigger",
    "when",
    "forEach",
    "repeat",
    "mode",
    "retry",
    "timeout",
    "resources",
    "writes",
    "sandbox",
    "approval",
    "cache",
    "milestone",
];

/// Fields derived from the progress of a task. Only other commands change them.
const STATE_FIELDS: &[&str] = &[
    "id",
    "status",
    "blockedReason",
    "subtasks",
    "result",
    "notes",
    "plan",
    "attempt",
    "error",
    "errorClass",
    "createdAt",
    "updatedAt",
    "startedAt",
    "finishedAt",
    "version",
    "ready",
    "parent",
    "claim",
    "claimEnded",
    "endedBy",
    "questionOver",
    "generation",
    "names",
    "origins",
    "opened",
    "formerItems",
    "item",
    "round",
    "deadline",
    "took",
    "granted",
    "cached",
    "changedBeyond",
];

impl Draft<'_> {
    pub(super) fn create(&mut self, task: &NewTask) -> Decided<()> {
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
        check_filled(&task.spec)?;
        check_own_fields(&task.spec, &task.calls)?;
        if task.spec.repeat.is_some() && task.calls.is_empty() {
            return Err(invalid("repeat", "the calls of a task are what is repeated, and it has none").into());
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
                let problem = format!("call id `{id}` is taken in this task");
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
            records.push(CallRecord { id, spec: call.spec.clone(), origin, body });
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

    pub(super) fn update(&mut self, id: &str, fields: &Map, if_version: Option<u64>) -> Decided<()> {
        let key = self.resolve(id)?;
        let record = self.task(key)?;
        if let Some(expected) = if_version
            && expected != record.version
        {
            let id = record.id;
            return Err(Refusal::VersionMismatch { id, expected, current: record.version }.into());
        }
        let mut changed = BTreeMap::new();
        let mut after = record.clone();
        let (needs, fields) = read_fields(&record.spec, fields)?;
        if let Some(needs) = needs {
            self.replace_dependencies(key, &needs, &mut changed)?;
        }
        for (field, value) in &fields {
            change_field(&mut after, field, value, &mut changed)?;
        }
        if ["assignee", "milestone"].iter().any(|field| changed.contains_key(*field)) {
            self.refuse_for_person(key, "update")?;
        }
        check_milestone(&after.spec, !self.calls(key)?.is_empty())?;
        check_trigger(&record.id, &after.spec, !self.dependencies(key)?.is_empty())?;
        if changed.contains_key("dependencies") {
            self.update_task(key, |_| ())?;
        }
        after.note_writer(Some(&record), &written_context(&fields), self.writer);
        if after != record {
            self.update_spec(key, |now| {
                now.spec = after.spec;
                now.body.context.clone_from(&after.body.context);
                now.body.origins.clone_from(&after.body.origins);
            })?;
        }
        if ["when", "forEach", "repeat", "cache", "trustInputs"]
            .iter()
            .any(|field| changed.contains_key(*field))
        {
            self.check_references(key)?;
        }
        if changed.contains_key("dependencies") {
            self.check_references_behind(&[key])?;
        }
        if !changed.is_empty() {
            self.emit(Some(key), EventKind::Updated { fields: changed })?;
        }
        self.answer.tasks.push(record.id);
        Ok(())
    }

    pub(super) fn replace_dependencies(
        &mut self,
        key: Key,
        value: &Value,
        changed: &mut BTreeMap<String, Change>,
    ) -> Decided<()> {
        let wanted: Option<Vec<String>> = serde_json::from_value(value.clone())
            .map_err(|_| invalid("dependencies", "expected a list of task ids"))?;
        let wanted = wanted.unwrap_or_default();
        let wanted = self.resolve_all(&wanted)?;
        let present = self.dependencies(key)?;
        let (after, before): (BTreeSet<&Key>, BTreeSet<&Key>) =
            (wanted.iter().collect(), present.iter().collect());
        if after == before {
            return Ok(());
        }
        self.refuse_changed_work(key, "its dependencies")?;
        let (from, to) =
            (serde_json::json!(self.ids_of(&present)?), serde_json::json!(self.ids_of(&wanted)?));
        changed.insert("dependencies".to_owned(), Change { from, to });
        for on in before.difference(&after) {
            self.remove_edge(key, **on)?;
        }
        for on in after.difference(&before) {
            self.link(key, **on, true)?;
        }
        Ok(())
    }

    fn refuse_changed_work(&self, key: Key, what: &'static str) -> Decided<()> {
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

pub(super) fn is_work_fixed(status: Status) -> bool {
    matches!(status, Status::InProgress | Status::Done)
}

pub(super) fn invalid(field: &str, problem: impl Into<String>) -> Refusal {
    Refusal::InvalidField { field: field.to_owned(), problem: problem.into() }
}

fn meaningless(field: &str, fault: &ValueFault) -> Refusal {
    with_hint(field, fault, &fault.hint())
}

fn with_hint(field: &str, problem: &dyn std::fmt::Display, hint: &str) -> Refusal {
    let end = if hint.is_empty() { String::new() } else { format!("; {hint}") };
    invalid(field, format!("{problem}{end}"))
}

/// Refuses blank texts. Other programs may store them, but authors may not write them.
pub(super) fn check_filled(spec: &TaskSpec) -> Decided<()> {
    match fault::blank_in_task(spec) {
        Some((field, fault)) => Err(meaningless(field, &fault).into()),
        None => Ok(()),
    }
}

/// Refuses unknown fields by the rules for plan files.
fn check_own_fields(spec: &TaskSpec, calls: &[NewCall]) -> Decided<()> {
    let of_metadata = spec.metadata.keys().filter_map(|field| Some((field, refused_metadata_field(field)?)));
    let of_task = spec.extra.keys().filter_map(|field| Some((field, refused_task_field(field)?)));
    let of_task = of_task.chain(of_metadata);
    let of_calls = calls.iter().flat_map(|call| call.spec.extra.keys());
    let mut of_calls = of_calls.filter_map(|field| Some((field, refused_call_field(field)?)));
    match of_task.chain(of_calls.by_ref()).next() {
        Some((field, (problem, hint))) => Err(with_hint(field, &problem, &hint).into()),
        None => Ok(()),
    }
}

/// Returns the dependencies in an update, and its other fields in the long form of plan files.
fn read_fields(spec: &TaskSpec, fields: &Map) -> Decided<(Option<Value>, Map)> {
    let (mut kept, mut read) = (Map::new(), Map::new());
    for (field, value) in fields {
        // `metadata` and `context` are merged into the stored values later. Unknown fields that the store already has
        // may change.
        let is_kept = ["dependencies", "needs", "metadata", "context"].contains(&field.as_str())
            || spec.extra.contains_key(field);
        let into = if is_kept { &mut kept } else { &mut read };
        into.insert(field.clone(), value.clone());
    }
    // The parser of plan files requires a name. It is dropped again unless the update has one.
    let some = TaskSpec { name: "some".to_owned(), ..TaskSpec::default() };
    let changed = change_spec(&some, &read).map_err(Refusal::from)?;
    let mut long = spec_fields(&changed);
    for (field, value) in read {
        let value = if TASK_FIELDS.contains(&field.as_str()) {
            long.remove(&field).unwrap_or_default()
        } else {
            value
        };
        kept.insert(field, value);
    }
    let needs = match (kept.remove("dependencies"), kept.remove("needs")) {
        (Some(_), Some(_)) => {
            return Err(invalid("needs", "`dependencies` says the same thing; keep one").into());
        }
        (one, other) => one.or(other),
    };
    Ok((needs, kept))
}

fn taken(id: &TaskId) -> Refusal {
    Refusal::DuplicateId { id: id.clone(), deleted: false }
}

/// Refuses values without a meaning.
pub(super) fn check_values(spec: &TaskSpec) -> Decided<()> {
    match fault::of_task(spec) {
        Some((field, fault)) => Err(meaningless(field, &fault).into()),
        None => Ok(()),
    }
}

/// Returns whether unfinished subtasks may be added to a parent with this status.
pub(super) fn takes_subtasks(status: Status) -> bool {
    matches!(status, Status::Todo | Status::Blocked | Status::Failed)
}

pub(super) fn check_trigger(id: &TaskId, spec: &TaskSpec, has_dependencies: bool) -> Decided<()> {
    let trigger = spec.trigger();
    if !has_dependencies && matches!(trigger, Trigger::AnyDone | Trigger::AnyFailed) {
        return Err(Refusal::TriggerWithoutDependencies { id: id.clone(), trigger: trigger.as_str() }.into());
    }
    Ok(())
}

/// Refuses nesting that could be written to the store but not parsed again.
pub(super) fn check_depth<'a>(field: &str, values: impl IntoIterator<Item = &'a Value>) -> Decided<()> {
    if values.into_iter().any(is_too_deep) {
        let problem = format!("it is nested deeper than {MAX_DEPTH} levels");
        return Err(invalid(field, problem).into());
    }
    Ok(())
}

pub(super) fn check_milestone(spec: &TaskSpec, has_calls: bool) -> Decided<()> {
    if spec.milestone && has_calls {
        return Err(invalid("milestone", "a milestone has no tool calls").into());
    }
    Ok(())
}

/// Changes one field of a task and records its previous value.
pub(super) fn change_field(
    record: &mut TaskRecord,
    field: &str,
    value: &Value,
    changed: &mut BTreeMap<String, Change>,
) -> Decided<()> {
    let status = record.body.state.status();
    if WORK_FIELDS.contains(&field) && is_work_fixed(status) {
        return Err(Refusal::WorkStarted {
            id: record.id.clone(),
            status,
            what: work_field_name(field),
            reopen: None,
        }
        .into());
    }
    check_depth(field, [value])?;
    let before = field_value(record, field);
    match field {
        "context" => merge(&mut record.body.context, field, value)?,
        "metadata" => merge_metadata(record, value)?,
        _ if STATE_FIELDS.contains(&field) => {
            return Err(
                invalid(field, "it follows from what happens; a command of its own changes it").into()
            );
        }
        _ if TASK_FIELDS.contains(&field) => {
            set_spec_field(&mut record.spec, field, value)?;
            if ["writes", "cache", "retry"].contains(&field) {
                check_values(&record.spec)?;
            }
        }
        _ => set_or_remove(&mut record.spec.extra, field, value),
    }
    let after = field_value(record, field);
    if before != after {
        changed.insert(field.to_owned(), Change { from: before, to: after });
    }
    Ok(())
}

/// Returns the context values that an update writes, including unchanged ones: rewriting a value changes its origin.
fn written_context(fields: &Map) -> Map {
    let of = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut written = of(fields.get("context"));
    written.extend(of(fields.get("metadata").and_then(|metadata| metadata.get("context"))));
    written
}

fn work_field_name(field: &str) -> &'static str {
    WORK_FIELDS.iter().find(|name| **name == field).copied().unwrap_or("the work")
}

fn field_value(record: &TaskRecord, field: &str) -> Value {
    match field {
        "context" => Value::Object(record.body.context.clone()),
        "metadata" => {
            let mut map = record.spec.metadata.clone();
            map.insert("context".to_owned(), Value::Object(record.body.context.clone()));
            Value::Object(map)
        }
        _ => to_map(&record.spec)
            .remove(field)
            .or_else(|| record.spec.extra.get(field).cloned())
            .unwrap_or_default(),
    }
}

fn set_spec_field(spec: &mut TaskSpec, field: &str, value: &Value) -> Decided<()> {
    let value = match (field, value) {
        ("dueDate", Value::String(text)) => Value::String(full_date(text)),
        ("name", Value::String(text)) if text.trim().is_empty() => {
            return Err(invalid("name", "it is empty").into());
        }
        ("name", Value::Null) => return Err(invalid("name", "a task needs a name").into()),
        _ => value.clone(),
    };
    let mut map = to_map(spec);
    set_or_remove(&mut map, field, &value);
    *spec = serde_json::from_value(Value::Object(map)).map_err(|error| match field {
        "dueDate" => invalid(field, "expected a date such as `2030-01-31` or `2030-01-31T09:00:00Z`"),
        _ => invalid(field, error.to_string()),
    })?;
    Ok(())
}

/// Expands a date without a time to its first moment in UTC.
fn full_date(text: &str) -> String {
    let is_bare = text.len() == 10 && text.chars().all(|c| c.is_ascii_digit() || c == '-');
    if is_bare { format!("{text}T00:00:00Z") } else { text.to_owned() }
}

fn set_or_remove(map: &mut Map, field: &str, value: &Value) {
    if value.is_null() {
        map.remove(field);
    } else {
        map.insert(field.to_owned(), value.clone());
    }
}

fn merge(map: &mut Map, field: &str, value: &Value) -> Decided<()> {
    if value.is_null() {
        map.clear();
        return Ok(());
    }
    let Value::Object(new) = value else { return Err(invalid(field, "expected an object").into()) };
    for (name, value) in new {
        set_or_remove(map, name, value);
    }
    Ok(())
}

fn merge_metadata(record: &mut TaskRecord, value: &Value) -> Decided<()> {
    if value.is_null() {
        record.spec.metadata.clear();
        return Ok(());
    }
    let Value::Object(new) = value else { return Err(invalid("metadata", "expected an object").into()) };
    for (name, value) in new {
        match name.as_str() {
            "context" => merge(&mut record.body.context, "metadata.context", value)?,
            "toolCalls" => {
                return Err(invalid(
                    "metadata.toolCalls",
                    "`add-tool-call` adds a call; the others stand as they are",
                )
                .into());
            }
            _ => {
                if let Some((problem, hint)) = refused_metadata_field(name)
                    && !record.spec.metadata.contains_key(name)
                {
                    return Err(with_hint("metadata", &problem, &hint).into());
                }
                set_or_remove(&mut record.spec.metadata, name, value);
            }
        }
    }
    Ok(())
}
