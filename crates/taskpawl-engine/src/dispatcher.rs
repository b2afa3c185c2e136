//! Drives a [`RunLoop`] with tokio: gives it every input, and carries out every output.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use taskpawl_manager::{Error, Manager};
use taskpawl_model::command::{Command, Grant, Inquiry, Report, Round, RunRules, StartedCall};
use taskpawl_model::rules::DecideError;
use taskpawl_model::run::run_loop::{
    Deadline, EndedCall, Host, Input, LoopOptions, Output, RunLimits, RunLoop,
};
use taskpawl_model::task::StopRequest;
use taskpawl_model::value::Selector;
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{Key, RunId, SharedText};
use taskpawl_model::view::View;
use taskpawl_store::{Outcome, StoreError};
use taskpawl_tools::{Tool, ToolError};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::adoption::{Adoption, Joined};
use crate::changes::Changed;
use crate::engine::Engine;
use crate::error::RunError;
use crate::executor::{Ended, Executor, RunResources};
use crate::files_by_git::ProjectFiles;
use crate::liveness;
use crate::notify::Notifier;
use crate::observer::RunEvent;
use crate::options::{RunControl, RunOptions};
use crate::questions::{ApproverReply, Questions};
use crate::reporter::Reporter;
use crate::scans::inquire;
use crate::sending::{Choice, Leaving, Returned, Sender, leaving, unplaced};
use crate::summary::{RunSummary, Summarizer};
use crate::tool_lookup::{ToolLookup, with_found};

/// For how many tasks files are read at once.
const MAX_INQUIRIES: usize = 4;

/// The shortest time between two reads of the run's own record.
const STOP_REQUEST_PAUSE: Duration = Duration::from_millis(200);

/// The time in which ends of calls on workers are gathered for one commit, for each call that runs. To handle an end takes about as
/// long, so that calls which end faster than this would wait anyway.
const GATHER: Duration = Duration::from_micros(100);

/// The longest of these times.
const MAX_GATHER: Duration = Duration::from_millis(20);

/// The number of running calls from which their ends are gathered.
const MANY_CALLS: u32 = 16;

/// Exit code of a run that another process stopped, as after Ctrl-C.
const STOPPED: u8 = 130;

/// Exit code of a run whose engine was silent for too long.
const ENGINE_SILENT: u8 = 4;

type CallFuture = Pin<Box<dyn Future<Output = Returned> + Send>>;

type Outcomes = Result<Vec<Outcome>, StoreError>;

pub(crate) struct Dispatcher {
    engine: Engine,
    manager: Manager,
    run: RunId,
    owns_thread: bool,
    run_loop: RunLoop,
    executor: Executor,
    reporter: Reporter,
    questions: Questions,
    /// Calls that did not finish on their first poll. Dropping the set aborts them.
    calls: JoinSet<Returned>,
    /// Sends calls to workers; `None` if all calls run here.
    sender: Option<Arc<Sender>>,
    adoption: Adoption,
    /// The number of calls that the engine may still run although it is silent, with the last error.
    abandoned: Option<(usize, String)>,
    inquiries: JoinSet<(Key, Grant)>,
    inquirers: Arc<Semaphore>,
    tool_lookup: ToolLookup,
    /// Outcomes of commits: the reply closure given to the store sends, the dispatcher receives. Unbounded, but never holds more
    /// than one message, because the loop starts a commit only after the previous one was answered.
    committed: (mpsc::UnboundedSender<Outcomes>, mpsc::UnboundedReceiver<Outcomes>),
    control: RunControl,
    stops: watch::Receiver<u32>,
    stops_seen: u32,
    /// The last time at which the record of the run was read for a request of another process.
    record_read: Instant,
}

/// The store and the machine, as the loop of a run sees them.
struct EngineHost<'a> {
    manager: &'a Manager,
    engine: &'a Engine,
    adoption: &'a Adoption,
}

