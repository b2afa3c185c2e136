//! The tables, and migrations from older schema versions.

use std::path::Path;

use rusqlite::Connection;

use crate::StoreError;
use crate::faults::{self, Fault};

/// The application id of a store file: `TPwl` in ASCII.
const APPLICATION_ID: i64 = 0x5450_776C;

/// The migrations: entry `i` leads from version `i` to version `i + 1`. A published migration never changes.
const MIGRATIONS: &[&str] = &[V1, V2, V3, V4, V5, V6, V7, V8, V9, V10, V11, V12];

/// The migrations that define a schema version.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schema {
    /// Entry `i` leads from version `i` to version `i + 1`.
    pub(super) migrations: &'static [&'static str],
}

impl Schema {
    /// The schema of this program.
    pub(super) const CURRENT: Self = Self { migrations: MIGRATIONS };

    /// Returns the schema version after all migrations.
    pub(super) fn version(self) -> i64 {
        i64::try_from(self.migrations.len()).expect("BUG: there are few migrations")
    }
}

/// Initial schema. Each task is split over tables: SQLite rewrites whole rows, and counters change far more
/// often than texts.
///
/// The slot of a call is `task << 24 | position`, so that the calls of a task are adjacent in one B-tree.
const V1: &str = "
CREATE TABLE tasks (
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, plan TEXT, assignee TEXT, created INTEGER NOT NULL, spec TEXT NOT NULL
);
CREATE INDEX tasks_by_plan ON tasks(plan) WHERE plan IS NOT NULL;
CREATE INDEX tasks_by_assignee ON tasks(assignee) WHERE assignee IS NOT NULL;
CREATE TABLE bodies (
    key INTEGER PRIMARY KEY, version INTEGER NOT NULL, updated INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE TABLE nodes (
    key INTEGER PRIMARY KEY, parent INTEGER, phase INTEGER NOT NULL, work INTEGER NOT NULL, gate_state INTEGER NOT NULL,
    opens INTEGER NOT NULL, gate_trigger INTEGER NOT NULL, entry INTEGER NOT NULL, priority INTEGER NOT NULL, due INTEGER NOT NULL,
    dependencies_open INTEGER NOT NULL, dependencies_done INTEGER NOT NULL, dependencies_skipped INTEGER NOT NULL,
    dependencies_failed INTEGER NOT NULL, subtasks_open INTEGER NOT NULL, subtasks_finished INTEGER NOT NULL,
    subtasks_failed INTEGER NOT NULL, undecided INTEGER NOT NULL
);
CREATE INDEX nodes_by_parent ON nodes(parent) WHERE parent IS NOT NULL;
CREATE INDEX nodes_by_phase ON nodes(phase);
CREATE INDEX nodes_ready ON nodes(work, priority, due) WHERE phase = 0 AND gate_state = 1;
CREATE TABLE calls (
    slot INTEGER PRIMARY KEY, id TEXT NOT NULL, origin TEXT NOT NULL, spec TEXT NOT NULL, body TEXT NOT NULL
);
CREATE TABLE dependencies (
    task INTEGER NOT NULL, dependency INTEGER NOT NULL, PRIMARY KEY (task, dependency)
) WITHOUT ROWID;
CREATE INDEX dependents ON dependencies(dependency, task);
CREATE TABLE labels (task INTEGER NOT NULL, label TEXT NOT NULL, PRIMARY KEY (task, label)) WITHOUT ROWID;
CREATE INDEX labels_by_label ON labels(label, task);
CREATE TABLE applied (key INTEGER PRIMARY KEY, spec TEXT NOT NULL);
CREATE TABLE deleted_ids (id TEXT PRIMARY KEY, plan TEXT) WITHOUT ROWID;
CREATE TABLE plans (name TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL);
CREATE TABLE events (
    revision INTEGER PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, run TEXT, task INTEGER, task_id TEXT,
    data TEXT NOT NULL, ready TEXT
);
CREATE INDEX events_by_task ON events(task) WHERE task IS NOT NULL;
CREATE TABLE counters (
    only INTEGER PRIMARY KEY CHECK (only = 0), revision INTEGER NOT NULL, next_key INTEGER NOT NULL, todo INTEGER NOT NULL,
    in_progress INTEGER NOT NULL, blocked INTEGER NOT NULL, done INTEGER NOT NULL, failed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL, skipped INTEGER NOT NULL
);
INSERT INTO counters VALUES (0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
";

/// Undo snapshots by the revision of the last event of their command, and the ids of pruned runs.
///
/// The snapshot is the last column of its row, so that frequent queries need not read its overflow pages.
const V2: &str = "
CREATE TABLE undo (
    revision INTEGER PRIMARY KEY, first INTEGER NOT NULL, actor TEXT NOT NULL, undoes INTEGER, undone_by INTEGER, image TEXT
);
CREATE INDEX undo_last ON undo(actor, revision) WHERE undoes IS NULL AND undone_by IS NULL;
CREATE TABLE pruned_runs (id TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
";

/// Indexes for leases and open runs, which every command and run reads; both are few among many rows. The
/// `json_valid` checks keep one damaged row from failing the statements on all others.
const V3: &str = "
CREATE INDEX leases ON bodies(CASE WHEN json_valid(body) THEN json_extract(body, '$.state.claim.actor') END)
    WHERE CASE WHEN json_valid(body) THEN json_extract(body, '$.state.claim.leaseUntil') END IS NOT NULL;
CREATE INDEX runs_open ON runs(position)
    WHERE CASE WHEN json_valid(record) THEN coalesce(json_extract(record, '$.finishedAt'), json_extract(record, '$.recoveredAt')) END
    IS NULL;
";

/// Indexes for actual and expected durations: a run reads all of them at its start and must not scan every
/// task.
const V4: &str = "
CREATE INDEX took ON bodies(CASE WHEN json_valid(body) THEN json_extract(body, '$.progress.took') END)
    WHERE CASE WHEN json_valid(body) THEN json_extract(body, '$.progress.took') END IS NOT NULL;
CREATE INDEX estimates ON tasks(CASE WHEN json_valid(spec) THEN json_extract(spec, '$.estimate') END)
    WHERE CASE WHEN json_valid(spec) THEN json_extract(spec, '$.estimate') END IS NOT NULL;
";

/// Index for running calls. A claim of a task with resources reads the resources in use, and thousands of
/// tasks may be between two calls.
const V5: &str = "
CREATE INDEX calls_running ON calls(slot) WHERE CASE WHEN json_valid(body) THEN json_extract(body, '$.status') END = 'running';
";

/// Results of idempotent requests.
const V6: &str = "
CREATE TABLE requests (
    actor TEXT NOT NULL, request TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (actor, request)
) WITHOUT ROWID;
";

/// Index for checklist events, which are few among many others. Every read of a checklist needs all of them.
/// The condition is that of the statement in `history.rs`.
const V7: &str = "
CREATE INDEX events_of_checklists ON events(revision) WHERE substr(data, 1, 19) = '{\"type\":\"checklist\"';
";

/// Replaces expression indexes by columns that repeat values of the JSON text: an expression index makes
/// SQLite parse the text twice on every write.
const V8: &str = "
DROP INDEX leases;
DROP INDEX took;
DROP INDEX estimates;
DROP INDEX calls_running;
ALTER TABLE bodies ADD COLUMN holder TEXT;
ALTER TABLE bodies ADD COLUMN took TEXT;
ALTER TABLE tasks ADD COLUMN estimate TEXT;
ALTER TABLE calls ADD COLUMN is_running INTEGER NOT NULL DEFAULT 0;
UPDATE bodies SET holder = json_extract(body, '$.state.claim.actor')
    WHERE CASE WHEN json_valid(body) THEN json_extract(body, '$.state.claim.leaseUntil') END IS NOT NULL;
UPDATE bodies SET took = json_extract(body, '$.progress.took')
    WHERE CASE WHEN json_valid(body) THEN json_extract(body, '$.progress.took') END IS NOT NULL;
UPDATE tasks SET estimate = json_extract(spec, '$.estimate')
    WHERE CASE WHEN json_valid(spec) THEN json_extract(spec, '$.estimate') END IS NOT NULL;
UPDATE calls SET is_running = 1 WHERE CASE WHEN json_valid(body) THEN json_extract(body, '$.status') END = 'running';
CREATE INDEX leases ON bodies(holder) WHERE holder IS NOT NULL;
CREATE INDEX took ON bodies(took) WHERE took IS NOT NULL;
CREATE INDEX estimates ON tasks(estimate) WHERE estimate IS NOT NULL;
CREATE INDEX calls_running ON calls(slot) WHERE is_running;
";

/// Index for tool names. A status report lists the ready tasks with an unknown tool, and must find them among
/// any number of other ready tasks.
const V9: &str = "
ALTER TABLE calls ADD COLUMN tool TEXT;
UPDATE calls SET tool = CASE WHEN json_valid(spec) THEN json_extract(spec, '$.toolName') END;
CREATE INDEX calls_by_tool ON calls(tool);
";

/// The kind of the actor of an event. It is null in older events, for which only the name is known.
const V10: &str = "
ALTER TABLE events ADD COLUMN actor_kind INTEGER;
";

/// The random prefix of idempotency keys: one record, which most stores write once.
const V11: &str = "
CREATE TABLE key_space (only INTEGER PRIMARY KEY CHECK (only = 0), record TEXT NOT NULL);
";

/// Durable waits and signals. Both columns repeat values of the JSON text: the end of a wait in nanoseconds (the
/// largest number if only a signal ends it), and the name of its signal. Thousands of tasks may wait, and a run has to
/// find the first end without reading them.
const V12: &str = "
ALTER TABLE bodies ADD COLUMN wakes INTEGER;
ALTER TABLE bodies ADD COLUMN signal TEXT;
CREATE INDEX wakes ON bodies(wakes) WHERE wakes IS NOT NULL;
CREATE INDEX waits_for_signals ON bodies(signal) WHERE signal IS NOT NULL;
CREATE TABLE signals (position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, record TEXT NOT NULL);
CREATE INDEX signals_by_name ON signals(name);
";

/// The kind of a database file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An empty database, created by a process that ended before the first migration.
    Empty,
    /// A store of a supported version.
    Store(i64),
}

impl Schema {
    /// Identifies the open file. Writes nothing.
    ///
    /// # Errors
    /// The file belongs to another program, is damaged, or is newer than this program.
    pub(super) fn identify(self, connection: &Connection, path: &Path) -> Result<Kind, StoreError> {
        let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
        let fail = |error| StoreError::sql(path, error);
        let application = number("PRAGMA application_id").map_err(fail)?;
        let version = number("PRAGMA user_version").map_err(fail)?;
        if application == APPLICATION_ID {
            return self.check(version, path).map(Kind::Store);
        }
        let tables = number("SELECT count(*) FROM sqlite_schema").map_err(fail)?;
        if application == 0 && version == 0 && tables == 0 {
            Ok(Kind::Empty)
        } else {
            Err(StoreError::NotAStore { path: path.to_owned() })
        }
    }

    fn check(self, found: i64, path: &Path) -> Result<i64, StoreError> {
        let known = self.version();
        let path = path.to_owned();
        match found {
            ..=0 => {
                let detail = format!("invalid schema version {found}");
                Err(StoreError::Corrupt { path, detail, has_log: true })
            }
            found if found > known => Err(StoreError::Newer { path, found, known }),
            found => Ok(found),
        }
    }

    /// Migrates a database to this version in one transaction. The caller holds the lock and has kept a copy
    /// of the file.
    pub(super) fn migrate(
        self,
        connection: &mut Connection,
        path: &Path,
        from: i64,
    ) -> Result<(), StoreError> {
        let steps = self.migrations.get(usize::try_from(from).unwrap_or(0)..).unwrap_or_default();
        let run = if faults::is_on(Fault::MigrateInPieces) { run_in_pieces } else { run };
        run(connection, steps, self.version()).map_err(|error| StoreError::sql(path, error))
    }
}

fn run(connection: &mut Connection, steps: &[&str], version: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    for step in steps {
        transaction.execute_batch(step)?;
    }
    // Both pragmas write the header page, so they are part of the transaction: a crash leaves the old version
    // or the new one.
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()
}

/// Implements the fault `MigrateInPieces`: every statement commits by itself.
fn run_in_pieces(connection: &mut Connection, steps: &[&str], version: i64) -> rusqlite::Result<()> {
    for step in steps {
        connection.execute_batch(step)?;
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", version)
}
