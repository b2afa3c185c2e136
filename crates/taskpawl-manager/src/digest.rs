//! A short status of the plan from a few cheap reads, for an agent at the start of a session or after its context was compacted.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use taskpawl_model::advice::{Advice, Advised};
use taskpawl_model::command::Context;
use taskpawl_model::insight::{ReadyPart, UnrunnableTask, ready_part};
use taskpawl_model::rules::DecideError;
use taskpawl_model::rules::Means;
use taskpawl_model::rules::offered;
use taskpawl_model::task::{
    ActorKind, BlockedReason, CallRecord, CallStatus, FailureClass, Grant, PlanRecord, RunRecord, Status,
    TaskRecord, TaskStatus, WaitingFor, Work,
};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{CallId, Key, RunId, TaskId};
use taskpawl_model::view::{Query, View, ViewResult, Waits, grants_for};

use crate::error::Error;
use crate::liveness::RunState;
use crate::manager::Manager;
use crate::reads::RunFilter;

/// Number of failed tasks that are read for grouping; the counts cover all of them.
const MAX_FAILURES_READ: usize = 50;

/// The status of a plan for one actor.
///
/// Every list is short and marks that there are more entries; counts cover all tasks. The cost of [`gather`](Self::gather) does not
/// depend on the number of tasks, only on the number of calls of tools that no run here has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Digest {
    /// The actor whose claims are `mine`.
    pub actor: String,
    /// The revision of the store that it describes.
    pub revision: u64,
    /// The number of tasks.
    pub total: u64,
    /// The number of tasks in each status; statuses without tasks are missing.
    pub counts: BTreeMap<Status, u64>,
    /// The plans, the last applied first.
    #[serde(default, skip_serializing_if = "Listed::is_empty")]
    pub plans: Listed<PlanGoal>,
    /// Tasks that the actor reports.
    pub mine: Listed<Held>,
    /// Tasks that other agents and people hold.
    pub held: Listed<Held>,
    /// Active runs, and killed runs whose tasks have not been taken back yet.
    pub runs: Vec<RunNow>,
    /// The last finished run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<RunNow>,
    /// Running calls.
    pub running: Listed<Running>,
    /// Calls that ran in killed runs whose tasks have not been taken back yet.
    #[serde(default, skip_serializing_if = "Listed::is_empty")]
    pub lost: Listed<Running>,
    /// Ready manual tasks that this actor may claim, in the order in which they are taken.
    pub ready: Listed<Ready>,
    /// Ready tasks for runs, in the order in which they are taken.
    pub ready_to_run: Listed<Ready>,
    /// Ready tasks that no run here can take, each with the missing tool or resource.
    #[serde(rename = "forNobody")]
    pub unrunnable: Listed<UnrunnableTask>,
    /// Tasks that are blocked for a reason of their own: an approval, a decision, a block by hand, or a missing tool.
    pub on_hold: Listed<OnHold>,
    /// Tasks that wait for a time or a signal, without a run.
    #[serde(default, skip_serializing_if = "Listed::is_empty")]
    pub asleep: Listed<Asleep>,
    /// Failed tasks, grouped by tool and class of error. Only the first 50 are grouped.
    pub failed: Listed<Failures>,
    /// Suggested next commands, the most urgent first. They are written as text, and not read back.
    #[serde(skip_deserializing)]
    pub next_actions: Vec<NextAction>,
}

/// The beginning of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed<T> {
    /// The first entries.
    pub items: Vec<T>,
    /// Whether the list has more entries.
    pub truncated: bool,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { items: Vec::new(), truncated: false }
    }
}

