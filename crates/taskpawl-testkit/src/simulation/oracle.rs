//! What must hold, whatever happens.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl_model::{
    CallId, Cause, Event, EventKind, Key, Report, StartedCall, Status, TaskId, View, ViewResult, Work,
    read_task,
};

use super::tools::{Living, is_repeatable};
use super::world::World;
use crate::invariants::broken_invariants;
use crate::tables::may_follow;

/// Every so many steps everything is derived anew and compared; what events say is checked after each commit.
const FULL_CHECK: u64 = 8;

/// What was seen so far, and what was wrong with it.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    seen: u64,
    states: BTreeMap<TaskId, Status>,
    attempts: BTreeMap<TaskId, u32>,
    /// Starts that the store has on record: task, call, attempt of the task, start of the call.
    recorded: BTreeSet<(TaskId, CallId, u32, u32)>,
    /// Ends that the store has on record.
    ended: BTreeSet<(TaskId, u32, CallId)>,
    /// Attempts that somebody took away by hand while they went on.
    taken_away: BTreeSet<(TaskId, u32)>,
    /// Starts of tools.
    started: BTreeSet<(TaskId, u32, CallId)>,
    started_since_decision: BTreeMap<(TaskId, CallId), u32>,
    pub(super) starts: BTreeMap<(TaskId, CallId), usize>,
    /// Tasks that somebody decided about, with the attempt up to which that was.
    pub(super) decided: BTreeMap<TaskId, u32>,
    broken: Vec<String>,
}

impl Oracle {
    pub(super) fn broken(&self) -> &[String] {
        &self.broken
    }

    pub(super) fn fail(&mut self, line: String) {
        self.broken.push(line);
    }

    /// Reads what was committed since the last time.
    pub(super) fn observe(&mut self, view: &dyn View) -> ViewResult<()> {
        for event in view.events(self.seen, None, 0)? {
            self.seen += 1;
            if event.revision != self.seen {
                self.fail(format!("revision {} follows {}", event.revision, self.seen - 1));
            }
            if let Some(task) = event.task.clone() {
                self.observe_task(task, &event);
            }
        }
        Ok(())
    }

    fn observe_task(&mut self, task: TaskId, event: &Event) {
        if let EventKind::Status { from, to, cause, attempt, .. } = &event.kind {
            self.observe_state(&task, (*from, *to), *cause, *attempt);
        } else if let EventKind::CallStarted { call, attempt, start } = &event.kind {
            self.recorded.insert((task, call.clone(), *attempt, *start));
        } else if let EventKind::CallEnded { call, attempt, .. } = &event.kind {
            if !self.ended.insert((task.clone(), *attempt, call.clone())) {
                self.fail(format!("call `{call}` of `{task}` ended twice in attempt {attempt}"));
            }
        } else if let EventKind::Deleted { .. } = &event.kind {
            self.states.remove(&task);
        }
    }

    fn observe_state(&mut self, task: &TaskId, (from, to): (Status, Status), cause: Cause, attempt: u32) {
        let known = self.states.insert(task.clone(), to).unwrap_or(Status::Todo);
        if known != from || !may_follow(from, to) {
            self.fail(format!("`{task}` was `{known}` and went from `{from}` to `{to}` by `{cause}`"));
        }
        if cause == Cause::Claim {
            let before = self.attempts.insert(task.clone(), attempt);
            if before.is_some_and(|before| before >= attempt) {
                self.fail(format!("attempt {attempt} of `{task}` is no new one"));
            }
        }
        if cause == Cause::Cancel && from == Status::InProgress {
            self.taken_away.insert((task.clone(), attempt));
        }
        if matches!(cause, Cause::Retry | Cause::Reopen | Cause::Unblock | Cause::Done | Cause::Fail) {
            self.decided.insert(task.clone(), attempt);
            self.started_since_decision.retain(|(other, _), _| other != task);
        }
    }

