//! Plan files that are edited after their tasks ran: which changes apply, and where the tasks resume.

use std::sync::Arc;

use taskpawl_manager::ApplyOptions;
use taskpawl_model::command::Command;
use taskpawl_model::task::{PolicyDecision, PolicyHook, ProposedCall};
use taskpawl_model::value::Map;

use crate::support::{Fixture, LEASE, ids};

/// A policy with the tools `t`, which is not repeatable, and `r`, which only reads.
#[derive(Debug)]
struct Reads;

impl PolicyHook for Reads {
    fn authorize(&self, _: &ProposedCall<'_>) -> PolicyDecision {
        PolicyDecision::Allow
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn is_repeatable(&self, tool: &str, _: &Map) -> bool {
        tool == "r"
    }
}

fn plan(calls: &str) -> String {
    format!("tasks: [{{id: a, calls: [{calls}]}}, {{id: b, needs: [a]}}]")
}

/// Three calls, for a task where the first succeeds, the second fails and the third does not start.
const THREE: &str = "{t: {}}, {t: {n: 1}}, {t: {}}";

fn half_done() -> Fixture {
    let fixture = Fixture::new();
    fixture.apply(&plan(THREE));
    fixture.start(&["a"]);
    fixture.report("a", "c1", "ok");
    fixture.report("a", "c2", "bad");
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=failed/1 c3=pending/0");
    fixture
}

#[track_caller]
fn conflict(fixture: &Fixture, yaml: &str) -> String {
    let text = fixture.refuse(|_| fixture.try_apply(yaml, ApplyOptions::default()));
    text.lines().next().unwrap().trim_start_matches("the plan `p` cannot be applied: ").to_owned()
}

#[test]
fn a_failed_task_resumes_at_its_changed_call() {
    let fixture = half_done();
    assert_eq!(fixture.states(), "a=failed b=blocked{dependency a}");
    let report = fixture.apply(&plan("{t: {}}, {t: {n: 2}}, {t: {}}"));
    assert_eq!(report.changed, ["a".into()]);
    assert_eq!(fixture.states(), "a=todo b=todo");
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=pending/1 c3=pending/0");
    let started = fixture.start(&["a"]).started;
    assert_eq!(
        (started[0].call.id.as_str(), started[0].call.body.attempts, started[0].generation),
        ("c2", 2, 0)
    );
}

#[test]
fn it_resumes_at_the_first_unsuccessful_call_if_a_later_one_changed() {
    let fixture = half_done();
    fixture.apply(&plan("{t: {}}, {t: {n: 1}}, {t: {n: 3}}"));
    assert_eq!(
        (fixture.states(), fixture.calls("a")),
        ("a=todo b=todo".into(), "c1=succeeded/1 c2=pending/1 c3=pending/0".into())
    );
}

#[test]
fn changes_of_descriptive_fields_restart_nothing() {
    let fixture = half_done();
    fixture.apply(&plan(THREE).replace("id: a,", "id: a, description: other,"));
    assert_eq!(fixture.states(), "a=failed b=blocked{dependency a}");
}

#[test]
fn the_failed_call_can_be_removed() {
    let fixture = half_done();
    fixture.apply(&plan("{t: {}}"));
    assert_eq!((fixture.states(), fixture.calls("a")), ("a=todo b=todo".into(), "c1=succeeded/1".into()));
    fixture.start(&["a"]);
    assert_eq!(fixture.states(), "a=done b=todo");
}

#[test]
fn a_succeeded_call_runs_again_only_if_repeatable() {
    let fixture = half_done();
    let once = "`a` would run its call `c1` again, which succeeded and is not idempotent";
    assert_eq!(conflict(&fixture, &plan("{t: {n: 9}}, {t: {n: 1}}, {t: {}}")), once);
    assert_eq!(
        conflict(&fixture, &plan("{t: {n: 0}}, {t: {}}, {t: {n: 1}}")),
        once,
        "the call moved behind another one"
    );
    assert_eq!(conflict(&fixture, &plan(THREE).replace("id: a,", "id: a, when: 'true',")), once);
    assert_eq!(conflict(&fixture, &plan(THREE).replace("id: a,", "id: a, context: {x: 1},")), once);
    let reader = fixture.judged_by(Arc::new(Reads));
    assert_eq!(conflict(&reader, &plan("{t: {n: 9}}, {t: {n: 1}}, {t: {}}")), once);
    fixture.apply(&plan("{toolName: t, args: {n: 9}, idempotent: true}, {t: {n: 1}}, {t: {}}"));
    assert_eq!(fixture.calls("a"), "c1=pending/1 c2=pending/1 c3=pending/0");
}

#[test]
fn read_only_calls_may_run_again() {
    let fixture = Fixture::new().judged_by(Arc::new(Reads));
    fixture.apply("tasks: [{id: a, calls: [{r: {}}, {t: {}}]}]");
    let (claims, tools) = (vec![fixture.key("a")], Arc::new(["t".to_owned(), "r".to_owned()].into()));
    fixture.round(taskpawl_model::command::Round { claims, tools, ..Default::default() });
    fixture.report("a", "c1", "ok");
    fixture.report("a", "c2", "bad");
    fixture.apply("tasks: [{id: a, when: 'true', calls: [{r: {}}, {t: {}}]}]");
    assert_eq!((fixture.states(), fixture.calls("a")), ("a=todo".into(), "c1=pending/1 c2=pending/1".into()));
    assert_eq!(fixture.task("a").generation, 1, "a restart of the whole task is a new generation");
}

#[test]
fn a_retried_or_released_task_takes_its_changed_work() {
    let fixture = half_done();
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    fixture.apply(&plan("{t: {}}, {t: {n: 2}}, {t: {}}"));
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=pending/1 c3=pending/0");
    fixture.start(&["a"]);
    fixture.report("a", "c2", "cut");
    assert_eq!(
        conflict(&fixture, &plan("{t: {}}, {t: {n: 3}}, {t: {}}")),
        "`a` is `in_progress` and its `toolCalls` would change"
    );
    fixture.report("a", "c2", "bad");
    fixture.accept(fixture.manager.cancel(&ids(&["a"]), None));
    fixture.apply(&plan("{t: {}}, {t: {n: 4}}, {t: {}}"));
    assert_eq!(fixture.task("a").status.as_str(), "cancelled", "manual statuses are kept");
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=pending/3 c3=pending/0");
}

#[test]
fn reopened_work_keeps_the_start_counts_of_its_calls() {
    let fixture = half_done();
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), false));
    fixture.apply(&plan("{t: {n: 5}}, {t: {}}"));
    assert_eq!(fixture.calls("a"), "c1=pending/1 c2=pending/1");
}

