//! Test support: a plan in memory, tools with fixed behaviour, and waits with a timeout.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use taskpawl_engine::{Engine, KeySource, Project, RunControl, RunOptions, RunSummary};
use taskpawl_manager::{ApplyOptions, Ending, Manager};
use taskpawl_model::plan::parse_plan;
use taskpawl_model::task::PolicyHook;
use taskpawl_model::task::Task;
use taskpawl_model::value::Selector;
use taskpawl_model::view::Query;
use taskpawl_store::{Location, Store, open};
use taskpawl_tools::{
    CallContext, CommandTool, HttpAccess, Registry, Supervision, Tool, ToolError, ToolSpec,
};
use tokio::sync::{Mutex as AsyncMutex, Semaphore, mpsc};

/// A tool that reports each start. Its behaviour follows from its name: `hold` waits for a release, `flaky` and `lost`
/// fail only on the first start, and all others end immediately.
#[derive(Debug)]
struct Told {
    spec: ToolSpec,
    bench: Arc<Bench>,
}

/// State that the tools of all engines of a test share.
#[derive(Debug)]
struct Bench {
    starts: Mutex<BTreeMap<String, u32>>,
    started: mpsc::UnboundedSender<String>,
    gate: Semaphore,
}

#[async_trait]
impl Tool for Told {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: CallContext, _: Value) -> Result<Value, ToolError> {
        let name = format!("{}/{}", cx.task, cx.call);
        let count = {
            let mut starts = self.bench.starts.lock().unwrap();
            let count = starts.entry(name.clone()).or_default();
            *count += 1;
            *count
        };
        self.bench.started.send(name.clone()).unwrap();
        match self.spec.name.as_str() {
            "hold" => {
                let permit = cx.until_interrupted(self.bench.gate.acquire()).await?;
                permit.unwrap().forget();
                Ok(json!("held"))
            }
            "bad" => Err(ToolError::failed("as told")),
            "flaky" if count == 1 => Err(ToolError::failed("the first time")),
            "panic" => panic!("as told"),
            "spend" => {
                cx.report_usage(json!({"cost": 0.5, "tokens": 10}));
                cx.report_usage(json!({"cost": 0.5}));
                Ok(Value::Null)
            }
            "quits" => Err(ToolError::Cancelled { result: None }),
            "lost" if count == 1 => Err(ToolError::Lost { message: "its server ended: no disk".to_owned() }),
            "deep" => Ok((0..100).fold(Value::Null, |value, _| json!([value]))),
            "big" => Ok(json!({"text": "x".repeat(300 * 1024)})),
            _ => Ok(json!({"key": cx.idempotency_key})),
        }
    }
}

pub(crate) struct Lab {
    pub(crate) manager: Manager,
    pub(crate) engine: Engine,
    pub(crate) files: tempfile::TempDir,
    bench: Arc<Bench>,
    started: AsyncMutex<mpsc::UnboundedReceiver<String>>,
}

impl Lab {
    /// Returns a lab whose store contains the tasks of `plan` as plan `p`.
    pub(crate) fn new(plan: &str) -> Self {
        Self::on(open(&Location::Memory), plan)
    }

    /// Like [`new`](Self::new), on the given empty store.
    pub(crate) fn on(store: Arc<dyn Store>, plan: &str) -> Self {
        let files = tempfile::tempdir().unwrap();
        let (sender, receiver) = mpsc::unbounded_channel();
        let bench = Bench { starts: Mutex::default(), started: sender, gate: Semaphore::new(0) };
        let bench = Arc::new(bench);
        let engine = new_engine(Manager::new(Arc::clone(&store), "ann"), &bench, files.path());
        let lab = Self {
            manager: Manager::new(store, "tester"),
            engine,
            files,
            bench,
            started: AsyncMutex::new(receiver),
        };
        lab.apply(plan, "p");
        lab
    }

    pub(crate) fn apply(&self, plan: &str, name: &str) {
        let plan = parse_plan(plan).unwrap_or_else(|errors| panic!("{errors}"));
        self.manager.apply(plan, name, ApplyOptions::default()).unwrap();
    }

