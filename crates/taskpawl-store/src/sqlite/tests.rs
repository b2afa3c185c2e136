//! Tests with internal access: query plans, a full disk, schema versions.

use std::path::PathBuf;

use rusqlite::Connection;
use taskpawl_model::command::Command;
use taskpawl_model::task::{
    ActorKind, DependencyCounts, Entry, EventKind, GateState, Node, Priority, Status, StatusKind,
    SubtaskCounts, TaskRecord, Trigger, Work,
};
use taskpawl_model::value::{Key, TaskId};
use taskpawl_model::view::{Changes, EdgeChange, EventQuery, NewEvent, Query, ReadGraph, TaskChange, View};

use super::cache::MAX_NODES;
use super::find::statements;
use super::open::Setup;
use super::schema::Schema;
use super::view::sql;
use super::{Live, SqliteBackend, history, open};
use crate::StoreError;
use crate::backend::Backend;
use crate::testing::{create, request};

struct Scene {
    _directory: tempfile::TempDir,
    path: PathBuf,
    backend: SqliteBackend,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tasks.db");
        let backend = SqliteBackend { path: path.clone(), setup: Setup::REAL, writer: None };
        Self { _directory: directory, path, backend }
    }

    fn write(&mut self, changes: &Changes) -> Result<u64, StoreError> {
        self.backend.begin()?;
        let result = self.backend.apply(changes.clone());
        match result {
            Ok(revision) => self.backend.commit().map(|()| revision),
            Err(error) => {
                self.backend.rollback()?;
                Err(error)
            }
        }
    }
}

fn new_task(key: u32, text: &str) -> Changes {
    let now = chrono::DateTime::from_timestamp(0, 0).unwrap();
    let id = TaskId::from(format!("t{key}"));
    let mut spec = taskpawl_model::task::TaskSpec { name: text.to_owned(), ..Default::default() };
    spec.labels.push("label".to_owned());
    let record = TaskRecord {
        id: id.clone(),
        spec: spec.into(),
        body: taskpawl_model::value::Shared::default(),
        plan: None,
        created_at: now,
        updated_at: now,
        version: 1,
    };
    let event = NewEvent {
        at: now,
        actor: "ann".into(),
        actor_kind: ActorKind::Program,
        run: None,
        task: Some((Key(key), id)),
        kind: EventKind::Noted { text: "x".to_owned() },
        ready: Box::default(),
    };
    let mut changes = Changes::default();
    changes.tasks.insert(Key(key), TaskChange { record, is_new: true, spec_changed: true });
    changes.nodes.insert(Key(key), Node::new(Key(key), Trigger::AllDone, Work::Manual));
    changes.events.push(event);
    changes
}

/// Returns the steps of a query plan that read more rows than necessary.
fn detours(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let binds = statement.parameter_count();
    let parameters = rusqlite::params_from_iter(std::iter::repeat_n(1, binds));
    let steps = statement.query_map(parameters, |row| row.get::<_, String>(3)).unwrap();
    steps.map(Result::unwrap).filter(|step| step.contains("SCAN") || step.contains("TEMP B-TREE")).collect()
}

