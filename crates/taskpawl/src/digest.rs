//! Where a plan stands, in a few cheap reads: what an agent needs to know when it begins, or when it has forgotten everything.

use std::collections::BTreeMap;

use serde::Serialize;
use taskpawl_manager::{Error, Manager, RunFilter, RunState};
use taskpawl_model::{
    Advice, Advised, BlockedReason, CallId, CallRecord, CallStatus, Context, DecideError, FailureClass, Key,
    Means, Query, ReadyPart, RunId, RunRecord, Status, TaskId, TaskRecord, TaskState, Timestamp, Untakable,
    View, ViewResult, Work, offered, ready_part,
};

/// How many failed tasks are looked at to group them; the counts have all.
const LOOKED_AT: usize = 50;

/// Where a plan stands, as one actor sees it.
///
/// Every list is short, and says when there is more; counts are those of all tasks. What it costs to gather does not depend on how
/// many tasks there are, but on how many calls there are of tools that no run here has.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Digest {
    /// Whose view it is.
    pub actor: String,
    /// The revision of the store that it describes.
    pub revision: u64,
    /// How many tasks there are.
    pub total: u64,
    /// How many tasks there are in each state that any is in.
    pub counts: BTreeMap<Status, u64>,
    /// What the actor holds.
    pub mine: Listed<Held>,
    /// What other agents and people hold.
    pub held: Listed<Held>,
    /// Runs that go on, and runs that were killed and whose tasks nobody has taken back yet.
    pub runs: Vec<RunNow>,
    /// The run that ended last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<RunNow>,
    /// The calls that run.
    pub running: Listed<Running>,
    /// What is ready and waits for an agent or a person that is free for this actor, in the order in which it is taken.
    pub ready: Listed<Ready>,
    /// What is ready and waits for a run, in the order in which it is taken.
    pub ready_to_run: Listed<Ready>,
    /// What is ready, and no run here can take, with what it lacks.
    pub for_nobody: Listed<Untakable>,
    /// What is blocked for a reason of its own: it waits for an approval or a decision, was blocked by hand, or lacks a tool.
    pub on_hold: Listed<OnHold>,
    /// What failed, grouped by tool and class of error; of the first 50 where there are more.
    pub failed: Listed<Failures>,
    /// What to do next, the most urgent first.
    pub next_actions: Vec<NextAction>,
}

/// The beginning of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed<T> {
    /// The first.
    pub items: Vec<T>,
    /// Whether there are more.
    pub truncated: bool,
}

/// A task that somebody holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Who.
    pub actor: String,
    /// The attempt, which a report may name.
    pub attempt: u32,
    /// When the lease ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Timestamp>,
    /// Whether the lease is over: who claims the task now gets it.
    pub expired: bool,
    /// The last remark on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A run, as far as it has come.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunNow {
    /// The run.
    pub run: RunId,
    /// How far it is.
    pub state: RunState,
    /// Who started it.
    pub actor: String,
    /// What it is restricted to; empty for everything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// With which exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
    /// How many tasks it ended, by what they became.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
}

/// A call that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
}

/// A task that can be done now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ready {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Whom it is assigned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
}

/// A task that is blocked for a reason of its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OnHold {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: BlockedReason,
}

/// Tasks that failed in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failures {
    /// The tool; empty where no call failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The class of the error.
    pub class: String,
    /// How many of those that were looked at.
    pub count: usize,
    /// The first of them.
    pub task: TaskId,
    /// Its error.
    pub error: String,
    /// Whether there is output of its calls to be read.
    pub has_logs: bool,
}

/// One thing to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NextAction {
    /// What it does.
    pub action: Action,
    /// The task that it is about; none for what concerns all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// What to do, serialized as a command.
    pub command: Advised,
    /// Why.
    pub why: String,
}

/// What one can do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// Say how a task ended that one holds.
    Report,
    /// Look how a call came out that was interrupted, and say so.
    Decide,
    /// Approve or reject; a person does.
    Approve,
    /// Look at a task.
    Look,
    /// Start what failed again.
    Retry,
    /// Take a task.
    Claim,
    /// Run what is ready.
    Run,
}

impl Digest {
    /// Gathers where the plan stands, for the actor of `manager`, with at most `most` of everything. `means` is what the next run
    /// has.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn gather(manager: &Manager, most: usize, means: &Means) -> Result<Self, Error> {
        let mut digest = manager.read(|view| Ok(Gatherer { view, manager, most, means }.gather()?))?;
        digest.add_runs(manager)?;
        let asker = manager.context();
        let next = next_actions(&digest);
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

