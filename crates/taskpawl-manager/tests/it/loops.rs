//! Loops: `forEach` creates items, `repeat` runs rounds, and both resume after an interruption.

use serde_json::json;
use taskpawl_manager::{ApplyOptions, Ending};
use taskpawl_model::command::{Command, Round};
use taskpawl_model::task::Status;
use taskpawl_model::value::RunId;

use crate::flow::{started, succeed, with_plan};
use crate::support::{Fixture, fields, ids};

const ITEMS: &str = "
    tasks:
      - {id: list}
      - {id: each, needs: [list], forEach: {in: '${{ tasks.list.result }}'}, call: {t: {it: '${{ item }}', n: '${{ index }}'}}}
      - {id: after, needs: [each], call: {t: {all: '${{ tasks.each.results }}'}}}
";

#[track_caller]
fn give(fixture: &Fixture, list: serde_json::Value) {
    let ending = Ending { result: Some(list), ..Ending::default() };
    fixture.accept(fixture.manager.done(&ids(&["list"]), ending));
}

fn expanded() -> Fixture {
    let fixture = with_plan(ITEMS);
    give(&fixture, json!(["x", "y"]));
    fixture
}

#[test]
fn items_are_created_when_the_list_is_known() {
    let fixture = with_plan(ITEMS);
    assert_eq!(fixture.states(), "list=todo each=todo after=todo");
    give(&fixture, json!(["x", {"k": [1]}]));
    assert_eq!(fixture.states(), "list=done each=todo after=todo each.0=todo each.1=todo");
    let task = fixture.task("each.1");
    assert_eq!(
        (task.name.as_str(), task.parent.unwrap().as_str(), task.plan.as_deref()),
        (r#"each [{"k":[1]}]"#, "each", Some("p"))
    );
    let answer = fixture.start(&["each.0", "each.1"]);
    assert_eq!(started(&answer), [r#"each.0.c1 {"it":"x","n":0}"#, r#"each.1.c1 {"it":{"k":[1]},"n":1}"#]);
    succeed(&fixture, "each.1", "c1", json!("second"));
    succeed(&fixture, "each.0", "c1", json!("first"));
    assert_eq!(fixture.states(), "list=done each=done after=todo each.0=done each.1=done");
    assert_eq!(started(&fixture.start(&["after"])), [r#"after.c1 {"all":["first","second"]}"#]);
}

#[test]
fn a_failed_item_blocks_the_loop_and_its_retry_unblocks_it() {
    let fixture = expanded();
    fixture.run("each.0");
    fixture.start(&["each.1"]);
    fixture.report("each.1", "c1", "bad");
    let blocked =
        "list=done each=blocked{dependency each.1} after=blocked{dependency each} each.0=done each.1=failed";
    assert_eq!(fixture.states(), blocked);
    fixture.accept(fixture.manager.retry(&ids(&["each.1"]), false));
    assert_eq!(fixture.states(), "list=done each=todo after=todo each.0=done each.1=todo");
    fixture.run("each.1");
    assert_eq!(fixture.task("each").status, Status::Done);
}

#[test]
fn an_interrupted_item_is_settled_before_its_element_changes() {
    let plan = |list: &str, work: &str| {
        format!(
            "tasks: [{{id: each, forEach: {{in: {list}}}, call: {{t: {{it: '${{{{ item }}}}'{work}}}}}}}]"
        )
    };
    let fixture = with_plan(&plan("[x, y]", ""));
    fixture.start(&["each.1"]);
    fixture.report("each.1", "c1", "lost");
    let refused = |changed: &str| fixture.refuse(|_| fixture.try_apply(changed, ApplyOptions::default()));
    for changed in [plan("[x, z]", ""), plan("[x, y]", ", n: 1")] {
        let said = refused(&changed);
        assert!(said.contains("`each.1` was interrupted in its call, which the file changes"), "{said}");
    }
    fixture.apply(&plan("[x]", ""));
    let waits = "each=todo each.0=todo each.1=blocked{interrupted}";
    assert_eq!((fixture.states().as_str(), fixture.calls("each.1").as_str()), (waits, "c1=interrupted/1"));
    fixture.done("each.1");
    assert_eq!(fixture.states(), "each=todo each.0=todo each.1=skipped");
}

#[test]
fn an_empty_list_is_done_and_a_non_list_fails() {
    for (list, state) in
        [(json!([]), Status::Done), (json!("x"), Status::Failed), (json!({}), Status::Failed)]
    {
        let fixture = with_plan(ITEMS);
        give(&fixture, list);
        assert_eq!(fixture.task("each").status, state);
    }
    let fixture = with_plan(ITEMS);
    fixture.accept(fixture.manager.skip(&ids(&["list"]), None));
    let error = fixture.task("each").error.unwrap();
    assert!(error.contains("none") && error.contains("default([])"), "{error}");
}

#[test]
fn an_item_id_taken_by_another_task_is_refused() {
    let fixture = with_plan(
        "tasks: [{id: list}, {id: each.0}, {id: each, needs: [list], forEach: {in: '${{ tasks.list.result }}'}}]",
    );
    give(&fixture, json!([1]));
    assert_eq!(fixture.states(), "list=done each.0=todo each=failed");
    assert_eq!(fixture.task("each").error.unwrap(), "`forEach`: id `each.0` is taken");
}

#[test]
fn a_changed_list_keeps_equal_items_and_restarts_the_rest() {
    let fixture = expanded();
    fixture.run("each.0");
    fixture.run("each.1");
    let list = ids(&["list"]);
    fixture.accept(fixture.manager.reopen(&list, true));
    assert_eq!(
        fixture.states(),
        "list=todo each=todo after=todo each.0=todo each.1=todo",
        "all dependents that ran restart"
    );
    give(&fixture, json!(["x", "z", "new"]));
    fixture.run("each.0");
    fixture.run("each.1");
    // The parent has not ended, so nothing restarts by itself, and equal items stay done.
    fixture.accept(fixture.manager.retry(&list, false));
    give(&fixture, json!(["x"]));
    assert_eq!(fixture.states(), "list=done each=done after=todo each.0=done each.1=skipped each.2=skipped");
    assert_eq!(
        started(&fixture.start(&["after"])),
        [r#"after.c1 {"all":["fine"]}"#],
        "removed items have no result"
    );
    fixture.give_back("after");
    fixture.accept(fixture.manager.reopen(&list, true));
    give(&fixture, json!(["x", "back"]));
    assert_eq!(fixture.states(), "list=done each=todo after=todo each.0=todo each.1=todo each.2=skipped");
}

#[test]
fn equal_items_stay_done_when_the_list_grows() {
    let fixture = with_plan("tasks: [{id: each, forEach: {in: [x, y]}, call: {t: {it: '${{ item }}'}}}]");
    fixture.run("each.0");
    fixture.start(&["each.1"]);
    // A new element replaces a running item, which has to end first.
    let change = fields(json!({"forEach": {"in": ["x", "other", "new"]}}));
    fixture.accept(fixture.manager.update("each", change, None));
    assert_eq!(fixture.states(), "each=todo each.0=done each.1=in_progress");
    fixture.report("each.1", "c1", "ok");
    assert_eq!(fixture.states(), "each=todo each.0=done each.1=todo each.2=todo");
    assert_eq!(started(&fixture.start(&["each.1"])), [r#"each.1.c1 {"it":"other"}"#]);
}

#[test]
fn cancelled_and_skipped_items_stay_so_for_equal_elements() {
    let fixture = with_plan(ITEMS);
    give(&fixture, json!(["x", "y", "z"]));
    fixture.accept(fixture.manager.cancel(&ids(&["each.0"]), None));
    fixture.accept(fixture.manager.skip(&ids(&["each.1"]), None));
    let retry = |list| {
        fixture.accept(fixture.manager.retry(&ids(&["list"]), false));
        give(&fixture, list);
    };
    retry(json!(["x", "y", "z"]));
    assert_eq!(
        fixture.states(),
        "list=done each=todo after=todo each.0=cancelled each.1=skipped each.2=todo"
    );
    retry(json!(["other", "another", "z"]));
    assert_eq!(fixture.states(), "list=done each=todo after=todo each.0=todo each.1=todo each.2=todo");
    assert_eq!(started(&fixture.start(&["each.0"])), [r#"each.0.c1 {"it":"other","n":0}"#]);
}

#[test]
fn a_new_element_waits_for_the_calls_of_a_cancelled_item() {
    let fixture = with_plan("tasks: [{id: each, forEach: {in: [x, y]}, call: {t: {it: '${{ item }}'}}}]");
    let run =
        json!({"id": "r1", "scope": [], "actor": "ann", "host": "h", "startedAt": "2025-06-15T15:06:40Z"});
    fixture.as_run(Command::start_run(serde_json::from_value(run).unwrap()));
    fixture.start(&["each.0"]);
    fixture.accept(fixture.manager.cancel(&ids(&["each.0"]), None));
    let change = fields(json!({"forEach": {"in": ["other", "y"]}}));
    fixture.accept(fixture.manager.update("each", change, None));
    assert_eq!(fixture.states(), "each=todo each.0=cancelled each.1=todo");
    fixture.report("each.0", "c1", "ok");
    assert_eq!(fixture.states(), "each=todo each.0=todo each.1=todo");
    assert_eq!(started(&fixture.start(&["each.0"])), [r#"each.0.c1 {"it":"other"}"#]);
}

#[test]
fn a_task_that_is_no_longer_a_loop_skips_its_items_and_runs() {
    let loops = "tasks: [{id: each, forEach: {in: [x, y, z]}, call: {t: {}}}]";
    let fixture = with_plan(loops);
    fixture.run("each.0");
    fixture.start(&["each.1"]);
    fixture.accept(fixture.manager.update("each", fields(json!({"forEach": null})), None));
    assert_eq!(fixture.states(), "each=todo each.0=done each.1=in_progress each.2=todo");
    assert_eq!(fixture.start(&["each", "each.2"]).started.len(), 0, "running items end first");
    fixture.report("each.1", "c1", "bad");
    let dropped = "each=todo each.0=skipped each.1=skipped each.2=skipped";
    assert_eq!(fixture.states(), dropped);
    fixture.run("each");
    assert_eq!(fixture.task("each").status, Status::Done);
    let fixture = with_plan(loops);
    fixture.apply("tasks: [{id: each, call: {t: {}}}]");
    assert_eq!(fixture.states(), dropped);
    fixture.apply(loops);
    assert_eq!(fixture.states(), "each=todo each.0=todo each.1=todo each.2=todo");
}

#[test]
fn a_manual_task_that_is_no_longer_a_loop_stays_manual() {
    let fixture = with_plan("tasks: [{id: look, forEach: {in: [1, 2]}}]");
    fixture.accept(fixture.manager.update("look", fields(json!({"forEach": null})), None));
    assert_eq!(fixture.states(), "look=todo look.0=skipped look.1=skipped");
    assert_eq!(fixture.ready(), ["look"]);
    fixture.accept(fixture.manager.undo(None));
    assert_eq!(fixture.ready(), ["look.0", "look.1"]);
}

#[test]
fn undo_removes_the_items_of_a_loop() {
    let fixture = with_plan(ITEMS);
    let before = fixture.states();
    give(&fixture, json!(["x", "y"]));
    fixture.accept(fixture.manager.undo(None));
    assert_eq!(fixture.states(), before);
    give(&fixture, json!(["x"]));
    assert_eq!(fixture.states(), "list=done each=todo after=todo each.0=todo");
    fixture.run("each.0");
    let refused = fixture.refuse(|m| m.undo(None));
    assert!(refused.contains("each.0"), "{refused}");
}

#[test]
fn a_reopened_or_skipped_loop_includes_its_items() {
    let fixture = expanded();
    fixture.run("each.0");
    fixture.run("each.1");
    fixture.accept(fixture.manager.reopen(&ids(&["each"]), false));
    assert_eq!(fixture.states(), "list=done each=todo after=todo each.0=todo each.1=todo");
    fixture.accept(fixture.manager.skip(&ids(&["each"]), None));
    assert_eq!(fixture.states(), "list=done each=skipped after=todo each.0=skipped each.1=skipped");
    fixture.accept(fixture.manager.retry(&ids(&["each"]), false));
    assert_eq!(fixture.states(), "list=done each=todo after=todo each.0=todo each.1=todo");
}

#[test]
fn reapplying_a_plan_keeps_items_unless_fresh() {
    let fixture = expanded();
    fixture.run("each.0");
    let report = fixture.apply(ITEMS);
    assert_eq!((report.unchanged, report.gone.len()), (3, 0));
    let prune = ApplyOptions { prune: true, ..ApplyOptions::default() };
    fixture.accept(fixture.try_apply(ITEMS, prune));
    assert_eq!(fixture.states(), "list=done each=todo after=todo each.0=done each.1=todo");
    let changed = ITEMS.replace("'${{ index }}'", "0");
    let refused = fixture.try_apply(&changed, ApplyOptions::default()).unwrap_err().to_string();
    assert!(refused.contains("each"), "the item that ran is named: {refused}");
    let fresh = ApplyOptions { fresh: true, ..ApplyOptions::default() };
    fixture.accept(fixture.try_apply(ITEMS, fresh));
    give(&fixture, json!(["x", "y"]));
    assert_eq!(fixture.states(), "list=done each=todo after=todo each.0=todo each.1=todo");
}

#[test]
fn items_without_calls_are_manual_tasks() {
    let fixture = with_plan("tasks: [{id: look, name: look, forEach: {in: [1, 2]}}]");
    assert_eq!(fixture.ready(), ["look.0", "look.1"]);
    fixture.done("look.0");
    fixture.done("look.1");
    assert_eq!(fixture.task("look").status, Status::Done);
}

#[test]
fn the_cost_of_a_list_is_linear() {
    let list: Vec<usize> = (0..5000).collect();
    let fixture = with_plan(&format!("tasks: [{{id: each, forEach: {{in: {list:?}}}, call: {{t: {{}}}}}}]"));
    assert_eq!(fixture.manager.counts().unwrap()[&Status::Todo], 5001);
}

// Rounds of `repeat`.

const ROUNDS: &str = "
    tasks:
      - id: poll
        repeat: {until: context.c2.ready, max: 3, delay: 10s}
        calls: [{id: c1, toolName: t}, {id: c2, toolName: t, args: {was: '${{ context.c1 }}'}}]
";

fn resume(fixture: &Fixture, id: &str) -> taskpawl_model::command::Answer {
    let resumes = vec![(fixture.key(id), fixture.task(id).attempt)];
    fixture.round(Round { resumes, ..Round::default() })
}

#[test]
fn a_loop_repeats_until_its_condition_holds() {
    let fixture = with_plan(ROUNDS);
    fixture.start(&["poll"]);
    fixture.report("poll", "c1", "ok");
    let answer = succeed(&fixture, "poll", "c2", json!({"ready": false}));
    assert_eq!(answer.paused[0].until.unwrap().to_rfc3339(), "2025-06-15T15:06:50+00:00");
    assert_eq!(
        (fixture.calls("poll").as_str(), fixture.task("poll").progress.round),
        ("c1=pending/1 c2=pending/1", 1)
    );
    assert_eq!(resume(&fixture, "poll").paused.len(), 1, "the delay is not over");
    fixture.pass(10);
    assert_eq!(started(&resume(&fixture, "poll")), ["poll.c1 {}"]);
    fixture.report("poll", "c1", "ok");
    succeed(&fixture, "poll", "c2", json!({"ready": true}));
    assert_eq!((fixture.task("poll").status, fixture.task("poll").attempt), (Status::Done, 1));
    assert_eq!(
        (fixture.calls("poll").as_str(), fixture.task("poll").progress.round),
        ("c1=succeeded/2 c2=succeeded/2", 2)
    );
    assert!(fixture.events(0).contains(&"round_ended poll".to_owned()));
}

#[test]
fn a_loop_fails_after_its_last_round_and_a_retry_restarts_it() {
    let fixture = with_plan("tasks: [{id: poll, repeat: {until: 'false', max: 2}, call: {t: {}}}]");
    for _ in 0..2 {
        fixture.start(&["poll"]);
        assert_eq!(
            started(&fixture.report("poll", "c1", "ok")),
            ["poll.c1 {}"],
            "without a delay the next round starts at once"
        );
        fixture.report("poll", "c1", "ok");
        assert_eq!(fixture.task("poll").error.unwrap(), "`repeat.until` did not hold after 2 rounds: false");
        fixture.accept(fixture.manager.retry(&ids(&["poll"]), false));
    }
    assert_eq!((fixture.calls("poll").as_str(), fixture.task("poll").progress.round), ("c1=pending/4", 0));
}

#[test]
fn a_loop_without_a_running_call_ends() {
    let fixture = with_plan(
        "tasks: [{id: a, repeat: {until: 'false', max: 4000000000}, calls: [{toolName: t, when: 'false'}]}]",
    );
    fixture.start(&["a"]);
    assert!(fixture.task("a").error.unwrap().contains("no call of the round ran"));
}

#[test]
fn a_loop_resumes_after_its_run_was_killed() {
    let fixture = with_plan(ROUNDS);
    fixture.start(&["poll"]);
    fixture.report("poll", "c1", "ok");
    succeed(&fixture, "poll", "c2", json!({"ready": false}));
    // The run is gone, and recovery has released the task without a running call.
    fixture.give_back("poll");
    assert_eq!((fixture.task("poll").status, fixture.task("poll").progress.round), (Status::Todo, 1));
    let other = Round {
        claims: vec![fixture.key("poll")],
        tools: std::sync::Arc::new(["t".to_owned()].into()),
        ..Round::default()
    };
    let claim = fixture.manager.clone().with_run(RunId::from("r2"));
    let answer = fixture.accept(claim.command(Command::Round(Box::new(other))));
    assert_eq!((answer.started.len(), answer.paused.len()), (0, 1), "the delay is not over");
    assert_eq!(fixture.task("poll").progress.round, 1);
    fixture.pass(10);
    let resumes = vec![(fixture.key("poll"), 2)];
    let answer =
        fixture.accept(claim.command(Command::Round(Box::new(Round { resumes, ..Round::default() }))));
    assert_eq!(started(&answer), ["poll.c1 {}"]);
}

#[test]
fn a_stopping_run_releases_a_loop_between_rounds() {
    let fixture = with_plan("tasks: [{id: a, repeat: {until: 'false', max: 9}, call: {t: {}}}]");
    fixture.start(&["a"]);
    let end = crate::support::end("ok");
    fixture.accept(fixture.try_report("a", "c1", end, false));
    assert_eq!((fixture.states().as_str(), fixture.calls("a").as_str()), ("a=todo", "c1=pending/1"));
    assert_eq!(fixture.task("a").progress.round, 1);
}

#[test]
fn items_inherit_the_repeat_of_the_loop() {
    let fixture = with_plan(
        "tasks: [{id: e, forEach: {in: [1, 2]}, repeat: {until: context.c1 == item, max: 5}, call: {t: {}}}]",
    );
    fixture.start(&["e.0", "e.1"]);
    succeed(&fixture, "e.0", "c1", json!(1));
    succeed(&fixture, "e.1", "c1", json!(1));
    assert_eq!(fixture.states(), "e=todo e.0=done e.1=in_progress");
    succeed(&fixture, "e.1", "c1", json!(2));
    assert_eq!(fixture.task("e").status, Status::Done);
}
