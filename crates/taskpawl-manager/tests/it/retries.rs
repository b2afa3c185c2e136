//! Retries of failed calls, and timeouts of tasks.

use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl_model::command::{Answer, CallEnd, Round, RunRules};
use taskpawl_model::task::{CallError, Retry, Status};
use taskpawl_model::value::Timestamp;

use crate::flow::{started, succeed, with_plan};
use crate::support::{Fixture, ids};

fn failure(class: &str, code: Option<i64>) -> CallEnd {
    let error = CallError::new(class, "boom");
    CallEnd::Failed { error, result: code.map(|code| json!({"exitCode": code})) }
}

#[track_caller]
fn fail_with(fixture: &Fixture, id: &str, class: &str, code: Option<i64>) -> Answer {
    fixture.accept(fixture.try_report(id, "c1", failure(class, code), true))
}

fn resume(fixture: &Fixture, id: &str) -> Answer {
    let resumes = vec![(fixture.key(id), fixture.task(id).attempt)];
    fixture.round(Round { resumes, ..Round::default() })
}

fn due(fixture: &Fixture, id: &str) -> Option<Timestamp> {
    fixture.task(id).metadata.tool_calls[0].due
}

fn plan(retry: &str) -> Fixture {
    with_plan(&format!("tasks: [{{id: a, call: {{t: {{}}}}, retry: {retry}}}]"))
}

#[test]
fn a_failed_call_starts_again_after_a_pause_that_grows() {
    let fixture = plan("{attempts: 3, delay: 10s, factor: 3, jitter: false}");
    fixture.start(&["a"]);
    let answer = fail_with(&fixture, "a", "failed", None);
    let (task, paused) = (fixture.task("a"), &answer.paused[0]);
    assert_eq!((task.status, paused.until, paused.attempt), (Status::InProgress, due(&fixture, "a"), 1));
    assert_eq!(fixture.calls("a"), "c1=pending/1");
    fixture.pass(9);
    assert_eq!(resume(&fixture, "a").paused.len(), 1);
    fixture.pass(1);
    assert_eq!(started(&resume(&fixture, "a")), ["a.c1 {}"]);
    fail_with(&fixture, "a", "failed", None);
    fixture.pass(29);
    assert_eq!(resume(&fixture, "a").paused.len(), 1);
    fixture.pass(1);
    resume(&fixture, "a");
    fail_with(&fixture, "a", "failed", None);
    let task = fixture.task("a");
    assert_eq!((task.status, task.attempt, fixture.calls("a").as_str()), (Status::Failed, 1, "c1=failed/3"));
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    assert_eq!(fixture.task("a").metadata.tool_calls[0].failures, 0, "a manual retry resets the count");
}

#[test]
fn jitter_is_on_and_takes_at_most_half() {
    for id in ["a", "b", "c", "d"] {
        let fixture = with_plan(&format!(
            "tasks: [{{id: {id}, call: {{t: {{}}}}, retry: {{attempts: 9, delay: 100s}}}}]"
        ));
        fixture.start(&[id]);
        let now = fixture.task(id).updated_at;
        fail_with(&fixture, id, "timeout", None);
        let pause = (due(&fixture, id).unwrap() - now).num_milliseconds();
        assert!((50_000..100_000).contains(&pause), "{pause}");
    }
}

#[test]
fn only_the_configured_failures_are_retried() {
    let cases = [
        ("{attempts: 2}", "failed", None, true),
        ("{attempts: 2}", "timeout", None, true),
        ("{attempts: 2}", "invalid_args", None, false),
        ("{attempts: 1}", "failed", None, false),
        ("{attempts: 2, retryOn: [timeout]}", "timeout", None, true),
        ("{attempts: 2, retryOn: [timeout]}", "exit_code", Some(1), false),
        ("{attempts: 2, retryOn: [75, timeout]}", "exit_code", Some(75), true),
        ("{attempts: 2, retryOn: [75]}", "exit_code", Some(1), false),
        ("{attempts: 2, retryOn: [75]}", "http_status", Some(75), false),
        ("{attempts: 2, retryOn: [exit_code]}", "exit_code", Some(1), true),
        ("{attempts: 2, retryOn: [invalid_args]}", "invalid_args", None, true),
    ];
    for (policy, class, code, again) in cases {
        let fixture = plan(policy);
        fixture.start(&["a"]);
        fail_with(&fixture, "a", class, code);
        assert_eq!(due(&fixture, "a").is_some(), again, "{policy} {class} {code:?}");
    }
}

