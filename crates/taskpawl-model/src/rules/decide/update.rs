//! `update`: changes fields of a task, its work included, and may start it over with them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::again::How;
use super::fields::{
    change_field, check_approval_after, check_milestone, check_own_fields, check_rework, check_trigger,
    check_worktree, invalid, read_fields, written_context,
};
use super::follow::{Standing, WHOLE};
use crate::command::Restart;
use crate::command::refusal::Refusal;
use crate::plan::{
    ARTIFACTS, PROGRAM_FIELDS, PlanErrors, VERIFY, WORK_FIELDS, spec_fields, work_field, work_from_json,
};
use crate::rules::draft::{Decided, Draft};
use crate::task::event::{Change, EventKind};
use crate::task::record::{CallRecord, PlanRecord, StatusKind, TaskRecord};
use crate::task::spec::{CallPart, CallSpec, NewCall, TaskSpec};
use crate::task::status::{BlockedReason, TaskStatus};
use crate::value::{CallId, Key, Map, Shared};
use crate::view::ReadGraph;

/// Fields whose expressions refer to other tasks.
const REFERRING: &[&str] = &["when", "forEach", "repeat", "cache", "trustInputs"];

impl Draft<'_> {
    pub(super) fn update(
        &mut self,
        id: &str,
        fields: &Map,
        if_version: Option<u64>,
        restart: Option<Restart>,
    ) -> Decided<()> {
        let key = self.resolve(id)?;
        let record = self.task(key)?;
        if let Some(expected) = if_version.filter(|expected| *expected != record.version) {
            return Err(Refusal::VersionMismatch { id: record.id, expected, current: record.version }.into());
        }
        // A task that has started over may change freely.
        if let Some(restart) = restart.filter(|_| has_to_restart(&record)) {
            let (how, cascade) = match restart {
                Restart::Retry { cascade } => (How::Retry, cascade),
                Restart::Reopen { cascade } => (How::Reopen, cascade),
            };
            self.start_again(&[record.id.to_string()], how, cascade)?;
        } else {
            self.answer.tasks.push(record.id.clone());
            if let Some(Restart::Reopen { cascade }) = restart {
                self.reopen_items(key, cascade)?;
            }
        }
        let (fields, calls) = self.take_out_work(key, fields)?;
        if fields.keys().any(|field| work_field(field).is_some()) {
            self.take_from_store(key)?;
        }
        let mut changed = self.change_fields(key, &fields)?;
        let is_whole = WHOLE.iter().any(|field| *field != "context" && changed.contains_key(*field));
        if calls.is_some() || restart.is_some() && is_whole {
            self.change_work(key, calls.as_deref(), is_whole, &mut changed)?;
        }
        self.check_changed(key, &changed)?;
        if !changed.is_empty() {
            self.emit(Some(key), EventKind::Updated { fields: changed })?;
        }
        Ok(())
    }

    /// Starts the finished items of a list over. The list itself has not ended while one of them is failed.
    fn reopen_items(&mut self, key: Key, cascade: bool) -> Decided<()> {
        let mut finished = Vec::new();
        for item in self.items(key)?.into_values() {
            if matches!(self.node(item)?.status_kind, StatusKind::Done | StatusKind::Failed) {
                finished.push(item);
            }
        }
        for key in self.start_over(&finished, How::Reopen, cascade)? {
            self.answer.tasks.push(self.id(key)?);
        }
        Ok(())
    }

    /// Splits the fields of an update into those of the task and its new calls.
    fn take_out_work(&self, key: Key, fields: &Map) -> Decided<(Map, Option<Vec<NewCall>>)> {
        let record = self.look_at(key)?;
        let plan = record.plan.as_deref().map(|plan| self.view.plan(plan)).transpose()?.flatten();
        let mut calls = calls_of_update(&record, plan.as_ref(), fields).map_err(Refusal::from)?;
        if let Some(calls) = &mut calls {
            check_own_fields(&TaskSpec::default(), calls)?;
            // New work is verified as before, unless the update says otherwise.
            if !fields.contains_key("toolCalls") {
                let (kept, is_verified) = (self.known_calls(key)?, !fields.contains_key(VERIFY));
                let kept = kept.iter().filter(|call| match call.spec.part() {
                    CallPart::Work => false,
                    // Those of a new worktree are among the new calls.
                    CallPart::Setup => !fields.contains_key("worktree"),
                    CallPart::Verify => is_verified,
                    CallPart::Artifacts => !fields.contains_key(ARTIFACTS),
                    CallPart::Commit => fields
                        .get("worktree")
                        .is_none_or(|worktree| !matches!(worktree, Value::Null | Value::Bool(false))),
                });
                let of = |call: &CallRecord| NewCall {
                    id: (![CallPart::Work, CallPart::Verify].contains(&call.spec.part()))
                        .then(|| call.id.clone()),
                    spec: call.spec.clone(),
                };
                let kept: Vec<NewCall> = kept.map(of).collect();
                let has_commit = calls.iter().any(|call| call.spec.part() == CallPart::Commit);
                calls.extend(
                    kept.into_iter().filter(|call| !has_commit || call.spec.part() != CallPart::Commit),
                );
            }
        }
        let has_setup = |tree: &Value| tree.get("setup").is_some_and(|setup| !setup.is_null());
        if calls.is_none() && fields.get("worktree").is_some_and(has_setup) {
            let problem = "`setup` has calls: give `run` or `calls` beside it";
            return Err(invalid("worktree", problem).into());
        }
        let rest = fields.clone().into_iter().filter(|(name, _)| calls.is_none() || !is_of_work(name));
        Ok((rest.collect(), calls))
    }

    /// Changes all fields except the calls. Returns the changes.
    fn change_fields(&mut self, key: Key, fields: &Map) -> Decided<BTreeMap<String, Change>> {
        let record = self.task(key)?;
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
        if changed.contains_key("dependencies") {
            self.update_task(key, |_| ())?;
        }
        self.write_changed(key, &record, after, &written_context(&fields))?;
        Ok(changed)
    }

    /// Writes the changed specification, context and origins of a task. `written` is the context that the writer gave.
    pub(super) fn write_changed(
        &mut self,
        key: Key,
        before: &TaskRecord,
        mut after: TaskRecord,
        written: &Map,
    ) -> Decided<()> {
        after.note_writer(Some(before), written, self.writer);
        if after == *before {
            return Ok(());
        }
        self.update_spec(key, |now| {
            now.spec = after.spec;
            now.body.context.clone_from(&after.body.context);
            now.body.origins.clone_from(&after.body.origins);
        })
    }

    /// Gives a task other calls, or decides again where it continues because a field changed that all calls depend on.
    fn change_work(
        &mut self,
        key: Key,
        calls: Option<&[NewCall]>,
        is_whole: bool,
        changed: &mut BTreeMap<String, Change>,
    ) -> Decided<()> {
        self.refuse_for_person(key, "update")?;
        let given: Option<Vec<(Option<CallId>, Shared<CallSpec>)>> =
            calls.map(|calls| calls.iter().map(|call| (call.id.clone(), call.spec.clone())).collect());
        let before = self.known_calls(key)?;
        let standing = self.standing(key)?;
        if standing == Standing::Fixed {
            return self.refuse_changed_work(key, "its tool calls");
        }
        let next = self.continued_calls(key, given.as_ref())?;
        if standing == Standing::Unstarted {
            self.replace_calls(key, next.clone())?;
        } else {
            let mut failed = self.failed_items(key)?;
            failed.push(key);
            let clean_ups = self.clean_ups_behind(&failed)?;
            self.rearm(&clean_ups)?;
            if let Err(conflict) = self.take_work(key, standing, &next, is_whole)? {
                return Err(Refusal::WorkConflict { conflict }.into());
            }
        }
        let shown = |calls: &[CallRecord]| {
            serde_json::json!(calls.iter().map(|call| (&call.id, &call.spec)).collect::<Vec<_>>())
        };
        let (from, to) = (shown(&before), shown(&next));
        if from != to {
            self.update_task(key, |_| ())?;
            changed.insert("toolCalls".to_owned(), Change { from, to });
        }
        Ok(())
    }

    fn check_changed(&mut self, key: Key, changed: &BTreeMap<String, Change>) -> Decided<()> {
        let record = self.task(key)?;
        check_milestone(&record.spec, !self.calls(key)?.is_empty())?;
        check_rework(&record.spec, self.calls(key)?.iter().map(|call| &*call.spec))?;
        check_approval_after(&record.spec, self.calls(key)?.iter().map(|call| &*call.spec))?;
        check_worktree(&record.spec, self.calls(key)?.iter().map(|call| &*call.spec))?;
        check_trigger(&record.id, &record.spec, !self.dependencies(key)?.is_empty())?;
        if changed.keys().any(|field| field == "toolCalls" || REFERRING.contains(&field.as_str())) {
            self.check_references(key)?;
        }
        if changed.contains_key("dependencies") {
            self.check_references_behind(&[key])?;
        }
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
        let wanted = self.resolve_all(&wanted.unwrap_or_default())?;
        let present: BTreeSet<Key> = self.dependencies(key)?.into_iter().collect();
        if wanted.iter().copied().collect::<BTreeSet<Key>>() != present {
            self.refuse_changed_work(key, "its dependencies")?;
        }
        self.link_to(key, &wanted, changed)
    }

    /// Like [`replace_dependencies`](Self::replace_dependencies), whatever the status of the task is.
    pub(super) fn link_to(
        &mut self,
        key: Key,
        wanted: &[Key],
        changed: &mut BTreeMap<String, Change>,
    ) -> Decided<()> {
        let present = self.dependencies(key)?;
        let (after, before): (BTreeSet<&Key>, BTreeSet<&Key>) =
            (wanted.iter().collect(), present.iter().collect());
        if after == before {
            return Ok(());
        }
        let (from, to) = (serde_json::json!(self.ids_of(&present)?), serde_json::json!(self.ids_of(wanted)?));
        changed.insert("dependencies".to_owned(), Change { from, to });
        for on in before.difference(&after) {
            self.remove_edge(key, **on)?;
        }
        for on in after.difference(&before) {
            self.link(key, **on, true)?;
        }
        Ok(())
    }
}

