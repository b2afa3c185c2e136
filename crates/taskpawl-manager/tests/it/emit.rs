//! Plans that grow while they run: tasks that calls return.

use serde_json::{Value, json};
use taskpawl_model::{CallEnd, Origin, Status};

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
fn tasks_that_a_call_returns_join_its_plan() {
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
fn what_a_program_prints_counts_too_and_nothing_is_no_fault() {
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
    assert_eq!(desk.states(), "a=done", "it was not asked for");
}

#[test]
fn all_of_them_join_or_none_and_the_call_says_why() {
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

#[test]
fn a_call_that_runs_again_finds_what_it_returned_before() {
    let desk = emitting(&json!([{"id": "n1", "name": "n1"}, {"id": "n2", "name": "n2"}, {"name": "loose"}]));
    desk.done("n1");
    desk.accept(desk.manager.reopen(&ids(&["a"]), true));
    desk.start(&["a"]);
    let tasks = json!([{"id": "n1", "name": "n1"}, {"id": "n2", "name": "another"}, {"name": "loose"}]);
    succeed(&desk, "a", "c1", json!({"tasks": tasks}));
    assert_eq!(desk.states(), "a=done b=todo n1=done n2=todo a.c1.0=todo a.c1.1=todo");
    assert_eq!(desk.task("n2").name, "another");
    desk.accept(desk.manager.reopen(&ids(&["a"]), true));
    desk.start(&["a"]);
    let end = CallEnd::Succeeded(json!({"tasks": [{"id": "n1", "name": "other work"}]}));
    desk.accept(desk.try_report("a", "c1", end, true));
    assert_eq!(desk.task("a").status, Status::Failed, "what is done cannot become other work");
}

#[test]
fn a_refused_emission_may_be_tried_again_where_the_policy_names_it() {
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
