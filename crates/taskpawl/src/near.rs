//! Allow rules that nearly covered a recent question, for the advice of `doctor`.

use std::collections::BTreeMap;

use taskpawl_manager::{Error, HistoryFilter, Manager};
use taskpawl_model::task::EventKind;
use taskpawl_model::task::{BlockedReason, Cause, ToolCall};
use taskpawl_model::value::Map;
use taskpawl_model::value::{CallId, TaskId};
use taskpawl_tools::{NearRule, Policy, PolicyCall};

use crate::policy_adapter;

/// Number of recent events that are searched for questions.
const MAX_EVENTS: usize = 5_000;

/// An allow rule, with the keys that it lacked for calls that asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedByRule {
    /// The rule, with the missing keys of all its calls merged.
    pub rule: NearRule,
    /// The tasks whose calls asked, by id.
    pub tasks: Vec<TaskId>,
}

/// Returns allow rules that failed to cover a recent question only because of standard input, directory or variables.
///
/// Rules that no key can help are excluded. The policy decides about the calls of the last questions again, so a rule that was
/// completed in the meantime is not listed.
///
/// # Errors
/// The store cannot be read.
pub fn near_rules(manager: &Manager, policy: &Policy) -> Result<Vec<AskedByRule>, Error> {
    let mut rules: Vec<AskedByRule> = Vec::new();
    for (id, calls) in asked_lately(manager)? {
        // The event outlives its task: a deleted task has no calls to check.
        let task = match manager.get(id.as_str()) {
            Err(Error::Refused(_)) => continue,
            task => task?,
        };
        let asked =
            |call: &&ToolCall| calls.iter().any(|asked| asked.as_ref().is_none_or(|id| *id == call.id));
        for call in task.metadata.tool_calls.iter().filter(asked) {
            for rule in rules_near(policy, call) {
                add(&mut rules, rule, &task.id);
            }
        }
    }
    Ok(rules)
}

/// Returns the tasks that the policy asked about, with their calls. `None` stands for all calls of a task.
fn asked_lately(manager: &Manager) -> Result<BTreeMap<TaskId, Vec<Option<CallId>>>, Error> {
    let filter = HistoryFilter { limit: MAX_EVENTS, latest: true, ..HistoryFilter::default() };
    let mut asked = BTreeMap::<_, Vec<_>>::new();
    for entry in manager.find_history(&filter)? {
        let EventKind::Status { cause: Cause::Ask, reason: Some(reason), .. } = entry.event.kind else {
            continue;
        };
        if let (Some(task), BlockedReason::Approval { call, why: Some(_), .. }) = (entry.event.task, *reason)
        {
            asked.entry(task).or_default().push(call);
        }
    }
    Ok(asked)
}

fn rules_near(policy: &Policy, call: &ToolCall) -> Vec<NearRule> {
    let args: &Map = call.evaluated_args.as_ref().unwrap_or(&call.args);
    let origin = policy_adapter::call_origin(call.origin);
    let explained = policy.explain(&PolicyCall { tool: &call.tool_name, args, origin, sandbox: None });
    let near = explained.steps.into_iter().flat_map(|step| step.near);
    near.filter(|rule| rule.never.is_empty()).collect()
}

fn add(rules: &mut Vec<AskedByRule>, rule: NearRule, task: &TaskId) {
    match rules.iter_mut().find(|other| other.rule.is_same(&rule)) {
        Some(other) => {
            other.rule.merge(rule);
            if !other.tasks.contains(task) {
                other.tasks.push(task.clone());
            }
        }
        None => rules.push(AskedByRule { rule, tasks: vec![task.clone()] }),
    }
}
