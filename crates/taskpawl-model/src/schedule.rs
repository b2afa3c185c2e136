//! Scheduling: what a run does next. One pure step function; the dispatcher around it only carries out its actions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub use crate::intake::{Beginning, Intake, Prospects};

use crate::command::{CallEnd, Report, StartedCall};
use crate::record::Node;
use crate::spec::Priority;
use crate::{CallId, Key};

/// What a run knows: what is ready, what is in flight, and what is on its way to the store.
#[derive(Debug, Clone)]
pub struct State {
    jobs: usize,
    ranks: Arc<BTreeMap<Key, u64>>,
    /// The ranks of tasks that came later.
    late_ranks: BTreeMap<Key, u64>,
    ready: BTreeSet<Order>,
    waiting: BTreeMap<Key, Order>,
    /// Calls that the store has recorded as started and for which there is no place yet.
    started: VecDeque<StartedCall>,
    /// Calls whose tools run, by task.
    running: BTreeMap<Key, Vec<CallId>>,
    running_calls: usize,
    /// Tasks that were taken away while their calls run: no new attempt starts before the old one has ended.
    revoked: BTreeSet<Key>,
    reports: Vec<Report>,
    releases: Vec<(Key, u32)>,
    commit: Option<Commit>,
    stop: Stop,
    more_may_come: bool,
    finished: bool,
}

/// The order in which ready tasks are taken: priority, due date, longest path to the end, age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    priority: Priority,
    due: i64,
    rank: Reverse<u64>,
    key: Key,
}

/// How far a run is on its way to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// It goes on.
    No,
    /// Nothing more starts; what runs is let end.
    Soft,
    /// What runs is ended.
    Hard,
}

/// What one round writes: one commit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Commit {
    /// How calls ended.
    pub reports: Vec<Report>,
    /// Tasks given back before their calls started.
    pub releases: Vec<(Key, u32)>,
    /// Tasks to claim.
    pub claims: Vec<Key>,
    /// How many calls may start with it.
    pub places: usize,
    /// Whether tasks that become ready by it may be claimed, too.
    pub takes_new: bool,
}

/// Something happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// Tasks became ready.
    Ready(Vec<Node>),
    /// Tasks came later than the run began: how long it is from each of them to the end.
    Ranked(BTreeMap<Key, u64>),
    /// A tool ended.
    Ended {
        /// The task.
        key: Key,
        /// The attempt.
        attempt: u32,
        /// The call.
        call: CallId,
        /// How.
        end: CallEnd,
    },
    /// The commit is durable: these calls may start, and these tasks became ready.
    Committed {
        /// Calls to start.
        started: Vec<StartedCall>,
        /// Tasks that became ready with it.
        ready: Vec<Node>,
    },
    /// A task of this run was taken away: its calls are ended.
    Revoked(Key),
    /// Calls that the store has recorded as started, of tasks that were taken away meanwhile: they do not start.
    Lost(Vec<StartedCall>),
    /// Somebody asks the run to stop, or to stop harder.
    Stop,
    /// Whether tasks that others hold may still bring work.
    MoreMayCome(bool),
    /// Nothing more has happened for now: what came together is written in one commit.
    Settled,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Write this; answer with [`Event::Committed`].
    Commit(Commit),
    /// Start this call; answer with [`Event::Ended`].
    Start(Box<StartedCall>),
    /// End the programs of this task.
    Kill(Key),
    /// End all programs.
    KillAll,
    /// The run is over.
    Finish,
}

impl State {
    /// Returns the state of a run that starts: at most `jobs` calls at once, ready tasks with a larger rank first.
    pub fn new(jobs: usize, ranks: impl Into<Arc<BTreeMap<Key, u64>>>) -> Self {
        Self {
            jobs: jobs.max(1),
            ranks: ranks.into(),
            late_ranks: BTreeMap::new(),
            ready: BTreeSet::new(),
            waiting: BTreeMap::new(),
            started: VecDeque::new(),
            running: BTreeMap::new(),
            running_calls: 0,
            revoked: BTreeSet::new(),
            reports: Vec::new(),
            releases: Vec::new(),
            commit: None,
            stop: Stop::No,
            more_may_come: false,
            finished: false,
        }
    }

    /// Returns how far the run is on its way to stop.
    pub fn stop(&self) -> Stop {
        self.stop
    }

    /// Returns how many calls run at once at most.
    pub fn jobs(&self) -> usize {
        self.jobs
    }

    /// Returns how many calls run.
    pub fn running_calls(&self) -> usize {
        self.running_calls
    }

    fn add_ready(&mut self, nodes: Vec<Node>) {
        for node in nodes {
            let rank = self.ranks.get(&node.key).or_else(|| self.late_ranks.get(&node.key));
            let rank = Reverse(rank.copied().unwrap_or(0));
            let order = Order { priority: node.priority, due: node.due, rank, key: node.key };
            if let Some(before) = self.waiting.insert(node.key, order) {
                self.ready.remove(&before);
            }
            self.ready.insert(order);
        }
    }

    /// Takes the first ready tasks; those whose last attempt has calls that still run stay.
    fn take_ready(&mut self, most: usize) -> Vec<Key> {
        let is_free = |order: &&Order| !self.running.contains_key(&order.key);
        let taken: Vec<Order> = self.ready.iter().filter(is_free).take(most).copied().collect();
        for order in &taken {
            self.ready.remove(order);
            self.waiting.remove(&order.key);
        }
        taken.into_iter().map(|order| order.key).collect()
    }

