//! Recovery: what runs that are dead and leases that have ended left behind, and what is done about it.
//!
//! The plan is pure: it looks at one moment of the store and asks its caller which runs live. Its commands are checked again where
//! they are decided, so that it does no harm when something changed meanwhile or two processes recover the same at once: what
//! another one was faster with is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use crate::command::{CallEnd, Command, Report, Round};
use crate::record::{CallRecord, TaskRecord};
use crate::status::{BlockedReason, CallStatus, Claim, Status, TaskState};
use crate::view::{Query, View, ViewResult};
use crate::{CallId, Key, RunId, TaskId, Timestamp};

/// What is to be done about dead runs and ended leases.
///
/// - A call that has a result is never started again.
/// - A call that started and has no result is started again only where that does no harm; else its task is blocked until somebody
///   says how the call ended.
/// - A task of a dead run of which no call runs is given back.
/// - A task whose lease has ended is given back.
/// - A task about which nobody decided in time goes the way that its plan says.
/// - The record of a dead run is closed: without an end and an exit code, which nobody knows, but with the time of the recovery.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    dead: BTreeMap<RunId, DeadRun>,
    expired: Vec<(Key, TaskId)>,
    undecided: Vec<(Key, TaskId)>,
}

/// What a dead run left behind.
#[derive(Debug, Clone, Default, PartialEq)]
struct DeadRun {
    tasks: Vec<Orphan>,
    /// Tasks that were cancelled and whose calls it can no longer report, with the attempt.
    ending: Vec<(Key, u32)>,
    /// Whether its record is closed by this plan.
    is_closed: bool,
}

/// A task that a dead run held.
#[derive(Debug, Clone, PartialEq)]
struct Orphan {
    key: Key,
    id: TaskId,
    attempt: u32,
    /// The calls that were running, each with whether it may be started again.
    running: Vec<(CallId, bool)>,
}

/// What a recovery comes to, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recovered {
    /// Runs that had ended without finishing.
    pub runs: Vec<RunId>,
    /// Their tasks that are free again, because nothing of them ran or what ran may be started again; or that have failed, by
    /// another call.
    pub returned: Vec<TaskId>,
    /// Their tasks that are blocked: a call ran that must not be started again unless somebody says so.
    pub interrupted: Vec<TaskId>,
    /// Tasks of agents and people whose leases had ended.
    pub expired: Vec<TaskId>,
    /// Tasks about which nobody has decided in time.
    pub undecided: Vec<TaskId>,
}

impl Recovered {
    /// Returns whether there was nothing to do.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Claim {
    /// Returns whether the lease is over at `now`. The claim of a run has none: its lock tells whether it lives.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.lease_until.is_some_and(|end| end <= now)
    }

    /// Returns the length of a lease that is open at `now`, but of which less than half is left.
    pub(crate) fn due_for_renewal(&self, now: Timestamp) -> Option<Duration> {
        let (lease, end) = (self.lease?.0, self.lease_until?);
        let left = (end - now).to_std().ok()?;
        (!left.is_zero() && left < lease / 2).then_some(lease)
    }
}

