//! The dispatcher: a single loop that turns everything that happens into events for `schedule::step` and carries out
//! its actions.
//!
//! Because one loop owns the schedule, no state of a run needs a lock: calls, commits and signals only send messages to
//! it.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use taskpawl_manager::Manager;
use taskpawl_model::schedule::{Action, Commit, Event, Intake, Limits, State, Stop, step};
use taskpawl_model::{
    Answer, CallEnd, CallStatus, Command, Grant, Inquiry, Key, KeyMap, Needs, Report, RunId, Selector,
    StartedCall, Status, TaskId, TaskState, View, ViewResult, blocked_reason, paths,
};
use taskpawl_store::{Outcome, StoreError};
use taskpawl_tools::{Tool, ToolError};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use crate::changes::Changed;
use crate::engine::{Engine, RunControl, RunOptions};
use crate::error::RunError;
use crate::executor::{Ended, Executor, Held};
use crate::finding::{Finding, with_found};
use crate::ledger::Ledger;
use crate::liveness;
use crate::notify::Notifier;
use crate::observer::{Observer, RunEvent};
use crate::questions::{Questions, Said};
use crate::scans::inquire;
use crate::summary::{ChangedBeyond, LISTED, RunSummary, Summarizer, interruption, reason_text};

// Changes of other processes are polled, because SQLite cannot notify across processes. The pause doubles while nothing
// happens: 200 ms is the longest delay, and an idle run costs at most five reads of the revision a second.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_millis(200);

/// Number of tasks with `cache` whose files are hashed at the same time.
const FINDERS: usize = 4;

type Outcomes = Result<Vec<Outcome>, StoreError>;

pub(crate) struct Dispatcher {
    engine: Engine,
    manager: Manager,
    run: RunId,
    wait: bool,
    owns_thread: bool,
    intake: Intake,
    state: State,
    executor: Executor,
    observer: Option<Arc<dyn Observer>>,
    /// Calls that did not finish on their first poll. Dropping the set aborts them.
    calls: JoinSet<Ended>,
    questions: Questions,
    notifier: Notifier,
    /// Running calls by task, with the names that observers see.
    in_flight: BTreeMap<Key, InFlight>,
    /// Outcomes of commits: the reply closure given to the store sends, the run loop receives. Unbounded, but never
    /// holds more than one message, because the schedule starts a commit only after the previous one was answered.
    committed: (mpsc::UnboundedSender<Outcomes>, mpsc::UnboundedReceiver<Outcomes>),
    control: RunControl,
    stops: watch::Receiver<u32>,
    stops_seen: u32,
    pause: Duration,
    ended: BTreeMap<Status, u64>,
    ledger: Ledger,
    tool_limits: BTreeMap<String, usize>,
    /// Lookups before the claim of a task with `cache`; `finders` limits their number.
    finds: JoinSet<(Key, Grant)>,
    finders: Arc<Semaphore>,
    /// Searches for tools that the registry does not have.
    finding: Finding,
    cached: u64,
    changed_beyond: BTreeMap<TaskId, ChangedBeyond>,
}

#[derive(Debug)]
struct InFlight {
    id: TaskId,
    calls: BTreeMap<taskpawl_model::CallId, String>,
}