    /// Takes the first call that may start; those of a new attempt wait for the end of the old one.
    fn take_started(&mut self) -> Option<StartedCall> {
        let position = self.started.iter().position(|call| !self.revoked.contains(&call.key))?;
        self.started.remove(position)
    }

    fn free_places(&self) -> usize {
        self.jobs.saturating_sub(self.running_calls + self.started.len())
    }

    /// Returns whether the run would be over if nobody else brought work.
    pub fn is_out_of_work(&self) -> bool {
        self.is_idle() && self.ready.is_empty() && self.reports.is_empty() && self.releases.is_empty()
    }

    fn is_idle(&self) -> bool {
        self.commit.is_none() && self.running_calls == 0 && self.started.is_empty()
    }
}

/// Takes in one event and returns what is to be done, in order. Reads no clock and asks nobody.
pub fn step(state: &mut State, event: Event) -> Vec<Action> {
    let mut actions = Vec::new();
    match event {
        Event::Ready(nodes) => state.add_ready(nodes),
        Event::Ranked(ranks) => state.late_ranks.extend(ranks),
        Event::Ended { key, attempt, call, end } => ended(state, key, attempt, call, end),
        Event::Committed { started, ready } => {
            state.commit = None;
            state.started.extend(started);
            state.add_ready(ready);
        }
        Event::Revoked(key) => revoke(state, key, &mut actions),
        Event::Lost(calls) => calls.into_iter().for_each(|call| give_up(state, call)),
        Event::Stop => stop(state, &mut actions),
        Event::MoreMayCome(more) => state.more_may_come = more,
        Event::Settled => {
            commit(state, &mut actions);
            finish(state, &mut actions);
            return actions;
        }
    }
    start_calls(state, &mut actions);
    actions
}

fn ended(state: &mut State, key: Key, attempt: u32, call: CallId, end: CallEnd) {
    if let Some(calls) = state.running.get_mut(&key) {
        calls.retain(|other| *other != call);
        if calls.is_empty() {
            state.running.remove(&key);
            state.revoked.remove(&key);
        }
    }
    state.running_calls -= 1;
    let go_on = state.stop == Stop::No;
    state.reports.push(Report {
        task: key,
        attempt,
        call,
        end,
        usage: None,
        changed_beyond: Vec::new(),
        changes_unknown: None,
        inputs_changed: false,
        go_on,
    });
}

fn revoke(state: &mut State, key: Key, actions: &mut Vec<Action>) {
    let (lost, kept): (VecDeque<StartedCall>, _) =
        std::mem::take(&mut state.started).into_iter().partition(|call| call.key == key);
    state.started = kept;
    for call in lost {
        give_up(state, call);
    }
    if state.running.contains_key(&key) {
        state.revoked.insert(key);
        actions.push(Action::Kill(key));
    }
}

/// Reports a call that the store knows as started and that never will be.
fn give_up(state: &mut State, call: StartedCall) {
    let end = CallEnd::Interrupted { repeatable: true };
    let (task, attempt) = (call.key, call.attempt);
    state.reports.push(Report {
        task,
        attempt,
        call: call.call.id,
        end,
        usage: None,
        changed_beyond: Vec::new(),
        changes_unknown: None,
        inputs_changed: false,
        go_on: false,
    });
}

fn stop(state: &mut State, actions: &mut Vec<Action>) {
    state.stop = if state.stop == Stop::No { Stop::Soft } else { Stop::Hard };
    if state.stop == Stop::Hard {
        actions.push(Action::KillAll);
    }
}

fn start_calls(state: &mut State, actions: &mut Vec<Action>) {
    if state.stop != Stop::No {
        give_back_started(state);
        return;
    }
    while state.running_calls < state.jobs
        && let Some(call) = state.take_started()
    {
        state.running.entry(call.key).or_default().push(call.call.id.clone());
        state.running_calls += 1;
        actions.push(Action::Start(Box::new(call)));
    }
}

/// A run that stops gives calls back that the store knows as started and that never were.
fn give_back_started(state: &mut State) {
    for call in std::mem::take(&mut state.started) {
        if state.running.contains_key(&call.key) && !state.revoked.contains(&call.key) {
            give_up(state, call);
        } else if !state.releases.contains(&(call.key, call.attempt)) {
            state.releases.push((call.key, call.attempt));
        }
    }
}

fn commit(state: &mut State, actions: &mut Vec<Action>) {
    if state.commit.is_some() {
        return;
    }
    let places = if state.stop == Stop::No { state.free_places() } else { 0 };
    let claims = state.take_ready(places);
    // What becomes ready by the commit is not told apart there from what still has calls to end here.
    let takes_new = state.revoked.is_empty();
    let commit = Commit {
        reports: std::mem::take(&mut state.reports),
        releases: std::mem::take(&mut state.releases),
        places,
        takes_new,
        claims,
    };
    if !(commit.reports.is_empty() && commit.releases.is_empty() && commit.claims.is_empty()) {
        state.commit = Some(commit.clone());
        actions.push(Action::Commit(commit));
    }
}

fn finish(state: &mut State, actions: &mut Vec<Action>) {
    let nothing_left = state.stop != Stop::No || (state.ready.is_empty() && !state.more_may_come);
    if state.is_idle() && nothing_left && !state.finished {
        state.finished = true;
        actions.push(Action::Finish);
    }
}
