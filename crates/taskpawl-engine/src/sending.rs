//! Sends calls of a run to workers, and joins those of runs that were killed.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use taskpawl_model::command::{CallEnd, StartedCall};
use taskpawl_model::run::recovery::CallElsewhere;
use taskpawl_model::run::run_loop::Deadline;
use taskpawl_model::task::{
    ARTIFACTS_TOOL, CallError, KeySpace, LOCAL_LABEL, MERGE_TOOL, RETURN_TOOL, WORKTREE_TOOL,
};
use taskpawl_model::value::{RunId, Timestamp};
use taskpawl_tools::RegisteredTool;
use tokio_util::sync::CancellationToken;

use crate::call_executor::{CallExecutor, ExecuteError, Offer, SentCall, SentEnd, SentOutcome, Ticket};
use crate::changes::Changed;
use crate::executor::{Ended, is_repeatable};
use crate::files_by_git::{ProjectFiles, SentFiles};
use crate::placements::{Placement, Placements};
use crate::worktrees::git::{GitError, GitResult};

/// Time for the answer of a worker whose call was stopped: the grace period of its programs, and the way back.
const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// Time after a restore in which each call is looked up first: as long as engines keep the results of calls.
const RESTORED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Decides which calls of a run leave, and sends them.
#[derive(Debug)]
pub(crate) struct Sender {
    executor: Arc<dyn CallExecutor>,
    placements: Arc<Placements>,
    /// The number of calls of this run on each worker.
    load: Arc<Mutex<BTreeMap<String, usize>>>,
    /// The way of the project's files; `None` if workers have them.
    files: Option<Arc<ProjectFiles>>,
}

/// The place of a call.
#[derive(Debug, PartialEq)]
pub(crate) enum Choice {
    Here,
    Worker(String),
    /// No place has what the call needs; the reason.
    Nowhere(String),
}

/// A call with the parts of its [`Ended`] that are known before it ends.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(crate) started: StartedCall,
    pub(crate) sent: SentCall,
    pub(crate) cancel: CancellationToken,
    /// The time at which it leaves.
    pub(crate) at: Timestamp,
}

/// The end of a call that was sent.
#[derive(Debug)]
pub(crate) enum Returned {
    Ended(Box<Ended>),
    /// The engine did not answer for too long, and the call may run: it stays claimed, so that another run joins it.
    Abandoned(String),
}

impl Sender {
    pub(crate) fn new(executor: Arc<dyn CallExecutor>, files: &Path, run: &RunId) -> Self {
        Self {
            executor,
            placements: Arc::new(Placements::new(files, run)),
            load: Arc::default(),
            files: None,
        }
    }

    /// Sends calls with these files from now on.
    pub(crate) fn carry(&mut self, files: Arc<ProjectFiles>) {
        self.files = Some(files);
    }

    /// Chooses the place of a call: the worker with the most free slots among those that have its labels and its tool.
    pub(crate) fn choose(&self, started: &StartedCall, has_tool: bool) -> Choice {
        let (labels, tool) = (&started.spec.runs_on, &started.call.spec.tool_name);
        if tool == RETURN_TOOL {
            return Choice::Here;
        }
        let is_local = labels.iter().any(|label| label == LOCAL_LABEL);
        // Worktrees and their branches lie in the repository of this machine.
        let has_tree = started.spec.worktree.is_some()
            || [MERGE_TOOL, WORKTREE_TOOL, ARTIFACTS_TOOL].contains(&tool.as_str());
        if has_tree && !is_local && !labels.is_empty() {
            return Choice::Nowhere("its worktree is on this machine, and `runsOn` names workers".to_owned());
        }
        // The files of a cache are compared here, and its key is computed here.
        if is_local || has_tree || (started.cache.is_some() && labels.is_empty()) {
            return Choice::Here;
        }
        let load = self.load.lock().unwrap_or_else(PoisonError::into_inner);
        let load = |offer: &Offer| load.get(&offer.worker).copied().unwrap_or_default();
        let offers = self.executor.offers();
        let labelled = |offer: &&Offer| labels.iter().all(|label| offer.labels.contains(label));
        let able: Vec<&Offer> = offers.iter().filter(labelled).collect();
        let best = able.iter().filter(|offer| offer.tools.contains(tool)).min_by(|a, b| {
            // Calls in proportion to slots, without division.
            (load(a) * b.slots.max(1)).cmp(&(load(b) * a.slots.max(1))).then_with(|| a.worker.cmp(&b.worker))
        });
        match best {
            Some(offer) => Choice::Worker(offer.worker.clone()),
            None if labels.is_empty() && has_tool => Choice::Here,
            None => Choice::Nowhere(nowhere(labels, tool, able.is_empty())),
        }
    }

