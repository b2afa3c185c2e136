//! Writes the changes of a command.

use rusqlite::params;
use taskpawl_model::task::{ActorKind, CallRecord, PlanRecord, RunRecord, TaskRecord};
use taskpawl_model::value::{Key, KeyMap, Shared, TaskId};
use taskpawl_model::view::ReadGraph;
use taskpawl_model::view::{Changes, EdgeChange, NewEvent, SignalChange, TaskChange};

use super::cache::MAX_TASKS;
use super::excerpt::{self, OfBody};
use super::insert::{Values, one};
use super::rows::{Time, to_json};
use super::session::{Counters, Live, Session};
use super::view::{POSITION_BITS, sql};
use crate::StoreError;
use crate::words::Code;

impl Session {
    /// Writes `changes` into the transaction and returns the revision of the last event. After an error the
    /// transaction must be rolled back.
    pub(super) fn apply(&self, changes: &Changes) -> Result<u64, StoreError> {
        self.put_tasks(&changes.tasks)?;
        self.put_nodes(changes)?;
        self.put_calls(changes)?;
        self.put_edges(&changes.edges)?;
        self.put_applied(changes)?;
        for (key, id, plan) in &changes.deleted {
            self.delete(*key, id, plan.as_ref())?;
        }
        for id in &changes.freed {
            self.execute("DELETE FROM deleted_ids WHERE id = ?1", [id.as_str()])?;
        }
        for plan in &changes.plans {
            self.put_plan(plan)?;
        }
        for name in &changes.plans_gone {
            self.execute("DELETE FROM plans WHERE name = ?1", [name])?;
        }
        for run in changes.runs.values() {
            self.put_run(run)?;
        }
        for (id, at) in &changes.runs_gone {
            self.execute("DELETE FROM runs WHERE id = ?1", [id.as_str()])?;
            let sql = "INSERT OR REPLACE INTO pruned_runs VALUES (?1, ?2)";
            self.execute(sql, params![id.as_str(), Time(*at)])?;
        }
        if let Some(last) = changes.images_gone {
            let sql = "UPDATE undo SET image = NULL WHERE revision <= ?1 AND image IS NOT NULL";
            self.execute(sql, [integer(last)])?;
        }
        if let Some(before) = changes.requests_gone {
            self.execute(sql::FORGET_REQUESTS, [Time(before)])?;
        }
        for change in &changes.signals {
            match change {
                SignalChange::Keep(signal) => {
                    let sql = "INSERT INTO signals (id, name, record) VALUES (?1, ?2, ?3)";
                    self.execute(sql, params![signal.id, signal.name, self.json(signal)?])?;
                }
                SignalChange::Remove(id) => drop(self.execute("DELETE FROM signals WHERE id = ?1", [id])?),
            }
        }
        if let Some(space) = &changes.key_space {
            let sql = "INSERT OR REPLACE INTO key_space VALUES (0, ?1)";
            self.execute(sql, [self.json(space)?])?;
        }
        // Events come before the undo snapshot, whose key is the revision of the last one.
        self.put_events(&changes.events)?;
        self.put_undo_snapshot(changes)?;
        if let Some(done) = &changes.request {
            let sql = "INSERT INTO requests VALUES (?1, ?2, ?3)";
            self.execute(sql, params![done.actor_key(), done.request, self.json(done)?])?;
        }
        Ok(self.live().counters.get().revision)
    }

    pub(super) fn live(&self) -> &Live {
        self.live.as_ref().expect("BUG: changes are applied within a transaction")
    }

    /// Serializes `value` as JSON text.
    fn json(&self, value: &impl serde::Serialize) -> Result<String, StoreError> {
        to_json(value).map_err(|error| self.error(error))
    }

