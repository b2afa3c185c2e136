//! Finds faults in a database, and repairs them.

use std::collections::BTreeMap;
use std::path::Path;

use taskpawl_model::task::{EventKind, Node, PlanRecord, RunRecord};
use taskpawl_model::value::Key;
use taskpawl_model::view::{ReadHistory, ReadTasks, ViewResult};

use super::cache::TransactionCache;
use super::open::{self, ReadOnly, Setup};
use super::session::{Counters, Live, Session};
use super::view::{POSITION_BITS, sql};
use super::{backup, excerpt, rows};
use crate::StoreError;
use crate::examine::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::examine::{Derived, check_nodes, check_rows};
use crate::files::{self, LockFile};

/// The check name for rows that cannot be parsed.
const UNREADABLE: &str = "unreadable";

const RESTORE: &str = "restore a backup of the store";

/// Selects the tasks with valid keys.
const KEYS: &str = "SELECT key FROM tasks WHERE key BETWEEN 0 AND 4294967294 ORDER BY key";

/// Tables with rows that belong to tasks, each with the condition for a row without its task.
const STRAYS: [(&str, &str); 5] = [
    ("bodies", "key NOT IN (SELECT key FROM tasks)"),
    ("nodes", "key NOT IN (SELECT key FROM tasks)"),
    ("applied", "key NOT IN (SELECT key FROM tasks)"),
    ("labels", "task NOT IN (SELECT key FROM tasks)"),
    ("dependencies", "task NOT IN (SELECT key FROM tasks) OR dependency NOT IN (SELECT key FROM tasks)"),
];

/// Checks the database at `path`.
pub(crate) fn examine(path: &Path) -> Result<Vec<Diagnostic>, StoreError> {
    match open::read_only(path, Setup::REAL)? {
        ReadOnly::Absent => Ok(Vec::new()),
        ReadOnly::Shared(session) | ReadOnly::Frozen(session, None) => look(&session),
        ReadOnly::Frozen(session, Some(_lock)) => look(&session),
    }
}

fn look(session: &Session) -> Result<Vec<Diagnostic>, StoreError> {
    session.execute("BEGIN", [])?;
    let found = all(session).map_err(StoreError::from_view)?;
    session.execute("COMMIT", [])?;
    Ok(found)
}

pub(super) fn all(session: &Session) -> ViewResult<Vec<Diagnostic>> {
    let mut found = integrity(session)?;
    if found.iter().any(|diagnostic| diagnostic.severity == Severity::Damage) {
        // All further faults would be consequences of the damage.
        return Ok(found);
    }
    found.extend(strays(session)?);
    found.extend(excerpt::check(session)?);
    let kept = Kept::read(session)?;
    let keys: Vec<Key> = kept.nodes.keys().copied().collect();
    found.extend(check_rows(session, &keys)?);
    found.extend(numbers(session)?);
    let has_lost_tasks = found.iter().any(|diagnostic| diagnostic.check == UNREADABLE);
    found.extend(records(session)?);
    if has_lost_tasks {
        // Deriving the nodes without the lost tasks would open the gates of their dependents. The stored
        // nodes are the only remaining record of those dependencies, so leave them alone.
        return Ok(found);
    }
    match session.counters() {
        Ok(counters) => {
            let derived = Derived::new(session, &kept.parents)?;
            found.extend(check_nodes(session, &derived, &kept.nodes)?);
            found.extend(revision(session, counters)?);
        }
        Err(_) => found.push(Diagnostic::new(
            "counters",
            Severity::Repairable,
            session.path.display(),
            "its counters are missing or unreadable",
            "recount",
        )),
    }
    Ok(found)
}

/// Runs the integrity check of SQLite. An index can be rebuilt from its table; all other faults are damage.
fn integrity(session: &Session) -> ViewResult<Vec<Diagnostic>> {
    let lines = session.all("PRAGMA integrity_check", [], |row| row.get::<_, String>(0))?;
    let mut damage = Diagnostics::new("integrity", Severity::Damage, RESTORE);
    let mut indexes = Diagnostics::new("index", Severity::Repairable, "rebuild the index from its table");
    for line in lines.iter().flat_map(|line| line.lines()).filter(|line| *line != "ok") {
        let is_index = line.contains("missing from index") || line.contains("entries in index");
        let diagnostics = if is_index { &mut indexes } else { &mut damage };
        diagnostics.add(session.path.display(), line);
    }
    let mut found = damage.finish();
    found.extend(indexes.finish());
    Ok(found)
}

