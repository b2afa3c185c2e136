//! Parts that a host provides: an observer, and a runtime with paused time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskpawl::model::task::Status;
use taskpawl::tools::{CallContext, Tool, ToolError, ToolSpec};
use taskpawl::{Observer, RunEvent, RunOptions, SandboxSettings, Supervision, Taskpawl, async_trait};

/// Records events, and panics when a call ends.
#[derive(Debug, Default)]
struct Panics(Mutex<Vec<RunEvent>>);

impl Observer for Panics {
    fn event(&self, event: &RunEvent) {
        self.0.lock().unwrap().push(event.clone());
        assert!(!matches!(event, RunEvent::CallEnded { .. }), "the observer");
    }
}

#[tokio::test]
async fn a_run_goes_on_without_an_observer_that_panics() {
    let plans = Taskpawl::builder(":memory:").open().unwrap();
    plans
        .blocking()
        .apply_text(
            "tasks: [{id: a, call: {log: {message: x}}}, {id: b, needs: a, call: {log: {message: y}}}]",
            "p",
        )
        .unwrap();
    let observer = Arc::new(Panics::default());
    let options = RunOptions { observer: Some(observer.clone()), ..RunOptions::default() };
    let summary = plans.run_all_ready(options).await.unwrap();
    assert_eq!((summary.exit, summary.observer_error.as_deref()), (0, Some("the observer")));
    assert_eq!(plans.blocking().get_task("b").unwrap().status, Status::Done);
    let heard = observer.0.lock().unwrap();
    assert!(
        matches!(heard.last(), Some(RunEvent::CallEnded { task, .. }) if task.as_str() == "a"),
        "{heard:?}"
    );
}

#[derive(Debug)]
struct Flaky(ToolSpec, AtomicU32);

#[async_trait]
impl Tool for Flaky {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: CallContext, _: Value) -> Result<Value, ToolError> {
        match self.1.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Err(ToolError::failed("not yet")),
            _ => Ok(Value::Null),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pauses_take_no_real_time_where_time_is_paused() {
    let tool = Flaky(ToolSpec::new("flaky", "x", json!({"type": "object"})), AtomicU32::new(0));
    let builder = Taskpawl::builder(":memory:").supervision(Supervision::Off).sandbox(SandboxSettings::off());
    let plans = builder.tool(Arc::new(tool)).open().unwrap();
    plans
        .blocking()
        .apply_text("tasks: [{id: s, retry: {attempts: 3, delay: 1h}, call: {flaky: {}}}]", "p")
        .unwrap();
    let (began, paused) = (Instant::now(), tokio::time::Instant::now());
    let summary = plans.run_all_ready(RunOptions::default()).await.unwrap();
    assert_eq!(summary.exit, 0);
    // Far above the real time of a run, and far below its pauses.
    assert!(began.elapsed() < Duration::from_secs(60), "{:?} of real time", began.elapsed());
    assert!(paused.elapsed() > Duration::from_secs(3600), "{:?} of paused time", paused.elapsed());
}
