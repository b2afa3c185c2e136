//! Next step of a task that a run holds: its next calls, a pause, another round, or its end.

use std::collections::BTreeSet;

use super::approval::ANSWER;
use super::authorize::why_asked;
use crate::command::{Paused, StartedCall};
use crate::expr::Evaluated;
use crate::rules::draft::{Decided, Draft};
use crate::rules::failure::{Problem, used_up};
use crate::rules::flow;
use crate::task::ShortHash;
use crate::task::event::EventKind;
use crate::task::policy_hook::{PolicyDecision, requested};
use crate::task::record::{CallBody, CallError, CallRecord, TaskRecord};
use crate::task::spec::{CallPart, Mode, Repeat};
use crate::task::status::{BlockedReason, CallStatus, Cause, TaskStatus};
use crate::task::trust::{UntrustedValue, add_values};
use crate::task::wait::{WAIT_TOOL, WaitingFor};
use crate::value::Key;
use crate::value::Timestamp;
use crate::value::format_time;

/// Outcome of trying to start a call.
pub(super) enum Step {
    /// The call started.
    Started,
    /// Its condition is false.
    Skipped,
    /// It waits until a time, or for capacity, of one tool or of any.
    Waits { until: Option<Timestamp>, tool: Option<String> },
    /// It waits durably: without a run.
    Sleeps(WaitingFor),
    /// A wait that was over at once. The next call may start.
    Over,
    /// It needs an approval, which cannot be requested while other calls run.
    Later,
    /// It failed before it started.
    Failed,
    /// The task is blocked: it waits for an approval.
    Blocked,
}

/// Time and tools that the next calls of a task wait for. The first one that becomes available resumes the task.
#[derive(Default)]
struct Pause {
    until: Option<Timestamp>,
    tools: BTreeSet<String>,
}

impl Pause {
    /// Adds another waiting call. A call that waits for any capacity subsumes all others, because it can start first.
    fn add(before: Option<Self>, until: Option<Timestamp>, tool: Option<String>) -> Self {
        let is_first = before.is_none();
        let mut pause = before.unwrap_or_default();
        if (!is_first && pause.waits_for_any_place()) || (until.is_none() && tool.is_none()) {
            return Self::default();
        }
        pause.until = pause.until.into_iter().chain(until).min();
        pause.tools.extend(tool);
        pause
    }

    fn waits_for_any_place(&self) -> bool {
        self.until.is_none() && self.tools.is_empty()
    }
}

