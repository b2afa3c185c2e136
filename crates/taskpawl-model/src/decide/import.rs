//! `import`: tasks that another program keeps come into the store, with their states.
//!
//! What the source said last is kept with each task, so that the next import takes over what changed there and leaves alone what
//! changed here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map as JsonMap, Value, json};

use super::merge::{self, STATE, is_equal, list, said};
use crate::draft::{Decided, Draft};
use crate::event::EventKind;
use crate::import::{Import, ImportMode, ImportReport, Kept, Said};
use crate::record::{CallRecord, Note, TaskBody, Work};
use crate::refusal::Refusal;
use crate::spec::{CallSpec, NewCall, Origin};
use crate::status::{BlockedReason, CallStatus, Cause, Claim, Status, TaskState};
use crate::view::Query;
use crate::wire::{Task, TaskParts};
use crate::{Graph, Key, Outcome, TaskId, check_id};

/// The member of what is kept with a task that holds what sources said; the others are of its plan.
const IMPORTED: &str = "imported";

/// Fields that are taken over once, when the task is made.
const ONCE: &[&str] = &["createdAt", "updatedAt"];

impl Draft<'_> {
    pub(super) fn import(&mut self, import: &Import) -> Decided<()> {
        // Whoever wrote the file is not whoever imports it.
        self.origin = Origin::Agent;
        let mut work = Importing::new(import);
        work.find_tasks(self)?;
        if import.mode != ImportMode::Record {
            let search = work.may_have_circle(self)?;
            work.make_new(self, search)?;
            work.change_present(self)?;
            work.set_states(self)?;
            work.list_gone(self)?;
        }
        work.note_said(self)?;
        self.answer.tasks.extend(work.report.created.iter().chain(&work.report.changed).cloned());
        self.answer.imported = Some(work.report);
        Ok(())
    }
}

/// One task of the source.
struct Found<'i> {
    task: &'i Task,
    /// Its key here, once it has one.
    key: Option<Key>,
    is_new: bool,
    /// What the source said of it last.
    before: Option<BTreeMap<String, Value>>,
    /// What it says now.
    now: BTreeMap<String, Value>,
    /// The state that is to be set.
    state: Option<TaskState>,
}

/// An import as it goes on.
struct Importing<'i> {
    import: &'i Import,
    found: Vec<Found<'i>>,
    report: ImportReport,
    conflicts: Vec<String>,
    /// Tasks that were deleted here: nothing depends on them any more.
    deleted: BTreeSet<&'i TaskId>,
}

impl<'i> Importing<'i> {
    fn new(import: &'i Import) -> Self {
        let report = ImportReport { source: import.source.clone(), ..ImportReport::default() };
        Self { import, found: Vec::new(), report, conflicts: Vec::new(), deleted: BTreeSet::new() }
    }

    /// Finds the tasks that are here, and refuses those that are others of the same name.
    fn find_tasks(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        let mut seen = BTreeSet::new();
        for task in &self.import.tasks {
            check_id(task.id.as_str()).map_err(Refusal::from)?;
            if !seen.insert(&task.id) {
                self.conflicts.push(format!("`{}` is there twice", task.id));
                continue;
            }
            let key = draft.find_id(task.id.as_str())?;
            let now = said(task, &self.import.fields);
            let before = match key {
                Some(key) => said_before(draft, key)?.remove(&self.import.source),
                None => None,
            };
            let Some(known) = key else {
                if self.is_deleted(draft, &task.id)? {
                    continue;
                }
                self.found.push(Found { task, key, is_new: true, before, now, state: None });
                continue;
            };
            if before.is_none()
                && self.import.mode == ImportMode::Merge
                && !self.is_same(draft, known, &now)?
            {
                self.conflicts.push(format!("`{}` is here and was not imported from there", task.id));
                continue;
            }
            self.found.push(Found { task, key, is_new: false, before, now, state: None });
        }
        if self.import.mode == ImportMode::Record {
            self.found.retain(|found| !found.is_new);
        }
        self.refuse_conflicts()
    }

