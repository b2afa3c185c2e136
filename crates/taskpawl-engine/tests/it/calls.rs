//! Calls of a single task: order, retries, results and arguments.

use std::sync::{Arc, Mutex};

use serde_json::json;
use taskpawl_engine::{Observer, RunEvent, RunOptions};
use taskpawl_model::task::CallStatus;
use tokio::join;

use crate::support::Lab;

#[tokio::test]
async fn sequential_calls_start_one_after_the_other() {
    let lab = Lab::new("tasks: [{id: a, calls: [{toolName: hold}, {toolName: hold}]}]");
    join!(lab.run(), async {
        assert_eq!(lab.next_start().await, "a/c1");
        assert_eq!(lab.task("a").metadata.tool_calls[1].status, CallStatus::Pending);
        lab.release(1);
        assert_eq!(lab.next_start().await, "a/c2");
        lab.release(1);
    });
    assert_eq!((lab.states(), lab.starts()), ("a=done".into(), "a/c1:1 a/c2:1".into()));
}

#[tokio::test]
async fn parallel_calls_run_at_once_and_a_failure_waits_for_the_others() {
    let lab = Lab::new(
        "tasks: [{id: a, mode: parallel, calls: [{toolName: bad}, {toolName: hold}, {toolName: hold}]}]",
    );
    join!(lab.run_jobs(3), async {
        for _ in 0..3 {
            lab.next_start().await;
        }
        assert_eq!(lab.states(), "a=in_progress");
        lab.release(2);
    });
    assert_eq!(lab.states(), "a=failed");
    let calls: Vec<_> = lab.task("a").metadata.tool_calls.iter().map(|call| call.status.as_str()).collect();
    assert_eq!(calls, ["failed", "succeeded", "succeeded"]);
}

#[tokio::test]
async fn parallel_calls_beyond_the_jobs_wait_for_their_turn() {
    let lab = Lab::new(
        "tasks: [{id: a, mode: parallel, calls: [{toolName: hold}, {toolName: hold}, {toolName: ok}]}]",
    );
    join!(lab.run_jobs(2), async {
        let mut first = [lab.next_start().await, lab.next_start().await];
        first.sort();
        assert_eq!(first, ["a/c1", "a/c2"]);
        assert_eq!(lab.starts(), "a/c1:1 a/c2:1");
        lab.release(2);
    });
    assert_eq!(lab.starts(), "a/c1:1 a/c2:1 a/c3:1");
}

#[tokio::test]
async fn a_failed_call_stops_a_sequential_task_and_retry_resumes_there() {
    let lab = Lab::new(
        "tasks: [{id: a, calls: [{toolName: ok}, {toolName: flaky}, {toolName: ok}]}, {id: b, needs: [a], call: {ok: {}}}]",
    );
    let summary = lab.run().await;
    assert_eq!(
        (lab.states(), lab.starts()),
        ("a=failed b=blocked{dependency}".into(), "a/c1:1 a/c2:1".into())
    );
    assert_eq!(
        (summary.exit, summary.failures[0].tool.as_str(), summary.failures[0].blocks),
        (1, "flaky", 1)
    );
    lab.manager.retry(&["a".to_owned()], false).unwrap();
    assert_eq!(lab.run().await.exit, 0);
    assert_eq!(lab.starts(), "a/c1:1 a/c2:2 a/c3:1 b/c1:1");
}

#[tokio::test]
async fn a_tool_that_panics_is_a_failed_call() {
    let lab = Lab::new("tasks: [{id: a, call: {panic: {}}}, {id: b, call: {ok: {}}}]");
    let summary = lab.run().await;
    assert_eq!(lab.states(), "a=failed b=done");
    assert_eq!((summary.exit, summary.failures[0].class.as_str()), (1, "panic"));
}

#[tokio::test]
async fn a_tool_that_reports_a_cancellation_by_itself_has_failed() {
    let lab = Lab::new("tasks: [{id: a, toolCalls: [{toolName: quits, idempotent: true}]}]");
    let summary = lab.run().await;
    assert_eq!((lab.states().as_str(), lab.starts().as_str()), ("a=failed", "a/c1:1"));
    assert_eq!((summary.exit, summary.failures[0].class.as_str()), (1, "cancelled"));
}

#[tokio::test]
async fn a_result_that_is_nested_too_deep_is_stored_as_text() {
    let lab = Lab::new("tasks: [{id: a, call: {deep: {}}}]");
    assert_eq!(lab.run().await.exit, 0);
    let result = lab.task("a").result.unwrap();
    assert_eq!(result["tooDeep"], true);
    assert!(result["text"].as_str().unwrap().starts_with("[[[["));
}