    /// Returns how many tasks there are in a state.
    pub fn count(&self, status: Status) -> u64 {
        self.counts.get(&status).copied().unwrap_or_default()
    }

    /// Returns how many tasks are finished, however.
    pub fn finished(&self) -> u64 {
        self.counts.iter().filter(|(status, _)| status.is_finished()).map(|(_, count)| count).sum()
    }
}

impl RunNow {
    /// Returns how far a run is.
    pub fn new(manager: &Manager, run: RunRecord) -> Self {
        let state = manager.run_state(&run);
        let finished_at = run.ended_at();
        let RunRecord { id, scope, actor, started_at, exit, counts, .. } = run;
        Self { run: id, state, actor, scope, started_at, finished_at, exit, counts }
    }
}

impl<T> Listed<T> {
    /// Takes the first `most` of `all`, which may be more.
    fn of(all: impl IntoIterator<Item = T>, most: usize) -> Self {
        let mut all = all.into_iter();
        Self { items: all.by_ref().take(most).collect(), truncated: all.next().is_some() }
    }

    /// Returns whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn try_map<U>(self, each: impl FnMut(T) -> ViewResult<Option<U>>) -> ViewResult<Listed<U>> {
        let items: Vec<Option<U>> = self.items.into_iter().map(each).collect::<ViewResult<_>>()?;
        Ok(Listed { items: items.into_iter().flatten().collect(), truncated: self.truncated })
    }
}

/// Reads one moment of a store.
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
        let (ready_to_run, for_nobody) = self.ready_to_run()?;
        Ok(Digest {
            actor: self.manager.actor().to_owned(),
            revision: self.view.revision()?,
            total: counts.values().sum(),
            counts,
            mine,
            held,
            runs: Vec::new(),
            last_run: None,
            running: self.running()?,
            ready: self.ready()?,
            ready_to_run,
            for_nobody,
            on_hold: self.on_hold()?,
            failed: self.failed()?,
            next_actions: Vec::new(),
        })
    }

    fn first(&self, keys: Vec<Key>) -> Listed<Key> {
        Listed::of(keys, self.most)
    }

    /// Returns what the actor holds, and what others hold.
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

    /// Leaves out what an actor of the same name and another kind holds.
    fn keep_own(&self, held: &mut Vec<Key>) -> ViewResult<()> {
        let me = self.manager.as_actor();
        let mut own = Vec::with_capacity(held.len());
        for key in held.drain(..) {
            let task = self.view.task(key)?;
            let state = task.as_ref().map(|task| &task.body.state);
            if matches!(state, Some(TaskState::InProgress { claim }) if claim.is_of(me)) {
                own.push(key);
            }
        }
        *held = own;
        Ok(())
    }

    fn claim(&self, key: Key) -> ViewResult<Option<Held>> {
        let Some(task) = self.view.task(key)? else { return Ok(None) };
        let TaskState::InProgress { claim } = task.body.state.clone() else { return Ok(None) };
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

    fn running(&self) -> ViewResult<Listed<Running>> {
        self.first(self.view.running()?).try_map(|key| {
            let Some(task) = self.view.task(key)? else { return Ok(None) };
            let calls = self.view.calls(key)?.into_iter();
            let call = calls.into_iter().find(|call| call.body.status == CallStatus::Running);
            Ok(call.map(|call| Running {
                task: task.id,
                name: task.spec.name.clone(),
                call: call.id,
                tool: call.spec.tool_name.clone(),
                started_at: call.body.started_at,
            }))
        })
    }

    /// Returns what is ready by hand, and free for the actor.
    fn ready(&self) -> ViewResult<Listed<Ready>> {
        let free_for = Some(self.manager.actor().to_owned());
        let (ready, limit) = (Some(vec![Work::Manual]), self.most + 1);
        self.describe(self.view.find(&Query { ready, free_for, limit, ..Query::default() })?)
    }

    /// Returns what is ready for runs, and what of it no run here can take.
    fn ready_to_run(&self) -> ViewResult<(Listed<Ready>, Listed<Untakable>)> {
        let ReadyPart { takable, for_nobody } =
            ready_part(self.view, &[Work::Calls], self.most + 1, self.means)?;
        let keys = takable.iter().map(|node| node.key).collect();
        Ok((self.describe(keys)?, Listed::of(for_nobody, self.most)))
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
            let TaskState::Blocked { reason } = body.state.clone() else { return Ok(None) };
            Ok(Some(OnHold { task: id, name: spec.name.clone(), reason: *reason }))
        })
    }

    fn failed(&self) -> ViewResult<Listed<Failures>> {
        let query = Query { status: vec![Status::Failed], limit: LOOKED_AT + 1, ..Query::default() };
        let keys = Listed::of(self.view.find(&query)?, LOOKED_AT);
        let mut groups: Vec<Failures> = Vec::new();
        for key in keys.items {
            let Some(task) = self.view.task(key)? else { continue };
            let TaskState::Failed { error, class } = task.body.state.clone() else { continue };
            let calls = self.view.calls(key)?;
            let (tool, class) = kind_of_failure(class, &calls);
            match groups.iter_mut().find(|group| (&group.tool, &group.class) == (&tool, &class)) {
                Some(group) => group.count += 1,
                None => groups.push(Failures {
                    tool,
                    class,
                    count: 1,
                    task: task.id,
                    error,
                    has_logs: calls.iter().any(|call| call.body.attempts > 0),
                }),
            }
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        let groups = Listed::of(groups, self.most);
        Ok(Listed { truncated: groups.truncated || keys.truncated, ..groups })
    }
}

