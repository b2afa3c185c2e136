//! Runs of an engine: start, end and recovery.

use std::path::PathBuf;
use std::sync::Arc;

use taskpawl_manager::{Error, Manager};
use taskpawl_model::command::{Command, RunStart};
use taskpawl_model::rules::{DecideError, resolve, resolve_among};
use taskpawl_model::run::recovery::{CallElsewhere, Recovered, questions_of_policy};
use taskpawl_model::task::{KeySpace, RunRecord, Status, Task};
use taskpawl_model::value::{Map, RunId, Selector};
use taskpawl_model::view::{Query, View};
use taskpawl_store::StoreError;
use taskpawl_tools::{Confinement, Programs};

use crate::dispatcher::Dispatcher;
use crate::engine::Engine;
use crate::error::RunError;
use crate::executor::RunResources;
use crate::faults::{self, Fault};
use crate::files_by_git::ProjectFiles;
use crate::late_files::LateSearch;
use crate::liveness::{self, LiveRun};
use crate::notify::{Notifier, NotifyContext};
use crate::observer::{GuardedObserver, Observer, RunEvent};
use crate::options::RunOptions;
use crate::placements;
use crate::private_tmp::PrivateTmp;
use crate::recovery::Recovery;
use crate::spans::RunSpan;
use crate::summary::RunSummary;
use crate::variable_key::VariableKey;
use crate::variables::VariableValues;

impl Engine {
    /// Runs everything that is ready, and everything that becomes ready by it, until nothing more can be done.
    ///
    /// # Errors
    /// The store failed, or a selector matches nothing. Failed tasks are no error: they are in the summary.
    ///
    /// # Cancel safety
    /// Dropping the future ends running calls, like a second [`RunControl::stop`](crate::RunControl::stop), but leaves the run record open. The
    /// next run recovers it.
    pub async fn run_all_ready(&self, mut options: RunOptions) -> Result<RunSummary, RunError> {
        let engine = self.with_variables(&options.variables);
        let guarded = options.observer.take().map(|observer| Arc::new(GuardedObserver::new(observer)));
        options.observer = guarded.clone().map(|observer| observer as Arc<dyn Observer>);
        let id = options.id.clone().unwrap_or_else(|| RunId::from(engine.manager.source().new_id()));
        let manager = engine.manager.clone().with_run(id.clone());
        manager.read(|view| refuse_empty(view, &options.only))?;
        let temporary = engine.temporary_base();
        // The lock is taken before the record is written. In the other order, another process could see the record
        // without a lock and recover the run as dead.
        let live =
            LiveRun::start(&engine.project.files, &id, engine.supervision.clone(), temporary.as_deref())?;
        let baseline = liveness::baseline_path(&engine.project.files, &id);
        let private = engine.private_tmp(options.observer.as_ref()).await?;
        let private_path = private.as_ref().map(PrivateTmp::path);
        let artifacts = engine.artifacts.as_ref().map(|store| store.open(&id)).transpose()?.flatten();
        let dirs = artifacts.as_deref();
        let confinement = Arc::new(engine.confinement(live.temporary(), private_path, Some(baseline), dirs));
        engine.check_variables(&options.only, &options.variables)?;
        let keys = engine.start_run(&manager, engine.record(&id, &manager, &options))?;
        if let Some(observer) = &options.observer {
            observer.event(&RunEvent::RunStarted { run: id.clone(), jobs: options.jobs() });
        }
        let late = LateSearch::new(&id, &engine.project.files, &confinement, options.observer.as_ref());
        let of_killed = late.of_killed_runs().await;
        let programs = live.programs().clone();
        let vault = engine.vault();
        if !faults::is_on(Fault::KeepSecrets) {
            programs.filter_output(Arc::new(vault.clone()));
        }
        let notifier = engine.notifier(&id, &programs, &confinement, &options);
        let values = VariableValues::new(&confinement.environment(), &options.variables);
        let digests = Arc::new(values.digests(&engine.variable_key()?));
        let variables = options.variables.clone();
        let span = RunSpan::new(&id);
        let held = RunResources {
            programs,
            confinement,
            vault,
            keys,
            variables,
            values,
            digests,
            span: span.clone(),
            artifacts,
            trees: None,
        };
        let files = engine.project_files(&id, &options).await?;
        // Boxed to keep the future of `run_all_ready` small for its callers.
        let run = async {
            let dispatcher = Dispatcher::new(&engine, held, manager.clone(), id.clone(), &options, notifier);
            Box::pin(dispatcher.with_files(files.clone()).run()).await
        };
        let (mut summary, notifier) = span.enter(run).await?;
        warn(&options, notifier.finish(&summary).await);
        // All programs have to be gone before the record says that the run is finished, and the lock is released last.
        live.programs().close().await;
        if let Some(private) = private {
            private.forget(live.temporary());
            leave_private_tmp(private, &manager).await?;
        }
        if let Some(files) = files {
            clear_files(files, &options).await;
        }
        summary.late_files = of_killed.into_iter().chain(late.of_this_run().await).collect();
        placements::forget(&engine.project.files, &id);
        if let Some(store) = &engine.artifacts {
            store.forget_empty(&id);
        }
        manager.command(Command::FinishRun { id, exit: summary.exit, counts: summary.ended.clone() })?;
        live.end().await;
        let observer_error = || guarded.as_ref().and_then(|observer| observer.error());
        summary.observer_error = observer_error();
        if let Some(observer) = &options.observer {
            observer.event(&RunEvent::Summary(Box::new(summary.clone())));
        }
        // Read again, because the observer may have failed on the summary event itself.
        summary.observer_error = observer_error();
        Ok(summary)
    }

