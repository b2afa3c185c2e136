//! Forecast of a run, in the form that is shown and serialized.

use crate::view::ReadGraph;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::authorize::{CallDecisions, look_at_calls};
use super::hypothesis::{Assumed, Hypothesis};
use super::opening::{OpenQuestion, TAKEN_TO_FAIL};
use super::simulate::{SimulationRules, Turn};
use super::tasks::ForecastTasks;
use super::waits;
use crate::advice::{Advice, Advised};
use crate::command::Refusal;
use crate::rules::DecideError;
use crate::rules::Means;
use crate::rules::means;
use crate::rules::scope::{resolve_among, select};
use crate::run::ranks::{Lengths, RunnerLimits};
use crate::task::policy_hook::PolicyHook;
use crate::task::record::{CallRecord, Node, StatusKind, TaskRecord, Work};
use crate::task::status::{BlockedReason, TaskStatus};
use crate::task::wait::WaitingFor;
use crate::value::Selector;
use crate::value::{CallId, Key, Period, TaskId, Timestamp};
use crate::view::DurationSource;
use crate::view::durations::Durations;
use crate::view::{View, ViewResult};

/// Options of a forecast.
#[derive(Debug, Clone, Default)]
pub struct ForecastOptions {
    /// Selectors that the run is restricted to; empty for all tasks.
    pub only: Vec<Selector>,
    /// Number of calls that run at once.
    pub jobs: usize,
    /// Tools and capacities of the run.
    pub means: Means,
    /// Assumed ends of tasks.
    pub what_if: Vec<Hypothesis>,
    /// The start of the run, which decides waits for a time.
    pub now: Timestamp,
    /// Policy hook that authorizes calls. Without one, only the authors of calls require approvals.
    pub policy_hook: Option<Arc<dyn PolicyHook>>,
}

/// Forecast of a run in which every call succeeds, every approval is given, and open conditions are true.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// Exit code: 0 all finished, 1 a task failed, 3 waiting for an approval, a person or an agent, 4 blocked
    /// otherwise.
    pub exit: u8,
    /// Number of tasks by their final status.
    pub counts: BTreeMap<String, u64>,
    /// Tasks that start, in waves: each wave could start once all earlier ones have ended.
    pub waves: Vec<Wave>,
    /// Total duration, if the duration of any task is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Period>,
    /// Number of calls that run at once.
    pub jobs: usize,
    /// Immediate consequences of the assumptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    /// Approvals that are needed. Without them the run ends with exit code 3, or asks on a terminal.
    pub approvals: Vec<ForecastApproval>,
    /// Conditions and lists that depend on unknown results.
    pub open: Vec<OpenQuestion>,
    /// Tasks that would fail, with the reason.
    pub failures: Vec<Foreseen>,
    /// Tasks that would not finish, with the reason.
    pub left: Vec<UnfinishedTask>,
    /// Commands to continue with.
    pub next_actions: Vec<Advised>,
}

/// Tasks that could start together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wave {
    /// Number of the wave, from 1.
    pub number: u64,
    /// Tasks in the order of the run.
    pub tasks: Vec<Planned>,
}

/// A task that would run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    /// Id of the task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Its start, relative to the start of the run, if durations are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_after: Option<Period>,
    /// Its duration, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes: Option<Period>,
    /// Source of the duration.
    pub source: DurationSource,
    /// True if it needs an approval first.
    pub asks: bool,
    /// Number of items of a `forEach`; `unknown` if the list cannot be evaluated yet, which counts as one item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Approach>,
}

/// Number of items of a `forEach`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Approach {
    /// The number.
    Known(usize),
    /// The list cannot be evaluated yet.
    Unknown(&'static str),
}

