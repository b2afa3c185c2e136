use serde::Deserialize;
use serde_json::{Map, Value, json};
use taskpawl::model::command::Refusal;
use taskpawl::model::task::Status;
use taskpawl::model::view::Query;

use super::definition::{Definition, READS, number, schema, text, texts};
use crate::server::actions::Action;
use crate::server::answer::{Answer, MAX_BYTES};
use crate::server::arguments;
use crate::server::brief;
use crate::server::caller::Caller;
use crate::server::digest::digest;
use crate::server::help;
use crate::server::page::Page;
use crate::server::refusal::Refused;

/// Default number of listed tasks.
const LIMIT: usize = 20;

pub(super) fn definition() -> Definition {
    Definition {
        description: "Where the plan stands. Without filters: your claims, runs, what waits or failed, nextActions. With filters: tasks.",
        input: schema(
            json!({
                "status": {"type": "array", "items": {"enum": Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>()}},
                "plan": text(), "label": texts(), "text": text(), "limit": number(), "offset": number(), "max_bytes": number(),
                "help": {"type": "string", "description": "plan, tools, or a name in them"},
            }),
            &[],
            false,
        ),
        hints: READS,
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Arguments {
    status: Vec<Status>,
    plan: Option<String>,
    label: Vec<String>,
    text: Option<String>,
    limit: Option<usize>,
    offset: usize,
    /// What is to be explained, in place of tasks.
    help: Option<String>,
}

/// Checks the arguments of a call.
pub(super) fn check_arguments(given: Map<String, Value>) -> Result<(), Refused> {
    arguments::read::<Arguments>(given).map(drop)
}

pub(super) fn call(caller: &Caller, arguments: Map<String, Value>) -> Result<Answer, Refused> {
    // Without filters: some clients send every field as `null`.
    if arguments.values().all(Value::is_null) {
        return Ok(digest(&caller.plans, &caller.means)?);
    }
    // The next page needs the arguments as the caller wrote them.
    let mut same = arguments.clone();
    same.retain(|_, value| !value.is_null());
    let Arguments { status, plan, label, text, limit, offset, help } = arguments::read(arguments)?;
    if let Some(topic) = help {
        return help::help(caller, &topic);
    }
    if let Some(name) = &plan {
        check_plan(caller, name)?;
    }
    let query = Query {
        status,
        plan,
        labels: label,
        text,
        limit: limit.unwrap_or(LIMIT * caller.max_bytes / MAX_BYTES),
        offset,
        ..Query::default()
    };
    let page = caller.reads().list(&query)?;
    let tasks = brief::tasks(caller.reads(), &caller.means, &page.tasks)?;
    // Only for filters that the store's counters can answer.
    let mut answer = json!({});
    if let Some(total) = page.total {
        answer["total"] = json!(total);
        answer["counts"] = brief::counts(&caller.reads().counts()?);
    }
    let tasks =
        Page::of_list("tasks", offset, tasks, page.truncated).then(Action::call("plan_show", same.into()));
    Ok(Answer::new(answer).page(tasks))
}

/// Refuses a plan that does not exist: an empty list would look like a plan without tasks.
fn check_plan(caller: &Caller, name: &str) -> Result<(), Refused> {
    let manager = caller.reads();
    let is_known = manager.read(|view| Ok(view.plan(name)?.is_some()))?;
    // Tasks may belong to a plan that was never written as a whole.
    let query = Query { plan: Some(name.to_owned()), limit: 1, ..Query::default() };
    if is_known || !manager.list(&query)?.tasks.is_empty() {
        return Ok(());
    }
    Err(Refusal::NothingSelected { selector: format!("plan:{name}") }.into())
}
