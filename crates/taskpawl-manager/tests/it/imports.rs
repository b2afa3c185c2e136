//! Imports from other programs: tasks keep their statuses, source changes are applied later, and local
//! changes are kept.

use serde_json::{Value, json};
use taskpawl_manager::{Ending, Error};
use taskpawl_model::command::{Import, ImportMode, ImportReport, Refusal};
use taskpawl_model::task::EventKind;
use taskpawl_model::task::{Cause, Status, Task};
use taskpawl_model::value::TaskId;

use crate::support::Fixture;

const FIELDS: &[&str] =
    &["name", "description", "status", "priority", "dependencies", "parent", "notes", "metadata.other"];

fn task(fields: &Value) -> Task {
    let mut whole = json!({
        "name": "A task", "status": "todo", "metadata": {}, "createdAt": "2020-01-01T00:00:00Z", "updatedAt": "2020-01-02T00:00:00Z",
    });
    for (name, value) in fields.as_object().unwrap() {
        whole[name] = value.clone();
    }
    serde_json::from_value(whole).unwrap()
}

fn import(tasks: &[Value], mode: ImportMode) -> Import {
    let fields = FIELDS.iter().map(|field| (*field).to_owned()).collect();
    Import {
        source: "other file".to_owned(),
        tasks: tasks.iter().map(task).collect(),
        fields,
        mode,
        ..Import::default()
    }
}

impl Fixture {
    fn imported(&self, tasks: &[Value]) -> ImportReport {
        let report = self.manager.import(import(tasks, ImportMode::Merge)).unwrap();
        self.check();
        report
    }

    fn refused(&self, tasks: &[Value]) -> Refusal {
        match self.manager.import(import(tasks, ImportMode::Merge)) {
            Err(Error::Refused(refusal)) => *refusal,
            other => panic!("{other:?}"),
        }
    }

    fn status_of(&self, id: &str) -> Status {
        self.manager.get(id).unwrap().status
    }
}

fn ids(ids: &[TaskId]) -> Vec<&str> {
    ids.iter().map(TaskId::as_str).collect()
}

fn plan() -> Vec<Value> {
    vec![
        json!({"id": "a", "status": "done", "notes": [{"at": "2020-01-02T00:00:00Z", "actor": "bo", "text": "fine"}]}),
        json!({"id": "b", "status": "in_progress", "dependencies": ["a"], "assignee": "bo", "claim": {"actor": "bo"}}),
        json!({"id": "c", "status": "blocked"}),
        json!({"id": "d", "status": "failed", "error": "broke", "dependencies": ["a"]}),
        json!({"id": "e", "dependencies": ["d"]}),
        json!({"id": "p", "status": "in_progress"}),
        json!({"id": "p1", "parent": "p", "status": "done"}),
        json!({"id": "p2", "parent": "p", "dependencies": ["c"], "metadata": {"other": {"x": 1}}}),
    ]
}

#[test]
fn tasks_are_imported_with_their_statuses() {
    let fixture = Fixture::new();
    let report = fixture.imported(&plan());
    assert_eq!(ids(&report.created), ["a", "b", "c", "d", "e", "p", "p1", "p2"]);
    let states: Vec<Status> =
        ["a", "b", "c", "d", "e", "p", "p1", "p2"].map(|id| fixture.status_of(id)).to_vec();
    let words: Vec<&str> = states.iter().map(|status| status.as_str()).collect();
    assert_eq!(words.join(" "), "done in_progress blocked failed blocked todo done todo");
    let a = fixture.manager.get("a").unwrap();
    assert_eq!((a.attempt, a.finished_at.is_some(), a.notes.len()), (0, true, 1));
    assert_eq!(a.created_at.to_rfc3339(), "2020-01-01T00:00:00+00:00");
    assert_eq!(
        json!(fixture.manager.get("c").unwrap().blocked_reason),
        json!({"type": "manual", "text": "imported"})
    );
    assert_eq!(json!(fixture.manager.get("e").unwrap().blocked_reason)["type"], "dependency");
    assert_eq!(fixture.manager.get("b").unwrap().claim.unwrap().actor, "bo");
    let events = fixture.manager.history(Some("a"), 0, 0).unwrap();
    let is_import =
        |kind: &EventKind| matches!(kind, EventKind::Status { cause: Cause::Import, to: Status::Done, .. });
    assert!(events.iter().any(|event| is_import(&event.kind)), "{events:?}");
}