#[test]
fn the_retry_policy_of_a_call_overrides_that_of_its_task_and_run() {
    let retry =
        Retry { attempts: 2, delay: None, factor: None, max_delay: None, jitter: None, retry_on: Vec::new() };
    let rules = Arc::new(RunRules { retry: Some(retry), ..RunRules::default() });
    let cases = [
        ("{id: a, call: {t: {}}}", true),
        ("{id: a, call: {t: {}}, retry: {attempts: 1}}", false),
        ("{id: a, calls: [{toolName: t, retry: {attempts: 2}}], retry: {attempts: 1}}", true),
    ];
    for (task, again) in cases {
        let fixture = with_plan(&format!("tasks: [{task}]"));
        fixture.start(&["a"]);
        let mut report = report_of(&fixture, failure("failed", None));
        report.rules = Arc::clone(&rules);
        fixture.round(report);
        assert_eq!(due(&fixture, "a").is_some(), again, "{task}");
    }
}

fn report_of(fixture: &Fixture, end: CallEnd) -> Round {
    let report = taskpawl_model::command::Report {
        task: fixture.key("a"),
        attempt: fixture.task("a").attempt,
        call: "c1".into(),
        end,
        usage: None,
        artifacts: Vec::new(),
        changed_beyond: Vec::new(),
        changes_unknown: None,
        inputs_changed: false,
        worker: None,
        cut: Vec::new(),
        go_on: true,
    };
    Round { reports: vec![report], ..Round::default() }
}

#[test]
fn a_waiting_retry_keeps_its_time_when_the_run_ends() {
    let fixture = plan("{attempts: 3, delay: 60s, jitter: false}");
    fixture.start(&["a"]);
    fail_with(&fixture, "a", "failed", None);
    let before = due(&fixture, "a");
    fixture.give_back("a");
    assert_eq!((fixture.states().as_str(), due(&fixture, "a")), ("a=todo", before));
    let answer = fixture.start(&["a"]);
    assert_eq!((answer.started.len(), answer.paused[0].until), (0, before));
    fixture.pass(60);
    resume(&fixture, "a");
    succeed(&fixture, "a", "c1", json!(1));
    assert_eq!((fixture.states().as_str(), fixture.task("a").attempt), ("a=done", 2));
}

#[test]
fn no_retry_starts_after_the_timeout_of_the_task() {
    let fixture = with_plan(
        "tasks: [{id: a, timeout: 30s, call: {t: {}}, retry: {attempts: 9, delay: 20s, jitter: false}}]",
    );
    let answer = fixture.start(&["a"]);
    assert_eq!(answer.started[0].deadline, fixture.task("a").progress.deadline);
    fail_with(&fixture, "a", "failed", None);
    fixture.pass(20);
    resume(&fixture, "a");
    fail_with(&fixture, "a", "failed", None);
    assert_eq!((fixture.states().as_str(), fixture.calls("a").as_str()), ("a=failed", "c1=failed/2"));
    assert_eq!(fixture.task("a").progress.deadline, None);
}

#[test]
fn no_call_starts_after_the_timeout_of_the_task() {
    let fixture = with_plan("tasks: [{id: a, timeout: 30s, calls: [{toolName: t}, {toolName: t}]}]");
    fixture.start(&["a"]);
    fixture.pass(31);
    assert_eq!(started(&fixture.report("a", "c1", "ok")), Vec::<String>::new());
    let task = fixture.task("a");
    assert_eq!(
        (task.status, task.metadata.tool_calls[1].error_class.as_deref()),
        (Status::Failed, Some("timeout"))
    );
}

