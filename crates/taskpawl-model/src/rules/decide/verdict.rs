//! Answers to approval requests: approve, reject, and expiry.

use super::approval::{Open, question_of};
use super::authorize::ON_EXPIRY;
use crate::command::refusal::Refusal;
use crate::rules::draft::{Decided, Draft};
use crate::rules::flow::{self};
use crate::task::asked::{ToolAnswer, ToolQuestion};
use crate::task::event::{Change, EventKind};
use crate::task::question::Subject;
use crate::task::record::{Granted, StatusKind, TaskRecord};
use crate::task::spec::Question;
use crate::task::status::{Cause, TaskStatus};
use crate::task::trust::trusted_inputs;
use crate::value::Map;
use crate::value::format_time;
use crate::value::{CallId, Key, TaskId};
use crate::view::ReadGraph;
use serde_json::Value;

/// Shortest accepted prefix of a hash.
const SHORT_HASH: usize = 8;

/// The text of a rejection without a reason.
pub(super) const NO_REASON: &str = "rejected";

/// Content of an approval.
pub(super) struct ApprovalAnswer<'a> {
    pub(super) answer: &'a Option<Value>,
    pub(super) args: &'a Option<Map>,
    pub(super) hash: Option<&'a str>,
}

/// Default of a question when the time to decide ends.
enum OnExpiry {
    Reject,
    Approve(Option<String>),
}

