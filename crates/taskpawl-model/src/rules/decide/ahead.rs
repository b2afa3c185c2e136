//! Approvals ahead of a run: questions of the policy that are answered before their tasks can start.
//!
//! Such an approval has the hash that the question would have. If the call changes until it starts, it asks all the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::approval::Open;
use crate::command::Context;
use crate::command::refusal::Refusal;
use crate::rules::DecideError;
use crate::rules::draft::{Decided, Draft};
use crate::rules::flow;
use crate::task::event::EventKind;
use crate::task::policy_hook::PolicyHook;
use crate::task::question::{ApprovalRequest, ApprovalsAhead, LaterApproval, LaterReason, Subject, hash};
use crate::task::record::{Granted, Item, TaskRecord};
use crate::task::status::Status;
use crate::value::{CallId, Key};
use crate::view::View;

/// A question of a task that does not wait yet.
enum Ahead {
    /// It can be answered now.
    Now(Box<ApprovalRequest>),
    /// It will be asked when the task or the call starts.
    Later(LaterReason),
}

/// Returns the questions that tasks will ask, as far as they can be answered now.
///
/// # Errors
/// The view cannot be read.
pub fn approvals_ahead(
    view: &dyn View,
    policy_hook: Option<Arc<dyn PolicyHook>>,
    tasks: &[Key],
) -> Result<ApprovalsAhead, DecideError> {
    let context = Context { policy_hook, ..Context::of_reader() };
    let mut draft = Draft::new(view, &context);
    let mut all = ApprovalsAhead::default();
    for key in tasks {
        draft.add_questions_ahead(*key, &mut all)?;
    }
    Ok(all)
}