impl Dispatcher {
    pub(crate) fn new(
        engine: &Engine,
        held: Held,
        manager: Manager,
        run: RunId,
        options: &RunOptions,
        notifier: Notifier,
    ) -> Self {
        let scope = options.scope.clone().or_else(taskpawl_tools::current_scope);
        let executor = Executor::new(engine, (run.clone(), &manager), held, scope, options.observer.clone());
        let tools = engine.tools.iter().map(|tool| tool.spec().name.clone()).collect();
        Self {
            intake: Intake::new(run.clone(), options.only.clone(), tools).with_rules(options.rules()),
            ledger: Ledger::new(options, manager.source().now()),
            tool_limits: options.tool_limits.clone(),
            finds: JoinSet::new(),
            finders: Arc::new(Semaphore::new(FINDERS)),
            finding: Finding::new(engine.finder.clone()),
            cached: 0,
            changed_beyond: BTreeMap::new(),
            state: State::new(options.jobs(), KeyMap::default()),
            engine: engine.clone(),
            manager,
            run,
            wait: options.wait,
            owns_thread: options.owns_thread,
            executor,
            observer: options.observer.clone(),
            calls: JoinSet::new(),
            questions: Questions::new(engine.manager.clone(), options.approver.clone()),
            notifier,
            in_flight: BTreeMap::new(),
            committed: mpsc::unbounded_channel(),
            control: options.control.clone(),
            stops: options.control.subscribe(),
            stops_seen: 0,
            pause: FIRST_PAUSE,
            ended: BTreeMap::new(),
        }
    }

    pub(crate) async fn run(mut self) -> Result<(RunSummary, Notifier), RunError> {
        let mut events = VecDeque::new();
        // A stop request from before the subscription does not count as a change of the channel, so it has to be read
        // explicitly. It has to be handled first, because nothing may start after it.
        self.take_stops(&mut events);
        events.push_back(self.begin()?);
        loop {
            while let Some(event) = events.pop_front() {
                let actions = step(&mut self.state, event);
                self.carry_out(actions, &mut events).await;
            }
            self.questions.ask()?;
            events.extend(self.used_up());
            if !events.is_empty() {
                continue;
            }
            if self.state.is_out_of_work() {
                let more = self.more_may_come()?;
                step(&mut self.state, Event::MoreMayCome(more));
            }
            let actions = step(&mut self.state, Event::Settled);
            if actions.contains(&Action::Finish) {
                return self.summarize();
            }
            self.carry_out(actions, &mut events).await;
            if events.is_empty() {
                self.wait_for_events(&mut events).await?;
            }
        }
    }

    /// Returns the events for limits that were reached since the last call. Callers apply them before the event that
    /// reached the limit, so that nothing starts because of that event.
    fn used_up(&mut self) -> Vec<Event> {
        let news = self.ledger.check(self.manager.source().now());
        let tell = |(event, ended)| {
            if let Some(observer) = &self.observer {
                observer.event(&RunEvent::EndedEarly(ended));
            }
            event
        };
        news.into_iter().map(tell).collect()
    }

    /// Loads the ready tasks and the length of the dependency chains behind them.
    fn begin(&mut self) -> Result<Event, RunError> {
        // The order matters: recovery, known tools and decisions of the policy may all make tasks ready, and the intake
        // reads ready tasks only once.
        self.engine.recover()?;
        self.free_missing_tools()?;
        self.engine.ask_by_policy()?;
        let jobs = self.state.jobs();
        let beginning = self.manager.read(|view| self.intake.begin(view, jobs))?;
        let asked = self.manager.read(|view| Ok(self.questions.begin(view, self.intake.scope())?))?;
        self.tell_asked(asked)?;
        for selector in self.intake.selectors() {
            if let Selector::Plan(plan) = selector {
                self.notifier.note_plan(plan);
            }
        }
        self.ledger.take_plans(self.manager.read(|view| Ok(view.plans()?))?);
        let limits = Limits { tools: self.tool_limits.clone(), ..self.ledger.limits() };
        self.state = State::new(jobs, beginning.ranks).with_limits(limits);
        Ok(Event::Ready(beginning.ready))
    }

    /// Unblocks tasks that an earlier process could not run because it lacked a tool that this process has.
    fn free_missing_tools(&self) -> Result<(), RunError> {
        let tasks = self.manager.read(|view| Ok(self.intake.tasks_with_tools(view)?))?;
        if !tasks.is_empty() {
            self.manager.command(Command::ToolsKnown { tasks })?;
        }
        Ok(())
    }

