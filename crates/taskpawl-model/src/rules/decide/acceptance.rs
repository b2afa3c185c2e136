//! Approval of results: a task with `approval: {after: true}` waits for a person once its calls have succeeded.
//!
//! An approval ends the task: nothing runs again. A rejection fails it, or sends a text back to its agent, which goes on in its
//! session; then the task asks again. An answer holds for the result that was asked about.

use super::approval::{Asking, Open};
use super::fields::invalid;
use super::rework::{MAX_FOUND_BYTES, agent_of};
use super::verdict::{ApprovalAnswer, NO_REASON, plain};
use crate::rules::draft::{Decided, Draft};
use crate::task::asked::Rework;
use crate::task::question::{AskedResult, hash_of_results};
use crate::task::record::{CallRecord, Granted, TaskRecord};
use crate::task::status::{Cause, FailureClass, TaskStatus};
use crate::value::Key;

impl Draft<'_> {
    /// Ends a task whose calls have succeeded, or asks about its result.
    pub(super) fn accept(&mut self, key: Key) -> Decided<()> {
        let record = self.task(key)?;
        if record.spec.approval_after().is_none() {
            return self.succeed(key, Cause::Report, None);
        }
        self.ask_about_result(key, &record, None)
    }

    fn ask_about_result(&mut self, key: Key, record: &TaskRecord, text: Option<String>) -> Decided<()> {
        let hash = hash_of_results(&record.id, &self.results_of(key)?);
        self.ask(key, record, None, Asking { hash, text, after: true, ..Asking::default() })
    }

    /// Returns the results of the calls that ran, in order.
    pub(super) fn results_of(&mut self, key: Key) -> Decided<Vec<AskedResult>> {
        let ran = |call: &&CallRecord| call.body.started_at.is_some();
        Ok(self.calls(key)?.iter().filter(ran).map(AskedResult::of).collect())
    }

    /// Returns whether a task still asks about its result: its author does, and the result is there.
    pub(super) fn is_result_asked(&mut self, key: Key, record: &TaskRecord) -> Decided<bool> {
        let is_there = self.calls(key)?.iter().all(|call| call.body.status.is_settled());
        Ok(is_there && record.spec.approval_after().is_some())
    }

    /// Asks again if the result changed since it was asked about.
    pub(super) fn refresh_result_question(
        &mut self,
        key: Key,
        record: &TaskRecord,
        open: &Open,
    ) -> Decided<()> {
        if hash_of_results(&record.id, &self.results_of(key)?) == open.hash {
            return Ok(());
        }
        self.ask_about_result(key, record, Some("the result to approve has changed".to_owned()))
    }

    /// Ends a task whose result a person accepts.
    pub(super) fn accept_result(
        &mut self,
        key: Key,
        record: &TaskRecord,
        open: Open,
        yes: &ApprovalAnswer<'_>,
    ) -> Decided<()> {
        if yes.args.is_some() {
            return Err(
                invalid("args", "its calls have run already: `reject --rework` changes the result").into()
            );
        }
        let text = yes.answer.as_ref().map(|answer| format!("answer: {}", plain(answer)));
        let granted = Granted {
            hash: open.hash,
            by: self.context.actor.to_string(),
            at: self.now(),
            answer: yes.answer.clone().filter(|_| !open.options.is_empty()),
            args: None,
            policy: open.policy,
        };
        self.write_grant(key, record, None, granted)?;
        self.succeed(key, Cause::Approve, text)
    }

    pub(super) fn reject_result(&mut self, key: Key, reason: Option<&str>) -> Decided<()> {
        let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let error = format!("the result was rejected{why}");
        let state = TaskStatus::Failed { error, class: Some(FailureClass::Reported) };
        self.set_state(key, state, Cause::Reject, Some(reason.unwrap_or(NO_REASON).to_owned()))
    }

    /// Sends a text of a person back to the agent of a task. The round is an additional one: it uses up none of `rework`.
    pub(super) fn send_result_back(
        &mut self,
        key: Key,
        record: &TaskRecord,
        open: &Open,
        text: &str,
    ) -> Decided<()> {
        let refuse = |problem: String| -> Decided<()> { Err(invalid("rework", problem).into()) };
        let id = &record.id;
        if !open.after {
            return refuse(format!("`{id}` asks before it runs, and has no result to send back"));
        }
        if text.trim().is_empty() || text.len() > MAX_FOUND_BYTES {
            let limit = MAX_FOUND_BYTES / 1024;
            return refuse(format!("the text for the agent must not be empty or longer than {limit} KiB"));
        }
        let calls = self.calls(key)?;
        let Some(agent) = agent_of(calls) else {
            return refuse(format!(
                "`{id}` has no call of `agent` that corrects its work: reject it with a reason"
            ));
        };
        let (round, last) = match calls[agent].body.rework() {
            Some(rework) => (rework.round + 1, rework.last + 1),
            None => (1, record.spec.rework.unwrap_or_default() + 1),
        };
        let by = Some(self.context.actor.to_string());
        self.begin_round(key, agent, &Rework { round, last, found: Some(text.to_owned()), by })?;
        if record.spec.repeat.is_some() {
            // The round of the loop goes on with the corrected work.
            self.update_task(key, |record| {
                let progress = &mut record.body.progress;
                progress.round = progress.round.saturating_sub(1);
            })?;
        }
        self.set_state(key, TaskStatus::Todo, Cause::Reject, Some(format!("sent back: {text}")))
    }
}
