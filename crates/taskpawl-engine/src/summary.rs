//! Summary of a run: the status of its scope, and suggestions for the next step.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use taskpawl_model::advice::{Advice, Advised};
use taskpawl_model::command::{Context, Needs};
use taskpawl_model::insight::{Explanation, Facts, explain};
use taskpawl_model::rules::Means;
use taskpawl_model::rules::all_offered;
use taskpawl_model::run::run_loop::{EndedEarly, RunReport, RunUsage};
use taskpawl_model::run::schedule::Stop;
use taskpawl_model::task::{
    ActorKind, BlockedReason, CallStatus, FailureClass, Grant, Status, StatusKind, Task, TaskStatus, Work,
};
use taskpawl_model::value::Selector;
use taskpawl_model::value::{CallId, Key, RunId, TaskId, paths};
use taskpawl_model::view::why_interrupted;
use taskpawl_model::view::{Query, View, ViewResult, Waits};
use taskpawl_model::view::{grants_for, read_task};
use taskpawl_tools::Isolation;

use crate::remembered::RememberedGrants;

/// Number of waiting tasks for which a command is suggested if several wait.
const MAX_NAMED: usize = 5;

/// Number of tasks that each list names; the counts include all.
pub(crate) const MAX_LISTED: usize = 50;

/// Status of the scope of a run at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunSummary {
    /// Id of the run.
    pub run: RunId,
    /// Exit code: 0 all tasks finished, 1 a task failed, 3 a task waits for an approval, an agent or a decision, 4
    /// blocked for another reason, 130 stopped.
    pub exit: u8,
    /// Number of tasks of the scope by status.
    pub counts: BTreeMap<String, u64>,
    /// Number of tasks that ended during the run, by final status.
    pub ended: BTreeMap<String, u64>,
    /// Failed tasks, grouped by tool and error class.
    pub failures: Vec<FailureGroup>,
    /// Tasks that wait for an agent, a person or a decision. Lists at most 50 ready and 50 claimed tasks.
    pub waiting: Vec<Waiting>,
    /// Number of waiting tasks that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting_unlisted: u64,
    /// Tasks that are blocked for a reason other than a failed dependency, at most the first 50.
    pub blocked: Vec<Waiting>,
    /// Number of blocked tasks that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blocked_unlisted: u64,
    /// Tasks that this run could not start.
    pub not_run: Vec<NotRun>,
    /// Limits of the run and of plans because of which nothing more was started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_early: Vec<EndedEarly>,
    /// Consumption of the run.
    pub spent: RunUsage,
    /// Number of tasks that succeeded without running, because their inputs had not changed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// Tasks during which files changed that the task does not declare, at most the first 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_beyond: Vec<ChangedBeyond>,
    /// New files that other programs run or load without asking, and that no call has reported: those of this run, and those of earlier runs
    /// that were killed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_files: Vec<LateFilesOfRun>,
    /// The lowest level of the sandbox among its programs, unless all had the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Panic message of the observer, which received no events afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observer_error: Option<String>,
    /// Suggested commands for the next step. They are written as text, and not read back: they hold for the store at the end of the run.
    #[serde(skip_deserializing)]
    pub next_actions: Vec<Advised>,
}

/// Tasks that failed in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FailureGroup {
    /// Name of the tool; empty for tasks that failed without a failed call.
    pub tool: String,
    /// Error class of the tool. Without a tool: `expression`, `rounds`, or `reported` by a person or agent.
    pub class: String,
    /// Number of tasks, including the unlisted ones.
    pub count: u64,
    /// The tasks with their errors, at most the first 50.
    pub tasks: Vec<FailedTask>,
    /// Number of tasks that cannot start because of these failures.
    pub blocks: u64,
}

/// A failed task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FailedTask {
    /// Id of the task.
    pub task: TaskId,
    /// Error message, with the last line of the program's output if there is one.
    pub error: String,
}

/// A waiting or blocked task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Waiting {
    /// Id of the task.
    pub task: TaskId,
    /// Name of the task.
    pub name: String,
    /// Text for users: the thing that it waits for.
    pub reason: String,
    /// Suggested commands for the task. They are written as text, and not read back.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Advised>,
}

/// A task that could not be started by this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotRun {
    /// Id of the task.
    pub task: TaskId,
    /// Text for users.
    pub reason: String,
}

