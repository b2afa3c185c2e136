//! Claims and leases.

use std::time::Duration;

use serde_json::json;
use taskpawl_manager::{Ending, Error, Manager};
use taskpawl_model::command::Command;
use taskpawl_model::rules::{Means, resolve};
use taskpawl_model::task::{Event, EventKind};
use taskpawl_model::value::{Key, TaskId};

use crate::support::{Fixture, LEASE, ids};

fn keys(fixture: &Fixture, ids: &[&str]) -> Vec<Key> {
    ids.iter().map(|id| fixture.manager.read(|view| resolve(view, id)).unwrap()).collect()
}

fn at_attempt(attempt: u32) -> Ending {
    Ending { attempt: Some(attempt), ..Ending::default() }
}

#[test]
fn the_holder_renews_and_others_are_refused() {
    let fixture = Fixture::with(&["a"]);
    let bob = fixture.acting_as("bob");
    fixture.accept(fixture.manager.claim("a", LEASE));
    let first = fixture.task("a").claim.unwrap();
    fixture.pass(10);
    fixture.accept(fixture.manager.claim("a", LEASE));
    let second = fixture.task("a").claim.unwrap();
    assert_eq!((second.lease_until.unwrap() - first.lease_until.unwrap()).num_seconds(), 10);
    assert_eq!(fixture.task("a").attempt, 1, "a renewal is not a new attempt");
    insta::assert_snapshot!(bob.refuse(|m| m.claim("a", LEASE)), @"
    task `a` is held by `ann` until 2025-06-15T15:07:50Z
      hint: `taskpawl explain --ready` shows other tasks to take; or ask the holder to release `a`
    ");
    for refused in [
        bob.refuse(|m| m.renew("a", LEASE)),
        bob.refuse(|m| m.release(&ids(&["a"]))),
        bob.refuse(|m| m.done(&ids(&["a"]), Ending::default())),
        bob.refuse(|m| m.fail(&ids(&["a"]), Ending::default())),
    ] {
        assert!(refused.starts_with("task `a` is held by `ann`"), "{refused}");
    }
    fixture.accept(fixture.manager.release(&ids(&["a"])));
    bob.accept(bob.manager.claim("a", LEASE));
    assert_eq!(fixture.task("a").attempt, 2);
}

#[test]
fn the_next_write_on_a_task_records_its_expired_lease() {
    let fixture = Fixture::with(&["a"]);
    let bob = fixture.acting_as("bob");
    fixture.accept(fixture.manager.claim("a", LEASE));
    fixture.pass(61);
    assert_eq!(fixture.states(), "a=in_progress", "a read shows the stored status");
    let before = fixture.revision();
    bob.accept(bob.manager.claim("a", LEASE));
    assert_eq!(fixture.events(before), ["status a", "status a"], "released, then claimed");
    assert_eq!(fixture.task("a").claim.unwrap().actor, "bob");
    let refused = fixture.refuse(|m| m.done(&ids(&["a"]), at_attempt(1)));
    assert!(refused.starts_with("task `a` is held by `bob`"), "{refused}");
    bob.done("a");
    insta::assert_snapshot!(fixture.refuse(|m| m.done(&ids(&["a"]), at_attempt(1))), @"
    the report is about attempt 1 of task `a`, which is at attempt 2 and `done`
      hint: `taskpawl history a` shows the changes since then; the report was not recorded
    ");
}

#[test]
fn a_holder_may_report_after_expiry_until_the_task_is_claimed_again() {
    let fixture = Fixture::with(&["a"]);
    fixture.accept(fixture.manager.claim("a", LEASE));
    fixture.pass(600);
    fixture.accept(fixture.manager.done(&ids(&["a"]), at_attempt(1)));
    assert_eq!(fixture.states(), "a=done");
}

#[test]
fn claim_next_takes_the_most_urgent_task_for_this_actor() {
    let fixture =
        Fixture::with(&["a", "b priority=high assignee=bob", "c priority=high", "d calls=1", "e needs=a"]);
    let next = |fixture: &Fixture| fixture.accept(fixture.manager.claim_next(LEASE)).to_string();
    assert_eq!(next(&fixture), "c");
    assert_eq!(next(&fixture), "a", "each call claims another task");
    insta::assert_snapshot!(fixture.refuse(|m| m.claim_next(LEASE)), @"
    no manual task is ready
      hint: `taskpawl list --status todo,blocked` lists the remaining tasks
    ");
    assert_eq!(next(&fixture.acting_as("bob")), "b");
}

#[test]
fn claim_next_may_take_a_task_with_an_expired_lease() {
    let fixture = Fixture::with(&["a priority=high", "b"]);
    let bob = fixture.acting_as("bob");
    fixture.accept(fixture.manager.claim("a", LEASE));
    fixture.pass(61);
    assert_eq!(bob.accept(bob.manager.claim_next(LEASE)).as_str(), "a");
    assert_eq!(bob.accept(bob.manager.claim_next(LEASE)).as_str(), "b");
    let refused = bob.refuse(|m| m.claim_next(LEASE));
    assert!(refused.starts_with("no manual task is ready"), "{refused}");
}

#[test]
fn only_ready_manual_tasks_are_claimed() {
    let fixture = Fixture::with(&["a", "b needs=a", "tool calls=1", "p", "s in=p", "held"]);
    let refuse = |id: &str| fixture.refuse(|m| m.claim(id, LEASE));
    insta::assert_snapshot!(refuse("b"), @r"
    task `b` is not ready: it waits for `a`: ready: an agent or a person must claim it
      hint: `taskpawl explain b` shows the chain of causes and the commands that resolve it
    ");
    insta::assert_snapshot!(refuse("tool"), @"
    task `tool` has tool calls, so `claim` does not apply to it
      hint: `taskpawl run-all-ready` runs its remaining work, and it ends automatically
    ");
    insta::assert_snapshot!(refuse("p"), @"
    task `p` ends with its subtasks, so `claim` does not apply to it
      hint: `taskpawl run-all-ready` runs its remaining work, and it ends automatically
    ");
    let refused = fixture.refuse(|m| m.claim("a", Duration::MAX));
    insta::assert_snapshot!(refused, @"field `ttl`: the lease would end too far in the future");
    fixture.done("a");
    insta::assert_snapshot!(refuse("a"), @"
    task `a` is `done` and cannot become `in_progress` by `claim`
      hint: from `done`, the allowed commands are: retry, reopen
    ");
}

#[test]
fn the_result_and_the_note_are_stored_with_the_task() {
    let fixture = Fixture::with(&["a", "b"]);
    let ending = Ending { result: Some(json!({"n": 1})), note: Some("looks good".to_owned()), attempt: None };
    fixture.accept(fixture.manager.done(&ids(&["a"]), ending));
    let task = fixture.task("a");
    assert_eq!((task.result, task.attempt), (Some(json!({"n": 1})), 1));
    assert_eq!(task.notes[0].text, "looks good");
    let ending = Ending { note: Some("no way".to_owned()), ..Ending::default() };
    fixture.accept(fixture.manager.fail(&ids(&["b"]), ending));
    assert_eq!(fixture.task("b").error.unwrap(), "no way");
}

/// Returns the changes that a refusal lists, one per line.
fn since(fixture: &Fixture, command: impl FnOnce(&Manager) -> Result<Vec<TaskId>, Error>) -> String {
    let Err(Error::Refused(refusal)) = command(&fixture.manager) else {
        panic!("the command was not refused")
    };
    let line = |event: &Event| {
        let EventKind::Status { from, to, cause, attempt, text, .. } = &event.kind else {
            panic!("{event:?}")
        };
        let text = text.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
        format!("{}: {from} → {to} by {cause}, attempt {attempt}{text}", event.actor)
    };
    let lines = refusal.since().map(|since| since.events.iter().map(line).collect::<Vec<_>>().join("\n"));
    format!("{refusal}\n{}", lines.unwrap_or_default())
}

#[test]
fn a_late_report_is_refused_with_the_events_since() {
    let fixture = Fixture::with(&["a"]);
    let bob = fixture.acting_as("bob");
    fixture.accept(fixture.manager.claim("a", LEASE));
    fixture.pass(61);
    bob.accept(bob.manager.claim("a", LEASE));
    insta::assert_snapshot!(since(&fixture, |m| m.done(&ids(&["a"]), at_attempt(1))), @"
    task `a` is held by `bob` until 2025-06-15T15:08:41Z
    bob: in_progress → todo by release, attempt 1: the lease of ann ended
    bob: todo → in_progress by claim, attempt 2
    ");
    insta::assert_snapshot!(since(&fixture, |m| m.release(&ids(&["a"]))), @"
    task `a` is held by `bob` until 2025-06-15T15:08:41Z
    bob: in_progress → todo by release, attempt 1: the lease of ann ended
    bob: todo → in_progress by claim, attempt 2
    ");
    bob.fail("a");
    insta::assert_snapshot!(since(&fixture, |m| m.done(&ids(&["a"]), at_attempt(1))), @"
    the report is about attempt 1 of task `a`, which is at attempt 2 and `failed`
    bob: in_progress → todo by release, attempt 1: the lease of ann ended
    bob: todo → in_progress by claim, attempt 2
    bob: in_progress → failed by report, attempt 2
    ");
    insta::assert_snapshot!(since(&fixture, |m| m.done(&ids(&["a"]), Ending::default())), @"
    task `a` is `failed` and cannot become `done` by `done`
    bob: in_progress → todo by release, attempt 1: the lease of ann ended
    bob: todo → in_progress by claim, attempt 2
    bob: in_progress → failed by report, attempt 2
    ");
    insta::assert_snapshot!(since(&fixture.acting_as("eve"), |m| m.done(&ids(&["a"]), Ending::default())), @"task `a` is `failed` and cannot become `done` by `done`");
}

#[test]
fn a_long_list_of_events_since_is_truncated() {
    let fixture = Fixture::with(&["a"]);
    let bob = fixture.acting_as("bob");
    fixture.accept(fixture.manager.claim("a", LEASE));
    fixture.accept(fixture.manager.release(&ids(&["a"])));
    for _ in 0..15 {
        bob.accept(bob.manager.claim("a", LEASE));
        bob.accept(bob.manager.release(&ids(&["a"])));
    }
    let Err(Error::Refused(refusal)) = fixture.manager.done(&ids(&["a"]), at_attempt(1)) else { panic!() };
    let since = refusal.since().unwrap();
    assert_eq!((since.events.len(), since.earlier), (20, 11));
}

#[test]
fn results_after_expiry_count_until_another_actor_claims() {
    let fixture = Fixture::with(&["a", "b", "c", "d"]);
    let bob = fixture.acting_as("bob");
    for id in ["a", "b", "c", "d"] {
        fixture.accept(fixture.manager.claim(id, LEASE));
    }
    fixture.pass(3600);
    fixture.accept(fixture.manager.claim("a", LEASE));
    assert_eq!(fixture.task("a").attempt, 1, "a claim by the holder is a renewal");
    fixture.accept(fixture.manager.renew("b", LEASE));
    assert_eq!(fixture.task("b").attempt, 1);
    bob.accept(bob.manager.command(Command::ReturnExpired { tasks: keys(&fixture, &["a", "b", "c", "d"]) }));
    assert_eq!(fixture.states(), "a=in_progress b=in_progress c=todo d=todo");
    let refused = bob.refuse(|m| m.done(&ids(&["c"]), at_attempt(1)));
    assert!(refused.starts_with("attempt 1 of task `c` belongs to another actor"), "{refused}");
    fixture.accept(fixture.manager.done(&ids(&["c"]), at_attempt(1)));
    bob.accept(bob.manager.claim("d", LEASE));
    let refused = fixture.refuse(|m| m.done(&ids(&["d"]), at_attempt(1)));
    assert!(refused.starts_with("task `d` is held by `bob`"), "{refused}");
}

#[test]
fn any_command_renews_the_leases_of_its_actor_after_half_their_time() {
    let fixture = Fixture::with(&["a", "b", "c"]);
    let bob = fixture.acting_as("bob");
    fixture.accept(fixture.manager.claim("a", LEASE));
    fixture.accept(fixture.manager.claim("b", LEASE * 10));
    bob.accept(bob.manager.claim("c", LEASE));
    let ends = |id: &str| fixture.task(id).claim.unwrap().lease_until.unwrap().timestamp() - 1_750_000_000;
    fixture.pass(30);
    let before = fixture.revision();
    fixture.accept(fixture.manager.note("c", "on it"));
    assert_eq!(fixture.events(before), ["noted c"], "more than half of the lease is left");
    fixture.pass(1);
    let before = fixture.revision();
    fixture.accept(fixture.manager.note("c", "still on it"));
    assert_eq!(fixture.events(before), ["noted c", "renewed a"]);
    assert_eq!([ends("a"), ends("b"), ends("c")], [91, 600, 60]);
    fixture.pass(60);
    fixture.accept(fixture.manager.note("b", "too late for a"));
    assert_eq!(ends("a"), 91, "an expired lease is not renewed implicitly");
    fixture.pass(400);
    fixture.done("b");
    assert_eq!(fixture.states(), "a=in_progress b=done c=in_progress");
}

#[test]
fn any_write_that_covers_a_task_records_its_expired_lease() {
    let after = |write: &dyn Fn(&Manager) -> Result<Vec<TaskId>, Error>| {
        let fixture = Fixture::with(&["p", "a in=p", "b"]);
        let bob = fixture.acting_as("bob");
        fixture.accept(fixture.manager.claim("a", LEASE));
        fixture.pass(60);
        bob.accept(write(&bob.manager));
        bob.states()
    };
    assert_eq!(after(&|m| m.skip(&ids(&["a"]), None)), "p=done a=skipped b=todo");
    assert_eq!(after(&|m| m.skip(&ids(&["p"]), None)), "p=skipped a=skipped b=todo");
    assert_eq!(after(&|m| m.block(&ids(&["a"]), "why")), "p=todo a=blocked{manual} b=todo");
    assert_eq!(after(&|m| m.delete(&ids(&["a", "p"]))), "b=todo");
    assert_eq!(after(&|m| m.done(&ids(&["a"]), Ending::default())), "p=done a=done b=todo");
    assert_eq!(after(&|m| m.note("a", "hm").map(|id| vec![id])), "p=todo a=todo b=todo");
    assert_eq!(after(&|m| m.note("b", "hm").map(|id| vec![id])), "p=todo a=in_progress b=todo");
}

#[test]
fn releasing_a_task_twice_succeeds() {
    let fixture = Fixture::with(&["a"]);
    fixture.accept(fixture.manager.claim("a", LEASE));
    fixture.accept(fixture.manager.release(&ids(&["a"])));
    let before = fixture.revision();
    fixture.accept(fixture.manager.release(&ids(&["a"])));
    assert_eq!(fixture.revision(), before);
    let bob = fixture.acting_as("bob");
    let refused = bob.refuse(|m| m.release(&ids(&["a"])));
    assert!(refused.starts_with("task `a` is `todo` and cannot become `todo` by `release`"), "{refused}");
}

#[test]
fn tasks_that_need_a_held_resource_are_not_claimed() {
    let fixture = Fixture::new();
    fixture.apply(
        "resources: {gpu: 2}
tasks: [{id: a, resources: {gpu: 2}}, {id: b, resources: gpu}, {id: c, writes: [out]}, {id: d, writes: [out/x]}, {id: e}]",
    );
    let ann = &fixture.manager;
    fixture.accept(ann.claim("a", LEASE));
    fixture.accept(ann.claim("c", LEASE));
    let refused = fixture.refuse(|manager| manager.claim("b", LEASE));
    assert!(refused.starts_with("task `b` needs resources that `a` holds"), "{refused}");
    let explained = ann.explain("b", &Means::default()).unwrap().first_cause.text;
    assert_eq!(explained, "ready, but `gpu` is held by `a`");
    assert_eq!(
        fixture.accept(ann.claim_next(LEASE)).as_str(),
        "e",
        "tasks that wait for a resource are passed over"
    );
    let refused = fixture.refuse(|manager| manager.claim_next(LEASE));
    assert!(refused.starts_with("task `b` needs resources that `a` holds"), "{refused}");
    let more = ann.clone().with_capacities([("gpu".to_owned(), 3)].into());
    fixture.accept(more.claim("b", LEASE));
    fixture.accept(ann.release(&ids(&["b"])));
    fixture.accept(ann.release(&ids(&["c"])));
    fixture.accept(ann.claim("d", LEASE));
    // A claim with an expired lease holds no resources.
    fixture.pass(61);
    fixture.accept(fixture.acting_as("ben").manager.claim("b", LEASE));
}