#[test]
fn parallel_calls_wait_for_free_slots() {
    let fixture = with_plan(
        "tasks: [{id: a, mode: parallel, calls: [{toolName: t}, {toolName: t}, {toolName: t}]}, {id: b, call: {t: {}}}]",
    );
    let tools = Arc::new(["t".to_owned()].into());
    let claims = vec![fixture.key("a"), fixture.key("b")];
    let answer = fixture.round(Round { claims, tools, places: 2, ..Round::default() });
    assert_eq!(started(&answer), ["a.c1 {}", "a.c2 {}"]);
    assert_eq!(
        (answer.paused.len(), answer.needs.len(), fixture.states().as_str()),
        (1, 1, "a=in_progress b=todo")
    );
    assert_eq!(started(&fixture.report("a", "c2", "ok")), ["a.c3 {}"]);
    fixture.report("a", "c3", "ok");
    fixture.report("a", "c1", "ok");
    assert_eq!(fixture.states(), "a=done b=todo");
}

#[test]
fn calls_wait_for_free_slots_of_their_tool() {
    let fixture =
        with_plan("tasks: [{id: a, calls: [{toolName: t}, {toolName: slow}]}, {id: b, call: {slow: {}}}]");
    let tools: Arc<_> = Arc::new(["t".to_owned(), "slow".to_owned()].into());
    let tool_places = [("slow".to_owned(), 0)].into();
    let claims = vec![fixture.key("a"), fixture.key("b")];
    let round = Round { claims, tools, tool_places, ..Round::default() };
    let answer = fixture.round(round);
    assert_eq!(
        (started(&answer), answer.needs[0].1.tool.as_deref()),
        (vec!["a.c1 {}".to_owned()], Some("slow"))
    );
    let mut round = report_of(&fixture, CallEnd::Succeeded(Value::Null));
    round.tool_places = [("slow".to_owned(), 0)].into();
    assert_eq!(fixture.round(round).paused[0].tools, ["slow".to_owned()].into());
    assert_eq!(started(&resume(&fixture, "a")), ["a.c2 {}"]);
}

#[test]
fn parallel_calls_wait_for_whichever_comes_first() {
    let fixture = with_plan(
        "tasks: [{id: a, mode: parallel, retry: {attempts: 2, delay: 5s, jitter: false}, calls: [{toolName: t}, {toolName: one}, {toolName: two}]}]",
    );
    let full: std::collections::BTreeMap<String, usize> =
        [("one".to_owned(), 0), ("two".to_owned(), 0)].into();
    let tools: Arc<_> = Arc::new(["t".to_owned(), "one".to_owned(), "two".to_owned()].into());
    let claims = vec![fixture.key("a")];
    let answer = fixture.round(Round { claims, tools, tool_places: full.clone(), ..Round::default() });
    let both: std::collections::BTreeSet<String> = full.keys().cloned().collect();
    assert_eq!((started(&answer), &answer.paused[0].tools), (vec!["a.c1 {}".to_owned()], &both));
    let error = CallError::new("failed", "no");
    let mut round = report_of(&fixture, CallEnd::Failed { error, result: None });
    round.tool_places = full;
    let answer = fixture.round(round);
    assert_eq!((answer.paused[0].until.is_some(), &answer.paused[0].tools), (true, &both));
}

#[test]
fn a_parallel_call_is_retried_while_the_others_run() {
    let fixture = with_plan(
        "tasks: [{id: a, mode: parallel, retry: {attempts: 2, delay: 5s, jitter: false}, calls: [{toolName: t}, {toolName: t}]}]",
    );
    fixture.start(&["a"]);
    let answer = fail_with(&fixture, "a", "failed", None);
    assert!(answer.paused[0].until.is_some());
    fixture.pass(5);
    assert_eq!(started(&resume(&fixture, "a")), ["a.c1 {}"]);
    fail_with(&fixture, "a", "failed", None);
    assert_eq!(fixture.states(), "a=in_progress", "the other call is still running");
    fixture.report("a", "c2", "ok");
    assert_eq!(fixture.states(), "a=failed");
}
