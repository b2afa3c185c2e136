//! What the rules say about calls beside what their authors say: what never starts, and about what somebody is asked.
//!
//! A list is asked about once, before its tasks are made: an approval of a task counts for every call that it is about, as far as
//! it was known what that call would do.

use serde_json::Value;

use super::approval::{is_raw, unanswered};
use crate::Key;
use crate::draft::{Decided, Draft};
use crate::flow;
use crate::gatekeeper::{Judgement, Proposed, requested};
use crate::question::hash;
use crate::record::{CallRecord, Granted, Item, TaskRecord};
use crate::secret::asks_for_secrets;
use crate::spec::{CallSpec, Map, Origin};
use crate::status::{BlockedReason, CallStatus, Cause, TaskState};

/// Who decided where nobody did: nothing that the rules ask about is approved so.
pub(super) const ON_EXPIRY: &str = "onExpiry";

/// Returns why somebody is asked about a call that `origin` added, although the policy allows it.
pub fn asks_by_itself(origin: Origin, spec: &CallSpec) -> Option<&'static str> {
    if is_raw(spec) {
        // Nobody but a reader can tell what it does.
        return Some("a value stands in its command line without quotes (`| raw`)");
    }
    // An approval of what it does is none of what it is given.
    asks_for_secrets(origin, spec).then_some("a model wrote it, and it names secrets")
}