impl Draft<'_> {
    // Deciding.

    pub(super) fn approve(&mut self, ids: &[String], yes: &ApprovalAnswer<'_>) -> Decided<()> {
        self.refuse_in_run("approve")?;
        let keys = self.resolve_all(ids)?;
        if keys.len() > 1 && (yes.args.is_some() || yes.hash.is_some()) {
            let field = if yes.args.is_some() { "args" } else { "hash" };
            return Err(
                super::fields::invalid(field, "it applies to one task, and several were given").into()
            );
        }
        super::fields::check_depth("answer", yes.answer)?;
        for key in keys {
            self.approve_one(key, yes)?;
            self.answer.tasks.push(self.id(key)?);
        }
        Ok(())
    }

    fn approve_one(&mut self, key: Key, yes: &ApprovalAnswer<'_>) -> Decided<()> {
        let (record, open) = self.open_question(key)?;
        check_hash(&record, &open, yes.hash)?;
        let position = self.position_of(key, open.call.as_ref())?;
        if let (Some(position), Some(question)) = (position, self.tool_asks(key, position, &open)?) {
            return self.answer_tool(key, (&record.id, position), question, yes);
        }
        check_answer(&record, &open, yes.answer.as_ref())?;
        if open.after {
            return self.accept_result(key, &record, open, yes);
        }
        let mut remarks =
            yes.answer.iter().map(|answer| format!("answer: {}", plain(answer))).collect::<Vec<_>>();
        if let Some(args) = yes.args {
            self.note_edit(key, &record, &open, args)?;
            remarks.push("with changed arguments".to_owned());
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

    /// Records the answer to the question of a tool, which then starts over.
    fn answer_tool(
        &mut self,
        key: Key,
        (id, position): (&TaskId, usize),
        question: ToolQuestion,
        yes: &ApprovalAnswer<'_>,
    ) -> Decided<()> {
        if yes.args.is_some() {
            let problem = "its call has started already, and its arguments stay";
            return Err(super::fields::invalid("args", problem).into());
        }
        let answer = answer_of(id, &question, yes.answer.as_ref())?;
        let (by, at) = (self.context.actor.to_string(), self.now());
        let text = format!("answer: {answer}");
        self.update_call(key, position, |call| {
            let asked = call.body.asked.get_or_insert_default();
            asked.question = None;
            asked.answers.push(ToolAnswer { question, answer, by, at });
        })?;
        self.set_state(key, TaskStatus::Todo, Cause::Approve, Some(text))
    }

    /// Confirms the trusted inputs of the calls in a question, so that the policy does not ask about them again.
    pub(super) fn confirm_inputs(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<&CallId>,
    ) -> Decided<()> {
        let owner = flow::confirming(self, key)?;
        let whole = self.task(owner)?;
        let calls = self.known_calls(key)?;
        let of_question = calls.iter().filter(|other| call.is_none_or(|call| other.id == *call));
        let mut confirmed = Vec::new();
        for call in of_question {
            let known = flow::known_args(self, record, &calls, call)?;
            let values = self.deciding_values(key, record, call, known.untrusted)?;
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
        super::fields::check_depth("args", [&to])?;
        let position = self.position_of(key, open.call.as_ref())?;
        let Subject { mut calls, items, .. } = self.subject(key, record, position)?;
        let count = calls.len() * items.map_or(1, |items| items.len());
        let (Some(call), 1) = (calls.pop(), count) else {
            return Err(Refusal::ManyCalls { id: record.id.clone(), calls: count }.into());
        };
        if call.task != record.id || record.spec.for_each.is_some() {
            let problem = format!("`{}` runs the call that needs approval; change it there", call.task);
            let problem = if call.task == record.id { "the items run the call".to_owned() } else { problem };
            return Err(super::fields::invalid("args", problem).into());
        }
        let change = Change { from: Value::Object(call.args), to };
        let fields = std::iter::once((format!("toolCalls.{}.args", call.call), change)).collect();
        self.emit(Some(key), EventKind::Updated { fields })
    }

    /// Rejects tasks that ask, or sends their results back with the text of `rework`.
    pub(super) fn reject(
        &mut self,
        ids: &[String],
        reason: Option<&str>,
        rework: Option<&str>,
    ) -> Decided<()> {
        self.refuse_in_run("reject")?;
        for key in self.resolve_all(ids)? {
            let (record, open) = self.open_question(key)?;
            if let Some(text) = rework {
                self.send_result_back(key, &record, &open, text)?;
                self.answer.tasks.push(record.id);
                continue;
            }
            for below in self.subtree(key)? {
                self.refuse_taking(below)?;
            }
            self.reject_one(key, reason)?;
            self.answer.tasks.push(self.id(key)?);
        }
        Ok(())
    }

    /// Cancels a task that asks, with its unfinished descendants. A task whose result is rejected has failed.
    fn reject_one(&mut self, key: Key, reason: Option<&str>) -> Decided<()> {
        if Open::of(&self.task(key)?.body.state).is_some_and(|open| open.after) {
            return self.reject_result(key, reason);
        }
        let text = reason.unwrap_or(NO_REASON).to_owned();
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

    pub(super) fn refuse_in_run(&self, by: &'static str) -> Decided<()> {
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
        let question = self.question(key, &record, open.call.as_ref(), open.after)?;
        let end = open.expires_at.map(format_time).unwrap_or_default();
        // Questions of the policy are rejected by timeout, regardless of the author's default.
        match on_expiry(question.filter(|_| open.why.is_none())) {
            OnExpiry::Reject => self.reject_one(key, Some(&format!("no decision was made by {end}")))?,
            OnExpiry::Approve(answer) => {
                let remark = answer.iter().map(|answer| format!("answer: {answer}; "));
                let text = format!("{}no decision was made by {end}", remark.collect::<String>());
                let (by, answer) = (ON_EXPIRY.to_owned(), answer.map(Value::String));
                let Open { hash, policy, .. } = &open;
                let (hash, policy) = (hash.clone(), policy.clone());
                let granted = Granted { hash, by, at: now, answer, args: None, policy };
                self.write_grant(key, &record, open.call.as_ref(), granted)?;
                if open.after {
                    self.succeed(key, Cause::Approve, Some(text))?;
                } else {
                    self.set_state(key, TaskStatus::Todo, Cause::Approve, Some(text))?;
                }
            }
        }
        self.settle()
    }

    pub(super) fn question(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<&CallId>,
        after: bool,
    ) -> Decided<Option<Question>> {
        if after {
            return Ok(record.spec.approval_after().cloned());
        }
        let position = self.position_of(key, call)?;
        let call =
            position.map(|position| self.calls(key).map(|calls| calls[position].clone())).transpose()?;
        Ok(question_of(record, call.as_ref()).cloned())
    }
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

/// Returns the answer to the question of a tool. Without options any text is one, and a plain approval is `yes`.
fn answer_of(id: &TaskId, question: &ToolQuestion, given: Option<&Value>) -> Decided<String> {
    let answer = match given {
        None | Some(Value::Bool(true)) if question.options.is_empty() => "yes".to_owned(),
        None => String::new(),
        Some(given) => plain(given),
    };
    let is_fitting = if question.options.is_empty() {
        !answer.trim().is_empty()
    } else {
        question.options.contains(&answer)
    };
    if is_fitting {
        return Ok(answer);
    }
    let (id, answer, options) = (id.clone(), given.map(plain), question.options.clone());
    Err(Refusal::WrongAnswer { id, answer, options }.into())
}

/// Returns whether an answer means a plain yes.
fn is_yes(answer: &Value) -> bool {
    *answer == Value::Bool(true) || answer.as_str().is_some_and(|text| text.eq_ignore_ascii_case("yes"))
}

pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
