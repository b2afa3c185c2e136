//! Commands of runs: claim, report and release.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::command::refusal::{ChangesSince, Refusal};
use crate::command::{CallEnd, Needs, Report, Round, RunStart};
use crate::rules::DecideError;
use crate::rules::draft::{Decided, Draft, RoundCapacity};
use crate::rules::order::Order;
use crate::task::ActorKind;
use crate::task::UNKNOWN_END;
use crate::task::event::EventKind;
use crate::task::gate::GateState;
use crate::task::record::{CallBody, CallError, CallRecord, Node, StatusKind, StopRequest, TaskRecord, Work};
use crate::task::status::{BlockedReason, CallStatus, Cause, Claim, Status, TaskStatus};
use crate::value::{CallId, Key, RunId};

impl Draft<'_> {
    pub(super) fn start_run(&mut self, RunStart { run, keys }: &RunStart) -> Decided<()> {
        keys.as_ref().map_or(Ok(()), |request| self.settle_keys(request))?;
        self.changes.runs.insert(run.id.clone(), run.clone());
        // Tasks that an earlier version left undecided are opened here at the latest.
        self.pending.gates.extend(self.view.to_be_opened()?);
        self.emit(None, EventKind::RunStarted { scope: run.scope.clone() })
    }

    pub(super) fn finish_run(&mut self, id: &RunId, exit: u8, counts: &BTreeMap<String, u64>) -> Decided<()> {
        let Some(mut run) = self.view.run(id)? else {
            return Err(Refusal::UnknownRun { id: id.to_string() }.into());
        };
        run.finished_at = Some(self.now());
        run.exit = Some(exit);
        run.counts.clone_from(counts);
        let ended = std::mem::take(&mut run.ending);
        self.changes.runs.insert(id.clone(), run);
        ended.keys().try_for_each(|task| self.look_above_ended(task))?;
        self.emit(None, EventKind::RunFinished { exit, counts: counts.clone() })
    }

    /// Records the request to stop. An agent stops only runs that it started itself.
    pub(super) fn stop_run(&mut self, id: &RunId, now: bool) -> Decided<()> {
        let Some(mut run) = self.view.run(id)? else {
            return Err(Refusal::UnknownRun { id: id.to_string() }.into());
        };
        if !run.is_open() {
            return Err(Refusal::RunOver { id: id.to_string() }.into());
        }
        let is_own = run.actor_kind == ActorKind::Agent && run.actor == *self.context.actor;
        if self.context.kind == ActorKind::Agent && !is_own {
            return Err(Refusal::ForeignRun { id: id.to_string(), actor: run.actor }.into());
        }
        let request = if now { StopRequest::Now } else { StopRequest::Soft };
        if run.stop >= Some(request) {
            return Ok(());
        }
        run.stop = Some(request);
        self.changes.runs.insert(id.clone(), run);
        self.emit(None, EventKind::RunStopRequested { id: id.clone(), now })
    }

    pub(super) fn close_run(&mut self, id: &RunId) -> Decided<()> {
        let Some(mut run) = self.view.run(id)? else {
            return Err(Refusal::UnknownRun { id: id.to_string() }.into());
        };
        if run.is_open() {
            run.recovered_at = Some(self.now());
            let ended = std::mem::take(&mut run.ending);
            self.changes.runs.insert(id.clone(), run);
            ended.keys().try_for_each(|task| self.look_above_ended(task))?;
            self.emit(None, EventKind::RunKilled {})?;
        }
        Ok(())
    }

    pub(super) fn round(&mut self, round: &Round) -> Decided<()> {
        self.room = RoundCapacity::of(round);
        // Each call that ends may be replaced by another that starts.
        self.expect_steps(round.reports.len(), round.claims.len().max(round.reports.len()));
        // Reports come first: they free capacity and resources, and make tasks ready for the claims of the same commit.
        for report in &round.reports {
            leave_out_refused(self.report(report))?;
        }
        for (task, attempt) in &round.releases {
            leave_out_refused(self.release_from_run(*task, *attempt))?;
        }
        for (task, attempt) in &round.resumes {
            leave_out_refused(self.resume(*task, *attempt))?;
        }
        self.settle()?;
        self.claim_in_order(round)
    }

    /// Claims the requested and the newly ready tasks in the order of their ranks.
    ///
    /// A newly ready task with a longer path to the end does not queue behind tasks that were ready earlier. Tasks with
    /// grants come first. A task for which no capacity is left is added to the `needs` of the answer.
    fn claim_in_order(&mut self, round: &Round) -> Decided<()> {
        let mut became_ready = self.became_ready(round).into_iter().peekable();
        for key in &round.claims {
            if became_ready.peek().is_some()
                && !round.grants.contains_key(key)
                && let Some(node) = self.find_node(*key)?
            {
                let turn = turn(round, &node);
                while let Some(earlier) = became_ready.next_if(|other| *other < turn) {
                    self.claim_for_run(earlier.key)?;
                }
            }
            if let Some(needs) = self.claim_for_run(*key)? {
                self.answer.needs.push((*key, needs));
            }
        }
        // A claimed task may have finished at once, for example by a cache hit, and made more tasks ready.
        self.became_ready(round).into_iter().try_for_each(|later| self.claim_for_run(later.key).map(drop))
    }

    fn resume(&mut self, key: Key, attempt: u32) -> Decided<()> {
        let record = self.check_report(key, attempt)?;
        if self.take_needs(key, &record)? { self.go_on(key) } else { Ok(()) }
    }

    /// Returns the first newly ready tasks in the order in which a run takes them; none if the run takes nothing new.
    fn became_ready(&self, round: &Round) -> Vec<Order> {
        if !round.takes_new || self.room.places == 0 {
            return Vec::new();
        }
        let is_inside = |key: &Key| round.scope.as_ref().is_none_or(|scope| scope.contains(key));
        let nodes = self.newly_ready().filter(|node| is_inside(&node.key) && node.work == Work::Calls);
        let mut turns: Vec<Order> = nodes.map(|node| turn(round, &node)).collect();
        turns.sort_unstable();
        turns.truncate(self.room.places);
        turns
    }

    /// Claims a task for the run. Returns its needs if it only lacks capacity.
    fn claim_for_run(&mut self, key: Key) -> Decided<Option<Needs>> {
        let is_wanted = |node: Node| node.is_ready() && node.work == Work::Calls;
        if !self.find_node(key)?.is_some_and(is_wanted) {
            return Ok(None);
        }
        let (tools, record) = (Arc::clone(&self.room.tools), self.task(key)?);
        let has_limits = !self.room.tool_places.is_empty();
        let mut left = self.calls(key)?.iter().filter(|call| !call.body.status.is_settled());
        let first = left.clone().next().filter(|_| has_limits).map(|call| call.spec.tool_name.clone());
        if let Some(call) = left.find(|call| !tools.contains(&call.spec.tool_name)) {
            let name = call.spec.tool_name.clone();
            self.answer.missing_tools.push((key, name));
            return Ok(None);
        }
        let tool = first.filter(|tool| self.room.tool_places.get(tool) == Some(&0));
        if self.room.places == 0 || tool.is_some() {
            return Ok(Some(Needs { tool, ..Needs::default() }));
        }
        if self.take_needs(key, &record)? {
            self.claim_one(key)?;
        }
        Ok(None)
    }

    fn claim_one(&mut self, key: Key) -> Decided<()> {
        let (run, actor) = (self.context.run.clone(), self.context.actor.clone());
        let claim = Claim { run, actor, kind: ActorKind::Unknown, lease_until: None, lease: None };
        self.set_state(key, TaskStatus::InProgress { claim }, Cause::Claim, None)?;
        self.answer.tasks.push(self.id(key)?);
        self.set_deadline(key)?;
        self.go_on(key)
    }

    /// The time limit of a task starts with its claim.
    fn set_deadline(&mut self, key: Key) -> Decided<()> {
        let record = self.look_at(key)?;
        let timeout = record.spec.timeout.or(self.room.rules.timeout);
        let end = timeout.and_then(|timeout| chrono::TimeDelta::from_std(timeout.0).ok());
        let deadline = end.and_then(|end| self.now().checked_add_signed(end));
        if deadline == record.body.progress.deadline {
            return Ok(());
        }
        self.update_task(key, |record| record.body.progress.deadline = deadline)
    }

    pub(super) fn report(&mut self, report: &Report) -> Decided<()> {
        let key = report.task;
        let record = match self.check_report(key, report.attempt) {
            Err(DecideError::Refused(_)) if self.has_ended(key, report.attempt, Some(&report.call))? => {
                return Ok(());
            }
            checked => checked?,
        };
        let position = self.running_call(key, &record, &report.call)?;
        let now = self.now();
        let call = self.update_call(key, position, |call| end_call(call, report, now))?;
        self.take_findings(key, position, report)?;
        let status = call.body.status;
        if status == CallStatus::Failed {
            self.close_failed(key, &record, position)?;
        } else if status == CallStatus::Succeeded && call.spec.emit {
            self.close_emitting(key, &record, position)?;
        } else {
            self.emit_ended(key, &record, &call)?;
        }
        let calls = self.calls(key)?;
        let has = |status| calls.iter().any(|call| call.body.status == status);
        if !has(CallStatus::Running) {
            return self.after_calls(key, report.go_on);
        }
        let goes_on = report.go_on && !has(CallStatus::Failed) && !has(CallStatus::Interrupted);
        self.update_task(key, |_| ())?;
        // Parallel calls of the task may have waited for capacity that is free now.
        if goes_on { self.go_on(key) } else { Ok(()) }
    }

    fn check_report(&self, key: Key, attempt: u32) -> Decided<TaskRecord> {
        if self.find_node(key)?.is_none() {
            // The task was cancelled and deleted while its call ran.
            return Err(Refusal::UnknownTask { id: key.to_string(), similar: Vec::new() }.into());
        }
        let record = self.task(key)?;
        let body = &record.body;
        let is_mine =
            matches!(&body.state, TaskStatus::InProgress { claim } if claim.run == self.context.run);
        if !is_mine || body.attempt != attempt {
            let (current, status) = (body.attempt, body.state.status());
            let (id, since) = (record.id, ChangesSince::default());
            return Err(Refusal::StaleAttempt { id, reported: attempt, current, status, since }.into());
        }
        Ok(record)
    }

    fn running_call(&mut self, key: Key, record: &TaskRecord, call: &CallId) -> Decided<usize> {
        let calls = self.calls(key)?;
        let position = calls.iter().position(|other| other.id == *call);
        let status = position.map_or("unknown", |position| calls[position].body.status.as_str());
        match position {
            Some(position) if calls[position].body.status == CallStatus::Running => Ok(position),
            _ => {
                let (id, call, status) = (record.id.clone(), call.to_string(), status.to_owned());
                Err(Refusal::CallNotRunning { id, call, status }.into())
            }
        }
    }

    fn release_from_run(&mut self, key: Key, attempt: u32) -> Decided<()> {
        match self.check_report(key, attempt) {
            Err(DecideError::Refused(_)) if self.has_ended(key, attempt, None)? => return Ok(()),
            checked => drop(checked?),
        }
        for position in 0..self.calls(key)?.len() {
            if self.calls(key)?[position].body.status == CallStatus::Running {
                self.update_call(key, position, |call| {
                    let CallBody { attempts, failures, approval, emitted, asked, .. } =
                        std::mem::take(&mut *call.body);
                    *call.body =
                        CallBody { attempts, failures, approval, emitted, asked, ..CallBody::default() };
                })?;
            }
        }
        // Parallel calls may have failed already, and their failure stands.
        self.after_calls(key, false)
    }

    pub(super) fn run_one(&mut self, id: &str, missing_tool: Option<&String>) -> Decided<()> {
        let key = self.resolve(id)?;
        let (record, node) = (self.task(key)?, self.node(key)?);
        self.answer.tasks.push(record.id.clone());
        let is_missing =
            matches!(record.body.state.blocked_reason(), Some(BlockedReason::MissingTool { .. }));
        if node.status_kind == StatusKind::BlockedWaiting || is_missing {
            return Ok(());
        }
        if node.status_kind != StatusKind::Todo {
            return Err(self.transition_refusal(key, &record, Status::InProgress, "run")?.into());
        }
        if node.work == Work::Manual {
            return Err(Refusal::NotManual {
                id: record.id,
                what: "has neither tool calls nor subtasks",
                by: "run",
                ends: Vec::new(),
            }
            .into());
        }
        if node.gate.before_subtasks() == GateState::Wait {
            let reason = BlockedReason::Waiting { ids: Vec::new() };
            return self.set_state(key, TaskStatus::blocked(reason), Cause::RunOne, None);
        }
        if let Some(name) = missing_tool {
            let reason = BlockedReason::MissingTool { name: name.clone() };
            self.set_state(key, TaskStatus::blocked(reason), Cause::RunOne, None)?;
        }
        Ok(())
    }

    pub(super) fn settle_all(&mut self) -> Decided<()> {
        let mut keys = Vec::new();
        self.view.each_node(&mut |node| keys.push(node.key))?;
        self.pending.gates.extend(keys);
        Ok(())
    }

    pub(super) fn tools_known(&mut self, tasks: &[Key]) -> Decided<()> {
        for key in tasks {
            if self.find_node(*key)?.is_none() {
                continue;
            }
            let record = self.task(*key)?;
            if let Some(BlockedReason::MissingTool { .. }) = record.body.state.blocked_reason() {
                self.set_state(*key, TaskStatus::Todo, Cause::Gate, None)?;
                self.answer.tasks.push(record.id);
            }
        }
        Ok(())
    }
}