/// Immediate consequences of the assumptions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Effects {
    /// The assumptions.
    pub given: Vec<String>,
    /// Tasks that become ready.
    pub ready: Vec<TaskId>,
    /// Tasks that finish without running.
    pub done: Vec<TaskId>,
    /// Tasks that fail.
    pub failed: Vec<TaskId>,
    /// Tasks that can no longer start.
    pub blocked: Vec<TaskId>,
    /// Tasks that are no longer blocked.
    pub unblocked: Vec<TaskId>,
    /// Tasks that are skipped.
    pub skipped: Vec<TaskId>,
}

/// A task or call that needs an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastApproval {
    /// The task.
    pub task: TaskId,
    /// The call; absent if the whole task waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The policy rule that asks, and its location; absent if only the author asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// True if it is about the result of the task, once its calls have succeeded.
    #[serde(skip_serializing_if = "crate::task::spec::is_default")]
    pub after: bool,
}

/// A task that would fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Foreseen {
    /// The task.
    pub task: TaskId,
    /// Reason of the failure.
    pub reason: String,
}

/// A task that would not finish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnfinishedTask {
    /// The task.
    pub task: TaskId,
    /// Reason.
    pub reason: String,
    /// The first cause, if it is another task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_cause: Option<TaskId>,
}

/// Findings about the calls of a task.
#[derive(Default)]
struct CallInspection {
    lacks: Option<String>,
    verdict: CallDecisions,
    /// The wait that its calls begin.
    wait: Option<WaitingFor>,
}

/// Simulates a run without changing anything.
///
/// # Errors
/// A selector or an assumption matches no task, or the view cannot be read.
pub fn forecast(view: &dyn View, options: &ForecastOptions) -> Result<Forecast, DecideError> {
    let scope = select(view, &options.only)?;
    let is_inside = |key: Key| scope.as_ref().is_none_or(|scope| scope.contains(&key));
    let durations = Durations::load(view)?;
    let limits = RunnerLimits { jobs: Some(options.jobs), scope: scope.clone().map(Arc::new) };
    let ranks = Lengths::load(view, &durations, &limits)?.ranks();
    let mut board = ForecastTasks::load(view, options.now)?;
    let looks = look(&board, options, &is_inside)?;
    free(&mut board, options, &is_inside)?;
    let effects = suppose(&mut board, options)?;
    let may_take = |key: Key| is_inside(key) && looks.get(&key).is_none_or(|look| look.lacks.is_none());
    let jobs = options.jobs.max(1);
    let takes = |node: &Node, items: Option<usize>| {
        // Items beyond the number of jobs run in further rounds.
        let rounds = items.map_or(1, |items| items.div_ceil(jobs)) as u64;
        durations.of(node.key).0.saturating_mul(rounds.max(1))
    };
    let fails = |key: Key| looks.get(&key).and_then(|look| look.verdict.denied.as_deref());
    let waits = |key: Key| looks.get(&key).and_then(|look| look.wait.as_ref());
    let rules = |jobs, takes| SimulationRules {
        jobs,
        ranks: &ranks,
        takes,
        may_take: &may_take,
        fails: &fails,
        waits: &waits,
    };
    // Played twice: with durations for the start times, and with unlimited jobs and equal durations for the waves.
    let timed = rules(jobs, &takes).play(&mut board.clone())?;
    let steps = rules(usize::MAX, &|_, _| 1).play(&mut board)?;
    let writer = Writer { board: &board, durations: &durations, looks: &looks };
    let left = writer.left(&is_inside)?;
    Ok(Forecast {
        exit: writer.exit(&is_inside)?,
        counts: writer.counts(&is_inside),
        waves: writer.waves(&steps, &timed)?,
        duration: (!durations.is_empty())
            .then(|| period(timed.iter().map(|turn| turn.end).max().unwrap_or(0))),
        jobs,
        effects,
        approvals: writer.approvals(&steps)?,
        open: board.open.values().cloned().collect(),
        next_actions: next_actions(options, &steps, &left),
        failures: writer.failures(&is_inside)?,
        left,
    })
}

fn period(millis: u64) -> Period {
    Period(Duration::from_millis(millis))
}