    /// Sends a call to a worker. The store knows the worker before the call leaves.
    pub(crate) fn send(
        &self,
        worker: String,
        leaving: Leaving,
    ) -> impl Future<Output = Returned> + Send + 'static {
        let Leaving { started, mut sent, cancel, at } = leaving;
        let mut placement = Placement {
            task: started.task.clone(),
            call: started.call.id.clone(),
            ticket: sent.ticket.clone(),
            worker: worker.clone(),
        };
        let (noted, placements) = (self.placements.note(&placement), Arc::clone(&self.placements));
        let (executor, load, files) =
            (Arc::clone(&self.executor), Arc::clone(&self.load), self.files.clone());
        *load.lock().unwrap_or_else(PoisonError::into_inner).entry(worker.clone()).or_default() += 1;
        async move {
            let begin = Instant::now();
            let ticket = sent.ticket.clone();
            let is_repeatable = sent.is_repeatable;
            let place = match noted {
                Ok(()) if is_restored(&sent, at) => found(&*executor, &placements, &mut placement).await,
                noted => Ok(noted),
            };
            let end = match place {
                Err(error) => Err(error),
                Ok(Ok(())) => match pushed(files.as_ref(), &started).await {
                    Err(error) => Ok(SentEnd::refused(error.class, error.message, &placement.worker)),
                    Ok(own) => {
                        sent.files = own;
                        let end =
                            executed(&*executor, &placement.worker, sent, &ticket, &cancel, is_repeatable)
                                .await;
                        taken_back(files.as_ref(), end, &started).await
                    }
                },
                Ok(Err(error)) => {
                    let why = format!("failed to record the worker of the call: {error}");
                    Ok(SentEnd::refused("io", why, &worker))
                }
            };
            if let Some(count) = load.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&worker) {
                *count -= 1;
            }
            match end {
                Ok(end) => Returned::Ended(Box::new(ended(&started, end, begin.elapsed()))),
                // The call never left, so it may start again wherever it likes.
                Err(ExecuteError::NotSent(_)) => {
                    let end = SentEnd::new(CallEnd::interrupted(true), &worker);
                    let ended = ended(&started, end, begin.elapsed());
                    Returned::Ended(Box::new(Ended { is_unsent: true, ..ended }))
                }
                Err(error) => Returned::Abandoned(error.to_string()),
            }
        }
    }

    /// Joins a call of a run that was killed.
    pub(crate) fn join(
        &self,
        placement: Placement,
        started: StartedCall,
        sent: SentCall,
    ) -> impl Future<Output = Returned> + Send + 'static {
        let (executor, files) = (Arc::clone(&self.executor), self.files.clone());
        async move {
            let begin = Instant::now();
            let end = executor.execute(&placement.worker, sent).await;
            match taken_back(files.as_ref(), end, &started).await {
                Ok(end) => Returned::Ended(Box::new(ended(&started, end, begin.elapsed()))),
                Err(error) => Returned::Abandoned(error.to_string()),
            }
        }
    }
}

/// Returns the files with which a call begins.
async fn pushed(files: Option<&Arc<ProjectFiles>>, started: &StartedCall) -> GitResult<Option<SentFiles>> {
    let Some(files) = files.map(Arc::clone) else { return Ok(None) };
    let sends = started.spec.sends.clone();
    let pushed = tokio::task::spawn_blocking(move || files.push(&sends)).await;
    pushed.map_err(|error| GitError::new(error.to_string()))?.map(Some)
}

/// Writes the files of a call into the project, before its end is committed.
async fn taken_back(
    files: Option<&Arc<ProjectFiles>>,
    end: Result<SentEnd, ExecuteError>,
    started: &StartedCall,
) -> Result<SentEnd, ExecuteError> {
    let mut end = end?;
    let Some(returned) = end.files.take() else { return Ok(end) };
    let taken = match files.map(Arc::clone) {
        Some(files) => {
            let writes = started.spec.writes.clone();
            let taken = tokio::task::spawn_blocking(move || files.take_back(&returned, &writes)).await;
            taken.unwrap_or_else(|error| Err(GitError::new(error.to_string())))
        }
        None => Err(GitError::new("the call brought files back, and this run has no remote for them")),
    };
    if let Err(error) = taken {
        // A call that failed keeps its own error.
        if let SentOutcome::Succeeded { result } = end.outcome {
            let error = CallError::new(error.class, error.message);
            end.outcome = SentOutcome::Failed { error, result: Some(result) };
        }
    }
    Ok(end)
}

/// Returns whether the store was restored so short a time ago that calls which it does not know may run on workers.
fn is_restored(sent: &SentCall, now: Timestamp) -> bool {
    let age = u64::try_from(now.timestamp_millis()).unwrap_or_default().saturating_sub(sent.fence);
    sent.fence > 0 && Duration::from_millis(age) < RESTORED_FOR
}

