//! Effects of gates without a command.

use crate::support::{Fixture, ids};

#[test]
fn a_failure_blocks_all_dependents_and_retry_unblocks_them_in_the_same_commit() {
    let fixture = Fixture::with(&["a", "b needs=a", "c needs=b", "clean needs=b trigger=all_finished"]);
    fixture.fail("a");
    assert_eq!(fixture.states(), "a=failed b=blocked{dependency a} c=blocked{dependency b} clean=todo");
    fixture.done("clean");
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    assert_eq!(fixture.states(), "a=todo b=todo c=todo clean=todo", "a clean-up is armed again");
    fixture.done("a");
    assert_eq!(fixture.ready(), ["b"]);
}

#[test]
fn triggers_fire_at_the_first_or_the_last_dependency() {
    let fixture = Fixture::with(&[
        "a",
        "b",
        "first needs=a,b trigger=any_done",
        "both needs=a,b",
        "clean needs=a,b trigger=all_finished",
        "help needs=a,b trigger=any_failed",
    ]);
    fixture.fail("a");
    assert_eq!(fixture.ready(), ["b", "help"]);
    assert_eq!(
        fixture.states(),
        "a=failed b=todo first=todo both=blocked{dependency a} clean=todo help=todo"
    );
    fixture.done("b");
    assert_eq!(fixture.ready(), ["first", "clean", "help"]);
}

#[test]
fn triggers_that_can_no_longer_fire_skip_or_block_their_task() {
    let fixture = Fixture::with(&[
        "a",
        "b",
        "help needs=a trigger=any_failed",
        "one needs=b,a trigger=any_done",
        "s in=help",
    ]);
    fixture.accept(fixture.manager.skip(&ids(&["b"]), None));
    fixture.accept(fixture.manager.skip(&ids(&["a"]), None));
    assert_eq!(fixture.states(), "a=skipped b=skipped help=skipped one=blocked{dependency a,b} s=skipped");
}

#[test]
fn cancelled_counts_as_failed_and_skipped_as_done_for_dependents() {
    let fixture = Fixture::with(&["a", "b", "x needs=a", "y needs=b"]);
    fixture.accept(fixture.manager.cancel(&ids(&["a"]), None));
    fixture.accept(fixture.manager.skip(&ids(&["b"]), None));
    assert_eq!(fixture.states(), "a=cancelled b=skipped x=blocked{dependency a} y=todo");
    assert_eq!(fixture.ready(), ["y"]);
}

#[test]
fn a_manual_block_does_not_spread() {
    let fixture = Fixture::with(&["a", "b needs=a", "p", "s in=p", "after needs=p"]);
    fixture.accept(fixture.manager.block(&ids(&["a", "s"]), "why"));
    assert_eq!(fixture.states(), "a=blocked{manual} b=todo p=todo s=blocked{manual} after=todo");
    assert!(fixture.ready().is_empty());
    fixture.accept(fixture.manager.unblock(&ids(&["a", "s"])));
    assert_eq!(fixture.ready(), ["a", "s"]);
}

#[test]
fn a_parent_opens_its_subtasks_and_ends_with_them() {
    let fixture =
        Fixture::with(&["a", "p needs=a", "s1 in=p", "s2 in=p needs=s1", "deep in=s2", "after needs=p"]);
    assert_eq!(fixture.ready(), ["a"]);
    fixture.done("a");
    assert_eq!(fixture.ready(), ["s1"]);
    fixture.done("s1");
    assert_eq!(fixture.ready(), ["deep"]);
    fixture.done("deep");
    assert_eq!(fixture.states(), "a=done p=done s1=done s2=done deep=done after=todo");
    assert_eq!(fixture.ready(), ["after"]);
}

#[test]
fn the_calls_of_a_parent_run_after_its_subtasks() {
    let fixture = Fixture::with(&["p calls=1", "s in=p"]);
    assert_eq!(fixture.ready(), ["s"]);
    assert!(fixture.start(&["p"]).started.is_empty());
    fixture.done("s");
    fixture.run("p");
    assert_eq!(fixture.states(), "p=done s=done");
}