/// Files that changed while a task ran although the task does not declare that it writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChangedBeyond {
    /// Id of the task.
    pub task: TaskId,
    /// Paths relative to the project, sorted.
    pub files: Vec<String>,
    /// Set if `files` is incomplete: the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// New files that other programs run or load without asking, and that no call of their run has reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LateFilesOfRun {
    /// The run during which they came, or since whose start they came.
    pub run: RunId,
    /// Paths relative to the project where they lie in it, at most the first 100.
    pub files: Vec<String>,
    /// Number of files that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted: u64,
    /// Set if the search was not finished: the reason. The next run searches again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

impl Waiting {
    /// Returns the most useful single command. If there is a choice to make, that is the command that shows the task.
    fn command(&self) -> Advised {
        let count =
            |is: fn(&Advice) -> bool| self.commands.iter().filter(|advised| is(advised.advice())).count();
        let approvals = count(|advice| matches!(advice, Advice::Approve { .. }));
        let claims = count(|advice| matches!(advice, Advice::Claim { .. }));
        match (approvals, claims, self.commands.first()) {
            (1, _, Some(first)) | (0, 1.., Some(first)) => first.clone(),
            _ => Advice::show(&self.task).into(),
        }
    }
}

/// Data of a finished run from which the summary is built.
pub(crate) struct Summarizer {
    pub(crate) run: RunId,
    pub(crate) report: RunReport,
    pub(crate) cached: u64,
    pub(crate) changed_beyond: Vec<ChangedBeyond>,
    pub(crate) isolation: Option<Isolation>,
    /// Exit code for a run that was asked to stop.
    pub(crate) stopped_with: u8,
    /// Actor and time for which the suggestions have to be valid.
    pub(crate) asker: Context,
    /// Grants that later runs have without a flag.
    pub(crate) remembered: RememberedGrants,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Summarizer {
    pub(crate) fn summarize(self, view: &dyn View) -> ViewResult<RunSummary> {
        let counts = self.counts(view)?;
        let (failures, behind) = self.failures(view)?;
        let mut not_run = self.not_run(view)?;
        let Unfinished { mut waiting, waiting_unlisted, blocked, blocked_unlisted } =
            self.unfinished(view, &behind)?;
        for (key, needs) in &self.report.unmet {
            if view.node(*key)?.is_some_and(|node| node.is_ready()) {
                waiting.extend(line(view, *key, &held_text(needs))?);
            }
        }
        let has = |status: Status| counts.get(status.as_str()).is_some_and(|count| *count > 0);
        let exit = match self.report.stop {
            Stop::Soft | Stop::Hard => self.stopped_with,
            // The first match wins: a failure outweighs tasks that wait or are blocked.
            Stop::No | Stop::Early if has(Status::Failed) => 1,
            Stop::No | Stop::Early if !blocked.is_empty() || !not_run.is_empty() => 4,
            Stop::No | Stop::Early if !waiting.is_empty() || has(Status::InProgress) => 3,
            Stop::No | Stop::Early if has(Status::Todo) || has(Status::Blocked) => 4,
            Stop::No | Stop::Early => 0,
        };
        // These tasks do not affect the exit code, because they are already counted by their own status. The list only
        // adds the reason.
        not_run.extend(self.waits_outside(view)?);
        // A limit that was reached with the last task has prevented nothing.
        let ended_early = if exit == 0 { Vec::new() } else { self.report.ended_early.clone() };
        let first_failed = failures.iter().find_map(|group| group.tasks.first()).map(|task| &task.task);
        let next = Next {
            has_logs: first_failed.map_or(Ok(false), |task| has_logs(view, task))?,
            first_failed,
            is_unfinished: matches!(self.report.stop, Stop::Soft | Stop::Hard) || !ended_early.is_empty(),
            only: &self.report.only,
            grants: self.grants(view)?,
            waiting: &waiting,
            blocked: &blocked,
            not_run: &not_run,
        };
        let next_actions = next.actions();
        let (run, RunReport { ended, spent, .. }) = (self.run, self.report);
        let ended = ended.into_iter().map(|(status, count)| (status.as_str().to_owned(), count)).collect();
        Ok(RunSummary {
            ended_early,
            spent,
            cached: self.cached,
            changed_beyond: self.changed_beyond,
            isolation: self.isolation,
            run,
            exit,
            counts,
            ended,
            failures,
            waiting,
            waiting_unlisted,
            blocked,
            blocked_unlisted,
            not_run,
            late_files: Vec::new(),
            observer_error: None,
            next_actions,
        })
    }

    fn find(&self, view: &dyn View, query: &Query) -> ViewResult<Vec<Key>> {
        let mut keys = view.find(query)?;
        if let Some(scope) = &self.report.scope {
            keys.retain(|key| scope.contains(key));
        }
        Ok(keys)
    }

    fn is_inside(&self, key: Key) -> bool {
        self.report.scope.as_ref().is_none_or(|scope| scope.contains(&key))
    }

    fn with_status(&self, view: &dyn View, status: Status) -> ViewResult<Vec<Key>> {
        self.find(view, &Query { status: vec![status], ..Query::default() })
    }

    fn counts(&self, view: &dyn View) -> ViewResult<BTreeMap<String, u64>> {
        let Some(scope) = &self.report.scope else {
            let counts = view.counts()?;
            let named = counts.into_iter().filter(|(_, count)| *count > 0);
            return Ok(named.map(|(status, count)| (status.as_str().to_owned(), count)).collect());
        };
        let mut counts = BTreeMap::new();
        for key in scope {
            if let Some(node) = view.node(*key)? {
                *counts.entry(node.status_kind.status().as_str().to_owned()).or_default() += 1;
            }
        }
        Ok(counts)
    }

    /// Returns the groups of failed tasks, and all tasks that cannot start because of them.
    fn failures(&self, view: &dyn View) -> ViewResult<(Vec<FailureGroup>, BTreeSet<Key>)> {
        let mut all = BTreeSet::new();
        let mut groups: BTreeMap<(String, String), (FailureGroup, BTreeSet<Key>)> = BTreeMap::new();
        for key in self.with_status(view, Status::Failed)? {
            let Some(task) = read_task(view, key)? else { continue };
            let (tool, class) = failure_kind(&task);
            let (group, behind) = groups.entry((tool.clone(), class.clone())).or_insert_with(|| {
                (FailureGroup { tool, class, count: 0, tasks: Vec::new(), blocks: 0 }, BTreeSet::new())
            });
            group.count += 1;
            add_blocked_behind(view, key, behind)?;
            if group.tasks.len() < MAX_LISTED {
                group.tasks.push(FailedTask { task: task.id, error: task.error.unwrap_or_default() });
            }
        }
        let groups = groups.into_values().map(|(group, behind)| {
            let blocks = behind.len() as u64;
            all.extend(behind);
            FailureGroup { blocks, ..group }
        });
        Ok((groups.collect(), all))
    }

    /// Returns the grants that the failed calls of the scope would probably have needed, each once.
    /// Only a person may widen the sandbox, so that an agent gets none.
    fn grants(&self, view: &dyn View) -> ViewResult<Vec<Grant>> {
        if self.asker.kind == ActorKind::Agent {
            return Ok(Vec::new());
        }
        let mut grants = BTreeSet::new();
        for key in self.with_status(view, Status::Failed)?.into_iter().take(MAX_LISTED) {
            let Some(task) = view.task(key)? else { continue };
            let calls = view.calls(key)?;
            grants.extend(grants_for(&task, &calls, Some(&self.remembered)).cloned());
        }
        Ok(grants.into_iter().take(MAX_NAMED).collect())
    }

    fn not_run(&self, view: &dyn View) -> ViewResult<Vec<NotRun>> {
        let mut not_run = Vec::new();
        for (key, tool) in &self.report.missing_tools {
            if let Some(node) = view.node(*key)?
                && node.is_ready()
                && let Some(task) = view.id(*key)?
            {
                not_run.push(NotRun { task, reason: format!("no tool `{tool}` here") });
            }
        }
        for (key, reason) in &self.report.never_fits {
            if let Some(node) = view.node(*key)?
                && node.is_ready()
                && let Some(task) = view.id(*key)?
            {
                not_run.push(NotRun { task, reason: reason.clone() });
            }
        }
        Ok(not_run)
    }

    /// Returns the tasks that wait for tasks outside of the scope of the run.
    fn waits_outside(&self, view: &dyn View) -> ViewResult<Vec<NotRun>> {
        let Some(scope) = self.report.scope.as_ref().filter(|_| matches!(self.report.stop, Stop::No)) else {
            return Ok(Vec::new());
        };
        let mut waiting = Vec::new();
        for key in self.with_status(view, Status::Todo)? {
            if waiting.len() == MAX_LISTED {
                break;
            }
            if view.node(key)?.is_some_and(|node| node.is_ready()) {
                continue;
            }
            let outside = unfinished_outside(view, key, scope)?;
            if let (Some(first), Some(task)) = (outside.first(), view.id(key)?) {
                let more = if outside.len() > 1 {
                    format!(" and {} more", outside.len() - 1)
                } else {
                    String::new()
                };
                let reason = format!("waits for `{first}`{more}, which this run does not include");
                waiting.push(NotRun { task, reason });
            }
        }
        Ok(waiting)
    }

    /// Returns the tasks that wait for a person or agent, and those that are blocked by something else than a failure.
    /// `behind` contains the tasks that are blocked by failures.
    fn unfinished(&self, view: &dyn View, behind: &BTreeSet<Key>) -> ViewResult<Unfinished> {
        let (mut waiting, mut blocked) = (Vec::new(), Vec::new());
        let manual = self.find(view, &Query { ready: Some(vec![Work::Manual]), ..Query::default() })?;
        for key in manual.iter().take(MAX_LISTED) {
            let manual = line(view, *key, "a ready manual task")?;
            let record = view.task(*key)?;
            let assignee = record.as_ref().and_then(|record| record.spec.assignee.as_deref());
            if let Some(task) = manual {
                let commands = self.offers(view, by_hand(&task.task, assignee))?;
                waiting.push(Waiting { commands, ..task });
            }
        }
        let held = self.with_status(view, Status::InProgress)?;
        let unlisted = manual.len().saturating_sub(MAX_LISTED) + held.len().saturating_sub(MAX_LISTED);
        for key in held.into_iter().take(MAX_LISTED) {
            let Some(task) = view.task(key)? else { continue };
            let reason = match task.body.progress.waiting_for.as_deref() {
                Some(wait) => wait.to_string(),
                None => format!("held by {}", holder(&task.body.state).unwrap_or_default()),
            };
            waiting.extend(line(view, key, &reason)?);
        }
        // Tasks that may not start before a time, and whose gate is open otherwise.
        for key in view.waiting(Waits::All)?.into_iter().filter(|key| self.is_inside(*key)).take(MAX_LISTED) {
            let Some(task) = view.task(key)? else { continue };
            let is_next = view.node(key)?.is_some_and(|node| node.gate.is_to_be_opened());
            if let Some(wait) = task.body.progress.waiting_for.as_deref().filter(|_| is_next) {
                waiting.extend(line(view, key, &wait.to_string())?);
            }
        }
        let mut blocked_unlisted = 0;
        for key in self.with_status(view, Status::Blocked)? {
            if behind.contains(&key) {
                continue;
            }
            let Some(task) = read_task(view, key)? else { continue };
            let Some(reason) = &task.blocked_reason else { continue };
            match reason {
                // The request has expired, but no process has recorded that yet: it can no longer be approved.
                BlockedReason::Approval { expires_at: Some(end), .. } if *end <= self.asker.now => {
                    waiting.push(self.explained(view, key, &task, reason)?);
                }
                BlockedReason::Approval { .. } | BlockedReason::Interrupted { .. } => {
                    let text = interruption(view, key, reason)?.unwrap_or_else(|| reason_text(reason));
                    let (reason, commands) = (text, self.offers(view, decisions(&task.id, reason))?);
                    waiting.push(Waiting { task: task.id, name: task.name, reason, commands });
                }
                BlockedReason::Dependency { .. }
                | BlockedReason::Waiting { .. }
                | BlockedReason::MissingTool { .. }
                | BlockedReason::Manual { .. } => {
                    if blocked.len() < MAX_LISTED {
                        blocked.push(self.explained(view, key, &task, reason)?);
                    } else {
                        blocked_unlisted += 1;
                    }
                }
            }
        }
        Ok(Unfinished { waiting, waiting_unlisted: unlisted as u64, blocked, blocked_unlisted })
    }

    /// Returns those commands that the model would accept now.
    fn offers(&self, view: &dyn View, advice: Vec<Advice>) -> ViewResult<Vec<Advised>> {
        Ok(all_offered(view, advice, &self.asker)?.into_iter().map(Advised::from).collect())
    }

    /// Returns a blocked task, with the commands that resolve its first cause.
    fn explained(
        &self,
        view: &dyn View,
        key: Key,
        task: &Task,
        reason: &BlockedReason,
    ) -> ViewResult<Waiting> {
        let means = Means::default();
        let asker = Some(&self.asker);
        // Every run counts as alive: this run has recovered the dead ones before it ended.
        let facts = Facts { now: self.asker.now, is_alive: &|_| true, means: &means, asker };
        let Explanation { chain, first_cause, next_actions, .. } = explain(view, key, &facts)?;
        let mut reason_text = reason_text(reason);
        if let BlockedReason::Dependency { ids } = reason {
            let is_direct = ids.len() == 1 && chain.len() == 2;
            let cause = if is_direct { String::new() } else { format!("`{}` ", first_cause.task) };
            reason_text = format!("{reason_text}: {cause}{}", first_cause.text);
        }
        let (task, name) = (task.id.clone(), task.name.clone());
        Ok(Waiting { task, name, reason: reason_text, commands: next_actions })
    }
}

fn holder(state: &TaskStatus) -> Option<&str> {
    if let TaskStatus::InProgress { claim } = state { Some(claim.actor.as_str()) } else { None }
}

struct Unfinished {
    waiting: Vec<Waiting>,
    waiting_unlisted: u64,
    blocked: Vec<Waiting>,
    blocked_unlisted: u64,
}

fn line(view: &dyn View, key: Key, reason: &str) -> ViewResult<Option<Waiting>> {
    let task = view.task(key)?;
    Ok(task.map(|task| Waiting {
        task: task.id,
        name: task.spec.name.clone(),
        reason: reason.to_owned(),
        commands: Vec::new(),
    }))
}

/// Returns the tool of the failed call, or an empty string if no call failed, and the error class.
fn failure_kind(task: &Task) -> (String, String) {
    let failed = task.metadata.tool_calls.iter().find(|call| call.status == CallStatus::Failed);
    match (task.error_class, failed) {
        (None, Some(call)) => (call.tool_name.clone(), call.error_class.clone().unwrap_or_default()),
        (class, _) => (String::new(), class.unwrap_or(FailureClass::Reported).to_string()),
    }
}

/// Returns whether any call of a task was started, so that there may be logs.
fn has_logs(view: &dyn View, id: &TaskId) -> ViewResult<bool> {
    let Some(key) = view.key(id.as_str())? else { return Ok(false) };
    Ok(view.calls(key)?.iter().any(|call| call.body.attempts > 0))
}

/// Adds the tasks that cannot start because of a failed one. Tasks that are already in `seen` are not visited again.
fn add_blocked_behind(view: &dyn View, key: Key, seen: &mut BTreeSet<Key>) -> ViewResult<()> {
    let mut queue = vec![key];
    while let Some(key) = queue.pop() {
        let parent = view.node(key)?.and_then(|node| node.parent);
        for behind in view.dependents(key)?.into_iter().chain(view.subtasks(key)?).chain(parent) {
            if view.node(behind)?.is_some_and(|node| node.status_kind == StatusKind::BlockedDependency)
                && seen.insert(behind)
            {
                queue.push(behind);
            }
        }
    }
    Ok(())
}

/// Returns the reason of a blocked task if a call of it was interrupted and a cause is recorded.
pub(crate) fn interruption(view: &dyn View, key: Key, reason: &BlockedReason) -> ViewResult<Option<String>> {
    let BlockedReason::Interrupted { call } = reason else { return Ok(None) };
    let why = why_interrupted(view, key, call)?;
    Ok(why.map(|why| format!("call `{call}` was interrupted: {why}; {DECIDE}")))
}

/// Advice about an interrupted call.
const DECIDE: &str = "check its effects, then `done`, `fail`, or `unblock` to start it again";

/// Returns the reason why a task is blocked, as a text for people and models.
pub(crate) fn reason_text(reason: &BlockedReason) -> String {
    let list = |ids: &[TaskId]| ids.iter().take(5).map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    match reason {
        BlockedReason::Dependency { ids } => format!("cannot start because of {}", list(ids)),
        BlockedReason::Waiting { ids } => format!("waits for {}", list(ids)),
        BlockedReason::Approval { call, ask, options, why, .. } => {
            let question = question_text(call.as_ref(), ask.as_deref(), options);
            why.as_ref().map_or_else(|| question.clone(), |why| format!("{question}: {why}"))
        }
        BlockedReason::MissingTool { name } => format!("no tool `{name}` here"),
        BlockedReason::Interrupted { call } => {
            format!("call `{call}` was interrupted, and its progress is unknown: {DECIDE}")
        }
        BlockedReason::Manual { text } => format!("blocked by hand: {text}"),
    }
}

fn question_text(call: Option<&CallId>, ask: Option<&str>, options: &[String]) -> String {
    let what = match (ask, call) {
        (Some(ask), _) => format!("asks: {ask}"),
        (None, Some(call)) => format!("call `{call}` waits for an approval"),
        (None, None) => "waits for an approval".to_owned(),
    };
    if options.is_empty() { what } else { format!("{what} ({})", options.join(", ")) }
}

/// Returns the commands for a manual task.
fn by_hand(task: &TaskId, assignee: Option<&str>) -> Vec<Advice> {
    Advice::to_end(task, assignee)
}

/// Returns the commands that settle a blocked task.
fn decisions(task: &TaskId, reason: &BlockedReason) -> Vec<Advice> {
    if let BlockedReason::Approval { options, .. } = reason {
        Advice::decisions(task, options)
    } else {
        Advice::settlements(task).into()
    }
}

/// Returns the unfinished tasks outside of `scope` that a task depends on, directly or through its parents.
fn unfinished_outside(view: &dyn View, key: Key, scope: &BTreeSet<Key>) -> ViewResult<Vec<TaskId>> {
    let (mut outside, mut at) = (Vec::new(), Some(key));
    while let Some(task) = at {
        for on in view.dependencies(task)? {
            let Some(node) = view.node(on)?.filter(|_| !scope.contains(&on)) else { continue };
            if !matches!(node.status_kind.status(), Status::Done | Status::Skipped) {
                outside.extend(view.id(on)?);
            }
        }
        at = view.node(task)?.and_then(|node| node.parent);
    }
    Ok(outside)
}

/// Input for the suggested commands.
struct Next<'s> {
    /// True if the run stopped before everything possible was done.
    is_unfinished: bool,
    only: &'s [Selector],
    /// Grants for failed calls that the sandbox probably stopped.
    grants: Vec<Grant>,
    first_failed: Option<&'s TaskId>,
    /// True if calls of the first failed task were started.
    has_logs: bool,
    waiting: &'s [Waiting],
    blocked: &'s [Waiting],
    not_run: &'s [NotRun],
}

