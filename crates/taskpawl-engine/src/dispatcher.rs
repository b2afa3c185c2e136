//! The dispatcher: one loop that turns everything that happens into events for `schedule::step` and carries out its actions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use taskpawl_manager::Manager;
use taskpawl_model::schedule::{Action, Commit, Event, State, Stop, step};
use taskpawl_model::{
    Answer, CallEnd, CallStatus, Command, DecideError, EventKind, Graph, Key, Node, Query, Round, RunId,
    Selector, StartedCall, Status, TaskId, TaskState, View, ViewResult, Work, blocked_reason, select,
};
use taskpawl_store::{Outcome, StoreError};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::engine::{Engine, RunOptions};
use crate::error::RunError;
use crate::executor::{Ended, Executor};
use crate::liveness;
use crate::observer::{Observer, RunEvent};
use crate::recovery;
use crate::summary::{RunSummary, Summarizer, reason_text};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_millis(200);

type Outcomes = Result<Vec<Outcome>, StoreError>;

pub(crate) struct Dispatcher {
    engine: Engine,
    manager: Manager,
    run: RunId,
    wait: bool,
    selectors: Vec<Selector>,
    scope: Option<Arc<BTreeSet<Key>>>,
    /// Tasks that became ready and are not of the scope, as long as nobody changes what belongs to it.
    outside: BTreeSet<Key>,
    tool_names: Arc<BTreeSet<String>>,
    state: State,
    executor: Executor,
    observer: Option<Arc<dyn Observer>>,
    /// Futures of calls that did not end when they were first polled.
    calls: JoinSet<Ended>,
    /// Calls in flight by task, as the observer knows them.
    in_flight: BTreeMap<Key, InFlight>,
    /// Sent by the store's reply, one for each commit; received here. At most one commit is under way.
    committed: (mpsc::UnboundedSender<Outcomes>, mpsc::UnboundedReceiver<Outcomes>),
    control: watch::Receiver<u32>,
    stops_seen: u32,
    /// The last revision whose events are known here.
    seen: u64,
    pause: Duration,
    ended: BTreeMap<String, u64>,
    missing_tools: BTreeMap<Key, String>,
}

#[derive(Debug)]
struct InFlight {
    id: TaskId,
    calls: BTreeMap<taskpawl_model::CallId, String>,
}

impl Dispatcher {
    pub(crate) fn new(engine: &Engine, manager: Manager, run: RunId, options: &RunOptions) -> Self {
        let executor = Executor::new(engine, options.scope.clone(), options.observer.clone());
        Self {
            state: State::new(options.jobs(), BTreeMap::new()),
            engine: engine.clone(),
            manager,
            run,
            wait: options.wait,
            selectors: options.only.clone(),
            scope: None,
            outside: BTreeSet::new(),
            tool_names: Arc::new(engine.tools.iter().map(|tool| tool.spec().name.clone()).collect()),
            executor,
            observer: options.observer.clone(),
            calls: JoinSet::new(),
            in_flight: BTreeMap::new(),
            committed: mpsc::unbounded_channel(),
            control: options.control.subscribe(),
            stops_seen: 0,
            seen: 0,
            pause: FIRST_PAUSE,
            ended: BTreeMap::new(),
            missing_tools: BTreeMap::new(),
        }
    }

