//! Dynamic tasks: calls that emit tasks into their running plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl_manager::ApplyOptions;
use taskpawl_model::command::{CallEnd, Grant, Round};
use taskpawl_model::task::{Origin, Status};

use crate::flow::{started, succeed, with_plan};
use crate::support::{Fixture, ids};

fn emitter() -> Fixture {
    with_plan(
        "tasks: [{id: a, calls: [{id: c1, toolName: t, emit: true}]}, {id: b, needs: [a], call: {t: {}}}]",
    )
}

fn emitting(tasks: &Value) -> Fixture {
    let fixture = emitter();
    fixture.start(&["a"]);
    succeed(&fixture, "a", "c1", json!({"tasks": tasks}));
    fixture
}

#[test]
fn emitted_tasks_join_the_plan() {
    let fixture = emitting(&json!([
        {"id": "n1", "name": "n1", "call": {"t": {"x": 1}}},
        {"name": "second", "needs": ["n1", "a"], "subtasks": [{"name": "third", "call": {"t": {}}}], "neededBy": ["b"]},
    ]));
    assert_eq!(fixture.states(), "a=done b=todo n1=todo a.c1.0=todo a.c1.1=todo");
    let (second, third) = (fixture.task("a.c1.0"), fixture.task("a.c1.1"));
    assert_eq!((second.name.as_str(), second.plan.as_deref()), ("second", Some("p")));
    assert_eq!(second.dependencies, ["a".into(), "n1".into()]);
    assert_eq!(third.parent, Some("a.c1.0".into()));
    assert_eq!(fixture.task("b").dependencies, ["a".into(), "a.c1.0".into()]);
    assert_eq!(third.metadata.tool_calls[0].origin, Origin::Agent);
    assert_eq!(second.options["links"], json!({"discoveredFrom": ["a"]}));
    assert_eq!(started(&fixture.start(&["n1"])), [r#"n1.c1 {"x":1}"#]);
}

#[test]
fn printed_tasks_are_emitted_and_empty_output_is_no_error() {
    let fixture = emitter();
    fixture.start(&["a"]);
    succeed(&fixture, "a", "c1", json!({"exitCode": 0, "json": {"tasks": [{"id": "n"}]}}));
    assert_eq!(fixture.states(), "a=done b=todo n=todo");
    let fixture = emitter();
    fixture.run("a");
    assert_eq!(fixture.states(), "a=done b=todo");
    let fixture = with_plan("tasks: [{id: a, call: {t: {}}}]");
    fixture.start(&["a"]);
    succeed(&fixture, "a", "c1", json!({"tasks": [{"id": "n"}]}));
    assert_eq!(fixture.states(), "a=done", "the call does not emit tasks");
}

#[test]
fn emission_is_all_or_nothing_with_a_reason() {
    let cases = [
        json!([{"id": "n"}, {"id": "b"}]),
        json!([{"id": "n"}, {"id": "m", "needs": ["nobody"]}]),
        json!([{"id": "n", "needs": ["b"], "neededBy": ["b"]}]),
        json!([{"id": "n", "needs": ["m"]}, {"id": "m", "needs": ["n"]}]),
        json!([{"id": "n", "neededBy": ["a"]}]),
        json!([{"id": "n", "colour": 1, "retry": {"attempts": 0}}]),
        json!({"id": "n"}),
        json!([{"id": "n", "neededBy": 7}]),
    ];
    let mut lines = String::new();
    for tasks in cases {
        let fixture = emitting(&tasks);
        assert_eq!(fixture.states(), "a=failed b=blocked{dependency a}", "{tasks}");
        let call = &fixture.task("a").metadata.tool_calls[0];
        assert_eq!(call.error_class.as_deref(), Some("emit"));
        lines.push_str(&call.error.clone().unwrap());
        lines.push('\n');
    }
    insta::assert_snapshot!(lines);
}

/// Reopens `a` and lets it emit tasks again.
fn again(fixture: &Fixture, tasks: &Value) {
    fixture.start(&["a"]);
    succeed(fixture, "a", "c1", json!({"tasks": tasks}));
}

#[test]
fn a_restarted_call_restores_its_emitted_tasks_once() {
    let fixture =
        emitting(&json!([{"id": "n1", "name": "n1"}, {"id": "n2", "name": "n2"}, {"name": "loose"}]));
    fixture.done("n1");
    let refused = fixture.refuse(|m| m.reopen(&ids(&["a"]), false));
    assert!(refused.contains("`n1`"), "it ran because `a` had ended: {refused}");
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), true));
    assert_eq!(fixture.states(), "a=todo b=todo n1=skipped n2=skipped a.c1.0=skipped");
    again(&fixture, &json!([{"id": "n1", "name": "n1"}, {"id": "n2", "name": "another"}, {"name": "loose"}]));
    assert_eq!(fixture.states(), "a=done b=todo n1=todo n2=todo a.c1.0=todo");
    assert_eq!(fixture.task("n2").name, "another");
    fixture.done("n1");
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), true));
    again(&fixture, &json!([{"id": "n1", "name": "other work"}]));
    assert_eq!(fixture.states(), "a=done b=todo n1=todo n2=skipped a.c1.0=skipped");
    let before = fixture.states();
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), true));
    fixture.accept(fixture.manager.undo(None));
    assert_eq!(fixture.states(), before);
}

