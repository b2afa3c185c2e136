//! Scheduling: what a run does next. One pure step function; the dispatcher around it only carries out its actions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

mod step;

pub use step::step;

pub use crate::intake::{Beginning, Intake, Prospects};

use crate::command::{Grant, Inquiry, Needs, Paused, Report, StartedCall};
use crate::parking::Parking;
use crate::record::Node;
use crate::spec::{Priority, Timestamp};
use crate::{CallId, Key, KeyMap, SharedText};

/// What a run knows: what is ready, what is in flight, and what is on its way to the store.
#[derive(Debug, Clone)]
pub struct State {
    jobs: usize,
    ranks: Arc<KeyMap<u64>>,
    /// The ranks of tasks that came later.
    late_ranks: KeyMap<u64>,
    ready: BTreeSet<Order>,
    waiting: BTreeMap<Key, Order>,
    parking: Parking,
    /// Calls that the store has recorded as started and for which there is no place yet.
    started: VecDeque<StartedCall>,
    /// Tasks whose tools run.
    running: BTreeMap<Key, Running>,
    running_calls: usize,
    /// Tasks that were taken away while their calls run: no new attempt starts before the old one has ended.
    revoked: BTreeSet<Key>,
    reports: Vec<Report>,
    releases: Vec<(Key, u32)>,
    commit: Option<UnderWay>,
    stop: Stop,
    /// How many more calls may start in the run, and of tasks of plans.
    calls_left: Option<u64>,
    plan_calls_left: BTreeMap<String, u64>,
    ended_plans: Arc<BTreeSet<String>>,
    more_may_come: bool,
    finished: bool,
}

/// The order in which ready tasks are taken: priority, due date, how far it is to the end, age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order {
    pub(crate) priority: Priority,
    pub(crate) due: i64,
    pub(crate) rank: Reverse<u64>,
    pub(crate) key: Key,
}

/// A task whose tools run.
#[derive(Debug, Clone, Default)]
struct Running {
    /// Each with its tool, where that has a limit.
    calls: Vec<(CallId, Option<String>)>,
    plan: Option<SharedText>,
}

/// What the answer of a commit under way is compared with.
#[derive(Debug, Clone, Default)]
struct UnderWay {
    claims: Vec<Order>,
    resumes: Vec<Paused>,
    /// Tasks with limits that may have ended with it.
    reported: Vec<Key>,
}

/// How far a run is on its way to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// It goes on.
    No,
    /// Nothing more starts because its time, its budget or its patience with failures is used up; what runs is let end.
    Early,
    /// Nothing more starts because somebody asked for that; what runs is let end.
    Soft,
    /// What runs is ended.
    Hard,
}

/// How much a run may use. What is not named has no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// How many calls of a tool run at once.
    pub tools: BTreeMap<String, usize>,
    /// How many calls start.
    pub calls: Option<u64>,
    /// How many calls of tasks of a plan start.
    pub plan_calls: BTreeMap<String, u64>,
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
    /// Tasks of this run that paused and go on, with the attempt.
    pub resumes: Vec<(Key, u32)>,
    /// What claims with limits were given.
    pub grants: BTreeMap<Key, Grant>,
    /// How many calls may start with it.
    pub places: usize,
    /// How many more calls of a tool may start; tools that are not named have no limit.
    pub tool_places: BTreeMap<String, usize>,
    /// Whether tasks that become ready by it may be claimed, too.
    pub takes_new: bool,
    /// Plans of whose tasks nothing more starts.
    pub ended_plans: Arc<BTreeSet<String>>,
}

/// What the store answers to a commit.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// Calls to start.
    pub started: Vec<StartedCall>,
    /// Tasks that became ready with it.
    pub ready: Vec<Node>,
    /// Tasks that were not claimed because they need something first.
    pub needs: Vec<(Key, Needs)>,
    /// Tasks of this run that pause.
    pub paused: Vec<Paused>,
}

