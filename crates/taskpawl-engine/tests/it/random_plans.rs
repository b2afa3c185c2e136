//! Random plans with all constructs, run to their end. Every task has to end as the reference interpreter predicts,
//! every call is started as often, and it returns the predicted result.
//!
//! Time is simulated, so delays cost nothing. A failing seed is printed; `SEED=17 cargo test -p taskpawl-engine random`
//! runs only that one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use taskpawl_engine::{CallExecutor, Engine, KeySource, Project, RunOptions};
use taskpawl_manager::{ApplyOptions, Approving, Ending, Manager, Source};
use taskpawl_model::command::Request;
use taskpawl_model::insight::{Assumed, ForecastOptions, Hypothesis};
use taskpawl_model::task::{BlockedReason, CallStatus, Status, Work};
use taskpawl_model::value::TaskId;
use taskpawl_model::value::Timestamp;
use taskpawl_model::view::{Query, View, ViewResult};
use taskpawl_store::{Location, Outcome, Reply, Store, StoreError, open};
use taskpawl_testkit::harness::{first_failure, replayed_seed, seeds};
use taskpawl_testkit::{
    CallName, Expected, Found, Random, RandomCall, RandomPlan, Script, TOOL, Verdict, broken_invariants,
    differences, interpret,
};
use taskpawl_tools::{CallContext, Registry, Tool, ToolError, ToolSpec};

use crate::mutations::MUTATIONS;
use crate::pool::Pool;

const PLANS: u64 = 1_000;
const MORE_PLANS: u64 = 100_000;

/// Number of plans that are searched for one that a mutation changes.
const SEARCHED: u64 = 10_000;

/// One of this many plans is run twice, to test the cache.
const TWICE: u64 = 8;

/// Situations that have to occur at least twice in a thousand plans. Without them the test would prove nothing.
const COVERED: &[&str] = &[
    "condition holds",
    "condition does not hold",
    "condition cannot be evaluated",
    "call condition does not hold",
    "argument is missing",
    "list of items",
    "list from a result",
    "empty list",
    "no list",
    "failing item",
    "rounds that have enough",
    "rounds that never have enough",
    "retry that helps",
    "retry that does not help",
    "retry that does not match",
    "parallel",
    "timeout",
    "task timeout",
    "granted",
    "granted call",
    "answered question",
    "rejected",
    "rejected call",
    "expired",
    "made tasks",
    "refused circle",
    "resources",
    "writes",
    "cached",
];

/// The paused clock of the runtime: it advances whenever all tasks wait for a timer.
#[derive(Debug)]
struct PausedSource(tokio::time::Instant);

impl Source for PausedSource {
    fn now(&self) -> Timestamp {
        let millis = i64::try_from(self.0.elapsed().as_millis()).unwrap();
        Timestamp::from_timestamp_millis(1_893_456_000_000 + millis).unwrap()
    }

    fn new_id(&self) -> String {
        let mut random = Random::new(u64::try_from(self.0.elapsed().as_nanos()).unwrap());
        format!("{:016x}{:016x}", random.next_u64(), random.next_u64())
    }
}

/// Commits on the calling thread. While another thread committed, the paused clock would run on.
#[derive(Debug)]
struct InPlace(Arc<dyn Store>);

impl Store for InPlace {
    fn read(&self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
        self.0.read(look)
    }

    fn submit(&self, requests: Vec<Request>, reply: Reply) {
        reply(self.0.write(requests));
    }

    fn write(&self, requests: Vec<Request>) -> Result<Vec<Outcome>, StoreError> {
        self.0.write(requests)
    }

    fn wait_change(&self, since: u64, timeout: Duration) -> Result<u64, StoreError> {
        self.0.wait_change(since, timeout)
    }

    fn warnings(&self) -> Result<Vec<String>, StoreError> {
        self.0.warnings()
    }
}

