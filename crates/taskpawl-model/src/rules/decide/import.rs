//! `import`: copies tasks of another program into the store, with their statuses.
//!
//! The last values of each source are stored with each task. The next import takes over changes of the source, and
//! leaves fields alone that changed in the store.

mod baseline;
mod states;

use crate::view::{ReadGraph, ReadTasks};
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::merge::{self, STATE, is_equal, list, said};
use crate::command::import::{
    DivergingField, Import, ImportMode, ImportReport, ImportedRecord, OlderRecord, PreservedField,
    SourceRecord,
};
use crate::command::refusal::{Conflict, Refusal};
use crate::rules::Graph;
use crate::rules::draft::{Decided, Draft};
use crate::task::Outcome;
use crate::task::event::EventKind;
use crate::task::record::{CallRecord, Note, PlanRecord, Work};
use crate::task::spec::{NewCall, Origin};
use crate::task::status::{Status, TaskStatus};
use crate::task::wire::{Task, TaskParts};
use crate::value::{Key, Map, TaskId, Timestamp, check_id};
use crate::view::Query;

use baseline::Before;
pub use baseline::bound_records;
pub(super) use baseline::write_applied;

/// Fields that are imported only when the task is created.
const ONCE: &[&str] = &["createdAt", "updatedAt"];

impl Draft<'_> {
    pub(super) fn import(&mut self, import: &Import) -> Decided<()> {
        // The importing person did not write the file, so its values count as written by an agent.
        self.write_as(Origin::Agent);
        let mut work = Importing::new(import);
        work.rename_source(self)?;
        work.find_tasks(self)?;
        if import.mode != ImportMode::Record {
            let search = work.may_have_circle(self)?;
            work.make_new(self, search)?;
            work.change_present(self)?;
            work.skip_below_done(self)?;
            work.set_states(self)?;
            work.list_gone(self)?;
        }
        work.list_apart(self)?;
        work.note_said(self)?;
        if import.mode != ImportMode::Record {
            // Parents only get their status here once the gates are settled.
            self.settle()?;
            work.list_different(self)?;
        }
        self.answer.tasks.extend(work.report.created.iter().chain(&work.report.changed).cloned());
        self.answer.imported = Some(work.report);
        Ok(())
    }
}

/// A task of the source.
struct ImportMatch<'i> {
    task: &'i Task,
    /// Its record, with the source.
    record: ImportedRecord,
    /// The record at the last import.
    record_before: Option<SourceRecord>,
    /// The status that stands here for another one in the source.
    adapted: Option<Status>,
    /// Key of the task in the store; `None` until it is created.
    key: Option<Key>,
    is_new: bool,
    /// Values of the source at the last import.
    before: Option<BTreeMap<String, Value>>,
    /// Fields in which the store deliberately differed before.
    apart_before: BTreeSet<String>,
    /// Fields in which the store deliberately differs now.
    apart: BTreeSet<String>,
    /// Current values of the source.
    now: BTreeMap<String, Value>,
    /// Status to set.
    state: Option<TaskStatus>,
}

impl<'i> ImportMatch<'i> {
    fn new(
        task: &'i Task,
        record: ImportedRecord,
        key: Option<Key>,
        now: BTreeMap<String, Value>,
        before: Before,
    ) -> Self {
        let Before { said, apart, record: record_before } = before;
        Self {
            task,
            record,
            adapted: record_before.as_ref().and_then(|record| record.adapted),
            record_before,
            key,
            is_new: key.is_none(),
            before: said,
            apart_before: apart.clone(),
            apart,
            now,
            state: None,
        }
    }

    fn key(&self) -> Key {
        self.key.expect("BUG: every task has a key once the new ones are made")
    }

    /// Returns whether a field must be compared: its value in the source changed, or the source `counts` and was not
    /// followed.
    fn has_news(&self, field: &str, counts: bool) -> bool {
        let is_news = self.before.as_ref().is_none_or(|before| before.get(field) != self.now.get(field));
        is_news || (counts && self.apart_before.contains(field))
    }
}