/// Examines the calls of every task that may run.
fn look(
    board: &ForecastTasks<'_>,
    options: &ForecastOptions,
    is_inside: &dyn Fn(Key) -> bool,
) -> ViewResult<BTreeMap<Key, CallInspection>> {
    let mut looks = BTreeMap::new();
    let capacities = means::capacities(board.view, &options.means.capacities)?;
    for node in board.nodes.values() {
        // The calls of a list run in its items, which do not exist yet.
        if node.work == Work::Manual || node.status_kind.status().is_finished() || !is_inside(node.key) {
            continue;
        }
        let mut calls = board.view.calls(node.key)?;
        calls.retain(|call| !call.body.status.is_settled());
        if calls.is_empty() {
            continue;
        }
        let lacks = lacks(board.view, &options.means, &capacities, node, &calls)?;
        let verdict = look_at_calls(board.view, options.policy_hook.as_deref(), node)?;
        let wait = waits::begun_by(board.view, node.key, &calls, options.now)?;
        if lacks.is_some() || verdict != CallDecisions::default() || wait.is_some() {
            looks.insert(node.key, CallInspection { lacks, verdict, wait });
        }
    }
    Ok(looks)
}

/// Returns the first requirement of a task that the run does not meet, as text.
fn lacks(
    view: &dyn View,
    means: &Means,
    capacities: &BTreeMap<String, u32>,
    node: &Node,
    calls: &[CallRecord],
) -> ViewResult<Option<String>> {
    if let Some(tool) = means.missing_tool(calls) {
        return Ok(Some(format!("no tool `{tool}` here")));
    }
    let task = view.task(node.key)?;
    let too_much = task.as_ref().and_then(|task| means::too_much(&task.spec, capacities));
    Ok(too_much.map(|(name, amount)| means::too_much_text(&name, amount)))
}

/// Assumes that pending approvals are given, and unblocks tasks whose missing tool exists now.
fn free(
    board: &mut ForecastTasks<'_>,
    options: &ForecastOptions,
    is_inside: &dyn Fn(Key) -> bool,
) -> ViewResult<()> {
    let is_held = |node: &&Node| node.status_kind == StatusKind::BlockedOther && is_inside(node.key);
    let held: Vec<Key> = board.nodes.values().filter(is_held).map(|node| node.key).collect();
    for key in held {
        let Some(task) = board.view.task(key)? else { continue };
        match task.body.state.blocked_reason() {
            Some(BlockedReason::Approval { .. }) => {
                board.asking.insert(key);
                board.set_status_kind(key, StatusKind::Todo)?;
            }
            Some(BlockedReason::MissingTool { name }) if options.means.has_tool(name) => {
                board.set_status_kind(key, StatusKind::Todo)?;
            }
            _ => {}
        }
    }
    waits::take_stored(board)?;
    board.settle()
}

/// Returns the task of each assumption; refuses two different ends of one task.
fn resolved<'h>(
    view: &dyn View,
    options: &'h ForecastOptions,
) -> Result<Vec<(Key, &'h Hypothesis)>, DecideError> {
    let mut hows = BTreeMap::new();
    let mut given = Vec::with_capacity(options.what_if.len());
    for hypothesis in &options.what_if {
        let key = resolve_among(view, &options.only, &hypothesis.task)?;
        let before = *hows.entry(key).or_insert(hypothesis);
        if before.how != hypothesis.how {
            let (first, second) = (before.to_string(), hypothesis.to_string());
            return Err(Refusal::Contradiction { first, second }.into());
        }
        given.push((key, hypothesis));
    }
    Ok(given)
}