/// A tool that ends as its arguments say, after the given number of yields, and logs each start.
#[derive(Debug)]
struct Scripted {
    spec: ToolSpec,
    plan: Arc<RandomPlan>,
    manager: Manager,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    starts: BTreeMap<CallName, u32>,
    /// Tasks with running calls, and their number.
    running: BTreeMap<String, u32>,
    /// Violations of resource limits.
    broken: Vec<String>,
}

impl Scripted {
    /// Returns the number of completed rounds of the task, and of failures of the call in this round.
    fn behind(&self, name: &CallName) -> (u32, u32) {
        let look = |view: &dyn View| {
            let key = view.key(&name.0)?.unwrap();
            let round = view.task(key)?.unwrap().body.progress.round;
            let calls = view.calls(key)?;
            let call = calls.into_iter().find(|call| call.id.as_str() == name.1).unwrap();
            Ok((round, call.body.failures))
        };
        self.manager.store().view(look).unwrap()
    }

    fn begin(&self, name: &CallName) {
        let mut log = self.log.lock().unwrap();
        *log.starts.entry(name.clone()).or_default() += 1;
        *log.running.entry(name.0.clone()).or_default() += 1;
        let running: Vec<String> = log.running.keys().cloned().collect();
        log.broken.extend(self.plan.broken_limits(&running));
    }

    fn end(&self, name: &CallName) {
        let mut log = self.log.lock().unwrap();
        let count = log.running.get_mut(&name.0).unwrap();
        *count -= 1;
        if *count == 0 {
            log.running.remove(&name.0);
        }
    }
}

#[async_trait]
impl Tool for Scripted {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let name = (cx.task.clone(), cx.call.clone());
        self.begin(&name);
        for _ in 0..args["pauses"].as_u64().unwrap() {
            tokio::task::yield_now().await;
        }
        let (round, failures) = self.behind(&name);
        let ended = match RandomCall::play(&args, round, failures) {
            Ok(result) => Ok(result),
            Err(class) if class == "timeout" => cx.until_interrupted(std::future::pending()).await,
            Err(class) if class == "io" => Err(ToolError::Io {
                action: "read",
                path: "as-told".into(),
                source: std::io::Error::other("as told"),
            }),
            Err(_) => Err(ToolError::failed("as told")),
        };
        self.end(&name);
        ended
    }
}

struct Harness {
    plan: Arc<RandomPlan>,
    manager: Manager,
    engine: Engine,
    tool: Arc<Scripted>,
    random: Random,
    /// Workers; without them calls run in the process of the run.
    workers: Option<Arc<Pool>>,
}

impl Harness {
    /// Lets calls run on workers from now on, which have a store of their own.
    async fn with_workers(self, files: &Path, count: usize) -> Self {
        let tools = Arc::clone(self.engine.tools());
        let engine = |files: &Path| {
            let source = Arc::new(PausedSource(tokio::time::Instant::now()));
            let manager = Manager::new(open(&Location::Memory), "worker").with_source(source);
            Engine::new(manager, Arc::clone(&tools), project(files))
        };
        let workers = Some(Arc::new(Pool::open(engine, files, count).await));
        Self { workers, ..self }
    }

    fn new(plan: RandomPlan, seed: u64, files: &Path) -> Self {
        let plan = Arc::new(plan);
        let source = Arc::new(PausedSource(tokio::time::Instant::now()));
        let store = Arc::new(InPlace(open(&Location::Memory)));
        let manager = Manager::new(store, "tester").with_source(source);
        let tool = Arc::new(Scripted {
            spec: ToolSpec::new(TOOL, "Ends as it is told.", json!({"type": "object"})),
            plan: Arc::clone(&plan),
            manager: manager.clone(),
            log: Mutex::default(),
        });
        let mut tools = Registry::new();
        tools.register(Arc::clone(&tool) as Arc<dyn Tool>).unwrap();
        let engine = Engine::new(manager.clone(), Arc::new(tools), project(files));
        Self { plan, manager, engine, tool, random: Random::new(seed ^ 0xfeed), workers: None }
    }

    fn apply(&self, fresh: bool) {
        let options = ApplyOptions { fresh, ..ApplyOptions::default() };
        self.manager.apply(self.plan.to_plan(), "random", options).unwrap();
    }

