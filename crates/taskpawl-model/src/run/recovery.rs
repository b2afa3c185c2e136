//! Recovery: plans the clean-up after dead runs and expired leases.
//!
//! The plan is pure. It reads one moment of the store and asks its caller which runs are alive. The store checks its
//! commands again when it decides them, so that a change in between does no harm. Two processes may recover the same
//! runs at once. A command has no effect if the other process has already done the work.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use crate::command::{CallEnd, Command, Report, Round};
use crate::task::record::{CallRecord, TaskRecord};
use crate::task::status::{BlockedReason, CallStatus, Claim, Status, TaskStatus};
use crate::value::Timestamp;
use crate::value::{CallId, Key, RunId, TaskId};
use crate::view::{Query, View, ViewResult, Waits};

/// The recovery of dead runs and expired leases.
///
/// - A call that has a result is never started again.
/// - A call that started and has no result is started again only if that is safe. Otherwise its task is blocked until a
///   person or an agent reports the outcome of the call.
/// - A task of a dead run without running calls is released.
/// - A task with an expired lease is released.
/// - A durable wait whose time has come ends. Others go on: no process belongs to them.
/// - An approval that was not decided in time is decided as its plan says.
/// - The record of a dead run is closed with the time of the recovery. It gets no end and no exit code, because both
///   are unknown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    dead: BTreeMap<RunId, DeadRun>,
    expired: Vec<(Key, TaskId)>,
    undecided: Vec<(Key, TaskId)>,
    /// Tasks whose durable waits are over.
    woken: Vec<Key>,
    elsewhere: Vec<CallElsewhere>,
}

/// A call of a dead run that another process still executes.
#[derive(Debug, Clone, PartialEq)]
pub struct CallElsewhere {
    /// The dead run, which still holds the task.
    pub run: RunId,
    /// The key of the task.
    pub key: Key,
    /// The task.
    pub task: TaskRecord,
    /// The call.
    pub call: CallRecord,
}

/// The data of one dead run.
#[derive(Debug, Clone, Default, PartialEq)]
struct DeadRun {
    tasks: Vec<Orphan>,
    /// Cancelled tasks whose calls it can no longer report, each with the attempt.
    ending: Vec<(Key, u32)>,
    /// True if its record is closed by this plan.
    is_closed: bool,
}

/// A task that a dead run has claimed.
#[derive(Debug, Clone, PartialEq)]
struct Orphan {
    key: Key,
    id: TaskId,
    attempt: u32,
    /// The calls that were running, and whether each may run again.
    running: Vec<(CallId, bool)>,
}

/// The result of a recovery, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recovered {
    /// The dead runs.
    pub runs: Vec<RunId>,
    /// Their tasks that are free again, because none of their calls ran or the running calls may run again. Tasks that
    /// failed because of another call are included.
    pub returned: Vec<TaskId>,
    /// Their tasks that are blocked, because a running call must not run again unless it is confirmed.
    pub interrupted: Vec<TaskId>,
    /// Tasks of agents and people with expired leases.
    pub expired: Vec<TaskId>,
    /// Tasks whose approvals were not decided in time.
    pub undecided: Vec<TaskId>,
}

impl Recovered {
    /// Returns whether there was nothing to do.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Claim {
    /// Returns whether the lease has expired at `now`. The claim of a run has no lease: the lock of the run shows that
    /// it is alive.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.lease_until.is_some_and(|end| end <= now)
    }

    /// Returns the length of a lease that is valid at `now` and has less than half of its time left.
    pub(crate) fn due_for_renewal(&self, now: Timestamp) -> Option<Duration> {
        let (lease, end) = (self.lease?.0, self.lease_until?);
        let left = (end - now).to_std().ok()?;
        (!left.is_zero() && left < lease / 2).then_some(lease)
    }
}

