//! `done`, `fail`, `skip`, `cancel`, `block` and `unblock`.

use taskpawl_manager::Ending;

use crate::support::{Fixture, LEASE, ids};

fn ending(note: &str) -> Ending {
    Ending { note: Some(note.to_owned()), ..Ending::default() }
}

#[test]
fn one_command_can_end_several_tasks_even_if_one_opens_the_next() {
    let fixture = Fixture::with(&["a", "b needs=a", "c needs=b"]);
    fixture.accept(fixture.manager.done(&ids(&["a", "b", "c"]), Ending::default()));
    assert_eq!(fixture.states(), "a=done b=done c=done");
}

#[test]
fn ending_several_tasks_is_all_or_nothing() {
    let fixture = Fixture::with(&["a", "b", "c needs=b"]);
    let refused = fixture.refuse(|m| m.done(&ids(&["a", "c"]), ending("done both")));
    insta::assert_snapshot!(refused, @r"
    task `c` is not ready: it waits for `b`
      hint: `taskpawl explain c` shows the chain of causes and the commands that resolve it
    ");
    fixture.refuse(|m| m.skip(&ids(&["a", "b", "nobody"]), None));
    fixture.refuse(|m| m.block(&ids(&["a", "a2"]), "x"));
}

#[test]
fn only_manual_tasks_can_be_marked_as_ended() {
    let fixture = Fixture::with(&["b", "tool calls=1", "p", "s in=p", "m milestone needs=b"]);
    insta::assert_snapshot!(fixture.refuse(|m| m.done(&ids(&["tool"]), Ending::default())), @"
    task `tool` has tool calls, so `done` does not apply to it
      hint: `taskpawl run-all-ready` runs its remaining work, and it ends automatically
    ");
    insta::assert_snapshot!(fixture.refuse(|m| m.fail(&ids(&["m"]), Ending::default())), @"
    task `m` is a milestone, so `fail` does not apply to it
      hint: `taskpawl run-all-ready` runs its remaining work, and it ends automatically
    ");
    insta::assert_snapshot!(fixture.refuse(|m| m.done(&ids(&["p"]), Ending::default())), @"
    task `p` ends with its subtasks, so `done` does not apply to it
      hint: `taskpawl run-all-ready` runs its remaining work, and it ends automatically
    ");
    fixture.start(&["tool"]);
    insta::assert_snapshot!(fixture.refuse(|m| m.done(&ids(&["tool"]), Ending::default())), @"
    task `tool` is held by run `r1`
      hint: wait for that run; if it was killed, `taskpawl run-all-ready` reclaims its tasks
    ");
}

#[test]
fn reporting_the_end_of_an_interrupted_call_resumes_the_task() {
    let fixture = Fixture::with(&["a calls=3", "b needs=a"]);
    fixture.start(&["a"]);
    fixture.report("a", "c1", "ok");
    fixture.report("a", "c2", "lost");
    assert_eq!(fixture.states(), "a=blocked{interrupted} b=todo", "it does not spread");
    fixture.done("a");
    assert_eq!(fixture.states(), "a=todo b=todo");
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=succeeded/1 c3=pending/0");
    assert_eq!(fixture.start(&["a"]).started[0].call.id.as_str(), "c3");
    fixture.report("a", "c3", "lost");
    fixture.done("a");
    assert_eq!(fixture.states(), "a=done b=todo");
}

#[test]
fn an_interrupted_task_may_also_fail_or_start_the_call_again() {
    let fixture = Fixture::with(&["a calls=2", "b calls=2"]);
    fixture.start(&["a", "b"]);
    fixture.report("a", "c1", "lost");
    fixture.report("b", "c1", "lost");
    fixture.fail("a");
    assert_eq!(fixture.states(), "a=failed b=blocked{interrupted}");
    assert_eq!(fixture.calls("a"), "c1=failed/1 c2=pending/0");
    fixture.accept(fixture.manager.unblock(&ids(&["b"])));
    assert_eq!(fixture.calls("b"), "c1=pending/1 c2=pending/0");
    fixture.run("b");
    assert_eq!(fixture.calls("b"), "c1=succeeded/2 c2=succeeded/1");
}

#[test]
fn a_report_about_an_interrupted_task_of_an_old_attempt_is_refused() {
    let fixture = Fixture::with(&["a calls=1"]);
    fixture.start(&["a"]);
    fixture.give_back("a");
    fixture.start(&["a"]);
    fixture.report("a", "c1", "lost");
    let late = Ending { attempt: Some(1), ..Ending::default() };
    let refused = fixture.refuse(|m| m.done(&ids(&["a"]), late));
    assert!(
        refused.starts_with("the report is about attempt 1 of task `a`, which is at attempt 2"),
        "{refused}"
    );
}

/// Two parallel calls were interrupted, and each needs its own decision.
#[test]
fn interrupted_parallel_calls_are_settled_one_by_one() {
    let fixture = Fixture::with(&["a calls=3 parallel"]);
    fixture.start(&["a"]);
    fixture.report("a", "c1", "lost");
    fixture.report("a", "c2", "lost");
    fixture.report("a", "c3", "ok");
    fixture.done("a");
    assert_eq!(fixture.states(), "a=blocked{interrupted}");
    assert_eq!(fixture.calls("a"), "c1=succeeded/1 c2=interrupted/1 c3=succeeded/1");
    fixture.done("a");
    assert_eq!(fixture.states(), "a=done");
}

/// A call that failed for good next to the interrupted one is not started again.
#[test]
fn a_failed_call_beside_an_interrupted_one_stays_failed() {
    let fixture = Fixture::with(&["a calls=2 parallel"]);
    fixture.start(&["a"]);
    fixture.report("a", "c1", "bad");
    fixture.report("a", "c2", "lost");
    assert_eq!(fixture.states(), "a=blocked{interrupted}");
    fixture.done("a");
    assert_eq!(fixture.states(), "a=failed");
    assert_eq!(fixture.calls("a"), "c1=failed/1 c2=succeeded/1");
}

#[test]
fn a_released_task_keeps_the_failure_of_a_parallel_call() {
    let fixture = Fixture::with(&["a calls=2 parallel", "b calls=2"]);
    fixture.start(&["a", "b"]);
    fixture.report("a", "c1", "bad");
    fixture.give_back("a");
    fixture.give_back("b");
    assert_eq!(fixture.states(), "a=failed b=todo");
    assert_eq!(fixture.calls("a"), "c1=failed/1 c2=pending/1");
}

#[test]
fn skip_and_cancel_include_subtasks() {
    let fixture = Fixture::with(&[
        "p",
        "s1 in=p",
        "s2 in=p calls=1",
        "deep in=s2",
        "q",
        "t1 in=q",
        "t2 in=q calls=1",
        "b",
    ]);
    fixture.done("s1");
    fixture.accept(fixture.manager.skip(&ids(&["p"]), Some("not now".to_owned())));
    assert_eq!(fixture.task("deep").error.unwrap(), "not now");
    fixture.start(&["t2"]);
    fixture.accept(fixture.manager.cancel(&ids(&["q"]), None));
    assert_eq!(
        fixture.states(),
        "p=skipped s1=done s2=skipped deep=skipped q=cancelled t1=cancelled t2=cancelled b=todo"
    );
    assert_eq!(fixture.calls("t2"), "c1=cancelled/1");
    let late = fixture.try_report("t2", "c1", crate::support::end("ok"), true).unwrap_err();
    insta::assert_snapshot!(crate::support::error_text(&late), @"
    the report is about attempt 1 of task `t2`, which is at attempt 1 and `cancelled`
      hint: `taskpawl history t2` shows the changes since then; the report was not recorded
    ");
}

#[test]
fn one_command_may_name_a_task_and_its_subtasks() {
    let fixture = Fixture::with(&["p", "s in=p", "deep in=s", "q", "t in=q"]);
    fixture.accept(fixture.manager.skip(&ids(&["deep", "p", "s"]), None));
    fixture.accept(fixture.manager.cancel(&ids(&["q", "t"]), None));
    assert_eq!(fixture.states(), "p=skipped s=skipped deep=skipped q=cancelled t=cancelled");
    fixture.accept(fixture.manager.retry(&ids(&["p", "s"]), false));
    assert_eq!(fixture.states(), "p=todo s=todo deep=todo q=cancelled t=cancelled");
}

#[test]
fn a_task_in_progress_can_be_cancelled_but_not_skipped() {
    let fixture = Fixture::with(&["p", "s in=p"]);
    fixture.accept(fixture.manager.claim("s", LEASE));
    insta::assert_snapshot!(fixture.refuse(|m| m.skip(&ids(&["p"]), None)), @"
    `s` is in progress
      hint: wait until it has ended; if it is not needed, `taskpawl cancel s` first
    ");
    insta::assert_snapshot!(fixture.refuse(|m| m.skip(&ids(&["s"]), None)), @"
    task `s` is `in_progress` and cannot become `skipped` by `skip`
      hint: from `in_progress`, the allowed commands are: done, fail, release, cancel
    ");
    fixture.accept(fixture.manager.cancel(&ids(&["s"]), Some("enough".to_owned())));
    assert_eq!(fixture.states(), "p=done s=cancelled");
}

/// The result of each manual command in each status, or its refusal.
#[test]
fn every_manual_command_in_every_status() {
    use std::fmt::Write as _;
    let states =
        ["todo", "in_progress", "blocked", "done", "failed", "cancelled", "skipped", "interrupted", "shut"];
    let mut table = String::new();
    for state in states {
        writeln!(table, "{state}").unwrap();
        for command in [
            "claim", "renew", "release", "done", "fail", "skip", "block", "unblock", "retry", "reopen",
            "cancel",
        ] {
            let fixture = match state {
                "interrupted" => Fixture::with(&["a calls=1"]),
                "shut" => Fixture::with(&["x", "a needs=x"]),
                _ => Fixture::with(&["a"]),
            };
            match state {
                "interrupted" => {
                    fixture.start(&["a"]);
                    fixture.report("a", "c1", "lost");
                }
                "shut" => fixture.fail("x"),
                _ => fixture.set_state("a", state),
            }
            let before = fixture.dump();
            let one = ids(&["a"]);
            let m = &fixture.manager;
            let result = match command {
                "claim" => m.claim("a", LEASE).map(drop),
                "renew" => m.renew("a", LEASE).map(drop),
                "release" => m.release(&one).map(drop),
                "done" => m.done(&one, Ending::default()).map(drop),
                "fail" => m.fail(&one, Ending::default()).map(drop),
                "skip" => m.skip(&one, None).map(drop),
                "block" => m.block(&one, "why").map(drop),
                "unblock" => m.unblock(&one).map(drop),
                "retry" => m.retry(&one, false).map(drop),
                "reopen" => m.reopen(&one, false).map(drop),
                _ => m.cancel(&one, None).map(drop),
            };
            let comes_to = match result {
                Ok(()) => {
                    fixture.check();
                    fixture.task("a").status.to_string()
                }
                Err(error) => {
                    assert_eq!(fixture.dump(), before);
                    format!("! {}", crate::support::error_text(&error).replace('\n', ";"))
                }
            };
            writeln!(table, "  {command:<8} {comes_to}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
