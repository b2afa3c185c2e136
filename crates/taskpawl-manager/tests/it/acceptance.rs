//! Approval of results: `approval: {after: true}` asks a person once the calls of a task have succeeded.

use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl_manager::Approving;
use taskpawl_model::command::{Answer, CallEnd, Round};
use taskpawl_model::plan::parse_plan;
use taskpawl_model::task::{ApprovalRequest, BlockedReason, CallError, Origin, Status};

use crate::flow::{started, succeed, with_plan};
use crate::support::{Fixture, fields, ids};

const REVIEWED: &str = "
    tasks:
      - id: a
        calls: [{t: {n: 1}}, {t: {n: 2}}]
        verify: {t: {check: true}}
        approval: {after: true}
      - {id: b, needs: a, call: {t: {got: '${{ tasks.a.result }}'}}}
      - {id: undo, needs: a, trigger: any_failed, call: {t: {}}}
";

const AGENT: &str = "
    tasks:
      - id: a
        calls: [{t: {}}, {agent: {prompt: x}}]
        verify: {t: {check: true}}
        approval: {after: true, ask: 'Good?'}
        rework: 1
";

fn start(fixture: &Fixture, id: &str) -> Answer {
    let tools = Arc::new(["t".to_owned(), "agent".to_owned()].into());
    fixture.round(Round { claims: vec![fixture.key(id)], tools, ..Round::default() })
}

fn asked(fixture: &Fixture, id: &str) -> ApprovalRequest {
    fixture.manager.approval_request(id).unwrap().expect("the task has no question")
}

fn approve(fixture: &Fixture, id: &str) {
    fixture.accept(fixture.manager.approve(&ids(&[id]), Approving::default()));
}

/// Runs task `a` of `REVIEWED` up to its question.
fn reviewed() -> Fixture {
    let fixture = with_plan(REVIEWED);
    fixture.start(&["a"]);
    succeed(&fixture, "a", "c1", json!(1));
    succeed(&fixture, "a", "c2", json!({"text": "made"}));
    assert!(started(&succeed(&fixture, "a", "c3", json!(3))).is_empty());
    fixture
}

/// Runs task `a` of `AGENT` up to its question.
fn worked() -> Fixture {
    let fixture = with_plan(AGENT);
    start(&fixture, "a");
    succeed(&fixture, "a", "c1", json!(1));
    succeed(&fixture, "a", "c2", json!("first"));
    succeed(&fixture, "a", "c3", json!(3));
    fixture
}

