//! Random plans, run to their end: every task ends as the reference interpreter says, and every call starts exactly once.
//!
//! A failing seed is printed; `SEED=17 cargo test -p taskpawl-engine random` runs that one alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use taskpawl_engine::{Engine, Project, RunOptions};
use taskpawl_manager::{ApplyOptions, Ending, Manager};
use taskpawl_model::{Assumed, ForecastOptions, Hypothesis, Query, Status, Work};
use taskpawl_store::{Location, open};
use taskpawl_testkit::{Random, RandomPlan, Script, broken_invariants, differences, interpret};
use taskpawl_tools::{CallContext, Registry, Tool, ToolError, ToolSpec};

const PLANS: u64 = 10_000;

type Starts = BTreeMap<(usize, usize), usize>;

/// Ends as its arguments say, after as many pauses, and writes down each start.
#[derive(Debug)]
struct Scripted {
    spec: ToolSpec,
    starts: Mutex<Starts>,
}

impl Scripted {
    fn new() -> Self {
        let spec = ToolSpec::new("scripted", "Ends as it is told.", json!({"type": "object"}));
        Self { spec, starts: Mutex::default() }
    }
}

fn number(id: &str) -> usize {
    id[1..].parse().unwrap()
}

#[async_trait]
impl Tool for Scripted {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        *self.starts.lock().unwrap().entry((number(&cx.task), number(&cx.call))).or_default() += 1;
        for _ in 0..args["pauses"].as_u64().unwrap() {
            tokio::task::yield_now().await;
        }
        if args["good"] == true { Ok(Value::Null) } else { Err(ToolError::failed("as told")) }
    }
}

struct Harness<'p> {
    plan: &'p RandomPlan,
    manager: Manager,
    engine: Engine,
    tool: Arc<Scripted>,
    random: Random,
}

impl<'p> Harness<'p> {
    fn new(plan: &'p RandomPlan, seed: u64, files: &Path) -> Self {
        let manager = Manager::new(open(&Location::Memory), "tester");
        manager.apply(plan.to_plan("scripted"), "random", ApplyOptions::default()).unwrap();
        let tool = Arc::new(Scripted::new());
        let mut tools = Registry::new();
        tools.register(Arc::clone(&tool) as Arc<dyn Tool>).unwrap();
        let project = Project {
            id: "p".to_owned(),
            root: files.to_owned(),
            files: files.to_owned(),
            host: "here".to_owned(),
        };
        let engine = Engine::new(manager.clone(), Arc::new(tools), project);
        Self { plan, manager, engine, tool, random: Random::new(seed ^ 0xfeed) }
    }

    async fn run_to_the_end(&mut self) {
        // Somebody may be faster than the first run.
        while self.random.chance(30) && self.end_a_manual_task() {}
        loop {
            let jobs = Some(1 + self.random.below(4));
            self.engine.run_all_ready(RunOptions { jobs, ..RunOptions::default() }).await.unwrap();
            if !self.end_a_manual_task() {
                return;
            }
            while self.random.chance(50) && self.end_a_manual_task() {}
        }
    }

    /// Ends one of the manual tasks that are ready; false when there is none.
    fn end_a_manual_task(&mut self) -> bool {
        let query = Query { ready: Some(vec![Work::Manual]), ..Query::default() };
        let ready = self.manager.list(&query).unwrap().tasks;
        if ready.is_empty() {
            return false;
        }
        let id = ready[self.random.below(ready.len())].id.to_string();
        let script = &self.plan.tasks[number(&id)].script;
        let Script::Manual { good } = script else { panic!("`{id}` is no manual task: {script:?}") };
        if *good {
            self.manager.done(&[id], Ending::default()).unwrap();
        } else {
            self.manager.fail(&[id], Ending::default()).unwrap();
        }
        true
    }

    fn states(&self) -> BTreeMap<usize, Status> {
        let tasks = self.manager.list(&Query::default()).unwrap().tasks;
        tasks.iter().map(|task| (number(task.id.as_str()), task.status)).collect()
    }

