//! Recovery of tasks that dead runs left behind: carries out the recovery plan of the model.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::Value;
use taskpawl_manager::{Error, Liveness, Manager};
use taskpawl_model::run::recovery::{Plan, Recovered};
use taskpawl_model::task::{CallRecord, TaskRecord};
use taskpawl_model::value::{Key, RunId, secret_names};
use taskpawl_store::StoreError;
use taskpawl_tools::{Registry, SecretSource, Vault};

use crate::faults::{self, Fault};
use crate::liveness;
use crate::output::Output;
use crate::placements::{self, KnownPlacements};
use crate::secrets::{self, Removed};

/// Time for which the end of a call that was sent can be joined.
const RETENTION: TimeDelta = TimeDelta::hours(24);

/// Everything that a recovery needs: the directory of the run locks, the tools that know which calls are repeatable,
/// and the secrets.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) files: PathBuf,
    pub(crate) tools: Arc<Registry>,
    pub(crate) secrets: Arc<dyn SecretSource>,
}

/// Returns a manager that can detect dead runs and recover their tasks.
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
    /// Recovers everything, or only `tasks`.
    pub(crate) fn carry_out(&self, manager: &Manager, tasks: Option<&[Key]>) -> Result<Recovered, Error> {
        let plan = self.plan(manager, tasks)?;
        if plan.is_empty() {
            return Ok(Recovered::default());
        }
        self.clean_output(manager, &plan)?;
        let requests = plan.commands().into_iter().map(|(run, command)| match run {
            Some(run) => manager.clone().with_run(run).request(command),
            None => manager.request(command),
        });
        // Refusals are ignored: another process has recovered the same task first.
        manager.store().write(requests.collect())?;
        if tasks.is_none() {
            plan.closed().for_each(|run| placements::forget(&self.files, run));
        }
        Ok(plan.summary())
    }

    /// Removes secrets from the output of programs of dead runs, which no process has filtered. This has to happen
    /// before the store records that the calls are over, because their output becomes readable then.
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
            // Only the last start can be unfinished; the output of earlier ones was filtered when they ended.
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
                    // The secrets of the call are not available, so their values cannot be recognized in the output: it
                    // is removed as a whole.
                    Err(error) => secrets::clean_output(&stem, &Removed::because(&error)),
                };
                cleaned.map_err(|source| not_cleaned(stem, source))?;
            }
        }
        Ok(())
    }

    pub(crate) fn plan(&self, manager: &Manager, tasks: Option<&[Key]>) -> Result<Plan, Error> {
        let now = manager.source().now();
        let builtin = OnceCell::new();
        let is_repeatable = |call: &CallRecord| self.is_repeatable(call, &builtin);
        let placements = RefCell::new(KnownPlacements::default());
        // The engine forgets a call after its retention, so that nothing is left to join.
        let is_elsewhere = |run: &RunId, task: &TaskRecord, call: &CallRecord| {
            let is_kept = call.body.started_at.is_some_and(|start| now - start < RETENTION);
            is_kept && placements.borrow_mut().of(&self.files, run, &task.id, call).is_some()
        };
        let is_alive = |run: &RunId| self.is_alive(run);
        manager.read(|view| Ok(Plan::beside(view, tasks, &is_alive, &is_repeatable, &is_elsewhere, now)?))
    }

    /// Returns whether a call may be started again. Falls back to the built-in tools, because a process that only gives
    /// commands does not register them, and their answer is the same everywhere.
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
