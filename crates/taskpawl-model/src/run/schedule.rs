//! The scheduler of a run: one pure step function that decides on the next actions. The dispatcher only carries them
//! out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

mod step;

pub use step::step;

pub use crate::run::run_view::{InitialWork, Prospects, RunView};

use crate::command::{Grant, Inquiry, Needs, Paused, Report, StartedCall};
use crate::rules::order::Order;
use crate::run::waiting_set::WaitingSet;
use crate::task::record::Node;
use crate::value::Timestamp;
use crate::value::{CallId, Key, KeyMap, SharedText};

/// The scheduler's state: ready tasks, calls in flight, and results on their way to the store.
#[derive(Debug, Clone)]
pub struct State {
    jobs: usize,
    ranks: Arc<KeyMap<u64>>,
    /// Ranks of tasks that were added after the run began.
    late_ranks: KeyMap<u64>,
    ready: BTreeSet<Order>,
    waiting: BTreeMap<Key, Order>,
    waiting_set: WaitingSet,
    /// Calls that the store has recorded as started and that have no free slot yet.
    started: VecDeque<StartedCall>,
    /// Tasks with at least one running call.
    running: BTreeMap<Key, Running>,
    running_calls: usize,
    /// Tasks that this run lost while their calls run. A new attempt starts only when the old calls have ended.
    revoked: BTreeSet<Key>,
    reports: Vec<Report>,
    releases: Vec<(Key, u32)>,
    commit: Option<UnderWay>,
    stop: Stop,
    /// Calls that may still start in the whole run; `None` without a limit.
    calls_left: Option<u64>,
    plan_calls_left: BTreeMap<String, u64>,
    ended_plans: Arc<BTreeSet<String>>,
    more_may_come: bool,
    finished: bool,
}

/// A task with running calls.
#[derive(Debug, Clone, Default)]
struct Running {
    /// Running calls, each with the name of its tool if that tool has a limit.
    calls: Vec<(CallId, Option<String>)>,
    plan: Option<SharedText>,
}

/// A commit in flight, kept to interpret its answer.
#[derive(Debug, Clone, Default)]
struct UnderWay {
    claims: Vec<Order>,
    resumes: Vec<Paused>,
    /// Tasks with limits that may have ended with this commit.
    reported: Vec<Key>,
}

/// Progress of a run towards its end. Later variants are stricter, so a stop never becomes weaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// The run goes on.
    No,
    /// Nothing more starts, because the time, the budget or the allowed failures are used up. Running calls finish.
    Early,
    /// Nothing more starts, because a stop was requested. Running calls finish.
    Soft,
    /// Running calls are killed.
    Hard,
}

/// Limits of a run. Tools and plans that are missing from the maps have no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// The number of calls of a tool that run at once.
    pub tools: BTreeMap<String, usize>,
    /// The number of calls that start in the run.
    pub calls: Option<u64>,
    /// The number of calls that start for the tasks of a plan.
    pub plan_calls: BTreeMap<String, u64>,
}

/// Everything that one round writes, in one commit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Commit {
    /// The results of ended calls.
    pub reports: Vec<Report>,
    /// Tasks to release because their calls did not start, each with its attempt.
    pub releases: Vec<(Key, u32)>,
    /// Tasks to claim.
    pub claims: Vec<Key>,
    /// Paused tasks of this run to resume, each with its attempt.
    pub resumes: Vec<(Key, u32)>,
    /// Grants for claims of tasks with limits.
    pub grants: BTreeMap<Key, Grant>,
    /// Free slots: the number of calls that may start with this commit.
    pub places: usize,
    /// Free slots by tool; tools that are missing have no limit.
    pub tool_places: BTreeMap<String, usize>,
    /// True if the store may also claim tasks that become ready in this commit.
    pub takes_new: bool,
    /// Plans whose tasks start nothing more.
    pub ended_plans: Arc<BTreeSet<String>>,
}

/// The store's answer to a commit.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// Calls to start.
    pub started: Vec<StartedCall>,
    /// Tasks that became ready in the commit.
    pub ready: Vec<Node>,
    /// Tasks that were not claimed because they need something first.
    pub needs: Vec<(Key, Needs)>,
    /// Tasks of this run that are now paused.
    pub paused: Vec<Paused>,
}

/// An input of the scheduler.
#[derive(Debug, Clone)]
pub enum Event {
    /// Tasks became ready.
    Ready(Vec<Node>),
    /// Distances to the end, in milliseconds, of tasks that were added after the run began.
    Ranked(KeyMap<u64>),
    /// A call ended.
    Ended(Box<Report>),
    /// The commit is durable: its calls may start, and its tasks are ready.
    Committed(Box<Written>),
    /// This run lost a task: its calls are killed.
    Revoked(Key),
    /// Calls that the store recorded as started, of tasks that this run lost before the answer arrived. They do not
    /// start.
    Lost(Vec<StartedCall>),
    /// The inquiry for a task is answered.
    Found(Key, Grant),
    /// Other processes wrote to the store: resources they held may be free.
    OthersWrote,
    /// The current time: pauses until then are over.
    Due(Timestamp),
    /// The tasks of a plan start nothing more.
    PlanEnded(String),
    /// Nothing more starts, because the time, the budget or the allowed failures are used up.
    EndEarly,
    /// A stop is requested; a second request kills the running calls.
    Stop,
    /// Tasks held by others may (true) or can no longer (false) make tasks ready for this run.
    MoreMayCome(bool),
    /// No more events are queued for now. Results that arrived together are written in one commit.
    Settled,
}

