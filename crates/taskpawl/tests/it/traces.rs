//! Spans of runs, tasks and calls, and the module for tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use taskpawl::model::task::Status;
use taskpawl::prelude::*;
use taskpawl::testing::{Crash, Scripted, assert_status, memory};
use taskpawl::tools::Hints;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Records spans as paths, with their fields.
#[derive(Debug, Default)]
struct Spans {
    next: AtomicU64,
    current: Mutex<Vec<Id>>,
    texts: Mutex<BTreeMap<u64, String>>,
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if !["run", "message"].contains(&field.name()) {
            write!(self.0, " {}={value:?}", field.name()).unwrap();
        }
    }
}

#[derive(Clone)]
struct Recorder(Arc<Spans>);

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("taskpawl")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut texts = self.0.texts.lock().unwrap();
        let current = self.0.current.lock().unwrap().last().cloned();
        let parent = span.parent().cloned().or_else(|| current.filter(|_| span.is_contextual()));
        let above = parent.and_then(|parent| texts.get(&parent.into_u64()).cloned());
        let above = above.map(|above| above.split(' ').next().unwrap().to_owned() + "/").unwrap_or_default();
        let mut text = format!("{above}{}", span.metadata().name());
        span.record(&mut Fields(&mut text));
        texts.insert(id, text);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut Fields(self.0.texts.lock().unwrap().get_mut(&span.into_u64()).unwrap()));
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        self.0.current.lock().unwrap().push(span.clone());
    }

    fn exit(&self, _span: &Id) {
        self.0.current.lock().unwrap().pop();
    }
}

/// Opens a span of its own.
#[tool]
async fn work(cx: &CallContext) -> Result<(), ToolError> {
    let _guard = tracing::info_span!(target: "taskpawl-test", "inner", task = cx.task).entered();
    Err(ToolError::failed("no"))
}

#[test]
fn a_run_has_a_span_for_each_task_and_call() {
    let spans = Arc::new(Spans::default());
    // With a single subscriber in the process, `tracing` asks the subscriber of the thread that first reaches a span, which may belong to
    // another test.
    let _second = tracing::Dispatch::new(Recorder(Arc::default()));
    let plans = memory().tool(work).open().unwrap();
    plans.blocking().apply_text("tasks: [{id: a, call: {work: {}}}]", "p").unwrap();
    tracing::subscriber::with_default(Recorder(Arc::clone(&spans)), || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { plans.run().await.unwrap() })
    });
    let texts: Vec<String> = spans.texts.lock().unwrap().values().cloned().collect();
    assert_eq!(
        texts,
        [
            "run",
            "run/task task=a attempt=1",
            "run/task/call call=c1 tool=\"work\" start=1 error=\"no\" status=\"failed\"",
            "run/task/call/inner task=\"a\"",
        ]
    );
}

#[tokio::test]
async fn a_crash_before_a_call_has_no_effect_and_one_after_it_is_for_a_person() {
    for (crash, effects) in [(Crash::before("pay"), 0), (Crash::after("pay"), 1)] {
        let pay = Scripted::new("pay").hints(Hints::default());
        let plans = memory().tool(&pay).layer(crash.clone()).open().unwrap();
        plans.apply("{name: p, tasks: [{id: a, call: {pay: {}}}]}").await.unwrap();
        crash.run(&plans).await;
        assert_eq!(pay.calls().len(), effects);
        // In both cases only a person can know.
        assert!(matches!(plans.run().await.unwrap().outcome(), Outcome::Waiting { .. }));
        assert_status(&plans, "a", Status::Blocked);
        assert_eq!(pay.calls().len(), effects);
    }
}

/// Charges once, and counts further at each start.
#[tool(idempotent)]
async fn charge(cx: &CallContext) -> Result<u64, ToolError> {
    let charged = cx.get::<Arc<AtomicU64>>()?;
    let count = || async { Ok::<_, ToolError>(charged.fetch_add(1, Ordering::SeqCst) + 1) };
    let first = cx.step("charge", count()).await?;
    let starts = cx.last_details::<u64>().await?.unwrap_or_default() + 1;
    cx.heartbeat(starts).await?;
    Ok(first * 10 + starts)
}

#[tokio::test]
async fn a_recorded_step_is_not_done_again_after_a_crash() {
    let charged = Arc::new(AtomicU64::new(0));
    let crash = Crash::after("charge");
    let plans = memory().tool(charge).data(Arc::clone(&charged)).layer(crash.clone()).open().unwrap();
    plans.apply(Plan::new("p").task("a", |t| t.call(charge::with()))).await.unwrap();
    crash.run(&plans).await;
    plans.run().await.unwrap();
    assert_eq!((plans.result::<u64>("a").await.unwrap(), charged.load(Ordering::SeqCst)), (12, 1));
    plans.manage(|manager| manager.reopen(&["a".to_owned()], false)).await.unwrap();
    plans.run().await.unwrap();
    assert_eq!(charged.load(Ordering::SeqCst), 2, "`reopen` starts over");
}

#[tokio::test(start_paused = true)]
async fn a_scripted_tool_answers_in_order_and_time_passes_at_once() {
    let fetch = Scripted::new("fetch").fails(ToolError::failed("busy")).hangs().returns("page");
    let plans = memory().tool(&fetch).open().unwrap();
    let task = "{id: a, call: {fetch: {n: 1}}, retry: {attempts: 3, delay: 1h, maxDelay: 5h}}";
    plans.apply(format!("{{name: p, tasks: [{task}]}}")).await.unwrap();
    plans.run().await.unwrap();
    assert_eq!(plans.result::<String>("a").await.unwrap(), "page");
    assert_eq!(fetch.calls().len(), 3);
}
