//! Executes the calls of other processes with the tools, the sandbox and the secrets of this one.

mod fences;
mod seen;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use taskpawl_model::run::run_loop::Deadline;
use taskpawl_model::task::{KeySpace, PolicyDecision, ProposedCall};
use taskpawl_model::value::{Key, RunId};
use tokio::sync::{Semaphore, watch};

use crate::call_executor::{
    CallExecutor, ExecuteError, Offer, SentCall, SentEnd, SentOutcome, Ticket, TicketStatus,
};
use crate::engine::Engine;
use crate::error::RunError;
use crate::executor::{Ended, Executor, RunResources, is_repeatable};
use crate::faults::{self, Fault};
use crate::files_by_git::WorkerTrees;
use crate::liveness::LiveRun;
use crate::private_tmp::PrivateTmp;
use crate::spans::RunSpan;
use crate::variables::{RunVariables, VariableValues};
use fences::Fences;
use seen::{SeenTickets, Sighting};

/// The number of ended calls whose ends are kept for callers that join late.
const MAX_KEPT_ENDS: usize = 1000;

/// The total size of their results, in bytes.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// The largest end that is sent back, in bytes.
const MAX_END_BYTES: usize = 16 << 20;

/// Options of a [`LocalExecutor`].
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// Its services. The name is unique among the executors of a project on this machine.
    pub offer: Offer,
    /// The git remote of calls that bring their files; without one such calls are refused.
    pub remote: Option<String>,
}

/// Executes calls of other processes here.
///
/// It has a table of its calls: a ticket that comes again joins its running call. The tickets that have begun are also on disk, so
/// that a restarted process neither repeats a call blindly nor accepts a ticket a second time.
#[derive(Debug)]
pub struct LocalExecutor {
    engine: Engine,
    offer: Offer,
    slots: Arc<Semaphore>,
    table: Arc<Mutex<Table>>,
    /// Each call that runs or waits for a slot holds a receiver.
    calls: watch::Sender<()>,
    live: LiveRun,
    private: Option<PrivateTmp>,
    takes_files: bool,
}

#[derive(Debug)]
struct Table {
    executor: Executor,
    calls: BTreeMap<Ticket, Known>,
    seen: SeenTickets,
    fences: Fences,
    ended: VecDeque<(Ticket, usize)>,
    kept_bytes: usize,
    next_key: u32,
}

/// A call that runs, or that has ended a short time ago.
#[derive(Debug)]
struct Known {
    content: String,
    key: Key,
    /// The task that runs the call sends once.
    end: watch::Receiver<Option<SentEnd>>,
}

/// The way in which a call that arrived is answered.
#[expect(clippy::large_enum_variant, reason = "made once for each call, and taken apart at once")]
enum Begin {
    Refused(SentEnd),
    Joined(watch::Receiver<Option<SentEnd>>),
    /// Older starts of the same call, which end first.
    Fenced(Vec<watch::Receiver<Option<SentEnd>>>),
}

impl LocalExecutor {
    /// Opens the executor. Waits until the programs of an earlier process of the same name are gone.
    ///
    /// # Errors
    /// The directory for locks and output files is unusable.
    pub async fn open(engine: &Engine, options: LocalOptions) -> Result<Self, RunError> {
        let LocalOptions { offer, remote } = options;
        let run = RunId::from(format!("worker-{}", offer.worker));
        let temporary = engine.temporary_base();
        let (files, supervision) = (engine.project.files.clone(), engine.supervision.clone());
        let id = run.clone();
        let start = move || LiveRun::start(&files, &id, supervision, temporary.as_deref());
        // The lock is held until the supervisor of the earlier process has killed everything.
        let live = tokio::task::spawn_blocking(start).await.map_err(|error| RunError::Files {
            action: "lock",
            path: engine.project.files.clone(),
            source: std::io::Error::other(error),
        })??;
        let private = engine.private_tmp(None).await?;
        let private_path = private.as_ref().map(PrivateTmp::path);
        let confinement = engine.confinement(live.temporary(), private_path, None, None);
        let (programs, vault) = (live.programs().clone(), engine.vault());
        programs.filter_output(Arc::new(vault.clone()));
        let variables = RunVariables::default();
        let takes_files = remote.is_some();
        let resources = RunResources {
            programs,
            vault,
            keys: KeySpace::default(),
            values: VariableValues::new(&confinement.environment(), &variables),
            variables,
            digests: Arc::default(),
            span: RunSpan::new(&run),
            trees: trees_of(engine, &offer.worker, remote).await?,
            confinement: Arc::new(confinement),
            // The directories of runs are on the machine of the store.
            artifacts: None,
        };
        let seen = SeenTickets::open(&engine.project.files, &offer.worker)?;
        let fences = Fences::open(&engine.project.files, &offer.worker)?;
        let executor = Executor::new(engine, (run, &engine.manager), resources, None, None);
        let table = Table {
            executor,
            calls: BTreeMap::new(),
            seen,
            fences,
            ended: VecDeque::new(),
            kept_bytes: 0,
            next_key: 0,
        };
        Ok(Self {
            engine: engine.clone(),
            slots: Arc::new(Semaphore::new(offer.slots.max(1))),
            offer,
            table: Arc::new(Mutex::new(table)),
            calls: watch::Sender::new(()),
            live,
            private,
            takes_files,
        })
    }

