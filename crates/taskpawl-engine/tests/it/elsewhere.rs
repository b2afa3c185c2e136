//! Calls that another process executes: the seam, and the runs that join calls of killed ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use taskpawl_engine::{
    CallExecutor, LocalExecutor, LocalOptions, Offer, RunError, RunOptions, SentOutcome, Ticket, TicketStatus,
};
use taskpawl_model::task::CallStatus;
use tokio::task::JoinSet;

use crate::support::{Lab, with_control, within};

/// Returns an executor with the tools of the lab, which behaves like one of another process.
async fn worker(lab: &Lab, name: &str, labels: &[&str]) -> Arc<LocalExecutor> {
    let engine = lab.other_engine();
    let offer = Offer {
        worker: name.to_owned(),
        slots: 2,
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        tools: engine.tools().names().map(str::to_owned).collect::<BTreeSet<_>>(),
    };
    Arc::new(LocalExecutor::open(&engine, LocalOptions { offer, remote: None }).await.unwrap())
}

fn on(executor: &Arc<LocalExecutor>) -> RunOptions {
    RunOptions { elsewhere: Some(Arc::clone(executor) as Arc<dyn CallExecutor>), ..RunOptions::default() }
}

fn ticket(task: &str) -> Ticket {
    Ticket { key: format!("project/{task}/c1/0"), start: 1 }
}

#[tokio::test]
async fn calls_end_elsewhere_as_they_end_here() {
    let plan = "tasks: [{id: a, call: {ok: {}}}, {id: b, call: {bad: {}}}, {id: c, needs: a, call: {flaky: {}}, retry: 2}, \
                {id: d, needs: b, call: {ok: {}}}, {id: e, call: {big: {}}}, {id: f, call: {lost: {}}, idempotent: true}]";
    let (here, there) = (Lab::new(plan), Lab::new(plan));
    let executor = worker(&there, "w", &[]).await;
    let (at_home, away) = (here.run().await, there.run_with(on(&executor)).await);
    assert_eq!((here.states(), here.starts(), at_home.exit), (there.states(), there.starts(), away.exit));
    assert_eq!(here.task("a").result, there.task("a").result, "the key is that of the coordinator");
    let worker_of = |lab: &Lab| lab.task("a").metadata.tool_calls[0].worker.clone();
    assert_eq!((worker_of(&here), worker_of(&there)), (None, Some("w".to_owned())));
}

#[tokio::test]
async fn a_run_joins_the_calls_of_a_killed_one_under_their_attempt() {
    let lab = Lab::new("tasks: [{id: a, call: {hold: {}}}, {id: b, needs: a, call: {ok: {}}}]");
    let executor = worker(&lab, "w", &[]).await;
    let first = lab.engine.clone();
    let mut killed = JoinSet::new();
    let options = on(&executor);
    killed.spawn(async move { first.run_all_ready(options).await });
    assert_eq!(lab.next_start().await, "a/c1");
    killed.shutdown().await;
    let refused = lab.other_engine().run_all_ready(RunOptions::default()).await;
    assert!(matches!(refused, Err(RunError::RunsElsewhere { tasks }) if tasks == ["a"]));
    assert_eq!(lab.states(), "a=in_progress b=todo", "nothing is taken from the worker");
    let second = lab.other_engine();
    let running = second.run_all_ready(on(&executor));
    lab.release(1);
    let summary = within(Box::pin(running)).await.unwrap();
    assert_eq!((summary.exit, lab.states().as_str()), (0, "a=done b=done"));
    assert_eq!((lab.starts().as_str(), lab.task("a").attempt), ("a/c1:1 b/c1:1", 1));
    assert_eq!(executor.status("w", &[ticket("a")]).await.unwrap(), [TicketStatus::Ended]);
}

#[tokio::test]
async fn a_second_stop_ends_calls_elsewhere() {
    let lab = Lab::new("tasks: [{id: a, call: {hold: {}}}]");
    let executor = worker(&lab, "w", &[]).await;
    let (options, control) = with_control();
    let engine = lab.engine.clone();
    let options = RunOptions { elsewhere: on(&executor).elsewhere, ..options };
    let stop = async {
        lab.next_start().await;
        control.stop();
        control.stop();
    };
    let run = Box::pin(engine.run_all_ready(options));
    within(async { tokio::join!(run, stop) }).await.0.unwrap();
    assert_eq!(lab.task("a").metadata.tool_calls[0].status, CallStatus::Interrupted);
    assert_eq!(lab.states(), "a=blocked{interrupted}");
}

#[tokio::test]
async fn labels_decide_where_a_task_runs() {
    let lab = Lab::new(
        "tasks: [{id: a, runsOn: gpu, call: {ok: {}}}, {id: b, runsOn: local, call: {ok: {}}}, {id: c, runsOn: tpu, call: {ok: {}}}]",
    );
    let executor = worker(&lab, "w", &["gpu"]).await;
    let summary = lab.run_with(on(&executor)).await;
    assert_eq!(lab.states(), "a=done b=done c=todo");
    let not_run: Vec<&str> = summary.not_run.iter().map(|task| task.reason.as_str()).collect();
    assert_eq!(not_run, ["no worker offers `tpu`"]);
    let workers = ["a", "b"].map(|id| lab.task(id).metadata.tool_calls[0].worker.clone());
    assert_eq!(workers, [Some("w".to_owned()), None]);
    // Without an engine no label but `local` is offered.
    let home =
        Lab::new("tasks: [{id: a, runsOn: gpu, call: {ok: {}}}, {id: b, runsOn: local, call: {ok: {}}}]");
    home.run().await;
    assert_eq!(home.states(), "a=todo b=done");
}