    async fn run_to_the_end(&mut self) {
        // A person may act before the first run starts.
        while self.random.chance(30) && self.act() {}
        loop {
            let jobs = Some(1 + self.random.below(4));
            let elsewhere = self.workers.clone().map(|workers| workers as Arc<dyn CallExecutor>);
            self.engine.run_all_ready(RunOptions { jobs, elsewhere, ..RunOptions::default() }).await.unwrap();
            if self.act() {
                while self.random.chance(50) && self.act() {}
            } else if self.asked().is_empty() {
                return;
            } else {
                // The remaining requests are left to expire.
                tokio::time::advance(Duration::from_secs(2 * 3600)).await;
            }
        }
    }

    /// Performs one of the pending actions of people; false if there is none.
    fn act(&mut self) -> bool {
        let mut ways = [Self::end_a_manual_task, Self::decide_a_question];
        if self.random.chance(50) {
            ways.reverse();
        }
        ways.into_iter().any(|way| way(self))
    }

    /// Ends one of the ready manual tasks; false if there is none.
    fn end_a_manual_task(&mut self) -> bool {
        let query = Query { ready: Some(vec![Work::Manual]), ..Query::default() };
        let ready = self.manager.list(&query).unwrap().tasks;
        let Some(task) = self.random.one_of(&ready) else { return false };
        let script = &self.plan.task(task.id.as_str()).unwrap().script;
        let Script::Manual { good, value } = script else { panic!("`{}`: {script:?}", task.id) };
        let (ids, ending) =
            ([task.id.to_string()], Ending { result: Some(value.clone()), ..Ending::default() });
        if *good {
            self.manager.done(&ids, ending).unwrap();
        } else {
            self.manager.fail(&ids, ending).unwrap();
        }
        true
    }

    /// Returns the tasks that wait for an approval, with the number of the call that it is about.
    fn asked(&self) -> Vec<(TaskId, Option<usize>)> {
        let query = Query { status: vec![Status::Blocked], ..Query::default() };
        let number = |call: &str| call[1..].parse::<usize>().unwrap();
        let mut asked = Vec::new();
        for task in self.manager.list(&query).unwrap().tasks {
            if let Some(BlockedReason::Approval { call, .. }) = task.blocked_reason {
                asked.push((task.id, call.map(|call| number(call.as_str()))));
            }
        }
        asked
    }

    /// Decides about one of the requests that are not meant to expire; false if there is none.
    fn decide_a_question(&mut self) -> bool {
        let mut asked = self.asked();
        let decision = |plan: &RandomPlan, id: &TaskId, call: Option<usize>| {
            let task = plan.task(id.as_str()).unwrap();
            call.map_or(&task.approval, |call| &task.calls()[call].approval).clone().unwrap()
        };
        asked.retain(|(id, call)| decision(&self.plan, id, *call).verdict != Verdict::Expired);
        let Some((id, call)) = self.random.one_of(&asked) else { return false };
        let decision = decision(&self.plan, id, *call);
        let ids = [id.to_string()];
        if let Verdict::Granted(answer) = decision.verdict {
            let answer = decision.is_question.then(|| json!(answer));
            self.manager.approve(&ids, Approving { answer, ..Approving::default() }).unwrap();
        } else {
            self.manager.reject(&ids, None).unwrap();
        }
        true
    }

    fn found(&self) -> Found {
        let mut found = self.manager.store().view(|view| found(view)).unwrap();
        found.starts = self.tool.log.lock().unwrap().starts.clone();
        found
    }
}

fn project(files: &Path) -> Project {
    Project {
        keys: KeySource::of_project("p"),
        root: files.to_owned(),
        files: files.to_owned(),
        host: "here".to_owned(),
    }
}

