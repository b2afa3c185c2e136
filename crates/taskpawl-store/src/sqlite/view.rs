//! [`View`] over a connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::params;
use taskpawl_model::command::RequestRecord;
use taskpawl_model::task::Event;
use taskpawl_model::task::{
    Actor, CallRecord, KeySpace, Node, PlanRecord, RunRecord, SignalRecord, Status, TaskRecord, Work,
};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{Key, Period, RunId, TaskId};
use taskpawl_model::view::DurationSource;
use taskpawl_model::view::{
    EventQuery, FindTasks, Query, ReadGraph, ReadHistory, ReadRuns, ReadTasks, UndoSnapshot, Undoable,
    ViewResult, Waits,
};

use super::cache::TransactionCache;
use super::excerpt::{NEVER, SEVERAL};
use super::find::Statement;
use super::session::Session;
use super::{history, rows};
use crate::words::Code as _;

/// The low bits of a slot, which hold the position of a call within its task.
pub(super) const POSITION_BITS: u32 = 24;

impl Session {
    fn keys(&self, sql: &str, key: Key) -> ViewResult<Vec<Key>> {
        self.all(sql, [key.0], |row| Ok(Key(row.get(0)?)))
    }

    fn stored_task(&self, key: Key) -> ViewResult<Option<TaskRecord>> {
        self.one(sql::TASK, [key.0], rows::task)
    }

    fn stored_calls(&self, key: Key) -> ViewResult<Vec<CallRecord>> {
        let first = i64::from(key.0) << POSITION_BITS;
        self.all(sql::CALLS, [first, first + (1 << POSITION_BITS)], rows::call)
    }

    /// Returns whether there are deleted tasks, whose ids stay reserved. Most stores have none, so a
    /// transaction asks only once.
    pub(super) fn has_deleted(&self) -> ViewResult<bool> {
        if let Some(known) = self.live.as_ref().and_then(|live| live.has_deleted.get()) {
            return Ok(known);
        }
        let found = self.one("SELECT 1 FROM deleted_ids LIMIT 1", [], |_| Ok(()))?.is_some();
        if let Some(live) = &self.live {
            live.has_deleted.set(Some(found));
        }
        Ok(found)
    }

    /// Returns a cached value. Only transactions of the writing connection have a cache.
    fn of_known<T>(&self, ask: impl FnOnce(&TransactionCache) -> Option<T>) -> Option<T> {
        self.live.as_ref().and_then(|live| ask(&live.known.borrow()))
    }

    /// Adds to the cache, if there is one.
    fn note(&self, note: impl FnOnce(&mut TransactionCache)) {
        if let Some(live) = &self.live {
            note(&mut live.known.borrow_mut());
        }
    }

    /// Reads a node from the database, bypassing the cache.
    pub(super) fn stored_node(&self, key: Key) -> ViewResult<Option<Node>> {
        self.one(rows::select_node!("WHERE key = ?1"), [key.0], rows::node)
    }
}

/// The texts of the statements, public to the tests that check their query plans.
pub(super) mod sql {
    use super::rows;

    /// Builds a statement on the requests before a time in nanoseconds, compared in milliseconds. A damaged
    /// record has no known time, so the statement never matches it.
    macro_rules! done_before {
        ($what:literal) => {
            concat!(
                $what,
                " FROM requests WHERE CASE WHEN json_valid(record) \
                 THEN CAST(unixepoch(json_extract(record, '$.at'), 'subsec') * 1000 + 0.5 AS INTEGER) END < ?1 / 1000000"
            )
        };
    }

