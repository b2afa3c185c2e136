//! Writing changes.

use rusqlite::params;
use taskpawl_model::{
    CallChange, CallRecord, Changes, EdgeChange, Key, NewEvent, Node, PlanRecord, RunRecord, TaskChange,
    TaskId, TaskRecord, View,
};

use super::excerpt::{self, OfBody};
use super::rows::{Time, to_json};
use super::session::{Live, Session};
use super::view::{POSITION_BITS, sql};
use crate::StoreError;
use crate::words::Code;

/// The columns of a node in their order.
macro_rules! node_params {
    ($node:ident, $gate:ident) => {
        params![
            $node.key.0,
            $node.parent.map(|key| key.0),
            $node.phase.code(),
            $node.work.code(),
            $node.gate_state.code(),
            $node.opens.code(),
            $gate.trigger.code(),
            $gate.entry.code(),
            $node.priority.code(),
            $node.due,
            $gate.dependencies.open,
            $gate.dependencies.done,
            $gate.dependencies.skipped,
            $gate.dependencies.failed,
            $gate.subtasks.open,
            $gate.subtasks.finished,
            $gate.subtasks.failed,
            $gate.undecided,
        ]
    };
}

impl Session {
    /// Writes `changes` into the transaction and returns the revision of the last event.
    pub(super) fn apply(&mut self, changes: &Changes) -> Result<u64, StoreError> {
        for (key, change) in &changes.tasks {
            self.put_task(*key, change)?;
        }
        for node in changes.nodes.values() {
            self.put_node(node)?;
        }
        for ((key, position), change) in &changes.calls {
            self.put_call(*key, *position, change)?;
        }
        for edge in &changes.edges {
            self.put_edge(*edge)?;
        }
        for (key, spec) in &changes.applied {
            let sql = "INSERT INTO applied VALUES (?1, ?2) ON CONFLICT DO UPDATE SET spec = excluded.spec";
            self.execute(sql, params![key.0, spec])?;
        }
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
        for event in &changes.events {
            self.put_event(event)?;
        }
        self.put_image(changes)?;
        if let Some(done) = &changes.request {
            let sql = "INSERT INTO requests VALUES (?1, ?2, ?3)";
            self.execute(sql, params![done.actor, done.request, self.json(done)?])?;
        }
        Ok(self.live().counters.revision)
    }

    fn live(&mut self) -> &mut Live {
        self.live.as_mut().expect("BUG: changes are applied within a transaction")
    }

    /// Returns `value` as JSON text.
    fn json(&self, value: &impl serde::Serialize) -> Result<String, StoreError> {
        to_json(value).map_err(|error| self.error(error))
    }

    fn put_task(&mut self, key: Key, change: &TaskChange) -> Result<(), StoreError> {
        let record = &change.record;
        self.live().known.get_mut().note_task(key, record.clone());
        if change.is_new {
            return self.insert_task(key, record);
        }
        let body = self.json(&record.body)?;
        let excerpt = OfBody::new(&record.body);
        let sql =
            "UPDATE bodies SET version = ?2, updated = ?3, body = ?4, holder = ?5, took = ?6 WHERE key = ?1";
        let (version, updated) = (integer(record.version), Time(record.updated_at));
        self.execute(sql, params![key.0, version, updated, body, excerpt.holder, excerpt.took])?;
        if change.spec_changed {
            let sql = "UPDATE tasks SET plan = ?2, assignee = ?3, spec = ?4, estimate = ?5 WHERE key = ?1";
            let (spec, estimate) = (self.json(&record.spec)?, excerpt::estimate(&record.spec));
            self.execute(sql, params![key.0, record.plan.as_deref(), record.spec.assignee, spec, estimate])?;
            self.execute("DELETE FROM labels WHERE task = ?1", [key.0])?;
            self.put_labels(key, record)?;
        }
        Ok(())
    }

