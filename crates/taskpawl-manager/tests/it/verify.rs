//! Verification: calls that check the work of a task, and rework by its agent.

use std::sync::Arc;

use serde_json::json;
use taskpawl_model::command::{Answer, CallEnd, Round};
use taskpawl_model::plan::parse_plan;
use taskpawl_model::task::{CallError, Status};

use crate::flow::{started, succeed, with_plan};
use crate::support::{Fixture, fields, ids};

const CHECKED: &str = "
    tasks:
      - id: a
        verify: [{t: {n: 3}}, {t: {n: 4}}]
        calls: [{t: {n: 1}}, {t: {n: 2}}]
      - {id: b, needs: a, call: {t: {got: '${{ tasks.a.result }}', all: '${{ tasks.a.results }}'}}}
";

const AGENT: &str = "
    tasks:
      - id: a
        calls: [{t: {}}, {agent: {prompt: x}}, {t: {after: '${{ context.c2 }}'}}]
        verify: {t: {check: true}}
        rework: 2
";

fn start(fixture: &Fixture, id: &str) -> Answer {
    let tools = Arc::new(["t".to_owned(), "agent".to_owned()].into());
    fixture.round(Round { claims: vec![fixture.key(id)], tools, ..Round::default() })
}

#[track_caller]
fn fail(fixture: &Fixture, call: &str, class: &str) -> Answer {
    let error = CallError::new(class, "exited with 1");
    let end = CallEnd::Failed { error, result: Some(json!({"stdout": "2 tests failed\n", "exitCode": 1})) };
    fixture.accept(fixture.try_report("a", call, end, true))
}

