//! Explanations of tasks that are not running: the chain down to the first cause, for every kind of cause.

use std::sync::Arc;

use taskpawl_manager::{Error, Liveness, Manager};
use taskpawl_model::command::{Grant, Round, RunRules};
use taskpawl_model::insight::Explanation;
use taskpawl_model::rules::Means;
use taskpawl_model::value::Selector;
use taskpawl_model::value::{Key, RunId};

use crate::support::{Fixture, error_text, ids};

/// Returns the chain as text, followed by the suggested commands.
fn explained(fixture: &Fixture, id: &str) -> String {
    shown(&fixture.manager.explain(id, &Means::default()).unwrap())
}

fn shown(explanation: &Explanation) -> String {
    let links = explanation.chain.iter().map(|link| format!("{} [{}] {}", link.task, link.status, link.text));
    let actions = explanation.next_actions.iter().map(|action| format!("  {action}"));
    links.chain(actions).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_subtask_of_a_waiting_task_names_the_real_cause() {
    let fixture = Fixture::with(&[
        "review",
        "build calls=1 needs=review",
        "parent needs=build",
        "mid in=parent",
        "leaf calls=1 in=mid",
    ]);
    insta::assert_snapshot!(explained(&fixture, "leaf"), @r"
    leaf [todo] waits for its parent `mid`
    mid [todo] waits for its parent `parent`
    parent [todo] waits for `build`
    build [todo] waits for `review`
    review [todo] ready: an agent or a person must claim it
      taskpawl claim review
      taskpawl done review
    ");
    insta::assert_snapshot!(explained(&fixture, "parent"), @r"
    parent [todo] waits for `build`
    build [todo] waits for `review`
    review [todo] ready: an agent or a person must claim it
      taskpawl claim review
      taskpawl done review
    ");
}

#[test]
fn a_failure_is_named_through_a_chain_of_blocked_tasks() {
    let fixture =
        Fixture::with(&["a calls=1", "b calls=1 needs=a", "c needs=b", "d in=c calls=1", "e needs=c,b"]);
    fixture.start(&["a"]);
    fixture.report("a", "c1", "bad");
    insta::assert_snapshot!(explained(&fixture, "d"), @r"
    d [blocked] cannot start because of its parent `c`
    c [blocked] cannot start because of `b`
    b [blocked] cannot start because of `a`
    a [failed] failed: call `c1` (t): boom
      taskpawl logs a
      taskpawl retry a && taskpawl run-all-ready
      taskpawl skip a
    ");
    insta::assert_snapshot!(explained(&fixture, "e"), @r"
    e [blocked] cannot start because of `b` and 1 more
    b [blocked] cannot start because of `a`
    a [failed] failed: call `c1` (t): boom
      taskpawl logs a
      taskpawl retry a && taskpawl run-all-ready
      taskpawl skip a
    ");
    insta::assert_snapshot!(explained(&fixture, "a"), @r"
    a [failed] failed: call `c1` (t): boom
      taskpawl logs a
      taskpawl retry a && taskpawl run-all-ready
      taskpawl skip a
    ");
}

#[test]
fn among_several_causes_the_one_that_needs_an_action_is_named() {
    let fixture = Fixture::with(&[
        "run calls=1",
        "late calls=1 needs=run",
        "hand",
        "mid calls=1 needs=hand",
        "end calls=1 needs=run,late,mid",
    ]);
    fixture.start(&["run"]);
    insta::assert_snapshot!(explained(&fixture, "end"), @r"
    end [todo] waits for `mid` and 2 more
    mid [todo] waits for `hand`
    hand [todo] ready: an agent or a person must claim it
      taskpawl claim hand
      taskpawl done hand
    ");
    insta::assert_snapshot!(explained(&fixture, "late"), @r"
    late [todo] waits for `run`
    run [in_progress] run `r1` is running it since 2025-06-15T15:06:40Z: call `c1`
      taskpawl logs run
    ");
}

#[test]
fn every_status_is_explained() {
    let fixture =
        Fixture::with(&["done", "failed", "cancelled", "skipped", "blocked", "in_progress", "todo"]);
    for state in ["done", "failed", "cancelled", "skipped", "blocked", "in_progress", "todo"] {
        fixture.set_state(state, state);
    }
    let all = ["done", "failed", "cancelled", "skipped", "blocked", "in_progress", "todo"];
    let text: Vec<String> = all.iter().map(|id| explained(&fixture, id)).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    done [done] done at 2025-06-15T15:06:40Z, in 0ms
      taskpawl show done
    failed [failed] failed: reported as failed
      taskpawl show failed
      taskpawl retry failed
      taskpawl skip failed
    cancelled [cancelled] cancelled
      taskpawl history cancelled
      taskpawl retry cancelled
    skipped [skipped] skipped
      taskpawl history skipped
      taskpawl retry skipped
    blocked [blocked] blocked by hand: why
      taskpawl unblock blocked
    in_progress [in_progress] held by ann until 2025-06-15T15:07:40Z
      taskpawl show in_progress
      taskpawl run-all-ready --wait
    todo [todo] ready: an agent or a person must claim it
      taskpawl claim todo
      taskpawl done todo
    ");
}

#[test]
fn an_expired_lease_and_an_interrupted_call_are_first_causes() {
    let fixture = Fixture::with(&["hand", "after calls=1 needs=hand", "call calls=2", "behind needs=call"]);
    fixture.set_state("hand", "in_progress");
    insta::assert_snapshot!(explained(&fixture, "after"), @r"
    after [todo] waits for `hand`
    hand [in_progress] held by ann until 2025-06-15T15:07:40Z
      taskpawl show hand
      taskpawl run-all-ready --wait
    ");
    fixture.pass(61);
    insta::assert_snapshot!(explained(&fixture, "after"), @r"
    after [todo] waits for `hand`
    hand [in_progress] was held by ann until 2025-06-15T15:07:40Z: its lease has ended, and it can be claimed
      taskpawl claim hand
    ");
    fixture.start(&["call"]);
    fixture.report("call", "c1", "lost");
    insta::assert_snapshot!(explained(&fixture, "behind"), @r"
    behind [todo] waits for `call`
    call [blocked] call `c1` was interrupted, and its progress is unknown: check its effects, then use `done` or `fail`, or `unblock` to start it again
      taskpawl logs call
      taskpawl done call
      taskpawl fail call
      taskpawl unblock call
      taskpawl run-all-ready
    ");
}

/// Reports every run as dead.
#[derive(Debug)]
struct AllDead;

impl Liveness for AllDead {
    fn is_alive(&self, _: &RunId) -> bool {
        false
    }

    fn recover(&self, _: &Manager, _: &[Key]) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn a_dead_run_is_a_first_cause() {
    let fixture = Fixture::with(&["a calls=1", "b calls=1 needs=a"]);
    fixture.start(&["a"]);
    insta::assert_snapshot!(explained(&fixture, "b"), @r"
    b [todo] waits for `a`
    a [in_progress] run `r1` is running it since 2025-06-15T15:06:40Z: call `c1`
      taskpawl logs a
    ");
    let manager = fixture.manager.clone().with_liveness(Arc::new(AllDead));
    insta::assert_snapshot!(shown(&manager.explain("b", &Means::default()).unwrap()), @r"
    b [todo] waits for `a`
    a [in_progress] its run `r1` ended without finishing; the next run reclaims it
      taskpawl run-all-ready
      taskpawl doctor --fix
    ");
}

#[test]
fn the_holders_of_an_exhausted_resource_are_named() {
    let fixture = Fixture::new();
    fixture.apply(
        "name: p\nresources: {gpu: 2}\ntasks:\n- {id: a, resources: {gpu: 1}, call: {t: {}}}\n\
         - {id: b, resources: {gpu: 1}, call: {t: {}}}\n- {id: c, resources: {gpu: 2}, call: {t: {}}}\n\
         - {id: d, writes: [out/x], call: {t: {}}}\n- {id: e, writes: [out], call: {t: {}}}",
    );
    for id in ["a", "d"] {
        let capacities = [("gpu".to_owned(), 2)].into();
        let rules = Arc::new(RunRules { capacities, ..RunRules::default() });
        let (claims, tools) = (vec![fixture.key(id)], Arc::new(["t".to_owned()].into()));
        let grants = [(fixture.key(id), Grant::default())].into();
        fixture.round(Round { claims, tools, rules, grants, ..Round::default() });
    }
    let text = ["b", "c", "e"].map(|id| explained(&fixture, id)).join("\n");
    insta::assert_snapshot!(text, @r"
    b [todo] ready: the next run starts it
      taskpawl run-all-ready --only b
      taskpawl run b
    c [todo] ready, but `gpu` is held by `a`
      taskpawl show c
    e [todo] ready, but `out` is held by `d`
      taskpawl show e
    ");
}

#[test]
fn triggers_and_skipped_tasks_are_explained() {
    let fixture = Fixture::with(&[
        "a calls=1",
        "b calls=1",
        "any calls=1 needs=a,b trigger=any_done",
        "saver calls=1 needs=a trigger=any_failed",
    ]);
    fixture.set_state("a", "skipped");
    insta::assert_snapshot!(explained(&fixture, "any"), @r"
    any [todo] waits for `b`
    b [todo] ready: the next run starts it
      taskpawl run-all-ready --only b
      taskpawl run b
    ");
    insta::assert_snapshot!(explained(&fixture, "saver"), @r"
    saver [skipped] skipped: nothing that it waited for has failed
      taskpawl history saver
      taskpawl retry saver
    ");
    fixture.set_state("b", "skipped");
    insta::assert_snapshot!(explained(&fixture, "any"), @r"
    any [blocked] cannot start because of `a` and 1 more
    a [skipped] skipped
      taskpawl history a
      taskpawl retry a
    ");
}

#[test]
fn a_refused_claim_names_the_first_cause() {
    let fixture = Fixture::with(&["first", "second needs=first", "third needs=second", "fourth needs=first"]);
    let refused = fixture.manager.claim("third", crate::support::LEASE).unwrap_err();
    insta::assert_snapshot!(error_text(&refused), @r"
    task `third` is not ready: it waits for `second`; the first cause is `first`: ready: an agent or a person must claim it
      hint: `taskpawl explain third` shows the chain of causes and the commands that resolve it
    ");
    let refused = fixture.manager.claim("fourth", crate::support::LEASE).unwrap_err();
    insta::assert_snapshot!(error_text(&refused), @r"
    task `fourth` is not ready: it waits for `first`: ready: an agent or a person must claim it
      hint: `taskpawl explain fourth` shows the chain of causes and the commands that resolve it
    ");
}

#[test]
fn a_long_chain_is_followed_and_shown_with_both_ends() {
    let fixture = Fixture::new();
    let tasks: Vec<String> = (0..3_000)
        .map(|n| {
            if n == 0 {
                "{id: t0}".to_owned()
            } else {
                format!("{{id: t{n}, needs: t{}, run: 'true'}}", n - 1)
            }
        })
        .collect();
    fixture.apply(&format!("tasks: [{}]", tasks.join(", ")));
    let explanation = fixture.manager.explain("t2999", &Means::default()).unwrap();
    assert_eq!(explanation.first_cause.task.as_str(), "t0");
    assert_eq!((explanation.chain.len(), explanation.omitted), (41, 2959));
}

#[test]
fn the_search_of_a_wide_join_is_bounded() {
    let fixture = Fixture::new();
    let mut tasks: Vec<String> = (0..3_000).map(|n| format!("{{id: t{n}, run: 'true'}}")).collect();
    let needs: Vec<String> = (0..3_000).map(|n| format!("t{n}")).collect();
    tasks.push(format!("{{id: join, needs: [{}], run: 'true'}}", needs.join(", ")));
    fixture.apply(&format!("tasks: [{}]", tasks.join(", ")));
    let explanation = fixture.manager.explain("join", &Means::default()).unwrap();
    assert_eq!(explanation.first_cause.text, "ready: the next run starts it");
    assert_eq!(explanation.chain[0].text, "waits for `t0` and 2999 more");
}

#[test]
fn ready_tasks_are_listed_in_run_order_with_the_reason() {
    let fixture = Fixture::with(&[
        "short calls=1",
        "long calls=1",
        "behind calls=1 needs=long",
        "urgent calls=1 priority=high",
        "hand",
        "hand-low priority=low",
    ]);
    let list = fixture.manager.explain_ready(&[], 0, &Means::default()).unwrap();
    let line = |task: &taskpawl_model::insight::ReadyTask| format!("{}: {}", task.task, task.because);
    let lines: Vec<String> = list.for_runs.iter().chain(&list.by_hand).map(line).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    urgent: first in the order
    long: lower priority
    short: same priority, but a shorter remaining path
    hand: first in the order
    hand-low: lower priority
    ");
    assert_eq!(list.next_actions, ids(&["taskpawl run-all-ready", "taskpawl claim hand"]));
    let only = [Selector::Task("long".to_owned())];
    let list = fixture.manager.explain_ready(&only, 0, &Means::default()).unwrap();
    assert_eq!((list.total_for_runs, list.total_by_hand), (1, 0));
    assert_eq!(list.next_actions, ids(&["taskpawl run-all-ready --only long"]));
}

/// Starting the longest path first would leave a slot idle at the end, so `short` and its dependent have to
/// start early.
#[test]
fn with_known_durations_the_order_is_that_of_a_simulated_schedule() {
    let fixture = Fixture::with(&[
        "long calls=1 estimate=5s",
        "long-too calls=1 estimate=5s",
        "short calls=1 estimate=2s",
        "behind calls=1 estimate=1s needs=short",
    ]);
    let listed = |jobs| {
        let list = fixture.manager.explain_ready(&[], 0, &Means { jobs, ..Means::default() }).unwrap();
        let line = |task: &taskpawl_model::insight::ReadyTask| format!("{}: {}", task.task, task.because);
        list.for_runs.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(listed(Some(2)), @r"
    short: first in the order
    long: same priority, but starting it later shortens the schedule
    long-too: same rank, but newer
    ");
    insta::assert_snapshot!(listed(None), @r"
    long: first in the order
    long-too: same rank, but newer
    short: same priority, but a shorter remaining path
    ");
    let forecast = |jobs| {
        let options = taskpawl_model::insight::ForecastOptions {
            jobs,
            ..taskpawl_model::insight::ForecastOptions::default()
        };
        fixture.manager.forecast(&options).unwrap().duration.unwrap().to_string()
    };
    assert_eq!([forecast(1), forecast(2)], ["13s", "7s"]);
}

#[test]
fn tasks_that_no_run_can_take_are_not_reported_as_next() {
    let fixture = Fixture::new();
    fixture.apply(
        "resources: {gpu: 3}
tasks: [{id: a, resources: {lock: 3}, run: echo}, {id: b, resources: {gpu: 3}, run: echo}, {id: c, run: echo}]",
    );
    let capacities = [("lock".to_owned(), 2), ("gpu".to_owned(), 2)].into();
    let means = Means { tools: Some(["exec".to_owned()].into()), capacities, ..Means::default() };
    insta::assert_snapshot!(shown(&fixture.manager.explain("a", &Means::default()).unwrap()), @r"
    a [todo] no run can start it: it needs 3 of resource `lock`, which has 1
      taskpawl show a
      taskpawl skip a
    ");
    let means_of = |id| fixture.manager.explain(id, &means).unwrap().first_cause.text;
    assert_eq!(means_of("c"), "needs the tool `shell`, which the run does not have");
    let with_shell = Means { tools: None, ..means.clone() };
    let text = |id| fixture.manager.explain(id, &with_shell).unwrap().first_cause.text;
    assert_eq!(text("a"), "no run can start it: it needs 3 of resource `lock`, which has 2");
    assert_eq!(text("b"), "no run can start it: it needs 3 of resource `gpu`, which has 2");
    assert_eq!(text("c"), "ready: the next run starts it");

    let list = fixture.manager.explain_ready(&[], 0, &with_shell).unwrap();
    let lines: Vec<String> =
        list.unrunnable.iter().map(|task| format!("{}: {}", task.task, task.because)).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    a: no run can start it: it needs 3 of resource `lock`, which has 2
    b: no run can start it: it needs 3 of resource `gpu`, which has 2
    ");
    assert_eq!((list.for_runs.len(), list.total_unrunnable), (1, 2));
    assert_eq!(list.next_actions, ids(&["taskpawl run-all-ready"]));
    let list = fixture.manager.explain_ready(&[], 1, &means).unwrap();
    assert_eq!((list.for_runs.len(), list.unrunnable.len(), list.total_unrunnable), (0, 1, 3));
    assert_eq!(list.next_actions, ids(&["taskpawl explain a"]));
    // A listed task can really be taken, no matter how many others come before it.
    let ready = |limit, offset, means: &Means| {
        let ready = fixture.manager.ready(limit, offset, means).unwrap();
        let page: Vec<String> = ready.page.tasks.iter().map(|task| task.id.to_string()).collect();
        let unrunnable: Vec<String> = ready.unrunnable.iter().map(|task| task.task.to_string()).collect();
        (page, unrunnable, ready.page.truncated)
    };
    assert_eq!(ready(1, 0, &with_shell), (ids(&["c"]), ids(&["a", "b"]), false));
    assert_eq!(ready(0, 0, &means), (Vec::new(), ids(&["a", "b", "c"]), false));
    let unbound =
        Means { capacities: [("lock".to_owned(), 3), ("gpu".to_owned(), 3)].into(), ..Means::default() };
    assert_eq!(ready(1, 1, &unbound), (ids(&["b"]), Vec::new(), true));
}

#[test]
fn tasks_without_their_tool_are_listed_after_any_number_of_ready_tasks() {
    let fixture = Fixture::new();
    let mut tasks: Vec<_> =
        (0..100).map(|n| serde_json::json!({"id": format!("t{n}"), "run": "echo"})).collect();
    for (id, tool) in [("x", "gone"), ("y", "lost"), ("z", "lost")] {
        tasks.push(serde_json::json!({"id": id, "call": {tool: {}}, "priority": "low"}));
    }
    tasks.push(serde_json::json!({"id": "waits", "call": {"lost": {}}, "needs": "t0"}));
    fixture.apply(&serde_json::json!({ "tasks": tasks }).to_string());
    let means = Means { tools: Some(["shell".to_owned()].into()), ..Means::default() };
    let unrunnable = |limit, means: &Means| {
        let ready = fixture.manager.ready(limit, 0, means).unwrap();
        assert_eq!(ready.page.tasks.len(), if limit == 0 { 100 } else { limit });
        ready.unrunnable.into_iter().map(|task| task.task.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(unrunnable(5, &means), ids(&["x", "y", "z"]));
    assert_eq!(unrunnable(0, &means), ids(&["x", "y", "z"]));
    let more = Means { tools: Some(["shell".to_owned(), "lost".to_owned()].into()), ..Means::default() };
    assert_eq!(unrunnable(5, &more), ids(&["x"]));
}