    fn put_tasks(&self, tasks: &KeyMap<TaskChange>) -> Result<(), StoreError> {
        let all = tasks.iter().map(|(key, change)| (*key, change));
        let (new, present): (Vec<(Key, &TaskChange)>, Vec<_>) = all.partition(|(_, change)| change.is_new);
        self.insert_tasks(&new.iter().map(|(key, change)| (*key, &change.record)).collect::<Vec<_>>())?;
        self.update_bodies(&present)?;
        for (key, change) in present.iter().filter(|(_, change)| change.spec_changed) {
            let before = self.live().known.borrow().task(*key).cloned();
            self.update_spec(*key, &change.record, before.as_ref())?;
        }
        let mut known = self.live().known.borrow_mut();
        // `trim` would drop a large number of new tasks at the end of the transaction, so do not clone them
        // into the cache.
        let new = new.into_iter().take_while(|_| tasks.len() <= MAX_TASKS);
        present.into_iter().chain(new).for_each(|(key, change)| known.note_task(key, change.record.clone()));
        Ok(())
    }

    fn insert_tasks(&self, new: &[(Key, &TaskRecord)]) -> Result<(), StoreError> {
        self.insert(one::TASK, new, |(key, record), values| {
            let (id, created) = (record.id.as_str(), Time(record.created_at));
            let (spec, estimate) = (self.json(&record.spec)?, excerpt::estimate(&record.spec));
            let (plan, assignee) = (record.plan.as_deref(), record.spec.assignee.as_deref());
            values.give(params![key.0, id, plan, assignee, created, spec, estimate])
        })?;
        let mut bodies = LastJson::default();
        if new.iter().any(|(_, record)| OfBody::new(&record.body).holder.is_some()) {
            self.live().known.borrow_mut().forget_leases();
        }
        self.insert(one::BODY, new, |(key, record), values| {
            let (body, excerpt) = (bodies.of(self, &record.body)?, OfBody::new(&record.body));
            let (version, updated) = (integer(record.version), Time(record.updated_at));
            let OfBody { holder, took, wakes, signal } = excerpt;
            values.give(params![key.0, version, updated, body, holder, took, wakes, signal])
        })?;
        if !new.is_empty() && self.has_deleted().map_err(StoreError::from_view)? {
            for (_, record) in new {
                self.execute("DELETE FROM deleted_ids WHERE id = ?1", [record.id.as_str()])?;
            }
        }
        let labels: Vec<(Key, &str)> = new.iter().flat_map(|(key, record)| labels(*key, record)).collect();
        self.put_labels(&labels)?;
        let next = new.iter().map(|(key, _)| key.0 + 1).max().unwrap_or_default();
        self.live().count(|counters| counters.next_key = counters.next_key.max(next));
        Ok(())
    }

    /// Updates task bodies. If the cache shows that the indexed columns are unchanged, only the text is
    /// updated, so that SQLite does not touch the indexes.
    fn update_bodies(&self, present: &[(Key, &TaskChange)]) -> Result<(), StoreError> {
        const TEXT: &str = "UPDATE bodies SET version = ?2, updated = ?3, body = ?4 WHERE key = ?1";
        const ALL: &str = "UPDATE bodies SET version = ?2, updated = ?3, body = ?4, holder = ?5, took = ?6, wakes = ?7, signal = ?8 WHERE key = ?1";
        let is_known = |(key, change): &&(Key, &TaskChange)| {
            let excerpt = OfBody::new(&change.record.body);
            self.live().known.borrow().task(*key).is_some_and(|before| OfBody::new(&before.body) == excerpt)
        };
        let (known, other): (Vec<&(Key, &TaskChange)>, Vec<_>) = present.iter().partition(is_known);
        if !other.is_empty() {
            self.live().known.borrow_mut().forget_leases();
        }
        self.execute_each(TEXT, &known, |(key, TaskChange { record, .. }), values| {
            let (version, updated) = (integer(record.version), Time(record.updated_at));
            values.give(params![key.0, version, updated, self.json(&record.body)?])
        })?;
        self.execute_each(ALL, &other, |(key, TaskChange { record, .. }), values| {
            let (version, updated) = (integer(record.version), Time(record.updated_at));
            let (body, excerpt) = (self.json(&record.body)?, OfBody::new(&record.body));
            let OfBody { holder, took, wakes, signal } = excerpt;
            values.give(params![key.0, version, updated, body, holder, took, wakes, signal])
        })
    }

