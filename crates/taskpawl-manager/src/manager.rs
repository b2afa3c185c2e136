use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use taskpawl_model::command::{
    Answer, Apply, ApplyReport, Command, Context, IdempotentRequest, Import, ImportReport, NewTask,
    OnChanged, Refusal, Request, ResolvedWrites, Restart, Undone,
};
use taskpawl_model::plan::Plan;
use taskpawl_model::rules::{calls_of_update, resolve};
use taskpawl_model::task::PolicyHook;
use taskpawl_model::task::{Actor, ActorKind, ApprovalRequest, NewCall, Origin, Task, Work};
use taskpawl_model::value::Map;
use taskpawl_model::value::{Key, RunId, SharedText, TaskId};
use taskpawl_model::view::read_task;
use taskpawl_model::view::{Query, View, ViewResult};
use taskpawl_store::{Outcome, Store};

use crate::error::Error;
use crate::liveness::Liveness;
use crate::paths::Paths;
use crate::redaction::without_secrets;
use crate::source::{Source, SystemSource};
use taskpawl_model::command::Redact;

/// Maximum number of ready tasks whose write paths are resolved before a claim of the first one. Beyond it,
/// paths are compared as written.
const MAX_CANDIDATES: usize = 32;

/// The commands on a plan, on behalf of one actor.
///
/// Cheap to clone. Every command either is one durable commit, or is refused and changes nothing. Tasks are
/// named by their id or a unique prefix of it.
#[derive(Debug, Clone)]
pub struct Manager {
    store: Arc<dyn Store>,
    source: Arc<dyn Source>,
    actor: SharedText,
    kind: ActorKind,
    origin: Origin,
    run: Option<RunId>,
    liveness: Option<Arc<dyn Liveness>>,
    capacities: BTreeMap<String, u32>,
    policy_hook: Option<Arc<dyn PolicyHook>>,
    redact: Option<Arc<dyn Redact>>,
    paths: Option<Arc<dyn Paths>>,
    request: Option<Arc<RequestParts>>,
    /// The kind of the actor that started the run, if this manager acts as a run.
    starter: Option<ActorKind>,
}

/// The commands of one idempotent request, numbered in the order in which they are issued.
#[derive(Debug)]
struct RequestParts {
    name: String,
    digest: String,
    given: AtomicU32,
}

impl RequestParts {
    fn once(&self, command: Command) -> Command {
        // The numbering makes a repeated request map its n-th command to the same record, so the order must
        // be deterministic.
        let part = self.given.fetch_add(1, Ordering::Relaxed);
        let request = if part == 0 { self.name.clone() } else { format!("{}#{part}", self.name) };
        Command::Idempotent(Box::new(IdempotentRequest { request, digest: self.digest.clone(), command }))
    }
}

/// The report that ends a task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ending {
    /// The result of the task.
    pub result: Option<Value>,
    /// A note; for a failure the reason.
    pub note: Option<String>,
    /// The reported attempt, if the reporter knows it. A report of an older attempt is refused.
    pub attempt: Option<u32>,
}

/// The details of an approval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Approving {
    /// The answer to a question; without one the answer is yes.
    pub answer: Option<Value>,
    /// Replacement arguments for the call. Only allowed if exactly one call waits.
    pub args: Option<Map>,
    /// The hash of the reviewed request, or at least 8 characters of it. The approval is refused if the
    /// request has changed since.
    pub hash: Option<String>,
}

impl Manager {
    /// Creates a manager of `store` that acts as `actor`.
    pub fn new(store: Arc<dyn Store>, actor: impl Into<String>) -> Self {
        Self {
            store,
            source: Arc::new(SystemSource),
            actor: SharedText::from(Into::<String>::into(actor)),
            kind: ActorKind::Program,
            origin: Origin::Library,
            run: None,
            liveness: None,
            capacities: BTreeMap::new(),
            policy_hook: None,
            redact: None,
            paths: None,
            request: None,
            starter: None,
        }
    }

    /// Takes time and ids from `source`.
    #[must_use]
    pub fn with_source(mut self, source: Arc<dyn Source>) -> Self {
        self.source = source;
        self
    }