    /// Runs one task with its subtasks if its dependencies are finished; otherwise blocks it with the reason.
    ///
    /// # Errors
    /// Those of [`run_all_ready`](Self::run_all_ready), and a refusal if the status of the task does not allow it.
    pub async fn execute_task(&self, id: &str, mut options: RunOptions) -> Result<RunSummary, RunError> {
        // Releases the task if a dead run still holds it.
        self.with_variables(&options.variables).recover()?;
        let task = self.manager.get(id)?;
        let missing_tool = self.missing_tool(&task);
        if missing_tool.is_none() {
            let tasks = vec![self.manager.read(|view| resolve(view, task.id.as_str()))?];
            self.manager.command(Command::ToolsKnown { tasks })?;
        }
        self.ask_by_policy()?;
        self.manager.command(Command::RunOne { id: task.id.to_string(), missing_tool })?;
        options.only = vec![Selector::Task(task.id.to_string())];
        self.run_all_ready(options).await
    }

    /// Lets the current policy decide again about tasks that wait because of another version of it.
    pub(crate) fn ask_by_policy(&self) -> Result<(), RunError> {
        let Some(policy_hook) = self.manager.policy_hook() else { return Ok(()) };
        let tasks = self.manager.read(|view| Ok(questions_of_policy(view, policy_hook.version())?))?;
        if !tasks.is_empty() {
            self.manager.command(Command::PolicyKnown { tasks })?;
        }
        Ok(())
    }

    /// Opens the way of the project's files to workers, if the run has one.
    async fn project_files(
        &self,
        run: &RunId,
        options: &RunOptions,
    ) -> Result<Option<Arc<ProjectFiles>>, RunError> {
        let (Some(remote), Some(_)) = (options.files_remote.clone(), &options.elsewhere) else {
            return Ok(None);
        };
        let (root, files, run) = (self.project.root.clone(), self.project.files.clone(), run.clone());
        let opened =
            tokio::task::spawn_blocking(move || ProjectFiles::open(&root, &remote, &files, &run)).await;
        let opened = opened
            .map_err(|error| error.to_string())
            .and_then(|opened| opened.map_err(|error| error.message));
        opened.map(|files| Some(Arc::new(files))).map_err(|why| RunError::ProjectFiles { why })
    }