/// Returns all tables with rows that belong to tasks, each with the condition for a row without its task.
fn stray_conditions() -> impl Iterator<Item = (&'static str, String)> {
    let calls = format!("slot >> {POSITION_BITS} NOT IN (SELECT key FROM tasks)");
    STRAYS.into_iter().map(|(table, condition)| (table, condition.to_owned())).chain([("calls", calls)])
}

fn strays(session: &Session) -> ViewResult<Vec<Diagnostic>> {
    let remedy = "remove them; a copy of the store is kept";
    let mut found = Diagnostics::new("stray_row", Severity::Repairable, remedy);
    for (table, condition) in stray_conditions() {
        let sql = format!("SELECT count(*) FROM {table} WHERE {condition}");
        let count: i64 = session.one(&sql, [], |row| row.get(0))?.unwrap_or(0);
        if count > 0 {
            found.add(session.path.display(), format!("{count} rows of `{table}` have no task"));
        }
    }
    Ok(found.finish())
}

/// The stored nodes and parents.
struct Kept {
    /// The stored nodes. `None` for a node that is missing or cannot be parsed.
    nodes: BTreeMap<Key, Option<Node>>,
    parents: BTreeMap<Key, Option<Key>>,
}

impl Kept {
    fn read(session: &Session) -> ViewResult<Self> {
        let mut kept = Self { nodes: BTreeMap::new(), parents: BTreeMap::new() };
        let keys = session.all(KEYS, [], |row| Ok(Key(row.get(0)?)))?;
        kept.nodes.extend(keys.iter().map(|key| (*key, None)));
        session.each(rows::select_node!("ORDER BY key"), [], |row| {
            let Ok(key) = row.get(0).map(Key) else { return Ok(()) };
            let Some(node) = kept.nodes.get_mut(&key) else { return Ok(()) };
            *node = rows::node(row).ok();
            if let Ok(parent) = row.get::<_, Option<u32>>(1) {
                kept.parents.insert(key, parent.map(Key));
            }
            Ok(())
        })?;
        let lost: Vec<Key> = keys.into_iter().filter(|key| !kept.parents.contains_key(key)).collect();
        for key in lost {
            kept.parents.insert(key, parent_in_history(session, key)?);
        }
        Ok(kept)
    }
}

/// Finds the parent of a task in its events. Apart from them only the damaged node row has it.
fn parent_in_history(session: &Session, key: Key) -> ViewResult<Option<Key>> {
    let mut parent = None;
    for event in session.events(0, Some(key), 0)? {
        if let EventKind::Created(created) = event.kind {
            parent = created.parent;
        } else if let EventKind::Moved { to, .. } = event.kind {
            parent = to;
        }
    }
    parent.map_or(Ok(None), |id| session.key(id.as_str()))
}

/// Returns the tasks whose key is out of range.
fn numbers(session: &Session) -> ViewResult<Vec<Diagnostic>> {
    let mut found = Diagnostics::new("number", Severity::Damage, RESTORE);
    session.each("SELECT key, id FROM tasks WHERE key NOT BETWEEN 0 AND 4294967294", [], |row| {
        let key: i64 = row.get(0)?;
        found.add(format!("task `{}`", rows::text(row, 1)?), format!("its key is {key}"));
        Ok(())
    })?;
    Ok(found.finish())
}

/// Checks the events, runs and plans.
fn records(session: &Session) -> ViewResult<Vec<Diagnostic>> {
    let mut found = Diagnostics::new("unreadable", Severity::Damage, RESTORE);
    session.each(sql::EVENTS, [0, -1], |row| {
        let revision: i64 = row.get(0)?;
        if let Err(error) = rows::event(row) {
            found.add(format!("event {revision}"), error.to_string());
        }
        Ok(())
    })?;
    session.each("SELECT id, record FROM runs", [], |row| {
        if let Err(error) = rows::json::<RunRecord>(row, 1) {
            found.add(format!("run `{}`", rows::text(row, 0)?), error.to_string());
        }
        Ok(())
    })?;
    session.each("SELECT name, record FROM plans", [], |row| {
        if let Err(error) = rows::json::<PlanRecord>(row, 1) {
            found.add(format!("plan `{}`", rows::text(row, 0)?), error.to_string());
        }
        Ok(())
    })?;
    Ok(found.finish())
}

