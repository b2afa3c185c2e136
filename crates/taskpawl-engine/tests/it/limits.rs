//! Limits: resources, declared writes, budgets, timeouts and pauses.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use taskpawl_engine::RunOptions;
use taskpawl_model::plan::Budget;
use taskpawl_model::value::Period;

use crate::support::{Lab, within};

const THREE: &str =
    "tasks: [{id: a, call: {spend: {}}}, {id: b, call: {spend: {}}}, {id: c, call: {spend: {}}}]";

fn one_job() -> RunOptions {
    RunOptions { jobs: Some(1), ..RunOptions::default() }
}

/// Runs a plan whose calls wait to be released. Returns the calls in the order of their start, grouped by the numbers
/// in `at_once` of calls that run at the same time.
async fn turns(lab: &Lab, at_once: &[usize]) -> Vec<Vec<String>> {
    let mut turns = Vec::new();
    let run = lab.run_jobs(8);
    let watch = async {
        for count in at_once {
            let mut started = Vec::new();
            for _ in 0..*count {
                started.push(lab.next_start().await);
            }
            started.sort();
            turns.push(started);
            lab.release(*count);
        }
    };
    let (summary, ()) = within(async { tokio::join!(run, watch) }).await;
    assert_eq!(summary.exit, 0, "{}", lab.states());
    turns
}

#[tokio::test]
async fn a_lock_is_held_by_one_task_at_a_time() {
    let lab = Lab::new(
        "tasks: [{id: a, resources: lock, call: {hold: {}}}, {id: b, resources: lock, calls: [{toolName: hold}, {toolName: hold}]}, {id: c, resources: lock, call: {hold: {}}}]",
    );
    let turns = turns(&lab, &[1, 1, 1, 1]).await;
    assert_eq!(turns, [["a/c1"], ["b/c1"], ["b/c2"], ["c/c1"]]);
}

#[tokio::test]
async fn resources_have_capacities_and_large_claims_do_not_starve() {
    let lab = Lab::new(
        "resources: {gpu: 3}\ntasks: [{id: a, resources: gpu, call: {hold: {}}}, {id: b, resources: {gpu: 3}, call: {hold: {}}}, {id: c, resources: {gpu: 2}, call: {hold: {}}}, {id: d, resources: gpu, call: {hold: {}}}]",
    );
    let turns = turns(&lab, &[1, 1, 2]).await;
    assert_eq!(turns, [vec!["a/c1"], vec!["b/c1"], vec!["c/c1", "d/c1"]]);
}

#[tokio::test]
async fn a_claim_beyond_the_capacity_is_never_run_and_is_reported() {
    let lab = Lab::new("tasks: [{id: a, resources: {gpu: 2}, call: {ok: {}}}, {id: b, call: {ok: {}}}]");
    let summary = lab.run().await;
    assert_eq!((lab.states(), summary.exit), ("a=todo b=done".into(), 4));
    assert_eq!(summary.not_run[0].reason, "it needs 2 of resource `gpu`, which has 1");
}

#[tokio::test]
async fn tasks_with_overlapping_writes_run_one_after_the_other() {
    let lab = Lab::new(
        "tasks: [{id: a, writes: [out/x], call: {hold: {}}}, {id: b, writes: ['out/*.txt'], call: {hold: {}}}, {id: c, writes: [doc], call: {hold: {}}}]",
    );
    let mut turns = turns(&lab, &[2, 1]).await;
    // The two that overlap start in the order in which their paths were resolved.
    assert_eq!(turns[0].pop().as_deref(), Some("c/c1"));
    turns.sort();
    assert_eq!(turns, [vec!["a/c1"], vec!["b/c1"]]);
}

#[tokio::test]
async fn the_items_of_a_list_have_their_own_concurrency_limit() {
    let lab = Lab::new(
        "tasks: [{id: a, forEach: {in: [1, 2, 3, 4, 5], concurrency: 2}, call: {hold: {}}}, {id: b, call: {hold: {}}}]",
    );
    let turns = turns(&lab, &[3, 2, 1]).await;
    assert_eq!(turns, [vec!["a.0/c1", "a.1/c1", "b/c1"], vec!["a.2/c1", "a.3/c1"], vec!["a.4/c1"]]);
}