/// Runs task `a` of `AGENT` up to its verification.
fn worked() -> Fixture {
    let fixture = with_plan(AGENT);
    start(&fixture, "a");
    succeed(&fixture, "a", "c1", json!(1));
    succeed(&fixture, "a", "c2", json!("first"));
    assert_eq!(started(&succeed(&fixture, "a", "c3", json!(3))), [r#"a.c4 {"check":true}"#]);
    fixture
}

#[test]
fn verifications_run_last_and_the_result_is_that_of_the_work() {
    let fixture = with_plan(CHECKED);
    assert_eq!(started(&fixture.start(&["a"])), [r#"a.c1 {"n":1}"#]);
    succeed(&fixture, "a", "c1", json!("x"));
    assert_eq!(started(&succeed(&fixture, "a", "c2", json!("y"))), [r#"a.c3 {"n":3}"#]);
    succeed(&fixture, "a", "c3", json!("checked"));
    assert_eq!(fixture.task("a").status, Status::InProgress);
    succeed(&fixture, "a", "c4", json!("checked"));
    assert_eq!((fixture.task("a").status, fixture.task("a").result), (Status::Done, Some(json!("y"))));
    assert_eq!(started(&fixture.start(&["b"])), [r#"b.c1 {"all":["x","y"],"got":"y"}"#]);
}

#[test]
fn parallel_work_is_verified_once_all_of_it_has_ended() {
    let fixture = with_plan(&CHECKED.replace("verify:", "mode: parallel\n        verify:"));
    let tools = Arc::new(["t".to_owned()].into());
    let round = Round { claims: vec![fixture.key("a")], tools, places: 4, ..Round::default() };
    assert_eq!(started(&fixture.round(round)).len(), 2);
    assert!(started(&succeed(&fixture, "a", "c2", json!(1))).is_empty());
    succeed(&fixture, "a", "c1", json!(1));
    let calls = fixture.calls("a");
    assert!(calls.starts_with("c1=succeeded/1 c2=succeeded/1 c3=running/1"), "{calls}");
}

#[test]
fn a_failed_verification_fails_the_task_with_its_text_and_a_retry_runs_it_alone() {
    let fixture = with_plan(CHECKED);
    fixture.start(&["a"]);
    fixture.report("a", "c1", "ok");
    fixture.report("a", "c2", "ok");
    fixture.report("a", "c3", "bad");
    let task = fixture.task("a");
    assert_eq!((task.status, task.error.as_deref()), (Status::Failed, Some("verification `c3` (t): boom")));
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    assert_eq!(started(&fixture.start(&["a"])), [r#"a.c3 {"n":3}"#]);
}

#[test]
fn a_failed_verification_goes_back_to_the_agent_and_calls_after_it_begin_again() {
    let fixture = worked();
    let revision = fixture.revision();
    let answer = fail(&fixture, "c4", "exit_code");
    assert_eq!(started(&answer), [r#"a.c2 {"prompt":"x"}"#]);
    let rework = answer.started[0].call.body.rework().unwrap();
    let found = "verification `c4` (t): exited with 1\nstdout:\n2 tests failed";
    assert_eq!((rework.round, rework.last, rework.found.as_deref()), (1, 2, Some(found)));
    assert_eq!(answer.started[0].call.body.rework_round(), 0, "the agent keeps its key");
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=running/2 c3=pending/1 c4=pending/1");
    assert_eq!(fixture.events(revision), ["call_ended a", "sent_back a", "call_started a"]);
    let answer = succeed(&fixture, "a", "c2", json!("second"));
    assert_eq!(started(&answer), [r#"a.c3 {"after":"second"}"#]);
    assert_eq!(answer.started[0].call.body.rework_round(), 1, "other calls have a new key");
    succeed(&fixture, "a", "c3", json!(3));
    succeed(&fixture, "a", "c4", json!(4));
    assert_eq!(fixture.task("a").status, Status::Done);
}

#[test]
fn rework_ends_after_its_rounds_and_a_retry_allows_them_again() {
    let fixture = worked();
    for round in 1..=2 {
        fail(&fixture, "c4", "exit_code");
        assert_eq!(fixture.calls("a").matches("running").count(), 1, "round {round}");
        succeed(&fixture, "a", "c2", json!("again"));
        succeed(&fixture, "a", "c3", json!(3));
    }
    fail(&fixture, "c4", "exit_code");
    assert_eq!(fixture.task("a").status, Status::Failed);
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    assert_eq!(started(&start(&fixture, "a")), [r#"a.c4 {"check":true}"#]);
    let answer = fail(&fixture, "c4", "exit_code");
    let rework = answer.started[0].call.body.rework().unwrap();
    assert_eq!((rework.round, rework.last), (3, 4));
    fixture.accept(fixture.manager.cancel(&ids(&["a"]), None));
}

#[test]
fn mistakes_of_the_plan_and_failures_of_the_work_are_not_sent_back() {
    for class in ["denied", "missing_tool", "invalid_args"] {
        let fixture = worked();
        fail(&fixture, "c4", class);
        assert_eq!(fixture.task("a").status, Status::Failed, "{class}");
    }
    let fixture = with_plan(AGENT);
    start(&fixture, "a");
    fail(&fixture, "c1", "exit_code");
    assert_eq!(fixture.task("a").status, Status::Failed);
}

#[test]
fn a_run_that_ends_leaves_the_rework_to_the_next_one() {
    let fixture = worked();
    let error = CallError::new("exit_code", "exited with 1");
    let end = CallEnd::Failed { error, result: None };
    fixture.accept(fixture.try_report("a", "c4", end, false));
    assert_eq!(fixture.task("a").status, Status::Todo);
    let answer = start(&fixture, "a");
    assert_eq!(started(&answer), [r#"a.c2 {"prompt":"x"}"#]);
    assert!(answer.started[0].call.body.rework().unwrap().found.is_some());
}

#[test]
fn an_update_of_the_work_keeps_its_verification() {
    let fixture = with_plan(CHECKED);
    fixture.accept(fixture.manager.update("a", fields(json!({"call": {"t": {"n": 9}}})), None));
    let calls = fixture.task("a").metadata.tool_calls;
    let verify: Vec<bool> = calls.iter().map(|call| json!(call)["verify"] == true).collect();
    assert_eq!(verify, [false, true, true]);
    let refused = fixture.refuse(|manager| manager.update("a", fields(json!({"verify": {"t": {}}})), None));
    assert!(refused.contains("a task with `verify`"), "{refused}");
    let refused = fixture.refuse(|manager| manager.update("a", fields(json!({"rework": 1})), None));
    assert!(refused.contains("the task has no call of `agent`"), "{refused}");
}

#[test]
fn what_is_missing_is_named_before_anything_runs() {
    for (task, problem) in [
        ("{id: a, verify: {t: {}}}", "a task with `verify`"),
        ("{id: a, call: {agent: {prompt: x}}, rework: 1}", "a task with `rework`"),
        ("{id: a, call: {t: {}}, verify: {t: {}}, rework: 1}", "a call of `agent`"),
        ("{id: a, call: {agent: {prompt: x}}, verify: {t: {}}, rework: 0}", "at least 1"),
        ("{id: a, call: {id: x, t: {}}, verify: {id: x, t: {}}}", "`x`"),
    ] {
        let errors = parse_plan(&format!("tasks: [{task}]")).unwrap_err().to_string();
        assert!(errors.contains(problem), "{task}: {errors}");
    }
}