    /// Sets the origin of calls that are added.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Sets the capacities of resources for claims. They take precedence over those in plans.
    #[must_use]
    pub fn with_capacities(mut self, capacities: BTreeMap<String, u32>) -> Self {
        self.capacities = capacities;
        self
    }

    /// Sets the liveness check. Reads then mark tasks of dead runs, and a command that names such a task
    /// recovers it first.
    #[must_use]
    pub fn with_liveness(mut self, liveness: Arc<dyn Liveness>) -> Self {
        self.liveness = Some(liveness);
        self
    }

    /// Sets the policy hook, which decides calls before they start. Without one, only the plan itself can
    /// require approvals. All writers of a store should use the same hook, because any command may decide a
    /// call.
    #[must_use]
    pub fn with_policy_hook(mut self, policy_hook: Arc<dyn PolicyHook>) -> Self {
        self.policy_hook = Some(policy_hook);
        self
    }

    /// Resolves symbolic links in the write paths of tasks that are claimed. Without it paths are compared as
    /// written.
    #[must_use]
    pub fn with_paths(mut self, paths: Arc<dyn Paths>) -> Self {
        self.paths = Some(paths);
        self
    }

    /// Removes secrets from the reports of people and agents before they are stored.
    #[must_use]
    pub fn with_redaction(mut self, redact: Arc<dyn Redact>) -> Self {
        self.redact = Some(redact);
        self
    }