#[test]
fn importing_the_same_again_changes_nothing() {
    let fixture = Fixture::new();
    fixture.imported(&plan());
    let revision = fixture.manager.revision().unwrap();
    let report = fixture.imported(&plan());
    assert_eq!(
        (report.created.len(), report.changed.len(), report.unchanged, report.kept.len()),
        (0, 0, 8, 0)
    );
    assert_eq!(fixture.manager.revision().unwrap(), revision);
}

#[test]
fn source_changes_are_imported_and_store_changes_are_kept() {
    let fixture = Fixture::new();
    fixture.imported(&plan());
    fixture.manager.unblock(&["c".to_owned()]).unwrap();
    fixture.manager.done(&["c".to_owned()], Ending::default()).unwrap();
    let mut fields = serde_json::Map::new();
    fields.insert("description".to_owned(), json!("ours"));
    fixture.manager.update("e", fields, None).unwrap();
    let mut tasks = plan();
    tasks[2]["status"] = json!("in_progress");
    tasks[4]["name"] = json!("Another name");
    tasks[4]["priority"] = json!("high");
    tasks[7]["status"] = json!("done");
    tasks[7]["dependencies"] = json!([]);
    tasks[0]["notes"] = json!([
        {"at": "2020-01-02T00:00:00Z", "actor": "bo", "text": "fine"}, {"at": "2020-01-03T00:00:00Z", "actor": "bo", "text": "more"},
    ]);
    let report = fixture.imported(&tasks);
    assert_eq!(ids(&report.changed), ["a", "e", "p2"]);
    assert_eq!(report.kept.len(), 1, "{report:?}");
    assert_eq!((report.kept[0].task.as_str(), report.kept[0].field.as_str()), ("c", "status"));
    let e = fixture.manager.get("e").unwrap();
    assert_eq!(
        (e.name.as_str(), e.description.as_str(), e.priority.as_str()),
        ("Another name", "ours", "high")
    );
    assert_eq!(fixture.manager.get("a").unwrap().notes.len(), 2);
    // The last subtask is done, and therefore the parent is done, too.
    assert_eq!(
        (fixture.status_of("c"), fixture.status_of("p2"), fixture.status_of("p")),
        (Status::Done, Status::Done, Status::Done)
    );
}

#[test]
fn a_field_changed_on_both_sides_is_kept_and_reported() {
    let fixture = Fixture::new();
    fixture.imported(&plan());
    let renamed = |name: &str| json!({"name": name, "priority": "high"}).as_object().cloned().unwrap();
    fixture.manager.update("e", renamed("Here renamed"), None).unwrap();
    let mut tasks = plan();
    tasks[4]["name"] = json!("There renamed");
    tasks[4]["description"] = json!("there");
    tasks[4]["dependencies"] = json!([]);
    let report = fixture.imported(&tasks);
    let kept: Vec<(&str, &str)> =
        report.kept.iter().map(|kept| (kept.task.as_str(), kept.field.as_str())).collect();
    assert_eq!((ids(&report.changed), kept), (vec!["e"], vec![("e", "name")]));
    assert_eq!(
        report.kept[0].why,
        "changed to `Here renamed` in the store and to `There renamed` in the source"
    );
    let e = fixture.manager.get("e").unwrap();
    assert_eq!(
        (e.name.as_str(), e.description.as_str(), e.priority.as_str()),
        ("Here renamed", "there", "high")
    );
    assert!(e.dependencies.is_empty(), "changes of the source alone are imported");
    let again = fixture.imported(&tasks);
    assert_eq!((again.kept.len(), again.unchanged), (0, 8), "a conflict is reported once");
    // A later change that makes both sides equal is no conflict.
    tasks[4]["name"] = json!("Here renamed");
    assert_eq!(fixture.imported(&tasks).kept, []);
    tasks[4]["priority"] = json!("low");
    fixture.manager.import(import(&tasks, ImportMode::Adopt)).unwrap();
    assert_eq!(fixture.manager.get("e").unwrap().priority.as_str(), "low", "the file wins on request");
}

