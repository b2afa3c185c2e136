//! Approvals: asking, `approve` and `reject`, and the default when the time to decide ends.
//!
//! An approval is about exactly the work that was proposed. If the arguments or the calls change before they start, it
//! is asked for again.

use crate::view::ReadGraph;
use serde_json::Value;

use crate::command::Context;
use crate::command::refusal::Refusal;
use crate::rules::DecideError;
use crate::rules::draft::{Decided, Draft};
use crate::rules::flow::{self, KnownArgs};
use crate::task::ActorKind;
use crate::task::event::{Change, EventKind};
use crate::task::policy_hook::requested;
use crate::task::question::{ApprovalRequest, AskedCall, Subject, hash};
use crate::task::record::{CallRecord, Granted, StatusKind, TaskRecord};
use crate::task::spec::{Approval, Origin, Question};
use crate::task::status::{BlockedReason, Cause, TaskStatus};
use crate::task::trust::{note_origin, trusted_inputs};
use crate::value::format_time;
use crate::value::{CallId, Key, SharedText};
use crate::value::{Map, Timestamp};
use crate::view::View;

use super::authorize::ON_EXPIRY;

/// Name in the context of a task under which its expressions find the answer.
pub(super) const ANSWER: &str = "approval";

/// Shortest accepted prefix of a hash.
const SHORT_HASH: usize = 8;

/// Content of an approval.
pub(super) struct ApprovalAnswer<'a> {
    pub(super) answer: &'a Option<Value>,
    pub(super) args: &'a Option<Map>,
    pub(super) hash: Option<&'a str>,
}

/// An open question of a task.
struct Open {
    call: Option<CallId>,
    hash: String,
    options: Vec<String>,
    expires_at: Option<Timestamp>,
    why: Option<String>,
    policy: Option<String>,
}