/// An action for the dispatcher.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Write this commit and answer with [`Event::Committed`].
    Commit(Box<Commit>),
    /// Start this call and answer with [`Event::Ended`].
    Start(Box<StartedCall>),
    /// Answer this inquiry for a task with [`Event::Found`].
    Find(Key, Inquiry),
    /// Kill the process trees of this task's calls.
    Kill(Key),
    /// Kill the process trees of all calls.
    KillAll,
    /// Nothing is left to do: end the run.
    Finish,
}

impl State {
    /// Returns the state of a new run with at most `jobs` calls at once. Ready tasks with a larger rank go first.
    pub fn new(jobs: usize, ranks: impl Into<Arc<KeyMap<u64>>>) -> Self {
        Self {
            jobs: jobs.max(1),
            ranks: ranks.into(),
            late_ranks: KeyMap::default(),
            ready: BTreeSet::new(),
            waiting: BTreeMap::new(),
            waiting_set: WaitingSet::default(),
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

    /// Sets the limits. Call this before the first step: it resets the waiting set.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.waiting_set = WaitingSet::new(limits.tools);
        self.calls_left = limits.calls;
        self.plan_calls_left = limits.plan_calls;
        self
    }

    /// Returns how far the run has stopped.
    pub fn stop(&self) -> Stop {
        self.stop
    }

    /// Returns the maximum number of calls that run at once, at least 1.
    pub fn jobs(&self) -> usize {
        self.jobs
    }

    /// Returns the number of running calls.
    pub fn running_calls(&self) -> usize {
        self.running_calls
    }

    /// Returns the time at which the first pause ends; the dispatcher then sends [`Event::Due`].
    pub fn next_alarm(&self) -> Option<Timestamp> {
        self.waiting_set.next_alarm()
    }

    /// Returns whether tasks wait for resources that other runs or agents hold.
    pub fn waits_for_others(&self) -> bool {
        self.waiting_set.waits_for_others()
    }

    /// Returns the tasks that wait for resources held outside this run, with their needs.
    pub fn held_up_by_others(&self) -> impl Iterator<Item = (Key, &Needs)> {
        self.waiting_set.held_up_by_others()
    }

    /// Returns whether the run has no work left, unless others make tasks ready.
    pub fn is_out_of_work(&self) -> bool {
        self.is_idle() && self.has_nothing_to_claim() && self.reports.is_empty() && self.releases.is_empty()
    }

    fn is_idle(&self) -> bool {
        let is_stopping = self.stop != Stop::No;
        // A stopping run still waits for paused tasks to be released. It does not wait for inquiries: their tasks are
        // unclaimed.
        let is_waiting_set_idle =
            if is_stopping { !self.waiting_set.has_paused() } else { !self.waiting_set.is_busy() };
        self.commit.is_none() && self.running_calls == 0 && self.started.is_empty() && is_waiting_set_idle
    }

    fn has_nothing_to_claim(&self) -> bool {
        self.ready.is_empty() && !self.waiting_set.has_claimable()
    }

    fn add_ready(&mut self, nodes: Vec<Node>) {
        for node in nodes {
            let rank = self.ranks.get(&node.key).or_else(|| self.late_ranks.get(&node.key));
            let rank = Reverse(rank.copied().unwrap_or(0));
            let order = Order { priority: node.priority, due: node.due, rank, key: node.key };
            // The priority, due date or rank may have changed since the last time, so the old entry has to go.
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

    /// Takes the first ready tasks, except those whose last attempt still has running calls.
    fn take_ready(&mut self, most: usize) -> Vec<Order> {
        let is_free = |order: &&Order| !self.running.contains_key(&order.key);
        let taken: Vec<Order> = self.ready.iter().filter(is_free).take(most).copied().collect();
        for order in &taken {
            self.ready.remove(order);
            self.waiting.remove(&order.key);
        }
        taken
    }

    /// Takes the first call that may start. Calls of a new attempt wait until the old attempt has ended.
    fn take_started(&mut self) -> Option<StartedCall> {
        let position = self.started.iter().position(|call| !self.revoked.contains(&call.key))?;
        self.started.remove(position)
    }

    /// Returns the number of calls that may start now.
    fn free_places(&self) -> usize {
        if self.stop != Stop::No {
            return 0;
        }
        // Calls in `started` already own a slot: the store has recorded them, so they must start before anything else.
        let free = self.jobs.saturating_sub(self.running_calls + self.started.len());
        let left = self.calls_left.map(|left| usize::try_from(left).unwrap_or(usize::MAX));
        left.map_or(free, |left| free.min(left.saturating_sub(self.started.len())))
    }
}
