use serde::Deserialize;
use serde_json::{Map, Value, json};
use taskpawl::model::advice::{Advice, Hint};
use taskpawl::model::command::Refusal;
use taskpawl::model::rules::Means;
use taskpawl::model::task::Status;
use taskpawl::model::value::Selector;
use taskpawl::model::value::TaskId;
use taskpawl::{Error, Manager};

use super::definition::{Definition, READS, WRITES, number, schema, switch, texts};
use crate::server::actions::Action;
use crate::server::actions::restricted;
use crate::server::answer::{Answer, MAX_BYTES, MAX_BYTES_ASKED};
use crate::server::arguments;
use crate::server::brief;
use crate::server::caller::Caller;
use crate::server::digest::after;
use crate::server::needs::with_needs;
use crate::server::options::ServerOptions;
use crate::server::refusal::Refused;

/// Default number of listed tasks of each kind.
const LIMIT: usize = 10;

pub(super) fn definition(read_only: bool) -> Definition {
    let mut properties = json!({"only": texts(), "limit": number()});
    if !read_only {
        properties["claim"] = switch();
    }
    Definition {
        description: if read_only {
            "Ready tasks in order: for runs, and by hand. only: as in run_ready."
        } else {
            "Ready tasks, for runs and by hand. claim: true takes the next one by hand for you. only: as in run_ready."
        },
        input: schema(properties, &[], !read_only),
        hints: if read_only { READS } else { WRITES },
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Arguments {
    only: Vec<String>,
    limit: Option<usize>,
    claim: bool,
}

/// Checks the arguments of a call.
pub(super) fn check_arguments(given: Map<String, Value>) -> Result<(), Refused> {
    arguments::read::<Arguments>(given).map(drop)
}

pub(super) fn call(
    caller: &Caller,
    options: &ServerOptions,
    arguments: Map<String, Value>,
) -> Result<Answer, Refused> {
    let Arguments { only, limit, claim } = arguments::read(arguments)?;
    let only: Vec<Selector> =
        only.iter().map(|word| word.parse().unwrap_or_else(|never| match never {})).collect();
    if !claim {
        return list(caller, options, &only, limit);
    }
    if options.claims_nothing() {
        return Err(Refused::NotHere {
            what: "this server only reads: it claims nothing".to_owned(),
            hint: Some(Hint::from(Advice::ExplainReady {}).text(" shows what is ready")),
        });
    }
    claim_next(caller, options, &only)
}

fn list(
    caller: &Caller,
    options: &ServerOptions,
    only: &[Selector],
    limit: Option<usize>,
) -> Result<Answer, Refused> {
    let means = Means { jobs: Some(options.run.jobs()), ..caller.means.clone() };
    let limit = limit.unwrap_or(LIMIT * caller.max_bytes / MAX_BYTES);
    Ok(ready(caller.reads(), &means, only, limit)?)
}

/// Returns the ready tasks, with the calls that start them.
pub(in crate::server) fn ready(
    manager: &Manager,
    means: &Means,
    only: &[Selector],
    limit: usize,
) -> Result<Answer, Error> {
    let mut ready = manager.explain_ready(only, limit, means)?;
    let names = ready.for_runs.iter_mut().chain(&mut ready.by_hand).map(|task| &mut task.name);
    for name in names.chain(ready.unrunnable.iter_mut().map(|task| &mut task.name)) {
        *name = brief::cut(name, brief::LISTED_CHARS);
    }
    let totals = [
        ("forRuns", ready.total_for_runs),
        ("byHand", ready.total_by_hand),
        ("forNobody", ready.total_unrunnable),
    ];
    let mut answer = Answer::new(json!({
        "forRuns": ready.for_runs, "byHand": ready.by_hand, "totalForRuns": ready.total_for_runs, "totalByHand": ready.total_by_hand,
    }))
    .with("forNobody", json!(ready.unrunnable))
    .next(after(&ready, only));
    for (list, total) in totals {
        answer = answer.out_of(list, total);
    }
    let most = totals.into_iter().map(|(_, total)| total).max().unwrap_or_default();
    let rest = Action::call("ready_list", restricted(only, json!({"limit": most})));
    let is_longer = limit > 0 && most > limit;
    // Its pages have all of them, also if they are too many for the longest answer.
    let pages = Action::call("plan_show", json!({"status": [Status::Todo]}));
    let longer = is_longer.then(|| [rest.of_size(MAX_BYTES_ASKED), pages]);
    Ok(answer.next(longer.into_iter().flatten()).rest(rest))
}

fn claim_next(caller: &Caller, options: &ServerOptions, only: &[Selector]) -> Result<Answer, Refused> {
    let manager = || caller.manager().with_capacities(options.run.resources.clone());
    let id = if only.is_empty() {
        manager().claim_next(options.lease)?
    } else {
        first_of(caller, manager, options, only)?
    };
    Ok(claimed(Answer::default(), caller.reads(), &id)?)
}

/// Adds a claimed task to an answer, with all that its work needs.
pub(super) fn claimed(answer: Answer, manager: &Manager, id: &TaskId) -> Result<Answer, Error> {
    let task = manager.get(id.as_str())?;
    let done = json!({"id": id, "action": "done", "attempt": task.attempt});
    // With a note it hands on what was found, should this agent not come back.
    let renew = Action::call("task_update", json!({"id": id, "action": "renew"}));
    let description = Action::call("task_get", json!({"id": id, "part": "description"}));
    let answer = answer
        .with("claimed", Value::Object(brief::whole(&task, MAX_BYTES / 2)))
        .part("/claimed/description", &json!(task.description), description)
        .rest(Action::call("task_get", json!({"id": id})));
    Ok(with_needs(answer, manager, &task)?.next([Action::call("task_update", done), renew]))
}

/// Claims the first task of a scope. If another agent was faster, tries the next one. Each attempt is the same part
/// of the request, so that a repeated call gets the same task.
fn first_of(
    caller: &Caller,
    manager: impl Fn() -> Manager,
    options: &ServerOptions,
    only: &[Selector],
) -> Result<TaskId, Refused> {
    let ready = caller.reads().explain_ready(only, 0, &Means::default())?;
    let mut refused = Refused::from(Refusal::NothingReady);
    for task in ready.by_hand {
        match manager().claim(task.task.as_str(), options.lease) {
            Ok(id) => return Ok(id),
            Err(error) => refused = error.into(),
        }
    }
    Err(refused)
}