impl Next<'_> {
    /// Adds commands for waiting tasks: all of them if only one task waits, otherwise one for each of the first five.
    fn wait_for(&self, actions: &mut Vec<Advised>) {
        match self.waiting {
            [] => return,
            [task] => {
                let show = Advice::show(&task.task).into();
                actions.extend(std::iter::once(show).chain(task.commands.iter().cloned()));
                actions.dedup();
            }
            several => actions.extend(several.iter().take(MAX_NAMED).map(Waiting::command)),
        }
        let is_interrupted = |task: &&Waiting| {
            task.commands.iter().any(|advised| matches!(advised.advice(), Advice::Unblock { .. }))
        };
        if self.waiting.iter().filter(is_interrupted).count() > 1 {
            actions.push(Advice::UnblockInterrupted { only: self.only.to_vec() }.into());
        }
        if self.waiting.iter().any(|task| !task.commands.is_empty()) {
            actions.push(Advice::run_ready(self.only).into());
        }
    }

    /// Returns the suggested commands, the most urgent first.
    fn actions(&self) -> Vec<Advised> {
        let mut actions = Vec::new();
        if let Some(first) = self.first_failed {
            let look = if self.has_logs { Advice::logs(first) } else { Advice::explain(first) };
            actions.push(look.into());
            actions.push(Advice::retry_failed_then_run(self.only, self.grants.clone()).into());
        }
        self.wait_for(&mut actions);
        if let Some(task) = self.blocked.first() {
            actions.push(Advice::explain(&task.task).into());
            actions.extend(task.commands.iter().cloned());
        }
        if let Some(task) = self.not_run.first() {
            actions.push(Advice::explain(&task.task).into());
        }
        let goes_on = |advised: &Advised| matches!(advised.advice(), Advice::RunReady { .. });
        if self.is_unfinished && !actions.iter().any(goes_on) {
            actions.push(Advice::run_ready(self.only).into());
        }
        actions
    }
}

/// Returns the resources and paths that other runs or agents hold and a task needs.
fn held_text(needs: &Needs) -> String {
    let resources = needs.resources.keys().map(|name| format!("resource `{name}`"));
    let paths = needs.paths();
    let paths = paths.iter().map(|path| format!("`{}`", paths::shown(path)));
    let items = needs.items.map(|(_, most)| format!("one of {most} places for the items of its list"));
    let all: Vec<String> = resources.chain(paths).chain(items).collect();
    format!("needs {}, which another run or agent holds", all.join(", "))
}