    fn update_spec(
        &self,
        key: Key,
        record: &TaskRecord,
        before: Option<&TaskRecord>,
    ) -> Result<(), StoreError> {
        let spec = self.json(&record.spec)?;
        if before.is_some_and(|before| has_same_columns(before, record)) {
            self.execute("UPDATE tasks SET spec = ?2 WHERE key = ?1", params![key.0, spec])?;
        } else {
            let sql = "UPDATE tasks SET plan = ?2, assignee = ?3, spec = ?4, estimate = ?5 WHERE key = ?1";
            let estimate = excerpt::estimate(&record.spec);
            self.execute(sql, params![key.0, record.plan.as_deref(), record.spec.assignee, spec, estimate])?;
        }
        if before.is_some_and(|before| before.spec.labels == record.spec.labels) {
            return Ok(());
        }
        self.execute("DELETE FROM labels WHERE task = ?1", [key.0])?;
        self.put_labels(&labels(key, record).collect::<Vec<_>>())
    }

    fn put_labels(&self, labels: &[(Key, &str)]) -> Result<(), StoreError> {
        self.insert(one::LABEL, labels, |(key, label), values| values.give(params![key.0, label]))
    }

    fn put_calls(&self, changes: &Changes) -> Result<(), StoreError> {
        let (mut new, mut in_place, mut present) = (Vec::new(), Vec::new(), Vec::new());
        for ((key, position), change) in &changes.calls {
            match &change.record {
                Some(call) if !change.spec_changed => present.push((*key, *position, call)),
                Some(call) if is_new(changes, *key) => new.push((*key, *position, call)),
                Some(call) => in_place.push((*key, *position, call)),
                None => self.delete_call(*key, *position)?,
            }
        }
        self.update_calls(&present)?;
        self.insert_calls(one::CALL, &new)?;
        self.insert_calls(one::CALL_IN_PLACE, &in_place)
    }

    fn insert_calls(&self, sql: &str, calls: &[(Key, u32, &CallRecord)]) -> Result<(), StoreError> {
        let mut bodies = LastJson::default();
        self.insert(sql, calls, |(key, position, call), values| {
            let CallRecord { id, spec, origin, body } = call;
            let (slot, tool, is_running) =
                (self.slot(*key, *position)?, spec.tool_name.as_str(), excerpt::is_running(body));
            let (text, body) = (self.json(spec)?, bodies.of(self, body)?);
            values.give(params![slot, id.as_str(), origin.as_str(), text, body, is_running, tool])
        })?;
        let mut known = self.live().known.borrow_mut();
        for (key, ..) in calls {
            known.forget_calls(*key);
        }
        Ok(())
    }

    fn update_calls(&self, calls: &[(Key, u32, &CallRecord)]) -> Result<(), StoreError> {
        const BODY: &str = "UPDATE calls SET body = ?2, is_running = ?3 WHERE slot = ?1";
        self.execute_each(BODY, calls, |(key, position, call), values| {
            self.live().known.borrow_mut().note_call(*key, call);
            let (body, is_running) = (self.json(&call.body)?, excerpt::is_running(&call.body));
            values.give(params![self.slot(*key, *position)?, body, is_running])
        })
    }

    fn delete_call(&self, key: Key, position: u32) -> Result<(), StoreError> {
        self.live().known.borrow_mut().forget_calls(key);
        self.execute("DELETE FROM calls WHERE slot = ?1", [self.slot(key, position)?]).map(drop)
    }

