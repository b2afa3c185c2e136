//! Ids of tasks whose author gave none.

use serde_json::json;
use taskpawl_manager::ApplyOptions;
use taskpawl_model::command::NewTask;
use taskpawl_model::plan::parse_plan;
use taskpawl_model::task::TaskSpec;

use crate::support::{Fixture, ids};

/// Creates a task without an id.
fn create(fixture: &Fixture, name: &str) -> String {
    let spec = TaskSpec { name: name.to_owned(), ..TaskSpec::default() };
    fixture.accept(fixture.manager.create(NewTask { spec, ..NewTask::default() })).to_string()
}

#[test]
fn an_id_is_made_from_the_name() {
    let fixture = Fixture::with(&["build"]);
    assert_eq!(create(&fixture, "Write tests"), "write-tests");
    assert_eq!(create(&fixture, "write the tests"), "write-the-tests");
    assert_eq!(create(&fixture, "Build"), "build-2", "an author has taken `build`");
    assert_eq!(create(&fixture, "書く"), "task");
}

#[test]
fn an_id_is_never_used_twice() {
    let fixture = Fixture::new();
    assert_eq!(create(&fixture, "Write tests"), "write-tests");
    fixture.accept(fixture.manager.delete(&ids(&["write-tests"])));
    assert_eq!(create(&fixture, "Write tests"), "write-tests-2", "history knows the deleted one");
    fixture.create("write-tests-3");
    assert_eq!(create(&fixture, "Write tests"), "write-tests-4");
}

#[test]
fn a_plan_gives_ids_to_its_tasks_and_keeps_them() {
    let fixture = Fixture::with(&["lint"]);
    let plan =
        "tasks: [{name: Lint}, {name: Test, needs: [Lint]}, {id: ship, name: Test it}, {id: test, name: x}]";
    fixture.apply(plan);
    let dependencies = fixture.task("test-2").dependencies;
    assert_eq!(fixture.states(), "lint=todo lint-2=todo test-2=todo ship=todo test=todo");
    assert_eq!(dependencies, ["lint-2".into()]);
    let before = fixture.revision();
    fixture.apply(plan);
    assert_eq!(fixture.revision(), before, "the same file changes nothing");
    let fields = json!({"name": "Tests"}).as_object().cloned().unwrap();
    fixture.accept(fixture.manager.update("lint", fields, None));
    assert_eq!(fixture.task("lint").name, "Tests", "an id stays when the name changes");
}

#[test]
fn two_plans_give_different_ids() {
    let fixture = Fixture::new();
    for name in ["one", "two"] {
        let plan = parse_plan("tasks: [{name: Test}]").unwrap();
        fixture.accept(fixture.manager.apply(plan, name, ApplyOptions::default()));
    }
    assert_eq!(fixture.states(), "test=todo test-2=todo");
}
