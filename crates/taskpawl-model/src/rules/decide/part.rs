//! Parts of a plan: fields that a task of a part leaves out keep the values that the plan applied last.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::applied::Applied;
use crate::plan::{ARTIFACTS, SETUP, VERIFY, WORK_FIELDS, expand_call, spec_fields};
use crate::task::record::PlanRecord;
use crate::task::spec::{CallPart, NewCall};
use crate::value::{Key, Map, TaskId};
use crate::view::{Query, View, ViewResult};

/// Fields that define the dependencies of a task.
const NEEDS: [&str; 2] = ["needs", "dependencies"];

/// Fields for which `null` means the same as leaving them out.
const LISTS: [&str; 11] = [
    "run",
    "call",
    "calls",
    "toolCalls",
    VERIFY,
    ARTIFACTS,
    "needs",
    "dependencies",
    "context",
    "metadata",
    "subtasks",
];

/// Completes a part of a plan with the fields that its tasks leave out, so that the part defines each task fully.
///
/// `null` removes a field. Each entry of `metadata` and `context` counts as a field of its own, and `null` removes it,
/// too. A subtask keeps its parent. Tasks that the part does not mention but that its tasks refer to, such as parents
/// and dependencies, are added at the end. Returns the number of added tasks.
///
/// Values that are no valid part are left unchanged, so that [`parse_plan`](crate::plan::parse_plan) reports the errors.
///
/// # Errors
/// The view cannot be read.
pub fn complete_part(view: &dyn View, plan: &str, part: &mut Value) -> ViewResult<usize> {
    let defaults: Vec<String> =
        part["defaults"].as_object().into_iter().flat_map(|fields| fields.keys().cloned()).collect();
    let Some(tasks) = part.get_mut("tasks").and_then(Value::as_array_mut) else { return Ok(0) };
    let (record, bases) = (view.plan(plan)?.unwrap_or_default(), BTreeMap::new());
    let mut known =
        ExistingTasks { view, plan, record, defaults, by_name: None, bases, placed: BTreeSet::new() };
    for task in tasks.iter() {
        known.meet(task, false)?;
    }
    let around = known.add_around()?;
    let below = known.below()?;
    for task in tasks.iter_mut() {
        known.fill(task, &below)?;
    }
    for key in &around {
        let mut fields = known.fields_of(&known.bases[key])?;
        add_subtasks(&mut fields, below.get(key));
        tasks.push(Value::Object(fields));
    }
    Ok(around.len())
}

/// Tasks of the plan that the part mentions, and tasks that these refer to.
struct ExistingTasks<'v> {
    view: &'v dyn View,
    plan: &'v str,
    /// Plan record, which maps the ids of the file to those of the store.
    record: PlanRecord,
    /// Fields that the part's `defaults` set.
    defaults: Vec<String>,
    /// Tasks without an id of the author, by name. Loaded when the part has such a task.
    by_name: Option<BTreeMap<String, Key>>,
    bases: BTreeMap<Key, Base>,
    /// Ids and names that the part lists as subtasks.
    placed: BTreeSet<String>,
}

/// A task as the plan applied it last.
struct Base {
    applied: Applied<'static>,
    /// Names that its expressions use for other tasks, if they differ from the ids.
    names: BTreeMap<String, TaskId>,
    /// Id or name that the part uses for it.
    reference: String,
    is_nested: bool,
}

