//! Updates that change the work of a task, and start it over with it.

use serde_json::{Value, json};
use taskpawl_manager::{Error, Manager};
use taskpawl_model::command::Restart;
use taskpawl_model::task::Origin;
use taskpawl_model::value::TaskId;

use crate::support::{Fixture, fields, ids};

const RETRY: Restart = Restart::Retry { cascade: false };
const REOPEN: Restart = Restart::Reopen { cascade: false };

/// `a` has three calls, of which the second failed; `b` waits for it.
fn half_done() -> Fixture {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: a, calls: [{t: {}}, {t: {n: 1}}, {t: {}}]}, {id: b, needs: [a]}]");
    fixture.start(&["a"]);
    fixture.report("a", "c1", "ok");
    fixture.report("a", "c2", "bad");
    fixture
}

fn three(second: &Value) -> Value {
    json!({"calls": [{"t": {}}, second, {"t": {}}]})
}

fn restart(manager: &Manager, id: &str, given: Value, how: Restart) -> Result<Vec<TaskId>, Error> {
    manager.update_and_restart(id, fields(given), None, how)
}

#[test]
fn a_retry_with_other_calls_continues_at_the_first_that_changed() {
    let fixture = half_done();
    let before = fixture.events(0).len();
    fixture.accept(restart(&fixture.manager, "a", three(&json!({"t": {"n": 2}})), RETRY));
    assert_eq!(
        (fixture.states(), fixture.calls("a")),
        ("a=todo b=todo".into(), "c1=succeeded/1 c2=pending/1 c3=pending/0".into())
    );
    assert_eq!(fixture.events(0)[before..], ["status a", "updated a", "status b"]);
    fixture.check();
}

#[test]
fn a_reopened_task_runs_all_its_new_calls() {
    let fixture = half_done();
    fixture.accept(restart(&fixture.manager, "a", json!({"run": "make"}), REOPEN));
    assert_eq!((fixture.states(), fixture.calls("a")), ("a=todo b=todo".into(), "c1=pending/1".into()));
    let call = &fixture.task("a").metadata.tool_calls[0];
    assert_eq!(
        (call.tool_name.as_str(), &call.args["command"], &call.args["shell"]),
        ("shell", &json!("make"), &json!("sh"))
    );
}

#[test]
fn succeeded_calls_do_not_run_twice_unless_they_are_reopened() {
    let fixture = half_done();
    let other = json!({"calls": [{"t": {"n": 0}}, {"t": {}}]});
    let refused = fixture.refuse(|manager| restart(manager, "a", other.clone(), RETRY));
    assert!(
        refused.contains("would run its call `c1` again, which succeeded and is not idempotent"),
        "{refused}"
    );
    assert!(refused.contains("taskpawl reopen a"), "{refused}");
    fixture.accept(restart(&fixture.manager, "a", other, REOPEN));
    assert_eq!(fixture.calls("a"), "c1=pending/1 c2=pending/1");
}

#[test]
fn new_calls_of_a_failed_task_let_it_go_on_without_a_restart() {
    let fixture = half_done();
    fixture.accept(fixture.manager.update("a", fields(three(&json!({"t": {"n": 2}}))), None));
    assert_eq!(fixture.states(), "a=todo b=todo");
}

#[test]
fn finished_work_needs_a_restart_and_what_ran_after_it_a_cascade() {
    let fixture = Fixture::with(&["a calls=1", "b needs=a calls=1"]);
    fixture.run("a");
    fixture.run("b");
    let run = json!({"run": "make"});
    let refused = fixture.refuse(|manager| manager.update("a", fields(run.clone()), None));
    assert!(refused.contains("task `a` is `done`: its tool calls can no longer change"), "{refused}");
    let refused = fixture.refuse(|manager| restart(manager, "a", run.clone(), REOPEN));
    assert!(refused.contains("`b` ran after `a`"), "{refused}");
    fixture.accept(restart(&fixture.manager, "a", run, Restart::Reopen { cascade: true }));
    assert_eq!((fixture.states(), fixture.calls("a")), ("a=todo b=todo".into(), "c1=pending/1".into()));
}

#[test]
fn tasks_that_have_not_started_take_their_new_work() {
    let fixture = Fixture::with(&["a calls=1", "b needs=a calls=1", "c"]);
    for id in ["a", "b", "c"] {
        fixture.accept(restart(&fixture.manager, id, json!({"run": "make"}), RETRY));
    }
    assert_eq!(fixture.states(), "a=todo b=todo c=todo");
    assert_eq!(fixture.task("c").metadata.tool_calls.len(), 1, "a task by hand gets calls");
    fixture.accept(fixture.manager.update("c", fields(json!({"run": null})), None));
    assert_eq!(fixture.task("c").metadata.tool_calls.len(), 0, "and is by hand again");
}

#[test]
fn what_a_command_stopped_stays_until_it_is_released() {
    let fixture = Fixture::with(&["b calls=1"]);
    fixture.set_state("b", "blocked");
    let refused = fixture.refuse(|manager| restart(manager, "b", json!({"run": "make"}), RETRY));
    assert!(refused.contains("unblock"), "{refused}");
    fixture.accept(fixture.manager.update("b", fields(json!({"run": "make"})), None));
    assert!(fixture.states().contains("b=blocked{manual"), "{}", fixture.states());
}

