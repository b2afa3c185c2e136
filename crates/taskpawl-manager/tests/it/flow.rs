//! Expressions: conditions, arguments, and the values of dependencies that did not succeed.

use std::fmt::Write as _;

use serde_json::{Value, json};
use taskpawl_manager::ApplyOptions;
use taskpawl_model::command::{Answer, CallEnd};
use taskpawl_model::task::Status;

use crate::support::{Fixture, ids};

pub(crate) fn with_plan(text: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.apply(text);
    fixture
}

/// Reports the success of a call of a run.
#[track_caller]
pub(crate) fn succeed(fixture: &Fixture, id: &str, call: &str, result: Value) -> Answer {
    fixture.accept(fixture.try_report(id, call, CallEnd::Succeeded(result), true))
}

/// Returns the started calls of an answer, with their arguments.
pub(crate) fn started(answer: &Answer) -> Vec<String> {
    let line = |call: &taskpawl_model::command::StartedCall| {
        format!("{}.{} {}", call.task, call.call.id, Value::Object(call.args.clone()))
    };
    answer.started.iter().map(line).collect()
}

#[test]
fn arguments_are_evaluated_when_the_call_starts() {
    let fixture = with_plan(
        "
        tasks:
          - id: a
            context: {region: eu}
            calls:
              - {id: c1, toolName: t, args: {where: '${{ context.region }}', cost: '$${{ 1 }}'}, saveAs: found}
              - {id: c2, toolName: t, args: {list: '${{ context.found.items }}', text: 'n=${{ context.found.n }}'}}
          - {id: b, needs: [a], call: {t: {first: \"${{ tasks.a.context.found.items[0] }}\", of: '${{ tasks.a.result }}', n: '${{ attempt }}'}}}
        ",
    );
    assert_eq!(started(&fixture.start(&["a"])), [r#"a.c1 {"cost":"${{ 1 }}","where":"eu"}"#]);
    let next = succeed(&fixture, "a", "c1", json!({"items": [1, 2], "n": 2}));
    assert_eq!(started(&next), [r#"a.c2 {"list":[1,2],"text":"n=2"}"#]);
    succeed(&fixture, "a", "c2", json!(true));
    assert_eq!(started(&fixture.start(&["b"])), [r#"b.c1 {"first":1,"n":1,"of":true}"#]);
    let call = &fixture.task("b").metadata.tool_calls[0];
    assert_eq!(call.args["n"], json!("${{ attempt }}"), "the original arguments are kept");
    assert_eq!(call.evaluated_args.as_ref().unwrap()["n"], json!(1));
}

#[test]
fn an_argument_without_a_value_fails_the_call_with_the_missing_path() {
    let fixture = with_plan(
        "tasks: [{id: a, call: {t: {}}}, {id: b, needs: [a], call: {t: {x: '${{ tasks.a.result.jsn }}'}}}]",
    );
    fixture.start(&["a"]);
    succeed(&fixture, "a", "c1", json!({"json": 1}));
    assert_eq!(started(&fixture.start(&["b"])), Vec::<String>::new());
    let task = fixture.task("b");
    assert_eq!(
        (task.status, task.metadata.tool_calls[0].error_class.as_deref()),
        (Status::Failed, Some("expression"))
    );
    assert!(task.error.as_deref().unwrap().contains("tasks.a.result.jsn"), "{:?}", task.error);
    assert_eq!(fixture.calls("b"), "c1=failed/0", "it never started");
    assert_eq!(fixture.events(fixture.revision() - 3), ["status b", "call_ended b", "status b"]);
}

#[test]
fn a_false_condition_skips_a_task_with_its_subtasks() {
    let fixture = with_plan(
        "
        tasks:
          - {id: a}
          - {id: b, needs: [a], when: '${{ tasks.a.result.deploy }}', subtasks: [{id: b1}, {id: b2, call: {t: {}}}]}
          - {id: c, needs: [b]}
        ",
    );
    assert_eq!(fixture.states(), "a=todo b=todo b1=todo b2=todo c=todo");
    fixture.accept(fixture.manager.done(&ids(&["a"]), ending(json!({"deploy": false}))));
    assert_eq!(fixture.states(), "a=done b=skipped b1=skipped b2=skipped c=todo");
    assert_eq!(fixture.task("b").error.unwrap(), "its condition does not hold: ${{ tasks.a.result.deploy }}");
    assert_eq!(fixture.ready(), ["c"]);
}

fn ending(result: Value) -> taskpawl_manager::Ending {
    taskpawl_manager::Ending { result: Some(result), ..Default::default() }
}

#[test]
fn a_condition_is_evaluated_each_time_the_gate_opens() {
    let fixture = with_plan("tasks: [{id: a}, {id: b, needs: [a], when: tasks.a.result > 1}]");
    let (a, b) = (ids(&["a"]), ids(&["b"]));
    fixture.accept(fixture.manager.done(&a, ending(json!(2))));
    assert_eq!(fixture.ready(), ["b"]);
    assert!(fixture.task("b").progress.opened);
    fixture.accept(fixture.manager.reopen(&a, false));
    assert!(!fixture.task("b").progress.opened);
    fixture.accept(fixture.manager.done(&a, ending(json!(1))));
    assert_eq!(fixture.states(), "a=done b=skipped");
    // The inputs are unchanged, so the condition has the same result.
    fixture.accept(fixture.manager.retry(&b, false));
    assert_eq!(fixture.states(), "a=done b=skipped");
    // Reopening the task behind the condition also reopens its dependents.
    fixture.accept(fixture.manager.reopen(&a, true));
    assert_eq!(fixture.states(), "a=todo b=todo");
    fixture.accept(fixture.manager.done(&a, ending(json!(3))));
    assert_eq!(fixture.ready(), ["b"]);
}

#[test]
fn a_condition_that_cannot_be_evaluated_fails_the_task() {
    let fixture = with_plan(
        "tasks: [{id: a}, {id: b, needs: [a], when: tasks.a.result.ok, subtasks: [{id: b1}]}, {id: c, needs: [b]}]",
    );
    fixture.accept(fixture.manager.done(&ids(&["a"]), ending(json!({"no": 1}))));
    assert_eq!(fixture.states(), "a=done b=failed b1=todo c=blocked{dependency b}");
    assert!(fixture.task("b").error.unwrap().starts_with("`when`: "));
    fixture.accept(fixture.manager.update(
        "b",
        crate::support::fields(json!({"when": "tasks.a.result.no"})),
        None,
    ));
    fixture.accept(fixture.manager.retry(&ids(&["b"]), false));
    assert_eq!((fixture.states().as_str(), fixture.ready()), ("a=done b=todo b1=todo c=todo", ids(&["b1"])));
}

#[test]
fn a_call_with_a_false_condition_is_skipped() {
    let fixture = with_plan(
        "
        tasks:
          - id: a
            calls:
              - {id: c1, toolName: t}
              - {id: c2, toolName: t, when: context.c1 == 'no'}
              - {id: c3, toolName: t, args: {was: '${{ context.c2 }}'}}
              - {id: c4, toolName: t, when: 'false'}
        ",
    );
    fixture.start(&["a"]);
    let next = fixture.report("a", "c1", "ok");
    assert_eq!(started(&next), [r#"a.c3 {"was":null}"#]);
    fixture.report("a", "c3", "ok");
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=skipped/0 c3=succeeded/1 c4=skipped/0");
    assert_eq!(fixture.task("a").status, Status::Done);
}

/// The status of a dependent with each trigger, for each end of its dependency. The value in brackets is the
/// input of its condition: status and result of the dependency.
#[test]
fn triggers_and_conditions_handle_every_end_of_a_dependency() {
    let producers = [
        ("done", "{id: p, call: {t: {}}}"),
        ("failed", "{id: p, call: {t: {}}}"),
        ("cancelled", "{id: p, call: {t: {}}}"),
        ("skipped by hand", "{id: p, call: {t: {}}}"),
        ("skipped by its condition", "{id: p, when: 'false', call: {t: {}}}"),
        ("failed by its condition", "{id: p, when: '[].x', call: {t: {}}}"),
        ("a forEach without elements", "{id: p, forEach: {in: []}, call: {t: {}}}"),
        ("a forEach of no list", "{id: p, forEach: {in: '1'}, call: {t: {}}}"),
        ("a forEach whose items are done", "{id: p, forEach: {in: [x]}, call: {t: {}}}"),
        ("a forEach with a failed item", "{id: p, forEach: {in: [x]}, call: {t: {}}}"),
        ("a forEach with a skipped item", "{id: p, forEach: {in: [x]}, call: {t: {}}}"),
    ];
    let mut table = String::new();
    for (how, producer) in producers {
        let consumers = ["all_done", "any_done", "all_finished", "any_failed"].map(|trigger| {
            format!(
                "  - {{id: {trigger}, needs: [p], trigger: {trigger}, when: \"tasks.p.status != 'x'\"}}\n"
            )
        });
        let seen = "  - {id: seen, needs: [p], trigger: all_finished, call: {t: {s: '${{ tasks.p.status }}', r: '${{ tasks.p.result }}', rs: '${{ tasks.p.results }}'}}}";
        let fixture = with_plan(&format!("tasks:\n  - {producer}\n{}{seen}", consumers.concat()));
        end_producer(&fixture, how);
        let states = fixture.states().replace("{dependency p}", "");
        let states: Vec<&str> =
            states.split(' ').filter(|state| !state.starts_with('p') && !state.starts_with("seen")).collect();
        let seen = started(&fixture.start(&["seen"])).concat();
        let _ = writeln!(table, "{how}\n  {}\n  {seen}", states.join(" "));
    }
    insta::assert_snapshot!(table);
}

fn end_producer(fixture: &Fixture, how: &str) {
    let p = ids(&["p"]);
    match how {
        "done" => fixture.run("p"),
        "failed" => {
            fixture.start(&["p"]);
            fixture.report("p", "c1", "bad");
        }
        "cancelled" => drop(fixture.accept(fixture.manager.cancel(&p, None))),
        "skipped by hand" => drop(fixture.accept(fixture.manager.skip(&p, None))),
        "a forEach whose items are done" => fixture.run("p.0"),
        "a forEach with a failed item" => {
            fixture.start(&["p.0"]);
            fixture.report("p.0", "c1", "bad");
        }
        "a forEach with a skipped item" => drop(fixture.accept(fixture.manager.skip(&ids(&["p.0"]), None))),
        _ => {}
    }
}

#[test]
fn reapplying_a_plan_changes_conditions() {
    let fixture = with_plan("tasks: [{id: a, when: 'false'}, {id: b, when: 'true', call: {t: {}}}]");
    assert_eq!(fixture.states(), "a=skipped b=todo");
    let plan = "tasks: [{id: a, when: 'false'}, {id: b, when: 'false', call: {t: {}}}]";
    fixture.accept(fixture.try_apply(plan, ApplyOptions::default()));
    assert_eq!(fixture.states(), "a=skipped b=skipped");
}