/// A plan and what it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PlanGoal {
    /// The name of the plan.
    pub name: String,
    /// The description of the plan, as its author wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A claimed task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Held {
    /// The id of the task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// The holder's name.
    pub actor: String,
    /// The number of the attempt, which a report may name to detect a later claim.
    pub attempt: u32,
    /// The end of the lease; absent for a claim without a time limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Timestamp>,
    /// Whether the lease is over: the next claim gets the task.
    pub expired: bool,
    /// The last note on the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A task that waits for a time or a signal, without a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Asleep {
    /// The id of the task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// The end of the wait.
    pub waiting_for: WaitingFor,
    /// True if its time has come, and no process has ended the wait yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over: bool,
}

/// A run and its progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunNow {
    /// The id of the run.
    pub run: RunId,
    /// Whether the run is active, was killed or is finished.
    pub state: RunState,
    /// The name of the actor that started the run.
    pub actor: String,
    /// The selection of `--only`; empty for all tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// The start time.
    pub started_at: Timestamp,
    /// The end time; absent while the run is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The exit code of a finished run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
    /// The number of tasks that the run ended, by final status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
}

/// A running call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Running {
    /// The id of the task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// The id of the call, unique within the task.
    pub call: CallId,
    /// The tool of the call.
    pub tool: String,
    /// The number of the current start, which tells programs that know the places of calls which one this is.
    #[serde(skip)]
    pub start: u32,
    /// The worker that runs it; absent for the machine of the store, and where the program has not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The start time of the current start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
}

/// A ready task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Ready {
    /// The id of the task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// The actor that the task is assigned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
}

/// A task that is blocked for a reason of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OnHold {
    /// The id of the task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// The reason of the block.
    pub reason: BlockedReason,
}

/// Tasks that failed in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Failures {
    /// The tool of the failed call; empty if no call failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The class of the error.
    pub class: String,
    /// The number of such tasks among those that were read.
    pub count: usize,
    /// The first task of the group.
    pub task: TaskId,
    /// The error of that task.
    pub error: String,
    /// Whether a call of that task has started, so that `logs` may have output.
    pub has_logs: bool,
    /// Grants for the calls of the group that the sandbox probably stopped.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub grants: BTreeSet<Grant>,
}

/// One suggested next command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NextAction {
    /// The kind of the action.
    pub action: Action,
    /// The task of the action; `None` if it concerns the whole plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The command; serialized as text.
    pub command: Advised,
    /// The reason, as a clause for people and models.
    pub why: String,
}

/// The kinds of suggested commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// Report the end of a task that the actor reports.
    Report,
    /// Check the outcome of an interrupted call, and report it.
    Decide,
    /// Approve or reject; only a person may.
    Approve,
    /// Read a task or its output.
    Look,
    /// Retry failed tasks.
    Retry,
    /// Claim a task.
    Claim,
    /// Release the claim of a silent agent.
    Release,
    /// Start a run.
    Run,
}

impl Digest {
    /// Reads the status of the plan for the actor of `manager`, with at most `most` entries in each list.
    ///
    /// `means` are the tools and resources of the next run: a ready task that needs others is listed in `unrunnable`.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn gather(manager: &Manager, most: usize, means: &Means) -> Result<Self, Error> {
        let mut digest = manager.read(|view| Ok(Gatherer { view, manager, most, means }.gather()?))?;
        digest.add_runs(manager)?;
        let asker = manager.context();
        let next = next_actions(&digest, asker.kind);
        digest.next_actions = manager.read(|view| Ok(all_offered(view, next, &asker)?))?;
        Ok(digest)
    }

    fn add_runs(&mut self, manager: &Manager) -> Result<(), Error> {
        let open = manager.read(|view| view.open_runs().map_err(DecideError::from))?;
        let latest = manager.runs(&RunFilter { limit: open.len() + 1 })?;
        let last = latest.into_iter().find(|run| !run.is_open());
        self.last_run = last.map(|run| RunNow::new(manager, run));
        self.runs = open.into_iter().map(|run| RunNow::new(manager, run)).collect();
        Ok(())
    }

    /// Returns the number of tasks with a status.
    pub fn count(&self, status: Status) -> u64 {
        self.counts.get(&status).copied().unwrap_or_default()
    }

    /// Returns the number of finished tasks, with any end.
    pub fn finished(&self) -> u64 {
        self.counts.iter().filter(|(status, _)| status.is_finished()).map(|(_, count)| count).sum()
    }
}

