use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use taskpawl_process::{End, Outcome};
use tokio::time::Instant;

use crate::support::{Bench, is_gone, is_reaped, until};

/// Ignores `TERM`, as does its child in the background. Both write their process id to a file.
const STUBBORN: &str =
    "trap '' TERM; sh -c 'echo $$ > child; while :; do sleep 10; done' & echo $$ > leader; wait; wait; wait";

/// Runs a script, and calls `interfere` once its two processes exist.
async fn run(bench: &Bench, script: &str, interfere: impl FnOnce(&Bench)) -> (Outcome, [u32; 2]) {
    let mut run = pin!(bench.shell(script));
    let pids = tokio::select! {
        outcome = &mut run => panic!("ended too early: {outcome:?}"),
        pids = async { [bench.pid("leader").await, bench.pid("child").await] } => pids,
    };
    interfere(bench);
    (run.await, pids)
}

async fn assert_gone(pids: [u32; 2]) {
    until("the whole group is gone", || pids.iter().all(|pid| is_gone(*pid))).await;
}

#[tokio::test]
async fn cancellation_ends_the_whole_group() {
    let bench = Bench::new();
    let (outcome, pids) = run(&bench, STUBBORN, |bench| bench.cancel.cancel()).await;
    assert_eq!((outcome.end, outcome.signal), (End::Cancelled, Some(9)));
    assert!(is_reaped(pids[0]));
    assert_gone(pids).await;
}

#[tokio::test]
async fn the_deadline_ends_the_whole_group() {
    let mut bench = Bench::new();
    bench.limits.deadline = Some(Instant::now() + Duration::from_millis(1500));
    let (outcome, pids) = run(&bench, STUBBORN, |_| {}).await;
    assert_eq!((outcome.end, outcome.signal), (End::TimedOut, Some(9)));
    assert_gone(pids).await;
}

#[tokio::test]
async fn a_program_may_clean_up_after_term() {
    let mut bench = Bench::new();
    bench.limits.grace = Duration::from_secs(60);
    let script = "trap 'echo tidy; exit 7' TERM; sh -c 'trap \"\" TERM; echo $$ > child; while :; do sleep 10; done' & echo $$ > leader; wait";
    let (outcome, pids) = run(&bench, script, |bench| bench.cancel.cancel()).await;
    assert_eq!((outcome.end, outcome.code, outcome.stdout.text.as_str()), (End::Cancelled, 7, "tidy\n"));
    assert_gone(pids).await;
}

#[tokio::test]
async fn background_processes_are_killed_when_the_program_ends() {
    let bench = Bench::new();
    let outcome = bench.shell("sleep 1000 & echo $! > child; exit 0").await;
    assert_eq!((outcome.end, outcome.code), (End::Exited, 0));
    let child = bench.pid("child").await;
    until("the child is gone", || is_gone(child)).await;
}

#[tokio::test]
async fn a_dropped_run_leaves_no_process() {
    let bench = Bench::new();
    let pids = {
        let mut run = pin!(bench.shell(STUBBORN));
        tokio::select! {
            outcome = &mut run => panic!("ended too early: {outcome:?}"),
            pids = async { [bench.pid("leader").await, bench.pid("child").await] } => pids,
        }
    };
    assert_gone(pids).await;
    until("the leader is reaped", || is_reaped(pids[0])).await;
}

#[tokio::test]
async fn a_run_that_is_never_polled_starts_nothing() {
    let bench = Bench::new();
    drop(bench.shell("echo started > marker"));
    assert!(!bench.path("marker").exists());
}

#[tokio::test]
async fn signals_are_distinguished_from_exit_codes() {
    let bench = Bench::new();
    let outcome = bench.shell("kill -SEGV $$").await;
    assert_eq!((outcome.end, outcome.code, outcome.signal), (End::Exited, 128 + 11, Some(11)));
}

#[test]
fn a_runtime_that_shuts_down_ends_its_programs() {
    let bench = Bench::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut run = Box::pin(bench.shell(STUBBORN));
    let pids = runtime.block_on(async {
        tokio::select! {
            outcome = &mut run => panic!("ended too early: {outcome:?}"),
            pids = async { [bench.pid("leader").await, bench.pid("child").await] } => pids,
        }
    });
    drop(runtime);
    drop(run);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(assert_gone(pids));
}

/// Checks at compile time that the future is `Send`, so that a run can move to another thread.
#[expect(dead_code, reason = "it only has to compile")]
fn a_run_can_be_sent(bench: &'static Bench) -> impl Future<Output = Outcome> + Send {
    bench.shell("true")
}
