use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use taskpawl_model::{
    Actor, ActorKind, Answer, Apply, ApplyReport, Command, Context, Gatekeeper, Import, ImportReport, Key,
    Map, NewCall, NewTask, Once, Origin, Plan, Query, Refusal, Request, ResolvedWrites, RunId, SharedText,
    Task, TaskId, Undone, View, ViewResult, Work, read_task,
};
use taskpawl_store::{Outcome, Store};

use crate::error::Error;
use crate::liveness::Liveness;
use crate::paths::Paths;
use crate::redaction::{Redact, without_secrets};
use crate::source::{Source, SystemSource};

/// The most ready tasks in whose paths links are followed before the first of them is claimed. Beyond them paths count as they are
/// written.
const MAX_CANDIDATES: usize = 32;

/// Offers every command on a plan, in the name of one actor.
///
/// Cheap to clone. Every command is one durable commit, or is refused and changes nothing; tasks are named by their id or a
/// unique prefix of it.
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
    gatekeeper: Option<Arc<dyn Gatekeeper>>,
    redact: Option<Arc<dyn Redact>>,
    paths: Option<Arc<dyn Paths>>,
    request: Option<Arc<Asked>>,
    /// The kind of the actor who started the run that this acts as.
    starter: Option<ActorKind>,
}

/// A request of which commands are the parts, in their order.
#[derive(Debug)]
struct Asked {
    name: String,
    digest: String,
    given: AtomicU32,
}

impl Asked {
    fn once(&self, command: Command) -> Command {
        let part = self.given.fetch_add(1, Ordering::Relaxed);
        let request = if part == 0 { self.name.clone() } else { format!("{}#{part}", self.name) };
        Command::Once(Box::new(Once { request, digest: self.digest.clone(), command }))
    }
}

/// How somebody says that a task ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ending {
    /// What came out of it.
    pub result: Option<Value>,
    /// A remark; of a failure the reason.
    pub note: Option<String>,
    /// The attempt that the report belongs to, where the reporter knows it.
    pub attempt: Option<u32>,
}

/// What somebody says who approves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Approving {
    /// The answer, where a question was asked; without one it is yes.
    pub answer: Option<Value>,
    /// The arguments to run with instead of those that were asked about; only where that is one call.
    pub args: Option<Map>,
    /// The hash of what was looked at, or at least 8 characters of it: refused where something else is asked about by now.
    pub hash: Option<String>,
}

impl Manager {
    /// Returns a manager of `store` in the name of `actor`.
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
            gatekeeper: None,
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

    /// Marks calls that are added with `origin`.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Says how much there is of resources, which comes before what plans say: claims keep to it.
    #[must_use]
    pub fn with_capacities(mut self, capacities: BTreeMap<String, u32>) -> Self {
        self.capacities = capacities;
        self
    }

    /// Asks `liveness` about runs: reads then tell what dead ones hold, and a command that names such a task takes it back first.
    #[must_use]
    pub fn with_liveness(mut self, liveness: Arc<dyn Liveness>) -> Self {
        self.liveness = Some(liveness);
        self
    }

    /// Lets `gatekeeper` judge calls before they start. Without one only their authors say what asks. Everybody who writes to a
    /// store should have the same one: what asks may be decided with any command.
    #[must_use]
    pub fn with_gatekeeper(mut self, gatekeeper: Arc<dyn Gatekeeper>) -> Self {
        self.gatekeeper = Some(gatekeeper);
        self
    }

    /// Follows links in what tasks write, with `paths`, when they are claimed by hand. Without it paths are compared as they are written.
    #[must_use]
    pub fn with_paths(mut self, paths: Arc<dyn Paths>) -> Self {
        self.paths = Some(paths);
        self
    }

    /// Takes secrets out of what people and agents report of tasks, with `redact`, before it is kept.
    #[must_use]
    pub fn with_redaction(mut self, redact: Arc<dyn Redact>) -> Self {
        self.redact = Some(redact);
        self
    }

