//! Guarantees of the supervisor: no process survives, whichever process is killed.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use taskpawl_process::{End, Environment, Programs, SpawnError, Supervision};
use tokio::time::Instant;

use crate::engine::{ESCAPES, Engine, nap_of, supervisor_of, unprepared, written};
use crate::support::{Bench, is_gone, until};

fn survivors(dir: &Path) -> Vec<u32> {
    written(dir).into_iter().filter(|id| !is_gone(*id)).collect()
}

fn kill(id: u32) {
    kill_process(Pid::from_raw(id.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
}

/// Starts an engine with the script of all escapes. Kills it `after` its first program was requested, or,
/// without a time, after all escapes have started.
async fn killed_engine(job: &str, after: Option<Duration>) -> Engine {
    let mut engine = Engine::start(job);
    match after {
        Some(after) => {
            until("the supervisor is there", || supervisor_of(engine.id()).is_some()).await;
            tokio::time::sleep(after).await;
        }
        None => until("all are there", || engine.path("all").exists()).await,
    }
    if after.is_none() {
        until("the test sees all of them", || sleepers(&nap_of(engine.id())).len() == 5).await;
    }
    engine.kill();
    engine
}

#[tokio::test]
async fn a_killed_engine_leaves_nothing() {
    let points = [0, 1, 2, 5, 10, 20].map(|millis| Some(Duration::from_millis(millis)));
    for after in points.into_iter().chain([None, None]) {
        let engine = killed_engine("escapes", after).await;
        // A free lock means that all processes are gone already.
        engine.is_unlocked().await;
        let left = survivors(engine.dir.path());
        assert!(left.is_empty(), "{left:?} survived, engine killed after {after:?}");
        assert!(after.is_some() || written(engine.dir.path()).len() == 5, "not all processes had started");
    }
}

#[tokio::test]
async fn a_killed_engine_leaves_nothing_in_a_sandbox_either() {
    let levels: &[&str] = if crate::sandbox::has_bwrap() { &["sandboxed", "strict"] } else { &["sandboxed"] };
    let points = [0, 5, 20].map(|millis| Some(Duration::from_millis(millis)));
    for level in levels {
        for after in points.into_iter().chain([None]) {
            let engine = killed_engine(&format!("escapes {level}"), after).await;
            engine.is_unlocked().await;
            // The processes wrote the ids of their own pid namespace, so search by command line.
            let left = sleepers(&nap_of(engine.id()));
            assert!(left.is_empty(), "{left:?} survived {level}, engine killed after {after:?}");
            assert!(
                after.is_some() || written(engine.dir.path()).len() == 5,
                "not all processes had started"
            );
        }
    }
}

/// Returns the processes of this machine with a word in their command line.
pub(crate) fn sleepers(word: &str) -> Vec<u32> {
    let names = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    let ids = names.filter_map(|name| name.to_str()?.parse().ok());
    let has_word = |id: &u32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
    };
    ids.filter(has_word).collect()
}

#[cfg(feature = "faults")]
mod controls {
    use super::*;

    #[tokio::test]
    async fn the_survivor_test_fails_without_the_sweep() {
        let engine = killed_engine("escapes no-sweep", None).await;
        engine.is_unlocked().await;
        let left = survivors(engine.dir.path());
        left.iter().copied().for_each(kill);
        assert_eq!(left.len(), 5);
    }

    #[tokio::test]
    async fn the_lock_test_fails_if_the_supervisor_does_not_hold_the_lock() {
        assert!(is_unlocked_while_killing("escapes early-lock").await);
    }

    #[tokio::test]
    async fn the_end_of_a_call_leaves_escaped_processes_with_the_fault() {
        let engine = Engine::start("quick only-group");
        File::create(engine.path("quick")).unwrap();
        until("all are there", || engine.path("all").exists()).await;
        let seen = written(engine.dir.path());
        until("the group is gone", || is_gone(seen[0]) && is_gone(seen[1])).await;
        // The end of the run kills the rest.
        engine.is_unlocked().await;
        assert!(survivors(engine.dir.path()).is_empty());
    }
}

/// Stops the supervisor and kills the engine. Returns whether the lock is free while the supervisor is
/// stopped.
async fn is_unlocked_while_killing(job: &str) -> bool {
    let mut engine = Engine::start(job);
    until("all are there", || engine.path("all").exists()).await;
    let supervisor = supervisor_of(engine.id()).unwrap();
    let supervisor = Pid::from_raw(supervisor.try_into().unwrap()).unwrap();
    kill_process(supervisor, Signal::STOP).unwrap();
    engine.kill();
    let is_unlocked = File::open(engine.path("lock")).unwrap().try_lock().is_ok();
    assert_eq!(survivors(engine.dir.path()).len(), 5);
    kill_process(supervisor, Signal::CONT).unwrap();
    engine.is_unlocked().await;
    until("nothing is left", || survivors(engine.dir.path()).is_empty()).await;
    is_unlocked
}

#[tokio::test]
async fn the_lock_is_held_until_everything_is_killed() {
    assert!(!is_unlocked_while_killing("escapes").await);
}

#[tokio::test]
async fn recognizable_processes_end_with_the_call_and_others_with_the_run() {
    let bench = Bench::new();
    File::create(bench.path("quick")).unwrap();
    let outcome = bench.shell(ESCAPES).await;
    assert_eq!((outcome.end, outcome.code), (End::Exited, 0));
    let [hidden] = survivors(&bench.path("")).try_into().expect("only the hidden process is left");
    assert_eq!(bench.pid("hidden").await, hidden);
    bench.programs.close().await;
    assert!(is_gone(hidden), "it survived the run");
}

#[tokio::test]
async fn a_killed_call_includes_its_descendants() {
    for end in [End::TimedOut, End::Cancelled, End::OutputLimit] {
        let mut bench = Bench::new();
        bench.limits.output_bytes = 1000;
        let script = match end {
            End::OutputLimit => &ESCAPES.replace("echo there > all", "echo there > all; yes"),
            End::Exited | End::TimedOut | End::Cancelled => ESCAPES,
        };
        if end == End::TimedOut {
            bench.limits.deadline = Some(Instant::now() + Duration::from_secs(2));
        }
        let mut run = pin!(bench.shell(script));
        let outcome = tokio::select! {
            outcome = &mut run => outcome,
            () = until("all are there", || end == End::Cancelled && bench.path("all").exists()) => {
                bench.cancel.cancel();
                run.await
            }
        };
        assert_eq!(outcome.end, end);
        let left = survivors(&bench.path(""));
        assert!(left.len() <= 1, "{left:?} survived: {end:?}");
        assert!(bench.programs.close_within(Duration::from_secs(10)));
        assert!(survivors(&bench.path("")).is_empty(), "{end:?}");
    }
}

/// Processes that are exiting at the end of the call no longer show their origin.
#[tokio::test]
async fn a_killed_call_ends_after_all_its_descendants() {
    const MANY: usize = 100;
    let bench = Bench::new();
    let script = format!(
        "for i in $(seq {MANY}); do setsid sh -c \"echo \\$\\$ > $i; exec sleep 1000\" > /dev/null 2>&1 & done; exec sleep 1000"
    );
    let all =
        || (1..=MANY).map(|name| std::fs::read_to_string(bench.path(&name.to_string())).unwrap_or_default());
    let mut run = pin!(bench.shell(&script));
    let outcome = tokio::select! {
        outcome = &mut run => outcome,
        () = until("all are there", || all().all(|id| id.ends_with('\n'))) => {
            bench.cancel.cancel();
            run.await
        }
    };
    assert_eq!(outcome.end, End::Cancelled);
    let left: Vec<String> = all().filter(|id| !is_gone(id.trim().parse().unwrap())).collect();
    assert!(left.is_empty(), "{left:?} survived");
}

#[tokio::test]
async fn a_call_leaves_background_processes_of_others_alone() {
    let bench = Bench::new();
    let mut long =
        bench.program(&["sh", "-c", "(setsid sh -c 'echo $$ > daemon; exec sleep 1000' &); exec sleep 1000"]);
    long.output.stdout = bench.path("out/long.stdout");
    long.output.stderr = bench.path("out/long.stderr");
    let mut run = pin!(bench.run(&long));
    let daemon = tokio::select! {
        outcome = &mut run => panic!("ended too early: {outcome:?}"),
        daemon = bench.pid("daemon") => daemon,
    };
    assert_eq!(bench.shell("true").await.code, 0);
    assert!(!is_gone(daemon), "killed at the end of another call");
    bench.cancel.cancel();
    assert_eq!(run.await.unwrap().end, End::Cancelled);
    assert!(is_gone(daemon), "survived its own call");
}

#[tokio::test]
async fn a_killed_supervisor_is_noticed_and_replaced() {
    let bench = Bench::new();
    let script = "echo $PPID > supervisor; echo $$ > leader; sleep 1000";
    let mut run = pin!(bench.run_script(script));
    let error = tokio::select! {
        outcome = &mut run => panic!("ended too early: {outcome:?}"),
        supervisor = bench.pid("supervisor") => {
            bench.pid("leader").await;
            kill(supervisor);
            run.await.unwrap_err()
        }
    };
    assert!(matches!(error, SpawnError::SupervisorLost), "{error:?}");
    // Processes of the dead supervisor are found by their environment marker.
    assert!(is_gone(bench.pid("leader").await));
    assert_eq!(bench.shell("true").await.code, 0);
}

#[tokio::test]
async fn a_host_without_child_entry_is_told_the_missing_line() {
    let bench = unprepared();
    let error = bench.run_script("true").await.unwrap_err();
    insta::assert_snapshot!(error, @"programs need a supervisor; call `taskpawl::child_entry();` first in the host's `main`, or set a `taskpawl` program with `Builder::supervision`");
}

#[tokio::test]
async fn a_program_that_is_no_supervisor_is_refused() {
    let refusal = async |program: &str| {
        let bench = Bench::with(Programs::new(Supervision::Binary(program.into())));
        bench.run_script("true").await.unwrap_err()
    };
    let error = refusal("/bin/false").await;
    insta::assert_snapshot!(error, @"`/bin/false` does not work as the supervisor of programs: it exited immediately (exit status: 1)");
    let error = refusal("/no/such").await;
    insta::assert_snapshot!(error, @"failed to start `/no/such` as the supervisor of programs");
}

#[tokio::test]
async fn no_program_starts_after_close() {
    let bench = Bench::new();
    bench.shell("true").await;
    bench.programs.close().await;
    let error = bench.run_script("echo started > marker").await.unwrap_err();
    assert!(matches!(error, SpawnError::Closed), "{error:?}");
    assert!(!bench.path("marker").exists());
}

#[tokio::test]
async fn long_arguments_variables_and_input_arrive() {
    let bench = Bench::new();
    let long = "x".repeat(100_000);
    let mut program = bench.program(&["sh", "-c", "echo ${#1} ${#A}; wc -c", "name", &long]);
    program.environment = Environment::Inherit(BTreeMap::from([("A".into(), Some(long.into()))]));
    program.stdin = Some(vec![b'x'; 10 << 20]);
    let outcome = bench.run(&program).await.unwrap();
    assert_eq!(outcome.stdout.text.split_whitespace().collect::<Vec<_>>(), ["100000", "100000", "10485760"]);

    program.argv = vec!["true".to_owned(); 1 << 21];
    let error = bench.run(&program).await.unwrap_err();
    assert!(matches!(error, SpawnError::Start { .. }), "{error:?}");
}

#[tokio::test]
async fn two_hundred_programs_run_at_once() {
    let bench = Bench::new();
    let runs = (0..200).map(|index| {
        // All programs have to run before one may end.
        let script = "touch in.$1; until [ -e go ]; do sleep 0.1; done; echo $1";
        let mut program = bench.program(&["sh", "-c", script, "name", &index.to_string()]);
        program.output.stdout = bench.path(&format!("out/{index}.stdout"));
        program.output.stderr = bench.path(&format!("out/{index}.stderr"));
        let (programs, limits, cancel) = (bench.programs.clone(), bench.limits, bench.cancel.clone());
        async move { programs.run(&program, &limits, &cancel).await.unwrap().stdout.text }
    });
    let mut set = tokio::task::JoinSet::new();
    for run in runs {
        set.spawn(run);
    }
    let is_in = || (0..200).all(|index| bench.path(&format!("in.{index}")).exists());
    crate::support::within(Duration::from_secs(60), "all are in", is_in).await;
    File::create(bench.path("go")).unwrap();
    let mut texts = set.join_all().await;
    texts.sort();
    let mut expected: Vec<String> = (0..200).map(|index| format!("{index}\n")).collect();
    expected.sort();
    assert_eq!(texts, expected);
}

#[tokio::test]
async fn a_thousand_programs_leave_no_descriptor_behind() {
    Engine::start("thousand").finish();
}

#[tokio::test]
async fn hostile_output_does_not_fill_the_memory_of_the_engine() {
    let mut engine = Engine::start("outputs");
    engine.finish();
    let kib: u64 = std::fs::read_to_string(engine.path("grown")).unwrap().parse().unwrap();
    println!("P12 the engine grew by {kib} KiB");
    assert!(kib < 16 << 10, "{kib} KiB");
}

#[tokio::test]
async fn a_dropped_handle_ends_the_supervisor() {
    let bench = Bench::new();
    let outcome = bench.shell("echo $PPID").await;
    let supervisor: u32 = outcome.stdout.text.trim().parse().unwrap();
    drop(bench);
    until("the supervisor is gone", || is_gone(supervisor)).await;
}