    fn slot(&self, key: Key, position: u32) -> Result<i64, StoreError> {
        if position >> POSITION_BITS != 0 {
            let detail = format!("a task has more than {} calls", 1 << POSITION_BITS);
            return Err(StoreError::Corrupt { path: self.path.clone(), detail, has_log: true });
        }
        Ok((i64::from(key.0) << POSITION_BITS) + i64::from(position))
    }

    fn put_edges(&self, edges: &[EdgeChange]) -> Result<(), StoreError> {
        const REMOVE: &str = "DELETE FROM dependencies WHERE task = ?1 AND dependency = ?2";
        for edge in edges {
            self.live().known.borrow_mut().forget_dependencies(edge.task);
        }
        // Keep the order: a command may remove an edge and add it again.
        for alike in edges.chunk_by(|edge, next| edge.add == next.add) {
            let bind =
                |edge: &EdgeChange, values: &mut Values<'_, '_>| values.give(params![edge.task.0, edge.on.0]);
            if alike.first().is_some_and(|edge| edge.add) {
                self.insert(one::DEPENDENCY, alike, bind)?;
            } else {
                self.execute_each(REMOVE, alike, bind)?;
            }
        }
        Ok(())
    }

    fn put_applied(&self, changes: &Changes) -> Result<(), StoreError> {
        const PUT: &str =
            "INSERT INTO applied VALUES (?1, ?2) ON CONFLICT DO UPDATE SET spec = excluded.spec";
        let (new, present): (Vec<_>, Vec<_>) =
            changes.applied.iter().partition(|(key, _)| is_new(changes, **key));
        let bind =
            |(key, spec): &(&Key, &String), values: &mut Values<'_, '_>| values.give(params![key.0, spec]);
        self.insert(one::APPLIED, &new, bind)?;
        self.execute_each(PUT, &present, bind)
    }

    fn delete(&self, key: Key, id: &TaskId, plan: Option<&String>) -> Result<(), StoreError> {
        if let Some(old) = self.node(key).map_err(StoreError::from_view)? {
            self.live().count(|counters| {
                let count = counters.of(old.status_kind.status());
                *count = count.saturating_sub(1);
            });
        }
        self.live().known.borrow_mut().forget(key);
        for sql in [
            "DELETE FROM tasks WHERE key = ?1",
            "DELETE FROM bodies WHERE key = ?1",
            "DELETE FROM nodes WHERE key = ?1",
            "DELETE FROM applied WHERE key = ?1",
            "DELETE FROM labels WHERE task = ?1",
            "DELETE FROM dependencies WHERE task = ?1",
            "DELETE FROM dependencies INDEXED BY dependents WHERE dependency = ?1",
        ] {
            self.execute(sql, [key.0])?;
        }
        let first = self.slot(key, 0)?;
        let sql = "DELETE FROM calls WHERE slot >= ?1 AND slot < ?2";
        self.execute(sql, [first, first + (1 << POSITION_BITS)])?;
        self.execute("INSERT OR REPLACE INTO deleted_ids VALUES (?1, ?2)", params![id.as_str(), plan])?;
        self.live().has_deleted.set(Some(true));
        Ok(())
    }

    fn put_plan(&self, plan: &PlanRecord) -> Result<(), StoreError> {
        let record = self.json(plan)?;
        self.execute("INSERT OR REPLACE INTO plans VALUES (?1, ?2)", params![plan.name, record]).map(drop)
    }

    fn put_run(&self, run: &RunRecord) -> Result<(), StoreError> {
        let sql = "INSERT INTO runs (id, record) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET record = excluded.record";
        self.execute(sql, params![run.id.as_str(), self.json(run)?]).map(drop)
    }