/// An import in progress.
struct Importing<'i> {
    import: &'i Import,
    found: Vec<ImportMatch<'i>>,
    report: ImportReport,
    conflicts: Vec<Conflict>,
    /// Tasks of the source that were deleted in the store. References to them are dropped.
    deleted: BTreeSet<&'i TaskId>,
}

impl<'i> Importing<'i> {
    fn new(import: &'i Import) -> Self {
        let report = ImportReport { source: import.source.clone(), ..ImportReport::default() };
        Self { import, found: Vec::new(), report, conflicts: Vec::new(), deleted: BTreeSet::new() }
    }

    /// Finds the existing tasks; refuses a task of the source if the store has an unrelated task with its id.
    fn find_tasks(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        let mut seen = BTreeSet::new();
        for (place, task) in self.import.tasks.iter().enumerate() {
            let record = self.record(place, task);
            check_id(task.id.as_str()).map_err(Refusal::from)?;
            if !seen.insert(&task.id) {
                self.conflicts.push(Conflict::new(&task.id, "is there twice"));
                continue;
            }
            let key = draft.find_id(task.id.as_str())?;
            let now = said(task, &self.import.fields);
            let Some(known) = key else {
                if !self.is_deleted(draft, &task.id)? {
                    self.found.push(ImportMatch::new(task, record, key, now, Before::default()));
                }
                continue;
            };
            if let Some(from) = &record.from {
                baseline::rename(draft, known, from, &record.source)?;
            }
            let before = baseline::of(draft, known, &record.source)?;
            if before.said.is_none()
                && self.import.mode == ImportMode::Merge
                && !self.is_same(draft, known, &now)?
            {
                self.conflicts.push(Conflict::new(&task.id, "is here and was not imported from there"));
                continue;
            }
            self.found.push(ImportMatch::new(task, record, key, now, before));
        }
        if self.import.mode == ImportMode::Record {
            self.found.retain(|found| !found.is_new);
        }
        self.refuse_conflicts()
    }

    /// Stores the records of the source under its new name, if its file has moved.
    fn rename_source(&self, draft: &mut Draft<'_>) -> Decided<()> {
        if self.import.moved.is_empty() {
            return Ok(());
        }
        for key in draft.view.find(&Query::default())? {
            for (from, to) in &self.import.moved {
                baseline::rename(draft, key, from, to)?;
            }
        }
        Ok(())
    }

    /// Returns the record of the task at `place`.
    fn record(&self, place: usize, task: &Task) -> ImportedRecord {
        let mut record = self.import.records.get(place).cloned().unwrap_or_else(|| ImportedRecord {
            record: SourceRecord { id: task.id.to_string(), ..SourceRecord::default() },
            ..ImportedRecord::default()
        });
        if record.source.is_empty() {
            record.source.clone_from(&self.import.source);
        }
        record
    }

    /// A task that was deleted in the store stays deleted.
    fn is_deleted(&mut self, draft: &Draft<'_>, id: &'i TaskId) -> Decided<bool> {
        let is_deleted = draft.view.deleted_id(id.as_str())?.is_some();
        if is_deleted {
            self.deleted.insert(id);
            self.keep(id, "id", "it was deleted here, and ids are not used again");
        }
        Ok(is_deleted)
    }

    /// Returns whether a task already equals that of the source.
    fn is_same(&self, draft: &mut Draft<'_>, key: Key, now: &BTreeMap<String, Value>) -> Decided<bool> {
        let here = said(&draft.flat_task(key)?, &self.import.fields);
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

    /// Returns whether new edges may close a cycle. Only then each edge is checked when it is added, so that the error
    /// can name the cycle.
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
        Err(super::fields::invalid("dependencies", problem).into())
    }

    fn make_new(&mut self, draft: &mut Draft<'_>, search: bool) -> Decided<()> {
        for position in self.positions(true) {
            let parts = self.parts(position)?;
            let (spec, context) = (&parts.record.spec, &parts.record.body.context);
            let calls = new_calls(&parts.calls);
            let plan = self.plan_of(draft, position)?;
            let key = draft.insert_new(&parts.record.id, plan.as_deref(), spec, context, &calls)?;
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
            super::fields::check_trigger(&self.found[position].task.id, &spec, !dependencies.is_empty())?;
            super::fields::check_milestone(&spec, !draft.calls(key)?.is_empty())?;
            draft.emit_created(key, parent, &dependencies)?;
            self.report.created.push(self.found[position].task.id.clone());
        }
        Ok(())
    }