    pub(crate) const TASK: &str = "SELECT id, plan, created, spec, version, updated, body FROM tasks CROSS JOIN bodies USING (key) WHERE key = ?1";
    pub(crate) const CALLS: &str =
        "SELECT id, origin, spec, body FROM calls WHERE slot >= ?1 AND slot < ?2 ORDER BY slot";
    pub(crate) const PREFIX: &str = "SELECT id FROM tasks WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3";
    pub(crate) const DEPENDENTS: &str =
        "SELECT task FROM dependencies INDEXED BY dependents WHERE dependency = ?1 ORDER BY task";
    pub(crate) const SUBTASKS: &str =
        "SELECT key FROM nodes INDEXED BY nodes_by_parent WHERE parent = ?1 ORDER BY key";
    pub(crate) const OPEN_RUNS: &str = "SELECT record FROM runs INDEXED BY runs_open \
         WHERE CASE WHEN json_valid(record) THEN coalesce(json_extract(record, '$.finishedAt'), json_extract(record, '$.recoveredAt')) END \
         IS NULL ORDER BY position DESC";
    pub(crate) const LEASES: &str = "SELECT key FROM bodies INDEXED BY leases \
         WHERE holder IS NOT NULL ORDER BY key";
    pub(crate) const LEASES_OF: &str =
        "SELECT key FROM bodies INDEXED BY leases WHERE holder = ?1 ORDER BY key";
    pub(crate) const RUNNING: &str =
        "SELECT slot >> ?1 FROM calls INDEXED BY calls_running WHERE is_running ORDER BY slot";
    pub(crate) const NEXT_TOOL: &str = "SELECT min(tool) FROM calls INDEXED BY calls_by_tool WHERE tool > ?1";
    pub(crate) const READY_CALLING: &str = "SELECT n.key FROM calls c INDEXED BY calls_by_tool \
         CROSS JOIN nodes n ON n.key = c.slot >> ?1 \
         WHERE c.tool = ?2 AND n.phase = 0 AND n.gate_state = 1 AND n.work = ?3 ORDER BY c.slot";
    /// Has a literal phase: SQLite uses its statistics for a literal, but not for a parameter.
    pub(crate) const ON_HOLD: &str =
        "SELECT key FROM nodes INDEXED BY nodes_by_phase WHERE phase = 4 ORDER BY key LIMIT ?1";
    /// Selects `todo` tasks with an undecided gate. It already leaves out most tasks that cannot start yet:
    /// `entry = 0` is an open entry, and trigger 0 waits for all dependencies.
    pub(crate) const UNDECIDED: &str = rows::select_node!(
        "WHERE phase = 0 AND undecided = 1 AND entry = 0 AND (dependencies_open = 0 OR gate_trigger <> 0)"
    );
    pub(crate) const TOOK: &str = "SELECT key, took FROM bodies INDEXED BY took WHERE took IS NOT NULL";
    pub(crate) const ESTIMATES: &str =
        "SELECT key, estimate FROM tasks INDEXED BY estimates WHERE estimate IS NOT NULL";
    pub(crate) const EVENTS: &str = "SELECT revision, at, actor, run, task_id, data, ready, actor_kind FROM events \
         WHERE revision > ?1 ORDER BY revision LIMIT ?2";
    pub(crate) const EVENTS_OF_TASK: &str = "SELECT revision, at, actor, run, task_id, data, ready, actor_kind FROM events INDEXED BY events_by_task \
         WHERE task = ?3 AND revision > ?1 ORDER BY revision LIMIT ?2";
    /// Commands do not overlap, so the last command with events up to ?2 is the first one that ends at ?2 or
    /// later.
    pub(crate) const UNDOABLES: &str = "SELECT revision, first, actor, undoes, undone_by FROM undo \
         WHERE revision >= ?1 AND revision <= coalesce((SELECT min(revision) FROM undo WHERE revision >= ?2), ?2) \
         AND first <= ?2 ORDER BY revision";
    pub(crate) const LAST_UNDOABLE: &str = "SELECT revision, first, actor, undoes, undone_by FROM undo INDEXED BY undo_last \
         WHERE actor = ?1 AND undoes IS NULL AND undone_by IS NULL \
         AND coalesce((SELECT actor_kind FROM events WHERE events.revision = undo.revision), ?2) = ?2 \
         ORDER BY revision DESC LIMIT 1";
    pub(crate) const WAITING: &str =
        "SELECT key FROM bodies INDEXED BY wakes WHERE wakes IS NOT NULL ORDER BY key";
    pub(crate) const DUE: &str = "SELECT key FROM bodies INDEXED BY wakes WHERE wakes <= ?1 ORDER BY key";
    pub(crate) const NEXT_WAKE: &str =
        "SELECT wakes FROM bodies INDEXED BY wakes WHERE wakes IS NOT NULL ORDER BY wakes LIMIT 1";
    pub(crate) const WAITING_FOR_SIGNAL: &str =
        "SELECT key FROM bodies INDEXED BY waits_for_signals WHERE signal IN (?1, ?2) ORDER BY key";
    pub(crate) const SIGNALS: &str = "SELECT record FROM signals ORDER BY position";
    pub(crate) const SIGNALS_OF: &str =
        "SELECT record FROM signals INDEXED BY signals_by_name WHERE name = ?1 ORDER BY position";
    pub(crate) const REQUESTS_BEFORE: &str = done_before!("SELECT count(*)");
    pub(crate) const FORGET_REQUESTS: &str = done_before!("DELETE");
}

