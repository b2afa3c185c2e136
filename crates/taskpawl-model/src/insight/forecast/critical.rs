//! Critical path: the longest chain of tasks, a lower bound that no number of jobs can reduce.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use crate::advice::{Advice, Advised};
use crate::rules::DecideError;
use crate::rules::Graph;
use crate::rules::scope::select;
use crate::task::record::Node;
use crate::task::status::Status;
use crate::value::Selector;
use crate::value::{Key, Period, TaskId};
use crate::view::DurationSource;
use crate::view::View;
use crate::view::durations::Durations;

/// Most tasks beside the path that are listed.
const NEAR: usize = 20;

/// Critical path and lower bounds of the duration.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CriticalPath {
    /// Tasks on the path, in order.
    pub path: Vec<PathTask>,
    /// Duration of the path; in tasks if no durations are known.
    pub length: Period,
    /// Duration of all tasks, one after the other.
    pub work: Period,
    /// Number of calls that run at once.
    pub jobs: usize,
    /// Lower bound of the total duration: the path, or the work divided by the jobs.
    pub lower_bound: Period,
    /// True if durations are known; otherwise every task counts as 1 ms.
    pub is_timed: bool,
    /// Number of tasks counted.
    pub tasks: usize,
    /// The first 20 tasks beside the path, by slack.
    pub near_critical: Vec<NearCritical>,
    /// Commands to continue with.
    pub next_actions: Vec<Advised>,
}

/// A task on the critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PathTask {
    /// Id of the task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Its status.
    pub status: Status,
    /// Its duration.
    pub takes: Period,
    /// Source of the duration.
    pub source: DurationSource,
}

/// A task beside the critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NearCritical {
    /// The task.
    #[serde(flatten)]
    pub task: PathTask,
    /// Delay that does not extend the total duration.
    pub slack: Period,
}

/// Returns the critical path of the tasks that `only` selects. With `left` only unfinished tasks count.
///
/// # Errors
/// A selector matches nothing, or the view cannot be read.
pub fn critical_path(
    view: &dyn View,
    only: &[Selector],
    jobs: usize,
    left: bool,
) -> Result<CriticalPath, DecideError> {
    let scope = select(view, only)?;
    let durations = Durations::load(view)?;
    let weigh = |node: &Node| {
        let is_needed = match node.status_kind.status() {
            Status::Cancelled | Status::Skipped => false,
            Status::Done | Status::Failed => !left,
            Status::Todo | Status::InProgress | Status::Blocked => true,
        };
        let is_inside = scope.as_ref().is_none_or(|scope| scope.contains(&node.key));
        (is_needed && is_inside).then(|| durations.of_node(node).0)
    };
    let graph = Graph::load(view, &weigh)?;
    let keys = graph.longest_path();
    let on_path: BTreeSet<Key> = keys.iter().copied().collect();
    let path = keys.iter().map(|key| path_task(view, &durations, *key)).collect::<Result<Vec<_>, _>>()?;
    let reaches = graph.reaches();
    let length = reaches.values().map(|reach| reach.before + reach.after).max().unwrap_or(0);
    let (tasks, work) = graph.work();
    let mut near: Vec<(u64, Key)> = (reaches.iter())
        .filter(|(key, _)| graph.weight(**key) > 0 && !on_path.contains(key))
        .map(|(key, reach)| (length - reach.before - reach.after, *key))
        .collect();
    near.sort_unstable();
    let near_critical = near.into_iter().take(NEAR).map(|(slack, key)| {
        let task = path_task(view, &durations, key)?;
        Ok(NearCritical { task, slack: period(slack) })
    });
    let jobs = jobs.max(1);
    Ok(CriticalPath {
        near_critical: near_critical.collect::<Result<_, DecideError>>()?,
        next_actions: path
            .iter()
            .find(|task| !task.status.is_finished())
            .map(|task| Advice::explain(&task.task).into())
            .into_iter()
            .collect(),
        path,
        length: period(length),
        work: period(work),
        jobs,
        lower_bound: period(length.max(work.div_ceil(jobs as u64))),
        is_timed: !durations.is_empty(),
        tasks,
    })
}

fn period(millis: u64) -> Period {
    Period(Duration::from_millis(millis))
}

fn path_task(view: &dyn View, durations: &Durations, key: Key) -> Result<PathTask, DecideError> {
    let missing =
        || crate::view::ViewError(format!("the store has no task {key}, but it has its node").into());
    let task = view.task(key)?.ok_or_else(missing)?;
    let (takes, source) = durations.of(key);
    Ok(PathTask {
        status: task.body.state.status(),
        task: task.id,
        name: task.spec.name.clone(),
        takes: period(takes),
        source,
    })
}
