//! Who judges calls before they start: a policy, seen from here.

use std::fmt::Debug;

use crate::spec::{CallSpec, Map, Origin, SandboxRequest, TaskSpec};

/// Judges every call before it starts.
///
/// # Contract
///
/// - Pure: the same call and the same version give the same judgement.
/// - It is asked inside a transaction of the store, for each call that is about to start, and for each element of a list before
///   its tasks are made: it reads no files and waits for nothing.
pub trait Gatekeeper: Debug + Send + Sync {
    /// Judges a call.
    fn judge(&self, call: &Proposed<'_>) -> Judgement;

    /// Returns what its judgements depend on beside the call, as one word: its rules, the directory in which calls work, how they
    /// are confined. An approval that was given under one version does not hold under another.
    fn version(&self) -> &str;

    /// Returns whether the tool says that a call with these arguments may be done once more although it was done: it only reads,
    /// or is idempotent. Of a tool that is not known, no.
    fn is_repeatable(&self, tool: &str, args: &Map) -> bool {
        let _ = (tool, args);
        false
    }
}

/// A call that is about to start.
#[derive(Debug, Clone)]
pub struct Proposed<'a> {
    /// The name of its tool.
    pub tool: &'a str,
    /// Its arguments, evaluated. Before a list is approved some may not be known: these stand as they were written.
    pub args: &'a Map,
    /// Who added it.
    pub origin: Origin,
    /// What it and its task ask of the sandbox together; `None` where they ask for nothing.
    pub sandbox: Option<SandboxRequest>,
}

/// What is said about a call. The order is that of strictness.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// It may start.
    Allow,
    /// It may start when somebody has approved it.
    Ask {
        /// Why, as what stands against it: a lower-case fragment that names the rule and where it stands.
        why: String,
    },
    /// It never starts.
    Deny {
        /// Why, likewise, and what to do.
        why: String,
    },
}

impl Judgement {
    /// Returns the place in the order of strictness: the reason does not count.
    pub(crate) fn strictness(&self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Ask { .. } => 1,
            Self::Deny { .. } => 2,
        }
    }
}

/// Returns what a call and its task ask of the sandbox together.
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
    fn a_task_and_its_call_ask_together() {
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
