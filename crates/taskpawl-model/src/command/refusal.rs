//! Refusals: commands that the rules do not allow. A refused command changes nothing, and its hint suggests another
//! one.

mod hints;

use crate::advice::Advice;
use crate::advice::hint::Hint;
use crate::plan::PlanErrors;
use crate::task::ActorKind;
use crate::task::event::Event;
use crate::task::spec::PlanAccess;
use crate::task::status::{BlockedReason, Status};
use crate::value::Timestamp;
use crate::value::bounded;
use crate::value::id::IdError;
use crate::value::{RunId, TaskId};

/// Reason why a command was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No task has this id or an id with this prefix.
    #[error("no task {}", bounded::data(.id))]
    UnknownTask {
        /// Reference that the caller gave.
        id: String,
        /// Similar ids.
        similar: Vec<TaskId>,
    },
    /// A forecast was asked to assume two different ends of the same task.
    #[error("{} and {} contradict each other", bounded::data(.first), bounded::data(.second))]
    Contradiction {
        /// The first assumption.
        first: String,
        /// The assumption that contradicts it.
        second: String,
    },
    /// Several ids begin with this prefix.
    #[error("{} is ambiguous: it matches {}", bounded::data(.id), quoted(.candidates))]
    AmbiguousId {
        /// Reference that the caller gave.
        id: String,
        /// Some of the matching tasks.
        candidates: Vec<TaskId>,
    },
    /// A selector, such as a plan or a label, matches no task.
    #[error("{} selects no task", bounded::data(.selector))]
    NothingSelected {
        /// The selector.
        selector: String,
    },
    /// No run has this id.
    #[error("no run {}", bounded::data(.id))]
    UnknownRun {
        /// Id that the caller gave.
        id: String,
    },
    /// The run has ended.
    #[error("run {} has ended", bounded::data(.id))]
    RunOver {
        /// Id of the run.
        id: String,
    },
    /// An agent may stop only runs that it started.
    #[error("run {} was started by {}: an agent stops only runs that it started", bounded::data(.id), bounded::data(.actor))]
    ForeignRun {
        /// Id of the run.
        id: String,
        /// Actor that started it.
        actor: String,
    },
    /// The id has an invalid form.
    #[error(transparent)]
    InvalidId(#[from] IdError),
    /// The id is taken.
    #[error("id `{id}` is taken{}", if *.deleted { " by a deleted task: ids are not reused" } else { "" })]
    DuplicateId {
        /// The id.
        id: TaskId,
        /// True if the task with this id was deleted.
        deleted: bool,
    },
    /// The transition table does not allow the change of status.
    #[error("task `{id}` is `{from}`{} and cannot become `{to}` by `{by}`", because(.reason.as_ref()))]
    Transition {
        /// Id of the task.
        id: TaskId,
        /// Its status.
        from: Status,
        /// Reason, if it is blocked.
        reason: Option<BlockedReason>,
        /// Requested status.
        to: Status,
        /// The refused command.
        by: &'static str,
        /// Commands that are allowed instead.
        allowed: Vec<&'static str>,
        /// Status changes since the caller last held the task, or since the attempt that a report is about.
        since: ChangesSince,
    },
    /// The task is not ready.
    #[error("task `{id}` is not ready: {}{}", waits_for(.open, .failed, .wait.as_deref()), hangs_at(.cause.as_ref(), .open, .failed))]
    NotReady {
        /// Id of the task.
        id: TaskId,
        /// Some of the unfinished tasks before it.
        open: Vec<TaskId>,
        /// Some of the failed tasks before it.
        failed: Vec<TaskId>,
        /// The time that it waits for, as text.
        wait: Option<String>,
        /// The task that is the first cause, and its explanation.
        cause: Option<(TaskId, String)>,
    },
    /// Other tasks hold resources or paths that the task needs.
    #[error("task `{id}` needs resources that {} {}", names(.by), if .by.len() == 1 { "holds" } else { "hold" })]
    Occupied {
        /// Id of the task.
        id: TaskId,
        /// Some of the holders.
        by: Vec<TaskId>,
    },
    /// No ready task is left for an agent or a person.
    #[error("no manual task is ready")]
    NothingReady,
    /// The command does not fit the kind of the task: one with tool calls, a manual one, or one that finishes by itself.
    #[error("task `{id}` {what}, so `{by}` does not apply to it")]
    NotManual {
        /// Id of the task.
        id: TaskId,
        /// Property of the task that excludes the command, such as having tool calls.
        what: &'static str,
        /// The refused command.
        by: &'static str,
        /// Commands that would end the task and that the rules accept from this caller.
        ends: Vec<Advice>,
    },
    /// Another actor holds the task.
    #[error("task `{id}` is held by {holder}{}", until(*.lease_until))]
    HeldByOther {
        /// Id of the task.
        id: TaskId,
        /// Its holder.
        holder: HeldBy,
        /// Time at which the lease ends.
        lease_until: Option<Timestamp>,
        /// Status changes since the caller last held the task, or since the attempt that a report is about.
        since: ChangesSince,
    },
    /// The report belongs to an attempt that is over.
    #[error(
        "the report is about attempt {reported} of task `{id}`, which is at attempt {current} and `{status}`"
    )]
    StaleAttempt {
        /// Id of the task.
        id: TaskId,
        /// Attempt in the report.
        reported: u32,
        /// Current attempt.
        current: u32,
        /// Current status.
        status: Status,
        /// Status changes since the reported attempt began.
        since: ChangesSince,
    },
    /// The report belongs to an attempt of another actor.
    #[error("attempt {attempt} of task `{id}` belongs to another actor")]
    ForeignAttempt {
        /// Id of the task.
        id: TaskId,
        /// Attempt in the report.
        attempt: u32,
        /// Status changes since that attempt began.
        since: ChangesSince,
    },
    /// The call is not running.
    #[error("call `{call}` of task `{id}` is `{status}`, not `running`")]
    CallNotRunning {
        /// Id of the task.
        id: TaskId,
        /// Id of the call.
        call: String,
        /// Status of the call, or `deleted` or `over`.
        status: String,
    },
    /// The task changed since the caller read it.
    #[error("task `{id}` has version {current}, not {expected}")]
    VersionMismatch {
        /// Id of the task.
        id: TaskId,
        /// Version that the caller requires.
        expected: u64,
        /// Current version.
        current: u64,
    },
    /// The dependency or parent would close a cycle.
    #[error("this would close a cycle: {}", way(.path))]
    Cycle {
        /// Tasks on the cycle, in order; the last equals the first.
        path: Vec<TaskId>,
    },
    /// The dependency already exists, or does not exist.
    #[error("task `{id}` {} on `{on}`", if *.exists { "already depends" } else { "does not depend" })]
    Dependency {
        /// Id of the dependent task.
        id: TaskId,
        /// Id of the dependency.
        on: TaskId,
        /// True if the dependency exists.
        exists: bool,
    },
    /// The work of a task cannot change in its current status.
    #[error("task `{id}` is `{status}`: {what} can no longer change")]
    WorkStarted {
        /// Id of the task.
        id: TaskId,
        /// Its status.
        status: Status,
        /// The part that the command would change.
        what: &'static str,
        /// Command that puts the task back to `todo`, if the rules accept it from this caller.
        reopen: Option<Advice>,
    },
    /// Dependents already ran.
    #[error("{} ran after `{id}`", quoted(.dependents))]
    DependentsRan {
        /// Id of the task.
        id: TaskId,
        /// The refused command.
        by: &'static str,
        /// Some of the dependents that ran.
        dependents: Vec<TaskId>,
    },
    /// A subtask or a dependent is in progress.
    #[error("{} {} in progress", quoted(.tasks), if .tasks.len() == 1 { "is" } else { "are" })]
    InProgress {
        /// Some of the tasks in progress.
        tasks: Vec<TaskId>,
    },
    /// The task was cancelled, and its calls have not ended yet.
    #[error("run `{run}` is still ending a call of the cancelled task `{id}`")]
    StillEnding {
        /// Id of the task.
        id: TaskId,
        /// Run that ends the calls.
        run: RunId,
    },
    /// Other tasks depend on the task or are below it.
    #[error("task `{id}` is still needed by {}", quoted(.by))]
    StillNeeded {
        /// Id of the task.
        id: TaskId,
        /// Some of its dependents and subtasks.
        by: Vec<TaskId>,
    },
    /// A field has an invalid value.
    #[error("field {}: {}", bounded::data(.field), bounded::message(.problem))]
    InvalidField {
        /// Name of the field.
        field: String,
        /// Description of the problem.
        problem: String,
    },
    /// Fields of a plan or a task have an invalid form.
    #[error(transparent)]
    Invalid {
        /// All errors, each with its position.
        #[from]
        errors: PlanErrors,
    },
    /// The trigger needs dependencies, and the task has none.
    #[error("task `{id}` has the trigger `{trigger}` but no dependencies")]
    TriggerWithoutDependencies {
        /// Id of the task.
        id: TaskId,
        /// The trigger.
        trigger: &'static str,
    },
    /// No command of this actor is left to undo.
    #[error("{} has no command to undo", bounded::data(.actor))]
    NothingToUndo {
        /// The actor.
        actor: String,
    },
    /// The revision does not belong to a command that can be undone.
    #[error("revision {revision} cannot be undone: {why}")]
    NotUndoable {
        /// The revision.
        revision: u64,
        /// The reason.
        why: &'static str,
        /// The last command of the caller that can be undone, if it gave none to undo.
        before: Option<u64>,
    },
    /// The command was undone before.
    #[error("revision {revision} was undone in revision {by}")]
    AlreadyUndone {
        /// Revision of the command.
        revision: u64,
        /// Revision of the undo.
        by: u64,
    },
    /// The tasks of the command to undo changed since.
    #[error("revision {revision} cannot be undone: {}", some_words(.touches))]
    TouchedSince {
        /// Revision of the command.
        revision: u64,
        /// Last conflicting change of each task.
        touches: Vec<ConflictingChange>,
    },
    /// The task does not wait for a decision.
    #[error("task `{id}` does not wait for a decision: it is `{status}`{}", decided(.by.as_ref()))]
    NotAsked {
        /// Id of the task.
        id: TaskId,
        /// Its status.
        status: Status,
        /// Last approver, and the time of the approval.
        by: Option<(String, Timestamp)>,
    },
    /// The time to decide has ended.
    #[error("the approval of task `{id}` expired at {}", crate::value::format_time(*.at))]
    QuestionOver {
        /// Id of the task.
        id: TaskId,
        /// Time at which it ended.
        at: Timestamp,
        /// True if the plan's default lets the task continue.
        goes_on: bool,
    },
    /// The proposal changed since the approver saw it.
    #[error("the pending approval of task `{id}` has the hash `{current}`, not {}", bounded::data(.given))]
    StaleHash {
        /// Id of the task.
        id: TaskId,
        /// Hash that the approver gave.
        given: String,
        /// Hash of the current proposal.
        current: String,
    },
    /// The answer is not one of the options of the question.
    #[error("{} the question of task `{id}`", answer_problem(.answer.as_ref()))]
    WrongAnswer {
        /// Id of the task.
        id: TaskId,
        /// Answer that was given.
        answer: Option<String>,
        /// Options of the question.
        options: Vec<String>,
    },
    /// Arguments were given, but the question is about several calls.
    #[error("task `{id}` asks about {calls} calls, but arguments can be given for only one")]
    ManyCalls {
        /// Id of the task.
        id: TaskId,
        /// Number of calls in the question.
        calls: usize,
    },
    /// A run may not approve or reject tasks.
    #[error("a run cannot decide about tasks: only people and approvers may `{by}`")]
    RunDecides {
        /// The refused command.
        by: &'static str,
    },
    /// The task is assigned to `person`, and another kind of actor would end or reassign it.
    #[error("only a person may `{by}` task `{id}`: its assignee is `person`")]
    PersonOnly {
        /// Id of the task.
        id: TaskId,
        /// The refused command.
        by: &'static str,
    },
    /// The task is assigned to another agent.
    #[error("an agent may `{by}` only tasks that it may report on: the assignee of task `{id}` is {}", bounded::data(.assignee))]
    ForOther {
        /// Id of the task.
        id: TaskId,
        /// The refused command.
        by: &'static str,
        /// Name of its assignee.
        assignee: String,
    },
    /// The command would remove or change an approval, and its caller may not decide.
    #[error(
        "this would remove or change the approval that task `{id}` waits for; only people and approvers may do that"
    )]
    TakesApproval {
        /// Id of the task.
        id: TaskId,
    },
    /// The command would let a task start without an approval that is still pending, and its caller may not decide.
    #[error(
        "task `{id}` would no longer wait for the approval of task `{on}`; only people and approvers may decide that"
    )]
    StartsWithout {
        /// Task that would start.
        id: TaskId,
        /// Task with the pending approval.
        on: TaskId,
    },
    /// An expression can never be evaluated.
    #[error("task `{id}`: {field}: {problem}")]
    Expression {
        /// Id of the task.
        id: TaskId,
        /// Field that contains the expression.
        field: String,
        /// The error.
        problem: Box<crate::plan::PlanProblem>,
        /// Suggested next step.
        hint: Option<Hint>,
    },
    /// Parameters of a plan have no value.
    #[error("the plan `{plan}` needs a value for {}", names(.params))]
    MissingParams {
        /// Name of the plan.
        plan: String,
        /// Names of the parameters.
        params: Vec<String>,
    },
    /// A call needs more plan access than it has.
    #[error("{}: {what}", may_only(*.access))]
    BeyondAccess {
        /// Access of the call; `None` if unknown here.
        access: Option<PlanAccess>,
        /// Explanation, which follows a colon in the message.
        what: String,
    },
    /// The call reached the limit of additions to its plan.
    #[error("the call has reached its limit of {most} {what}")]
    AddedEnough {
        /// The limit.
        most: u64,
        /// Unit of the limit.
        what: &'static str,
    },
    /// Refusal from another process that owns the plan.
    #[error("{message}")]
    Relayed {
        /// Its message.
        message: String,
        /// Its hint.
        hint: Option<Hint>,
        /// True if it is about an unknown or ambiguous id.
        is_about_ids: bool,
    },
    /// Tasks of another program cannot be imported.
    #[error("{} cannot be imported: {}", .source_name, Conflict::list(.conflicts))]
    ImportConflict {
        /// Name of the source.
        source_name: String,
        /// Conflicts, one for each task.
        conflicts: Vec<Conflict>,
    },
    /// The request name was used before with other arguments.
    #[error("the request {} was already made with other arguments at {}", bounded::data(.request), crate::value::format_time(*.at))]
    RequestReused {
        /// The request name.
        request: String,
        /// Time of the earlier request.
        at: Timestamp,
    },
    /// The plan was applied from another file.
    #[error("the plan `{plan}` comes from `{path}`, not from `{given}`")]
    PlanElsewhere {
        /// Name of the plan.
        plan: String,
        /// Its recorded file.
        path: String,
        /// File that was given.
        given: String,
    },
    /// The file of a plan now contains another plan name.
    #[error("`{path}` is the file of the plan `{from}`, but it now contains the plan `{to}`")]
    PlanRenamed {
        /// Recorded name.
        from: String,
        /// Name in the file.
        to: String,
        /// Path of the file.
        path: String,
    },
    /// The plan cannot be applied.
    #[error("the plan `{plan}` cannot be applied: {}", Conflict::list(.conflicts))]
    PlanConflict {
        /// Name of the plan.
        plan: String,
        /// Conflicts, one for each task.
        conflicts: Vec<Conflict>,
    },
    /// A task cannot take its new work as it is.
    #[error("task {conflict}")]
    WorkConflict {
        /// What is against it.
        conflict: Conflict,
    },
}

