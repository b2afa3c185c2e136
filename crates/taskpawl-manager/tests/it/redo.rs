//! Work of finished tasks that changed in the file, and what starts over because something behind it failed.

use taskpawl_manager::{ApplyOptions, OnChanged};

use taskpawl_store::Location;

use crate::support::{Fixture, ids};

const PLAN: &str = "tasks:
  - {id: a, calls: [{t: {}}]}
  - {id: b, needs: [a], calls: [{t: {}}]}
  - {id: c, calls: [{t: {}}]}";

fn all_done() -> Fixture {
    let fixture = Fixture::new();
    fixture.apply(PLAN);
    for id in ["a", "b", "c"] {
        fixture.run(id);
    }
    assert_eq!(fixture.states(), "a=done b=done c=done");
    fixture
}

fn changed() -> String {
    PLAN.replace("{id: a, calls: [{t: {}}]}", "{id: a, calls: [{t: {n: 1}}]}\n  - {id: new, milestone: true}")
}

fn on_changed(on_changed: OnChanged) -> ApplyOptions {
    ApplyOptions { on_changed, ..ApplyOptions::default() }
}

#[test]
fn changed_work_of_a_finished_task_refuses_the_whole_and_names_both_ways() {
    let fixture = all_done();
    let text = fixture.refuse(|_| fixture.try_apply(&changed(), ApplyOptions::default()));
    assert!(text.contains("`a` is `done` and its `toolCalls` would change"), "{text}");
    assert!(text.contains("`--redo-changed`") && text.contains("`--keep-changed`"), "{text}");
    assert_eq!(fixture.states(), "a=done b=done c=done", "nothing of it is taken");
}

#[test]
fn redo_starts_what_changed_and_what_ran_after_it_over() {
    let fixture = all_done();
    let report = fixture.try_apply(&changed(), on_changed(OnChanged::Redo)).unwrap();
    assert_eq!((report.reopened, report.changed.len(), report.created.len()), (2, 1, 1));
    assert_eq!(fixture.states(), "a=todo b=todo c=done new=done");
    assert_eq!(fixture.calls("a"), "c1=pending/1");
    assert_eq!(fixture.apply(&changed()).unchanged, 4);
}

#[test]
fn redo_runs_a_call_again_that_is_not_idempotent() {
    let fixture = Fixture::new();
    let plan = |more: &str| format!("tasks: [{{id: a, {more} calls: [{{t: {{}}}}, {{t: {{n: 1}}}}]}}]");
    fixture.apply(&plan(""));
    fixture.start(&["a"]);
    fixture.report("a", "c1", "ok");
    fixture.report("a", "c2", "bad");
    let text = fixture.refuse(|_| fixture.try_apply(&plan("when: 'true',"), ApplyOptions::default()));
    assert!(text.contains("would run its call `c1` again") && text.contains("`--redo-changed`"), "{text}");
    fixture.try_apply(&plan("when: 'true',"), on_changed(OnChanged::Redo)).unwrap();
    assert_eq!(fixture.calls("a"), "c1=pending/1 c2=pending/1");
}

#[test]
fn redo_runs_changed_items_of_an_unfinished_list_again() {
    let plan = |more: &str, n: u32| {
        format!(
            "tasks: [{{id: a, forEach: {{in: [x, y]}}, {more} calls: [{{t: {{}}}}, {{t: {{n: {n}}}}}]}}, {{id: b, needs: [a], calls: [{{t: {{}}}}]}}]"
        )
    };
    // Fields of the task define the work of items, too.
    for changed in [plan("", 2), plan("timeout: 5s,", 1)] {
        let fixture = Fixture::new();
        fixture.apply(&plan("", 1));
        fixture.run("a.0");
        fixture.start(&["a.1"]);
        fixture.report("a.1", "c1", "bad");
        assert_eq!(fixture.states(), "a=blocked{dependency a.1} b=blocked{dependency a} a.0=done a.1=failed");
        let text = fixture.refuse(|_| fixture.try_apply(&changed, ApplyOptions::default()));
        assert!(text.contains("of its item `a.0` again") && text.contains("`--redo-changed`"), "{text}");
        fixture.try_apply(&changed, on_changed(OnChanged::Redo)).unwrap();
        assert_eq!(fixture.states(), "a=todo b=todo a.0=todo a.1=todo");
        fixture.run("a.0");
        fixture.run("a.1");
        assert_eq!(fixture.states(), "a=done b=todo a.0=done a.1=done");
        fixture.check();
    }
}