    fn starts(&self) -> Starts {
        self.tool.starts.lock().unwrap().clone()
    }
}

/// Runs the plan of a seed and returns what is otherwise than the interpreter says of `told`.
async fn check(seed: u64, told: impl FnOnce(&mut RandomPlan), files: &Path) -> Vec<String> {
    let plan = RandomPlan::new(seed);
    let mut harness = Harness::new(&plan, seed, files);
    harness.run_to_the_end().await;
    let mut changed = plan.clone();
    told(&mut changed);
    let mut lines = differences(&interpret(&changed), &harness.states(), &harness.starts());
    lines.extend(harness.manager.store().view(|view| broken_invariants(view)).unwrap());
    lines
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

#[test]
fn ten_thousand_random_plans_end_as_the_interpreter_says() {
    let files = tempfile::tempdir().unwrap();
    #[expect(clippy::disallowed_methods, reason = "the one way to tell a test what to replay")]
    let only = std::env::var("SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    block_on(async {
        for seed in only.map_or(0..PLANS, |seed| seed..seed + 1) {
            let lines = check(seed, |_| {}, files.path()).await;
            let plan = || format!("{:#?}", RandomPlan::new(seed));
            assert!(lines.is_empty(), "SEED={seed}\n{}\n{}", lines.join("\n"), plan());
        }
    });
}

/// What a forecast takes as given is how those tasks ended that nobody can foresee: those that failed, and those of people.
#[test]
fn a_forecast_ends_as_the_run_does() {
    const FORETOLD: u64 = 1_000;
    let files = tempfile::tempdir().unwrap();
    for seed in 0..FORETOLD {
        let plan = RandomPlan::new(seed);
        let mut harness = Harness::new(&plan, seed, files.path());
        block_on(harness.run_to_the_end());
        let mut what_if = Vec::new();
        for (position, status) in harness.states() {
            let how = match (status, &plan.tasks[position].script) {
                (Status::Failed, _) => Assumed::Fail,
                (Status::Done, Script::Manual { .. }) => Assumed::Done,
                _ => continue,
            };
            what_if.push(Hypothesis { how, task: format!("t{position}") });
        }
        let before = Harness::new(&plan, seed, files.path());
        let options = ForecastOptions { jobs: 3, what_if, ..ForecastOptions::default() };
        let forecast = before.manager.forecast(&options).unwrap();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for status in harness.states().values() {
            *counts.entry(status.as_str().to_owned()).or_default() += 1;
        }
        assert_eq!(forecast.counts, counts, "seed {seed}: {:#?}\n{forecast:#?}", harness.states());
        let left: u64 =
            counts.get("todo").copied().unwrap_or(0) + counts.get("blocked").copied().unwrap_or(0);
        assert_eq!(forecast.left.len() as u64, left, "seed {seed}");
        let summary = block_on(harness.engine.run_all_ready(RunOptions::default())).unwrap();
        assert_eq!(forecast.exit, summary.exit, "seed {seed}");
    }
}

/// The check can fail: told that one thing ends otherwise than it does, the interpreter disagrees with the run.
#[test]
fn a_plan_that_ends_otherwise_is_noticed() {
    let files = tempfile::tempdir().unwrap();
    let noticed = block_on(async {
        let mut noticed = 0;
        for seed in 0..100 {
            let expected = interpret(&RandomPlan::new(seed));
            let Some((position, _)) = expected.starts.first().copied() else { continue };
            let turn = |plan: &mut RandomPlan| {
                if let Script::Calls { calls, .. } = &mut plan.tasks[position].script {
                    let all_good = calls.iter().all(|call| call.good);
                    for call in calls {
                        call.good = !all_good;
                    }
                }
            };
            let lines = check(seed, turn, files.path()).await;
            assert!(!lines.is_empty(), "seed {seed}: t{position} ended otherwise, and nobody noticed");
            noticed += 1;
        }
        noticed
    });
    assert!(noticed > 50, "{noticed}");
}