/// Applies the assumed ends and returns their immediate consequences.
fn suppose(board: &mut ForecastTasks<'_>, options: &ForecastOptions) -> Result<Option<Effects>, DecideError> {
    let what_if = &options.what_if;
    if what_if.is_empty() {
        return Ok(None);
    }
    let before = board.nodes.clone();
    let hypotheses = resolved(board.view, options)?;
    let given: BTreeSet<Key> = hypotheses.iter().map(|(key, _)| *key).collect();
    for (key, hypothesis) in hypotheses {
        match hypothesis.how {
            Assumed::Skip => board.skip_tree(key)?,
            Assumed::Done => board.set_status_kind(key, StatusKind::Done)?,
            Assumed::Fail => board.set_status_kind(key, StatusKind::Failed)?,
        }
        board.settle()?;
    }
    let mut effects =
        Effects { given: what_if.iter().map(ToString::to_string).collect(), ..Effects::default() };
    for node in board.nodes.values().filter(|node| !given.contains(&node.key)) {
        let old = &before[&node.key];
        let list = match (old.status_kind, node.status_kind) {
            (old, new) if old == new => None,
            (_, StatusKind::Done) => Some(&mut effects.done),
            (_, StatusKind::Failed) => Some(&mut effects.failed),
            (_, StatusKind::BlockedDependency) => Some(&mut effects.blocked),
            (_, StatusKind::Skipped) => Some(&mut effects.skipped),
            (StatusKind::BlockedDependency, _) => Some(&mut effects.unblocked),
            _ => None,
        };
        if let Some(list) = list {
            list.extend(board.view.id(node.key)?);
        }
        if node.is_ready() && !old.is_ready() {
            effects.ready.extend(board.view.id(node.key)?);
        }
    }
    Ok(Some(effects))
}

fn next_actions(options: &ForecastOptions, steps: &[Turn], left: &[UnfinishedTask]) -> Vec<Advised> {
    let mut actions = Vec::new();
    if !steps.is_empty() {
        actions.push(Advice::run_ready(&options.only).into());
    }
    if let Some(first) = left.first() {
        actions.push(Advice::explain(&first.task).into());
    }
    actions
}

/// Builds the forecast from the simulated nodes at the end.
struct Writer<'w> {
    board: &'w ForecastTasks<'w>,
    durations: &'w Durations,
    looks: &'w BTreeMap<Key, CallInspection>,
}