#[test]
fn estimates_links_and_context_changed_on_both_sides_are_kept() {
    let fixture = Fixture::new();
    let in_source = |estimate: &str, other: &str, value: u8| {
        let fields = json!({
            "id": "a", "estimate": estimate, "links": {"relatesTo": [other]}, "metadata": {"context": {"x": value}},
        });
        let mut import = import(&[fields, json!({"id": "b"}), json!({"id": "c"})], ImportMode::Merge);
        import.fields.extend(["estimate", "links", "metadata.context"].map(str::to_owned));
        import
    };
    fixture.manager.import(in_source("1h", "b", 1)).unwrap();
    let here = json!({"estimate": "2h", "links": {"relatesTo": ["c"]}, "metadata": {"context": {"x": 2}}});
    fixture.manager.update("a", here.as_object().cloned().unwrap(), None).unwrap();
    let report = fixture.manager.import(in_source("3h", "c", 3)).unwrap();
    let kept: Vec<&str> = report.kept.iter().map(|kept| kept.field.as_str()).collect();
    assert_eq!(kept, ["estimate", "metadata.context"], "links are equal on both sides");
    let a = fixture.manager.get("a").unwrap();
    assert_eq!((&a.options["estimate"], &a.metadata.context["x"]), (&json!("2h"), &json!(2)));
    // Rounding to whole minutes is not a change.
    let fixture = Fixture::new();
    fixture.manager.import(in_source("90s", "b", 1)).unwrap();
    fixture.manager.import(Import { mode: ImportMode::Record, ..in_source("2m", "b", 1) }).unwrap();
    assert!(fixture.manager.import(in_source("5m", "b", 1)).unwrap().kept.is_empty());
    assert_eq!(fixture.manager.get("a").unwrap().options["estimate"], "5m");
}

#[test]
fn context_removed_in_the_source_is_removed_in_the_store() {
    let fixture = Fixture::new();
    let in_source = |context: Value| {
        let mut import = import(&[json!({"id": "a", "metadata": {"context": context}})], ImportMode::Merge);
        import.fields.push("metadata.context".to_owned());
        import
    };
    let context = || json!(fixture.manager.get("a").unwrap().metadata.context);
    fixture.manager.import(in_source(json!({"x": 1, "y": 1}))).unwrap();
    fixture.manager.import(in_source(json!({"y": 2}))).unwrap();
    assert_eq!(context(), json!({"y": 2}));
    fixture.manager.import(in_source(json!({}))).unwrap();
    assert_eq!(context(), json!({}));
}

/// Returns the conflicting fields of a report, with the values of both sides.
fn apart(report: &ImportReport) -> Vec<[Value; 4]> {
    let list = report.apart.iter();
    list.map(|one| [json!(one.task), json!(one.field), one.here.clone(), one.there.clone()]).collect()
}

#[test]
fn a_conflict_is_remembered_until_both_sides_agree() {
    let fixture = Fixture::new();
    fixture.imported(&plan());
    let renamed = |name: &str| json!({"name": name}).as_object().cloned().unwrap();
    fixture.manager.update("e", renamed("Here"), None).unwrap();
    let mut tasks = plan();
    tasks[4]["name"] = json!("There");
    for _ in 0..2 {
        assert_eq!(json!(apart(&fixture.imported(&tasks))), json!([["e", "name", "Here", "There"]]));
    }
    // An export has written the local value.
    tasks[4]["name"] = json!("Here");
    fixture.manager.import(import(&tasks, ImportMode::Record)).unwrap();
    assert!(apart(&fixture.imported(&tasks)).is_empty());
    // Locally the name is changed to the same value.
    fixture.manager.update("e", renamed("Here again"), None).unwrap();
    tasks[4]["name"] = json!("There again");
    assert_eq!(fixture.imported(&tasks).apart.len(), 1);
    fixture.manager.update("e", renamed("There again"), None).unwrap();
    assert!(apart(&fixture.imported(&tasks)).is_empty());
    fixture.manager.update("e", renamed("Later"), None).unwrap();
    assert!(apart(&fixture.imported(&tasks)).is_empty(), "local changes alone are no conflict");
}

#[test]
fn a_subtask_that_came_in_at_the_top_level_stays_apart_after_an_export() {
    let fixture = Fixture::with(&["a calls=1"]);
    let name = fixture.manager.get("a").unwrap().name;
    let held = json!({"id": "a", "name": name});
    fixture.manager.import(import(std::slice::from_ref(&held), ImportMode::Record)).unwrap();
    fixture.start(&["a"]);
    let tasks = [held, json!({"id": "b", "parent": "a"})];
    let report = fixture.imported(&tasks);
    assert_eq!((report.kept[0].task.as_str(), report.kept[0].field.as_str()), ("b", "parent"));
    let expected = [[json!("b"), json!("parent"), Value::Null, json!("a")]];
    assert_eq!(apart(&report), expected);
    // The export leaves the subtask where it is in the source, and a second one has to know that as well.
    fixture.manager.import(import(&tasks, ImportMode::Record)).unwrap();
    assert_eq!(apart(&fixture.imported(&tasks)), expected);
}