impl ExistingTasks<'_> {
    /// Records the task of an entry and those of its nested subtasks.
    fn meet(&mut self, entry: &Value, is_nested: bool) -> ViewResult<()> {
        if let Some(key) = self.find(entry)?
            && let Some(mut base) = self.base(key)?
        {
            if let Some(id) = entry["id"].as_str() {
                id.clone_into(&mut base.reference);
            }
            base.is_nested = is_nested;
            self.bases.entry(key).or_insert(base);
        }
        for subtask in items(&entry["subtasks"]) {
            match subtask.as_str() {
                Some(text) => _ = self.placed.insert(text.to_owned()),
                None => self.meet(subtask, true)?,
            }
        }
        Ok(())
    }

    /// Returns the stored task of an entry, if there is one.
    fn find(&mut self, entry: &Value) -> ViewResult<Option<Key>> {
        if let Some(id) = entry["id"].as_str() {
            return self.view.key(self.record.stored_id(&TaskId::from(id)).as_str());
        }
        let Some(name) = entry.as_str().or(entry["name"].as_str()) else { return Ok(None) };
        if self.by_name.is_none() {
            self.by_name = Some(self.nameless()?);
        }
        Ok(self.by_name.as_ref().and_then(|by_name| by_name.get(name)).copied())
    }

    fn nameless(&self) -> ViewResult<BTreeMap<String, Key>> {
        let mut by_name = BTreeMap::new();
        for key in self.view.find(&Query { plan: Some(self.plan.to_owned()), ..Query::default() })? {
            if let Some(base) = self.base(key)?.filter(|base| !base.applied.has_id) {
                by_name.insert(base.applied.spec.name.clone(), key);
            }
        }
        Ok(by_name)
    }

    /// Returns a task as it was last applied; `None` if another plan or no plan created it.
    fn base(&self, key: Key) -> ViewResult<Option<Base>> {
        let Some(record) = self.view.task(key)? else { return Ok(None) };
        if record.plan.as_deref() != Some(self.plan) {
            return Ok(None);
        }
        let applied: Option<Applied<'_>> =
            self.view.applied(key)?.and_then(|text| serde_json::from_str(&text).ok());
        Ok(applied.map(|applied| {
            let reference = if applied.has_id {
                self.record.file_id(&record.id).to_string()
            } else {
                applied.spec.name.clone()
            };
            Base { applied, names: record.body.names.clone(), reference, is_nested: false }
        }))
    }

    /// Adds the tasks that the part's tasks refer to, and returns them.
    fn add_around(&mut self) -> ViewResult<Vec<Key>> {
        let mut to_look_at: Vec<Key> = self.bases.keys().copied().collect();
        let mut around = Vec::new();
        while let Some(key) = to_look_at.pop() {
            let base = &self.bases[&key];
            let parent = base.applied.parent.iter().filter(|_| !self.is_placed(base));
            let ids: Vec<TaskId> =
                parent.chain(base.names.values()).chain(&base.applied.needs).cloned().collect();
            for id in ids {
                let Some(key) = self.view.key(id.as_str())? else { continue };
                if self.bases.contains_key(&key) {
                    continue;
                }
                let Some(base) = self.base(key)? else { continue };
                // A task with a deleted dependency cannot be repeated unchanged, so it is left out.
                if self.needs(&base)?.len() == base.applied.needs.len() {
                    self.bases.insert(key, base);
                    around.push(key);
                    to_look_at.push(key);
                }
            }
        }
        Ok(around)
    }

    fn is_placed(&self, base: &Base) -> bool {
        base.is_nested || self.placed.contains(&base.reference)
    }

    /// Returns the dependencies of a task that still exist, by the names used in the part.
    fn needs(&self, base: &Base) -> ViewResult<Vec<String>> {
        let mut needs = Vec::new();
        for id in &base.applied.needs {
            if let Some(key) = self.view.key(id.as_str())? {
                needs.push(self.bases.get(&key).map_or_else(|| id.to_string(), |on| on.reference.clone()));
            }
        }
        Ok(needs)
    }

    /// Returns the subtasks that the part does not place, by the parent that they keep.
    fn below(&self) -> ViewResult<BTreeMap<Key, Vec<String>>> {
        let mut below: BTreeMap<Key, Vec<String>> = BTreeMap::new();
        for base in self.bases.values().filter(|base| !self.is_placed(base)) {
            let Some(parent) = &base.applied.parent else { continue };
            if let Some(key) = self.view.key(parent.as_str())?.filter(|key| self.bases.contains_key(key)) {
                below.entry(key).or_default().push(base.reference.clone());
            }
        }
        Ok(below)
    }

    /// Adds the fields that an entry of the part leaves out.
    fn fill(&mut self, entry: &mut Value, below: &BTreeMap<Key, Vec<String>>) -> ViewResult<()> {
        let key = self.find(entry)?.filter(|key| self.bases.contains_key(key));
        if let (Some(_), Some(name)) = (key, entry.as_str()) {
            *entry = json!({"name": name});
        }
        let Value::Object(fields) = entry else { return Ok(()) };
        lift(fields, "context");
        let gone = take_nulls(fields);
        if let Some(key) = key {
            overlay(fields, self.fields_of(&self.bases[&key])?, &gone);
            add_subtasks(fields, below.get(&key));
        }
        if let Some(Value::Array(subtasks)) = fields.get_mut("subtasks") {
            for subtask in subtasks.iter_mut().filter(|subtask| subtask.is_object()) {
                self.fill(subtask, below)?;
            }
        }
        Ok(())
    }

    /// Returns a task in the long form of plan files.
    fn fields_of(&self, base: &Base) -> ViewResult<Map> {
        let applied = &base.applied;
        let mut fields = spec_fields(&applied.spec);
        // An applied task without a value for a field of `defaults` had none on purpose, so `null` prevents the
        // default.
        for field in &self.defaults {
            fields.entry(field.clone()).or_insert(Value::Null);
        }
        if applied.has_id {
            fields.insert("id".to_owned(), base.reference.as_str().into());
        }
        let calls = |parts: &[CallPart]| {
            let calls = applied.calls.iter().filter(|(_, spec)| parts.contains(&spec.part()));
            let calls = calls.map(|(id, spec)| expand_call(&NewCall { id: id.clone(), spec: spec.clone() }));
            calls.collect::<Vec<Value>>()
        };
        let setup = calls(&[CallPart::Setup]);
        if let Some(Value::Object(worktree)) = fields.get_mut("worktree").filter(|_| !setup.is_empty()) {
            worktree.insert(SETUP.to_owned(), setup.into());
        }
        let artifacts = applied.calls.iter().filter(|(_, spec)| spec.part() == CallPart::Artifacts);
        let artifacts: Vec<&Value> =
            artifacts.flat_map(|(_, spec)| spec.args.get("files").map(items).unwrap_or_default()).collect();
        let lists = [
            ("toolCalls", json!(calls(&[CallPart::Work, CallPart::Commit]))),
            (VERIFY, json!(calls(&[CallPart::Verify]))),
            (ARTIFACTS, json!(artifacts)),
            ("dependencies", json!(self.needs(base)?)),
            ("context", json!(applied.context)),
            ("metadata", json!(applied.spec.metadata)),
        ];
        let is_empty = |value: &Value| *value == json!([]) || *value == json!({});
        let lists = lists.into_iter().filter(|(_, value)| !is_empty(value));
        fields.extend(lists.map(|(field, value)| (field.to_owned(), value)));
        Ok(fields)
    }
}

