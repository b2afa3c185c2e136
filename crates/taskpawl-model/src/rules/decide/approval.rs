//! Approvals: asking, `approve` and `reject`, and the default when the time to decide ends.
//!
//! An approval is about exactly the work that was proposed. If the arguments or the calls change before they start, it
//! is asked for again.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::command::Context;
use crate::rules::DecideError;
use crate::rules::draft::{Decided, Draft};
use crate::rules::flow::{self, KnownArgs};
use crate::task::asked::ToolQuestion;
use crate::task::policy_hook::requested;
use crate::task::question::{ApprovalRequest, AskedCall, Subject, hash};
use crate::task::record::{CallRecord, Granted, StatusKind, TaskRecord};
use crate::task::spec::{Approval, Question};
use crate::task::status::{BlockedReason, Cause, TaskStatus};
use crate::task::trust::{note_origin, trusted_inputs};
use crate::value::Timestamp;
use crate::value::{CallId, Key};
use crate::view::View;

use super::authorize::ON_EXPIRY;

/// Name in the context of a task under which its expressions find the answer.
pub(super) const ANSWER: &str = "approval";

/// An open question of a task.
pub(super) struct Open {
    pub(super) call: Option<CallId>,
    pub(super) hash: String,
    pub(super) options: Vec<String>,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) why: Option<String>,
    pub(super) policy: Option<String>,
    /// True if the question is about the result of the task.
    pub(super) after: bool,
}