/// Something happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// Tasks became ready.
    Ready(Vec<Node>),
    /// Tasks came later than the run began: how long it is from each of them to the end.
    Ranked(KeyMap<u64>),
    /// A tool ended.
    Ended(Box<Report>),
    /// The commit is durable: these calls may start, and these tasks became ready.
    Committed(Box<Written>),
    /// A task of this run was taken away: its calls are ended.
    Revoked(Key),
    /// Calls that the store has recorded as started, of tasks that were taken away meanwhile: they do not start.
    Lost(Vec<StartedCall>),
    /// What was to be found out for a task is known.
    Found(Key, Grant),
    /// Others wrote: what they held may be free.
    OthersWrote,
    /// It is so late now: pauses may be over.
    Due(Timestamp),
    /// Nothing more starts of the tasks of a plan.
    PlanEnded(String),
    /// Nothing more starts: time, budget or patience is used up.
    EndEarly,
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
    Commit(Box<Commit>),
    /// Start this call; answer with [`Event::Ended`].
    Start(Box<StartedCall>),
    /// Find this out for a task; answer with [`Event::Found`].
    Find(Key, Inquiry),
    /// End the programs of this task.
    Kill(Key),
    /// End all programs.
    KillAll,
    /// The run is over.
    Finish,
}

impl State {
    /// Returns the state of a run that starts: at most `jobs` calls at once, ready tasks with a larger rank first.
    pub fn new(jobs: usize, ranks: impl Into<Arc<KeyMap<u64>>>) -> Self {
        Self {
            jobs: jobs.max(1),
            ranks: ranks.into(),
            late_ranks: KeyMap::default(),
            ready: BTreeSet::new(),
            waiting: BTreeMap::new(),
            parking: Parking::default(),
            started: VecDeque::new(),
            running: BTreeMap::new(),
            running_calls: 0,
            revoked: BTreeSet::new(),
            reports: Vec::new(),
            releases: Vec::new(),
            commit: None,
            stop: Stop::No,
            calls_left: None,
            plan_calls_left: BTreeMap::new(),
            ended_plans: Arc::default(),
            more_may_come: false,
            finished: false,
        }
    }

    /// Sets how much the run may use, before it starts anything.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.parking = Parking::new(limits.tools);
        self.calls_left = limits.calls;
        self.plan_calls_left = limits.plan_calls;
        self
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

    /// Returns when the first pause is over: then it wants to hear [`Event::Due`].
    pub fn next_alarm(&self) -> Option<Timestamp> {
        self.parking.next_alarm()
    }

    /// Returns whether tasks wait for something that other runs, or agents, hold.
    pub fn waits_for_others(&self) -> bool {
        self.parking.waits_for_others()
    }

    /// Returns the tasks that wait for what others than this run hold, with what they need.
    pub fn held_up_by_others(&self) -> impl Iterator<Item = (Key, &Needs)> {
        self.parking.held_up_by_others()
    }

    /// Returns whether the run would be over if nobody else brought work.
    pub fn is_out_of_work(&self) -> bool {
        self.is_idle() && self.has_nothing_to_claim() && self.reports.is_empty() && self.releases.is_empty()
    }

    fn is_idle(&self) -> bool {
        let is_stopping = self.stop != Stop::No;
        let is_parking_idle = if is_stopping { !self.parking.has_paused() } else { !self.parking.is_busy() };
        self.commit.is_none() && self.running_calls == 0 && self.started.is_empty() && is_parking_idle
    }

    fn has_nothing_to_claim(&self) -> bool {
        self.ready.is_empty() && !self.parking.has_claimable()
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

    fn add_order(&mut self, order: Order) {
        self.waiting.insert(order.key, order);
        self.ready.insert(order);
    }

    /// Takes the first ready tasks; those whose last attempt has calls that still run stay.
    fn take_ready(&mut self, most: usize) -> Vec<Order> {
        let is_free = |order: &&Order| !self.running.contains_key(&order.key);
        let taken: Vec<Order> = self.ready.iter().filter(is_free).take(most).copied().collect();
        for order in &taken {
            self.ready.remove(order);
            self.waiting.remove(&order.key);
        }
        taken
    }

    /// Takes the first call that may start; those of a new attempt wait for the end of the old one.
    fn take_started(&mut self) -> Option<StartedCall> {
        let position = self.started.iter().position(|call| !self.revoked.contains(&call.key))?;
        self.started.remove(position)
    }

    /// Returns how many more calls may start now.
    fn free_places(&self) -> usize {
        if self.stop != Stop::No {
            return 0;
        }
        let free = self.jobs.saturating_sub(self.running_calls + self.started.len());
        let left = self.calls_left.map(|left| usize::try_from(left).unwrap_or(usize::MAX));
        left.map_or(free, |left| free.min(left.saturating_sub(self.started.len())))
    }
}