    async fn wait_for_events(&mut self, events: &mut VecDeque<Event>) -> Result<(), RunError> {
        let alarm = self.alarm();
        // Every future here is cancel safe: `select!` drops the losing ones on each round. Calls themselves run in the
        // set and are never dropped here.
        tokio::select! {
            Some(outcomes) = self.committed.1.recv() => self.take_outcomes(outcomes, events)?,
            Some(ended) = self.calls.join_next(), if !self.calls.is_empty() => self.take_joined(ended, events),
            Some(Ok((key, grant))) = self.finds.join_next(), if !self.finds.is_empty() => {
                events.push_back(Event::Found(key, grant));
            }
            found = self.finding.found() => self.take_found(found, events)?,
            said = self.questions.said() => self.take_said(said, events)?,
            warning = self.notifier.next() => self.warn(warning),
            Ok(()) = self.stops.changed() => self.take_stops(events),
            () = alarm => {
                self.look_for_changes(events)?;
                events.push_back(Event::Due(self.manager.source().now()));
            }
            () = tokio::time::sleep(self.pause) => self.look_for_changes(events)?,
        }
        // Everything that has arrived meanwhile shares the next commit, and therefore one sync of the disk.
        while let Ok(outcomes) = self.committed.1.try_recv() {
            self.take_outcomes(outcomes, events)?;
        }
        while let Some(ended) = self.calls.try_join_next() {
            self.take_joined(ended, events);
        }
        Ok(())
    }

    /// Waits until the next due time: the end of a retry delay, of a request for approval, or of the time of the run or
    /// a plan. Never ends if there is none.
    fn alarm(&self) -> impl Future<Output = ()> + use<> {
        let alarms = [self.state.next_alarm(), self.ledger.next_deadline(), self.questions.next_end()];
        let next = alarms.into_iter().flatten().min();
        // A due time in the past becomes zero: the alarm fires at once.
        let left = next.map(|at| (at - self.manager.source().now()).to_std().unwrap_or_default());
        async move {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        }
    }

    async fn carry_out(&mut self, actions: Vec<Action>, events: &mut VecDeque<Event>) {
        let mut actions = actions.into_iter();
        while let Some(action) = actions.next() {
            match action {
                Action::Commit(commit) => {
                    if self.commit(*commit, actions.len() == 0) {
                        // A commit in place does not await anything. Without this yield, a current-thread runtime could
                        // not poll calls that are ready to finish.
                        tokio::task::yield_now().await;
                    }
                }
                Action::Start(call) => self.start(*call, events).await,
                Action::Find(key, inquiry) => self.find(key, inquiry),
                Action::Kill(key) => self.executor.kill(key),
                Action::KillAll => self.executor.kill_all(),
                Action::Finish => {}
            }
        }
    }

    /// Looks up the information that is needed before a task is claimed. Runs as a task of its own, so that reading
    /// files delays no other task.
    fn find(&mut self, key: Key, inquiry: Inquiry) {
        let (root, finders) = (self.engine.project.root.clone(), Arc::clone(&self.finders));
        let cancel = self.executor.cancellation();
        self.finds.spawn(async move {
            let _place = finders.acquire().await;
            (key, inquire(cancel, root, inquiry).await)
        });
    }

    /// Starts a call. Polls it once in place: a call that finishes immediately needs no tokio task.
    async fn start(&mut self, started: StartedCall, events: &mut VecDeque<Event>) {
        self.note_start(&started);
        let deadline = self.ledger.deadline(started.plan.as_deref());
        let mut call: Pin<Box<dyn Future<Output = Ended> + Send>> =
            Box::pin(self.executor.call(started, deadline));
        match std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await {
            Poll::Ready(ended) => self.take_ended(ended, events),
            Poll::Pending => {
                self.calls.spawn(call);
            }
        }
    }

