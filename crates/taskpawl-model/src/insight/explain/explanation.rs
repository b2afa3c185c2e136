//! Explanation of one task.

use serde::Serialize;

use super::reason::Reason;
use super::search::{Search, Way, WayStep, id_of, missing};
use crate::advice::{Advice, Advised};
use crate::command::Context;
use crate::rules::Means;
use crate::rules::offer::all_offered;
use crate::task::status::Status;
use crate::value::Timestamp;
use crate::value::{Key, RunId, TaskId};
use crate::view::{View, ViewResult};

/// Links shown at each end of a long chain.
const MAX_SHOWN: usize = 20;

/// Facts that a store does not contain.
pub struct Facts<'a> {
    /// Current time.
    pub now: Timestamp,
    /// Returns whether a run is still alive. It must return true if that cannot be determined.
    pub is_alive: &'a dyn Fn(&RunId) -> bool,
    /// Tools and capacities of the next run.
    pub means: &'a Means,
    /// Actor to advise. Advice that the rules refuse to it is left out; without an actor all advice is kept.
    pub asker: Option<&'a Context>,
}

impl std::fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facts").field("now", &self.now).finish_non_exhaustive()
    }
}

/// Explanation of a task's status.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Id of the task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Its status.
    pub status: Status,
    /// True if the task can be claimed now.
    pub is_ready: bool,
    /// Chain of causes from the task to the first cause. Of a long chain both ends.
    pub chain: Vec<Link>,
    /// Number of links left out in the middle of the chain.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// First cause: the last link of the chain.
    pub first_cause: Link,
    /// True if the search visited every task that could be a more relevant first cause.
    pub is_complete: bool,
    /// Commands that resolve the first cause, those without loss first.
    pub next_actions: Vec<Advised>,
}

/// A task in a chain of causes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// Id of the task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Its status.
    pub status: Status,
    /// Reason for the status.
    pub reason: Reason,
    /// The reason as text.
    pub text: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Explains why a task is not running, or how it runs or ended.
///
/// The cost depends on the length of the chain of causes, not on the size of the store.
///
/// # Errors
/// The view cannot be read, or has no such task.
pub fn explain(view: &dyn View, key: Key, facts: &Facts<'_>) -> ViewResult<Explanation> {
    let path = Search::new(view, facts).follow(key)?;
    let (chain, omitted, first_cause) = links(view, &path)?;
    let task = view.task(key)?.ok_or_else(|| missing(key))?;
    let mut next_actions = first_cause.reason.advice(&first_cause.task);
    if let Some(asker) = facts.asker {
        next_actions = all_offered(view, next_actions, asker)?;
    }
    if !path.steps.is_empty() && needs_a_run(&first_cause.reason) {
        next_actions.push(Advice::run_ready(&[]));
    }
    Ok(Explanation {
        status: task.body.state.status(),
        task: task.id,
        name: task.spec.name.clone(),
        is_ready: view.node(key)?.is_some_and(|node| node.is_ready()),
        chain,
        omitted,
        first_cause,
        is_complete: path.is_complete,
        next_actions: next_actions.into_iter().map(Advised::from).collect(),
    })
}

/// Returns whether the tasks behind the first cause need a run, once a command has resolved the cause.
fn needs_a_run(reason: &Reason) -> bool {
    matches!(reason, Reason::Blocked { .. } | Reason::Interrupted { .. } | Reason::Approval { .. })
}

/// Returns the first cause of a task and its text; `None` if the task itself is the cause.
pub(crate) fn first_cause(view: &dyn View, key: Key, now: Timestamp) -> ViewResult<Option<(TaskId, String)>> {
    let facts = Facts { now, is_alive: &|_| true, means: &Means::default(), asker: None };
    let path = Search::new(view, &facts).follow(key)?;
    if path.steps.is_empty() {
        return Ok(None);
    }
    Ok(Some((id_of(view, path.end.0)?, path.end.1.to_string())))
}

fn links(view: &dyn View, path: &Way) -> ViewResult<(Vec<Link>, usize, Link)> {
    let first_cause = link(view, path.end.0, path.end.1.clone())?;
    let count = path.steps.len();
    let omitted = count.saturating_sub(2 * MAX_SHOWN);
    let mut chain = Vec::new();
    for (position, step) in path.steps.iter().enumerate() {
        if omitted == 0 || position < MAX_SHOWN || position >= count - MAX_SHOWN {
            let next = path.steps.get(position + 1).map_or(path.end.0, |next| next.key);
            chain.push(link(view, step.key, reason_of_step(view, step, next)?)?);
        }
    }
    chain.push(first_cause.clone());
    Ok((chain, omitted, first_cause))
}

fn reason_of_step(view: &dyn View, step: &WayStep, next: Key) -> ViewResult<Reason> {
    let (on, role, others) = (id_of(view, next)?, step.role, step.others);
    Ok(if step.is_final {
        Reason::StoppedBy { on, role, others }
    } else {
        Reason::WaitsFor { on, role, others }
    })
}

fn link(view: &dyn View, key: Key, reason: Reason) -> ViewResult<Link> {
    let task = view.task(key)?.ok_or_else(|| missing(key))?;
    let text = reason.to_string();
    Ok(Link { status: task.body.state.status(), task: task.id, name: task.spec.name.clone(), reason, text })
}
