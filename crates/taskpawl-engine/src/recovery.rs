//! What a run does about tasks that a run left behind which is no longer alive: it carries out the plan of the rules.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use taskpawl_manager::{Error, Liveness, Manager};
use taskpawl_model::recovery::{Plan, Recovered};
use taskpawl_model::{CallRecord, Key, RunId};
use taskpawl_tools::Registry;

use crate::engine::Engine;
use crate::faults::{self, Fault};
use crate::liveness;

impl Engine {
    /// Takes back what dead runs and ended leases left behind, in one commit, and returns what that was.
    ///
    /// A call whose end nobody knows is started again only where that is safe; else its task is blocked until somebody decides. Runs
    /// do this when they start. What dead runs left of temporary files goes as well. Two processes may do it at once.
    ///
    /// # Errors
    /// The store failed.
    pub fn recover(&self) -> Result<Recovered, Error> {
        let recovered = self.recovery().carry_out(&self.manager, None)?;
        liveness::clear_up(&self.project.files);
        Ok(recovered)
    }

    /// Returns what [`recover`](Self::recover) would take back now.
    pub(crate) fn left_behind(&self) -> Result<Recovered, Error> {
        Ok(self.recovery().plan(&self.manager, None)?.summary())
    }

    fn recovery(&self) -> Recovery {
        Recovery { files: self.project.files.clone(), tools: Arc::clone(&self.tools) }
    }
}

/// What it takes to recover: whose locks to look at, and which tools may be started again.
#[derive(Debug)]
struct Recovery {
    files: PathBuf,
    tools: Arc<Registry>,
}

/// Returns the manager of an engine: one that knows which runs live.
pub(crate) fn watchful(manager: Manager, tools: &Arc<Registry>, files: &Path) -> Manager {
    manager.with_liveness(Arc::new(Recovery { files: files.to_owned(), tools: Arc::clone(tools) }))
}

impl Liveness for Recovery {
    fn is_alive(&self, run: &RunId) -> bool {
        liveness::is_alive(&self.files, run)
    }

    fn recover(&self, manager: &Manager, tasks: &[Key]) -> Result<(), Error> {
        self.carry_out(manager, Some(tasks)).map(drop)
    }
}

impl Recovery {
    /// Recovers everything, or `tasks` alone.
    fn carry_out(&self, manager: &Manager, tasks: Option<&[Key]>) -> Result<Recovered, Error> {
        let plan = self.plan(manager, tasks)?;
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

    fn plan(&self, manager: &Manager, tasks: Option<&[Key]>) -> Result<Plan, Error> {
        let now = manager.source().now();
        let builtin = OnceCell::new();
        let is_repeatable = |call: &CallRecord| self.is_repeatable(call, &builtin);
        manager.read(|view| Ok(Plan::new(view, tasks, &|run| self.is_alive(run), &is_repeatable, now)?))
    }

    /// A process that only gives commands has left the built-in tools out; what they are known for is the same everywhere.
    fn is_repeatable(&self, call: &CallRecord, builtin: &OnceCell<Registry>) -> bool {
        let args = Value::Object(call.spec.args.clone());
        let name = &call.spec.tool_name;
        let own = self.tools.get(name);
        let tool = own.or_else(|| builtin.get_or_init(Registry::builtin).get(name));
        faults::is_on(Fault::RepeatEverything) || tool.is_some_and(|tool| tool.tool().is_repeatable(&args))
    }
}
