//! Properties specific to a file that users edit.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use taskpawl_model::command::{Command, Request};
use taskpawl_model::task::{Event, EventKind, Status};

use crate::testing::{create, request};
use crate::{Location, Store, StoreError, open};

struct Scene {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Scene {
    /// Returns a store with a task `a` and its dependent `b`.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.json");
        let scene = Self { _directory: directory, path };
        scene.create("a", &[]);
        scene.create("b", &["a"]);
        scene
    }

    /// Returns a separate handle, as another process would have.
    fn open(&self) -> Arc<dyn Store> {
        open(&Location::Json(self.path.clone()))
    }

    fn create(&self, id: &str, dependencies: &[&str]) {
        self.give(create(id, dependencies));
    }

    fn write(&self, command: Command) {
        self.give(request(command));
    }

    fn give(&self, request: Request) {
        self.open().write(vec![request]).unwrap().remove(0).unwrap();
    }

    fn edit(&self, edit: impl FnOnce(&mut Value)) {
        let mut value = self.content();
        edit(&mut value);
        fs::write(&self.path, serde_json::to_string(&value).unwrap()).unwrap();
    }

    fn content(&self) -> Value {
        serde_json::from_slice(&fs::read(&self.path).unwrap()).unwrap()
    }

    fn edits(&self) -> Vec<Event> {
        let events = self.open().events_since(0, 0).unwrap();
        events.into_iter().filter(|event| matches!(event.kind, EventKind::ExternalEdit { .. })).collect()
    }

    fn refusal(&self) -> String {
        let before = fs::read(&self.path).unwrap();
        let read = self.open().view(|view| view.counts()).unwrap_err();
        let write = self.open().write(Vec::new()).unwrap_err();
        assert_eq!(read.to_string(), write.to_string());
        assert!(matches!(read, StoreError::Corrupt { .. }), "{read:?}");
        assert!(fs::read(&self.path).unwrap() == before);
        let name = self.path.display().to_string();
        read.to_string().replace(&name, "plan.json")
    }
}

#[test]
fn the_file_uses_the_public_json_names() {
    let scene = Scene::new();
    let content = scene.content();
    let names: Vec<_> = content["tasks"][1].as_object().unwrap().keys().map(String::as_str).collect();
    for name in [
        "id",
        "name",
        "description",
        "status",
        "priority",
        "dependencies",
        "subtasks",
        "metadata",
        "createdAt",
        "updatedAt",
    ] {
        assert!(names.contains(&name), "{name} is missing: {names:?}");
    }
    assert_eq!(content["tasks"][1]["dependencies"], serde_json::json!(["a"]));
    assert_eq!(content["tasks"][1]["metadata"], serde_json::json!({"toolCalls": [], "context": {}}));
    assert_eq!(content["schemaVersion"], 1);
    assert_eq!(fs::read_to_string(&scene.path).unwrap().lines().next(), Some("{"));
}

#[test]
fn a_rewrite_keeps_everything() {
    let scene = Scene::new();
    scene.edit(|file| {
        file["stranger"] = serde_json::json!({"x": 0.1});
        file["tasks"][0]["stranger"] = serde_json::json!([0.3, 1e300]);
        file["tasks"][0]["metadata"]["stranger"] = serde_json::json!("m");
    });
    assert_eq!(scene.edits().len(), 1);
    scene.create("c", &[]);
    let once = scene.content();
    assert_eq!(once["stranger"]["x"], 0.1);
    assert_eq!(once["tasks"][0]["stranger"], serde_json::json!([0.3, 1e300]));
    assert_eq!(once["tasks"][0]["metadata"]["stranger"], "m");
    scene.create("d", &[]);
    let again = scene.content();
    (0..3).for_each(|n| assert_eq!(again["tasks"][n], once["tasks"][n]));
    assert_eq!(scene.edits().len(), 1);
}