/// What is against changed work of a task in the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// Id of the task.
    pub task: TaskId,
    /// Explanation, which follows the id in the message.
    pub why: String,
    /// What resolves it.
    pub remedy: Remedy,
}

/// What resolves a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Remedy {
    /// Another id in the file, or a separate instance of the plan.
    OtherId,
    /// Starting the task over with everything that ran after it.
    Redo,
    /// The same, or keeping the results of the task.
    RedoOrKeep,
    /// Settling the interrupted call.
    Settle,
    /// Waiting until the task has ended, or releasing it.
    Wait,
}

impl Conflict {
    pub(crate) fn new(task: &TaskId, why: impl Into<String>, remedy: Remedy) -> Self {
        Self { task: task.clone(), why: why.into(), remedy }
    }

    /// Groups equal conflicts: the first task, and the number of others.
    fn list(all: &[Self]) -> String {
        let text = |group: &bounded::Group<&Self>| match group.count - 1 {
            0 => group.first.to_string(),
            1 => format!("{}, the same for 1 more task", group.first),
            more => format!("{}, the same for {more} more tasks", group.first),
        };
        bounded::kinds(all, |conflict| conflict.why.as_str(), text, "; ")
    }
}

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` {}", self.task, self.why)
    }
}

/// Formats a cycle. A long one is cut in the middle, so that both ends stay readable.
fn way(path: &[TaskId]) -> String {
    let named = |ids: &[TaskId]| ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(" → ");
    let hidden = path.len().saturating_sub(2 * bounded::MAX_ITEMS);
    if hidden == 0 {
        return named(path);
    }
    let (first, last) = (&path[..bounded::MAX_ITEMS], &path[path.len() - bounded::MAX_ITEMS..]);
    format!("{} → … {hidden} more … → {}", named(first), named(last))
}

fn names(names: &[impl std::fmt::Display]) -> String {
    bounded::names(names)
}

/// Holder of a task, as shown to a caller that may not report on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldBy {
    /// A run.
    Run(RunId),
    /// An agent, a person or a program.
    Actor {
        /// Name of the actor.
        name: String,
        /// Kind of the actor, given only if the caller has the same name.
        kind: Option<ActorKind>,
    },
    /// The store: neither a run nor an actor works on it. The text says what it waits for.
    Store(String),
}

impl std::fmt::Display for HeldBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Run(run) => write!(f, "run `{run}`"),
            Self::Actor { name, kind: Some(kind) } => write!(f, "the {kind} {}", bounded::data(name)),
            Self::Actor { name, kind: None } => f.write_str(&bounded::data(name)),
            Self::Store(wait) => write!(f, "the store, because it {wait}"),
        }
    }
}

/// A conflicting change of a task after the command to undo.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ConflictingChange {
    /// Id of the task.
    pub task: TaskId,
    /// Revision of the change, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Name of the actor, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Description of the change.
    pub what: String,
}

impl std::fmt::Display for ConflictingChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` {}", self.task, self.what)?;
        match (&self.actor, self.revision) {
            (Some(actor), Some(revision)) => write!(f, " ({actor}, revision {revision})"),
            _ => Ok(()),
        }
    }
}