fn last_revision(session: &Session) -> ViewResult<u64> {
    let last =
        session.one("SELECT coalesce(max(revision), 0) FROM events", [], |row| rows::number(row, 0))?;
    Ok(last.unwrap_or(0))
}

/// Returns a key that no task has or had, as far as the events show.
fn next_key(session: &Session) -> ViewResult<u32> {
    let sql = "SELECT max((SELECT coalesce(max(key), -1) FROM tasks), (SELECT coalesce(max(task), -1) FROM events)) + 1";
    Ok(session.one(sql, [], |row| row.get(0))?.unwrap_or(0))
}

fn revision(session: &Session, counters: Counters) -> ViewResult<Vec<Diagnostic>> {
    let last = last_revision(session)?;
    let mut found = Diagnostics::new("counters", Severity::Repairable, "recount");
    if counters.revision < last {
        let message = format!("its last event is recorded as {}, but event {last} exists", counters.revision);
        found.add(session.path.display(), message);
    }
    Ok(found.finish())
}

/// Repairs indexes, stray rows, nodes and counters in one transaction. A full copy of the database is kept
/// before.
pub(crate) fn repair(path: &Path) -> Result<(), StoreError> {
    let lock = LockFile::open(path)?;
    lock.lock()?;
    let result = open::writing(path, Setup::REAL).and_then(|mut session| repair_locked(&mut session));
    lock.unlock();
    result
}

fn repair_locked(session: &mut Session) -> Result<(), StoreError> {
    let path = session.path.clone();
    let mut names = (1_u32..).map(|n| files::with_suffix(&path, &format!(".mended-{n}.bak")));
    let kept = names.find(|name| !name.exists()).expect("BUG: there are enough numbers");
    backup::keep(&session.connection, &kept)?;
    session.execute("BEGIN IMMEDIATE", [])?;
    let result = rewrite(session);
    session.live = None;
    match result {
        Ok(()) => session.execute("COMMIT", []).map(drop),
        // The caller drops the connection, which rolls the transaction back.
        Err(error) => Err(error),
    }
}

fn rewrite(session: &mut Session) -> Result<(), StoreError> {
    session.execute("REINDEX", [])?;
    for (table, condition) in stray_conditions() {
        session.execute(&format!("DELETE FROM {table} WHERE {condition}"), [])?;
    }
    excerpt::repair(session)?;
    let kept = Kept::read(session).map_err(StoreError::from_view)?;
    let keys: Vec<Key> = kept.nodes.keys().copied().collect();
    if !check_rows(session, &keys).map_err(StoreError::from_view)?.is_empty() {
        return Ok(());
    }
    let derived = Derived::new(session, &kept.parents).map_err(StoreError::from_view)?;
    let before = session.counters().unwrap_or_default();
    session.execute("INSERT OR REPLACE INTO counters VALUES (0, 0, 0, 0, 0, 0, 0, 0, 0, 0)", [])?;
    session.live = Some(Live::new(Counters::default(), TransactionCache::default()));
    let is_kept = |node: &&Node| kept.nodes.get(&node.key) == Some(&Some(**node));
    let wrong: Vec<&Node> = derived.nodes.values().filter(|node| !is_kept(node)).collect();
    session.execute_each("DELETE FROM nodes WHERE key = ?1", &wrong, |node, values| {
        values.give(&[&node.key.0])
    })?;
    session.insert_nodes(&wrong)?;
    let last = last_revision(session).map_err(StoreError::from_view)?;
    let next = next_key(session).map_err(StoreError::from_view)?;
    session.live.as_ref().expect("BUG: it was put in above").count(|counters| {
        counters.tasks = [0; 7];
        for node in derived.nodes.values() {
            *counters.of(node.status_kind.status()) += 1;
        }
        counters.revision = before.revision.max(last);
        counters.next_key = before.next_key.max(next);
    });
    session.put_counters()
}
