//! The explanation of one task.

use serde::Serialize;

use super::reason::Reason;
use super::search::{Search, Way, WayStep, id_of, missing};
use crate::advice::{Advice, Advised};
use crate::command::Context;
use crate::offer::all_offered;
use crate::spec::Timestamp;
use crate::status::Status;
use crate::view::{View, ViewResult};
use crate::{Key, Means, RunId, TaskId};

/// How much of each end of a long chain is shown.
const SHOWN: usize = 20;

/// What no store can tell.
pub struct Facts<'a> {
    /// The time.
    pub now: Timestamp,
    /// Whether a run goes on; where that cannot be told it has to say yes.
    pub is_alive: &'a dyn Fn(&RunId) -> bool,
    /// What the next run has.
    pub means: &'a Means,
    /// The actor who is advised. Advice that the rules refuse to it is left out; without one all of it is kept.
    pub asker: Option<&'a Context>,
}

impl std::fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facts").field("now", &self.now).finish_non_exhaustive()
    }
}

/// Why a task is as it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Its state.
    pub status: Status,
    /// Whether somebody may take it now.
    pub is_ready: bool,
    /// The chain of causes, from the task to the first cause: of a long one both ends.
    pub chain: Vec<Link>,
    /// How many links are left out in the middle of the chain.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// The task where it really hangs: the last of the chain.
    pub first_cause: Link,
    /// Whether everything was looked at that could be more to the point than the first cause.
    pub is_complete: bool,
    /// Commands that clear the first cause; what loses nothing comes first.
    pub next_actions: Vec<Advised>,
}

/// A task of a chain of causes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Its state.
    pub status: Status,
    /// Why it is as it is.
    pub reason: Reason,
    /// The same in words.
    pub text: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Explains why a task is not running, or what it does or how it ended.
///
/// Costs the length of the chain of causes, whatever else the store holds.
///
/// # Errors
/// The view cannot be read, or has no such task.
pub fn explain(view: &dyn View, key: Key, facts: &Facts<'_>) -> ViewResult<Explanation> {
    let way = Search::new(view, facts).follow(key)?;
    let (chain, omitted, first_cause) = links(view, &way)?;
    let task = view.task(key)?.ok_or_else(|| missing(key))?;
    let mut next_actions = first_cause.reason.advice(&first_cause.task);
    if let Some(asker) = facts.asker {
        next_actions = all_offered(view, next_actions, asker)?;
    }
    if !way.steps.is_empty() && needs_a_run(&first_cause.reason) {
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
        is_complete: way.is_complete,
        next_actions: next_actions.into_iter().map(Advised::from).collect(),
    })
}

/// Returns whether what lies behind goes on only with a run, once this is cleared by hand.
fn needs_a_run(reason: &Reason) -> bool {
    matches!(reason, Reason::Blocked { .. } | Reason::Interrupted { .. } | Reason::Approval { .. })
}

/// Returns where a chain of causes ends, in words; `None` where the task itself is the end.
pub(crate) fn first_cause(view: &dyn View, key: Key, now: Timestamp) -> ViewResult<Option<(TaskId, String)>> {
    let facts = Facts { now, is_alive: &|_| true, means: &Means::default(), asker: None };
    let way = Search::new(view, &facts).follow(key)?;
    if way.steps.is_empty() {
        return Ok(None);
    }
    Ok(Some((id_of(view, way.end.0)?, way.end.1.to_string())))
}

fn links(view: &dyn View, way: &Way) -> ViewResult<(Vec<Link>, usize, Link)> {
    let first_cause = link(view, way.end.0, way.end.1.clone())?;
    let count = way.steps.len();
    let omitted = count.saturating_sub(2 * SHOWN);
    let mut chain = Vec::new();
    for (position, step) in way.steps.iter().enumerate() {
        if omitted == 0 || position < SHOWN || position >= count - SHOWN {
            let next = way.steps.get(position + 1).map_or(way.end.0, |next| next.key);
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