    /// A task that was deleted here stays so.
    fn is_deleted(&mut self, draft: &Draft<'_>, id: &'i TaskId) -> Decided<bool> {
        let is_deleted = draft.view.deleted_id(id.as_str())?.is_some();
        if is_deleted {
            self.deleted.insert(id);
            self.keep(id, "id", "it was deleted here, and ids are not used again");
        }
        Ok(is_deleted)
    }

    /// Returns whether a task is already as the source says.
    fn is_same(&self, draft: &mut Draft<'_>, key: Key, now: &BTreeMap<String, Value>) -> Decided<bool> {
        let here = said(&crate::wire::from_draft(draft, key)?, &self.import.fields);
        let compared = now.iter().filter(|(field, _)| !ONCE.contains(&field.as_str()) && *field != "notes");
        Ok(compared.into_iter().all(|(field, value)| is_equal(field, here.get(field), value)))
    }

    fn refuse_conflicts(&self) -> Decided<()> {
        if self.conflicts.is_empty() {
            return Ok(());
        }
        let (source_name, conflicts) = (self.import.source.clone(), self.conflicts.clone());
        Err(Refusal::ImportConflict { source_name, conflicts }.into())
    }

    /// Returns whether an edge may close a circle: then each is looked at where it is made, so that the way round can be named.
    fn may_have_circle(&self, draft: &Draft<'_>) -> Decided<bool> {
        let keys: BTreeMap<&TaskId, Key> =
            (0..).map(Key).zip(&self.found).map(|(key, found)| (&found.task.id, key)).collect();
        let mut graph = Graph::default();
        for key in keys.values() {
            graph.add_task(*key);
        }
        for found in &self.found {
            let key = keys[&found.task.id];
            for on in &found.task.dependencies {
                match keys.get(on) {
                    Some(on) => graph.add_dependency(key, *on),
                    None => self.refuse_unknown(draft, found.task, on)?,
                }
            }
            match found.task.parent.as_ref().map(|parent| (parent, keys.get(parent))) {
                Some((_, Some(parent))) => graph.add_subtask(key, *parent),
                Some((parent, None)) => self.refuse_unknown(draft, found.task, parent)?,
                None => {}
            }
        }
        Ok(graph.find_cycle().is_some() || self.found.iter().any(|found| !found.is_new))
    }

    fn refuse_unknown(&self, draft: &Draft<'_>, task: &Task, other: &TaskId) -> Decided<()> {
        if self.deleted.contains(other) || draft.find_id(other.as_str())?.is_some() {
            return Ok(());
        }
        let problem = format!("`{}` refers to `{other}`, which is neither there nor here", task.id);
        Err(super::author::invalid("dependencies", problem).into())
    }

    fn make_new(&mut self, draft: &mut Draft<'_>, search: bool) -> Decided<()> {
        for position in self.positions(true) {
            let parts = self.parts(position)?;
            let (spec, context) = (&parts.record.spec, &parts.record.body.context);
            let calls = new_calls(&parts.calls);
            let key = draft.insert_new(&parts.record.id, None, spec, context, &calls)?;
            self.found[position].key = Some(key);
        }
        for position in self.positions(true) {
            self.attach(draft, position, search)?;
        }
        for position in self.positions(true) {
            let key = self.key(position);
            draft.check_references(key)?;
            let (parent, dependencies) = (draft.node(key)?.parent, draft.dependencies(key)?);
            let spec = draft.task(key)?.spec;
            super::author::check_trigger(&self.found[position].task.id, &spec, !dependencies.is_empty())?;
            super::author::check_milestone(&spec, !draft.calls(key)?.is_empty())?;
            draft.emit_created(key, parent, &dependencies, None)?;
            self.report.created.push(self.found[position].task.id.clone());
        }
        Ok(())
    }

    fn attach(&self, draft: &mut Draft<'_>, position: usize, search: bool) -> Decided<()> {
        let (task, key) = (self.found[position].task, self.key(position));
        if let Some(parent) = task.parent.as_ref().filter(|parent| !self.deleted.contains(parent)) {
            let parent = draft.resolve(parent.as_str())?;
            if search {
                draft.refuse_cycle(crate::cycle::Edge::Subtask { task: key, parent })?;
            }
            draft.put_below(key, parent)?;
        }
        for on in task.dependencies.iter().filter(|on| !self.deleted.contains(on)) {
            let on = draft.resolve(on.as_str())?;
            draft.link(key, on, search)?;
        }
        Ok(())
    }

