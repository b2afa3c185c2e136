//! Starts every call twice. The first run is dropped after the effects and before any report; the second run repeats all calls.
//!
//! `taskpawl-keys STORE COUNT` prints the number of calls and the number of distinct keys.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use taskpawl::model::task::Status;
use taskpawl::model::value::Selector;
use taskpawl::tools::{CallContext, Hints, Tool, ToolError, ToolSpec};
use taskpawl::{RunOptions, Taskpawl, async_trait};
use tokio::sync::Notify;

/// The effects of the tool: the number of calls for each key.
#[derive(Debug, Default)]
struct Effects {
    by_key: Mutex<BTreeMap<String, usize>>,
    /// Notified with each effect.
    more: Notify,
}

/// Tool that records its effect. In the first run it never returns afterwards.
#[derive(Debug)]
struct Effect {
    spec: ToolSpec,
    effects: Arc<Effects>,
    /// The number of effects before the first call returns.
    hanging: usize,
}

#[async_trait]
impl Tool for Effect {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: CallContext, _: Value) -> Result<Value, ToolError> {
        let count = self.effects.add(cx.idempotency_key);
        self.effects.more.notify_one();
        if count <= self.hanging {
            std::future::pending::<()>().await;
        }
        Ok(Value::Null)
    }
}

impl Effects {
    fn add(&self, key: String) -> usize {
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        *by_key.entry(key).or_default() += 1;
        by_key.values().sum()
    }

    fn calls_and_keys(&self) -> (usize, usize) {
        let by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        (by_key.values().sum(), by_key.len())
    }
}

/// Makes the calls and prints the figures after the first run, after the second, and after a third that reopens the tasks.
///
/// # Panics
/// The arguments are wrong, or a run fails.
#[expect(clippy::print_stdout, reason = "the harness reads it")]
pub fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, store, count] = args.as_slice() else { panic!("usage: STORE COUNT") };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let figures = runtime.block_on(run_all(store, count.parse().expect("a number")));
    for (calls, keys) in figures {
        println!("{calls} {keys}");
    }
}

async fn run_all(store: &str, count: usize) -> Vec<(usize, usize)> {
    let effects = Arc::new(Effects::default());
    let plans = open(store, count, &effects);
    apply(&plans, count);
    let options = || RunOptions { jobs: Some(count), ..RunOptions::default() };
    tokio::select! {
        summary = plans.run_all_ready(options()) => panic!("it ended: {summary:?}"),
        () = effects_are(&effects, count) => {}
    }
    let first = effects.calls_and_keys();
    plans.run_all_ready(options()).await.expect("a run");
    let second = effects.calls_and_keys();
    let all = plans.manager().select(&[Selector::Plan("keys".to_owned())], &[Status::Done]).expect("tasks");
    plans.manager().reopen(&all, false).expect("tasks that are open again");
    plans.run_all_ready(options()).await.expect("a run");
    vec![first, second, effects.calls_and_keys()]
}

fn open(store: &str, count: usize, effects: &Arc<Effects>) -> Taskpawl {
    let spec = ToolSpec::new("effect", "Has an effect.", json!({"type": "object"}));
    let spec = spec.with_hints(Hints { idempotent: true, ..Hints::default() });
    let tool = Effect { spec, effects: Arc::clone(effects), hanging: count };
    let builder = Taskpawl::builder(store).root(Path::new(".")).project_id("project");
    builder.tool(Arc::new(tool)).open().expect("a store")
}

fn apply(plans: &Taskpawl, count: usize) {
    let task = |number| json!({"id": format!("t{number}"), "call": {"effect": {}}});
    let tasks: Vec<Value> = (0..count).map(task).collect();
    let plan = json!({"name": "keys", "tasks": tasks}).to_string();
    plans.blocking().apply_text(&plan, "keys").expect("a plan");
}

async fn effects_are(effects: &Effects, count: usize) {
    while effects.calls_and_keys().0 < count {
        effects.more.notified().await;
    }
}
