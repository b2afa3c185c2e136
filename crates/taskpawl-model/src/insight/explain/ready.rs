//! Lists ready tasks in the order in which they are taken, with the reason for each position.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::reason::Reason;
use super::state::lacking;
use crate::advice::{Advice, Advised};
use crate::command::Context;
use crate::rules::DecideError;
use crate::rules::means::{Means, capacities};
use crate::rules::offer::all_offered;
use crate::rules::scope::select;
use crate::run::ranks::{Lengths, RunnerLimits};
use crate::task::record::{Node, Work};
use crate::task::spec::Priority;
use crate::value::Selector;
use crate::value::Timestamp;
use crate::value::{Key, KeyMap, Period, TaskId};
use crate::view::durations::Durations;
use crate::view::{Query, View, ViewResult};

/// Ready tasks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyList {
    /// Tasks for runs, in the order of a run.
    pub for_runs: Vec<ReadyTask>,
    /// Tasks for agents and people, in the order of `claim --next`.
    pub by_hand: Vec<ReadyTask>,
    /// Number of tasks for runs, including those that are not listed.
    pub total_for_runs: usize,
    /// Number of tasks for agents and people, including those that are not listed.
    pub total_by_hand: usize,
    /// Unrunnable tasks: ready, but no run here can take them.
    #[serde(rename = "forNobody", skip_serializing_if = "Vec::is_empty")]
    pub unrunnable: Vec<UnrunnableTask>,
    /// Number of unrunnable tasks, including those that are not listed.
    #[serde(rename = "totalForNobody")]
    pub total_unrunnable: usize,
    /// Commands to start with.
    pub next_actions: Vec<Advised>,
}

/// A ready task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadyTask {
    /// Id of the task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Its priority, the first sort key.
    pub priority: Priority,
    /// Its due date, the second sort key; tasks without one come last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_date: Option<Timestamp>,
    /// Duration of the longest path from its start to the end. For a run the longest path comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_way: Option<Period>,
    /// Length of that path in tasks, if no durations are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_to_end: Option<u64>,
    /// Reason for its position, as text.
    pub because: String,
}

/// An unrunnable task: it is ready, but no run here can take it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnrunnableTask {
    /// Id of the task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Requirement that is not met, as text.
    pub because: String,
    /// Name of the missing tool, if that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_tool: Option<String>,
}

/// Returns the ready tasks that `only` selects, in the order in which they are taken.
///
/// Lists at most `limit` tasks of each kind; 0 means all. `means` has the tools and capacities of the next run, `asker`
/// the actor to advise.
///
/// # Errors
/// A selector matches nothing, or the view cannot be read.
pub fn explain_ready(
    view: &dyn View,
    only: &[Selector],
    limit: usize,
    means: &Means,
    asker: Option<&Context>,
) -> Result<ReadyList, DecideError> {
    let scope = select(view, only)?;
    let is_inside = |node: &Node| scope.as_ref().is_none_or(|scope| scope.contains(&node.key));
    let mut lists = [Work::Calls, Work::Manual].into_iter().map(|work| {
        let mut nodes = Vec::new();
        for key in view.find(&Query { ready: Some(vec![work]), ..Query::default() })? {
            nodes.extend(view.node(key)?.filter(|node| is_inside(node)));
        }
        ViewResult::Ok(nodes)
    });
    let mut next = || lists.next().unwrap_or_else(|| Ok(Vec::new()));
    let (mut calls, mut manual) = (next()?, next()?);
    let keys: Vec<Key> = calls.iter().map(|node| node.key).collect();
    let lacking_tasks = unrunnable_tasks(view, &keys, means)?;
    let lacking: BTreeSet<Key> = lacking_tasks.iter().map(|(key, _)| *key).collect();
    calls.retain(|node| !lacking.contains(&node.key));
    let mut unrunnable: Vec<UnrunnableTask> = lacking_tasks.into_iter().map(|(_, task)| task).collect();
    let (total_for_runs, total_by_hand) = (calls.len(), manual.len());
    let total_unrunnable = unrunnable.len();
    let taker = RunnerLimits { jobs: means.jobs, scope: scope.clone().map(Arc::new) };
    let ways = if calls.is_empty() { Ways::default() } else { Ways::load(view, &taker)? };
    calls.sort_by_key(|node| (node.priority, node.due, std::cmp::Reverse(ways.rank(node.key)), node.key));
    let limit = if limit == 0 { usize::MAX } else { limit };
    calls.truncate(limit);
    manual.truncate(limit);
    unrunnable.truncate(limit);
    let for_runs = tasks(view, &calls, Some(&ways))?;
    let by_hand = tasks(view, &manual, None)?;
    let mut next_actions = Vec::new();
    if !for_runs.is_empty() {
        next_actions.push(Advice::run_ready(only));
    }
    if let Some(first) = by_hand.first() {
        let assignee = manual.first().map(|node| view.task(node.key)).transpose()?.flatten();
        let assignee = assignee.and_then(|record| record.spec.assignee.clone());
        next_actions.extend(Advice::to_end(&first.task, assignee.as_deref()).into_iter().take(1));
    }
    if let (None, Some(first)) = (for_runs.first(), unrunnable.first()) {
        next_actions.push(Advice::explain(&first.task));
    }
    if let Some(asker) = asker {
        next_actions = all_offered(view, next_actions, asker)?;
    }
    Ok(ReadyList {
        for_runs,
        by_hand,
        total_for_runs,
        total_by_hand,
        unrunnable,
        total_unrunnable,
        next_actions: next_actions.into_iter().map(Advised::from).collect(),
    })
}