    /// Returns another engine on the same store, which behaves like that of another process.
    pub(crate) fn other_engine(&self) -> Engine {
        new_engine(Manager::new(Arc::clone(self.manager.store()), "bob"), &self.bench, self.files.path())
    }

    /// Sets the policy of the lab's engine.
    pub(crate) fn judged_by(mut self, policy_hook: Arc<dyn PolicyHook>) -> Self {
        self.manager = self.manager.with_policy_hook(Arc::clone(&policy_hook));
        let manager = Manager::new(Arc::clone(self.manager.store()), "ann").with_policy_hook(policy_hook);
        self.engine = new_engine(manager, &self.bench, self.files.path());
        self
    }

    pub(crate) async fn run(&self) -> RunSummary {
        self.run_with(RunOptions::default()).await
    }

    pub(crate) async fn run_jobs(&self, jobs: usize) -> RunSummary {
        self.run_with(RunOptions { jobs: Some(jobs), ..RunOptions::default() }).await
    }

    pub(crate) async fn run_only(&self, only: &str) -> RunSummary {
        let only = vec![only.parse::<Selector>().unwrap()];
        self.run_with(RunOptions { only, ..RunOptions::default() }).await
    }

    pub(crate) async fn run_with(&self, options: RunOptions) -> RunSummary {
        within(Box::pin(self.engine.run_all_ready(options))).await.unwrap()
    }

    /// Waits until a call starts, and returns it as `task/call`.
    pub(crate) async fn next_start(&self) -> String {
        within(async { self.started.lock().await.recv().await.unwrap() }).await
    }

    pub(crate) fn release(&self, calls: usize) {
        self.bench.gate.add_permits(calls);
    }

    /// Returns the number of starts of each call.
    pub(crate) fn starts(&self) -> String {
        let starts = self.bench.starts.lock().unwrap();
        starts.iter().map(|(call, count)| format!("{call}:{count}")).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn task(&self, id: &str) -> Task {
        self.manager.get(id).unwrap()
    }

    /// Returns the status of each task; blocked tasks include the kind of their reason.
    pub(crate) fn states(&self) -> String {
        let tasks = self.manager.list(&Query::default()).unwrap().tasks;
        let words = tasks.iter().map(|task| {
            let reason = task.blocked_reason.as_ref().map(|reason| format!("{{{}}}", reason.kind()));
            format!("{}={}{}", task.id, task.status, reason.unwrap_or_default())
        });
        words.collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn done(&self, id: &str) {
        self.manager.done(&[id.to_owned()], Ending::default()).unwrap();
    }

    /// Waits until the task has this status.
    pub(crate) async fn until(&self, id: &str, status: &str) {
        within(async {
            while self.task(id).status.as_str() != status {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// Waits until all calls of a cancelled task have ended.
    pub(crate) async fn until_its_calls_ended(&self, id: &str) {
        within(async {
            while self.task(id).ended_by.is_some() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

fn new_engine(manager: Manager, bench: &Arc<Bench>, files: &Path) -> Engine {
    let mut tools = Registry::builtin_reaching(HttpAccess::only(["127.0.0.1"]).unwrap());
    for name in ["ok", "bad", "hold", "flaky", "panic", "quits", "lost", "deep", "big", "spend"] {
        let spec = ToolSpec::new(name, "Does as it is told.", json!({"type": "object"}));
        tools.register(Arc::new(Told { spec, bench: Arc::clone(bench) })).unwrap();
    }
    let described =
        json!({"description": "Prints 400 lines.", "argv": ["seq", "-f", "line %01000g", "1", "400"]});
    tools.register(Arc::new(CommandTool::new("lines", &described).unwrap())).unwrap();
    let project = Project {
        keys: KeySource::of_project("project"),
        root: files.to_owned(),
        files: files.join("files"),
        host: "here".to_owned(),
    };
    let engine = Engine::new(manager, Arc::new(tools), project);
    // A supervisor would execute the test binary again, which would run the tests again.
    engine.with_supervision(Supervision::Off)
}

pub(crate) fn with_control() -> (RunOptions, RunControl) {
    let control = RunControl::default();
    (RunOptions { control: control.clone(), ..RunOptions::default() }, control)
}

/// Waits for a future with a timeout, so that a test that hangs fails.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("should end within a minute")
}