#[tokio::test]
async fn each_parallel_call_takes_a_job_of_its_own() {
    let lab = Lab::new(
        "tasks: [{id: a, mode: parallel, calls: [{toolName: hold}, {toolName: hold}, {toolName: hold}]}, {id: b, call: {hold: {}}}]",
    );
    let run = lab.run_jobs(2);
    let watch = async {
        for _ in 0..4 {
            lab.next_start().await;
            lab.release(1);
        }
    };
    let (summary, ()) = within(async { tokio::join!(run, watch) }).await;
    assert_eq!((summary.exit, lab.starts()), (0, "a/c1:1 a/c2:1 a/c3:1 b/c1:1".into()));
}

#[tokio::test]
async fn a_resource_is_released_during_a_retry_delay() {
    let lab = Lab::new(
        "tasks: [{id: a, resources: lock, retry: {attempts: 2, delay: 30ms, jitter: false}, call: {flaky: {}}}, {id: b, resources: lock, call: {ok: {}}}]",
    );
    let summary = lab.run().await;
    assert_eq!((summary.exit, lab.starts()), (0, "a/c1:2 b/c1:1".into()));
    let order = [lab.next_start().await, lab.next_start().await, lab.next_start().await];
    assert_eq!(order, ["a/c1", "b/c1", "a/c1"]);
}

#[tokio::test]
async fn a_budget_of_calls_is_never_exceeded() {
    let lab = Lab::new(THREE);
    let budget = Some(Budget { calls: Some(2), ..Budget::default() });
    let summary = lab.run_with(RunOptions { jobs: Some(8), budget, ..RunOptions::default() }).await;
    assert_eq!((summary.exit, summary.spent.calls, lab.starts()), (4, 2, "a/c1:1 b/c1:1".into()));
    let ended = &summary.ended_early[0];
    assert_eq!((&*ended.limit, ended.value.as_str(), &ended.plan), ("budget.calls", "2", &None));
    assert_eq!(lab.run().await.exit, 0);
}

#[tokio::test]
async fn a_cost_budget_ends_the_run_and_costs_are_reported_by_task() {
    let lab = Lab::new(THREE);
    let budget = Some(Budget { cost: Some(1.5), ..Budget::default() });
    let summary = lab.run_with(RunOptions { budget, ..one_job() }).await;
    assert_eq!((summary.exit, lab.states()), (4, "a=done b=done c=todo".into()));
    assert_eq!(summary.ended_early[0].limit, "budget.cost");
    assert_eq!(summary.spent.usage, Some(serde_json::json!({"cost": 2.0, "tokens": 20})));
    // Equal costs are ordered by their measured time.
    let tasks: BTreeSet<_> =
        summary.spent.tasks.iter().map(|task| (task.task.as_str(), task.calls)).collect();
    assert_eq!(tasks, BTreeSet::from([("a", 1), ("b", 1)]));
    let call = &lab.task("a").metadata.tool_calls[0];
    assert_eq!(call.usage, Some(serde_json::json!({"cost": 1.0, "tokens": 10})));
}

#[tokio::test]
async fn the_budget_of_a_plan_only_stops_its_own_tasks() {
    let lab = Lab::new("budget: {calls: 1}\ntasks: [{id: a, call: {ok: {}}}, {id: b, call: {ok: {}}}]");
    lab.apply("tasks: [{id: x, call: {ok: {}}}, {id: y, call: {ok: {}}}]", "q");
    let summary = lab.run_jobs(8).await;
    assert_eq!(lab.states(), "a=done b=todo x=done y=done");
    assert_eq!((summary.exit, summary.ended_early[0].plan.as_deref()), (4, Some("p")));
}

#[tokio::test]
async fn max_failures_stops_the_start_of_further_tasks() {
    let lab =
        Lab::new("tasks: [{id: a, call: {bad: {}}}, {id: b, call: {bad: {}}}, {id: c, call: {ok: {}}}]");
    let summary = lab.run_with(RunOptions { max_failures: Some(2), ..one_job() }).await;
    assert_eq!((summary.exit, lab.states()), (1, "a=failed b=failed c=todo".into()));
    assert_eq!(summary.ended_early[0].limit, "maxFailures");
}