#[test]
fn a_task_asks_about_its_result_and_an_approval_ends_it_without_another_start() {
    let fixture = reviewed();
    let request = asked(&fixture, "a");
    assert_eq!(request.ask.as_deref(), Some("Is the result accepted?"));
    assert!(request.after && request.calls.is_empty());
    let results: Vec<_> =
        request.results.iter().map(|shown| (shown.call.as_str(), shown.result.clone())).collect();
    let expected = [("c1", json!(1)), ("c2", json!({"text": "made"})), ("c3", json!(3))];
    assert_eq!(results, expected.map(|(call, result)| (call, Some(result))));
    let task = fixture.task("a");
    assert!(matches!(task.blocked_reason, Some(BlockedReason::Approval { after: true, call: None, .. })));
    assert_eq!(fixture.ready(), [""; 0], "dependents wait");
    approve(&fixture, "a");
    let task = fixture.task("a");
    assert_eq!((task.status, task.result), (Status::Done, Some(json!({"text": "made"}))));
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=succeeded/1 c3=succeeded/1");
    assert_eq!(started(&fixture.start(&["b"])), [r#"b.c1 {"got":{"text":"made"}}"#]);
}

#[test]
fn a_rejected_result_fails_the_task_and_a_retry_asks_again() {
    let fixture = reviewed();
    fixture.accept(fixture.manager.reject(&ids(&["a"]), Some("too long".to_owned())));
    let task = fixture.task("a");
    assert_eq!(
        (task.status, task.error.as_deref()),
        (Status::Failed, Some("the result was rejected: too long"))
    );
    assert_eq!(fixture.task("b").status, Status::Blocked);
    assert_eq!(fixture.ready(), ["undo"], "a compensation runs");
    fixture.accept(fixture.manager.retry(&ids(&["a"]), true));
    assert!(started(&fixture.start(&["a"])).is_empty(), "no call runs again");
    assert_eq!(asked(&fixture, "a").results.len(), 3);
}

#[test]
fn an_approval_holds_for_the_result_that_was_shown() {
    let fixture = worked();
    let before = asked(&fixture, "a").hash;
    fixture.accept(fixture.manager.send_back(&ids(&["a"]), "shorter"));
    start(&fixture, "a");
    succeed(&fixture, "a", "c2", json!("first"));
    succeed(&fixture, "a", "c3", json!(3));
    let after = asked(&fixture, "a").hash;
    assert_ne!(before, after, "an equal result of another start is another result");
    let with = |hash: String| Approving { hash: Some(hash), ..Approving::default() };
    let refused = fixture.refuse(|manager| manager.approve(&ids(&["a"]), with(before.clone())));
    assert!(refused.contains("has the hash"), "{refused}");
    fixture.accept(fixture.manager.approve(&ids(&["a"]), with(after)));
    assert_eq!(fixture.task("a").status, Status::Done);
}

#[test]
fn a_result_that_is_sent_back_goes_to_the_agent_and_uses_up_no_round_of_rework() {
    let fixture = worked();
    fixture.accept(fixture.manager.send_back(&ids(&["a"]), "say it shorter"));
    assert_eq!(fixture.task("a").status, Status::Todo);
    let answer = start(&fixture, "a");
    assert_eq!(started(&answer), [r#"a.c2 {"prompt":"x"}"#]);
    let rework = answer.started[0].call.body.rework().unwrap();
    assert_eq!((rework.round, rework.last, rework.found.as_deref()), (1, 2, Some("say it shorter")));
    assert_eq!(rework.by.as_deref(), Some("ann"));
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=running/2 c3=pending/1");
    succeed(&fixture, "a", "c2", json!("second"));
    // The verification fails, and the one round of the plan is still there.
    let end = CallEnd::Failed { error: CallError::new("exit_code", "exited with 1"), result: None };
    let answer = fixture.accept(fixture.try_report("a", "c3", end, true));
    let rework = answer.started[0].call.body.rework().unwrap();
    assert_eq!((rework.round, rework.last, rework.by.as_deref()), (2, 2, None));
    succeed(&fixture, "a", "c2", json!("third"));
    succeed(&fixture, "a", "c3", json!(3));
    assert_eq!(asked(&fixture, "a").results[1].result, Some(json!("third")));
    approve(&fixture, "a");
    assert_eq!(fixture.task("a").status, Status::Done);
}

#[test]
fn only_a_result_of_an_agent_is_sent_back() {
    let fixture = reviewed();
    let refused = fixture.refuse(|manager| manager.send_back(&ids(&["a"]), "again"));
    assert!(refused.contains("has no call of `agent`"), "{refused}");
    let fixture = worked();
    let refused = fixture.refuse(|manager| manager.send_back(&ids(&["a"]), " "));
    assert!(refused.contains("must not be empty"), "{refused}");
    let args = Approving { args: Some(fields(json!({"n": 2}))), ..Approving::default() };
    let refused = fixture.refuse(|manager| manager.approve(&ids(&["a"]), args));
    assert!(refused.contains("have run already"), "{refused}");
    let fixture = with_plan("tasks: [{id: a, approval: required, call: {agent: {prompt: x}}}]");
    start(&fixture, "a");
    let refused = fixture.refuse(|manager| manager.send_back(&ids(&["a"]), "again"));
    assert!(refused.contains("asks before it runs"), "{refused}");
}

#[test]
fn each_item_of_a_list_asks_about_its_own_result() {
    let fixture = with_plan(
        "tasks: [{id: a, forEach: {in: [1, 2]}, call: {t: {n: '${{ item }}'}}, approval: {after: true}}]",
    );
    assert_eq!(fixture.ready(), ["a.0", "a.1"], "the list itself does not ask");
    fixture.start(&["a.0", "a.1"]);
    succeed(&fixture, "a.0", "c1", json!(1));
    approve(&fixture, "a.0");
    assert_eq!(fixture.task("a").status, Status::Todo);
    succeed(&fixture, "a.1", "c1", json!(2));
    approve(&fixture, "a.1");
    assert_eq!(fixture.task("a").status, Status::Done);
}

#[test]
fn the_end_of_the_time_to_decide_rejects_or_accepts_by_the_plan() {
    for (word, status) in [("reject", Status::Failed), ("approve", Status::Done)] {
        let plan = format!(
            "tasks: [{{id: a, call: {{t: {{}}}}, approval: {{after: true, expires: 10m, onExpiry: {word}}}}}]"
        );
        let fixture = with_plan(&plan);
        fixture.start(&["a"]);
        succeed(&fixture, "a", "c1", json!(1));
        fixture.pass(601);
        let key = fixture.key("a");
        fixture.as_run(taskpawl_model::command::Command::ExpireApprovals { tasks: vec![key] });
        assert_eq!(fixture.task("a").status, status, "{word}");
    }
}

#[test]
fn a_run_that_ends_leaves_the_question_and_the_answer_counts() {
    let fixture = with_plan(REVIEWED);
    fixture.start(&["a"]);
    succeed(&fixture, "a", "c1", json!(1));
    succeed(&fixture, "a", "c2", json!(2));
    fixture.accept(fixture.try_report("a", "c3", CallEnd::Succeeded(json!(3)), false));
    assert_eq!(fixture.task("a").status, Status::Blocked);
    approve(&fixture, "a");
    assert_eq!(fixture.task("a").status, Status::Done);
}

#[test]
fn a_question_that_leaves_the_plan_is_withdrawn_and_an_agent_cannot_take_it() {
    let fixture = reviewed();
    let agent = fixture.manager.clone().with_origin(Origin::Mcp);
    let refused = agent.update("a", fields(json!({"approval": Value::Null})), None).unwrap_err();
    assert!(refused.to_string().contains("approval"), "{refused}");
    assert!(agent.skip(&ids(&["a"]), None).is_err(), "a skipped task lets its dependents start");
    fixture.accept(fixture.manager.update("a", fields(json!({"approval": Value::Null})), None));
    assert_eq!(fixture.task("a").status, Status::Todo);
    assert!(started(&fixture.start(&["a"])).is_empty());
    assert_eq!(fixture.task("a").status, Status::Done);
}

#[test]
fn plans_that_ask_about_no_result_are_refused() {
    for (task, expected) in [
        ("{id: a, approval: {after: true}}", "a task without calls"),
        ("{id: a, call: {t: {}}, approval: {after: false}}", "`ask`"),
        ("{id: a, call: {t: {}}, cache: {inputs: x}, approval: {after: true}}", "cache"),
        ("{id: a, calls: [{toolName: t, approval: {after: true}}]}", "`after` is for tasks"),
        ("{id: a, call: {t: {}}, approval: {after: true, onExpiry: maybe}}", "maybe"),
        ("{id: a, call: {t: {x: '${{ context.approval }}'}}, approval: {after: true}}", "approval"),
    ] {
        let errors = parse_plan(&format!("tasks: [{task}]")).unwrap_err().to_string();
        assert!(errors.contains(expected), "{task}: {errors}");
    }
    let plan =
        "defaults: {approval: {after: true}}\ntasks: [{id: a, milestone: true}, {id: b, call: {t: {}}}]";
    let plan = parse_plan(plan).unwrap();
    let asks: Vec<bool> = plan.tasks.iter().map(|task| task.spec.approval.is_some()).collect();
    assert_eq!(asks, [false, true], "a default is for tasks that have a result");
}