#[test]
fn results_of_parallel_calls_are_kept_individually() {
    let fixture = Fixture::new();
    let plan = |calls: &str| format!("tasks: [{{id: a, mode: parallel, calls: [{calls}]}}]");
    fixture.apply(&plan("{t: {n: 1}}, {t: {n: 2}}"));
    fixture.start(&["a"]);
    fixture.report("a", "c1", "bad");
    fixture.report("a", "c2", "ok");
    fixture.apply(&plan("{t: {n: 3}}, {t: {n: 2}}"));
    assert_eq!(
        (fixture.states(), fixture.calls("a")),
        ("a=todo".into(), "c1=pending/1 c2=succeeded/1".into())
    );
}

#[test]
fn an_interrupted_call_must_be_settled_first() {
    let fixture = Fixture::new();
    fixture.apply(&plan(THREE));
    fixture.start(&["a"]);
    fixture.report("a", "c1", "ok");
    fixture.report("a", "c2", "lost");
    assert_eq!(fixture.states(), "a=blocked{interrupted} b=todo");
    let settle = "`a` was interrupted in its call `c2`, which the file changes";
    assert_eq!(conflict(&fixture, &plan("{t: {}}")), settle);
    assert_eq!(conflict(&fixture, &plan(THREE).replace("id: a,", "id: a, when: 'true',")), settle);
    fixture.apply(&plan("{t: {}}, {t: {n: 2}}, {t: {n: 3}}"));
    assert_eq!(fixture.states(), "a=blocked{interrupted} b=todo");
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=interrupted/1 c3=pending/0");
    fixture.done("a");
    assert_eq!(
        (fixture.states(), fixture.calls("a")),
        ("a=todo b=todo".into(), "c1=succeeded/1 c2=succeeded/1 c3=pending/0".into())
    );
    assert_eq!(fixture.task("a").metadata.tool_calls[2].args["n"], 3);
}