    /// Returns the services.
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Runs a call, or joins it. `delivery` names the request that brings the call: a second request with the same ticket joins a
    /// running call, but starts nothing. `has_begun` says that an earlier process may have started the tool.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the call running.
    pub async fn run(&self, call: SentCall, delivery: &str, has_begun: bool) -> SentEnd {
        let older = match self.begin(&call, delivery, has_begun) {
            Begin::Refused(end) => return end,
            Begin::Joined(end) => return joined(end, &self.offer.worker).await,
            Begin::Fenced(older) => older,
        };
        for end in older {
            joined(end, &self.offer.worker).await;
        }
        let end = self.start(call);
        joined(end, &self.offer.worker).await
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    fn begin(&self, call: &SentCall, delivery: &str, has_begun: bool) -> Begin {
        let mut table = self.table();
        let content = call.content_hash();
        if let Some(known) = table.calls.get(&call.ticket)
            && !faults::is_on(Fault::NoTable)
        {
            if known.content != content {
                return Begin::Refused(self.refused("ticket", "its ticket belongs to another call"));
            }
            return Begin::Joined(known.end.clone());
        }
        if !faults::is_on(Fault::NoFencing) && table.calls.keys().any(|known| is_newer(known, &call.ticket)) {
            return Begin::Refused(self.refused("fenced", "a newer start of the same call has arrived"));
        }
        match table.fences.admit(&call.store, call.fence) {
            Ok(true) => {}
            Ok(false) => {
                return Begin::Refused(
                    self.refused("fenced", "its store was restored from a backup, and continues there"),
                );
            }
            Err(error) => {
                let why = format!("failed to record the fencing number of the store: {error}");
                return Begin::Refused(self.refused("io", &why));
            }
        }
        if let Some(refusal) = self.refusal(call) {
            return Begin::Refused(refusal);
        }
        let sighting = if faults::is_on(Fault::NoStartRecord) {
            Sighting::New
        } else {
            match table.seen.note(&call.ticket, delivery) {
                Ok(sighting) => sighting,
                Err(error) => {
                    let why = format!("failed to record the start of the call: {error}");
                    return Begin::Refused(self.refused("io", &why));
                }
            }
        };
        let has_begun = has_begun && !faults::is_on(Fault::NoStartRecord);
        if sighting == Sighting::OtherDelivery {
            return Begin::Refused(self.refused("ticket", "its ticket was used before"));
        }
        if (has_begun || sighting == Sighting::SameDelivery) && !self.may_repeat(call) {
            let why = Some(format!("worker `{}` was restarted while the call ran", self.offer.worker));
            return Begin::Refused(self.end(SentOutcome::Interrupted { repeatable: false, why }));
        }
        if faults::is_on(Fault::NoFencing) {
            return Begin::Fenced(Vec::new());
        }
        let older: Vec<Ticket> =
            table.calls.keys().filter(|known| is_newer(&call.ticket, known)).cloned().collect();
        let ends = older.iter().filter_map(|ticket| {
            let known = table.calls.get(ticket)?;
            Some((known.key, known.end.clone()))
        });
        let ends: Vec<_> = ends.collect();
        for (key, _) in &ends {
            table.executor.kill(*key);
        }
        Begin::Fenced(ends.into_iter().map(|(_, end)| end).collect())
    }

    /// Registers a call and starts it. A call that another request has started meanwhile is joined.
    #[expect(clippy::disallowed_methods, reason = "`calls` counts it, and `close` waits for the count")]
    fn start(&self, call: SentCall) -> watch::Receiver<Option<SentEnd>> {
        let mut table = self.table();
        if let Some(known) = table.calls.get(&call.ticket)
            && !faults::is_on(Fault::NoTable)
        {
            return known.end.clone();
        }
        let key = Key(table.next_key);
        table.next_key = table.next_key.wrapping_add(1);
        // Registered now, so that a call that waits for a slot can be ended.
        table.executor.token(key);
        let (sender, receiver) = watch::channel(None);
        let known = Known { content: call.content_hash(), key, end: receiver.clone() };
        table.calls.insert(call.ticket.clone(), known);
        let (slots, table, worker) =
            (Arc::clone(&self.slots), Arc::clone(&self.table), self.offer.worker.clone());
        let source = Arc::clone(self.engine.manager.source());
        let arrived = source.now();
        let counted = self.calls.subscribe();
        tokio::spawn(async move {
            let _counted = counted;
            // Never closed: the executor that owns it outlives its tasks.
            let _slot = slots.acquire_owned().await;
            // Made only now: the time limit of the call does not run while it waits for a slot.
            let future = {
                let deadline = call.run_millis.clone().map(|(millis, message)| Deadline {
                    at: arrived + std::time::Duration::from_millis(millis),
                    message,
                });
                let started = call.started(key, arrived);
                lock(&table).executor.call_of(started, deadline, Some(&call))
            };
            let ended = future.await;
            let (key, end) = (ended.key, sent_end(ended, &worker));
            let mut table = lock(&table);
            table.executor.forget(key);
            table.keep_end(&call.ticket, &end);
            sender.send_replace(Some(end));
        });
        receiver
    }

    /// Returns the refusal of a call that this process does not run: by its policy, or for lack of a tool.
    fn refusal(&self, call: &SentCall) -> Option<SentEnd> {
        let spec = &call.call.spec;
        if spec.plan_access.is_some() {
            return Some(
                self.refused("engine", "`planAccess` does not reach beyond the machine of the store"),
            );
        }
        if call.files.is_some() && !self.takes_files {
            return Some(
                self.refused("files", "it has no remote for files: start it with `--files-remote URL`"),
            );
        }
        if self.engine.tools.get(&spec.tool_name).is_none() {
            return Some(self.refused("missing_tool", &format!("no tool `{}`", spec.tool_name)));
        }
        let hook = self.engine.manager.policy_hook()?;
        let proposed = ProposedCall {
            tool: &spec.tool_name,
            args: &call.args,
            origin: call.call.origin,
            sandbox: call.sandbox.clone(),
            plan: call.plan.as_deref(),
        };
        match hook.authorize(&proposed) {
            PolicyDecision::Allow => None,
            PolicyDecision::Ask { why } => {
                Some(self.refused(
                    "denied",
                    &format!("its policy would ask, and no person can answer there: {why}"),
                ))
            }
            PolicyDecision::Deny { why } => {
                Some(self.refused("denied", &format!("its policy denies it: {why}")))
            }
        }
    }

    fn may_repeat(&self, call: &SentCall) -> bool {
        let args = Value::Object(call.args.clone());
        let tool = self.engine.tools.get(&call.call.spec.tool_name);
        tool.is_some_and(|tool| is_repeatable(tool, &call.call.spec, &args))
    }

    fn refused(&self, class: &str, why: &str) -> SentEnd {
        let why = format!("worker `{}` refuses the call: {why}", self.offer.worker);
        SentEnd::refused(class, why, &self.offer.worker)
    }

    fn end(&self, outcome: SentOutcome) -> SentEnd {
        SentEnd::new(outcome, &self.offer.worker)
    }

    /// Ends a call; does nothing if it does not run here.
    pub fn kill(&self, ticket: &Ticket) {
        let mut table = self.table();
        if let Some(key) = table.calls.get(ticket).map(|known| known.key) {
            table.executor.kill(key);
        }
    }

    /// Returns the number of calls that run or wait for a slot.
    pub fn running(&self) -> usize {
        self.calls.receiver_count()
    }

    /// Ends all calls. Their ends still come.
    pub fn stop_all(&self) {
        self.table().executor.kill_all();
    }

    /// Ends all calls, waits for them, and removes temporary files.
    pub async fn close(self) {
        self.stop_all();
        self.calls.closed().await;
        self.live.programs().close().await;
        if let Some(private) = self.private {
            private.forget(self.live.temporary());
        }
        self.live.end().await;
    }
}

impl Table {
    /// Keeps an end for callers that join late, and drops the oldest ones.
    fn keep_end(&mut self, ticket: &Ticket, end: &SentEnd) {
        let bytes = serde_json::to_vec(end).map_or(0, |text| text.len());
        self.ended.push_back((ticket.clone(), bytes));
        self.kept_bytes += bytes;
        while self.ended.len() > MAX_KEPT_ENDS || self.kept_bytes > MAX_KEPT_BYTES {
            let Some((ticket, bytes)) = self.ended.pop_front() else { return };
            self.kept_bytes -= bytes;
            self.calls.remove(&ticket);
        }
    }
}

/// Opens the repository of calls that bring their files.
async fn trees_of(
    engine: &Engine,
    worker: &str,
    remote: Option<String>,
) -> Result<Option<Arc<WorkerTrees>>, RunError> {
    let Some(remote) = remote else { return Ok(None) };
    let files = engine.project.files.clone();
    let trees = engine.worktrees.of_worker(worker).unwrap_or_else(|| files.join("trees"));
    let opened = tokio::task::spawn_blocking(move || WorkerTrees::open(&files, trees, &remote)).await;
    let opened =
        opened.map_err(|error| error.to_string()).and_then(|opened| opened.map_err(|error| error.message));
    opened.map(|trees| Some(Arc::new(trees))).map_err(|why| RunError::ProjectFiles { why })
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether `a` is a later start of the call of `b`.
fn is_newer(a: &Ticket, b: &Ticket) -> bool {
    a.key == b.key && a.start > b.start
}

/// Waits for the end of a call.
async fn joined(mut end: watch::Receiver<Option<SentEnd>>, worker: &str) -> SentEnd {
    let ended = end.wait_for(Option::is_some).await.ok().and_then(|end| (*end).clone());
    // The sender is only dropped without an end if the call panicked or the process ends.
    ended.unwrap_or_else(|| {
        let why = Some("the executor of the call ended".to_owned());
        SentEnd::new(SentOutcome::Interrupted { repeatable: false, why }, worker)
    })
}

fn sent_end(ended: Ended, worker: &str) -> SentEnd {
    let Ended { end, took, usage, cut, artifacts, changed, hint, files, .. } = ended;
    let mut outcome = SentOutcome::from(end);
    let mut hint = hint;
    if let SentOutcome::Failed { error, .. } = &mut outcome {
        // The sandbox that refused something is that of the worker, so a grant of the coordinator's user would not help.
        if error.grant.take().is_some() {
            hint = Some(format!("grant it on the machine of worker `{worker}`"));
        }
    }
    let end = SentEnd {
        outcome,
        worker: worker.to_owned(),
        millis: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        usage,
        cut,
        artifacts,
        changed: changed.files,
        changes_unknown: changed.unknown,
        hint,
        files,
    };
    let bytes = serde_json::to_vec(&end).map_or(0, |text| text.len());
    if bytes <= MAX_END_BYTES {
        return end;
    }
    let why = format!("its result of {bytes} bytes is larger than 16 MiB; write it to a file instead");
    SentEnd { millis: end.millis, ..SentEnd::refused("output_limit", why, worker) }
}

#[async_trait]
impl CallExecutor for LocalExecutor {
    fn offers(&self) -> Arc<[Offer]> {
        [self.offer.clone()].into()
    }

    async fn execute(&self, _worker: &str, call: SentCall) -> Result<SentEnd, ExecuteError> {
        let delivery = call.ticket.to_string();
        Ok(self.run(call, &delivery, false).await)
    }

    async fn status(&self, _worker: &str, tickets: &[Ticket]) -> Result<Vec<TicketStatus>, ExecuteError> {
        let table = self.table();
        let status = |ticket| match table.calls.get(ticket) {
            None => TicketStatus::Unknown,
            Some(known) if known.end.borrow().is_some() => TicketStatus::Ended,
            Some(_) => TicketStatus::Running,
        };
        Ok(tickets.iter().map(status).collect())
    }

    async fn find(&self, ticket: &Ticket) -> Result<Option<String>, ExecuteError> {
        let table = self.table();
        let is_known = table.calls.contains_key(ticket) || table.seen.has(ticket);
        Ok(is_known.then(|| self.offer.worker.clone()))
    }

    async fn stop(&self, _worker: &str, ticket: &Ticket) -> Result<(), ExecuteError> {
        self.kill(ticket);
        Ok(())
    }
}