/// The first ready tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadyPart {
    /// Tasks that can be taken, in order.
    pub takable: Vec<Node>,
    /// Unrunnable tasks: those met before the takable ones, followed by all others that call a missing tool.
    pub unrunnable: Vec<UnrunnableTask>,
}

/// Most tasks listed for each missing tool beyond those that were read for the takable ones.
const MAX_BEHIND: usize = 1_000;

/// Returns the first `most` tasks (0 for all) that are ready, belong to one of `works` and can be taken; and unrunnable
/// ones.
///
/// `means` has the tools and capacities of the next run. The cost depends on `most` and on the calls of missing tools,
/// not on the number of ready tasks.
///
/// # Errors
/// The view cannot be read.
pub fn ready_part(view: &dyn View, works: &[Work], most: usize, means: &Means) -> ViewResult<ReadyPart> {
    let mut limit = most;
    loop {
        let keys = view.find(&Query { ready: Some(works.to_vec()), limit, ..Query::default() })?;
        let is_all = limit == 0 || keys.len() < limit;
        let mut takable = nodes(view, &keys)?;
        let for_runs: Vec<Key> =
            takable.iter().filter(|node| node.work == Work::Calls).map(|node| node.key).collect();
        let mut unrunnable = unrunnable_tasks(view, &for_runs, means)?;
        let lacking: BTreeSet<Key> = unrunnable.iter().map(|(key, _)| *key).collect();
        takable.retain(|node| !lacking.contains(&node.key));
        if !is_all && takable.len() < most {
            // Too many of the tasks read are unrunnable. Reading four times as many keeps the number of queries
            // logarithmic.
            limit = limit.saturating_mul(4);
            continue;
        }
        if !is_all && works.contains(&Work::Calls) {
            unrunnable.extend(unrunnable_tasks(view, &lacking_tools(view, &lacking, means)?, means)?);
        }
        let unrunnable = unrunnable.into_iter().map(|(_, task)| task).collect();
        return Ok(ReadyPart { takable, unrunnable });
    }
}

/// Returns the ready tasks that call a missing tool, except `known`, in the order in which they are taken.
fn lacking_tools(view: &dyn View, known: &BTreeSet<Key>, means: &Means) -> ViewResult<Vec<Key>> {
    let mut keys = BTreeSet::new();
    if means.tools.is_some() {
        for tool in view.tools()?.iter().filter(|tool| !means.has_tool(tool)) {
            keys.extend(view.ready_calling(tool, MAX_BEHIND)?);
        }
    }
    let behind: Vec<Key> = keys.difference(known).copied().collect();
    let mut nodes = nodes(view, &behind)?;
    nodes.sort_by_key(|node| (node.priority, node.due, node.key));
    Ok(nodes.into_iter().map(|node| node.key).collect())
}

fn nodes(view: &dyn View, keys: &[Key]) -> ViewResult<Vec<Node>> {
    let nodes = keys.iter().map(|key| view.node(*key)).collect::<ViewResult<Vec<_>>>()?;
    Ok(nodes.into_iter().flatten().collect())
}

