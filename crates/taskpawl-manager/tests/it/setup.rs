//! Calls that prepare a worktree: they run before the work, and once.

use std::sync::Arc;

use serde_json::json;
use taskpawl_model::command::{Answer, Round};
use taskpawl_model::plan::{expand_plan, parse_plan};
use taskpawl_model::task::Status;

use crate::flow::{started, succeed, with_plan};
use crate::support::{Fixture, fields, ids};

const PREPARED: &str = "
    tasks:
      - id: a
        worktree: {setup: [{t: {s: 1}}, {t: {s: 2}}]}
        calls: [{t: {n: 1}}, {t: {n: '${{ context.c1 }}'}}]
        verify: {t: {v: 1}}
";

fn start(fixture: &Fixture) -> Answer {
    let tools = ["t", "agent", "worktree_commit"].map(str::to_owned);
    fixture.round(Round { claims: vec![fixture.key("a")], tools: Arc::new(tools.into()), ..Round::default() })
}

/// Runs task `a` of `PREPARED` up to its work.
fn prepared(plan: &str) -> Fixture {
    let fixture = with_plan(plan);
    assert_eq!(started(&start(&fixture)), [r#"a.setup {"s":1}"#]);
    assert_eq!(started(&succeed(&fixture, "a", "setup", json!(0))), [r#"a.setup2 {"s":2}"#]);
    fixture
}

#[test]
fn calls_that_prepare_run_first_and_are_no_result() {
    let fixture = prepared(PREPARED);
    assert_eq!(started(&succeed(&fixture, "a", "setup2", json!(0))), [r#"a.c1 {"n":1}"#]);
    succeed(&fixture, "a", "c1", json!("x"));
    succeed(&fixture, "a", "c2", json!("y"));
    succeed(&fixture, "a", "c3", json!("v"));
    succeed(&fixture, "a", "worktree", json!({"commit": "c"}));
    assert_eq!((fixture.task("a").status, fixture.task("a").result), (Status::Done, Some(json!("y"))));
}

#[test]
fn parallel_work_waits_for_calls_that_prepare_one_after_the_other() {
    let fixture = with_plan(
        &PREPARED.replace("verify:", "mode: parallel\n        verify:").replace("'${{ context.c1 }}'", "2"),
    );
    assert_eq!(started(&start(&fixture)), [r#"a.setup {"s":1}"#]);
    assert_eq!(started(&succeed(&fixture, "a", "setup", json!(0))), [r#"a.setup2 {"s":2}"#]);
    succeed(&fixture, "a", "setup2", json!(0));
    assert!(fixture.calls("a").starts_with("c1=running/1"), "{}", fixture.calls("a"));
}

#[test]
fn a_failure_ends_the_task_and_what_succeeded_does_not_run_again() {
    let fixture = prepared(PREPARED);
    fixture.report("a", "setup2", "bad");
    assert_eq!(fixture.task("a").error.as_deref(), Some("setup `setup2` (t): boom"));
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    assert_eq!(started(&start(&fixture)), [r#"a.setup2 {"s":2}"#]);
    succeed(&fixture, "a", "setup2", json!(0));
    fixture.report("a", "c1", "bad");
    // Other work continues in the same worktree, also without an idempotent setup.
    fixture.accept(fixture.manager.update("a", fields(json!({"calls": [{"t": {"n": 7}}]})), None));
    let next = start(&fixture);
    assert_eq!(started(&next), [r#"a.c1 {"n":7}"#]);
    fixture.report("a", "c1", "bad");
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), false));
    assert!(started(&start(&fixture))[0].ends_with(r#"{"s":1}"#));
}

#[test]
fn rounds_of_a_loop_share_the_worktree() {
    let plan = PREPARED.replace("verify:", "repeat: {until: 'false', max: 2}\n        verify:");
    let fixture = prepared(&plan);
    for call in ["setup2", "c1", "c2", "c3"] {
        succeed(&fixture, "a", call, json!("x"));
    }
    let next = succeed(&fixture, "a", "worktree", json!({"commit": "c"}));
    assert_eq!(started(&next), [r#"a.c1 {"n":1}"#]);
}

#[test]
fn the_agent_of_the_work_gets_the_rework() {
    let plan = "
    tasks:
      - id: a
        worktree: {setup: [{agent: {prompt: s}}]}
        calls: [{agent: {prompt: x}}]
        verify: {t: {v: 1}}
        rework: 1
";
    let fixture = with_plan(plan);
    start(&fixture);
    succeed(&fixture, "a", "setup", json!("s"));
    succeed(&fixture, "a", "c1", json!("x"));
    fixture.report("a", "c2", "bad");
    assert!(
        fixture.calls("a").starts_with("c1=running/2 c2=pending/1 setup=succeeded/1"),
        "{}",
        fixture.calls("a")
    );
}

#[test]
fn the_long_form_and_defaults_have_the_same_calls() {
    let text = "
    defaults: {worktree: {setup: {t: {s: 1}}}}
    tasks:
      - {id: a, call: {t: {}}}
      - {id: b, worktree: true, call: {t: {}}}
      - {id: c, writes: x, call: {t: {}}}
      - {id: d}
";
    let plan = parse_plan(text).unwrap();
    let parts = |plan: &taskpawl_model::plan::Plan| {
        plan.tasks
            .iter()
            .map(|task| task.calls.iter().filter(|call| call.spec.setup).count())
            .collect::<Vec<_>>()
    };
    assert_eq!(parts(&plan), [1, 0, 0, 0]);
    let long = parse_plan(&expand_plan(&plan).to_string()).unwrap();
    assert_eq!(parts(&long), parts(&plan));
    for (again, task) in long.tasks.iter().zip(&plan.tasks) {
        assert_eq!((&again.calls, &again.spec), (&task.calls, &task.spec));
    }
}