fn found(view: &dyn View) -> ViewResult<Found> {
    let mut found = Found::default();
    for key in view.find(&Query::default())? {
        let task = view.task(key)?.unwrap();
        found.states.insert(task.id.to_string(), task.body.state.status());
        for call in view.calls(key)?.into_iter().filter(|call| call.body.status == CallStatus::Succeeded) {
            if let Some(result) = call.body.into_inner().result {
                found.results.insert((task.id.to_string(), call.id.to_string()), result);
            }
        }
    }
    Ok(found)
}

/// Returns the expectation for running a plan twice. The second time, tasks with a cache are not executed if they
/// succeeded.
fn twice(plan: &RandomPlan, mut expected: Expected) -> Expected {
    for ((id, _), (least, most)) in &mut expected.starts {
        let is_cached = plan.task(id).is_some_and(|task| task.is_cached);
        if !(is_cached && expected.states[id] == Status::Done) {
            (*least, *most) = (*least * 2, *most * 2);
        }
    }
    expected
}

fn runs_twice(seed: u64) -> bool {
    let makes = |plan: &RandomPlan| plan.tasks.iter().any(|task| task.made_by.is_some());
    seed.is_multiple_of(TWICE) && !makes(&RandomPlan::new(seed))
}

fn expected_of(seed: u64, plan: &RandomPlan) -> Expected {
    let expected = interpret(plan);
    if runs_twice(seed) { twice(plan, expected) } else { expected }
}

/// Returns whether a run that ends as `expected` also satisfies the expectation `told`.
fn is_allowed(expected: &Expected, told: &Expected) -> bool {
    let (states, results) = (expected.states.clone(), expected.results.clone());
    let starts = expected.starts.iter().map(|(name, (least, _))| (name.clone(), *least)).collect();
    differences(told, &Found { states, starts, results }).is_empty()
}

/// Runs the plan of a seed, and returns the differences from the interpretation of `told`.
async fn check(seed: u64, told: &RandomPlan, files: &Path) -> Vec<String> {
    check_on(Harness::new(RandomPlan::new(seed), seed, files), seed, told).await.0
}

/// Does the same as [`check`] in a harness, and returns it as well.
async fn check_on(mut harness: Harness, seed: u64, told: &RandomPlan) -> (Vec<String>, Harness) {
    harness.apply(false);
    harness.run_to_the_end().await;
    if runs_twice(seed) {
        harness.apply(true);
        harness.run_to_the_end().await;
    }
    let mut lines = differences(&expected_of(seed, told), &harness.found());
    lines.extend(harness.manager.store().view(|view| broken_invariants(view)).unwrap());
    lines.extend(harness.tool.log.lock().unwrap().broken.clone());
    (lines, harness)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap().block_on(future)
}

/// Checks plans on all cores, each with a directory and a clock of its own; `check` returns the failure of a seed.
fn assert_all(seeds: Range<u64>, check: impl AsyncFn(u64, &Path) -> Option<String> + Sync) {
    let seeds = replayed_seed().map_or(seeds, |seed| seed..seed + 1);
    let failure = first_failure(seeds, |seed| {
        let files = tempfile::tempdir().unwrap();
        block_on(check(seed, files.path()))
    });
    if let Some((seed, failure)) = failure {
        panic!("SEED={seed}\n{failure}");
    }
}

/// Returns the failure of a plan from its differences.
fn failure(plan: &RandomPlan, lines: &[String]) -> Option<String> {
    (!lines.is_empty()).then(|| format!("{}\n{plan:#?}", lines.join("\n")))
}

#[test]
fn random_plans_end_as_the_interpreter_predicts() {
    let (seeds, covered) = (seeds(PLANS, MORE_PLANS), Mutex::new(BTreeMap::<&str, u64>::new()));
    assert_all(seeds.clone(), async |seed, files| {
        let plan = RandomPlan::new(seed);
        let lines = check(seed, &plan, files).await;
        for (what, count) in interpret(&plan).covered {
            *covered.lock().unwrap().entry(what).or_default() += count;
        }
        failure(&plan, &lines)
    });
    if replayed_seed().is_some() {
        return;
    }
    println!("P8 random plans: seeds {seeds:?}");
    let covered = covered.into_inner().unwrap();
    for what in COVERED {
        let count = covered.get(what).copied().unwrap_or(0);
        println!("{what}: {count}");
        assert!(count >= (seeds.end - seeds.start) / 500, "`{what}` happened {count} times");
    }
}

