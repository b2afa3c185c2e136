//! `import`: copies tasks of another program into the store, with their statuses.
//!
//! The last values of each source are stored with each task. The next import takes over changes of the source, and
//! leaves fields alone that changed in the store.

mod baseline;
mod changes;
mod listing;
mod states;

use crate::view::{ReadGraph, ReadTasks};
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::merge::{is_equal, said};
use crate::command::import::{
    Import, ImportMode, ImportReport, ImportedRecord, PreservedField, SourceRecord,
};
use crate::command::refusal::{Conflict, Refusal, Remedy};
use crate::rules::Graph;
use crate::rules::draft::{Decided, Draft};
use crate::task::record::{CallRecord, PlanRecord};
use crate::task::spec::{NewCall, Origin};
use crate::task::status::{Status, TaskStatus};
use crate::task::wire::{Task, TaskParts};
use crate::value::{Key, TaskId, check_id};
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
    /// Finished tasks that got new subtasks: these are skipped.
    closed: BTreeSet<usize>,
}

impl<'i> Importing<'i> {
    fn new(import: &'i Import) -> Self {
        let report = ImportReport { source: import.source.clone(), ..ImportReport::default() };
        Self {
            import,
            found: Vec::new(),
            report,
            conflicts: Vec::new(),
            deleted: BTreeSet::new(),
            closed: BTreeSet::new(),
        }
    }

    /// Finds the existing tasks; refuses a task of the source if the store has an unrelated task with its id.
    fn find_tasks(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        let mut seen = BTreeSet::new();
        for (place, task) in self.import.tasks.iter().enumerate() {
            let record = self.record(place, task);
            check_id(task.id.as_str()).map_err(Refusal::from)?;
            if !seen.insert(&task.id) {
                self.conflicts.push(Conflict::new(&task.id, "appears twice in the source", Remedy::OtherId));
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
                self.conflicts.push(Conflict::new(
                    &task.id,
                    "exists in the store and was not imported from this source",
                    Remedy::OtherId,
                ));
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
            self.keep(id, "id", "deleted in the store, and ids are not reused");
        }
        Ok(is_deleted)
    }

    /// Returns whether a task already equals that of the source. A task of another source never does: two files may have equal
    /// records.
    fn is_same(&self, draft: &mut Draft<'_>, key: Key, now: &BTreeMap<String, Value>) -> Decided<bool> {
        if baseline::has_any(draft, key)? {
            return Ok(false);
        }
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
    /// can name the cycle: one search for all edges is linear, one for each is not.
    fn may_have_circle(&self, draft: &Draft<'_>) -> Decided<bool> {
        let mut graph = Graph::load(draft.view, &|_| Some(1))?;
        let mut keys: BTreeMap<&TaskId, Key> = BTreeMap::new();
        // New tasks have no keys yet. Keys of the store count up from its first task.
        for (new, found) in (0..).map(|number| Key(u32::MAX - number)).zip(&self.found) {
            let key = found.key.unwrap_or(new);
            if found.is_new {
                graph.add_task(key);
            }
            keys.insert(&found.task.id, key);
        }
        // Edges that the import removes are still there: that only leads to a search which finds nothing.
        for found in &self.found {
            let key = keys[&found.task.id];
            for on in &found.task.dependencies {
                if let Some(on) = self.known_key(draft, found.task, on, &keys)? {
                    graph.add_dependency(key, on);
                }
            }
            if let Some(parent) = &found.task.parent
                && let Some(parent) = self.known_key(draft, found.task, parent, &keys)?
            {
                // The graph has no edge from a task to itself.
                if parent == key {
                    return Ok(true);
                }
                graph.add_subtask(key, parent);
            }
        }
        Ok(graph.find_cycle().is_some())
    }

    /// Returns the key of another task of the source or of the store; `None` if it was deleted here.
    fn known_key(
        &self,
        draft: &Draft<'_>,
        task: &Task,
        other: &TaskId,
        keys: &BTreeMap<&TaskId, Key>,
    ) -> Decided<Option<Key>> {
        if let Some(key) = keys.get(other) {
            return Ok(Some(*key));
        }
        let found = draft.find_id(other.as_str())?;
        if found.is_some() || self.deleted.contains(other) {
            return Ok(found);
        }
        let problem =
            format!("`{}` refers to `{other}`, which is neither in the source nor in the store", task.id);
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
        let present: BTreeMap<Key, usize> =
            self.positions(false).into_iter().map(|position| (self.key(position), position)).collect();
        for position in self.positions(true) {
            self.attach(draft, position, &present, search)?;
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

    fn attach(
        &mut self,
        draft: &mut Draft<'_>,
        position: usize,
        present: &BTreeMap<Key, usize>,
        search: bool,
    ) -> Decided<()> {
        let (task, key) = (self.found[position].task, self.key(position));
        if let Some(parent) = task.parent.as_ref().filter(|parent| !self.deleted.contains(parent)) {
            let parent = draft.resolve(parent.as_str())?;
            if search {
                draft.refuse_cycle(crate::rules::cycle::Edge::Subtask { task: key, parent })?;
            }
            match present.get(&parent) {
                Some(above) => self.put_below_present(draft, position, *above)?,
                None => draft.put_below(key, parent)?,
            }
        }
        for on in task.dependencies.iter().filter(|on| !self.deleted.contains(on)) {
            let on = draft.resolve(on.as_str())?;
            draft.link(key, on, search)?;
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

fn new_calls(calls: &[CallRecord]) -> Vec<NewCall> {
    calls.iter().map(|call| NewCall { id: Some(call.id.clone()), spec: call.spec.clone() }).collect()
}