impl ReadTasks for Session {
    fn key(&self, id: &str) -> ViewResult<Option<Key>> {
        if let Some(key) = self.of_known(|known| known.key(id)) {
            return Ok(Some(key));
        }
        self.one("SELECT key FROM tasks WHERE id = ?1", [id], |row| Ok(Key(row.get(0)?)))
    }

    fn id(&self, key: Key) -> ViewResult<Option<TaskId>> {
        if let Some(id) = self.of_known(|known| known.task(key).map(|task| task.id.clone())) {
            return Ok(Some(id));
        }
        self.one("SELECT id FROM tasks WHERE key = ?1", [key.0], |row| Ok(TaskId::new(rows::text(row, 0)?)))
    }

    fn ids_with_prefix(&self, prefix: &str, limit: usize) -> ViewResult<Vec<TaskId>> {
        // The largest character as an exclusive upper bound turns the prefix into an index range.
        let end = format!("{prefix}{}", char::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.all(sql::PREFIX, params![prefix, end, limit], |row| Ok(TaskId::new(rows::text(row, 0)?)))
    }

    fn deleted_id(&self, id: &str) -> ViewResult<Option<Option<String>>> {
        if self.live.is_some() && !self.has_deleted()? {
            return Ok(None);
        }
        self.one("SELECT plan FROM deleted_ids WHERE id = ?1", [id], |row| row.get(0))
    }

    fn next_key(&self) -> ViewResult<Key> {
        Ok(Key(self.counters()?.next_key))
    }

    fn task(&self, key: Key) -> ViewResult<Option<TaskRecord>> {
        let known = self.of_known(|known| known.task(key).cloned());
        if known.is_some() {
            return Ok(known);
        }
        let task = self.stored_task(key)?;
        if let Some(task) = &task {
            self.note(|known| known.note_task(key, task.clone()));
        }
        Ok(task)
    }

    fn calls(&self, key: Key) -> ViewResult<Vec<CallRecord>> {
        if let Some(known) = self.of_known(|known| known.calls(key)) {
            return Ok(known);
        }
        let calls = self.stored_calls(key)?;
        self.note(|known| known.note_calls(key, calls.clone()));
        Ok(calls)
    }

    fn applied(&self, key: Key) -> ViewResult<Option<String>> {
        self.one("SELECT spec FROM applied WHERE key = ?1", [key.0], |row| row.get(0))
    }

    fn plan(&self, name: &str) -> ViewResult<Option<PlanRecord>> {
        self.one("SELECT record FROM plans WHERE name = ?1", [name], |row| rows::json(row, 0))
    }

    fn plans(&self) -> ViewResult<Vec<PlanRecord>> {
        self.all("SELECT record FROM plans ORDER BY name", [], |row| rows::json(row, 0))
    }
}

impl ReadGraph for Session {
    fn node(&self, key: Key) -> ViewResult<Option<Node>> {
        let known = self.of_known(|known| known.node(key));
        if known.is_some() {
            return Ok(known);
        }
        let node = self.stored_node(key)?;
        if let Some(node) = node {
            self.note(|known| known.note_node(node));
        }
        Ok(node)
    }

    fn dependencies(&self, key: Key) -> ViewResult<Vec<Key>> {
        if let Some(known) = self.of_known(|known| known.dependencies(key)) {
            return Ok(known);
        }
        let sql = "SELECT dependency FROM dependencies WHERE task = ?1 ORDER BY dependency";
        let on = self.keys(sql, key)?;
        self.note(|known| known.note_dependencies(key, &on));
        Ok(on)
    }

    fn dependents(&self, key: Key) -> ViewResult<Vec<Key>> {
        self.keys(sql::DEPENDENTS, key)
    }

    fn subtasks(&self, key: Key) -> ViewResult<Vec<Key>> {
        if let Some(known) = self.of_known(|known| known.subtasks(key)) {
            return Ok(known);
        }
        let below = self.keys(sql::SUBTASKS, key)?;
        self.note(|known| known.note_subtasks(key, &below));
        Ok(below)
    }

    fn each_node(&self, each: &mut dyn FnMut(Node)) -> ViewResult<()> {
        self.each(rows::select_node!("ORDER BY key"), [], |row| {
            each(rows::node(row)?);
            Ok(())
        })
    }

    fn each_dependency(&self, each: &mut dyn FnMut(Key, Key)) -> ViewResult<()> {
        self.each("SELECT task, dependency FROM dependencies ORDER BY task, dependency", [], |row| {
            each(Key(row.get(0)?), Key(row.get(1)?));
            Ok(())
        })
    }

