//! Dynamic tasks: calls that emit tasks into their running plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl_manager::ApplyOptions;
use taskpawl_model::{CallEnd, Grant, Origin, Round, Status};

use crate::flow::{started, succeed, with_plan};
use crate::support::{Desk, ids};

fn emitter() -> Desk {
    with_plan(
        "tasks: [{id: a, calls: [{id: c1, toolName: t, emit: true}]}, {id: b, needs: [a], call: {t: {}}}]",
    )
}

fn emitting(tasks: &Value) -> Desk {
    let desk = emitter();
    desk.start(&["a"]);
    succeed(&desk, "a", "c1", json!({"tasks": tasks}));
    desk
}

#[test]
fn emitted_tasks_join_the_plan() {
    let desk = emitting(&json!([
        {"id": "n1", "name": "n1", "call": {"t": {"x": 1}}},
        {"name": "second", "needs": ["n1", "a"], "subtasks": [{"name": "third", "call": {"t": {}}}], "neededBy": ["b"]},
    ]));
    assert_eq!(desk.states(), "a=done b=todo n1=todo a.c1.0=todo a.c1.1=todo");
    let (second, third) = (desk.task("a.c1.0"), desk.task("a.c1.1"));
    assert_eq!((second.name.as_str(), second.plan.as_deref()), ("second", Some("p")));
    assert_eq!(second.dependencies, ["a".into(), "n1".into()]);
    assert_eq!(third.parent, Some("a.c1.0".into()));
    assert_eq!(desk.task("b").dependencies, ["a".into(), "a.c1.0".into()]);
    assert_eq!(third.metadata.tool_calls[0].origin, Origin::Agent);
    assert_eq!(second.options["links"], json!({"discoveredFrom": ["a"]}));
    assert_eq!(started(&desk.start(&["n1"])), [r#"n1.c1 {"x":1}"#]);
}

#[test]
fn printed_tasks_are_emitted_and_empty_output_is_no_error() {
    let desk = emitter();
    desk.start(&["a"]);
    succeed(&desk, "a", "c1", json!({"exitCode": 0, "json": {"tasks": [{"id": "n"}]}}));
    assert_eq!(desk.states(), "a=done b=todo n=todo");
    let desk = emitter();
    desk.run("a");
    assert_eq!(desk.states(), "a=done b=todo");
    let desk = with_plan("tasks: [{id: a, call: {t: {}}}]");
    desk.start(&["a"]);
    succeed(&desk, "a", "c1", json!({"tasks": [{"id": "n"}]}));
    assert_eq!(desk.states(), "a=done", "the call does not emit tasks");
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
        let desk = emitting(&tasks);
        assert_eq!(desk.states(), "a=failed b=blocked{dependency a}", "{tasks}");
        let call = &desk.task("a").metadata.tool_calls[0];
        assert_eq!(call.error_class.as_deref(), Some("emit"));
        lines.push_str(&call.error.clone().unwrap());
        lines.push('\n');
    }
    insta::assert_snapshot!(lines);
}

/// Reopens `a` and lets it emit tasks again.
fn again(desk: &Desk, tasks: &Value) {
    desk.start(&["a"]);
    succeed(desk, "a", "c1", json!({"tasks": tasks}));
}

#[test]
fn a_restarted_call_restores_its_emitted_tasks_once() {
    let desk = emitting(&json!([{"id": "n1", "name": "n1"}, {"id": "n2", "name": "n2"}, {"name": "loose"}]));
    desk.done("n1");
    let refused = desk.refuse(|m| m.reopen(&ids(&["a"]), false));
    assert!(refused.contains("`n1`"), "it ran because `a` had ended: {refused}");
    desk.accept(desk.manager.reopen(&ids(&["a"]), true));
    assert_eq!(desk.states(), "a=todo b=todo n1=skipped n2=skipped a.c1.0=skipped");
    again(&desk, &json!([{"id": "n1", "name": "n1"}, {"id": "n2", "name": "another"}, {"name": "loose"}]));
    assert_eq!(desk.states(), "a=done b=todo n1=todo n2=todo a.c1.0=todo");
    assert_eq!(desk.task("n2").name, "another");
    desk.done("n1");
    desk.accept(desk.manager.reopen(&ids(&["a"]), true));
    again(&desk, &json!([{"id": "n1", "name": "other work"}]));
    assert_eq!(desk.states(), "a=done b=todo n1=todo n2=skipped a.c1.0=skipped");
    let before = desk.states();
    desk.accept(desk.manager.reopen(&ids(&["a"]), true));
    desk.accept(desk.manager.undo(None));
    assert_eq!(desk.states(), before);
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
    let desk = emitting(&tasks);
    desk.start(&["n1"]);
    succeed(&desk, "n1", "c1", json!({"tasks": [{"id": "deep"}, {"name": "deeper"}]}));
    for id in ["deep", "a.c1.1", "each.0"] {
        desk.done(id);
    }
    let fresh = ApplyOptions { fresh: true, ..ApplyOptions::default() };
    desk.accept(desk.manager.claim("n1.c1.0", crate::support::LEASE));
    let refused = desk.refuse(|m| m.apply(taskpawl_model::parse_plan(plan).unwrap(), "p", fresh));
    assert!(refused.contains("`n1.c1.0`"), "{refused}");
    desk.done("n1.c1.0");
    desk.accept(desk.try_apply(plan, fresh));
    assert_eq!(
        desk.states(),
        "a=todo b=todo n1=skipped a.c1.0=skipped a.c1.1=skipped each=skipped each.0=skipped deep=skipped n1.c1.0=skipped"
    );
    again(&desk, &tasks);
    desk.start(&["n1"]);
    succeed(&desk, "n1", "c1", json!({"tasks": [{"name": "deeper"}]}));
    assert_eq!(
        desk.states(),
        "a=done b=todo n1=done a.c1.0=todo a.c1.1=todo each=todo each.0=todo deep=skipped n1.c1.0=todo"
    );
}

#[test]
fn a_recorded_success_emits_its_tasks_again() {
    let desk =
        with_plan("tasks: [{id: a, cache: {key: \"'v'\"}, calls: [{id: c1, toolName: t, emit: true}]}]");
    let claim = |grants| Round {
        claims: vec![desk.key("a")],
        grants,
        tools: Arc::new(["t".to_owned()].into()),
        ..Round::default()
    };
    let take = || {
        let asked = desk.round(claim(BTreeMap::new()));
        let work = asked.needs[0].1.cache.as_ref().map(|cache| cache.work.clone());
        let grant = Grant { work, fingerprint: Some("same".to_owned()), writes: None };
        desk.round(claim([(desk.key("a"), grant)].into()))
    };
    assert_eq!(take().started.len(), 1);
    succeed(&desk, "a", "c1", json!({"tasks": [{"id": "n"}, {"name": "loose"}]}));
    desk.done("n");
    desk.accept(desk.manager.reopen(&ids(&["a"]), true));
    assert_eq!(desk.states(), "a=todo n=skipped a.c1.0=skipped");
    assert_eq!(take().started.len(), 0);
    assert_eq!(desk.states(), "a=done n=todo a.c1.0=todo");
}

#[test]
fn each_round_adds_to_the_emitted_tasks() {
    let desk = with_plan(
        "tasks: [{id: a, repeat: {until: 'context.c1.last', max: 3}, calls: [{id: c1, toolName: t, emit: true}]}]",
    );
    let round = |tasks: Value, last: bool| {
        desk.accept(desk.try_report(
            "a",
            "c1",
            CallEnd::Succeeded(json!({"tasks": tasks, "last": last})),
            true,
        ));
    };
    desk.start(&["a"]);
    round(json!([{"id": "n"}, {"name": "first"}]), false);
    desk.done("n");
    round(json!([{"id": "n"}, {"name": "second"}]), false);
    assert_eq!(desk.states(), "a=in_progress n=done a.c1.0=todo a.c1.1=todo");
    round(json!([{"id": "n", "name": "what is done cannot become other work"}]), true);
    assert_eq!(desk.task("a").status, Status::Failed);
    desk.accept(desk.manager.retry(&ids(&["a"]), true));
    desk.start(&["a"]);
    round(json!([{"name": "third"}]), true);
    assert_eq!(
        desk.states(),
        "a=done n=done a.c1.0=todo a.c1.1=todo a.c1.2=todo",
        "the loop of the call was not over"
    );
    desk.accept(desk.manager.reopen(&ids(&["a"]), true));
    desk.start(&["a"]);
    round(json!([{"name": "first"}]), false);
    round(json!([{"name": "second"}]), true);
    assert_eq!(desk.states(), "a=done n=skipped a.c1.0=todo a.c1.1=todo a.c1.2=skipped");
}

#[test]
fn a_refused_emission_can_be_retried_by_the_retry_policy() {
    let desk = with_plan(
        "tasks: [{id: a, calls: [{toolName: t, emit: true, retry: {attempts: 2, retryOn: [emit]}}]}]",
    );
    desk.start(&["a"]);
    succeed(&desk, "a", "c1", json!({"tasks": [{"id": "a"}]}));
    assert_eq!(desk.states(), "a=in_progress");
    assert!(desk.task("a").metadata.tool_calls[0].due.is_some());
}

#[test]
fn emitted_tasks_loop_and_wait_like_others() {
    let desk = emitting(&json!([
        {"id": "each", "forEach": {"in": [1, 2]}, "call": {"t": {"n": "${{ item }}"}}, "neededBy": "last"},
        {"id": "last", "when": "tasks.each.results == ['fine', 'fine']", "call": {"t": {}}},
    ]));
    assert_eq!(desk.states(), "a=done b=todo each=todo last=todo each.0=todo each.1=todo");
    desk.run("each.0");
    desk.run("each.1");
    desk.run("last");
    assert_eq!(desk.task("last").status, Status::Done);
}
