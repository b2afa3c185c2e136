//! What a run does about tasks that a run left behind which is no longer alive: it carries out the plan of the rules.

use taskpawl_manager::Error;
use taskpawl_model::recovery::{Plan, Recovered};
use taskpawl_model::{CallRecord, Key, RunId};
use taskpawl_tools::Registry;

use crate::engine::Engine;
use crate::liveness;

impl Engine {
    /// Takes back what dead runs and ended leases left behind, in one commit, and returns what that was.
    ///
    /// A call whose end nobody knows is started again only where that is safe; else its task is blocked until somebody decides. Runs
    /// do this when they start. Two processes may do it at once.
    ///
    /// # Errors
    /// The store failed.
    pub fn recover(&self) -> Result<Recovered, Error> {
        recover(self, None)
    }
}

/// Recovers everything, or `tasks` alone.
pub(crate) fn recover(engine: &Engine, tasks: Option<&[Key]>) -> Result<Recovered, Error> {
    let manager = &engine.manager;
    let now = manager.source().now();
    let is_alive = |run: &RunId| liveness::is_alive(&engine.project.files, run);
    let is_repeatable = |call: &CallRecord| is_repeatable(&engine.tools, call);
    let plan = manager.read(|view| Ok(Plan::new(view, tasks, &is_alive, &is_repeatable, now)?))?;
    if plan.is_empty() {
        return Ok(Recovered::default());
    }
    let requests = plan.commands().into_iter().map(|(run, command)| match run {
        Some(run) => manager.clone().with_run(run).request(command),
        None => manager.request(command),
    });
    // What is refused was done by another process that was faster.
    manager.store().write(requests.collect())?;
    Ok(plan.summary())
}

fn is_repeatable(tools: &Registry, call: &CallRecord) -> bool {
    let args = serde_json::Value::Object(call.spec.args.clone());
    tools.get(&call.spec.tool_name).is_some_and(|tool| tool.tool().is_repeatable(&args))
}