#[test]
fn reapplying_a_plan_keeps_conflicts() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: a, name: Ours}]");
    fixture.manager.import(import(&[json!({"id": "a", "name": "Ours"})], ImportMode::Record)).unwrap();
    fixture.manager.update("a", json!({"description": "here"}).as_object().cloned().unwrap(), None).unwrap();
    let in_source = [json!({"id": "a", "name": "Ours", "description": "there"})];
    assert_eq!(fixture.imported(&in_source).apart.len(), 1);
    fixture.apply("tasks: [{id: a, name: Ours, priority: high}]");
    assert_eq!(json!(apart(&fixture.imported(&in_source))), json!([["a", "description", "here", "there"]]));
}

#[test]
fn conflicts_are_resolved_in_favor_of_the_source_on_request() {
    let fixture = Fixture::new();
    fixture.imported(&plan());
    fixture.manager.update("e", json!({"name": "Here"}).as_object().cloned().unwrap(), None).unwrap();
    let mut tasks = plan();
    tasks[4]["name"] = json!("There");
    fixture.imported(&tasks);
    let report = fixture.manager.import(import(&tasks, ImportMode::Adopt)).unwrap();
    assert_eq!((ids(&report.changed), apart(&report).len()), (vec!["e"], 0));
    assert_eq!(fixture.manager.get("e").unwrap().name, "There");
}

#[test]
fn different_statuses_are_a_conflict() {
    let fixture = Fixture::new();
    fixture.imported(&plan());
    fixture.manager.unblock(&["c".to_owned()]).unwrap();
    fixture.manager.done(&["c".to_owned()], Ending::default()).unwrap();
    let mut tasks = plan();
    tasks[2]["status"] = json!("in_progress");
    for _ in 0..2 {
        let conflicts = json!(apart(&fixture.imported(&tasks)));
        assert_eq!(conflicts, json!([["c", "status", "done", "in_progress"]]));
    }
    tasks[2]["status"] = json!("done");
    assert!(apart(&fixture.imported(&tasks)).is_empty());
}

#[test]
fn tasks_missing_in_the_source_stay_and_deleted_tasks_stay_deleted() {
    let fixture = Fixture::new();
    fixture.imported(&plan());
    fixture.manager.delete(&["e".to_owned()]).unwrap();
    let mut tasks = plan();
    tasks.remove(2);
    tasks[6]["dependencies"] = json!([]);
    let report = fixture.imported(&tasks);
    assert_eq!((ids(&report.gone), ids(&report.gone_changed)), (vec!["c"], vec![]));
    assert_eq!((report.kept[0].task.as_str(), report.kept[0].field.as_str()), ("e", "id"));
    assert_eq!(fixture.status_of("c"), Status::Blocked);
    fixture.manager.note("c", "we need it").unwrap();
    assert_eq!(ids(&fixture.imported(&tasks).gone_changed), ["c"]);
}

#[test]
fn an_unrelated_task_with_the_same_id_is_only_changed_on_request() {
    let fixture = Fixture::with(&["a name=Ours", "b name=Same"]);
    let in_source = [json!({"id": "a"}), json!({"id": "b", "name": "Same"})];
    let Refusal::ImportConflict { conflicts, .. } = fixture.refused(&in_source) else {
        panic!("unexpected refusal")
    };
    let conflicts: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
    assert_eq!(conflicts, ["`a` exists in the store and was not imported from this source"]);
    let report = fixture.manager.import(import(&in_source, ImportMode::Adopt)).unwrap();
    assert_eq!((ids(&report.changed), report.unchanged), (vec!["a"], 1));
    assert_eq!(fixture.manager.get("a").unwrap().name, "A task");
}

#[test]
fn a_cycle_is_refused_with_its_path_and_nothing_is_created() {
    let fixture = Fixture::new();
    let circle = [
        json!({"id": "x"}),
        json!({"id": "a", "dependencies": ["b"]}),
        json!({"id": "b", "dependencies": ["c"]}),
        json!({"id": "c", "dependencies": ["a"]}),
    ];
    let Refusal::Cycle { path } = fixture.refused(&circle) else { panic!("unexpected refusal") };
    assert_eq!((path.len(), path.first()), (4, path.last()));
    assert_eq!(fixture.manager.revision().unwrap(), 0);
    let unknown = fixture.refused(&[json!({"id": "a", "dependencies": ["nobody"]})]);
    assert!(unknown.to_string().contains("nobody"), "{unknown}");
    assert!(matches!(fixture.refused(&[json!({"id": "a/b"})]), Refusal::InvalidId(_)));
}

