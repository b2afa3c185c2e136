//! Checks that must hold in every simulation.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl_model::command::{Report, StartedCall};
use taskpawl_model::task::{CallStatus, Cause, Status};
use taskpawl_model::task::{Event, EventKind};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{CallId, TaskId};
use taskpawl_model::view::{View, ViewResult};

use super::living::{Living, is_repeatable};
use crate::tables::may_follow;

/// The observed history, and its violations.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    seen: u64,
    states: BTreeMap<TaskId, Status>,
    attempts: BTreeMap<TaskId, u32>,
    /// Recorded starts: task, call, attempt of the task, number of the start.
    recorded: BTreeSet<(TaskId, CallId, u32, u32)>,
    /// Numbers of recorded starts and ends of a call in an attempt.
    ends: BTreeMap<(TaskId, u32, CallId), (u32, u32)>,
    /// Rounds in which a call was last started and last succeeded.
    rounds: BTreeMap<(TaskId, CallId), (u32, Option<u32>)>,
    /// Attempts that were cancelled while in progress.
    taken_away: BTreeSet<(TaskId, u32)>,
    /// Ends of the delays of sequential tasks.
    pub(super) pauses: BTreeMap<TaskId, Timestamp>,
    /// Observed starts of tools. Each must be recorded, and occur once.
    started: BTreeSet<(TaskId, u32, CallId, u32)>,
    started_since_decision: BTreeMap<(TaskId, CallId), u32>,
    pub(super) starts: BTreeMap<(TaskId, CallId), usize>,
    /// Tasks that a person or agent decided about, with the attempt at that time.
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

    /// Processes the events since the last call.
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
        } else if let EventKind::CallStarted { call, attempt, start, .. } = &event.kind {
            self.ends.entry((task.clone(), *attempt, call.clone())).or_default().0 += 1;
            self.recorded.insert((task, call.clone(), *attempt, *start));
        } else if let EventKind::CallEnded { call, attempt, status, again_at, .. } = &event.kind {
            self.pauses.extend(again_at.as_deref().map(|end| (task.clone(), *end)));
            self.observe_end(task, call, *attempt, *status);
        } else if let EventKind::RoundEnded { again_at, .. } = &event.kind {
            self.pauses.extend(again_at.map(|end| (task, end)));
        } else if let EventKind::Deleted { .. } = &event.kind {
            self.forget(&task);
        }
    }

    /// Forgets a deleted task. List items and created tasks may be created again with the same id.
    fn forget(&mut self, task: &TaskId) {
        self.states.remove(task);
        self.decided.remove(task);
        self.started_since_decision.retain(|(other, _), _| other != task);
        self.taken_away.retain(|(other, _)| other != task);
        self.attempts.remove(task);
        self.pauses.remove(task);
        self.recorded.retain(|(other, ..)| other != task);
        self.started.retain(|(other, ..)| other != task);
        self.ends.retain(|(other, ..), _| other != task);
        self.rounds.retain(|(other, _), _| other != task);
    }

    fn observe_end(&mut self, task: TaskId, call: &CallId, attempt: u32, status: CallStatus) {
        if status == CallStatus::Skipped {
            return;
        }
        let (starts, ends) = self.ends.entry((task.clone(), attempt, call.clone())).or_default();
        *ends += 1;
        // A call that failed before its start has an end without a start.
        if *ends > *starts + u32::from(status == CallStatus::Failed) {
            let line = format!("call `{call}` of `{task}` ended {ends} times in attempt {attempt}");
            self.fail(line);
        }
        let name = (task, call.clone());
        if matches!(status, CallStatus::Succeeded | CallStatus::Failed) {
            self.started_since_decision.remove(&name);
        }
        if let Some((round, good)) = self.rounds.get_mut(&name).filter(|_| status == CallStatus::Succeeded) {
            *good = Some(*round);
        }
    }

    fn observe_state(&mut self, task: &TaskId, (from, to): (Status, Status), cause: Cause, attempt: u32) {
        let known = self.states.insert(task.clone(), to).unwrap_or(Status::Todo);
        if known != from || !may_follow(from, to, cause) {
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
            self.rounds.retain(|(other, _), _| other != task);
            self.pauses.remove(task);
        }
    }

    /// Checks the start of a tool against the records and the running tools.
    pub(super) fn start(&mut self, started: &StartedCall, living: impl Iterator<Item = Living>) {
        let StartedCall { key, task, attempt, call, .. } = started;
        let what = || format!("call `{}` of `{task}` in attempt {attempt}", call.id);
        if !self.recorded.contains(&(task.clone(), call.id.clone(), *attempt, call.body.attempts)) {
            self.fail(format!("{} is started, and the store does not know", what()));
        }
        if !self.started.insert((task.clone(), *attempt, call.id.clone(), call.body.attempts)) {
            self.fail(format!("{} is started twice", what()));
        }
        *self.starts.entry((task.clone(), call.id.clone())).or_default() += 1;
        // A decision about an attempt covers all of its calls, including those that the run has not started yet.
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

    /// Checks that a successful call is not started again in the same or an earlier round of its task.
    pub(super) fn start_in_round(&mut self, started: &StartedCall, round: u32) {
        let name = (started.task.clone(), started.call.id.clone());
        let (last, good) = self.rounds.entry(name).or_default();
        *last = round;
        if let Some(good) = good.filter(|good| *good >= round) {
            let StartedCall { task, call, .. } = started;
            let line = format!(
                "call `{}` of `{task}` ended well in round {good} and is started in round {round}",
                call.id
            );
            self.fail(line);
        }
    }

    /// Checks that an acknowledged report is recorded, unless its attempt was cancelled.
    pub(super) fn acknowledge(&mut self, task: &TaskId, report: &Report) {
        let end = (task.clone(), report.attempt, report.call.clone());
        let is_fenced = self.taken_away.contains(&(task.clone(), report.attempt));
        if self.ends.get(&end).is_none_or(|(_, ends)| *ends == 0) && !is_fenced {
            let (call, attempt) = (&report.call, report.attempt);
            self.fail(format!("the end of call `{call}` of `{task}` in attempt {attempt} was lost"));
        }
    }
}