    fn change_present(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        for position in self.positions(false) {
            let key = self.key(position);
            let here = said(&crate::wire::from_draft(draft, key)?, &self.import.fields);
            let found = &self.found[position];
            let mut wanted = Vec::new();
            for (field, value) in &found.now {
                let is_news = found.before.as_ref().is_none_or(|before| before.get(field) != Some(value));
                if is_news && !ONCE.contains(&field.as_str()) && !is_equal(field, here.get(field), value) {
                    wanted.push((field.clone(), value.clone()));
                }
            }
            let is_changed = self.change_one(draft, position, &here, wanted)?;
            if is_changed {
                let id = self.found[position].task.id.clone();
                self.report.changed.push(id);
            } else {
                self.report.unchanged += 1;
            }
        }
        Ok(())
    }

    /// Takes over what changed, and returns whether anything did.
    fn change_one(
        &mut self,
        draft: &mut Draft<'_>,
        position: usize,
        here: &BTreeMap<String, Value>,
        wanted: Vec<(String, Value)>,
    ) -> Decided<bool> {
        let key = self.key(position);
        let id = self.found[position].task.id.clone();
        let (record, mut changed, mut is_changed) = (draft.task(key)?, BTreeMap::new(), false);
        let mut after = record.clone();
        for (field, value) in wanted {
            if self.is_changed_here(position, &field, here) {
                self.keep(&id, &field, &merge::why(here.get(&field), &value));
                continue;
            }
            let outcome = match field.as_str() {
                "status" => {
                    is_changed |= self.take_state(draft, position, here)?;
                    continue;
                }
                _ if STATE.contains(&field.as_str()) => continue,
                "notes" => {
                    is_changed |= self.take_notes(draft, position)?;
                    continue;
                }
                "dependencies" => {
                    let ids =
                        list(&value).into_iter().filter(|id| !self.deleted.contains(&TaskId::from(*id)));
                    draft.replace_dependencies(key, &ids.collect(), &mut changed)
                }
                "parent" => {
                    let parent = value.as_str().map(str::to_owned);
                    is_changed = true;
                    draft.move_task(id.as_str(), parent.as_ref())
                }
                "metadata.toolCalls" => self.take_calls(draft, position).map(|()| is_changed = true),
                _ => change_member(&mut after, &field, &value, &mut changed),
            };
            match outcome {
                Ok(()) => {}
                Err(crate::DecideError::Refused(refusal))
                    if matches!(*refusal, Refusal::WorkStarted { .. }) =>
                {
                    self.keep(&id, &field, &refusal.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        if after != record {
            draft.update_spec(key, |record| {
                record.spec = after.spec;
                record.body.context.clone_from(&after.body.context);
            })?;
        }
        if changed.contains_key("dependencies") {
            draft.update_task(key, |_| ())?;
            draft.check_references_behind(&[key])?;
        }
        if !changed.is_empty() {
            is_changed = true;
            draft.emit(Some(key), EventKind::Updated { fields: changed })?;
        }
        Ok(is_changed)
    }

    /// Returns whether a field was changed here since the source said something of it.
    fn is_changed_here(&self, position: usize, field: &str, here: &BTreeMap<String, Value>) -> bool {
        let before = self.found[position].before.as_ref().and_then(|before| before.get(field));
        // Where the source is to count, it does.
        let before = before.filter(|_| self.import.mode != ImportMode::Adopt);
        let is_deleted = |id: &str| self.deleted.contains(&TaskId::from(id));
        before.is_some_and(|before| !merge::is_as_said(field, here.get(field), before, is_deleted))
    }

    fn take_calls(&self, draft: &mut Draft<'_>, position: usize) -> Decided<()> {
        let key = self.key(position);
        let record = draft.task(key)?;
        let status = record.body.state.status();
        if super::author::is_work_fixed(status) || record.body.started_at.is_some() {
            return Err(Refusal::WorkStarted { id: record.id, status, what: "its tool calls" }.into());
        }
        let calls = draft.new_calls(&[], &new_calls(&self.parts(position)?.calls))?;
        draft.replace_calls(key, calls)?;
        draft.update_task(key, |_| ())?;
        draft.check_references(key)?;
        draft.emit(Some(key), EventKind::Updated { fields: BTreeMap::new() })
    }

    /// Adds the remarks that are not here.
    fn take_notes(&self, draft: &mut Draft<'_>, position: usize) -> Decided<bool> {
        let key = self.key(position);
        let present = draft.task(key)?.body.notes.clone();
        // Some programs know no more than the minute.
        let is_near = |one: &Note, other: &Note| (one.at - other.at).num_seconds().abs() < 60;
        let is_new =
            |note: &&Note| !present.iter().any(|other| other.text == note.text && is_near(other, note));
        let new: Vec<Note> = self.found[position].task.notes.iter().filter(is_new).cloned().collect();
        for note in &new {
            draft.emit(Some(key), EventKind::Noted { text: note.text.clone() })?;
        }
        if !new.is_empty() {
            draft.update_task(key, |record| record.body.notes.extend(new.iter().cloned()))?;
        }
        Ok(!new.is_empty())
    }

    /// Notes the state that the source says, unless something happened to the task here.
    fn take_state(
        &mut self,
        draft: &Draft<'_>,
        position: usize,
        here: &BTreeMap<String, Value>,
    ) -> Decided<bool> {
        let key = self.key(position);
        let id = self.found[position].task.id.clone();
        let record = draft.task(key)?;
        let there = self.found[position].task.status;
        if draft.node(key)?.work == Work::Automatic
            && matches!(there, Status::Todo | Status::InProgress | Status::Done)
        {
            // It follows from what is below.
            return Ok(false);
        }
        let before = self.found[position].before.as_ref().and_then(|before| before.get("status"));
        let was_worked_on = match before {
            // Nobody here runs what ran there: it became `todo` as it was imported.
            Some(Value::String(before)) if before == "in_progress" && record.body.attempt == 0 => {
                !matches!(record.body.state.status(), Status::InProgress | Status::Todo)
            }
            Some(before) => here.get("status") != Some(before),
            None => self.import.mode != ImportMode::Adopt,
        };
        if was_worked_on
            || matches!(&record.body.state, TaskState::InProgress { claim } if claim.run.is_some())
        {
            let here = record.body.state.status();
            let why = format!("it became `{here}` here meanwhile, and is `{there}` there");
            self.keep(&id, "status", &why);
            return Ok(false);
        }
        let state = self.parts(position)?.record.body.state.clone();
        self.found[position].state = Some(state);
        Ok(true)
    }

    /// Puts every task into the state that its source says, what is below first.
    fn set_states(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        for position in self.positions(true) {
            self.found[position].state = Some(self.parts(position)?.record.body.state.clone());
        }
        for position in self.lowest_first(draft)? {
            let Some(state) = self.found[position].state.take() else { continue };
            let parts = self.parts(position)?;
            let key = self.key(position);
            let calls = self.calls_to_set(draft, position, &parts)?;
            let state = self.fitting(draft, position, state, calls.as_deref())?;
            let body = self.body(draft, position, &parts, state)?;
            self.set_state(draft, key, body, calls)?;
            if self.found[position].is_new {
                let (created_at, updated_at) = (parts.record.created_at, parts.record.updated_at);
                draft.update_task(key, |record| {
                    record.created_at = created_at;
                    record.updated_at = updated_at;
                })?;
            }
        }
        Ok(())
    }

    fn set_state(
        &self,
        draft: &mut Draft<'_>,
        key: Key,
        body: TaskBody,
        calls: Option<Vec<CallRecord>>,
    ) -> Decided<()> {
        let before = draft.task(key)?.body.state.clone();
        let (from, to) = (before.status(), body.state.status());
        let event = EventKind::Status {
            from,
            to,
            cause: Cause::Import,
            reason: body.state.blocked_reason().cloned().map(Box::new),
            text: Some(format!("imported from {}", self.import.source)),
            attempt: body.attempt,
            lease_until: None,
        };
        let is_news = before != body.state;
        draft.restore_task(key, None, body, calls)?;
        if is_news { draft.emit(Some(key), event) } else { Ok(()) }
    }

    /// Returns the positions of the tasks, each before the one above it.
    fn lowest_first(&self, draft: &Draft<'_>) -> Decided<Vec<usize>> {
        let positions: BTreeMap<Key, usize> = self
            .found
            .iter()
            .enumerate()
            .filter_map(|(position, found)| Some((found.key?, position)))
            .collect();
        let (mut order, mut above) = (Vec::with_capacity(self.found.len()), Vec::new());
        for key in positions.keys() {
            let parent = draft.node(*key)?.parent;
            if parent.is_none_or(|parent| !positions.contains_key(&parent)) {
                above.push(*key);
            }
        }
        while let Some(key) = above.pop() {
            if let Some(position) = positions.get(&key) {
                order.push(*position);
                above.extend(draft.subtasks(key)?);
            }
        }
        order.reverse();
        Ok(order)
    }

    /// Returns the calls of a new task with what became of them; approvals and claims on time are not taken over.
    fn calls_to_set(
        &self,
        draft: &mut Draft<'_>,
        position: usize,
        parts: &TaskParts,
    ) -> Decided<Option<Vec<CallRecord>>> {
        if !self.found[position].is_new || parts.calls.is_empty() {
            return Ok(None);
        }
        let mut calls = draft.calls(self.key(position))?.clone();
        for (call, there) in calls.iter_mut().zip(&parts.calls) {
            call.body = there.body.clone();
            call.body.approval = None;
            call.body.due = None;
            call.body.emitted.clear();
            if call.body.status == CallStatus::Running {
                call.body.status = CallStatus::Interrupted;
            }
        }
        Ok(Some(calls))
    }

    /// Returns the state as it can be here: what follows from others is derived anew, and nobody runs what runs there.
    fn fitting(
        &mut self,
        draft: &mut Draft<'_>,
        position: usize,
        state: TaskState,
        calls: Option<&[CallRecord]>,
    ) -> Decided<TaskState> {
        let key = self.key(position);
        let interrupted =
            calls.into_iter().flatten().find(|call| call.body.status == CallStatus::Interrupted);
        let interrupted = interrupted.map(|call| BlockedReason::Interrupted { call: call.id.clone() });
        let work = draft.node(key)?.work;
        Ok(match (state, interrupted) {
            (TaskState::InProgress { .. } | TaskState::Blocked { .. }, Some(reason))
            | (TaskState::Blocked { reason: reason @ BlockedReason::Manual { .. } }, None) => {
                TaskState::Blocked { reason }
            }
            (TaskState::InProgress { claim }, None) if work == Work::Manual => {
                let actor = if claim.actor.is_empty() { draft.context.actor.clone() } else { claim.actor };
                TaskState::InProgress { claim: Claim { run: None, actor, lease_until: None, lease: None } }
            }
            (TaskState::InProgress { .. } | TaskState::Blocked { .. }, None) => TaskState::Todo,
            (TaskState::Done, _) if has_open_subtask(draft, key)? => {
                let id = self.found[position].task.id.clone();
                self.keep(&id, "status", "it is `done` there; here it is so once everything below it is");
                TaskState::Todo
            }
            (state, _) => state,
        })
    }

    fn body(
        &self,
        draft: &Draft<'_>,
        position: usize,
        parts: &TaskParts,
        state: TaskState,
    ) -> Decided<TaskBody> {
        let record = draft.task(self.key(position))?;
        let there = &parts.record.body;
        let (ended, begun) = (state.status().is_finished(), state.status() == Status::InProgress);
        let at = parts.record.updated_at;
        let finished_at = ended.then(|| there.finished_at.unwrap_or(at));
        let started_at = there.started_at.or(begun.then_some(at)).or(record.body.started_at);
        let mut body = record.body.into_inner();
        body.result = there.result.clone().or(body.result);
        if self.found[position].is_new {
            body.notes.clone_from(&there.notes);
        }
        Ok(TaskBody { state, started_at, finished_at, ..body })
    }

    /// Lists what came from there before and is gone; only tasks that no plan has made are looked at.
    fn list_gone(&mut self, draft: &Draft<'_>) -> Decided<()> {
        let present: BTreeSet<Key> = self.found.iter().filter_map(|found| found.key).collect();
        for key in draft.view.find(&Query::default())? {
            if !present.contains(&key) && said_before(draft, key)?.contains_key(&self.import.source) {
                self.report.gone.push(draft.id(key)?);
            }
        }
        Ok(())
    }

    /// Writes down what the source says now.
    fn note_said(&self, draft: &mut Draft<'_>) -> Decided<()> {
        for found in &self.found {
            let key = found.key.expect("BUG: every task has a key once the new ones are made");
            if found.before.as_ref() == Some(&found.now) {
                continue;
            }
            let mut all = said_before(draft, key)?;
            all.insert(self.import.source.clone(), found.now.clone());
            let mut kept = kept(draft, key)?;
            kept.insert(IMPORTED.to_owned(), json!(all));
            draft.changes.applied.insert(key, Value::Object(kept).to_string());
        }
        Ok(())
    }

    fn keep(&mut self, task: &TaskId, field: &str, why: &str) {
        self.report.kept.push(Kept { task: task.clone(), field: field.to_owned(), why: why.to_owned() });
    }

    fn positions(&self, is_new: bool) -> Vec<usize> {
        let found = self.found.iter().enumerate().filter(|(_, found)| found.is_new == is_new);
        found.map(|(position, _)| position).collect()
    }

    fn key(&self, position: usize) -> Key {
        self.found[position].key.expect("BUG: every task has a key once the new ones are made")
    }

    fn parts(&self, position: usize) -> Decided<TaskParts> {
        let task = self.found[position].task.clone();
        let id = task.id.clone();
        let parts = task.into_parts();
        Ok(parts.map_err(|error| super::author::invalid("tasks", format!("`{id}`: {error}")))?)
    }
}

fn new_calls(calls: &[CallRecord]) -> Vec<NewCall> {
    calls
        .iter()
        .map(|call| NewCall { id: Some(call.id.clone()), spec: CallSpec::clone(&call.spec) })
        .collect()
}

/// Changes a field, or one member of the metadata.
fn change_member(
    record: &mut crate::TaskRecord,
    field: &str,
    value: &Value,
    changed: &mut BTreeMap<String, crate::Change>,
) -> Decided<()> {
    match field.strip_prefix("metadata.") {
        Some(member) => super::author::change_field(record, "metadata", &json!({ member: value }), changed),
        None => super::author::change_field(record, field, value, changed),
    }
}

/// Returns everything that is kept with a task beside it.
fn kept(draft: &Draft<'_>, key: Key) -> Decided<JsonMap<String, Value>> {
    let text = match draft.changes.applied.get(&key) {
        Some(text) => Some(text.clone()),
        None if draft.is_new(key) => None,
        None => draft.view.applied(key)?,
    };
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

fn said_before(draft: &Draft<'_>, key: Key) -> Decided<Said> {
    let said = kept(draft, key)?.remove(IMPORTED);
    Ok(said.and_then(|said| serde_json::from_value(said).ok()).unwrap_or_default())
}

/// Writes down what a plan applied, and leaves what sources said.
pub(super) fn write_applied(draft: &mut Draft<'_>, key: Key, applied: Value) -> Decided<()> {
    let said = kept(draft, key)?.remove(IMPORTED);
    let mut applied = if let Value::Object(map) = applied { map } else { JsonMap::new() };
    applied.extend(said.map(|said| (IMPORTED.to_owned(), said)));
    draft.changes.applied.insert(key, Value::Object(applied).to_string());
    Ok(())
}

fn has_open_subtask(draft: &Draft<'_>, key: Key) -> Decided<bool> {
    for subtask in draft.subtasks(key)? {
        if matches!(draft.node(subtask)?.phase.outcome_above(), Outcome::Open | Outcome::Failed) {
            return Ok(true);
        }
    }
    Ok(false)
}