#[test]
fn failed_items_go_on_when_their_list_changes() {
    let plan = |more: &str, each: &str| {
        format!(
            "tasks: [{{id: a, {more} forEach: {{in: [x, y]{each}}}, calls: [{{t: {{}}}}]}}, {{id: tidy, needs: [a], trigger: all_finished}}]"
        )
    };
    for changed in [plan("when: 'true',", ""), plan("", ", concurrency: 1")] {
        let fixture = Fixture::new();
        fixture.apply(&plan("", ""));
        fixture.run("a.0");
        fixture.start(&["a.1"]);
        fixture.report("a.1", "c1", "bad");
        fixture.done("tidy");
        fixture.apply(&changed);
        assert_eq!(fixture.states(), "a=todo tidy=todo a.0=done a.1=todo", "{changed}");
        fixture.check();
    }
}

#[test]
fn keep_takes_the_definition_and_leaves_the_results() {
    let fixture = all_done();
    let before = fixture.task("a").result;
    let report = fixture.try_apply(&changed(), on_changed(OnChanged::Keep)).unwrap();
    assert_eq!(report.kept, ["a".into()]);
    assert_eq!(fixture.states(), "a=done b=done c=done new=done");
    assert_eq!((fixture.task("a").result, fixture.calls("a").as_str()), (before, "c1=succeeded/1"));
    assert_eq!(fixture.apply(&changed()).unchanged, 4, "the file is applied now");
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), true));
    let started = fixture.start(&["a"]).started;
    assert_eq!(started[0].call.spec.args["n"], 1, "reopen runs the new definition");
}

#[test]
fn a_skipped_task_that_changes_refuses_as_a_finished_one() {
    let fixture = Fixture::new();
    let plan = |when: &str| format!("tasks: [{{id: a, when: '{when}', calls: [{{t: {{}}}}]}}]");
    fixture.apply(&plan("${{ 1 > 2 }}"));
    assert_eq!(fixture.states(), "a=skipped");
    fixture.refuse(|_| fixture.try_apply(&plan("${{ 2 > 1 }}"), ApplyOptions::default()));
    fixture.try_apply(&plan("${{ 2 > 1 }}"), on_changed(OnChanged::Redo)).unwrap();
    assert_eq!(fixture.states(), "a=todo");
}

#[test]
fn a_task_in_progress_that_changes_is_refused_whatever_is_asked() {
    let fixture = Fixture::new();
    fixture.apply(PLAN);
    fixture.start(&["a"]);
    for on in [OnChanged::Refuse, OnChanged::Redo, OnChanged::Keep] {
        let text = fixture.refuse(|_| fixture.try_apply(&changed(), on_changed(on)));
        assert!(text.contains("is `in_progress`") && text.contains("wait until"), "{text}");
    }
}

#[test]
fn a_task_that_keeps_its_status_is_listed_with_what_lets_it_go_on() {
    let fixture = Fixture::new();
    let plan = |n: u32| format!("tasks: [{{id: a, calls: [{{t: {{n: {n}}}}}]}}]");
    fixture.apply(&plan(1));
    fixture.start(&["a"]);
    fixture.report("a", "c1", "bad");
    fixture.accept(fixture.manager.cancel(&ids(&["a"]), None));
    let report = fixture.apply(&plan(2));
    assert_eq!(report.waiting[0].advice().to_string(), "taskpawl reopen a");
    assert_eq!(fixture.states(), "a=cancelled");
}

#[test]
fn retry_failed_starts_unchanged_failures_again() {
    let fixture = Fixture::new();
    fixture.apply(PLAN);
    fixture.start(&["a", "c"]);
    fixture.report("a", "c1", "bad");
    fixture.report("c", "c1", "bad");
    let options = ApplyOptions { retry_failed: true, ..ApplyOptions::default() };
    let report = fixture.try_apply(&changed(), options).unwrap();
    assert_eq!((report.changed, report.retried), (vec!["a".into()], vec!["c".into()]));
    assert_eq!(fixture.states(), "a=todo b=todo c=todo new=done");
}

