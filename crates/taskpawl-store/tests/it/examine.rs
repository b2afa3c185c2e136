//! Faults of a store are found, and repaired where possible.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use taskpawl_model::command::{Command, NewTask};
use taskpawl_model::value::TaskId;
use taskpawl_store::{Diagnostic, Location, Severity, StoreError, examine, open};

use crate::support::{accept, after, create, request, task, task_with_call};

struct Scene {
    directory: tempfile::TempDir,
    location: Location,
}

impl Scene {
    /// Returns a database with `a` and its dependent `b`, and `p` with the subtask `c` and its call.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(directory.path().join("tasks.db"));
        let scene = Self { directory, location };
        scene.fill();
        scene
    }

    fn json() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::Json(directory.path().join("plan.json"));
        let scene = Self { directory, location };
        scene.fill();
        scene
    }

    fn fill(&self) {
        let store = open(&self.location);
        accept(&store, create(task("a")));
        accept(&store, create(after("b", &["a"])));
        accept(&store, create(task("p")));
        let below = NewTask { parent: Some(TaskId::from("p").to_string()), ..task_with_call("c") };
        accept(&store, create(below));
    }

    fn path(&self) -> PathBuf {
        self.location.path().unwrap().to_owned()
    }

    fn break_with(&self, sql: &str) {
        let connection = Connection::open(self.path()).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    fn row(&self, sql: &str) -> String {
        Connection::open(self.path()).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn examine(&self, repair: bool) -> Vec<Diagnostic> {
        let context = request(Command::Settle).context;
        examine(&self.location, repair.then_some(&context)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn lines(found: &[Diagnostic], directory: &Path) -> Vec<String> {
    let directory = format!("{}/", directory.display());
    let line = |diagnostic: &Diagnostic| {
        let done = if diagnostic.is_repaired { "mended" } else { "open" };
        let text = format!("{} {done} | {}: {}", diagnostic.check, diagnostic.place, diagnostic.message);
        text.replace(&directory, "")
    };
    found.iter().map(line).collect()
}

#[test]
fn a_sound_store_has_no_diagnostics_and_is_not_changed() {
    for scene in [Scene::new(), Scene::json()] {
        let before = fs::read(scene.path()).unwrap();
        assert_eq!(scene.examine(false), []);
        assert_eq!(scene.examine(true), []);
        assert!(fs::read(scene.path()).unwrap() == before);
        assert!(!scene.names().iter().any(|name| name.contains("bak")));
    }
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(examine(&Location::Sqlite(directory.path().join("none.db")), None).unwrap(), []);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn derived_data_is_repaired() {
    let cases = [
        ("counts", "UPDATE nodes SET dependencies_open = 7 WHERE key = 1"),
        ("gate", "UPDATE nodes SET gate_state = 1 WHERE key = 1"),
        ("state", "UPDATE nodes SET phase = 5 WHERE key = 0"),
        ("words", "UPDATE nodes SET work = 99, priority = -1 WHERE key = 3"),
        ("row", "DELETE FROM nodes WHERE key = 3"),
        ("counters", "UPDATE counters SET todo = 99, next_key = 1, revision = 1"),
        ("no counters", "DELETE FROM counters"),
        ("negative counters", "UPDATE counters SET todo = -1"),
        ("edge", "INSERT INTO dependencies VALUES (3, 0)"),
        (
            "unsettled",
            "UPDATE bodies SET body = '{\"state\":{\"status\":\"failed\",\"error\":\"x\"},\"attempt\":1}' WHERE key = 0",
        ),
        (
            "columns",
            "UPDATE bodies SET holder = 'ann', took = '1s'; UPDATE calls SET is_running = 1, tool = 'x'; UPDATE tasks SET estimate = '2s'",
        ),
        (
            "strays",
            "INSERT INTO labels VALUES (77, 'x'); INSERT INTO bodies VALUES (78, 1, 1, '{}', NULL, NULL, NULL, NULL); INSERT INTO calls VALUES (79 << 24, 'c', 'cli', '{}', '{}', 0, ''); INSERT INTO dependencies VALUES (0, 80), (81, 0)",
        ),
    ];
    let mut told = Vec::new();
    for (name, sql) in cases {
        let scene = Scene::new();
        scene.break_with(sql);
        let found = scene.examine(false);
        assert!(!found.is_empty(), "{name}");
        let mended = scene.examine(true);
        told.push(format!("{name}\n  {}", lines(&mended, scene.directory.path()).join("\n  ")));
        assert_eq!(scene.examine(false), [], "{name}");
        assert_eq!(
            lines(&found, Path::new("x")).len(),
            mended.iter().filter(|diagnostic| diagnostic.is_repaired).count(),
            "{name}"
        );
        assert!(scene.names().contains(&"tasks.db.mended-1.bak".to_owned()), "{name}: a copy is kept");
        let store = open(&scene.location);
        accept(&store, create(task("new")));
        let parent = store.view(|view| Ok(view.node(view.key("c")?.unwrap())?.unwrap().parent)).unwrap();
        assert_eq!(parent.map(|key| key.0), Some(2), "{name}");
    }
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_wrong_index_is_rebuilt() {
    let scene = Scene::new();
    scene.break_with(
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE INDEX nodes_by_phase ON nodes(phase) WHERE key > 90' \
         WHERE name = 'nodes_by_phase'; PRAGMA writable_schema = RESET",
    );
    scene.break_with("UPDATE nodes SET phase = 5 WHERE key = 0");
    scene.break_with(
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE INDEX nodes_by_phase ON nodes(phase)' \
         WHERE name = 'nodes_by_phase'; PRAGMA writable_schema = RESET",
    );
    let found = scene.examine(true);
    assert!(
        found.iter().any(|diagnostic| diagnostic.check == "index" && diagnostic.is_repaired),
        "{found:?}"
    );
    assert_eq!(scene.examine(false), []);
}

#[test]
fn lost_data_is_reported_and_left_alone() {
    let cases = [
        ("state", "UPDATE bodies SET body = '{\"state\":1}' WHERE key = 0"),
        ("text", "UPDATE bodies SET body = '{' WHERE key = 0"),
        ("specification", "UPDATE tasks SET spec = 'x' WHERE key = 0"),
        ("body", "DELETE FROM bodies WHERE key = 0"),
        ("call", "UPDATE calls SET origin = 'nobody'"),
        ("event", "UPDATE events SET data = 'x' WHERE revision = 2"),
        (
            "number",
            "UPDATE bodies SET body = '{\"state\":{\"status\":\"todo\"},\"attempt\":4294967295}' WHERE key = 0",
        ),
        ("circle", "INSERT INTO dependencies VALUES (0, 1)"),
    ];
    let mut told = Vec::new();
    for (name, sql) in cases {
        let scene = Scene::new();
        scene.break_with(sql);
        let found = scene.examine(false);
        let damage = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Damage).cloned();
        let damage: Vec<_> = damage.collect();
        assert!(!damage.is_empty(), "{name}");
        told.push(format!("{name}\n  {}", lines(&damage, scene.directory.path()).join("\n  ")));
        let after = scene.examine(true);
        assert!(damage.iter().all(|diagnostic| after.contains(diagnostic)), "{name}: {after:?}");
    }
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_damaged_file_is_found_and_left_alone() {
    let scene = Scene::new();
    scene.break_with("PRAGMA wal_checkpoint(TRUNCATE)");
    let mut bytes = fs::read(scene.path()).unwrap();
    let middle = bytes.len() / 2;
    bytes[4096..middle].fill(0xA5);
    fs::write(scene.path(), &bytes).unwrap();
    let _ = fs::remove_file(scene.path().with_extension("db-wal"));
    let found = scene.examine(true);
    assert!(
        found.iter().any(|diagnostic| diagnostic.check == "integrity" && !diagnostic.is_repaired),
        "{found:?}"
    );
    assert!(fs::read(scene.path()).unwrap() == bytes);
    let scene = Scene::json();
    fs::write(scene.path(), "{\"schemaVersion\": 1, \"tasks\"").unwrap();
    let found = scene.examine(true);
    assert_eq!(lines(&found, scene.directory.path()).len(), 1, "{found:?}");
    assert_eq!((found[0].check, found[0].severity), ("integrity", Severity::Damage));
}

#[test]
fn a_newer_store_is_an_error_and_not_a_diagnostic() {
    let scene = Scene::new();
    scene.break_with("PRAGMA user_version = 99");
    assert!(matches!(examine(&scene.location, None), Err(StoreError::Newer { found: 99, .. })));
}

#[test]
fn file_modes_are_narrowed_and_leftovers_removed() {
    let scene = Scene::new();
    let left = scene.directory.path().join("tasks.db.v1.bak.new");
    // The name is not one that a store creates, so the file may belong to another program.
    let foreign = scene.directory.path().join("tasks.db.new");
    for path in [&left, &foreign] {
        fs::write(path, "half").unwrap();
    }
    for path in [scene.path(), left.clone(), foreign.clone()] {
        fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    }
    let found = scene.examine(false);
    let checks: Vec<_> = found.iter().map(|diagnostic| diagnostic.check).collect();
    assert_eq!(checks, ["mode", "mode", "left_over"]);
    assert!(scene.examine(true).iter().all(|diagnostic| diagnostic.is_repaired));
    assert_eq!(scene.examine(false), []);
    assert!(!left.exists() && foreign.exists());
    assert_eq!(fs::metadata(scene.path()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn gates_behind_an_unreadable_task_stay_closed() {
    let scene = Scene::new();
    scene.break_with("UPDATE tasks SET spec = 'x' WHERE key = 0; UPDATE nodes SET priority = 0");
    let before = scene.row("SELECT group_concat(dependencies_open || gate_state) FROM nodes");
    let found = scene.examine(true);
    assert!(found.iter().any(|diagnostic| diagnostic.check == "unreadable"), "{found:?}");
    assert_eq!(scene.row("SELECT group_concat(dependencies_open || gate_state) FROM nodes"), before);
}

#[test]
fn all_paths_to_a_store_resolve_to_one_location() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().canonicalize().unwrap().join("real.db");
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink("real.db", &link).unwrap();
    for _ in 0..2 {
        assert_eq!(Location::Sqlite(link.clone()).resolved(), Location::Sqlite(real.clone()));
        fs::write(&real, "").unwrap();
    }
    std::os::unix::fs::symlink("b", directory.path().join("a")).unwrap();
    std::os::unix::fs::symlink("a", directory.path().join("b")).unwrap();
    assert!(Location::Json(directory.path().join("a")).resolved().path().unwrap().is_absolute());
}

#[test]
fn an_edit_of_the_file_is_a_note() {
    let scene = Scene::json();
    let text = fs::read_to_string(scene.path()).unwrap();
    fs::write(scene.path(), text.replace("name of a", "another name")).unwrap();
    let found = scene.examine(true);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].check, found[0].severity, found[0].is_open()), ("edited", Severity::Note, false));
    accept(&open(&scene.location), request(Command::Note { id: "a".to_owned(), text: "x".to_owned() }));
    assert_eq!(scene.examine(false), []);
}
