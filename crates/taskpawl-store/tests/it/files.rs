//! The files of a database under reads, damage and concurrent writers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use taskpawl_model::task::Status;
use taskpawl_store::{Location, Store, StoreError, open};

use crate::support::{accept, create, done, task};

fn store(path: &Path) -> Arc<dyn Store> {
    open(&Location::Sqlite(path.to_owned()))
}

/// Returns every file of a directory with its content.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn with_tasks(path: &Path, count: usize) {
    let store = store(path);
    for n in 0..count {
        accept(&store, create(task(&format!("t{n}"))));
    }
}

#[test]
fn reads_change_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let look = || store(&path).view(|view| view.counts()).unwrap()[&Status::Todo];

    assert_eq!(look(), 0);
    assert!(files(directory.path()).is_empty(), "a read creates no store");
    with_tasks(&path, 3);
    let before = files(directory.path());
    assert_eq!(look(), 3);
    let after = files(directory.path());
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    for name in ["tasks.db", "tasks.db-wal", "tasks.db.lock"] {
        let name = directory.path().join(name);
        assert_eq!(before[&name], after[&name], "{}", name.display());
    }
}

/// Returns a database as a backup would leave it: one file in WAL mode, without its log.
fn single_file(directory: &Path) -> PathBuf {
    let path = directory.join("tasks.db");
    with_tasks(&path, 3);
    let backup = directory.join("backup");
    fs::create_dir(&backup).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    fs::copy(&path, backup.join("tasks.db")).unwrap();
    backup.join("tasks.db")
}

#[test]
fn reads_of_a_database_without_log_create_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = single_file(directory.path());
    let before = files(path.parent().unwrap());
    assert_eq!(before.len(), 1);
    let handle = store(&path);
    for _ in 0..2 {
        assert_eq!(handle.view(|view| view.counts()).unwrap()[&Status::Todo], 3);
    }
    assert!(files(path.parent().unwrap()) == before);
    accept(&handle, create(task("new")));
    assert_eq!(handle.view(|view| view.counts()).unwrap()[&Status::Todo], 4);
}

#[test]
fn writes_leave_the_log_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    with_tasks(&path, 3);
    let length = fs::metadata(&path).unwrap().len();
    assert!(directory.path().join("tasks.db-wal").metadata().unwrap().len() > 0);
    with_tasks(&directory.path().join("other.db"), 1);
    accept(&store(&path), done("t0"));
    assert_eq!(fs::metadata(&path).unwrap().len(), length);
}

/// Checks that reads and writes fail, and that the files stay unchanged.
fn refused(path: &Path, is_expected: fn(&StoreError) -> bool) {
    let bytes =
        || files(path.parent().unwrap()).into_iter().filter(|(name, _)| !name.ends_with("tasks.db.lock"));
    let before: Vec<_> = bytes().collect();
    let read = store(path).view(|view| view.counts().and_then(|_| view.events(0, None, 0))).unwrap_err();
    let write = store(path).write(vec![create(task("new"))]).unwrap_err();
    for error in [read, write] {
        assert!(is_expected(&error), "{error:?}");
        assert!(error.to_string().contains("tasks.db"), "{error}");
        assert!(!error.hint().is_empty());
    }
    assert!(bytes().collect::<Vec<_>>() == before, "the files are unchanged");
}

#[test]
fn foreign_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let is_foreign = |error: &StoreError| matches!(error, StoreError::NotAStore { .. });
    fs::write(&path, "some notes that are longer than the header of a database ".repeat(9)).unwrap();
    refused(&path, is_foreign);
    fs::write(&path, "short").unwrap();
    refused(&path, is_foreign);
    for mode in ["DELETE", "WAL"] {
        fs::remove_file(&path).unwrap();
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(())).unwrap();
        connection.execute_batch("CREATE TABLE t (a)").unwrap();
        drop(connection);
        refused(&path, is_foreign);
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = store(&path).view(|view| view.counts()).unwrap_err();
    assert!(is_foreign(&error), "{error:?}");
}

#[test]
fn damaged_files_are_refused() {
    let is_damage =
        |error: &StoreError| matches!(error, StoreError::Corrupt { .. } | StoreError::NotAStore { .. });
    for cut in [0, 100, 4096, 10_000] {
        let directory = tempfile::tempdir().unwrap();
        let path = single_file(directory.path());
        if cut == 0 {
            fs::write(path.with_extension("db-wal"), "what is left").unwrap();
        }
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..cut]).unwrap();
        refused(&path, is_damage);
    }
}

#[test]
fn an_empty_file_becomes_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    fs::write(&path, "").unwrap();
    assert_eq!(store(&path).view(|view| view.revision()).unwrap(), 0);
    with_tasks(&path, 1);
    assert_eq!(store(&path).view(|view| view.counts()).unwrap()[&Status::Todo], 1);
}

#[test]
fn a_replaced_store_refuses_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    with_tasks(&path, 1);
    let handle = store(&path);
    accept(&handle, done("t0"));
    assert_eq!(handle.view(|view| view.counts()).unwrap()[&Status::Done], 1);
    fs::rename(&path, directory.path().join("elsewhere")).unwrap();
    for error in [
        handle.write(vec![create(task("lost"))]).unwrap_err(),
        handle.view(|view| view.counts()).unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::Replaced { .. }), "{error:?}");
    }
}

#[test]
fn a_missing_directory_is_created_and_a_file_at_its_path_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    with_tasks(&directory.path().join("a/b/tasks.db"), 1);
    fs::write(directory.path().join("file"), "").unwrap();
    let error = store(&directory.path().join("file/tasks.db")).write(vec![create(task("x"))]).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
}

#[test]
fn paths_may_contain_any_character() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["with space?mode=ro", "50%", "#x", "ä\u{1F980}", "a&b=c"] {
        let path = directory.path().join(name).join("tasks.db");
        with_tasks(&path, 1);
        assert!(path.is_file(), "{}", path.display());
        assert_eq!(store(&path).view(|view| view.revision()).unwrap(), 1);
    }
}

#[test]
fn concurrent_handles_lose_no_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let path = path.clone();
            thread::spawn(move || {
                let store = store(&path);
                for n in 0..25 {
                    accept(&store, create(task(&format!("{writer}-{n}"))));
                    accept(&store, done(&format!("{writer}-{n}")));
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    let store = store(&path);
    assert_eq!(store.view(|view| view.counts()).unwrap()[&Status::Done], 100);
    let events = store.events_since(0, 0).unwrap();
    assert!(events.iter().map(|event| event.revision).eq(1..=events.len() as u64));
}

#[test]
fn a_change_by_another_handle_ends_the_wait() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let waiting = store(&path);
    let waiter = thread::spawn(move || {
        let first = waiting.wait_change(0, Duration::MAX).unwrap();
        waiting.wait_change(first, Duration::MAX).unwrap()
    });
    let other = store(&path);
    let mut n = 0;
    // Independent of the progress of the waiter, the next change wakes it.
    while !waiter.is_finished() {
        accept(&other, create(task(&format!("t{n}"))));
        n += 1;
    }
    assert!(waiter.join().unwrap() >= 2);
}

#[test]
fn a_commit_of_the_same_handle_ends_the_wait() {
    let store = open(&Location::Memory);
    let waiting = Arc::clone(&store);
    let waiter = thread::spawn(move || waiting.wait_change(0, Duration::MAX).unwrap());
    accept(&store, create(task("a")));
    assert!(waiter.join().unwrap() >= 1);
}