#[test]
fn failures_that_are_gone_from_the_file_are_not_retried() {
    let fixture = Fixture::new();
    fixture.apply(PLAN);
    fixture.start(&["c"]);
    fixture.report("c", "c1", "bad");
    let options = ApplyOptions { retry_failed: true, ..ApplyOptions::default() };
    let report = fixture.try_apply(&PLAN.replace("{id: c,", "{id: d,"), options).unwrap();
    assert_eq!((report.gone, report.retried), (vec!["c".into()], Vec::new()));
    assert_eq!(fixture.states(), "a=todo b=todo c=failed d=todo");
}

#[test]
fn a_finished_task_takes_new_subtasks_when_it_starts_over() {
    let plan = |more: &str| {
        format!(
            "tasks: [{{id: a, calls: [{{t: {{}}}}], subtasks: [{{id: s, calls: [{{t: {{}}}}]}}{more}]}}, {{id: b, needs: [a], calls: [{{t: {{}}}}]}}]"
        )
    };
    let fixture = Fixture::new();
    fixture.apply(&plan(""));
    for id in ["s", "a", "b"] {
        fixture.run(id);
    }
    let changed = plan(", {id: new, calls: [{t: {}}]}");
    for on in [OnChanged::Refuse, OnChanged::Keep] {
        let text = fixture.refuse(|_| fixture.try_apply(&changed, on_changed(on)));
        assert!(text.contains("`a` is `done` and would get the subtask `new`"), "{text}");
        assert!(text.contains("`--redo-changed` starts those over"), "{text}");
    }
    fixture.try_apply(&changed, on_changed(OnChanged::Redo)).unwrap();
    assert_eq!(fixture.states(), "a=todo s=done b=todo new=todo");
    assert_eq!(fixture.calls("a"), "c1=pending/1");
    fixture.run("new");
    fixture.run("a");
    fixture.check();
    // A task that only joins its subtasks is done with them.
    let group = |more: &str| {
        format!("name: g\ntasks: [{{id: g, subtasks: [{{id: x, calls: [{{t: {{}}}}]}}{more}]}}]")
    };
    let fixture = Fixture::new();
    fixture.apply(&group(""));
    fixture.run("x");
    assert_eq!(fixture.states(), "g=done x=done");
    fixture.try_apply(&group(", {id: y, calls: [{t: {}}]}"), on_changed(OnChanged::Redo)).unwrap();
    assert_eq!(fixture.states(), "g=todo x=done y=todo");
    fixture.run("y");
    assert_eq!(fixture.states(), "g=done x=done y=done");
}

const CHAIN: &[&str] = &[
    "a",
    "b needs=a",
    "undo needs=a,b trigger=any_failed",
    "tidy needs=b trigger=all_finished",
    "told needs=tidy",
];

fn chain_failed() -> Fixture {
    let fixture = Fixture::with(CHAIN);
    fixture.fail("a");
    for id in ["undo", "tidy", "told"] {
        fixture.done(id);
    }
    assert_eq!(fixture.states(), "a=failed b=blocked{dependency a} undo=done tidy=done told=done");
    fixture
}

#[test]
fn retry_arms_clean_ups_again_and_leaves_what_ran_after_them() {
    let fixture = chain_failed();
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    assert_eq!(fixture.states(), "a=todo b=todo undo=todo tidy=todo told=done");
    fixture.done("a");
    fixture.done("b");
    assert_eq!(fixture.states(), "a=done b=done undo=skipped tidy=todo told=done", "undo is not needed");
}

#[test]
fn retry_with_cascade_starts_what_ran_after_a_clean_up_over() {
    let fixture = chain_failed();
    fixture.accept(fixture.manager.retry(&ids(&["a"]), true));
    assert_eq!(fixture.states(), "a=todo b=todo undo=todo tidy=todo told=todo");
}

