//! Durable waits: calls of `wait`, the time before which a task may not start, and signals.
//!
//! A waiting call is `pending` with the time at which it began. Its task is in progress without a run. The commit that
//! ends the wait returns the task to `todo`, or ends it if nothing is left to do.

use crate::command::NewSignal;
use crate::command::refusal::Refusal;
use crate::rules::draft::{Decided, Draft};
use crate::task::ActorKind;
use crate::task::event::{EventKind, SignalEvent, SignalStep};
use crate::task::record::{CallRecord, StatusKind, TaskRecord};
use crate::task::spec::Origin;
use crate::task::status::{CallStatus, Cause, Claim, TaskStatus};
use crate::task::trust::UntrustedValue;
use crate::task::wait::{
    MAX_SIGNAL_DATA, MAX_SIGNALS, SignalRecord, WAIT_TOOL, WaitRequest, WaitingFor, check_signal_name,
};
use crate::value::{Key, TaskId, Timestamp};
use crate::view::{ReadRuns, SignalChange, Waits};
use serde_json::Value;

use super::fields::{check_depth, invalid};
use super::step::Step;

/// Returns whether a call waits durably.
pub(super) fn is_waiting(call: &CallRecord) -> bool {
    call.spec.tool_name == WAIT_TOOL
        && call.body.status == CallStatus::Pending
        && call.body.started_at.is_some()
}

