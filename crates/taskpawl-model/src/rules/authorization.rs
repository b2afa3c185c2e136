//! The decision on a call: that of the policy for each origin that influences it, and the rules that no policy lifts.

use crate::task::policy_hook::{PolicyDecision, PolicyHook, ProposedCall, requested};
use crate::task::record::{CallRecord, TaskRecord};
use crate::task::spec::{CallSpec, MERGE_TOOL, Origin, TaskSpec};
use crate::task::trust::UntrustedValue;
use crate::value::Map;

/// Returns the decision on a call by the policy, if there is one, and by the rules that no policy can lift.
pub(crate) fn authorize_whole(
    policy_hook: Option<&dyn PolicyHook>,
    record: &TaskRecord,
    call: &CallRecord,
    args: &Map,
    values: &[UntrustedValue],
) -> PolicyDecision {
    let decision =
        policy_hook.map_or(PolicyDecision::Allow, |hook| authorize(hook, record, call, args, values));
    if decision != PolicyDecision::Allow {
        return decision;
    }
    match asks_by_itself(call.origin, &call.spec, values) {
        Some(why) => PolicyDecision::Ask { why },
        None => PolicyDecision::Allow,
    }
}

/// Returns the decision on a call of a plan that is not stored yet, as if `origin` had written it, without the approvals
/// that the plan itself requires. The values that it will read are not known, and count as trusted.
pub fn authorize_planned(
    policy_hook: Option<&dyn PolicyHook>,
    task: &TaskSpec,
    call: &CallSpec,
    origin: Origin,
) -> PolicyDecision {
    let sandbox = requested(task, call);
    let proposed = ProposedCall { tool: &call.tool_name, args: &call.args, origin, sandbox, plan: None };
    match policy_hook.map_or(PolicyDecision::Allow, |hook| hook.authorize(&proposed)) {
        PolicyDecision::Allow => {}
        decision @ (PolicyDecision::Ask { .. } | PolicyDecision::Deny { .. }) => return decision,
    }
    asks_by_itself(origin, call, &[]).map_or(PolicyDecision::Allow, |why| PolicyDecision::Ask { why })
}

/// Returns the decision on a call with these arguments, for its own origin and for that of each value that influences
/// it.
fn authorize(
    policy_hook: &dyn PolicyHook,
    record: &TaskRecord,
    call: &CallRecord,
    args: &Map,
    values: &[UntrustedValue],
) -> PolicyDecision {
    let as_of = |origin| {
        let sandbox = requested(&record.spec, &call.spec);
        let plan = record.plan.as_deref();
        policy_hook.authorize(&ProposedCall { tool: &call.spec.tool_name, args, origin, sandbox, plan })
    };
    let mut decision = as_of(call.origin);
    for value in deciding(call, values) {
        let other = match as_of(value.origin) {
            PolicyDecision::Allow => continue,
            PolicyDecision::Ask { why } => PolicyDecision::Ask { why: value.reason(&why) },
            PolicyDecision::Deny { why } => PolicyDecision::Deny { why: value.reason(&why) },
        };
        if other.strictness() > decision.strictness() {
            decision = other;
        }
    }
    decision
}

/// Returns the values that a call is authorized with besides its own origin, one of each origin.
fn deciding<'v>(
    call: &CallRecord,
    values: &'v [UntrustedValue],
) -> impl Iterator<Item = &'v UntrustedValue> + use<'v> {
    let is_less_trusted = !call.origin.is_of_model();
    Origin::ALL.iter().filter_map(move |origin| {
        let mut of_origin = values.iter().filter(|value| value.origin == *origin && !value.is_data);
        of_origin.next().filter(|_| is_less_trusted)
    })
}

/// Returns the reason to ask about a call from `origin` with these `values`, although the policy allows it.
pub fn asks_by_itself(origin: Origin, spec: &CallSpec, values: &[UntrustedValue]) -> Option<String> {
    if is_raw(spec) {
        // The shell interprets the value, so no rule can predict the effect.
        return Some("its command line contains an unquoted value (`| raw`)".to_owned());
    }
    if !spec.refers_to_secrets() {
        return None;
    }
    // An approval of the task's work does not cover secrets passed to a call.
    if origin.is_of_model() {
        return Some("a model wrote it, and it uses secrets".to_owned());
    }
    values.first().map(|value| value.reason("the call uses secrets"))
}

/// Returns whether a value is inserted into a shell command without quotes, so that its effect cannot be predicted.
pub(crate) fn is_raw(spec: &CallSpec) -> bool {
    let argument = match spec.tool_name.as_str() {
        "shell" => "command",
        MERGE_TOOL => "check",
        _ => return false,
    };
    let command = spec.args.get(argument).and_then(serde_json::Value::as_str);
    // Values are quoted for a shell: another program may read the quotes in its own way.
    let is_raw = |command: &str| {
        crate::expr::inserts_raw(command) || spec.has_own_interpreter() && command.contains(crate::expr::OPEN)
    };
    command.is_some_and(is_raw)
}