impl Open {
    fn of(state: &TaskStatus) -> Option<Self> {
        let Some(BlockedReason::Approval { call, hash, ask: _, options, expires_at, why, policy }) =
            state.blocked_reason().cloned()
        else {
            return None;
        };
        Some(Self { call, hash, options, expires_at, why, policy })
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// A question to ask.
struct Asking {
    hash: String,
    /// Reason of the policy; `None` if only the author asks.
    why: Option<String>,
    policy: Option<String>,
    /// Text for the event.
    text: Option<String>,
}

/// Default of a question when the time to decide ends.
enum OnExpiry {
    Reject,
    Approve(Option<String>),
}

/// Returns the question of a task that waits for a decision.
///
/// # Errors
/// The view cannot be read.
pub fn approval_request(view: &dyn View, key: Key) -> Result<Option<ApprovalRequest>, DecideError> {
    let context = Context {
        now: Timestamp::default(),
        actor: SharedText::default(),
        kind: ActorKind::Unknown,
        run: None,
        origin: Origin::Library,
        policy_hook: None,
    };
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
        let hash = hash(&record.id, &subject, policy.as_deref());
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
                let text = before.map(|_| "what was approved has changed".to_owned());
                self.ask(key, &record, call, Asking { hash, why, policy, text })?;
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
        let of_task = record.body.progress.approval.as_ref().filter(|_| record.spec.approval.is_some());
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
            None => record.spec.approval.is_some(),
        })
    }

    /// Copies replaced arguments from the approval of the task, which was about this single call; returns whether it
    /// did.
    fn take_args_of_task(&mut self, key: Key, record: &TaskRecord, call: Option<usize>) -> Decided<bool> {
        let granted = record.body.progress.approval.as_ref().filter(|_| record.spec.approval.is_some());
        let args = granted.and_then(|granted| granted.args.clone());
        let (Some(position), Some(args)) = (call, args) else { return Ok(false) };
        self.update_call(key, position, |call| call.body.args = Some(args))?;
        Ok(true)
    }

    fn granted(
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

    fn ask(&mut self, key: Key, record: &TaskRecord, call: Option<usize>, asking: Asking) -> Decided<()> {
        let Asking { hash, why, policy, text } = asking;
        let call = call.map(|position| self.calls(key).map(|calls| calls[position].clone())).transpose()?;
        let question = question_of(record, call.as_ref());
        let expires_at = question.and_then(|question| question.expires).and_then(|period| {
            let period = chrono::TimeDelta::from_std(period.0).ok()?;
            self.now().checked_add_signed(period)
        });
        let reason = BlockedReason::Approval {
            call: call.as_ref().map(|call| call.id.clone()),
            hash,
            ask: question.map(|question| question.ask.clone()),
            options: question.map(|question| question.options.clone()).unwrap_or_default(),
            expires_at,
            why,
            policy,
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
        if position.is_some() == open.call.is_some()
            && (self.author_asks(key, &record, position)?
                || self.rules_still_ask(key, &record, position, (open.why, open.policy.as_ref()))?.is_some())
        {
            return Ok(false);
        }
        let text = "nothing asks for a decision any more".to_owned();
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
        let position = self.position_of(key, open.call.as_ref())?;
        let why = self.rules_still_ask(key, &record, position, (open.why, open.policy.as_ref()))?;
        let subject = self.subject(key, &record, position)?;
        let policy = self.policy_version(open.policy.as_ref());
        let hash = hash(&record.id, &subject, policy.as_deref());
        if hash == open.hash {
            return Ok(());
        }
        let text = Some("what was asked about has changed".to_owned());
        self.ask(key, &record, position, Asking { hash, why, policy, text })
    }

    /// Stores a decision, and its answer for expressions. A plain approval of a call does not overwrite an earlier
    /// answer.
    fn write_grant(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<&CallId>,
        granted: Granted,
    ) -> Decided<()> {
        let position = self.position_of(key, call)?;
        let is_plain = granted.answer.is_none() && self.question(key, record, call)?.is_none();
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
    fn take_grant_away(&mut self, key: Key, call: Option<&CallRecord>) -> Decided<()> {
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

    fn position_of(&mut self, key: Key, call: Option<&CallId>) -> Decided<Option<usize>> {
        let Some(id) = call else { return Ok(None) };
        Ok(self.calls(key)?.iter().position(|call| call.id == *id))
    }

    // Proposals.

    fn request(&mut self, key: Key) -> Decided<Option<ApprovalRequest>> {
        let record = self.task(key)?;
        let Some(BlockedReason::Approval { call, hash, ask, options, expires_at, why, policy: _ }) =
            record.body.state.blocked_reason().cloned()
        else {
            return Ok(None);
        };
        let position = self.position_of(key, call.as_ref())?;
        let on_expiry = self.question(key, &record, call.as_ref())?.and_then(|question| question.on_expiry);
        let on_expiry = on_expiry.filter(|_| why.is_none());
        let Subject { calls, items, .. } = self.subject(key, &record, position)?;
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
            expires_at,
            on_expiry,
            hash,
            calls,
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

    fn add_work(&mut self, key: Key, to: &mut Vec<AskedCall>) -> Decided<()> {
        let record = unanswered(&self.task(key)?);
        let calls = self.known_calls(key)?;
        for call in calls.iter().filter(|call| !call.body.status.is_settled()) {
            let known = flow::known_args(self, &record, &calls, call)?;
            to.push(asked(&record, call.clone(), known));
        }
        Ok(())
    }

    // Deciding.

    pub(super) fn approve(&mut self, ids: &[String], yes: &ApprovalAnswer<'_>) -> Decided<()> {
        self.refuse_in_run("approve")?;
        let keys = self.resolve_all(ids)?;
        if keys.len() > 1 && (yes.args.is_some() || yes.hash.is_some()) {
            let field = if yes.args.is_some() { "args" } else { "hash" };
            return Err(super::author::invalid(field, "it is about one task, and several are named").into());
        }
        super::author::check_depth("answer", yes.answer)?;
        for key in keys {
            self.approve_one(key, yes)?;
            self.answer.tasks.push(self.id(key)?);
        }
        Ok(())
    }

    fn approve_one(&mut self, key: Key, yes: &ApprovalAnswer<'_>) -> Decided<()> {
        let (record, open) = self.open_question(key)?;
        check_hash(&record, &open, yes.hash)?;
        check_answer(&record, &open, yes.answer.as_ref())?;
        let mut remarks =
            yes.answer.iter().map(|answer| format!("answer: {}", plain(answer))).collect::<Vec<_>>();
        if let Some(args) = yes.args {
            self.note_edit(key, &record, &open, args)?;
            remarks.push("with other arguments".to_owned());
        }
        let granted = Granted {
            hash: open.hash,
            by: self.context.actor.to_string(),
            at: self.now(),
            answer: yes.answer.clone().filter(|_| !open.options.is_empty()),
            args: yes.args.clone(),
            policy: open.policy,
        };
        self.write_grant(key, &record, open.call.as_ref(), granted)?;
        if yes.args.is_none() && open.why.is_some() {
            self.confirm_inputs(key, &record, open.call.as_ref())?;
        }
        let text = (!remarks.is_empty()).then(|| remarks.join("; "));
        self.set_state(key, TaskStatus::Todo, Cause::Approve, text)
    }

    /// Confirms the trusted inputs of the calls in a question, so that the policy does not ask about them again.
    fn confirm_inputs(&mut self, key: Key, record: &TaskRecord, call: Option<&CallId>) -> Decided<()> {
        let owner = flow::confirming(self, key)?;
        let whole = self.task(owner)?;
        let calls = self.known_calls(key)?;
        let of_question = calls.iter().filter(|other| call.is_none_or(|call| other.id == *call));
        let mut confirmed = Vec::new();
        for call in of_question {
            let known = flow::known_args(self, record, &calls, call)?;
            let values = flow::deciding_values(self, key, record, call, known.untrusted)?;
            let names = trusted_inputs(&whole.spec, &call.spec);
            if let Some(hash) = whole.confirmation(call)
                && (record.spec.for_each.is_some()
                    || values.iter().any(|value| names.contains(value.input.as_str())))
            {
                confirmed.push((call.id.clone(), hash));
            }
        }
        if confirmed.is_empty() {
            return Ok(());
        }
        self.update_task(owner, |record| record.change_origins(|origins| origins.confirmed.extend(confirmed)))
    }

    /// Checks that replaced arguments belong to one single call, and records them in an event.
    fn note_edit(&mut self, key: Key, record: &TaskRecord, open: &Open, args: &Map) -> Decided<()> {
        let to = Value::Object(args.clone());
        super::author::check_depth("args", [&to])?;
        let position = self.position_of(key, open.call.as_ref())?;
        let Subject { mut calls, items, .. } = self.subject(key, record, position)?;
        let count = calls.len() * items.map_or(1, |items| items.len());
        let (Some(call), 1) = (calls.pop(), count) else {
            return Err(Refusal::ManyCalls { id: record.id.clone(), calls: count }.into());
        };
        if call.task != record.id || record.spec.for_each.is_some() {
            let problem = format!("the call that is asked about is run by `{}`; change it there", call.task);
            let problem =
                if call.task == record.id { "the call is run by its items".to_owned() } else { problem };
            return Err(super::author::invalid("args", problem).into());
        }
        let change = Change { from: Value::Object(call.args), to };
        let fields = std::iter::once((format!("toolCalls.{}.args", call.call), change)).collect();
        self.emit(Some(key), EventKind::Updated { fields })
    }

    pub(super) fn reject(&mut self, ids: &[String], reason: Option<&str>) -> Decided<()> {
        self.refuse_in_run("reject")?;
        for key in self.resolve_all(ids)? {
            self.open_question(key)?;
            for below in self.subtree(key)? {
                self.refuse_taking(below)?;
            }
            self.reject_one(key, reason.unwrap_or("rejected"))?;
            self.answer.tasks.push(self.id(key)?);
        }
        Ok(())
    }

    /// Cancels a task that asks, with its unfinished descendants.
    fn reject_one(&mut self, key: Key, reason: &str) -> Decided<()> {
        let text = reason.to_owned();
        let state = TaskStatus::Cancelled { reason: Some(text.clone()) };
        self.set_state(key, state, Cause::Reject, Some(text.clone()))?;
        for below in self.subtasks(key)? {
            if !matches!(
                self.node(below)?.status_kind,
                StatusKind::Done | StatusKind::Cancelled | StatusKind::Skipped
            ) {
                self.cancel_whole_tree(below, Some(&text))?;
            }
        }
        Ok(())
    }

    fn refuse_in_run(&self, by: &'static str) -> Decided<()> {
        if self.context.run.is_some() { Err(Refusal::RunDecides { by }.into()) } else { Ok(()) }
    }

    /// Returns the open question of a task; refuses if there is none, or its time is over.
    fn open_question(&mut self, key: Key) -> Decided<(TaskRecord, Open)> {
        let record = self.task(key)?;
        if let Some(open) = Open::of(&record.body.state) {
            return Ok((record, open));
        }
        let before = self.view.task(key)?.and_then(|task| Open::of(&task.body.state));
        let (id, status) = (record.id.clone(), record.body.state.status());
        if let Some(at) = before.filter(|open| open.is_over(self.now())).and_then(|open| open.expires_at) {
            let goes_on = !status.is_finished();
            return Err(Refusal::QuestionOver { id, at, goes_on }.into());
        }
        let calls = self.calls(key)?.iter().filter_map(|call| call.body.approval.as_ref());
        let granted = calls.chain(&record.body.progress.approval).max_by_key(|granted| granted.at);
        let by = granted.map(|granted| (granted.by.clone(), granted.at));
        Err(Refusal::NotAsked { id, status, by }.into())
    }

    // Expiry.

    /// Applies the plan's default to those of the tasks whose time to decide has ended.
    pub(super) fn expire_questions(&mut self, tasks: &[Key]) -> Decided<()> {
        for key in tasks {
            if self.find_node(*key)?.is_some() {
                self.expire_question(*key)?;
            }
        }
        Ok(())
    }

    pub(super) fn expire_question(&mut self, key: Key) -> Decided<()> {
        let record = self.task(key)?;
        let now = self.now();
        let Some(open) = Open::of(&record.body.state).filter(|open| open.is_over(now)) else { return Ok(()) };
        let question = self.question(key, &record, open.call.as_ref())?;
        let end = open.expires_at.map(format_time).unwrap_or_default();
        // Questions of the policy are rejected by timeout, regardless of the author's default.
        match on_expiry(question.filter(|_| open.why.is_none())) {
            OnExpiry::Reject => self.reject_one(key, &format!("nobody decided until {end}"))?,
            OnExpiry::Approve(answer) => {
                let remark = answer.iter().map(|answer| format!("answer: {answer}; "));
                let text = format!("{}nobody decided until {end}", remark.collect::<String>());
                let (by, answer) = (ON_EXPIRY.to_owned(), answer.map(Value::String));
                let Open { hash, policy, .. } = &open;
                let (hash, policy) = (hash.clone(), policy.clone());
                let granted = Granted { hash, by, at: now, answer, args: None, policy };
                self.write_grant(key, &record, open.call.as_ref(), granted)?;
                self.set_state(key, TaskStatus::Todo, Cause::Approve, Some(text))?;
            }
        }
        self.settle()
    }

    fn question(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<&CallId>,
    ) -> Decided<Option<Question>> {
        let position = self.position_of(key, call)?;
        let call =
            position.map(|position| self.calls(key).map(|calls| calls[position].clone())).transpose()?;
        Ok(question_of(record, call.as_ref()).cloned())
    }
}

fn question_of<'a>(record: &'a TaskRecord, call: Option<&'a CallRecord>) -> Option<&'a Question> {
    let approval = call.map_or(&record.spec.approval, |call| &call.spec.approval);
    approval.as_ref().and_then(Approval::question)
}

/// Returns the default of a question: `reject`, `approve`, or one of the options.
pub(crate) fn on_expiry_word(record: &TaskRecord, call: Option<&CallRecord>) -> String {
    let word = question_of(record, call).and_then(|question| question.on_expiry.clone());
    word.unwrap_or_else(|| "reject".to_owned())
}

fn has_question(approval: &Approval) -> bool {
    approval.question().is_some()
}

/// Returns a task without the answer to its question, so that the proposal does not depend on the decision.
pub(super) fn unanswered(record: &TaskRecord) -> TaskRecord {
    let mut record = record.clone();
    record.body.context.remove(ANSWER);
    record
}

fn on_expiry(question: Option<Question>) -> OnExpiry {
    let Some((word, options)) = question.and_then(|question| Some((question.on_expiry?, question.options)))
    else {
        return OnExpiry::Reject;
    };
    match word.as_str() {
        "reject" => OnExpiry::Reject,
        "approve" if options.is_empty() => OnExpiry::Approve(None),
        _ => OnExpiry::Approve(Some(word)),
    }
}

fn asked(record: &TaskRecord, call: CallRecord, known: KnownArgs) -> AskedCall {
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

fn check_hash(record: &TaskRecord, open: &Open, given: Option<&str>) -> Decided<()> {
    let is_current =
        |given: &str| open.hash == given || (given.len() >= SHORT_HASH && open.hash.starts_with(given));
    match given {
        Some(given) if !is_current(given) => {
            let (id, given, current) = (record.id.clone(), given.to_owned(), open.hash.clone());
            Err(Refusal::StaleHash { id, given, current }.into())
        }
        _ => Ok(()),
    }
}

fn check_answer(record: &TaskRecord, open: &Open, answer: Option<&Value>) -> Decided<()> {
    let is_plain = open.options.is_empty();
    let is_option = |answer: &Value| open.options.iter().any(|option| answer.as_str() == Some(option));
    if answer.map_or(is_plain, |answer| if is_plain { is_yes(answer) } else { is_option(answer) }) {
        return Ok(());
    }
    let answer = answer.map(plain);
    Err(Refusal::WrongAnswer { id: record.id.clone(), answer, options: open.options.clone() }.into())
}

/// Returns whether an answer means a plain yes.
fn is_yes(answer: &Value) -> bool {
    *answer == Value::Bool(true) || answer.as_str().is_some_and(|text| text.eq_ignore_ascii_case("yes"))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