    /// Acts as a run.
    #[must_use]
    pub fn with_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self.starter = Some(self.kind);
        self.kind = ActorKind::Run;
        self
    }

    /// Gives the commands that follow as the parts, in their order, of a request of this actor. Parts that were done before, by a
    /// request of the same name, are not done again and give the answers of then; `digest` tells it from another request of that name.
    ///
    /// # Durability
    /// What was done is on record with the command itself, and so is known after a crash and to other processes.
    #[must_use]
    pub fn with_request(mut self, name: impl Into<String>, digest: impl Into<String>) -> Self {
        let (name, digest) = (name.into(), digest.into());
        self.request = Some(Arc::new(Asked { name, digest, given: AtomicU32::new(0) }));
        self
    }

    pub(crate) fn without_request(mut self) -> Self {
        self.request = None;
        self
    }

    /// Acts in the name of another actor.
    #[must_use]
    pub fn with_actor(mut self, actor: impl Into<String>) -> Self {
        self.actor = SharedText::from(Into::<String>::into(actor));
        self
    }

    /// Acts as an actor of this kind; a manager begins as a program.
    ///
    /// An agent and a program act on what an actor of their kind and name holds, a person acts on anything.
    #[must_use]
    pub fn with_kind(mut self, kind: ActorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns where time and ids come from.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// Returns in whose name commands are given.
    pub fn actor(&self) -> &str {
        &self.actor
    }

    /// Returns the actor as claims and events are compared with it.
    pub fn as_actor(&self) -> Actor<'_> {
        Actor { kind: self.kind, name: &self.actor }
    }

    /// Returns the kind of the actor.
    pub fn kind(&self) -> ActorKind {
        self.kind
    }

    /// Returns who judges calls before they start.
    pub fn gatekeeper(&self) -> Option<&Arc<dyn Gatekeeper>> {
        self.gatekeeper.as_ref()
    }

    pub(crate) fn liveness(&self) -> Option<&dyn Liveness> {
        self.liveness.as_deref()
    }

    /// Returns whether commands are those of an agent or a person.
    pub(crate) fn is_by_hand(&self) -> bool {
        self.run.is_none()
    }

    /// Returns a request with who asks and when, without secrets in what it reports.
    pub fn request(&self, command: Command) -> Request {
        let command = match &self.redact {
            Some(redact) => without_secrets(redact.as_ref(), command),
            None => command,
        };
        Request { command, context: self.context() }
    }

    /// Returns the context of a command by the actor who started the run; without a run, of one by this actor.
    pub fn context_of_starter(&self) -> Context {
        Context { run: None, kind: self.starter.unwrap_or(self.kind), ..self.context() }
    }

    /// Returns the context of a command that is given now.
    pub fn context(&self) -> Context {
        Context {
            now: self.source.now(),
            actor: self.actor.clone(),
            kind: self.kind,
            run: self.run.clone(),
            origin: self.origin,
            gatekeeper: self.gatekeeper.clone(),
        }
    }

    /// Gives one command. If it is refused and a run that is dead holds a task that it names, that task is taken back and the
    /// command given once more.
    ///
    /// # Durability
    /// What it answers survives the end of the process and of the machine.
    pub fn command(&self, command: Command) -> Result<Answer, Error> {
        self.until_it_is_answered(command, |request| Ok(only(self.store.write(vec![request])?)))
    }

    /// As [`command`](Self::command), for a command on one task; returns the task as it is left, before anybody else changes it.
    pub fn change(&self, command: Command) -> Result<Task, Error> {
        let (answer, task) = self.until_it_is_answered(command, |request| {
            let (outcomes, task) = self.store.write_and_view(vec![request], changed_task)?;
            Ok(only(outcomes).map(|answer| (answer, task)))
        })?;
        self.marked(task.ok_or_else(|| gone(&answer))?)
    }

    fn until_it_is_answered<T>(
        &self,
        command: Command,
        give: impl Fn(Request) -> Result<Result<T, Box<Refusal>>, Error>,
    ) -> Result<T, Error> {
        let command = match &self.request {
            Some(asked) => asked.once(command),
            None => command,
        };
        let request = self.request(command);
        loop {
            match give(request.clone())? {
                Ok(answer) => return Ok(answer),
                // Each time round something is no longer held by a dead run.
                Err(refusal) if self.recover_named(&request.command, &refusal)? => {}
                Err(refusal) => return Err(refusal.into()),
            }
        }
    }

    /// Returns what a command would come to, and writes nothing.
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

    /// Makes a task and returns its id: the given one, or a new random one where it is empty.
    pub fn create(&self, task: NewTask) -> Result<TaskId, Error> {
        self.task(self.creation(task))
    }

    /// Returns the command that makes a task. An empty id stands for a new random one.
    pub fn creation(&self, mut task: NewTask) -> Command {
        if task.id.as_str().is_empty() {
            task.id = TaskId::from(self.source.new_id());
        }
        Command::Create(Box::new(task))
    }

    /// Changes fields of a task, by their names on the outside; `null` takes a field away, `metadata` and `context` merge.
    pub fn update(&self, id: &str, fields: Map, if_version: Option<u64>) -> Result<TaskId, Error> {
        self.task(Command::Update { id: id.to_owned(), fields, if_version })
    }

    /// Deletes tasks that nothing else needs. Their ids are not used again.
    pub fn delete(&self, ids: &[String]) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Delete { ids: ids.to_vec() })
    }

    /// Takes a ready manual task for `lease`; the holder's own claim is renewed.
    pub fn claim(&self, id: &str, lease: Duration) -> Result<TaskId, Error> {
        self.task(self.command_to_claim(Some(id.to_owned()), lease, self.capacities.clone()))
    }

    /// Takes the first ready manual task that is for this actor or for nobody in particular.
    pub fn claim_next(&self, lease: Duration) -> Result<TaskId, Error> {
        self.task(self.command_to_claim(None, lease, self.capacities.clone()))
    }

    /// Returns the command that claims a task, or the first ready one, with what `paths` says of the links in what it writes.
    pub fn command_to_claim(
        &self,
        id: Option<String>,
        lease: Duration,
        capacities: BTreeMap<String, u32>,
    ) -> Command {
        let writes = self.paths.as_ref().map(|paths| self.resolved_writes(paths.as_ref(), id.as_deref()));
        Command::Claim { id, lease, capacities, writes: writes.unwrap_or_default() }
    }

    /// Follows links outside the transaction that claims: a file system that does not answer must not hold the lock of the store. A
    /// read that fails resolves nothing; the claim itself says what is wrong.
    fn resolved_writes(&self, paths: &dyn Paths, id: Option<&str>) -> BTreeMap<Key, ResolvedWrites> {
        let candidates = self.read(|view| Ok(claim_candidates(view, id)?)).unwrap_or_default();
        let resolve = |(key, asked): (Key, Vec<String>)| {
            let paths = paths.resolve(&asked);
            (key, ResolvedWrites { asked, paths })
        };
        candidates.into_iter().map(resolve).collect()
    }

    /// Prolongs a claim: it lasts `lease` from now.
    pub fn renew(&self, id: &str, lease: Duration) -> Result<TaskId, Error> {
        self.task(Command::Renew { id: id.to_owned(), lease })
    }

    /// Gives claimed tasks back.
    pub fn release(&self, ids: &[String]) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Release { ids: ids.to_vec() })
    }

    /// Ends manual tasks well, or says that interrupted calls ended well.
    pub fn done(&self, ids: &[String], ending: Ending) -> Result<Vec<TaskId>, Error> {
        let Ending { result, note, attempt } = ending;
        self.tasks(Command::Done { ids: ids.to_vec(), result, note, attempt })
    }

    /// Ends manual tasks badly, or says that interrupted calls ended badly.
    pub fn fail(&self, ids: &[String], ending: Ending) -> Result<Vec<TaskId>, Error> {
        let Ending { result, note, attempt } = ending;
        self.tasks(Command::Fail { ids: ids.to_vec(), result, note, attempt })
    }

    /// Says that tasks, with all below, are not needed.
    pub fn skip(&self, ids: &[String], reason: Option<String>) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Skip { ids: ids.to_vec(), reason })
    }

    /// Keeps tasks from starting.
    pub fn block(&self, ids: &[String], reason: impl Into<String>) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Block { ids: ids.to_vec(), reason: reason.into() })
    }

    /// Takes blocks away that were set by hand; an interrupted call starts again.
    pub fn unblock(&self, ids: &[String]) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Unblock { ids: ids.to_vec() })
    }

    /// Starts finished tasks again where they stopped; `cascade` also what ran after them.
    pub fn retry(&self, ids: &[String], cascade: bool) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Retry { ids: ids.to_vec(), cascade })
    }

    /// Starts finished tasks again from the beginning; `cascade` also what ran after them.
    pub fn reopen(&self, ids: &[String], cascade: bool) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Reopen { ids: ids.to_vec(), cascade })
    }

    /// Gives tasks, with all below, up.
    pub fn cancel(&self, ids: &[String], reason: Option<String>) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Cancel { ids: ids.to_vec(), reason })
    }

    /// Lets tasks start, or go on, that wait for a decision.
    ///
    /// # Errors
    /// A task does not ask, or no longer; the answer is none of the options; what it asks about is not what was looked at.
    pub fn approve(&self, ids: &[String], approval: Approving) -> Result<Vec<TaskId>, Error> {
        let Approving { answer, args, hash } = approval;
        self.tasks(Command::Approve { ids: ids.to_vec(), answer, args, hash })
    }

    /// Cancels tasks that wait for a decision, with all below.
    pub fn reject(&self, ids: &[String], reason: Option<String>) -> Result<Vec<TaskId>, Error> {
        self.tasks(Command::Reject { ids: ids.to_vec(), reason })
    }

    /// Adds a tool call to a task.
    pub fn add_tool_call(&self, id: &str, call: NewCall) -> Result<TaskId, Error> {
        self.task(Command::AddCall { id: id.to_owned(), call: Box::new(call) })
    }

    /// Makes a task depend on another.
    pub fn add_dependency(&self, id: &str, on: &str) -> Result<TaskId, Error> {
        self.task(Command::AddDependency { id: id.to_owned(), on: on.to_owned() })
    }

    /// Makes a task not depend on another any more.
    pub fn remove_dependency(&self, id: &str, on: &str) -> Result<TaskId, Error> {
        self.task(Command::RemoveDependency { id: id.to_owned(), on: on.to_owned() })
    }

    /// Puts an existing task below another, or at the top.
    pub fn move_task(&self, id: &str, parent: Option<&str>) -> Result<TaskId, Error> {
        self.task(Command::Move { id: id.to_owned(), parent: parent.map(str::to_owned) })
    }

    /// Adds a remark to a task.
    pub fn note(&self, id: &str, text: impl Into<String>) -> Result<TaskId, Error> {
        self.task(Command::Note { id: id.to_owned(), text: text.into() })
    }

    /// Takes back what the command with an event of this revision did; `None` stands for the last one of this actor.
    ///
    /// # Errors
    /// [`TouchedSince`](taskpawl_model::Refusal::TouchedSince) with a list where something happened to its tasks since. What ran
    /// is never undone.
    pub fn undo(&self, revision: Option<u64>) -> Result<Undone, Error> {
        self.command(Command::Undo { revision }).map(undone)
    }

    /// Returns what an undo would undo; writes nothing.
    pub fn preview_undo(&self, revision: Option<u64>) -> Result<Undone, Error> {
        self.preview(Command::Undo { revision }).map(undone)
    }

    /// Brings a plan into the store under `name`.
    pub fn apply(&self, plan: Plan, name: &str, options: ApplyOptions) -> Result<ApplyReport, Error> {
        self.command(self.apply_command(plan, name, options)).map(apply_report)
    }

    /// Returns what applying a plan would do; writes nothing.
    pub fn preview_apply(&self, plan: Plan, name: &str, options: ApplyOptions) -> Result<ApplyReport, Error> {
        self.preview(self.apply_command(plan, name, options)).map(apply_report)
    }

    /// Gives a plan another name. Its tasks keep their ids.
    ///
    /// # Errors
    /// There is no plan of the old name, or one of the new name already.
    pub fn rename_plan(&self, from: &str, to: &str) -> Result<(), Error> {
        self.command(Command::RenamePlan { from: from.to_owned(), to: to.to_owned() }).map(drop)
    }

    /// Brings tasks of another program into the store, with their states: all of them, or none.
    ///
    /// # Errors
    /// [`ImportConflict`](taskpawl_model::Refusal::ImportConflict) where an id is that of another task, and every refusal that making
    /// and changing tasks has.
    pub fn import(&self, import: Import) -> Result<ImportReport, Error> {
        self.command(Command::Import(Box::new(import))).map(import_report)
    }

    /// Returns what an import would do; writes nothing.
    pub fn preview_import(&self, import: Import) -> Result<ImportReport, Error> {
        self.preview(Command::Import(Box::new(import))).map(import_report)
    }

    pub(crate) fn apply_command(&self, plan: Plan, name: &str, options: ApplyOptions) -> Command {
        let fresh_ids = plan.tasks.iter().map(|task| self.id_if_missing(task.id.as_ref())).collect();
        let ApplyOptions { prune, fresh, keeps_approvals } = options;
        let name = name.to_owned();
        Command::Apply(Arc::new(Apply { plan, name, fresh_ids, prune, fresh, keeps_approvals }))
    }

    fn id_if_missing(&self, given: Option<&TaskId>) -> TaskId {
        match given {
            Some(_) => TaskId::default(),
            None => TaskId::from(self.source.new_id()),
        }
    }
}