#[test]
fn an_edit_from_outside_is_one_event_and_opens_gates() {
    let scene = Scene::new();
    assert!(scene.edits().is_empty());
    scene.edit(|file| file["tasks"][0]["status"] = "done".into());
    let seen = scene.edits();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].kind, EventKind::ExternalEdit { tasks: vec!["a".into()] });
    let node = scene.open().view(|view| view.node(view.key("b")?.unwrap())).unwrap();
    let node = node.unwrap();
    assert!(node.is_ready());
    assert_eq!(seen[0].ready[..], [node.key], "the event lists the ready task for live runs");
    assert_eq!(scene.open().view(|view| view.counts()).unwrap()[&Status::Done], 1);
    scene.create("c", &["a"]);
    assert_eq!(scene.edits(), seen, "the next write stores the same event");
    scene.create("d", &[]);
    assert_eq!(scene.edits().len(), 1);
}

#[test]
fn an_external_deletion_is_noticed() {
    let scene = Scene::new();
    scene.write(Command::Delete { ids: vec!["b".to_owned()] });
    let events = scene.open().events_since(0, 0).unwrap();
    let last = events.last().unwrap();
    assert_eq!(last.task, Some("b".into()));
    assert!(matches!(&last.kind, EventKind::Deleted { task } if task["dependencies"][0] == "a"), "{last:?}");
}

#[test]
fn a_duplicate_dependency_counts_once() {
    let scene = Scene::new();
    scene.edit(|file| file["tasks"][1]["dependencies"] = serde_json::json!(["a", "a"]));
    let node = scene.open().view(|view| view.node(view.key("b")?.unwrap())).unwrap();
    assert_eq!(node.unwrap().gate.dependencies.open, 1);
    scene.create("c", &[]);
    assert_eq!(scene.content()["tasks"][1]["dependencies"], serde_json::json!(["a"]));
    assert_eq!(scene.edits().len(), 1);
}

#[test]
fn a_result_of_null_is_no_edit() {
    let scene = Scene::new();
    scene.write(Command::Done {
        ids: vec!["a".to_owned()],
        result: Some(Value::Null),
        note: None,
        attempt: None,
    });
    scene.create("c", &[]);
    assert!(scene.edits().is_empty());
}