fn items(list: &Value) -> &[Value] {
    match list {
        Value::Array(items) => items,
        Value::Null => &[],
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => std::slice::from_ref(list),
    }
}

fn add_subtasks(fields: &mut Map, below: Option<&Vec<String>>) {
    let Some(below) = below else { return };
    let mut subtasks = fields.get("subtasks").map(|given| items(given).to_vec()).unwrap_or_default();
    subtasks.extend(below.iter().map(|reference| Value::from(reference.as_str())));
    fields.insert("subtasks".to_owned(), subtasks.into());
}

/// Fields of which each entry counts as a field of its own.
const ENTRIES: [&str; 2] = ["metadata", "context"];

/// Removes entries with `null`; returns their fields and names.
fn take_nulls(fields: &mut Map) -> BTreeSet<(&'static str, String)> {
    let mut gone = BTreeSet::new();
    for field in ENTRIES {
        let Some(Value::Object(entries)) = fields.get_mut(field) else { continue };
        let nulls = entries.iter().filter(|(_, value)| value.is_null());
        gone.extend(nulls.map(|(name, _)| (field, name.clone())));
        entries.retain(|_, value| !value.is_null());
    }
    gone
}

/// Adds the fields that a task leaves out, except for the entries in `gone`.
fn overlay(fields: &mut Map, base: Map, gone: &BTreeSet<(&'static str, String)>) {
    lift(fields, "toolCalls");
    // The long form has all calls in one list.
    let has_setup = fields.contains_key("toolCalls");
    for (field, mut value) in base {
        if let Value::Object(worktree) = &mut value
            && field == "worktree"
            && has_setup
        {
            worktree.remove(SETUP);
        }
        let given: &[&str] = match field.as_str() {
            "toolCalls" => &WORK_FIELDS,
            // The long form has all calls in one list.
            VERIFY => &[VERIFY, "toolCalls"],
            ARTIFACTS => &[ARTIFACTS, "toolCalls"],
            "dependencies" => &NEEDS,
            _ => &[],
        };
        if given.iter().any(|other| fields.contains_key(*other)) {
            continue;
        }
        match fields.get_mut(&field) {
            None => _ = fields.insert(field, value),
            Some(Value::Object(own)) if ENTRIES.contains(&field.as_str()) => {
                let is_gone = |name: &str| gone.iter().any(|(of, gone)| *of == field && gone == name);
                for (name, value) in value.as_object().into_iter().flatten() {
                    if !is_gone(name) {
                        own.entry(name.clone()).or_insert_with(|| value.clone());
                    }
                }
            }
            Some(_) => {}
        }
    }
    fields.retain(|field, value| !(value.is_null() && LISTS.contains(&field.as_str())));
}

/// Moves a field out of `metadata`, where the long form has it. A field given twice is left, so that it is refused.
fn lift(fields: &mut Map, field: &str) {
    if fields.contains_key(field) {
        return;
    }
    let lifted = fields.get_mut("metadata").and_then(Value::as_object_mut).and_then(|own| own.remove(field));
    if let Some(value) = lifted {
        fields.insert(field.to_owned(), value);
    }
}