fn only(mut outcomes: Vec<Outcome>) -> Outcome {
    outcomes.pop().expect("BUG: a store answers every request")
}

/// Returns the task that the last command was about, if it was accepted and the task is there.
fn changed_task(view: &dyn View, outcomes: &[Outcome]) -> ViewResult<Option<Task>> {
    let Some(Ok(Answer { tasks, .. })) = outcomes.last() else { return Ok(None) };
    let key = tasks.last().map_or(Ok(None), |id| view.key(id.as_str()))?;
    key.map_or(Ok(None), |key| read_task(view, key))
}

/// Another command of the same commit has deleted it.
fn gone(answer: &Answer) -> Error {
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

/// How a plan is applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApplyOptions {
    /// Cancel tasks that are gone from the file and were not started.
    pub prune: bool,
    /// Reopen every task of the plan.
    pub fresh: bool,
    /// Refuse it where it would take an approval away from a task or a call, or change it: for who may not decide.
    pub keeps_approvals: bool,
}

/// Returns what the task writes that is to be claimed; without an id, what the first ready ones do.
fn claim_candidates(view: &dyn View, id: Option<&str>) -> ViewResult<Vec<(Key, Vec<String>)>> {
    let keys = if let Some(id) = id {
        taskpawl_model::resolve(view, id).into_iter().collect()
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