impl RunNow {
    /// Combines the record of a run with its state, which depends on the run's lock.
    pub fn new(manager: &Manager, run: RunRecord) -> Self {
        let state = manager.run_state(&run);
        let finished_at = run.ended_at();
        let RunRecord { id, scope, actor, started_at, exit, counts, .. } = run;
        Self { run: id, state, actor, scope, started_at, finished_at, exit, counts }
    }
}

impl<T> Listed<T> {
    /// Takes the first `most` entries of `all`. Reads one entry more, to know whether there are others.
    fn of(all: impl IntoIterator<Item = T>, most: usize) -> Self {
        let mut all = all.into_iter();
        Self { items: all.by_ref().take(most).collect(), truncated: all.next().is_some() }
    }

    /// Returns whether the list has no entries.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn try_map<U>(self, each: impl FnMut(T) -> ViewResult<Option<U>>) -> ViewResult<Listed<U>> {
        let items: Vec<Option<U>> = self.items.into_iter().map(each).collect::<ViewResult<_>>()?;
        Ok(Listed { items: items.into_iter().flatten().collect(), truncated: self.truncated })
    }
}

/// Reads the lists of a digest from one snapshot.
struct Gatherer<'a> {
    view: &'a dyn View,
    manager: &'a Manager,
    most: usize,
    means: &'a Means,
}