    fn put_events(&self, events: &[NewEvent]) -> Result<(), StoreError> {
        self.insert(one::EVENT, events, |event, values| {
            self.live().count(|counters| counters.revision += 1);
            let revision = integer(self.live().counters.get().revision);
            let ready = if event.ready.is_empty() { None } else { Some(self.json(&event.ready)?) };
            let data = self.json(&event.kind)?;
            let run = event.run.as_ref().map(taskpawl_model::value::RunId::as_str);
            let (key, id) = event.task.as_ref().map(|(key, id)| (key.0, id.as_str())).unzip();
            let kind = Some(event.actor_kind).filter(|kind| *kind != ActorKind::Unknown).map(Code::code);
            let (at, actor) = (Time(event.at), event.actor.as_str());
            values.give(params![revision, at, actor, run, key, id, data, ready, kind])
        })
    }

    /// Stores the undo snapshot of the command.
    fn put_undo_snapshot(&self, changes: &Changes) -> Result<(), StoreError> {
        let (Some(undo_snapshot), Some(event)) = (&changes.undo_snapshot, changes.events.first()) else {
            return Ok(());
        };
        let last = self.live().counters.get().revision;
        let first = integer(last + 1 - changes.events.len() as u64);
        let last = integer(last);
        let undoes = changes.undoes.map(integer);
        let sql = "INSERT INTO undo VALUES (?1, ?2, ?3, ?4, NULL, ?5)";
        self.execute(sql, params![last, first, event.actor.as_str(), undoes, self.json(undo_snapshot)?])?;
        let others = changes.undone_by.iter().map(|(undone, by)| (integer(*undone), by.map(integer)));
        for (undone, by) in undoes.map(|undone| (undone, Some(last))).into_iter().chain(others) {
            self.execute("UPDATE undo SET undone_by = ?2 WHERE revision = ?1", params![undone, by])?;
        }
        Ok(())
    }

    /// Writes the counters, if the transaction has changed them.
    pub(super) fn put_counters(&self) -> Result<(), StoreError> {
        let Some(live) = &self.live else { return Ok(()) };
        let counters = live.counters.get();
        if live.before == counters {
            return Ok(());
        }
        let (revision, next_key) = (integer(counters.revision), counters.next_key);
        if (Counters { revision: counters.revision, ..live.before }) == counters {
            return self.execute("UPDATE counters SET revision = ?1", [revision]).map(drop);
        }
        let [todo, in_progress, blocked, done, failed, cancelled, skipped] = counters.tasks.map(integer);
        let sql = "UPDATE counters SET revision = ?1, next_key = ?2, todo = ?3, in_progress = ?4, blocked = ?5, \
             done = ?6, failed = ?7, cancelled = ?8, skipped = ?9";
        let params =
            params![revision, next_key, todo, in_progress, blocked, done, failed, cancelled, skipped];
        self.execute(sql, params).map(drop)
    }
}

/// Caches the JSON text of the last shared value: the bodies of new tasks and calls are mostly the same
/// value.
#[derive(Default)]
struct LastJson<T> {
    last: Option<(Shared<T>, String)>,
}

impl<T: Clone + serde::Serialize> LastJson<T> {
    fn of(&mut self, session: &Session, value: &Shared<T>) -> Result<&str, StoreError> {
        let last = self.last.take().filter(|(last, _)| last.is_same_as(value));
        let last = match last {
            Some(last) => last,
            None => (value.clone(), session.json(value)?),
        };
        Ok(&self.last.insert(last).1)
    }
}

fn labels(key: Key, record: &TaskRecord) -> impl Iterator<Item = (Key, &str)> {
    record.spec.labels.iter().map(move |label| (key, label.as_str()))
}

pub(super) fn is_new(changes: &Changes, key: Key) -> bool {
    changes.tasks.get(&key).is_some_and(|change| change.is_new)
}

/// Returns whether the columns beside the specification are equal.
fn has_same_columns(old: &TaskRecord, new: &TaskRecord) -> bool {
    let (before, after) = (&old.spec, &new.spec);
    old.plan == new.plan && before.assignee == after.assignee && before.estimate == after.estimate
}

/// Converts to a signed number, the only kind that SQLite has. Our numbers stay far below the limit.
fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