    fn note_start(&mut self, started: &StartedCall) {
        self.ledger.note_start(started);
        if let Some(plan) = &started.plan {
            self.notifier.note_plan(plan);
        }
        let task = self.in_flight.entry(started.key);
        let task = task.or_insert_with(|| InFlight { id: started.task.clone(), calls: BTreeMap::new() });
        task.calls.insert(started.call.id.clone(), started.call.spec.tool_name.clone());
        if let Some(observer) = &self.observer {
            observer.event(&RunEvent::CallStarted {
                task: started.task.clone(),
                name: started.spec.name.clone(),
                call: started.call.id.clone(),
                tool: started.call.spec.tool_name.clone(),
                attempt: started.call.body.attempts,
                claim: started.attempt,
            });
        }
    }

    /// Writes a commit. Returns true if this thread wrote it itself, which is cheaper for a chain of tasks in which one
    /// task ends and nothing else happens.
    fn commit(&self, commit: Commit, is_last: bool) -> bool {
        // Larger commits go to the writer thread, so that the calls that they start overlap with the sync.
        let is_single = commit.reports.len() + commit.claims.len() <= 1;
        let is_idle = self.calls.is_empty() && self.finds.is_empty();
        let is_here = self.owns_thread && is_single && is_last && is_idle;
        let round = Box::new(self.intake.round(commit));
        let requests = vec![self.manager.request(Command::Round(round))];
        let sender = self.committed.0.clone();
        let reply = Box::new(move |outcomes| {
            // The receiver is gone if the run was dropped. The run record then stays open, and the next run recovers
            // it.
            let _ = sender.send(outcomes);
        });
        if is_here {
            self.manager.store().submit_here(requests, reply);
        } else {
            self.manager.store().submit(requests, reply);
        }
        is_here
    }

    fn take_outcomes(&mut self, outcomes: Outcomes, events: &mut VecDeque<Event>) -> Result<(), RunError> {
        for outcome in outcomes? {
            let mut answer = outcome.map_err(taskpawl_manager::Error::from)?;
            for (key, status) in std::mem::take(&mut answer.ended) {
                self.note_end(key, status);
            }
            // Failures count before the answer is applied: tasks that it makes ready must not start beyond
            // `maxFailures`.
            events.extend(self.used_up());
            let asked = std::mem::take(&mut answer.asked);
            self.take_answer(answer, events)?;
            self.look_at_questions(asked)?;
        }
        Ok(())
    }

    /// Updates the pending approvals: tasks that have just started to wait for one, and tasks that other processes
    /// changed.
    fn look_at_questions(&mut self, mut changed: Vec<Key>) -> Result<(), RunError> {
        changed.extend(self.intake.take_changed());
        if changed.is_empty() {
            return Ok(());
        }
        let news =
            self.manager.read(|view| Ok(self.questions.look(view, self.intake.scope(), &changed)?))?;
        self.tell_asked(news)
    }

    /// Tells the notifier and the observer which tasks wait for an approval.
    fn tell_asked(&mut self, asked: Vec<Key>) -> Result<(), RunError> {
        for key in asked {
            if let Some(request) = self.questions.request(key)? {
                self.notifier.waiting(&request);
                if let Some(observer) = &self.observer {
                    observer.event(&RunEvent::Asked(Box::new(request)));
                }
            }
        }
        Ok(())
    }

    fn take_said(&mut self, said: Said, events: &mut VecDeque<Event>) -> Result<(), RunError> {
        if let Some(problem) = self.questions.carry_out(said)? {
            self.warn(problem);
        }
        self.look_for_changes(events)
    }

    fn warn(&self, message: String) {
        if let Some(observer) = self.observer.as_ref().filter(|_| !message.is_empty()) {
            observer.event(&RunEvent::Warning { message });
        }
    }