impl Host for EngineHost<'_> {
    type Error = RunError;

    fn read<T>(&mut self, read: impl FnOnce(&dyn View) -> Result<T, DecideError>) -> Result<T, RunError> {
        Ok(self.manager.read(read)?)
    }

    fn revision(&mut self, seen: u64) -> Result<u64, RunError> {
        Ok(self.manager.store().wait_change(seen, Duration::ZERO)?)
    }

    fn now(&self) -> Timestamp {
        self.manager.source().now()
    }

    fn is_alive(&self, run: &RunId) -> bool {
        // A run whose calls are joined holds its tasks until they have ended.
        self.adoption.holds(run) || liveness::is_alive(&self.engine.project.files, run)
    }

    fn may_find(&self, tool: &str) -> bool {
        self.engine.finder.as_ref().is_some_and(|finder| finder.may_find(tool))
    }
}

impl Dispatcher {
    pub(crate) fn new(
        engine: &Engine,
        resources: RunResources,
        manager: Manager,
        run: RunId,
        options: &RunOptions,
        notifier: Notifier,
    ) -> Self {
        let scope = options.scope.clone().or_else(taskpawl_tools::current_scope);
        let rules = RunRules { variables: Arc::clone(&resources.digests), ..options.rules() };
        let executor =
            Executor::new(engine, (run.clone(), &manager), resources, scope, options.observer.clone());
        let sender = options.elsewhere.clone();
        let files = &engine.project.files;
        let sender = sender.map(|executor| Arc::new(Sender::new(executor, files, &run)));
        Self {
            sender,
            adoption: Adoption::default(),
            abandoned: None,
            run_loop: RunLoop::new(run.clone(), loop_options(engine, options, rules), manager.source().now()),
            executor,
            reporter: Reporter::new(manager.clone(), options.observer.clone(), notifier),
            questions: Questions::new(engine.manager.clone(), options.approver.clone()),
            engine: engine.clone(),
            manager,
            run,
            owns_thread: options.owns_thread,
            calls: JoinSet::new(),
            inquiries: JoinSet::new(),
            inquirers: Arc::new(Semaphore::new(MAX_INQUIRIES)),
            tool_lookup: ToolLookup::new(engine.finder.clone()),
            committed: mpsc::unbounded_channel(),
            control: options.control.clone(),
            stops: options.control.subscribe(),
            stops_seen: 0,
            record_read: Instant::now(),
        }
    }

    /// Sends calls with the files of the project.
    pub(crate) fn with_files(mut self, files: Option<Arc<ProjectFiles>>) -> Self {
        if let (Some(sender), Some(files)) = (self.sender.as_mut().and_then(Arc::get_mut), files) {
            sender.carry(files);
        }
        self
    }

    pub(crate) async fn run(mut self) -> Result<(RunSummary, Notifier), RunError> {
        let mut inbox = VecDeque::new();
        let outputs = self.begin()?;
        self.carry_out(outputs, &mut inbox).await?;
        // A request from before the run watched is no change, and nothing starts after it: calls start with the first round.
        self.take_stops(&mut inbox);
        loop {
            while let Some(input) = inbox.pop_front() {
                let outputs = self.drive(|run_loop, host| run_loop.handle(host, input))?;
                self.carry_out(outputs, &mut inbox).await?;
            }
            let outputs = self.drive(|run_loop, host| run_loop.settle(host))?;
            if outputs.contains(&Output::Finish) {
                return self.summarize();
            }
            self.carry_out(outputs, &mut inbox).await?;
            if let Some((calls, why)) = self.abandoned.take_if(|_| self.calls.is_empty() && inbox.is_empty())
            {
                return Err(RunError::EngineSilent { calls, why });
            }
            if inbox.is_empty() {
                self.wait(&mut inbox).await?;
                self.take_stop_request(&mut inbox)?;
            }
        }
    }

