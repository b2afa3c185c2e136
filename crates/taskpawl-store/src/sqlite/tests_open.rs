//! Opening stores in unusual states: older versions, other file system kinds, remains of a dead writer.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use taskpawl_model::task::Status;

use super::open::Setup;
use super::open_with;
use super::schema::Schema;
use crate::file_system::FileSystemKind;
use crate::files::with_suffix;
use crate::handle::Handle;
use crate::{Store, StoreError, testing};

/// A schema after the current one.
const LATER: &str = "CREATE TABLE later (x INTEGER); INSERT INTO later VALUES (7);";
const NEXT: Setup =
    Setup { schema: Schema { migrations: &with_later() }, file_system_kind: Some(FileSystemKind::Local) };
const BAD: Setup = Setup {
    schema: Schema { migrations: &with(["CREATE TABLE later (x); CREATE TABLE tasks (x)"]) },
    file_system_kind: Some(FileSystemKind::Local),
};
const NOW: Setup = Setup { schema: Schema::CURRENT, file_system_kind: Some(FileSystemKind::Local) };
const NETWORK: Setup =
    Setup { schema: Schema::CURRENT, file_system_kind: Some(FileSystemKind::Remote("NFS")) };

const CURRENT: usize = Schema::CURRENT.migrations.len();

const fn with(last: [&'static str; 1]) -> [&'static str; CURRENT + 1] {
    let mut migrations = [last[0]; CURRENT + 1];
    let mut n = 0;
    while n < CURRENT {
        migrations[n] = Schema::CURRENT.migrations[n];
        n += 1;
    }
    migrations
}

const fn with_later() -> [&'static str; CURRENT + 1] {
    with([LATER])
}

struct Scene {
    directory: tempfile::TempDir,
    path: PathBuf,
}

impl Scene {
    /// Returns a store with the task `a`, created with `setup`.
    fn new(setup: Setup) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tasks.db");
        let scene = Self { directory, path };
        create(&scene.open(setup), "a").unwrap();
        scene
    }

    fn open(&self, setup: Setup) -> Arc<dyn Store> {
        let (backend, reader) = open_with(&self.path, setup);
        Arc::new(Handle::new(backend, reader, &self.path))
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn backup(&self) -> PathBuf {
        with_suffix(&self.path, &format!(".v{CURRENT}.bak"))
    }
}

fn create(store: &Arc<dyn Store>, id: &str) -> Result<(), StoreError> {
    store.write(vec![testing::create(id, &[])])?.remove(0).unwrap();
    Ok(())
}

fn count(store: &Arc<dyn Store>) -> u64 {
    store.view(|view| view.counts()).unwrap()[&Status::Todo]
}

fn pragma(path: &Path, name: &str) -> String {
    let connection = Connection::open(path).unwrap();
    let sql = format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}");
    connection.query_row(&sql, [], |row| row.get(0)).unwrap()
}

fn version(path: &Path) -> String {
    pragma(path, "user_version")
}

#[test]
fn a_read_of_an_older_database_changes_nothing_and_a_write_keeps_a_copy() {
    let scene = Scene::new(NOW);
    let before = fs::read(&scene.path).unwrap();
    let handle = scene.open(NEXT);
    assert_eq!(count(&handle), 1);
    assert!(fs::read(&scene.path).unwrap() == before);
    create(&handle, "b").unwrap();
    assert_eq!((count(&handle), count(&scene.open(NEXT))), (2, 2));
    assert_eq!(version(&scene.path), (CURRENT + 1).to_string());
    assert_eq!(version(&scene.backup()), CURRENT.to_string());
    let old = Scene { path: scene.backup(), directory: tempfile::tempdir().unwrap() };
    assert_eq!(count(&old.open(NOW)), 1);
    let error = create(&scene.open(NOW), "c").unwrap_err();
    assert!(matches!(error, StoreError::Newer { .. }), "{error:?}");
}

#[test]
fn a_read_of_an_older_database_without_log_changes_nothing() {
    let scene = Scene::new(NETWORK);
    let before = scene.names();
    let handle = scene.open(Setup { file_system_kind: NETWORK.file_system_kind, ..NEXT });
    assert_eq!((count(&handle), count(&handle)), (1, 1));
    assert_eq!(scene.names(), before);
    assert_eq!(handle.wait_change(0, Duration::ZERO).unwrap(), 1);
}

#[test]
fn a_failed_migration_leaves_the_old_database() {
    let scene = Scene::new(NOW);
    for _ in 0..2 {
        create(&scene.open(BAD), "b").unwrap_err();
        assert_eq!(version(&scene.path), CURRENT.to_string());
        assert_eq!(count(&scene.open(NOW)), 1);
    }
    create(&scene.open(NEXT), "b").unwrap();
    assert_eq!(count(&scene.open(NEXT)), 2);
}

#[test]
fn an_incomplete_copy_of_a_dead_migration_is_replaced() {
    let scene = Scene::new(NOW);
    let fresh = with_suffix(&scene.backup(), ".new");
    fs::write(&fresh, "half a copy").unwrap();
    create(&scene.open(NEXT), "b").unwrap();
    assert!(!fresh.exists());
    assert_eq!(version(&scene.backup()), CURRENT.to_string());
}