impl Draft<'_> {
    // Calls.

    /// Begins the wait of a call, and ends it if its end has come already.
    pub(super) fn begin_wait(&mut self, key: Key, record: &TaskRecord, position: usize) -> Decided<Step> {
        let request = match request(&self.calls(key)?[position]) {
            Ok(request) => request,
            Err(message) => return self.fail_unstarted(key, record, position, "invalid_args", message),
        };
        let now = self.now();
        self.update_call(key, position, |call| {
            let body = &mut call.body;
            body.attempts += 1;
            (body.started_at, body.finished_at) = (Some(now), None);
            (body.result, body.cut, body.error) = (None, None, None);
            body.due = request.end(now);
        })?;
        self.look_at_wait(key, record, position)
    }

    /// Ends the wait of a call if its time has come or its signal is there.
    pub(super) fn look_at_wait(&mut self, key: Key, record: &TaskRecord, position: usize) -> Decided<Step> {
        let call = self.calls(key)?[position].clone();
        let request = match request(&call) {
            Ok(request) => request,
            Err(message) => return self.fail_unstarted(key, record, position, "invalid_args", message),
        };
        let is_due = call.body.due.is_some_and(|due| due <= self.now());
        let Some(signal) = request.signal() else {
            if is_due {
                return self.end_wait(key, record, position, Value::Null, None);
            }
            let (call, time) = (Some(call.id), call.body.due);
            return Ok(Step::Sleeps(WaitingFor { call, time, ..WaitingFor::default() }));
        };
        // The time of sending decides, not the moment of looking: a signal that came in time counts although nothing looked for it
        // before the timeout, and one that came later does not.
        if let Some(taken) = self.take_signal(key, signal, &record.id, call.body.due)? {
            let from_model = taken.origin.noted().map(|origin| {
                let name = format!("the signal `{signal}`");
                UntrustedValue { name, origin, input: String::new(), is_data: false }
            });
            return self.end_wait(key, record, position, taken.data, from_model);
        }
        if is_due {
            let message = format!("no signal `{signal}` came in time");
            return self.fail_unstarted(key, record, position, "timeout", message);
        }
        let (call, time, signal) = (Some(call.id), call.body.due, Some(signal.to_owned()));
        Ok(Step::Sleeps(WaitingFor { call, time, signal, also: Vec::new() }))
    }

    fn end_wait(
        &mut self,
        key: Key,
        record: &TaskRecord,
        position: usize,
        result: Value,
        from_model: Option<UntrustedValue>,
    ) -> Decided<Step> {
        let now = self.now();
        let call = self.update_call(key, position, |call| {
            let body = &mut call.body;
            body.status = CallStatus::Succeeded;
            (body.finished_at, body.due) = (Some(now), None);
            body.result = Some(result);
            if let Some(value) = from_model {
                body.inserted.get_or_insert_default().push(value);
            }
        })?;
        self.emit_ended(key, record, &call)?;
        Ok(Step::Over)
    }

    /// Takes a task from its run: none of its calls runs, and the next thing to happen is the end of a wait.
    pub(super) fn give_to_store(&mut self, key: Key, wait: WaitingFor) -> Decided<()> {
        let actor = self.context.actor.clone();
        let claim = Claim { run: None, actor, kind: ActorKind::Run, lease_until: None, lease: None };
        self.set_state(key, TaskStatus::InProgress { claim }, Cause::Wait, Some(wait.to_string()))?;
        self.note_wake(wait.time);
        self.update_task(key, |record| record.body.progress.waiting_for = Some(Box::new(wait)))
    }

    fn note_wake(&mut self, time: Option<Timestamp>) {
        self.answer.next_wake = self.answer.next_wake.into_iter().chain(time).min();
    }

    // Tasks.

    /// Returns whether a task may not start yet, because of its `notBefore`.
    pub(super) fn starts_later(&mut self, key: Key, record: &TaskRecord) -> Decided<bool> {
        let Some(time) = record.spec.not_before.filter(|time| *time > self.now()) else { return Ok(false) };
        let wait = Box::new(WaitingFor::until(time));
        if record.body.progress.waiting_for.as_ref() != Some(&wait) {
            self.update_task(key, |record| record.body.progress.waiting_for = Some(wait))?;
        }
        self.note_wake(Some(time));
        Ok(true)
    }

    /// Ends the waits of those of the tasks whose time has come.
    pub(super) fn wake(&mut self, tasks: &[Key]) -> Decided<()> {
        // The end of a wait is no report of an actor: the process that looks at the clock may belong to an agent.
        let before = self.write_as(Origin::Plan);
        for key in tasks {
            if self.find_node(*key)?.is_some() {
                self.wake_one(*key)?;
            }
        }
        self.write_as(before);
        Ok(())
    }

    /// Like [`wake`](Self::wake), with all consequences, for a command that needs the tasks.
    pub(super) fn wake_now(&mut self, tasks: &[Key]) -> Decided<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        self.wake(tasks)?;
        self.settle()
    }

    fn wake_one(&mut self, key: Key) -> Decided<()> {
        let record = self.task(key)?;
        let is_due = |wait: &WaitingFor| Waits::Due(self.now()).is_meant(wait);
        if !record.body.progress.waiting_for.as_deref().is_some_and(is_due) {
            return Ok(());
        }
        if self.node(key)?.status_kind == StatusKind::InProgress {
            return self.end_waits(key, &record);
        }
        self.update_task(key, |record| record.body.progress.waiting_for = None)?;
        self.queue(key);
        Ok(())
    }

    /// Ends those waits of a waiting task that are over, and lets a run go on with it.
    fn end_waits(&mut self, key: Key, record: &TaskRecord) -> Decided<()> {
        for position in 0..self.calls(key)?.len() {
            if is_waiting(&self.calls(key)?[position]) {
                self.look_at_wait(key, record, position)?;
            }
        }
        self.after_calls(key, false)
    }

    // Signals.

    /// Sends a signal: to the oldest task that waits for it, or to the first that will.
    pub(super) fn signal(&mut self, new: &NewSignal) -> Decided<()> {
        check_signal_name(&new.name).map_err(|text| invalid("signal", text))?;
        check_depth("data", &Some(new.data.clone()))?;
        if new.data.to_string().len() > MAX_SIGNAL_DATA {
            let limit = MAX_SIGNAL_DATA / 1024;
            return Err(invalid(
                "data",
                format!("larger than {limit} KiB: write it to a file, and send its path"),
            )
            .into());
        }
        let to = new.to.as_deref().map(|id| self.receiver(id)).transpose()?;
        if self.signals(None)?.len() >= MAX_SIGNALS {
            let text =
                format!("{MAX_SIGNALS} signals wait to be taken: `taskpawl signal --drop NAME` drops some");
            return Err(invalid("signal", text).into());
        }
        let NewSignal { id, name, data, .. } = new.clone();
        let record = SignalRecord {
            id,
            name: name.clone(),
            data,
            to: to.as_ref().map(|(_, id)| id.clone()),
            actor: self.context.actor.to_string(),
            kind: self.context.kind,
            origin: self.writer,
            at: self.now(),
        };
        let to = to.map(|(key, _)| key);
        self.emit_signal(to, &record, SignalStep::Sent)?;
        self.changes.signals.push(SignalChange::Keep(Box::new(record.clone())));
        for key in self.waiters(&name, to)? {
            let task = self.task(key)?;
            let wait = task.body.progress.waiting_for.as_deref();
            if wait.is_some_and(|wait| Waits::Due(self.now()).is_meant(wait)) {
                // The time ends the wait, and not the sender.
                self.wake(&[key])?;
            } else {
                self.end_waits(key, &task)?;
            }
            // The wait may have timed out before: then the next task takes the signal.
            if !self.signals(Some(&name))?.iter().any(|kept| kept.id == record.id) {
                self.answer.tasks.push(task.id);
                break;
            }
        }
        Ok(())
    }

    /// Returns the task of a signal. An agent may send only to tasks that it may report on.
    fn receiver(&mut self, id: &str) -> Decided<(Key, TaskId)> {
        let key = self.resolve(id)?;
        let record = self.task(key)?;
        self.check_may_signal(&record)?;
        if record.body.state.status().is_finished() {
            let status = record.body.state.status();
            return Err(invalid("to", format!("`{}` is {status}: it takes no signal", record.id)).into());
        }
        Ok((key, record.id))
    }

    /// Refuses the signal of an agent for a task of a person, or of another agent.
    fn check_may_signal(&self, record: &TaskRecord) -> Decided<()> {
        if self.may_signal(record) {
            return Ok(());
        }
        let (id, by) = (record.id.clone(), "signal");
        let assignee = record.spec.assignee.clone().filter(|_| !record.spec.is_for_person());
        Err(match assignee {
            Some(assignee) => Refusal::ForOther { id, by, assignee },
            None => Refusal::PersonOnly { id, by },
        }
        .into())
    }

    fn may_signal(&self, record: &TaskRecord) -> bool {
        let assignee = record.spec.assignee.as_deref();
        self.context.kind != ActorKind::Agent || assignee.is_none_or(|name| *name == *self.context.actor)
    }

    /// Returns the tasks that wait for a signal, and that this actor may send it to, in the order of their creation.
    fn waiters(&self, name: &str, to: Option<Key>) -> Decided<Vec<Key>> {
        let mut waiters = Vec::new();
        for key in self.view.waiting(Waits::Signal(name))? {
            if to.is_none_or(|to| to == key) && self.may_signal(&self.task(key)?) {
                waiters.push(key);
            }
        }
        Ok(waiters)
    }

    /// Takes the oldest signal of a name that a task may take, and that was sent before `end`.
    fn take_signal(
        &mut self,
        key: Key,
        name: &str,
        task: &TaskId,
        end: Option<Timestamp>,
    ) -> Decided<Option<SignalRecord>> {
        let is_for = |signal: &SignalRecord| {
            signal.to.as_ref().is_none_or(|to| to == task) && end.is_none_or(|end| signal.at < end)
        };
        let record = self.look_at(key)?;
        let is_of_other = |signal: &SignalRecord| {
            let assignee = record.spec.assignee.as_deref();
            signal.kind == ActorKind::Agent && assignee.is_some_and(|name| name != signal.actor)
        };
        let kept = self.signals(Some(name))?;
        let Some(taken) = kept.into_iter().find(|signal| is_for(signal) && !is_of_other(signal)) else {
            return Ok(None);
        };
        self.changes.signals.push(SignalChange::Remove(taken.id.clone()));
        self.emit_signal(Some(key), &taken, SignalStep::Taken)?;
        Ok(Some(taken))
    }

    /// Drops the signals of a name that no task has taken. An agent drops only its own.
    pub(super) fn drop_signals(&mut self, name: &str) -> Decided<()> {
        for signal in self.signals(Some(name))? {
            let is_own = signal.kind == ActorKind::Agent && signal.actor == *self.context.actor;
            if self.context.kind == ActorKind::Agent && !is_own {
                continue;
            }
            self.changes.signals.push(SignalChange::Remove(signal.id.clone()));
            self.emit_signal(None, &signal, SignalStep::Dropped)?;
            self.answer.dropped_signals += 1;
        }
        Ok(())
    }

    fn emit_signal(&mut self, key: Option<Key>, signal: &SignalRecord, step: SignalStep) -> Decided<()> {
        let (id, name, to) = (signal.id.clone(), signal.name.clone(), signal.to.clone());
        self.emit(key, EventKind::Signal(Box::new(SignalEvent { id, name, to, step })))
    }
}

fn request(call: &CallRecord) -> Result<WaitRequest, String> {
    WaitRequest::read(call.body.args.as_ref().unwrap_or(&call.spec.args))
}
