//! Rework: a failed verification, or a result that a person rejects, goes back to the agent of the task, which corrects its work.

use serde_json::Value;
use taskpawl_text::{head, tail};

use super::retry::FINAL;
use super::step::failure_text;
use crate::rules::draft::{Decided, Draft};
use crate::task::asked::Rework;
use crate::task::event::EventKind;
use crate::task::record::{CallBody, CallRecord};
use crate::task::spec::{AGENT_TOOL, CallPart, Mode};
use crate::task::status::CallStatus;
use crate::value::Key;

/// Longest part of each output of a failed verification that its agent sees, in bytes.
const MAX_OUTPUT_BYTES: usize = 8 << 10;

/// Longest text for the agent, in bytes: it is stored with the call.
pub(super) const MAX_FOUND_BYTES: usize = 32 << 10;

impl Draft<'_> {
    /// Returns the positions of the calls in the order in which they start: the preparation, the work, its verifications, and the commit.
    pub(super) fn order_of_calls(&mut self, key: Key) -> Decided<Vec<usize>> {
        let calls = self.calls(key)?;
        let mut order: Vec<usize> = (0..calls.len()).collect();
        order.sort_by_key(|position| calls[*position].spec.part());
        Ok(order)
    }

    /// Returns whether a call waits for calls of an earlier part of its task, or for an earlier call that prepares its worktree.
    pub(super) fn waits_for_part(&mut self, key: Key, position: usize) -> Decided<bool> {
        let calls = self.calls(key)?;
        let part = calls[position].spec.part();
        let is_open = |call: &CallRecord| !call.body.status.is_settled();
        let waits_for_setup = part == CallPart::Setup
            && calls[..position].iter().any(|call| call.spec.part() == part && is_open(call));
        Ok(waits_for_setup || calls.iter().any(|call| call.spec.part() < part && is_open(call)))
    }

    /// Sends a failed verification back to the last agent of the task; false if the task fails with it.
    ///
    /// The agent goes on in its session. Calls that came after it, and the verifications, begin from the beginning.
    pub(super) fn send_back(&mut self, key: Key) -> Decided<bool> {
        let record = self.task(key)?;
        let Some(limit) = record.spec.rework else { return Ok(false) };
        let calls = self.calls(key)?;
        let failed: Vec<&CallRecord> =
            calls.iter().filter(|call| call.body.status == CallStatus::Failed).collect();
        if !failed.iter().all(|call| is_correctable(call)) {
            return Ok(false);
        }
        let Some(agent) = agent_of(calls) else { return Ok(false) };
        let (round, last) = match calls[agent].body.rework() {
            Some(rework) => (rework.round + 1, rework.last),
            None => (1, limit),
        };
        if round > last {
            return Ok(false);
        }
        let found = failed.iter().map(|call| what_it_found(call)).collect::<Vec<_>>().join("\n\n");
        let found = Some(head(&found, MAX_FOUND_BYTES).to_owned());
        self.begin_round(key, agent, &Rework { round, last, found, by: None })?;
        Ok(true)
    }

    /// Starts a round in which the agent at a position corrects its work, and the calls after it begin from the beginning.
    pub(super) fn begin_round(&mut self, key: Key, agent: usize, rework: &Rework) -> Decided<()> {
        let is_sequential = self.look_at(key)?.spec.mode() == Mode::Sequential;
        for position in 0..self.calls(key)?.len() {
            let part = self.calls(key)?[position].spec.part();
            let is_after =
                part > CallPart::Work || part == CallPart::Work && is_sequential && position > agent;
            if position == agent {
                self.begin_rework(key, position, rework.clone())?;
            } else if is_after {
                self.begin_rework(key, position, Rework { found: None, ..rework.clone() })?;
            }
        }
        let call = self.calls(key)?[agent].id.clone();
        self.emit(Some(key), EventKind::SentBack { call, round: rework.round, of: rework.last })
    }

    fn begin_rework(&mut self, key: Key, position: usize, rework: Rework) -> Decided<()> {
        self.update_call(key, position, |call| {
            let CallBody { attempts, approval, emitted, usage, asked, .. } = std::mem::take(&mut *call.body);
            let mut asked = asked.unwrap_or_default();
            // The agent goes on with its answers; other calls start over, and ask again.
            if rework.found.is_none() {
                asked.answers.clear();
            }
            asked.question = None;
            asked.rework = Some(rework);
            let asked = Some(asked);
            *call.body = CallBody { usage, attempts, approval, emitted, asked, ..CallBody::default() };
        })
        .map(drop)
    }

    /// Lets a task that is retried use its rounds of rework once more.
    pub(super) fn allow_rework_again(&mut self, key: Key) -> Decided<()> {
        let Some(limit) = self.task(key)?.spec.rework else { return Ok(()) };
        for position in 0..self.calls(key)?.len() {
            let rework = self.calls(key)?[position].body.rework();
            if rework.is_some_and(|rework| rework.last < rework.round.saturating_add(limit)) {
                self.update_call(key, position, |call| {
                    let rework = call.body.asked.as_mut().and_then(|asked| asked.rework.as_mut());
                    if let Some(rework) = rework {
                        rework.last = rework.round.saturating_add(limit);
                    }
                })?;
            }
        }
        Ok(())
    }
}

/// Returns the position of the last agent of a task, which corrects its work.
pub(super) fn agent_of(calls: &[CallRecord]) -> Option<usize> {
    let is_agent = |call: &CallRecord| {
        call.spec.part() == CallPart::Work
            && call.spec.tool_name == AGENT_TOOL
            && call.body.status == CallStatus::Succeeded
    };
    calls.iter().rposition(is_agent)
}

/// Returns whether other work may let a failed call succeed: it ran, and did not fail by a mistake of the plan.
fn is_correctable(call: &CallRecord) -> bool {
    let is_final = call.body.error.as_ref().is_some_and(|error| FINAL.contains(&error.class.as_str()));
    call.spec.verify && call.body.started_at.is_some() && !is_final
}

/// Returns the failure of a verification with its output, for the agent.
fn what_it_found(call: &CallRecord) -> String {
    let mut text = failure_text(call);
    if let Some(Value::String(command)) = call.spec.args.get("command") {
        text.push_str("\ncommand: ");
        text.push_str(command);
    }
    for stream in ["stdout", "stderr"] {
        let output = call.body.result.as_ref().and_then(|result| result.get(stream)).and_then(Value::as_str);
        if let Some(output) = output.map(str::trim_end).filter(|output| !output.is_empty()) {
            // The end usually has the reason.
            let end = tail(output, MAX_OUTPUT_BYTES);
            text.extend(["\n", stream, ":\n", end]);
        }
    }
    text
}