impl Gatherer<'_> {
    fn gather(&self) -> ViewResult<Digest> {
        let counts: BTreeMap<Status, u64> =
            self.view.counts()?.into_iter().filter(|(_, count)| *count > 0).collect();
        let (mine, held) = self.held()?;
        let (ready_to_run, unrunnable) = self.ready_to_run()?;
        let (running, lost) = self.running()?;
        Ok(Digest {
            actor: self.manager.actor().to_owned(),
            revision: self.view.revision()?,
            total: counts.values().sum(),
            counts,
            plans: self.plans()?,
            mine,
            held,
            runs: Vec::new(),
            last_run: None,
            running,
            lost,
            ready: self.ready()?,
            ready_to_run,
            unrunnable,
            on_hold: self.on_hold()?,
            asleep: self.asleep()?,
            failed: self.failed()?,
            next_actions: Vec::new(),
        })
    }

    fn first(&self, keys: Vec<Key>) -> Listed<Key> {
        Listed::of(keys, self.most)
    }

    fn plans(&self) -> ViewResult<Listed<PlanGoal>> {
        let mut plans = self.view.plans()?;
        // Stable, so that plans of one commit stay in the order of their names.
        plans.sort_by_key(|plan| std::cmp::Reverse(plan.applied_at));
        let goal = |plan: PlanRecord| {
            let description = plan.header.get("description").and_then(|text| text.as_str());
            PlanGoal { description: description.map(str::to_owned), name: plan.name }
        };
        Ok(Listed::of(plans.into_iter().map(goal), self.most))
    }

    /// Returns the claims of the actor, and those of others.
    fn held(&self) -> ViewResult<(Listed<Held>, Listed<Held>)> {
        let mut mine = self.view.leases(Some(self.manager.actor()))?;
        self.keep_own(&mut mine)?;
        let others: Vec<Key> =
            self.view.leases(None)?.into_iter().filter(|key| mine.binary_search(key).is_err()).collect();
        Ok((
            self.first(mine).try_map(|key| self.claim(key))?,
            self.first(others).try_map(|key| self.claim(key))?,
        ))
    }

    /// Removes claims of an actor with the same name but another kind: the lease index is by name only.
    fn keep_own(&self, held: &mut Vec<Key>) -> ViewResult<()> {
        let me = self.manager.as_actor();
        let mut own = Vec::with_capacity(held.len());
        for key in held.drain(..) {
            let task = self.view.task(key)?;
            let state = task.as_ref().map(|task| &task.body.state);
            if matches!(state, Some(TaskStatus::InProgress { claim }) if claim.is_of(me)) {
                own.push(key);
            }
        }
        *held = own;
        Ok(())
    }

    fn claim(&self, key: Key) -> ViewResult<Option<Held>> {
        let Some(task) = self.view.task(key)? else { return Ok(None) };
        let TaskStatus::InProgress { claim } = task.body.state.clone() else { return Ok(None) };
        Ok(Some(Held {
            task: task.id,
            name: task.spec.name.clone(),
            expired: claim.is_expired(self.manager.source().now()),
            actor: claim.actor.into(),
            attempt: task.body.attempt,
            lease_until: claim.lease_until,
            note: task.body.notes.last().map(|note| note.text.clone()),
        }))
    }

    fn asleep(&self) -> ViewResult<Listed<Asleep>> {
        self.first(self.view.waiting(Waits::All)?).try_map(|key| {
            let Some(task) = self.view.task(key)? else { return Ok(None) };
            let waiting_for = task.body.progress.waiting_for.as_deref().cloned();
            let (task, name) = (task.id, task.spec.name.clone());
            let now = self.manager.source().now();
            Ok(waiting_for.map(|waiting_for| {
                let over = waiting_for.time.is_some_and(|time| time <= now);
                Asleep { task, name, waiting_for, over }
            }))
        })
    }

    /// Returns the running calls, and those of killed runs.
    fn running(&self) -> ViewResult<(Listed<Running>, Listed<Running>)> {
        let (mut running, mut lost) = (Vec::new(), Vec::new());
        let mut alive: BTreeMap<RunId, bool> = BTreeMap::new();
        for key in self.view.running()? {
            let Some(task) = self.view.task(key)? else { continue };
            let TaskStatus::InProgress { claim } = &task.body.state else { continue };
            let run = claim.run.clone();
            let is_alive =
                run.is_none_or(|run| *alive.entry(run).or_insert_with_key(|run| self.manager.is_alive(run)));
            if is_alive { running.push(key) } else { lost.push(key) }
        }
        Ok((self.running_calls(running)?, self.running_calls(lost)?))
    }

    fn running_calls(&self, keys: Vec<Key>) -> ViewResult<Listed<Running>> {
        self.first(keys).try_map(|key| {
            let Some(task) = self.view.task(key)? else { return Ok(None) };
            let calls = self.view.calls(key)?.into_iter();
            let call = calls.into_iter().find(|call| call.body.status == CallStatus::Running);
            Ok(call.map(|call| Running {
                task: task.id,
                name: task.spec.name.clone(),
                call: call.id,
                tool: call.spec.tool_name.clone(),
                start: call.body.attempts,
                worker: None,
                started_at: call.body.started_at,
            }))
        })
    }

    /// Returns ready manual tasks that the actor may claim.
    fn ready(&self) -> ViewResult<Listed<Ready>> {
        let free_for = Some(self.manager.actor().to_owned());
        let (ready, limit) = (Some(vec![Work::Manual]), self.most + 1);
        self.describe(self.view.find(&Query { ready, free_for, limit, ..Query::default() })?)
    }

    /// Returns ready tasks for runs, and those that no run here can take.
    fn ready_to_run(&self) -> ViewResult<(Listed<Ready>, Listed<UnrunnableTask>)> {
        let ReadyPart { takable, unrunnable } =
            ready_part(self.view, &[Work::Calls], self.most + 1, self.means)?;
        let keys = takable.iter().map(|node| node.key).collect();
        Ok((self.describe(keys)?, Listed::of(unrunnable, self.most)))
    }

    fn describe(&self, keys: Vec<Key>) -> ViewResult<Listed<Ready>> {
        self.first(keys).try_map(|key| {
            let task = self.view.task(key)?;
            Ok(task.map(|TaskRecord { id, spec, .. }| Ready {
                task: id,
                name: spec.name.clone(),
                assignee: spec.assignee.clone(),
            }))
        })
    }

    fn on_hold(&self) -> ViewResult<Listed<OnHold>> {
        self.first(self.view.on_hold(self.most + 1)?).try_map(|key| {
            let Some(TaskRecord { id, spec, body, .. }) = self.view.task(key)? else { return Ok(None) };
            let TaskStatus::Blocked { reason } = body.state.clone() else { return Ok(None) };
            Ok(Some(OnHold { task: id, name: spec.name.clone(), reason: *reason }))
        })
    }

    fn failed(&self) -> ViewResult<Listed<Failures>> {
        let query = Query { status: vec![Status::Failed], limit: MAX_FAILURES_READ + 1, ..Query::default() };
        let keys = Listed::of(self.view.find(&query)?, MAX_FAILURES_READ);
        let mut groups: Vec<Failures> = Vec::new();
        for key in keys.items {
            let Some(task) = self.view.task(key)? else { continue };
            let TaskStatus::Failed { error, class } = task.body.state.clone() else { continue };
            let calls = self.view.calls(key)?;
            let grants = grants_for(&task, &calls, self.means.given.as_deref()).cloned();
            let (tool, class) = kind_of_failure(class, &calls);
            match groups.iter_mut().find(|group| (&group.tool, &group.class) == (&tool, &class)) {
                Some(group) => {
                    group.count += 1;
                    group.grants.extend(grants);
                }
                None => groups.push(Failures {
                    tool,
                    class,
                    count: 1,
                    task: task.id.clone(),
                    error,
                    has_logs: calls.iter().any(|call| call.body.attempts > 0),
                    grants: grants.collect(),
                }),
            }
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        let groups = Listed::of(groups, self.most);
        Ok(Listed { truncated: groups.truncated || keys.truncated, ..groups })
    }
}

