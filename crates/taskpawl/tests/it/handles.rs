//! Async commands, run handles and the change feed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use taskpawl::model::task::Status;
use taskpawl::prelude::*;
use taskpawl::store::Location;
use taskpawl::{ApprovalVerdict, StatusChange, async_trait};
use tokio::sync::Notify;

use crate::support::{memory, with_plan};

#[tokio::test]
async fn a_run_is_a_stream_of_events_and_a_future_of_the_summary() {
    let plans = with_plan("tasks: [{id: a, call: {log: {message: x}}}, {id: b, needs: a, milestone: true}]");
    let mut run = plans.run().concurrency(1).start();
    let (mut jobs, mut ended, mut last) = (0, Vec::new(), None);
    while let Some(event) = run.next().await {
        if let RunEvent::RunStarted { run: id, jobs: number } = &event {
            assert_eq!(id, run.id());
            jobs = *number;
        }
        if let RunEvent::TaskEnded { task, .. } = &event {
            ended.push(task.to_string());
        }
        last = Some(event);
    }
    let summary = run.await.unwrap();
    assert_eq!((jobs, ended, summary.exit), (1, vec!["a".to_owned(), "b".to_owned()], 0));
    assert_eq!(last, Some(RunEvent::Summary(Box::new(summary))));
}

#[tokio::test]
async fn a_handle_that_is_only_awaited_needs_no_reader() {
    let tasks: Vec<_> = (0..300)
        .map(|number| json!({"id": format!("t{number}"), "call": {"log": {"message": "x"}}}))
        .collect();
    let plans = with_plan(&json!({"tasks": tasks}).to_string());
    assert_eq!(plans.run().await.unwrap().ended["done"], 300);
}

/// Waits until it is ended.
#[tool]
async fn hang(cx: &CallContext) -> Result<(), ToolError> {
    cx.get::<Arc<Notify>>()?.notify_one();
    Err(cx.interrupted().await)
}

#[tokio::test]
async fn two_stops_end_running_calls() {
    let entered = Arc::new(Notify::new());
    let plans = memory().tool(hang).data(Arc::clone(&entered)).open().unwrap();
    plans.apply_text("tasks: [{id: a, call: {hang: {}}}]", "p").await.unwrap();
    let run = plans.run().start();
    entered.notified().await;
    run.stop();
    run.stop();
    assert_eq!(run.await.unwrap().exit, 130);
}

#[tokio::test]
async fn a_dropped_handle_ends_the_run() {
    let entered = Arc::new(Notify::new());
    let plans = memory().tool(hang).data(Arc::clone(&entered)).open().unwrap();
    plans.apply_text("tasks: [{id: a, call: {hang: {}}}]", "p").await.unwrap();
    let run = plans.run().start();
    entered.notified().await;
    drop(run);
    // The lock of the run is free again, so the next run recovers the task, whose call may have had an effect.
    let summary = loop {
        let summary = plans.run().await.unwrap();
        if !summary.blocked.is_empty() || !summary.waiting.is_empty() {
            break summary;
        }
    };
    assert_eq!((summary.run.as_str().is_empty(), summary.exit), (false, 3));
}

#[derive(Debug)]
struct Yes;

#[async_trait]
impl Approver for Yes {
    async fn decide(&self, _request: &taskpawl::model::task::ApprovalRequest) -> ApprovalVerdict {
        ApprovalVerdict::Approve { answer: None, args: None }
    }
}

#[tokio::test]
async fn a_run_has_limits_and_an_approver() {
    let text = "tasks: [{id: a, approval: {ask: 'really?'}, call: {log: {message: x}}}, {id: b, call: {log: {message: x}}}]";
    let plans = with_plan(text);
    let summary = plans.run().only("a").approver(Yes).max_cost(0.5).max_failures(1).await.unwrap();
    assert_eq!((summary.exit, summary.ended["done"]), (0, 1));
    assert_eq!(plans.get_task("b").await.unwrap().status, Status::Todo);
}

#[tokio::test]
async fn output_of_programs_comes_before_the_end_of_their_call() {
    let plans = with_plan("tasks: [{id: a, run: 'printf one; printf two >&2'}]");
    let mut run = plans.run().with_output().start();
    let mut seen = Vec::new();
    while let Some(event) = run.next().await {
        match event {
            RunEvent::Output { stream, text, .. } => seen.push(format!("{}: {text}", stream.as_str())),
            RunEvent::CallEnded { .. } => seen.push("ended".to_owned()),
            RunEvent::RunStarted { .. } | RunEvent::Summary(_) | _ => {}
        }
    }
    assert_eq!(seen, ["stdout: one", "stderr: two", "ended"]);
}

#[tokio::test]
async fn changes_of_another_handle_arrive_and_a_dropped_stream_ends() {
    let directory = tempfile::tempdir().unwrap();
    let location = Location::Sqlite(directory.path().join("tasks.db"));
    let open = || taskpawl::Taskpawl::builder_at(location.clone()).open().unwrap();
    let (reader, writer) = (open(), open());
    writer.apply_text("tasks: [{id: a}]", "p").await.unwrap();
    let mut changes = reader.changes(reader.revision().await.unwrap());
    let first = writer.note("a", "seen by others").await.unwrap();
    let event =
        tokio::time::timeout(Duration::from_secs(20), changes.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(event.task, Some(first.id));
    drop(changes);
}

#[tokio::test]
async fn commands_have_async_forms() {
    let plans = memory().open().unwrap();
    plans.create_task(NewTask::named("Look").id("look")).await.unwrap();
    plans.add_subtask("look", NewTask::named("Near").id("near")).await.unwrap();
    plans.update_task_status("near", Status::Failed, StatusChange::default()).await.unwrap();
    assert_eq!(plans.get_task("look").await.unwrap().status, Status::Blocked);
    assert_eq!(plans.retry("near").await.unwrap().status, Status::Todo);
    let claimed = plans.manage(|manager| manager.claim_next(Duration::from_secs(9))).await.unwrap();
    assert_eq!(claimed.as_str(), "near");
}