#[test]
fn statements_read_only_rows_they_return() {
    let mut scene = Scene::new();
    scene.write(&new_task(0, "a")).unwrap();
    let connection = &scene.backend.writer().session.connection;
    let text = || Some("x".to_owned());
    let any = Query::default;
    let queries = [
        Query { ready: Some(vec![Work::Manual]), ..any() },
        Query {
            ready: Some(vec![]),
            labels: vec!["x".to_owned()],
            plan: text(),
            parent: Some(Key(1)),
            ..any()
        },
        Query { ready: Some(vec![]), text: text(), priority: vec![Priority::Low], assignee: text(), ..any() },
        Query { status: vec![Status::Todo], ..any() },
        Query { status: vec![Status::Blocked, Status::Done], text: text(), ..any() },
        Query { plan: text(), status: vec![Status::Failed], ..any() },
        Query { assignee: text(), ..any() },
        Query { labels: vec!["x".to_owned(), "y".to_owned()], ..any() },
        Query { parent: Some(Key(1)), plan: text(), ..any() },
    ];
    for query in &queries {
        for statement in statements(query) {
            assert_eq!(detours(connection, &statement.sql), [""; 0], "{}", statement.sql);
        }
    }
    for sql in [
        sql::PREFIX,
        sql::DEPENDENTS,
        sql::SUBTASKS,
        sql::EVENTS,
        sql::EVENTS_OF_TASK,
        sql::TASK,
        sql::CALLS,
        sql::UNDOABLES,
        sql::LAST_UNDOABLE,
        sql::ON_HOLD,
        sql::NEXT_TOOL,
        sql::READY_CALLING,
    ] {
        assert_eq!(detours(connection, sql), [""; 0], "{sql}");
    }
    for after in [0, 7] {
        for latest in [false, true] {
            let kind = Some("checklist".to_owned());
            let sql = history::statement(&EventQuery { kind, after, latest, ..EventQuery::default() }).sql;
            assert_eq!(detours(connection, &sql), [""; 0], "{sql}");
            assert!(sql.contains("INDEXED BY events_of_checklists"), "{sql}");
        }
    }
    // It reads all checklist events but no others, and of each only the scope.
    let newest = history::newest_checklists();
    assert_eq!(detours(connection, &newest), ["USE TEMP B-TREE FOR GROUP BY"]);
    assert!(newest.contains("INDEXED BY events_of_checklists"), "{newest}");
    assert_eq!(detours(connection, sql::LEASES_OF), [""; 0]);
    // Of two names, each with its keys in order.
    assert_eq!(detours(connection, sql::WAITING_FOR_SIGNAL), ["USE TEMP B-TREE FOR ORDER BY"]);
    assert_eq!(detours(connection, sql::SIGNALS_OF), [""; 0]);
    assert_eq!(detours(connection, sql::NEXT_WAKE), [""; 0]);
    // Few waits are due at once, and sorting them by key is cheap.
    assert_eq!(detours(connection, sql::DUE), ["USE TEMP B-TREE FOR ORDER BY"]);
    // Leases are few, and sorting them by key is cheap.
    assert_eq!(detours(connection, sql::LEASES), ["USE TEMP B-TREE FOR ORDER BY"]);
    assert_eq!(detours(connection, sql::RUNNING), ["SCAN calls USING INDEX calls_running"]);
    assert_eq!(detours(connection, sql::OPEN_RUNS), ["SCAN runs USING INDEX runs_open"]);
    // Listing all tasks by age is a scan, but needs no sort.
    let all = statements(&any()).remove(0).sql;
    assert_eq!(detours(connection, &all), ["SCAN n"]);
}

#[test]
fn a_change_of_counts_rewrites_neither_texts_nor_indexes() {
    let mut scene = Scene::new();
    scene.write(&new_task(0, &"long ".repeat(10_000))).unwrap();
    let size = |scene: &Scene| std::fs::metadata(scene.path.with_extension("db-wal")).unwrap().len();
    let before = size(&scene);
    let mut node = Node::new(Key(0), Trigger::AllDone, Work::Manual);
    node.gate.subtasks.finished = 7;
    let changes = Changes { nodes: [(Key(0), node)].into_iter().collect(), ..Changes::default() };
    scene.write(&changes).unwrap();
    let page = 4096 + 24;
    assert_eq!((size(&scene) - before) / page, 1, "one page of the nodes table changes");
    scene.backend.begin().unwrap();
    assert_eq!(scene.backend.view().node(Key(0)).unwrap(), Some(node));
    scene.backend.rollback().unwrap();
}