    /// Checks the start of a tool against what is on record and what lives.
    pub(super) fn start(&mut self, started: &StartedCall, living: impl Iterator<Item = Living>) {
        let StartedCall { key, task, attempt, call, .. } = started;
        let what = || format!("call `{}` of `{task}` in attempt {attempt}", call.id);
        if !self.recorded.contains(&(task.clone(), call.id.clone(), *attempt, call.body.attempts)) {
            self.fail(format!("{} is started, and the store does not know", what()));
        }
        if !self.started.insert((task.clone(), *attempt, call.id.clone())) {
            self.fail(format!("{} is started twice", what()));
        }
        *self.starts.entry((task.clone(), call.id.clone())).or_default() += 1;
        // Who decides about an attempt decides about all of it, also about what its run has yet to start.
        if self.decided.get(task).is_none_or(|decided| decided < attempt) {
            let count = self.started_since_decision.entry((task.clone(), call.id.clone())).or_default();
            *count += 1;
            if *count > 1 && !is_repeatable(call) {
                self.fail(format!("{} is started again, though nobody decided that", what()));
            }
        }
        let others = living.filter(|other| other.call.key == *key && other.call.attempt != *attempt);
        for other in others {
            self.fail(format!("{} is started while attempt {} lives", what(), other.call.attempt));
        }
    }

    /// Checks that a report that was answered is on record, unless its attempt was taken away.
    fn acknowledge(&mut self, task: &TaskId, report: &Report) {
        let end = (task.clone(), report.attempt, report.call.clone());
        let is_fenced = self.taken_away.contains(&(task.clone(), report.attempt));
        if !self.ended.contains(&end) && !is_fenced {
            let (call, attempt) = (&report.call, report.attempt);
            self.fail(format!("the end of call `{call}` of `{task}` in attempt {attempt} was lost"));
        }
    }
}

impl World {
    pub(super) fn check_now_and_then(&mut self) {
        if self.step.is_multiple_of(FULL_CHECK) {
            self.check_all();
        } else {
            let number = self.random.below(self.plan.tasks.len());
            let id = crate::RandomPlan::id(number);
            self.look(|view| {
                Ok(view.key(id.as_str())?.map(|key| read_task(view, key)).transpose()?.is_some())
            });
        }
    }

    /// Derives everything anew and compares; reads everything.
    pub(super) fn check_all(&mut self) {
        self.coverage.add("full checks");
        let lines = self.look(|view| {
            let mut keys = Vec::new();
            view.each_node(&mut |node| keys.push(node.key))?;
            for key in keys {
                read_task(view, key)?;
            }
            broken_invariants(view)
        });
        for line in lines {
            self.fail(line);
        }
    }

    pub(super) fn check_acknowledged(&mut self, reports: &[Report]) {
        let keys: Vec<Key> = reports.iter().map(|report| report.task).collect();
        let ids = self.look(|view| keys.iter().map(|key| view.id(*key)).collect::<ViewResult<Vec<_>>>());
        for (report, id) in reports.iter().zip(ids) {
            if let Some(id) = id {
                self.oracle.acknowledge(&id, report);
            }
        }
    }

    /// A run that ends has nothing left, neither of its own nor, unless it was stopped, to do.
    pub(super) fn check_end_of(&mut self, run: usize, was_stopped: bool) {
        if !self.tools.of_run(run).is_empty() {
            self.fail(format!("run {run} is over while its tools live"));
        }
        let (id, intake) = (self.runs[run].id.clone(), self.runs[run].intake.clone());
        let (held, ready) = self.look(|view| {
            let query = |ready| taskpawl_model::Query { ready, ..taskpawl_model::Query::default() };
            let mut held = Vec::new();
            for key in view.find(&query(None))? {
                let task = view.task(key)?;
                if let Some(task) = task.filter(|task| super::run::holder(task) == Some(&id)) {
                    held.push(task.id);
                }
            }
            let mut ready = view.find(&query(Some(vec![Work::Calls])))?;
            ready.retain(|key| intake.scope().is_none_or(|scope| scope.contains(key)));
            ready.retain(|key| !intake.missing_tools().contains_key(key));
            Ok((held, ready))
        });
        if !held.is_empty() {
            self.fail(format!("run {run} is over and holds {held:?}"));
        }
        let record = self.look(|view| view.run(&id));
        if let Some(record) = record.filter(|record| !record.ending.is_empty()) {
            self.fail(format!("run {run} is over and has not said how these ended: {:?}", record.ending));
        }
        if !was_stopped && !ready.is_empty() {
            self.fail(format!("run {run} is over while {ready:?} are ready"));
        }
    }
}
