//! Policy decisions about calls that have not started, as far as their arguments are known.

use crate::rules::flow;
use crate::task::policy_hook::{PolicyDecision, PolicyHook};
use crate::task::record::{CallRecord, Node, TaskRecord, Work};
use crate::task::spec::Origin;
use crate::task::trust::{UntrustedValue, add_values};
use crate::value::{CallId, Key};
use crate::view::{View, ViewResult};

/// Policy decisions about the calls of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CallDecisions {
    /// Calls that need an approval; with the policy's reason, if it asks.
    pub(super) calls: Vec<(CallId, Option<String>)>,
    /// Reason why the policy asks about the list of the task.
    pub(super) list: Option<String>,
    /// Text of the first denied call.
    pub(super) denied: Option<String>,
}

impl CallDecisions {
    pub(super) fn asks(&self) -> bool {
        self.list.is_some() || !self.calls.is_empty()
    }
}

/// Decides about the unfinished calls of a task.
pub(super) fn look_at_calls(
    view: &dyn View,
    policy_hook: Option<&dyn PolicyHook>,
    node: &Node,
) -> ViewResult<CallDecisions> {
    let mut verdict = CallDecisions::default();
    let Some(record) = view.task(node.key)? else { return Ok(verdict) };
    let is_list = record.spec.for_each.is_some();
    if (node.work != Work::Calls && !is_list) || (is_list && record.body.progress.opened) {
        return Ok(verdict);
    }
    let calls = view.calls(node.key)?;
    let deciding = values_of_opening(view, &record, &calls)?;
    for call in calls.iter().filter(|call| !call.body.status.is_settled()) {
        match authorize_call(view, policy_hook, node.key, (&record, &calls), (call, &deciding))?.decision {
            PolicyDecision::Deny { why } if verdict.denied.is_none() => {
                verdict.denied = Some(format!("call `{}` ({}): {why}", call.id, call.spec.tool_name));
            }
            PolicyDecision::Deny { .. } => {}
            judged @ (PolicyDecision::Ask { .. } | PolicyDecision::Allow) => {
                note_question(&mut verdict, &record, call, judged);
            }
        }
    }
    Ok(verdict)
}

/// A call with the policy decision, as far as its arguments are known.
#[derive(Debug, Clone, PartialEq)]
pub struct CallAuthorization {
    /// Id of the call.
    pub call: CallId,
    /// Name of its tool.
    pub tool: String,
    /// Its origin.
    pub origin: Origin,
    /// Untrusted values that influence the call.
    pub untrusted: Vec<UntrustedValue>,
    /// The decision.
    pub decision: PolicyDecision,
}

/// Returns the policy decision for each call of a task, as if it started now.
///
/// # Errors
/// The view cannot be read.
pub fn call_authorizations(
    view: &dyn View,
    policy_hook: Option<&dyn PolicyHook>,
    key: Key,
) -> ViewResult<Vec<CallAuthorization>> {
    let Some(record) = view.task(key)? else { return Ok(Vec::new()) };
    let calls = view.calls(key)?;
    let deciding = values_of_opening(view, &record, &calls)?;
    calls
        .iter()
        .map(|call| authorize_call(view, policy_hook, key, (&record, &calls), (call, &deciding)))
        .collect()
}

fn authorize_call(
    view: &dyn View,
    policy_hook: Option<&dyn PolicyHook>,
    key: Key,
    (record, calls): (&TaskRecord, &[CallRecord]),
    (call, deciding): (&CallRecord, &[UntrustedValue]),
) -> ViewResult<CallAuthorization> {
    let mut known = flow::known_args(view, record, calls, call)?;
    add_values(&mut known.untrusted, deciding.iter().cloned());
    let untrusted = flow::deciding_values(view, policy_hook, key, record, call, known.untrusted)?;
    let decision =
        crate::rules::authorization::authorize_whole(policy_hook, record, call, &known.args, &untrusted);
    let (tool, origin) = (call.spec.tool_name.clone(), call.origin);
    Ok(CallAuthorization { call: call.id.clone(), tool, origin, untrusted, decision })
}

/// Returns the untrusted values that the condition and the list of a task read, as far as they are known before it
/// opens.
fn values_of_opening(
    view: &dyn View,
    record: &TaskRecord,
    calls: &[CallRecord],
) -> ViewResult<Vec<UntrustedValue>> {
    let mut values = Vec::new();
    if record.body.progress.opened {
        return Ok(values);
    }
    if let Some(when) = &record.spec.when {
        add_values(&mut values, record.field_of_model("when"));
        if let Ok(holds) = flow::holds(view, record, calls, when)? {
            add_values(&mut values, holds.untrusted);
        }
    }
    if let Some(for_each) = &record.spec.for_each
        && let Ok(list) = flow::list(view, record, calls, for_each)?
    {
        add_values(&mut values, flow::values_of_list(record, list.untrusted));
    }
    Ok(values)
}

fn note_question(
    verdict: &mut CallDecisions,
    record: &TaskRecord,
    call: &CallRecord,
    judged: PolicyDecision,
) {
    let why = match judged {
        PolicyDecision::Ask { why } => Some(why),
        PolicyDecision::Allow | PolicyDecision::Deny { .. } => None,
    };
    let by_author = call.spec.approval.is_some();
    if record.spec.for_each.is_some() {
        // Calls with their own approval ask for each item, and the items do not exist yet.
        let is_asked = !by_author && record.body.progress.approval.is_none();
        verdict.list = verdict.list.take().or(why.filter(|_| is_asked));
    } else if call.body.approval.is_none() && (by_author || why.is_some()) {
        verdict.calls.push((call.id.clone(), why));
    }
}