impl Open {
    pub(super) fn of(state: &TaskStatus) -> Option<Self> {
        let Some(BlockedReason::Approval { call, hash, ask: _, options, expires_at, why, policy, after }) =
            state.blocked_reason().cloned()
        else {
            return None;
        };
        Some(Self { call, hash, options, expires_at, why, policy, after })
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// A question to ask.
#[derive(Default)]
pub(super) struct Asking {
    pub(super) hash: String,
    /// Reason of the policy; `None` if only the author asks.
    pub(super) why: Option<String>,
    pub(super) policy: Option<String>,
    /// Text for the event.
    pub(super) text: Option<String>,
    /// True if it is about the result of the task.
    pub(super) after: bool,
}

/// Returns the question of a task that waits for a decision.
///
/// # Errors
/// The view cannot be read.
pub fn approval_request(view: &dyn View, key: Key) -> Result<Option<ApprovalRequest>, DecideError> {
    let context = Context::of_reader();
    let mut draft = Draft::new(view, &context);
    if draft.find_node(key)?.is_none_or(|node| node.status_kind != StatusKind::BlockedOther) {
        return Ok(None);
    }
    draft.request(key)
}

impl Draft<'_> {
    // Asking.

    /// Returns whether a task, or the call at a position, has every approval that it needs. Otherwise it is blocked and
    /// asks.
    ///
    /// A task asks once everything else lets it start, before its list is known. A call asks once its arguments are
    /// known and no other call of its task runs. If other arguments were approved, the call has them afterwards.
    pub(crate) fn ask_approval(&mut self, key: Key, call: Option<usize>) -> Decided<bool> {
        let why = self.rules_ask(key, &self.task(key)?, call)?;
        self.ask_unless_granted(key, call, why)
    }

    /// Like [`ask_approval`](Self::ask_approval), with the reason of the policy, if it asks.
    pub(super) fn ask_unless_granted(
        &mut self,
        key: Key,
        call: Option<usize>,
        why: Option<String>,
    ) -> Decided<bool> {
        let record = self.task(key)?;
        let author_asks = self.author_asks(key, &record, call)?;
        let has_args = !author_asks && self.take_args_of_task(key, &record, call)?;
        if has_args || (why.is_none() && !author_asks) {
            return Ok(true);
        }
        let subject = self.subject(key, &record, call)?;
        let before = self.granted(key, &record, call)?;
        let policy = self.policy_version(before.as_ref().and_then(|granted| granted.policy.as_ref()));
        let variables = self.variables_now(key, &record, &subject)?;
        let hash = hash(&record.id, &subject, policy.as_deref(), &variables);
        // A timeout approves only questions of the author, never those of the policy.
        let counts = |granted: &Granted| granted.hash == hash && (why.is_none() || granted.by != ON_EXPIRY);
        match before {
            Some(granted) if counts(&granted) => {
                if let (Some(position), Some(args)) = (call, granted.args) {
                    self.update_call(key, position, |call| call.body.args = Some(args))?;
                }
                Ok(true)
            }
            _ if call.is_some() && !author_asks && self.list_asks_anew(key)? => Ok(false),
            before => {
                let text = before.map(|_| "the approved work has changed".to_owned());
                self.ask(key, &record, call, Asking { hash, why, policy, text, after: false })?;
                Ok(false)
            }
        }
    }

    /// Returns whether a call has a question without an answer.
    #[expect(clippy::unused_self, reason = "it reads as one of the rules about decisions")]
    pub(super) fn lacks_answer(&self, record: &TaskRecord, call: &CallRecord) -> bool {
        call.body.approval.is_none() && question_of(record, Some(call)).is_some()
    }

    /// Returns whether the approver replaced the arguments of a call. The policy ignores the previous ones then.
    pub(super) fn has_other_args(&mut self, key: Key, record: &TaskRecord, position: usize) -> Decided<bool> {
        let of_task =
            record.body.progress.approval.as_ref().filter(|_| record.spec.approval_before().is_some());
        let of_call = self.calls(key)?[position].body.approval.as_ref();
        Ok(of_call.into_iter().chain(of_task).any(|granted| granted.args.is_some()))
    }

    pub(super) fn author_asks(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<usize>,
    ) -> Decided<bool> {
        Ok(match call {
            Some(position) => self.calls(key)?[position].spec.approval.is_some(),
            None => record.spec.approval_before().is_some(),
        })
    }

    /// Copies replaced arguments from the approval of the task, which was about this single call; returns whether it
    /// did.
    pub(super) fn take_args_of_task(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<usize>,
    ) -> Decided<bool> {
        let granted =
            record.body.progress.approval.as_ref().filter(|_| record.spec.approval_before().is_some());
        let args = granted.and_then(|granted| granted.args.clone());
        let (Some(position), Some(args)) = (call, args) else { return Ok(false) };
        self.update_call(key, position, |call| call.body.args = Some(args))?;
        Ok(true)
    }

    pub(super) fn granted(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<usize>,
    ) -> Decided<Option<Box<Granted>>> {
        Ok(match call {
            Some(position) => self.calls(key)?[position].body.approval.clone(),
            None => record.body.progress.approval.clone(),
        })
    }

    pub(super) fn ask(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<usize>,
        asking: Asking,
    ) -> Decided<()> {
        let Asking { hash, why, policy, text, after } = asking;
        let call = call.map(|position| self.calls(key).map(|calls| calls[position].clone())).transpose()?;
        let question = if after { record.spec.approval_after() } else { question_of(record, call.as_ref()) };
        let expires_at = question.and_then(|question| question.expires).and_then(|period| {
            let period = chrono::TimeDelta::from_std(period.0).ok()?;
            self.now().checked_add_signed(period)
        });
        let reason = BlockedReason::Approval {
            call: call.as_ref().map(|call| call.id.clone()),
            hash,
            ask: question.map(|question| question.text().to_owned()),
            options: question.map(|question| question.options.clone()).unwrap_or_default(),
            expires_at,
            why,
            policy,
            after,
        };
        self.set_state(key, TaskStatus::blocked(reason), Cause::Ask, text)?;
        self.take_grant_away(key, call.as_ref())?;
        self.answer.asked.push(key);
        Ok(())
    }

    /// Applies the current policy to the open questions of tasks.
    pub(super) fn policy_known(&mut self, tasks: &[Key]) -> Decided<()> {
        for key in tasks {
            if self.find_node(*key)?.is_some() {
                self.refresh_question(*key)?;
            }
        }
        Ok(())
    }

    /// Unblocks a task if its question is obsolete: neither its author nor the policy asks any more, or the call is
    /// gone.
    ///
    /// Returns whether it did.
    pub(crate) fn withdraw_question(&mut self, key: Key) -> Decided<bool> {
        let record = self.task(key)?;
        let Some(open) = Open::of(&record.body.state) else { return Ok(false) };
        let position = self.position_of(key, open.call.as_ref())?;
        if open.after && self.is_result_asked(key, &record)? {
            return Ok(false);
        }
        if self.tool_asks(key, position, &open)?.is_some() {
            return Ok(false);
        }
        if !open.after
            && position.is_some() == open.call.is_some()
            && (self.author_asks(key, &record, position)?
                || self.rules_still_ask(key, &record, position, (open.why, open.policy.as_ref()))?.is_some())
        {
            return Ok(false);
        }
        let text = "a decision is no longer needed".to_owned();
        self.set_state(key, TaskStatus::Todo, Cause::Withdraw, Some(text))?;
        Ok(true)
    }

    /// Asks again if the proposal of an open question changed.
    pub(crate) fn refresh_question(&mut self, key: Key) -> Decided<()> {
        if self.withdraw_question(key)? {
            return Ok(());
        }
        let record = self.task(key)?;
        let Some(open) = Open::of(&record.body.state) else { return Ok(()) };
        if open.after {
            return self.refresh_result_question(key, &record, &open);
        }
        let position = self.position_of(key, open.call.as_ref())?;
        if self.tool_asks(key, position, &open)?.is_some() {
            return Ok(());
        }
        let why = self.rules_still_ask(key, &record, position, (open.why, open.policy.as_ref()))?;
        let subject = self.subject(key, &record, position)?;
        let policy = self.policy_version(open.policy.as_ref());
        let hash = hash(&record.id, &subject, policy.as_deref(), &digests(&record, &subject));
        if hash == open.hash {
            return Ok(());
        }
        let text = Some("the work to approve has changed".to_owned());
        self.ask(key, &record, position, Asking { hash, why, policy, text, after: false })
    }

    /// Returns the question of a tool, if it is the open question of its task.
    pub(super) fn tool_asks(
        &mut self,
        key: Key,
        position: Option<usize>,
        open: &Open,
    ) -> Decided<Option<ToolQuestion>> {
        let Some(position) = position else { return Ok(None) };
        let question = self.calls(key)?[position].body.question();
        Ok(question.filter(|question| question.hash == open.hash).cloned())
    }

    fn has_tool_question(&mut self, key: Key, position: Option<usize>, hash: &str) -> Decided<bool> {
        let Some(position) = position else { return Ok(false) };
        Ok(self.calls(key)?[position].body.question().is_some_and(|question| question.hash == hash))
    }

    /// Returns the digests of the variables that the calls use, and records them with the task: later commands of people
    /// have to compute the same hash, without the variables of the run.
    fn variables_now(
        &mut self,
        key: Key,
        record: &TaskRecord,
        subject: &Subject,
    ) -> Decided<BTreeMap<String, String>> {
        let mut variables = digests(record, subject);
        for name in subject.variables() {
            if let Some(digest) = self.room.rules.variables.get(&name) {
                variables.insert(name, digest.clone());
            }
        }
        if variables != digests(record, subject) {
            let digests = variables.clone();
            self.update_task(key, |record| record.change_origins(|origins| origins.variables = digests))?;
        }
        Ok(variables)
    }

    /// Stores a decision, and its answer for expressions. A plain approval of a call does not overwrite an earlier
    /// answer.
    pub(super) fn write_grant(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<&CallId>,
        granted: Granted,
    ) -> Decided<()> {
        let position = self.position_of(key, call)?;
        let is_plain = granted.answer.is_none() && self.question(key, record, call, false)?.is_none();
        let keeps = is_plain && position.is_some() && record.body.context.contains_key(ANSWER);
        let answer = granted.answer.clone().unwrap_or(Value::Bool(true));
        if let Some(position) = position {
            let granted = Box::new(granted.clone());
            self.update_call(key, position, |call| call.body.approval = Some(granted))?;
        }
        let writer = self.writer;
        self.update_task(key, |record| {
            if !keeps {
                record.body.context.insert(ANSWER.to_owned(), answer);
                record.change_origins(|origins| note_origin(&mut origins.context, ANSWER, writer, true));
            }
            if position.is_none() {
                record.body.progress.approval = Some(Box::new(granted));
            }
        })
    }

    /// Removes an approval that is asked for again, and its answer.
    pub(super) fn take_grant_away(&mut self, key: Key, call: Option<&CallRecord>) -> Decided<()> {
        let position = self.position_of(key, call.map(|call| &call.id))?;
        let is_question = call.is_none_or(|call| call.spec.approval.as_ref().is_some_and(has_question));
        let was_granted = call.is_some_and(|call| call.body.approval.is_some());
        if let Some(position) = position {
            self.update_call(key, position, |call| call.body.approval = None)?;
        }
        self.update_task(key, |record| {
            let is_plain_yes = record.body.context.get(ANSWER) == Some(&Value::Bool(true));
            if is_question || (was_granted && is_plain_yes) {
                record.body.context.remove(ANSWER);
            }
            if position.is_none() {
                record.body.progress.approval = None;
            }
        })
    }

    /// Removes the approval of a task that starts over, so that it is asked for again.
    pub(crate) fn forget_decision(&mut self, key: Key) -> Decided<()> {
        let has_one = self.task(key)?.body.progress.approval.is_some();
        if has_one { self.take_grant_away(key, None) } else { Ok(()) }
    }

    pub(super) fn position_of(&mut self, key: Key, call: Option<&CallId>) -> Decided<Option<usize>> {
        let Some(id) = call else { return Ok(None) };
        Ok(self.calls(key)?.iter().position(|call| call.id == *id))
    }

    // Proposals.

    pub(super) fn request(&mut self, key: Key) -> Decided<Option<ApprovalRequest>> {
        let record = self.task(key)?;
        let Some(BlockedReason::Approval { call, hash, ask, options, expires_at, why, policy: _, after }) =
            record.body.state.blocked_reason().cloned()
        else {
            return Ok(None);
        };
        let position = self.position_of(key, call.as_ref())?;
        let question = self.question(key, &record, call.as_ref(), after)?;
        let on_expiry = question.and_then(|question| question.on_expiry);
        let on_expiry = on_expiry.filter(|_| why.is_none());
        let takes_text = options.is_empty() && self.has_tool_question(key, position, &hash)?;
        let (mut calls, mut items, mut results) = (Vec::new(), None, Vec::new());
        if after {
            results = self.results_of(key)?;
        } else {
            Subject { calls, items, .. } = self.subject(key, &record, position)?;
        }
        let (task, name, plan) = (record.id, record.spec.name.clone(), record.plan.map(String::from));
        let on_expiry = expires_at.map(|_| on_expiry.unwrap_or_else(|| "reject".to_owned()));
        Ok(Some(ApprovalRequest {
            task,
            name,
            plan,
            call,
            ask,
            why,
            options,
            takes_text,
            expires_at,
            on_expiry,
            hash,
            after,
            calls,
            results,
            items,
        }))
    }

    /// Returns the proposal to decide about: one call, or the unfinished calls of a task and its descendants.
    pub(super) fn subject(&mut self, key: Key, record: &TaskRecord, call: Option<usize>) -> Decided<Subject> {
        let calls = self.known_calls(key)?;
        if let Some(call) = call.and_then(|position| calls.get(position)) {
            // The proposal is evaluated without the answer, because the answer would change its own hash.
            let before =
                if question_of(record, Some(call)).is_some() { unanswered(record) } else { record.clone() };
            let known = flow::known_args(self, &before, &calls, call)?;
            let calls = vec![asked(record, call.clone(), known)];
            return Ok(Subject { calls, items: None, args_of_items: Vec::new() });
        }
        let mut subject = Subject { calls: Vec::new(), items: None, args_of_items: Vec::new() };
        if let Some(for_each) = &record.spec.for_each {
            // A list that cannot be evaluated fails the task when it is opened.
            let items = flow::list(self, &unanswered(record), &calls, for_each)?.ok().map(|list| list.value);
            subject.args_of_items =
                self.args_of_items(record, &calls, items.as_deref().unwrap_or_default())?;
            subject.items = items;
        }
        // Existing items are left out: the list determines them, so they are part of the proposal already.
        let below = if record.spec.for_each.is_some() { Vec::new() } else { self.subtree(key)? };
        for key in [vec![key], below].concat() {
            self.add_work(key, &mut subject.calls)?;
        }
        Ok(subject)
    }

    pub(super) fn add_work(&mut self, key: Key, to: &mut Vec<AskedCall>) -> Decided<()> {
        let record = unanswered(&self.task(key)?);
        let calls = self.known_calls(key)?;
        for call in calls.iter().filter(|call| !call.body.status.is_settled()) {
            let known = flow::known_args(self, &record, &calls, call)?;
            to.push(asked(&record, call.clone(), known));
        }
        Ok(())
    }
}

/// Returns the recorded digests of the variables that the calls use.
pub(super) fn digests(record: &TaskRecord, subject: &Subject) -> BTreeMap<String, String> {
    let Some(known) = record.body.origins.as_ref().map(|origins| &origins.variables) else {
        return BTreeMap::new();
    };
    let names = subject.variables().into_iter();
    names.filter_map(|name| Some((name.clone(), known.get(&name)?.clone()))).collect()
}

pub(super) fn question_of<'a>(record: &'a TaskRecord, call: Option<&'a CallRecord>) -> Option<&'a Question> {
    let approval = call.map_or(record.spec.approval_before(), |call| call.spec.approval.as_ref());
    approval.and_then(Approval::question)
}

/// Returns the default of a question: `reject`, `approve`, or one of the options.
pub(crate) fn on_expiry_word(record: &TaskRecord, call: Option<&CallRecord>) -> String {
    let question = question_of(record, call).or_else(|| record.spec.approval_after());
    let word = question.and_then(|question| question.on_expiry.clone());
    word.unwrap_or_else(|| "reject".to_owned())
}

pub(super) fn has_question(approval: &Approval) -> bool {
    approval.question().is_some()
}

/// Returns a task without the answer to its question, so that the proposal does not depend on the decision.
pub(super) fn unanswered(record: &TaskRecord) -> TaskRecord {
    let mut record = record.clone();
    record.body.context.remove(ANSWER);
    record
}

pub(super) fn asked(record: &TaskRecord, call: CallRecord, known: KnownArgs) -> AskedCall {
    let (task, origin) = (record.id.clone(), call.origin);
    let sandbox = requested(&record.spec, &call.spec);
    let KnownArgs { args, unknown, untrusted } = known;
    let names = trusted_inputs(&record.spec, &call.spec);
    let can_be = record.confirmation(&call).is_some();
    let is_covered =
        |name: &&str| untrusted.iter().chain(record.decided_by()).any(|value| value.input == **name);
    let trusts = names.into_iter().filter(|name| can_be && is_covered(name)).map(str::to_owned).collect();
    let tool = call.spec.tool_name.clone();
    AskedCall { task, call: call.id, tool, args, unknown, sandbox, origin, untrusted, trusts }
}
