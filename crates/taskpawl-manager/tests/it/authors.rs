//! `create`, `update`, `delete`, edges, calls and notes.

use serde_json::{Value, json};
use taskpawl_manager::Manager;
use taskpawl_model::command::NewTask;
use taskpawl_model::plan::parse_call;
use taskpawl_model::value::Selector;

use crate::support::{Fixture, LEASE, fields, ids, new_task, refusal};

fn update(
    manager: &Manager,
    id: &str,
    value: Value,
) -> Result<taskpawl_model::value::TaskId, taskpawl_manager::Error> {
    manager.update(id, fields(value), None)
}

#[test]
fn every_field_can_be_set_and_removed() {
    let fixture = Fixture::with(&["a", "x"]);
    let values = json!({
        "name": "new name", "description": "text", "priority": "high", "dueDate": "2030-01-02", "assignee": "bob",
        "labels": ["l1", "l2"], "links": {"relatesTo": ["x"]}, "trigger": "all_finished", "when": "attempt > 0",
        "forEach": {"in": [1, 2]}, "repeat": {"until": "attempt > 1", "max": 3}, "mode": "parallel",
        "retry": {"attempts": 3}, "timeout": "5m", "resources": {"gpu": 1}, "writes": ["out"],
        "sandbox": {"net": true}, "approval": "required", "cache": {"inputs": ["src/**"]}, "estimate": "1h",
        "milestone": true, "x-own": {"deep": [1, null]}, "dependencies": ["x"],
    });
    let version = fixture.task("a").version;
    fixture.accept(update(&fixture.manager, "a", values.clone()));
    let task = serde_json::to_value(fixture.task("a")).unwrap();
    assert_eq!(task["version"], version + 1);
    for (field, value) in fields(values.clone()) {
        let wanted = if field == "dueDate" { json!("2030-01-02T00:00:00Z") } else { value };
        assert_eq!(task[&field], wanted, "{field}");
    }
    let before = fixture.revision();
    fixture.accept(update(&fixture.manager, "a", values.clone()));
    assert_eq!(fixture.revision(), before, "repeating the update changes nothing");
    let mut away = fields(values);
    away.remove("name");
    away.values_mut().for_each(|value| *value = Value::Null);
    fixture.accept(fixture.manager.update("a", away.clone(), None));
    let task = serde_json::to_value(fixture.task("a")).unwrap();
    for (field, _) in away {
        let default = match field.as_str() {
            "description" => json!(""),
            "priority" => json!("medium"),
            "dependencies" => json!([]),
            _ => Value::Null,
        };
        assert_eq!(task[&field], default, "{field}");
    }
}