#[test]
fn apply_fresh_emits_the_tasks_of_a_call_once() {
    let plan =
        "tasks: [{id: a, calls: [{id: c1, toolName: t, emit: true}]}, {id: b, needs: [a], call: {t: {}}}]";
    let tasks = json!([
        {"id": "n1", "calls": [{"toolName": "t", "emit": true}]},
        {"name": "loose", "subtasks": [{"name": "below"}]},
        {"id": "each", "forEach": {"in": [1]}},
    ]);
    let fixture = emitting(&tasks);
    fixture.start(&["n1"]);
    succeed(&fixture, "n1", "c1", json!({"tasks": [{"id": "deep"}, {"name": "deeper"}]}));
    for id in ["deep", "a.c1.1", "each.0"] {
        fixture.done(id);
    }
    let fresh = ApplyOptions { fresh: true, ..ApplyOptions::default() };
    fixture.accept(fixture.manager.claim("n1.c1.0", crate::support::LEASE));
    let refused = fixture.refuse(|m| m.apply(taskpawl_model::plan::parse_plan(plan).unwrap(), "p", fresh));
    assert!(refused.contains("`n1.c1.0`"), "{refused}");
    fixture.done("n1.c1.0");
    fixture.accept(fixture.try_apply(plan, fresh));
    assert_eq!(
        fixture.states(),
        "a=todo b=todo n1=skipped a.c1.0=skipped a.c1.1=skipped each=skipped each.0=skipped deep=skipped n1.c1.0=skipped"
    );
    again(&fixture, &tasks);
    fixture.start(&["n1"]);
    succeed(&fixture, "n1", "c1", json!({"tasks": [{"name": "deeper"}]}));
    assert_eq!(
        fixture.states(),
        "a=done b=todo n1=done a.c1.0=todo a.c1.1=todo each=todo each.0=todo deep=skipped n1.c1.0=todo"
    );
}

#[test]
fn a_recorded_success_emits_its_tasks_again() {
    let fixture =
        with_plan("tasks: [{id: a, cache: {key: \"'v'\"}, calls: [{id: c1, toolName: t, emit: true}]}]");
    let claim = |grants| Round {
        claims: vec![fixture.key("a")],
        grants,
        tools: Arc::new(["t".to_owned()].into()),
        ..Round::default()
    };
    let take = || {
        let asked = fixture.round(claim(BTreeMap::new()));
        let work = asked.needs[0].1.cache.as_ref().map(|cache| cache.work.clone());
        let grant = Grant { work, fingerprint: Some("same".to_owned()), writes: None };
        fixture.round(claim([(fixture.key("a"), grant)].into()))
    };
    assert_eq!(take().started.len(), 1);
    succeed(&fixture, "a", "c1", json!({"tasks": [{"id": "n"}, {"name": "loose"}]}));
    fixture.done("n");
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), true));
    assert_eq!(fixture.states(), "a=todo n=skipped a.c1.0=skipped");
    assert_eq!(take().started.len(), 0);
    assert_eq!(fixture.states(), "a=done n=todo a.c1.0=todo");
}

#[test]
fn each_round_adds_to_the_emitted_tasks() {
    let fixture = with_plan(
        "tasks: [{id: a, repeat: {until: 'context.c1.last', max: 3}, calls: [{id: c1, toolName: t, emit: true}]}]",
    );
    let round = |tasks: Value, last: bool| {
        fixture.accept(fixture.try_report(
            "a",
            "c1",
            CallEnd::Succeeded(json!({"tasks": tasks, "last": last})),
            true,
        ));
    };
    fixture.start(&["a"]);
    round(json!([{"id": "n"}, {"name": "first"}]), false);
    fixture.done("n");
    round(json!([{"id": "n"}, {"name": "second"}]), false);
    assert_eq!(fixture.states(), "a=in_progress n=done a.c1.0=todo a.c1.1=todo");
    round(json!([{"id": "n", "name": "what is done cannot become other work"}]), true);
    assert_eq!(fixture.task("a").status, Status::Failed);
    fixture.accept(fixture.manager.retry(&ids(&["a"]), true));
    fixture.start(&["a"]);
    round(json!([{"name": "third"}]), true);
    assert_eq!(
        fixture.states(),
        "a=done n=done a.c1.0=todo a.c1.1=todo a.c1.2=todo",
        "the loop of the call was not over"
    );
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), true));
    fixture.start(&["a"]);
    round(json!([{"name": "first"}]), false);
    round(json!([{"name": "second"}]), true);
    assert_eq!(fixture.states(), "a=done n=skipped a.c1.0=todo a.c1.1=todo a.c1.2=skipped");
}

#[test]
fn a_refused_emission_can_be_retried_by_the_retry_policy() {
    let fixture = with_plan(
        "tasks: [{id: a, calls: [{toolName: t, emit: true, retry: {attempts: 2, retryOn: [emit]}}]}]",
    );
    fixture.start(&["a"]);
    succeed(&fixture, "a", "c1", json!({"tasks": [{"id": "a"}]}));
    assert_eq!(fixture.states(), "a=in_progress");
    assert!(fixture.task("a").metadata.tool_calls[0].due.is_some());
}

#[test]
fn emitted_tasks_loop_and_wait_like_others() {
    let fixture = emitting(&json!([
        {"id": "each", "forEach": {"in": [1, 2]}, "call": {"t": {"n": "${{ item }}"}}, "neededBy": "last"},
        {"id": "last", "when": "tasks.each.results == ['fine', 'fine']", "call": {"t": {}}},
    ]));
    assert_eq!(fixture.states(), "a=done b=todo each=todo last=todo each.0=todo each.1=todo");
    fixture.run("each.0");
    fixture.run("each.1");
    fixture.run("last");
    assert_eq!(fixture.task("last").status, Status::Done);
}