    fn insert_task(&mut self, key: Key, record: &TaskRecord) -> Result<(), StoreError> {
        let spec = self.json(&record.spec)?;
        let id = record.id.as_str();
        self.execute(
            "INSERT INTO tasks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                key.0,
                id,
                record.plan.as_deref(),
                record.spec.assignee,
                Time(record.created_at),
                spec,
                excerpt::estimate(&record.spec),
            ],
        )?;
        let body = self.json(&record.body)?;
        let excerpt = OfBody::new(&record.body);
        let (version, updated) = (integer(record.version), Time(record.updated_at));
        self.execute(
            "INSERT INTO bodies VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![key.0, version, updated, body, excerpt.holder, excerpt.took],
        )?;
        self.execute("DELETE FROM deleted_ids WHERE id = ?1", [id])?;
        self.put_labels(key, record)?;
        let counters = &mut self.live().counters;
        counters.next_key = counters.next_key.max(key.0 + 1);
        Ok(())
    }

    fn put_labels(&self, key: Key, record: &TaskRecord) -> Result<(), StoreError> {
        for label in &record.spec.labels {
            self.execute("INSERT OR IGNORE INTO labels VALUES (?1, ?2)", params![key.0, label])?;
        }
        Ok(())
    }

    fn put_node(&mut self, node: &Node) -> Result<(), StoreError> {
        match self.node(node.key).map_err(StoreError::from_view)? {
            None => self.insert_node(node)?,
            Some(old) if old == *node => return Ok(()),
            Some(old) if has_same_place(&old, node) => self.update_counts(node)?,
            Some(old) => {
                self.update_node(node)?;
                let count = self.live().counters.of(old.phase.status());
                *count = count.saturating_sub(1);
                *self.live().counters.of(node.phase.status()) += 1;
            }
        }
        self.live().known.get_mut().note_node(*node);
        Ok(())
    }

    pub(super) fn insert_node(&mut self, node: &Node) -> Result<(), StoreError> {
        let Node { gate, .. } = node;
        let sql = "INSERT INTO nodes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
        self.execute(sql, node_params!(node, gate))?;
        *self.live().counters.of(node.phase.status()) += 1;
        Ok(())
    }

    /// Writes the columns that no index knows.
    fn update_counts(&self, node: &Node) -> Result<(), StoreError> {
        let Node { gate, .. } = node;
        let sql = "UPDATE nodes SET opens = ?2, entry = ?3, dependencies_open = ?4, dependencies_done = ?5, \
             dependencies_skipped = ?6, dependencies_failed = ?7, subtasks_open = ?8, subtasks_finished = ?9, \
             subtasks_failed = ?10, undecided = ?11 WHERE key = ?1";
        let params = params![
            node.key.0,
            node.opens.code(),
            gate.entry.code(),
            gate.dependencies.open,
            gate.dependencies.done,
            gate.dependencies.skipped,
            gate.dependencies.failed,
            gate.subtasks.open,
            gate.subtasks.finished,
            gate.subtasks.failed,
            gate.undecided,
        ];
        self.execute(sql, params).map(drop)
    }

    /// Writes everything.
    fn update_node(&self, node: &Node) -> Result<(), StoreError> {
        let Node { gate, .. } = node;
        let sql = "UPDATE nodes SET parent = ?2, phase = ?3, work = ?4, gate_state = ?5, opens = ?6, gate_trigger = ?7, \
             entry = ?8, priority = ?9, due = ?10, dependencies_open = ?11, dependencies_done = ?12, \
             dependencies_skipped = ?13, dependencies_failed = ?14, subtasks_open = ?15, subtasks_finished = ?16, \
             subtasks_failed = ?17, undecided = ?18 WHERE key = ?1";
        self.execute(sql, node_params!(node, gate)).map(drop)
    }

    fn put_call(&mut self, key: Key, position: u32, change: &CallChange) -> Result<(), StoreError> {
        let slot = self.slot(key, position)?;
        let known = self.live().known.get_mut();
        match &change.record {
            Some(call) if !change.spec_changed => known.note_call(key, call),
            Some(_) | None => known.forget_calls(key),
        }
        let Some(CallRecord { id, spec, origin, body }) = &change.record else {
            return self.execute("DELETE FROM calls WHERE slot = ?1", [slot]).map(drop);
        };
        let is_running = excerpt::is_running(body);
        let body = self.json(body)?;
        if !change.spec_changed {
            let sql = "UPDATE calls SET body = ?2, is_running = ?3 WHERE slot = ?1";
            return self.execute(sql, params![slot, body, is_running]).map(drop);
        }
        let sql = "INSERT OR REPLACE INTO calls VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let spec = self.json(spec)?;
        self.execute(sql, params![slot, id.as_str(), origin.as_str(), spec, body, is_running]).map(drop)
    }

    fn slot(&self, key: Key, position: u32) -> Result<i64, StoreError> {
        if position >> POSITION_BITS != 0 {
            let detail = format!("a task has more than {} calls", 1 << POSITION_BITS);
            return Err(StoreError::Corrupt { path: self.path.clone(), detail, has_log: true });
        }
        Ok((i64::from(key.0) << POSITION_BITS) + i64::from(position))
    }

    fn put_edge(&self, edge: EdgeChange) -> Result<(), StoreError> {
        let sql = if edge.add {
            "INSERT OR IGNORE INTO dependencies VALUES (?1, ?2)"
        } else {
            "DELETE FROM dependencies WHERE task = ?1 AND dependency = ?2"
        };
        self.execute(sql, [edge.task.0, edge.on.0]).map(drop)
    }

    fn delete(&mut self, key: Key, id: &TaskId, plan: Option<&String>) -> Result<(), StoreError> {
        if let Some(old) = self.node(key).map_err(StoreError::from_view)? {
            let count = self.live().counters.of(old.phase.status());
            *count = count.saturating_sub(1);
            self.live().known.get_mut().forget(key);
        }
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

    fn put_event(&mut self, event: &NewEvent) -> Result<(), StoreError> {
        let counters = &mut self.live().counters;
        counters.revision += 1;
        let revision = integer(counters.revision);
        let ready = if event.ready.is_empty() { None } else { Some(self.json(&event.ready)?) };
        let data = self.json(&event.kind)?;
        let run = event.run.as_ref().map(taskpawl_model::RunId::as_str);
        let (key, id) = event.task.as_ref().map(|(key, id)| (key.0, id.as_str())).unzip();
        self.execute(
            "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![revision, Time(event.at), event.actor.as_str(), run, key, id, data, ready],
        )
        .map(drop)
    }

    /// Keeps what the command changed, as it was before.
    fn put_image(&mut self, changes: &Changes) -> Result<(), StoreError> {
        let (Some(image), Some(event)) = (&changes.image, changes.events.first()) else { return Ok(()) };
        let last = self.live().counters.revision;
        let first = integer(last + 1 - changes.events.len() as u64);
        let last = integer(last);
        let undoes = changes.undoes.map(integer);
        let sql = "INSERT INTO undo VALUES (?1, ?2, ?3, ?4, NULL, ?5)";
        self.execute(sql, params![last, first, event.actor.as_str(), undoes, self.json(image)?])?;
        let others = changes.undone_by.iter().map(|(undone, by)| (integer(*undone), by.map(integer)));
        for (undone, by) in undoes.map(|undone| (undone, Some(last))).into_iter().chain(others) {
            self.execute("UPDATE undo SET undone_by = ?2 WHERE revision = ?1", params![undone, by])?;
        }
        Ok(())
    }

    /// Writes the numbers that changed during the transaction.
    pub(super) fn put_counters(&self) -> Result<(), StoreError> {
        let Some(Live { before, counters, .. }) = &self.live else { return Ok(()) };
        if before == counters {
            return Ok(());
        }
        let [todo, in_progress, blocked, done, failed, cancelled, skipped] = counters.tasks.map(integer);
        let sql = "UPDATE counters SET revision = ?1, next_key = ?2, todo = ?3, in_progress = ?4, blocked = ?5, \
             done = ?6, failed = ?7, cancelled = ?8, skipped = ?9";
        let (revision, next_key) = (integer(counters.revision), counters.next_key);
        let params =
            params![revision, next_key, todo, in_progress, blocked, done, failed, cancelled, skipped];
        self.execute(sql, params).map(drop)
    }
}

/// Returns whether the nodes differ at most in columns that no index knows.
fn has_same_place(old: &Node, new: &Node) -> bool {
    let place = |node: &Node| {
        (node.parent, node.phase, node.work, node.gate_state, node.gate.trigger, node.priority, node.due)
    };
    place(old) == place(new)
}

/// SQLite has signed numbers only; ours never come near the difference.
fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
