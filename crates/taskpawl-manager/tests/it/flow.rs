//! Expressions: conditions, arguments, and the values of dependencies that did not succeed.

use std::fmt::Write as _;

use serde_json::{Value, json};
use taskpawl_manager::ApplyOptions;
use taskpawl_model::{Answer, CallEnd, Status};

use crate::support::{Desk, ids};

pub(crate) fn with_plan(text: &str) -> Desk {
    let desk = Desk::new();
    desk.apply(text);
    desk
}

/// Reports the success of a call of a run.
#[track_caller]
pub(crate) fn succeed(desk: &Desk, id: &str, call: &str, result: Value) -> Answer {
    desk.accept(desk.try_report(id, call, CallEnd::Succeeded(result), true))
}

/// Returns the started calls of an answer, with their arguments.
pub(crate) fn started(answer: &Answer) -> Vec<String> {
    let line = |call: &taskpawl_model::StartedCall| {
        format!("{}.{} {}", call.task, call.call.id, Value::Object(call.args.clone()))
    };
    answer.started.iter().map(line).collect()
}

#[test]
fn arguments_are_evaluated_when_the_call_starts() {
    let desk = with_plan(
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
    assert_eq!(started(&desk.start(&["a"])), [r#"a.c1 {"cost":"${{ 1 }}","where":"eu"}"#]);
    let next = succeed(&desk, "a", "c1", json!({"items": [1, 2], "n": 2}));
    assert_eq!(started(&next), [r#"a.c2 {"list":[1,2],"text":"n=2"}"#]);
    succeed(&desk, "a", "c2", json!(true));
    assert_eq!(started(&desk.start(&["b"])), [r#"b.c1 {"first":1,"n":1,"of":true}"#]);
    let call = &desk.task("b").metadata.tool_calls[0];
    assert_eq!(call.args["n"], json!("${{ attempt }}"), "the original arguments are kept");
    assert_eq!(call.evaluated_args.as_ref().unwrap()["n"], json!(1));
}

#[test]
fn an_argument_without_a_value_fails_the_call_with_the_missing_path() {
    let desk = with_plan(
        "tasks: [{id: a, call: {t: {}}}, {id: b, needs: [a], call: {t: {x: '${{ tasks.a.result.jsn }}'}}}]",
    );
    desk.start(&["a"]);
    succeed(&desk, "a", "c1", json!({"json": 1}));
    assert_eq!(started(&desk.start(&["b"])), Vec::<String>::new());
    let task = desk.task("b");
    assert_eq!(
        (task.status, task.metadata.tool_calls[0].error_class.as_deref()),
        (Status::Failed, Some("expression"))
    );
    assert!(task.error.as_deref().unwrap().contains("tasks.a.result.jsn"), "{:?}", task.error);
    assert_eq!(desk.calls("b"), "c1=failed/0", "it never started");
    assert_eq!(desk.events(desk.revision() - 3), ["status b", "call_ended b", "status b"]);
}

#[test]
fn a_false_condition_skips_a_task_with_its_subtasks() {
    let desk = with_plan(
        "
        tasks:
          - {id: a}
          - {id: b, needs: [a], when: '${{ tasks.a.result.deploy }}', subtasks: [{id: b1}, {id: b2, call: {t: {}}}]}
          - {id: c, needs: [b]}
        ",
    );
    assert_eq!(desk.states(), "a=todo b=todo b1=todo b2=todo c=todo");
    desk.accept(desk.manager.done(&ids(&["a"]), ending(json!({"deploy": false}))));
    assert_eq!(desk.states(), "a=done b=skipped b1=skipped b2=skipped c=todo");
    assert_eq!(desk.task("b").error.unwrap(), "its condition does not hold: ${{ tasks.a.result.deploy }}");
    assert_eq!(desk.ready(), ["c"]);
}

fn ending(result: Value) -> taskpawl_manager::Ending {
    taskpawl_manager::Ending { result: Some(result), ..Default::default() }
}

#[test]
fn a_condition_is_evaluated_each_time_the_gate_opens() {
    let desk = with_plan("tasks: [{id: a}, {id: b, needs: [a], when: tasks.a.result > 1}]");
    let (a, b) = (ids(&["a"]), ids(&["b"]));
    desk.accept(desk.manager.done(&a, ending(json!(2))));
    assert_eq!(desk.ready(), ["b"]);
    assert!(desk.task("b").progress.opened);
    desk.accept(desk.manager.reopen(&a, false));
    assert!(!desk.task("b").progress.opened);
    desk.accept(desk.manager.done(&a, ending(json!(1))));
    assert_eq!(desk.states(), "a=done b=skipped");
    // The inputs are unchanged, so the condition has the same result.
    desk.accept(desk.manager.retry(&b, false));
    assert_eq!(desk.states(), "a=done b=skipped");
    // Reopening the task behind the condition also reopens its dependents.
    desk.accept(desk.manager.reopen(&a, true));
    assert_eq!(desk.states(), "a=todo b=todo");
    desk.accept(desk.manager.done(&a, ending(json!(3))));
    assert_eq!(desk.ready(), ["b"]);
}

#[test]
fn a_condition_that_cannot_be_evaluated_fails_the_task() {
    let desk = with_plan(
        "tasks: [{id: a}, {id: b, needs: [a], when: tasks.a.result.ok, subtasks: [{id: b1}]}, {id: c, needs: [b]}]",
    );
    desk.accept(desk.manager.done(&ids(&["a"]), ending(json!({"no": 1}))));
    assert_eq!(desk.states(), "a=done b=failed b1=todo c=blocked{dependency b}");
    assert!(desk.task("b").error.unwrap().starts_with("`when`: "));
    desk.accept(desk.manager.update("b", crate::support::fields(json!({"when": "tasks.a.result.no"})), None));
    desk.accept(desk.manager.retry(&ids(&["b"]), false));
    assert_eq!((desk.states().as_str(), desk.ready()), ("a=done b=todo b1=todo c=todo", ids(&["b1"])));
}

#[test]
fn a_call_with_a_false_condition_is_skipped() {
    let desk = with_plan(
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
    desk.start(&["a"]);
    let next = desk.report("a", "c1", "ok");
    assert_eq!(started(&next), [r#"a.c3 {"was":null}"#]);
    desk.report("a", "c3", "ok");
    assert_eq!(desk.calls("a"), "c1=succeeded/1 c2=skipped/0 c3=succeeded/1 c4=skipped/0");
    assert_eq!(desk.task("a").status, Status::Done);
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
        let desk = with_plan(&format!("tasks:\n  - {producer}\n{}{seen}", consumers.concat()));
        end_producer(&desk, how);
        let states = desk.states().replace("{dependency p}", "");
        let states: Vec<&str> =
            states.split(' ').filter(|state| !state.starts_with('p') && !state.starts_with("seen")).collect();
        let seen = started(&desk.start(&["seen"])).concat();
        let _ = writeln!(table, "{how}\n  {}\n  {seen}", states.join(" "));
    }
    insta::assert_snapshot!(table);
}

fn end_producer(desk: &Desk, how: &str) {
    let p = ids(&["p"]);
    match how {
        "done" => desk.run("p"),
        "failed" => {
            desk.start(&["p"]);
            desk.report("p", "c1", "bad");
        }
        "cancelled" => drop(desk.accept(desk.manager.cancel(&p, None))),
        "skipped by hand" => drop(desk.accept(desk.manager.skip(&p, None))),
        "a forEach whose items are done" => desk.run("p.0"),
        "a forEach with a failed item" => {
            desk.start(&["p.0"]);
            desk.report("p.0", "c1", "bad");
        }
        "a forEach with a skipped item" => drop(desk.accept(desk.manager.skip(&ids(&["p.0"]), None))),
        _ => {}
    }
}

#[test]
fn reapplying_a_plan_changes_conditions() {
    let desk = with_plan("tasks: [{id: a, when: 'false'}, {id: b, when: 'true', call: {t: {}}}]");
    assert_eq!(desk.states(), "a=skipped b=todo");
    let plan = "tasks: [{id: a, when: 'false'}, {id: b, when: 'false', call: {t: {}}}]";
    desk.accept(desk.try_apply(plan, ApplyOptions::default()));
    assert_eq!(desk.states(), "a=skipped b=skipped");
}
