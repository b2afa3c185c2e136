//! `retry` and `reopen`.

use crate::support::{Desk, LEASE, ids};

#[test]
fn retry_resumes_at_the_first_unfinished_call_and_reopen_starts_over() {
    let desk = Desk::with(&["a calls=3"]);
    desk.start(&["a"]);
    desk.report("a", "c1", "ok");
    desk.report("a", "c2", "bad");
    assert_eq!(desk.states(), "a=failed");
    assert_eq!(desk.task("a").error.unwrap(), "call `c2` (t): boom");
    desk.accept(desk.manager.retry(&ids(&["a"]), false));
    assert_eq!(desk.calls("a"), "c1=succeeded/1 c2=pending/1 c3=pending/0");
    assert_eq!(desk.task("a").error, None);
    desk.run("a");
    assert_eq!(desk.calls("a"), "c1=succeeded/1 c2=succeeded/2 c3=succeeded/1");
    assert_eq!((desk.task("a").attempt, desk.task("a").generation), (2, 0));
    desk.accept(desk.manager.reopen(&ids(&["a"]), false));
    assert_eq!(desk.calls("a"), "c1=pending/1 c2=pending/2 c3=pending/1");
    assert_eq!((desk.task("a").attempt, desk.task("a").generation), (2, 1), "attempts are never reset");
    desk.run("a");
    assert_eq!(desk.calls("a"), "c1=succeeded/2 c2=succeeded/3 c3=succeeded/2");
}

#[test]
fn a_done_task_whose_dependents_ran_needs_cascade() {
    let desk = Desk::with(&["a", "b needs=a", "c needs=b", "d needs=a", "e needs=d"]);
    for id in ["a", "b", "c"] {
        desk.done(id);
    }
    insta::assert_snapshot!(desk.refuse(|m| m.reopen(&ids(&["a"]), false)), @"
    `b` ran after `a`
      hint: add `--cascade` to start those again, too
    ");
    desk.accept(desk.manager.claim("d", LEASE));
    insta::assert_snapshot!(desk.refuse(|m| m.reopen(&ids(&["a"]), true)), @"
    `d` is in progress
      hint: wait until it has ended; if it is not needed, `taskpawl cancel d` first
    ");
    desk.accept(desk.manager.release(&ids(&["d"])));
    desk.accept(desk.manager.reopen(&ids(&["a"]), true));
    assert_eq!(desk.states(), "a=todo b=todo c=todo d=todo e=todo");
    assert_eq!(desk.ready(), ["a"]);
}

#[test]
fn naming_the_dependents_replaces_cascade() {
    let desk = Desk::with(&["a", "b needs=a"]);
    desk.done("a");
    desk.done("b");
    desk.accept(desk.manager.reopen(&ids(&["a", "b"]), false));
    assert_eq!(desk.states(), "a=todo b=todo");
}

#[test]
fn dependents_of_a_subtask_need_cascade_too() {
    let desk = Desk::with(&["p", "s in=p", "x needs=s"]);
    desk.done("s");
    let refused = desk.refuse(|m| m.reopen(&ids(&["s"]), false));
    assert!(refused.starts_with("`p` ran after `s`"), "{refused}");
    desk.done("x");
    let refused = desk.refuse(|m| m.reopen(&ids(&["p"]), false));
    assert!(refused.starts_with("`x` ran after `s`"), "{refused}");
    desk.accept(desk.manager.reopen(&ids(&["p"]), true));
    assert_eq!(desk.states(), "p=todo s=todo x=todo");
}

#[test]
fn a_skipped_task_with_started_dependents_needs_cascade() {
    let desk = Desk::with(&["p", "s in=p", "a", "b needs=a"]);
    desk.accept(desk.manager.skip(&ids(&["s", "a"]), None));
    desk.done("b");
    let refused = desk.refuse(|m| m.retry(&ids(&["a"]), false));
    assert!(refused.starts_with("`b` ran after `a`"), "{refused}");
    let refused = desk.refuse(|m| m.retry(&ids(&["s"]), false));
    assert!(refused.starts_with("`p` ran after `s`"), "{refused}");
    desk.accept(desk.manager.retry(&ids(&["s", "a"]), true));
    assert_eq!(desk.states(), "p=todo s=todo a=todo b=todo");
}

#[test]
fn retry_of_a_cancelled_task_restores_its_subtasks() {
    let desk = Desk::with(&["p", "s1 in=p", "s2 in=p", "after needs=p"]);
    desk.done("s1");
    desk.accept(desk.manager.cancel(&ids(&["p"]), None));
    assert_eq!(desk.states(), "p=cancelled s1=done s2=cancelled after=blocked{dependency p}");
    desk.accept(desk.manager.retry(&ids(&["p"]), false));
    assert_eq!(desk.states(), "p=todo s1=done s2=todo after=todo");
    desk.done("s2");
    desk.accept(desk.manager.reopen(&ids(&["p"]), false));
    assert_eq!(desk.states(), "p=todo s1=todo s2=todo after=todo", "reopening clears all of it");
}

#[test]
fn reopening_clears_the_result() {
    let desk = Desk::with(&["a"]);
    let ending = taskpawl_manager::Ending { result: Some(serde_json::json!(1)), ..Default::default() };
    desk.accept(desk.manager.done(&ids(&["a"]), ending));
    desk.accept(desk.manager.reopen(&ids(&["a"]), false));
    let task = desk.task("a");
    assert_eq!((task.result, task.started_at, task.finished_at), (None, None, None));
}

#[test]
fn a_restarted_milestone_waits_for_tasks_reopened_by_the_same_command() {
    let desk = Desk::with(&["a calls=1", "b needs=a", "m needs=b trigger=all_finished milestone"]);
    desk.start(&["a"]);
    desk.report("a", "c1", "bad");
    assert_eq!(desk.states(), "a=failed b=blocked{dependency a} m=done");
    desk.accept(desk.manager.reopen(&ids(&["m", "a"]), false));
    assert_eq!(desk.states(), "a=todo b=todo m=todo");
}
