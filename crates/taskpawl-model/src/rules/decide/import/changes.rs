//! Changes of tasks that are in the store already.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Importing, ONCE, new_calls};
use crate::command::import::{ImportMode, OlderRecord};
use crate::command::refusal::Refusal;
use crate::rules::decide::fields;
use crate::rules::decide::merge::{self, STATE, is_equal, list, said};
use crate::rules::draft::{Decided, Draft};
use crate::task::Change;
use crate::task::event::EventKind;
use crate::task::record::{Note, Work};
use crate::task::wire::Task;
use crate::value::{Key, Map, TaskId, Timestamp};
use crate::view::ReadGraph;

impl Importing<'_> {
    pub(super) fn change_present(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        let mut changes = Vec::new();
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
            changes.push((position, here, wanted));
        }
        // Tasks that change places would wait for each other for a moment: links that end go first.
        let mut ended = BTreeMap::new();
        for (position, here, wanted) in &changes {
            if let Some(before) = self.end_links(draft, *position, here, wanted)? {
                ended.insert(*position, before);
            }
        }
        let mut derived = Vec::new();
        for (position, here, wanted) in changes {
            let has_status = wanted.iter().any(|(field, _)| field == "status");
            if has_status && draft.node(self.key(position))?.work == Work::Automatic {
                derived.push((position, here.clone()));
            }
            let is_changed = self.change_one(draft, position, &here, wanted, ended.remove(&position))?;
            if is_changed {
                let id = self.found[position].task.id.clone();
                self.report.changed.push(id);
            } else {
                self.report.unchanged += 1;
            }
        }
        self.take_states_of_former_parents(draft, derived)
    }

    /// Takes the statuses of tasks whose subtasks all moved away: these no longer follow from anything.
    fn take_states_of_former_parents(
        &mut self,
        draft: &Draft<'_>,
        derived: Vec<(usize, BTreeMap<String, Value>)>,
    ) -> Decided<()> {
        for (position, here) in derived {
            if draft.node(self.key(position))?.work != Work::Automatic
                && self.take_state(draft, position, &here)?
            {
                let id = self.found[position].task.id.clone();
                self.report.changed.push(id);
                self.report.unchanged = self.report.unchanged.saturating_sub(1);
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
        let is_before_change = is_stated
            && there < here_at
            && self.is_changed_since(draft, found.key(), before, found.adapted)?;
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

    /// Removes the dependencies that the source no longer has. Returns those before, if any was removed.
    fn end_links(
        &self,
        draft: &mut Draft<'_>,
        position: usize,
        here: &BTreeMap<String, Value>,
        wanted: &[(String, Value)],
    ) -> Decided<Option<Value>> {
        let found = wanted.iter().find(|(field, _)| field == "dependencies");
        let Some((_, value)) = found.filter(|(field, _)| !self.is_changed_here(position, field, here)) else {
            return Ok(None);
        };
        let key = self.key(position);
        if fields::is_work_fixed(draft.task(key)?.body.state.status()) && !is_over_by_hand(draft, key)? {
            return Ok(None);
        }
        let (after, before) = (list(value), list(here.get("dependencies").unwrap_or(&Value::Null)));
        let left: Vec<&str> = before.iter().copied().filter(|on| after.contains(on)).collect();
        if left.len() == before.len() {
            return Ok(None);
        }
        let (ids, before) = (left.into_iter().map(str::to_owned).collect::<Vec<_>>(), json!(before));
        let left = draft.resolve_all(&ids)?;
        draft.link_to(key, &left, &mut BTreeMap::new())?;
        Ok(Some(before))
    }

    /// Imports changed fields; returns whether anything changed.
    fn change_one(
        &mut self,
        draft: &mut Draft<'_>,
        position: usize,
        here: &BTreeMap<String, Value>,
        wanted: Vec<(String, Value)>,
        links_before: Option<Value>,
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
                "dependencies" => self.take_dependencies(draft, key, &value, &mut changed),
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
        if let Some(from) = links_before {
            let to = json!(draft.ids_of(&draft.dependencies(key)?)?);
            changed.insert("dependencies".to_owned(), Change { from, to });
        }
        draft.write_changed(key, &record, after, &Map::new())?;
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

    /// Imports the dependencies, without those on tasks that the store has deleted.
    fn take_dependencies(
        &self,
        draft: &mut Draft<'_>,
        key: Key,
        value: &Value,
        changed: &mut BTreeMap<String, Change>,
    ) -> Decided<()> {
        let ids = list(value).into_iter().filter(|id| !self.deleted.contains(&TaskId::from(*id)));
        let ids: Vec<String> = ids.map(str::to_owned).collect();
        if is_over_by_hand(draft, key)? {
            let wanted = draft.resolve_all(&ids)?;
            draft.link_to(key, &wanted, changed)
        } else {
            draft.replace_dependencies(key, &json!(ids), changed)
        }
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
        if fields::is_work_fixed(status) || record.body.started_at.is_some() {
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
}

/// Returns whether a task without work of its own is finished: other dependencies change nothing that ran.
fn is_over_by_hand(draft: &Draft<'_>, key: Key) -> Decided<bool> {
    Ok(draft.node(key)?.work == Work::Manual && draft.task(key)?.body.state.status().is_finished())
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

/// Changes a field, or one member of the metadata.
fn change_member(
    record: &mut crate::task::TaskRecord,
    field: &str,
    value: &Value,
    changed: &mut BTreeMap<String, Change>,
) -> Decided<()> {
    match field.strip_prefix("metadata.") {
        Some("context") => {
            // An update merges into the context. Explicit `null`s remove the entries that the source does not have.
            let gone = record.body.context.keys().map(|name| (name.clone(), Value::Null));
            let mut wanted: crate::value::Map = gone.collect();
            wanted.extend(value.as_object().cloned().unwrap_or_default());
            fields::change_field(record, "metadata", &json!({ "context": wanted }), changed)
        }
        Some(member) => fields::change_field(record, "metadata", &json!({ member: value }), changed),
        None => fields::change_field(record, field, value, changed),
    }
}