    pub(crate) async fn run(mut self) -> Result<RunSummary, RunError> {
        let mut events = VecDeque::new();
        // A request from before the run watched is no change, and nothing may start after it.
        self.take_stops(&mut events);
        events.push_back(self.begin()?);
        loop {
            while let Some(event) = events.pop_front() {
                let actions = step(&mut self.state, event);
                self.carry_out(actions, &mut events).await;
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

    /// Loads what is ready and the length of what is behind it.
    fn begin(&mut self) -> Result<Event, RunError> {
        recovery::recover(&self.engine)?;
        self.free_missing_tools()?;
        let selectors = self.selectors.clone();
        let jobs_state = |ranks| State::new(self.jobs(), ranks);
        let (seen, scope, ready, ranks) = self.manager.read(|view| {
            let scope = select(view, &selectors)?;
            let ready = ready_nodes(view, scope.as_ref())?;
            let ranks = if ready.is_empty() { BTreeMap::new() } else { ranks(view)? };
            Ok((view.revision()?, scope, ready, ranks))
        })?;
        self.state = jobs_state(ranks);
        self.seen = seen;
        self.scope = scope.map(Arc::new);
        Ok(Event::Ready(ready))
    }

    fn jobs(&self) -> usize {
        self.state.jobs()
    }

    /// Tasks that an earlier process could not run for want of a tool that this one has.
    fn free_missing_tools(&self) -> Result<(), RunError> {
        let names = &self.tool_names;
        let tasks = self.manager.read(|view| {
            let mut keys = Vec::new();
            for key in view.find(&Query { status: vec![Status::Blocked], ..Query::default() })? {
                let reason = view.task(key)?.and_then(|task| task.body.state.blocked_reason().cloned());
                if let Some(taskpawl_model::BlockedReason::MissingTool { name }) = reason
                    && names.contains(&name)
                {
                    keys.push(key);
                }
            }
            Ok(keys)
        })?;
        if !tasks.is_empty() {
            self.manager.command(Command::ToolsKnown { tasks })?;
        }
        Ok(())
    }

    async fn wait_for_events(&mut self, events: &mut VecDeque<Event>) -> Result<(), RunError> {
        tokio::select! {
            Some(outcomes) = self.committed.1.recv() => self.take_outcomes(outcomes, events)?,
            Some(ended) = self.calls.join_next(), if !self.calls.is_empty() => self.take_joined(ended, events),
            Ok(()) = self.control.changed() => self.take_stops(events),
            () = tokio::time::sleep(self.pause) => self.look_for_changes(events)?,
        }
        // What has come in meanwhile shares the next commit.
        while let Ok(outcomes) = self.committed.1.try_recv() {
            self.take_outcomes(outcomes, events)?;
        }
        while let Some(ended) = self.calls.try_join_next() {
            self.take_joined(ended, events);
        }
        Ok(())
    }

    async fn carry_out(&mut self, actions: Vec<Action>, events: &mut VecDeque<Event>) {
        for action in actions {
            match action {
                Action::Commit(commit) => self.commit(commit),
                Action::Start(call) => self.start(*call, events).await,
                Action::Kill(key) => self.executor.kill(key),
                Action::KillAll => self.executor.kill_all(),
                Action::Finish => {}
            }
        }
    }

    /// Polls the call once in place: what ends at once needs no task of its own.
    async fn start(&mut self, started: StartedCall, events: &mut VecDeque<Event>) {
        self.note_start(&started);
        let mut call: Pin<Box<dyn Future<Output = Ended> + Send>> = Box::pin(self.executor.call(started));
        match std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await {
            Poll::Ready(ended) => self.take_ended(ended, events),
            Poll::Pending => {
                self.calls.spawn(call);
            }
        }
    }

    fn note_start(&mut self, started: &StartedCall) {
        let task = self.in_flight.entry(started.key);
        let task = task.or_insert_with(|| InFlight { id: started.task.clone(), calls: BTreeMap::new() });
        task.calls.insert(started.call.id.clone(), started.call.spec.tool_name.clone());
        if let Some(observer) = &self.observer {
            let name = self.name_of(started.key);
            observer.event(&RunEvent::CallStarted {
                task: started.task.clone(),
                name,
                call: started.call.id.clone(),
                tool: started.call.spec.tool_name.clone(),
                attempt: started.attempt,
            });
        }
    }

    fn name_of(&self, key: Key) -> String {
        let name = self.manager.store().view(|view| Ok(view.task(key)?.map(|task| task.spec.name)));
        name.ok().flatten().unwrap_or_default()
    }

    fn commit(&self, commit: Commit) {
        let Commit { reports, releases, claims, places } = commit;
        let (tools, scope) = (Arc::clone(&self.tool_names), self.scope.clone());
        let round = Round { reports, releases, claims, places, tools, scope };
        let requests = vec![self.manager.request(Command::Round(Box::new(round)))];
        let sender = self.committed.0.clone();
        let reply = Box::new(move |outcomes| {
            // Nobody receives when the run was dropped: its record stays open for the next one.
            let _ = sender.send(outcomes);
        });
        self.manager.store().submit(requests, reply);
    }

    fn take_outcomes(&mut self, outcomes: Outcomes, events: &mut VecDeque<Event>) -> Result<(), RunError> {
        let (mut started, mut ready) = (Vec::new(), Vec::new());
        for outcome in outcomes? {
            match outcome {
                Ok(answer) => self.take_answer(answer, &mut started, &mut ready, events)?,
                // The task was taken away meanwhile: what its call did is of no account any more.
                Err(refusal) => tracing::debug!(%refusal, "a report was refused"),
            }
        }
        let ready = self.in_scope(ready)?;
        events.push_back(Event::Committed { started, ready });
        Ok(())
    }

    fn take_answer(
        &mut self,
        answer: Answer,
        started: &mut Vec<StartedCall>,
        ready: &mut Vec<Node>,
        events: &mut VecDeque<Event>,
    ) -> Result<(), RunError> {
        let before = answer.revision - answer.events;
        if before > self.seen {
            self.take_foreign(before, events)?;
        }
        let mut own = answer.started;
        if self.seen > answer.revision {
            self.retain_own(&mut own)?;
        }
        self.seen = self.seen.max(answer.revision);
        started.extend(own);
        ready.extend(answer.ready);
        self.missing_tools.extend(answer.missing_tools);
        for (key, status) in answer.ended {
            self.note_end(key, status);
        }
        Ok(())
    }

    fn note_end(&mut self, key: Key, status: Status) {
        *self.ended.entry(status.as_str().to_owned()).or_default() += 1;
        if let Some(observer) = &self.observer
            && let Ok(Some((task, name, error))) = self.manager.store().view(|view| ended_task(view, key))
        {
            observer.event(&RunEvent::TaskEnded { task, name, status, error });
        }
    }

    fn take_joined(&mut self, joined: Result<Ended, tokio::task::JoinError>, events: &mut VecDeque<Event>) {
        match joined {
            Ok(ended) => self.take_ended(ended, events),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    fn take_ended(&mut self, ended: Ended, events: &mut VecDeque<Event>) {
        let Ended { key, attempt, call, end, took } = ended;
        self.tell_ended(key, &call, &end, took);
        if let Some(task) = self.in_flight.get_mut(&key) {
            task.calls.remove(&call);
            if task.calls.is_empty() {
                self.in_flight.remove(&key);
                self.executor.forget(key);
            }
        }
        events.push_back(Event::Ended { key, attempt, call, end });
    }

    fn tell_ended(&self, key: Key, call: &taskpawl_model::CallId, end: &CallEnd, took: Duration) {
        let (Some(observer), Some(task)) = (&self.observer, self.in_flight.get(&key)) else { return };
        let (status, error) = match end {
            CallEnd::Succeeded(_) => (CallStatus::Succeeded, None),
            CallEnd::Failed { error, .. } => (CallStatus::Failed, Some(error.message.clone())),
            CallEnd::Interrupted { .. } => (CallStatus::Interrupted, None),
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
        let requests = *self.control.borrow_and_update();
        for request in self.stops_seen..requests {
            events.push_back(Event::Stop);
            if let Some(observer) = &self.observer {
                observer
                    .event(&RunEvent::Stopping { hard: request > 0, running: self.state.running_calls() });
            }
        }
        self.stops_seen = requests;
    }

    /// Looks whether others wrote; the longer nothing happens, the less often.
    fn look_for_changes(&mut self, events: &mut VecDeque<Event>) -> Result<(), RunError> {
        let revision = self.manager.store().wait_change(self.seen, Duration::ZERO)?;
        if revision > self.seen {
            self.take_foreign(revision, events)?;
            self.pause = FIRST_PAUSE;
        } else {
            self.pause = (self.pause * 2).min(LAST_PAUSE);
        }
        Ok(())
    }

    /// Takes in what others wrote up to `revision`.
    fn take_foreign(&mut self, revision: u64, events: &mut VecDeque<Event>) -> Result<(), RunError> {
        let limit = usize::try_from(revision - self.seen).unwrap_or(0);
        let changes = self.manager.store().events_since(self.seen, limit)?;
        if changes.iter().any(|change| may_change_scope(&change.kind)) {
            self.outside.clear();
        }
        let (mut ready, mut taken) = (Vec::new(), BTreeSet::new());
        for change in changes.iter().filter(|change| change.run.as_ref() != Some(&self.run)) {
            ready.extend(change.ready.iter().copied());
            if let (EventKind::Status { .. }, Some(id)) = (&change.kind, &change.task) {
                taken.insert(id.as_str());
            }
        }
        self.seen = revision;
        let (nodes, taken) = self.manager.store().view(|view| {
            let taken = taken.iter().map(|id| view.key(id)).collect::<ViewResult<Vec<_>>>()?;
            Ok((nodes(view, &ready)?, taken))
        })?;
        // Whatever this run has of them, running or waiting for a place, is no longer its own.
        events.extend(taken.into_iter().flatten().map(Event::Revoked));
        let ready = self.in_scope(nodes)?;
        events.push_back(Event::Ready(ready));
        Ok(())
    }

    /// Drops calls whose tasks were taken away between the commit and its answer.
    fn retain_own(&self, started: &mut Vec<StartedCall>) -> Result<(), RunError> {
        let states = self
            .manager
            .store()
            .view(|view| started.iter().map(|call| view.task(call.key)).collect::<ViewResult<Vec<_>>>())?;
        let mut states = states.into_iter();
        started.retain(|call| {
            let body = states.next().flatten().map(|task| task.body);
            body.is_some_and(|body| {
                let is_mine = matches!(&body.state, TaskState::InProgress { claim } if claim.run.as_ref() == Some(&self.run));
                is_mine && body.attempt == call.attempt
            })
        });
        Ok(())
    }

    /// Keeps what a run may take: ready tasks with calls, within its scope.
    fn in_scope(&mut self, mut nodes: Vec<Node>) -> Result<Vec<Node>, RunError> {
        nodes.retain(|node| node.work == Work::Calls && node.is_ready());
        let is_known = |scope: &BTreeSet<Key>, key| scope.contains(key) || self.outside.contains(key);
        let is_unknown = |scope: &Arc<_>| nodes.iter().any(|node| !is_known(scope, &node.key));
        if self.scope.as_ref().is_some_and(is_unknown) {
            // A task that was made meanwhile may belong to the scope.
            let selectors = self.selectors.clone();
            self.scope = self.manager.read(|view| select(view, &selectors))?.map(Arc::new);
        }
        if let Some(scope) = &self.scope {
            let (inside, outside) = nodes.into_iter().partition(|node| scope.contains(&node.key));
            nodes = inside;
            self.outside.extend(Vec::into_iter(outside).map(|node: Node| node.key));
        }
        Ok(nodes)
    }

    /// Returns whether others hold tasks of the scope: live runs, and with `wait` also agents and people; or wrote what is
    /// not known here yet.
    fn more_may_come(&mut self) -> Result<bool, RunError> {
        if self.state.stop() != Stop::No {
            return Ok(false);
        }
        let (run, scope, wait) = (&self.run, self.scope.as_deref(), self.wait);
        let is_inside = |key: &Key| scope.is_none_or(|scope| scope.contains(key));
        // What others wrote before this look counts, too: their last commit may both end their tasks and make others ready.
        let (runs, agents, revision) = self.manager.read(|view| {
            let mut held = recovery::held_by_runs(view)?;
            held.retain(|(key, holder)| is_inside(key) && holder != run);
            Ok((held, wait && agents_may_bring_more(view, &is_inside)?, view.revision()?))
        })?;
        let holders: BTreeSet<&RunId> = runs.iter().map(|(_, holder)| holder).collect();
        let dead = holders.iter().any(|holder| !liveness::is_alive(&self.engine.project.files, holder));
        if dead {
            recovery::recover(&self.engine)?;
        }
        let is_behind = revision > self.seen;
        if is_behind {
            self.pause = FIRST_PAUSE;
        }
        Ok(agents || is_behind || !holders.is_empty())
    }

    fn summarize(self) -> Result<RunSummary, RunError> {
        let summarizer = Summarizer {
            run: self.run,
            scope: self.scope.map(Arc::unwrap_or_clone),
            ended: self.ended,
            missing_tools: self.missing_tools,
            stop: self.state.stop(),
            only: self
                .selectors
                .iter()
                .flat_map(|selector| [" --only ".to_owned(), selector.to_string()])
                .collect(),
        };
        Ok(self.manager.read(|view| Ok(summarizer.summarize(view)?))?)
    }
}

/// Returns what an observer hears of a task that ended. Its calls and edges are not read: there may be many.
fn ended_task(view: &dyn View, key: Key) -> ViewResult<Option<(TaskId, String, Option<String>)>> {
    let Some(task) = view.task(key)? else { return Ok(None) };
    let error = match &task.body.state {
        TaskState::Failed { error } => Some(error.clone()),
        TaskState::Cancelled { reason } | TaskState::Skipped { reason } => reason.clone(),
        TaskState::Blocked { reason } => Some(reason_text(&blocked_reason(view, key, reason)?)),
        TaskState::Todo | TaskState::InProgress { .. } | TaskState::Done => None,
    };
    Ok(Some((task.id, task.spec.name, error)))
}

/// Returns whether a change may bring a task into a scope that was outside.
fn may_change_scope(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Created { .. }
            | EventKind::Updated { .. }
            | EventKind::Moved { .. }
            | EventKind::Applied { .. }
    )
}

fn ready_nodes(view: &dyn View, scope: Option<&BTreeSet<Key>>) -> Result<Vec<Node>, DecideError> {
    let keys = view.find(&Query { ready: Some(vec![Work::Calls]), ..Query::default() })?;
    let inside: Vec<Key> =
        keys.into_iter().filter(|key| scope.is_none_or(|scope| scope.contains(key))).collect();
    Ok(nodes(view, &inside)?)
}

fn nodes(view: &dyn View, keys: &[Key]) -> ViewResult<Vec<Node>> {
    let nodes = keys.iter().map(|key| view.node(*key)).collect::<ViewResult<Vec<_>>>()?;
    Ok(nodes.into_iter().flatten().collect())
}

/// Counts tasks on the longest way to the end.
fn ranks(view: &dyn View) -> Result<BTreeMap<Key, u64>, DecideError> {
    Ok(Graph::load(view, &|_| true)?.ranks(&|_| 1))
}

fn agents_may_bring_more(view: &dyn View, is_inside: &dyn Fn(&Key) -> bool) -> ViewResult<bool> {
    let ready = view.find(&Query { ready: Some(vec![Work::Manual]), ..Query::default() })?;
    let in_progress = view.find(&Query { status: vec![Status::InProgress], ..Query::default() })?;
    Ok(ready.iter().chain(&in_progress).any(is_inside))
}