#[tokio::test]
async fn running_calls_fail_at_the_timeout_of_the_run() {
    let lab = Lab::new("tasks: [{id: a, call: {hold: {}}}, {id: b, needs: a, call: {ok: {}}}]");
    let timeout = Some(Period(Duration::from_millis(40)));
    let summary = lab.run_with(RunOptions { timeout, ..RunOptions::default() }).await;
    assert_eq!((summary.exit, lab.states()), (1, "a=failed b=blocked{dependency}".into()));
    assert_eq!(lab.task("a").metadata.tool_calls[0].error_class.as_deref(), Some("timeout"));
    assert_eq!((&*summary.ended_early[0].limit, summary.ended_early[0].value.as_str()), ("timeout", "40ms"));
}

#[tokio::test]
async fn tools_have_concurrency_limits() {
    let lab =
        Lab::new("tasks: [{id: a, call: {hold: {}}}, {id: b, call: {hold: {}}}, {id: c, call: {ok: {}}}]");
    let tool_limits = BTreeMap::from([("hold".to_owned(), 1)]);
    let run = lab.run_with(RunOptions { tool_limits, jobs: Some(8), ..RunOptions::default() });
    let watch = async {
        let mut first = [lab.next_start().await, lab.next_start().await];
        first.sort();
        lab.release(1);
        let last = lab.next_start().await;
        lab.release(1);
        (first, last)
    };
    let (summary, (first, last)) = within(async { tokio::join!(run, watch) }).await;
    assert_eq!((summary.exit, first, last), (0, ["a/c1".into(), "c/c1".into()], "b/c1".into()));
}

#[tokio::test]
async fn a_cached_success_is_used_until_an_input_changes() {
    let lab = Lab::new(
        "tasks: [{id: m, milestone: true}, {id: a, needs: m, cache: {inputs: ['*.txt'], key: 'tasks.m.status'}, call: {ok: {}}}]",
    );
    let again = || {
        let _ = lab.manager.reopen(&["a".to_owned()], false).unwrap();
    };
    std::fs::write(lab.files.path().join("in.txt"), "1").unwrap();
    let first = lab.run().await;
    let result = lab.task("a").result;
    again();
    let second = lab.run().await;
    assert_eq!((first.cached, second.cached, lab.starts()), (0, 1, "a/c1:1".into()), "{}", lab.states());
    assert_eq!((lab.task("a").result, lab.task("a").attempt), (result, 1));
    std::fs::write(lab.files.path().join("in.txt"), "2").unwrap();
    again();
    assert_eq!((lab.run().await.cached, lab.starts()), (0, "a/c1:2".into()));
    again();
    lab.run_with(RunOptions { no_cache: true, ..RunOptions::default() }).await;
    assert_eq!(lab.starts(), "a/c1:3");
    again();
    assert_eq!((lab.run().await.cached, lab.states()), (1, "m=done a=done".into()));
}

#[tokio::test]
async fn a_success_is_not_cached_if_inputs_change_during_the_task() {
    let lab = Lab::new("tasks: [{id: a, cache: {inputs: [in.txt]}, call: {hold: {}}}]");
    let path = lab.files.path().join("in.txt");
    for count in 1..3 {
        std::fs::write(&path, "before").unwrap();
        let run = lab.run();
        let watch = async {
            lab.next_start().await;
            std::fs::write(&path, "after").unwrap();
            lab.release(1);
        };
        let (summary, ()) = within(async { tokio::join!(run, watch) }).await;
        assert_eq!((summary.exit, summary.cached, lab.starts()), (0, 0, format!("a/c1:{count}")));
        lab.manager.reopen(&["a".to_owned()], false).unwrap();
    }
}

#[tokio::test]
async fn changes_outside_of_the_declared_writes_are_recorded() {
    let lab = Lab::new(
        "tasks: [{id: a, writes: [out], calls: [{toolName: write_file, args: {path: out/x, content: a}}, {toolName: write_file, args: {path: b.txt, content: b}}]}]",
    );
    std::fs::create_dir(lab.files.path().join("out")).unwrap();
    std::fs::write(lab.files.path().join(".gitignore"), "files\n").unwrap();
    let summary = lab.run().await;
    assert_eq!((summary.exit, lab.task("a").progress.changed_beyond), (0, vec!["b.txt".to_owned()]));
    assert_eq!(summary.changed_beyond[0].files, ["b.txt"]);
}