    fn notifier(
        &self,
        run: &RunId,
        programs: &Programs,
        confinement: &Arc<Confinement>,
        options: &RunOptions,
    ) -> Notifier {
        let place = NotifyContext {
            run: run.clone(),
            manager: self.manager.clone(),
            programs: programs.clone(),
            confinement: Arc::clone(confinement),
            root: self.project.root.clone(),
            files: self.project.files.join("notify"),
        };
        Notifier::new(place, options)
    }

    /// Starts the program [`notify`](RunOptions::notify) of the options with an event of the host program: `TASKPAWL_EVENT`
    /// is its word, and standard input has the details. Without such a program nothing happens. Returns warnings, such as
    /// that it failed.
    ///
    /// # Errors
    /// The files of the program cannot be created.
    pub async fn notify(
        &self,
        event: &'static str,
        details: Map,
        options: &RunOptions,
    ) -> Result<Vec<String>, RunError> {
        if options.notify.is_empty() {
            return Ok(Vec::new());
        }
        let id = RunId::from(self.manager.source().new_id());
        let temporary = self.temporary_base();
        let live = LiveRun::start(&self.project.files, &id, self.supervision.clone(), temporary.as_deref())?;
        let confinement = Arc::new(self.confinement(live.temporary(), None, None, None));
        let notifier = self.notifier(&id, live.programs(), &confinement, options);
        let warnings = notifier.send(event, details).await;
        live.programs().close().await;
        live.end().await;
        Ok(warnings)
    }

    /// Returns a tool that a task needs and that no run of this process can have. Tools that a search may find do not
    /// count: the run searches for them.
    fn missing_tool(&self, task: &Task) -> Option<String> {
        let left = task.metadata.tool_calls.iter().filter(|call| !call.status.is_settled());
        let mut names = left.map(|call| call.tool_name.clone());
        names.find(|name| self.tools.get(name).is_none() && !self.may_find(name))
    }

    /// Returns the key for digests of variables.
    fn variable_key(&self) -> Result<VariableKey, RunError> {
        if let Some(key) = &self.variable_key {
            return Ok(key.clone());
        }
        let path = &self.project.files;
        let failed = |source| StoreError::Io {
            action: "make the key for digests of variables in",
            path: path.clone(),
            source: Arc::new(source),
        };
        Ok(VariableKey::of(path).map_err(|error| Error::from(failed(error)))?)
    }

    fn record(&self, id: &RunId, manager: &Manager, options: &RunOptions) -> RunRecord {
        RunRecord {
            id: id.clone(),
            scope: options.only.iter().map(ToString::to_string).collect(),
            params: options.params.clone(),
            actor: manager.actor().to_owned(),
            actor_kind: manager.context_of_starter().kind,
            stop: None,
            host: self.project.host.clone(),
            started_at: manager.source().now(),
            finished_at: None,
            exit: None,
            recovered_at: None,
            output_pruned_at: None,
            counts: std::collections::BTreeMap::new(),
            ending: std::collections::BTreeMap::new(),
        }
    }

    /// Takes back the tasks of dead runs and the claims with expired leases, in one commit, and returns a summary.
    ///
    /// A call with an unknown end is only started again if that is safe. Otherwise its task is blocked until a person
    /// or agent decides. Every run does this at its start. Temporary files of dead runs are removed as well. Several
    /// processes may recover at the same time.
    ///
    /// # Errors
    /// The store failed.
    pub fn recover(&self) -> Result<Recovered, Error> {
        let recovered = self.recovery().carry_out(&self.manager, None)?;
        liveness::clear_up(&self.project.files);
        Ok(recovered)
    }

    /// Returns the summary of [`recover`](Self::recover) without changing anything.
    pub(crate) fn left_behind(&self) -> Result<Recovered, Error> {
        Ok(self.recovery().plan(&self.manager, None)?.summary())
    }