    /// Acts as the run `run`.
    #[must_use]
    pub fn with_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self.starter = Some(self.kind);
        self.kind = ActorKind::Run;
        self
    }

    /// Makes the following commands parts of one idempotent request, in their order. A part that an earlier
    /// request of this name has already done is not repeated; it returns the earlier answer. `digest`
    /// distinguishes different requests of the same name.
    ///
    /// # Durability
    /// The record is part of the commit of its command, so it survives a crash and is visible to other
    /// processes.
    #[must_use]
    pub fn with_request(mut self, name: impl Into<String>, digest: impl Into<String>) -> Self {
        let (name, digest) = (name.into(), digest.into());
        self.request = Some(Arc::new(RequestParts { name, digest, given: AtomicU32::new(0) }));
        self
    }

    pub(crate) fn without_request(mut self) -> Self {
        self.request = None;
        self
    }

    /// Acts as another actor.
    #[must_use]
    pub fn with_actor(mut self, actor: impl Into<String>) -> Self {
        self.actor = SharedText::from(Into::<String>::into(actor));
        self
    }

    /// Sets the kind of the actor, by default a program.
    ///
    /// An agent or a program may only change tasks held by an actor of the same kind and name. A person may
    /// change any task.
    #[must_use]
    pub fn with_kind(mut self, kind: ActorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Returns the store that this manager writes to.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the source of time and ids.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// Returns the name of the actor.
    pub fn actor(&self) -> &str {
        &self.actor
    }

    /// Returns the actor in the form that claims and events are compared with.
    pub fn as_actor(&self) -> Actor<'_> {
        Actor { kind: self.kind, name: &self.actor }
    }

    /// Returns the kind of the actor.
    pub fn kind(&self) -> ActorKind {
        self.kind
    }

    /// Returns the policy hook.
    pub fn policy_hook(&self) -> Option<&Arc<dyn PolicyHook>> {
        self.policy_hook.as_ref()
    }

    pub(crate) fn liveness(&self) -> Option<&dyn Liveness> {
        self.liveness.as_deref()
    }

    /// Returns whether commands come from an agent or a person, not from a run.
    pub(crate) fn is_by_hand(&self) -> bool {
        self.run.is_none()
    }

    /// Builds a request from a command: removes secrets from its texts and adds the context.
    pub fn request(&self, command: Command) -> Request {
        let command = match &self.redact {
            Some(redact) => without_secrets(redact.as_ref(), command),
            None => command,
        };
        Request { command, context: self.context() }
    }

    /// Returns the context of a command by the actor that started the run, or by this actor if there is no
    /// run.
    pub fn context_of_starter(&self) -> Context {
        Context { run: None, kind: self.starter.unwrap_or(self.kind), ..self.context() }
    }

    /// Returns the context of a command issued now.
    pub fn context(&self) -> Context {
        Context {
            now: self.source.now(),
            actor: self.actor.clone(),
            kind: self.kind,
            run: self.run.clone(),
            origin: self.origin,
            policy_hook: self.policy_hook.clone(),
            redact: self.redact.clone(),
        }
    }

    /// Executes a command. If it is refused and a dead run holds a task that it names, that task is recovered
    /// and the command repeated.
    ///
    /// # Durability
    /// The answer is durable: it survives a crash of the process or the machine.
    pub fn command(&self, command: Command) -> Result<Answer, Error> {
        self.retry_after_recovery(command, |request| Ok(only(self.store.write(vec![request])?)))
    }

    /// Like [`command`](Self::command), for a command on one task. Returns the task as this command left it,
    /// before any later change.
    pub fn change(&self, command: Command) -> Result<Task, Error> {
        let (answer, task) = self.retry_after_recovery(command, |request| {
            let (outcomes, task) = self.store.write_and_view(vec![request], changed_task)?;
            Ok(only(outcomes).map(|answer| (answer, task)))
        })?;
        self.marked(task.ok_or_else(|| deleted_since(&answer))?)
    }

    fn retry_after_recovery<T>(
        &self,
        command: Command,
        give: impl Fn(Request) -> Result<Result<T, Box<Refusal>>, Error>,
    ) -> Result<T, Error> {
        // Numbered once, before the loop: a repetition after a recovery must keep its part of the request.
        let command = match &self.request {
            Some(asked) => asked.once(command),
            None => command,
        };
        let request = self.request(command);
        loop {
            match give(request.clone())? {
                Ok(answer) => return Ok(answer),
                // Terminates: each repetition has released at least one task of a dead run.
                Err(refusal) if self.recover_named(&request.command, &refusal)? => {}
                Err(refusal) => return Err(refusal.into()),
            }
        }
    }

    /// Decides a command without writing anything.
    pub fn preview(&self, command: Command) -> Result<Answer, Error> {
        let decision = self.store.preview(&self.request(command))?;
        Ok(decision?.answer)
    }

    fn tasks(&self, command: Command) -> Result<Vec<TaskId>, Error> {
        Ok(self.command(command)?.tasks)
    }

    fn task(&self, command: Command) -> Result<TaskId, Error> {
        let mut tasks = self.tasks(command)?;
        Ok(tasks.pop().expect("BUG: a command on a task answers the task"))
    }

    /// Creates a task and returns its id. An empty id is made from the name: `write-tests`, or `write-tests-2` if
    /// another task has or had that id.
    pub fn create(&self, task: NewTask) -> Result<TaskId, Error> {
        self.task(Command::Create(Box::new(task)))
    }

    /// Changes fields of a task, by their names in plan files. `null` removes a field; `metadata` and `context` are
    /// merged. Work (`run`, `call`, `calls`) replaces all calls; a failed task continues at the first that changed.
    pub fn update(&self, id: &str, fields: Map, if_version: Option<u64>) -> Result<TaskId, Error> {
        self.task(Command::Update { id: id.to_owned(), fields, if_version, restart: None })
    }

    /// Changes fields of a task like [`update`](Self::update), and starts it over with them in the same transaction. Returns the
    /// task, then the others that start over with it.
    pub fn update_and_restart(
        &self,
        id: &str,
        fields: Map,
        if_version: Option<u64>,
        restart: Restart,
    ) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Update { id: id.to_owned(), fields, if_version, restart: Some(restart) })
    }

    /// Returns the calls that [`update`](Self::update) would give a task; none if the fields leave its calls as they are.
    pub fn calls_of_update(&self, id: &str, fields: &Map) -> Result<Vec<NewCall>, Error> {
        self.read(|view| {
            let key = resolve(view, id)?;
            let Some(record) = view.task(key)? else { return Ok(Vec::new()) };
            let plan = record.plan.as_deref().map(|plan| view.plan(plan)).transpose()?.flatten();
            let calls = calls_of_update(&record, plan.as_ref(), fields).map_err(Refusal::from)?;
            Ok(calls.unwrap_or_default())
        })
    }

    /// Deletes tasks that no other task depends on. Their ids stay reserved.
    pub fn delete(&self, ids: &[String]) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Delete { ids: ids.to_vec() })
    }

    /// Claims a ready manual task for `lease`. A claim that this actor already has is renewed.
    pub fn claim(&self, id: &str, lease: Duration) -> Result<TaskId, Error> {
        self.task(self.command_to_claim(Some(id.to_owned()), lease, self.capacities.clone()))
    }

    /// Claims the first ready manual task that is assigned to this actor or to no one.
    pub fn claim_next(&self, lease: Duration) -> Result<TaskId, Error> {
        self.task(self.command_to_claim(None, lease, self.capacities.clone()))
    }

    /// Returns the command that claims a task, or the first ready one, with its write paths resolved.
    pub fn command_to_claim(
        &self,
        id: Option<String>,
        lease: Duration,
        capacities: BTreeMap<String, u32>,
    ) -> Command {
        let writes = self.paths.as_ref().map(|paths| self.resolved_writes(paths.as_ref(), id.as_deref()));
        Command::Claim { id, lease, capacities, writes: writes.unwrap_or_default() }
    }

    /// Resolves write paths before the transaction of the claim: a hanging file system must not hold the lock
    /// of the store. A failed read resolves nothing, because the claim itself reports the error.
    fn resolved_writes(&self, paths: &dyn Paths, id: Option<&str>) -> BTreeMap<Key, ResolvedWrites> {
        let candidates = self.read(|view| Ok(claim_candidates(view, id)?)).unwrap_or_default();
        let resolve = |(key, asked): (Key, Vec<String>)| {
            let paths = paths.resolve(&asked);
            (key, ResolvedWrites { asked, paths })
        };
        candidates.into_iter().map(resolve).collect()
    }

    /// Renews a claim, which then ends `lease` from now.
    pub fn renew(&self, id: &str, lease: Duration) -> Result<TaskId, Error> {
        self.task(Command::Renew { id: id.to_owned(), lease })
    }

    /// Releases claimed tasks.
    pub fn release(&self, ids: &[String]) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Release { ids: ids.to_vec(), note: None })
    }

    /// Releases claimed tasks and adds a note to each.
    ///
    /// With a note an agent may also release tasks that it created or that are assigned to it, once their holder, an
    /// agent or a program, gave no command for half of its lease.
    pub fn release_with_note(&self, ids: &[String], note: impl Into<String>) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Release { ids: ids.to_vec(), note: Some(note.into()) })
    }

    /// Marks manual tasks, or tasks with an interrupted call, as done.
    pub fn done(&self, ids: &[String], ending: Ending) -> Result<Vec<TaskId>, Error> {
        let Ending { result, note, attempt } = ending;
        self.tasks(Command::Done { ids: ids.to_vec(), result, note, attempt })
    }

    /// Marks manual tasks, or tasks with an interrupted call, as failed.
    pub fn fail(&self, ids: &[String], ending: Ending) -> Result<Vec<TaskId>, Error> {
        let Ending { result, note, attempt } = ending;
        self.tasks(Command::Fail { ids: ids.to_vec(), result, note, attempt })
    }

    /// Skips tasks and their subtasks; dependents may start.
    pub fn skip(&self, ids: &[String], reason: Option<String>) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Skip { ids: ids.to_vec(), reason })
    }

    /// Blocks tasks, so that they do not start.
    pub fn block(&self, ids: &[String], reason: impl Into<String>) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Block { ids: ids.to_vec(), reason: reason.into() })
    }

    /// Removes blocks that were set by hand. An interrupted call starts again.
    pub fn unblock(&self, ids: &[String]) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Unblock { ids: ids.to_vec() })
    }

    /// Retries finished tasks at the call where they stopped; `cascade` also retries the dependents that ran
    /// after them.
    pub fn retry(&self, ids: &[String], cascade: bool) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Retry { ids: ids.to_vec(), cascade })
    }

    /// Reopens finished tasks from the first call; `cascade` also reopens the dependents that ran after them.
    pub fn reopen(&self, ids: &[String], cascade: bool) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Reopen { ids: ids.to_vec(), cascade })
    }

    /// Cancels tasks and their subtasks; dependents are blocked.
    pub fn cancel(&self, ids: &[String], reason: Option<String>) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Cancel { ids: ids.to_vec(), reason })
    }

    /// Approves tasks that wait for a decision.
    ///
    /// # Errors
    /// A task does not wait for a decision, the answer is not one of the options, or the hash does not match
    /// the request.
    pub fn approve(&self, ids: &[String], approval: Approving) -> Result<Vec<TaskId>, Error> {
        let Approving { answer, args, hash } = approval;
        self.tasks(Command::Approve { ids: ids.to_vec(), answer, args, hash })
    }

    /// Approves a question of [`approvals_ahead`](Self::approvals_ahead) before the task waits for it.
    ///
    /// # Errors
    /// The task no longer asks, or its calls changed since.
    pub fn approve_ahead(&self, request: &ApprovalRequest) -> Result<Vec<TaskId>, Error> {
        let ApprovalRequest { task, call, hash, .. } = request;
        self.tasks(Command::ApproveAhead { task: task.to_string(), call: call.clone(), hash: hash.clone() })
    }

    /// Rejects tasks that wait for a decision, which cancels them and their subtasks. A task whose result is rejected fails.
    pub fn reject(&self, ids: &[String], reason: Option<String>) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Reject { ids: ids.to_vec(), reason, rework: None })
    }

    /// Sends the results of tasks back: their agents go on in their sessions with the text, and the tasks ask again.
    ///
    /// # Errors
    /// A task does not wait for a decision about its result, or has no call of `agent`.
    pub fn send_back(&self, ids: &[String], text: impl Into<String>) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Reject { ids: ids.to_vec(), reason: None, rework: Some(text.into()) })
    }

    /// Adds a tool call to a task.
    pub fn add_tool_call(&self, id: &str, call: NewCall) -> Result<TaskId, Error> {
        self.task(Command::AddCall { id: id.to_owned(), call: Box::new(call) })
    }

    /// Adds the dependency of task `id` on task `on`.
    pub fn add_dependency(&self, id: &str, on: &str) -> Result<TaskId, Error> {
        self.task(Command::AddDependency { id: id.to_owned(), on: on.to_owned() })
    }

    /// Removes the dependency of task `id` on task `on`.
    pub fn remove_dependency(&self, id: &str, on: &str) -> Result<TaskId, Error> {
        self.task(Command::RemoveDependency { id: id.to_owned(), on: on.to_owned() })
    }

    /// Moves a task under a parent, or to the top level.
    pub fn move_task(&self, id: &str, parent: Option<&str>) -> Result<TaskId, Error> {
        self.task(Command::Move { id: id.to_owned(), parent: parent.map(str::to_owned) })
    }

    /// Adds a note to a task.
    pub fn note(&self, id: &str, text: impl Into<String>) -> Result<TaskId, Error> {
        self.task(Command::Note { id: id.to_owned(), text: text.into() })
    }

    /// Reverts the command that has an event of this revision, or the last command of this actor for `None`.
    ///
    /// # Errors
    /// [`TouchedSince`](taskpawl_model::command::Refusal::TouchedSince) with the conflicting changes, if its tasks
    /// have changed since. Tool calls that ran are never undone.
    pub fn undo(&self, revision: Option<u64>) -> Result<Undone, Error> {
        self.command(Command::Undo { revision }).map(undone)
    }

    /// Returns the effect of an undo. Writes nothing.
    pub fn preview_undo(&self, revision: Option<u64>) -> Result<Undone, Error> {
        self.preview(Command::Undo { revision }).map(undone)
    }

    /// Applies a plan to the store under `name`.
    pub fn apply(&self, plan: Plan, name: &str, options: ApplyOptions) -> Result<ApplyReport, Error> {
        self.command(Self::apply_command(plan, name, options)).map(apply_report)
    }

    /// Returns the effect of applying a plan. Writes nothing.
    pub fn preview_apply(&self, plan: Plan, name: &str, options: ApplyOptions) -> Result<ApplyReport, Error> {
        self.preview(Self::apply_command(plan, name, options)).map(apply_report)
    }

    /// Renames a plan. The ids of its tasks do not change.
    ///
    /// # Errors
    /// The old plan does not exist, or the new name is taken.
    pub fn rename_plan(&self, from: &str, to: &str) -> Result<(), Error> {
        self.command(Command::RenamePlan { from: from.to_owned(), to: to.to_owned() }).map(drop)
    }

    /// Imports tasks of another program with their statuses: all of them or none.
    ///
    /// # Errors
    /// [`ImportConflict`](taskpawl_model::command::Refusal::ImportConflict) if an id belongs to another task, and
    /// every refusal of creating or changing tasks.
    pub fn import(&self, import: Import) -> Result<ImportReport, Error> {
        self.command(Command::Import(Box::new(import))).map(import_report)
    }

    /// Returns the effect of an import. Writes nothing.
    pub fn preview_import(&self, import: Import) -> Result<ImportReport, Error> {
        self.preview(Command::Import(Box::new(import))).map(import_report)
    }

    pub(crate) fn apply_command(plan: Plan, name: &str, options: ApplyOptions) -> Command {
        let ApplyOptions { prune, fresh, on_changed, retry_failed, keeps_approvals } = options;
        let name = name.to_owned();
        Command::Apply(Arc::new(Apply {
            plan,
            name,
            prune,
            fresh,
            on_changed,
            retry_failed,
            keeps_approvals,
        }))
    }
}