    /// Registers tools that a search returned, and considers the tasks again that were left out without them.
    fn take_found(
        &mut self,
        tools: Result<Vec<Arc<dyn Tool>>, ToolError>,
        events: &mut VecDeque<Event>,
    ) -> Result<(), RunError> {
        let tools = tools.unwrap_or_else(|error| {
            self.warn(error.to_string());
            Vec::new()
        });
        let (registry, names) = with_found(&self.engine.tools, tools);
        if !names.is_empty() {
            self.engine.tools = Arc::new(registry);
            self.executor.take_tools(Arc::clone(&self.engine.tools));
            events.extend(self.manager.read(|view| Ok(self.intake.take_tools(view, names)?))?);
        }
        Ok(())
    }

    fn take_answer(&mut self, answer: Answer, events: &mut VecDeque<Event>) -> Result<(), RunError> {
        let missing: Vec<String> = answer.missing_tools.iter().map(|(_, name)| name.clone()).collect();
        // A search may have ended while the commit was under way. Its tools are not missing any more, and no further
        // search will report them.
        let is_found = missing.iter().any(|name| self.engine.tools.get(name).is_some());
        self.finding.look_for(missing, &self.executor);
        self.take_in(answer, events)?;
        if is_found {
            events.extend(self.manager.read(|view| Ok(self.intake.take_tools(view, [])?))?);
        }
        Ok(())
    }

    fn take_in(&mut self, answer: Answer, events: &mut VecDeque<Event>) -> Result<(), RunError> {
        // The plain path needs no read of the store. It applies if no other process committed in between and all ready
        // tasks are known.
        if self.intake.is_plain(&answer) {
            events.push_back(self.intake.take_plain(answer));
        } else {
            events.extend(self.manager.read(|view| self.intake.take_answer(view, answer))?);
        }
        Ok(())
    }

    fn note_end(&mut self, key: Key, status: Status) {
        *self.ended.entry(status).or_default() += 1;
        let closed = self.ledger.close(key);
        if let (Some((task, spec)), Status::Done) = (&closed, status) {
            // The common case of a run: everything to report is known, so that the store is not read once per task.
            if let Some(observer) = &self.observer {
                let (task, name) = (task.clone(), spec.name.clone());
                observer.event(&RunEvent::TaskEnded { task, name, status, error: None });
            }
            return;
        }
        if (self.observer.is_some() || matches!(status, Status::Done | Status::Failed))
            && let Ok(Some(ended)) = self.manager.store().view(|view| ended_task(view, key))
        {
            self.tell_end(ended, status);
        }
    }

    fn tell_end(&mut self, ended: EndedTask, status: Status) {
        let EndedTask { task, name, plan, error, is_cached } = ended;
        let is_cached = is_cached && status == Status::Done;
        self.cached += u64::from(is_cached);
        if status == Status::Failed {
            self.ledger.note_failure(plan.as_deref());
            self.notifier.failed(task.as_str(), &name, plan.as_deref(), error.as_deref());
        }
        if let Some(observer) = &self.observer {
            if is_cached {
                observer.event(&RunEvent::Cached { task: task.clone() });
            }
            observer.event(&RunEvent::TaskEnded { task, name, status, error });
        }
    }