#[test]
fn clean_ups_of_the_failure_run_again() {
    let fixture = Fixture::new();
    fixture
        .apply("tasks: [{id: a, call: {t: {}}}, {id: mend, needs: [a], trigger: any_failed, call: {t: {}}}]");
    fixture.start(&["a"]);
    fixture.report("a", "c1", "bad");
    fixture.run("mend");
    fixture.accept(fixture.manager.update("a", fields(json!({"run": "make"})), None));
    assert_eq!(fixture.states(), "a=todo mend=todo");
}

#[test]
fn a_change_for_all_calls_starts_them_over() {
    let fixture = half_done();
    let refused = fixture.refuse(|manager| restart(manager, "a", json!({"when": "true"}), RETRY));
    assert!(refused.contains("would run its call `c1` again"), "{refused}");
    fixture.accept(restart(&fixture.manager, "a", json!({"when": "true"}), REOPEN));
    assert_eq!(fixture.calls("a"), "c1=pending/1 c2=pending/1 c3=pending/0");
}

#[test]
fn new_calls_take_the_defaults_of_their_plan() {
    let fixture = Fixture::new();
    fixture.apply("{defaults: {cwd: sub, env: {A: x}}, tasks: [{id: a, run: make}]}");
    fixture.accept(fixture.manager.update("a", fields(json!({"run": "make all", "env": {"B": "y"}})), None));
    let args = &fixture.task("a").metadata.tool_calls[0].args;
    assert_eq!((&args["cwd"], &args["env"]), (&json!("sub"), &json!({"A": "x", "B": "y"})));
    let unchanged = fixture.apply("{defaults: {cwd: sub, env: {A: x}}, tasks: [{id: a, run: make}]}");
    assert_eq!(unchanged.unchanged, 1, "the file is the same, so the change stays");
}

#[test]
fn faults_of_new_work_change_nothing() {
    let fixture = half_done();
    for (given, expected) in [
        (json!({"run": ""}), "run"),
        (json!({"run": "a", "call": {"t": {}}}), "call"),
        (json!({"run": "echo ${{ tasks.nobody.result }}"}), "nobody"),
        (json!({"run": "echo ${{ item }}"}), "item"),
        (json!({"calls": [{"t": {}, "id": "x"}, {"t": {}, "id": "x"}]}), "x"),
        (json!({"env": {"A": "b"}}), "env"),
    ] {
        let refused = fixture.refuse(|manager| restart(manager, "a", given.clone(), REOPEN));
        assert!(refused.contains(expected), "{given}: {refused}");
    }
}

#[test]
fn a_model_that_repeats_a_call_has_not_written_it() {
    let fixture = half_done();
    let model = fixture.manager.clone().with_origin(Origin::Mcp);
    let mended = three(&json!({"t": {"n": 2}}));
    fixture.accept(restart(&model, "a", mended, RETRY));
    let origins: Vec<Origin> = fixture.task("a").metadata.tool_calls.iter().map(|call| call.origin).collect();
    assert_eq!(origins[1], Origin::Mcp);
    assert_eq!((origins[0], origins[2]), (Origin::Library, Origin::Library));
}

#[test]
fn an_undo_brings_the_work_back() {
    let fixture = half_done();
    fixture.accept(restart(&fixture.manager, "a", json!({"run": "make"}), REOPEN));
    fixture.accept(fixture.manager.undo(None));
    assert_eq!(fixture.states(), "a=failed b=blocked{dependency a}");
    assert_eq!(fixture.task("a").metadata.tool_calls.len(), 3);
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    assert_eq!(fixture.calls("a").split_whitespace().next(), Some("c1=succeeded/1"));
}

/// A list with an item that is done and one that failed.
fn list_half_done() -> Fixture {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: a, forEach: {in: [x, y]}, run: 'echo ${{ item }}'}, {id: b, needs: [a]}]");
    fixture.run("a.0");
    fixture.start(&["a.1"]);
    fixture.report("a.1", "c1", "bad");
    fixture
}

#[test]
fn a_failed_item_takes_its_own_command_again() {
    let fixture = list_half_done();
    let run = json!({"run": "echo ${{ item }} ${{ index }}"});
    assert_eq!(fixture.accept(fixture.manager.calls_of_update("a.1", &fields(run.clone()))).len(), 1);
    fixture.accept(restart(&fixture.manager, "a.1", run, RETRY));
    assert_eq!(fixture.states(), "a=todo b=todo a.0=done a.1=todo");
    fixture.check();
}

#[test]
fn a_list_with_a_failed_item_is_reopened_with_new_work() {
    let fixture = list_half_done();
    let run = json!({"run": "echo other ${{ item }}"});
    let refused = fixture.refuse(|manager| restart(manager, "a", run.clone(), RETRY));
    assert!(refused.contains("task `a` would run call `c1` of its item `a.0` again"), "{refused}");
    assert!(refused.contains("`taskpawl reopen a`"), "{refused}");
    fixture.accept(restart(&fixture.manager, "a", run, REOPEN));
    assert_eq!(fixture.states(), "a=todo b=todo a.0=todo a.1=todo");
    fixture.check();
}