#[test]
fn a_full_disk_is_an_error_without_a_partial_write() {
    let mut scene = Scene::new();
    scene.write(&new_task(0, "a")).unwrap();
    let pages = |scene: &mut Scene, count: i64| {
        let connection = &scene.backend.writer().session.connection;
        connection
            .query_row(&format!("PRAGMA max_page_count = {count}"), [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let now = pages(&mut scene, 1);
    let error = scene.write(&new_task(1, &"long ".repeat(100_000))).unwrap_err();
    assert!(matches!(&error, StoreError::Full { path } if *path == scene.path), "{error}");
    pages(&mut scene, now + 10_000);
    assert_eq!(scene.write(&new_task(1, "b")).unwrap(), 2);
    let (_, reader) = open(&scene.path);
    reader
        .read(&mut |view| {
            assert_eq!(view.counts()?[&Status::Todo], 2);
            assert_eq!(view.task(Key(1))?.unwrap().spec.name, "b");
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_newer_file_is_refused_and_left_alone() {
    let mut scene = Scene::new();
    scene.write(&new_task(0, "a")).unwrap();
    let connection = &scene.backend.writer().session.connection;
    let newer = Schema::CURRENT.version() + 1;
    connection.pragma_update(None, "user_version", newer).unwrap();
    let (mut backend, reader) = open(&scene.path);
    for error in [backend.begin().unwrap_err(), reader.read(&mut |_| Ok(())).unwrap_err()] {
        assert!(
            matches!(error, StoreError::Newer { found, known, .. } if (found, known) == (newer, newer - 1)),
            "{error}"
        );
        assert!(error.hint().to_string().contains("newer one"));
    }
}

#[test]
fn unparsable_values_are_damage() {
    let mut scene = Scene::new();
    scene.write(&new_task(0, "a")).unwrap();
    let connection = &scene.backend.writer().session.connection;
    connection.execute("UPDATE nodes SET phase = 99", []).unwrap();
    connection.execute(r#"UPDATE bodies SET body = '{"state": 7}'"#, []).unwrap();
    let (_, reader) = open(&scene.path);
    for look in [|view: &dyn View| view.node(Key(0)).map(drop), |view: &dyn View| view.task(Key(0)).map(drop)]
    {
        let error = reader.read(&mut |view| look(view)).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    }
}

#[test]
fn counters_are_written_once_per_transaction() {
    let mut scene = Scene::new();
    scene.backend.begin().unwrap();
    for key in 0..3 {
        scene.backend.apply(new_task(key, "a")).unwrap();
    }
    let Some(Live { before, counters, .. }) = &scene.backend.writer().session.live else {
        panic!("there is no transaction")
    };
    let counters = counters.get();
    assert_eq!((before.next_key, counters.next_key, counters.revision), (0, 3, 3));
    scene.backend.commit().unwrap();
    scene.backend.begin().unwrap();
    assert_eq!(scene.backend.view().next_key().unwrap(), Key(3));
    scene.backend.rollback().unwrap();
}

#[test]
fn statements_are_planned_once() {
    let mut scene = Scene::new();
    scene.write(&new_task(0, "a")).unwrap();
    let session = &scene.backend.writer().session;
    let mut statement = session.statement(sql::PREFIX).unwrap();
    for prefix in ["a", "t", "x"] {
        let ids =
            statement.query_map((prefix, format!("{prefix}~"), 9), |row| row.get::<_, String>(0)).unwrap();
        assert_eq!(ids.count(), usize::from(prefix == "t"));
    }
    assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
}

#[test]
fn a_closing_writer_truncates_only_a_long_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let log = || std::fs::metadata(directory.path().join("tasks.db-wal")).unwrap().len();
    create_many(&path, 0..10);
    let short = log();
    assert!(short > 0 && short <= super::LONG_LOG, "{short}");
    create_many(&path, 10..3_000);
    assert_eq!(log(), 0);
    let store = crate::open(&crate::Location::Sqlite(path));
    assert_eq!(store.view(|view| view.counts()).unwrap().values().sum::<u64>(), 3_000);
}

/// Nothing but SQLite writes its files: space reserved beyond the last frame would be no whole number of frames.
#[test]
fn the_log_consists_of_frames() {
    let mut scene = Scene::new();
    let log = crate::files::with_suffix(&scene.path, "-wal");
    for key in 0..60 {
        scene.write(&new_task(key, "a")).unwrap();
        let length = std::fs::metadata(&log).unwrap().len();
        assert_eq!((length - 32) % (24 + 4096), 0, "{length} bytes after commit {key}");
    }
}

/// Whichever columns are updated, another connection must read the complete node from the file.
#[test]
fn every_changed_column_of_a_node_is_written() {
    let mut scene = Scene::new();
    let mut changes = new_task(1, "a");
    let mut node = changes.nodes[&Key(1)];
    node.work = Work::Calls;
    node.gate.dependencies = DependencyCounts { open: 11, done: 12, skipped: 13, failed: 14 };
    node.gate.subtasks = SubtaskCounts { open: 15, finished: 16, failed: 17 };
    changes.nodes.insert(Key(1), node);
    scene.write(&changes).unwrap();
    let steps: [fn(&mut Node); 8] = [
        |node| node.gate.dependencies = DependencyCounts { open: 21, done: 22, skipped: 23, failed: 24 },
        |node| {
            node.gate.dependencies = DependencyCounts { open: 31, done: 32, skipped: 33, failed: 34 };
            (node.gate_state, node.opens) = (GateState::Ready, Entry::Open);
        },
        |node| {
            (node.status_kind, node.gate_state, node.opens) =
                (StatusKind::Done, GateState::Skip, Entry::Shut);
        },
        |node| {
            node.gate.dependencies = DependencyCounts { open: 41, done: 42, skipped: 43, failed: 44 };
            (node.status_kind, node.gate_state, node.opens) =
                (StatusKind::Failed, GateState::Block, Entry::Waiting);
        },
        |node| {
            node.gate.dependencies = DependencyCounts { open: 51, done: 52, skipped: 53, failed: 54 };
            node.gate.subtasks = SubtaskCounts { open: 55, finished: 56, failed: 57 };
            (node.opens, node.gate.entry, node.gate.undecided) = (Entry::Open, Entry::Shut, true);
        },
        |node| (node.parent, node.due) = (Some(Key(1)), 7),
        |node| {
            (node.priority, node.work, node.gate.trigger) = (Priority::Low, Work::Manual, Trigger::AnyDone);
        },
        |node| node.status_kind = StatusKind::Todo,
    ];
    for (number, step) in steps.into_iter().enumerate() {
        step(&mut node);
        let mut changes = Changes::default();
        changes.nodes.insert(Key(1), node);
        scene.write(&changes).unwrap();
        let mut other = SqliteBackend { path: scene.path.clone(), setup: Setup::REAL, writer: None };
        other.begin().unwrap();
        assert_eq!(other.view().node(Key(1)).unwrap(), Some(node), "step {number}");
        other.rollback().unwrap();
    }
}

fn create_many(path: &std::path::Path, range: std::ops::Range<u32>) {
    let request = |number: u32| create(&format!("t{number}"), &[]);
    let store = crate::open(&crate::Location::Sqlite(path.to_owned()));
    for outcome in store.write(range.map(request).collect()).unwrap() {
        outcome.unwrap();
    }
}

#[test]
fn gates_left_undecided_by_an_earlier_version_are_decided_by_runs_and_commands() {
    let mut scene = Scene::new();
    for key in 0..3 {
        let mut changes = new_task(key, "kept");
        changes.tasks.get_mut(&Key(key)).unwrap().record.spec.when = Some("true".to_owned());
        let node = changes.nodes.get_mut(&Key(key)).unwrap();
        node.gate.undecided = true;
        (node.gate_state, node.opens) = (node.gate.state(), node.derive_opens());
        scene.write(&changes).unwrap();
    }
    scene.backend.writer = None;
    let store = crate::open(&crate::Location::Sqlite(scene.path.clone()));
    let ready = || {
        let query = Query { ready: Some(vec![Work::Manual]), ..Query::default() };
        store.view(|view| view.find(&query)).unwrap()
    };
    let give = |command| {
        store.write(vec![request(command)]).unwrap().pop().unwrap().unwrap();
    };
    assert_eq!(ready(), []);
    give(Command::Claim {
        id: Some("t1".to_owned()),
        lease: std::time::Duration::from_secs(9),
        capacities: std::collections::BTreeMap::new(),
        writes: std::collections::BTreeMap::new(),
    });
    give(Command::Note { id: "t2".to_owned(), text: "looked".to_owned() });
    assert_eq!(ready(), [Key(2)]);
    let run = serde_json::json!({"id": "r", "scope": [], "actor": "ann", "host": "h", "startedAt": "1970-01-01T00:00:00Z"});
    give(Command::start_run(serde_json::from_value(run).unwrap()));
    assert_eq!(ready(), [Key(0), Key(2)]);
}

#[test]
fn the_cache_notices_commits_of_other_connections() {
    let mut scene = Scene::new();
    let mut changes = new_task(0, "first");
    changes.tasks.get_mut(&Key(0)).unwrap().record.body.state = held();
    scene.write(&changes).unwrap();
    let mut other = SqliteBackend { path: scene.path.clone(), setup: Setup::REAL, writer: None };
    for number in 1..7 {
        // The two writers alternate, so each has a stale cache. Both a read and a transaction must notice
        // that.
        std::mem::swap(&mut scene.backend, &mut other);
        let change = changes.tasks.get_mut(&Key(0)).unwrap();
        (change.is_new, change.record.version) = (false, number);
        scene.write(&changes).unwrap();
        if number % 2 == 0 {
            assert_eq!(looked_at(&mut other), Some(number), "a read does not return a stale version");
        }
        other.begin().unwrap();
        let seen = (other.view().task(Key(0)).unwrap().unwrap().version, other.view().revision().unwrap());
        assert_eq!(seen, (number, number + 1));
        other.rollback().unwrap();
        assert_eq!(looked_at(&mut other), Some(number));
    }
}

/// Returns the version of the only task, read on the writing connection; `None` if that is not open yet.
fn looked_at(backend: &mut SqliteBackend) -> Option<u64> {
    let mut version = None;
    let mut look = |view: &dyn View| {
        version = view.task(Key(0))?.map(|task| task.version);
        Ok(())
    };
    backend.read(&mut look).unwrap();
    version
}

#[test]
fn a_read_after_a_write_uses_the_cache() {
    let mut scene = Scene::new();
    let mut changes = new_task(0, "a");
    scene.write(&changes).unwrap();
    let mut reads = 0;
    for number in 1..4 {
        let change = changes.tasks.get_mut(&Key(0)).unwrap();
        (change.is_new, change.record.version) = (false, number);
        scene.write(&changes).unwrap();
        // Its own connection changes the file without the cache, so a read of 77 proves that the file was
        // read.
        let connection = &scene.backend.writer().session.connection;
        connection.execute("UPDATE bodies SET version = 77", []).unwrap();
        reads += u32::from(looked_at(&mut scene.backend) == Some(77));
    }
    assert_eq!(reads, 0);
    let failed = scene.backend.read(&mut |_| Err(taskpawl_model::view::ViewError("no".into())));
    assert!(failed.is_err());
    assert_eq!(looked_at(&mut scene.backend), Some(77), "an error clears the cache");
}

/// SQLite rolls back by itself after read errors, which a test cannot cause. So this test rolls back
/// directly.
#[test]
fn a_transaction_rolled_back_by_sqlite_writes_nothing() {
    let mut scene = Scene::new();
    scene.write(&new_task(0, "a")).unwrap();
    let counters = |path: &std::path::Path| {
        let connection = Connection::open(path).unwrap();
        let row = connection.query_row("SELECT revision, next_key, todo FROM counters", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        let tasks = connection.query_row("SELECT count(*) FROM tasks", [], |row| row.get::<_, i64>(0));
        (row.unwrap(), tasks.unwrap())
    };
    let before = counters(&scene.path);
    let take_back = |scene: &mut Scene| {
        scene.backend.begin().unwrap();
        scene.backend.apply(new_task(1, "b")).unwrap();
        scene.backend.writer().session.connection.execute("ROLLBACK", []).unwrap();
    };
    take_back(&mut scene);
    let error = scene.backend.commit().unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
    assert_eq!(counters(&scene.path), before);
    take_back(&mut scene);
    let error = scene.backend.apply(new_task(2, "c")).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
    scene.backend.rollback().unwrap();
    assert_eq!(counters(&scene.path), before);
    scene.write(&new_task(1, "b")).unwrap();
    assert_eq!(counters(&scene.path).1, 2, "the next transaction works");
}

#[test]
fn cached_ids_are_used_and_deleted_ones_are_dropped() {
    let mut scene = Scene::new();
    scene.write(&new_task(0, "a")).unwrap();
    scene.backend.begin().unwrap();
    scene.backend.writer().session.connection.execute("UPDATE tasks SET id = 'behind'", []).unwrap();
    assert_eq!(scene.backend.view().key("t0").unwrap(), Some(Key(0)));
    assert_eq!(scene.backend.view().key("behind").unwrap(), Some(Key(0)), "an uncached id is queried");
    let deleted = [(Key(0), TaskId::from("t0"), None)].into_iter().collect();
    scene.backend.apply(Changes { deleted, ..Changes::default() }).unwrap();
    assert_eq!(scene.backend.view().key("t0").unwrap(), None);
    scene.backend.rollback().unwrap();
    scene.backend.begin().unwrap();
    assert_eq!(scene.backend.view().key("t0").unwrap(), Some(Key(0)), "the deletion was rolled back");
}

#[test]
fn cached_edges_and_leases_are_used_and_follow_writes() {
    let mut scene = Scene::new();
    let mut changes = new_tasks(0..4);
    changes.edges.push(EdgeChange { task: Key(1), on: Key(0), add: true });
    scene.write(&changes).unwrap();
    scene.backend.begin().unwrap();
    let seen = |scene: &mut Scene| {
        let view = scene.backend.view();
        let (on, below) = (view.dependencies(Key(1)).unwrap(), view.subtasks(Key(0)).unwrap());
        (on, below, view.leases(Some("ann")).unwrap())
    };
    assert_eq!(seen(&mut scene), (vec![Key(0)], vec![], vec![]));
    let behind = "INSERT INTO dependencies VALUES (1, 3); UPDATE nodes SET parent = 0 WHERE key = 3; \
                  UPDATE bodies SET holder = 'ann' WHERE key = 3";
    scene.backend.writer().session.connection.execute_batch(behind).unwrap();
    assert_eq!(seen(&mut scene), (vec![Key(0)], vec![], vec![]), "the values are cached");

    let mut changes = Changes::default();
    changes.edges.push(EdgeChange { task: Key(1), on: Key(2), add: true });
    scene.backend.apply(changes).unwrap();
    assert_eq!(seen(&mut scene).0, [Key(0), Key(2), Key(3)], "an edge was added");

    let mut changes = Changes::default();
    let moved = Node { parent: Some(Key(0)), ..Node::new(Key(2), Trigger::AllDone, Work::Manual) };
    changes.nodes.insert(Key(2), moved);
    scene.backend.apply(changes).unwrap();
    assert_eq!(seen(&mut scene).1, [Key(2), Key(3)], "a task was moved");
    let mut changes = new_task(4, "below");
    changes.nodes.get_mut(&Key(4)).unwrap().parent = Some(Key(0));
    changes.tasks.get_mut(&Key(4)).unwrap().record.body.state = leased();
    scene.backend.apply(changes).unwrap();
    let (_, below, leases) = seen(&mut scene);
    assert_eq!(below, [Key(2), Key(3), Key(4)], "a task was created");
    assert_eq!(leases, [Key(3), Key(4)], "and claimed");

    let mut changes = new_task(0, "held");
    let change = changes.tasks.get_mut(&Key(0)).unwrap();
    (change.is_new, change.record.body.state) = (false, leased());
    changes.nodes.clear();
    scene.backend.apply(changes).unwrap();
    assert_eq!(seen(&mut scene).2, [Key(0), Key(3), Key(4)], "a task was claimed");
    let deleted = [(Key(0), TaskId::from("t0"), None), (Key(4), TaskId::from("t4"), None)];
    scene.backend.apply(Changes { deleted: deleted.into_iter().collect(), ..Changes::default() }).unwrap();
    assert_eq!(seen(&mut scene), (vec![Key(2), Key(3)], vec![Key(2), Key(3)], vec![Key(3)]));
}

#[test]
fn edges_of_many_tasks_are_not_cached() {
    let mut scene = Scene::new();
    scene.write(&new_tasks(0..200)).unwrap();
    scene.backend.begin().unwrap();
    (0..200).for_each(|key| drop(scene.backend.view().dependencies(Key(key)).unwrap()));
    let known = |scene: &mut Scene| {
        let live = scene.backend.writer().session.live.as_ref();
        let known = live.unwrap().known.borrow();
        (0..200).filter(|key| known.dependencies(Key(*key)).is_some()).count()
    };
    assert_eq!(known(&mut scene), 64);
    scene.backend.commit().unwrap();
    scene.backend.begin().unwrap();
    assert_eq!(known(&mut scene), 0, "a full cache is cleared");
}

#[test]
fn a_task_in_progress_is_read_once() {
    let mut scene = Scene::new();
    let mut changes = new_task(0, "a");
    changes.tasks.get_mut(&Key(0)).unwrap().record.body.state = held();
    scene.write(&changes).unwrap();
    scene.backend.begin().unwrap();
    scene.backend.writer().session.connection.execute("UPDATE bodies SET version = 77", []).unwrap();
    assert_eq!(scene.backend.view().task(Key(0)).unwrap().unwrap().version, 1);
    scene.backend.rollback().unwrap();
    scene.backend.begin().unwrap();
    assert_eq!(scene.backend.writer().session.live.as_ref().unwrap().known.borrow().task(Key(0)), None);
}

/// Each page that a commit changes is one frame in the log. Unchanged index columns must not change pages.
#[test]
fn unchanged_indexes_are_not_written() {
    let mut scene = Scene::new();
    let mut changes = new_task(0, "a");
    changes.tasks.get_mut(&Key(0)).unwrap().record.plan = Some("plan".into());
    scene.write(&changes).unwrap();
    let log = crate::files::with_suffix(&scene.path, "-wal");
    let mut pages_of_update = |change: fn(&mut TaskRecord)| {
        let task = changes.tasks.get_mut(&Key(0)).unwrap();
        (task.is_new, task.record.version) = (false, task.record.version + 1);
        change(&mut task.record);
        let before = std::fs::metadata(&log).unwrap().len();
        scene.backend.begin().unwrap();
        scene.backend.view().task(Key(0)).unwrap();
        scene.backend.apply(changes.clone()).unwrap();
        scene.backend.commit().unwrap();
        (std::fs::metadata(&log).unwrap().len() - before) / (24 + 4096)
    };
    // The task, its body, the event, the index of events by task, and the counters.
    assert_eq!(pages_of_update(|record| record.spec.name = "b".to_owned()), 5);
    assert_eq!(pages_of_update(|record| record.plan = Some("other".into())), 6, "plus the index of plans");
    assert_eq!(pages_of_update(|record| record.spec.labels.clear()), 7, "plus labels and their index");
}

fn leased() -> taskpawl_model::task::TaskStatus {
    let lease_until = chrono::DateTime::from_timestamp(60, 0);
    let claim = taskpawl_model::task::Claim {
        run: None,
        actor: "ann".into(),
        kind: ActorKind::Program,
        lease_until,
        lease: None,
    };
    taskpawl_model::task::TaskStatus::InProgress { claim }
}

fn held() -> taskpawl_model::task::TaskStatus {
    let claim = taskpawl_model::task::Claim {
        run: None,
        actor: "ann".into(),
        kind: ActorKind::Program,
        lease_until: None,
        lease: None,
    };
    taskpawl_model::task::TaskStatus::InProgress { claim }
}

/// Returns one change that creates the tasks with these keys.
fn new_tasks(keys: std::ops::Range<u32>) -> Changes {
    let mut all = Changes::default();
    for one in keys.map(|key| new_task(key, "many")) {
        all.tasks.extend(one.tasks);
        all.nodes.extend(one.nodes);
        all.events.extend(one.events);
    }
    all
}

/// The rows before the conflicting one are already in the transaction, also in other tables.
#[test]
fn a_conflicting_row_rolls_back_the_whole_insert() {
    let mut scene = Scene::new();
    scene.write(&new_task(0, "a")).unwrap();
    let mut changes = new_tasks(1..40);
    changes.tasks.get_mut(&Key(20)).unwrap().record.id = "t0".into();
    assert!(scene.write(&changes).is_err());
    let tables = ["tasks", "bodies", "nodes", "labels", "events"];
    let rows = |scene: &mut Scene| {
        let session = &scene.backend.writer().session;
        let count =
            |table| session.one(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, u32>(0));
        (tables.map(|table| count(table).unwrap().unwrap()), session.counters().unwrap().revision)
    };
    assert_eq!(rows(&mut scene), ([1; 5], 1));
    scene.write(&new_tasks(1..40)).unwrap();
    assert_eq!(rows(&mut scene), ([40; 5], 40));
}

#[test]
fn edges_are_added_and_removed_in_order() {
    let mut scene = Scene::new();
    scene.write(&new_tasks(0..50)).unwrap();
    let edge = |on, add| EdgeChange { task: Key(0), on: Key(on), add };
    let mut changes = Changes { events: new_task(0, "a").events, ..Changes::default() };
    changes.edges.extend([edge(1, true), edge(1, false), edge(2, true), edge(2, false), edge(2, true)]);
    changes.edges.extend((3..40).map(|on| edge(on, true)));
    changes.edges.extend((3..30).map(|on| edge(on, false)));
    changes.edges.extend((40..50).chain([3]).map(|on| edge(on, true)));
    scene.write(&changes).unwrap();
    scene.backend.begin().unwrap();
    let expected: Vec<Key> = [2, 3].into_iter().chain(30..50).map(Key).collect();
    assert_eq!(scene.backend.view().dependencies(Key(0)).unwrap(), expected);
}

/// Of more new nodes than the cache holds nothing is cached, and of existing nodes the written values.
#[test]
fn the_cache_matches_the_file_after_a_very_large_plan() {
    let mut scene = Scene::new();
    scene.write(&new_task(0, "a")).unwrap();
    let mut changes = new_tasks(1..u32::try_from(MAX_NODES).unwrap() + 2);
    let mut node = Node::new(Key(0), Trigger::AllDone, Work::Manual);
    node.gate.dependencies.open = 7;
    changes.nodes.insert(Key(0), node);
    scene.write(&changes).unwrap();
    scene.backend.begin().unwrap();
    let session = &scene.backend.writer().session;
    for key in [0, 1, 2, 65_000, 65_537].map(Key) {
        assert_eq!(session.node(key).unwrap(), session.stored_node(key).unwrap(), "{key}");
    }
    assert_eq!(session.stored_node(Key(0)).unwrap(), Some(node));
}