/// Returns the tool of the failed call, if there is one, and the class of its error.
fn kind_of_failure(class: Option<FailureClass>, calls: &[CallRecord]) -> (String, String) {
    let failed = calls.iter().find(|call| call.body.status == CallStatus::Failed);
    match (class, failed) {
        (None, Some(call)) => {
            let class = call.body.error.as_ref().map(|error| error.class.clone());
            (call.spec.tool_name.clone(), class.unwrap_or_default())
        }
        (class, _) => (String::new(), class.unwrap_or(FailureClass::Reported).to_string()),
    }
}

/// Maximum number of suggested actions of one kind.
const MAX_OF_KIND: usize = 3;

fn next_actions(digest: &Digest, kind: ActorKind) -> Vec<NextAction> {
    let mut actions = Vec::new();
    let reports = digest.mine.items.iter().take(MAX_OF_KIND);
    actions.extend(
        reports.map(|held| {
            NextAction::task(Action::Report, Advice::done(&held.task), &held.task, "you hold it")
        }),
    );
    if let Some(run) = digest.runs.iter().find(|run| run.state == RunState::Killed) {
        let why =
            format!("run {} was killed: its tasks are reclaimed, and the other tasks continue", run.run);
        actions.push(NextAction::run(why));
    }
    actions.extend(digest.on_hold.items.iter().take(MAX_OF_KIND).map(go_on_with));
    if let Some(group) = digest.failed.items.first() {
        let look = if group.has_logs { Advice::logs(&group.task) } else { Advice::explain(&group.task) };
        actions.push(NextAction::task(Action::Look, look, &group.task, "it failed"));
        // Only a person may widen the sandbox.
        let groups = digest.failed.items.iter().filter(|_| kind != ActorKind::Agent);
        let grants: BTreeSet<Grant> = groups.flat_map(|group| group.grants.iter().cloned()).collect();
        let command = Advice::retry_failed_then_run(&[], grants.into_iter().collect()).into();
        let why = "restarts failed tasks once the cause is fixed".to_owned();
        actions.push(NextAction { action: Action::Retry, task: None, command, why });
    }
    if let Some(ready) = digest.ready.items.first() {
        actions.push(NextAction::task(
            Action::Claim,
            Advice::claim(&ready.task),
            &ready.task,
            "it is ready for you",
        ));
    }
    // People may release any claim, so that this is no advice for them. Agents may release the claims of silent holders alone.
    let others = digest.held.items.iter().filter(|held| !held.expired && kind == ActorKind::Agent);
    actions.extend(others.take(MAX_OF_KIND).map(|held| {
        let advice = Advice::ReleaseSilent { id: held.task.clone() };
        NextAction::task(
            Action::Release,
            advice,
            &held.task,
            "its holder has been silent for half of its lease",
        )
    }));
    if let Some(held) = digest.held.items.iter().find(|held| held.expired) {
        actions.push(NextAction::task(
            Action::Claim,
            Advice::claim(&held.task),
            &held.task,
            "its holder's lease has ended",
        ));
    }
    let has_run = !digest.runs.is_empty();
    if !has_run && !digest.ready_to_run.is_empty() {
        actions.push(NextAction::run("tool calls are ready".to_owned()));
    }
    let unrunnable = digest.unrunnable.items.iter().take(MAX_OF_KIND);
    actions.extend(
        unrunnable
            .map(|task| NextAction::task(Action::Look, Advice::explain(&task.task), &task.task, UNRUNNABLE)),
    );
    actions
}

