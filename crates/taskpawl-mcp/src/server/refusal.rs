//! Failed calls as a model reads them: the error, the reason, and the calls that help.

use serde_json::{Value, json};
use taskpawl::model::advice::{Advice, CommandLine, Hint};
use taskpawl::model::command::{HeldBy, Refusal};
use taskpawl::model::plan::{PlanError, PlanErrors, Position};
use taskpawl::model::task::{BlockedReason, Status};
use taskpawl::model::value::bounded::Group;
use taskpawl::model::value::{TaskId, bounded};
use taskpawl::{CheckProblem, Error, PlanCheck, RunError};
use taskpawl_text::error_chain;

use super::actions::{Action, CallWords};
use super::answer::Answer;
use super::core::TASK_ACTIONS;

/// Maximum size of a corrected call, in bytes of JSON. A larger one stays with its author.
const MAX_CORRECTED: usize = 900;

/// A fault of a task: a call that does not fit its tool, or a dependency that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallFault {
    /// The task.
    pub(super) task: String,
    /// The fault.
    pub(super) fault: String,
}

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// An argument is wrong.
    #[error("argument `{name}`: {problem}")]
    Argument { name: String, problem: String },
    /// A call was refused, and the one that was probably meant is known.
    #[error("{refused}")]
    Corrected { refused: Box<Refused>, call: Action },
    /// The server was started without a feature that the call needs.
    #[error("{what}")]
    NotHere { what: String, hint: Option<Hint> },
    /// A rule refused the command, or the store failed.
    #[error(transparent)]
    Command(#[from] Error),
    /// Another actor holds the task, and no other task can be claimed instead.
    #[error(transparent)]
    Alone(Error),
    /// A run could not start.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A plan that was given as text is invalid.
    #[error(transparent)]
    Text(PlanErrors),
    /// A check of a plan has found errors.
    #[error("the plan has errors")]
    Plan {
        found: PlanCheck,
        /// True if the plan was given as text, so that positions mean something.
        is_text: bool,
    },
    /// Tool calls do not fit their tools, or tasks depend on missing ones.
    #[error("{}", first_of(.0))]
    Calls(Vec<CallFault>),
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self::Command(refusal.into())
    }
}

impl From<PlanErrors> for Refused {
    fn from(errors: PlanErrors) -> Self {
        Self::Command(errors.into())
    }
}

impl Refused {
    pub(super) fn argument(name: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Argument { name: name.into(), problem: problem.into() }
    }

    /// Adds the call that was probably meant, if it is short enough to be repeated.
    #[must_use]
    pub(super) fn corrected(self, call: Action) -> Self {
        let is_short = call.to_json().to_string().len() <= MAX_CORRECTED;
        if is_short { Self::Corrected { refused: Box::new(self), call } } else { self }
    }