#[test]
fn a_cascade_arms_the_clean_ups_of_failed_dependents() {
    let fixture = Fixture::with(&["a", "b needs=a", "undo needs=b trigger=any_failed", "told needs=undo"]);
    fixture.done("a");
    fixture.fail("b");
    for id in ["undo", "told"] {
        fixture.done(id);
    }
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), true));
    assert_eq!(fixture.states(), "a=todo b=todo undo=todo told=todo");
    fixture.done("a");
    fixture.done("b");
    assert_eq!(fixture.states(), "a=done b=done undo=skipped told=todo", "undo is not needed");
}

#[test]
fn a_clean_up_that_runs_goes_on() {
    let fixture = Fixture::with(&["a", "tidy needs=a trigger=all_finished"]);
    fixture.fail("a");
    fixture.accept(fixture.manager.claim("tidy", crate::support::LEASE));
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    assert_eq!(fixture.states(), "a=todo tidy=in_progress");
}

#[test]
fn a_failed_task_that_takes_new_work_arms_its_clean_ups() {
    let fixture = Fixture::new();
    let plan = |n: u32| {
        format!(
            "tasks: [{{id: a, calls: [{{t: {{n: {n}}}}}]}}, {{id: tidy, needs: [a], trigger: all_finished}}]"
        )
    };
    fixture.apply(&plan(1));
    fixture.start(&["a"]);
    fixture.report("a", "c1", "bad");
    fixture.done("tidy");
    fixture.apply(&plan(2));
    assert_eq!(fixture.states(), "a=todo tidy=todo");
}

#[test]
fn retry_and_reopen_take_a_todo_task_with_an_attempt_behind_it() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: a, calls: [{t: {}}, {t: {n: 1}}]}, {id: fresh}]");
    fixture.start(&["a"]);
    fixture.report("a", "c1", "ok");
    fixture.give_back("a");
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=pending/1");
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=pending/1");
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), false));
    assert_eq!(fixture.calls("a"), "c1=pending/1 c2=pending/1");
    let text = fixture.refuse(|manager| manager.retry(&ids(&["fresh"]), false));
    assert!(!text.contains("`retry`, "), "{text}");
}

/// Calls stored by version 0.1 name no interpreter.
#[test]
fn a_file_that_did_not_change_since_version_0_1_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.json");
    let plan =
        "tasks: [{id: done, run: x}, {id: failed, calls: [{run: x}, {run: 'y; z'}]}, {id: open, run: x}]";
    let fixture = Fixture::at(&Location::Json(file.clone()));
    fixture.apply(plan);
    fixture.run("done");
    fixture.start(&["failed"]);
    fixture.report("failed", "c1", "ok");
    fixture.report("failed", "c2", "bad");
    drop(fixture);
    let text = std::fs::read_to_string(&file).unwrap();
    let old = without_interpreters(serde_json::from_str(&text).unwrap()).to_string();
    assert!(text.contains("shell") && !old.contains("\"sh\""), "{old}");
    std::fs::write(&file, &old).unwrap();
    let fixture = Fixture::at(&Location::Json(file));
    let before = fixture.revision();
    let report = fixture.apply(plan);
    assert_eq!((report.unchanged, report.changed.len()), (3, 0));
    assert_eq!(fixture.revision(), before, "nothing is written");
    // A change elsewhere in the task keeps the result of the call that did not change.
    fixture.apply(&plan.replace("y; z", "y && z"));
    assert_eq!(fixture.calls("failed"), "c1=succeeded/1 c2=pending/1");
    let task = fixture.task("failed");
    assert_eq!(task.metadata.tool_calls[1].args["shell"], "sh", "the changed call stops at a failing line");
}

fn without_interpreters(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(name, value)| !(name == "shell" && value == "sh"));
            Value::Object(kept.map(|(name, value)| (name, without_interpreters(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(without_interpreters).collect(),
        // The definitions applied last may be stored as text.
        Value::String(text) => match serde_json::from_str::<Value>(&text) {
            Ok(inner @ Value::Object(_)) => without_interpreters(inner).to_string().into(),
            _ => Value::String(text),
        },
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}
