//! Prompts, which a person chooses at the client.

use rmcp::model::{ErrorData, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

use taskpawl::NoChange;
use taskpawl::tools::Redactor;
use taskpawl_planner::{Budget, Facts, plan_goal_text};
use taskpawl_text::error_chain;

use super::arguments::found;
use super::digest::digest;
use super::error_text::{internal, named};
use super::mcp_server::McpServer;
use super::options::PromptText;

const PLAN_EXPAND: &str = "plan_expand";
const PLAN_GOAL: &str = "plan_goal";
const PLAN_REPAIR: &str = "plan_repair";
const RESUME_WORK: &str = "resume_work";
const REVIEW_FAILURES: &str = "review_failures";

/// Returns all prompts.
pub(super) fn list(server: &McpServer) -> Vec<Prompt> {
    let argument = |name: &str, description: &str, is_required: bool| {
        PromptArgument::new(name).with_description(description).with_required(is_required)
    };
    let own = [
        (
            PLAN_GOAL,
            "Break a goal down into a plan",
            Some(vec![argument("goal", "The goal of the plan", true)]),
        ),
        (
            PLAN_EXPAND,
            "Split a manual task into subtasks",
            Some(vec![argument("task", "The id of the task", true)]),
        ),
        (
            PLAN_REPAIR,
            "Change a plan after a failure, so that it goes on",
            Some(vec![argument("plan", "The plan with failed tasks", true)]),
        ),
        (RESUME_WORK, "Go on where the plan stands", Some(vec![argument("agent", "Your name", false)])),
        (
            REVIEW_FAILURES,
            "Find out why tasks failed and get the plan going again",
            Some(vec![argument("plan", "Of this plan alone", false)]),
        ),
    ];
    let own =
        own.into_iter().map(|(name, description, arguments)| Prompt::new(name, Some(description), arguments));
    let others =
        sets(server).map(|prompt| Prompt::new(prompt.name.clone(), Some(prompt.description.clone()), None));
    own.filter(|_| has_own(server)).chain(others).collect()
}

/// Returns whether a server has the prompts of the plan. All of them lead to writes, so a read-only server has none.
fn has_own(server: &McpServer) -> bool {
    server.options().has_plan && !server.options().read_only
}

fn sets(server: &McpServer) -> impl Iterator<Item = &PromptText> {
    server.options().sets.iter().flat_map(|set| &set.prompts)
}

/// Returns the text of a prompt. Blocks.
pub(super) fn get(
    server: &McpServer,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<GetPromptResult, ErrorData> {
    let said = |name: &str| {
        let given = text_of(arguments, name)?.map(str::trim);
        Ok::<_, ErrorData>(given.filter(|text| !text.is_empty()))
    };
    let own = if has_own(server) { name } else { "" };
    let needed = |argument: &str| {
        let missing = || format!("the prompt `{}` needs the argument `{argument}`", named(name));
        said(argument)?.ok_or_else(|| ErrorData::invalid_params(missing(), None))
    };
    let text = match own {
        PLAN_EXPAND => plan_expand(server, needed("task")?)?,
        PLAN_GOAL => plan_goal_text(needed("goal")?),
        PLAN_REPAIR => plan_repair(server, needed("plan")?)?,
        RESUME_WORK => resume_work(server, said("agent")?)?,
        REVIEW_FAILURES => review_failures(server, said("plan")?)?,
        _ => {
            let found = sets(server).find(|prompt| prompt.name == name);
            let unknown = || {
                format!("argument `name`: no prompt `{}`: prompts/list has those that there are", named(name))
            };
            found
                .map(|prompt| prompt.text.clone())
                .ok_or_else(|| ErrorData::invalid_params(unknown(), None))?
        }
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

/// Returns an argument, if it is given and not `null`.
fn text_of<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, ErrorData> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
            let problem = format!("argument `arguments.{name}`: expected text, not {}", found(other));
            Err(ErrorData::invalid_params(problem, None))
        }
    }
}

/// The rules of changes, which `plan_write` checks.
const MERGE: &str = "Write it with `plan_write {name, merge: true, dry_run: true}`, correct what it refuses, show what would change, and write \
                     it without `dry_run` after a yes. `plan_show {help}` explains the language.";

fn plan_repair(server: &McpServer, plan: &str) -> Result<String, ErrorData> {
    let (facts, redactor) = (Facts::default(), Redactor::default());
    let plans = server.plans().blocking();
    let request = plans.repair_request(plan, &[], &facts, Budget::default().max_tasks, &redactor);
    let data = request.map_err(|error| no_change(&error))?.prompt.goal;
    Ok(format!(
        "Repair a plan after a failure, so that it goes on. Name the cause in one sentence. You may add tasks, and change tasks that \
         failed or have not started: give their `id` and the changed fields. Change as little as possible. {MERGE} Skip what is not needed \
         any more with `task_update {{action: \"skip\"}}`, with a note that says why.\n\n{data}\n"
    ))
}

fn plan_expand(server: &McpServer, task: &str) -> Result<String, ErrorData> {
    let (facts, redactor) = (Facts::default(), Redactor::default());
    let plans = server.plans().blocking();
    let request = plans.expand_request(task, &[], &facts, Budget::default().max_tasks, Some(&redactor));
    let request = request.map_err(|error| no_change(&error))?;
    let (name, data) = (Value::from(request.plan()), request.prompt.goal.as_str());
    Ok(format!(
        "Split a manual task of the plan {name} into subtasks: a part of the plan with the `id` of the task and its `subtasks`. The task is \
         done when they are. {MERGE}\n\n{data}\n"
    ))
}

fn no_change(error: &NoChange) -> ErrorData {
    ErrorData::invalid_params(error_chain(error), None)
}

fn resume_work(server: &McpServer, agent: Option<&str>) -> Result<String, ErrorData> {
    let stands = where_it_stands(server, agent)?;
    let name = agent.map(|agent| format!(" Give `agent: \"{agent}\"` in every call.")).unwrap_or_default();
    Ok(format!(
        "Go on with the plan.{name} First finish what you hold, then what `nextActions` says. End work by hand with `task_update`, \
         with `result` and `note`; what you cannot do you release or fail with a note that says why. Stop when only decisions \
         of a person are left, and name them.\n\nWhere it stands:\n{stands}\n"
    ))
}

fn review_failures(server: &McpServer, plan: Option<&str>) -> Result<String, ErrorData> {
    let stands = where_it_stands(server, None)?;
    let filter = plan.map(|plan| format!(", \"plan\": {}", Value::from(plan))).unwrap_or_default();
    Ok(format!(
        "Find out why tasks failed. List them with `plan_show {{\"status\": [\"failed\"]{filter}}}`. For each: read it with `task_get`, \
         and what it printed with `part: \"stderr\"`; name the cause in one sentence. Remove the cause, then `task_update` with \
         `action: \"retry\"` (it goes on at the call that failed) or `reopen` (it starts over), and `run_ready`. Skip or cancel only what \
         is not needed any more, and say why in the note.\n\nWhere it stands:\n{stands}\n"
    ))
}

fn where_it_stands(server: &McpServer, agent: Option<&str>) -> Result<String, ErrorData> {
    let plans = agent.map_or_else(|| server.plans().clone(), |agent| server.plans().acting_as(agent));
    let digest = digest(&plans, &server.means()).map_err(|error| internal(&error))?;
    Ok(digest.only_here(server.options()).in_name_of(agent).into_json().to_string())
}
