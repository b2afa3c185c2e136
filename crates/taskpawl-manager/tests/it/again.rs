//! `retry` and `reopen`.

use crate::support::{Fixture, LEASE, ids};

#[test]
fn retry_resumes_at_the_first_unfinished_call_and_reopen_starts_over() {
    let fixture = Fixture::with(&["a calls=3"]);
    fixture.start(&["a"]);
    fixture.report("a", "c1", "ok");
    fixture.report("a", "c2", "bad");
    assert_eq!(fixture.states(), "a=failed");
    assert_eq!(fixture.task("a").error.unwrap(), "call `c2` (t): boom");
    fixture.accept(fixture.manager.retry(&ids(&["a"]), false));
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=pending/1 c3=pending/0");
    assert_eq!(fixture.task("a").error, None);
    fixture.run("a");
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=succeeded/2 c3=succeeded/1");
    assert_eq!((fixture.task("a").attempt, fixture.task("a").generation), (2, 0));
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), false));
    assert_eq!(fixture.calls("a"), "c1=pending/1 c2=pending/2 c3=pending/1");
    assert_eq!((fixture.task("a").attempt, fixture.task("a").generation), (2, 1), "attempts are never reset");
    fixture.run("a");
    assert_eq!(fixture.calls("a"), "c1=succeeded/2 c2=succeeded/3 c3=succeeded/2");
}

#[test]
fn a_done_task_whose_dependents_ran_needs_cascade() {
    let fixture = Fixture::with(&["a", "b needs=a", "c needs=b", "d needs=a", "e needs=d"]);
    for id in ["a", "b", "c"] {
        fixture.done(id);
    }
    insta::assert_snapshot!(fixture.refuse(|m| m.reopen(&ids(&["a"]), false)), @"
    `b` ran after `a`
      hint: add `--cascade` to reopen those as well
    ");
    fixture.accept(fixture.manager.claim("d", LEASE));
    insta::assert_snapshot!(fixture.refuse(|m| m.reopen(&ids(&["a"]), true)), @"
    `d` is in progress
      hint: wait until it has ended; if it is not needed, `taskpawl cancel d` first
    ");
    fixture.accept(fixture.manager.release(&ids(&["d"])));
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), true));
    assert_eq!(fixture.states(), "a=todo b=todo c=todo d=todo e=todo");
    assert_eq!(fixture.ready(), ["a"]);
}

#[test]
fn naming_the_dependents_replaces_cascade() {
    let fixture = Fixture::with(&["a", "b needs=a"]);
    fixture.done("a");
    fixture.done("b");
    fixture.accept(fixture.manager.reopen(&ids(&["a", "b"]), false));
    assert_eq!(fixture.states(), "a=todo b=todo");
}

#[test]
fn dependents_of_a_subtask_need_cascade_too() {
    let fixture = Fixture::with(&["p", "s in=p", "x needs=s"]);
    fixture.done("s");
    let refused = fixture.refuse(|m| m.reopen(&ids(&["s"]), false));
    assert!(refused.starts_with("`p` ran after `s`"), "{refused}");
    fixture.done("x");
    let refused = fixture.refuse(|m| m.reopen(&ids(&["p"]), false));
    assert!(refused.starts_with("`x` ran after `s`"), "{refused}");
    fixture.accept(fixture.manager.reopen(&ids(&["p"]), true));
    assert_eq!(fixture.states(), "p=todo s=todo x=todo");
}

#[test]
fn other_subtasks_of_a_parent_keep_their_results() {
    let fixture = Fixture::with(&["a", "p needs=a", "s in=p", "r in=p", "x needs=p"]);
    fixture.done("a");
    fixture.done("s");
    fixture.done("r");
    fixture.done("x");
    fixture.accept(fixture.manager.reopen(&ids(&["s"]), true));
    assert_eq!(fixture.states(), "a=done p=todo s=todo r=done x=todo");
    fixture.done("s");
    fixture.done("x");
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), true));
    assert_eq!(fixture.states(), "a=todo p=todo s=todo r=todo x=todo", "they waited for `a`");
    for key in ["a", "s", "r", "x"] {
        fixture.done(key);
    }
    fixture.accept(fixture.manager.reopen(&ids(&["s", "a"]), true));
    assert_eq!(fixture.states(), "a=todo p=todo s=todo r=todo x=todo", "both ways lead to `p`");
}

#[test]
fn a_skipped_task_with_started_dependents_needs_cascade() {
    let fixture = Fixture::with(&["p", "s in=p", "a", "b needs=a"]);
    fixture.accept(fixture.manager.skip(&ids(&["s", "a"]), None));
    fixture.done("b");
    let refused = fixture.refuse(|m| m.retry(&ids(&["a"]), false));
    assert!(refused.starts_with("`b` ran after `a`"), "{refused}");
    let refused = fixture.refuse(|m| m.retry(&ids(&["s"]), false));
    assert!(refused.starts_with("`p` ran after `s`"), "{refused}");
    fixture.accept(fixture.manager.retry(&ids(&["s", "a"]), true));
    assert_eq!(fixture.states(), "p=todo s=todo a=todo b=todo");
}

#[test]
fn retry_of_a_cancelled_task_restores_its_subtasks() {
    let fixture = Fixture::with(&["p", "s1 in=p", "s2 in=p", "after needs=p"]);
    fixture.done("s1");
    fixture.accept(fixture.manager.cancel(&ids(&["p"]), None));
    assert_eq!(fixture.states(), "p=cancelled s1=done s2=cancelled after=blocked{dependency p}");
    fixture.accept(fixture.manager.retry(&ids(&["p"]), false));
    assert_eq!(fixture.states(), "p=todo s1=done s2=todo after=todo");
    fixture.done("s2");
    fixture.accept(fixture.manager.reopen(&ids(&["p"]), false));
    assert_eq!(fixture.states(), "p=todo s1=todo s2=todo after=todo", "reopening clears all of it");
}

#[test]
fn reopening_clears_the_result() {
    let fixture = Fixture::with(&["a"]);
    let ending = taskpawl_manager::Ending { result: Some(serde_json::json!(1)), ..Default::default() };
    fixture.accept(fixture.manager.done(&ids(&["a"]), ending));
    fixture.accept(fixture.manager.reopen(&ids(&["a"]), false));
    let task = fixture.task("a");
    assert_eq!((task.result, task.started_at, task.finished_at), (None, None, None));
}

#[test]
fn a_restarted_milestone_waits_for_tasks_reopened_by_the_same_command() {
    let fixture = Fixture::with(&["a calls=1", "b needs=a", "m needs=b trigger=all_finished milestone"]);
    fixture.start(&["a"]);
    fixture.report("a", "c1", "bad");
    assert_eq!(fixture.states(), "a=failed b=blocked{dependency a} m=done");
    fixture.accept(fixture.manager.reopen(&ids(&["m", "a"]), false));
    assert_eq!(fixture.states(), "a=todo b=todo m=todo");
}
