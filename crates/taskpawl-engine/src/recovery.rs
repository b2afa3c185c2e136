//! What a run does about tasks that a run left behind which is no longer alive: it carries out the plan of the rules.

use std::cell::OnceCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use taskpawl_manager::{Error, Liveness, Manager};
use taskpawl_model::recovery::{Plan, Recovered};
use taskpawl_model::{CallRecord, Key, RunId, secret_names};
use taskpawl_store::StoreError;
use taskpawl_tools::{Registry, SecretSource, Vault};

use crate::engine::Engine;
use crate::faults::{self, Fault};
use crate::liveness;
use crate::output::Output;
use crate::secrets::{self, Removed};

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
        Recovery {
            files: self.project.files.clone(),
            tools: Arc::clone(&self.tools),
            secrets: Arc::clone(&self.secrets),
        }
    }
}

/// What it takes to recover: whose locks to look at, and which tools may be started again.
#[derive(Debug)]
struct Recovery {
    files: PathBuf,
    tools: Arc<Registry>,
    secrets: Arc<dyn SecretSource>,
}

/// Returns the manager of an engine: one that knows which runs live.
pub(crate) fn watchful(
    manager: Manager,
    tools: &Arc<Registry>,
    files: &Path,
    secrets: &Arc<dyn SecretSource>,
) -> Manager {
    let (files, tools, secrets) = (files.to_owned(), Arc::clone(tools), Arc::clone(secrets));
    manager.with_liveness(Arc::new(Recovery { files, tools, secrets }))
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
        self.clean_output(manager, &plan)?;
        let requests = plan.commands().into_iter().map(|(run, command)| match run {
            Some(run) => manager.clone().with_run(run).request(command),
            None => manager.request(command),
        });
        // What is refused was done by another process that was faster.
        manager.store().write(requests.collect())?;
        Ok(plan.summary())
    }

    /// Takes secrets out of what programs of dead runs printed: nobody waited for them. It is done before the store says that these
    /// calls are over, which makes their output readable to everybody.
    fn clean_output(&self, manager: &Manager, plan: &Plan) -> Result<(), Error> {
        let left = manager.read(|view| {
            let mut left = Vec::new();
            for key in plan.orphans() {
                let Some(task) = view.task(key)? else { continue };
                left.extend(view.calls(key)?.into_iter().map(|call| (task.id.clone(), call)));
            }
            Ok(left)
        })?;
        let output = Output::new(&self.files);
        let mut vault = None;
        for (task, call) in left {
            let stem = output.stem(&task, &call.id, call.body.attempts);
            if output
                .parts(&task, &call.id, call.body.attempts)
                .iter()
                .any(|part| part.start == call.body.attempts)
            {
                let vault = vault.get_or_insert_with(|| Vault::open(Arc::clone(&self.secrets)));
                let args = call.body.args.as_ref().unwrap_or(&call.spec.args);
                let cleaned = match vault.resolve(&secret_names(args)) {
                    Ok(_) => secrets::clean_output(&stem, vault),
                    Err(error) => secrets::clean_output(&stem, &Removed::because(&error)),
                };
                cleaned.map_err(|source| not_cleaned(stem, source))?;
            }
        }
        Ok(())
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

fn not_cleaned(path: PathBuf, source: io::Error) -> Error {
    StoreError::Io { action: "take secrets out of", path, source: Arc::new(source) }.into()
}
