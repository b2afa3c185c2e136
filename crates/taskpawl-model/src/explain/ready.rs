//! What is ready, in the order in which it is taken, and why in that order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::reason::Reason;
use super::state::lacking;
use crate::advice::{Advice, Advised};
use crate::command::{Context, DecideError};
use crate::durations::Durations;
use crate::means::{Means, capacities};
use crate::offer::all_offered;
use crate::ranks::{Lengths, Taker};
use crate::record::{Node, Work};
use crate::scope::{Selector, select};
use crate::spec::{Priority, Timestamp};
use crate::view::{Query, View, ViewResult};
use crate::{Key, KeyMap, Period, TaskId};

/// What is ready.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyList {
    /// What a run takes, in its order.
    pub for_runs: Vec<ReadyTask>,
    /// What agents and people can claim, in the order of `claim --next`.
    pub by_hand: Vec<ReadyTask>,
    /// How many there are for runs, listed or not.
    pub total_for_runs: usize,
    /// How many there are for agents and people, listed or not.
    pub total_by_hand: usize,
    /// What is ready, and no run here can take.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub for_nobody: Vec<Untakable>,
    /// How many of these there are, listed or not.
    pub total_for_nobody: usize,
    /// Commands that begin with it.
    pub next_actions: Vec<Advised>,
}

/// A task that is ready.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyTask {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// How urgent it is: what is more urgent is taken first.
    pub priority: Priority,
    /// When it is due: among those of one priority, what is due earlier is taken first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_date: Option<Timestamp>,
    /// The longest way from its start to the end of everything: then a run takes first what has the longest way to go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_way: Option<Period>,
    /// The same in tasks, where nothing is known of how long any takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_to_end: Option<u64>,
    /// Why it stands where it stands, in words.
    pub because: String,
}

/// A task that is ready, and that no run here can take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Untakable {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// What it lacks, in words.
    pub because: String,
    /// The tool that it lacks, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_tool: Option<String>,
}

/// Returns what is ready, of the tasks that `only` selects, in the order in which it is taken: at most `limit` of each kind, 0 for
/// all. `means` is what the next run has, `asker` the actor who is advised.
///
/// # Errors
/// A selector names nothing, or the view cannot be read.
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
    let found = untakable(view, &keys, means)?;
    let lacking: BTreeSet<Key> = found.iter().map(|(key, _)| *key).collect();
    calls.retain(|node| !lacking.contains(&node.key));
    let mut for_nobody: Vec<Untakable> = found.into_iter().map(|(_, task)| task).collect();
    let (total_for_runs, total_by_hand) = (calls.len(), manual.len());
    let total_for_nobody = for_nobody.len();
    let taker = Taker { jobs: means.jobs, scope: scope.clone().map(Arc::new) };
    let ways = if calls.is_empty() { Ways::default() } else { Ways::load(view, &taker)? };
    calls.sort_by_key(|node| (node.priority, node.due, std::cmp::Reverse(ways.rank(node.key)), node.key));
    let limit = if limit == 0 { usize::MAX } else { limit };
    calls.truncate(limit);
    manual.truncate(limit);
    for_nobody.truncate(limit);
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
    if let (None, Some(first)) = (for_runs.first(), for_nobody.first()) {
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
        for_nobody,
        total_for_nobody,
        next_actions: next_actions.into_iter().map(Advised::from).collect(),
    })
}

/// The beginning of what is ready.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadyPart {
    /// What somebody can take, in the order in which it is taken.
    pub takable: Vec<Node>,
    /// What no run here can take: what was met on the way to those, and then what calls a tool that is not there, wherever it stands.
    pub for_nobody: Vec<Untakable>,
}

/// How many tasks are named that no run here can take and that stand behind what was looked at, for each tool that is not there.
const MOST_BEHIND: usize = 1_000;

