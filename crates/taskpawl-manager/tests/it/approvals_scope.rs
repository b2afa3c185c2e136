//! The scope of an approval: all work below a task, in this generation, with the reviewed arguments only.

use serde_json::json;
use taskpawl_manager::{Approving, Ending};

use crate::support::{Desk, fields, ids};

const RELEASE: &str = "
tasks:
- id: release
  approval: required
  subtasks:
  - {id: publish, calls: [{id: c, toolName: t, args: {to: staging}}]}
- {id: deploy, approval: required, calls: [{id: c, toolName: t}]}
- {id: each, approval: required, forEach: {in: [one]}, calls: [{id: c, toolName: t}]}
- {id: twice, calls: [{id: c, toolName: t, args: {n: '${{ attempt }}'}, approval: required}]}
";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.apply(RELEASE);
    desk
}

fn approve(desk: &Desk, id: &str) {
    desk.accept(desk.manager.approve(&ids(&[id]), Approving::default()));
}

#[test]
fn changed_work_below_an_approved_task_needs_approval() {
    let desk = desk();
    approve(&desk, "release");
    assert_eq!(desk.ready(), ids(&["publish", "twice"]));
    let call = taskpawl_model::call_from_json(&json!({"id": "d", "t": {"to": "production"}})).unwrap();
    desk.accept(desk.manager.add_tool_call("publish", call));
    assert_eq!(desk.task("release").status.as_str(), "blocked");
    assert_eq!(desk.ready(), ids(&["twice"]));
    approve(&desk, "release");
    assert_eq!(desk.ready(), ids(&["publish", "twice"]));
    desk.create("more in=release calls=1");
    assert_eq!(desk.task("release").status.as_str(), "blocked");
}

#[test]
fn a_task_that_is_reopened_asks_again() {
    let desk = desk();
    approve(&desk, "deploy");
    desk.run("deploy");
    desk.accept(desk.manager.reopen(&ids(&["deploy"]), false));
    assert_eq!(desk.task("deploy").status.as_str(), "blocked");
    assert_eq!(desk.task("deploy").metadata.context.get("approval"), None);
}

#[test]
fn replacement_arguments_are_refused_for_a_call_of_another_task() {
    let desk = desk();
    let with = || Approving { args: Some(fields(json!({"to": "nowhere"}))), ..Approving::default() };
    insta::assert_snapshot!(desk.refuse(|manager| manager.approve(&ids(&["release"]), with())), @"field `args`: the call that is asked about is run by `publish`; change it there");
    insta::assert_snapshot!(desk.refuse(|manager| manager.approve(&ids(&["each"]), with())), @"field `args`: the call is run by its items");
}

#[test]
fn a_call_with_the_attempt_in_its_arguments_is_approved_once() {
    let desk = desk();
    desk.start(&["twice"]);
    approve(&desk, "twice");
    let started = desk.start(&["twice"]).started;
    assert_eq!(started.iter().map(|call| call.args["n"].clone()).collect::<Vec<_>>(), [json!(2)]);
}

#[test]
fn a_shrinking_list_keeps_an_item_with_a_claimed_subtask() {
    let desk = Desk::new();
    desk.apply(
        "tasks: [{id: list, name: say which}, {id: each, needs: list, forEach: {in: '${{ tasks.list.result }}'}}]",
    );
    let say = |list| Ending { result: Some(list), ..Ending::default() };
    desk.accept(desk.manager.done(&ids(&["list"]), say(json!([1, 2]))));
    desk.create("mine in=each.1");
    desk.accept(desk.manager.claim("mine", std::time::Duration::from_mins(30)));
    desk.accept(desk.manager.reopen(&ids(&["list"]), true));
    desk.accept(desk.manager.done(&ids(&["list"]), say(json!([1]))));
    assert_eq!(desk.task("mine").status.as_str(), "in_progress");
    desk.check();
}