impl Draft<'_> {
    fn add_questions_ahead(&mut self, key: Key, to: &mut ApprovalsAhead) -> Decided<()> {
        let record = self.task(key)?;
        for position in self.points_that_ask(key, &record)? {
            let call = position.map(|position| self.calls(key).map(|calls| calls[position].id.clone()));
            let call = call.transpose()?;
            match self.question_ahead(key, &record, position)? {
                Some(Ahead::Now(request)) => to.requests.push(*request),
                Some(Ahead::Later(reason)) => {
                    to.later.push(LaterApproval { task: record.id.clone(), call, reason });
                }
                None => {}
            }
        }
        if record.spec.approval_after().is_some()
            && !record.body.state.status().is_finished()
            && Open::of(&record.body.state).is_none_or(|open| !open.after)
        {
            let (task, call, reason) = (record.id, None, LaterReason::Result);
            to.later.push(LaterApproval { task, call, reason });
        }
        Ok(())
    }

    /// Returns the points at which a task may still ask: itself (`None`), or before its calls.
    fn points_that_ask(&mut self, key: Key, record: &TaskRecord) -> Decided<Vec<Option<usize>>> {
        // A running task has asked, and one that waits for a decision asks now.
        let has_asked = !matches!(record.body.state.status(), Status::Todo | Status::Blocked)
            || Open::of(&record.body.state).is_some();
        let asks_as_whole = record.spec.approval_before().is_some() || record.spec.for_each.is_some();
        Ok(match (has_asked, asks_as_whole) {
            (true, _) => Vec::new(),
            // The calls of an opened list run in its items, which ask by themselves.
            (false, true) if record.body.progress.opened => Vec::new(),
            (false, true) => vec![None],
            (false, false) => {
                let calls = (0..).zip(self.calls(key)?).filter(|(_, call)| !call.body.status.is_settled());
                calls.map(|(position, _)| Some(position)).collect()
            }
        })
    }

    fn question_ahead(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<usize>,
    ) -> Decided<Option<Ahead>> {
        let granted = self.granted(key, record, call)?;
        if self.author_asks(key, record, call)? {
            return Ok(granted.is_none().then_some(Ahead::Later(LaterReason::Author)));
        }
        let subject = self.subject(key, record, call)?;
        let Some(why) = self.why_asked_ahead(key, record, call, &subject)? else { return Ok(None) };
        if let Some(reason) = self.unknown(key, record, &subject)? {
            return Ok(Some(Ahead::Later(reason)));
        }
        let hash = hash(&record.id, &subject, self.policy_version(None).as_deref(), &BTreeMap::new());
        if granted.is_some_and(|granted| granted.hash == hash) {
            return Ok(None);
        }
        let call =
            call.map(|position| self.calls(key).map(|calls| calls[position].id.clone())).transpose()?;
        Ok(Some(Ahead::Now(Box::new(ApprovalRequest {
            task: record.id.clone(),
            name: record.spec.name.clone(),
            plan: record.plan.clone().map(String::from),
            call,
            ask: None,
            why: Some(why),
            options: Vec::new(),
            expires_at: None,
            takes_text: false,
            on_expiry: None,
            hash,
            after: false,
            calls: subject.calls,
            results: Vec::new(),
            items: subject.items,
        }))))
    }

    /// Returns the reason why the policy will ask, as far as it is known.
    fn why_asked_ahead(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<usize>,
        subject: &Subject,
    ) -> Decided<Option<String>> {
        if call.is_none() && subject.items.is_some() {
            return self.rules_ask(key, record, None);
        }
        // The list is not known yet: its calls are judged as the author wrote them.
        let calls = self.known_calls(key)?;
        let judged =
            calls.iter().enumerate().filter(|(position, _)| call.is_none_or(|call| call == *position));
        for (_, judged) in judged {
            let known = flow::known_args(self, record, &calls, judged)?;
            if let Some(why) = self.why_asked(key, record, judged, known)? {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    /// Returns the part of a proposal that is not known before the task starts.
    fn unknown(&mut self, key: Key, record: &TaskRecord, subject: &Subject) -> Decided<Option<LaterReason>> {
        let names: Vec<String> = match &subject.items {
            None if record.spec.for_each.is_some() => return Ok(Some(LaterReason::List)),
            None => subject.calls.iter().flat_map(|call| call.unknown.clone()).collect(),
            Some(items) => self.unknown_of_items(key, record, items)?,
        };
        if !names.is_empty() {
            return Ok(Some(LaterReason::Arguments(names)));
        }
        let variables: Vec<String> = subject.variables().into_iter().collect();
        Ok((!variables.is_empty()).then_some(LaterReason::Variables(variables)))
    }

    /// Returns the arguments of a list's calls that are not known even for its first element. All elements refer to the
    /// same tasks.
    fn unknown_of_items(&mut self, key: Key, record: &TaskRecord, items: &[Value]) -> Decided<Vec<String>> {
        let Some(value) = items.first().cloned() else { return Ok(Vec::new()) };
        let mut item = record.clone();
        item.body.progress.item = Some(Box::new(Item { index: 0, value, untrusted: Vec::new() }));
        let (calls, mut names) = (self.known_calls(key)?, Vec::new());
        for call in &calls {
            names.extend(flow::known_args(self, &item, &calls, call)?.unknown);
        }
        Ok(names)
    }

    /// Approves a question that a task will ask. `given` is the hash that the approver saw.
    pub(super) fn approve_ahead(&mut self, id: &str, call: Option<&CallId>, given: &str) -> Decided<()> {
        self.refuse_in_run("approve")?;
        let key = self.resolve(id)?;
        let record = self.task(key)?;
        let position = self.position_of(key, call)?;
        let question = if position.is_some() == call.is_some() {
            self.question_ahead(key, &record, position)?
        } else {
            None
        };
        let Some(Ahead::Now(request)) = question else {
            let (id, status) = (record.id.clone(), record.body.state.status());
            return Err(Refusal::NotAsked { id, status, by: None }.into());
        };
        if request.hash != given {
            let (id, given) = (record.id.clone(), given.to_owned());
            return Err(Refusal::StaleHash { id, given, current: request.hash }.into());
        }
        let granted = Box::new(Granted {
            hash: request.hash,
            by: self.context.actor.to_string(),
            at: self.now(),
            answer: None,
            args: None,
            policy: self.policy_version(None),
        });
        match position {
            Some(position) => {
                self.update_call(key, position, |call| call.body.approval = Some(granted))?;
            }
            None => self.update_task(key, |record| record.body.progress.approval = Some(granted))?,
        }
        self.confirm_inputs(key, &record, call)?;
        self.emit(Some(key), EventKind::ApprovedAhead { call: call.cloned() })?;
        self.answer.tasks.push(record.id);
        Ok(())
    }
}
