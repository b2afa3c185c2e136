//! Claims and leases.

use std::time::Duration;

use serde_json::json;
use taskpawl_manager::Ending;

use crate::support::{Desk, LEASE, ids};

fn at_attempt(attempt: u32) -> Ending {
    Ending { attempt: Some(attempt), ..Ending::default() }
}

#[test]
fn the_holder_renews_and_others_are_refused() {
    let desk = Desk::with(&["a"]);
    let bob = desk.acting_as("bob");
    desk.accept(desk.manager.claim("a", LEASE));
    let first = desk.task("a").claim.unwrap();
    desk.pass(10);
    desk.accept(desk.manager.claim("a", LEASE));
    let second = desk.task("a").claim.unwrap();
    assert_eq!((second.lease_until.unwrap() - first.lease_until.unwrap()).num_seconds(), 10);
    assert_eq!(desk.task("a").attempt, 1, "renewing is no new attempt");
    insta::assert_snapshot!(bob.refuse(|m| m.claim("a", LEASE)), @"
    task `a` is held by `ann` until 2025-06-15T15:07:50Z
      hint: take another one with `claim --next`, or ask the holder to `release a`
    ");
    for refused in [
        bob.refuse(|m| m.renew("a", LEASE)),
        bob.refuse(|m| m.release(&ids(&["a"]))),
        bob.refuse(|m| m.done(&ids(&["a"]), Ending::default())),
        bob.refuse(|m| m.fail(&ids(&["a"]), Ending::default())),
    ] {
        assert!(refused.starts_with("task `a` is held by `ann`"), "{refused}");
    }
    desk.accept(desk.manager.release(&ids(&["a"])));
    bob.accept(bob.manager.claim("a", LEASE));
    assert_eq!(desk.task("a").attempt, 2);
}

#[test]
fn a_lease_that_ended_is_returned_by_the_next_write_on_the_task() {
    let desk = Desk::with(&["a"]);
    let bob = desk.acting_as("bob");
    desk.accept(desk.manager.claim("a", LEASE));
    desk.pass(61);
    assert_eq!(desk.states(), "a=in_progress", "a read shows what is");
    let before = desk.revision();
    bob.accept(bob.manager.claim("a", LEASE));
    assert_eq!(desk.events(before), ["status a", "status a"], "returned, then claimed");
    assert_eq!(desk.task("a").claim.unwrap().actor, "bob");
    let refused = desk.refuse(|m| m.done(&ids(&["a"]), at_attempt(1)));
    assert!(refused.starts_with("task `a` is held by `bob`"), "{refused}");
    bob.done("a");
    insta::assert_snapshot!(desk.refuse(|m| m.done(&ids(&["a"]), at_attempt(1))), @"
    the report is about attempt 1 of task `a`, which is at attempt 2 and `done`
      hint: `taskpawl history a` shows what happened since; the report was not recorded
    ");
}

#[test]
fn the_holder_of_a_lease_that_ended_may_still_report_while_nobody_took_the_task() {
    let desk = Desk::with(&["a"]);
    desk.accept(desk.manager.claim("a", LEASE));
    desk.pass(600);
    desk.accept(desk.manager.done(&ids(&["a"]), at_attempt(1)));
    assert_eq!(desk.states(), "a=done");
}

#[test]
fn the_next_task_is_the_most_urgent_one_that_is_for_this_actor() {
    let desk =
        Desk::with(&["a", "b priority=high assignee=bob", "c priority=high", "d calls=1", "e needs=a"]);
    let next = |desk: &Desk| desk.accept(desk.manager.claim_next(LEASE)).to_string();
    assert_eq!(next(&desk), "c");
    assert_eq!(next(&desk), "a", "always another one");
    insta::assert_snapshot!(desk.refuse(|m| m.claim_next(LEASE)), @"
    no manual task is ready
      hint: `taskpawl list --status todo,blocked` shows what is left
    ");
    assert_eq!(next(&desk.acting_as("bob")), "b");
}

#[test]
fn the_next_task_may_be_one_whose_lease_ended() {
    let desk = Desk::with(&["a priority=high", "b"]);
    let bob = desk.acting_as("bob");
    desk.accept(desk.manager.claim("a", LEASE));
    desk.pass(61);
    assert_eq!(bob.accept(bob.manager.claim_next(LEASE)).as_str(), "a");
    assert_eq!(bob.accept(bob.manager.claim_next(LEASE)).as_str(), "b");
    let refused = bob.refuse(|m| m.claim_next(LEASE));
    assert!(refused.starts_with("no manual task is ready"), "{refused}");
}

#[test]
fn only_ready_manual_tasks_are_claimed() {
    let desk = Desk::with(&["a", "b needs=a", "tool calls=1", "p", "s in=p", "held", "w when=params.x"]);
    let refuse = |id: &str| desk.refuse(|m| m.claim(id, LEASE));
    insta::assert_snapshot!(refuse("b"), @"
    task `b` is not ready: it waits for `a`
      hint: `taskpawl show b` lists what it depends on
    ");
    insta::assert_snapshot!(refuse("tool"), @"
    task `tool` has tool calls, so `claim` is not for it
      hint: `taskpawl run-all-ready` does what is left, and it ends by itself
    ");
    insta::assert_snapshot!(refuse("p"), @"
    task `p` ends with its subtasks, so `claim` is not for it
      hint: `taskpawl run-all-ready` does what is left, and it ends by itself
    ");
    insta::assert_snapshot!(refuse("w"), @"field `when`: this version keeps it but does not evaluate it, so `w` cannot start");
    let refused = desk.refuse(|m| m.claim("a", Duration::MAX));
    insta::assert_snapshot!(refused, @"field `ttl`: the lease would end too far in the future");
    desk.done("a");
    insta::assert_snapshot!(refuse("a"), @"
    task `a` is `done` and cannot become `in_progress` by `claim`
      hint: from `done` it allows: retry, reopen
    ");
}

#[test]
fn a_result_and_a_note_stay_with_the_task() {
    let desk = Desk::with(&["a", "b"]);
    let ending = Ending { result: Some(json!({"n": 1})), note: Some("looks good".to_owned()), attempt: None };
    desk.accept(desk.manager.done(&ids(&["a"]), ending));
    let task = desk.task("a");
    assert_eq!((task.result, task.attempt), (Some(json!({"n": 1})), 1));
    assert_eq!(task.notes[0].text, "looks good");
    let ending = Ending { note: Some("no way".to_owned()), ..Ending::default() };
    desk.accept(desk.manager.fail(&ids(&["b"]), ending));
    assert_eq!(desk.task("b").error.unwrap(), "no way");
}