    /// Returns the calls of dead runs that workers still execute.
    pub(crate) fn calls_elsewhere(&self) -> Result<Vec<CallElsewhere>, Error> {
        // Only runs with an engine leave such a file; others need no second look at their tasks.
        if placements::paths(&self.project.files).is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.recovery().plan(&self.manager, None)?.elsewhere().to_vec())
    }

    fn recovery(&self) -> Recovery {
        Recovery {
            files: self.project.files.clone(),
            tools: Arc::clone(&self.tools),
            secrets: Arc::clone(&self.secrets),
        }
    }

    /// Gives a store that is a copy an id of its own, as its next run would do, and returns the path of the original.
    /// Calls that have already started keep their keys. Does not write to a store that is no copy.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn settle_copy(&self) -> Result<Option<PathBuf>, RunError> {
        let known = self.manager.read(|view| Ok(view.key_space()?))?;
        let request = self.project.keys.request(known.as_ref(), &self.manager.source().new_id());
        if request.copy_of.is_none() {
            return Ok(None);
        }
        self.manager.command(Command::SettleKeys(Box::new(request)))?;
        Ok(known.and_then(|known| known.path).map(PathBuf::from))
    }

    /// Records the start of a run and returns the key prefix for its calls.
    pub(crate) fn start_run(&self, manager: &Manager, run: RunRecord) -> Result<KeySpace, RunError> {
        let known = manager.read(|view| Ok(view.key_space()?))?;
        // The id of a run is random, so the first run of a store can lend its id to the store.
        let request = self.project.keys.request(known.as_ref(), run.id.as_str());
        let keys = (!request.is_settled(known.as_ref())).then_some(request);
        let settled = known.filter(|_| keys.is_none());
        manager.command(Command::StartRun(Box::new(RunStart { run, keys })))?;
        settled.map_or_else(|| recorded(manager), Ok)
    }
}

/// Tells the observer of a run about problems.
fn warn(options: &RunOptions, messages: impl IntoIterator<Item = String>) {
    let Some(observer) = &options.observer else { return };
    for message in messages {
        observer.event(&RunEvent::Warning { message });
    }
}

/// Removes the private directory for temporary files if no task is left that could use it.
async fn leave_private_tmp(private: PrivateTmp, manager: &Manager) -> Result<(), RunError> {
    // Another plan may go on later, although everything in the scope of this run is finished.
    let is_over = |status| matches!(status, Status::Done | Status::Skipped | Status::Cancelled);
    if manager.counts()?.into_iter().all(|(status, count)| count == 0 || is_over(status)) {
        // Programs may leave millions of files. A failure leaves them to a later run.
        let _ = tokio::task::spawn_blocking(move || private.finished()).await;
    }
    Ok(())
}

/// Removes the files of a run from the remote.
async fn clear_files(files: Arc<ProjectFiles>, options: &RunOptions) {
    if let Err(error) = files.cleared().await {
        let message =
            format!("the files of the run stay on the remote: {error}; `doctor --fix` removes them");
        warn(options, [message]);
    }
}

/// Refuses selectors that match nothing, before the run is recorded. The run itself resolves the selectors again.
fn refuse_empty(view: &dyn View, selectors: &[Selector]) -> Result<(), DecideError> {
    selectors.iter().try_for_each(|selector| refuse_one_empty(view, selector, selectors))
}

fn refuse_one_empty(view: &dyn View, selector: &Selector, beside: &[Selector]) -> Result<(), DecideError> {
    let some = match selector {
        Selector::Plan(name) => Query { plan: Some(name.clone()), ..Query::default() },
        Selector::Label(name) => Query { labels: vec![name.clone()], ..Query::default() },
        Selector::Task(id) => return resolve_among(view, beside, id).map(drop),
    };
    let is_empty = view.find(&Query { limit: 1, ..some })?.is_empty();
    // Resolving a selector reads all of its tasks, so it is only done here, to tell a misspelled name from a plan
    // without tasks.
    if is_empty { selector.keys(view).map(drop) } else { Ok(()) }
}

fn recorded(manager: &Manager) -> Result<KeySpace, RunError> {
    Ok(manager.read(|view| Ok(view.key_space()?))?.unwrap_or_default())
}
