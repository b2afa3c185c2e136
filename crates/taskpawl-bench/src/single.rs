//! Single changes, each durable before the next.

use std::path::Path;

use taskpawl::model::plan::{Plan, PlanTask};
use taskpawl::model::task::TaskSpec;
use taskpawl::model::value::Map;
use taskpawl::{ApplyOptions, Taskpawl};

use crate::Failure;
use crate::measure::{Whose, measure};
use crate::sample::Sample;

/// Applies `tasks` tasks without calls, in chains of ten, and returns the cost.
pub(crate) fn manual(store: &str, tasks: usize) -> Result<Sample, Failure> {
    let plans = Taskpawl::open(store)?;
    let chains = tasks.div_ceil(10);
    let task = |position: usize| PlanTask {
        id: Some(format!("t{position}").into()),
        spec: TaskSpec { name: format!("task {position}"), ..TaskSpec::default() }.into(),
        needs: position.checked_sub(chains).into_iter().collect(),
        ..PlanTask::default()
    };
    let plan = Plan { version: 1, tasks: (0..tasks).map(task).collect(), ..Plan::default() };
    Ok(measure(Whose::Mine, || Ok(plans.manager().apply(plan, "bench", ApplyOptions::default())?))?.1)
}

/// Changes one task of a store `times` times and returns the cost.
pub(crate) fn updates(store: &Path, times: usize) -> Result<Sample, Failure> {
    let plans = Taskpawl::open(&store.to_string_lossy())?;
    // Warms up: the first change opens the store.
    update(&plans, times)?;
    Ok(measure(Whose::Mine, || (0..times).try_for_each(|number| update(&plans, number)))?.1)
}

fn update(plans: &Taskpawl, number: usize) -> Result<(), Failure> {
    let metadata: Map = [("number".to_owned(), number.into())].into_iter().collect();
    plans.blocking().update_task_metadata("t0", metadata)?;
    Ok(())
}