#[tokio::test]
async fn a_large_result_goes_to_a_file_and_its_head_and_tail_to_the_task() {
    let lab = Lab::new("tasks: [{id: a, call: {big: {}}}]");
    lab.run().await;
    let result = lab.task("a").result.unwrap();
    assert_eq!((&result["truncated"], &result["bytes"]), (&json!(true), &json!(300 * 1024 + 11)));
    let whole = std::fs::read_to_string(result["resultFile"].as_str().unwrap()).unwrap();
    assert_eq!(whole.len(), 300 * 1024 + 11);
    assert!(
        whole.starts_with(result["head"].as_str().unwrap())
            && whole.ends_with(result["tail"].as_str().unwrap())
    );
    assert!(result.to_string().len() < 260 * 1024);
}

#[tokio::test]
async fn a_call_has_its_own_timeout_or_that_of_its_task() {
    let lab = Lab::new(
        "tasks: [{id: a, calls: [{toolName: hold, timeout: 1ms}]}, {id: b, timeout: 1ms, calls: [{toolName: hold}]}]",
    );
    let summary = lab.run().await;
    assert_eq!(lab.states(), "a=failed b=failed");
    assert_eq!((summary.failures.len(), summary.failures[0].class.as_str()), (1, "timeout"));
}

#[tokio::test]
async fn invalid_arguments_fail_the_call_and_name_the_field() {
    let lab = Lab::new("tasks: [{id: a, call: {write_file: {content: x}}}]");
    let summary = lab.run().await;
    assert_eq!(summary.failures[0].class, "invalid_args");
    assert!(lab.task("a").error.unwrap().contains("args.path"), "{:?}", lab.task("a").error);
}

#[tokio::test]
async fn a_type_error_suggests_the_filter_that_converts_the_value() {
    let lab = Lab::new("tasks: [{id: a, call: {write_file: {path: x, content: '${{ 1 + 1 }}'}}}]");
    lab.run().await;
    let error = lab.task("a").error.unwrap();
    assert!(error.ends_with("the number `2`; `${{ (1 + 1) | string }}` converts it to text"), "{error}");
}

#[tokio::test]
async fn the_idempotency_key_changes_only_when_the_task_is_reopened() {
    let lab = Lab::new("tasks: [{id: a, call: {ok: {}}}]");
    lab.run().await;
    assert_eq!(lab.task("a").result.unwrap()["key"], "project/a/c1/0");
    lab.manager.reopen(&["a".to_owned()], false).unwrap();
    lab.run().await;
    assert_eq!(lab.task("a").result.unwrap()["key"], "project/a/c1/1");
}

/// An observer that records the ends of calls.
#[derive(Debug, Default)]
struct Ends(Mutex<Vec<String>>);

impl Observer for Ends {
    fn event(&self, event: &RunEvent) {
        if let RunEvent::CallEnded { task, status, error, .. } = event {
            self.0.lock().unwrap().push(format!("{task} {status}: {}", error.as_deref().unwrap_or("-")));
        }
    }
}

#[tokio::test]
async fn the_reason_of_an_interruption_is_stored_with_the_call() {
    let lab =
        Lab::new("tasks: [{id: a, call: {lost: {}}}, {id: b, calls: [{toolName: lost, idempotent: true}]}]");
    let ends = Arc::new(Ends::default());
    let options = RunOptions { jobs: Some(1), observer: Some(ends.clone()), ..RunOptions::default() };
    let summary = lab.run_with(options).await;
    assert_eq!((summary.exit, lab.states()), (3, "a=blocked{interrupted} b=done".into()));
    let reason = "call `c1` was interrupted: its server ended: no disk; check its effects, then `done`, `fail`, or `unblock` to start it again";
    assert_eq!(summary.waiting[0].reason, reason);
    let call = &lab.task("a").metadata.tool_calls[0];
    assert_eq!(
        (call.status, call.error.as_deref()),
        (CallStatus::Interrupted, Some("its server ended: no disk"))
    );
    // A repeatable call is started again, and keeps no error after its success.
    let call = &lab.task("b").metadata.tool_calls[0];
    assert_eq!((call.status, call.attempts, call.error.as_deref()), (CallStatus::Succeeded, 2, None));
    let mut ends = ends.0.lock().unwrap().clone();
    ends.sort();
    let lost = "interrupted: its server ended: no disk";
    assert_eq!(ends, [format!("a {lost}"), format!("b {lost}"), "b succeeded: -".to_owned()]);
    let history = lab.manager.history(None, 0, 1000).unwrap();
    let mentions = serde_json::to_string(&history).unwrap().matches("its server ended: no disk").count();
    assert!(mentions >= 2, "{history:?}");
}

#[tokio::test]
async fn plan_access_is_refused_for_tools_that_cannot_use_it() {
    let lab = Lab::new(
        "tasks: [{id: a, calls: [{toolName: log, planAccess: read, args: {message: hi}}]}, {id: b, calls: [{toolName: ok, planAccess: read}]}]",
    );
    lab.run().await;
    assert_eq!(lab.states(), "a=failed b=done");
    let call = &lab.task("a").metadata.tool_calls[0];
    assert_eq!(call.error_class.as_deref(), Some("invalid_args"));
    let error = call.error.as_deref().unwrap();
    assert!(error.contains("`planAccess` is only for tools that start a program for each call"), "{error}");
}