    /// Returns whether another actor holds the task by a claim with a lease.
    pub(super) fn is_held(error: &Error) -> bool {
        let Error::Refused(refusal) = error else { return false };
        matches!(refusal.as_ref(), Refusal::HeldByOther { lease_until: Some(_), .. })
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Corrected { refused, .. } => refused.kind(),
            Self::Argument { .. } => "invalid_argument",
            Self::NotHere { .. } => "not_available",
            Self::Calls(_) | Self::Plan { .. } | Self::Text(_) | Self::Command(Error::Invalid(_)) => {
                "invalid_plan"
            }
            Self::Command(Error::Refused(refusal))
            | Self::Alone(Error::Refused(refusal))
            | Self::Run(RunError::Command(Error::Refused(refusal))) => {
                if refusal.is_about_ids() {
                    "unknown_id"
                } else {
                    "refused"
                }
            }
            Self::Run(RunError::MissingVariables { .. }) => "refused",
            Self::Command(_) | Self::Alone(_) | Self::Run(_) => "failed",
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Command(error) | Self::Run(RunError::Command(error)) => {
                own_hint(error).or_else(|| error.hint()).or_else(|| hint_of_plan(error))
            }
            Self::Alone(_) => Some(
                "nothing else is ready for you now; until its claim ends, only its holder can report on it"
                    .into(),
            ),
            Self::NotHere { hint, .. } => hint.clone(),
            Self::Corrected { refused, .. } => refused.hint(),
            Self::Argument { .. } => Some("nothing was done: fix it and repeat the call".into()),
            Self::Calls(_) | Self::Plan { .. } | Self::Text(_) => Some(FIX_PLAN.into()),
            Self::Run(_) => None,
        }
    }

    /// Returns the advice of the hint, and further advice for the refusal. The rules may refuse some of it by now.
    pub(super) fn advice(&self) -> Vec<Advice> {
        let mut advice: Vec<Advice> = self.hint().unwrap_or_default().advised().cloned().collect();
        if let Self::Command(Error::Refused(refusal))
        | Self::Run(RunError::Command(Error::Refused(refusal))) = self
        {
            advice.extend(instead(refusal));
        }
        advice
    }

    /// Returns the answer for a model that called in the name of `agent`, with the calls for `advice`. Commands for
    /// people get the flags of `line`.
    pub(super) fn into_answer(self, agent: Option<&str>, line: &CommandLine, advice: &[Advice]) -> Answer {
        if let Self::Corrected { refused, call } = self {
            let call = call.in_name_of(agent);
            return refused.into_answer(agent, line, advice).first(call);
        }
        let hint = self.hint().unwrap_or_default();
        let mut actions = Action::of_all(advice);
        let hint = hint.format_with(&CallWords { agent, line });
        let mut message = bounded::cut(&error_chain(&self)).into_owned();
        let (mut problems, mut total) = (Vec::new(), 0);
        if let Self::Command(Error::Invalid(errors)) | Self::Text(errors) = &self {
            let groups = bounded::grouped(errors.errors(), |error| error.kind());
            total = groups.len();
            message = format!(
                "the arguments are wrong{}, and nothing was changed",
                in_places(errors.errors().len())
            );
            let has_places = matches!(self, Self::Text(_));
            let shown = groups.iter().take(bounded::MAX_ITEMS);
            problems = shown.map(|group| json!(problem(group, has_places))).collect();
        }
        if let Self::Plan { found, is_text } = &self {
            (problems, total) = problems_of(found, *is_text);
            message = format!("the arguments are wrong{}, and nothing was changed", in_places(found.errors));
        }
        if actions.is_empty() && self.kind() != "failed" {
            actions.push(Action::call("plan_show", json!({})));
        }
        let error = Answer::new(json!({"kind": self.kind(), "message": message}))
            .with("hint", if hint.is_empty() { json!(null) } else { json!(hint) })
            .with("problems", json!(problems));
        let actions = actions.into_iter().map(|action| action.in_name_of(agent));
        Answer::refused(json!({"error": error.into_json()}))
            .with("shortened", json!((total > problems.len()).then_some(true)))
            .out_of("problems", total)
            .next(actions)
    }
}

/// Returns the number of faults, if they are too many to be listed.
fn in_places(total: usize) -> String {
    if total > bounded::MAX_ITEMS { format!(" in {total} places") } else { String::new() }
}

/// Describes the faults. Equal ones are grouped and counted.
fn first_of(problems: &[CallFault]) -> String {
    let text = |group: &Group<&CallFault>| {
        let CallFault { task, fault } = group.first;
        group.counted(&format!("task {}: {fault}", bounded::data(task)))
    };
    bounded::kinds(problems, |problem| problem.fault.as_str(), text, "; ")
}

/// The hint for an invalid plan or task.
const FIX_PLAN: &str = "nothing was changed: fix the errors and repeat the call";

fn hint_of_plan(error: &Error) -> Option<Hint> {
    matches!(error, Error::Invalid(_)).then(|| FIX_PLAN.into())
}

/// Maximum length of a fault, in bytes. All faults, with the message and the hint, stay below 2 kB.
const MAX_PROBLEM: usize = 280;

/// Maximum length of the path of a problem, in bytes.
const MAX_PATH: usize = 120;

/// Maximum length of all problems of a plan together, in bytes of JSON.
const MAX_PROBLEMS: usize = 1_400;

/// Describes a fault of a plan, with its position if the plan was given as text.
fn problem(group: &Group<&PlanError>, has_places: bool) -> String {
    let error = group.first;
    let has_place = has_places && error.at != Position::default();
    let line = if has_place { format!("{}: ", error.at) } else { String::new() };
    let place = if error.path.is_empty() { String::new() } else { format!("{}: ", error.path) };
    let hint = error.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    let text = group.counted(&format!("{line}{place}{}", error.problem));
    bounded::cut_to(&format!("{text}{hint}"), MAX_PROBLEM).into_owned()
}

/// Describes the problems of a plan as data. Equal ones are grouped and counted. Also returns the number of all groups.
pub(super) fn problems_of(found: &PlanCheck, is_text: bool) -> (Vec<Value>, usize) {
    let groups = bounded::grouped(&found.problems, |problem| (problem.code, problem.message.clone()));
    let total = groups.len() + found.omitted;
    let data = |group: &Group<&CheckProblem>| {
        let CheckProblem { severity, code, at, path, message, hint, .. } = group.first;
        let path = bounded::cut_to(path, MAX_PATH);
        let mut data = json!({"severity": severity.as_str(), "code": code, "path": path});
        if is_text && *at != Position::default() {
            (data["line"], data["column"]) = (json!(at.line), json!(at.column));
        }
        data["message"] = json!(bounded::cut_to(message, MAX_PROBLEM));
        if let Some(hint) = hint {
            data["hint"] = json!(bounded::cut_to(&hint.to_string(), MAX_PROBLEM));
        }
        if group.count > 1 {
            data["times"] = json!(group.count);
        }
        data
    };
    let (mut listed, mut bytes) = (Vec::new(), 0);
    for data in groups.iter().take(bounded::MAX_ITEMS).map(data) {
        bytes += data.to_string().len();
        if bytes > MAX_PROBLEMS && !listed.is_empty() {
            break;
        }
        listed.push(data);
    }
    (listed, total)
}

