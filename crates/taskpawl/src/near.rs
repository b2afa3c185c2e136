//! Allow rules that lately did not cover a call that asked.

use std::collections::BTreeMap;

use taskpawl_manager::{Error, HistoryFilter, Manager};
use taskpawl_model::{BlockedReason, CallId, Cause, EventKind, Map, TaskId, ToolCall};
use taskpawl_tools::{NearRule, Policy, PolicyCall};

use crate::keeper;

/// How many events of the history are read for questions.
const MAX_EVENTS: usize = 5_000;

/// An allow rule with the keys that it lacked for calls that asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedByRule {
    /// The rule.
    pub rule: NearRule,
    /// The tasks whose calls asked, by id.
    pub tasks: Vec<TaskId>,
}

/// Returns the allow rules of a policy that would have covered calls which lately asked, but for their standard input, directory or
/// variables. Only rules that a key can help are among them.
///
/// The calls of the last questions are judged once more, so that a rule that was completed since is not listed.
///
/// # Errors
/// The store cannot be read.
pub fn near_rules(manager: &Manager, policy: &Policy) -> Result<Vec<AskedByRule>, Error> {
    let mut found: Vec<AskedByRule> = Vec::new();
    for (id, calls) in asked_lately(manager)? {
        // A task that was deleted since has no calls any more.
        let task = match manager.get(id.as_str()) {
            Err(Error::Refused(_)) => continue,
            task => task?,
        };
        let asked =
            |call: &&ToolCall| calls.iter().any(|asked| asked.as_ref().is_none_or(|id| *id == call.id));
        for call in task.metadata.tool_calls.iter().filter(asked) {
            for rule in rules_near(policy, call) {
                add(&mut found, rule, &task.id);
            }
        }
    }
    Ok(found)
}

/// Returns the tasks that the policy asked about, with the calls; `None` stands for all calls of a task.
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
    let origin = keeper::origin(call.origin);
    let explained = policy.explain(&PolicyCall { tool: &call.tool_name, args, origin, sandbox: None });
    let near = explained.steps.into_iter().flat_map(|step| step.near);
    near.filter(|rule| rule.never.is_empty()).collect()
}

fn add(found: &mut Vec<AskedByRule>, rule: NearRule, task: &TaskId) {
    match found.iter_mut().find(|other| other.rule.is_same(&rule)) {
        Some(other) => {
            other.rule.merge(rule);
            if !other.tasks.contains(task) {
                other.tasks.push(task.clone());
            }
        }
        None => found.push(AskedByRule { rule, tasks: vec![task.clone()] }),
    }
}