#[test]
fn a_backup_never_replaces_another_file_and_is_kept_once() {
    let scene = Scene::new(NOW);
    fs::write(scene.backup(), "of another store").unwrap();
    for _ in 0..2 {
        create(&scene.open(BAD), "b").unwrap_err();
    }
    create(&scene.open(NEXT), "b").unwrap();
    assert_eq!(fs::read_to_string(scene.backup()).unwrap(), "of another store");
    let numbered = |number| with_suffix(&scene.path, &format!(".v{CURRENT}.{number}.bak"));
    assert_eq!(version(&numbered(2)), CURRENT.to_string());
    assert!(!numbered(3).exists(), "{:?}", scene.names());
}

#[test]
fn a_copy_that_cannot_be_made_stops_the_migration() {
    let scene = Scene::new(NOW);
    let fresh = with_suffix(&scene.backup(), ".new");
    fs::create_dir(&fresh).unwrap();
    let error = create(&scene.open(NEXT), "b").unwrap_err();
    assert!(matches!(&error, StoreError::Io { path, .. } if *path == fresh), "{error:?}");
    assert_eq!(version(&scene.path), CURRENT.to_string());
    assert!(!scene.backup().exists());
}

#[test]
fn a_network_file_system_gets_a_journal_without_shared_memory() {
    let scene = Scene::new(NETWORK);
    assert_eq!(pragma(&scene.path, "journal_mode"), "delete", "the header of the file is not in WAL mode");
    assert_eq!(scene.names(), ["tasks.db", "tasks.db-journal", "tasks.db.lock"]);
    let [reader, writer] = [scene.open(NETWORK), scene.open(NETWORK)];
    assert_eq!(count(&reader), 1);
    create(&writer, "b").unwrap();
    create(&scene.open(NETWORK), "c").unwrap();
    assert_eq!((count(&reader), count(&writer)), (3, 3));
    let warnings = reader.warnings().unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("NFS"), "{warnings:?}");
    assert!(scene.open(NOW).warnings().unwrap().is_empty());
}

#[test]
fn changes_by_others_are_noticed_without_a_log() {
    let scene = Scene::new(NETWORK);
    let waiting = scene.open(NETWORK);
    let waiter = std::thread::spawn(move || {
        let first = waiting.wait_change(0, Duration::MAX).unwrap();
        waiting.wait_change(first, Duration::MAX).unwrap()
    });
    let other = scene.open(NETWORK);
    let mut n = 0;
    while !waiter.is_finished() {
        create(&other, &format!("t{n}")).unwrap();
        n += 1;
    }
    assert!(waiter.join().unwrap() >= 2);
}

#[test]
fn a_store_moved_to_another_file_system_kind_changes_its_journal() {
    let scene = Scene::new(NOW);
    assert!(scene.names().contains(&"tasks.db-wal".to_owned()));
    assert_eq!(count(&scene.open(NETWORK)), 1, "a read applies the log first");
    assert!(!scene.names().contains(&"tasks.db-wal".to_owned()));
    create(&scene.open(NETWORK), "b").unwrap();
    assert_eq!(count(&scene.open(NOW)), 2);
    create(&scene.open(NOW), "c").unwrap();
    assert_eq!(pragma(&scene.path, "journal_mode"), "wal");
    create(&scene.open(NETWORK), "d").unwrap();
    assert_eq!(count(&scene.open(NETWORK)), 4);
}

/// Leaves the files of a writer that died between its journal and its commit.
fn die_in_a_transaction(scene: &Scene) {
    let connection = Connection::open(&scene.path).unwrap();
    connection.pragma_update(None, "cache_size", 1).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE; UPDATE counters SET todo = 99, revision = 99").unwrap();
    // More than the cache holds, so that pages are written before the commit.
    let long = "x".repeat(10_000);
    for n in 0..50 {
        connection.execute("INSERT INTO plans VALUES (?1, ?2)", [format!("p{n}"), long.clone()]).unwrap();
    }
    for name in ["tasks.db", "tasks.db-journal"] {
        let from = scene.directory.path().join(name);
        fs::copy(&from, with_suffix(&from, ".dead")).unwrap();
    }
    connection.execute_batch("ROLLBACK").unwrap();
    drop(connection);
    for name in ["tasks.db", "tasks.db-journal"] {
        let to = scene.directory.path().join(name);
        fs::rename(with_suffix(&to, ".dead"), to).unwrap();
    }
}

#[test]
fn a_read_rolls_back_the_journal_of_a_dead_writer() {
    let scene = Scene::new(NETWORK);
    die_in_a_transaction(&scene);
    let immutable = format!("file://{}?immutable=1", scene.path.display());
    let torn = Connection::open(immutable).and_then(|connection| {
        connection.query_row("SELECT revision FROM counters", [], |row| row.get::<_, i64>(0))
    });
    assert_eq!(torn.unwrap(), 99, "the file without its journal is inconsistent");
    assert_eq!(scene.open(NETWORK).view(|view| view.revision()).unwrap(), 1);
    assert_eq!(count(&scene.open(NETWORK)), 1);
    create(&scene.open(NETWORK), "b").unwrap();
}