/// Plans end on three workers as they end at home.
#[test]
fn random_plans_end_on_workers_as_the_interpreter_predicts() {
    let (seeds, sent) = (seeds(200, 10_000), AtomicUsize::new(0));
    assert_all(seeds.clone(), async |seed, files| {
        let plan = RandomPlan::new(seed);
        let harness = Harness::new(RandomPlan::new(seed), seed, files).with_workers(files, 3).await;
        let (lines, harness) = check_on(harness, seed, &plan).await;
        let tasks = harness.manager.list(&Query::default()).unwrap().tasks;
        let calls = tasks.iter().flat_map(|task| &task.metadata.tool_calls);
        sent.fetch_add(calls.filter(|call| call.worker.is_some()).count(), Ordering::Relaxed);
        Arc::into_inner(harness.workers.unwrap()).unwrap().close().await;
        failure(&plan, &lines)
    });
    let sent = sent.into_inner() as u64;
    let is_replay = replayed_seed().is_some();
    assert!(is_replay || sent > seeds.end - seeds.start, "the positive control: {sent} calls ran on workers");
}

/// A forecast is given the outcomes that cannot be predicted: failed tasks, and manual tasks.
#[test]
fn a_forecast_predicts_the_result_of_the_run() {
    assert_all(seeds(200, 10_000), async |seed, files| {
        let mut harness = Harness::new(RandomPlan::plain(seed), seed, files);
        harness.apply(false);
        harness.run_to_the_end().await;
        let states = harness.found().states;
        let before = Harness::new(RandomPlan::plain(seed), seed, files);
        before.apply(false);
        let what_if = hypotheses(&harness.plan, &states);
        let options = ForecastOptions { jobs: 3, what_if, ..ForecastOptions::default() };
        let forecast = before.manager.forecast(&options).unwrap();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for status in states.values() {
            *counts.entry(status.as_str().to_owned()).or_default() += 1;
        }
        let [todo, blocked] = ["todo", "blocked"].map(|state| counts.get(state).copied().unwrap_or(0));
        let summary = harness.engine.run_all_ready(RunOptions::default()).await.unwrap();
        let is_equal = forecast.counts == counts
            && forecast.left.len() as u64 == todo + blocked
            && forecast.exit == summary.exit;
        (!is_equal).then(|| format!("{counts:?}, exit {:?}: {states:#?}\n{forecast:#?}", summary.exit))
    });
}

fn hypotheses(plan: &RandomPlan, states: &BTreeMap<String, Status>) -> Vec<Hypothesis> {
    let hypothesis = |(id, status): (&String, &Status)| {
        let how = match (status, &plan.task(id).unwrap().script) {
            (Status::Failed, _) => Assumed::Fail,
            (Status::Done, Script::Manual { .. }) => Assumed::Done,
            _ => return None,
        };
        Some(Hypothesis { how, task: id.clone() })
    };
    states.iter().filter_map(hypothesis).collect()
}

/// Positive control: if the interpreter reads a plan with one change, the comparison has to find a difference.
#[test]
fn a_changed_plan_is_noticed() {
    let files = tempfile::tempdir().unwrap();
    for (what, mutate) in MUTATIONS {
        let (mut told, mut noticed) = (0, 0);
        block_on(async {
            for seed in 0..SEARCHED {
                let mut plan = RandomPlan::new(seed);
                let expected = expected_of(seed, &plan);
                if !mutate(&mut plan) || is_allowed(&expected, &expected_of(seed, &plan)) {
                    continue;
                }
                told += 1;
                noticed += u32::from(!check(seed, &plan, files.path()).await.is_empty());
                if told == 5 {
                    return;
                }
            }
        });
        println!("{what}: noticed in {noticed} of {told} plans");
        assert!(told == 5 && noticed >= 4, "{what}: noticed in {noticed} of {told} plans");
    }
}