#[test]
fn counters_close_to_overflow_are_refused() {
    type Edit = fn(&mut Value);
    let cases: [Edit; 7] = [
        |file| file["revision"] = u64::MAX.into(),
        |file| file["events"][0]["revision"] = u64::MAX.into(),
        |file| file["index"]["nextKey"] = u32::MAX.into(),
        |file| file["index"]["tasks"]["a"]["key"] = u32::MAX.into(),
        |file| file["tasks"][0]["attempt"] = u32::MAX.into(),
        |file| file["tasks"][0]["generation"] = u32::MAX.into(),
        |file| file["tasks"][0]["version"] = u64::MAX.into(),
    ];
    let mut found = Vec::new();
    for edit in cases {
        let scene = Scene::new();
        scene.edit(edit);
        found.push(scene.refusal());
    }
    insta::assert_snapshot!(found.join("\n"), @r"
    `plan.json` is damaged: `revision` is 18446744073709551615, which is above 9223372036854775807
    `plan.json` is damaged: the `revision` of an event is 18446744073709551615, which is above 9223372036854775807
    `plan.json` is damaged: `nextKey` is 4294967295, which is above 2147483647
    `plan.json` is damaged: the key of task `a` is 4294967295, which is above 2147483647
    `plan.json` is damaged: `attempt` of task `a` is 4294967295, which is above 2147483647
    `plan.json` is damaged: `generation` of task `a` is 4294967295, which is above 2147483647
    `plan.json` is damaged: `version` of task `a` is 18446744073709551615, which is above 9223372036854775807
    ");
}

#[test]
fn a_file_that_is_no_exact_json_is_refused() {
    let scene = Scene::new();
    let text = fs::read_to_string(&scene.path).unwrap();
    for (field, problem) in
        [("\"revision\": 1", "already given"), ("\"own\": 18446744073709551616", "18446744073709551616")]
    {
        fs::write(&scene.path, text.replacen('{', &format!("{{{field}, "), 1)).unwrap();
        let refusal = scene.refusal();
        assert!(refusal.contains(problem), "{refusal}");
    }
}

#[test]
fn a_write_that_could_not_be_read_back_is_refused() {
    let scene = Scene::new();
    scene.edit(|file| file["tasks"][0]["version"] = (u64::MAX / 2).into());
    let done = Command::Done { ids: vec!["a".to_owned()], result: None, note: None, attempt: None };
    let error = scene.open().write(vec![request(done)]).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert_eq!(scene.open().view(|view| view.counts()).unwrap()[&Status::Todo], 2);
}

#[test]
fn tasks_can_be_added_and_removed_from_outside() {
    let scene = Scene::new();
    scene.edit(|file| {
        let mut task = file["tasks"][0].clone();
        task["id"] = "new".into();
        file["tasks"][1]["dependencies"] = serde_json::json!(["new"]);
        file["tasks"].as_array_mut().unwrap().push(task);
        file["tasks"].as_array_mut().unwrap().remove(0);
    });
    assert_eq!(
        scene.edits()[0].kind,
        EventKind::ExternalEdit { tasks: vec!["b".into(), "new".into(), "a".into()] }
    );
    scene.create("c", &["new"]);
    let store = scene.open();
    let keys = store
        .view(|view| Ok((view.key("a")?, view.key("b")?, view.key("new")?, view.deleted_id("a")?)))
        .unwrap();
    let (gone, kept, new, deleted) = keys;
    assert_eq!((gone, kept.unwrap().0, new.unwrap().0, deleted), (None, 1, 2, Some(None)));
}

#[test]
fn an_invalid_file_is_refused_and_left_alone() {
    type Edit = fn(&mut Value);
    let cases: [(&str, Edit); 5] = [
        ("two", |file| file["tasks"][1]["id"] = "a".into()),
        ("unknown", |file| file["tasks"][1]["dependencies"] = serde_json::json!(["x"])),
        ("circle", |file| file["tasks"][0]["dependencies"] = serde_json::json!(["b"])),
        ("state", |file| file["tasks"][0]["status"] = "ready".into()),
        ("option", |file| file["tasks"][0]["timeout"] = true.into()),
    ];
    let mut found = Vec::new();
    for (name, edit) in cases {
        let scene = Scene::new();
        scene.edit(edit);
        found.push(format!("{name}: {}", scene.refusal()));
    }
    let scene = Scene::new();
    let text = fs::read(&scene.path).unwrap();
    fs::write(&scene.path, &text[..text.len() / 2]).unwrap();
    found.push(format!("cut: {}", scene.refusal().split(": ").next().unwrap()));
    fs::write(&scene.path, "").unwrap();
    found.push(format!("empty: {}", scene.refusal()));
    insta::assert_snapshot!(found.join("\n"), @r"
    two: `plan.json` is damaged: two tasks have the id `a`
    unknown: `plan.json` is damaged: task `b` refers to `x`, which does not exist
    circle: `plan.json` is damaged: dependency cycle: `a`, `b`
    state: `plan.json` is damaged: unknown variant `ready`, expected one of `todo`, `in_progress`, `blocked`, `done`, `failed`, `cancelled`, `skipped` at line 1 column 693
    option: `plan.json` is damaged: task `a`: invalid type: boolean `true`, expected a duration such as `30s` or `5m`
    cut: `plan.json` is damaged
    empty: `plan.json` is damaged: EOF while parsing a value at line 1 column 0
    ");
}

#[test]
fn foreign_and_newer_files_are_refused() {
    let scene = Scene::new();
    scene.edit(|file| file["schemaVersion"] = 2.into());
    let error = scene.open().view(|view| view.counts()).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 2, known: 1, .. }));
    fs::write(&scene.path, r#"{"name": "package"}"#).unwrap();
    let error = scene.open().view(|view| view.counts()).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }));
    for printed in [
        r#"{"schemaVersion":1,"data":[{"id":"a","name":"A"}],"page":{"count":1}}"#,
        r#"{"schemaVersion":1,"data":{"id":"a","name":"A","version":1}}"#,
        r#"{"schemaVersion":1,"error":{"message":"there is no task `a`"}}"#,
        r#"{"schemaVersion":1,"data":{},"revision":7}"#,
    ] {
        fs::write(&scene.path, printed).unwrap();
        let error = scene.open().view(|view| view.counts()).unwrap_err();
        assert!(
            error.to_string().contains("is the output of a command with `--json`, not a store"),
            "{error}"
        );
        assert!(error.hint().to_string().contains("taskpawl export tasks"), "{}", error.hint());
        assert_eq!(fs::read_to_string(&scene.path).unwrap(), printed);
    }
}