/// Returns the tool of what failed, if a call did, and the class of its error.
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

/// How many tasks of one kind are named among what to do next.
const NAMED: usize = 3;

fn next_actions(digest: &Digest) -> Vec<NextAction> {
    let mut actions = Vec::new();
    let holds = digest.mine.items.iter().take(NAMED);
    actions.extend(
        holds.map(|held| {
            NextAction::task(Action::Report, Advice::done(&held.task), &held.task, "you hold it")
        }),
    );
    if let Some(run) = digest.runs.iter().find(|run| run.state == RunState::Killed) {
        let why = format!("run {} was killed: what it held is taken back, and the rest goes on", run.run);
        actions.push(NextAction::run(why));
    }
    actions.extend(digest.on_hold.items.iter().take(NAMED).map(go_on_with));
    if let Some(group) = digest.failed.items.first() {
        let look = if group.has_logs { Advice::logs(&group.task) } else { Advice::explain(&group.task) };
        actions.push(NextAction::task(Action::Look, look, &group.task, "it failed"));
        let command = Advice::retry_failed_then_run(&[]).into();
        let why = "starts what failed again, when the cause is gone".to_owned();
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
    if let Some(held) = digest.held.items.iter().find(|held| held.expired) {
        actions.push(NextAction::task(
            Action::Claim,
            Advice::claim(&held.task),
            &held.task,
            "its holder's lease is over",
        ));
    }
    let has_run = !digest.runs.is_empty();
    if !has_run && !digest.ready_to_run.is_empty() {
        actions.push(NextAction::run("tool calls are ready".to_owned()));
    }
    let nobody = digest.for_nobody.items.iter().take(NAMED);
    actions.extend(
        nobody.map(|task| NextAction::task(Action::Look, Advice::explain(&task.task), &task.task, NOBODY)),
    );
    actions
}

/// Keeps the actions that the rules accept from `asker`.
fn all_offered(view: &dyn View, actions: Vec<NextAction>, asker: &Context) -> ViewResult<Vec<NextAction>> {
    let mut kept = Vec::with_capacity(actions.len());
    for action in actions {
        if let Some(advice) = offered(view, action.command.advice().clone(), asker)? {
            kept.push(NextAction { command: advice.into(), ..action });
        }
    }
    Ok(kept)
}

/// Why one should look at what no run can take.
const NOBODY: &str = "it is ready, and no run here can take it: this says what it lacks, and what helps";

/// Returns what clears a task that is blocked for a reason of its own.
fn go_on_with(held: &OnHold) -> NextAction {
    let task = &held.task;
    match &held.reason {
        BlockedReason::Approval { options, .. } => {
            // Which of several answers it is cannot be said here.
            let advice = match options.as_slice() {
                [] => Advice::Approve { id: task.clone(), answer: None },
                _ => Advice::show(task),
            };
            NextAction::task(
                Action::Approve,
                advice,
                task,
                "it waits for a person who approves or rejects it",
            )
        }
        BlockedReason::Interrupted { .. } => {
            let why = "its call was interrupted: look how it ended, then `done`, `fail` or `unblock`";
            NextAction::task(Action::Decide, Advice::logs(task), task, why)
        }
        BlockedReason::Manual { .. } => {
            NextAction::task(Action::Look, Advice::show(task), task, "it was blocked by hand")
        }
        BlockedReason::MissingTool { .. } => {
            NextAction::task(Action::Look, Advice::explain(task), task, "it lacks a tool")
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