fn is_of_work(field: &str) -> bool {
    WORK_FIELDS.contains(&field) || [VERIFY, ARTIFACTS].contains(&field) || PROGRAM_FIELDS.contains(&field)
}

/// Returns the calls that the fields of an update give a task; `None` if they leave its calls as they are. The program
/// defaults of its plan apply to them.
///
/// # Errors
/// All errors of the fields that define work.
pub fn calls_of_update(
    record: &TaskRecord,
    plan: Option<&PlanRecord>,
    fields: &Map,
) -> Result<Option<Vec<NewCall>>, PlanErrors> {
    if !fields
        .keys()
        .any(|name| WORK_FIELDS.contains(&name.as_str()) || [VERIFY, ARTIFACTS].contains(&name.as_str()))
    {
        return Ok(None);
    }
    // Expressions in calls may use what a list or a loop gives them.
    let mut task = spec_fields(&record.spec);
    task.extend(fields.clone());
    if record.body.progress.item.is_some() {
        // The list of an item belongs to its parent.
        task.insert("forEach".to_owned(), serde_json::json!({"in": []}));
    }
    task.retain(|name, value| {
        let is_meant = is_of_work(name) || ["name", "forEach", "repeat", "worktree"].contains(&name.as_str());
        is_meant && !value.is_null()
    });
    let defaults = plan.and_then(|plan| plan.header.get("defaults"));
    work_from_json(&Value::Object(task), defaults).map(Some)
}

/// Returns whether a task has to start over before it takes new work. One that has not started takes it as it is, and
/// so does one that waits for something other than a person.
fn has_to_restart(record: &TaskRecord) -> bool {
    match &record.body.state {
        TaskStatus::Todo => record.body.attempt > 0,
        TaskStatus::Blocked { reason } => {
            matches!(**reason, BlockedReason::Manual { .. } | BlockedReason::Interrupted { .. })
        }
        TaskStatus::InProgress { .. }
        | TaskStatus::Done
        | TaskStatus::Failed { .. }
        | TaskStatus::Cancelled { .. }
        | TaskStatus::Skipped { .. } => true,
    }
}
