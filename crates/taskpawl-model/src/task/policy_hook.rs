//! The policy hook: the interface of the policy that authorizes calls before they start.

use std::fmt::Debug;

use crate::task::spec::{CallSpec, Origin, SandboxRequest, TaskSpec};
use crate::task::work_hash::work_hash;
use crate::value::Map;

/// Authorizes every call before it starts.
///
/// # Contract
///
/// - Pure: the same call and the same version lead to the same decision.
/// - It runs inside a transaction of the store, so it must not read files or wait.
/// - It is asked for each call that is about to start, and for each element of a list before its tasks are created.
pub trait PolicyHook: Debug + Send + Sync {
    /// Decides on a call.
    fn authorize(&self, call: &ProposedCall<'_>) -> PolicyDecision;

    /// Returns everything that decisions depend on besides the call, as one word: the rules, the working directory of
    /// calls, and their confinement. An approval under one version is not valid under another.
    fn version(&self) -> &str;

    /// Returns whether a confirmed `trustInputs` takes effect.
    fn trusts_inputs(&self) -> bool {
        true
    }

    /// Returns whether the tool declares that a call with these arguments may run again: it only reads, or it is
    /// idempotent. For an unknown tool it returns false.
    fn is_repeatable(&self, tool: &str, args: &Map) -> bool {
        let _ = (tool, args);
        false
    }
}

/// A call that is about to start.
#[derive(Debug, Clone)]
pub struct ProposedCall<'a> {
    /// The name of its tool.
    pub tool: &'a str,
    /// Its arguments, evaluated. Before the approval of a list some may be unknown; these keep the text of the author.
    pub args: &'a Map,
    /// The kind of author that added it.
    pub origin: Origin,
    /// The permissions that the call and its task request from the sandbox; `None` without a request.
    pub sandbox: Option<SandboxRequest>,
    /// The plan of its task; `None` for a task without a plan, and for a call that is not stored yet.
    pub plan: Option<&'a str>,
}

impl ProposedCall<'_> {
    /// Returns the hash of the work that the call does: its tool, its arguments and its sandbox request, in any task.
    pub fn work_hash(&self) -> String {
        work_hash(self.tool, self.args, self.sandbox.as_ref())
    }
}

/// A decision on a call, ordered by strictness.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyDecision {
    /// The call may start.
    Allow,
    /// The call may start after an approval.
    Ask {
        /// The reason, as a lower-case fragment that names the rule and its location.
        why: String,
    },
    /// The call never starts.
    Deny {
        /// The reason, in the same form, and a remedy.
        why: String,
    },
}

impl PolicyDecision {
    /// Returns the rank in the order of strictness, which ignores the reason.
    pub(crate) fn strictness(&self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Ask { .. } => 1,
            Self::Deny { .. } => 2,
        }
    }
}

/// Returns the permissions that a call and its task request from the sandbox together.
pub(crate) fn requested(task: &TaskSpec, call: &CallSpec) -> Option<SandboxRequest> {
    if task.sandbox.is_none() && call.sandbox.is_none() {
        return None;
    }
    let mut asked = SandboxRequest::default();
    for request in [&task.sandbox, &call.sandbox].into_iter().flatten() {
        asked.net |= request.net;
        asked.read.extend(request.read.iter().cloned());
        asked.write.extend(request.write.iter().cloned());
    }
    for paths in [&mut asked.read, &mut asked.write] {
        paths.sort_unstable();
        paths.dedup();
    }
    (asked != SandboxRequest::default()).then_some(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_task_and_its_call_are_merged() {
        let request =
            |net, path: &str| Some(SandboxRequest { net, read: vec![path.to_owned()], write: Vec::new() });
        let task = TaskSpec { sandbox: request(false, "/b"), ..TaskSpec::default() };
        let call = CallSpec { sandbox: request(true, "/a"), ..CallSpec::default() };
        let both = requested(&task, &call).expect("they ask");
        assert!(both.net && both.read == ["/a", "/b"]);
        assert_eq!(requested(&TaskSpec::default(), &CallSpec::default()), None);
        let empty = CallSpec { sandbox: Some(SandboxRequest::default()), ..CallSpec::default() };
        assert_eq!(requested(&TaskSpec::default(), &empty), None);
    }
}