#[test]
fn open_subtasks_of_a_task_that_is_done_there_are_skipped() {
    let fixture = Fixture::new();
    let tasks = [
        json!({"id": "p", "status": "done"}),
        json!({"id": "q", "parent": "p"}),
        json!({"id": "r", "parent": "p", "status": "done"}),
    ];
    let report = fixture.imported(&tasks);
    assert_eq!((fixture.status_of("p"), fixture.status_of("q")), (Status::Done, Status::Skipped));
    assert_eq!((report.skipped.len(), report.skipped[0].task.as_str()), (1, "q"));
    assert!(report.skipped[0].why.contains("`p` above it is done there"), "{:?}", report.skipped);
    assert_eq!(fixture.imported(&tasks).unchanged, 3);
    let mut again = import(&tasks, ImportMode::Merge);
    again.reopen = true;
    let report = fixture.manager.import(again).unwrap();
    assert_eq!((fixture.status_of("p"), fixture.status_of("q")), (Status::Todo, Status::Todo));
    assert_eq!(report.changed, ["q".into()]);
    // Once reopened, it stays so.
    assert_eq!(fixture.imported(&tasks).changed, []);
    assert_eq!(fixture.status_of("q"), Status::Todo);
    fixture.manager.done(&["q".to_owned()], Ending::default()).unwrap();
    assert_eq!(fixture.status_of("p"), Status::Done);
}

#[test]
fn imported_calls_have_origin_agent_and_no_approvals() {
    let fixture = Fixture::new();
    let call = |status: &str| {
        json!({"toolCalls": [{
            "id": "c1", "toolName": "shell", "args": {"command": "true"}, "status": status, "origin": "cli",
            "granted": {"hash": "x", "by": "eve", "at": "2020-01-01T00:00:00Z"},
        }]})
    };
    let mut asked = import(
        &[
            json!({"id": "a", "metadata": call("pending"), "cached": {"fingerprint": "f", "at": "2020-01-01T00:00:00Z", "results": {}}}),
            json!({"id": "b", "status": "in_progress", "metadata": call("running")}),
        ],
        ImportMode::Merge,
    );
    asked.fields.push("metadata.toolCalls".to_owned());
    fixture.manager.import(asked).unwrap();
    fixture.check();
    let a = fixture.manager.get("a").unwrap();
    let call = &a.metadata.tool_calls[0];
    assert_eq!(
        (call.origin.as_str(), call.granted.is_none(), a.progress.cached.is_none()),
        ("agent", true, true)
    );
    let b = fixture.manager.get("b").unwrap();
    assert_eq!(json!(b.blocked_reason), json!({"type": "interrupted", "call": "c1"}));
}

#[test]
fn an_import_is_undone_as_a_whole() {
    let fixture = Fixture::new();
    fixture.imported(&plan());
    let mut tasks = plan();
    tasks[4]["name"] = json!("Another name");
    fixture.imported(&tasks);
    fixture.manager.undo(None).unwrap();
    fixture.check();
    assert_eq!(fixture.manager.get("e").unwrap().name, "A task");
    fixture.manager.undo(None).unwrap();
    fixture.check();
    assert!(fixture.manager.get("e").is_err());
    // The import was undone completely, so its ids are free.
    assert_eq!(fixture.imported(&plan()).created.len(), 8);
}

#[test]
fn recording_an_export_changes_nothing() {
    let fixture = Fixture::with(&["a name=Ours"]);
    let in_source = [json!({"id": "a", "name": "Ours, shortened"})];
    let revision = fixture.manager.revision().unwrap();
    fixture.manager.import(import(&in_source, ImportMode::Record)).unwrap();
    assert_eq!(fixture.manager.revision().unwrap(), revision);
    let report = fixture.imported(&in_source);
    assert_eq!((report.unchanged, fixture.manager.get("a").unwrap().name.as_str()), (1, "Ours"));
    let report = fixture.imported(&[json!({"id": "a", "name": "Ours, shortened", "status": "done"})]);
    assert_eq!((ids(&report.changed), fixture.status_of("a")), (vec!["a"], Status::Done));
}

#[test]
fn a_plan_and_an_import_can_share_a_task() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: a, name: Ours}]");
    let in_source = [json!({"id": "a", "name": "Ours"})];
    fixture.manager.import(import(&in_source, ImportMode::Record)).unwrap();
    let report = fixture.apply("tasks: [{id: a, name: Ours}]");
    assert_eq!((report.unchanged, report.changed.len()), (1, 0));
    fixture.apply("tasks: [{id: a, name: Ours, priority: high}]");
    let report = fixture.imported(&[json!({"id": "a", "name": "Theirs", "priority": "medium"})]);
    assert_eq!(ids(&report.changed), ["a"]);
    let a = fixture.manager.get("a").unwrap();
    assert_eq!((a.name.as_str(), a.priority.as_str()), ("Theirs", "high"));
}