    fn counts(&self) -> ViewResult<BTreeMap<Status, u64>> {
        let mut counters = self.counters()?;
        Ok(Status::ALL.iter().map(|status| (*status, *counters.of(*status))).collect())
    }
}

impl FindTasks for Session {
    fn find(&self, query: &Query) -> ViewResult<Vec<Key>> {
        self.find_keys(query)
    }

    fn leases(&self, actor: Option<&str>) -> ViewResult<Vec<Key>> {
        let key = |row: &rusqlite::Row<'_>| Ok(Key(row.get(0)?));
        let Some(holder) = actor else { return self.all(sql::LEASES, [], key) };
        if let Some(known) = self.of_known(|known| known.leases(holder)) {
            return Ok(known);
        }
        let held = self.all(sql::LEASES_OF, [holder], key)?;
        self.note(|known| known.note_leases(holder, &held));
        Ok(held)
    }

    fn running(&self) -> ViewResult<Vec<Key>> {
        let mut keys = self.all(sql::RUNNING, [POSITION_BITS], |row| Ok(Key(row.get(0)?)))?;
        keys.dedup();
        Ok(keys)
    }

    fn on_hold(&self, limit: usize) -> ViewResult<Vec<Key>> {
        self.all(sql::ON_HOLD, [or_all(limit)], |row| Ok(Key(row.get(0)?)))
    }

    fn tools(&self) -> ViewResult<Vec<String>> {
        let mut tools: Vec<String> = Vec::new();
        loop {
            // Skip scan: each query jumps to the next name, so the cost does not depend on the number of
            // calls per tool.
            let last = tools.last().map_or("", String::as_str);
            let next: Option<Option<String>> = self.one(sql::NEXT_TOOL, [last], |row| row.get(0))?;
            match next.flatten() {
                Some(tool) => tools.push(tool),
                None => return Ok(tools),
            }
        }
    }

    fn ready_calling(&self, tool: &str, limit: usize) -> ViewResult<Vec<Key>> {
        let mut keys: Vec<Key> = Vec::new();
        self.until(sql::READY_CALLING, params![POSITION_BITS, tool, Work::Calls.code()], |row| {
            let key = Key(row.get(0)?);
            // The calls of one task are adjacent in slot order.
            if keys.last() != Some(&key) {
                keys.push(key);
            }
            Ok(keys.len() != limit)
        })?;
        Ok(keys)
    }

    fn to_be_opened(&self) -> ViewResult<Vec<Key>> {
        let nodes = self.all(sql::UNDECIDED, [], rows::node)?;
        Ok(nodes.iter().filter(|node| node.gate.is_to_be_opened()).map(|node| node.key).collect())
    }

    fn waiting(&self, which: Waits<'_>) -> ViewResult<Vec<Key>> {
        let key = |row: &rusqlite::Row<'_>| Ok(Key(row.get(0)?));
        match which {
            Waits::All => self.all(sql::WAITING, [], key),
            Waits::Due(now) => self.all(sql::DUE, [rows::Time(now)], key),
            Waits::Signal(name) => {
                let mut waiting = Vec::new();
                for key in self.all(sql::WAITING_FOR_SIGNAL, [name, SEVERAL], key)? {
                    let task = self.task(key)?;
                    let wait = task.as_ref().and_then(|task| task.body.progress.waiting_for.as_deref());
                    if wait.is_some_and(|wait| which.is_meant(wait)) {
                        waiting.push(key);
                    }
                }
                Ok(waiting)
            }
        }
    }

    fn next_wake(&self) -> ViewResult<Option<Timestamp>> {
        let first: Option<i64> = self.one(sql::NEXT_WAKE, [], |row| row.get(0))?;
        Ok(first.filter(|wakes| *wakes != NEVER).map(Timestamp::from_timestamp_nanos))
    }

