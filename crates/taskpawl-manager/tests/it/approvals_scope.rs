//! The scope of an approval: all work below a task, in this generation, with the reviewed arguments only.

use serde_json::json;
use taskpawl_manager::{Approving, Ending};

use crate::support::{Fixture, fields, ids};

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

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.apply(RELEASE);
    fixture
}

fn approve(fixture: &Fixture, id: &str) {
    fixture.accept(fixture.manager.approve(&ids(&[id]), Approving::default()));
}

#[test]
fn changed_work_below_an_approved_task_needs_approval() {
    let fixture = fixture();
    approve(&fixture, "release");
    assert_eq!(fixture.ready(), ids(&["publish", "twice"]));
    let call = taskpawl_model::plan::call_from_json(&json!({"id": "d", "t": {"to": "production"}})).unwrap();
    fixture.accept(fixture.manager.add_tool_call("publish", call));
    assert_eq!(fixture.task("release").status.as_str(), "blocked");
    assert_eq!(fixture.ready(), ids(&["twice"]));
    approve(&fixture, "release");
    assert_eq!(fixture.ready(), ids(&["publish", "twice"]));
    fixture.create("more in=release calls=1");
    assert_eq!(fixture.task("release").status.as_str(), "blocked");
}

#[test]
fn a_task_that_is_reopened_asks_again() {
    let fixture = fixture();
    approve(&fixture, "deploy");
    fixture.run("deploy");
    fixture.accept(fixture.manager.reopen(&ids(&["deploy"]), false));
    assert_eq!(fixture.task("deploy").status.as_str(), "blocked");
    assert_eq!(fixture.task("deploy").metadata.context.get("approval"), None);
}

#[test]
fn replacement_arguments_are_refused_for_a_call_of_another_task() {
    let fixture = fixture();
    let with = || Approving { args: Some(fields(json!({"to": "nowhere"}))), ..Approving::default() };
    insta::assert_snapshot!(fixture.refuse(|manager| manager.approve(&ids(&["release"]), with())), @"field `args`: `publish` runs the call that needs approval; change it there");
    insta::assert_snapshot!(fixture.refuse(|manager| manager.approve(&ids(&["each"]), with())), @"field `args`: the items run the call");
}

#[test]
fn a_call_with_the_attempt_in_its_arguments_is_approved_once() {
    let fixture = fixture();
    fixture.start(&["twice"]);
    approve(&fixture, "twice");
    let started = fixture.start(&["twice"]).started;
    assert_eq!(started.iter().map(|call| call.args["n"].clone()).collect::<Vec<_>>(), [json!(2)]);
}

#[test]
fn a_shrinking_list_keeps_an_item_with_a_claimed_subtask() {
    let fixture = Fixture::new();
    fixture.apply(
        "tasks: [{id: list, name: say which}, {id: each, needs: list, forEach: {in: '${{ tasks.list.result }}'}}]",
    );
    let say = |list| Ending { result: Some(list), ..Ending::default() };
    fixture.accept(fixture.manager.done(&ids(&["list"]), say(json!([1, 2]))));
    fixture.create("mine in=each.1");
    fixture.accept(fixture.manager.claim("mine", std::time::Duration::from_secs(30 * 60)));
    fixture.accept(fixture.manager.reopen(&ids(&["list"]), true));
    fixture.accept(fixture.manager.done(&ids(&["list"]), say(json!([1]))));
    assert_eq!(fixture.task("mine").status.as_str(), "in_progress");
    fixture.check();
}