#[test]
fn meaningless_values_are_refused_as_in_plan_files() {
    let fixture = Fixture::with(&["a"]);
    let revision = fixture.revision();
    for (fields, expected) in [
        (json!({"writes": ["./o", "/etc"]}), "`/etc` is not a path inside the project"),
        (json!({"cache": {"inputs": ["../x"]}}), "`../x` is not a path inside the project"),
        (json!({"cache": {"inputs": ["[bad"]}}), "`[bad` is not a valid path pattern"),
        (json!({"retry": {"attempts": 2, "retryOn": ["timout"]}}), "did you mean `timeout`?"),
        (json!({"retry": {"attempts": 2, "retryOn": [300]}}), "an exit code from 1 to 255"),
    ] {
        let refused = update(&fixture.manager, "a", fields).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    let call = parse_call("{exec: {argv: [make]}}").unwrap();
    let retry = serde_json::from_value(json!({"attempts": 2, "retryOn": ["foo"]})).unwrap();
    let spec = taskpawl_model::task::CallSpec { retry, ..call.spec.into_inner() };
    let call = taskpawl_model::task::NewCall { id: call.id, spec: spec.into() };
    let refused = fixture.manager.add_tool_call("a", call).unwrap_err().to_string();
    assert!(refused.contains("unknown error class `foo`"), "{refused}");
    assert_eq!(fixture.revision(), revision);
}

#[test]
fn context_and_metadata_merge() {
    let fixture = Fixture::with(&["a"]);
    fixture.accept(update(
        &fixture.manager,
        "a",
        json!({"context": {"x": 1, "y": 2}, "metadata": {"owner": "q"}}),
    ));
    fixture.accept(update(
        &fixture.manager,
        "a",
        json!({"metadata": {"context": {"x": null, "z": 3}, "more": [1]}}),
    ));
    let metadata = serde_json::to_value(fixture.task("a").metadata).unwrap();
    assert_eq!(metadata, json!({"toolCalls": [], "context": {"y": 2, "z": 3}, "owner": "q", "more": [1]}));
}

#[test]
fn derived_fields_cannot_be_written() {
    let fixture = Fixture::with(&["a"]);
    for field in [
        "id",
        "status",
        "blockedReason",
        "subtasks",
        "result",
        "notes",
        "plan",
        "attempt",
        "error",
        "createdAt",
        "updatedAt",
        "startedAt",
        "finishedAt",
        "version",
        "parent",
        "claim",
        "generation",
    ] {
        let refused = fixture.refuse(|m| update(m, "a", json!({"name": "n", (field): "x"})));
        let expected = [
            format!("{field}: `{field}` is not allowed in a change of a task's fields"),
            format!("{field}: a plan cannot set `{field}`: it is set by execution"),
        ];
        assert!(expected.iter().any(|text| refused.starts_with(text)), "{refused}");
    }
}

#[test]
fn invalid_values_are_refused_with_their_field() {
    let fixture = Fixture::with(&["a", "tool calls=1"]);
    let mut lines = Vec::new();
    for value in [
        json!({"name": " "}),
        json!({"name": null}),
        json!({"priority": "urgent"}),
        json!({"dueDate": "soon"}),
        json!({"dueDate": "2030-13-01"}),
        json!({"labels": 5}),
        json!({"timeout": "5 parsecs"}),
        json!({"links": {"friends": []}}),
        json!({"dependencies": "x"}),
        json!({"dependencies": ["nobody"]}),
        json!({"metadata": {"toolCalls": []}}),
        json!({"metadata": 1}),
        json!({"context": []}),
        json!({"trigger": "any_done"}),
    ] {
        let refused = fixture.refuse(|m| update(m, "a", value.clone()));
        lines.push(format!("{value}: {}", refused.replace('\n', ";")));
    }
    lines.push(fixture.refuse(|m| update(m, "tool", json!({"milestone": true}))));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn if_version_detects_concurrent_changes() {
    let fixture = Fixture::with(&["a", "b"]);
    let version = fixture.task("a").version;
    fixture.accept(fixture.manager.update("a", fields(json!({"dependencies": ["b"]})), Some(version)));
    let refused = fixture.refuse(|m| m.update("a", fields(json!({"name": "n"})), Some(version)));
    insta::assert_snapshot!(refused, @"
    task `a` has version 2, not 1
      hint: read it again with `taskpawl show a`, then retry
    ");
}

#[test]
fn the_work_of_a_running_or_done_task_cannot_change() {
    let fixture = Fixture::with(&["a", "b", "other"]);
    fixture.done("a");
    fixture.accept(fixture.manager.claim("b", LEASE));
    fixture.accept(update(
        &fixture.manager,
        "a",
        json!({"name": "open", "priority": "low", "labels": ["x"]}),
    ));
    let call = || parse_call(r#"{"toolName": "t"}"#).unwrap();
    let lines = [
        fixture.refuse(|m| update(m, "a", json!({"mode": "parallel"}))),
        fixture.refuse(|m| update(m, "b", json!({"timeout": "5m"}))),
        fixture.refuse(|m| update(m, "a", json!({"dependencies": ["other"]}))),
        fixture.refuse(|m| m.add_dependency("b", "other")),
        fixture.refuse(|m| m.remove_dependency("a", "other")),
        fixture.refuse(|m| m.add_tool_call("b", call())),
        fixture.refuse(|m| m.move_task("a", Some("other"))),
        fixture.refuse(|m| m.move_task("other", Some("a"))),
    ];
    insta::assert_snapshot!(lines.join("\n"));
    let error = fixture.try_create("below in=a").unwrap_err();
    assert_eq!(error.to_string(), "task `a` is `done`: its subtasks can no longer change");
}

#[test]
fn ids_are_valid_unique_and_never_reused() {
    let fixture = Fixture::with(&["a", "b needs=a"]);
    let lines = [
        fixture.refuse(|m| m.create(crate::support::new_task("a"))),
        fixture.refuse(|m| m.create(crate::support::new_task("a/b"))),
        fixture.refuse(|m| m.create(crate::support::new_task(&"x".repeat(65)))),
        fixture.refuse(|m| m.delete(&ids(&["a"]))),
        {
            fixture.accept(fixture.manager.delete(&ids(&["b"])));
            fixture.refuse(|m| m.create(crate::support::new_task("b")))
        },
        fixture.refuse(|m| m.delete(&ids(&["b"]))),
    ];
    insta::assert_snapshot!(lines.join("\n"));
    fixture.accept(fixture.manager.delete(&ids(&["a"])));
    assert_eq!(fixture.states(), "");
}

#[test]
fn tasks_can_be_deleted_with_their_dependents_in_any_order() {
    let fixture = Fixture::with(&["x", "p milestone needs=x", "s in=p", "y needs=s", "z", "stays needs=z"]);
    fixture.done("x");
    fixture.refuse(|m| m.delete(&ids(&["s", "p"])));
    let before = fixture.revision();
    fixture.accept(fixture.manager.delete(&ids(&["s", "p", "y"])));
    assert_eq!(
        fixture.events(before),
        ["deleted s", "deleted p", "deleted y"],
        "deleted tasks get no further events"
    );
    assert_eq!(fixture.states(), "x=done z=todo stays=todo");
}

#[test]
fn a_task_becomes_manual_when_its_last_subtask_is_deleted() {
    let fixture = Fixture::with(&["p", "s in=p"]);
    fixture.accept(fixture.manager.delete(&ids(&["s"])));
    assert_eq!(fixture.ready(), ["p"]);
}

#[test]
fn a_task_in_progress_cannot_be_deleted() {
    let fixture = Fixture::with(&["a"]);
    fixture.accept(fixture.manager.claim("a", LEASE));
    insta::assert_snapshot!(fixture.refuse(|m| m.delete(&ids(&["a"]))), @"
    `a` is in progress
      hint: wait until it has ended; if it is not needed, `taskpawl cancel a` first
    ");
}

#[test]
fn call_ids_are_numbered_and_unique() {
    let fixture = Fixture::with(&["a calls=1"]);
    let add = |m: &Manager, text: &str| m.add_tool_call("a", parse_call(text).unwrap());
    fixture.accept(add(&fixture.manager, r#"{"id": "c3", "toolName": "t"}"#));
    fixture.accept(add(&fixture.manager, r#"{"toolName": "t"}"#));
    fixture.accept(add(&fixture.manager, r#"{"toolName": "t"}"#));
    assert_eq!(fixture.calls("a"), "c1=pending/0 c3=pending/0 c4=pending/0 c5=pending/0");
    let refused = fixture.refuse(|m| add(m, r#"{"id": "c3", "toolName": "t"}"#));
    insta::assert_snapshot!(refused, @"field `toolCalls`: call id `c3` is already used in this task");
}

#[test]
fn dependencies_can_be_added_and_removed() {
    let fixture = Fixture::with(&["a", "b", "c needs=a,b trigger=any_done"]);
    insta::assert_snapshot!(fixture.refuse(|m| m.add_dependency("c", "a")), @"task `c` already depends on `a`");
    fixture.accept(fixture.manager.remove_dependency("c", "a"));
    insta::assert_snapshot!(fixture.refuse(|m| m.remove_dependency("c", "a")), @"task `c` does not depend on `a`");
    insta::assert_snapshot!(fixture.refuse(|m| m.remove_dependency("c", "b")), @"
    task `c` has the trigger `any_done` but no dependencies
      hint: give it a dependency with `--needs`, or another trigger
    ");
    fixture.done("b");
    assert_eq!(fixture.ready(), ["a", "c"]);
    fixture.accept(fixture.manager.add_dependency("a", "b"));
    assert_eq!(fixture.task("a").dependencies[0].as_str(), "b");
}

#[test]
fn a_moved_task_keeps_its_subtasks() {
    let fixture = Fixture::with(&["x", "p needs=x", "q", "s in=q", "deep in=s"]);
    assert_eq!(fixture.ready(), ["x", "deep"]);
    fixture.accept(fixture.manager.move_task("s", Some("p")));
    assert_eq!(fixture.ready(), ["x", "q"], "the moved subtree waits, and `q` is a manual task now");
    fixture.accept(fixture.manager.move_task("s", None));
    assert_eq!(fixture.ready(), ["x", "q", "deep"]);
    let before = fixture.revision();
    fixture.accept(fixture.manager.move_task("s", None));
    assert_eq!(fixture.revision(), before);
}

#[test]
fn tasks_are_found_by_prefix_and_similar_ids_are_suggested() {
    let fixture = Fixture::with(&["build-lib", "build-cli", "build", "test"]);
    let lines = [
        fixture.refuse(|m| m.note("build-", "x")),
        fixture.refuse(|m| m.note("biuld-lib", "x")),
        fixture.refuse(|m| m.note("zzzzzz", "x")),
        fixture.refuse(|m| m.note("", "x")),
        fixture.refuse(|m| m.note("test", " ")),
    ];
    insta::assert_snapshot!(lines.join("\n"));
    fixture.accept(fixture.manager.note("build", "the exact id wins"));
    fixture.accept(fixture.manager.note("te", "a prefix will do"));
    assert_eq!(fixture.task("test").notes.len(), 1);
    let error = fixture.manager.note("build-", "x").unwrap_err();
    assert!(refusal(error).is_about_ids());
}

#[test]
fn a_task_joins_a_plan_by_its_name_or_below_one_of_its_tasks() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: a}, {id: b, subtasks: [{id: c}]}]");
    let plan_of = |id: &str| fixture.task(id).plan;
    fixture.accept(fixture.manager.create(NewTask { plan: Some("p".to_owned()), ..new_task("d") }));
    fixture.create("e in=b");
    fixture.create("f");
    assert_eq!(
        [plan_of("d"), plan_of("e"), plan_of("f")],
        [Some("p".to_owned()), Some("p".to_owned()), None]
    );
    fixture.create("g in=f");
    fixture.accept(fixture.manager.move_task("f", Some("b")));
    assert_eq!(plan_of("f"), None, "a top-level task stays without a plan");
    let of_plan = fixture.manager.select(&[Selector::Plan("p".to_owned())], &[]).unwrap();
    assert_eq!(of_plan, ["a", "b", "c", "d", "e", "f", "g"]);
    let refused =
        fixture.refuse(|manager| manager.create(NewTask { plan: Some("q".to_owned()), ..new_task("h") }));
    assert!(refused.contains("`plan:q` selects no task"), "{refused}");
    // The task was never in the file, so it is not missing from it.
    assert!(fixture.apply("tasks: [{id: a}, {id: b, subtasks: [{id: c}]}]").gone.is_empty());
}

#[test]
fn a_date_without_a_time_is_due_at_the_end_of_its_day() {
    let fixture = Fixture::new();
    for (id, due) in [
        ("day", "2030-01-31"),
        ("next", "2030-02-01T00:00:01Z"),
        ("morning", "2030-01-31T09:00:00Z"),
        ("evening", "2030-01-31T23:59:59Z"),
        ("before", "2030-01-30"),
    ] {
        fixture.create(id);
        let due = fields(json!({"dueDate": due}));
        fixture.manager.update(id, due, None).unwrap();
    }
    assert_eq!(fixture.ready(), ["before", "morning", "evening", "day", "next"]);
    assert_eq!(fixture.task("day").options["dueDate"], "2030-01-31T00:00:00Z", "the original text is kept");
}

#[test]
fn a_note_names_its_writer() {
    let fixture = Fixture::with(&["a"]);
    let bob = fixture.acting_as("bob");
    bob.accept(bob.manager.note("a", "looked at it"));
    let notes = fixture.task("a").notes;
    assert_eq!((notes[0].actor.as_str(), notes[0].text.as_str()), ("bob", "looked at it"));
}

#[test]
fn fields_that_plans_refuse_are_refused_in_a_new_task_too() {
    use serde_json::json;
    let fixture = Fixture::new();
    for (path, said) in [("extra", "did you mean `dependencies`?"), ("metadata", "did you mean `toolCalls`?")]
    {
        let mut task = crate::support::new_task("a");
        let field = if path == "extra" { "dependancies" } else { "toolcalls" };
        let map = if path == "extra" { &mut task.spec.extra } else { &mut task.spec.metadata };
        map.insert(field.to_owned(), json!([]));
        let text = fixture.refuse(|manager| manager.create(task));
        assert!(text.contains(field) && text.contains(said), "{text}");
    }
}