#[tokio::test]
async fn a_ticket_starts_once_and_belongs_to_one_call() {
    let lab = Lab::new("tasks: [{id: a, call: {hold: {}}}]");
    let executor = worker(&lab, "w", &[]).await;
    let call: taskpawl_engine::SentCall = serde_json::from_value(serde_json::json!({
        "ticket": ticket("a"), "run": "r", "task": "a", "attempt": 1, "generation": 0, "round": 0,
        "call": {"id": "c1", "spec": {"toolName": "hold"}, "origin": "plan", "body": {"status": "running", "attempts": 1}},
        "args": {}, "isRepeatable": false,
    }))
    .unwrap();
    let other = taskpawl_engine::SentCall { attempt: 2, ..call.clone() };
    let begun = executor.run(call.clone(), "one", false);
    let joined = executor.run(call.clone(), "two", false);
    let refused = async {
        lab.next_start().await;
        let refused = executor.run(other, "one", false).await;
        lab.release(1);
        refused
    };
    let all = Box::pin(async { tokio::join!(begun, joined, refused) });
    let (begun, joined, refused) = within(all).await;
    assert!(
        matches!(begun.outcome, SentOutcome::Succeeded { .. }) && begun == joined,
        "{begun:?} {joined:?}"
    );
    assert!(matches!(refused.outcome, SentOutcome::Failed { error, .. } if error.class == "ticket"));
    assert_eq!(lab.starts(), "a/c1:1");
    // A restarted process knows the ticket from its disk: the same request is interrupted, and another one refused.
    Arc::into_inner(executor).unwrap().close().await;
    let executor = worker(&lab, "w", &[]).await;
    let again = executor.run(call.clone(), "one", false).await;
    assert!(matches!(again.outcome, SentOutcome::Interrupted { repeatable: false, .. }), "{again:?}");
    let replayed = executor.run(call.clone(), "three", false).await;
    assert!(matches!(replayed.outcome, SentOutcome::Failed { .. }), "{replayed:?}");
    assert_eq!(lab.starts(), "a/c1:1");
}

#[tokio::test]
async fn a_newer_start_ends_an_older_one() {
    let lab = Lab::new("tasks: [{id: a, call: {hold: {}}}]");
    let executor = worker(&lab, "w", &[]).await;
    let call = |start: u32| -> taskpawl_engine::SentCall {
        serde_json::from_value(serde_json::json!({
            "ticket": Ticket { start, ..ticket("a") }, "run": "r", "task": "a", "attempt": start, "generation": 0, "round": 0,
            "call": {"id": "c1", "spec": {"toolName": "hold"}, "origin": "plan", "body": {"status": "running", "attempts": start}},
            "args": {}, "isRepeatable": false,
        }))
        .unwrap()
    };
    let older = executor.run(call(1), "one", false);
    let newer = async {
        lab.next_start().await;
        let newer = executor.run(call(2), "two", false);
        let release = async {
            lab.next_start().await;
            lab.release(1);
        };
        tokio::join!(newer, release).0
    };
    let (older, newer) = within(async { tokio::join!(older, newer) }).await;
    assert!(matches!(older.outcome, SentOutcome::Interrupted { .. }), "{older:?}");
    assert!(matches!(newer.outcome, SentOutcome::Succeeded { .. }), "{newer:?}");
    let late = executor.run(call(1), "three", false).await;
    assert!(
        !matches!(late.outcome, SentOutcome::Succeeded { .. }),
        "an older start never begins again: {late:?}"
    );
}

#[tokio::test]
async fn a_restored_store_fences_the_one_that_was_backed_up() {
    let lab = Lab::new("tasks: [{id: a, call: {ok: {}}}]");
    let executor = worker(&lab, "w", &[]).await;
    let call = |task: &str, store: &str, fence: u64| -> taskpawl_engine::SentCall {
        serde_json::from_value(serde_json::json!({
            "ticket": ticket(task), "run": "r", "task": task, "attempt": 1, "generation": 0, "round": 0, "store": store, "fence": fence,
            "call": {"id": "c1", "spec": {"toolName": "ok"}, "origin": "plan", "body": {"status": "running", "attempts": 1}},
            "args": {}, "isRepeatable": false,
        }))
        .unwrap()
    };
    let class = |end: taskpawl_engine::SentEnd| {
        if let SentOutcome::Failed { error, .. } = end.outcome { Some(error.class) } else { None }
    };
    assert_eq!(class(executor.run(call("a", "s", 0), "1", false).await), None);
    assert_eq!(class(executor.run(call("b", "s", 7), "2", false).await), None);
    assert_eq!(class(executor.run(call("c", "s", 0), "3", false).await).as_deref(), Some("fenced"));
    assert_eq!(class(executor.run(call("d", "other", 0), "4", false).await), None);
    let joined = executor.run(call("a", "s", 7), "5", false).await;
    assert!(
        matches!(joined.outcome, SentOutcome::Succeeded { .. }),
        "a call of before the restore is joined: {joined:?}"
    );
    assert_eq!(executor.find(&ticket("a")).await.unwrap().as_deref(), Some("w"));
    assert_eq!(executor.find(&ticket("c")).await.unwrap(), None);
    // A restarted worker knows the number.
    Arc::into_inner(executor).unwrap().close().await;
    let executor = worker(&lab, "w", &[]).await;
    assert_eq!(class(executor.run(call("e", "s", 6), "6", false).await).as_deref(), Some("fenced"));
    assert_eq!(executor.find(&ticket("a")).await.unwrap().as_deref(), Some("w"));
}
