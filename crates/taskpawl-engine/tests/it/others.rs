//! Changes by other processes while a run is active.

use std::time::Duration;

use taskpawl_engine::RunOptions;
use taskpawl_model::command::NewTask;
use taskpawl_model::plan::parse_call;
use taskpawl_model::task::TaskSpec;
use taskpawl_model::value::Selector;
use taskpawl_model::value::TaskId;
use tokio::join;

use crate::support::{Lab, within};

#[tokio::test]
async fn a_run_picks_up_tasks_that_others_add_and_finish() {
    let lab = Lab::new("tasks: [{id: a, call: {hold: {}}}, {id: m}, {id: b, needs: [m], call: {ok: {}}}]");
    join!(lab.run(), async {
        assert_eq!(lab.next_start().await, "a/c1");
        lab.done("m");
        assert_eq!(lab.next_start().await, "b/c1");
        lab.apply("tasks: [{id: c, call: {ok: {}}}]", "q");
        assert_eq!(lab.next_start().await, "c/c1");
        let spec = TaskSpec { name: "d".to_owned(), ..TaskSpec::default() };
        lab.manager.create(NewTask { id: TaskId::from("d"), spec, ..NewTask::default() }).unwrap();
        lab.manager.add_tool_call("d", parse_call("{toolName: ok}").unwrap()).unwrap();
        assert_eq!(lab.next_start().await, "d/c1", "a manual task becomes executable when it gets a call");
        lab.release(1);
    });
    assert_eq!(lab.states(), "a=done m=done b=done c=done d=done");
}

#[tokio::test]
async fn cancelling_a_running_task_ends_its_calls_and_no_others() {
    let lab = Lab::new(
        "tasks: [{id: a, call: {exec: {argv: [sleep, '1000']}}}, {id: b, call: {hold: {}}}, {id: c, needs: [b], call: {ok: {}}}]",
    );
    let (summary, ()) = join!(lab.run(), async {
        lab.next_start().await;
        for attempt in 1..=2 {
            lab.until("a", "in_progress").await;
            assert_eq!(lab.task("a").attempt, attempt);
            lab.manager.cancel(&["a".to_owned()], None).unwrap();
            lab.until_its_calls_ended("a").await;
            if attempt == 1 {
                lab.manager.retry(&["a".to_owned()], true).unwrap();
            }
        }
        lab.release(1);
    });
    assert_eq!((lab.states(), summary.exit), ("a=cancelled b=done c=done".into(), 0));
}

/// With one job, the calls of the task are still queued when it is cancelled.
#[tokio::test]
async fn queued_calls_of_a_cancelled_task_never_start() {
    let lab = Lab::new(
        "tasks: [{id: a, call: {ok: {}}}, {id: b, mode: parallel, calls: [{toolName: hold}, {toolName: ok}, {toolName: ok}]}]",
    );
    join!(lab.run_jobs(1), async {
        assert_eq!(lab.next_start().await, "a/c1");
        assert_eq!(lab.next_start().await, "b/c1");
        lab.manager.cancel(&["b".to_owned()], None).unwrap();
    });
    assert_eq!(lab.starts(), "a/c1:1 b/c1:1");
    assert_eq!(lab.states(), "a=done b=cancelled");
}

#[tokio::test]
async fn two_runs_share_the_work_and_start_each_call_once() {
    let tasks: Vec<String> = (0..60)
        .map(|n| {
            let needs = if n < 6 { String::new() } else { format!(", needs: [t{}, t{}]", n - 6, n - 5) };
            format!("{{id: t{n}{needs}, calls: [{{toolName: ok}}, {{toolName: ok}}]}}")
        })
        .collect();
    let lab = Lab::new(&format!(
        "tasks: [{}, {{id: a, call: {{hold: {{}}}}}}, {{id: b, call: {{hold: {{}}}}}}]",
        tasks.join(", ")
    ));
    let other = lab.other_engine();
    let options = || taskpawl_engine::RunOptions { jobs: Some(1), ..Default::default() };
    let (one, two, ()) = join!(lab.run_with(options()), within(other.run_all_ready(options())), async {
        let mut held = 0;
        while held < 2 {
            held += usize::from(["a/c1", "b/c1"].contains(&lab.next_start().await.as_str()));
            if held > 0 {
                lab.release(1);
            }
        }
    });
    assert_eq!((one.exit, two.unwrap().exit), (0, 0));
    let starts = lab.starts();
    assert_eq!(starts.split(' ').count(), 122);
    assert!(starts.split(' ').all(|call| call.ends_with(":1")), "{starts}");
}

#[tokio::test]
async fn a_run_waits_for_tasks_that_another_run_holds() {
    let lab = Lab::new("tasks: [{id: a, call: {hold: {}}}, {id: b, needs: [a], call: {ok: {}}}]");
    let other = lab.other_engine();
    let (one, two, ()) =
        join!(lab.run(), within(other.run_all_ready(taskpawl_engine::RunOptions::default())), async {
            assert_eq!(lab.next_start().await, "a/c1");
            lab.release(1);
        });
    assert_eq!((one.exit, two.unwrap().exit), (0, 0));
    assert_eq!(lab.starts(), "a/c1:1 b/c1:1");
}

#[tokio::test]
async fn a_run_releases_tasks_with_expired_leases() {
    let lab = Lab::new("tasks: [{id: m}]");
    lab.manager.claim("m", Duration::ZERO).unwrap();
    let summary = lab.run().await;
    assert_eq!((lab.states(), summary.exit), ("m=todo".into(), 3));
    assert_eq!(summary.waiting[0].reason, "a ready manual task");
}

#[tokio::test]
async fn a_run_with_wait_continues_when_an_agent_is_done() {
    let lab = Lab::new("tasks: [{id: m}, {id: b, needs: [m], call: {ok: {}}}]");
    let options = taskpawl_engine::RunOptions { wait: true, ..Default::default() };
    let (summary, ()) = join!(lab.run_with(options), async {
        tokio::task::yield_now().await;
        lab.done("m");
    });
    assert_eq!((lab.states(), summary.exit), ("m=done b=done".into(), 0));
}

#[tokio::test]
async fn a_run_of_one_plan_includes_tasks_that_join_it() {
    let lab = Lab::new(
        "tasks: [{id: a, call: {hold: {}}}, {id: b, needs: [a], subtasks: [{id: c, call: {ok: {}}}]}]",
    );
    let only = vec![Selector::Plan("p".to_owned())];
    let new = |id: &str| {
        let spec = TaskSpec { name: id.to_owned(), ..TaskSpec::default() };
        let calls = vec![parse_call("{toolName: ok}").unwrap()];
        NewTask { id: TaskId::from(id), spec, calls, ..NewTask::default() }
    };
    let (summary, ()) = join!(lab.run_with(RunOptions { only, ..RunOptions::default() }), async {
        assert_eq!(lab.next_start().await, "a/c1");
        lab.manager.create(NewTask { plan: Some("p".to_owned()), ..new("d") }).unwrap();
        assert_eq!(lab.next_start().await, "d/c1");
        lab.manager.create(NewTask { parent: Some("b".to_owned()), ..new("e") }).unwrap();
        lab.manager.create(new("f")).unwrap();
        lab.release(1);
    });
    assert_eq!((summary.exit, lab.states()), (0, "a=done b=done c=done d=done e=done f=todo".into()));
}