#[tokio::test]
async fn two_runs_on_one_store_share_a_resource() {
    let lab = Lab::new("tasks: [{id: a, resources: lock, call: {hold: {}}}]");
    lab.apply("tasks: [{id: b, resources: lock, call: {hold: {}}}]", "q");
    let other = lab.other_engine();
    let only = |plan: &str| RunOptions { only: vec![plan.parse().unwrap()], ..RunOptions::default() };
    let watch = async {
        let first = lab.next_start().await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let alone = lab.starts();
        lab.release(1);
        let second = lab.next_start().await;
        lab.release(1);
        (first, alone, second)
    };
    let (one, two, (first, alone, second)) = within(async {
        tokio::join!(lab.run_with(only("plan:p")), Box::pin(other.run_all_ready(only("plan:q"))), watch)
    })
    .await;
    assert_eq!((one.exit, two.unwrap().exit), (0, 0), "{}", lab.states());
    assert_eq!(alone, format!("{first}:1"));
    assert_ne!(first, second);
}

/// Returns a lab whose project contains a directory `out` and a symbolic link `link` to it.
fn with_link(plan: &str) -> Lab {
    let lab = Lab::new(plan);
    std::fs::create_dir(lab.files.path().join("out")).unwrap();
    std::os::unix::fs::symlink("out", lab.files.path().join("link")).unwrap();
    lab
}

#[tokio::test]
async fn writes_through_a_link_and_its_target_do_not_overlap() {
    let lab = with_link(
        "tasks: [{id: a, writes: [out], call: {hold: {}}}, {id: b, writes: [link], call: {hold: {}}}, {id: c, writes: [./x/../link/new], call: {hold: {}}}, {id: d, writes: [doc], call: {hold: {}}}]",
    );
    let mut turns = turns(&lab, &[2, 1, 1]).await;
    // The three that overlap start in the order in which their paths were resolved.
    assert_eq!(turns[0].pop().as_deref(), Some("d/c1"));
    turns.sort();
    assert_eq!(turns, [vec!["a/c1"], vec!["b/c1"], vec!["c/c1"]]);
}

#[tokio::test]
async fn a_claim_by_hand_resolves_links_in_declared_writes() {
    let lab = with_link(
        "tasks: [{id: a, writes: [link/x], call: {hold: {}}}, {id: m, writes: [out]}, {id: n, writes: [doc]}, {id: o, writes: [link]}, {id: p, needs: [a], writes: [out], call: {hold: {}}}]",
    );
    let (by_hand, lease) = (lab.engine.manager().clone().with_actor("bob"), Duration::from_secs(60));
    let claims = async {
        assert_eq!(lab.next_start().await, "a/c1");
        let refused = by_hand.claim("m", lease).unwrap_err().to_string();
        assert!(refused.contains("`a`"), "{refused}");
        assert_eq!(by_hand.claim_next(lease).unwrap().as_str(), "n");
        lab.release(1);
        assert_eq!(lab.next_start().await, "p/c1");
        lab.release(1);
    };
    let (summary, ()) = within(async { tokio::join!(lab.run_jobs(8), claims) }).await;
    assert_eq!(lab.states(), "a=done m=todo n=in_progress o=todo p=done", "{summary:?}");
    by_hand.claim("o", lease).unwrap();
    assert!(by_hand.claim("m", lease).is_err(), "`o` holds the target of its link");
    by_hand.done(&["o".to_owned()], taskpawl_manager::Ending::default()).unwrap();
    by_hand.claim("m", lease).unwrap();
}

#[tokio::test]
async fn changes_through_a_declared_link_are_not_recorded() {
    let lab = with_link(
        "tasks: [{id: a, writes: [link], calls: [{toolName: write_file, args: {path: link/x, content: a}}, {toolName: write_file, args: {path: b.txt, content: b}}]}]",
    );
    lab.run().await;
    let changed = lab.task("a").progress.changed_beyond;
    assert_eq!(changed, ["b.txt"]);
}