#[test]
fn a_failed_subtask_blocks_the_parent_but_a_cancelled_one_does_not() {
    let fixture = Fixture::with(&["p", "s1 in=p", "s2 in=p", "s3 in=p", "after needs=p"]);
    fixture.fail("s1");
    assert_eq!(
        fixture.states(),
        "p=blocked{dependency s1} s1=failed s2=todo s3=todo after=blocked{dependency p}"
    );
    assert_eq!(fixture.ready(), ["s2", "s3"], "siblings continue");
    fixture.done("s2");
    fixture.accept(fixture.manager.cancel(&ids(&["s3"]), None));
    fixture.accept(fixture.manager.skip(&ids(&["s1"]), None));
    assert_eq!(fixture.states(), "p=done s1=skipped s2=done s3=cancelled after=todo");
}

#[test]
fn a_parent_that_cannot_open_holds_back_all_subtasks() {
    let fixture =
        Fixture::with(&["a", "p needs=a", "s in=p", "deep in=s", "clean in=p trigger=all_finished needs=s"]);
    fixture.fail("a");
    assert_eq!(
        fixture.states(),
        "a=failed p=blocked{dependency a,s,clean} s=blocked{dependency p,deep} deep=blocked{dependency s} \
         clean=blocked{dependency p}"
    );
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    assert_eq!(fixture.states(), "a=todo p=todo s=todo deep=todo clean=todo");
}

/// Subtasks of a task that may still be skipped wait for that decision, so both orders lead to the same
/// result.
#[test]
fn the_order_of_endings_does_not_matter() {
    let end = |failed_first: bool| {
        let fixture = Fixture::with(&[
            "a",
            "x",
            "p needs=a trigger=any_failed",
            "s in=p needs=x",
            "help needs=s trigger=any_failed",
        ]);
        if failed_first {
            fixture.fail("x");
            fixture.done("a");
        } else {
            fixture.done("a");
            fixture.fail("x");
        }
        fixture.states()
    };
    assert_eq!(end(true), "a=done x=failed p=skipped s=skipped help=skipped");
    assert_eq!(end(true), end(false));
}

/// The report of a call is accepted even if a gate above its task has closed in the meantime.
#[test]
fn a_skipping_gate_leaves_subtasks_in_progress_alone() {
    let fixture = Fixture::with(&["a", "p needs=a trigger=any_failed", "s1 in=p calls=1", "s2 in=p"]);
    fixture.fail("a");
    fixture.start(&["s1"]);
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    fixture.done("a");
    assert_eq!(fixture.states(), "a=done p=skipped s1=in_progress s2=skipped");
    fixture.report("s1", "c1", "ok");
    assert_eq!(fixture.states(), "a=done p=skipped s1=done s2=skipped");
}

#[test]
fn milestones_end_by_themselves() {
    let fixture = Fixture::with(&["a", "b", "m needs=a,b milestone", "n needs=m milestone"]);
    fixture.done("a");
    assert_eq!(fixture.states(), "a=done b=todo m=todo n=todo");
    fixture.done("b");
    assert_eq!(fixture.states(), "a=done b=done m=done n=done");
}

#[test]
fn a_ready_task_is_announced_once_and_again_when_its_kind_of_work_changes() {
    let fixture = Fixture::with(&["a", "b needs=a"]);
    let ready = |after: u64| -> Vec<u32> {
        let events = fixture.manager.history(None, after, 0).unwrap();
        events.iter().flat_map(|event| event.ready.iter().map(|key| key.0)).collect()
    };
    let before = fixture.revision();
    fixture.done("a");
    assert_eq!(ready(before), [fixture.key("b").0]);
    let before = fixture.revision();
    let call = taskpawl_model::plan::parse_call(r#"{"toolName": "t"}"#).unwrap();
    fixture.accept(fixture.manager.add_tool_call("b", call));
    assert_eq!(ready(before), [fixture.key("b").0], "now a run can take it");
}