/// Returns the unrunnable tasks among `ready`, in order. `ready` are tasks that are ready for runs.
///
/// This is the only place that decides if a task is unrunnable.
fn unrunnable_tasks(view: &dyn View, ready: &[Key], means: &Means) -> ViewResult<Vec<(Key, UnrunnableTask)>> {
    let mut known: Option<BTreeMap<String, u32>> = None;
    let mut lacking_tasks = Vec::new();
    for key in ready {
        let Some(task) = view.task(*key)? else { continue };
        if known.is_none() && task.spec.wanted_resources(None).next().is_some() {
            known = Some(capacities(view, &means.capacities)?);
        }
        let capacities = known.as_ref().unwrap_or(&means.capacities);
        if let Some(reason) = lacking(&view.calls(*key)?, &task, means, capacities) {
            let plain = reason.to_string();
            let missing_tool = if let Reason::MissingTool { name } = reason { Some(name) } else { None };
            let told = missing_tool.as_deref().zip(means.absent.as_ref());
            let because = told.and_then(|(tool, absent)| absent.lack(tool)).unwrap_or(plain);
            let name = task.spec.name.clone();
            lacking_tasks.push((*key, UnrunnableTask { task: task.id, name, because, missing_tool }));
        }
    }
    Ok(lacking_tasks)
}

/// Returns the missing requirement of an unrunnable task; `None` if a run here can take it or it is not ready for runs.
///
/// # Errors
/// The view cannot be read.
pub fn unrunnable_task(view: &dyn View, node: &Node, means: &Means) -> ViewResult<Option<UnrunnableTask>> {
    if !node.is_ready() || node.work != Work::Calls {
        return Ok(None);
    }
    Ok(unrunnable_tasks(view, &[node.key], means)?.pop().map(|(_, task)| task))
}

/// Lengths of the longest paths from tasks to the end: in milliseconds, or in tasks if no durations are known.
#[derive(Default)]
struct Ways {
    is_timed: bool,
    longest: KeyMap<u64>,
    /// Ranks by which a run orders tasks.
    ranks: KeyMap<u64>,
}

impl Ways {
    fn load(view: &dyn View, taker: &RunnerLimits) -> ViewResult<Self> {
        let durations = Durations::load(view)?;
        let lengths = Lengths::load(view, &durations, taker)?;
        let (longest, ranks) = (lengths.longest_ways(), lengths.ranks());
        Ok(Self { is_timed: !durations.is_empty(), longest, ranks })
    }

    fn longest(&self, key: Key) -> u64 {
        self.longest.get(&key).copied().unwrap_or(0)
    }

    fn rank(&self, key: Key) -> u64 {
        self.ranks.get(&key).copied().unwrap_or(0)
    }
}

fn tasks(view: &dyn View, nodes: &[Node], ways: Option<&Ways>) -> ViewResult<Vec<ReadyTask>> {
    let mut tasks: Vec<ReadyTask> = Vec::with_capacity(nodes.len());
    let mut before: Option<&Node> = None;
    for node in nodes {
        let Some(task) = view.task(node.key)? else { continue };
        let length = ways.map(|ways| ways.longest(node.key));
        let is_timed = ways.is_some_and(|ways| ways.is_timed);
        tasks.push(ReadyTask {
            task: task.id,
            name: task.spec.name.clone(),
            priority: node.priority,
            due_date: task.spec.due_date,
            longest_way: length.filter(|_| is_timed).map(|millis| Period(Duration::from_millis(millis))),
            tasks_to_end: length.filter(|_| !is_timed),
            because: because(before, node, ways).to_owned(),
        });
        before = Some(node);
    }
    Ok(tasks)
}

/// Returns the difference from the previous task that explains the order.
fn because(before: Option<&Node>, node: &Node, ways: Option<&Ways>) -> &'static str {
    let Some(before) = before else { return "first in the order" };
    let is_alike = |ways: &Ways| ways.rank(before.key) == ways.rank(node.key);
    let is_shorter = |ways: &Ways| ways.longest(node.key) < ways.longest(before.key);
    if before.priority != node.priority {
        "lower priority"
    } else if before.due != node.due && node.due == i64::MAX {
        "same priority, but no due date"
    } else if before.due != node.due {
        "same priority, but due later"
    } else if ways.is_none_or(is_alike) {
        "same rank, but newer"
    } else if ways.is_some_and(is_shorter) {
        "same priority, but a shorter remaining path"
    } else {
        "same priority, but starting it later shortens the schedule"
    }
}