/// Status changes of a task since an attempt.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct ChangesSince {
    /// The last ones, oldest first.
    pub events: Vec<Event>,
    /// Number of earlier ones that were left out.
    pub earlier: usize,
}

impl ChangesSince {
    /// Most events that a refusal carries.
    const KEPT: usize = 20;

    pub(crate) fn new(mut events: Vec<Event>) -> Self {
        let earlier = events.len().saturating_sub(Self::KEPT);
        Self { events: events.split_off(earlier), earlier }
    }
}

impl Refusal {
    /// Returns the changes that other actors made in the meantime, if any.
    pub fn since(&self) -> Option<&ChangesSince> {
        let (Self::Transition { since, .. }
        | Self::HeldByOther { since, .. }
        | Self::StaleAttempt { since, .. }
        | Self::ForeignAttempt { since, .. }) = self
        else {
            return None;
        };
        Some(since).filter(|since| !since.events.is_empty())
    }

    pub(crate) fn with_since(mut self, changes: ChangesSince) -> Self {
        if let Self::Transition { since, .. } = &mut self {
            *since = changes;
        }
        self
    }

    /// Returns whether an id was unknown or ambiguous.
    pub fn is_about_ids(&self) -> bool {
        matches!(
            self,
            Self::UnknownTask { .. }
                | Self::AmbiguousId { .. }
                | Self::UnknownRun { .. }
                | Self::NothingSelected { .. }
                | Self::Relayed { is_about_ids: true, .. }
        )
    }
}