/// Returns the first `most` tasks, 0 for all, that are ready, are ended by one of `works`, and can be taken; and what no run here can
/// take. `means` is what the next run has. What it costs depends on how many of them are asked for, and on how many calls there are of
/// tools that are not there, not on how many tasks are ready.
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
        let mut nobody = untakable(view, &for_runs, means)?;
        let lacking: BTreeSet<Key> = nobody.iter().map(|(key, _)| *key).collect();
        takable.retain(|node| !lacking.contains(&node.key));
        if !is_all && takable.len() < most {
            // As many more as there may be of those that nobody can take.
            limit = limit.saturating_mul(4);
            continue;
        }
        if !is_all && works.contains(&Work::Calls) {
            nobody.extend(untakable(view, &lacking_tools(view, &lacking, means)?, means)?);
        }
        let for_nobody = nobody.into_iter().map(|(_, task)| task).collect();
        return Ok(ReadyPart { takable, for_nobody });
    }
}

/// Returns what is ready for runs and calls a tool that is not there, but for those that are known, in the order in which it is taken.
fn lacking_tools(view: &dyn View, known: &BTreeSet<Key>, means: &Means) -> ViewResult<Vec<Key>> {
    let mut keys = BTreeSet::new();
    if means.tools.is_some() {
        for tool in view.tools()?.iter().filter(|tool| !means.has_tool(tool)) {
            keys.extend(view.ready_calling(tool, MOST_BEHIND)?);
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

/// Returns those of `ready` that no run here can take, in their order, with what each lacks. `ready` are tasks that are ready for runs,
/// `means` is what the next run has. This alone decides whether what is ready is so for anybody.
fn untakable(view: &dyn View, ready: &[Key], means: &Means) -> ViewResult<Vec<(Key, Untakable)>> {
    let mut known: Option<BTreeMap<String, u32>> = None;
    let mut found = Vec::new();
    for key in ready {
        let Some(task) = view.task(*key)? else { continue };
        if known.is_none() && !task.spec.resources.is_empty() {
            known = Some(capacities(view, &means.capacities)?);
        }
        let capacities = known.as_ref().unwrap_or(&means.capacities);
        if let Some(reason) = lacking(&view.calls(*key)?, &task, means, capacities) {
            let plain = reason.to_string();
            let missing_tool = if let Reason::MissingTool { name } = reason { Some(name) } else { None };
            let told = missing_tool.as_deref().zip(means.absent.as_ref());
            let because = told.and_then(|(tool, absent)| absent.lack(tool)).unwrap_or(plain);
            let name = task.spec.name.clone();
            found.push((*key, Untakable { task: task.id, name, because, missing_tool }));
        }
    }
    Ok(found)
}

/// Returns what a task lacks that is ready for runs, and that no run here can take; nothing where it is not so. `means` is what the next
/// run has.
///
/// # Errors
/// The view cannot be read.
pub fn untakable_task(view: &dyn View, node: &Node, means: &Means) -> ViewResult<Option<Untakable>> {
    if !node.is_ready() || node.work != Work::Calls {
        return Ok(None);
    }
    Ok(untakable(view, &[node.key], means)?.pop().map(|(_, task)| task))
}

/// How far it is from tasks to the end, in milliseconds; in tasks, where nothing is known of how long any takes.
#[derive(Default)]
struct Ways {
    is_timed: bool,
    longest: KeyMap<u64>,
    /// By which a run takes them.
    ranks: KeyMap<u64>,
}

impl Ways {
    fn load(view: &dyn View, taker: &Taker) -> ViewResult<Self> {
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

/// Says what sets a task apart from the one before it.
fn because(before: Option<&Node>, node: &Node, ways: Option<&Ways>) -> &'static str {
    let Some(before) = before else { return "nothing comes before it" };
    let is_alike = |ways: &Ways| ways.rank(before.key) == ways.rank(node.key);
    let is_shorter = |ways: &Ways| ways.longest(node.key) < ways.longest(before.key);
    if before.priority != node.priority {
        "less urgent"
    } else if before.due != node.due && node.due == i64::MAX {
        "as urgent, but not due at any time"
    } else if before.due != node.due {
        "as urgent, but due later"
    } else if ways.is_none_or(is_alike) {
        "alike, but younger"
    } else if ways.is_some_and(is_shorter) {
        "as urgent, but with a shorter way to the end"
    } else {
        "as urgent, but everything ends sooner when it comes later"
    }
}