fn only(mut outcomes: Vec<Outcome>) -> Outcome {
    outcomes.pop().expect("BUG: a store answers every request")
}

/// Reads the task of the last command, if the command was accepted and the task still exists.
fn changed_task(view: &dyn View, outcomes: &[Outcome]) -> ViewResult<Option<Task>> {
    let Some(Ok(Answer { tasks, .. })) = outcomes.last() else { return Ok(None) };
    let key = tasks.last().map_or(Ok(None), |id| view.key(id.as_str()))?;
    key.map_or(Ok(None), |key| read_task(view, key))
}

/// Returns the error for a task that a later command of the same commit has deleted.
fn deleted_since(answer: &Answer) -> Error {
    let id = answer.tasks.last().map(TaskId::to_string).unwrap_or_default();
    Refusal::UnknownTask { id, similar: Vec::new() }.into()
}

fn undone(answer: Answer) -> Undone {
    answer.undone.expect("BUG: an undo says what it undid")
}

fn import_report(answer: Answer) -> ImportReport {
    answer.imported.expect("BUG: an import reports")
}

fn apply_report(answer: Answer) -> ApplyReport {
    answer.applied.expect("BUG: an apply reports")
}

/// Options for applying a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub struct ApplyOptions {
    /// Cancel tasks that are missing from the plan and have not started.
    pub prune: bool,
    /// Reopen every task of the plan.
    pub fresh: bool,
    /// What becomes of finished tasks whose work changed in the file.
    pub on_changed: OnChanged,
    /// Retry the failed tasks of the plan whose definition did not change.
    pub retry_failed: bool,
    /// Refuse a plan that would remove or change a required approval. Set for actors that may not decide
    /// approvals.
    pub keeps_approvals: bool,
}

/// Returns the write paths of the task to be claimed, or of the first ready tasks if there is no id.
fn claim_candidates(view: &dyn View, id: Option<&str>) -> ViewResult<Vec<(Key, Vec<String>)>> {
    let keys = if let Some(id) = id {
        taskpawl_model::rules::resolve(view, id).into_iter().collect()
    } else {
        let ready = Some(vec![Work::Manual]);
        view.find(&Query { ready, limit: MAX_CANDIDATES, ..Query::default() })?
    };
    let mut candidates = Vec::new();
    for key in keys {
        let writes = view.task(key)?.map(|task| task.spec.writes.clone()).unwrap_or_default();
        if !writes.is_empty() {
            candidates.push((key, writes));
        }
    }
    Ok(candidates)
}