#[test]
fn a_pending_question_is_withdrawn_if_the_work_changes() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: a, calls: [{t: {}}, {toolName: t, approval: required}]}]");
    fixture.start(&["a"]);
    fixture.report("a", "c1", "ok");
    assert_eq!(fixture.states(), "a=blocked{approval}");
    fixture.apply("tasks: [{id: a, calls: [{t: {}}, {toolName: t, args: {n: 1}}]}]");
    assert_eq!(
        (fixture.states(), fixture.calls("a")),
        ("a=todo".into(), "c1=succeeded/1 c2=pending/0".into())
    );
}

#[test]
fn claimed_done_and_skipped_tasks_refuse_the_whole_apply() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: a, call: {t: {}}}, {id: b}, {id: c, call: {t: {}}}]");
    fixture.run("a");
    fixture.accept(fixture.manager.claim("b", LEASE));
    fixture.start(&["c"]);
    fixture.report("c", "c1", "bad");
    let other = "tasks: [{id: a, call: {t: {n: 1}}}, {id: b, timeout: 5m}, {id: c, call: {t: {n: 1}}}]";
    assert_eq!(
        conflict(&fixture, other),
        "`a` is `done` and its `toolCalls` would change; `b` is `in_progress` and its `timeout` would change"
    );
}

#[test]
fn items_restart_if_their_work_changes() {
    let fixture = Fixture::new();
    let plan = |call: &str, list: &str| {
        format!(
            "tasks: [{{id: a, forEach: {{in: [{list}]}}, call: {{toolName: t, args: {{n: {call}}}, idempotent: true}}}}]"
        )
    };
    fixture.apply(&plan("1", "x, y"));
    fixture.start(&["a.0", "a.1"]);
    fixture.report("a.0", "c1", "ok");
    fixture.report("a.1", "c1", "bad");
    assert_eq!(fixture.states(), "a=blocked{dependency a.1} a.0=done a.1=failed");
    fixture.apply(&plan("1", "x, z"));
    assert_eq!(fixture.states(), "a=todo a.0=done a.1=todo", "only the changed element restarts");
    fixture.apply(&plan("2", "x, z"));
    assert_eq!(fixture.states(), "a=todo a.0=todo a.1=todo");
    fixture.run("a.0");
    fixture.start(&["a.1"]);
    assert_eq!(conflict(&fixture, &plan("3", "x, z")), "`a.1` is still running");
}

#[test]
fn items_that_must_not_run_again_are_kept() {
    let fixture = Fixture::new();
    let plan = |n: &str, list: &str| {
        format!("tasks: [{{id: a, forEach: {{in: [{list}]}}, call: {{t: {{n: {n}}}}}}}]")
    };
    fixture.apply(&plan("1", "x, y"));
    fixture.start(&["a.0", "a.1"]);
    fixture.report("a.0", "c1", "ok");
    fixture.report("a.1", "c1", "bad");
    let once = "`a` would run call `c1` of its item `a.0` again, which succeeded and is not idempotent";
    assert_eq!(conflict(&fixture, &plan("2", "x, y")), once);
    assert_eq!(conflict(&fixture, &plan("1", "w, y")), once);
    fixture.apply(&plan("1", "x, z"));
    assert_eq!(fixture.states(), "a=todo a.0=done a.1=todo");
}

#[test]
fn changed_parameters_restart_a_failed_task() {
    let fixture = Fixture::new();
    let text =
        "{params: {n: {type: integer, default: 1}}, tasks: [{id: a, call: {t: {n: '${{ params.n }}'}}}]}";
    fixture.apply(text);
    fixture.start(&["a"]);
    fixture.report("a", "c1", "bad");
    fixture.apply(&text.replace("default: 1", "default: 2"));
    assert_eq!((fixture.states(), fixture.calls("a")), ("a=todo".into(), "c1=pending/1".into()));
    assert_eq!(fixture.start(&["a"]).started[0].args["n"], 2);
}

#[test]
fn a_task_without_its_tool_takes_calls_of_another_one() {
    let fixture = Fixture::new();
    fixture.apply(&plan("{t: {}}"));
    let command = Command::RunOne { id: "a".to_owned(), missing_tool: Some("t".to_owned()) };
    fixture.accept(fixture.manager.command(command));
    assert_eq!(fixture.states(), "a=blocked{missing_tool} b=todo");
    fixture.apply(&plan("{r: {}}"));
    assert_eq!(fixture.states(), "a=todo b=todo");
}