    fn each_duration(&self, each: &mut dyn FnMut(Key, Period, DurationSource)) -> ViewResult<()> {
        for (sql, source) in [(sql::TOOK, DurationSource::Took), (sql::ESTIMATES, DurationSource::Estimate)] {
            self.each(sql, [], |row| {
                // Ignore a duration that another program or version wrote in another form; it is only an
                // estimate.
                if let Ok(period) = rows::text(row, 1)?.parse() {
                    each(Key(row.get(0)?), period, source);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl ReadRuns for Session {
    fn run(&self, id: &RunId) -> ViewResult<Option<RunRecord>> {
        self.one("SELECT record FROM runs WHERE id = ?1", [id.as_str()], |row| rows::json(row, 0))
    }

    fn runs(&self, limit: usize) -> ViewResult<Vec<RunRecord>> {
        let sql = "SELECT record FROM runs ORDER BY position DESC LIMIT ?1";
        self.all(sql, [or_all(limit)], |row| rows::json(row, 0))
    }

    fn open_runs(&self) -> ViewResult<Vec<RunRecord>> {
        self.all(sql::OPEN_RUNS, [], |row| rows::json(row, 0))
    }

    fn pruned_runs(&self, prefix: &str) -> ViewResult<Vec<(RunId, Timestamp)>> {
        let end = format!("{prefix}{}", char::MAX);
        let sql = "SELECT id, at FROM pruned_runs WHERE id >= ?1 AND id < ?2 ORDER BY id";
        self.all(sql, params![prefix, end], |row| Ok((RunId::new(rows::text(row, 0)?), rows::time(row, 1)?)))
    }

    fn signals(&self, name: Option<&str>) -> ViewResult<Vec<SignalRecord>> {
        let record = |row: &rusqlite::Row<'_>| rows::json(row, 0);
        match name {
            None => self.all(sql::SIGNALS, [], record),
            Some(name) => self.all(sql::SIGNALS_OF, [name], record),
        }
    }

    fn key_space(&self) -> ViewResult<Option<KeySpace>> {
        self.one("SELECT record FROM key_space", [], |row| rows::json(row, 0))
    }
}

impl ReadHistory for Session {
    fn revision(&self) -> ViewResult<u64> {
        Ok(self.counters()?.revision)
    }

    fn events(&self, after: u64, task: Option<Key>, limit: usize) -> ViewResult<Vec<Event>> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        match task {
            None => self.all(sql::EVENTS, [after, or_all(limit)], rows::event),
            Some(key) => self.all(sql::EVENTS_OF_TASK, [after, or_all(limit), i64::from(key.0)], rows::event),
        }
    }

    fn find_events(&self, query: &EventQuery) -> ViewResult<Vec<Event>> {
        let Statement { sql, params } = history::statement(query);
        let mut events = self.all(&sql, rusqlite::params_from_iter(params), rows::event)?;
        if query.latest {
            events.reverse();
        }
        Ok(events)
    }

    fn newest_checklists(&self, revision: u64) -> ViewResult<Vec<Event>> {
        let after = i64::try_from(revision).unwrap_or(i64::MAX);
        self.all(&history::newest_checklists(), [after], rows::event)
    }

    fn undoables(&self, first: u64, last: u64) -> ViewResult<Vec<Undoable>> {
        let number = |number| i64::try_from(number).unwrap_or(i64::MAX);
        self.all(sql::UNDOABLES, [number(first), number(last)], rows::undoable)
    }

    fn last_undoable(&self, actor: Actor<'_>) -> ViewResult<Option<Undoable>> {
        self.one(sql::LAST_UNDOABLE, params![actor.name, actor.kind.code()], rows::undoable)
    }

    fn request(&self, actor: Actor<'_>, request: &str) -> ViewResult<Option<RequestRecord>> {
        let sql = "SELECT record FROM requests WHERE actor = ?1 AND request = ?2";
        let read = |key: &str| -> ViewResult<Option<RequestRecord>> {
            let found: Option<RequestRecord> = self.one(sql, [key, request], |row| rows::json(row, 0))?;
            Ok(found.filter(|done| done.is_of(actor)))
        };
        // Versions before 0.2 stored requests under the name of the actor, without its kind.
        Ok(read(&actor.key())?.or(read(actor.name)?))
    }

    fn requests_before(&self, time: Timestamp) -> ViewResult<u64> {
        let count = self.one(sql::REQUESTS_BEFORE, [rows::Time(time)], |row| rows::number(row, 0))?;
        Ok(count.unwrap_or_default())
    }

    fn each_undo_snapshot(&self, each: &mut dyn FnMut(u64, Arc<UndoSnapshot>)) -> ViewResult<()> {
        self.each("SELECT revision, image FROM undo WHERE image IS NOT NULL", [], |row| {
            each(rows::number(row, 0)?, rows::json(row, 1)?);
            Ok(())
        })
    }

    fn undo_snapshot(&self, revision: u64) -> ViewResult<Option<Arc<UndoSnapshot>>> {
        let revision = i64::try_from(revision).unwrap_or(i64::MAX);
        let sql = "SELECT image FROM undo WHERE revision = ?1 AND image IS NOT NULL";
        Ok(self.one(sql, [revision], |row| rows::json(row, 0))?.map(Arc::new))
    }
}

/// Converts a limit for SQLite, where -1 means no limit.
fn or_all(limit: usize) -> i64 {
    if limit == 0 { -1 } else { i64::try_from(limit).unwrap_or(-1) }
}