    /// Returns the plan of a new task, which is made if there is none. A plan file with that name keeps its tasks to itself.
    fn plan_of(&self, draft: &mut Draft<'_>, position: usize) -> Decided<Option<String>> {
        let Some(name) = &self.found[position].record.plan else { return Ok(None) };
        if let Some(plan) = draft.plan(name)? {
            return Ok(plan.path.is_none().then(|| name.clone()));
        }
        draft.changes.plans.push(PlanRecord { name: name.clone(), ..PlanRecord::default() });
        Ok(Some(name.clone()))
    }

    fn attach(&self, draft: &mut Draft<'_>, position: usize, search: bool) -> Decided<()> {
        let (task, key) = (self.found[position].task, self.key(position));
        if let Some(parent) = task.parent.as_ref().filter(|parent| !self.deleted.contains(parent)) {
            let parent = draft.resolve(parent.as_str())?;
            if search {
                draft.refuse_cycle(crate::rules::cycle::Edge::Subtask { task: key, parent })?;
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
            let task = draft.flat_task(key)?;
            let here = said(&task, &self.import.fields);
            if self.is_older(draft, position, &task)? {
                self.report.unchanged += 1;
                continue;
            }
            let (found, counts) = (&self.found[position], self.import.mode == ImportMode::Adopt);
            let mut wanted = Vec::new();
            for (field, value) in &found.now {
                if found.has_news(field, counts)
                    && !ONCE.contains(&field.as_str())
                    && !is_equal(field, here.get(field), value)
                {
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

    /// Returns whether the record is older than the state here, and lists it. Its values are not remembered either: the
    /// newer ones stay the last known state of the source.
    fn is_older(&mut self, draft: &mut Draft<'_>, position: usize, here: &Task) -> Decided<bool> {
        let found = &self.found[position];
        let (Some(there), Some(before)) = (found.record.changed_at, found.before.as_ref()) else {
            return Ok(false);
        };
        if self.import.mode != ImportMode::Merge {
            return Ok(false);
        }
        let last = before.get("updatedAt").and_then(|at| at.as_str()?.parse::<Timestamp>().ok());
        let is_before_last = last.is_some_and(|last| there < as_precise_as(there, last));
        // An edit that did not touch the record's time says nothing about its age.
        let is_stated = last.is_none_or(|last| there > last);
        let here_at = as_precise_as(there, here.updated_at);
        let is_before_change =
            is_stated && there < here_at && self.is_changed_since(draft, found.key(), before)?;
        if !is_before_last && !is_before_change {
            return Ok(false);
        }
        let here_at = if is_before_last { last.unwrap_or(here_at) } else { here.updated_at };
        let is_news = |field: &&String| !ONCE.contains(&field.as_str()) && found.has_news(field, false);
        if found.now.keys().any(|field| is_news(&field)) {
            let task = found.task.id.clone();
            self.report.older.push(OlderRecord { task, there, here: here_at });
        }
        let before = before.clone();
        self.found[position].now = before;
        Ok(true)
    }

    /// Imports changed fields; returns whether anything changed.
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
                self.keep_back(position, &field, &merge::why(here.get(&field), &value));
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
                Err(crate::rules::DecideError::Refused(refusal))
                    if matches!(*refusal, Refusal::WorkStarted { .. }) =>
                {
                    self.keep_back(position, &field, &refusal.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        after.note_writer(Some(&record), &Map::new(), draft.writer);
        if after != record {
            draft.update_spec(key, |now| {
                now.spec = after.spec;
                now.body.context.clone_from(&after.body.context);
                now.body.origins.clone_from(&after.body.origins);
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

    /// Returns whether a field changed in the store since the last import.
    fn is_changed_here(&self, position: usize, field: &str, here: &BTreeMap<String, Value>) -> bool {
        let before = self.found[position].before.as_ref().and_then(|before| before.get(field));
        // With `adopt` the source always wins.
        let before = before.filter(|_| self.import.mode != ImportMode::Adopt);
        let is_deleted = |id: &str| self.deleted.contains(&TaskId::from(id));
        before.is_some_and(|before| !merge::is_as_said(field, here.get(field), before, is_deleted))
    }

    fn take_calls(&self, draft: &mut Draft<'_>, position: usize) -> Decided<()> {
        let key = self.key(position);
        let record = draft.task(key)?;
        let status = record.body.state.status();
        if super::fields::is_work_fixed(status) || record.body.started_at.is_some() {
            return Err(
                Refusal::WorkStarted { id: record.id, status, what: "its tool calls", reopen: None }.into()
            );
        }
        let calls = draft.new_calls(&[], &new_calls(&self.parts(position)?.calls))?;
        draft.replace_calls(key, calls)?;
        draft.update_task(key, |_| ())?;
        draft.check_references(key)?;
        draft.emit(Some(key), EventKind::Updated { fields: BTreeMap::new() })
    }

    /// Adds the notes that the store does not have.
    fn take_notes(&self, draft: &mut Draft<'_>, position: usize) -> Decided<bool> {
        let key = self.key(position);
        let present = draft.task(key)?.body.notes.clone();
        // Some programs store times with a precision of one minute.
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

    /// Lists tasks of earlier imports that are gone from the source.
    fn list_gone(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        let present: BTreeSet<Key> = self.found.iter().filter_map(|found| found.key).collect();
        let mut sources: BTreeSet<String> =
            self.found.iter().map(|found| found.record.source.clone()).collect();
        sources.insert(self.import.source.clone());
        for key in draft.view.find(&Query::default())? {
            if present.contains(&key) {
                continue;
            }
            let mut before = None;
            for source in &sources {
                let Before { said, apart, record } = baseline::of(draft, key, source)?;
                if let (Some(said), Some(record)) = (&said, record.filter(|record| !record.gone)) {
                    let record = SourceRecord { gone: true, ..record };
                    baseline::note(draft, key, source, said.clone(), apart, record)?;
                }
                before = before.or(said);
            }
            let Some(before) = before else { continue };
            let id = draft.id(key)?;
            if self.is_changed_since(draft, key, &before)? {
                self.report.gone_changed.push(id.clone());
            }
            self.report.gone.push(id);
        }
        Ok(())
    }

    /// Returns whether a task in the store differs from the last values of its source.
    fn is_changed_since(
        &self,
        draft: &mut Draft<'_>,
        key: Key,
        before: &BTreeMap<String, Value>,
    ) -> Decided<bool> {
        let fields: Vec<String> = before.keys().cloned().collect();
        let here = said(&draft.flat_task(key)?, &fields);
        let is_deleted = |id: &str| self.deleted.contains(&TaskId::from(id));
        for (field, before) in before {
            let now = here.get(field);
            let is_same = match field.as_str() {
                "status" => Self::is_state_as_said(draft, key, now, before)?,
                "notes" => {
                    now.and_then(Value::as_array).map_or(0, Vec::len) == before.as_array().map_or(0, Vec::len)
                }
                "metadata.toolCalls" => is_equal(field, now, before),
                _ => merge::is_as_said(field, now, before, is_deleted),
            };
            if !is_same {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lists the fields in which store and source differ; fields that are equal again are removed.
    fn list_apart(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        for position in 0..self.found.len() {
            if self.found[position].apart.is_empty() {
                continue;
            }
            let here = said(&draft.flat_task(self.key(position))?, &self.import.fields);
            let found = &mut self.found[position];
            let null = Value::Null;
            found.apart.retain(|field| {
                let (here, there) = (here.get(field), found.now.get(field).unwrap_or(&null));
                let is_apart = !is_equal(field, here, there);
                if is_apart {
                    let (here, there) = (here.cloned().unwrap_or_default(), there.clone());
                    self.report.apart.push(DivergingField {
                        task: found.task.id.clone(),
                        field: field.clone(),
                        here,
                        there,
                    });
                }
                is_apart
            });
        }
        Ok(())
    }

    /// Stores the current values of the source. After writing to the source, every field is equal by definition.
    fn note_said(&self, draft: &mut Draft<'_>) -> Decided<()> {
        for (position, found) in self.found.iter().enumerate() {
            let is_written = self.import.mode == ImportMode::Record;
            let mut apart = found.apart.clone();
            if is_written {
                // A derived status is an exception: the source keeps its own word for it.
                apart.retain(|field| field == "status");
            }
            let mut record = found.record.record.clone();
            // Once the task has left that status, its status is one that was set here.
            let status = draft.task(found.key())?.body.state.status();
            record.adapted = found.adapted.filter(|adapted| *adapted == status);
            if found.before.as_ref() != Some(&found.now)
                || found.apart_before != apart
                || found.record_before.as_ref() != Some(&record)
            {
                let source = found.record.source.clone();
                baseline::note(draft, self.key(position), &source, found.now.clone(), apart, record)?;
            }
        }
        Ok(())
    }

    /// Lists parents that are open in the source and done here.
    fn list_different(&mut self, draft: &Draft<'_>) -> Decided<()> {
        for found in &self.found {
            let there = found.task.status;
            let Some(key) = found.key.filter(|_| !there.is_finished()) else { continue };
            let node = draft.node(key)?;
            if node.work == Work::Automatic && node.status_kind.outcome_above() == Outcome::Done {
                self.report.differs.push(DivergingField {
                    task: found.task.id.clone(),
                    field: "status".to_owned(),
                    here: json!(Status::Done),
                    there: json!(there),
                });
            }
        }
        Ok(())
    }

    /// Reports that a field is not imported, and remembers it until both sides are equal.
    fn keep_back(&mut self, position: usize, field: &str, why: &str) {
        self.found[position].apart.insert(field.to_owned());
        let task = self.found[position].task;
        self.keep(&task.id, field, why);
    }

    fn keep(&mut self, task: &TaskId, field: &str, why: &str) {
        self.report.kept.push(PreservedField {
            task: task.clone(),
            field: field.to_owned(),
            why: why.to_owned(),
        });
    }

    fn positions(&self, is_new: bool) -> Vec<usize> {
        let found = self.found.iter().enumerate().filter(|(_, found)| found.is_new == is_new);
        found.map(|(position, _)| position).collect()
    }

    fn key(&self, position: usize) -> Key {
        self.found[position].key()
    }

    fn parts(&self, position: usize) -> Decided<TaskParts> {
        let task = self.found[position].task.clone();
        let id = task.id.clone();
        let parts = task.into_parts();
        Ok(parts.map_err(|error| super::fields::invalid("tasks", format!("`{id}`: {error}")))?)
    }
}

/// Returns `time` with the precision of `there`: some sources state minutes, or days.
fn as_precise_as(there: Timestamp, time: Timestamp) -> Timestamp {
    let step = match (there.timestamp(), there.timestamp_subsec_nanos()) {
        (_, nanos) if nanos > 0 => return time,
        (seconds, _) if seconds % 86_400 == 0 => 86_400,
        (seconds, _) if seconds % 60 == 0 => 60,
        _ => 1,
    };
    let seconds = time.timestamp().div_euclid(step) * step;
    Timestamp::from_timestamp(seconds, 0).unwrap_or(time)
}

fn new_calls(calls: &[CallRecord]) -> Vec<NewCall> {
    calls.iter().map(|call| NewCall { id: Some(call.id.clone()), spec: call.spec.clone() }).collect()
}

/// Changes a field, or one member of the metadata.
fn change_member(
    record: &mut crate::task::TaskRecord,
    field: &str,
    value: &Value,
    changed: &mut BTreeMap<String, crate::task::Change>,
) -> Decided<()> {
    match field.strip_prefix("metadata.") {
        Some("context") => {
            // An update merges into the context. Explicit `null`s remove the entries that the source does not have.
            let gone = record.body.context.keys().map(|name| (name.clone(), Value::Null));
            let mut wanted: crate::value::Map = gone.collect();
            wanted.extend(value.as_object().cloned().unwrap_or_default());
            super::fields::change_field(record, "metadata", &json!({ "context": wanted }), changed)
        }
        Some(member) => super::fields::change_field(record, "metadata", &json!({ member: value }), changed),
        None => super::fields::change_field(record, field, value, changed),
    }
}
