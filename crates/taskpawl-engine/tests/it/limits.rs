//! Tasks take turns at what there is only so much of, and pause without a place.

use crate::support::{Lab, within};

/// Runs a plan whose calls wait to be released, one after the other, and returns the order in which they start: those that
/// run at once together.
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
async fn resources_have_capacities_and_a_big_claim_has_its_turn() {
    let lab = Lab::new(
        "resources: {gpu: 3}\ntasks: [{id: a, resources: gpu, call: {hold: {}}}, {id: b, resources: {gpu: 3}, call: {hold: {}}}, {id: c, resources: {gpu: 2}, call: {hold: {}}}, {id: d, resources: gpu, call: {hold: {}}}]",
    );
    let turns = turns(&lab, &[1, 1, 2]).await;
    assert_eq!(turns, [vec!["a/c1"], vec!["b/c1"], vec!["c/c1", "d/c1"]]);
}

#[tokio::test]
async fn what_can_never_fit_is_not_run_and_the_summary_says_so() {
    let lab = Lab::new("tasks: [{id: a, resources: {gpu: 2}, call: {ok: {}}}, {id: b, call: {ok: {}}}]");
    let summary = lab.run().await;
    assert_eq!((lab.states(), summary.exit), ("a=todo b=done".into(), 4));
    assert_eq!(summary.not_run[0].reason, "it needs 2 of resource `gpu`, and there is 1");
}

#[tokio::test]
async fn tasks_that_write_the_same_take_turns() {
    let lab = Lab::new(
        "tasks: [{id: a, writes: [out/x], call: {hold: {}}}, {id: b, writes: ['out/*.txt'], call: {hold: {}}}, {id: c, writes: [doc], call: {hold: {}}}]",
    );
    let turns = turns(&lab, &[2, 1]).await;
    assert_eq!(turns, [vec!["a/c1", "c/c1"], vec!["b/c1"]]);
}

#[tokio::test]
async fn items_have_a_limit_of_their_own() {
    let lab = Lab::new(
        "tasks: [{id: a, forEach: {in: [1, 2, 3, 4, 5], concurrency: 2}, call: {hold: {}}}, {id: b, call: {hold: {}}}]",
    );
    let turns = turns(&lab, &[3, 2, 1]).await;
    assert_eq!(turns, [vec!["a.0/c1", "a.1/c1", "b/c1"], vec!["a.2/c1", "a.3/c1"], vec!["a.4/c1"]]);
}

#[tokio::test]
async fn calls_that_run_at_once_wait_for_places_of_their_own() {
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
async fn a_lock_is_free_while_its_task_pauses_between_two_tries() {
    let lab = Lab::new(
        "tasks: [{id: a, resources: lock, retry: {attempts: 2, delay: 30ms, jitter: false}, call: {flaky: {}}}, {id: b, resources: lock, call: {ok: {}}}]",
    );
    let summary = lab.run().await;
    assert_eq!((summary.exit, lab.starts()), (0, "a/c1:2 b/c1:1".into()));
    let order = [lab.next_start().await, lab.next_start().await, lab.next_start().await];
    assert_eq!(order, ["a/c1", "b/c1", "a/c1"]);
}