/// Returns the position of a task in the order of a run.
fn turn(round: &Round, node: &Node) -> Order {
    let rank = |key| round.ranks.get(&key).copied();
    // A task added during the run has no rank of its own and uses that of its parent.
    let rank = rank(node.key).or_else(|| rank(node.parent?)).unwrap_or(0);
    Order { priority: node.priority, due: node.due, rank: Reverse(rank), key: node.key }
}

fn leave_out_refused(outcome: Decided<()>) -> Decided<()> {
    match outcome {
        Err(DecideError::Refused(_)) => Ok(()),
        other => other,
    }
}

fn interruption(message: String) -> CallError {
    CallError::new("interrupted", message)
}

fn end_call(call: &mut CallRecord, report: &Report, now: crate::value::Timestamp) {
    let body = &mut call.body;
    body.finished_at = Some(now);
    body.cut = Some(&report.cut).filter(|cut| !cut.is_empty()).cloned().map(Box::new);
    body.worker = report.worker.clone().map(Box::new);
    body.artifacts = Some(&report.artifacts).filter(|files| !files.is_empty()).cloned().map(Box::new);
    match &report.end {
        CallEnd::Succeeded(result) => {
            body.status = CallStatus::Succeeded;
            body.result = Some(result.clone());
        }
        CallEnd::Failed { error, result } => {
            body.status = CallStatus::Failed;
            body.failures += 1;
            body.error = Some(Box::new(error.clone()));
            body.result.clone_from(result);
        }
        CallEnd::Interrupted { repeatable: true, why } => {
            body.status = CallStatus::Pending;
            body.finished_at = None;
            // The error stays visible until the call starts again.
            body.error = why.clone().map(interruption).map(Box::new);
        }
        CallEnd::Interrupted { repeatable: false, why } => {
            body.status = CallStatus::Interrupted;
            let why = why.clone().unwrap_or_else(|| UNKNOWN_END.to_owned());
            body.error = Some(Box::new(interruption(why)));
        }
        CallEnd::Asks(question) => {
            body.status = CallStatus::Pending;
            body.finished_at = None;
            body.asked.get_or_insert_default().question = Some((**question).clone());
        }
    }
}