impl Plan {
    /// Plans the recovery of everything, or of `tasks` alone: then records of runs stay as they are.
    ///
    /// `is_alive` says whether a run goes on; where that cannot be told it has to say yes. `is_repeatable` says whether a call
    /// may be started again though nobody knows how far it came, by what its tool is known for; what the author of the call says
    /// about it counts more and is not asked for.
    ///
    /// # Errors
    /// The view cannot be read.
    pub fn new(
        view: &dyn View,
        tasks: Option<&[Key]>,
        is_alive: &dyn Fn(&RunId) -> bool,
        is_repeatable: &dyn Fn(&CallRecord) -> bool,
        now: Timestamp,
    ) -> ViewResult<Self> {
        let mut planner = Planner { view, is_alive, is_repeatable, now, asked: BTreeMap::new() };
        let mut plan = Self::default();
        if let Some(tasks) = tasks {
            planner.add_tasks(&mut plan, tasks.iter().copied())?;
            planner.add_ending(&mut plan, tasks)?;
        } else {
            let held = view.find(&Query { status: vec![Status::InProgress], ..Query::default() })?;
            planner.add_tasks(&mut plan, held)?;
            planner.add_records(&mut plan)?;
            planner.add_undecided(&mut plan)?;
        }
        Ok(plan)
    }

    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.dead.is_empty() && self.expired.is_empty() && self.undecided.is_empty()
    }

    /// Returns the commands that do it, each with the run in whose name it is given. They fit into one commit.
    pub fn commands(&self) -> Vec<(Option<RunId>, Command)> {
        let mut commands = Vec::new();
        for (id, run) in &self.dead {
            if !(run.tasks.is_empty() && run.ending.is_empty()) {
                commands.push((Some(id.clone()), Command::Round(Box::new(run.round()))));
            }
            if run.is_closed {
                commands.push((Some(id.clone()), Command::CloseRun { id: id.clone() }));
            }
        }
        if !self.expired.is_empty() {
            let tasks = self.expired.iter().map(|(key, _)| *key).collect();
            commands.push((None, Command::ReturnExpired { tasks }));
        }
        if !self.undecided.is_empty() {
            let tasks = self.undecided.iter().map(|(key, _)| *key).collect();
            commands.push((None, Command::ExpireApprovals { tasks }));
        }
        commands
    }

    /// Returns the tasks whose calls a dead run cannot report on.
    pub fn orphans(&self) -> impl Iterator<Item = Key> {
        self.dead.values().flat_map(|run| {
            let ending = run.ending.iter().map(|(key, _)| *key);
            run.tasks
                .iter()
                .filter(|orphan| !orphan.running.is_empty())
                .map(|orphan| orphan.key)
                .chain(ending)
        })
    }

    /// Returns what it comes to.
    pub fn summary(&self) -> Recovered {
        let orphans = || self.dead.values().flat_map(|run| &run.tasks);
        let ids = |is_lost| {
            let chosen = orphans().filter(move |orphan| orphan.is_lost() == is_lost);
            chosen.map(|orphan| orphan.id.clone()).collect()
        };
        Recovered {
            runs: self.dead.keys().cloned().collect(),
            returned: ids(false),
            interrupted: ids(true),
            expired: self.expired.iter().map(|(_, id)| id.clone()).collect(),
            undecided: self.undecided.iter().map(|(_, id)| id.clone()).collect(),
        }
    }
}

impl DeadRun {
    fn round(&self) -> Round {
        // What was never started is nobody's either: other runs wait for as long as a run seems to hold something.
        let idle = self.tasks.iter().filter(|orphan| orphan.running.is_empty());
        Round {
            reports: self.tasks.iter().flat_map(Orphan::reports).collect(),
            releases: idle.map(|orphan| (orphan.key, orphan.attempt)).chain(self.ending.clone()).collect(),
            ..Round::default()
        }
    }
}

impl Orphan {
    fn reports(&self) -> impl Iterator<Item = Report> {
        self.running.iter().map(|(call, repeatable)| Report {
            task: self.key,
            attempt: self.attempt,
            call: call.clone(),
            end: CallEnd::interrupted(*repeatable),
            cut: Vec::new(),
            usage: None,
            changed_beyond: Vec::new(),
            changes_unknown: None,
            inputs_changed: false,
            go_on: false,
        })
    }

    fn is_lost(&self) -> bool {
        self.running.iter().any(|(_, repeatable)| !repeatable)
    }
}

/// Returns the tasks that wait for a decision, by key, and until when there is time for it.
///
/// # Errors
/// The view cannot be read.
pub fn open_questions(view: &dyn View) -> ViewResult<Vec<(Key, Option<Timestamp>)>> {
    let mut open = Vec::new();
    for key in view.on_hold(0)? {
        let task = view.task(key)?;
        let reason = task.as_ref().and_then(|task| task.body.state.blocked_reason());
        if let Some(BlockedReason::Approval { expires_at, .. }) = reason {
            open.push((key, *expires_at));
        }
    }
    Ok(open)
}

