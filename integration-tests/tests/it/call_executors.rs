//! Calls that another process has sent: each ticket starts a tool once, also after a restart of the worker.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use integration_tests::faults;
use serde_json::json;
use taskpawl::tools::{CallContext, ToolError};
use taskpawl::typed::FnTool;
use taskpawl::{
    LocalExecutor, LocalOptions, Offer, SandboxSettings, SentCall, SentOutcome, Taskpawl, Ticket,
};
use tokio::sync::Semaphore;

/// A worker with one tool, which counts its starts and then waits for a permit.
struct Worker {
    executor: LocalExecutor,
    starts: Arc<AtomicU32>,
    gate: Arc<Semaphore>,
}

impl Worker {
    async fn open(directory: &Path) -> Self {
        let (starts, gate) = (Arc::new(AtomicU32::new(0)), Arc::new(Semaphore::new(0)));
        let (counter, permits) = (Arc::clone(&starts), Arc::clone(&gate));
        let hold = FnTool::new("hold", "Waits.", move |_: CallContext, _: BTreeMap<String, u8>| {
            let (counter, permits) = (Arc::clone(&counter), Arc::clone(&permits));
            async move {
                counter.fetch_add(1, Ordering::SeqCst);
                permits.acquire().await.unwrap().forget();
                Ok::<(), ToolError>(())
            }
        });
        let builder = Taskpawl::builder(":memory:").root(directory).files(directory);
        let plans = builder.sandbox(SandboxSettings::off()).tool(hold).open().unwrap();
        let offer = Offer {
            worker: "w".to_owned(),
            slots: 8,
            labels: BTreeSet::new(),
            tools: ["hold".to_owned()].into(),
        };
        let executor =
            LocalExecutor::open(plans.engine(), LocalOptions { offer, remote: None }).await.unwrap();
        Self { executor, starts, gate }
    }

    async fn until_started(&self, count: u32) {
        while self.starts.load(Ordering::SeqCst) < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn call(start: u32) -> SentCall {
    serde_json::from_value(json!({
        "ticket": Ticket { key: "project/a/c1/0".to_owned(), start }, "run": "r", "task": "a", "attempt": start,
        "generation": 0, "round": 0, "args": {}, "isRepeatable": false,
        "call": {"id": "c1", "spec": {"toolName": "hold"}, "origin": "library", "body": {"status": "running", "attempts": start}},
    }))
    .unwrap()
}

/// A ticket that comes again while its call runs joins it.
async fn joins(directory: &Path) -> bool {
    let worker = Worker::open(directory).await;
    let both = async {
        tokio::join!(worker.executor.run(call(1), "one", false), worker.executor.run(call(1), "one", false),)
    };
    let release = async {
        worker.until_started(1).await;
        worker.gate.add_permits(2);
    };
    let ((first, second), ()) = tokio::join!(both, release);
    matches!(first.outcome, SentOutcome::Succeeded { .. }) && first == second
}

/// A ticket that had begun before a restart does not start again.
async fn remembers(directory: &Path) -> bool {
    let worker = Worker::open(directory).await;
    worker.gate.add_permits(1);
    worker.executor.run(call(1), "one", true).await;
    worker.executor.close().await;
    let worker = Worker::open(directory).await;
    worker.gate.add_permits(1);
    worker.executor.run(call(1), "one", true).await;
    worker.starts.load(Ordering::SeqCst) == 0
}

/// A newer start of a call ends an older one.
async fn fences(directory: &Path) -> bool {
    let worker = Worker::open(directory).await;
    let newer = async {
        worker.until_started(1).await;
        let newer = worker.executor.run(call(2), "two", false);
        let release = async {
            worker.until_started(2).await;
            worker.gate.add_permits(2);
        };
        tokio::join!(newer, release).0
    };
    let (older, newer) = tokio::join!(worker.executor.run(call(1), "one", false), newer);
    matches!(older.outcome, SentOutcome::Interrupted { .. })
        && matches!(newer.outcome, SentOutcome::Succeeded { .. })
}

#[tokio::test]
async fn calls_of_other_processes_start_once() {
    faults::enable_from_environment();
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| {
        let place = directory.path().join(name);
        std::fs::create_dir_all(place.join("runs")).unwrap();
        place
    };
    let limit = Duration::from_secs(30);
    assert!(tokio::time::timeout(limit, joins(&place("a"))).await.unwrap(), "not joined");
    assert!(tokio::time::timeout(limit, remembers(&place("b"))).await.unwrap(), "started again");
    assert!(tokio::time::timeout(limit, fences(&place("c"))).await.unwrap(), "not fenced");
}

#[test]
fn workers_without_a_table_a_record_or_a_fence_are_noticed() {
    for (fault, noticed) in
        [("NoTable", "not joined"), ("NoStartRecord", "started again"), ("NoFencing", "not fenced")]
    {
        let mut scenarios = Command::new(std::env::current_exe().unwrap());
        scenarios.args(["--exact", "call_executors::calls_of_other_processes_start_once", "--nocapture"]);
        let output = scenarios.env(faults::VARIABLE, fault).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(noticed), "{fault}: {said}");
    }
}