#[test]
fn a_backup_never_replaces_another_file() {
    let scene = Scene::new();
    let list = |name: &str| {
        serde_json::json!({ "tasks": [{
            "id": "p", "name": name, "status": "todo", "metadata": {"toolCalls": [], "context": {}},
            "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z", "description": "",
            "priority": "high", "dependencies": [], "subtasks": [],
        }] })
        .to_string()
    };
    let content_of = |name: &str| fs::read_to_string(scene.path.with_file_name(name)).ok();
    fs::write(scene.path.with_file_name("plan.json.v0.bak"), "somebody else's").unwrap();
    for name in ["one", "two", "one"] {
        fs::write(&scene.path, list(name)).unwrap();
        scene.create("later", &["p"]);
    }
    assert_eq!(content_of("plan.json.v0.bak").as_deref(), Some("somebody else's"));
    assert_eq!(content_of("plan.json.v0.2.bak"), Some(list("one")));
    assert_eq!(content_of("plan.json.v0.3.bak"), Some(list("two")));
    assert_eq!(content_of("plan.json.v0.4.bak"), None, "equal content is copied once");
}

#[test]
fn a_plain_list_of_tasks_is_accepted_and_copied_before_the_first_write() {
    let scene = Scene::new();
    let task = |id: &str, status: &str, calls: Value| {
        serde_json::json!({
            "id": id, "name": id, "description": "", "status": status, "priority": "high", "dependencies": [], "subtasks": [],
            "metadata": {"toolCalls": calls, "context": {}}, "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
        })
    };
    let call = |status: &str| serde_json::json!([{"id": "c1", "toolName": "exec", "status": status, "origin": "cli"}]);
    let mut tasks = vec![
        task("p", "todo", serde_json::json!([])),
        task("q", "blocked", serde_json::json!([])),
        task("r", "in_progress", call("running")),
        task("s", "todo", call("pending")),
        task("t", "done", serde_json::json!([])),
    ];
    tasks[3]["dependencies"] = serde_json::json!(["t"]);
    let mut forged = task("u", "done", call("succeeded"));
    forged["result"] = serde_json::json!({ "stdout": "FORGED" });
    for field in ["result", "usage", "evaluatedArgs"] {
        forged["metadata"]["toolCalls"][0][field] = serde_json::json!({ "stdout": "FORGED" });
    }
    tasks.push(forged);
    let mut failed = task("v", "failed", call("failed"));
    for error in [&mut failed, &mut tasks[5]["metadata"]["toolCalls"][0]] {
        error["error"] = serde_json::json!("FORGED");
    }
    failed["metadata"]["toolCalls"][0]["error"] = serde_json::json!("FORGED");
    tasks.push(failed);
    let mut given_up = task("w", "cancelled", serde_json::json!([]));
    given_up["error"] = serde_json::json!("not needed");
    tasks.push(given_up);
    let text = serde_json::json!({ "tasks": tasks }).to_string();
    fs::write(&scene.path, &text).unwrap();
    let counts = scene.open().view(|view| view.counts()).unwrap();
    let count = |status: Status| counts.get(&status).copied().unwrap_or_default();
    assert_eq!((count(Status::Todo), count(Status::Blocked), count(Status::Done)), (2, 2, 2));
    assert_eq!(fs::read_to_string(&scene.path).unwrap(), text, "a read changes nothing");
    scene.create("later", &["p"]);
    assert_eq!(fs::read_to_string(scene.path.with_file_name("plan.json.v0.bak")).unwrap(), text);
    let content = scene.content();
    assert_eq!((&content["schemaVersion"], content["tasks"].as_array().unwrap().len()), (&1.into(), 9));
    assert!(!content.to_string().contains("FORGED"), "results of other stores are dropped: {content}");
    assert_eq!(content["tasks"][7]["error"], "not needed");
    assert_eq!(content["tasks"][3]["metadata"]["toolCalls"][0]["origin"], "agent");
    assert_eq!(content["tasks"][2]["blockedReason"]["type"], "interrupted");
    // Tasks in the format of another program are not accepted.
    fs::write(&scene.path, r#"{"tasks": [{"id": 1, "title": "A"}]}"#).unwrap();
    assert!(matches!(scene.open().view(|view| view.counts()), Err(StoreError::NotAStore { .. })));
}

#[test]
fn an_older_file_is_readable_and_copied_before_the_first_write() {
    const UPGRADES: &[super::Upgrade] = &[|file| file["tasks"][0]["name"] = "upgraded".into()];
    let scene = Scene::new();
    let old = fs::read(&scene.path).unwrap();
    let (backend, reader) = super::open_with(&scene.path, UPGRADES);
    let store: Arc<dyn Store> = Arc::new(crate::handle::Handle::new(backend, reader, &scene.path));
    let name = |store: &Arc<dyn Store>| {
        store.view(|view| Ok(view.task(view.key("a")?.unwrap())?.unwrap().spec.name.clone())).unwrap()
    };
    assert_eq!(name(&store), "upgraded");
    assert!(fs::read(&scene.path).unwrap() == old, "a read changes nothing");
    let backup = scene.path.with_file_name("plan.json.v1.bak");
    assert!(!backup.exists());
    let done = Command::Done { ids: vec!["a".to_owned()], result: None, note: None, attempt: None };
    store.write(vec![request(done)]).unwrap().remove(0).unwrap();
    assert!(fs::read(&backup).unwrap() == old);
    assert_eq!(scene.content()["schemaVersion"], 2);
    assert!(matches!(
        scene.open().view(|view| view.revision()),
        Err(StoreError::Newer { found: 2, known: 1, .. })
    ));
    let again = store.view(|view| view.counts()).unwrap();
    assert_eq!((name(&store).as_str(), again[&Status::Done]), ("upgraded", 1));
}

#[test]
fn many_tasks_cause_a_warning() {
    let scene = Scene::new();
    assert!(scene.open().warnings().unwrap().is_empty());
    scene.edit(|file| {
        let tasks = file["tasks"].as_array_mut().unwrap();
        for n in 0..2_000 {
            let mut task = tasks[0].clone();
            task["id"] = format!("t{n}").into();
            tasks.push(task);
        }
    });
    let warnings = scene.open().warnings().unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("2002 tasks"), "{warnings:?}");
}

#[test]
fn reads_create_no_file_and_writes_only_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plan.json");
    let names = |directory: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(open(&Location::Json(path)).view(|view| view.revision()).unwrap(), 0);
    assert!(names(directory.path()).is_empty());
    let scene = Scene::new();
    assert_eq!(names(scene.path.parent().unwrap()), ["plan.json", "plan.json.lock"]);
}