/// Returns the tasks about which a policy asks, or that were asked about under another one: it may say something else now.
///
/// # Errors
/// The view cannot be read.
pub fn questions_of_policy(view: &dyn View, version: &str) -> ViewResult<Vec<Key>> {
    let mut found = Vec::new();
    for (key, _) in open_questions(view)? {
        let task = view.task(key)?;
        let reason = task.as_ref().and_then(|task| task.body.state.blocked_reason());
        if let Some(BlockedReason::Approval { policy, why, .. }) = reason
            && (why.is_some() || policy.as_deref() != Some(version))
        {
            found.push(key);
        }
    }
    Ok(found)
}

struct Planner<'a> {
    view: &'a dyn View,
    is_alive: &'a dyn Fn(&RunId) -> bool,
    is_repeatable: &'a dyn Fn(&CallRecord) -> bool,
    now: Timestamp,
    /// Each run is asked for once: a run that dies while the plan is made is dead for all of it or for none.
    asked: BTreeMap<RunId, bool>,
}

impl Planner<'_> {
    fn add_tasks(&mut self, plan: &mut Plan, tasks: impl IntoIterator<Item = Key>) -> ViewResult<()> {
        let mut seen = BTreeSet::new();
        for key in tasks {
            let Some(task) = self.view.task(key)?.filter(|_| seen.insert(key)) else { continue };
            let TaskState::InProgress { claim } = &task.body.state else { continue };
            if claim.is_expired(self.now) {
                plan.expired.push((key, task.id));
            } else if let Some(run) = claim.run.clone()
                && !self.lives(&run)
            {
                let orphan = self.orphan(key, task)?;
                plan.dead.entry(run).or_default().tasks.push(orphan);
            }
        }
        Ok(())
    }

    fn orphan(&self, key: Key, task: TaskRecord) -> ViewResult<Orphan> {
        let calls = self.view.calls(key)?;
        let running = calls.into_iter().filter(|call| call.body.status == CallStatus::Running);
        let running = running.map(|call| {
            let repeatable = call.spec.idempotent.unwrap_or_else(|| (self.is_repeatable)(&call));
            (call.id, repeatable)
        });
        Ok(Orphan { key, id: task.id, attempt: task.body.attempt, running: running.collect() })
    }

    /// A record that is closed has nothing that is still to end; these stay open.
    fn add_ending(&mut self, plan: &mut Plan, tasks: &[Key]) -> ViewResult<()> {
        for run in self.view.open_runs()? {
            for (id, ending) in &run.ending {
                let key = self.view.key(id.as_str())?.filter(|key| tasks.contains(key));
                if let Some(key) = key
                    && !self.lives(&run.id)
                {
                    plan.dead.entry(run.id.clone()).or_default().ending.push((key, ending.attempt));
                }
            }
        }
        Ok(())
    }

    fn add_undecided(&self, plan: &mut Plan) -> ViewResult<()> {
        for (key, end) in open_questions(self.view)? {
            if end.is_some_and(|end| end <= self.now)
                && let Some(id) = self.view.id(key)?
            {
                plan.undecided.push((key, id));
            }
        }
        Ok(())
    }

    fn add_records(&mut self, plan: &mut Plan) -> ViewResult<()> {
        for run in self.view.open_runs()? {
            if !self.lives(&run.id) {
                plan.dead.entry(run.id).or_default().is_closed = true;
            }
        }
        Ok(())
    }

    fn lives(&mut self, run: &RunId) -> bool {
        if let Some(lives) = self.asked.get(run) {
            return *lives;
        }
        let lives = (self.is_alive)(run);
        self.asked.insert(run.clone(), lives);
        lives
    }
}
