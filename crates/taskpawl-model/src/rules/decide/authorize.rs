//! Policy decisions about calls, in addition to approvals required by authors: which calls never start, and which need
//! an approval.
//!
//! A list is asked about once, before its items exist. An approval of a task covers each of its calls, as far as the
//! call's arguments were known.

use serde_json::Value;

use super::approval::{digests, unanswered};
use crate::rules::authorization::is_raw;
use crate::rules::draft::{Decided, Draft};
use crate::rules::flow::{self, KnownArgs};
use crate::task::policy_hook::PolicyDecision;
use crate::task::question::hash;
use crate::task::record::{CallRecord, Granted, Item, TaskRecord};
use crate::task::status::{BlockedReason, CallStatus, Cause, TaskStatus};
use crate::task::trust::{UntrustedValue, add_values};
use crate::value::Key;
use crate::value::Map;

/// Approver recorded for an approval by timeout. It never satisfies a question of the policy.
pub(super) const ON_EXPIRY: &str = "onExpiry";

impl Draft<'_> {
    /// Returns the policy decision about a call with these arguments and values.
    fn authorize(
        &self,
        record: &TaskRecord,
        call: &CallRecord,
        args: &Map,
        values: &[UntrustedValue],
    ) -> PolicyDecision {
        let policy_hook = self.context.policy_hook.as_deref();
        crate::rules::authorization::authorize_whole(policy_hook, record, call, args, values)
    }

    /// Returns the policy decision about a call with the arguments of its next start.
    pub(super) fn authorize_now(
        &self,
        key: Key,
        record: &TaskRecord,
        position: usize,
    ) -> Decided<PolicyDecision> {
        let call = &self.look_at_calls(key)?[position];
        let inserted = call.body.inserted.as_deref().cloned().unwrap_or_default();
        let values = self.deciding_values(key, record, call, inserted)?;
        Ok(self.authorize(record, call, args_now(call), &values))
    }

    /// Returns the values from models that influence a call, under the policy of the command.
    pub(super) fn deciding_values(
        &self,
        key: Key,
        record: &TaskRecord,
        call: &CallRecord,
        inserted: Vec<UntrustedValue>,
    ) -> Decided<Vec<UntrustedValue>> {
        let policy_hook = self.context.policy_hook.as_deref();
        Ok(flow::deciding_values(self, policy_hook, key, record, call, inserted)?)
    }

    /// Returns the reason to ask about a call of a task or of an imagined item, with the arguments known so far.
    pub(super) fn why_asked(
        &self,
        key: Key,
        record: &TaskRecord,
        call: &CallRecord,
        known: KnownArgs,
    ) -> Decided<Option<String>> {
        let values = self.deciding_values(key, record, call, known.untrusted)?;
        Ok(why_asked(self.authorize(record, call, &known.args, &values)))
    }

    /// Returns the reason why the policy asks about a call's next start, or about the list of a task.
    pub(super) fn rules_ask(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<usize>,
    ) -> Decided<Option<String>> {
        let Some(position) = call else { return self.list_asks(key, record) };
        Ok(why_asked(self.authorize_now(key, record, position)?))
    }

    /// Returns the reason why the policy still asks an open question. Without a policy hook, the recorded reason stays
    /// valid.
    pub(super) fn rules_still_ask(
        &mut self,
        key: Key,
        record: &TaskRecord,
        call: Option<usize>,
        (before, policy): (Option<String>, Option<&String>),
    ) -> Decided<Option<String>> {
        if self.context.policy_hook.is_none() && policy.is_some() {
            return Ok(before);
        }
        let Some(position) = call else { return self.list_asks(key, record) };
        let call = self.calls(key)?[position].clone();
        let subject = self.subject(key, record, Some(position))?;
        let Some(asked) = subject.calls.into_iter().next() else { return Ok(None) };
        self.why_asked(key, record, &call, asked.known())
    }

    fn list_asks(&mut self, key: Key, record: &TaskRecord) -> Decided<Option<String>> {
        let calls = self.known_calls(key)?;
        let asks = |call: &CallRecord| is_raw(&call.spec) || call.spec.refers_to_secrets();
        let is_judged = self.context.policy_hook.is_some() || calls.iter().any(asks);
        let Some(for_each) = record.spec.for_each.as_ref().filter(|_| is_judged) else { return Ok(None) };
        let mut item = unanswered(record);
        // A list that cannot be evaluated fails the task when it is opened.
        let Ok(list) = flow::list(self, &item, &calls, for_each)? else { return Ok(None) };
        let (list, untrusted) = (list.value, flow::values_of_list(record, list.untrusted));
        add_to_decided(&mut item, &untrusted);
        // Calls with their own approval ask for each item separately.
        for call in calls.iter().filter(|call| call.spec.approval.is_none()) {
            // Without expressions every item makes the same call, so one decision is enough.
            let is_same = !call.spec.args.values().any(flow::has_expression);
            for (index, value) in (0..).zip(&list).take(if is_same { 1 } else { list.len() }) {
                let untrusted = untrusted.clone();
                item.body.progress.item = Some(Box::new(Item { index, value: value.clone(), untrusted }));
                let known = flow::known_args(self, &item, &calls, call)?;
                if let Some(why) = self.why_asked(key, &item, call, known)? {
                    return Ok(Some(why));
                }
            }
        }
        Ok(None)
    }

    /// Returns the known arguments of a task's calls for each element of its list.
    pub(super) fn args_of_items(
        &mut self,
        record: &TaskRecord,
        calls: &[CallRecord],
        list: &[Value],
    ) -> Decided<Vec<Map>> {
        let mut item = unanswered(record);
        let mut all_args = Vec::with_capacity(calls.len() * list.len());
        for (index, value) in (0..).zip(list) {
            item.body.progress.item =
                Some(Box::new(Item { index, value: value.clone(), untrusted: Vec::new() }));
            for call in calls {
                all_args.push(flow::known_args(self, &item, calls, call)?.args);
            }
        }
        Ok(all_args)
    }

    /// Asks about a whole list again if an item may not start because the list was approved under another policy
    /// version.
    ///
    /// Otherwise each item would ask separately. Returns whether the list asks; the item waits for it then.
    pub(super) fn list_asks_anew(&mut self, key: Key) -> Decided<bool> {
        let Some(above) = self.node(key)?.parent else { return Ok(false) };
        let list = self.task(above)?;
        let is_plain = list.spec.for_each.is_some() && list.spec.approval_before().is_none();
        let is_asking =
            matches!(list.body.state.blocked_reason(), Some(BlockedReason::Approval { call: None, .. }));
        if !is_plain || !(is_asking || self.is_outdated(above, &list)?) {
            return Ok(false);
        }
        if !is_asking {
            self.close(above)?;
        }
        let text = "its list needs a new approval".to_owned();
        self.set_state(key, TaskStatus::Todo, Cause::Release, Some(text))?;
        Ok(true)
    }

    /// Returns whether a list was approved under an outdated policy version and the current one asks again.
    ///
    /// If opening it would also change items, the usual path asks, and this returns false.
    fn is_outdated(&mut self, key: Key, list: &TaskRecord) -> Decided<bool> {
        let Some(granted) = list.body.progress.approval.as_ref() else { return Ok(false) };
        let is_of_now = granted.by == ON_EXPIRY || granted.policy == self.policy_version(None);
        let may_ask = !is_of_now && list.body.state == TaskStatus::Todo;
        Ok(may_ask && self.items_are_as_listed(key, list)? && self.list_asks(key, list)?.is_some())
    }

    /// Returns the policy version to bind an approval to: the current one, or the recorded one without a policy hook.
    pub(super) fn policy_version(&self, before: Option<&String>) -> Option<String> {
        let now = self.context.policy_hook.as_ref().map(|policy_hook| policy_hook.version().to_owned());
        now.or_else(|| before.cloned())
    }

    /// Extends the approval of a task to its own calls and those of its descendants.
    pub(super) fn cover(&mut self, key: Key) -> Decided<()> {
        let Some(granted) =
            self.task(key)?.body.progress.approval.clone().filter(|granted| granted.by != ON_EXPIRY)
        else {
            return Ok(());
        };
        let holder = self.task(key)?;
        for below in [vec![key], self.subtree(key)?].concat() {
            let record = self.task(below)?;
            // The calls of a list run in its items.
            if record.spec.for_each.is_none() {
                self.cover_calls(below, &record, (&holder, &granted))?;
            }
        }
        Ok(())
    }

    /// Approves the calls of a task below `holder`, which got the approval.
    fn cover_calls(
        &mut self,
        key: Key,
        record: &TaskRecord,
        (holder, granted): (&TaskRecord, &Granted),
    ) -> Decided<()> {
        for position in 0..self.calls(key)?.len() {
            let call = self.calls(key)?[position].clone();
            if call.body.status != CallStatus::Pending || call.spec.approval.is_some() {
                continue;
            }
            let subject = self.subject(key, record, Some(position))?;
            let [asked] = &subject.calls[..] else { continue };
            if !asked.unknown.is_empty()
                || self.why_asked(key, record, &call, asked.clone().known())?.is_none()
            {
                continue;
            }
            let policy = self.policy_version(granted.policy.as_ref());
            let hash = hash(&record.id, &subject, policy.as_deref(), &digests(holder, &subject));
            if call.body.approval.as_ref().is_none_or(|before| before.hash != hash) {
                let granted = Granted { hash, policy, answer: None, args: None, ..granted.clone() };
                self.update_call(key, position, |call| call.body.approval = Some(Box::new(granted)))?;
            }
        }
        Ok(())
    }
}

/// Returns the reason to ask, if the policy asks.
pub(super) fn why_asked(decision: PolicyDecision) -> Option<String> {
    match decision {
        PolicyDecision::Ask { why } => Some(why),
        // A denied call fails without asking.
        PolicyDecision::Deny { .. } | PolicyDecision::Allow => None,
    }
}

/// Records that the untrusted values of a list decide about the calls of its items.
pub(super) fn add_to_decided(record: &mut TaskRecord, values: &[UntrustedValue]) {
    if values.is_empty() {
        return;
    }
    record.change_origins(|origins| add_values(&mut origins.decided_by, values.iter().cloned()));
}

/// Returns the arguments of a call's next start.
fn args_now(call: &CallRecord) -> &Map {
    call.body.args.as_ref().unwrap_or(&call.spec.args)
}