impl Writer<'_> {
    fn task(&self, key: Key) -> ViewResult<TaskRecord> {
        let missing =
            || crate::view::ViewError(format!("the store has no task {key}, but it has its node").into());
        self.board.view.task(key)?.ok_or_else(missing)
    }

    fn waves(&self, steps: &[Turn], timed: &[Turn]) -> ViewResult<Vec<Wave>> {
        let starts: BTreeMap<Key, u64> = timed.iter().map(|turn| (turn.key, turn.start)).collect();
        let positions: BTreeMap<Key, usize> =
            timed.iter().enumerate().map(|(position, turn)| (turn.key, position)).collect();
        let mut sorted: Vec<&Turn> = steps.iter().collect();
        sorted.sort_by_key(|turn| (turn.start, positions.get(&turn.key).copied()));
        let mut waves: Vec<Wave> = Vec::new();
        for turn in sorted {
            let number = turn.start + 1;
            if waves.last().is_none_or(|wave| wave.number != number) {
                waves.push(Wave { number, tasks: Vec::new() });
            }
            let planned = self.planned(turn.key, starts.get(&turn.key).copied())?;
            waves.last_mut().expect("BUG: a wave was just added").tasks.push(planned);
        }
        Ok(waves)
    }

    fn planned(&self, key: Key, start: Option<u64>) -> ViewResult<Planned> {
        let task = self.task(key)?;
        let (takes, source) = self.durations.of(key);
        let is_known = !self.durations.is_empty();
        let items = self.board.items.get(&key).map(|items| match items {
            Some(count) => Approach::Known(*count),
            None => Approach::Unknown("unknown"),
        });
        Ok(Planned {
            task: task.id,
            name: task.spec.name.clone(),
            starts_after: start.filter(|_| is_known).map(period),
            takes: is_known.then(|| period(takes)),
            source,
            asks: self.board.asking.contains(&key)
                || self.looks.get(&key).is_some_and(|look| look.verdict.asks()),
            items,
        })
    }

    fn approvals(&self, steps: &[Turn]) -> ViewResult<Vec<ForecastApproval>> {
        let mut keys: BTreeSet<Key> = self.board.asking.clone();
        let asks = |key: &Key| self.looks.get(key).is_some_and(|look| look.verdict.asks());
        keys.extend(steps.iter().map(|turn| turn.key).filter(asks));
        for turn in steps {
            if self.task(turn.key)?.spec.approval_after().is_some() {
                keys.insert(turn.key);
            }
        }
        let mut asked = Vec::new();
        for key in keys {
            let TaskRecord { id: task, spec, .. } = self.task(key)?;
            let verdict = self.looks.get(&key).map(|look| look.verdict.clone()).unwrap_or_default();
            let is_whole = self.board.asking.contains(&key) && verdict.calls.is_empty();
            if is_whole || verdict.list.is_some() {
                asked.push(ForecastApproval {
                    task: task.clone(),
                    call: None,
                    why: verdict.list,
                    after: false,
                });
            }
            let of_call =
                |(call, why)| ForecastApproval { task: task.clone(), call: Some(call), why, after: false };
            asked.extend(verdict.calls.into_iter().map(of_call));
            if spec.approval_after().is_some() {
                asked.push(ForecastApproval { task: task.clone(), call: None, why: None, after: true });
            }
        }
        Ok(asked)
    }

    fn counts(&self, is_inside: &dyn Fn(Key) -> bool) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for node in self.board.nodes.values().filter(|node| is_inside(node.key)) {
            *counts.entry(node.status_kind.status().as_str().to_owned()).or_default() += 1;
        }
        counts
    }

    /// Returns the exit code in the order of runs: failed, blocked, waiting, unfinished.
    fn exit(&self, is_inside: &dyn Fn(Key) -> bool) -> ViewResult<u8> {
        let (mut failed, mut blocked, mut waiting, mut left) = (false, false, false, false);
        for node in self.board.nodes.values().filter(|node| is_inside(node.key)) {
            match node.status_kind {
                StatusKind::Failed => failed = true,
                StatusKind::BlockedDependency | StatusKind::BlockedWaiting => blocked = true,
                StatusKind::BlockedOther => {
                    let task = self.task(node.key)?;
                    let reason = task.body.state.blocked_reason();
                    let waits = matches!(
                        reason,
                        Some(BlockedReason::Interrupted { .. } | BlockedReason::Approval { .. })
                    );
                    if waits { waiting = true } else { blocked = true }
                }
                StatusKind::InProgress => waiting = true,
                StatusKind::Todo if self.board.waits.contains_key(&node.key) => waiting = true,
                StatusKind::Todo if node.is_ready() && node.work == Work::Manual => waiting = true,
                StatusKind::Todo if node.is_ready() => blocked = true,
                StatusKind::Todo => left = true,
                StatusKind::Done | StatusKind::Cancelled | StatusKind::Skipped => {}
            }
            blocked |= self.board.failures.contains_key(&node.key) && node.status_kind == StatusKind::Todo;
        }
        Ok(if failed {
            1
        } else if blocked {
            4
        } else if waiting {
            3
        } else if left {
            4
        } else {
            0
        })
    }

    /// Returns the tasks that would fail, with the reason.
    fn failures(&self, is_inside: &dyn Fn(Key) -> bool) -> ViewResult<Vec<Foreseen>> {
        let has_failed = |node: &&Node| node.status_kind == StatusKind::Failed && is_inside(node.key);
        let foreseen = |node: &Node| {
            let record = self.task(node.key)?;
            let reason = match (self.board.failures.get(&node.key), &record.body.state) {
                (Some(why), _) => why.clone(),
                (None, TaskStatus::Failed { error, .. }) => error.clone(),
                (None, _) => TAKEN_TO_FAIL.to_owned(),
            };
            Ok(Foreseen { task: record.id, reason })
        };
        self.board.nodes.values().filter(has_failed).map(foreseen).collect()
    }

    /// Returns the tasks that would not finish, with their first causes.
    fn left(&self, is_inside: &dyn Fn(Key) -> bool) -> ViewResult<Vec<UnfinishedTask>> {
        let is_left = |node: &Node| !node.status_kind.status().is_finished();
        let mut roots: BTreeMap<Key, String> = BTreeMap::new();
        for node in self.board.nodes.values() {
            if let Some(reason) = self.own_reason(node)? {
                roots.insert(node.key, reason);
            }
        }
        let hangs_at = self.spread(&roots)?;
        let mut left = Vec::new();
        for node in self.board.nodes.values().filter(|node| is_left(node) && is_inside(node.key)) {
            let task = self.task(node.key)?.id;
            if let Some(reason) = roots.get(&node.key) {
                left.push(UnfinishedTask { task, reason: reason.clone(), first_cause: None });
                continue;
            }
            let (reason, first_cause) = match hangs_at.get(&node.key) {
                Some(root) => (roots[root].clone(), Some(self.task(*root)?.id)),
                None => ("it is outside the scope or waits for a task outside it".to_owned(), None),
            };
            left.push(UnfinishedTask { task, reason, first_cause });
        }
        Ok(left)
    }

    /// Returns for each unfinished task the nearest root that it depends on, or lies above or below.
    fn spread(&self, roots: &BTreeMap<Key, String>) -> ViewResult<BTreeMap<Key, Key>> {
        let mut hangs_at: BTreeMap<Key, Key> = roots.keys().map(|key| (*key, *key)).collect();
        let mut queue: std::collections::VecDeque<Key> = roots.keys().copied().collect();
        while let Some(key) = queue.pop_front() {
            let root = hangs_at[&key];
            let parent = self.board.nodes[&key].parent;
            let (dependents, subtasks) = (self.board.dependents(key)?, self.board.subtasks(key)?);
            for next in dependents.into_iter().chain(subtasks).chain(parent) {
                let is_left = !self.board.status_kind(next).status().is_finished();
                if is_left && !hangs_at.contains_key(&next) {
                    hangs_at.insert(next, root);
                    queue.push_back(next);
                }
            }
        }
        Ok(hangs_at)
    }

    /// Returns the reason of its own why a task is unfinished or has failed.
    fn own_reason(&self, node: &Node) -> ViewResult<Option<String>> {
        let key = node.key;
        if let Some(why) = self.board.failures.get(&key) {
            return Ok(Some(why.clone()));
        }
        let may_wait = matches!(node.status_kind, StatusKind::Todo | StatusKind::InProgress);
        if let Some(wait) = self.board.waits.get(&key).filter(|_| may_wait) {
            return Ok(Some(wait.to_string()));
        }
        let lacks = self.looks.get(&key).and_then(|look| look.lacks.as_ref());
        if let Some(lacks) = lacks.filter(|_| node.is_ready()) {
            return Ok(Some(lacks.clone()));
        }
        Ok(match node.status_kind {
            StatusKind::Todo if node.is_ready() && node.work == Work::Manual => {
                Some("it is for an agent or a person".to_owned())
            }
            StatusKind::InProgress => {
                let state = self.task(key)?.body.state.clone();
                let TaskStatus::InProgress { claim } = state else { return Ok(Some("it runs".to_owned())) };
                Some(format!("it is held by {}", claim.actor))
            }
            StatusKind::BlockedOther => {
                let task = self.task(key)?;
                task.body.state.blocked_reason().map(crate::insight::explain::block_text)
            }
            StatusKind::Failed => Some("it failed".to_owned()),
            StatusKind::Cancelled => Some("it was cancelled".to_owned()),
            StatusKind::Todo
            | StatusKind::BlockedDependency
            | StatusKind::BlockedWaiting
            | StatusKind::Done
            | StatusKind::Skipped => None,
        })
    }
}
