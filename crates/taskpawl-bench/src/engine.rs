//! In-process tasks without work, run by taskpawl.

use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl::model::plan::{Plan, PlanTask};
use taskpawl::model::task::{CallSpec, NewCall, TaskSpec};
use taskpawl::tools::{CallContext, Tool, ToolError, ToolSpec};
use taskpawl::{ApplyOptions, RunOptions, Taskpawl, async_trait};

use crate::Failure;
use crate::measure::{Whose, measure, memory};
use crate::sample::{Metric, Sample};
use crate::shape::Shape;

/// A tool without work.
#[derive(Debug)]
struct Nothing(ToolSpec);

#[async_trait]
impl Tool for Nothing {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _cx: CallContext, _args: Value) -> Result<Value, ToolError> {
        Ok(Value::Null)
    }
}

/// Opens a store and registers the tool.
fn open(store: &str) -> Result<Taskpawl, Failure> {
    let nothing = Nothing(ToolSpec::new("nothing", "Does nothing.", json!({"type": "object"})));
    Ok(Taskpawl::builder(store).tool(Arc::new(nothing)).open()?)
}

/// Applies a plan to a store and returns the cost.
pub(crate) fn apply(store: &str, shape: Shape, tasks: usize) -> Result<Sample, Failure> {
    apply_to(&open(store)?, shape, tasks)
}

fn apply_to(plans: &Taskpawl, shape: Shape, tasks: usize) -> Result<Sample, Failure> {
    let plan = plan(shape, tasks);
    Ok(measure(Whose::Mine, || Ok(plans.manager().apply(plan, "bench", ApplyOptions::default())?))?.1)
}

/// Runs a store and returns the cost. With `applied`, applies a plan first, which is not measured.
pub(crate) fn run(store: &str, applied: Option<(Shape, usize)>, jobs: usize) -> Result<Sample, Failure> {
    let plans = open(store)?;
    if let Some((shape, tasks)) = applied {
        apply_to(&plans, shape, tasks)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // The runtime has one thread, which does nothing but this run.
    let options = RunOptions { jobs: Some(jobs), owns_thread: true, ..RunOptions::default() };
    // Memory is reported as the growth during the run, without the process and the plan.
    let before = memory()?.0;
    let (summary, sample) = measure(Whose::Mine, || Ok(runtime.block_on(plans.run_all_ready(options))?))?;
    if summary.exit != 0 {
        return Err(format!("the run ended with {}", summary.exit).into());
    }
    Ok(sample.with(Metric::Memory, (memory()?.1 - before).max(0.0)))
}

fn plan(shape: Shape, tasks: usize) -> Plan {
    let tasks = shape.needs(tasks).into_iter().enumerate().map(|(at, needs)| task(at, needs)).collect();
    Plan { version: 1, tasks, ..Plan::default() }
}

fn task(position: usize, needs: Vec<usize>) -> PlanTask {
    let call = CallSpec { tool_name: "nothing".to_owned(), ..CallSpec::default() };
    PlanTask {
        id: Some(format!("t{position}").into()),
        spec: TaskSpec { name: format!("task {position}"), ..TaskSpec::default() }.into(),
        calls: vec![NewCall { id: None, spec: call.into() }],
        needs,
        ..PlanTask::default()
    }
}