    fn drive<T>(&mut self, drive: impl FnOnce(&mut RunLoop, &mut EngineHost<'_>) -> T) -> T {
        let host = &mut EngineHost { manager: &self.manager, engine: &self.engine, adoption: &self.adoption };
        drive(&mut self.run_loop, host)
    }

    /// Recovers what dead runs left, frees tasks that waited for a tool of this run, and reads the first snapshot.
    fn begin(&mut self) -> Result<Vec<Output>, RunError> {
        // The order matters: recovery, known tools and decisions of the policy may all make tasks ready, and the loop reads ready
        // tasks only once.
        self.engine.recover()?;
        self.adopt()?;
        let tasks = self.manager.read(|view| Ok(self.run_loop.run_view().tasks_with_tools(view)?))?;
        if !tasks.is_empty() {
            self.manager.command(Command::ToolsKnown { tasks })?;
        }
        self.engine.ask_by_policy()?;
        for selector in self.run_loop.run_view().selectors() {
            if let Selector::Plan(plan) = selector {
                self.reporter.notifier.note_plan(plan);
            }
        }
        self.drive(|run_loop, host| run_loop.begin(host))
    }

    async fn wait(&mut self, inbox: &mut VecDeque<Input>) -> Result<(), RunError> {
        let (alarm, pause) = (self.alarm(), self.run_loop.pause());
        // Every future here is cancel safe: `select!` drops the losing ones on each round. Calls run in the set and are never
        // dropped here.
        tokio::select! {
            Some(outcomes) = self.committed.1.recv() => take_outcomes(outcomes, inbox)?,
            Some(ended) = self.calls.join_next(), if !self.calls.is_empty() => {
                inbox.extend(self.take_joined(ended));
            }
            Some(returned) = self.adoption.next(), if !self.adoption.is_empty() => {
                inbox.push_back(self.take_adopted(returned)?);
            }
            Some(Ok((key, grant))) = self.inquiries.join_next(), if !self.inquiries.is_empty() => {
                inbox.push_back(Input::Granted(key, grant));
            }
            found = self.tool_lookup.found() => inbox.push_back(self.take_tools(found)),
            said = self.questions.said() => inbox.extend(self.take_said(said)?),
            warning = self.reporter.notifier.next() => self.reporter.warn(warning),
            Ok(()) = self.stops.changed() => self.take_stops(inbox),
            () = alarm => inbox.push_back(Input::Tick),
            () = tokio::time::sleep(pause) => inbox.push_back(Input::Tick),
        }
        let running = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        if self.sender.is_some() && running >= MANY_CALLS {
            tokio::time::sleep(GATHER.saturating_mul(running).min(MAX_GATHER)).await;
        }
        // Everything that has arrived meanwhile shares the next commit, and therefore one sync of the disk.
        while let Ok(outcomes) = self.committed.1.try_recv() {
            take_outcomes(outcomes, inbox)?;
        }
        while let Some(ended) = self.calls.try_join_next() {
            inbox.extend(self.take_joined(ended));
        }
        while let Some(Ok((key, grant))) = self.inquiries.try_join_next() {
            inbox.push_back(Input::Granted(key, grant));
        }
        Ok(())
    }

    /// Ends at the next alarm of the loop; never, if there is none. An alarm in the past ends at once.
    fn alarm(&self) -> impl Future<Output = ()> + use<> {
        let next = self.run_loop.next_alarm();
        let left = next.map(|at| (at - self.manager.source().now()).to_std().unwrap_or_default());
        async move {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        }
    }

    async fn carry_out(&mut self, outputs: Vec<Output>, inbox: &mut VecDeque<Input>) -> Result<(), RunError> {
        let mut outputs = outputs.into_iter();
        while let Some(output) = outputs.next() {
            match output {
                Output::Commit(round) => {
                    if self.commit(round, outputs.len() == 0) {
                        // A commit in place does not await anything. Without this yield, a current-thread runtime could not poll
                        // calls that are ready to finish.
                        tokio::task::yield_now().await;
                    }
                }
                Output::Start(call, deadline) => self.start(*call, deadline, inbox).await,
                Output::Inquire(key, inquiry) => self.inquire(key, inquiry),
                Output::Kill(key) => self.executor.kill(key),
                Output::KillAll => self.executor.kill_all(),
                Output::LookUp(tool) => self.tool_lookup.look_for(tool, &self.executor),
                Output::Ask(key) => inbox.extend(self.questions.ask(key)?),
                Output::Withdraw(key) => self.questions.withdraw(key),
                Output::Waiting(key) => self.reporter.waiting(key)?,
                Output::Expire(tasks) => drop(self.manager.command(Command::ExpireApprovals { tasks })?),
                Output::Wake(tasks) => {
                    let answer = self.engine.manager.command(Command::Wake { tasks })?;
                    inbox.push_back(Input::Woken(answer.ended));
                }
                Output::TaskEnded(ended) => self.reporter.task_ended(ended),
                Output::EndedEarly(ended) => self.reporter.tell(&RunEvent::EndedEarly(ended)),
                Output::Recover => {
                    self.engine.recover()?;
                    self.adopt()?;
                }
                Output::Finish => {}
            }
        }
        Ok(())
    }

    /// Submits a round. Returns whether it was committed on this thread, as far as no other writer was committing: that saves two
    /// switches of threads where one task ends and nothing else happens, as in a chain.
    fn commit(&self, round: Box<Round>, is_last: bool) -> bool {
        // A larger round is committed beside the calls that it starts.
        let is_single = round.reports.len() + round.claims.len() <= 1;
        let is_idle = self.calls.is_empty() && self.inquiries.is_empty();
        let is_here = self.owns_thread && is_single && is_last && is_idle;
        let requests = vec![self.manager.request(Command::Round(round))];
        let sender = self.committed.0.clone();
        let reply = Box::new(move |outcomes| {
            // The receiver is gone when the run was dropped: its record stays open for the next one.
            let _ = sender.send(outcomes);
        });
        if is_here {
            self.manager.store().submit_here(requests, reply);
        } else {
            self.manager.store().submit(requests, reply);
        }
        is_here
    }

    /// Reads the files of a task beside the loop: no other task waits for that.
    fn inquire(&mut self, key: Key, inquiry: Inquiry) {
        let (root, inquirers) = (self.engine.project.root.clone(), Arc::clone(&self.inquirers));
        let cancel = self.executor.cancellation();
        self.inquiries.spawn(async move {
            let _permit = inquirers.acquire().await;
            (key, inquire(cancel, root, inquiry).await)
        });
    }

    /// Polls the call once in place: a call that ends at once needs no task of its own.
    async fn start(&mut self, started: StartedCall, deadline: Option<Deadline>, inbox: &mut VecDeque<Input>) {
        self.reporter.call_started(&started);
        let mut call = self.place(started, deadline);
        match std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await {
            Poll::Ready(returned) => inbox.extend(self.take_returned(returned)),
            Poll::Pending => {
                self.calls.spawn(call);
            }
        }
    }

    /// Returns the future of a call, here or on a worker.
    fn place(&mut self, started: StartedCall, deadline: Option<Deadline>) -> CallFuture {
        let choice = self.sender.as_ref().map_or(Choice::Here, |sender| {
            sender.choose(&started, self.executor.tool(&started.call.spec.tool_name).is_some())
        });
        match (choice, &self.sender) {
            (Choice::Worker(worker), Some(sender)) => {
                let identity =
                    (self.executor.idempotency_key(&started), self.run.clone(), self.executor.keys());
                let tool = self.executor.tool(&started.call.spec.tool_name);
                let now = self.manager.source().now();
                let sent = leaving(&started, identity, deadline.as_ref(), tool, now);
                let cancel = self.executor.token(started.key);
                Box::pin(sender.send(worker, Leaving { started, sent, cancel, at: now }))
            }
            (Choice::Nowhere(why), _) => {
                let ended = Box::new(unplaced(&started, why));
                Box::pin(std::future::ready(Returned::Ended(ended)))
            }
            (Choice::Here | Choice::Worker(_), _) => {
                let call = self.executor.call(started, deadline);
                Box::pin(async move { Returned::Ended(Box::new(call.await)) })
            }
        }
    }

    fn take_returned(&mut self, returned: Returned) -> Option<Input> {
        match returned {
            Returned::Ended(ended) => {
                if ended.is_unsent {
                    self.stop_for_silence();
                }
                Some(self.take_ended(*ended))
            }
            Returned::Abandoned(why) => {
                self.stop_for_silence();
                self.abandoned.get_or_insert((0, why)).0 += 1;
                None
            }
        }
    }

    /// Starts nothing more, because the engine is silent.
    fn stop_for_silence(&self) {
        if self.control.requests() == 0 {
            self.control.stop_with(ENGINE_SILENT);
        }
    }

    /// Joins the calls of dead runs that workers still execute.
    ///
    /// # Errors
    /// There are such calls, and the run has no engine.
    fn adopt(&mut self) -> Result<(), RunError> {
        let found = self.engine.calls_elsewhere()?;
        let Some(sender) = &self.sender else {
            let tasks: Vec<String> = found.iter().map(|call| call.task.id.to_string()).collect();
            return if tasks.is_empty() { Ok(()) } else { Err(RunError::RunsElsewhere { tasks }) };
        };
        let files = &self.engine.project.files;
        let executor = &self.executor;
        let now = self.manager.source().now();
        let joined = self.adoption.begin(files, sender, found, |started| {
            let identity = (executor.idempotency_key(started), self.run.clone(), executor.keys());
            leaving(started, identity, None, executor.tool(&started.call.spec.tool_name), now)
        });
        for (run, calls) in joined {
            self.reporter.warn(format!("run {run} was killed: waiting for {calls} of its calls on workers"));
        }
        Ok(())
    }

    /// Reports the end of a call of a dead run in the name of that run, under the attempt that it had.
    fn take_adopted(&mut self, joined: Joined) -> Result<Input, RunError> {
        let (run, returned) = joined;
        match returned {
            Returned::Ended(ended) if !ended.is_unsent => {
                let report = report_of(*ended).0;
                let round = Round { reports: vec![report], ..Round::default() };
                let request = self.manager.clone().with_run(run).request(Command::Round(Box::new(round)));
                // A refusal means that another run has joined the same call, and reported it first.
                self.manager.store().write(vec![request])?;
                // The task is released if it has more calls, and the record of the run is closed after the last one.
                self.engine.recover()?;
            }
            Returned::Ended(_) => self.stop_for_silence(),
            Returned::Abandoned(why) => {
                self.stop_for_silence();
                self.abandoned.get_or_insert((0, why)).0 += 1;
            }
        }
        Ok(Input::Tick)
    }

    fn take_joined(&mut self, joined: Result<Returned, JoinError>) -> Option<Input> {
        match joined {
            Ok(returned) => self.take_returned(returned),
            // Tasks of the set are never aborted while the dispatcher exists, so that an error can only be a panic.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    fn take_ended(&mut self, ended: Ended) -> Input {
        if self.reporter.call_ended(&ended) {
            self.executor.forget(ended.key);
        }
        let (report, plan, duration) = report_of(ended);
        Input::Ended(Box::new(EndedCall { report, plan, duration }))
    }

    fn take_said(&mut self, said: ApproverReply) -> Result<Option<Input>, RunError> {
        let (decided, problem) = self.questions.carry_out(said)?;
        if let Some(problem) = problem {
            self.reporter.warn(problem);
        }
        Ok(decided.map(Input::Decided))
    }

    /// Registers tools that a search has found.
    fn take_tools(&mut self, found: Result<Vec<Arc<dyn Tool>>, ToolError>) -> Input {
        let found = found.unwrap_or_else(|error| {
            self.reporter.warn(error.to_string());
            Vec::new()
        });
        let (registry, names) = with_found(&self.engine.tools, found);
        if !names.is_empty() {
            self.engine.tools = Arc::new(registry);
            self.executor.take_tools(Arc::clone(&self.engine.tools));
        }
        Input::ToolsFound(names)
    }

    fn take_stops(&mut self, inbox: &mut VecDeque<Input>) {
        let requests = *self.stops.borrow_and_update();
        // A request may arrive while others are pending, so each gets its input.
        for request in self.stops_seen..requests {
            let running = self.run_loop.running_calls();
            self.reporter.tell(&RunEvent::Stopping { hard: request > 0, running });
            inbox.push_back(Input::Stop);
        }
        self.stops_seen = requests;
    }

    /// Passes on the request of another process to stop this run. A run that was already asked to stop as much ignores it.
    fn take_stop_request(&mut self, inbox: &mut VecDeque<Input>) -> Result<(), RunError> {
        // A busy run wakes up thousands of times a second.
        if self.record_read.elapsed() < STOP_REQUEST_PAUSE {
            return Ok(());
        }
        self.record_read = Instant::now();
        let request = self.manager.read(|view| Ok(view.run(&self.run)?))?.and_then(|record| record.stop);
        let asked = match request {
            None => return Ok(()),
            Some(StopRequest::Soft) => 1,
            Some(StopRequest::Now) => 2,
        };
        while self.control.requests() < asked {
            self.control.stop_with(STOPPED);
        }
        self.take_stops(inbox);
        Ok(())
    }

    fn summarize(self) -> Result<(RunSummary, Notifier), RunError> {
        let Reporter { notifier, cached, changed_beyond, isolation, .. } = self.reporter;
        let summarizer = Summarizer {
            run: self.run,
            report: self.run_loop.into_report(),
            cached,
            changed_beyond: changed_beyond.into_values().collect(),
            isolation: isolation.level(),
            stopped_with: self.control.exit(),
            asker: self.manager.context_of_starter(),
            remembered: self.engine.remembered_grants(),
        };
        let summary = self.manager.read(|view| Ok(summarizer.summarize(view)?))?;
        Ok((summary, notifier))
    }
}

/// Returns the report of a call, with its plan and its run time.
fn report_of(ended: Ended) -> (Report, Option<SharedText>, Duration) {
    let Ended {
        key,
        attempt,
        call,
        end,
        spent,
        plan,
        usage,
        cut,
        artifacts,
        changed,
        inputs_changed,
        worker,
        ..
    } = ended;
    let Changed { files: changed_beyond, unknown: changes_unknown } = changed;
    let report = Report::new(key, attempt, call, end);
    let report =
        Report { usage, cut, artifacts, changed_beyond, changes_unknown, inputs_changed, worker, ..report };
    (report, plan, spent)
}

fn loop_options(engine: &Engine, options: &RunOptions, rules: RunRules) -> LoopOptions {
    let (timeout, max_failures) = (options.timeout, options.max_failures);
    LoopOptions {
        only: options.only.clone(),
        jobs: options.jobs(),
        tools: engine.tools.iter().map(|tool| tool.spec().name.clone()).collect(),
        rules,
        limits: RunLimits { timeout, max_failures, budget: options.budget.clone() },
        tool_limits: options.tool_limits.clone(),
        waits_for_agents: options.wait,
        has_approver: options.approver.is_some(),
    }
}

fn take_outcomes(outcomes: Outcomes, inbox: &mut VecDeque<Input>) -> Result<(), RunError> {
    for outcome in outcomes? {
        inbox.push_back(Input::Committed(Box::new(outcome.map_err(Error::from)?)));
    }
    Ok(())
}