/// Keeps the actions that the rules would accept from `asker`, so that no suggested command is refused.
fn all_offered(view: &dyn View, actions: Vec<NextAction>, asker: &Context) -> ViewResult<Vec<NextAction>> {
    let mut kept = Vec::with_capacity(actions.len());
    for action in actions {
        if let Some(advice) = offered(view, action.command.advice().clone(), asker)? {
            kept.push(NextAction { command: advice.into(), ..action });
        }
    }
    Ok(kept)
}

/// Reason for the action on a task that no run can take.
const UNRUNNABLE: &str =
    "it is ready, but no run here can start it: this explains the missing requirement and its fix";

/// Returns the action that unblocks a task which is blocked for a reason of its own.
fn go_on_with(held: &OnHold) -> NextAction {
    let task = &held.task;
    match &held.reason {
        BlockedReason::Approval { options, .. } => {
            // With several options the person has to choose, so the task is shown instead of approved.
            let advice = match options.as_slice() {
                [] => Advice::Approve { id: task.clone(), answer: None },
                _ => Advice::show(task),
            };
            NextAction::task(Action::Approve, advice, task, "it waits for a person to approve or reject it")
        }
        BlockedReason::Interrupted { .. } => {
            let why = "its call was interrupted: check its effects, then `done`, `fail` or `unblock`";
            NextAction::task(Action::Decide, Advice::logs(task), task, why)
        }
        BlockedReason::Manual { .. } => {
            NextAction::task(Action::Look, Advice::show(task), task, "it was blocked by hand")
        }
        BlockedReason::MissingTool { .. } => {
            NextAction::task(Action::Look, Advice::explain(task), task, "a tool is missing")
        }
        BlockedReason::Dependency { .. } | BlockedReason::Waiting { .. } => {
            NextAction::task(Action::Look, Advice::explain(task), task, "it cannot start")
        }
    }
}

impl NextAction {
    fn task(action: Action, advice: Advice, task: &TaskId, why: &str) -> Self {
        Self { action, task: Some(task.clone()), command: advice.into(), why: why.to_owned() }
    }

    fn run(why: String) -> Self {
        Self { action: Action::Run, task: None, command: Advice::run_ready(&[]).into(), why }
    }
}