impl Draft<'_> {
    /// Returns what the gatekeeper says about a call with these arguments.
    pub(super) fn judge(&self, record: &TaskRecord, call: &CallRecord, args: &Map) -> Judgement {
        let Some(gatekeeper) = &self.context.gatekeeper else { return Judgement::Allow };
        gatekeeper.judge(&Proposed {
            tool: &call.spec.tool_name,
            args,
            origin: call.origin,
            sandbox: requested(&record.spec, &call.spec),
        })
    }

    /// Returns what the gatekeeper says about a call with the arguments that it is to start with now.
    pub(super) fn judge_now(&self, key: Key, record: &TaskRecord, position: usize) -> Decided<Judgement> {
        let calls = self.look_at_calls(key)?;
        Ok(self.judge(record, &calls[position], args_now(&calls[position])))
    }

    fn why_asked(&self, record: &TaskRecord, call: &CallRecord, args: &Map) -> Option<String> {
        why_asked(self.judge(record, call, args), call)
    }

    /// Returns why the rules ask: about a call with the arguments that it is to start with now, or about the list of a task.
    pub(super) fn rules_ask(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<usize>,
    ) -> Decided<Option<String>> {
        let Some(position) = call else { return self.list_asks(key, record) };
        let judgement = self.judge_now(key, record, position)?;
        Ok(why_asked(judgement, &self.calls(key)?[position]))
    }

    /// Returns why the rules ask about what is asked about already. Where nobody knows the policy what it said before stands.
    pub(super) fn rules_still_ask(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<usize>,
        (before, policy): (Option<String>, Option<&String>),
    ) -> Decided<Option<String>> {
        if self.context.gatekeeper.is_none() && policy.is_some() {
            return Ok(before);
        }
        let Some(position) = call else { return self.list_asks(key, record) };
        let call = self.calls(key)?[position].clone();
        let subject = self.subject(key, record, Some(position))?;
        Ok(subject.calls.first().and_then(|asked| self.why_asked(record, &call, &asked.args)))
    }

    fn list_asks(&mut self, key: Key, record: &TaskRecord) -> Decided<Option<String>> {
        let calls = self.known_calls(key)?;
        let asks = |call: &CallRecord| asks_by_itself(call.origin, &call.spec).is_some();
        let is_judged = self.context.gatekeeper.is_some() || calls.iter().any(asks);
        let Some(for_each) = record.spec.for_each.as_ref().filter(|_| is_judged) else { return Ok(None) };
        let mut item = unanswered(record);
        // A list that cannot be had fails the task when it is opened.
        let Ok(list) = flow::list(self, &item, &calls, for_each)? else { return Ok(None) };
        // What asks by itself does so for each element.
        for call in calls.iter().filter(|call| call.spec.approval.is_none()) {
            let is_same = !call.spec.args.values().any(flow::has_expression);
            for (index, value) in (0..).zip(&list).take(if is_same { 1 } else { list.len() }) {
                item.body.progress.item = Some(Box::new(Item { index, value: value.clone() }));
                let (args, _) = flow::known_args(self, &item, &calls, call)?;
                if let Some(why) = self.why_asked(&item, call, &args) {
                    return Ok(Some(why));
                }
            }
        }
        Ok(None)
    }

    /// Returns the arguments of the calls of a task for each element of its list, as far as they are known.
    pub(super) fn args_of_items(
        &mut self,
        record: &TaskRecord,
        calls: &[CallRecord],
        list: &[Value],
    ) -> Decided<Vec<Map>> {
        let mut item = unanswered(record);
        let mut found = Vec::with_capacity(calls.len() * list.len());
        for (index, value) in (0..).zip(list) {
            item.body.progress.item = Some(Box::new(Item { index, value: value.clone() }));
            for call in calls {
                found.push(flow::known_args(self, &item, calls, call)?.0);
            }
        }
        Ok(found)
    }

    /// Lets a list ask as a whole, one of whose items may not start because the list was approved under another policy: else each
    /// of them would ask for itself. Returns whether it does; then the item waits for it.
    pub(super) fn list_asks_anew(&mut self, key: Key) -> Decided<bool> {
        let Some(above) = self.node(key)?.parent else { return Ok(false) };
        let list = self.task(above)?;
        let is_plain = list.spec.for_each.is_some() && list.spec.approval.is_none();
        let is_asking =
            matches!(list.body.state.blocked_reason(), Some(BlockedReason::Approval { call: None, .. }));
        if !is_plain || !(is_asking || self.is_outdated(above, &list)?) {
            return Ok(false);
        }
        if !is_asking {
            self.close(above)?;
        }
        let text = "its list is asked about anew".to_owned();
        self.set_state(key, TaskState::Todo, Cause::Release, Some(text))?;
        Ok(true)
    }

    /// Returns whether a list was approved under another policy than that of now, which asks about it again, and nothing would
    /// become of its items but that.
    fn is_outdated(&mut self, key: Key, list: &TaskRecord) -> Decided<bool> {
        let Some(granted) = list.body.progress.approval.as_ref() else { return Ok(false) };
        let is_of_now = granted.by == ON_EXPIRY || granted.policy == self.policy_version(None);
        let may_ask = !is_of_now && list.body.state == TaskState::Todo;
        Ok(may_ask && self.items_are_as_listed(key, list)? && self.list_asks(key, list)?.is_some())
    }

    /// Returns the version of the policy that an approval is bound to. Without a gatekeeper it is the one that it was asked under.
    pub(super) fn policy_version(&self, before: Option<&String>) -> Option<String> {
        let now = self.context.gatekeeper.as_ref().map(|gatekeeper| gatekeeper.version().to_owned());
        now.or_else(|| before.cloned())
    }

    /// Lets the approval of a task count for the calls that it is about, its own and those below.
    pub(super) fn cover(&mut self, key: Key) -> Decided<()> {
        let Some(granted) =
            self.task(key)?.body.progress.approval.clone().filter(|granted| granted.by != ON_EXPIRY)
        else {
            return Ok(());
        };
        for below in [vec![key], self.subtree(key)?].concat() {
            let record = self.task(below)?;
            // The calls of a list run in its items.
            if record.spec.for_each.is_none() {
                self.cover_calls(below, &record, &granted)?;
            }
        }
        Ok(())
    }

    fn cover_calls(&mut self, key: Key, record: &TaskRecord, granted: &Granted) -> Decided<()> {
        for position in 0..self.calls(key)?.len() {
            let call = self.calls(key)?[position].clone();
            if call.body.status != CallStatus::Pending || call.spec.approval.is_some() {
                continue;
            }
            let subject = self.subject(key, record, Some(position))?;
            let [asked] = &subject.calls[..] else { continue };
            if !asked.unknown.is_empty() || self.why_asked(record, &call, &asked.args).is_none() {
                continue;
            }
            let policy = self.policy_version(granted.policy.as_ref());
            let hash = hash(&record.id, &subject, policy.as_deref());
            if call.body.approval.as_ref().is_none_or(|before| before.hash != hash) {
                let granted = Granted { hash, policy, answer: None, args: None, ..granted.clone() };
                self.update_call(key, position, |call| call.body.approval = Some(Box::new(granted)))?;
            }
        }
        Ok(())
    }
}

/// Returns why somebody is asked about a call of which that is said, although its author does not say so.
pub(super) fn why_asked(judgement: Judgement, call: &CallRecord) -> Option<String> {
    match judgement {
        Judgement::Ask { why } => Some(why),
        // It fails, and nobody is asked.
        Judgement::Deny { .. } => None,
        Judgement::Allow => asks_by_itself(call.origin, &call.spec).map(str::to_owned),
    }
}

/// Returns the arguments that a call is to start with now.
fn args_now(call: &CallRecord) -> &Map {
    call.body.args.as_ref().unwrap_or(&call.spec.args)
}
