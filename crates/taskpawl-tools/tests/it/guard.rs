use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use taskpawl_tools::{CallContext, Progress, Registry, Tool, ToolError, ToolSpec, call_guarded};
use tokio::time::Instant;

use crate::support::Project;

/// Tool with the behaviour that its test selects.
#[derive(Debug)]
struct Odd {
    spec: ToolSpec,
    behaviour: Behaviour,
}

#[derive(Clone, Copy, Debug)]
enum Behaviour {
    Panic,
    PanicLater,
    NeverEnd,
}

#[async_trait]
impl Tool for Odd {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _cx: CallContext, args: Value) -> Result<Value, ToolError> {
        match self.behaviour {
            Behaviour::Panic => panic!("no\nluck \u{1b}[1mtoday"),
            Behaviour::PanicLater => {
                tokio::task::yield_now().await;
                std::panic::panic_any(args)
            }
            Behaviour::NeverEnd => std::future::pending().await,
        }
    }
}

async fn call(behaviour: Behaviour, cx: CallContext, args: Value) -> ToolError {
    let spec =
        ToolSpec::new("odd", "Behaves oddly.", json!({"type": "object", "additionalProperties": false}));
    let mut registry = Registry::new();
    registry.register(Arc::new(Odd { spec, behaviour })).unwrap();
    call_guarded(registry.get("odd").unwrap().clone(), cx, args).await.unwrap_err()
}

fn context() -> CallContext {
    CallContext::new("/nowhere", "/nowhere/output")
}

#[tokio::test]
async fn a_tool_that_panics_is_a_failed_call() {
    let error = call(Behaviour::Panic, context(), json!({})).await;
    assert_eq!((error.class(), error.to_string().as_str()), ("panic", "the tool panicked: no luck today"));
    let error = call(Behaviour::PanicLater, context(), json!({})).await;
    assert_eq!(error.to_string(), "the tool panicked: no message");
}

#[tokio::test]
async fn arguments_are_checked_before_the_call() {
    let error = call(Behaviour::Panic, context(), json!({"a": 1})).await;
    assert_eq!(
        error.to_string(),
        "`odd` refuses its arguments: `args.a` is not a known field; there are no fields"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ignores_its_deadline_is_dropped() {
    let mut cx = context();
    cx.deadline = Some(Instant::now() + Duration::from_secs(60));
    assert_eq!(call(Behaviour::NeverEnd, cx, json!({})).await.class(), "timeout");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ignores_its_cancellation_is_dropped() {
    let cx = context();
    let cancel = cx.cancel.clone();
    let later = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
    };
    let (error, ()) = tokio::join!(call(Behaviour::NeverEnd, cx, json!({})), later);
    assert_eq!(error.class(), "cancelled");
}

#[tokio::test]
async fn a_call_that_is_late_or_cancelled_before_its_start_does_nothing() {
    let mut project = Project::new();
    project.cx.deadline = Some(Instant::now());
    let args = json!({"path": "a", "content": ""});
    assert_eq!(project.call("write_file", args.clone()).await.unwrap_err().class(), "timeout");
    project.cx.cancel.cancel();
    assert_eq!(project.call("write_file", args).await.unwrap_err().class(), "cancelled");
    assert!(!project.path("a").exists());
}

#[tokio::test(start_paused = true)]
async fn sleep_waits_and_wakes_early_when_cancelled() {
    let project = Project::new();
    let start = Instant::now();
    assert_eq!(project.call("sleep", json!({"duration": "1.5s"})).await.unwrap(), Value::Null);
    assert_eq!(start.elapsed().as_secs(), 1);

    let sleep = project.call("sleep", json!({"duration": "2h"}));
    let later = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        project.cx.cancel.cancel();
    };
    let (slept, ()) = tokio::join!(sleep, later);
    assert_eq!(slept.unwrap_err().class(), "cancelled");
}

#[tokio::test(start_paused = true)]
async fn sleep_ends_at_its_deadline() {
    let mut project = Project::new();
    project.cx.deadline = Some(Instant::now() + Duration::from_secs(5));
    let start = Instant::now();
    assert_eq!(project.call("sleep", json!({"duration": "2h"})).await.unwrap_err().class(), "timeout");
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[tokio::test]
async fn log_reaches_the_progress_sink_and_fail_fails() {
    let mut project = Project::new();
    assert_eq!(project.call("log", json!({"message": "nobody"})).await.unwrap(), Value::Null);
    let messages = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&messages);
    project.cx.progress = Some(Arc::new(move |progress| sink.lock().unwrap().push(progress)));
    assert_eq!(project.call("log", json!({"message": "hello"})).await.unwrap(), Value::Null);
    assert_eq!(*messages.lock().unwrap(), [Progress::Message("hello".to_owned())]);
    assert_eq!(project.refusal("fail", json!({"message": "as planned"})).await, "failed: as planned");
}