impl Plan {
    /// Plans the recovery of everything, or of `tasks` only. In the second case the records of runs stay open.
    ///
    /// `is_alive` returns whether a run is alive; it must return true if that is unknown. `is_repeatable` returns
    /// whether the tool of a call makes it safe to run the call again although its outcome is unknown. It is not called
    /// for calls whose author has set `idempotent`.
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
        Self::beside(view, tasks, is_alive, is_repeatable, &|_, _, _| false, now)
    }

    /// Does the same as [`new`](Self::new), but leaves calls alone that other processes execute. `is_elsewhere` tells that of a
    /// running call of a dead run. The record of such a run stays open, and its tasks stay claimed, until the calls are reported.
    ///
    /// # Errors
    /// The view cannot be read.
    pub fn beside(
        view: &dyn View,
        tasks: Option<&[Key]>,
        is_alive: &dyn Fn(&RunId) -> bool,
        is_repeatable: &dyn Fn(&CallRecord) -> bool,
        is_elsewhere: &dyn Fn(&RunId, &TaskRecord, &CallRecord) -> bool,
        now: Timestamp,
    ) -> ViewResult<Self> {
        let mut planner =
            Planner { view, is_alive, is_repeatable, is_elsewhere, now, asked: BTreeMap::new() };
        let mut plan = Self::default();
        if let Some(tasks) = tasks {
            planner.add_tasks(&mut plan, tasks.iter().copied())?;
            planner.add_ending(&mut plan, tasks)?;
        } else {
            let held = view.find(&Query { status: vec![Status::InProgress], ..Query::default() })?;
            planner.add_tasks(&mut plan, held)?;
            planner.add_records(&mut plan)?;
            planner.add_undecided(&mut plan)?;
            plan.woken = view.waiting(Waits::Due(now))?;
        }
        Ok(plan)
    }

    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.dead.is_empty() && self.expired.is_empty() && self.undecided.is_empty() && self.woken.is_empty()
    }

    /// Returns the commands of the plan, each with the run it acts for. They fit into one commit.
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
        if !self.woken.is_empty() {
            commands.push((None, Command::Wake { tasks: self.woken.clone() }));
        }
        commands
    }

    /// Returns the tasks with calls that a dead run cannot report.
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

    /// Returns the dead runs whose records it closes.
    pub fn closed(&self) -> impl Iterator<Item = &RunId> {
        self.dead.iter().filter(|(_, run)| run.is_closed).map(|(id, _)| id)
    }

    /// Returns the calls of dead runs that other processes execute.
    pub fn elsewhere(&self) -> &[CallElsewhere] {
        &self.elsewhere
    }

    /// Returns the result for people.
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
        // Tasks without running calls are released as well: other runs wait while a run seems to hold a task or its
        // resources.
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
        self.running.iter().map(|(call, repeatable)| {
            Report::new(self.key, self.attempt, call.clone(), CallEnd::interrupted(*repeatable))
        })
    }

    fn is_lost(&self) -> bool {
        self.running.iter().any(|(_, repeatable)| !repeatable)
    }
}

/// Returns the tasks that wait for an approval, by key, with the time at which the question expires.
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

/// Returns the tasks with questions of a policy, or with questions asked under another version of it. The current
/// policy may decide differently.
///
/// # Errors
/// The view cannot be read.
pub fn questions_of_policy(view: &dyn View, version: &str) -> ViewResult<Vec<Key>> {
    let mut keys = Vec::new();
    for (key, _) in open_questions(view)? {
        let task = view.task(key)?;
        let reason = task.as_ref().and_then(|task| task.body.state.blocked_reason());
        if let Some(BlockedReason::Approval { policy, why, .. }) = reason
            && (why.is_some() || policy.as_deref() != Some(version))
        {
            keys.push(key);
        }
    }
    Ok(keys)
}

struct Planner<'a> {
    view: &'a dyn View,
    is_alive: &'a dyn Fn(&RunId) -> bool,
    is_repeatable: &'a dyn Fn(&CallRecord) -> bool,
    is_elsewhere: &'a dyn Fn(&RunId, &TaskRecord, &CallRecord) -> bool,
    now: Timestamp,
    /// Answers by run. Each run is checked once, so that a run that dies in between is dead in the whole plan or alive
    /// in all of it.
    asked: BTreeMap<RunId, bool>,
}

impl Planner<'_> {
    fn add_tasks(&mut self, plan: &mut Plan, tasks: impl IntoIterator<Item = Key>) -> ViewResult<()> {
        let mut seen = BTreeSet::new();
        for key in tasks {
            let Some(task) = self.view.task(key)?.filter(|_| seen.insert(key)) else { continue };
            let TaskStatus::InProgress { claim } = &task.body.state else { continue };
            if claim.is_expired(self.now) {
                plan.expired.push((key, task.id));
            } else if let Some(run) = claim.run.clone()
                && !self.lives(&run)
            {
                let (elsewhere, running) = self.running(&run, key, &task)?;
                let is_left = !elsewhere.is_empty();
                plan.elsewhere.extend(elsewhere);
                // A task with a call elsewhere is only touched if it lost another call.
                if !is_left || !running.is_empty() {
                    let orphan = Orphan { key, id: task.id, attempt: task.body.attempt, running };
                    plan.dead.entry(run).or_default().tasks.push(orphan);
                }
            }
        }
        Ok(())
    }

    /// Returns the running calls of a task: those that another process executes, and those that are lost.
    #[expect(clippy::type_complexity, reason = "two lists, which the caller takes apart at once")]
    fn running(
        &self,
        run: &RunId,
        key: Key,
        task: &TaskRecord,
    ) -> ViewResult<(Vec<CallElsewhere>, Vec<(CallId, bool)>)> {
        let (mut elsewhere, mut lost) = (Vec::new(), Vec::new());
        for call in self.view.calls(key)? {
            if call.body.status != CallStatus::Running {
                continue;
            }
            if (self.is_elsewhere)(run, task, &call) {
                elsewhere.push(CallElsewhere { run: run.clone(), key, task: task.clone(), call });
            } else {
                let repeatable = call.spec.idempotent.unwrap_or_else(|| (self.is_repeatable)(&call));
                lost.push((call.id, repeatable));
            }
        }
        Ok((elsewhere, lost))
    }

    /// Adds cancelled tasks of dead runs whose calls were not reported. Runs are only closed when no such task is left,
    /// so the open runs are enough.
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
            let has_calls = plan.elsewhere.iter().any(|call| call.run == run.id);
            if !has_calls && !self.lives(&run.id) {
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
