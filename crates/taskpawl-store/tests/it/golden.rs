//! Stores of earlier schema versions are opened, read completely, and written to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use taskpawl_model::task::Status;
use taskpawl_store::{Location, Store, examine, open};

use crate::support::{accept, content, create, done, task};

const SCHEMAS: [&str; 1] = ["schema-1"];

fn golden(schema: &str, file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(schema).join(file)
}

/// Creates the database of a schema version in `directory`, as a program of that version would.
fn database(schema: &str, directory: &Path) -> PathBuf {
    let path = directory.join("tasks.db");
    let connection = Connection::open(&path).unwrap();
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    connection.execute_batch(&fs::read_to_string(golden(schema, "store.sql")).unwrap()).unwrap();
    path
}

fn version(path: &Path) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// Checks that `store` has all data, and that a write works.
fn check(schema: &str, kind: &str, open: &dyn Fn() -> Arc<dyn Store>) {
    let before = content(&open());
    insta::assert_snapshot!(format!("{schema}_{kind}"), serde_json::to_string_pretty(&before).unwrap());
    accept(&open(), done("notes"));
    let mut after = content(&open());
    assert_eq!(open().view(|view| view.counts()).unwrap()[&Status::Done], 5);
    // Tasks that the write did not change must be equal.
    for index in (0..15).filter(|index| ![6, 7, 8].contains(index)) {
        assert_eq!(after["tasks"][index], before["tasks"][index]);
    }
    let events = before["events"].as_array().unwrap();
    after["events"].as_array_mut().unwrap().truncate(events.len());
    assert_eq!(after["events"], before["events"]);
    assert_eq!(after["runs"], before["runs"]);
}

#[test]
fn databases_of_earlier_schemas_are_read_and_written() {
    for schema in SCHEMAS {
        let directory = tempfile::tempdir().unwrap();
        let path = database(schema, directory.path());
        let was = version(&path);
        check(schema, "database", &|| open(&Location::Sqlite(path.clone())));
        if version(&path) == was {
            continue;
        }
        let backup = directory.path().join(format!("tasks.db.v{was}.bak"));
        assert_eq!(fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(version(&backup), was);
        let kept = content(&open(&Location::Sqlite(backup)));
        assert_eq!(
            kept["tasks"].as_array().map(Vec::len),
            Some(15),
            "the old content is kept beside the store"
        );
        assert_eq!(kept["counts"]["done"], 4);
    }
}

#[test]
fn files_of_earlier_schemas_are_read_and_written() {
    for schema in SCHEMAS {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.json");
        fs::copy(golden(schema, "store.json"), &path).unwrap();
        check(schema, "file", &|| open(&Location::Json(path.clone())));
    }
}

/// Version 8 added columns for values that runs query, and version 9 one for the tools of calls.
#[test]
fn columns_match_their_text_after_a_migration() {
    let directory = tempfile::tempdir().unwrap();
    let path = database("schema-1", directory.path());
    let claim = r#"{"status":"in_progress","claim":{"actor":"ann","leaseUntil":"2030-01-01T00:00:00Z"}}"#;
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(&format!(
            "UPDATE bodies SET body = json_set(body, '$.state', json('{claim}')) WHERE key = 0;
             UPDATE bodies SET body = json_set(body, '$.progress', json('{{\"took\":\"3s\"}}')) WHERE key = 1;
             UPDATE bodies SET body = 'no text' WHERE key = 2;
             UPDATE tasks SET spec = json_set(spec, '$.estimate', '7s') WHERE key = 3;
             UPDATE calls SET body = json_set(body, '$.status', 'running') WHERE slot = (SELECT min(slot) FROM calls)"
        ))
        .unwrap();
    drop(connection);
    let location = Location::Sqlite(path.clone());
    accept(&open(&location), create(task("new")));
    let connection = Connection::open(&path).unwrap();
    let columns: String = connection
        .query_row(
            "SELECT (SELECT group_concat(key || ' ' || coalesce(holder, '-') || ' ' || coalesce(took, '-'), ', ' ORDER BY key)
                     FROM bodies WHERE holder IS NOT NULL OR took IS NOT NULL) \
             || '; ' || (SELECT group_concat(key || ' ' || estimate) FROM tasks WHERE estimate IS NOT NULL) \
             || '; ' || (SELECT sum(is_running) || ' ' || (SELECT is_running FROM calls ORDER BY slot LIMIT 1) FROM calls)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(columns, "0 ann -, 1 - 3s, 15 agent-7 -; 3 7s; 1 1");
    let tools: String = connection
        .query_row(
            "SELECT group_concat(DISTINCT tool) FROM (SELECT tool FROM calls ORDER BY tool)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(tools, open(&location).view(|view| view.tools()).unwrap().join(","));
    let found = examine(&location, None).unwrap();
    assert!(found.iter().all(|diagnostic| diagnostic.check != "excerpt"), "{found:?}");
}