/// Replaces the worker of a placement with the one that knows its ticket, if there is one.
async fn found(
    executor: &dyn CallExecutor,
    placements: &Placements,
    placement: &mut Placement,
) -> Result<io::Result<()>, ExecuteError> {
    match executor.find(&placement.ticket).await? {
        Some(worker) if worker != placement.worker => {
            placement.worker = worker;
            Ok(placements.note(placement))
        }
        _ => Ok(Ok(())),
    }
}

/// Runs a call on its worker. A call that is cancelled is stopped there, and its end is still waited for.
async fn executed(
    executor: &dyn CallExecutor,
    worker: &str,
    sent: SentCall,
    ticket: &Ticket,
    cancel: &CancellationToken,
    is_repeatable: bool,
) -> Result<SentEnd, ExecuteError> {
    let mut call = executor.execute(worker, sent);
    tokio::select! {
        biased;
        end = &mut call => return end,
        () = cancel.cancelled() => {}
    }
    let stopped = async {
        executor.stop(worker, ticket).await?;
        call.await
    };
    if let Ok(end) = tokio::time::timeout(STOP_PATIENCE, stopped).await {
        return end;
    }
    let why = Some(format!("worker `{worker}` did not say how the call ended"));
    Ok(SentEnd::new(CallEnd::Interrupted { repeatable: is_repeatable, why }, worker))
}

fn ended(started: &StartedCall, end: SentEnd, took: Duration) -> Ended {
    let SentEnd { outcome, worker, millis, usage, cut, artifacts, changed, changes_unknown, hint, files: _ } =
        end;
    Ended {
        key: started.key,
        attempt: started.attempt,
        call: started.call.id.clone(),
        end: outcome.into(),
        took,
        spent: Duration::from_millis(millis),
        plan: started.plan.clone(),
        usage,
        cut,
        artifacts,
        changed: Changed { files: changed, unknown: changes_unknown },
        hint,
        inputs_changed: false,
        worker: Some(worker),
        is_unsent: false,
        files: None,
    }
}

/// Returns the end of a call that has no place to run.
pub(crate) fn unplaced(started: &StartedCall, why: String) -> Ended {
    let error = CallError::new("no_worker", why);
    let end = SentEnd::new(CallEnd::Failed { error, result: None }, "");
    Ended { worker: None, ..ended(started, end, Duration::ZERO) }
}

fn nowhere(labels: &[String], tool: &str, has_no_label: bool) -> String {
    if has_no_label && !labels.is_empty() {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        return format!("no worker offers {}", labels.join(" and "));
    }
    format!("no worker has the tool `{tool}`")
}

/// Returns a started call as it leaves.
pub(crate) fn leaving(
    started: &StartedCall,
    (key, run, keys): (String, RunId, &KeySpace),
    deadline: Option<&Deadline>,
    tool: Option<&RegisteredTool>,
    now: Timestamp,
) -> SentCall {
    let left = |end: Timestamp| u64::try_from((end - now).num_milliseconds().max(0)).unwrap_or_default();
    let args = Value::Object(started.args.clone());
    let is_repeatable = match tool {
        Some(tool) => is_repeatable(tool, &started.call.spec, &args),
        None => started.call.spec.idempotent.unwrap_or_default(),
    };
    SentCall {
        ticket: Ticket { key, start: started.call.body.attempts },
        run,
        store: keys.project.clone(),
        fence: keys.fence,
        task: started.task.clone(),
        attempt: started.attempt,
        generation: started.generation,
        round: started.round,
        call: started.call.clone(),
        args: started.args.clone(),
        plan: started.plan.as_deref().map(str::to_owned),
        writes: started.spec.writes.clone(),
        files: None,
        sandbox: started.sandbox.clone(),
        task_millis: started.deadline.map(left),
        run_millis: deadline.map(|deadline| (left(deadline.at), deadline.message.clone())),
        is_repeatable,
    }
}

/// Returns a call of a dead run as the store had started it.
pub(crate) fn started_again(elsewhere: &CallElsewhere) -> StartedCall {
    let CallElsewhere { key, task, call, .. } = elsewhere;
    StartedCall {
        key: *key,
        task: task.id.clone(),
        attempt: task.body.attempt,
        generation: task.body.generation,
        round: task.body.progress.round,
        args: call.body.args.clone().unwrap_or_else(|| call.spec.args.clone()),
        deadline: task.body.progress.deadline,
        plan: task.plan.clone(),
        spec: task.spec.clone(),
        // A call that another run had sent was authorized there. The worker decides again if it has not begun.
        sandbox: None,
        cache: None,
        call: call.clone(),
    }
}