impl Draft<'_> {
    /// Starts the next calls of a task, or finishes it. Parallel calls may already be running.
    pub(super) fn go_on(&mut self, key: Key) -> Decided<()> {
        let record = self.task(key)?;
        let is_sequential = record.spec.mode() == Mode::Sequential;
        let is_bad =
            |call: &CallRecord| matches!(call.body.status, CallStatus::Failed | CallStatus::Interrupted);
        if self.calls(key)?.iter().any(is_bad) {
            return self.rest(key, None, None);
        }
        let (mut pause, mut wait): (_, Option<WaitingFor>) = (None, None);
        for position in self.order_of_calls(key)? {
            if self.waits_for_part(key, position)? {
                break;
            }
            match self.calls(key)?[position].body.status {
                CallStatus::Pending | CallStatus::Cancelled => {}
                CallStatus::Running if is_sequential => return Ok(()),
                CallStatus::Running
                | CallStatus::Failed
                | CallStatus::Interrupted
                | CallStatus::Succeeded
                | CallStatus::Skipped => continue,
            }
            match self.step(key, &record, position)? {
                Step::Started if is_sequential => return Ok(()),
                Step::Started | Step::Skipped | Step::Later | Step::Over => {}
                Step::Sleeps(other) => {
                    wait = Some(match wait {
                        Some(wait) => wait.or(other),
                        None => other,
                    });
                    if is_sequential {
                        break;
                    }
                }
                Step::Waits { until, tool } => {
                    pause = Some(Pause::add(pause, until, tool));
                    if is_sequential {
                        break;
                    }
                }
                Step::Failed => break,
                Step::Blocked => return Ok(()),
            }
        }
        self.rest(key, pause, wait)
    }

    /// Decides how a task continues if none of its calls can start now.
    fn rest(&mut self, key: Key, pause: Option<Pause>, wait: Option<WaitingFor>) -> Decided<()> {
        let calls = self.calls(key)?;
        let has = |status| calls.iter().any(|call| call.body.status == status);
        let is_stopped = has(CallStatus::Failed) || has(CallStatus::Interrupted);
        match (pause, has(CallStatus::Running)) {
            (Some(Pause { until, tools }), _) if !is_stopped => {
                let record = self.task(key)?;
                let (attempt, plan) = (record.body.attempt, record.plan);
                self.answer.paused.push(Paused { key, attempt, plan, until, tools });
                Ok(())
            }
            (_, true) => Ok(()),
            (_, false) => match wait.filter(|_| !is_stopped) {
                Some(wait) => self.give_to_store(key, wait),
                None => self.after_calls(key, true),
            },
        }
    }

    /// Starts a call if nothing prevents it.
    fn step(&mut self, key: Key, record: &TaskRecord, position: usize) -> Decided<Step> {
        let calls = self.known_calls(key)?;
        let call = &calls[position];
        // The time of a person does not count against the deadline of the task, which begins again with its next claim.
        if call.body.question().is_some() {
            return self.ask_for_tool(key, position);
        }
        if super::wait::is_waiting(call) {
            return self.look_at_wait(key, record, position);
        }
        // The deadline is compared with the due time, not with now: a retry that is due after the deadline fails at
        // once.
        let (now, deadline) = (self.now(), record.body.progress.deadline);
        let starts_at = call.body.due.unwrap_or(now).max(now);
        if let Some(deadline) = deadline.filter(|deadline| *deadline <= starts_at) {
            let end = format_time(deadline);
            let message = if deadline <= now {
                format!("the task exceeded its deadline {end}")
            } else {
                format!("its next retry would start after the task deadline {end}")
            };
            return self.fail_unstarted(key, record, position, "timeout", message);
        }
        if starts_at > now {
            return Ok(Step::Waits { until: Some(starts_at), tool: None });
        }
        let mut inserted = Vec::new();
        if let Some(when) = &call.spec.when {
            match flow::holds(self, record, &calls, when)? {
                Ok(Evaluated { value: true, untrusted }) => inserted = untrusted,
                Ok(Evaluated { value: false, untrusted }) => {
                    return self.skip_call(key, record, position, untrusted);
                }
                Err(problem) => {
                    return self.fail_unevaluated(key, record, position, problem.of("when"));
                }
            }
        }
        if self.lacks_answer(record, call) {
            return match flow::problem_without(self, record, &calls, call, ANSWER)? {
                Some(problem) => self.fail_unevaluated(key, record, position, problem),
                None => self.ask_first(key, position),
            };
        }
        match flow::args(self, record, &calls, call)? {
            Ok(Evaluated { value, untrusted }) => {
                add_values(&mut inserted, untrusted);
                let inserted = (!inserted.is_empty()).then(|| Box::new(inserted));
                let args = Some(value).filter(|args| *args != call.spec.args);
                if args != call.body.args || inserted != call.body.inserted {
                    self.update_call(key, position, |call| {
                        call.body.args = args;
                        call.body.inserted = inserted;
                    })?;
                }
            }
            Err(problem) => return self.fail_unevaluated(key, record, position, problem),
        }
        self.start_where_possible(key, record, position, &calls)
    }

    /// Asks for an approval before the arguments are evaluated, because they may read its answer.
    fn ask_first(&mut self, key: Key, position: usize) -> Decided<Step> {
        if self.calls(key)?.iter().any(|call| call.body.status == CallStatus::Running) {
            return Ok(Step::Later);
        }
        self.ask_approval(key, Some(position))?;
        Ok(Step::Blocked)
    }

    /// Blocks the task with the question of a tool, once none of its calls runs.
    fn ask_for_tool(&mut self, key: Key, position: usize) -> Decided<Step> {
        if self.calls(key)?.iter().any(|call| call.body.status == CallStatus::Running) {
            return Ok(Step::Later);
        }
        let call = &self.calls(key)?[position];
        let Some(question) = call.body.question().cloned() else { return Ok(Step::Later) };
        let reason = BlockedReason::Approval {
            call: Some(call.id.clone()),
            hash: question.hash,
            ask: Some(question.ask),
            options: question.options,
            expires_at: None,
            why: None,
            policy: None,
            after: false,
        };
        self.set_state(key, TaskStatus::blocked(reason), Cause::Ask, None)?;
        self.answer.asked.push(key);
        Ok(Step::Blocked)
    }

    /// Starts a call with known arguments, unless it waits for an approval or for capacity.
    fn start_where_possible(
        &mut self,
        key: Key,
        record: &TaskRecord,
        position: usize,
        calls: &[CallRecord],
    ) -> Decided<Step> {
        let is_running = self.calls(key)?.iter().any(|call| call.body.status == CallStatus::Running);
        // Arguments replaced by the approver are authorized below instead, after they were put into the call.
        let has_other_args = self.has_other_args(key, record, position)?;
        let decision = self.authorize_now(key, record, position)?;
        if !has_other_args && let PolicyDecision::Deny { why } = decision {
            return self.fail_unstarted(key, record, position, "denied", why);
        }
        let why = why_asked(decision);
        if is_running && (why.is_some() || self.author_asks(key, record, Some(position))?) {
            return Ok(Step::Later);
        }
        if !self.ask_unless_granted(key, Some(position), why)? {
            return Ok(Step::Blocked);
        }
        // The approver may have replaced the arguments, so the policy decides again.
        if has_other_args && let PolicyDecision::Deny { why } = self.authorize_now(key, record, position)? {
            return self.fail_unstarted(key, record, position, "denied", why);
        }
        let tool = &calls[position].spec.tool_name;
        if tool == WAIT_TOOL {
            return self.begin_wait(key, record, position);
        }
        if self.room.places == 0 {
            return Ok(Step::Waits { until: None, tool: None });
        }
        if self.room.tool_places.get(tool) == Some(&0) {
            return Ok(Step::Waits { until: None, tool: Some(tool.clone()) });
        }
        self.start_call(key, record, position)?;
        Ok(Step::Started)
    }

    fn start_call(&mut self, key: Key, record: &TaskRecord, position: usize) -> Decided<()> {
        let now = self.now();
        let call = self.update_call(key, position, |call| {
            let body = &mut call.body;
            body.status = CallStatus::Running;
            body.attempts += 1;
            body.started_at = Some(now);
            body.finished_at = None;
            body.result = None;
            body.cut = None;
            body.error = None;
            body.artifacts = None;
            body.worker = None;
            body.due = None;
        })?;
        self.room.take(&call.spec.tool_name);
        let attempt = record.body.attempt;
        self.emit(
            Some(key),
            EventKind::CallStarted {
                call: call.id.clone(),
                attempt,
                start: call.body.attempts,
                args_hash: Some(ShortHash::of_object(call.body.args.as_ref().unwrap_or(&call.spec.args))),
            },
        )?;
        let cache = self.inputs_to_check(key, record)?;
        // Sandbox permissions are granted only if a policy hook has authorized the call.
        let is_judged = self.context.policy_hook.is_some();
        let sandbox = requested(&record.spec, &call.spec).filter(|_| is_judged);
        self.answer.started.push(StartedCall {
            key,
            task: record.id.clone(),
            attempt,
            generation: record.body.generation,
            round: record.body.progress.round,
            args: call.body.args.clone().unwrap_or_else(|| call.spec.args.clone()),
            deadline: record.body.progress.deadline,
            plan: record.plan.clone(),
            spec: record.spec.clone(),
            sandbox,
            cache,
            call,
        });
        Ok(())
    }

    /// Skips a call whose condition is false. Values from models that the condition read stay recorded: other expressions may read that
    /// the call has no result.
    fn skip_call(
        &mut self,
        key: Key,
        record: &TaskRecord,
        position: usize,
        read: Vec<UntrustedValue>,
    ) -> Decided<Step> {
        let now = self.now();
        let inserted = (!read.is_empty()).then(|| Box::new(read));
        let call = self.update_call(key, position, |call| {
            let CallBody { attempts, failures, emitted, .. } = std::mem::take(&mut *call.body);
            let (status, finished_at) = (CallStatus::Skipped, Some(now));
            *call.body = CallBody {
                status,
                attempts,
                inserted,
                failures,
                emitted,
                finished_at,
                ..CallBody::default()
            };
        })?;
        self.emit_ended(key, record, &call)?;
        Ok(Step::Skipped)
    }

    /// Fails a call whose condition or arguments cannot be evaluated.
    fn fail_unevaluated(
        &mut self,
        key: Key,
        record: &TaskRecord,
        position: usize,
        problem: Problem,
    ) -> Decided<Step> {
        self.fail_unstarted(key, record, position, problem.class.as_str(), problem.text)
    }

    /// Fails a call that did not start.
    pub(super) fn fail_unstarted(
        &mut self,
        key: Key,
        record: &TaskRecord,
        position: usize,
        class: &str,
        message: String,
    ) -> Decided<Step> {
        let now = self.now();
        let error = CallError::new(class, message);
        self.update_call(key, position, |call| {
            call.body.status = CallStatus::Failed;
            call.body.error = Some(Box::new(error));
            call.body.result = None;
            call.body.cut = None;
            call.body.finished_at = Some(now);
            call.body.due = None;
            call.body.failures += 1;
        })?;
        match self.close_failed(key, record, position)? {
            Some(until) => Ok(Step::Waits { until: Some(until), tool: None }),
            None => Ok(Step::Failed),
        }
    }

    /// Records the failure of a call; returns the time of its retry, if there is one.
    pub(super) fn close_failed(
        &mut self,
        key: Key,
        record: &TaskRecord,
        position: usize,
    ) -> Decided<Option<Timestamp>> {
        let call = self.calls(key)?[position].clone();
        let due = self.retry_at(record, &call);
        self.emit_failed(key, record, &call, due)?;
        if due.is_some() {
            self.update_call(key, position, |call| {
                call.body.status = CallStatus::Pending;
                call.body.due = due;
                // The retry of a wait begins a new one.
                if call.spec.tool_name == WAIT_TOOL {
                    call.body.started_at = None;
                }
            })?;
        }
        Ok(due)
    }

    /// Decides how a task continues once none of its calls runs.
    pub(super) fn after_calls(&mut self, key: Key, go_on: bool) -> Decided<()> {
        let calls = self.calls(key)?;
        let find = |status| calls.iter().find(|call| call.body.status == status);
        // An unknown outcome comes before a failure: a person has to settle it first, and `retry` must not repeat the
        // call.
        if let Some(call) = find(CallStatus::Interrupted) {
            let reason = BlockedReason::Interrupted { call: call.id.clone() };
            return self.set_state(key, TaskStatus::blocked(reason), Cause::Interrupt, None);
        }
        if find(CallStatus::Failed).is_some() {
            if self.send_back(key)? {
                return if go_on {
                    self.go_on(key)
                } else {
                    self.set_state(key, TaskStatus::Todo, Cause::Release, None)
                };
            }
            return self.fail_by_call(key);
        }
        if calls.iter().all(|call| call.body.status.is_settled()) {
            self.complete(key, go_on)
        } else if go_on {
            self.go_on(key)
        } else if let Some(position) = calls.iter().position(|call| call.body.question().is_some()) {
            self.ask_for_tool(key, position).map(drop)
        } else {
            self.set_state(key, TaskStatus::Todo, Cause::Release, None)
        }
    }

    fn fail_by_call(&mut self, key: Key) -> Decided<()> {
        let failed = self.calls(key)?.iter().find(|call| call.body.status == CallStatus::Failed);
        let error = failed.map_or_else(String::new, failure_text);
        self.set_state(
            key,
            TaskStatus::Failed { error: error.clone(), class: None },
            Cause::Report,
            Some(error),
        )
    }

    // Rounds.

    /// Finishes a task with only settled calls, or starts another round.
    fn complete(&mut self, key: Key, go_on: bool) -> Decided<()> {
        let spec = self.look_at(key)?.spec.clone();
        let Some(repeat) = &spec.repeat else { return self.accept(key) };
        let record = self.task(key)?;
        let calls = self.known_calls(key)?;
        let round = record.body.progress.round + 1;
        self.update_task(key, |record| record.body.progress.round = round)?;
        let nothing_ran = calls.iter().all(|call| call.body.status == CallStatus::Skipped);
        let holds = flow::holds(self, &record, &calls, &repeat.until)?;
        match holds.map(|holds| holds.value) {
            Ok(true) => self.accept(key),
            Err(problem) => self.fail_without_call(key, problem.failed("repeat.until"), Cause::Report),
            Ok(false) if round >= repeat.max => {
                let until = &repeat.until;
                let rounds = if round == 1 { "1 round".to_owned() } else { format!("{round} rounds") };
                let state = used_up(&format!("did not hold after {rounds}: {until}"));
                self.fail_without_call(key, state, Cause::Report)
            }
            // The next round would be the same, and the loop would never end within this commit.
            Ok(false) if nothing_ran => {
                let until = &repeat.until;
                let state = used_up(&format!("does not hold, and no call of the round ran: {until}"));
                self.fail_without_call(key, state, Cause::Report)
            }
            Ok(false) => {
                // Waits may be over at once. Without a pause, the rounds would follow each other within this commit.
                let only_waits = calls
                    .iter()
                    .all(|call| call.body.status == CallStatus::Skipped || call.spec.tool_name == WAIT_TOOL);
                self.next_round(key, round, repeat, go_on)?;
                if go_on && only_waits {
                    self.pause_for_run(key)
                } else if go_on {
                    self.go_on(key)
                } else {
                    Ok(())
                }
            }
        }
    }

    /// Clears the calls for another round. The caller continues with it, unless it gives the task back.
    fn next_round(&mut self, key: Key, round: u32, repeat: &Repeat, go_on: bool) -> Decided<()> {
        let pause = repeat.delay.filter(|delay| !delay.0.is_zero());
        let pause = pause.map(|delay| chrono::TimeDelta::from_std(delay.0).unwrap_or(chrono::TimeDelta::MAX));
        let due = pause.map(|pause| self.now().checked_add_signed(pause).unwrap_or(Timestamp::MAX_UTC));
        for position in 0..self.calls(key)?.len() {
            // The rounds share one worktree.
            if self.calls(key)?[position].spec.part() == CallPart::Setup {
                continue;
            }
            self.update_call(key, position, |call| {
                let CallBody { attempts, approval, emitted, .. } = std::mem::take(&mut *call.body);
                *call.body = CallBody { attempts, due, approval, emitted, ..CallBody::default() };
            })?;
        }
        self.emit(Some(key), EventKind::RoundEnded { round, of: repeat.max, again_at: due })?;
        if go_on { Ok(()) } else { self.set_state(key, TaskStatus::Todo, Cause::Release, None) }
    }

    /// Lets the run of a task continue with it in its next commit.
    fn pause_for_run(&mut self, key: Key) -> Decided<()> {
        self.rest(key, Some(Pause { until: Some(self.now()), ..Pause::default() }), None)
    }

    // Events.

    pub(super) fn emit_ended(&mut self, key: Key, record: &TaskRecord, call: &CallRecord) -> Decided<()> {
        self.emit_failed(key, record, call, None)
    }

    fn emit_failed(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: &CallRecord,
        again_at: Option<Timestamp>,
    ) -> Decided<()> {
        let event = EventKind::CallEnded {
            call: call.id.clone(),
            attempt: record.body.attempt,
            status: call.body.status,
            error: call.body.error.as_ref().map(|error| Box::new(error.message.clone())),
            again_at: again_at.map(Box::new),
            result_hash: call.body.result.as_ref().map(ShortHash::of),
            worker: call.body.worker.clone(),
        };
        self.emit(Some(key), event)
    }
}

pub(super) fn failure_text(call: &CallRecord) -> String {
    let message = call.body.error.as_ref().map_or("failed", |error| error.message.as_str());
    let what = match call.spec.part() {
        CallPart::Setup => "setup",
        CallPart::Verify | CallPart::Artifacts => "verification",
        CallPart::Work | CallPart::Commit => "call",
    };
    format!("{what} `{}` ({}): {message}", call.id, call.spec.tool_name)
}