/// Returns the verbs that are actions of `task_update`.
fn by_call<'v>(verbs: &'v [&'v str]) -> impl Iterator<Item = &'v str> {
    verbs.iter().copied().filter(|verb| TASK_ACTIONS.contains(verb))
}

/// Returns a hint for refusals where the library's own hint names options of the command line.
fn own_hint(error: &Error) -> Option<Hint> {
    let Error::Refused(refusal) = error else { return None };
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "of the others the library names what there is here, too"
    )]
    match refusal.as_ref() {
        Refusal::Transition {
            reason: Some(BlockedReason::Dependency { .. } | BlockedReason::Waiting { .. }),
            ..
        } => None,
        Refusal::Transition { id, from, allowed, .. } if !allowed.is_empty() => Some(allows(id, *from, allowed)),
        Refusal::HeldByOther { holder: HeldBy::Actor { .. }, lease_until: Some(_), .. } => Some(
            Hint::new("take another one with ")
                .advice(Advice::ClaimNext {})
                .text("; until its claim ends, only its holder can report on it"),
        ),
        Refusal::PlanConflict { .. } => {
            Some("give those tasks other ids, or `reopen` those that ran and write the plan again".into())
        }
        Refusal::MissingParams { .. } => Some("declare a `default` for it among the `params` of the plan".into()),
        Refusal::ImportConflict { .. } => Some("give those tasks other ids".into()),
        Refusal::StillNeeded { id, .. } => Some(
            Hint::new("give each of those its `dependencies` without ").data(id).text(
                " in the `fields` of task_update, or delete all of them in one call; a task that has not ended can be kept in the record with `cancel`",
            ),
        ),
        _ => None,
    }
}

/// Lists the possible next actions for a task in its status: those of callers, and commands for people.
fn allows(id: &TaskId, from: Status, allowed: &[&str]) -> Hint {
    let actions: Vec<&str> = by_call(allowed).collect();
    let people: Vec<Advice> = allowed.iter().filter_map(|verb| of_people(verb, id)).collect();
    let mut hint = Hint::default();
    if !actions.is_empty() {
        hint = hint.text(format!("from `{from}` the actions are: {}", actions.join(", ")));
    }
    for (index, advice) in people.into_iter().enumerate() {
        let between = match (index, actions.is_empty()) {
            (0, true) => "it takes ",
            (0, false) => "; it takes ",
            _ => " or ",
        };
        hint = hint.text(between).advice(advice);
    }
    hint
}

fn of_people(verb: &str, id: &TaskId) -> Option<Advice> {
    match verb {
        "unblock" => Some(Advice::unblock(id)),
        "approve" => Some(Advice::Approve { id: id.clone(), answer: None }),
        "reject" => Some(Advice::Reject { id: id.clone() }),
        _ => None,
    }
}

/// Returns advice in addition to that of the hint.
fn instead(refusal: &Refusal) -> Vec<Advice> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "of the others the hint says all")]
    match refusal {
        Refusal::UnknownTask { similar, .. } => similar.iter().map(Advice::show).collect(),
        Refusal::NothingReady => vec![Advice::Runs {}],
        Refusal::Transition { id, allowed, .. } => {
            // Actions that end the work without success are not suggested; they need a decision.
            let given_up = ["fail", "cancel", "skip"];
            let usable = by_call(allowed).filter(|verb| !given_up.contains(verb));
            usable.filter_map(|verb| of_verb(verb, id)).collect()
        }
        Refusal::StillNeeded { by, .. } => by.iter().take(2).map(Advice::show).collect(),
        Refusal::DependentsRan { id, by, .. } => {
            let id = id.clone();
            vec![match *by {
                "reopen" => Advice::Reopen { id, cascade: true },
                _ => Advice::Retry { id, cascade: true },
            }]
        }
        Refusal::VersionMismatch { id, .. } | Refusal::DuplicateId { id, .. } => {
            vec![Advice::show(id)]
        }
        _ => Vec::new(),
    }
}

fn of_verb(verb: &str, id: &TaskId) -> Option<Advice> {
    Some(match verb {
        "claim" => Advice::claim(id),
        "release" => Advice::Release { id: id.clone(), holder: None },
        "done" => Advice::done(id),
        "retry" => Advice::retry(id),
        "reopen" => Advice::reopen(id),
        _ => return None,
    })
}