    fn take_joined(&mut self, joined: Result<Ended, tokio::task::JoinError>, events: &mut VecDeque<Event>) {
        match joined {
            Ok(ended) => self.take_ended(ended, events),
            // Tasks of the set are never aborted while the dispatcher exists, so that an error can only be a panic.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    fn take_ended(&mut self, ended: Ended, events: &mut VecDeque<Event>) {
        // The account has to be charged before `used_up` below is asked.
        self.ledger.note_end(ended.key, ended.plan.as_deref(), ended.spent, ended.usage.as_ref());
        self.note_changes(&ended);
        let Ended { key, attempt, call, end, took, usage, cut, changed, inputs_changed, .. } = ended;
        self.tell_ended(key, &call, &end, took);
        if let Some(task) = self.in_flight.get_mut(&key) {
            task.calls.remove(&call);
            if task.calls.is_empty() {
                self.in_flight.remove(&key);
                self.executor.forget(key);
            }
        }
        let Changed { files: changed_beyond, unknown: changes_unknown } = changed;
        let report = Report::new(key, attempt, call, end);
        let report = Report { usage, cut, changed_beyond, changes_unknown, inputs_changed, ..report };
        events.extend(self.used_up());
        events.push_back(Event::Ended(Box::new(report)));
    }

    /// Reports files that changed although the task does not declare that it writes them.
    fn note_changes(&mut self, ended: &Ended) {
        let (Some(task), false) = (self.in_flight.get(&ended.key), ended.changed == Changed::default())
        else {
            return;
        };
        let Changed { files, unknown } = ended.changed.clone();
        if let Some(observer) = &self.observer {
            let (task, call) = (task.id.clone(), ended.call.clone());
            let (files, unknown) = (files.clone(), unknown.clone());
            observer.event(&RunEvent::ChangedBeyond { task, call, files, unknown });
        }
        // Memory stays bounded: further tasks are reported to the observer, but not kept for the summary.
        if self.changed_beyond.len() < LISTED || self.changed_beyond.contains_key(&task.id) {
            let new = || ChangedBeyond { task: task.id.clone(), files: Vec::new(), unknown: None };
            let listed = self.changed_beyond.entry(task.id.clone()).or_insert_with(new);
            listed.files.extend(files);
            listed.files.sort();
            listed.files.dedup();
            listed.unknown = unknown.or(listed.unknown.take());
        }
    }

    fn tell_ended(&self, key: Key, call: &taskpawl_model::CallId, end: &CallEnd, took: Duration) {
        let (Some(observer), Some(task)) = (&self.observer, self.in_flight.get(&key)) else { return };
        let (status, error) = match end {
            CallEnd::Succeeded(_) => (CallStatus::Succeeded, None),
            CallEnd::Failed { error, .. } => (CallStatus::Failed, Some(error.message.clone())),
            CallEnd::Interrupted { why, .. } => (CallStatus::Interrupted, why.clone()),
        };
        observer.event(&RunEvent::CallEnded {
            task: task.id.clone(),
            call: call.clone(),
            tool: task.calls.get(call).cloned().unwrap_or_default(),
            status,
            error,
            millis: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
    }

    fn take_stops(&mut self, events: &mut VecDeque<Event>) {
        let requests = *self.stops.borrow_and_update();
        for request in self.stops_seen..requests {
            // The first request stops starting calls, a later one ends running ones. A request may arrive while others
            // are pending, so each gets its event.
            events.push_back(Event::Stop);
            self.questions.stop();
            if let Some(observer) = &self.observer {
                observer
                    .event(&RunEvent::Stopping { hard: request > 0, running: self.state.running_calls() });
            }
        }
        self.stops_seen = requests;
    }

    /// Checks if other processes wrote. The longer nothing happens, the less often this is called.
    fn look_for_changes(&mut self, events: &mut VecDeque<Event>) -> Result<(), RunError> {
        self.questions.expire()?;
        // A timeout of zero only reads the current revision.
        let revision = self.manager.store().wait_change(self.intake.seen(), Duration::ZERO)?;
        if revision > self.intake.seen() {
            events.extend(self.manager.read(|view| self.intake.take_foreign(view, revision))?);
            self.look_at_questions(Vec::new())?;
            self.pause = FIRST_PAUSE;
        } else {
            self.pause = (self.pause * 2).min(LAST_PAUSE);
        }
        Ok(())
    }

    /// Returns whether new work may still appear: live runs hold tasks of the scope, with `wait` agents and people do,
    /// or a change has not been read yet.
    fn more_may_come(&mut self) -> Result<bool, RunError> {
        if self.state.stop() != Stop::No {
            return Ok(false);
        }
        // A task outside of the scope may hold the resource that a task of the scope waits for.
        let waits = self.state.waits_for_others();
        let prospects = self.manager.read(|view| {
            let prospects = if waits {
                self.intake.prospects_anywhere(view, self.wait)
            } else {
                self.intake.prospects(view, self.wait)
            };
            Ok(prospects?)
        })?;
        let dead = prospects.runs.iter().any(|run| !liveness::is_alive(&self.engine.project.files, run));
        // Dead runs release nothing by themselves. Without this recovery the run would wait for them forever.
        if dead {
            self.engine.recover()?;
        }
        if prospects.is_behind {
            self.pause = FIRST_PAUSE;
        }
        Ok(prospects.more_may_come() || self.finding.is_looking() || self.may_be_decided()?)
    }

    /// Returns whether a pending approval may still be decided: by the approver, or with `wait` by other processes.
    fn may_be_decided(&mut self) -> Result<bool, RunError> {
        self.manager.read(|view| Ok(self.questions.look_again(view)?))?;
        Ok(self.questions.is_asking() || (self.wait && self.questions.is_any_open()))
    }

    fn summarize(self) -> Result<(RunSummary, Notifier), RunError> {
        let (ended_early, spent) = self.ledger.close_books();
        let summarizer = Summarizer {
            run: self.run,
            scope: self.intake.scope().cloned(),
            ended: self
                .ended
                .into_iter()
                .map(|(status, count)| (status.as_str().to_owned(), count))
                .collect(),
            missing_tools: self.intake.missing_tools().clone(),
            never_fits: self.intake.never_fits().clone(),
            unmet: self.state.held_up_by_others().map(|(key, needs)| (key, held_text(needs))).collect(),
            ended_early,
            spent,
            cached: self.cached,
            changed_beyond: self.changed_beyond.into_values().collect(),
            stop: self.state.stop(),
            stopped_with: self.control.exit(),
            asker: self.manager.context_of_starter(),
            only: self.intake.selectors().to_vec(),
        };
        let summary = self.manager.read(|view| Ok(summarizer.summarize(view)?))?;
        Ok((summary, self.notifier))
    }
}

/// A finished task, as observers see it.
struct EndedTask {
    task: TaskId,
    name: String,
    plan: Option<String>,
    /// Set if the task did not succeed.
    error: Option<String>,
    is_cached: bool,
}

/// Returns the observer's view of a finished task. Does not read its calls and edges, of which there may be many,
/// unless a call was interrupted.
fn ended_task(view: &dyn View, key: Key) -> ViewResult<Option<EndedTask>> {
    let Some(task) = view.task(key)? else { return Ok(None) };
    let error = match &task.body.state {
        TaskState::Failed { error, .. } => Some(error.clone()),
        TaskState::Cancelled { reason } | TaskState::Skipped { reason } => reason.clone(),
        TaskState::Blocked { reason } => Some(match interruption(view, key, reason)? {
            Some(text) => text,
            None => reason_text(&blocked_reason(view, key, reason)?),
        }),
        TaskState::Todo | TaskState::InProgress { .. } | TaskState::Done => None,
    };
    let is_cached = task.body.progress.cached_from.is_some();
    Ok(Some(EndedTask {
        task: task.id,
        name: task.spec.name.clone(),
        plan: task.plan.map(String::from),
        error,
        is_cached,
    }))
}

/// Describes the resources and paths that a task needs and other runs hold.
fn held_text(needs: &Needs) -> String {
    let resources = needs.resources.keys().map(|name| format!("resource `{name}`"));
    let paths = needs.paths();
    let paths = paths.iter().map(|path| format!("`{}`", paths::shown(path)));
    let items = needs.items.map(|(_, most)| format!("one of {most} places among the items of its list"));
    let all: Vec<String> = resources.chain(paths).chain(items).collect();
    format!("needs {}, which somebody else holds", all.join(", "))
}