fn may_only(access: Option<PlanAccess>) -> &'static str {
    match access {
        Some(PlanAccess::Read) => "a call with `planAccess: read` may only read the plan",
        Some(PlanAccess::Add) => "a call with `planAccess: add` may only read the plan and add tasks to it",
        None => "a call may only read the plan and, with `planAccess: add`, add tasks to it",
    }
}

fn quoted(ids: &[TaskId]) -> String {
    bounded::names(ids)
}

fn some_words(all: &[impl std::fmt::Display]) -> String {
    bounded::list(all, "; ")
}

fn because(reason: Option<&BlockedReason>) -> String {
    reason.map_or_else(String::new, |reason| format!(" ({})", reason.kind()))
}

fn until(lease_until: Option<Timestamp>) -> String {
    lease_until.map_or_else(String::new, |end| format!(" until {}", crate::value::format_time(end)))
}

fn waits_for(open: &[TaskId], failed: &[TaskId], wait: Option<&str>) -> String {
    match (open.is_empty(), failed.is_empty()) {
        (true, true) => {
            wait.map_or_else(|| "its parent has not opened".to_owned(), |wait| format!("it {wait}"))
        }
        (false, true) => format!("it waits for {}", quoted(open)),
        (_, false) => format!("it cannot start because of {}", quoted(failed)),
    }
}

fn decided(by: Option<&(String, Timestamp)>) -> String {
    by.map_or_else(String::new, |(by, at)| {
        format!(" (approved by {by} at {})", crate::value::format_time(*at))
    })
}

fn answer_problem(answer: Option<&String>) -> String {
    answer.map_or_else(
        || "an answer is required for".to_owned(),
        |answer| format!("{} is not an option of", bounded::data(answer)),
    )
}

/// Formats the first cause. Its id is left out if the message already names this task alone.
fn hangs_at(cause: Option<&(TaskId, String)>, open: &[TaskId], failed: &[TaskId]) -> String {
    match cause {
        Some((id, why)) if open.iter().chain(failed).eq([id]) => format!(": {why}"),
        Some((id, why)) => format!("; the first cause is `{id}`: {why}"),
        None => String::new(),
    }
}
