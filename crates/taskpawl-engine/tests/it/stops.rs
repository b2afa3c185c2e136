//! Runs that are stopped or dropped.

use taskpawl_engine::RunOptions;
use tokio::join;

use crate::support::{Lab, with_control, within};

#[tokio::test]
async fn the_first_stop_starts_nothing_more_and_lets_calls_finish() {
    let lab = Lab::new(
        "tasks: [{id: a, calls: [{toolName: hold}, {toolName: ok}]}, {id: b, call: {hold: {}}}, {id: c, needs: [b], call: {ok: {}}}]",
    );
    let (options, control) = with_control();
    let (summary, ()) = join!(lab.run_with(options), async {
        lab.next_start().await;
        lab.next_start().await;
        control.stop();
        // Lets the run receive the request before the calls end.
        tokio::task::yield_now().await;
        lab.release(2);
    });
    assert_eq!(summary.exit, 130);
    assert_eq!((lab.states(), lab.starts()), ("a=todo b=done c=todo".into(), "a/c1:1 b/c1:1".into()));
    assert_eq!(lab.run().await.exit, 0);
    assert_eq!(lab.starts(), "a/c1:1 a/c2:1 b/c1:1 c/c1:1");
}

#[tokio::test]
async fn the_second_stop_ends_calls_and_blocks_those_that_are_not_repeatable() {
    let sleep = "calls: [{toolName: exec, args: {argv: [sleep, '1000']}";
    let lab = Lab::new(&format!(
        "tasks: [{{id: a, {sleep}}}]}}, {{id: b, {sleep}, idempotent: true}}]}}, {{id: c, call: {{hold: {{}}}}}}]"
    ));
    let (options, control) = with_control();
    let (summary, ()) = join!(lab.run_with(options), async {
        for id in ["a", "b", "c"] {
            lab.until(id, "in_progress").await;
        }
        lab.next_start().await;
        control.stop();
        control.stop();
    });
    assert_eq!(summary.exit, 130);
    assert_eq!(lab.states(), "a=blocked{interrupted} b=todo c=blocked{interrupted}");
}

#[tokio::test]
async fn a_stop_before_the_run_starts_nothing() {
    let lab = Lab::new("tasks: [{id: a, call: {ok: {}}}]");
    let (options, control) = with_control();
    control.stop();
    assert_eq!(lab.run_with(options).await.exit, 130);
    assert_eq!((lab.states(), lab.starts()), ("a=todo".into(), String::new()));
}

fn is_alive(pid: &str) -> bool {
    // A zombie that has not been reaped counts as ended.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn a_dropped_run_leaves_no_process_and_the_next_one_recovers() {
    let script = "echo $$ > pid.part && mv pid.part pid && exec sleep 1000";
    let lab = Lab::new(&format!(
        "tasks: [{{id: a, call: {{shell: {{command: '{script}'}}}}}}, {{id: b, calls: [{{toolName: hold, idempotent: true}}]}}]"
    ));
    let file = lab.files.path().join("pid");
    tokio::select! {
        _ = lab.run() => panic!("the run ends by itself"),
        () = within(async {
            while !file.exists() {
                tokio::task::yield_now().await;
            }
            lab.next_start().await;
        }) => {}
    }
    assert_eq!(lab.states(), "a=in_progress b=in_progress");
    let pid = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    within(async {
        while is_alive(&pid) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    lab.release(1);
    assert_eq!(lab.run().await.exit, 3);
    assert_eq!((lab.states(), lab.starts()), ("a=blocked{interrupted} b=done".into(), "b/c1:2".into()));
}

#[tokio::test]
async fn queued_tasks_of_a_stopped_run_are_not_reported_as_waiting() {
    let lab = Lab::new(
        "tasks: [{id: l, forEach: {in: [1, 2, 3], concurrency: 1}, call: {hold: {}}}, {id: r, resources: lock, call: {hold: {}}}, {id: s, resources: lock, call: {hold: {}}}]",
    );
    let (options, control) = with_control();
    let (summary, ()) = join!(lab.run_with(options), async {
        lab.next_start().await;
        lab.next_start().await;
        control.stop_with(143);
        tokio::task::yield_now().await;
        lab.release(2);
    });
    assert_eq!((summary.exit, &summary.waiting[..]), (143, &[][..]));
}

/// Creates a sparse file that would take an hour to read but uses no disk space.
fn make_endless_input(lab: &Lab) {
    std::fs::File::create(lab.files.path().join("endless")).unwrap().set_len(1 << 42).unwrap();
}

#[tokio::test]
async fn reading_cache_inputs_before_a_claim_delays_neither_timeout_nor_stop() {
    let lab = Lab::new("tasks: [{id: a, cache: {inputs: [endless]}, call: {ok: {}}}]");
    make_endless_input(&lab);
    let timeout = taskpawl_model::value::Period(std::time::Duration::from_millis(50));
    let options = RunOptions { timeout: Some(timeout), ..RunOptions::default() };
    assert!(!lab.run_with(options).await.ended_early.is_empty());
    let (options, control) = with_control();
    let (summary, ()) = join!(lab.run_with(options), async {
        tokio::task::yield_now().await;
        control.stop();
    });
    assert_eq!(summary.exit, 130);
    assert_eq!((lab.states(), lab.starts()), ("a=todo".into(), String::new()));
}

#[tokio::test]
async fn reading_cache_inputs_after_a_call_delays_neither_timeout_nor_stop() {
    let plan =
        "tasks: [{id: a, TIMEOUT cache: {inputs: [made]}, call: {exec: {argv: [truncate, -s, 4T, made]}}}]";
    let lab = Lab::new(&plan.replace("TIMEOUT", "timeout: 1s,"));
    assert_eq!(lab.run().await.exit, 0, "{}", lab.states());
    let lab = Lab::new(&plan.replace("TIMEOUT", ""));
    let (options, control) = with_control();
    let made = lab.files.path().join("made");
    let (summary, ()) = join!(
        lab.run_with(options),
        within(async {
            while !made.exists() {
                tokio::task::yield_now().await;
            }
            control.stop_with(143);
            control.stop_with(143);
        })
    );
    assert_eq!(summary.exit, 143);
}
